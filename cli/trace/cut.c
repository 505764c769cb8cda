/* buscap cut: writes the entries that a filter selects. Segments and BYU files are filtered as
 * records, 64 at a time; only those that match become entries, unless all up to the next event do:
 * they stay records. Everything else is filtered entry by entry.
 *
 * Invariant: the sum of the deltas written up to an entry is its absolute tick. A kept entry after
 * dropped ones (has_skipped) therefore gets the ticks since the last kept one. If the ticks of a
 * dropped one are unknown (is_delta_lost), so is the delta; a segment then gets an anchor with the
 * absolute tick. Clocks restart with each file or, in segments, with each recording. */
#include "cli/term/commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io/filter_args.h"
#include "cli/io/no_match.h"
#include "cli/io/target.h"
#include "cli/io/trace.h"
#include "cli/term/options.h"

static const struct bc_usage_option options[] = {
	BC_FILTER_OPTION_RECORDS,
	BC_FILTER_OPTION_EPOCH,
	BC_FILTER_OPTIONS_TIME,
	BC_FILTER_OPTIONS_ADDR,
	BC_FILTER_OPTIONS_FIELDS,
	BC_NAME_OPTIONS,
	{'I', "input-format", "FMT", "format-read", "input format and options (default: detected)"},
	{'O', "output-format", "FMT", "format-write",
		"output format and options (default: the input format)"},
	BC_CONVERT_ARGS_OPTIONS,
	{0},
};

const struct bc_usage bc_cut_usage = {
	.name = "cut",
	.operands = "[FILE|DIR|ID]...",
	.kind = "file",
	.summary = "write part of a trace",
	.text = "Writes the records that match all of the options. Without a file, or with \"-\", "
		"reads standard input. Of a sealed segment, only chunks that may contain a match "
		"are "
		"read.",
	.options = options,
	.more = "A range is A-B, A-, -B or A. Times stay correct: the ticks of dropped records are "
		"added to the next record. An output segment is a new recording; its metadata says "
		"what it was cut from, and it has the gaps of the source.",
	.exits = "0 ok, even if nothing matches, 1 failed, 2 wrong usage, 3 damaged or malformed "
		 "input: the intact parts were written.",
	.example = "buscap cut --addr b8000-bffff --type write -o screen.byu.lz4 *.byu.lz4",
};

#define CUT_ENTRIES 256u

struct cut {
	const struct bc_console *console;
	struct bc_filter_args filter_args;
	struct bc_name_map *names; /* for --region; NULL: the names of a PC */
	struct bc_convert_args args;
	int file; /* trace.next, which identifies the current file */
	/* The last entry kept from the current file or, for segments, recording. */
	bool has_last;
	uint64_t last_tick;
	uint32_t last_epoch;
	uint64_t tag;         /* of the current recording */
	uint64_t next_number; /* expected number of the next chunk's first record */
	bool has_skipped;     /* entries were dropped since the last one kept */
	bool is_delta_lost;   /* the ticks of one of them are unknown */
	bool is_inexact;      /* plain records: a record without a delta was read */
	uint64_t kept;        /* entries kept, not counting events */
	uint64_t events;      /* events kept, if the output format has any */
	uint64_t long_deltas; /* deltas that didn't fit their field */
	bool is_over;         /* the target failed or its reader has exited */
	size_t n;
	struct bc_entry entries[CUT_ENTRIES];
};

static bool get_bounds(
	struct cut *c, const struct bc_chunk_info *info, struct bc_filter_bounds *bounds)
{
	struct bc_filter_args *args = &c->filter_args;
	const struct bc_segment_header *header = c->args.source.is_open
							 ? bc_reader_header(c->args.source.reader)
							 : NULL;
	uint64_t clock_hz = header != NULL ? header->clock_hz : 0;

	if (args->filter.has_wall && clock_hz == 0 && !args->has_warned)
		bc_trace_hide_progress(&c->args.source);
	return bc_filter_args_chunk(
		args, c->console, c->args.source.file.name, info, clock_hz, bounds);
}

static bool selects_chunk(void *context, const struct bc_chunk_info *info)
{
	struct bc_filter_bounds bounds;

	return get_bounds(context, info, &bounds);
}

/* Passes the collected entries to the target. */
static void flush_entries(struct cut *c)
{
	if (c->n != 0 && !c->is_over)
		c->is_over = !bc_target_add(&c->args.output, c->entries, c->n);
	c->n = 0;
}

/* Forgets the entries before, because the ticks that follow have another clock. */
static void start_clock(struct cut *c)
{
	c->has_last = false;
	c->is_delta_lost = false;
	c->is_inexact = false;
}

/* Adds the ticks of dropped entries to the delta of the next kept one. The first kept entry of a
 * file counts from tick 0, so that the sum of deltas is the absolute tick. So does one that is out
 * of order. */
static void update_delta(struct cut *c, struct bc_entry *entry)
{
	bool has_base = c->has_last && c->last_epoch == entry->epoch && entry->tick >= c->last_tick;
	bool is_short = c->args.output.format == BC_FORMAT_BYU ||
			c->args.output.format == BC_FORMAT_BYU16 ||
			c->args.output.format == BC_FORMAT_BYU_BE;

	if (!entry->has_delta || !c->has_skipped || entry->delta == BC_TIME_NONE)
		return;
	entry->delta = entry->tick - (has_base ? c->last_tick : 0);
	if (c->is_delta_lost || (!has_base && c->args.output.format == BC_FORMAT_SEGMENT)) {
		entry->delta = BC_TIME_NONE; /* a segment gets an anchor with the absolute tick */
	} else if (is_short && entry->delta >= BC_TIME_NONE) {
		entry->delta = BC_TIME_NONE;
		c->long_deltas += has_base;
	}
}

/* Adds an entry to the output. */
static void keep_entry(struct cut *c, const struct bc_entry *entry)
{
	if (c->n == CUT_ENTRIES)
		flush_entries(c);
	struct bc_entry *kept = &c->entries[c->n++];
	*kept = *entry;
	if (kept->kind == BC_ENTRY_EVENT) {
		/* A new epoch is not written as an event. */
		c->events += kept->note.event.kind != 0 &&
			     (c->args.output.info->holds & BC_CAN_EVENT) != 0;
		return;
	}
	update_delta(c, kept);
	c->has_last = true;
	c->last_tick = kept->tick;
	c->last_epoch = kept->epoch;
	c->has_skipped = false;
	c->is_delta_lost = false;
	c->kept++;
}

/* Drops an entry. If its delta is unknown, the next kept delta is unknown too, unless the tick of
 * the dropped entry is known from an anchor or because it is the first of the trace. */
static void skip_record(struct cut *c, uint32_t time, bool is_inexact)
{
	c->has_skipped = true;
	c->is_delta_lost |= time == BC_TIME_NONE && is_inexact;
}

/* Records being filtered. */
struct run {
	const uint8_t *at;
	size_t left;
	uint64_t number; /* of the record at `at` */
	uint64_t tick;   /* of the record before it */
	uint32_t epoch;
	const struct bc_filter_bounds *bounds;
};

static bool in_bounds(const struct bc_filter_bounds *bounds, uint64_t number, uint64_t tick)
{
	return bc_span_has(bounds->numbers, number) && bc_span_has(bounds->ticks, tick);
}

/* Handles up to BC_FILTER_RECORDS records, some of which match, one by one. */
static void cut_some(struct cut *c, struct run *run, size_t n, uint64_t bits)
{
	struct bc_entry entry;

	for (size_t i = 0; i < n; i++, run->at += BC_RECORD_BYTES, run->number++) {
		uint32_t time = bc_le32(run->at + 8);
		run->tick += time != BC_TIME_NONE ? time : 0;
		if (c->args.source.format != BC_FORMAT_SEGMENT && time == BC_TIME_NONE)
			c->is_inexact |= run->number != 0;
		if ((bits >> i & 1) == 0 || !in_bounds(run->bounds, run->number, run->tick)) {
			skip_record(c, time, c->is_inexact);
			continue;
		}
		bc_entry_of_record(&entry, run->at, run->number, run->tick);
		entry.epoch = run->epoch;
		entry.is_inexact = c->is_inexact;
		keep_entry(c, &entry);
	}
	run->left -= n;
}

/* Drops records, of which none matches. */
static void skip_run(struct cut *c, struct run *run, size_t n, uint64_t ticks)
{
	if (n == 0)
		return;
	c->has_skipped = true;
	run->tick += ticks;
	run->at += n * BC_RECORD_BYTES;
	run->number += n;
	run->left -= n;
}

/* Returns true if one of these records has no delta. */
static bool has_no_delta(const uint8_t *records, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bc_le32(records + i * BC_RECORD_BYTES + 8) == BC_TIME_NONE)
			return true;
	return false;
}

/* Passes on n records of a segment if all of them match: the first alone, if it needs another
 * delta, and the others as a run. Returns false, and does nothing, if some may not match. With
 * --strict, the first loss must be found. */
static bool pass_run(struct cut *c, struct run *run, size_t n)
{
	const struct bc_filter *f = &c->filter_args.filter;
	uint32_t time = n != 0 ? bc_le32(run->at + 8) : 0;
	uint64_t first_tick = run->tick + (time != BC_TIME_NONE ? time : 0);

	if (n == 0 || f->has_addr || f->has_types || f->has_procs || c->args.target.is_strict ||
		c->args.source.format != BC_FORMAT_SEGMENT ||
		!in_bounds(run->bounds, run->number, first_tick) ||
		!bc_span_has(run->bounds->numbers, run->number + n - 1))
		return false;
	uint64_t tick = bc_records_ticks(run->at, n, run->tick);
	if (!bc_span_has(run->bounds->ticks, tick))
		return false;
	if (c->has_skipped) {
		cut_some(c, run, 1, 1);
		n--;
	}
	flush_entries(c);
	c->is_over = c->is_over ||
		     !bc_target_add_run(&c->args.output, (struct bc_record_run){.records = run->at,
								 .count = n,
								 .number = run->number,
								 .tick = run->tick,
								 .epoch = run->epoch,
								 .is_inexact = c->is_inexact});
	c->has_last = true;
	c->last_tick = tick;
	c->last_epoch = run->epoch;
	c->kept += n;
	run->at += n * BC_RECORD_BYTES;
	run->left -= n;
	run->number += n;
	run->tick = tick;
	return true;
}

/* Filters n records, 64 at a time: bc_filter_records() returns a bitmap of those that match. In a
 * segment only the first record of a run can lack a delta; its tick is known from the anchor. */
static void cut_run(struct cut *c, struct run *run, size_t n)
{
	const struct bc_filter *f = &c->filter_args.filter;
	bool is_plain = c->args.source.format != BC_FORMAT_SEGMENT;

	if (pass_run(c, run, n))
		return;
	while (n != 0 && !c->is_over) {
		size_t part = n < BC_FILTER_RECORDS ? n : BC_FILTER_RECORDS;
		uint64_t ticks;
		uint64_t bits = bc_filter_records(f, run->at, part, &ticks);
		bool is_out = run->number + part <= run->bounds->numbers.first ||
			      run->number > run->bounds->numbers.last ||
			      run->tick + ticks < run->bounds->ticks.first ||
			      run->tick > run->bounds->ticks.last;
		if (bits != 0 && !is_out) {
			cut_some(c, run, part, bits);
		} else {
			if (bc_le32(run->at + 8) == BC_TIME_NONE ||
				(is_plain && has_no_delta(run->at, part)))
				cut_some(c, run, part, 0);
			else
				skip_run(c, run, part, ticks);
		}
		n -= part;
	}
}

static void keep_event(struct cut *c, const struct bc_chunk *chunk, const struct bc_event *event,
	uint64_t number, uint64_t tick)
{
	struct bc_entry entry;

	bc_entry_reference(&entry, 0, 0, number);
	entry.kind = BC_ENTRY_EVENT;
	entry.tick = tick;
	entry.epoch = chunk->info.epoch;
	entry.note.event = *event;
	entry.note.text = (struct bc_text){chunk->text + event->text, event->text_bytes};
	keep_entry(c, &entry);
}

/* Handles the events before the run's next record: they are kept if that record is in the bounds.
 * Returns the index of the first event after them. */
static uint32_t cut_events(
	struct cut *c, struct run *run, const struct bc_chunk *chunk, uint32_t event)
{
	const struct bc_chunk_info *info = &chunk->info;
	uint32_t position = (uint32_t)(run->number - info->first_record);
	uint32_t end = event;
	uint64_t number = run->number;

	for (; end < info->events && chunk->events[end].position <= position; end++) {
		if (chunk->events[end].kind != BC_EVENT_ANCHOR)
			continue;
		c->is_inexact = !chunk->events[end].exact;
		if (position != 0)
			run->tick = chunk->events[end].value;
	}
	uint64_t tick = run->tick;
	if (position == info->records) { /* at the end of the chunk the previous record decides */
		number -= number != 0;
	} else {
		uint32_t time = bc_le32(run->at + 8);
		tick += time != BC_TIME_NONE ? time : 0;
	}
	for (; event < end && in_bounds(run->bounds, number, tick); event++)
		if (chunk->events[event].kind != BC_EVENT_ANCHOR &&
			chunk->events[event].kind < BC_EVENT_END)
			keep_event(c, chunk, &chunk->events[event], number, tick);
	return end;
}

static void cut_chunk(struct cut *c, const struct bc_chunk *chunk)
{
	const struct bc_chunk_info *info = &chunk->info;
	struct bc_filter_bounds bounds;
	struct run run = {.at = chunk->records,
		.left = info->records,
		.number = info->first_record,
		.tick = info->first_tick,
		.epoch = info->epoch,
		.bounds = &bounds};
	uint32_t event = 0;

	if (c->tag != info->recording_tag) {
		start_clock(c);
		c->tag = info->recording_tag;
		c->next_number = 0;
	}
	/* Chunks before this one were skipped or are missing. */
	c->has_skipped |= info->first_record != c->next_number;
	c->next_number = info->first_record + info->records;
	if (!get_bounds(c, info, &bounds)) {
		c->has_skipped |= info->records != 0;
		return;
	}
	if (c->has_last && c->last_epoch != info->epoch)
		c->is_inexact = false;
	/* run.tick is the tick before the first record. */
	uint32_t time = info->records != 0 ? bc_le32(run.at + 8) : BC_TIME_NONE;
	run.tick -= time != BC_TIME_NONE ? time : 0;
	do {
		event = cut_events(c, &run, chunk, event);
		size_t n = run.left;
		if (event < info->events && chunk->events[event].position < info->records)
			n = chunk->events[event].position - (run.number - info->first_record);
		cut_run(c, &run, n);
	} while (run.left != 0 && !c->is_over);
	if (!c->is_over)
		cut_events(c, &run, chunk, event);
	/* The entries' texts point into the chunk. */
	flush_entries(c);
}

/* Filters plain records. Their numbers and ticks restart with each file. */
static void cut_records(struct cut *c, const struct bc_batch *batch)
{
	const struct bc_filter *f = &c->filter_args.filter;
	struct bc_filter_bounds bounds = {.numbers = f->numbers, .ticks = f->ticks};
	struct run run = {.at = batch->run.records,
		.left = batch->run.count,
		.number = batch->run.number,
		.tick = batch->run.tick,
		.bounds = &bounds};

	cut_run(c, &run, run.left);
	flush_entries(c);
}

/* Filters entries. The entries of one line are kept or dropped together. */
static void cut_entries(struct cut *c, const struct bc_entry *entries, size_t count)
{
	for (size_t i = 0; i < count && !c->is_over;) {
		bool is_wanted = false;
		size_t end = i;
		do
			is_wanted |= bc_filter_entry(&c->filter_args.filter, &entries[end++]);
		while (end < count && entries[end].is_continued);
		for (; i < end; i++) {
			if (is_wanted)
				keep_entry(c, &entries[i]);
			else if (entries[i].kind != BC_ENTRY_EVENT)
				skip_record(c,
					entries[i].has_delta ? (uint32_t)entries[i].delta : 0,
					entries[i].is_inexact);
		}
	}
	flush_entries(c);
}

static void cut_batch(struct cut *c, const struct bc_batch *batch)
{
	if (c->file != c->args.source.next) {
		c->file = c->args.source.next;
		if (c->args.source.format != BC_FORMAT_SEGMENT)
			start_clock(c);
	}
	if (batch->chunk != NULL)
		cut_chunk(c, batch->chunk);
	else if (batch->run.records != NULL)
		cut_records(c, batch);
	else
		cut_entries(c, batch->entries, batch->count);
}

/* Returns true if no later entry of the file can match, because numbers increase. For segments,
 * selects_chunk() does this. */
static bool is_past_end(const struct cut *c, const struct bc_batch *batch)
{
	uint64_t last = c->filter_args.filter.numbers.last;

	if (c->args.source.format == BC_FORMAT_SEGMENT || last == UINT64_MAX)
		return false;
	if (batch->count != 0)
		return batch->entries[batch->count - 1].number > last;
	return batch->run.count != 0 && batch->run.number + batch->run.count > last;
}

static void print_summary(const struct cut *c)
{
	const struct bc_files *files = &c->args.files;
	char text[BC_NO_MATCH_MAX];

	if (c->kept == 0 && c->args.output.exit == BC_EXIT_OK)
		bc_print_error(c->console, NULL, "no record matches, %s%s",
			c->events == 0 ? "the output is empty"
				       : "only gaps, marks and triggers were written",
			bc_no_match_text(text, c->console, &c->filter_args,
				(const char *const *)files->paths, files->count, c->args.from,
				&c->args.reader.format));
	if (c->long_deltas != 0)
		bc_print_error(c->console, NULL,
			"%" PRIu64
			" delta%s across dropped records written as 0xffffffff: too long for "
			"%s",
			c->long_deltas, bc_plural(c->long_deltas),
			bc_format_name(c->args.output.format));
}

static bool on_cut_batch(void *context, const struct bc_batch *batch)
{
	struct cut *c = context;

	cut_batch(c, batch);
	if (is_past_end(c, batch))
		bc_trace_skip_file(&c->args.source);
	return !c->is_over;
}

static bool read_cut_option(struct cut *c, int letter)
{
	return bc_filter_args_has(letter)
		       ? bc_filter_args_option(&c->filter_args, c->console, letter)
		       : bc_convert_args_option(&c->args, letter);
}

static void prepare_args(struct cut *c)
{
	struct bc_convert_args *w = &c->args;

	w->filter = &c->filter_args;
	w->reader.as_records = true;
	w->reader.needs_chunk = selects_chunk;
	w->reader.context = c;
	w->target.origin = (struct bc_origin){.key = "cut_from", .how = c->filter_args.selection};
	bc_filter_args_init(&c->filter_args);
}

static enum bc_exit read_and_cut(struct cut *c, int argc, char **argv)
{
	struct bc_options o;
	enum bc_exit code = BC_EXIT_OK;
	int letter;

	bc_options_start(&o, c->console, &bc_cut_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		if (bc_name_args_has(letter))
			code = bc_name_args_add(&c->names, c->console, letter);
		else if (!read_cut_option(c, letter))
			return o.exit;
		if (code != BC_EXIT_OK)
			return code;
	}
	if (!bc_filter_args_finish(&c->filter_args, c->console, c->names))
		return BC_EXIT_USAGE;
	code = bc_convert_args_operands(&c->args, argc, argv, BC_FILES_SORTED);
	if (code != BC_EXIT_OK)
		return code;
	code = bc_convert_args_run(&c->args, on_cut_batch, c);
	if (c->args.has_run)
		print_summary(c);
	return code;
}

int bc_cmd_cut(const struct bc_console *console, int argc, char **argv)
{
	struct cut *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		return bc_print_no_memory(console);
	}
	c->console = console;
	enum bc_exit code = bc_convert_args_init(&c->args, console, argc);
	if (code == BC_EXIT_OK) {
		prepare_args(c);
		code = read_and_cut(c, argc, argv);
	}
	bc_convert_args_free(&c->args);
	bc_name_map_close(c->names);
	free(c);
	return code;
}
