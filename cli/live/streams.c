/* `buscap events` and `buscap tail`: print a stream of the daemon, one JSON object per line, until
 * it ends, the output is closed, or Ctrl-C.
 *
 * run_stream() does what both have in common. It waits for lines, signals and errors of the output
 * at the same time, so that a closed pipe or Ctrl-C ends the command even if no line arrives. Each
 * line is printed as it is (--json) or as text. A line that is not an object,
 * or not one that the stream may contain, ends the command with an error; unknown members and
 * objects are ignored, because the daemon may be newer. */
#include "cli/term/commands.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/io/client.h"
#include "cli/io/filter_args.h"
#include "cli/io/trace.h"
#include "cli/live/response_text.h"
#include "cli/term/console.h"
#include "cli/term/json_path.h"
#include "cli/term/options.h"
#include "cli/term/text.h"
#include "formats/base/json.h"
#include "formats/base/text.h"
#include "formats/bus/record.h"
#include "formats/trace/name_map.h"

struct stream {
	const struct bc_console *console;
	const char *socket; /* NULL: see bc_client_open() */
	const char *path;   /* "/v1/events" */
	const char *head;   /* printed first; NULL: nothing */
	bool is_json;       /* print escaped JSON lines, not print() */
	int silence_ms;     /* fail after this long without a line; -1: never */
	bool hides_status;  /* drop the event of this name */

	/* Prints an object. Returns false if the stream can't contain it, which is an error. */
	bool (*print)(void *context, struct bc_output *output, const json_t *object);
	void *context;

	/* Set by run_stream(). */
	struct bc_output output;
	bool has_bad_line;
	char bad_line[100]; /* its start */
};

static bool on_stream_line(void *context, char *text, size_t bytes)
{
	struct stream *s = context;
	json_t *object = bc_json_parse_object(text, bytes);
	bool is_good = object != NULL;

	if (is_good && !(s->hides_status && bc_json_member_is(object, "event", "status"))) {
		if (s->is_json)
			bc_output_json(&s->output, text, bytes);
		else
			is_good = s->print(s->context, &s->output, object);
	}
	json_decref(object);
	if (!is_good) {
		s->has_bad_line = true;
		bc_safe_text(s->bad_line, sizeof(s->bad_line), text);
	}
	return is_good && !bc_output_failed(&s->output);
}

static enum bc_exit read_stream(struct stream *s, struct bc_client *client)
{
	/* No events for the output: only errors, such as a closed pipe. */
	struct pollfd fds[] = {{.fd = bc_interrupt_open(), .events = POLLIN}, {.fd = s->output.fd}};
	enum bc_exit code = bc_client_stream(client, s->path, on_stream_line, s);
	uint64_t lines = UINT64_MAX;

	while (code == BC_EXIT_OK && !bc_client_is_over(client) && fds[0].revents == 0 &&
		fds[1].revents == 0) {
		if (lines == bc_client_lines(client)) {
			bc_print_error(s->console, bc_client_path(client),
				"no response within %d s; if this persists, see journalctl -u "
				"buscapd",
				s->silence_ms / 1000);
			return BC_EXIT_UNREACHABLE;
		}
		lines = bc_client_lines(client);
		code = bc_client_wait(client, fds, 2, s->silence_ms);
		bc_output_flush(&s->output);
	}
	return code != BC_EXIT_OK ? bc_client_print_error(client, code) : code;
}

/* Prints a stream, and errors on standard error. */
static enum bc_exit run_stream(struct stream *s)
{
	struct bc_client *client;
	enum bc_exit code = bc_client_open(&client, s->console, s->socket);

	if (code == BC_EXIT_OK && !bc_output_open(&s->output, s->console)) {
		bc_client_close(client);
		code = BC_EXIT_FAILED;
	}
	if (code != BC_EXIT_OK)
		return code;
	if (s->head != NULL)
		bc_output_format(&s->output, "%s", s->head);
	bc_output_flush(&s->output);
	code = read_stream(s, client);
	bc_client_close(client);
	code = bc_exit_worse(code, bc_output_close(&s->output, s->console));
	if (!s->has_bad_line)
		return code;
	bc_print_error(s->console, NULL, "unexpected line from the daemon: %s", s->bad_line);
	return bc_exit_worse(code, BC_EXIT_FAILED);
}

/* ---- events */

/* The daemon sends a status every second. */
#define SILENCE_MS 30000

enum { OPTION_STATUS = BC_CLIENT_OPT_MORE };

static const struct bc_usage_option events_options[] = {
	{OPTION_STATUS, "status", NULL, NULL,
		"also print the status, at the beginning and every second"},
	{'j', "json", NULL, NULL, "print JSON, one object per line"},
	BC_CLIENT_OPTION_SOCKET,
	{0},
};

const struct bc_usage bc_events_usage = {
	.name = "events",
	.summary = "print the daemon's events as they happen",
	.text = "Prints the daemon's events as they happen, one per line, until Ctrl-C: "
		"recordings, segments, marks, triggers, gaps, the board and the disk.",
	.options = events_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap events --json",
};

static bool print_event(void *context, struct bc_output *output, const json_t *event)
{
	return bc_event_print(output, event, context);
}

enum bc_exit bc_cmd_events(const struct bc_console *console, int argc, char **argv)
{
	struct bc_event_times times = {.began = {0}};
	struct stream stream = {.console = console,
		.context = &times,
		.path = "/v1/events",
		.silence_ms = SILENCE_MS,
		.hides_status = true,
		.print = print_event};
	struct bc_options o;
	int letter;

	bc_options_start(&o, console, &bc_events_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		switch (letter) {
		case OPTION_STATUS:
			stream.hides_status = false;
			break;
		case 'j':
			stream.is_json = true;
			break;
		case BC_CLIENT_OPT_SOCKET:
			stream.socket = optarg;
			break;
		default:
			return o.exit;
		}
	}
	if (optind < argc)
		return bc_print_usage_error(console, BC_NO_OPERANDS);
	return run_stream(&stream);
}

/* ---- tail */

/* The daemon knows no --records and no time. */
static const struct bc_usage_option tail_options[] = {
	{'n', "limit", "N", "number", "exit after N records"},
	BC_FILTER_OPTIONS_ADDR,
	BC_FILTER_OPTIONS_FIELDS,
	{'t', "time", "FORM", "choice:delta|tick|wall",
		"append a time to each record: delta (default: nothing, a record ends with the "
		"ticks since the previous one), tick (absolute) or wall (time of day)"},
	BC_NAME_OPTIONS,
	{'j', "json", NULL, NULL, "print JSON, one object per line"},
	BC_CLIENT_OPTION_SOCKET,
	{0},
};

const struct bc_usage bc_tail_usage = {
	.name = "tail",
	.summary = "print live records from the bus",
	.text = "Prints live records from the bus, as dump does, until Ctrl-C. It never slows the "
		"capture: if there are too many records, some are skipped. Separate lines that "
		"start with \"# \" report gaps, marks and skipped records.",
	.options = tail_options,
	.more = "The daemon looks up a region: among the names of a PC, which --region help lists, "
		"and those in its configuration.",
	.exits = BC_CLIENT_EXITS,
	.example = "buscap tail -n 20 --type write --addr 300000-3fffff",
};

/* What follows each record: the words of --time. */
enum {
	TAIL_DELTA, /* nothing */
	TAIL_TICK,
	TAIL_WALL,
	TAIL_TIMES,
};

struct tail {
	json_t *query; /* an object: {"limit": "5"} */
	struct bc_filter_args filter;
	unsigned time; /* TAIL_... */
	bool is_json;
	struct bc_name_map *names; /* NULL: no names are shown */
	enum bc_exit exit;         /* if names can't be read */
	bool has_epoch;
	uint64_t epoch;
	const char *socket;
};

/* Adds a condition to the query. Values of a condition that is repeated form a list. */
static bool add_query(
	const struct bc_console *console, struct tail *t, const char *name, const char *value)
{
	const char *before = json_string_value(json_object_get(t->query, name));
	char *list = NULL;

	if (before != NULL && asprintf(&list, "%s,%s", before, value) < 0)
		list = NULL;
	bool ok = (before == NULL || list != NULL) &&
		  json_object_set_new(t->query, name, bc_json_text(list != NULL ? list : value)) ==
			  0;
	free(list);
	if (!ok)
		bc_print_no_memory(console);
	return ok;
}

/* Adds a filter option, which is valid, to the query: the names are the same. */
static bool add_filter(const struct bc_console *console, struct tail *t, int letter)
{
	const struct bc_usage_option *option = tail_options;

	while (option->letter != letter)
		option++;
	return add_query(console, t, option->name, optarg);
}

static bool parse_limit(const struct bc_console *console, struct tail *t)
{
	uint64_t limit;
	char number[24];

	if (!bc_option_count(console, "--limit", 1, UINT64_MAX, &limit))
		return false;
	snprintf(number, sizeof(number), "%" PRIu64, limit);
	json_object_del(t->query, "limit");
	return add_query(console, t, "limit", number);
}

static bool parse_tail_option(const struct bc_console *console, int letter, struct tail *t)
{
	switch (letter) {
	case 'n':
		return parse_limit(console, t);
	case 't':
		return bc_option_choice(console, tail_options, letter, &t->time);
	case 'j':
		t->is_json = true;
		return true;
	case BC_CLIENT_OPT_SOCKET:
		t->socket = optarg;
		return true;
	default:
		if (bc_name_args_has(letter))
			return (t->exit = bc_name_args_add(&t->names, console, letter)) ==
			       BC_EXIT_OK;
		return bc_filter_args_option(&t->filter, console, letter) &&
		       add_filter(console, t, letter);
	}
}

static bool parse_addr(const json_t *record, uint64_t *addr)
{
	const char *text = bc_json_path_text(record, "addr");

	return text != NULL && strncmp(text, "0x", 2) == 0 &&
	       bc_hex_read(text, text + strlen(text), addr) == text + strlen(text);
}

static bool parse_number(const json_t *record, const char *name, uint64_t max, uint64_t *value)
{
	*value = bc_json_path_count(record, name);
	return json_number_value(bc_json_path(record, name)) >= 0 &&
	       json_is_number(bc_json_path(record, name)) && *value <= max;
}

static void print_epoch(struct tail *t, struct bc_output *o, const json_t *record)
{
	uint64_t epoch = bc_json_path_count(record, "epoch");

	if (t->has_epoch && epoch != t->epoch)
		bc_output_format(o, "# epoch %" PRIu64 "\n", epoch);
	t->has_epoch = true;
	t->epoch = epoch;
}

static bool is_port(const char *type)
{
	return strcmp(type, "IOREAD") == 0 || strcmp(type, "IOWRITE") == 0;
}

/* Prints the same line as dump. */
static bool print_record(struct tail *t, struct bc_output *o, const json_t *record)
{
	const char *type = bc_json_path_text(record, "type");
	char safe[64];
	uint64_t addr;
	uint64_t size;
	uint64_t attr;
	uint64_t proc;
	uint64_t time = BC_TIME_NONE;

	if (!parse_addr(record, &addr) || type == NULL ||
		!parse_number(record, "size", UINT8_MAX, &size) ||
		!parse_number(record, "attr", UINT8_MAX, &attr) ||
		!parse_number(record, "proc", UINT8_MAX, &proc))
		return false;
	if (!json_is_null(bc_json_path(record, "delta")) &&
		!parse_number(record, "delta", BC_TIME_NONE, &time))
		return false;
	print_epoch(t, o, record);
	bc_output_format(o,
		"%08" PRIx64 "\t%s\t%2" PRIu64 "\t%02" PRIx64 "\t%" PRIu64 "\t%08" PRIx64, addr,
		bc_safe_text(safe, sizeof(safe), type), size, attr, proc, time);
	if (t->time == TAIL_TICK)
		bc_output_format(o, "\t%" PRIu64, bc_json_path_count(record, "tick"));
	if (t->time == TAIL_WALL) {
		const char *wall = bc_json_path_text(record, "time");
		bc_output_text(o, "\t", 1);
		bc_output_safe(o, wall != NULL ? wall : "-");
	}
	bc_name_print(o, t->names, is_port(type), addr, "\t", "");
	bc_output_text(o, "\n", 1);
	return true;
}

static void print_skipped(struct bc_output *o, const json_t *skipped)
{
	uint64_t records = bc_json_path_count(skipped, "records");
	uint64_t events = bc_json_path_count(skipped, "events");

	bc_output_format(o, "# skipped: ");
	if (records != 0)
		bc_output_format(o, "%s record%s", BC_GROUPED(records), bc_plural(records));
	if (events != 0)
		bc_output_format(o, "%s%" PRIu64 " gap%s or mark%s", records != 0 ? ", " : "",
			events, bc_plural(events), bc_plural(events));
	bc_output_format(o, " (too fast to show)\n");
}

/* Ignores unknown objects: the daemon may be newer. */
static bool print_tail(void *context, struct bc_output *o, const json_t *object)
{
	const json_t *gap = bc_json_path(object, "gap");
	const json_t *skipped = bc_json_path(object, "skipped");

	if (bc_json_path(object, "addr") != NULL)
		return print_record(context, o, object);
	if (skipped != NULL)
		print_skipped(o, skipped);
	if (gap != NULL) {
		bc_output_format(o, "# gap: ");
		bc_gap_print(o, gap);
		bc_output_text(o, "\n", 1);
	}
	if (bc_json_path(object, "mark") != NULL)
		bc_template_print(o, "# mark[: {mark.text}]\n", object);
	if (bc_json_path(object, "trigger") != NULL)
		bc_template_print(o, "# trigger[: {trigger.text}]\n", object);
	return true;
}

/* Prints an object as JSON; records get their names. */
static bool print_named(void *context, struct bc_output *o, const json_t *object)
{
	const struct tail *t = context;
	json_t *copy = json_copy((json_t *)object);
	const char *type = bc_json_path_text(object, "type");
	uint64_t addr;

	if (bc_json_path(object, "addr") != NULL &&
		(type == NULL || !parse_addr(object, &addr) ||
			json_object_set_new(copy, "name",
				bc_name_map_json(t->names, is_port(type), addr)) != 0)) {
		json_decref(copy);
		return false;
	}
	bc_output_json_value(o, copy);
	return true;
}

/* Writes the line with the names of the columns, for a terminal. Returns `out`, or NULL. */
static const char *print_head(
	const struct tail *t, const struct bc_console *console, char out[BC_RECORD_TEXT_MAX])
{
	static const char *const times[TAIL_TIMES] = {"", "\ttick", "\ttime"};

	if (t->is_json || !isatty(console->out))
		return NULL;
	snprintf(out, BC_RECORD_TEXT_MAX, BC_RECORD_COLUMNS "%s%s\n", times[t->time],
		t->names != NULL ? "\tname" : "");
	return out;
}

/* If the command is finished, sets *code and returns false. */
static bool parse_tail(
	const struct bc_console *console, int argc, char **argv, struct tail *t, enum bc_exit *code)
{
	struct bc_options o;
	int letter;

	bc_options_start(&o, console, &bc_tail_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		if (parse_tail_option(console, letter, t))
			continue;
		*code = t->exit != BC_EXIT_OK ? t->exit : o.exit;
		return false;
	}
	if (optind < argc) {
		*code = bc_print_usage_error(console,
			BC_NO_OPERANDS ", because it prints live records; for files use dump");
		return false;
	}
	if (t->filter.region != NULL && strcmp(t->filter.region, "help") == 0)
		return bc_filter_args_finish(&t->filter, console, NULL, code);
	return true;
}

enum bc_exit bc_cmd_tail(const struct bc_console *console, int argc, char **argv)
{
	struct tail t = {.query = json_object()};
	char head[BC_RECORD_TEXT_MAX];
	char *path = NULL;
	enum bc_exit code = BC_EXIT_OK;

	bc_filter_args_init(&t.filter);
	if (t.query == NULL) {
		code = bc_print_no_memory(console);
	} else if (parse_tail(console, argc, argv, &t, &code)) {
		path = bc_client_query("/v1/records", t.query);
		if (path == NULL)
			code = bc_print_no_memory(console);
	}
	if (path != NULL) {
		struct stream stream = {.console = console,
			.socket = t.socket,
			.path = path,
			.head = print_head(&t, console, head),
			.is_json = t.is_json && t.names == NULL,
			.silence_ms = -1,
			.print = t.is_json ? print_named : print_tail,
			.context = &t};
		code = run_stream(&stream);
	}
	bc_name_map_close(t.names);
	json_decref(t.query);
	free(path);
	return code;
}
