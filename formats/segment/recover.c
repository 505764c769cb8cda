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

/* How recovery works: survey() reads the input once and lists its whole chunks. The mode selects
 * from this list. write_chunks() then reads the selected chunks again and copies them. Two passes,
 * because salvage must sort the chunks before it writes any, and a list entry of 32 bytes is all
 * that is kept per chunk. */

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
	uint8_t *encoded; /* the chunk in the output */
	/* Identity of the segment, from its header or, without one, its first whole chunk. */
	bool has_header;
	struct bc_segment_header header;
	bool has_identity;
	uint64_t tag;
	uint32_t segment;
	struct place *places;
	size_t count;
	size_t capacity;
	size_t tail_count; /* number of places before the first damage */
	bool is_broken;    /* the tail has ended */
	bool is_damaged;   /* damage since the last chunk, or since the start */
	uint64_t next_record;
	uint32_t next_number;
	uint64_t tick; /* of the last record written */
	uint32_t epoch;
};

static void add_damage(struct recovery *r, const struct bc_segment_damage *damage)
{
	if (r->result->damages++ == 0)
		r->result->first = *damage;
	r->result->damaged_bytes += damage->bytes;
}

static void add_bad_chunk(struct recovery *r, const struct bc_chunk_info *info, uint64_t offset,
	uint64_t bytes, const char *what)
{
	struct bc_segment_damage damage = {.offset = offset, .bytes = bytes};

	snprintf(damage.what, sizeof(damage.what), "chunk %" PRIu32 " (%" PRIu32 " records) %s",
		info->number, info->records, what);
	add_damage(r, &damage);
}

static void use_header(struct recovery *r)
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
	if (r->count == r->capacity) {
		size_t capacity = r->capacity != 0 ? 2 * r->capacity : 256;
		struct place *places = realloc(r->places, capacity * sizeof(*places));
		if (places == NULL)
			return -ENOMEM;
		r->places = places;
		r->capacity = capacity;
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

/* Returns what is wrong with a chunk's place, or NULL. */
static const char *check_place(const struct recovery *r, const struct bc_chunk *chunk)
{
	const struct bc_chunk_info *info = &chunk->info;

	if (info->number < r->next_number || info->first_record < r->next_record)
		return "is a duplicate or out of order";
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
		/* Without a header, only the first segment's first record number is known. */
		r->has_identity = true;
		r->tag = info->recording_tag;
		r->segment = info->segment;
		r->next_record = info->segment == 0 ? 0 : info->first_record;
	}
	if (info->recording_tag != r->tag || info->segment != r->segment) {
		add_bad_chunk(
			r, info, offset, bc_chunk_encoded_bytes(info), "is another segment's");
		r->is_broken = true;
		return 0;
	}
	const char *error = check_place(r, r->chunk);
	if (error != NULL) {
		r->is_broken = true;
		if (!r->is_damaged)
			add_bad_chunk(r, info, offset, 0, error);
	}
	/* Damage before the first chunk does not end the tail: no record is lost. */
	if (r->is_damaged && r->count != 0)
		r->is_broken = true;
	r->is_damaged = false;
	if (info->first_record + info->records >= r->next_record) {
		r->next_record = info->first_record + info->records;
		r->next_number = info->number + 1;
	}
	int rc = add_place(r, info, offset);
	if (!r->is_broken)
		r->tail_count = r->count;
	return rc;
}

/* Reads the input and lists its chunks. */
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
				use_header(r);
			break;
		case BC_FOUND_CHUNK:
			offset = bc_segment_reader_offset(r->reader);
			rc = survey_chunk(r, offset);
			break;
		case BC_FOUND_INDEX:
			r->result->was_sealed = true;
			break;
		case BC_FOUND_DAMAGE:
			add_damage(r, bc_segment_reader_damage(r->reader));
			r->is_damaged = true;
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

/* Sorts places by record and drops duplicates and overlaps. Returns the remaining number. */
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

/* Counts the whole chunks that tail mode does not copy. */
static void count_lost(struct recovery *r)
{
	uint64_t end = 0;

	if (r->count == 0)
		return; /* there is no list */
	struct place *places = r->places + r->tail_count;
	size_t count = sort_places(places, r->count - r->tail_count);
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

/* Makes a header for a segment whose own is damaged. */
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

/* Adds a gap before all events of a chunk. Returns false if there is no room. */
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

/* Appends a chunk with only the gap before `next`. */
static int append_gap(struct recovery *r, struct bc_segment_writer *writer,
	const struct bc_chunk_info *next, const struct bc_event *gap)
{
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	size_t header_bytes;

	if (chunk == NULL)
		return -ENOMEM;
	bc_chunk_reset(chunk, r->tick, r->epoch);
	chunk->info.recording_tag = next->recording_tag;
	chunk->info.first_record = next->first_record;
	chunk->info.wall_ns = next->wall_ns;
	if (!bc_chunk_add_event(chunk, gap, NULL))
		assert(!"an empty chunk has room for an event");
	bc_chunk_encode(r->encoded, chunk, &header_bytes);
	int rc = bc_segment_append(writer, r->encoded, header_bytes, &chunk->info, 1, gap->value);
	free(chunk);
	return rc;
}

/* Appends the current chunk with an unchanged frame and, if `gap` is not NULL, this gap. */
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

/* Sets *gap to the gap before the current chunk. Returns false if nothing is missing. */
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
	/* If the chunk number jumps and no record is missing, a chunk without records is missing,
	 * or, in a later segment without its header, an unknown number of records. */
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
		r->header.wall_ns =
			r->chunk->info.wall_ns; /* exact, even if a JSON writer rounded it */
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

/* Reads the file and finds the end of its last whole block, or its end mark after it. */
static int survey_blocks(struct bc_raw_recovered *r, int fd, uint64_t *end, bool *is_sealed,
	const struct bc_progress_cb *progress)
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
		*is_sealed = found == BC_FOUND_INDEX;
		if (*is_sealed)
			*end = bc_segment_reader_offset(reader) + BC_RAW_END_BYTES;
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

static int append_end(int fd, uint32_t blocks, uint64_t offset)
{
	uint8_t end[BC_RAW_END_BYTES];

	bc_raw_end_write(end, blocks, offset);
	ssize_t n = pwrite(fd, end, sizeof(end), (off_t)offset);
	return n == (ssize_t)sizeof(end) ? 0 : n < 0 ? -errno : -ENOSPC;
}

int bc_raw_recover(struct bc_raw_recovered *r, int dir_fd, const char *from, const char *to,
	const struct bc_progress_cb *progress)
{
	struct stat st;
	uint64_t end = 0;
	bool is_sealed = false;
	int rc = 0;
	int fd = openat(dir_fd, from, O_RDWR | O_CLOEXEC);

	memset(r, 0, sizeof(*r));
	if (fd < 0 || fstat(fd, &st) != 0) {
		rc = -errno;
		goto out;
	}
	rc = survey_blocks(r, fd, &end, &is_sealed, progress);
	if (rc != 0)
		goto out;
	r->cut_bytes = (uint64_t)st.st_size - end;
	if (r->blocks == 0) {
		rc = unlinkat(dir_fd, from, 0) != 0 ? -errno : 0;
		goto out;
	}
	if (r->cut_bytes != 0 && ftruncate(fd, (off_t)end) != 0)
		rc = -errno;
	if (rc == 0 && !is_sealed)
		rc = append_end(fd, (uint32_t)r->blocks, end);
	if (rc == 0 && fdatasync(fd) != 0)
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
