#include "cli/io/peek.h"

#include <string.h>
#include <sys/stat.h>

static bool is_metric(const struct bc_entry *entry)
{
	return (entry->has & BC_HAS_TIME) != 0 &&
	       (entry->unit == BC_UNIT_NS || entry->unit == BC_UNIT_US ||
		       entry->unit == BC_UNIT_PS);
}

struct bc_peek bc_peek(const struct bc_console *console, const char *path, enum bc_format format,
	const struct bc_reader_options *options)
{
	struct bc_console silent = *console;
	struct bc_peek found = {.unit = BC_UNIT_TICK};
	struct bc_trace trace;
	struct bc_batch batch;
	struct stat st;

	if (strcmp(path, "-") == 0 || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return found;
	silent.err = fopen("/dev/null", "w");
	if (silent.err == NULL)
		return found;
	if (bc_trace_open(&trace, &silent, &path, 1, format, options) == BC_EXIT_OK &&
		trace.format == BC_FORMAT_TARMAC && bc_trace_next(&trace, &batch))
		for (size_t i = 0; i < batch.count; i++) {
			found.has |= batch.entries[i].has;
			if (found.unit == BC_UNIT_TICK && is_metric(&batch.entries[i]))
				found.unit = batch.entries[i].unit;
		}
	bc_trace_close(&trace);
	fclose(silent.err);
	return found;
}

bool bc_peek_units_differ(struct bc_peek a, struct bc_peek b)
{
	return a.unit != BC_UNIT_TICK && b.unit != BC_UNIT_TICK && a.unit != b.unit;
}
