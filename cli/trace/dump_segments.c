#include "cli/trace/dump_segments.h"

#include <inttypes.h>

#include "formats/base/rfc3339.h"

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

/* Whether a chunk may contain something to print; if so, sets *bounds. */
static bool get_bounds(
	struct bc_dump *dump, const struct bc_chunk_info *chunk, struct bc_filter_bounds *bounds)
{
	const struct bc_segment_header *header = bc_reader_header(dump->reader);
	struct bc_filter *filter = &dump->args.filter;
	struct bc_chunk_info info = *chunk;
	uint64_t end = info.first_record + info.records;

	dump->clock_hz = header != NULL ? header->clock_hz : 0;
	dump->end = end > dump->end ? end : dump->end;
	if (!dump->has_start) {
		dump->has_start = true;
		dump->start_ns = info.wall_ns;
		bc_filter_start(filter, info.wall_ns);
	}
	if (filter->has_wall && dump->clock_hz == 0 && !dump->has_warned) {
		dump->has_warned = true;
		bc_print_error(dump->console, NULL,
			"clock rate unknown: --from and --to select whole chunks, by the time of "
			"day of their first record");
	}
	info.events = dump->is_plain ? 0 : info.events;
	return bc_filter_chunk(filter, &info, dump->clock_hz, bounds);
}

static void print_chunk(struct bc_dump *dump, const struct bc_chunk *chunk)
{
	const struct bc_chunk_info *info = &chunk->info;
	struct bc_filter_bounds bounds;
	uint32_t from = 0;
	uint32_t to = 0;

	if (!get_bounds(dump, info, &bounds))
		return;
	if (info->records != 0) {
		from = (uint32_t)(bounds.numbers.first - info->first_record);
		to = (uint32_t)(bounds.numbers.last - info->first_record) + 1;
	}
	bc_dump_epoch(dump, info->epoch);
	if (dump->is_by_record)
		print_by_record(dump, chunk, from, to, bounds.ticks);
	else
		print_part(dump, chunk, from, to);
}

static bool needs_chunk(void *context, const struct bc_chunk_info *info)
{
	struct bc_filter_bounds bounds;

	return get_bounds(context, info, &bounds);
}

static bool print_batch(void *context, const struct bc_batch *batch)
{
	if (batch->chunk != NULL)
		print_chunk(context, batch->chunk);
	return true;
}

void bc_dump_segments(struct bc_dump *dump, struct bc_file *file)
{
	const struct bc_reader_options options = {.format = dump->format,
		.as_records = true,
		.needs_chunk = dump->is_part ? needs_chunk : NULL,
		.context = dump,
		.is_partial = file->is_partial,
		.index_fd = file->is_regular ? file->fd : -1,
		.sequence = &dump->sequence};

	bc_dump_read(dump, file, &options, print_batch, dump);
}
