#include "cli/io/peek.h"

struct bc_peek bc_peek(const struct bc_console *console, const char *path, enum bc_format format,
	const struct bc_reader_options *options)
{
	struct bc_console silent;
	struct bc_peek found = {.unit = BC_UNIT_TICK};
	struct bc_trace trace;
	struct bc_batch batch;

	if (!bc_are_regular_files(&path, 1) || !bc_console_silence(&silent, console))
		return found;
	if (bc_trace_open(&trace, &silent, &path, 1, format, options) == BC_EXIT_OK &&
		trace.format == BC_FORMAT_TARMAC && bc_trace_next(&trace, &batch)) {
		found.is_known = true;
		for (size_t i = 0; i < batch.count; i++) {
			const struct bc_entry *entry = &batch.entries[i];
			found.has |= entry->has;
			if (found.unit == BC_UNIT_TICK && (entry->has & BC_HAS_TIME) != 0)
				found.unit = entry->unit;
		}
	}
	bc_trace_close(&trace);
	fclose(silent.err);
	return found;
}

enum bc_peek_units bc_peek_compare_units(struct bc_peek a, struct bc_peek b)
{
	if (a.unit == b.unit || a.unit == BC_UNIT_TICK || b.unit == BC_UNIT_TICK)
		return BC_PEEK_SAME;
	return bc_unit_picoseconds(a.unit) != 0 && bc_unit_picoseconds(b.unit) != 0
		       ? BC_PEEK_CONVERTIBLE
		       : BC_PEEK_UNRELATED;
}
