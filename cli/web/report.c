/* `buscap report`: a picture of recordings as JSON, or as the page of `buscap web` with it.
 *
 * The report is made in memory first. If it is longer than --max-size, the resolution is halved and
 * it is made again. Only a report that fits, and has records, replaces a file. */
#include "cli/term/commands.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/io/file.h"
#include "cli/io/filter_args.h"
#include "cli/io/picture.h"
#include "cli/io/segment_input.h"
#include "cli/overview/overview.h"
#include "cli/stats/stats.h"
#include "cli/term/options.h"
#include "cli/term/output.h"
#include "cli/term/text.h"
#include "cli/web/figure.h"
#include "cli/web/locality.h"
#include "cli/web/page.h"
#include "formats/base/clock.h"
#include "formats/base/json.h"
#include "formats/base/text.h"

#define MAX_BYTES_DEFAULT UINT64_C(20000000)

/* The minimum resolution. */
#define COLUMNS_MIN 16u
#define ROWS_MIN    8u
#define EVENTS_MIN  50u

enum {
	OPTION_COLUMNS = 1000,
	OPTION_ROWS,
	OPTION_MAX_SIZE,
	OPTION_COMPARE,
	OPTION_ALIGN,
	OPTION_FIGURE,
};

enum kind { KIND_UNKNOWN, KIND_JSON, KIND_HTML, KIND_FIGURE, KIND_OTHER /* is not written */ };

static const struct bc_usage_option options[] = {
	{'I', "input-format", "FMT", "format-read", "format of a trace (default: detected)"},
	{'o', "output", "FILE", "file", "write FILE, of the type that its name ends in"},
	{'j', "json", NULL, NULL, "the data of the picture"},
	{OPTION_FIGURE, "figure", "NAME", "choice:" BC_FIGURES,
		"one picture for a paper, as SVG: " BC_FIGURES},
	BC_FILTER_OPTIONS_TIME,
	{OPTION_COLUMNS, "columns", "N", "number", "columns of time, at most 512"},
	{OPTION_ROWS, "rows", "N", "number", "rows of addresses, at most 1024"},
	{OPTION_MAX_SIZE, "max-size", "SIZE", "size",
		"reduce the resolution until the file is not larger (default: 20M)"},
	{OPTION_COMPARE, "compare", NULL, NULL,
		"draw two runs, each a FILE, DIR or ID, on one time axis from their starts"},
	{OPTION_ALIGN, "align", "mark=NAME", "text",
		"with --compare: from the first mark or trigger NAME of each"},
	BC_NAME_OPTIONS,
	{0},
};

const struct bc_usage bc_report_usage = {
	.name = "report",
	.operands = "[FILE|DIR|ID]...",
	.kind = "recording",
	.summary = "draw recordings: traffic over time, and which addresses",
	.text = "Draws the traffic over time, with gaps and marks, and how often each block of "
		"addresses is used. Without an operand, draws the recordings in the daemon's "
		"directory. It reads the page counts in the segments; records are decoded only if "
		"there are few, or to count those of each processor.",
	.options = options,
	.more = "FILE ends in .html (a page for a browser, which can be printed), .json, or .svg "
		"(a figure). The working set and the miss ratio need all records.",
	.exits = "0 ok, 1 failed, 2 wrong usage, 3 damaged input: the intact parts were drawn, "
		 "6 can't reach the daemon.",
	.example = "buscap report -o run.html --map pc *.byu.lz4",
};

struct report_command {
	const struct bc_console *console;
	struct bc_segment_input input;
	struct bc_files files;
	enum bc_format from; /* of traces; BC_FORMAT_UNKNOWN: detected */
	struct bc_format_options format;
	struct bc_filter_args args;
	struct bc_name_map *names;
	const char *output; /* a file; NULL: standard output */
	enum kind kind;
	enum bc_figure figure;
	uint64_t columns; /* 0: default */
	uint64_t rows;
	uint64_t max_bytes;
	struct bc_overview *overview;
	uint32_t max_events;
	json_t *locality;           /* the curves of the page; NULL: none */
	struct bc_byte_buffer text; /* the report */
	char reduced[160];          /* why the resolution is lower than requested; "": it is not */
	bool is_compared;
	struct report_command *other; /* the second run; NULL: there is one run */
	const char *align;            /* a mark's text; NULL: the start */
	bool has_zero;
	int64_t zero_ns; /* its time */
};

/* ---- options */

static bool read_report_option(struct report_command *s, int letter)
{
	switch (letter) {
	case 'I':
		return bc_option_read_format(s->console, "-I", &s->from, &s->format);
	case 'o':
		s->output = strcmp(optarg, "-") != 0 ? optarg : NULL;
		return true;
	case 'j':
		s->kind = KIND_JSON;
		return true;
	case OPTION_FIGURE:
		s->kind = KIND_FIGURE;
		s->figure = bc_figure_parse(optarg);
		if (s->figure == BC_FIGURE_NONE)
			bc_print_error(
				s->console, NULL, "--figure %s: must be " BC_FIGURES, optarg);
		return s->figure != BC_FIGURE_NONE;
	case OPTION_COLUMNS:
		return bc_option_count(
			s->console, "--columns", 2, BC_OVERVIEW_COLUMNS, &s->columns);
	case OPTION_ROWS:
		return bc_option_count(s->console, "--rows", 2, BC_OVERVIEW_ROWS, &s->rows);
	case OPTION_MAX_SIZE:
		return bc_option_size(s->console, "--max-size", 0, &s->max_bytes);
	case OPTION_COMPARE:
		s->is_compared = true;
		return true;
	case OPTION_ALIGN:
		s->align = strncmp(optarg, "mark=", 5) == 0 ? optarg + 5 : NULL;
		if (s->align == NULL)
			bc_print_error(s->console, NULL, "--align %s: must be mark=NAME", optarg);
		return s->align != NULL;
	default:
		if (bc_name_args_has(letter))
			return (s->input.exit = bc_name_args_add(&s->names, s->console, letter)) ==
			       BC_EXIT_OK;
		return bc_filter_args_option(&s->args, s->console, letter);
	}
}

/* The kind of report that a file name stands for. */
static enum kind kind_of(const char *path)
{
	static const struct {
		const char *suffix;
		enum kind kind;
	} types[] = {{".html", KIND_HTML}, {".htm", KIND_HTML}, {".json", KIND_JSON},
		{".svg", KIND_FIGURE}, {".png", KIND_OTHER}, {".pdf", KIND_OTHER}};
	size_t bytes = strlen(path);

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		size_t suffix = strlen(types[i].suffix);
		if (bytes > suffix && strcasecmp(path + bytes - suffix, types[i].suffix) == 0)
			return types[i].kind;
	}
	return KIND_UNKNOWN;
}

static bool choose_kind(struct report_command *s)
{
	enum kind named = s->output != NULL ? kind_of(s->output) : KIND_UNKNOWN;

	if (s->kind == KIND_UNKNOWN && named != KIND_OTHER)
		s->kind = named;
	if (s->kind == KIND_UNKNOWN && s->output == NULL)
		bc_print_usage_error(s->console,
			"no type of report given; use -o with FILE.html or FILE.json, --json or "
			"--figure");
	else if (s->kind == KIND_UNKNOWN)
		bc_print_error(s->console, s->output,
			"unknown type of report; write FILE.html, FILE.json or, with --figure, "
			"FILE.svg");
	else if (s->kind == KIND_FIGURE && s->figure == BC_FIGURE_NONE)
		bc_print_usage_error(s->console, "an .svg file needs --figure " BC_FIGURES);
	else if (s->figure != BC_FIGURE_NONE && (s->kind != KIND_FIGURE || s->is_compared))
		bc_print_usage_error(s->console, "--figure excludes --json and --compare");
	else if (named != KIND_UNKNOWN && s->kind != named)
		bc_print_error(s->console, s->output,
			"named for another type of report; name it %s, or omit the option",
			s->kind == KIND_FIGURE ? ".svg" : ".json");
	else
		return true;
	return false;
}

/* ---- JSON */

static void add_text(struct bc_byte_buffer *t, const char *text)
{
	bc_byte_buffer_add(t, text, strlen(text));
}

/* The result of writing a text, if what else was done returned `rc`. */
static int text_result(const struct bc_byte_buffer *t, int rc)
{
	return t->is_too_long ? -EFBIG : t->is_out_of_memory ? -ENOMEM : rc;
}

static int add_value(struct bc_byte_buffer *t, const char *name, json_t *value)
{
	char *text = bc_json_print(value);
	int rc = text != NULL ? 0 : -ENOMEM;

	json_decref(value);
	if (rc == 0) {
		add_text(t, name);
		add_text(t, text);
	}
	free(text);
	return rc;
}

static int64_t position(uint64_t tick)
{
	return tick < INT64_MAX ? (int64_t)tick : INT64_MAX;
}

static int write_json(struct report_command *s, struct bc_byte_buffer *t)
{
	const struct bc_overview_picture *p = bc_overview_picture(s->overview);
	int64_t now = bc_wall_ns();
	char made[BC_RFC3339_BYTES];

	bc_rfc3339_write(made, now - now % 1000000000);
	add_text(t, "{\"overview\":");
	int rc = bc_overview_json(s->overview, s->names, t);
	add_text(t, ",\"events\":");
	if (rc == 0)
		rc = bc_overview_events_json(s->overview, p->from_ns, p->to_ns, s->max_events, t);
	if (rc == 0)
		rc = add_value(t, ",\"made\":", json_string(made));
	if (rc == 0)
		rc = add_value(t, ",\"program\":", json_string("buscap " BC_VERSION));
	if (rc == 0)
		rc = add_value(t, ",\"reduced\":",
			s->reduced[0] != 0 ? json_string(s->reduced) : json_null());
	if (rc == 0 && s->is_compared)
		rc = add_value(t, ",\"zero\":",
			json_integer(
				position((uint64_t)s->zero_ns -
					 (uint64_t)bc_overview_contents(s->overview).from_ns)));
	if (rc == 0 && s->locality != NULL)
		rc = add_value(t, ",\"locality\":", json_incref(s->locality));
	if (rc == 0 && s->other != NULL) {
		add_text(t, ",\"compared\":");
		rc = write_json(s->other, t);
		t->used -= t->used != 0; /* its end of the line */
	}
	add_text(t, "}\n");
	return rc;
}

/* ---- the page (page.c) with the JSON in it */

static const char element[] = "<script type=\"application/json\" id=\"report\">";

/* Adds JSON with every '<' escaped, which only strings can have. So nothing ends the element. */
static void add_escaped(struct bc_byte_buffer *t, const char *text, size_t bytes)
{
	while (bytes != 0) {
		const char *sign = memchr(text, '<', bytes);
		size_t plain = sign != NULL ? (size_t)(sign - text) : bytes;
		if (!bc_byte_buffer_add(t, text, plain) ||
			(sign != NULL && !bc_byte_buffer_add(t, "\\u003c", 6)))
			return;
		plain += sign != NULL;
		text += plain;
		bytes -= plain;
	}
}

/* Reads the curves, if the picture is of single records: then there are few. */
static int read_locality(struct report_command *s)
{
	bool is_little = bc_overview_picture(s->overview)->unit == BC_OVERVIEW_RECORDS;

	if (s->locality != NULL || !is_little)
		return 0;
	return bc_locality_read(&s->locality, s->overview, &s->args.filter, NULL);
}

static int write_html(struct report_command *s, struct bc_byte_buffer *t)
{
	struct bc_byte_buffer json = {.max = t->max};
	const char *at = memmem(bc_page_html, bc_page_html_bytes, element, sizeof(element) - 1);
	int rc = read_locality(s);

	assert(at != NULL);
	at += sizeof(element) - 1;
	bc_byte_buffer_add(t, bc_page_html, (size_t)(at - bc_page_html));
	if (rc == 0 && s->other != NULL)
		rc = read_locality(s->other);
	if (rc == 0)
		rc = text_result(&json, write_json(s, &json));
	if (rc == 0)
		add_escaped(t, json.bytes, json.used - 1); /* without the end of the line */
	free(json.bytes);
	bc_byte_buffer_add(t, at, bc_page_html_bytes - (size_t)(at - bc_page_html));
	return rc;
}

static int write_figure(struct report_command *s, struct bc_byte_buffer *t)
{
	return bc_figure_picture(t, s->overview, s->figure, BC_FIGURE_ALL);
}

/* ---- drawing */

/* How each kind is made, and its resolution if none is given. */
static const struct {
	int (*write)(struct report_command *s, struct bc_byte_buffer *text);
	unsigned columns;
	unsigned rows;
} kinds[] = {
	[KIND_JSON] = {write_json, 256, 200},
	[KIND_HTML] = {write_html, BC_OVERVIEW_COLUMNS, BC_OVERVIEW_ROWS},
	[KIND_FIGURE] = {write_figure, BC_OVERVIEW_COLUMNS, 200},
};

static enum bc_exit print_failure(struct report_command *s, int rc)
{
	if (rc == -ENOMEM)
		return bc_print_no_memory(s->console);
	return bc_print_error(s->console, NULL, "failed: %s", strerror(-rc));
}

/* Draws what the options select of a run. */
static int draw_run(struct report_command *s, struct bc_overview_options picture)
{
	const struct bc_span *ticks = &s->args.filter.ticks;
	picture.from_ns = s->args.has_tick ? position(ticks->first) : s->args.filter.from_ns;
	int64_t end_ns = !s->args.has_tick ? s->args.filter.to_ns
					   : position(ticks->last + (ticks->last != UINT64_MAX));
	picture.to_ns = end_ns != INT64_MAX && end_ns != INT64_MIN ? end_ns - 1 : INT64_MAX;
	return bc_overview_draw(s->overview, &picture);
}

/* Draws with a resolution, and writes the report. Returns 0, -EFBIG if it is too long, or another
 * negative errno. */
static int try_report(
	struct report_command *s, struct bc_overview_options *picture, struct bc_byte_buffer *text)
{
	int rc = draw_run(s, *picture);

	if (rc == 0 && s->other != NULL) {
		s->other->max_events = s->max_events;
		rc = draw_run(s->other, *picture);
	}
	text->used = 0;
	text->is_too_long = false;
	if (rc != 0)
		return rc;
	return text_result(text, kinds[s->kind].write(s, text));
}

/* Half of a number, but not below `min`. */
static unsigned halve(unsigned n, unsigned min)
{
	return n <= min ? n : n / 2 > min ? n / 2 : min;
}

/* Reduces the resolution until the report is short enough. */
static enum bc_exit make_report(struct report_command *s, struct bc_byte_buffer *text)
{
	struct bc_overview_options picture = bc_overview_options_default();
	char size[BC_HUMANIZE_MAX];
	int rc;

	picture.columns = s->columns != 0 ? (unsigned)s->columns : kinds[s->kind].columns;
	picture.by_processor = s->kind != KIND_FIGURE;
	picture.rows = s->rows != 0 ? (unsigned)s->rows : kinds[s->kind].rows;
	s->max_events = BC_OVERVIEW_EVENTS;
	text->max = s->max_bytes;
	while ((rc = try_report(s, &picture, text)) == -EFBIG &&
		(picture.columns > COLUMNS_MIN || picture.rows > ROWS_MIN ||
			s->max_events > EVENTS_MIN)) {
		picture.columns = halve(picture.columns, COLUMNS_MIN);
		picture.rows = halve(picture.rows, ROWS_MIN);
		s->max_events = halve(s->max_events, EVENTS_MIN);
		snprintf(s->reduced, sizeof(s->reduced),
			"Reduced to at most %u columns, %u rows and %u events, so that it has at "
			"most %s.",
			picture.columns, picture.rows, s->max_events,
			bc_humanize_bytes(size, (double)s->max_bytes));
	}
	if (rc == -EFBIG)
		return bc_print_error(s->console, NULL,
			"--max-size: too small for this report, even at the lowest resolution");
	return rc == 0 ? BC_EXIT_OK : print_failure(s, rc);
}

/* Checks that --from and --to are of the axis, and that both runs have it. */
static enum bc_exit check_axis(const struct report_command *s)
{
	const char *axis = bc_overview_contents(s->overview).axis;
	bool is_counted = axis != NULL && axis[0] != '\0' && strcmp(axis, "seconds") != 0;
	const char *other = s->other != NULL ? bc_overview_contents(s->other->overview).axis : axis;

	if (axis == NULL || other == NULL || strcmp(axis, other) != 0)
		return bc_print_error(s->console, NULL, "%s", BC_OVERVIEW_AXES_TEXT);
	if (s->args.has_tick && !is_counted)
		return bc_print_usage_error(s->console, "--from and --to need a time, not @TICK");
	if (s->args.has_time && !s->args.has_tick && is_counted)
		return bc_print_usage_error(s->console,
			"--from and --to need @N: this has no times, only ticks or record numbers");
	return BC_EXIT_OK;
}

/* Without records, the picture would be blank. */
static enum bc_exit check_records(const struct report_command *s)
{
	const struct bc_overview_contents c = bc_overview_contents(s->overview);
	char from[BC_RFC3339_BYTES];
	char to[BC_RFC3339_BYTES];
	uint64_t records = 0;

	if (bc_overview_picture(s->overview)->column_count != 0)
		return BC_EXIT_OK;
	for (uint32_t i = 0; i < c.recording_count; i++)
		records += c.recordings[i].records;
	if (records == 0)
		return bc_print_error(s->console, NULL, "no records in these files");
	if (c.axis[0] != '\0')
		return bc_print_error(s->console, NULL,
			strcmp(c.axis, "seconds") != 0
				? "no records in this range: the records are from @%" PRId64
				  " to @%" PRId64
				: "no records in this range: the records are from +%" PRId64
				  "ns to +%" PRId64 "ns",
			c.from_ns, c.to_ns);
	bc_rfc3339_write(from, c.from_ns);
	bc_rfc3339_write(to, c.to_ns);
	return bc_print_error(s->console, NULL,
		"no records in this range: the recordings are from %s to %s (a time without a "
		"zone is UTC)",
		from, to);
}

static bool find_mark(void *context, const struct bc_overview_event *event)
{
	struct report_command *s = context;
	bool is_it = event->kind != BC_EVENT_GAP && event->text_bytes == strlen(s->align) &&
		     memcmp(event->text, s->align, event->text_bytes) == 0;

	s->has_zero = is_it;
	s->zero_ns = event->time_ns;
	return !is_it;
}

/* Finds where a run's time starts. */
static enum bc_exit find_zero(struct report_command *s)
{
	int rc = 0;

	s->zero_ns = bc_overview_contents(s->overview).from_ns;
	s->has_zero = s->align == NULL;
	if (!s->has_zero)
		rc = bc_overview_events(s->overview, INT64_MIN, INT64_MAX, find_mark, s);
	if (rc != 0)
		return print_failure(s, rc);
	if (s->has_zero)
		return BC_EXIT_OK;
	return bc_print_error(s->console, s->input.operands.all[0].path,
		"no mark or trigger with this text: %s; buscap marks lists them", s->align);
}

/* Writes the report to its file, which must not be one of the inputs. */
static enum bc_exit write_report(struct report_command *s)
{
	struct bc_output_file file;
	struct bc_output output;
	int count = s->files.count + (s->other != NULL ? s->other->files.count : 0);
	const char **inputs = calloc((size_t)count + 1, sizeof(*inputs));

	if (inputs == NULL)
		return bc_print_no_memory(s->console);
	count = 0;
	for (const struct report_command *run = s; run != NULL; run = run->other)
		for (int i = 0; i < run->files.count; i++)
			inputs[count++] = run->files.paths[i];
	enum bc_exit code = bc_output_file_open(&file, s->console, s->output, inputs, count);
	free(inputs);
	if (code != BC_EXIT_OK)
		return code;
	bool is_open = bc_output_open_fd(&output, file.fd);
	if (is_open)
		bc_output_text(&output, s->text.bytes, s->text.used);
	else
		code = bc_print_no_memory(s->console);
	return bc_exit_worse(
		code, bc_output_file_close(&file, s->console, is_open ? &output : NULL, is_open));
}

/* Finds the files of a run. */
static enum bc_exit find_files(
	struct report_command *s, const char *const *words, int count, unsigned flags)
{
	enum bc_exit code = bc_operands_read(
		&s->input.operands, &s->files, s->console, words, count, flags);

	if (code == BC_EXIT_OK && bc_operands_have_file(&s->input.operands, "-"))
		code = bc_print_usage_error(s->console, "give files, not a pipe");
	s->input.exit = bc_exit_worse(s->input.exit, code == BC_EXIT_OK ? s->files.exit : code);
	return code;
}

/* Draws a figure that the overview does not have: reads all records, of traces of any format. */
static enum bc_exit draw_curve(struct report_command *s, const char *const *words, int count)
{
	enum bc_exit code = find_files(s, words, count, BC_FILES_SORTED | BC_FILES_CHECKED);
	json_t *stats = NULL;

	if (code != BC_EXIT_OK)
		return code;
	code = bc_stats_read(&stats, s->figure == BC_FIGURE_MISS_RATIO, s->console, &s->args,
		s->from, &s->format, &s->files);
	if (code == BC_EXIT_DAMAGED)
		s->input.exit = code; /* the intact part is drawn */
	if (code == BC_EXIT_OK || code == BC_EXIT_DAMAGED) {
		s->text.max = s->max_bytes;
		int rc = bc_figure_curve(&s->text, stats, s->figure);
		code = rc == 0 ? BC_EXIT_OK
		       : rc == -ENODATA
			       ? bc_print_error(s->console, NULL,
					 "no references to memory: there is nothing to draw")
			       : print_failure(s, rc);
	}
	json_decref(stats);
	return code;
}

/* Makes traces among the operands a segment. */
static enum bc_exit open_traces(struct report_command *s, struct bc_files *files)
{
	enum bc_exit code = bc_picture_open(&s->input.operands, s->from, &s->format);

	if (code == BC_EXIT_DAMAGED) {
		s->input.exit = bc_exit_worse(s->input.exit, code); /* the intact part is drawn */
		code = BC_EXIT_OK;
	}
	if (code == BC_EXIT_OK && s->input.operands.all[0].fd != 0) {
		bc_files_free(files);
		if (bc_operands_list_again(&s->input.operands, files) != 0)
			return bc_print_no_memory(s->console);
	}
	return code;
}

/* Reads what is known about a run. */
static enum bc_exit open_run(struct report_command *s, const char *const *words, int count)
{
	struct bc_segment_io io = bc_segment_input_io(&s->input);
	uint32_t recordings = 0;

	io.by_axis = true;
	enum bc_exit code = find_files(s, words, count, 0);
	if (code == BC_EXIT_OK)
		code = open_traces(s, &s->files);
	int rc = code == BC_EXIT_OK ? bc_overview_open(&s->overview, &io) : 0;
	if (code == BC_EXIT_OK && rc == 0)
		rc = bc_overview_update(s->overview, s->files.paths, s->files.count);
	if (rc != 0)
		code = print_failure(s, rc);
	else if (code == BC_EXIT_OK)
		recordings = bc_overview_contents(s->overview).recording_count;
	if (recordings != 0 && s->input.exit != BC_EXIT_OK)
		s->input.exit = BC_EXIT_DAMAGED; /* the other files are drawn */
	if (s->input.exit == BC_EXIT_FAILED || s->input.exit == BC_EXIT_USAGE)
		return s->input.exit;
	if (code != BC_EXIT_OK)
		return code;
	bc_filter_start(&s->args.filter, bc_overview_contents(s->overview).from_ns);
	return find_zero(s);
}

/* Draws one run, or two. */
static enum bc_exit draw_runs(
	struct report_command *s, struct report_command *other, const char *const *words, int count)
{
	enum bc_exit code = open_run(s, words, s->is_compared ? 1 : count);

	if (code == BC_EXIT_OK && s->is_compared) {
		s->other = other;
		code = open_run(other, words + 1, 1);
	}
	if (code == BC_EXIT_OK)
		code = check_axis(s);
	if (code == BC_EXIT_OK)
		code = make_report(s, &s->text);
	for (const struct report_command *run = s; code == BC_EXIT_OK && run != NULL;
		run = run->other)
		code = check_records(run);
	return code;
}

static void close_run(struct report_command *s)
{
	free(s->text.bytes);
	json_decref(s->locality);
	bc_overview_close(s->overview);
	bc_files_free(&s->files);
	bc_operands_close(&s->input.operands);
}

static enum bc_exit run_report(
	struct report_command *s, struct report_command *other, const char *const *words, int count)
{
	if (!choose_kind(s))
		return BC_EXIT_USAGE;
	if (s->is_compared ? count != 2 : s->align != NULL)
		return bc_print_usage_error(
			s->console, s->is_compared ? "--compare needs two operands, each a run"
						   : "--align needs --compare");
	enum bc_exit code = bc_figure_is_curve(s->figure) ? draw_curve(s, words, count)
							  : draw_runs(s, other, words, count);
	if (code == BC_EXIT_OK)
		code = write_report(s);
	close_run(s);
	close_run(other);
	code = bc_exit_worse(code, s->input.exit);
	return bc_exit_worse(code, other->input.exit);
}

enum bc_exit bc_cmd_report(const struct bc_console *console, int argc, char **argv)
{
	struct report_command s = {.console = console,
		.max_bytes = MAX_BYTES_DEFAULT,
		.format = bc_format_options_default()};
	struct bc_options o;
	enum bc_exit code;
	int letter;

	bc_filter_args_init(&s.args);
	bc_options_start(&o, console, &bc_report_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1 && read_report_option(&s, letter))
		;
	struct report_command other = s;
	code = letter == -1
		       ? run_report(&s, &other, (const char *const *)argv + optind, argc - optind)
	       : s.input.exit != BC_EXIT_OK ? s.input.exit
					    : o.exit;
	bc_name_map_close(s.names);
	return code;
}
