/* buscap dump: prints a trace as text. Each file is read by a reader (formats/codec/reader.h). What
 * a batch contains decides how it is printed:
 *
 *     a chunk of a segment            its records like BYU's b2a, with '#' lines for the events
 *     records of a BYU file           likewise
 *     entries of another bus format   bus samples; BYU records too wide for 12 bytes; events
 *     entries of any other format     lines, by the format's own printer
 *
 * Whole runs of records go through a cache of texts (struct record_text). Records are looked at
 * one by one only if they are selected by their fields or get a time or a name (is_by_record).
 *
 * With --json, the same selection passes entries to the printer of ndjson. */
#include "cli/term/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/io/file.h"
#include "cli/io/filter_args.h"
#include "cli/io/no_match.h"
#include "cli/io/operands.h"
#include "cli/io/trace.h"
#include "cli/term/options.h"
#include "cli/term/output.h"
#include "formats/base/fast_text.h"
#include "formats/base/text.h"
#include "formats/bus/record.h"
#include "formats/bus/sample.h"
#include "formats/codec/format.h"
#include "formats/codec/reader.h"
#include "formats/segment/sequence_check.h"
#include "formats/trace/entry.h"
#include "formats/trace/printer.h"

enum { OPTION_B2A = 1000 };

static const struct bc_usage_option options[] = {
	{'n', "limit", "N", "number", "only the first N of these records, or lines of text"},
	BC_FILTER_OPTION_RECORDS,
	BC_FILTER_OPTION_EPOCH,
	BC_FILTER_OPTIONS_TIME,
	BC_FILTER_OPTIONS_ADDR,
	BC_FILTER_OPTIONS_FIELDS,
	{'t', "time", "FORM", "choice:delta|tick|relative|wall",
		"append a time to each record: delta (default: nothing, a record ends with the "
		"ticks "
		"since the previous one), tick (absolute), relative (seconds since the first) or "
		"wall (time of day)"},
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
	.kind = "file",
	.summary = "print a trace as text",
	.text = "Prints traces as text: the records of segments (.byu.lz4) and BYU files in "
		"columns, bus samples (raw6, bcp1) like the printer in their specification, "
		"Laplace records "
		"in their text form, text formats unchanged. Segments are sorted. \"-\", or no "
		"file, is standard input.",
	.options = options,
	.more = "A range is A-B, A-, -B or A.",
	.exits = "0 ok, 1 failed, 2 wrong usage, 3 damaged or torn: the intact parts were printed.",
	.example = "buscap dump --addr b8000-bffff --time wall *.byu.lz4",
};

/* ---- Printing many records at a time: the same text as bc_record_print(), several times as fast,
 * or the text of the program b2a that BYU published with its traces. b2a prints
 * "%08lx NAME\t\t%2d\t%02x\t%1d\t%ld", with one tab after names of seven letters and more,
 * STOPCLKAK for STOPCLKACK, and no name for unknown types; 0xffffffff ticks are -1, as on the
 * 32-bit hosts it was written for.
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

/* Returns the text between address and time of a record. It is valid until the next call. */
static struct bc_text middle_text(struct record_text *text, const uint8_t *record)
{
	size_t slot = slot_of(text, record);

	return (struct bc_text){text->kept[slot].text, text->kept[slot].bytes};
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

/* Prints n records to `out`, which must hold n * BC_RECORD_TEXT_MAX bytes. Returns the number of
 * bytes written. */
static size_t print_texts(struct record_text *text, char *out, const uint8_t *records, size_t n)
{
	return text->is_b2a ? print_cached(text, out, records, n, true)
			    : print_cached(text, out, records, n, false);
}

/* ---- A dump. */

/* What follows each record. */
enum dump_time {
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
	struct bc_filter_args args;      /* what to print */
	uint64_t left;                   /* records or lines to print at most */
	bool is_part;                    /* not everything */
	bool is_by_record; /* records are looked at one by one, to select or to print */
	bool is_plain;     /* only records */
	bool is_json;
	bool is_terminal; /* names of the columns are printed */
	enum dump_time time;
	struct bc_name_map *names; /* NULL: no names are shown */
	struct record_text text;
	/* The current file: */
	const struct bc_file *file;
	struct bc_reader *reader;
	const char *columns;              /* the names of its columns; NULL: not printed */
	const struct bc_printer *printer; /* of lines or JSON; NULL: neither */
	void *printer_state;
	struct bc_moment moment; /* segments: of the current chunk */
	uint64_t clock_hz;       /* of the current segment; 0: unknown */
	bool has_epoch;          /* `epoch` is set: of the last chunk or entry printed */
	uint32_t epoch;
	/* All files: */
	const char *shown_columns; /* printed last */
	struct bc_sequence_check sequence;
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

/* ---- Entries, by a format's printer. */

/* Returns false if printing failed, after an error message or silently for a closed pipe. */
static bool print_by_printer(struct dump *dump, const struct bc_entry *entries, size_t count)
{
	uint64_t reduced[BC_TRAIT_BITS] = {0};

	while (count != 0 && !bc_output_failed(&dump->output)) {
		struct bc_print print = {.entries = entries,
			.count = count,
			.moment = &dump->moment,
			.out = bc_output_reserve(&dump->output, BC_PRINT_MAX),
			.capacity = BC_PRINT_MAX,
			.reduced = reduced};
		int rc = dump->printer->print(dump->printer_state, &print);
		dump->output.used += print.used;
		if (rc != 0) {
			bc_print_error(dump->console, dump->file->name, "%s", print.err);
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
	if (!bc_output_json_value(
		    &dump->output, bc_name_map_json(dump->names, is_port, entry->addr)))
		make_worse(dump, bc_print_no_memory(dump->console));
	dump->output.used--; /* over the newline */
	bc_output_format(&dump->output, "}\n");
}

/* Returns what print_by_printer() does. */
static bool print_entries(struct dump *dump, const struct bc_entry *entries, size_t count)
{
	if (!dump->is_json || dump->names == NULL)
		return print_by_printer(dump, entries, count);
	for (size_t i = 0; i < count; i++) {
		if (!print_by_printer(dump, &entries[i], 1))
			return false;
		if (entries[i].kind == BC_ENTRY_REFERENCE)
			append_json_name(dump, &entries[i]);
	}
	return true;
}

/* ---- Lines that start with '#', or nothing if the dump is plain. */

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

static void print_note(struct dump *dump, const char *word, struct bc_text text)
{
	bc_output_format(&dump->output, "# %s%s", word, text.bytes != 0 ? ": " : "");
	bc_output_safe_bytes(&dump->output, text.at, text.bytes);
	bc_output_text(&dump->output, "\n", 1);
}

static void print_event(struct dump *dump, const struct bc_entry *entry)
{
	char gap[BC_GAP_TEXT_MAX];

	if (dump->is_plain || dump->left == 0)
		return;
	if (dump->is_json) {
		print_entries(dump, entry, 1);
		return;
	}
	print_columns(dump);
	switch (entry->note.event.kind) {
	case BC_EVENT_GAP:
		bc_output_format(
			&dump->output, "# gap: %s\n", bc_gap_text(gap, &entry->note.event));
		break;
	case BC_EVENT_MARK:
		print_note(dump, "mark", entry->note.text);
		break;
	case BC_EVENT_TRIGGER:
		print_note(dump, "trigger", entry->note.text);
		break;
	case BC_EVENT_NOTE:
		print_note(dump, "note", entry->note.text);
		break;
	default: /* print_epoch() announces epochs */
		break;
	}
}

/* Announces an epoch that is not the one before. Its first record has this number and tick. */
static void print_epoch(struct dump *dump, uint32_t epoch, uint64_t number, uint64_t tick)
{
	struct bc_entry entry;

	if (dump->has_epoch && dump->epoch != epoch && !dump->is_plain) {
		print_columns(dump);
		if (dump->is_json) {
			bc_entry_of_event(&entry, &(struct bc_event){0}, "", number, tick, epoch);
			print_event(dump, &entry);
		} else {
			bc_output_format(&dump->output, "# epoch %" PRIu32 "\n", epoch);
		}
	}
	dump->has_epoch = true;
	dump->epoch = epoch;
}

/* ---- Records, and what is appended to them. */

/* The text of this many records fits the output buffer. */
#define RUN_RECORDS (BC_OUTPUT_BYTES / BC_RECORD_TEXT_MAX)

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

/* Appends the tick to the line that was printed last, with --time tick. */
static void append_tick(struct dump *dump, char before, uint64_t tick)
{
	if (dump->time != DUMP_TICK)
		return;
	dump->output.used--; /* over the newline */
	bc_output_format(&dump->output, "%c%" PRIu64 "\n", before, tick);
}

/* Appends the name of an address to the line that was printed last, if it has one. */
static void append_name(struct dump *dump, char before, bool is_port, uint64_t addr)
{
	const char separator[] = {before, '\0'};

	if (dump->names == NULL)
		return;
	dump->output.used--; /* over the newline */
	bc_name_print(&dump->output, dump->names, is_port, addr, separator, "");
	bc_output_text(&dump->output, "\n", 1);
}

#define NS_PER_S 1000000000u

/* Appends the time of day, or the seconds since the first record. */
static void append_wall(struct dump *dump, uint64_t tick)
{
	const struct bc_moment *m = &dump->moment;
	char wall[BC_RFC3339_BYTES];
	int64_t ns = bc_wall_after(m->wall_ns, m->tick, tick, m->clock_hz);
	__int128 passed = (__int128)ns - dump->args.start_ns;
	uint64_t since = (uint64_t)(passed < 0 ? -passed : passed);

	dump->output.used--; /* over the newline */
	if (m->clock_hz == 0) {
		bc_output_text(&dump->output, "\t-\n", 3);
	} else if (dump->time == DUMP_WALL) {
		bc_rfc3339_write(wall, ns);
		bc_output_format(&dump->output, "\t%s\n", wall);
	} else {
		bc_output_format(&dump->output, "\t%s%" PRIu64 ".%09" PRIu64 "\n",
			passed < 0 ? "-" : "", since / NS_PER_S, since % NS_PER_S);
	}
}

/* Prints a record with its time and name, or as JSON. */
static void print_record(
	struct dump *dump, const uint8_t *record, uint64_t number, uint64_t tick, uint32_t epoch)
{
	struct bc_entry entry;

	if (dump->is_json) {
		bc_entry_of_record(&entry, record, number, tick);
		entry.epoch = epoch;
		dump->left--;
		print_entries(dump, &entry, 1);
		return;
	}
	print_run(dump, record, 1);
	if (dump->time > DUMP_TICK)
		append_wall(dump, tick);
	else
		append_tick(dump, '\t', tick);
	append_name(dump, '\t', bc_is_port_access(record[4]), bc_le32(record));
}

/* ---- Segments. */

static void print_chunk_event(struct dump *dump, const struct bc_chunk *chunk,
	const struct bc_event *event, uint64_t number, uint64_t tick)
{
	struct bc_entry entry;

	if (event->kind == BC_EVENT_ANCHOR || event->kind >= BC_EVENT_END)
		return;
	bc_entry_of_event(
		&entry, event, chunk->text + event->text, number, tick, chunk->info.epoch);
	print_event(dump, &entry);
}

static const uint8_t *record_at(const struct bc_chunk *chunk, uint32_t n)
{
	return chunk->records + (size_t)n * BC_RECORD_BYTES;
}

/* Prints the records [from, to) and the events among them as text, including those at the chunk's
 * end if `to` is the end. */
static void print_part(struct dump *dump, const struct bc_chunk *chunk, uint32_t from, uint32_t to)
{
	const struct bc_chunk_info *info = &chunk->info;

	for (uint32_t i = 0; i < info->events && !dump->is_plain; i++) {
		const struct bc_event *event = &chunk->events[i];
		if (event->position < from || event->kind == BC_EVENT_ANCHOR)
			continue;
		if (event->position > to || (event->position == to && to < info->records))
			break;
		print_run(dump, record_at(chunk, from), event->position - from);
		from = event->position;
		print_chunk_event(dump, chunk, event, info->first_record + from, 0);
	}
	print_run(dump, record_at(chunk, from), to - from);
}

/* Like print_part(), but looks at each record. */
static void print_by_record(struct dump *dump, const struct bc_chunk *chunk, uint32_t from,
	uint32_t to, struct bc_span ticks)
{
	const struct bc_chunk_info *info = &chunk->info;
	uint64_t number = info->first_record;
	uint64_t tick = info->first_tick;
	uint64_t matches = 0;
	uint32_t event = 0;
	bool is_in_time = bc_span_has(ticks, info->last_tick);

	for (uint32_t i = 0; i < to && !is_over(dump); i++, number++) {
		const uint8_t *record = record_at(chunk, i);
		uint32_t time = bc_le32(record + 8);
		uint32_t left = info->records - i;
		uint64_t sum;
		if (i % BC_FILTER_RECORDS == 0)
			matches = bc_filter_records(&dump->args.filter, record,
				left < BC_FILTER_RECORDS ? left : BC_FILTER_RECORDS, &sum);
		tick += i != 0 && time != BC_TIME_NONE ? time : 0;
		uint32_t events_from = event;
		for (; event < info->events && chunk->events[event].position <= i; event++)
			if (chunk->events[event].kind == BC_EVENT_ANCHOR && time == BC_TIME_NONE)
				tick = chunk->events[event].value;
		is_in_time = i >= from && bc_span_has(ticks, tick);
		if (!is_in_time)
			continue;
		for (; events_from < event; events_from++)
			print_chunk_event(dump, chunk, &chunk->events[events_from], number, tick);
		if ((matches >> i % BC_FILTER_RECORDS & 1) == 0)
			continue;
		print_record(dump, record, number, tick, info->epoch);
	}
	if (to == info->records && is_in_time)
		for (; event < info->events; event++)
			print_chunk_event(dump, chunk, &chunk->events[event], number, tick);
}

/* True if a chunk may contain something to print; then sets *bounds. */
static bool get_chunk_bounds(
	struct dump *dump, const struct bc_chunk_info *chunk, struct bc_filter_bounds *bounds)
{
	const struct bc_segment_header *header = bc_reader_header(dump->reader);
	struct bc_chunk_info info = *chunk;

	dump->clock_hz = header != NULL ? header->clock_hz : 0;
	info.events = dump->is_plain ? 0 : info.events;
	return bc_filter_args_chunk(
		&dump->args, dump->console, dump->file->name, &info, dump->clock_hz, bounds);
}

static void print_chunk(struct dump *dump, const struct bc_chunk *chunk)
{
	const struct bc_chunk_info *info = &chunk->info;
	struct bc_filter_bounds bounds;
	uint32_t from = 0;
	uint32_t to = 0;

	if (!get_chunk_bounds(dump, info, &bounds))
		return;
	if (info->records != 0) {
		from = (uint32_t)(bounds.numbers.first - info->first_record);
		to = (uint32_t)(bounds.numbers.last - info->first_record) + 1;
	}
	dump->moment = (struct bc_moment){.is_known = true,
		.wall_ns = info->wall_ns,
		.tick = info->first_tick,
		.epoch = info->epoch,
		.clock_hz = dump->clock_hz};
	print_epoch(dump, info->epoch, info->first_record, info->first_tick);
	if (dump->is_by_record)
		print_by_record(dump, chunk, from, to, bounds.ticks);
	else
		print_part(dump, chunk, from, to);
}

static bool needs_chunk(void *context, const struct bc_chunk_info *info)
{
	struct bc_filter_bounds bounds;

	return get_chunk_bounds(context, info, &bounds);
}

/* ---- The other bus formats. */

static void print_records(struct dump *dump, const struct bc_batch *batch)
{
	const struct bc_filter *f = &dump->args.filter;
	const uint8_t *record = batch->run.records;
	uint64_t number = batch->run.number;
	uint64_t tick = batch->run.tick;

	if (!dump->is_part && !dump->is_by_record) {
		print_run(dump, record, batch->run.count);
		return;
	}
	for (size_t i = 0; i < batch->run.count && !is_over(dump);
		i++, number++, record += BC_RECORD_BYTES) {
		uint64_t ticks;
		bool is_match = bc_filter_records(f, record, 1, &ticks) != 0;
		tick += ticks;
		if (!is_match || !bc_span_has(f->numbers, number) || !bc_span_has(f->ticks, tick) ||
			!bc_span_has(f->epochs, 0))
			continue;
		print_record(dump, record, number, tick, 0);
	}
}

static void print_sample(struct dump *dump, const struct bc_entry *entry)
{
	print_columns(dump);
	char *out = bc_output_reserve(&dump->output, BC_SAMPLE_TEXT_MAX);
	dump->left--;
	dump->output.used += bc_sample_print(out, entry->sample);
	append_tick(dump, ' ', entry->tick);
	append_name(dump, ' ', bc_is_port_access(entry->type), entry->addr);
}

/* Prints the record of a dialect whose addresses and times may have more than 32 bits. */
static void print_dialect(struct dump *dump, const struct bc_entry *entry)
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
	} else {
		struct bc_text middle = middle_text(&dump->text, record);
		dump->left--;
		print_columns(dump);
		bc_output_format(&dump->output,
			dump->text.is_b2a ? "%08" PRIx64 "%.*s%" PRId64 "\n"
					  : "%08" PRIx64 "%.*s%08" PRIx64 "\n",
			entry->addr, (int)middle.bytes, middle.at, entry->delta);
	}
	append_tick(dump, '\t', entry->tick);
	append_name(dump, '\t', bc_is_port_access(entry->type), entry->addr);
}

static void print_bus_entries(struct dump *dump, const struct bc_batch *batch)
{
	const struct bc_filter *f = &dump->args.filter;

	for (size_t i = 0; i < batch->count && !is_over(dump); i++) {
		const struct bc_entry *entry = &batch->entries[i];
		/* An epoch with matches is announced by its first entry, whatever that is. */
		if (dump->file->probe.format == BC_FORMAT_BCP1 &&
			bc_span_has(f->numbers, entry->number) &&
			bc_span_has(f->epochs, entry->epoch))
			print_epoch(dump, entry->epoch, entry->number, entry->tick);
		if (dump->is_part && !bc_filter_entry(f, entry))
			continue;
		if (entry->kind == BC_ENTRY_EVENT)
			print_event(dump, entry);
		else if ((entry->has & BC_HAS_SAMPLE) != 0)
			print_sample(dump, entry);
		else
			print_dialect(dump, entry);
	}
}

/* ---- Lines of all other formats, in the format's own text form; with --json, entries. */

/* Prints the selected lines of a batch, run by run. All entries of a line are printed if one of
 * them is selected: the first one has the text of the line. Returns false if printing failed. */
static bool print_lines(struct dump *dump, const struct bc_batch *batch)
{
	size_t from = 0; /* where the run of selected lines starts */
	size_t end = 0;

	for (size_t i = 0; i < batch->count && !is_over(dump); i = end) {
		bool is_event = batch->entries[i].kind == BC_ENTRY_EVENT;
		bool is_selected = false;
		do
			is_selected |= bc_filter_entry(&dump->args.filter, &batch->entries[end++]);
		while (end < batch->count && batch->entries[end].is_continued);
		if (is_selected && !(is_event && dump->is_plain)) {
			dump->left -= !is_event;
			continue;
		}
		if (!print_entries(dump, batch->entries + from, i - from))
			return false;
		from = end;
	}
	return print_entries(dump, batch->entries + from, end - from);
}

/* ---- Files. */

/* Prints a batch. Returns false if printing failed, or if no later entry of the file can be
 * selected, because numbers increase. Of a segment, needs_chunk() selects the chunks. */
static bool print_batch(struct dump *dump, const struct bc_batch *batch)
{
	uint64_t end = batch->run.number + batch->run.count;

	if (batch->count != 0) {
		const struct bc_entry *last = &batch->entries[batch->count - 1];
		end = last->number + (last->kind != BC_ENTRY_EVENT);
	}
	if (batch->chunk != NULL)
		print_chunk(dump, batch->chunk);
	else if (batch->run.records != NULL)
		print_records(dump, batch);
	else if (dump->printer == NULL)
		print_bus_entries(dump, batch);
	else if (!print_lines(dump, batch))
		return false;
	if (dump->left == 0)
		return false;
	if (batch->chunk != NULL)
		return true;
	return end <= dump->args.filter.numbers.last || end == 0;
}

/* Checks that the file's format has what the options need. */
static bool check_options(struct dump *dump, const struct bc_file *file)
{
	enum bc_format format = file->probe.format;
	uint32_t holds = bc_format_info(format)->holds;
	bool is_bus = bc_format_is_bus(format);
	const char *why = NULL;

	if (format == BC_FORMAT_SEGMENT)
		return true;
	if (dump->time > DUMP_TICK)
		why = "--time relative and --time wall need segments";
	else if (dump->time == DUMP_TICK && (!is_bus || (holds & BC_HAS_TIME) == 0))
		why = "--time tick works only with segments, BYU and bcp1";
	else if (dump->names != NULL && !is_bus)
		why = "--map and --symbols work only with segments, BYU, bcp1 and raw6";
	if (dump->text.is_b2a && bc_dialect_bytes(format) == 0)
		bc_print_error(dump->console, file->name,
			"%s has no BYU records to print with --b2a", bc_format_name(format));
	else if (why != NULL)
		bc_print_error(dump->console, file->name, "%s", why);
	else if (bc_filter_args_check(&dump->args, dump->console, format, holds))
		return true;
	make_worse(dump, BC_EXIT_USAGE);
	return false;
}

/* The names of the columns in which the entries of a format are printed, or NULL. */
static const char *columns_of(enum bc_format format)
{
	if (format == BC_FORMAT_RAW6 || format == BC_FORMAT_BCP1)
		return SAMPLE_COLUMNS;
	return format == BC_FORMAT_SEGMENT || bc_format_is_bus(format) ? BC_RECORD_COLUMNS : NULL;
}

static int open_reader(struct dump *dump, const struct bc_file *file)
{
	enum bc_format format = file->probe.format;
	bool is_segment = format == BC_FORMAT_SEGMENT;
	struct bc_format_options printing = dump->format;
	const struct bc_reader_options how = {.format = dump->format,
		.as_records = true,
		.needs_chunk = dump->is_part ? needs_chunk : NULL,
		.context = dump,
		.is_partial = file->is_partial,
		.index_fd = is_segment && file->is_regular ? file->fd : -1,
		.sequence = &dump->sequence};

	printing.source_holds = bc_format_info(format)->holds |
				(printing.size != 0 ? BC_HAS_SIZE : 0);
	printing.source_has_wall = is_segment;
	dump->file = file;
	dump->reader = NULL;
	dump->printer = NULL;
	dump->printer_state = NULL;
	dump->moment.is_known = false;
	if (format == BC_FORMAT_BCP1 || dump->is_json)
		dump->has_epoch = false;
	if (dump->is_terminal)
		dump->columns = columns_of(format);
	if (dump->is_json)
		format = BC_FORMAT_NDJSON;
	else if (format == BC_FORMAT_LAPLACE)
		format = BC_FORMAT_LAPLACE_TEXT;
	if (dump->is_json || (!is_segment && !bc_format_is_bus(format))) {
		dump->printer = bc_format_info(format)->printer;
		dump->printer_state = bc_printer_start(dump->printer, &printing);
		if (dump->printer_state == NULL)
			return -ENOMEM;
	}
	return bc_reader_open(&dump->reader, file->input, file->probe.format, &how);
}

static void dump_open_file(struct dump *dump, const struct bc_file *file)
{
	struct bc_batch batch;
	uint64_t faults = 0;
	bool is_more = true;
	int rc = open_reader(dump, file);

	while (rc >= 0 && is_more && !is_over(dump)) {
		rc = bc_reader_next(dump->reader, &batch);
		if (rc <= 0)
			break;
		is_more = print_batch(dump, &batch);
		if (bc_file_would_wait(file))
			bc_output_flush(&dump->output);
		if (batch.fault != NULL)
			bc_print_fault(dump->console, file->name, batch.fault, faults++);
	}
	bc_print_faults_left(dump->console, file->name, faults);
	if (faults != 0)
		make_worse(dump, BC_EXIT_DAMAGED);
	if (rc < 0)
		make_worse(dump, bc_print_read_error(dump->console, file, rc));
	if (is_more && (dump->reader == NULL || bc_reader_header(dump->reader) == NULL))
		make_worse(dump, bc_print_holes_before(dump->console, file->name, &dump->sequence));
	bc_reader_close(dump->reader);
	free(dump->printer_state);
}

static void dump_file(struct dump *dump, const char *path)
{
	struct bc_file file;
	enum bc_exit code = bc_file_open(&file, dump->console, path, dump->wanted);

	if (code != BC_EXIT_OK) {
		make_worse(dump, code);
		make_worse(dump, bc_print_holes_before(dump->console, path, &dump->sequence));
		return;
	}
	if (check_options(dump, &file))
		dump_open_file(dump, &file);
	bc_file_close(&file);
}

/* Explains why nothing was printed. */
static void explain_nothing(const struct dump *dump, const struct bc_files *files)
{
	char text[BC_NO_MATCH_MAX];

	if (dump->is_part && dump->exit != BC_EXIT_FAILED && dump->exit != BC_EXIT_USAGE &&
		dump->output.used == 0 && !dump->output.has_written)
		bc_print_error(dump->console, NULL, "no record matches%s",
			bc_no_match_text(text, dump->console, &dump->args,
				(const char *const *)files->paths, files->count, dump->wanted,
				&dump->format));
}

static void dump_files(struct dump *dump, int argc, char **argv)
{
	struct bc_operands operands;
	struct bc_files files;
	enum bc_exit code = bc_operands_read(&operands, &files, dump->console,
		(const char *const *)argv + optind, argc - optind,
		BC_FILES_SORTED | BC_FILES_CHECKED | BC_FILES_STDIN);

	dump->exit = bc_exit_worse(code, files.exit);
	for (int i = 0; i < files.count && !is_over(dump); i++)
		if (i + 1 == files.count || !bc_file_is_gone(files.paths[i]))
			dump_file(dump, files.paths[i]);
	if (files.count != 0)
		explain_nothing(dump, &files);
	bc_files_free(&files);
	bc_operands_close(&operands);
}

/* ---- The command. */

static bool read_time(struct dump *dump)
{
	static const char *const names[DUMP_TIMES] = {
		[DUMP_DELTA] = "delta",
		[DUMP_TICK] = "tick",
		[DUMP_RELATIVE] = "relative",
		[DUMP_WALL] = "wall",
	};

	for (unsigned i = 0; i < DUMP_TIMES; i++)
		if (strcmp(optarg, names[i]) == 0) {
			dump->time = (enum dump_time)i;
			return true;
		}
	bc_print_error(
		dump->console, NULL, "--time %s: must be delta, tick, relative or wall", optarg);
	return false;
}

static bool read_dump_option(struct dump *dump, int letter)
{
	switch (letter) {
	case 'n':
		return bc_option_count(dump->console, "--limit", 1, UINT64_MAX, &dump->left);
	case 't':
		return read_time(dump);
	case OPTION_B2A:
		dump->text.is_b2a = dump->is_plain = true;
		return true;
	case 'p':
		dump->is_plain = true;
		return true;
	case 'j':
		dump->is_json = true;
		return true;
	case 'I':
		return bc_option_read_format(dump->console, "-I", &dump->wanted, &dump->format);
	default:
		if (bc_name_args_has(letter)) {
			dump->exit = bc_name_args_add(&dump->names, dump->console, letter);
			return dump->exit == BC_EXIT_OK;
		}
		return bc_filter_args_has(letter) &&
		       bc_filter_args_option(&dump->args, dump->console, letter);
	}
}

/* Returns false if the command must exit with dump->exit. */
static bool read_dump_options(struct dump *dump, struct bc_options *o)
{
	const struct bc_filter *filter = &dump->args.filter;
	int letter;

	while ((letter = bc_options_next(o)) != -1)
		if (!read_dump_option(dump, letter)) {
			dump->exit = dump->exit != BC_EXIT_OK ? dump->exit : o->exit;
			return false;
		}
	if (!bc_filter_args_finish(&dump->args, dump->console, dump->names)) {
		dump->exit = BC_EXIT_USAGE;
		return false;
	}
	dump->is_part = dump->args.given != 0;
	dump->is_terminal = isatty(dump->console->out) && !dump->is_plain && !dump->is_json;
	dump->is_by_record = dump->is_json || filter->has_addr || filter->has_types ||
			     filter->has_procs || dump->names != NULL || dump->time != DUMP_DELTA ||
			     dump->args.has_time;
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
	bc_options_start(&o, console, &bc_dump_usage, argc, argv);
	bc_filter_args_init(&dump->args);
	if (read_dump_options(dump, &o)) {
		if (bc_output_open(&dump->output, console)) {
			dump_files(dump, argc, argv);
			make_worse(dump, bc_output_close(&dump->output, console));
		} else {
			dump->exit = BC_EXIT_FAILED;
		}
	}
	bc_sequence_check_reset(&dump->sequence);
	bc_name_map_close(dump->names);
	enum bc_exit code = dump->exit;
	free(dump);
	return code;
}
