#include "cli/trace/dump_print.h"

#include <inttypes.h>
#include <stdio.h>

void bc_dump_gap(struct bc_dump *dump, const struct bc_event *gap)
{
	const char *name = bc_gap_cause_name(gap->cause);
	char lasted[32] = "";

	if (dump->is_plain)
		return;
	if (gap->duration_ns != 0)
		snprintf(lasted, sizeof(lasted), ", %.6f s", (double)gap->duration_ns * 1e-9);
	if (!gap->exact && gap->value == 0)
		bc_output_format(&dump->output, "# gap: an unknown number of samples lost (%s%s)\n",
			name, lasted);
	else
		bc_output_format(&dump->output, "# gap: %s%" PRIu64 " sample%s lost (%s%s)\n",
			gap->exact ? "" : "at least ", gap->value, bc_plural(gap->value), name,
			lasted);
}

void bc_dump_note(struct bc_dump *dump, const char *word, const char *text, size_t bytes)
{
	if (dump->is_plain)
		return;
	bc_output_format(&dump->output, "# %s%s", word, bytes != 0 ? ": " : "");
	bc_output_safe_bytes(&dump->output, text, bytes);
	bc_output_text(&dump->output, "\n", 1);
}

void bc_dump_epoch(struct bc_dump *dump, uint32_t epoch)
{
	if (dump->has_epoch && dump->epoch != epoch && !dump->is_plain)
		bc_output_format(&dump->output, "# epoch %" PRIu32 "\n", epoch);
	dump->has_epoch = true;
	dump->epoch = epoch;
}

void bc_dump_damage(struct bc_dump *dump, const struct bc_file *file, uint64_t offset,
	uint64_t bytes, const char *what)
{
	bc_print_damage(dump->console, file->name, offset, bytes, what);
	dump->exit = bc_exit_worse(dump->exit, BC_EXIT_DAMAGED);
}
