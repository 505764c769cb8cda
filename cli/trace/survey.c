/* Segments: statistics are gathered chunk by chunk, then printed as text or JSON. A chunk that the
 * file has twice counts once (sequence_check). Of a sealed segment, chunks without events are rows
 * of the index; they are not read at all.
 *
 * Other files: three ways to count what a file has: frames, records of one size, entries. */
#include "cli/trace/survey.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io/trace.h"
#include "formats/base/text.h"
#include "formats/bus/bcp1.h"
#include "formats/bus/record.h"
#include "formats/bus/sample.h"
#include "formats/codec/reader.h"
#include "formats/segment/segment_header.h"
#include "formats/segment/segment_index.h"

/* ---- gathering */

/* Stores an annotation. Returns 0 or -ENOMEM. */
static int keep_annotation(
	struct bc_segment_info *info, const struct bc_chunk *chunk, const struct bc_event *event)
{
	size_t bytes = event->text_bytes;

	if (info->annotation_count == BC_INFO_ANNOTATIONS_MAX) {
		info->annotations_left++;
		return 0;
	}
	struct bc_segment_annotation *h = malloc(sizeof(*h) + bytes + 1);
	if (h == NULL)
		return -ENOMEM;
	h->next = NULL;
	h->kind = event->kind;
	h->record = chunk->info.first_record + event->position;
	h->bytes = bytes;
	memcpy(h->text, chunk->text + event->text, bytes);
	h->text[bytes] = '\0';
	if (info->last_annotation == NULL)
		info->annotations = h;
	else
		info->last_annotation->next = h;
	info->last_annotation = h;
	info->annotation_count++;
	return 0;
}

/* Merges a note into the metadata of the header. Ignores text that is not a JSON object. */
static void apply_note(
	struct bc_segment_info *info, const struct bc_chunk *chunk, const struct bc_event *event)
{
	char note[BC_METADATA_MAX];
	char err[128];

	if (!info->has_header || event->text_bytes >= sizeof(note) ||
		bc_recording_tag(info->header.recording) != chunk->info.recording_tag)
		return;
	memcpy(note, chunk->text + event->text, event->text_bytes);
	note[event->text_bytes] = '\0';
	(void)!bc_metadata_merge(info->header.metadata, note, err, sizeof(err));
}

static int add_events(struct bc_segment_info *info, const struct bc_chunk *chunk)
{
	int rc = 0;

	info->has_end = bc_recording_end_find(&info->end, chunk) || info->has_end;
	for (uint32_t i = 0; rc == 0 && i < chunk->info.events; i++) {
		const struct bc_event *event = &chunk->events[i];
		switch (event->kind) {
		case BC_EVENT_GAP:
			bc_losses_add_gap(&info->losses, event);
			continue;
		case BC_EVENT_MARK:
			info->marks++;
			break;
		case BC_EVENT_TRIGGER:
			info->triggers++;
			break;
		case BC_EVENT_NOTE:
			apply_note(info, chunk, event);
			break;
		default:
			continue;
		}
		rc = keep_annotation(info, chunk, event);
	}
	return rc;
}

/* Adds the chunk's duration. Each epoch of a recording has its own clock. */
static void add_ticks(struct bc_segment_info *info, const struct bc_chunk_info *chunk)
{
	if (info->epochs == 0 || info->epoch_tag != chunk->recording_tag ||
		info->epoch != chunk->epoch) {
		info->epochs++;
		info->epoch_tag = chunk->recording_tag;
		info->epoch = chunk->epoch;
		info->epoch_tick = chunk->first_tick;
		info->last_tick = chunk->first_tick;
	}
	if (chunk->first_tick < info->epoch_tick) {
		info->duration_ticks += info->epoch_tick - chunk->first_tick;
		info->epoch_tick = chunk->first_tick;
		if (info->epochs == 1)
			info->wall_ns = chunk->wall_ns;
	}
	if (chunk->last_tick > info->last_tick) {
		info->duration_ticks += chunk->last_tick - info->last_tick;
		info->last_tick = chunk->last_tick;
	}
	if (info->epochs == 1)
		info->first_tick = info->epoch_tick;
}

static void add_records(struct bc_segment_info *info, const struct bc_chunk_info *chunk)
{
	if (chunk->records == 0)
		return;
	uint64_t last = chunk->first_record + chunk->records - 1;
	if (info->records == 0 || chunk->first_record < info->first_record)
		info->first_record = chunk->first_record;
	if (info->records == 0 || last > info->last_record)
		info->last_record = last;
	info->records += chunk->records;
	add_ticks(info, chunk);
	for (int i = 0; i < 4; i++) {
		info->types[i] |= chunk->types[i];
		info->procs[i] |= chunk->procs[i];
	}
}

/* Adds a chunk unless it is a duplicate. Returns 0 or -ENOMEM. */
static int add_chunk(struct bc_segment_info *info, const struct bc_chunk *chunk)
{
	struct bc_missing missing;
	int place = bc_sequence_check_chunk(&info->sequence, chunk, &missing);

	if (place < 0 || place == BC_SEQUENCE_DUPLICATE)
		return place < 0 ? place : 0;
	if (missing.place.count != 0 && info->hole.count == 0)
		info->hole = missing.place;
	info->unreported += missing.samples;
	info->chunks++;
	if (!info->has_wall)
		info->wall_ns = chunk->info.wall_ns;
	info->has_wall = !info->has_header || info->header.axis[0] == '\0';
	add_records(info, &chunk->info);
	return add_events(info, chunk);
}

static void note_damage(struct bc_segment_info *info, const struct bc_segment_damage *damage)
{
	if (info->damages++ == 0)
		info->damage = *damage;
}

/* Reads everything that the reader finds. */
static int read_all(
	struct bc_segment_info *info, struct bc_segment_reader *reader, struct bc_chunk *chunk)
{
	bool is_open = false;

	for (;;) {
		int found = bc_segment_read(reader, chunk);
		int rc = 0;
		if (found < 0)
			return found;
		switch ((enum bc_segment_found)found) {
		case BC_FOUND_SEGMENT:
			info->is_sealed &= !is_open;
			info->segments++;
			is_open = true;
			if (!info->has_header)
				info->header = *bc_segment_reader_header(reader);
			info->has_header = true;
			break;
		case BC_FOUND_CHUNK:
			rc = add_chunk(info, chunk);
			break;
		case BC_FOUND_INDEX:
			is_open = false;
			break;
		case BC_FOUND_DAMAGE:
			note_damage(info, bc_segment_reader_damage(reader));
			break;
		case BC_FOUND_END:
			info->is_sealed &= !is_open && bc_segment_reader_is_sealed(reader);
			return 0;
		}
		if (rc < 0)
			return rc;
	}
}

/* Reads the events of a chunk from its header in the file; none if that is damaged. */
static int read_events(struct bc_segment_info *info, int fd, uint64_t offset,
	const struct bc_chunk_info *row, struct bc_chunk *chunk)
{
	int rc = bc_chunk_header_load(chunk, fd, offset, row);

	if (rc != -EBADMSG)
		return rc;
	chunk->info = *row;
	chunk->info.events = 0;
	struct bc_segment_damage damage = {
		.offset = offset, .bytes = bc_chunk_info_header_bytes(row)};
	snprintf(damage.what, sizeof(damage.what), "the header of chunk %" PRIu32 " is damaged",
		row->number);
	note_damage(info, &damage);
	return 0;
}

/* Reads a sealed segment: its header, its index, and the headers of chunks that have events. */
static int gather_by_index(struct bc_segment_info *info, const struct bc_file *file,
	struct bc_segment_reader *reader, struct bc_chunk *chunk,
	const struct bc_segment_index *index)
{
	uint64_t head_bytes = index->head.offset;
	struct bc_chunk_info row;

	if (index->head.rows != 0)
		head_bytes = bc_segment_index_row(index, 0, &row);
	int rc = bc_segment_reader_range(reader, 0, head_bytes);
	if (rc == 0)
		rc = read_all(info, reader, chunk);
	info->is_sealed = true;
	info->segments = 1;
	for (uint32_t i = 0; rc == 0 && i < index->head.rows; i++) {
		uint64_t offset = bc_segment_index_row(index, i, &row);
		chunk->info = row;
		if (row.events != 0)
			rc = read_events(info, file->fd, offset, &row, chunk);
		if (rc == 0)
			rc = add_chunk(info, chunk);
	}
	return rc;
}

int bc_segment_info_gather(struct bc_segment_info *info, struct bc_file *file)
{
	struct bc_segment_reader *reader = NULL;
	struct bc_segment_index index = {.rows = NULL};
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	int rc = chunk != NULL ? bc_input_segments(file->input, &reader) : -ENOMEM;

	memset(info, 0, sizeof(*info));
	info->bytes = file->bytes;
	info->is_sealed = true;
	if (rc == 0 && file->is_regular && bc_segment_index_load(&index, file->fd) == 0) {
		rc = gather_by_index(info, file, reader, chunk, &index);
	} else if (rc == 0) {
		if (file->is_regular)
			bc_segment_reader_skip_records(reader, file->fd, NULL, NULL);
		rc = read_all(info, reader, chunk);
		if (!file->is_regular)
			info->bytes = bc_segment_reader_offset(reader);
	}
	if (file->is_killed && !info->has_end) {
		info->losses.gaps[BC_GAP_CRASH]++;
		info->losses.inexact[BC_GAP_CRASH]++;
	}
	bc_segment_index_free(&index);
	bc_segment_reader_close(reader);
	free(chunk);
	return rc;
}

void bc_segment_info_spans(const struct bc_segment_info *info, struct bc_segment_span *first,
	struct bc_segment_span *last)
{
	const struct bc_sequence_check *check = &info->sequence;

	*last = (struct bc_segment_span){.tag = check->tag,
		.segment = check->latest_segment,
		.is_read = info->chunks != 0,
		.next = check->next};
	*first = *last;
	first->first = check->start;
	first->segment = check->start_segment;
	if (info->has_header) {
		first->tag = bc_recording_tag(info->header.recording);
		first->segment = info->header.segment;
		first->first = info->header.first_record;
	}
	if (info->chunks == 0) {
		last->tag = first->tag;
		last->segment = first->segment;
	}
}

void bc_segment_info_free(struct bc_segment_info *info)
{
	bc_sequence_check_reset(&info->sequence);
	while (info->annotations != NULL) {
		struct bc_segment_annotation *next = info->annotations->next;
		free(info->annotations);
		info->annotations = next;
	}
	info->last_annotation = NULL;
}

/* ---- text */

static double duration_s(const struct bc_segment_info *info)
{
	return (double)info->duration_ticks / (double)info->header.clock_hz;
}

static uint64_t unpacked_bytes(const struct bc_segment_info *info)
{
	return info->records * BC_RECORD_BYTES;
}

static double ratio(const struct bc_segment_info *info)
{
	return info->bytes != 0 ? (double)unpacked_bytes(info) / (double)info->bytes : 0;
}

static bool has_bit(const uint64_t bitmap[4], unsigned n)
{
	return (bitmap[n / 64] >> n % 64 & 1) != 0;
}

static const char *type_name(char out[8], unsigned type)
{
	const char *name = bc_reqtype_name((uint8_t)type);

	snprintf(out, 8, "%02x", type);
	return name != NULL ? name : out;
}

static void print_mapping(struct bc_output *output, const struct bc_segment_header *h)
{
	char attr[BC_CYCLE_TYPES * 4 + 1] = "";

	if (!h->has_mapping)
		return;
	for (size_t i = 0, at = 0; i < BC_CYCLE_TYPES; i++)
		at += (size_t)snprintf(attr + at, sizeof(attr) - at, "%s%x", i != 0 ? " " : "",
			h->mapping.attr[i]);
	bc_status_line(output, "mapping", "sizes of BYU %s, invalid cycles %s, attr %s",
		h->mapping.size_v1_0 ? "v1.0" : "v1.1",
		h->mapping.keep_invalid ? "kept" : "dropped", attr);
}

static void print_header(struct bc_output *output, const struct bc_segment_info *info)
{
	const struct bc_segment_header *h = &info->header;
	char text[sizeof(h->source_kind) + sizeof(h->source_name)];

	bc_status_line_safe(output, "recording", h->recording);
	if (h->label[0] != '\0')
		bc_status_line_safe(output, "label", h->label);
	bc_status_line(output, "segment", "%" PRIu32, h->segment);
	if (h->continues[0] != '\0')
		bc_status_line_safe(output, "continues", h->continues);
	snprintf(text, sizeof(text), "%s %s", h->source_kind, h->source_name);
	bc_status_line_safe(output, "source", text);
	if (h->board_serial[0] != '\0' || h->board_firmware[0] != '\0') {
		snprintf(text, sizeof(text), "serial %s, firmware %s", h->board_serial,
			h->board_firmware);
		bc_status_line_safe(output, "board", text);
	}
	if (h->clock_hz != 0)
		bc_status_line(output, "clock", "%" PRIu64 " Hz", h->clock_hz);
	else
		bc_status_line(output, "clock", "unknown");
	print_mapping(output, h);
	bc_status_line_safe(output, "host", h->host);
	bc_status_line_safe(output, "program", h->program);
	if (h->metadata[0] == '\0')
		return;
	bc_output_format(output, "  %-11s ", "metadata");
	bc_output_escaped(output, h->metadata);
	bc_output_text(output, "\n", 1);
}

static void print_gaps(struct bc_output *output, const struct bc_segment_info *info)
{
	const struct bc_loss sum = bc_losses_sum(&info->losses);
	char causes[512] = "";
	char lost[BC_LOSS_TEXT_MAX];
	size_t at = 0;

	for (unsigned i = 0; i < BC_GAP_CAUSES; i++)
		if (info->losses.gaps[i] != 0)
			at += (size_t)snprintf(causes + at, sizeof(causes) - at, "%s%s %s",
				at != 0 ? ", " : "", BC_GROUPED(info->losses.gaps[i]),
				bc_gap_cause_name(i));
	if (sum.gaps == 0)
		bc_status_line(output, "gaps", "0");
	else
		bc_status_line(output, "gaps", "%s (%s), %s", BC_GROUPED(sum.gaps), causes,
			bc_loss_text(lost, sum));
	if (info->unreported != 0)
		bc_status_line(output, "unreported", "%s sample%s lost without a gap",
			BC_GROUPED(info->unreported), bc_plural(info->unreported));
}

static void print_seen(struct bc_output *output, const struct bc_segment_info *info)
{
	char text[2048] = "";
	char number[8];
	size_t at = 0;

	for (unsigned i = 0; i < 256; i++)
		if (has_bit(info->types, i))
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s",
				at != 0 ? " " : "", type_name(number, i));
	bc_status_line(output, "types", "%s", text);
	text[0] = '\0';
	at = 0;
	for (unsigned i = 0; i < 256; i++)
		if (has_bit(info->procs, i))
			at += (size_t)snprintf(
				text + at, sizeof(text) - at, "%s%u", at != 0 ? " " : "", i);
	bc_status_line(output, "processors", "%s", text);
}

static void print_annotations(struct bc_output *output, const struct bc_segment_info *info)
{
	for (const struct bc_segment_annotation *h = info->annotations; h != NULL; h = h->next) {
		bc_output_format(output, "  %-11s record %" PRIu64 "%s",
			bc_event_kind_name(h->kind), h->record, h->bytes != 0 ? ": " : "");
		bc_output_safe_bytes(output, h->text, h->bytes);
		bc_output_text(output, "\n", 1);
	}
	if (info->annotations_left != 0)
		bc_status_line(output, "and more", "%s; buscap dump shows all",
			BC_GROUPED(info->annotations_left));
}

void bc_segment_info_print(struct bc_output *output, const struct bc_segment_info *info)
{
	char wall[BC_RFC3339_BYTES];

	if (info->has_header)
		print_header(output, info);
	bc_status_line(output, "chunks", "%s", BC_GROUPED(info->chunks));
	if (info->records != 0)
		bc_status_line(output, "records", "%s (%" PRIu64 " to %" PRIu64 ")",
			BC_GROUPED(info->records), info->first_record, info->last_record);
	else
		bc_status_line(output, "records", "0");
	if (info->records != 0)
		bc_status_line(output, "ticks", "%" PRIu64 " to %" PRIu64, info->first_tick,
			info->last_tick);
	bc_status_line(output, "epochs", "%s", BC_GROUPED(info->epochs));
	if (info->has_wall) {
		bc_rfc3339_write(wall, info->wall_ns);
		bc_status_line(output, "first", "%s", wall);
	}
	if (info->has_end) {
		bc_rfc3339_write(wall, info->end.ended_ns);
		bc_status_line(output, "ended", "%s, reason: %s%s", wall, info->end.reason,
			bc_recording_end_is_recovered(&info->end) ? " (recovered)" : "");
	}
	if (info->has_header && info->header.clock_hz != 0)
		bc_status_line(output, "duration", "%.6f s of bus time", duration_s(info));
	else
		bc_status_line(output, "duration", "%s ticks", BC_GROUPED(info->duration_ticks));
	const char *level = info->has_header ? info->header.compression : "";
	bc_status_line(output, "size", "%s bytes for %s of records, %.2f to 1%s%s",
		BC_GROUPED(info->bytes), BC_GROUPED(unpacked_bytes(info)), ratio(info),
		level[0] != '\0' ? ", compression " : "", level);
	print_gaps(output, info);
	bc_status_line(output, "marks", "%s", BC_GROUPED(info->marks));
	bc_status_line(output, "triggers", "%s", BC_GROUPED(info->triggers));
	print_annotations(output, info);
	print_seen(output, info);
}

/* ---- JSON */

static json_t *header_json(const struct bc_segment_header *h)
{
	json_t *metadata = bc_json_parse(h->metadata, strlen(h->metadata), JSON_ALLOW_NUL, NULL);

	return bc_json_merge(bc_segment_origin_json(h),
		BC_JSON_OBJECT({"compression", bc_json_text_or_null(h->compression)},
			{"metadata", metadata != NULL ? metadata : json_object()}));
}

static json_t *annotations_json(const struct bc_segment_info *info)
{
	json_t *list = json_array();

	for (const struct bc_segment_annotation *h = info->annotations; h != NULL; h = h->next)
		list = bc_json_append(
			list, BC_JSON_OBJECT({"kind", json_string(bc_event_kind_name(h->kind))},
				      {"record", bc_json_u64(h->record)},
				      {"text", bc_json_text_or_null(h->text)}));
	return list;
}

static json_t *seen_json(const uint64_t bitmap[4], bool is_type)
{
	json_t *list = json_array();
	char number[8];

	for (unsigned i = 0; i < 256; i++)
		if (has_bit(bitmap, i))
			list = bc_json_append(list,
				is_type ? json_string(type_name(number, i)) : json_integer(i));
	return list;
}

static json_t *end_json(const struct bc_segment_info *info)
{
	if (!info->has_end)
		return json_null();
	return BC_JSON_OBJECT({"reason", bc_json_text(info->end.reason)},
		{"ended", bc_json_time(info->end.ended_ns)},
		{"recovered", json_boolean(bc_recording_end_is_recovered(&info->end))},
		{"boot_id", bc_json_text_or_null(info->end.boot_id)});
}

json_t *bc_segment_info_json(const struct bc_segment_info *info)
{
	bool has_records = info->records != 0;
	bool has_clock = info->has_header && info->header.clock_hz != 0;
	json_t *object = BC_JSON_OBJECT({"sealed", json_boolean(info->is_sealed)},
		{"segments", bc_json_u64(info->segments)},
		{"damaged_places", bc_json_u64(info->damages)});

	if (info->has_header)
		object = bc_json_merge(object, header_json(&info->header));
	object = bc_json_merge(object,
		BC_JSON_OBJECT({"chunks", bc_json_u64(info->chunks)},
			{"records", bc_json_u64(info->records)},
			{"first_record", bc_json_u64_or_null(has_records, info->first_record)},
			{"last_record", bc_json_u64_or_null(has_records, info->last_record)},
			{"first_tick", bc_json_u64_or_null(has_records, info->first_tick)},
			{"last_tick", bc_json_u64_or_null(has_records, info->last_tick)},
			{"epochs", bc_json_u64(info->epochs)},
			{"duration_ticks", bc_json_u64(info->duration_ticks)},
			{"duration_s", has_clock ? bc_json_double(duration_s(info)) : json_null()},
			{"first_wall", info->has_wall ? bc_json_time(info->wall_ns) : json_null()},
			{"first_wall_ns",
				info->has_wall ? json_integer(info->wall_ns) : json_null()},
			{"end", end_json(info)}, {"bytes", bc_json_u64(info->bytes)},
			{"record_bytes", bc_json_u64(unpacked_bytes(info))},
			{"ratio", bc_json_double(ratio(info))}));
	object = bc_json_merge(object, bc_losses_json(&info->losses));
	return bc_json_merge(object, BC_JSON_OBJECT({"unreported", bc_json_u64(info->unreported)},
					     {"marks", bc_json_u64(info->marks)},
					     {"triggers", bc_json_u64(info->triggers)},
					     {"events", annotations_json(info)},
					     {"events_left", bc_json_u64(info->annotations_left)},
					     {"types", seen_json(info->types, true)},
					     {"processors", seen_json(info->procs, false)}));
}

/* ---- Other formats. */

/* The file being counted. Each count_...() returns 0, or a negative errno: -EBADMSG if the
 * compressed data is damaged or torn, after counting what is before. */
struct counting {
	const struct bc_console *console;
	struct bc_file *file;
	const struct bc_format_options *format;
	void (*damage)(void *context, uint64_t offset, uint64_t bytes, const char *what);
	void *context;
};

static void add_damage(struct bc_survey *s, const struct counting *c, uint64_t offset,
	uint64_t bytes, const char *what)
{
	s->damages += bytes != 0;
	s->damaged_bytes += bytes;
	if (c->damage != NULL)
		c->damage(c->context, offset, bytes, what);
}

static int count_frames(struct bc_survey *s, const struct counting *c)
{
	struct bc_frames *f;
	int rc = bc_frames_open(&f, bc_input_stream(c->file->input));

	if (rc < 0)
		return rc;
	while ((rc = bc_frames_next(f)) > BC_FRAMES_END) {
		if (rc == BC_FRAMES_DAMAGE) {
			add_damage(s, c, f->damage.offset, f->damage.bytes, f->damage.what);
		} else if (rc == BC_FRAMES_GAP && f->gap.cause == BC_GAP_SEQUENCE) {
			s->jumps++;
			add_damage(s, c, f->gap.offset, 0,
				"frames missing: gap in the sequence numbers");
		}
	}
	s->unit = "sample";
	s->units = f->samples;
	s->frames = f->frames;
	s->gaps = f->gaps;
	s->lost = f->lost;
	s->epochs = f->frames != 0 ? (uint64_t)f->epoch + 1 : 0;
	s->last_tick = f->tick;
	s->has_last = f->has_last;
	if (!c->file->is_regular)
		s->bytes = f->reader.offset;
	bc_frames_close(f);
	return rc;
}

static int count_records(struct bc_survey *s, const struct counting *c)
{
	enum bc_format format = c->file->probe.format;
	bool is_raw6 = format == BC_FORMAT_RAW6;
	size_t stride = is_raw6 ? BC_SAMPLE_BYTES : bc_dialect_bytes(format);
	bool is_known = c->file->is_regular && c->file->probe.packing == BC_PACKING_NONE;
	uint64_t bytes = is_known ? c->file->bytes : 0;
	uint8_t buffer[65536];
	ssize_t n = 0;

	if (!is_known || c->damage != NULL)
		for (bytes = 0; (n = bc_input_read(c->file->input, buffer, sizeof(buffer))) > 0;)
			bytes += (uint64_t)n;
	s->unit = is_raw6 ? "sample" : "record";
	s->units = bytes / stride;
	if (!c->file->is_regular)
		s->bytes = bytes;
	if (bytes % stride != 0)
		add_damage(s, c, bytes - bytes % stride, bytes % stride, "torn record");
	return (int)n;
}

static int count_entries(struct bc_survey *s, const struct counting *c)
{
	const struct bc_reader_options options = {.format = *c->format, .index_fd = -1};
	const char *name = c->file->name;
	struct bc_reader *reader;
	struct bc_batch batch;
	int rc = bc_reader_open(&reader, c->file->input, c->file->probe.format, &options);

	if (rc != 0)
		return rc;
	while ((rc = bc_reader_next(reader, &batch)) > 0) {
		s->units += batch.count;
		for (size_t i = 0; i < batch.count; i++)
			s->kinds[batch.entries[i].kind]++;
		if (batch.fault != NULL)
			bc_print_fault(c->console, name, batch.fault, s->damages++);
	}
	bc_print_faults_left(c->console, name, s->damages);
	bc_reader_notes(reader, &s->notes);
	bc_print_notes(c->console, name, &s->notes);
	bc_reader_close(reader);
	s->unit = "entry";
	if (!c->file->is_regular)
		s->bytes = bc_input_position(c->file->input);
	return rc;
}

enum bc_exit bc_survey_read(struct bc_survey *s, const struct bc_console *console,
	struct bc_file *file, const struct bc_format_options *format,
	void (*damage)(void *context, uint64_t offset, uint64_t bytes, const char *what),
	void *context)
{
	const struct counting c = {console, file, format, damage, context};
	enum bc_format of = file->probe.format;
	int (*count)(struct bc_survey * s, const struct counting *c) = of == BC_FORMAT_BCP1
									       ? count_frames
								       : bc_format_is_bus(of)
									       ? count_records
									       : count_entries;

	*s = (struct bc_survey){.bytes = file->bytes};
	int rc = count(s, &c);
	s->is_broken = rc == -EBADMSG && bc_format_is_bus(of);
	if (rc < 0 && !s->is_broken)
		return bc_print_read_error(console, file, rc);
	return s->is_broken || s->damages != 0 || s->jumps != 0 ? BC_EXIT_DAMAGED : BC_EXIT_OK;
}
