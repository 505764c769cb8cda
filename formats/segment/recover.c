/* Copies what is whole in a damaged segment. A recovery goes through these steps:
 *
 *   survey      reads the input and lists its whole chunks
 *   sort        in the order of the recording, without duplicates
 *   write       reads the listed chunks again and appends them to the copy, with gaps between them
 *               and, if the recording was killed, its end
 *   seal        gives the copy its name
 *
 * Two passes, because the chunks are sorted before the first is written; 48 bytes are kept of each.
 *
 * The input is only read, and the copy has its final name only when it is sealed. So at every
 * moment each whole chunk is readable in at least one file, and after a kill the same call makes
 * the same copy. bc_recover_compare() finds out whether a sealed file already has everything. */
#include "formats/segment/recover.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/grow.h"
#include "formats/bus/tick_time.h"
#include "formats/segment/segment_header.h"
#include "formats/segment/segment_index.h"

#define DAY_NS (86400 * UINT64_C(1000000000))

/* A whole chunk of the input. */
struct listed_chunk {
	uint64_t offset;
	uint64_t bytes;
	uint64_t first; /* its first record */
	uint64_t count; /* of records */
	uint64_t hash;  /* of its records */
	uint32_t number;
};

struct recovery {
	struct bc_recovered *result;
	struct bc_segment_reader *reader;
	uint64_t size; /* of the input */
	struct bc_chunk *chunk;
	uint8_t *encoded; /* the chunk in the output */
	struct bc_chunk_pages *pages;
	/* Identity of the file, from its header or, without one, its first whole chunk. */
	bool has_header;
	struct bc_segment_header header;
	json_t *json; /* the same with all members, if it is copied; otherwise NULL */
	bool has_identity;
	uint64_t tag;
	uint32_t segment;
	struct listed_chunk *listed; /* after the survey: sorted */
	size_t count;
	size_t capacity;
	bool is_damaged;      /* damage since the last chunk, or since the start */
	uint64_t next_record; /* expected next */
	uint32_t next_number;
	/* While writing: the counts of the last chunk written, and the records missing so far. */
	bool has_totals;
	struct bc_totals totals;
	uint64_t damaged;
	bool has_added; /* gaps, to this chunk or those before it */
	uint64_t tick;  /* of the last record written */
	uint32_t epoch;
};

static void add_damage(struct recovery *r, const struct bc_segment_damage *damage)
{
	if (r->result->damages++ == 0)
		r->result->first = *damage;
	r->result->damaged_bytes += damage->bytes;
}

static void add_bad_chunk(
	struct recovery *r, const struct listed_chunk *c, uint64_t bytes, const char *what)
{
	struct bc_segment_damage damage = {.offset = c->offset, .bytes = bytes};

	snprintf(damage.what, sizeof(damage.what), "chunk %" PRIu32 " (%" PRIu64 " records) %s",
		c->number, c->count, what);
	add_damage(r, &damage);
}

static int use_header(struct recovery *r)
{
	size_t bytes;
	const uint8_t *frame = bc_segment_reader_encoded(r->reader, &bytes);

	r->json = bc_segment_header_json(frame, bytes);
	if (r->json == NULL)
		return -ENOMEM;
	r->has_header = true;
	r->has_identity = true;
	r->header = *bc_segment_reader_header(r->reader);
	r->tag = bc_recording_tag(r->header.recording);
	r->segment = r->header.segment;
	r->next_record = r->header.first_record;
	return 0;
}

static int list_chunk(struct recovery *r, const struct listed_chunk *c)
{
	struct listed_chunk *listed = bc_grow(r->listed, &r->capacity, r->count, sizeof(*listed));

	if (listed == NULL)
		return -ENOMEM;
	r->listed = listed;
	r->listed[r->count++] = *c;
	return 0;
}

/* Describes the chunk that was read last. */
static struct listed_chunk describe_current(const struct recovery *r)
{
	const struct bc_chunk_info *info = &r->chunk->info;

	return (struct listed_chunk){
		.offset = bc_segment_reader_offset(r->reader),
		.bytes = bc_chunk_encoded_bytes(info),
		.first = info->first_record,
		.count = info->records,
		.hash = info->records_hash,
		.number = info->number,
	};
}

/* Returns what is wrong with the order of the current chunk, or NULL. */
static const char *check_order(const struct recovery *r, const struct listed_chunk *c)
{
	if (c->first < r->next_record || c->number < r->next_number)
		return "is a duplicate or out of order";
	if (bc_chunk_missing(r->chunk, r->next_record) != 0)
		return "follows records that are missing";
	if (c->number > r->next_number)
		return "follows chunks that are missing";
	return NULL;
}

/* Without a header, only the first record number of the first segment is known. */
static void identify(struct recovery *r, const struct listed_chunk *c)
{
	if (r->has_identity)
		return;
	r->has_identity = true;
	r->tag = r->chunk->info.recording_tag;
	r->segment = r->chunk->info.segment;
	r->next_record = r->segment == 0 ? 0 : c->first;
}

static int survey_chunk(struct recovery *r)
{
	struct listed_chunk c = describe_current(r);
	struct bc_recording_end end;

	identify(r, &c);
	if (r->chunk->info.recording_tag != r->tag || r->chunk->info.segment != r->segment) {
		add_bad_chunk(r, &c, c.bytes, "is another file's");
		return 0;
	}
	const char *error = check_order(r, &c);
	if (error != NULL && !r->is_damaged)
		add_bad_chunk(r, &c, 0, error);
	r->is_damaged = false;
	if (c.first + c.count >= r->next_record) {
		r->next_record = c.first + c.count;
		r->next_number = c.number + 1;
	}
	if (bc_recording_end_find(&end, r->chunk))
		r->result->has_end = true;
	return list_chunk(r, &c);
}

/* Lists the chunks. */
static int survey_chunks(struct recovery *r)
{
	for (;;) {
		int rc = 0;
		int found = bc_segment_read(r->reader, r->chunk);
		if (found < 0)
			return found;
		switch ((enum bc_segment_found)found) {
		case BC_FOUND_SEGMENT:
			if (!r->has_identity)
				rc = use_header(r);
			break;
		case BC_FOUND_CHUNK:
			rc = survey_chunk(r);
			break;
		case BC_FOUND_INDEX:
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

/* A power cut can leave a file longer than its data: with zeros at the end, by sectors. */
static bool ends_in_zeros(int fd, uint64_t offset, uint64_t size)
{
	uint8_t bytes[512];
	uint64_t from = size - offset > sizeof(bytes) ? size - sizeof(bytes) : offset;
	ssize_t n = pread(fd, bytes, sizeof(bytes), (off_t)from);

	for (ssize_t i = 0; i < n; i++)
		if (bytes[i] != 0)
			return false;
	return n > 0;
}

/* A header torn by a crash counts as a header. */
static bool has_content(int fd, uint64_t size)
{
	uint8_t head[BC_EMPTY_FRAME_BYTES + BC_SKIPPABLE_BYTES];
	const uint8_t *header = head + BC_EMPTY_FRAME_BYTES;
	ssize_t n = pread(fd, head, sizeof(head), 0);

	if (n <= 0)
		return size != 0;
	size_t same = (size_t)n < BC_EMPTY_FRAME_BYTES ? (size_t)n : BC_EMPTY_FRAME_BYTES;
	if (!bc_is_empty_frame(head, same))
		return true;
	if ((size_t)n < sizeof(head))
		return false;
	size_t bytes = bc_segment_header_bytes(header);
	return bytes == 0 || size > BC_EMPTY_FRAME_BYTES + bytes;
}

static int compare_listed(const void *a, const void *b)
{
	const struct listed_chunk *x = a;
	const struct listed_chunk *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Sorts the listed chunks by record and drops duplicates and overlaps. */
static void sort_listed(struct recovery *r)
{
	size_t kept = 0;

	if (r->count == 0)
		return;
	qsort(r->listed, r->count, sizeof(*r->listed), compare_listed);
	for (size_t i = 0; i < r->count; i++) {
		const struct listed_chunk *c = &r->listed[i];
		const struct listed_chunk *last = kept != 0 ? &r->listed[kept - 1] : NULL;
		if (last == NULL ||
			(c->first >= last->first + last->count && c->number > last->number))
			r->listed[kept++] = *c;
	}
	r->count = kept;
}

/* Reads the input and lists its chunks. */
static int survey(struct recovery *r, int in, const struct bc_progress_cb *progress)
{
	struct bc_recovered *result = r->result;
	struct stat st;

	if (fstat(in, &st) != 0 || lseek(in, 0, SEEK_SET) < 0)
		return -errno;
	r->size = (uint64_t)st.st_size;
	int rc = bc_segment_reader_open(&r->reader,
		(struct bc_input_stream){.fd = in, .wake_fd = -1, .progress = progress}, NULL, 0);
	if (rc == 0)
		rc = survey_chunks(r);
	if (rc != 0)
		return rc;
	sort_listed(r);
	result->has_content = has_content(in, r->size);
	bool is_at_end = result->damages == 1 && r->is_damaged &&
			 result->first.offset + result->first.bytes == r->size;
	result->is_only_torn = is_at_end &&
			       (result->first.is_torn ||
				       ends_in_zeros(in, result->first.offset, r->size));
	if (result->is_only_torn)
		result->torn_records = result->first.records;
	return 0;
}

/* Makes a header for a file whose own is damaged. The first chunk has been read. */
static void make_header(struct recovery *r, const struct bc_recover_options *options)
{
	struct bc_segment_header *header = &r->header;
	const struct bc_segment_name *fallback = options->fallback;
	const struct bc_chunk_info *first = &r->chunk->info;
	size_t at;
	const uint8_t *encoded = bc_segment_reader_encoded(r->reader, &at);

	memset(header, 0, sizeof(*header));
	if (bc_frame_is_zstd(encoded + at, first->frame_bytes))
		bc_level_write(header->compression, BC_LEVEL_ZSTD);
	header->sequence = options->sequence;
	header->segment = r->segment;
	if (fallback != NULL && bc_recording_tag(fallback->recording) == r->tag)
		snprintf(header->recording, sizeof(header->recording), "%s", fallback->recording);
	else
		snprintf(header->recording, sizeof(header->recording), "unknown-%016" PRIx64,
			r->tag);
	header->wall_ns = first->wall_ns;
	header->first_tick = first->first_tick;
	header->first_epoch = first->epoch;
	header->first_record = r->segment == 0 ? 0 : first->first_record;
}

/* The gaps that are added before a chunk. */
struct added {
	unsigned count;
	struct bc_event gaps[BC_GAP_CAUSES + 1];
};

/* Appends an encoded chunk to the copy. */
static int append_encoded(struct recovery *r, struct bc_segment_writer *writer,
	const struct bc_chunk *chunk, size_t header_bytes)
{
	const struct bc_loss loss = bc_chunk_loss(chunk);
	int rc = bc_segment_append(
		writer, r->encoded, header_bytes, &chunk->info, &loss, &r->pages->counts);

	r->result->chunks += rc == 0;
	r->result->records += rc == 0 ? chunk->info.records : 0;
	return rc;
}

/* Starts a chunk without records after those written. */
static void start_chunk(
	const struct recovery *r, struct bc_chunk *empty, uint64_t first_record, int64_t wall_ns)
{
	bc_chunk_reset(empty, r->tick, r->epoch);
	empty->info.recording_tag = bc_recording_tag(r->header.recording);
	empty->info.first_record = first_record;
	empty->info.wall_ns = wall_ns;
}

static int append_without_records(
	struct recovery *r, struct bc_segment_writer *writer, struct bc_chunk *empty)
{
	struct bc_compressor compressor = {.level = bc_segment_header_level(&r->header)};
	size_t header_bytes;

	empty->info.totals = r->totals;
	bc_totals_add(&empty->info.totals, empty);
	bc_chunk_encode(r->encoded, empty, &compressor, r->pages, &header_bytes);
	return append_encoded(r, writer, empty, header_bytes);
}

/* Appends a chunk with only the gaps before `next`. */
static int append_gaps(struct recovery *r, struct bc_segment_writer *writer,
	const struct bc_chunk_info *next, const struct added *added)
{
	struct bc_chunk *empty = malloc(sizeof(*empty));

	if (empty == NULL)
		return -ENOMEM;
	start_chunk(r, empty, next->first_record, next->wall_ns);
	for (unsigned i = 0; i < added->count; i++)
		if (!bc_chunk_add_event(empty, &added->gaps[i], NULL))
			assert(false && "an empty chunk has room for an event of each cause");
	int rc = append_without_records(r, writer, empty);
	free(empty);
	return rc;
}

/* Adds gaps before all events of a chunk. Returns false if there is no room. */
static bool add_gaps_first(struct bc_chunk *chunk, const struct added *added)
{
	uint32_t events = chunk->info.events;

	if (added->count > BC_CHUNK_EVENTS - events)
		return false;
	memmove(chunk->events + added->count, chunk->events, events * sizeof(chunk->events[0]));
	memcpy(chunk->events, added->gaps, added->count * sizeof(chunk->events[0]));
	chunk->info.events += added->count;
	return true;
}

/* Appends the current chunk with an unchanged frame and the added gaps. */
static int append_chunk(
	struct recovery *r, struct bc_segment_writer *writer, const struct added *added)
{
	struct bc_chunk *chunk = r->chunk;
	struct bc_chunk_info *info = &chunk->info;
	size_t header_bytes;
	const uint8_t *frame = bc_segment_reader_encoded(r->reader, &header_bytes);
	int rc = 0;

	frame += header_bytes;
	if (!add_gaps_first(chunk, added))
		rc = append_gaps(r, writer, info, added);
	if (rc != 0)
		return rc;
	info->event_bytes = info->events * BC_EVENT_BYTES + chunk->text_bytes;
	bc_chunk_count(info, chunk->records, r->pages);
	header_bytes = bc_chunk_header_write(r->encoded, chunk);
	memcpy(r->encoded + header_bytes, frame, info->frame_bytes);
	return append_encoded(r, writer, chunk, header_bytes);
}

static uint64_t without(uint64_t all, uint64_t part)
{
	return all > part ? all - part : 0;
}

/* Sets the totals before the segment, which are unknown unless it is the recording's first: as if
 * nothing had been lost between it and the current chunk. */
static void assume_totals(struct recovery *r)
{
	const struct bc_totals *all = &r->chunk->info.totals;
	struct bc_totals own = {.inexact = 0};

	r->has_totals = true;
	if (r->chunk->info.segment == 0)
		return;
	bc_totals_add(&own, r->chunk);
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		r->totals.lost[cause] = without(all->lost[cause], own.lost[cause]);
	r->totals.gaps = without(all->gaps, own.gaps);
	r->totals.inexact = without(all->inexact, own.inexact);
	r->totals.away_ns = without(all->away_ns, own.away_ns);
}

/* Finds the gaps that the current chunk lacks: for records that are missing before it, and for
 * losses in its counts whose chunk is missing. Updates its counts and ours. */
static void find_gaps(struct recovery *r, struct added *added)
{
	struct bc_chunk_info *info = &r->chunk->info;
	uint64_t missing = bc_chunk_missing(r->chunk, r->next_record);
	bool is_jump = info->number != r->next_number;
	uint64_t unreported[BC_GAP_CAUSES];

	if (!r->has_totals)
		assume_totals(r);
	struct bc_totals known = r->totals;

	added->count = 0;
	r->result->missing += missing;
	r->damaged += missing;
	info->totals.lost[BC_GAP_DAMAGED] += r->damaged;
	/* If the chunk number jumps and no record is missing, a chunk without records is missing,
	 * or, in a later segment without its header, an unknown number of records. */
	if (missing != 0 || (is_jump && info->first_record == r->next_record))
		added->gaps[added->count++] = (struct bc_event){
			.kind = BC_EVENT_GAP,
			.cause = BC_GAP_DAMAGED,
			.exact = missing != 0,
			.value = missing,
		};
	known.lost[BC_GAP_DAMAGED] += missing;
	bc_chunk_unreported(r->chunk, &known, unreported);
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		if (unreported[cause] != 0)
			added->gaps[added->count++] = (struct bc_event){
				.kind = BC_EVENT_GAP,
				.cause = (uint8_t)cause,
				.value = unreported[cause],
			};
	r->has_added = r->has_added || added->count != 0;
	if (!r->has_added)
		return;
	/* The chunk's totals lack the gaps that are added, but have those of missing chunks. */
	bc_totals_add(&known, r->chunk);
	for (unsigned i = 0; i < added->count; i++)
		known.inexact += !added->gaps[i].exact;
	known.gaps += added->count;
	if (info->totals.gaps < known.gaps)
		info->totals.gaps = known.gaps;
	if (info->totals.inexact < known.inexact)
		info->totals.inexact = known.inexact;
}

/* Reads a chunk of the list again. */
static int read_listed(struct recovery *r, const struct listed_chunk *c)
{
	int rc = bc_segment_reader_range(r->reader, c->offset, c->offset + c->bytes);

	if (rc != 0)
		return rc;
	rc = bc_segment_read(r->reader, r->chunk);
	if (rc < 0)
		return rc;
	if (rc != BC_FOUND_CHUNK)
		return -EIO;
	struct listed_chunk now = describe_current(r);
	return now.number == c->number && now.first == c->first && now.count == c->count &&
			       now.hash == c->hash
		       ? 0
		       : -EIO;
}

static int write_chunks(struct recovery *r, struct bc_segment_writer *writer)
{
	uint64_t tag = bc_recording_tag(r->header.recording);

	r->next_record = r->header.first_record;
	r->next_number = 0;
	r->tick = r->header.first_tick;
	r->epoch = r->header.first_epoch;
	for (size_t i = 0; i < r->count; i++) {
		struct added added;
		int rc = read_listed(r, &r->listed[i]);
		if (rc != 0)
			return rc;
		struct bc_chunk_info *info = &r->chunk->info;
		uint64_t next_record = info->first_record + info->records;
		uint32_t next_number = info->number + 1;
		find_gaps(r, &added);
		info->recording_tag = tag;
		rc = append_chunk(r, writer, &added);
		if (rc != 0)
			return rc;
		r->totals = info->totals;
		r->next_record = next_record;
		r->next_number = next_number;
		r->tick = info->last_tick;
		r->epoch = info->epoch;
	}
	return 0;
}

/* The best known end of a chunk: when its last record arrived. */
static int64_t end_of_chunk(const struct bc_chunk_info *info, uint64_t clock_hz)
{
	int64_t end_ns;

	(void)bc_chunk_end(&end_ns, info, clock_hz);
	uint64_t span_ns = (uint64_t)end_ns - (uint64_t)info->wall_ns;

	/* Negative, or more than a day in a chunk: the clock is wrong. */
	return span_ns < DAY_NS ? end_ns : info->wall_ns;
}

/* Appends a chunk with the end of a recording that was killed. Without records, `wall_ns` of the
 * header is the best known end. */
static int append_end(struct recovery *r, struct bc_segment_writer *writer, const char *boot_id)
{
	const char *before = r->header.boot_id;
	bool is_other_boot = before[0] != '\0' && boot_id[0] != '\0' &&
			     strcmp(before, boot_id) != 0;
	struct bc_recording_end end = {
		.ended_ns = r->count != 0 ? end_of_chunk(&r->chunk->info, r->header.clock_hz)
					  : r->header.wall_ns,
	};
	struct bc_event gap = {
		.kind = BC_EVENT_GAP, .cause = BC_GAP_CRASH, .value = r->result->torn_records};

	snprintf(end.reason, sizeof(end.reason), "%s", is_other_boot ? "power" : "crash");
	snprintf(end.boot_id, sizeof(end.boot_id), "%s", boot_id);
	start_chunk(r, r->chunk, r->next_record, end.ended_ns);
	if (!bc_chunk_add_event(r->chunk, &gap, NULL) || !bc_recording_end_add(r->chunk, &end))
		assert(false && "an empty chunk has room for them");
	return append_without_records(r, writer, r->chunk);
}

/* Creates the copy. Its header has all members of an intact one, unless they are too long now. */
static int create_copy(
	struct recovery *r, struct bc_segment_writer *writer, int dir_fd, const char *name)
{
	int rc = bc_segment_create_copy(
		writer, dir_fd, name, BC_RECOVER_SUFFIX, &r->header, r->json);

	if (rc == -EINVAL)
		rc = bc_segment_create(writer, dir_fd, name, BC_RECOVER_SUFFIX, &r->header);
	return rc;
}

/* The exact time of the first record, even if a JSON writer rounded it. */
static int set_wall(struct recovery *r)
{
	json_t *first = json_object_get(r->json, "first");

	r->header.wall_ns = r->chunk->info.wall_ns;
	if (!json_is_object(first))
		return 0;
	return json_object_set_new(first, "wall_ns", json_integer(r->header.wall_ns)) == 0
		       ? 0
		       : -ENOMEM;
}

/* Copies the listed chunks. If boot_id is not NULL, adds the recording's end, unless the
 * segment is full: bc_recover_end() then adds it. */
static int write_copy(struct recovery *r, int dir_fd, const char *name,
	const struct bc_recover_options *options, const char *boot_id)
{
	struct bc_segment_writer writer;
	int rc = r->count != 0 ? read_listed(r, &r->listed[0]) : 0;

	if (rc != 0)
		return rc;
	if (!r->has_header)
		make_header(r, options);
	else if (r->count != 0 && r->header.first_record == r->chunk->info.first_record)
		rc = set_wall(r);
	if (rc == 0)
		rc = create_copy(r, &writer, dir_fd, name);
	if (rc != 0)
		return rc;
	rc = write_chunks(r, &writer);
	if (rc == 0 && boot_id != NULL && writer.chunks < BC_SEGMENT_CHUNKS)
		rc = append_end(r, &writer, boot_id);
	if (rc == 0)
		rc = bc_segment_seal(&writer);
	if (rc != 0) {
		unlinkat(dir_fd, writer.file.open_name, 0);
		bc_segment_abandon(&writer);
		r->result->chunks = 0;
		r->result->records = 0;
		return rc;
	}
	r->result->is_written = true;
	return 0;
}

static int recovery_open(struct recovery *r, struct bc_recovered *result)
{
	memset(result, 0, sizeof(*result));
	*r = (struct recovery){
		.result = result,
		.chunk = malloc(sizeof(*r->chunk)),
		.encoded = malloc(BC_CHUNK_ENCODED_MAX),
		.pages = malloc(sizeof(*r->pages)),
	};
	return r->chunk != NULL && r->encoded != NULL && r->pages != NULL ? 0 : -ENOMEM;
}

static void recovery_close(struct recovery *r)
{
	bc_segment_reader_close(r->reader);
	json_decref(r->json);
	free(r->listed);
	free(r->pages);
	free(r->encoded);
	free(r->chunk);
}

int bc_recover(struct bc_recovered *recovered, int in, int dir_fd, const char *name,
	const struct bc_recover_options *options)
{
	struct recovery r;
	int rc = recovery_open(&r, recovered);

	if (rc == 0)
		rc = survey(&r, in, options->progress);
	if (rc != 0)
		goto out;
	const struct bc_segment_name *fallback = options->fallback;
	if (options->must_be_fallback && r.has_identity &&
		(r.tag != bc_recording_tag(fallback->recording) ||
			r.segment != fallback->segment)) {
		recovered->damages++;
		recovered->first = (struct bc_segment_damage){
			.bytes = r.size, .what = "the contents of another file"};
		goto out;
	}
	bool lacks_end = r.has_identity && !recovered->has_end;
	/* Without a whole chunk, it is still known that the recording has begun. */
	bool is_begun = r.has_header && recovered->has_content && recovered->is_only_torn;
	const char *boot_id = lacks_end ? options->boot_id : NULL;
	if (r.count != 0 || (boot_id != NULL && is_begun))
		rc = write_copy(&r, dir_fd, name, options, boot_id);
out:
	recovery_close(&r);
	return rc;
}

/* Reads the header of the segment's last chunk. Returns 0, -ENOENT: none, or a negative errno. */
static int read_last_chunk(struct recovery *r, int last)
{
	struct bc_segment_index index;
	struct bc_chunk_info row;
	int rc = bc_segment_index_load(&index, last);

	if (rc != 0)
		return rc;
	rc = index.head.rows == 0 ? -ENOENT : 0;
	uint64_t offset = rc == 0 ? bc_segment_index_row(&index, index.head.rows - 1, &row) : 0;
	bc_segment_index_free(&index);
	if (rc != 0)
		return rc;
	return bc_chunk_header_load(r->chunk, last, offset, &row);
}

int bc_recover_end(
	struct bc_recovered *recovered, int last, int dir_fd, const char *name, const char *boot_id)
{
	const struct bc_recover_options options = {.boot_id = boot_id};
	struct bc_recording_end end;
	struct recovery r;
	int rc = recovery_open(&r, recovered);

	if (rc == 0)
		rc = bc_segment_header_load(&r.header, last);
	if (rc == 0)
		rc = read_last_chunk(&r, last);
	recovered->has_end = rc == 0 && bc_recording_end_find(&end, r.chunk);
	if (rc == 0 && !recovered->has_end) {
		const struct bc_chunk_info *info = &r.chunk->info;
		r.has_header = true;
		r.header.segment++;
		r.header.first_record = info->first_record + info->records;
		r.header.first_tick = info->last_tick;
		r.header.first_epoch = info->epoch;
		r.header.wall_ns = end_of_chunk(info, r.header.clock_hz);
		r.totals = info->totals;
		rc = write_copy(&r, dir_fd, name, &options, boot_id);
	}
	recovery_close(&r);
	return rc;
}

/* True if `all` has each chunk of `some`. */
static bool has_each(const struct recovery *all, const struct recovery *some)
{
	size_t at = 0;

	for (size_t i = 0; i < some->count; i++) {
		const struct listed_chunk *c = &some->listed[i];
		while (at < all->count && all->listed[at].first < c->first)
			at++;
		size_t same = at;
		while (same < all->count && all->listed[same].first == c->first &&
			(all->listed[same].count != c->count || all->listed[same].hash != c->hash))
			same++;
		/* A chunk without records only has events, which are not compared. */
		bool is_there = same < all->count && all->listed[same].first == c->first;
		if (!is_there && c->count != 0)
			return false;
	}
	return true;
}

int bc_recover_compare(struct bc_recovered *recovered, bool *has_all, int in, int sealed,
	const struct bc_progress_cb *progress)
{
	struct bc_recovered other_result;
	struct recovery r;
	struct recovery other = {.result = NULL};

	*has_all = false;
	int rc = recovery_open(&r, recovered);
	if (rc == 0)
		rc = recovery_open(&other, &other_result);
	if (rc == 0)
		rc = survey(&r, in, progress);
	if (rc == 0)
		rc = survey(&other, sealed, progress);
	*has_all = rc == 0 && r.tag == other.tag && has_each(&other, &r);
	recovery_close(&r);
	recovery_close(&other);
	return rc;
}
