/* Threads that decode the next chunks of a sealed segment while its reader works on earlier ones.
 *
 * Needed chunk n uses slot n % slots, which is free, busy (a thread decodes it), good or bad. A
 * thread claims the next chunk if its slot is less than `slots` ahead of `released`, the first
 * chunk that the reader has not passed. Invariant: a slot from `released` on is changed only by the
 * thread that claimed it, so the reader uses a good one without the lock. The reader compares the
 * row of the index with the header it has read, and decodes a chunk itself if anything differs: the
 * threads can't change what it finds. What else they do with the records (struct bc_chunk_work)
 * depends on nothing but the chunk, so that it can be done in any order. */
#include "formats/segment/decode_ahead.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/host.h"
#include "formats/segment/segment_index.h"

#define THREADS_MAX 8u
#define SLOTS_MAX   (THREADS_MAX + 2)

/* Fewer chunks are decoded before a thread has started. */
#define CHUNKS_MIN 4u

/* Chunk n of those that are needed has slot n % slots. */
struct slot {
	enum { IS_FREE, IS_BUSY, IS_BAD, IS_GOOD } state;
	uint32_t chunk;
	uint8_t *records; /* of the chunk, if IS_GOOD */
	void *result;     /* of the work, or NULL */
};

struct bc_decode_ahead {
	int fd;
	struct bc_chunk_work work;
	struct bc_segment_index index;
	uint32_t *rows; /* of the chunks that are needed, in the index */
	uint32_t chunks;
	unsigned slots;
	unsigned threads;
	pthread_t thread[THREADS_MAX];
	pthread_mutex_t mutex; /* of the rest */
	pthread_cond_t changed;
	uint32_t next;     /* the next chunk to be decoded */
	uint32_t released; /* chunks before this one are no longer needed; the reader's */
	bool is_over;
	struct slot slot[SLOTS_MAX];
};

static uint64_t chunk_info(
	const struct bc_decode_ahead *a, uint32_t chunk, struct bc_chunk_info *info)
{
	return bc_segment_index_row(&a->index, a->rows[chunk], info);
}

static bool decode_ahead(const struct bc_decode_ahead *a, struct slot *slot, uint8_t *frame)
{
	struct bc_chunk_info info;
	uint64_t offset = chunk_info(a, slot->chunk, &info);

	offset += bc_chunk_encoded_bytes(&info) - info.frame_bytes;
	if (info.records > BC_CHUNK_RECORDS || info.frame_bytes > BC_FRAME_MAX ||
		pread(a->fd, frame, info.frame_bytes, (off_t)offset) != (ssize_t)info.frame_bytes ||
		bc_frame_read_checked(slot->records, (size_t)info.records * BC_RECORD_BYTES, frame,
			info.frame_bytes, info.records_hash) != 0)
		return false;
	if (slot->result != NULL)
		a->work.run(slot->result, &info, slot->records);
	return true;
}

/* Returns the slot of the next chunk to be decoded, or NULL at the end. */
static struct slot *claim_slot(struct bc_decode_ahead *a)
{
	while (!a->is_over && a->next < a->chunks) {
		struct slot *slot = &a->slot[a->next % a->slots];
		if (a->next < a->released + a->slots && slot->state != IS_BUSY) {
			slot->chunk = a->next++;
			slot->state = IS_BUSY;
			return slot;
		}
		pthread_cond_wait(&a->changed, &a->mutex);
	}
	return NULL;
}

static void *decode_chunks(void *context)
{
	struct bc_decode_ahead *a = context;
	uint8_t *frame = malloc(BC_FRAME_MAX);
	struct slot *slot;

	pthread_mutex_lock(&a->mutex);
	while ((slot = claim_slot(a)) != NULL) {
		pthread_mutex_unlock(&a->mutex);
		bool is_good = frame != NULL && decode_ahead(a, slot, frame);
		pthread_mutex_lock(&a->mutex);
		slot->state = is_good ? IS_GOOD : IS_BAD;
		pthread_cond_broadcast(&a->changed);
	}
	pthread_mutex_unlock(&a->mutex);
	free(frame);
	return NULL;
}

static void free_ahead(struct bc_decode_ahead *a)
{
	for (unsigned i = 0; i < a->slots; i++) {
		free(a->slot[i].records);
		if (a->slot[i].result != NULL)
			a->work.close(a->slot[i].result);
	}
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->mutex);
	bc_segment_index_free(&a->index);
	free(a->rows);
	free(a);
}

static bool make_slots(struct bc_decode_ahead *a)
{
	for (unsigned i = 0; i < a->slots; i++) {
		a->slot[i].records = malloc(BC_CHUNK_BYTES);
		if (a->slot[i].records == NULL)
			return false;
		if (a->work.run != NULL)
			a->slot[i].result = a->work.open(a->work.context);
	}
	return true;
}

/* Lists the chunks that are needed, whose offsets increase. */
static bool list_rows(struct bc_decode_ahead *a,
	bool (*needs)(void *context, const struct bc_chunk_info *info), void *context)
{
	struct bc_chunk_info info;
	uint64_t end = 0;

	a->rows = malloc(((size_t)a->index.head.rows + 1) * sizeof(*a->rows));
	if (a->rows == NULL)
		return false;
	for (uint32_t row = 0; row < a->index.head.rows; row++) {
		uint64_t offset = bc_segment_index_row(&a->index, row, &info);
		if (offset < end)
			return false; /* a crafted index */
		end = offset + bc_chunk_encoded_bytes(&info);
		if (needs == NULL || needs(context, &info))
			a->rows[a->chunks++] = row;
	}
	return a->chunks >= CHUNKS_MIN;
}

struct bc_decode_ahead *bc_decode_ahead_open(int fd,
	bool (*needs)(void *context, const struct bc_chunk_info *info), void *context,
	const struct bc_chunk_work *work)
{
	unsigned cores = bc_cores();
	unsigned spare = work != NULL && work->is_most ? cores : cores - 1;
	unsigned threads = cores == 1 ? 0 : spare < THREADS_MAX ? spare : THREADS_MAX;
	struct bc_decode_ahead *a = threads != 0 ? calloc(1, sizeof(*a)) : NULL;

	if (a == NULL)
		return NULL;
	if (bc_segment_index_load(&a->index, fd) != 0) {
		free(a);
		return NULL;
	}
	pthread_mutex_init(&a->mutex, NULL);
	pthread_cond_init(&a->changed, NULL);
	a->fd = fd;
	a->slots = threads + 2;
	if (work != NULL)
		a->work = *work;
	if (list_rows(a, needs, context) && make_slots(a))
		while (a->threads < threads &&
			pthread_create(&a->thread[a->threads], NULL, decode_chunks, a) == 0)
			a->threads++;
	if (a->threads != 0)
		return a;
	free_ahead(a);
	return NULL;
}

void bc_decode_ahead_close(struct bc_decode_ahead *a)
{
	if (a == NULL)
		return;
	pthread_mutex_lock(&a->mutex);
	a->is_over = true;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->mutex);
	for (unsigned i = 0; i < a->threads; i++)
		pthread_join(a->thread[i], NULL);
	free_ahead(a);
}

/* Sets *chunk to the chunk at `offset`, from `released` on. Returns false if there is none, or if
 * its row differs from `info`. */
static bool find_chunk(const struct bc_decode_ahead *a, uint64_t offset,
	const struct bc_chunk_info *info, uint32_t *chunk)
{
	struct bc_chunk_info found;

	for (*chunk = a->released; *chunk < a->chunks; ++*chunk) {
		uint64_t at = chunk_info(a, *chunk, &found);
		if (at >= offset)
			return at == offset && bc_chunk_is_same(&found, info);
	}
	return false;
}

const uint8_t *bc_decode_ahead_pop(
	struct bc_decode_ahead *a, uint64_t offset, const struct bc_chunk_info *info, void **result)
{
	uint32_t chunk;

	*result = NULL;
	if (!find_chunk(a, offset, info, &chunk))
		return NULL;
	const struct slot *slot = &a->slot[chunk % a->slots];
	pthread_mutex_lock(&a->mutex);
	a->released = chunk;
	a->next = a->next < chunk ? chunk : a->next;
	pthread_cond_broadcast(&a->changed);
	while (a->next <= chunk || slot->chunk != chunk || slot->state == IS_BUSY)
		pthread_cond_wait(&a->changed, &a->mutex);
	pthread_mutex_unlock(&a->mutex);
	/* The slot stays as it is until the chunk is released. */
	if (slot->state != IS_GOOD)
		return NULL;
	*result = slot->result;
	return slot->records;
}
