#include "cli/trace/dump.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/io/segment_order.h"
#include "cli/trace/dump_entries.h"
#include "cli/trace/dump_plain.h"
#include "cli/trace/dump_print.h"
#include "cli/trace/dump_segments.h"
#include "formats/bus/dialect.h"

enum { OPTION_B2A = 1 }; /* below all letters */

static const struct bc_usage_option options[] = {
	{'n', "records", "A-B", "range",
		"only records A to B, from 0 (A- and -B are open ranges); in text, lines, from 1"},
	{'t', "ticks", "A-B", "range", "only these absolute ticks"},
	{'e', "epoch", "N", "number", "only this epoch (the clock restarts with each)"},
	{'a', "absolute", NULL, NULL, "append the absolute tick to each line"},
	{OPTION_B2A, "b2a", NULL, NULL,
		"exactly like BYU's b2a: times in decimal, no lines that start with '#'"},
	{'p', "plain", NULL, NULL, "omit lines that start with '#' (gaps, marks, triggers)"},
	{'I', "input", "FMT", "format-read",
		"input format and options, such as laplace:endian=big (default: detected)"},
	{0},
};

const struct bc_usage bc_dump_usage = {
	.name = "dump",
	.operands = "[FILE]...",
	.kind = "file",
	.summary = "print a trace as text",
	.text = "Prints traces as text: the records of segments (.byu.lz4) and BYU files in "
		"columns, "
		"bus samples (raw6, bcp1) like the printer in their specification, Laplace records "
		"in their text form, text formats unchanged. Segments are sorted. \"-\", or no "
		"file, is standard input.",
	.options = options,
	.exits = "0 ok, 1 failed, 2 wrong usage, 3 damaged or torn: the intact parts were printed.",
	.example = "buscap dump -n 1000-1099 *.byu.lz4",
};

static bool read_epoch(const struct bc_console *console, struct bc_range *epochs)
{
	if (!bc_option_u64(console, "--epoch", &epochs->first))
		return false;
	epochs->last = epochs->first;
	return true;
}

/* Returns false if the command must exit with dump->exit. */
static bool read_options(struct bc_dump *dump, enum bc_format *format, struct bc_options *o)
{
	const struct bc_console *console = dump->console;
	bool ok = true;
	bool is_given[UCHAR_MAX + 1] = {false};
	bool is_b2a = false;
	int letter;

	while (ok && (letter = bc_options_next(o)) != -1) {
		if (is_given[letter] && strchr("nte", letter) != NULL) {
			dump->exit = bc_print_usage_error(
				console, letter == 'n'   ? "--records given twice"
					 : letter == 't' ? "--ticks given twice"
							 : "--epoch given twice");
			return false;
		}
		is_given[letter] = true;
		switch (letter) {
		case 'n':
			ok = bc_option_range(console, "--records", &dump->records);
			dump->has_range = true;
			break;
		case 't':
			ok = bc_option_range(console, "--ticks", &dump->ticks);
			dump->has_range = true;
			dump->has_ticks = true;
			break;
		case 'e':
			ok = read_epoch(console, &dump->epochs);
			dump->has_range = true;
			dump->has_epochs = true;
			break;
		case 'a':
			dump->is_absolute = true;
			dump->has_ticks = true;
			break;
		case OPTION_B2A:
			is_b2a = dump->is_plain = true;
			break;
		case 'p':
			dump->is_plain = true;
			break;
		case 'I':
			ok = bc_option_read_format(console, "-I", format, &dump->format);
			break;
		default:
			ok = false;
		}
	}
	bc_record_text_init(&dump->text, is_b2a);
	if (ok && (optind < o->argc || !isatty(console->in)))
		return true;
	dump->exit = ok ? bc_print_usage_error(console, "no file given") : o->exit;
	return false;
}

static void dump_file(struct bc_dump *dump, const char *path, enum bc_format format)
{
	struct bc_file file;
	enum bc_exit rc = bc_file_open(&file, dump->console, path, format);

	if (rc != BC_EXIT_OK) {
		dump->exit = bc_exit_worse(dump->exit, rc);
		return;
	}
	switch (file.probe.format) {
	case BC_FORMAT_SEGMENT:
		bc_dump_segments(dump, &file);
		break;
	default:
		if (dump->text.is_b2a && bc_dialect_bytes(file.probe.format) == 0) {
			bc_print_error(dump->console, path,
				"%s has no BYU records to print with --b2a",
				bc_format_name(file.probe.format));
			dump->exit = bc_exit_worse(dump->exit, BC_EXIT_USAGE);
		} else if (file.probe.format == BC_FORMAT_BCP1)
			bc_dump_frames(dump, &file);
		else if (bc_format_is_bus(file.probe.format))
			bc_dump_plain(dump, &file);
		else
			bc_dump_entries(dump, &file);
		break;
	}
	bc_file_close(&file);
}

/* Explains why nothing was printed if --records starts after the end. */
static void check_start(const struct bc_dump *dump)
{
	uint64_t first = dump->records.first;

	if (first == 0 || first < dump->end || dump->exit == BC_EXIT_FAILED ||
		dump->exit == BC_EXIT_USAGE)
		return;
	if (dump->end == 0)
		bc_print_error(dump->console, NULL, "nothing to print: the input is empty");
	else
		bc_print_error(dump->console, NULL,
			"nothing to print from %" PRIu64 " on: the last number is %" PRIu64, first,
			dump->end - 1);
}

int bc_cmd_dump(const struct bc_console *console, int argc, char **argv)
{
	enum bc_format format = BC_FORMAT_UNKNOWN;
	const struct bc_range all = {.first = 0, .last = UINT64_MAX};
	struct bc_options o;
	struct bc_dump *dump = calloc(1, sizeof(*dump));

	if (dump == NULL) {
		return bc_print_no_memory(console);
	}
	dump->console = console;
	bc_options_start(&o, console, &bc_dump_usage, argc, argv);
	dump->format = bc_format_options_default();
	dump->records = dump->ticks = dump->epochs = all;
	if (!read_options(dump, &format, &o))
		goto out;
	if (!bc_output_open(&dump->output, console)) {
		dump->exit = BC_EXIT_FAILED;
		goto out;
	}
	const char *input = "-";
	const char **paths = optind < argc ? (const char **)argv + optind : &input;
	int n = optind < argc ? argc - optind : 1;
	bc_segment_order_sort(paths, n);
	for (int i = 0; i < n && !bc_output_failed(&dump->output); i++)
		dump_file(dump, paths[i], format);
	check_start(dump);
	dump->exit = bc_exit_worse(dump->exit, bc_output_close(&dump->output, console));
out:
	bc_sequence_check_reset(&dump->sequence);
	int code = dump->exit;
	free(dump);
	return code;
}
