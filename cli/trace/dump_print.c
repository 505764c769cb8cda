#include "cli/trace/dump_print.h"

#include <inttypes.h>

#include "cli/io/gap_text.h"

void bc_dump_gap(struct bc_dump *dump, const struct bc_event *gap)
{
	char text[BC_GAP_TEXT_MAX];

	if (!dump->is_plain)
		bc_output_format(&dump->output, "# gap: %s\n", bc_gap_text(text, gap));
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
