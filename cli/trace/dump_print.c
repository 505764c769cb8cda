#include "cli/trace/dump_print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io/record_text.h"
#include "cli/io/trace.h"
#include "formats/base/text.h"
#include "formats/bus/bcp1.h"
#include "formats/bus/record.h"
#include "formats/bus/sample.h"
#include "formats/codec/format.h"

void bc_dump_gap(struct bc_dump *dump, const struct bc_event *gap)
{
	char text[BC_GAP_TEXT_MAX];

	if (!dump->is_plain)
		bc_output_format(&dump->output, "# gap: %s\n", bc_gap_text(text, gap));
}

void bc_dump_note(struct bc_dump *dump, const char *word, const char *text, size_t bytes)
{
	if (dump->is_plain)
		return;
	bc_output_format(&dump->output, "# %s%s", word, bytes != 0 ? ": " : "");
	bc_output_safe_bytes(&dump->output, text, bytes);
	bc_output_text(&dump->output, "\n", 1);
}

void bc_dump_epoch(struct bc_dump *dump, uint32_t epoch)
{
	if (dump->has_epoch && dump->epoch != epoch && !dump->is_plain)
		bc_output_format(&dump->output, "# epoch %" PRIu32 "\n", epoch);
	dump->has_epoch = true;
	dump->epoch = epoch;
}

void bc_dump_tick(struct bc_dump *dump, char before, uint64_t tick)
{
	if (dump->time != BC_DUMP_TICK)
		return;
	dump->output.used--; /* over the newline */
	bc_output_format(&dump->output, "%c%" PRIu64 "\n", before, tick);
}

void bc_dump_name(struct bc_dump *dump, char before, bool is_port, uint64_t addr)
{
	const char separator[] = {before, '\0'};

	if (dump->names == NULL)
		return;
	dump->output.used--; /* over the newline */
	bc_name_print(&dump->output, dump->names, is_port, addr, separator, "");
	bc_output_text(&dump->output, "\n", 1);
}

bool bc_dump_check(struct bc_dump *dump, const struct bc_file *file)
{
	enum bc_format format = file->probe.format;
	uint32_t holds = bc_format_info(format)->holds;
	bool is_bus = bc_format_is_bus(format) || bc_dialect_bytes(format) != 0;
	const char *why = NULL;

	if (dump->time > BC_DUMP_TICK)
		why = "--time relative and --time wall need segments";
	else if (dump->time == BC_DUMP_TICK && (!is_bus || (holds & BC_HAS_TIME) == 0))
		why = "--time tick works only with segments, BYU and bcp1";
	else if (dump->names != NULL && !is_bus)
		why = "--map and --symbols work only with segments, BYU, bcp1 and raw6";
	if (why != NULL)
		bc_print_error(dump->console, file->name, "%s", why);
	if (why == NULL && bc_filter_args_check(&dump->args, dump->console, format, holds))
		return true;
	dump->exit = bc_exit_worse(dump->exit, BC_EXIT_USAGE);
	return false;
}

void bc_dump_damage(struct bc_dump *dump, const struct bc_file *file, uint64_t offset,
	uint64_t bytes, const char *what)
{
	bc_print_damage(dump->console, file->name, offset, bytes, what);
	dump->exit = bc_exit_worse(dump->exit, BC_EXIT_DAMAGED);
}

void bc_dump_read(struct bc_dump *dump, const struct bc_file *file,
	const struct bc_reader_options *options,
	bool (*print)(void *context, const struct bc_batch *batch), void *context)
{
	struct bc_batch batch;
	uint64_t faults = 0;
	bool is_more = true;

	dump->reader = NULL;
	int rc = bc_reader_open(&dump->reader, file->input, file->probe.format, options);
	while (rc >= 0 && is_more && !bc_output_failed(&dump->output)) {
		rc = bc_reader_next(dump->reader, &batch);
		if (rc <= 0)
			break;
		is_more = print(context, &batch);
		if (bc_file_would_wait(file))
			bc_output_flush(&dump->output);
		if (batch.fault != NULL)
			bc_print_fault(dump->console, file->name, batch.fault, faults++);
	}
	bc_print_faults_left(dump->console, file->name, faults);
	if (faults != 0)
		dump->exit = bc_exit_worse(dump->exit, BC_EXIT_DAMAGED);
	if (rc < 0)
		dump->exit = bc_exit_worse(
			dump->exit, bc_print_read_error(dump->console, file, rc));
	if (is_more && (dump->reader == NULL || bc_reader_header(dump->reader) == NULL))
		dump->exit = bc_exit_worse(dump->exit,
			bc_print_holes_before(dump->console, file->name, &dump->sequence));
	bc_reader_close(dump->reader);
}

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

/* Records or samples per read; their text must fit the output buffer. */
#define RUN       4096u
#define BYTES_MAX 24u

_Static_assert(RUN *BC_RECORD_TEXT_MAX <= BC_OUTPUT_BYTES, "a run's text fits the output's buffer");

/* The state while dumping a file of records or samples without frames. */
struct plain {
	struct bc_dump *dump;
	const struct bc_file *file;
	size_t stride;
	uint64_t number;           /* of the next record */
	uint64_t tick;             /* of the last record */
	size_t held;               /* bytes in `in` that are the start of a record */
	struct bc_mapping mapping; /* of samples */
	uint8_t in[RUN * BYTES_MAX];
	uint8_t records[RUN * BC_RECORD_BYTES];
};

/* Adds the time of a record. Returns false with a message if the tick does not fit 64 bits. */
static bool advance(struct plain *p, uint64_t time)
{
	uint64_t tick;
	char what[80];

	if (__builtin_add_overflow(p->tick, time != BC_TIME_NONE ? time : 0, &tick)) {
		snprintf(what, sizeof(what),
			"record %" PRIu64 ": its time leads beyond 2^64 ticks; skipped", p->number);
		bc_dump_damage(p->dump, p->file, p->number * p->stride, p->stride, what);
		return false;
	}
	p->tick = tick;
	return true;
}

static void print_records(struct plain *p, const uint8_t *records, size_t n)
{
	struct bc_dump *dump = p->dump;

	if (!dump->is_part && !dump->is_by_record) {
		char *out = bc_output_reserve(&dump->output, n * BC_RECORD_TEXT_MAX);
		dump->output.used += bc_record_text_print(&dump->text, out, records, n);
		p->number += n;
		return;
	}
	for (size_t i = 0; i < n; i++, records += BC_RECORD_BYTES, p->number++) {
		uint64_t ticks;
		if (!advance(p, bc_le32(records + 8)) ||
			!bc_dump_selects(dump, p->number, p->tick, 0) ||
			bc_filter_records(&dump->args.filter, records, 1, &ticks) == 0)
			continue;
		char *out = bc_output_reserve(&dump->output, BC_RECORD_TEXT_MAX);
		dump->output.used += bc_record_text_print(&dump->text, out, records, 1);
		bc_dump_tick(dump, '\t', p->tick);
		bc_dump_name(dump, '\t', bc_is_port_access(records[4]), bc_le32(records));
	}
}

static void print_sample(struct bc_dump *dump, const struct bc_mapping *mapping,
	const uint8_t *sample, uint64_t tick)
{
	struct bc_entry entry;

	char *out = bc_output_reserve(&dump->output, BC_SAMPLE_TEXT_MAX);
	dump->output.used += bc_sample_print(out, sample);
	bc_dump_tick(dump, ' ', tick);
	bc_entry_of_sample(&entry, sample, mapping, 0, 0, 0);
	bc_dump_name(dump, ' ', bc_is_port_access(entry.type), entry.addr);
}

static void print_all(struct bc_dump *dump, const uint8_t *samples, size_t n, size_t stride)
{
	while (n != 0) {
		size_t run = n < RUN ? n : RUN;
		char *out = bc_output_reserve(&dump->output, run * BC_SAMPLE_TEXT_MAX);
		char *p = out;
		for (size_t i = 0; i < run; i++, samples += stride)
			p += bc_sample_print(p, samples);
		dump->output.used += (size_t)(p - out);
		n -= run;
	}
}

/* Whether a sample matches by address, type and processor, as the record that is made of it. */
static bool matches_sample(const struct bc_dump *dump, const struct bc_mapping *mapping,
	const uint8_t *sample, uint8_t proc, uint64_t number)
{
	struct bc_filter filter = dump->args.filter;
	struct bc_entry entry;

	bc_entry_of_sample(&entry, sample, mapping, proc, number, 0);
	filter.ticks = filter.epochs = (struct bc_span){0, UINT64_MAX};
	return bc_filter_entry(&filter, &entry);
}

static void init_mapping(struct bc_mapping *mapping)
{
	struct bc_mapping_options options = bc_mapping_options_default();

	options.keep_invalid = true;
	bc_mapping_init(mapping, &options);
}

/* Samples without frames have no time. */
static void print_samples(struct plain *p, const uint8_t *samples, size_t n)
{
	const struct bc_dump *dump = p->dump;

	if (!dump->is_part && !dump->is_by_record) {
		print_all(p->dump, samples, n, BC_SAMPLE_BYTES);
		p->number += n;
		return;
	}
	for (size_t i = 0; i < n; i++, p->number++, samples += BC_SAMPLE_BYTES)
		if (bc_span_has(dump->args.filter.numbers, p->number) &&
			matches_sample(dump, &p->mapping, samples, 0, p->number))
			print_sample(p->dump, &p->mapping, samples, 0);
}

static bool matches_wide(const struct bc_dump *dump, const uint8_t *narrow, uint64_t addr)
{
	struct bc_filter filter = dump->args.filter;
	struct bc_entry entry;

	bc_entry_of_record(&entry, narrow, 0, 0);
	entry.addr = addr;
	filter.numbers = filter.ticks = filter.epochs = (struct bc_span){0, UINT64_MAX};
	return bc_filter_entry(&filter, &entry);
}

/* Prints a record with an address or time of more than 32 bits. */
static void print_wide(struct plain *p, const uint8_t *in)
{
	struct bc_dump *dump = p->dump;
	uint8_t narrow[BC_RECORD_BYTES] = {0};
	uint64_t addr;
	uint64_t time;

	bc_dialect_fields(in, p->file->probe.format, &addr, &time);
	memcpy(narrow + 4, in + 8, 4);
	if (advance(p, time) && bc_dump_selects(dump, p->number, p->tick, 0) &&
		matches_wide(dump, narrow, addr)) {
		struct bc_text middle = bc_record_text_middle(&dump->text, narrow);
		bc_output_format(&dump->output,
			dump->text.is_b2a ? "%08" PRIx64 "%.*s%" PRId64 "\n"
					  : "%08" PRIx64 "%.*s%08" PRIx64 "\n",
			addr, (int)middle.bytes, middle.at, time);
		bc_dump_tick(dump, '\t', p->tick);
		bc_dump_name(dump, '\t', bc_is_port_access(narrow[4]), addr);
	}
	p->number++;
}

static void print_plain(struct plain *p, size_t n)
{
	enum bc_format format = p->file->probe.format;
	const uint8_t *in = p->in;

	if (format == BC_FORMAT_RAW6) {
		print_samples(p, in, n);
		return;
	}
	while (n != 0) {
		size_t whole = bc_dialect_read(p->records, in, n, format);
		print_records(p, p->records, whole);
		in += whole * p->stride;
		n -= whole;
		if (n == 0)
			break;
		print_wide(p, in);
		in += p->stride;
		n--;
	}
}

/* Reports a read error or a torn record at the end of the file. */
static void finish_plain(struct plain *p, ssize_t rc)
{
	struct bc_dump *dump = p->dump;
	const char *word = p->file->probe.format == BC_FORMAT_RAW6 ? "sample" : "record";

	if (rc < 0 && rc != -EBADMSG) {
		dump->exit = bc_exit_worse(
			dump->exit, bc_print_read_error(dump->console, p->file, (int)rc));
		return;
	}
	if (rc == -EBADMSG)
		bc_print_error(dump->console, p->file->name,
			"damaged or torn %s data after %" PRIu64 " %s%s",
			bc_packing_name(p->file->probe.packing), p->number, word,
			bc_plural(p->number));
	if (p->held != 0)
		bc_print_error(dump->console, p->file->name,
			"torn: %zu extra byte%s after %" PRIu64 " whole %s%s", p->held,
			bc_plural(p->held), p->number, word, bc_plural(p->number));
	if (rc < 0 || p->held != 0)
		dump->exit = bc_exit_worse(dump->exit, BC_EXIT_DAMAGED);
}

void bc_dump_plain(struct bc_dump *dump, struct bc_file *file)
{
	bool is_raw6 = file->probe.format == BC_FORMAT_RAW6;
	struct plain *p = malloc(sizeof(*p));

	if (p == NULL) {
		dump->exit = bc_exit_worse(
			dump->exit, bc_print_read_error(dump->console, file, -ENOMEM));
		return;
	}
	p->dump = dump;
	p->file = file;
	p->stride = is_raw6 ? BC_SAMPLE_BYTES : bc_dialect_bytes(file->probe.format);
	p->number = 0;
	p->tick = 0;
	p->held = 0;
	if (is_raw6)
		init_mapping(&p->mapping);
	for (;;) {
		size_t space = RUN * p->stride - p->held;
		ssize_t rc = bc_input_read(file->input, p->in + p->held, space);
		if (rc <= 0) {
			finish_plain(p, rc);
			break;
		}
		size_t bytes = p->held + (size_t)rc;
		size_t n = bytes / p->stride;
		print_plain(p, n);
		if (bc_output_failed(&dump->output) || p->number > dump->args.filter.numbers.last)
			break;
		if (bc_file_would_wait(file))
			bc_output_flush(&dump->output);
		p->held = bytes - n * p->stride;
		memmove(p->in, p->in + n * p->stride, p->held);
	}
	dump->end = p->number > dump->end ? p->number : dump->end;
	free(p);
}

static void print_frame(struct bc_dump *dump, const struct bc_frames *f,
	const struct bc_mapping *mapping, uint64_t number)
{
	const struct bc_filter *filter = &dump->args.filter;
	const struct bc_bcp1_header *header = &f->frame.header;
	const uint8_t *sample = f->frame.samples;
	bool has_agent = (header->flags & BC_BCP1_AGENT) != 0;
	uint64_t tick = header->tick;
	uint64_t last = number + header->samples - 1;

	if (header->samples == 0 || last < filter->numbers.first || number > filter->numbers.last ||
		!bc_span_has(filter->epochs, f->epoch))
		return;
	bc_dump_epoch(dump, f->epoch);
	if (!dump->is_part && !dump->is_by_record) {
		print_all(dump, sample, header->samples, BC_BCP1_SAMPLE_BYTES);
		return;
	}
	for (uint32_t i = 0; i < header->samples; i++, sample += BC_BCP1_SAMPLE_BYTES) {
		tick += i != 0 ? bc_le16(sample + BC_SAMPLE_BYTES) : 0;
		if (bc_dump_selects(dump, number + i, tick, f->epoch) &&
			matches_sample(dump, mapping, sample,
				has_agent ? sample[5] & 15 : header->proc, number + i))
			print_sample(dump, mapping, sample, tick);
	}
}

/* Prints a gap if the next sample is selected. */
static void print_gap(struct bc_dump *dump, const struct bc_file *file, const struct bc_frames *f,
	uint64_t number)
{
	if (bc_dump_selects(dump, number, f->frame.header.tick, f->epoch)) {
		bc_dump_epoch(dump, f->epoch);
		const struct bc_event gap = {.cause = (uint8_t)f->gap.cause,
			.exact = f->gap.is_exact,
			.value = f->gap.lost};
		bc_dump_gap(dump, &gap);
	}
	if (f->gap.cause != BC_GAP_SEQUENCE)
		return;
	bc_print_error(
		dump->console, file->name, "frames are missing before sample %" PRIu64, number);
	dump->exit = bc_exit_worse(dump->exit, BC_EXIT_DAMAGED);
}

void bc_dump_frames(struct bc_dump *dump, struct bc_file *file)
{
	struct bc_frames *f = NULL;
	struct bc_mapping *mapping = malloc(sizeof(*mapping));
	uint64_t number = 0;
	int rc = mapping == NULL ? -ENOMEM : bc_frames_open(&f, bc_input_stream(file->input));
	bool is_over = rc != 0;

	dump->has_epoch = false;
	if (mapping != NULL)
		init_mapping(mapping);
	while (!is_over && !bc_output_failed(&dump->output) &&
		number <= dump->args.filter.numbers.last) {
		rc = bc_frames_next(f);
		switch (rc) {
		case BC_FRAMES_FRAME:
			print_frame(dump, f, mapping, number);
			number += f->frame.header.samples;
			break;
		case BC_FRAMES_GAP:
			print_gap(dump, file, f, number);
			break;
		case BC_FRAMES_TRIGGER:
			if (bc_dump_selects(dump, number, f->frame.header.tick, f->epoch)) {
				bc_dump_epoch(dump, f->epoch);
				bc_dump_note(dump, "trigger", NULL, 0);
			}
			break;
		case BC_FRAMES_DAMAGE:
			bc_dump_damage(
				dump, file, f->damage.offset, f->damage.bytes, f->damage.what);
			break;
		default: /* end or error */
			is_over = true;
		}
		if (bc_file_would_wait(file))
			bc_output_flush(&dump->output);
	}
	dump->end = number > dump->end ? number : dump->end;
	if (rc == -EBADMSG)
		bc_print_error(dump->console, file->name,
			"damaged or torn %s data after %" PRIu64 " sample%s",
			bc_packing_name(file->probe.packing), number, bc_plural(number));
	else if (rc < 0)
		bc_print_read_error(dump->console, file, rc);
	if (rc < 0)
		dump->exit = bc_exit_worse(
			dump->exit, rc == -EBADMSG ? BC_EXIT_DAMAGED : BC_EXIT_FAILED);
	bc_frames_close(f);
	free(mapping);
}
