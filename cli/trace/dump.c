/* buscap dump: prints a trace as text. Like cut, it passes the batches of a trace to a selection
 * (cli/io/selection.h), which leaves the deltas as they are. What that keeps is printed:
 *
 *     runs of records                 like BYU's b2a, through a cache of texts (struct record_text)
 *     entries of a bus format         samples, records, and '#' lines for the events
 *     entries of any other format     lines, by the format's own printer; if the user describes
 *                                     it, by that of csv
 *     with --json                     entries, by the printer of ndjson
 *
 * A run is printed as a whole unless its records get a time or a name (is_by_record). */
#include "cli/term/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/io/no_match.h"
#include "cli/io/operands.h"
#include "cli/io/selection.h"
#include "cli/io/trace.h"
#include "cli/term/options.h"
#include "cli/term/output.h"
#include "formats/base/fast_text.h"
#include "formats/base/text.h"
#include "formats/bus/record.h"
#include "formats/bus/sample.h"
#include "formats/bus/tick_time.h"
#include "formats/codec/format.h"
#include "formats/codec/reader.h"
#include "formats/trace/entry.h"
#include "formats/trace/parser.h"
#include "formats/trace/printer.h"

enum { OPTION_B2A = 1000 };

static const struct bc_usage_option options[] = {
	{'n', "limit", "N", "number", "only the first N of these records, or lines of text"},
	BC_FILTER_OPTIONS,
	{'t', "time", "FORM", "choice:delta|tick|relative|wall",
		"append a time to each record: delta (default: nothing, a record ends with the "
		"ticks since the previous one), tick (absolute), relative (seconds since the "
		"first) or wall (time of day)"},
	BC_NAME_OPTIONS,
	{'j', "json", NULL, NULL, "print one JSON object per line, as convert -O ndjson does"},
	{OPTION_B2A, "b2a", NULL, NULL,
		"exactly like BYU's b2a: times in decimal, no lines that start with '#'"},
	{'p', "plain", NULL, NULL,
		"print only records: no lines that start with '#' (gaps, marks, triggers)"},
	{'I', "input-format", "FMT", "format-read",
		"input format and options, such as laplace:endian=big (default: detected)"},
	{0},
};

const struct bc_usage bc_dump_usage = {
	.name = "dump",
	.operands = "[FILE|DIR|ID]...",
	.kind = "recording",
	.summary = "print a trace as text",
	.text = "Prints traces as text: the records of segments (.byu.lz4) and BYU files in "
		"columns, bus samples (raw6, bcp1) like the printer in their specification, "
		"Laplace records in their text form, text formats unchanged. Segments are sorted. "
		"\"-\", or no file, is standard input.",
	.options = options,
	.more = "A range is A-B, A-, -B or A.",
	.exits = "0 ok, 1 failed, 2 wrong usage, 3 damaged or torn: the intact parts were printed.",
	.example = "buscap dump --addr b8000-bffff --time wall *.byu.lz4",
};

/* ---- Printing many records at a time: the same text as bc_record_print(), several times as fast,
 * or the text of the program b2a that BYU published with its traces. b2a prints "%08lx
 * NAME\t\t%2d\t%02x\t%1d\t%ld", with one tab after names of seven letters and more, STOPCLKAK for
 * STOPCLKACK, and no name for unknown types; 0xffffffff ticks are -1, as on 32-bit hosts.
 *
 * A trace has few combinations of type, size, attr and proc. The text of each, which is printed
 * between address and time, is formatted once and cached. Zero-initialised: an empty cache. */

#define RECORD_TEXTS 256u

struct record_text {
	struct {
		uint32_t meta; /* bytes 4..7 of a record */
		uint8_t bytes; /* 0: slot unused */
		char text[27];
	} kept[RECORD_TEXTS];
	bool is_b2a;
};

_Static_assert(8 + 27 + 11 + 1 <= BC_RECORD_TEXT_MAX, "a line with the longest cached text");

/* The text between address and time of bc_record_print(). */
static int print_middle(char *out, const struct bc_record *record)
{
	char line[BC_RECORD_TEXT_MAX];
	size_t n = bc_record_print(line, record) - 8 - 8 - 1; /* nor the newline */

	memcpy(out, line + 8, n);
	return (int)n;
}

static int print_b2a_middle(char *out, const struct bc_record *record)
{
	const char *name = bc_reqtype_name(record->reqtype);
	const char *tabs = name == NULL ? "" : strlen(name) < 7 ? "\t\t" : "\t";

	if (record->reqtype == BC_REQ_STOPCLKACK)
		name = "STOPCLKAK";
	return sprintf(out, " %s%s%2d\t%02x\t%d\t", name != NULL ? name : "", tabs, record->size,
		record->attr, record->proc);
}

static void cache_text(struct record_text *text, size_t slot, const uint8_t *in)
{
	struct bc_record record = bc_record_load(in);
	char *out = text->kept[slot].text;
	int n = text->is_b2a ? print_b2a_middle(out, &record) : print_middle(out, &record);

	text->kept[slot].meta = bc_le32(in + 4);
	text->kept[slot].bytes = (uint8_t)n;
}

static inline size_t slot_of(struct record_text *text, const uint8_t *in)
{
	uint32_t meta = bc_le32(in + 4);
	size_t slot = meta * 0x9E3779B1u >> 24;

	if (text->kept[slot].meta != meta || text->kept[slot].bytes == 0)
		cache_text(text, slot, in);
	return slot;
}

/* Each caller passes a constant `is_b2a`, so that each form has its own loop. */
static inline size_t print_cached(
	struct record_text *text, char *out, const uint8_t *records, size_t n, bool is_b2a)
{
	const uint8_t *end = records + n * BC_RECORD_BYTES;
	char *p = out;

	for (const uint8_t *in = records; in < end; in += BC_RECORD_BYTES) {
		size_t slot = slot_of(text, in);
		uint32_t time = bc_le32(in + 8);
		p = bc_write_hex32(p, bc_le32(in));
		/* A copy of constant length is faster; the time overwrites the excess. */
		memcpy(p, text->kept[slot].text, sizeof(text->kept[slot].text));
		p += text->kept[slot].bytes;
		p = is_b2a ? bc_write_signed(p, (int32_t)time) : bc_write_hex32(p, time);
		*p++ = '\n';
	}
	return (size_t)(p - out);
}

/* Prints n records to `out`, of n * BC_RECORD_TEXT_MAX bytes. Returns how many were written. */
static size_t print_texts(struct record_text *text, char *out, const uint8_t *records, size_t n)
{
	return text->is_b2a ? print_cached(text, out, records, n, true)
			    : print_cached(text, out, records, n, false);
}

/* ---- A dump. */

/* What follows each record: the words of --time. */
enum {
	DUMP_DELTA, /* nothing: a record ends with its time */
	DUMP_TICK,
	DUMP_RELATIVE, /* seconds since the first record */
	DUMP_WALL,     /* the time of day */
	DUMP_TIMES,
};

/* A dump: its options and its progress. */
struct dump {
	const struct bc_console *console;
	struct bc_output output;
	enum bc_exit exit;
	enum bc_format wanted; /* format given by the user; BC_FORMAT_UNKNOWN: detect it */
	struct bc_format_options format; /* options of the input format */
	struct bc_trace trace;
	struct bc_selection selection;
	uint64_t left;     /* records or lines to print at most */
	bool is_part;      /* not everything */
	bool is_by_record; /* something is added to each record */
	bool is_plain;     /* only records */
	bool is_json;
	bool is_terminal;          /* names of the columns are printed */
	unsigned time;             /* DUMP_... */
	struct bc_name_map *names; /* NULL: no names are shown */
	struct record_text text;
	const struct bc_printer *printer; /* of lines or JSON; NULL: neither */
	void *printer_state;
	const char *columns;       /* the names of the columns; NULL: not printed */
	const char *shown_columns; /* printed last */
	bool has_epoch;            /* `epoch` is set: of the last entry printed */
	uint32_t epoch;
};

static void make_worse(struct dump *dump, enum bc_exit code)
{
	dump->exit = bc_exit_worse(dump->exit, code);
}

/* True after --limit records, or if the output has failed. */
static bool is_over(const struct dump *dump)
{
	return dump->left == 0 || bc_output_failed(&dump->output);
}

/* Returns false if printing failed, after an error message or silently for a closed pipe. */
static bool print_by_printer(struct dump *dump, const struct bc_entry *entries, size_t count)
{
	uint64_t trait_losses[BC_TRAIT_BITS] = {0};

	while (count != 0 && !bc_output_failed(&dump->output)) {
		struct bc_print print = {.entries = entries,
			.count = count,
			.moment = &dump->trace.moment,
			.out = bc_output_reserve(&dump->output, BC_PRINT_MAX),
			.capacity = BC_PRINT_MAX,
			.trait_losses = trait_losses};
		int rc = dump->printer->print(dump->printer_state, &print);
		dump->output.used += print.used;
		if (rc != 0) {
			bc_print_error(dump->console, dump->trace.file.name, "%s", print.err);
			make_worse(dump, BC_EXIT_FAILED);
			return false;
		}
		entries = print.entries;
		count = print.count;
	}
	return !bc_output_failed(&dump->output);
}

/* Adds the name of an address to the object that was printed last. */
static void append_json_name(struct dump *dump, const struct bc_entry *entry)
{
	bool is_port = bc_is_port_access(entry->type);

	dump->output.used -= 2; /* over the brace and the newline */
	bc_output_format(&dump->output, ",\"name\":");
	bc_output_json_value(&dump->output, bc_name_map_json(dump->names, is_port, entry->addr));
	dump->output.used--; /* over the newline */
	bc_output_format(&dump->output, "}\n");
}

#define SAMPLE_COLUMNS "# addr   be cycle"

/* Prints the names of the columns before the first line on a terminal. */
static void print_columns(struct dump *dump)
{
	static const char *const times[DUMP_TIMES] = {"", "tick", "seconds", "time"};
	const char *columns = dump->columns;

	if (columns == NULL || columns == dump->shown_columns)
		return;
	const char *between = strcmp(columns, SAMPLE_COLUMNS) == 0 ? " " : "\t";
	bc_output_format(&dump->output, "%s%s%s%s%s\n", columns,
		dump->time != DUMP_DELTA ? between : "", times[dump->time],
		dump->names != NULL ? between : "", dump->names != NULL ? "name" : "");
	dump->shown_columns = columns;
}

static void print_event(struct dump *dump, const struct bc_entry *entry)
{
	unsigned kind = entry->note.event.kind;
	struct bc_text text = entry->note.text;
	char gap[BC_GAP_TEXT_MAX];

	/* Kind 0 is a new epoch, which print_epoch() announces: not that of a bcp1 as JSON. */
	if (dump->is_plain ||
		(kind == 0 && (!dump->is_json || dump->trace.format == BC_FORMAT_SEGMENT)))
		return;
	if (dump->printer != NULL) {
		print_by_printer(dump, entry, 1);
		return;
	}
	print_columns(dump);
	if (kind == BC_EVENT_GAP) {
		bc_output_format(
			&dump->output, "# gap: %s\n", bc_gap_text(gap, &entry->note.event));
	} else if (kind == BC_EVENT_MARK || kind == BC_EVENT_TRIGGER || kind == BC_EVENT_NOTE) {
		bc_output_format(&dump->output, "# %s%s", bc_event_kind_name(kind),
			text.bytes != 0 ? ": " : "");
		bc_output_safe_bytes(&dump->output, text.at, text.bytes);
		bc_output_text(&dump->output, "\n", 1);
	}
}

/* Announces an epoch that is not the one before. Its first record has this number and tick. */
static void print_epoch(struct dump *dump, uint32_t epoch, uint64_t number, uint64_t tick)
{
	struct bc_entry entry;
	bool is_new = dump->has_epoch && dump->epoch != epoch;

	dump->has_epoch = true;
	dump->epoch = epoch;
	if (!is_new || dump->is_plain)
		return;
	print_columns(dump);
	bc_entry_of_event(&entry, &(struct bc_event){0}, "", number, tick, epoch);
	if (dump->is_json)
		print_by_printer(dump, &entry, 1);
	else
		bc_output_format(&dump->output, "# epoch %" PRIu32 "\n", epoch);
}

/* ---- Records, and what is appended to them. */

/* The text of this many records fits the output buffer. */
#define RUN_RECORDS (BC_OUTPUT_BYTES / BC_RECORD_TEXT_MAX)

#define NS_PER_S 1000000000u

static void print_run(struct dump *dump, const uint8_t *records, size_t n)
{
	n = n < dump->left ? n : (size_t)dump->left;
	dump->left -= n;
	if (n != 0)
		print_columns(dump);
	while (n != 0 && !bc_output_failed(&dump->output)) {
		size_t run = n < RUN_RECORDS ? n : RUN_RECORDS;
		char *out = bc_output_reserve(&dump->output, run * BC_RECORD_TEXT_MAX);
		dump->output.used += print_texts(&dump->text, out, records, run);
		records += run * BC_RECORD_BYTES;
		n -= run;
	}
}

/* Appends the time that was asked for to the line that was printed last: nothing, the tick, the
 * seconds since the first record, or the time of day. */
static void append_time(struct dump *dump, char before, uint64_t tick)
{
	const struct bc_moment *m = &dump->trace.moment;
	char wall[BC_RFC3339_BYTES];

	if (dump->time == DUMP_DELTA)
		return;
	dump->output.used--; /* over the newline */
	if (dump->time == DUMP_TICK) {
		bc_output_format(&dump->output, "%c%" PRIu64 "\n", before, tick);
		return;
	}
	int64_t ns;
	bool is_known = bc_tick_time(&ns, m->clock, tick);
	__int128 passed = (__int128)ns - dump->selection.args.start_ns;
	uint64_t since = (uint64_t)(passed < 0 ? -passed : passed);
	if (!is_known) {
		bc_output_text(&dump->output, "\t-\n", 3);
	} else if (dump->time == DUMP_WALL) {
		bc_rfc3339_write(wall, ns);
		bc_output_format(&dump->output, "\t%s\n", wall);
	} else {
		bc_output_format(&dump->output, "\t%s%" PRIu64 ".%09" PRIu64 "\n",
			passed < 0 ? "-" : "", since / NS_PER_S, since % NS_PER_S);
	}
}

/* Appends the name of an address to the line that was printed last, if it has one. */
static void append_name(struct dump *dump, char before, const struct bc_entry *entry)
{
	const char separator[] = {before, '\0'};

	if (dump->names == NULL)
		return;
	dump->output.used--; /* over the newline */
	bc_name_print(&dump->output, dump->names, bc_is_port_access(entry->type), entry->addr,
		separator, "");
	bc_output_text(&dump->output, "\n", 1);
}

/* Prints an entry as a record. Addresses and times of the dialects may have more than 32 bits. */
static void print_record(struct dump *dump, const struct bc_entry *entry)
{
	const struct bc_record narrow = {.addr = (uint32_t)entry->addr,
		.reqtype = (uint8_t)entry->type,
		.size = (uint8_t)entry->size,
		.attr = entry->attr,
		.proc = (uint8_t)entry->proc,
		.time = (uint32_t)entry->delta};
	uint8_t record[BC_RECORD_BYTES];

	bc_record_store(record, &narrow);
	if (entry->addr == narrow.addr && entry->delta == narrow.time) {
		print_run(dump, record, 1);
		return;
	}
	size_t slot = slot_of(&dump->text, record);
	dump->left--;
	print_columns(dump);
	bc_output_format(&dump->output,
		dump->text.is_b2a ? "%08" PRIx64 "%.*s%" PRId64 "\n"
				  : "%08" PRIx64 "%.*s%08" PRIx64 "\n",
		entry->addr, (int)dump->text.kept[slot].bytes, dump->text.kept[slot].text,
		entry->delta);
}

static void print_bus_entry(struct dump *dump, const struct bc_entry *entry)
{
	bool is_sample = (entry->traits & BC_TRAIT_SAMPLE) != 0;
	char before = is_sample ? ' ' : '\t';

	if (is_sample) {
		print_columns(dump);
		char *out = bc_output_reserve(&dump->output, BC_SAMPLE_TEXT_MAX);
		dump->left--;
		dump->output.used += bc_sample_print(out, entry->sample);
	} else {
		print_record(dump, entry);
	}
	append_time(dump, before, entry->tick);
	append_name(dump, before, entry);
}

/* Prints the entries of a line, or their objects. */
static bool print_line(struct dump *dump, const struct bc_entry *entries, size_t n)
{
	bool has_names = dump->is_json && dump->names != NULL;

	dump->left--;
	for (size_t i = 0, step = has_names ? 1 : n; i < n; i += step) {
		if (!print_by_printer(dump, &entries[i], step))
			return false;
		if (has_names && entries[i].kind == BC_ENTRY_REFERENCE)
			append_json_name(dump, &entries[i]);
	}
	return true;
}

/* ---- What the selection keeps. */

static bool dump_entries(void *context, const struct bc_entry *entries, size_t count)
{
	struct dump *dump = context;
	enum bc_format format = dump->trace.format;

	for (size_t i = 0, end = 0; i < count && !is_over(dump); i = end) {
		const struct bc_entry *entry = &entries[i];
		bool is_event = entry->kind == BC_ENTRY_EVENT;
		do
			end++;
		while (end < count && entries[end].is_continued);
		if (format == BC_FORMAT_BCP1 && !dump->is_json)
			print_epoch(dump, entry->epoch, entry->number, entry->tick);
		if (is_event)
			print_event(dump, entry);
		else if (dump->printer == NULL)
			print_bus_entry(dump, entry);
		else if (!print_line(dump, entry, end - i))
			return false;
	}
	return !is_over(dump);
}

#define ENTRIES 64u

static bool dump_run(void *context, struct bc_record_run run)
{
	struct dump *dump = context;
	struct bc_entry entries[ENTRIES];

	if (!dump->is_by_record)
		print_run(dump, run.records, run.count);
	while (dump->is_by_record && run.count != 0)
		if (!dump_entries(dump, entries, bc_record_run_entries(&run, entries, ENTRIES)))
			return false;
	return !is_over(dump);
}

/* ---- Files. */

/* Checks that the files' format has what the options need. */
static bool check_options(struct dump *dump)
{
	enum bc_format format = dump->trace.format;
	bc_traits traits = bc_format_info(format)->traits;
	bool is_bus = bc_format_is_bus(format);
	const char *name = dump->trace.file.name;
	const char *why = NULL;

	if (format == BC_FORMAT_SEGMENT)
		return true;
	if (dump->time > DUMP_TICK)
		why = "--time relative and --time wall need segments";
	else if (dump->time == DUMP_TICK && (!is_bus || (traits & BC_TRAIT_TIME) == 0))
		why = "--time tick works only with segments, BYU and bcp1";
	else if (dump->names != NULL && !is_bus)
		why = "--map and --symbols work only with segments, BYU, bcp1 and raw6";
	if (dump->text.is_b2a && bc_dialect_bytes(format) == 0)
		bc_print_error(dump->console, name, "%s has no BYU records to print with --b2a",
			bc_format_name(format));
	else if (why != NULL)
		bc_print_error(dump->console, name, "%s", why);
	else if (bc_filter_args_check(&dump->selection.args, dump->console, &dump->trace))
		return true;
	return false;
}

/* Gets ready for a file that has been opened: its printer and columns. */
static enum bc_exit accept_file(void *context)
{
	struct dump *dump = context;
	enum bc_format format = dump->trace.format;
	bool is_bus = format == BC_FORMAT_SEGMENT || bc_format_is_bus(format);
	bool is_sample = format == BC_FORMAT_RAW6 || format == BC_FORMAT_BCP1;
	struct bc_format_options printing = dump->format;

	if (!check_options(dump))
		return BC_EXIT_USAGE;
	printing.source_traits = bc_trace_traits(&dump->trace);
	printing.source_has_wall = dump->trace.has_wall;
	if (dump->is_json || format == BC_FORMAT_BCP1)
		dump->has_epoch = false;
	if (dump->is_terminal)
		dump->columns = !is_bus ? NULL : is_sample ? SAMPLE_COLUMNS : BC_RECORD_COLUMNS;
	free(dump->printer_state);
	dump->printer_state = NULL;
	dump->printer = NULL;
	if (dump->is_json)
		format = BC_FORMAT_NDJSON;
	else if (is_bus)
		return BC_EXIT_OK;
	else if (format == BC_FORMAT_LAPLACE)
		format = BC_FORMAT_LAPLACE_TEXT;
	else if (bc_format_info(format)->parser->check != NULL)
		format = BC_FORMAT_CSV;
	dump->printer = bc_format_info(format)->printer;
	dump->printer_state = bc_printer_start(dump->printer, &printing);
	return dump->printer_state != NULL ? BC_EXIT_OK : bc_print_no_memory(dump->console);
}

static void dump_trace(struct dump *dump)
{
	struct bc_trace *trace = &dump->trace;
	struct bc_batch batch;
	bool is_more = true;

	while (is_more && bc_trace_next(trace, &batch)) {
		const struct bc_chunk_info *info = batch.chunk_info;
		if (info != NULL && (batch.count != 0 || batch.run.count != 0))
			print_epoch(dump, info->epoch, info->first_record, info->first_tick);
		is_more = dump->is_part ? bc_selection_add(&dump->selection, &batch)
					: dump_entries(dump, batch.entries, batch.count) &&
						  dump_run(dump, batch.run);
		if (trace->is_open && bc_file_would_wait(&trace->file))
			bc_output_flush(&dump->output);
	}
	bc_trace_close(trace);
	make_worse(dump, trace->exit);
}

/* Explains why nothing was printed. */
static void explain_nothing(const struct dump *dump, const struct bc_files *files)
{
	char text[BC_NO_MATCH_MAX];

	if (dump->selection.args.given != 0 && dump->exit != BC_EXIT_FAILED &&
		dump->exit != BC_EXIT_USAGE && dump->output.used == 0 && !dump->output.has_written)
		bc_print_error(dump->console, NULL, "no record matches%s",
			bc_no_match_text(text, dump->console, &dump->selection.args,
				(const char *const *)files->paths, files->count, dump->wanted,
				&dump->format));
}

static void dump_files(struct dump *dump, int argc, char **argv)
{
	struct bc_operands operands;
	struct bc_files files;
	struct bc_reader_options how = {
		.format = dump->format, .as_records = true, .as_runs = true, .index_fd = -1};
	enum bc_exit code = bc_operands_read(&operands, &files, dump->console,
		(const char *const *)argv + optind, argc - optind,
		BC_FILES_SORTED | BC_FILES_CHECKED | BC_FILES_STDIN);

	dump->exit = bc_exit_worse(code, files.exit);
	if (dump->is_part)
		bc_selection_read(&dump->selection, &how);
	bc_trace_init(&dump->trace, dump->console, (const char **)files.paths, files.count,
		dump->wanted, &how);
	dump->trace.accept = accept_file;
	dump->trace.context = dump;
	dump_trace(dump);
	free(dump->printer_state);
	if (files.count != 0)
		explain_nothing(dump, &files);
	bc_files_free(&files);
	bc_operands_close(&operands);
}

/* ---- The command. */

static bool read_dump_option(struct dump *dump, int letter)
{
	switch (letter) {
	case 'n':
		return bc_option_count(dump->console, "--limit", 1, UINT64_MAX, &dump->left);
	case 't':
		return bc_option_choice(dump->console, options, letter, &dump->time);
	case OPTION_B2A:
		return dump->text.is_b2a = dump->is_plain = true;
	case 'p':
		return dump->is_plain = true;
	case 'j':
		return dump->is_json = true;
	case 'I':
		return bc_option_read_format(dump->console, "-I", &dump->wanted, &dump->format);
	default:
		if (bc_name_args_has(letter))
			return (dump->exit = bc_name_args_add(
					&dump->names, dump->console, letter)) == BC_EXIT_OK;
		return bc_filter_args_option(&dump->selection.args, dump->console, letter);
	}
}

/* Returns false if the command must exit with dump->exit. */
static bool read_dump_options(struct dump *dump, struct bc_options *o)
{
	int letter;

	while ((letter = bc_options_next(o)) != -1)
		if (!read_dump_option(dump, letter)) {
			dump->exit = dump->exit != BC_EXIT_OK ? dump->exit : o->exit;
			return false;
		}
	if (!bc_filter_args_finish(&dump->selection.args, dump->console, dump->names, &dump->exit))
		return false;
	dump->is_part = dump->selection.args.given != 0 || dump->time == DUMP_RELATIVE;
	dump->is_terminal = isatty(dump->console->out) && !dump->is_plain && !dump->is_json;
	dump->is_by_record = dump->is_json || dump->names != NULL || dump->time != DUMP_DELTA;
	if (dump->text.is_b2a && dump->time != DUMP_DELTA)
		dump->exit = bc_print_usage_error(dump->console, "--b2a excludes --time");
	else if (dump->is_json && (dump->text.is_b2a || dump->time != DUMP_DELTA))
		dump->exit = bc_print_usage_error(
			dump->console, "--json excludes --b2a and --time");
	else if (dump->text.is_b2a && dump->names != NULL)
		dump->exit = bc_print_usage_error(
			dump->console, "--b2a excludes --map and --symbols");
	return dump->exit == BC_EXIT_OK;
}

enum bc_exit bc_cmd_dump(const struct bc_console *console, int argc, char **argv)
{
	struct bc_options o;
	struct dump *dump = calloc(1, sizeof(*dump));

	if (dump == NULL)
		return bc_print_no_memory(console);
	dump->console = console;
	dump->left = UINT64_MAX;
	dump->format = bc_format_options_default();
	dump->selection = (struct bc_selection){.console = console,
		.trace = &dump->trace,
		.as_found = true,
		.add = dump_entries,
		.add_run = dump_run,
		.context = dump};
	bc_options_start(&o, console, &bc_dump_usage, argc, argv);
	bc_filter_args_init(&dump->selection.args);
	if (read_dump_options(dump, &o)) {
		if (bc_output_open(&dump->output, console)) {
			dump_files(dump, argc, argv);
			make_worse(dump, bc_output_close(&dump->output, console));
		} else {
			dump->exit = BC_EXIT_FAILED;
		}
	}
	bc_name_map_close(dump->names);
	enum bc_exit code = dump->exit;
	free(dump);
	return code;
}
