/* buscap find: searches segments by their indexes, or one trace of any other format from its start.
 * Both give what they find to one printer. */
#include "cli/term/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/io/file.h"
#include "cli/io/filter_args.h"
#include "cli/io/hosts.h"
#include "cli/io/no_match.h"
#include "cli/io/segment_input.h"
#include "cli/io/trace.h"
#include "cli/term/options.h"
#include "cli/term/output.h"
#include "formats/base/text.h"
#include "formats/recording/search.h"
#include "formats/trace/filter_parse.h"

#define CONTEXT_MAX 10000u

enum {
	OPTION_LAST = 1000,
	OPTION_AFTER_MARK,
	OPTION_BEFORE_MARK,
};

static const struct bc_usage_option options[] = {
	{'n', "first", "N", "number", "only the first N matches"},
	{OPTION_LAST, "last", "N", "number",
		"only the last N matches; segments are read from the end"},
	{'c', "count", NULL, NULL, "print only the number of matches"},
	BC_FILTER_OPTIONS_FIELDS,
	BC_FILTER_OPTION_RECORDS,
	BC_FILTER_OPTION_EPOCH,
	BC_FILTER_OPTIONS_TIME,
	{OPTION_AFTER_MARK, "after-mark", "TEXT", "mark",
		"after the first mark or trigger with this text"},
	{OPTION_BEFORE_MARK, "before-mark", "TEXT", "mark",
		"before the last mark or trigger with this text"},
	{'U', "context", "N", "number",
		"also print N entries before and after each match, up to 10000 (default 0)"},
	BC_FILTER_OPTION_PORT,
	BC_FILTER_OPTION_REGION,
	BC_NAME_OPTIONS,
	{'j', "json", NULL, NULL, "print one JSON object per line"},
	{'I', "input-format", "FMT", "format-read", "input format and options (default: detected)"},
	BC_HOSTS_OPTIONS,
	{0},
};

const struct bc_usage bc_find_usage = {
	.name = "find",
	.operands = "ADDR[-ADDR]|--region NAME|--port A-B [FILE|DIR|ID]...",
	.kind = "text recording",
	.summary = "find the references to an address",
	.text = "Prints the references that touch any byte of a range of hexadecimal addresses: "
		"number, time of day, file, and what dump prints. Searches recordings, or one "
		"trace of any other format; without an operand, the daemon's directory. Of a "
		"sealed segment, only chunks that may contain a match are read.",
	.options = options,
	.more = "A range is A-B, A- or A. Matches are printed in the order of time.",
	.exits = "0 ok, even if nothing matches, 1 failed, 2 wrong usage, 3 damaged or malformed "
		 "input: the intact parts were searched, 6 can't reach the daemon.",
	.example = "buscap find --last 1 --type write b8000-bffff *.byu.lz4",
};

/* The search, its options and its results so far. */
struct find {
	struct bc_segment_input input; /* the context of searches begins with it */
	const struct bc_console *console;
	struct bc_output output;
	/* Options. */
	struct bc_filter_args args;
	enum bc_format format; /* BC_FORMAT_UNKNOWN: detect it */
	struct bc_format_options format_options;
	struct bc_search_options options; /* without the filter, which is in `args` */
	bool is_json;
	struct bc_name_map *names; /* NULL: no names are shown */
	/* Results. */
	uint64_t matches;
	bool has_printed;
};

/* ---- options */

static bool read_find_option(struct find *f, int letter)
{
	switch (letter) {
	case 'n':
		return bc_option_count(f->console, "--first", 1, UINT64_MAX, &f->options.first);
	case OPTION_LAST:
		return bc_option_count(f->console, "--last", 1, UINT64_MAX, &f->options.last);
	case 'c':
		return f->options.is_count = true;
	case OPTION_AFTER_MARK:
		f->options.after_mark = optarg;
		return true;
	case OPTION_BEFORE_MARK:
		f->options.before_mark = optarg;
		return true;
	case 'U':
		return bc_option_count(
			f->console, "--context", 0, CONTEXT_MAX, &f->options.context);
	case 'j':
		return f->is_json = true;
	case 'I':
		return bc_option_read_format(f->console, "-I", &f->format, &f->format_options);
	default:
		if (bc_name_args_has(letter))
			return (f->input.exit = bc_name_args_add(&f->names, f->console, letter)) ==
			       BC_EXIT_OK;
		if (bc_hosts_has(letter))
			return true;
		return bc_filter_args_option(&f->args, f->console, letter);
	}
}

/* True if --region or --port replaces the address. */
static bool has_place(const struct find *f)
{
	return f->args.region != NULL || f->args.filter.has_addr;
}

/* ---- printing */

static bool is_port(const struct bc_entry *entry)
{
	return entry->kind == BC_ENTRY_REFERENCE && bc_is_port_access(entry->type);
}

/* Prints an entry. With context, a line "--" separates entries that do not follow each other. */
static void print_hit(struct find *f, const struct bc_search_hit *hit)
{
	char wall[BC_RFC3339_BYTES] = "-";
	uint64_t named = hit->is_context ? hit->entry.addr
					 : bc_filter_touched(&f->args.filter, &hit->entry);

	if (f->is_json) {
		json_t *name = bc_name_map_json(f->names, is_port(&hit->entry), named);
		bc_output_json_value(&f->output, bc_search_hit_json(hit, name));
		return;
	}
	if (f->options.context != 0 && f->has_printed && !hit->follows)
		bc_output_text(&f->output, "--\n", 3);
	f->has_printed = true;
	if (f->options.context != 0)
		bc_output_text(&f->output, hit->is_context ? "  " : "> ", 2);
	if (hit->has_wall)
		bc_rfc3339_write(wall, hit->wall_ns);
	bc_output_format(&f->output, "%10" PRIu64 "  %s  ", hit->entry.number, wall);
	bc_output_safe(&f->output, hit->file);
	bc_output_format(&f->output, "  %s", hit->text);
	bc_name_print(&f->output, f->names, is_port(&hit->entry), named, "  (", ")");
	bc_output_text(&f->output, "\n", 1);
}

/* ---- segments */

static bool on_segment_hit(void *context, const struct bc_search_hit *hit)
{
	struct find *f = context;

	print_hit(f, hit);
	return !bc_output_failed(&f->output);
}

/* Searches segments. Their index says which chunks can contain a match; only these are read. */
static void find_in_segments(struct find *f, char *const *paths, int count)
{
	const struct bc_segment_io io = bc_segment_input_io(&f->input);
	const char *missing;

	f->options.filter = f->args.filter;
	int rc = bc_search_run(
		&f->options, paths, count, &io, on_segment_hit, &f->matches, &missing);

	if (rc == -ENOENT) {
		f->input.exit = bc_exit_worse(f->input.exit,
			bc_print_error(f->console, NULL,
				"%s: no mark or trigger \"%s\"; buscap marks lists them",
				missing == f->options.after_mark ? "--after-mark" : "--before-mark",
				missing));
	} else if (rc != 0) {
		f->input.exit = bc_print_no_memory(f->console);
	}
}

/* ---- other formats */

struct stream {
	struct find *find;
	const char *path;
	struct bc_trace trace;
	uint64_t found;
	uint64_t skip;              /* matches that are not printed */
	uint64_t nth;               /* of the current entry, from 0 */
	uint64_t printed;           /* entries before this one are printed or not wanted */
	uint64_t wanted;            /* entries before this one are context of the last match */
	struct bc_search_hit *ring; /* the last `context` entries, by nth */
};

static void set_hit(struct stream *s, struct bc_search_hit *hit, const struct bc_entry *entry)
{
	hit->entry = *entry;
	hit->file = s->trace.file.name;
	hit->is_segment = false;
	hit->recording = hit->host = NULL;
	hit->has_wall = false;
	hit->is_context = true;
	bc_entry_text(hit->text, entry);
}

static void print_nth(struct stream *s, struct bc_search_hit *hit, uint64_t nth)
{
	hit->follows = s->printed == nth;
	print_hit(s->find, hit);
	s->printed = nth + 1;
}

static void print_match(struct stream *s, const struct bc_entry *entry)
{
	uint64_t context = s->find->options.context;
	uint64_t first = s->nth > context ? s->nth - context : 0;
	struct bc_search_hit hit;

	for (uint64_t i = first > s->printed ? first : s->printed; i < s->nth; i++)
		print_nth(s, &s->ring[i % context], i);
	set_hit(s, &hit, entry);
	hit.is_context = false;
	print_nth(s, &hit, s->nth);
	s->wanted = s->nth + 1 + context;
	s->find->matches++;
}

/* Handles an entry that does not match or is not wanted. */
static void pass_entry(struct stream *s, const struct bc_entry *entry)
{
	struct bc_search_hit *hit;

	if (s->ring == NULL)
		return;
	hit = &s->ring[s->nth % s->find->options.context];
	set_hit(s, hit, entry);
	if (s->nth < s->wanted)
		print_nth(s, hit, s->nth);
}

/* True after enough matches, or if the output has failed. */
static bool is_over(const struct find *f)
{
	return (f->options.first != 0 && f->matches >= f->options.first) ||
	       bc_output_failed(&f->output);
}

static bool is_reference_match(const struct stream *s, const struct bc_entry *entry)
{
	return entry->kind != BC_ENTRY_EVENT && bc_filter_entry(&s->find->args.filter, entry);
}

/* Reads the trace. If `is_silent`, only counts the matches. */
static enum bc_exit read_trace(struct stream *s, bool is_silent)
{
	struct find *f = s->find;
	struct bc_reader_options how = {.format = f->format_options, .index_fd = -1};
	struct bc_batch batch;
	/* What is wrong with the trace is reported when it is searched. */
	const struct bc_console silent = bc_console_silent(f->console);
	const struct bc_console *console = is_silent && !f->options.is_count ? &silent : f->console;
	enum bc_exit code = bc_trace_open(&s->trace, console, &s->path, 1, f->format, &how);

	s->found = s->nth = 0;
	if (code == BC_EXIT_OK && !bc_filter_args_check(&f->args, console, &s->trace))
		code = BC_EXIT_USAGE;
	if (code == BC_EXIT_OK && f->args.filter.has_wall) {
		bc_print_error(console, s->path,
			"--from and --to need segment files that are not compressed");
		code = BC_EXIT_USAGE;
	}
	while (code == BC_EXIT_OK && bc_trace_next(&s->trace, &batch)) {
		for (size_t i = 0; i < batch.count; i++, s->nth++) {
			const struct bc_entry *entry = &batch.entries[i];
			if (is_over(f) && (s->nth >= s->wanted || f->options.context == 0))
				goto out;
			bool is_match = is_reference_match(s, entry) && s->found++ >= s->skip;
			if (is_silent)
				continue;
			if (is_match && !is_over(f))
				print_match(s, entry);
			else
				pass_entry(s, entry);
		}
	}
out:
	code = bc_exit_worse(code, s->trace.exit);
	bc_trace_close(&s->trace);
	return code;
}

/* Searches a trace of any format from start to end, and before that for the last matches. */
static void find_in_stream(struct find *find, const char *path)
{
	struct stream s = {.find = find, .path = path};

	if (find->options.last != 0 && !bc_are_regular_files(&path, 1)) {
		bc_print_error(find->console, path, "--last needs the name of a file");
		find->input.exit = bc_exit_worse(find->input.exit, BC_EXIT_USAGE);
		return;
	}
	if (find->options.context != 0)
		s.ring = calloc(find->options.context, sizeof(*s.ring));
	if (find->options.context != 0 && s.ring == NULL) {
		find->input.exit = bc_print_no_memory(find->console);
		return;
	}
	if (find->options.last != 0) {
		(void)read_trace(&s, true);
		s.skip = s.found > find->options.last ? s.found - find->options.last : 0;
	}
	enum bc_exit code = read_trace(&s, find->options.is_count);
	if (find->options.is_count)
		find->matches = s.found;
	find->input.exit = bc_exit_worse(find->input.exit, code);
	free(s.ring);
}

/* ---- the command */

/* True if the first file that opens is a segment. A directory's files are taken for segments. */
static bool has_segments(const struct find *f, const struct bc_files *files)
{
	const struct bc_console silent = bc_console_silent(f->console);
	struct bc_file file;

	if (f->format == BC_FORMAT_UNKNOWN &&
		!bc_operands_have_file(&f->input.operands, files->paths[0]))
		return true;
	for (int i = 0; i < files->count; i++) {
		const char *path = files->paths[i];
		(void)bc_segment_path_find(files->paths[i]);
		if (!bc_are_regular_files(&path, 1) || /* it can't be read twice */
			bc_file_open(&file, &silent, path, f->format) != BC_EXIT_OK)
			continue;
		bool is_segment = file.probe.format == BC_FORMAT_SEGMENT && file.is_regular;
		bc_file_close(&file);
		return is_segment;
	}
	return false;
}

static enum bc_exit search_files(struct find *f, const struct bc_files *files)
{
	bool is_segment = has_segments(f, files);
	char text[BC_NO_MATCH_MAX];

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
		find_in_segments(f, files->paths, files->count);
	else
		find_in_stream(f, files->paths[0]);
	bool is_read = f->input.exit == BC_EXIT_OK || f->input.exit == BC_EXIT_DAMAGED;
	if (f->options.is_count && is_read && isatty(f->console->out))
		bc_output_format(&f->output, "%s\n", BC_GROUPED(f->matches));
	else if (f->options.is_count && is_read)
		bc_output_format(&f->output, "%" PRIu64 "\n", f->matches);
	if (f->matches == 0 && !f->options.is_count && is_read)
		bc_print_error(f->console, NULL, "no reference matches%s",
			bc_no_match_text(text, f->console, &f->args,
				(const char *const *)files->paths, files->count, f->format,
				&f->format_options));
	return bc_exit_worse(f->input.exit, bc_output_close(&f->output, f->console));
}

static bool is_address(const char *text)
{
	struct bc_filter filter;
	char err[128];

	return bc_filter_parse_addr(&filter, text, err, sizeof(err));
}

static enum bc_exit run_find(struct find *f, int argc, char **argv)
{
	struct bc_files files;
	static const struct bc_hosts_answer answer = {&bc_find_usage, "text", "time", NULL};
	enum bc_exit code = BC_EXIT_USAGE;

	int first = optind + !has_place(f);

	if (argc < first)
		return bc_print_usage_error(f->console, "give an address, --region or --port");
	if (f->options.first != 0 && f->options.last != 0)
		return bc_print_usage_error(f->console, "--first excludes --last");
	if (f->options.is_count && (f->options.first != 0 || f->options.last != 0 ||
					   f->options.context != 0 || f->is_json))
		return bc_print_usage_error(
			f->console, "--count excludes --first, --last, --context and --json");
	if (has_place(f) && argc > optind && is_address(argv[optind]) &&
		access(argv[optind], F_OK) != 0)
		return bc_print_usage_error(f->console, "give an address, or --region or --port");
	bool ok = has_place(f)
			  ? bc_filter_args_finish(&f->args, f->console, f->names, &code)
			  : bc_filter_args_operand(&f->args, f->console, f->names, argv[optind]);
	if (!ok || bc_hosts_ask(f->console, &answer, argc, argv, first - optind, &f->args, f->names,
			   &code))
		return code;
	code = bc_operands_read(&f->input.operands, &files, f->console,
		(const char *const *)argv + first, argc - first, BC_FILES_SORTED);
	if (code == BC_EXIT_OK)
		code = bc_exit_worse(search_files(f, &files), files.exit);
	bc_files_free(&files);
	bc_operands_close(&f->input.operands);
	return code;
}

enum bc_exit bc_cmd_find(const struct bc_console *console, int argc, char **argv)
{
	struct find *f = calloc(1, sizeof(*f));
	struct bc_options o;
	enum bc_exit code;
	int letter;

	if (f == NULL)
		return bc_print_no_memory(console);
	f->console = console;
	f->format_options = bc_format_options_default();
	bc_filter_args_init(&f->args);
	bc_options_start(&o, console, &bc_find_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1 && read_find_option(f, letter))
		;
	code = letter == -1                  ? run_find(f, argc, argv)
	       : f->input.exit != BC_EXIT_OK ? f->input.exit
					     : o.exit;
	bc_name_map_close(f->names);
	free(f);
	return code;
}
