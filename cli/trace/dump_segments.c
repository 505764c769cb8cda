#include "cli/trace/dump_segments.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/rfc3339.h"
#include "formats/segment/segment_index.h"
#include "formats/segment/segment_reader.h"

#define NS_PER_S 1000000000u

/* The text of this many records fits the output buffer. */
#define RUN_RECORDS (BC_OUTPUT_BYTES / BC_RECORD_TEXT_MAX)

static const uint8_t *record_at(const struct bc_chunk *chunk, uint32_t n)
{
	return chunk->records + (size_t)n * BC_RECORD_BYTES;
}

static void print_run(
	struct bc_dump *dump, const struct bc_chunk *chunk, uint32_t from, uint32_t to)
{
	while (from < to && !bc_output_failed(&dump->output)) {
		uint32_t n = to - from < RUN_RECORDS ? to - from : RUN_RECORDS;
		char *out = bc_output_reserve(&dump->output, (size_t)n * BC_RECORD_TEXT_MAX);
		dump->output.used += bc_record_text_print(
			&dump->text, out, record_at(chunk, from), n);
		from += n;
	}
}

static void print_event(
	struct bc_dump *dump, const struct bc_chunk *chunk, const struct bc_event *event)
{
	const char *text = chunk->text + event->text;

	switch (event->kind) {
	case BC_EVENT_GAP:
		bc_dump_gap(dump, event);
		break;
	case BC_EVENT_MARK:
		bc_dump_note(dump, "mark", text, event->text_bytes);
		break;
	case BC_EVENT_TRIGGER:
		bc_dump_note(dump, "trigger", text, event->text_bytes);
		break;
	case BC_EVENT_NOTE:
		bc_dump_note(dump, "note", text, event->text_bytes);
		break;
	default: /* anchors are not printed */
		break;
	}
}

/* Prints the records [from, to) and the events among them, including those at the chunk's end if
 * `to` is the end. */
static void print_part(
	struct bc_dump *dump, const struct bc_chunk *chunk, uint32_t from, uint32_t to)
{
	const struct bc_chunk_info *info = &chunk->info;

	for (uint32_t i = 0; i < info->events && !dump->is_plain; i++) {
		const struct bc_event *event = &chunk->events[i];
		if (event->position < from || event->kind == BC_EVENT_ANCHOR)
			continue;
		if (event->position > to || (event->position == to && to < info->records))
			break;
		print_run(dump, chunk, from, event->position);
		from = event->position;
		print_event(dump, chunk, event);
	}
	print_run(dump, chunk, from, to);
}

/* Appends the time of a record to its line. */
static void append_time(struct bc_dump *dump, const struct bc_chunk_info *info, uint64_t tick)
{
	char wall[BC_RFC3339_BYTES];

	if (dump->time == BC_DUMP_DELTA || dump->time == BC_DUMP_TICK) {
		bc_dump_tick(dump, '\t', tick);
		return;
	}
	int64_t ns = bc_chunk_wall(info, tick, dump->clock_hz);
	__int128 passed = (__int128)ns - dump->start_ns;
	uint64_t since = (uint64_t)(passed < 0 ? -passed : passed);
	dump->output.used--; /* over the newline */
	if (dump->clock_hz == 0) {
		bc_output_text(&dump->output, "\t-\n", 3);
	} else if (dump->time == BC_DUMP_WALL) {
		bc_rfc3339_write(wall, ns);
		bc_output_format(&dump->output, "\t%s\n", wall);
	} else {
		bc_output_format(&dump->output, "\t%s%" PRIu64 ".%09" PRIu64 "\n",
			passed < 0 ? "-" : "", since / NS_PER_S, since % NS_PER_S);
	}
}

/* Like print_part(), but looks at each record. */
static void print_by_record(struct bc_dump *dump, const struct bc_chunk *chunk, uint32_t from,
	uint32_t to, struct bc_span ticks)
{
	const struct bc_chunk_info *info = &chunk->info;
	uint64_t tick = info->first_tick;
	uint64_t matches = 0;
	uint32_t event = 0;
	bool is_in_time = bc_span_has(ticks, info->last_tick);

	for (uint32_t i = 0; i < to && !bc_output_failed(&dump->output); i++) {
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
			print_event(dump, chunk, &chunk->events[events_from]);
		if ((matches >> i % BC_FILTER_RECORDS & 1) == 0)
			continue;
		print_run(dump, chunk, i, i + 1);
		append_time(dump, info, tick);
		bc_dump_name(dump, '\t', bc_is_port_access(record[4]), bc_le32(record));
	}
	if (to == info->records && is_in_time)
		for (; event < info->events; event++)
			print_event(dump, chunk, &chunk->events[event]);
}

/* Finds the records of a chunk that are selected by number and epoch. Returns false if there are
 * none. */
static bool find_part(
	const struct bc_dump *dump, const struct bc_chunk_info *info, uint32_t *from, uint32_t *to)
{
	uint64_t first = info->first_record;
	uint64_t end = first + info->records;

	*from = 0;
	*to = info->records;
	if (!bc_span_has(dump->args.filter.epochs, info->epoch))
		return false;
	if (info->records == 0) /* only events, which precede record `first` */
		return dump->args.filter.numbers.last >= first &&
		       dump->args.filter.numbers.first <= first;
	if (dump->args.filter.numbers.first >= end || dump->args.filter.numbers.last < first)
		return false;
	if (dump->args.filter.numbers.first > first)
		*from = (uint32_t)(dump->args.filter.numbers.first - first);
	if (dump->args.filter.numbers.last < end - 1)
		*to = (uint32_t)(dump->args.filter.numbers.last - first) + 1;
	return true;
}

/* Whether a chunk may contain selected records or events, by its row. Sets *ticks to the part of it
 * that is selected by time. */
static bool is_row_selected(
	struct bc_dump *dump, const struct bc_chunk_info *row, struct bc_span *ticks)
{
	const struct bc_filter *filter = &dump->args.filter;
	struct bc_chunk_info info = *row;
	struct bc_filter_bounds bounds;
	uint32_t from;
	uint32_t to;

	*ticks = filter->ticks;
	if (!find_part(dump, row, &from, &to))
		return false;
	if (filter->has_wall && dump->clock_hz == 0 && !dump->has_warned) {
		dump->has_warned = true;
		bc_print_error(dump->console, NULL,
			"clock rate unknown: --from and --to select whole chunks, by the time of "
			"day of their first record");
	}
	if (info.records == 0 && !filter->has_wall)
		return info.last_tick >= ticks->first && info.first_tick <= ticks->last;
	info.events = dump->is_plain ? 0 : info.events;
	if (!bc_filter_chunk(filter, &info, dump->clock_hz, &bounds))
		return false;
	*ticks = bounds.ticks;
	return true;
}

static void print_chunk(struct bc_dump *dump, const struct bc_chunk *chunk)
{
	struct bc_span ticks;
	uint32_t from;
	uint32_t to;

	if (!is_row_selected(dump, &chunk->info, &ticks) ||
		!find_part(dump, &chunk->info, &from, &to))
		return;
	bc_dump_epoch(dump, chunk->info.epoch);
	if (dump->is_by_record)
		print_by_record(dump, chunk, from, to, ticks);
	else
		print_part(dump, chunk, from, to);
}

/* Returns true if records missing between the last chunk and this one could be selected by tick. */
static bool is_time_selected(const struct bc_dump *dump, const struct bc_chunk_info *info)
{
	const struct bc_chunk_info *last = &dump->last;
	bool has_last = dump->has_last && last->recording_tag == info->recording_tag;

	if (has_last && last->epoch != info->epoch)
		return (bc_span_has(dump->args.filter.epochs, last->epoch) &&
			       dump->args.filter.ticks.last > last->last_tick) ||
		       (bc_span_has(dump->args.filter.epochs, info->epoch) &&
			       dump->args.filter.ticks.first < info->first_tick) ||
		       (dump->args.filter.epochs.first < info->epoch &&
			       dump->args.filter.epochs.last > last->epoch);
	uint64_t low = has_last ? last->last_tick : 0;
	uint64_t high = info->first_tick;
	if (high > low + 1) { /* else the missing records share the ticks of their neighbours */
		low++;
		high--;
	}
	return bc_span_has(dump->args.filter.epochs, info->epoch) &&
	       dump->args.filter.ticks.first <= high && dump->args.filter.ticks.last >= low;
}

/* Returns true if some of the records missing between `first` and a chunk are selected. */
static bool is_hole_selected(
	const struct bc_dump *dump, const struct bc_chunk_info *info, uint64_t first)
{
	return dump->args.filter.numbers.first < info->first_record &&
	       dump->args.filter.numbers.last >= first && is_time_selected(dump, info);
}

/* Reports records missing before a chunk, if some of them are selected. */
static void report_missing(struct bc_dump *dump, const struct bc_file *file,
	const struct bc_chunk_info *info, uint64_t missing, uint64_t offset)
{
	uint64_t first = info->first_record - missing;

	if (!is_hole_selected(dump, info, first))
		return;
	bc_print_error(dump->console, file->name,
		"offset %" PRIu64 ": %" PRIu64 " record%s missing before chunk %" PRIu32
		" (from record %" PRIu64 ")",
		offset, missing, bc_plural(missing), info->number, first);
	dump->exit = bc_exit_worse(dump->exit, BC_EXIT_DAMAGED);
	const struct bc_event gap = {.cause = BC_GAP_DAMAGED, .exact = true, .value = missing};
	bc_dump_gap(dump, &gap);
}

/* Reports a loss that only the chunk's counts show, if its first record is selected. If records are
 * missing too, which was reported, the loss was among them. */
static void report_unreported(struct bc_dump *dump, const struct bc_file *file,
	const struct bc_chunk_info *info, const struct bc_missing *missing, uint64_t offset)
{
	if (!bc_span_has(dump->args.filter.numbers, info->first_record) ||
		!is_time_selected(dump, info))
		return;
	if (missing->records == 0)
		bc_print_error(dump->console, file->name,
			"offset %" PRIu64 ": %" PRIu64 " sample%s lost before chunk %" PRIu32
			", but no gap reports %s",
			offset, missing->samples, bc_plural(missing->samples), info->number,
			missing->samples == 1 ? "it" : "them");
	dump->exit = bc_exit_worse(dump->exit, BC_EXIT_DAMAGED);
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		const struct bc_event gap = {
			.cause = (uint8_t)cause, .value = missing->lost[cause]};
		if (gap.value != 0)
			bc_dump_gap(dump, &gap);
	}
}

static void set_last(struct bc_dump *dump, const struct bc_chunk_info *info)
{
	uint64_t end = info->first_record + info->records;

	dump->has_last = true;
	dump->last = *info;
	dump->end = end > dump->end ? end : dump->end;
}

/* Notes when the dump starts, of which `info` is the first chunk. */
static void set_start(struct bc_dump *dump, const struct bc_chunk_info *info)
{
	if (dump->has_start)
		return;
	dump->has_start = true;
	dump->start_ns = info->wall_ns;
	bc_filter_start(&dump->args.filter, info->wall_ns);
}

static int dump_chunk(struct bc_dump *dump, const struct bc_file *file,
	const struct bc_chunk *chunk, uint64_t offset)
{
	const struct bc_chunk_info *info = &chunk->info;
	struct bc_missing missing;
	char what[96];
	set_start(dump, info);
	int place = bc_sequence_check_chunk(&dump->sequence, chunk, &missing);

	if (place < 0)
		return place;
	if (missing.records != 0)
		report_missing(dump, file, info, missing.records, offset);
	if (missing.samples != 0)
		report_unreported(dump, file, info, &missing, offset);
	if (place == BC_SEQUENCE_DUPLICATE) {
		dump->repeated_chunks++;
		dump->repeated_records += info->records;
		return 0;
	}
	if (place == BC_SEQUENCE_LATE) {
		snprintf(what, sizeof(what),
			"chunk %" PRIu32 " (%" PRIu32 " record%s) is out of order", info->number,
			info->records, bc_plural(info->records));
		bc_dump_damage(dump, file, offset, bc_chunk_encoded_bytes(info), what);
	}
	print_chunk(dump, chunk);
	if (place == BC_SEQUENCE_NEXT)
		set_last(dump, info);
	return 0;
}

/* Reports the chunks of a file that were read before, usually because the file was given twice. */
static void report_repeated(struct bc_dump *dump, const struct bc_file *file)
{
	if (dump->repeated_chunks == 0)
		return;
	bc_print_error(dump->console, file->name,
		"%" PRIu64 " repeated chunk%s (%" PRIu64 " record%s) skipped",
		dump->repeated_chunks, bc_plural(dump->repeated_chunks), dump->repeated_records,
		bc_plural(dump->repeated_records));
	dump->exit = bc_exit_worse(dump->exit, BC_EXIT_DAMAGED);
	dump->repeated_chunks = 0;
	dump->repeated_records = 0;
}

/* Reports a segment without an index, unless its absence is already explained. */
static void finish_segment(struct bc_dump *dump, const struct bc_file *file, bool is_open)
{
	if (!is_open || file->is_partial)
		return;
	bc_print_error(dump->console, file->name,
		"no index: the file is torn or was not sealed; all intact chunks were printed");
	dump->exit = bc_exit_worse(dump->exit, BC_EXIT_DAMAGED);
}

/* Dumps what the reader finds. `is_whole`: it reads the whole file, so every segment should have
 * its index. Returns 0 or a negative errno. */
static int read_chunks(struct bc_dump *dump, const struct bc_file *file,
	struct bc_segment_reader *reader, struct bc_chunk *chunk, bool is_whole)
{
	const struct bc_segment_damage *damage = bc_segment_reader_damage(reader);
	bool has_begun = false;
	bool is_open = is_whole; /* an index is expected */
	int rc = 0;

	while (rc == 0 && !bc_output_failed(&dump->output)) {
		int found = bc_segment_read(reader, chunk);
		if (found < 0)
			return found;
		switch ((enum bc_segment_found)found) {
		case BC_FOUND_SEGMENT:
			finish_segment(dump, file, has_begun && is_open);
			bc_sequence_check_expect(&dump->sequence, bc_segment_reader_header(reader));
			dump->clock_hz = bc_segment_reader_header(reader)->clock_hz;
			has_begun = true;
			is_open = is_whole;
			break;
		case BC_FOUND_CHUNK:
			rc = dump_chunk(dump, file, chunk, bc_segment_reader_offset(reader));
			has_begun = true;
			break;
		case BC_FOUND_INDEX:
			is_open = false;
			break;
		case BC_FOUND_DAMAGE:
			bc_dump_damage(dump, file, damage->offset, damage->bytes, damage->what);
			is_open = false;
			break;
		case BC_FOUND_END:
			finish_segment(dump, file, is_open);
			return 0;
		}
	}
	return rc;
}

/* Returns true if a segment is the same as the previous one. */
static bool is_repeated(const struct bc_dump *dump, const struct bc_segment_index *index)
{
	struct bc_chunk_info info;

	if (index->head.rows == 0)
		return false;
	bc_segment_index_row(index, index->head.rows - 1, &info);
	return dump->has_last && dump->last.recording_tag == info.recording_tag &&
	       dump->last.segment == info.segment &&
	       dump->sequence.next >= info.first_record + info.records;
}

/* Returns true if selected records may be missing between the previous segments and this chunk,
 * which is the first of its segment. The chunk must then be read, because its gaps may account for
 * them. */
static bool follows_hole(const struct bc_dump *dump, const struct bc_chunk_info *info)
{
	const struct bc_sequence_check *c = &dump->sequence;

	return c->has_recording && c->tag == info->recording_tag && c->next < info->first_record &&
	       is_hole_selected(dump, info, c->next);
}

/* Skips a segment that was read before, and counts its selected chunks. */
static void skip_repeated(struct bc_dump *dump, const struct bc_segment_index *index)
{
	struct bc_chunk_info info;
	struct bc_span ticks;

	for (uint32_t row = 0; row < index->head.rows; row++) {
		bc_segment_index_row(index, row, &info);
		if (!is_row_selected(dump, &info, &ticks))
			continue;
		dump->repeated_chunks++;
		dump->repeated_records += info.records;
	}
}

/* Finds a run of adjacent chunks to read, starting at `row`: those with selected records, and also
 * the first one if it follows a selected hole. Returns the end of the run, `row` if it is empty. */
static uint32_t find_run(struct bc_dump *dump, const struct bc_segment_index *index, uint32_t row,
	bool follows, uint64_t *end)
{
	struct bc_chunk_info info;
	struct bc_span ticks;

	*end = bc_segment_index_row(index, row, &info);
	for (; row < index->head.rows; row++) {
		bc_segment_index_row(index, row, &info);
		if (!follows && !is_row_selected(dump, &info, &ticks))
			break;
		follows = false;
		*end += bc_chunk_encoded_bytes(&info);
	}
	return row;
}

/* Reads only the selected chunks, using the index, run by run. */
static int read_by_index(struct bc_dump *dump, const struct bc_file *file,
	struct bc_segment_reader *reader, struct bc_chunk *chunk,
	const struct bc_segment_index *index)
{
	struct bc_sequence_check *c = &dump->sequence;
	struct bc_chunk_info info;

	if (index->head.rows != 0) {
		bc_segment_index_row(index, 0, &info);
		set_start(dump, &info);
	}
	for (uint32_t row = 0; row < index->head.rows; row++) {
		uint64_t end;
		uint64_t begin = bc_segment_index_row(index, row, &info);
		bool follows = row == 0 && follows_hole(dump, &info);
		uint32_t run = find_run(dump, index, row, follows, &end);
		if (run != row) {
			/* Records that are skipped deliberately are not missing. */
			if (!follows)
				bc_sequence_check_jump(c, info.recording_tag, info.first_record);
			int rc = bc_segment_reader_range(reader, begin, end);
			if (rc == 0)
				rc = read_chunks(dump, file, reader, chunk, false);
			if (rc < 0)
				return rc;
			row = run - 1;
			bc_segment_index_row(index, row, &info);
		}
		set_last(dump, &info);
	}
	if (index->head.rows != 0)
		bc_sequence_check_jump(c, info.recording_tag, info.first_record + info.records);
	return 0;
}

void bc_dump_segments(struct bc_dump *dump, struct bc_file *file)
{
	struct bc_segment_reader *reader = NULL;
	struct bc_segment_index index = {.rows = NULL};
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	struct bc_segment_header header;
	int rc = chunk != NULL ? bc_input_segments(file->input, &reader) : -ENOMEM;

	dump->clock_hz = 0;
	if (file->is_regular && bc_segment_header_load(&header, file->fd) == 0)
		dump->clock_hz = header.clock_hz;
	if (rc == 0 && dump->is_part && file->is_regular &&
		bc_segment_index_load(&index, file->fd) == 0) {
		if (is_repeated(dump, &index))
			skip_repeated(dump, &index);
		else
			rc = read_by_index(dump, file, reader, chunk, &index);
	} else if (rc == 0) {
		rc = read_chunks(dump, file, reader, chunk, true);
	}
	report_repeated(dump, file);
	if (rc < 0)
		dump->exit = bc_exit_worse(
			dump->exit, bc_print_read_error(dump->console, file, rc));
	bc_segment_index_free(&index);
	bc_segment_reader_close(reader);
	free(chunk);
}
