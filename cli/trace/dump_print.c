#include "cli/trace/dump_print.h"

#include <inttypes.h>

#include "cli/io/record_text.h"
#include "cli/io/trace.h"
#include "formats/bus/dialect.h"
#include "formats/codec/format.h"

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

void bc_dump_tick(struct bc_dump *dump, char before, uint64_t tick)
{
	if (dump->time != BC_DUMP_TICK)
		return;
	dump->output.used--; /* over the newline */
	bc_output_format(&dump->output, "%c%" PRIu64 "\n", before, tick);
}

void bc_dump_name(struct bc_dump *dump, char before, bool is_port, uint64_t addr)
{
	const char separator[] = {before, '\0'};

	if (dump->names == NULL)
		return;
	dump->output.used--; /* over the newline */
	bc_name_print(&dump->output, dump->names, is_port, addr, separator, "");
	bc_output_text(&dump->output, "\n", 1);
}

bool bc_dump_check(struct bc_dump *dump, const struct bc_file *file)
{
	enum bc_format format = file->probe.format;
	uint32_t holds = bc_format_info(format)->holds;
	bool is_bus = bc_format_is_bus(format) || bc_dialect_bytes(format) != 0;
	const char *why = NULL;

	if (dump->time > BC_DUMP_TICK)
		why = "--time relative and --time wall need segments";
	else if (dump->time == BC_DUMP_TICK && (!is_bus || (holds & BC_HAS_TIME) == 0))
		why = "--time tick works only with segments, BYU and bcp1";
	else if (dump->names != NULL && !is_bus)
		why = "--map and --symbols work only with segments, BYU, bcp1 and raw6";
	if (why != NULL)
		bc_print_error(dump->console, file->name, "%s", why);
	if (why == NULL && bc_filter_args_check(&dump->args, dump->console, format, holds))
		return true;
	dump->exit = bc_exit_worse(dump->exit, BC_EXIT_USAGE);
	return false;
}

void bc_dump_damage(struct bc_dump *dump, const struct bc_file *file, uint64_t offset,
	uint64_t bytes, const char *what)
{
	bc_print_damage(dump->console, file->name, offset, bytes, what);
	dump->exit = bc_exit_worse(dump->exit, BC_EXIT_DAMAGED);
}

void bc_dump_read(struct bc_dump *dump, const struct bc_file *file,
	const struct bc_reader_options *options,
	bool (*print)(void *context, const struct bc_batch *batch), void *context)
{
	struct bc_batch batch;
	uint64_t faults = 0;
	bool is_more = true;

	dump->reader = NULL;
	int rc = bc_reader_open(&dump->reader, file->input, file->probe.format, options);
	while (rc >= 0 && is_more && !bc_output_failed(&dump->output)) {
		rc = bc_reader_next(dump->reader, &batch);
		if (rc <= 0)
			break;
		is_more = print(context, &batch);
		if (bc_file_would_wait(file))
			bc_output_flush(&dump->output);
		if (batch.fault != NULL)
			bc_print_fault(dump->console, file->name, batch.fault, faults++);
	}
	bc_print_faults_left(dump->console, file->name, faults);
	if (faults != 0)
		dump->exit = bc_exit_worse(dump->exit, BC_EXIT_DAMAGED);
	if (rc < 0)
		dump->exit = bc_exit_worse(
			dump->exit, bc_print_read_error(dump->console, file, rc));
	bc_reader_close(dump->reader);
}
