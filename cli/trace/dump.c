#include "cli/term/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/io/operands.h"
#include "cli/io/trace.h"
#include "cli/trace/dump_print.h"
#include "formats/bus/record.h"
#include "formats/trace/printer.h"

/* ---- Files of all formats other than segments and bus formats, in their own text form. */

/* Returns the printer for the text form of a format. */
static const struct bc_printer *text_printer(enum bc_format format)
{
	if (format == BC_FORMAT_LAPLACE)
		format = BC_FORMAT_LAPLACE_TEXT;
	return bc_format_info(format)->printer;
}

/* A file being printed. */
struct printing {
	struct bc_dump *dump;
	const struct bc_file *file;
	const struct bc_printer *printer;
	void *state; /* the printer's */
};

/* Returns false if printing failed, after an error message or silently for a closed pipe. */
static bool print_entries(const struct printing *p, const struct bc_entry *entries, size_t count)
{
	struct bc_dump *dump = p->dump;
	uint64_t reduced[BC_TRAIT_BITS] = {0};

	while (count != 0 && !bc_output_failed(&dump->output)) {
		struct bc_print print = {.entries = entries,
			.count = count,
			.out = bc_output_reserve(&dump->output, BC_PRINT_MAX),
			.capacity = BC_PRINT_MAX,
			.reduced = reduced};
		int rc = p->printer->print(p->state, &print);
		dump->output.used += print.used;
		if (rc != 0) {
			bc_print_error(dump->console, p->file->name, "%s", print.err);
			dump->exit = bc_exit_worse(dump->exit, BC_EXIT_FAILED);
			return false;
		}
		entries = print.entries;
		count = print.count;
	}
	return !bc_output_failed(&dump->output);
}

/* Prints the selected lines of a batch, run by run. All entries of a line are printed if one of
 * them is selected: the first one has the text of the line. Returns false if printing failed. */
static bool print_batch(const struct printing *p, const struct bc_batch *batch)
{
	size_t from = 0; /* where the run of selected lines starts */
	size_t end = 0;

	for (size_t i = 0; i < batch->count; i = end) {
		bool is_selected = false;
		do
			is_selected |= bc_filter_entry(
				&p->dump->args.filter, &batch->entries[end++]);
		while (end < batch->count && batch->entries[end].is_continued);
		if (is_selected)
			continue;
		if (!print_entries(p, batch->entries + from, i - from))
			return false;
		from = end;
	}
	return print_entries(p, batch->entries + from, end - from);
}

/* Prints a batch. Returns false if printing failed, or if no later entry can be selected, because
 * numbers increase. */
static bool print_selected(void *context, const struct bc_batch *batch)
{
	const struct printing *p = context;
	struct bc_dump *dump = p->dump;

	if (batch->count == 0)
		return true;
	uint64_t last = batch->entries[batch->count - 1].number;
	dump->end = last + 1 > dump->end ? last + 1 : dump->end;
	return print_batch(p, batch) && last <= dump->args.filter.numbers.last;
}

/* Prints one file and sets dump->exit. */
static void dump_entries(struct bc_dump *dump, struct bc_file *file)
{
	const struct bc_reader_options options = {.format = dump->format, .index_fd = -1};
	const struct bc_printer *printer = text_printer(file->probe.format);
	struct printing p = {.dump = dump,
		.file = file,
		.printer = printer,
		.state = bc_printer_start(printer, &options.format)};

	if (p.state != NULL)
		bc_dump_read(dump, file, &options, print_selected, &p);
	else
		dump->exit = bc_exit_worse(
			dump->exit, bc_print_read_error(dump->console, file, -ENOMEM));
	free(p.state);
}

enum { OPTION_B2A = 1000 };

static const struct bc_usage_option options[] = {
	BC_FILTER_OPTION_RECORDS,
	BC_FILTER_OPTION_EPOCH,
	BC_FILTER_OPTIONS_TIME,
	BC_FILTER_OPTIONS_ADDR,
	BC_FILTER_OPTIONS_FIELDS,
	{'t', "time", "FORM", "choice:delta|tick|relative|wall",
		"append to each record: delta (nothing: it ends with the ticks since the one "
		"before), tick (absolute), relative (seconds since the first) or wall (time of "
		"day)"},
	BC_NAME_OPTIONS,
	{OPTION_B2A, "b2a", NULL, NULL,
		"exactly like BYU's b2a: times in decimal, no lines that start with '#'"},
	{'p', "plain", NULL, NULL, "omit lines that start with '#' (gaps, marks, triggers)"},
	{'I', "input-format", "FMT", "format-read",
		"input format and options, such as laplace:endian=big (default: detected)"},
	{0},
};

const struct bc_usage bc_dump_usage = {
	.name = "dump",
	.operands = "[FILE|DIR|ID]...",
	.kind = "file",
	.summary = "print a trace as text",
	.text = "Prints traces as text: the records of segments (.byu.lz4) and BYU files in "
		"columns, "
		"bus samples (raw6, bcp1) like the printer in their specification, Laplace records "
		"in their text form, text formats unchanged. Segments are sorted. \"-\", or no "
		"file, is standard input.",
	.options = options,
	.more = "A range is A-B, A-, -B or A.",
	.exits = "0 ok, 1 failed, 2 wrong usage, 3 damaged or torn: the intact parts were printed.",
	.example = "buscap dump --addr b8000-bffff --time wall *.byu.lz4",
};

static bool read_time(struct bc_dump *dump)
{
	static const char *const names[BC_DUMP_TIMES] = {
		[BC_DUMP_DELTA] = "delta",
		[BC_DUMP_TICK] = "tick",
		[BC_DUMP_RELATIVE] = "relative",
		[BC_DUMP_WALL] = "wall",
	};

	for (unsigned i = 0; i < BC_DUMP_TIMES; i++)
		if (strcmp(optarg, names[i]) == 0) {
			dump->time = (enum bc_dump_time)i;
			return true;
		}
	bc_print_error(dump->console, NULL, "--time %s: delta, tick, relative or wall", optarg);
	return false;
}

static bool read_option(struct bc_dump *dump, int letter, enum bc_format *format, bool *is_b2a)
{
	const struct bc_console *console = dump->console;

	switch (letter) {
	case 't':
		return read_time(dump);
	case OPTION_B2A:
		*is_b2a = dump->is_plain = true;
		return true;
	case 'p':
		dump->is_plain = true;
		return true;
	case 'I':
		return bc_option_read_format(console, "-I", format, &dump->format);
	default:
		if (bc_name_args_has(letter)) {
			dump->exit = bc_name_args_add(&dump->names, console, letter);
			return dump->exit == BC_EXIT_OK;
		}
		return bc_filter_args_has(letter) &&
		       bc_filter_args_option(&dump->args, console, letter);
	}
}

/* Returns false if the command must exit with dump->exit. */
static bool read_options(struct bc_dump *dump, enum bc_format *format, struct bc_options *o)
{
	const struct bc_filter *filter = &dump->args.filter;
	bool is_b2a = false;
	bool ok = true;
	int letter = 0;

	while (ok && (letter = bc_options_next(o)) != -1)
		ok = read_option(dump, letter, format, &is_b2a);
	ok = ok && bc_filter_args_finish(&dump->args, dump->console, dump->names);
	dump->is_part = dump->args.selection[0] != '\0';
	dump->is_by_field = filter->has_addr || filter->has_types || filter->has_procs;
	dump->is_by_record = dump->is_by_field || dump->names != NULL ||
			     dump->time != BC_DUMP_DELTA || filter->has_wall ||
			     dump->args.has_from || dump->args.has_to;
	bc_record_text_init(&dump->text, is_b2a);
	if (ok && is_b2a && dump->time != BC_DUMP_DELTA) {
		dump->exit = bc_print_usage_error(dump->console, "--b2a excludes --time");
		return false;
	}
	if (ok && is_b2a && dump->names != NULL) {
		dump->exit = bc_print_usage_error(
			dump->console, "--b2a excludes --map and --symbols");
		return false;
	}
	if (ok && (optind < o->argc || !isatty(dump->console->in)))
		return true;
	if (ok)
		dump->exit = bc_print_usage_error(dump->console, "no file given");
	else if (dump->exit == BC_EXIT_OK)
		dump->exit = letter == -1 ? BC_EXIT_USAGE : o->exit;
	return false;
}

static void dump_file(struct bc_dump *dump, const char *path, enum bc_format format)
{
	struct bc_file file;
	enum bc_exit rc = bc_file_open(&file, dump->console, path, format);

	if (rc != BC_EXIT_OK) {
		dump->exit = bc_exit_worse(dump->exit, rc);
		dump->exit = bc_exit_worse(
			dump->exit, bc_print_holes_before(dump->console, path, &dump->sequence));
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
		} else if (!bc_dump_check(dump, &file))
			;
		else if (file.probe.format == BC_FORMAT_BCP1)
			bc_dump_frames(dump, &file);
		else if (bc_format_is_bus(file.probe.format))
			bc_dump_plain(dump, &file);
		else
			dump_entries(dump, &file);
		break;
	}
	bc_file_close(&file);
}

/* Explains why nothing was printed. */
static void explain_nothing(const struct bc_dump *dump)
{
	uint64_t first = dump->args.filter.numbers.first;

	if (!dump->is_part || dump->exit == BC_EXIT_FAILED || dump->exit == BC_EXIT_USAGE)
		return;
	if (dump->end == 0 && first != 0)
		bc_print_error(dump->console, NULL, "nothing to print: the input is empty");
	else if (first != 0 && first >= dump->end)
		bc_print_error(dump->console, NULL,
			"nothing to print from %" PRIu64 " on: the last number is %" PRIu64, first,
			dump->end - 1);
	else if (dump->output.used == 0 && !dump->output.has_written)
		bc_print_error(dump->console, NULL, "no record matches");
}

static void dump_files(struct bc_dump *dump, int argc, char **argv, enum bc_format format)
{
	struct bc_operands operands;
	struct bc_files files;
	enum bc_exit code = bc_operands_read(&operands, &files, dump->console,
		(const char *const *)argv + optind, argc - optind,
		BC_FILES_SORTED | BC_FILES_CHECKED | BC_FILES_STDIN);

	dump->exit = bc_exit_worse(code, files.exit);
	for (int i = 0; i < files.count && !bc_output_failed(&dump->output); i++)
		if (i + 1 == files.count || !bc_file_is_gone(files.paths[i]))
			dump_file(dump, files.paths[i], format);
	if (files.count != 0)
		explain_nothing(dump);
	bc_files_free(&files);
	bc_operands_close(&operands);
}

int bc_cmd_dump(const struct bc_console *console, int argc, char **argv)
{
	enum bc_format format = BC_FORMAT_UNKNOWN;
	struct bc_options o;
	struct bc_dump *dump = calloc(1, sizeof(*dump));

	if (dump == NULL) {
		return bc_print_no_memory(console);
	}
	dump->console = console;
	bc_options_start(&o, console, &bc_dump_usage, argc, argv);
	dump->format = bc_format_options_default();
	bc_filter_args_init(&dump->args);
	if (!read_options(dump, &format, &o))
		goto out;
	if (!bc_output_open(&dump->output, console)) {
		dump->exit = BC_EXIT_FAILED;
		goto out;
	}
	dump_files(dump, argc, argv, format);
	dump->exit = bc_exit_worse(dump->exit, bc_output_close(&dump->output, console));
out:
	bc_sequence_check_reset(&dump->sequence);
	bc_name_map_close(dump->names);
	int code = dump->exit;
	free(dump);
	return code;
}
