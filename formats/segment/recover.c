#include "formats/segment/recover.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A whole chunk of the input. */
struct place {
	uint64_t offset;
	uint64_t bytes;
	uint64_t first_record;
	uint32_t records;
	uint32_t number;
};

struct recovery {
	struct bc_recovered *result;
	struct bc_segment_reader *reader;
	struct bc_chunk *chunk;
	uint8_t *encoded; /* the chunk as it is written */
	/* The segment: what its header says, or else its first whole chunk. */
	bool has_header;
	struct bc_segment_header header;
	bool has_identity;
	uint64_t tag;
	uint32_t segment;
	struct place *places;
	size_t count;
	size_t room;
	size_t tail_count; /* of them, those before the first damage */
	bool is_broken;    /* the first damage was passed */
	bool is_hurt;      /* damage since the last chunk, or the beginning */
	uint64_t next_record;
	uint32_t next_number;
	uint64_t tick; /* of the last record written */
	uint32_t epoch;
};

static void note_damage(struct recovery *r, const struct bc_segment_damage *damage)
{
	if (r->result->damages++ == 0)
		r->result->first = *damage;
	r->result->damaged_bytes += damage->bytes;
}

static void note_place(struct recovery *r, const struct bc_chunk_info *info, uint64_t offset,
	uint64_t bytes, const char *words)
{
	struct bc_segment_damage damage = {.offset = offset, .bytes = bytes};

	snprintf(damage.what, sizeof(damage.what), "chunk %" PRIu32 " (%" PRIu32 " records) %s",
		info->number, info->records, words);
	note_damage(r, &damage);
}

static void take_header(struct recovery *r)
{
	r->has_header = true;
	r->has_identity = true;
	r->header = *bc_segment_reader_header(r->reader);
	r->tag = bc_recording_tag(r->header.recording);
	r->segment = r->header.segment;
	r->next_record = r->header.first_record;
}

static int add_place(struct recovery *r, const struct bc_chunk_info *info, uint64_t offset)
{
	if (r->count == r->room) {
		size_t room = r->room != 0 ? 2 * r->room : 256;
		struct place *places = realloc(r->places, room * sizeof(*places));
		if (places == NULL)
			return -ENOMEM;
		r->places = places;
		r->room = room;
	}
	r->places[r->count++] = (struct place){
		.offset = offset,
		.bytes = bc_chunk_encoded_bytes(info),
		.first_record = info->first_record,
		.records = info->records,
		.number = info->number,
	};
	return 0;
}

/* Says what is wrong with a chunk's place, or NULL. */
static const char *judge_place(const struct recovery *r, const struct bc_chunk *chunk)
{
	const struct bc_chunk_info *info = &chunk->info;

	if (info->number < r->next_number || info->first_record < r->next_record)
		return "stands there twice or too late";
	if (bc_chunk_missing(chunk, r->next_record) != 0)
		return "follows records that are missing";
	if (info->number > r->next_number)
		return "follows chunks that are missing";
	return NULL;
}

static int survey_chunk(struct recovery *r, uint64_t offset)
{
	const struct bc_chunk_info *info = &r->chunk->info;

	if (!r->has_identity) {
		/* Without a header only the first chunk of the first segment has a known place. */
		r->has_identity = true;
		r->tag = info->recording_tag;
		r->segment = info->segment;
		r->next_record = info->segment == 0 ? 0 : info->first_record;
	}
	if (info->recording_tag != r->tag || info->segment != r->segment) {
		note_place(r, info, offset, bc_chunk_encoded_bytes(info), "is another segment's");
		r->is_broken = true;
		return 0;
	}
	const char *wrong = judge_place(r, r->chunk);
	if (wrong != NULL) {
		r->is_broken = true;
		if (!r->is_hurt)
			note_place(r, info, offset, 0, wrong);
	}
	/* What is damaged before the first chunk costs no record. */
	if (r->is_hurt && r->count != 0)
		r->is_broken = true;
	r->is_hurt = false;
	if (info->first_record + info->records >= r->next_record) {
		r->next_record = info->first_record + info->records;
		r->next_number = info->number + 1;
	}
	int rc = add_place(r, info, offset);
	if (!r->is_broken)
		r->tail_count = r->count;
	return rc;
}

/* Goes through the input once and makes a list of its chunks. */
static int survey(struct recovery *r)
{
	for (;;) {
		uint64_t offset;
		int rc = 0;
		int found = bc_segment_read(r->reader, r->chunk);
		if (found < 0)
			return found;
		switch ((enum bc_segment_found)found) {
		case BC_FOUND_SEGMENT:
			if (!r->has_identity)
				take_header(r);
			break;
		case BC_FOUND_CHUNK:
			offset = bc_segment_reader_offset(r->reader);
			rc = survey_chunk(r, offset);
			break;
		case BC_FOUND_INDEX:
			r->result->was_sealed = true;
			break;
		case BC_FOUND_DAMAGE:
			note_damage(r, bc_segment_reader_damage(r->reader));
			r->is_hurt = true;
			break;
		case BC_FOUND_END:
			return 0;
		}
		if (rc != 0)
			return rc;
	}
}

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a;
	const struct place *y = b;

	if (x->first_record != y->first_record)
		return x->first_record < y->first_record ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Puts places in the order of their records and leaves out what is there twice. Returns how many
 * remain. */
static size_t sort_places(struct place *places, size_t count)
{
	size_t kept = 0;

	if (count == 0)
		return 0;
	qsort(places, count, sizeof(*places), compare_places);
	for (size_t i = 0; i < count; i++) {
		const struct place *last = kept != 0 ? &places[kept - 1] : NULL;
		if (last != NULL &&
			(places[i].number <= last->number ||
				places[i].first_record < last->first_record + last->records))
			continue;
		places[kept++] = places[i];
	}
	return kept;
}

/* What `tail` leaves out: whole chunks that are not among those it keeps. */
static void count_lost(struct recovery *r)
{
	struct place *places = r->places + r->tail_count;
	size_t count = sort_places(places, r->count - r->tail_count);
	uint64_t end = 0;

	if (r->tail_count != 0) {
		const struct place *last = &r->places[r->tail_count - 1];
		end = last->first_record + last->records;
	}
	for (size_t i = 0; i < count; i++) {
		if (places[i].first_record < end)
			continue;
		r->result->lost_chunks++;
		r->result->lost_records += places[i].records;
	}
}

/* A header for a segment whose own is damaged. */
static void make_header(struct recovery *r, const struct bc_segment_name *fallback,
	const struct bc_chunk_info *first)
{
	struct bc_segment_header *header = &r->header;

	memset(header, 0, sizeof(*header));
	if (fallback != NULL && bc_recording_tag(fallback->recording) == r->tag)
		snprintf(header->recording, sizeof(header->recording), "%s", fallback->recording);
	else
		snprintf(header->recording, sizeof(header->recording), "unknown-%016" PRIx64,
			r->tag);
	header->segment = r->segment;
	header->wall_ns = first->wall_ns;
	header->first_tick = first->first_tick;
	header->first_epoch = first->epoch;
	header->first_record = r->segment == 0 ? 0 : first->first_record;
}

/* Puts a gap before all events of a chunk. Returns false if there is no room. */
static bool add_gap_first(struct bc_chunk *chunk, const struct bc_event *gap)
{
	uint32_t events = chunk->info.events;

	if (!bc_chunk_add_event(chunk, gap, NULL))
		return false;
	struct bc_event added = chunk->events[events];
	memmove(chunk->events + 1, chunk->events, events * sizeof(chunk->events[0]));
	chunk->events[0] = added;
	return true;
}

/* Appends a chunk that holds the gap before `next` and nothing else. */
static int append_gap(struct recovery *r, struct bc_segment_writer *writer,
	const struct bc_chunk_info *next, const struct bc_event *gap)
{
	struct bc_chunk *alone = malloc(sizeof(*alone));
	size_t header_bytes;

	if (alone == NULL)
		return -ENOMEM;
	bc_chunk_reset(alone, r->tick, r->epoch);
	alone->info.recording_tag = next->recording_tag;
	alone->info.first_record = next->first_record;
	alone->info.wall_ns = next->wall_ns;
	if (!bc_chunk_add_event(alone, gap, NULL))
		assert(!"an empty chunk has room for an event");
	bc_chunk_encode(r->encoded, alone, &header_bytes);
	int rc = bc_segment_append(writer, r->encoded, header_bytes, &alone->info, 1, gap->value);
	free(alone);
	return rc;
}

/* Appends the chunk in hand, its frame as it stands in the input. */
static int append_chunk(
	struct recovery *r, struct bc_segment_writer *writer, const struct bc_event *gap)
{
	struct bc_chunk *chunk = r->chunk;
	struct bc_chunk_info *info = &chunk->info;
	size_t header_bytes;
	const uint8_t *frame = bc_segment_reader_encoded(r->reader, &header_bytes);
	uint64_t gaps;
	uint64_t lost;

	frame += header_bytes;
	if (gap != NULL && !add_gap_first(chunk, gap)) {
		int rc = append_gap(r, writer, info, gap);
		if (rc != 0)
			return rc;
		r->result->chunks++;
	}
	info->event_bytes = info->events * BC_EVENT_BYTES + chunk->text_bytes;
	header_bytes = bc_chunk_header_write(r->encoded, chunk);
	memcpy(r->encoded + header_bytes, frame, info->frame_bytes);
	bc_chunk_gaps(chunk, &gaps, &lost);
	int rc = bc_segment_append(writer, r->encoded, header_bytes, info, gaps, lost);
	if (rc == 0) {
		r->result->chunks++;
		r->result->records += info->records;
	}
	return rc;
}

/* What is missing before the chunk in hand. Returns false if nothing is. */
static bool find_gap(struct recovery *r, struct bc_event *gap)
{
	const struct bc_chunk_info *info = &r->chunk->info;
	uint64_t missing = bc_chunk_missing(r->chunk, r->next_record);
	bool is_jump = info->number != r->next_number;

	*gap = (struct bc_event){
		.kind = BC_EVENT_GAP,
		.cause = BC_GAP_DAMAGED,
		.exact = missing != 0,
		.value = missing,
	};
	r->result->missing += missing;
	/* Numbers that jump with no record missing: either a chunk that only told of a gap, or, at
	 * the beginning of a later segment without its header, nobody knows what. */
	return missing != 0 || (is_jump && info->first_record == r->next_record);
}

/* Reads a chunk of the list again. */
static int read_place(struct recovery *r, const struct place *place)
{
	int rc = bc_segment_reader_range(r->reader, place->offset, place->offset + place->bytes);

	if (rc != 0)
		return rc;
	rc = bc_segment_read(r->reader, r->chunk);
	if (rc < 0)
		return rc;
	const struct bc_chunk_info *info = &r->chunk->info;
	return rc == BC_FOUND_CHUNK && info->number == place->number &&
			       info->first_record == place->first_record &&
			       info->records == place->records
		       ? 0
		       : -EIO;
}

static int write_chunks(struct recovery *r, struct bc_segment_writer *writer, size_t count)
{
	uint64_t tag = bc_recording_tag(r->header.recording);

	r->next_record = r->header.first_record;
	r->next_number = 0;
	r->tick = r->header.first_tick;
	r->epoch = r->header.first_epoch;
	for (size_t i = 0; i < count; i++) {
		struct bc_event gap;
		int rc = read_place(r, &r->places[i]);
		if (rc != 0)
			return rc;
		struct bc_chunk_info *info = &r->chunk->info;
		uint64_t next_record = info->first_record + info->records;
		uint32_t next_number = info->number + 1;
		bool has_gap = find_gap(r, &gap);
		info->recording_tag = tag;
		rc = append_chunk(r, writer, has_gap ? &gap : NULL);
		if (rc != 0)
			return rc;
		r->next_record = next_record;
		r->next_number = next_number;
		r->tick = info->last_tick;
		r->epoch = info->epoch;
	}
	return 0;
}

static int write_copy(struct recovery *r, int dir_fd, const char *name,
	const struct bc_segment_name *fallback, size_t count)
{
	struct bc_segment_writer writer;
	char open_name[BC_ATOMIC_FILE_NAME_MAX];
	int rc;

	rc = read_place(r, &r->places[0]);
	if (rc != 0)
		return rc;
	if (!r->has_header)
		make_header(r, fallback, &r->chunk->info);
	else if (r->header.first_record == r->chunk->info.first_record)
		r->header.wall_ns = r->chunk->info.wall_ns; /* to the nanosecond, as JSON isn't */
	rc = bc_segment_create(&writer, dir_fd, name, BC_RECOVER_SUFFIX, &r->header);
	if (rc != 0)
		return rc;
	memcpy(open_name, writer.file.open_name, sizeof(open_name));
	rc = write_chunks(r, &writer, count);
	if (rc == 0)
		rc = bc_segment_seal(&writer);
	if (rc != 0) {
		bc_segment_abandon(&writer);
		unlinkat(dir_fd, open_name, 0);
		r->result->chunks = 0;
		r->result->records = 0;
		return rc;
	}
	memcpy(r->result->hash, writer.file.sealed_hash, sizeof(r->result->hash));
	r->result->is_written = true;
	return 0;
}

int bc_recover(struct bc_recovered *recovered, int in, int dir_fd, const char *name,
	const struct bc_segment_name *fallback, enum bc_recover_mode mode,
	const struct bc_progress_cb *progress)
{
	struct recovery r = {.result = recovered};
	int rc = -ENOMEM;

	memset(recovered, 0, sizeof(*recovered));
	if (lseek(in, 0, SEEK_SET) < 0)
		return -errno;
	r.chunk = malloc(sizeof(*r.chunk));
	r.encoded = malloc(BC_CHUNK_ENCODED_MAX);
	if (r.chunk == NULL || r.encoded == NULL)
		goto out;
	rc = bc_segment_reader_open(&r.reader,
		(struct bc_input_stream){.fd = in, .wake_fd = -1, .progress = progress}, NULL, 0);
	if (rc != 0)
		goto out;
	rc = survey(&r);
	if (rc != 0)
		goto out;
	if (mode == BC_RECOVER_STRICT && recovered->damages != 0) {
		rc = -EBADMSG;
		goto out;
	}
	size_t count = r.tail_count;
	if (mode == BC_RECOVER_SALVAGE)
		count = sort_places(r.places, r.count);
	else
		count_lost(&r);
	if (count != 0)
		rc = write_copy(&r, dir_fd, name, fallback, count);
out:
	bc_segment_reader_close(r.reader);
	free(r.places);
	free(r.encoded);
	free(r.chunk);
	return rc;
}

/* Raw captures */

/* Goes through the file and finds where its last whole block ends. */
static int survey_blocks(
	struct bc_raw_recovered *r, int fd, uint64_t *end, const struct bc_progress_cb *progress)
{
	struct bc_raw_block *block = malloc(sizeof(*block));
	struct bc_segment_reader *reader = NULL;
	uint64_t damages = 0;
	int found = -ENOMEM;

	if (block != NULL)
		found = bc_segment_reader_open(&reader,
			(struct bc_input_stream){.fd = fd, .wake_fd = -1, .progress = progress},
			NULL, 0);
	while (found >= 0 && (found = bc_raw_read(reader, block)) > BC_FOUND_END) {
		damages += found == BC_FOUND_DAMAGE;
		if (found != BC_FOUND_CHUNK)
			continue;
		r->blocks++;
		r->bytes += block->bytes;
		r->damages = damages;
		size_t table_bytes;
		bc_segment_reader_encoded(reader, &table_bytes);
		*end = bc_segment_reader_offset(reader) + table_bytes + block->frame_bytes;
	}
	bc_segment_reader_close(reader);
	free(block);
	return found;
}

int bc_raw_recover(struct bc_raw_recovered *r, int dir_fd, const char *from, const char *to,
	const struct bc_progress_cb *progress)
{
	struct stat st;
	uint64_t end = 0;
	int rc = 0;
	int fd = openat(dir_fd, from, O_RDWR | O_CLOEXEC);

	memset(r, 0, sizeof(*r));
	if (fd < 0 || fstat(fd, &st) != 0) {
		rc = -errno;
		goto out;
	}
	rc = survey_blocks(r, fd, &end, progress);
	if (rc != 0)
		goto out;
	r->cut_bytes = (uint64_t)st.st_size - end;
	if (r->blocks == 0) {
		rc = unlinkat(dir_fd, from, 0) != 0 ? -errno : 0;
		goto out;
	}
	if ((r->cut_bytes != 0 && ftruncate(fd, (off_t)end) != 0) || fdatasync(fd) != 0)
		rc = -errno;
	if (rc == 0)
		rc = bc_rename_new(dir_fd, from, to);
	if (rc == 0 && bc_file_hash_compute(r->hash, fd, progress) != 0)
		r->hash[0] = '\0';
out:
	if (fd >= 0)
		close(fd);
	return rc;
}
