#include "cli/term/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io/client.h"
#include "cli/io/filter_args.h"
#include "cli/io/record_text.h"
#include "cli/live/live.h"
#include "cli/term/json_path.h"
#include "cli/term/options.h"
#include "cli/term/text.h"
#include "formats/base/json.h"
#include "formats/base/text.h"
#include "formats/bus/record.h"
#include "formats/trace/name_map.h"

enum { OPTION_ADDR = BC_CLIENT_OPT_MORE, OPTION_TYPE, OPTION_PROC, OPTION_PORT, OPTION_REGION };

static const struct bc_usage_option options[] = {
	{'n', "records", "N", "number", "exit after N records"},
	{'t', "time", "FORM", "choice:delta|tick",
		"append to each line: delta (nothing: it ends with the ticks since the one before) "
		"or tick (absolute)"},
	{OPTION_ADDR, "addr", "RANGE", "range", "only these hexadecimal addresses: 1000-1fff"},
	{OPTION_TYPE, "type", "TYPES", "list:read|write|fetch",
		"only these types: read, write, fetch, names that dump prints, or 0xf2; separated "
		"by commas"},
	{OPTION_PROC, "proc", "PROCS", "range", "only these processors: 0,2-3"},
	{OPTION_PORT, "port", "RANGE", "range", "only writes to these I/O ports: e0-e3"},
	{OPTION_REGION, "region", "NAME", "text",
		"only memory and ports with this name, which the daemon knows: vga, com1"},
	BC_NAME_OPTIONS,
	{BC_CLIENT_OPT_JSON, "json", NULL, NULL, "print JSON, one object per line"},
	BC_CLIENT_OPTION_SOCKET,
	{0},
};

const struct bc_usage bc_tail_usage = {
	.name = "tail",
	.summary = "print live records from the bus",
	.text = "Prints live records from the bus, as dump does, until Ctrl-C. It never slows the "
		"capture: if there are too many records, some are skipped. Separate lines that "
		"start with \"# \" report gaps, marks and skipped records.",
	.options = options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap tail -n 20 --type write --addr 300000-3fffff",
};

struct tail {
	json_t *query; /* an object: {"limit": "5"} */
	uint64_t limit;
	uint64_t shown;
	bool is_absolute;
	bool is_json;
	struct bc_name_map *names; /* NULL: no names are shown */
	enum bc_exit exit;         /* if names can't be read */
	bool has_epoch;
	uint64_t epoch;
	const char *socket;
};

/* Adds a member to the query. `option` is the option that gives it. */
static bool add_query(const struct bc_console *console, struct tail *t, const char *option,
	const char *name, const char *value)
{
	if (json_object_get(t->query, name) != NULL) {
		bc_print_error(console, NULL, "%s: given twice", option);
		return false;
	}
	if (json_object_set_new(t->query, name, bc_json_text(value)) == 0)
		return true;
	bc_print_no_memory(console);
	return false;
}

static bool parse_limit(const struct bc_console *console, struct tail *t)
{
	char number[24];

	if (!bc_option_count(console, "--records", &t->limit))
		return false;
	if (t->limit == 0) {
		bc_print_error(console, NULL, "--records 0: must be above 0");
		return false;
	}
	snprintf(number, sizeof(number), "%" PRIu64, t->limit);
	return add_query(console, t, "--records", "limit", number);
}

static bool parse_option(const struct bc_console *console, int letter, struct tail *t)
{
	switch (letter) {
	case 'n':
		return parse_limit(console, t);
	case 't':
		t->is_absolute = strcmp(optarg, "tick") == 0;
		if (t->is_absolute || strcmp(optarg, "delta") == 0)
			return true;
		bc_print_error(console, NULL, "--time %s: delta or tick", optarg);
		return false;
	case BC_CLIENT_OPT_JSON:
		t->is_json = true;
		return true;
	case OPTION_ADDR:
		return add_query(console, t, "--addr", "addr", optarg);
	case OPTION_TYPE:
		return add_query(console, t, "--type", "type", optarg);
	case OPTION_PROC:
		return add_query(console, t, "--proc", "proc", optarg);
	case OPTION_PORT:
		return add_query(console, t, "--port", "port", optarg);
	case OPTION_REGION:
		return add_query(console, t, "--region", "region", optarg);
	case BC_NAME_OPT_MAP:
	case BC_NAME_OPT_SYMBOLS:
		t->exit = bc_name_args_add(&t->names, console, letter);
		return t->exit == BC_EXIT_OK;
	case BC_CLIENT_OPT_SOCKET:
		t->socket = optarg;
		return true;
	default:
		return false;
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
	if (!json_is_null(bc_json_path(record, "time")) &&
		!parse_number(record, "time", BC_TIME_NONE, &time))
		return false;
	print_epoch(t, o, record);
	bc_output_format(o,
		"%08" PRIx64 "\t%s\t%2" PRIu64 "\t%02" PRIx64 "\t%" PRIu64 "\t%08" PRIx64, addr,
		bc_safe_text(safe, sizeof(safe), type), size, attr, proc, time);
	if (t->is_absolute)
		bc_output_format(o, "\t%" PRIu64, bc_json_path_count(record, "tick"));
	bc_name_print(o, t->names, is_port(type), addr, "\t", "");
	bc_output_text(o, "\n", 1);
	return true;
}

static void print_gap(struct bc_output *o, const json_t *gap)
{
	uint64_t lost = bc_json_path_count(gap, "lost");
	bool is_exact = json_is_true(bc_json_path(gap, "exact"));
	char text[BC_LOST_TEXT_MAX];

	bc_output_format(o, "# gap: %s (", bc_lost_text(text, lost, is_exact));
	bc_output_safe(o, bc_json_path_text(gap, "cause"));
	bc_output_format(o, ")\n");
}

static void print_note(struct bc_output *o, const char *word, const char *text)
{
	bc_output_format(o, "# %s%s", word, text != NULL ? ": " : "");
	bc_output_safe(o, text);
	bc_output_text(o, "\n", 1);
}

static void print_skipped(struct bc_output *o, const json_t *skipped)
{
	uint64_t records = bc_json_path_count(skipped, "records");
	uint64_t events = bc_json_path_count(skipped, "events");

	bc_output_format(o, "# skipped: ");
	if (records != 0)
		bc_output_format(o, "%" PRIu64 " record%s", records, bc_plural(records));
	if (events != 0)
		bc_output_format(o, "%s%" PRIu64 " gap%s or mark%s", records != 0 ? ", " : "",
			events, bc_plural(events), bc_plural(events));
	bc_output_format(o, " (too fast to show)\n");
}

/* Ignores unknown objects: the daemon may be newer. */
static bool print_object(void *context, struct bc_output *o, const json_t *object)
{
	static const char *const notes[] = {"mark", "trigger"};
	const json_t *gap = bc_json_path(object, "gap");
	const json_t *skipped = bc_json_path(object, "skipped");

	if (bc_json_path(object, "addr") != NULL)
		return print_record(context, o, object);
	if (skipped != NULL)
		print_skipped(o, skipped);
	if (gap != NULL)
		print_gap(o, gap);
	for (unsigned i = 0; i < 2; i++) {
		const json_t *note = bc_json_path(object, notes[i]);
		if (note != NULL)
			print_note(o, notes[i], bc_json_path_text(note, "text"));
	}
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
	return bc_output_json_value(o, copy);
}

/* A filter that shows everything and counts the records. */
static bool count_records(void *context, const json_t *object)
{
	struct tail *t = context;

	t->shown += bc_json_path(object, "addr") != NULL;
	return true;
}

static bool is_limit_reached(void *context)
{
	const struct tail *t = context;

	return t->limit != 0 && t->shown >= t->limit;
}

/* If the command is finished, sets *code and returns false. */
static bool parse_options(
	const struct bc_console *console, int argc, char **argv, struct tail *t, enum bc_exit *code)
{
	struct bc_options o;
	int letter;

	bc_options_start(&o, console, &bc_tail_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		if (parse_option(console, letter, t))
			continue;
		*code = t->exit != BC_EXIT_OK ? t->exit : o.exit;
		return false;
	}
	if (optind < argc) {
		*code = bc_print_usage_error(
			console, "tail takes no operands; to print files, use dump");
		return false;
	}
	return true;
}

int bc_cmd_tail(const struct bc_console *console, int argc, char **argv)
{
	struct tail t = {.query = json_object()};
	char *path = NULL;
	enum bc_exit code = BC_EXIT_OK;

	if (t.query == NULL) {
		code = bc_print_no_memory(console);
	} else if (parse_options(console, argc, argv, &t, &code)) {
		path = bc_client_query("/v1/records", t.query);
		if (path == NULL)
			code = bc_print_no_memory(console);
	}
	if (path != NULL) {
		const struct bc_live live = {.console = console,
			.socket = t.socket,
			.path = path,
			.is_json = t.is_json && t.names == NULL,
			.silence_ms = -1,
			.print = t.is_json ? print_named : print_object,
			.filter = count_records,
			.is_done = is_limit_reached,
			.context = &t};
		code = bc_live_run(&live);
	}
	bc_name_map_close(t.names);
	json_decref(t.query);
	free(path);
	return code;
}
