#include "cli/find/find.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/find/find_segments.h"
#include "cli/find/find_state.h"
#include "cli/find/find_stream.h"
#include "cli/io/file.h"
#include "cli/io/name_args.h"
#include "cli/io/operands.h"
#include "cli/io/trace.h"
#include "cli/term/options.h"
#include "formats/trace/filter_parse.h"

#define CONTEXT_MAX 10000u

enum {
	OPTION_FIRST = 1000,
	OPTION_LAST,
	OPTION_AFTER_MARK,
	OPTION_BEFORE_MARK,
};

static const struct bc_usage_option options[] = {
	{OPTION_FIRST, "first", "N", "number", "only the first N matches"},
	{OPTION_LAST, "last", "N", "number", "only the last N matches; reads from the end"},
	{'c', "count", NULL, NULL, "print only the number of matches"},
	BC_FILTER_OPTIONS_FIELDS,
	BC_FILTER_OPTIONS_TIME,
	{OPTION_AFTER_MARK, "after-mark", "TEXT", "text",
		"after the first mark or trigger with this text"},
	{OPTION_BEFORE_MARK, "before-mark", "TEXT", "text",
		"before the last mark or trigger with this text"},
	{'U', "context", "N", "number", "also print N entries before and after each match"},
	BC_FILTER_OPTION_REGION,
	BC_NAME_OPTIONS,
	{'j', "json", NULL, NULL, "print one JSON object per line"},
	{'I', "input-format", "FMT", "format-read", "input format and options (default: detected)"},
	{0},
};

const struct bc_usage bc_find_usage = {
	.name = "find",
	.operands = "ADDR[-ADDR]|--region NAME [FILE|DIR|ID]...",
	.kind = "text file",
	.summary = "find the references to an address",
	.text = "Prints the references that touch any byte of a range of hexadecimal addresses: "
		"number, time of day, file, and what dump prints. Searches recordings, or "
		"one trace of any other format; without an operand, the daemon's directory. In a "
		"sealed segment, chunks "
		"that "
		"can't contain a match are not read.",
	.options = options,
	.more = "A range is A-B, A- or A. Matches are printed in the order of the trace.",
	.exits = "0 ok, even if nothing matches, 1 failed, 2 wrong usage, 3 damaged or malformed "
		 "input: the intact parts were searched, 6 can't reach the daemon.",
	.example = "buscap find --last 1 --type write b8000-bffff *.byu.lz4",
};

static bool read_limit(const struct bc_console *console, const char *option, uint64_t *limit)
{
	if (!bc_option_count(console, option, limit))
		return false;
	if (*limit != 0)
		return true;
	bc_print_error(console, NULL, "%s 0: must be at least 1", option);
	return false;
}

static bool read_context(struct bc_find *f)
{
	if (!bc_option_count(f->console, "--context", &f->options.context))
		return false;
	if (f->options.context <= CONTEXT_MAX)
		return true;
	bc_print_error(f->console, NULL, "--context %s: must be 0 to %u", optarg, CONTEXT_MAX);
	return false;
}

static bool read_option(struct bc_find *f, int letter)
{
	switch (letter) {
	case OPTION_FIRST:
		return read_limit(f->console, "--first", &f->options.first);
	case OPTION_LAST:
		return read_limit(f->console, "--last", &f->options.last);
	case 'c':
		return f->options.is_count = true;
	case OPTION_AFTER_MARK:
		f->options.after_mark = optarg;
		return true;
	case OPTION_BEFORE_MARK:
		f->options.before_mark = optarg;
		return true;
	case 'U':
		return read_context(f);
	case 'j':
		return f->is_json = true;
	case 'I':
		return bc_option_read_format(f->console, "-I", &f->format, &f->format_options);
	default:
		if (bc_name_args_has(letter)) {
			f->exit = bc_name_args_add(&f->names, f->console, letter);
			return f->exit == BC_EXIT_OK;
		}
		return bc_filter_args_has(letter) &&
		       bc_filter_args_option(&f->args, f->console, letter);
	}
}

/* Reads the address, which a region replaces. */
static enum bc_exit read_address(struct bc_find *f, char *text)
{
	bool ok = f->args.region != NULL
			  ? bc_filter_args_finish(&f->args, f->console, f->names)
			  : bc_filter_args_operand(&f->args, f->console, f->names, text);

	return ok ? BC_EXIT_OK : BC_EXIT_USAGE;
}

/* Whether the first file that can be opened is a segment. Those of a directory are taken for
 * segments unread. */
static bool has_segments(const struct bc_find *f, const struct bc_files *files)
{
	struct bc_console silent;
	struct bc_file file;
	bool is_segment = false;

	if (f->format == BC_FORMAT_UNKNOWN && !bc_operands_have_file(&f->operands, files->paths[0]))
		return true;
	if (!bc_console_silence(&silent, f->console))
		return false;
	for (int i = 0; i < files->count; i++) {
		const char *path = files->paths[i];
		(void)bc_segment_path_find(files->paths[i]);
		if (!bc_are_regular_files(&path, 1) || /* it can't be read twice */
			bc_file_open(&file, &silent, path, f->format) != BC_EXIT_OK)
			continue;
		is_segment = file.probe.format == BC_FORMAT_SEGMENT && file.is_regular;
		bc_file_close(&file);
		break;
	}
	fclose(silent.err);
	return is_segment;
}

static enum bc_exit search(struct bc_find *f, const struct bc_files *files)
{
	bool is_segment = has_segments(f, files);

	for (int i = 0; i < files->count && files->count != 1; i++)
		if (!is_segment || strcmp(files->paths[i], "-") == 0) {
			bc_print_error(f->console, files->paths[i],
				"not a segment, or a compressed one; only plain segments can be "
				"searched together");
			return BC_EXIT_USAGE;
		}
	if (!is_segment && (f->options.after_mark != NULL || f->options.before_mark != NULL))
		return bc_print_usage_error(
			f->console, "--after-mark and --before-mark need segments");
	if (!bc_output_open(&f->output, f->console))
		return BC_EXIT_FAILED;
	if (is_segment)
		bc_find_segments(f, files->paths, files->count);
	else
		bc_find_stream(f, files->paths[0]);
	if (f->options.is_count && (f->exit == BC_EXIT_OK || f->exit == BC_EXIT_DAMAGED))
		bc_output_format(&f->output, "%" PRIu64 "\n", f->matches);
	if (f->matches == 0 && !f->options.is_count &&
		(f->exit == BC_EXIT_OK || f->exit == BC_EXIT_DAMAGED))
		bc_print_error(f->console, NULL, "no reference matches");
	return bc_exit_worse(f->exit, bc_output_close(&f->output, f->console));
}

static bool is_address(const char *text)
{
	struct bc_filter filter;
	char err[128];

	return bc_filter_parse_addr(&filter, text, err, sizeof(err));
}

static enum bc_exit run(struct bc_find *f, int argc, char **argv)
{
	struct bc_files files = {.paths = NULL};
	enum bc_exit code;

	int first = optind + (f->args.region == NULL);

	if (argc < first)
		return bc_print_usage_error(f->console, "give an address, or --region");
	if (f->options.first != 0 && f->options.last != 0)
		return bc_print_usage_error(f->console, "--first excludes --last");
	if (f->options.is_count && (f->options.first != 0 || f->options.last != 0 ||
					   f->options.context != 0 || f->is_json))
		return bc_print_usage_error(
			f->console, "--count excludes --first, --last, --context and --json");
	if (f->args.region != NULL && argc > optind && is_address(argv[optind]) &&
		access(argv[optind], F_OK) != 0)
		return bc_print_usage_error(f->console, "give an address or --region, not both");
	code = read_address(f, argv[optind]);
	if (code == BC_EXIT_OK)
		code = bc_operands_read(&f->operands, &files, f->console,
			(const char *const *)argv + first, argc - first, BC_FILES_SORTED);
	if (code == BC_EXIT_OK)
		code = bc_exit_worse(search(f, &files), files.exit);
	bc_files_free(&files);
	bc_operands_close(&f->operands);
	return code;
}

int bc_cmd_find(const struct bc_console *console, int argc, char **argv)
{
	struct bc_find *f = calloc(1, sizeof(*f));
	struct bc_options o;
	enum bc_exit code;
	int letter;

	if (f == NULL)
		return bc_print_no_memory(console);
	f->console = console;
	f->format_options = bc_format_options_default();
	bc_filter_args_init(&f->args);
	bc_options_start(&o, console, &bc_find_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1 && read_option(f, letter))
		;
	code = letter == -1 ? run(f, argc, argv) : f->exit != BC_EXIT_OK ? f->exit : o.exit;
	bc_name_map_close(f->names);
	free(f);
	return code;
}
