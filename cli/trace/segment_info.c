#include "cli/trace/segment_info.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/segment/metadata.h"
#include "formats/segment/segment_index.h"

static void add_gap(struct bc_gap_totals *sum, const struct bc_event *gap)
{
	sum->count++;
	sum->lost += gap->value;
	sum->is_inexact |= !gap->exact;
}

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
			add_gap(&info->gaps, event);
			add_gap(&info->causes[event->cause < BC_GAP_CAUSES ? event->cause : 0],
				event);
			continue;
		case BC_EVENT_MARK:
			info->marks++;
			break;
		case BC_EVENT_TRIGGER:
			info->triggers++;
			break;
		case BC_EVENT_NOTE:
			info->notes++;
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
	info->has_wall = true;
	add_records(info, &chunk->info);
	return add_events(info, chunk);
}

static void note_damage(struct bc_segment_info *info, const struct bc_segment_damage *damage)
{
	if (info->damages++ == 0)
		info->damage = *damage;
}

static void set_header(struct bc_segment_info *info, const struct bc_segment_reader *reader)
{
	if (info->has_header)
		return;
	info->has_header = true;
	info->header = *bc_segment_reader_header(reader);
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
			set_header(info, reader);
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

/* Reads a sealed segment: its header, the rows of its index, and the headers of chunks that have
 * events. */
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
		bc_segment_reader_skip_records(reader);
		rc = read_all(info, reader, chunk);
		if (!file->is_regular)
			info->bytes = bc_segment_reader_offset(reader);
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
