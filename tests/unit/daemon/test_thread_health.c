#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/thread_health.h"
#include "daemon/ingest/encoder.h"
#include "formats/base/clock.h"
#include "tests/support/test.h"

TEST_THREADS;

TEST(the_oldest_operation_of_several_threads_is_kept)
{
	struct bc_thread_health threads[3];
	struct bc_thread_health_seen longest = {.since_ns = 0};

	for (int i = 0; i < 3; i++)
		bc_thread_health_init(&threads[i], (const char *[]){"A", "B", "C"}[i]);
	bc_thread_health_start(&threads[1], "first", "");
	usleep(1000);
	bc_thread_health_start(&threads[0], "second", "");
	bc_thread_health_poll(&threads[0], &longest);
	assert_string_equal(longest.who, "A");
	bc_thread_health_poll(&threads[1], &longest);
	assert_string_equal(longest.who, "B");
	bc_thread_health_poll(&threads[2], &longest);
	bc_thread_health_poll(&threads[0], &longest);
	assert_string_equal(longest.who, "B");
	assert_string_equal(longest.what, "first");
	/* After another operation, it is no longer the oldest. */
	usleep(1000);
	bc_thread_health_start(&threads[1], "third", "");
	longest.since_ns = 0;
	for (int i = 0; i < 3; i++)
		bc_thread_health_poll(&threads[i], &longest);
	assert_string_equal(longest.who, "A");
	assert_string_equal(longest.what, "second");
	for (int i = 0; i < 3; i++)
		bc_thread_health_destroy(&threads[i]);
}

TEST(a_long_name_is_cut)
{
	struct bc_thread_health health;
	struct bc_thread_health_seen seen = {.since_ns = 0};
	char name[2 * BC_THREAD_HEALTH_FILE_MAX];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	bc_thread_health_init(&health, "A");
	bc_thread_health_start(&health, "syncing", name);
	bc_thread_health_poll(&health, &seen);
	assert_int_equal(strlen(seen.file), BC_THREAD_HEALTH_FILE_MAX - 1);
	bc_thread_health_destroy(&health);
}

/* ---- workers that hang */

#define WORKERS 2u

struct fixture {
	struct bc_queue chunks;
	struct bc_queue outputs;
	struct bc_queue encoded;
	struct bc_encoder *encoder;
	struct bc_recording_info recording;
	struct bc_slot *slots[WORKERS];
	struct bc_encoded *all[WORKERS];
	pthread_mutex_t gate; /* while it is locked, workers don't finish their chunk */
};

static void on_encoded(void *context, struct bc_encoded *out, struct bc_slot *slot)
{
	struct fixture *f = context;

	(void)slot;
	bc_queue_push(&f->encoded, out);
	pthread_mutex_lock(&f->gate);
	pthread_mutex_unlock(&f->gate);
}

static void set_up(struct fixture *f)
{
	struct bc_queue *queues[] = {&f->chunks, &f->outputs, &f->encoded};

	pthread_mutex_init(&f->gate, NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(bc_queue_init(queues[i], WORKERS), 0);
	bc_recording_info_init(&f->recording);
	for (unsigned i = 0; i < WORKERS; i++) {
		f->slots[i] = calloc(1, sizeof(*f->slots[i]));
		f->all[i] = malloc(sizeof(*f->all[i]));
		assert_non_null(f->slots[i]);
		assert_non_null(f->all[i]);
		f->slots[i]->recording = &f->recording;
		bc_chunk_reset(&f->slots[i]->chunk, 0, 0);
		f->slots[i]->chunk.info.records = 100;
		bc_queue_push(&f->outputs, f->all[i]);
	}
	struct bc_encoder_queues options = {
		.chunks = &f->chunks,
		.outputs = &f->outputs,
		.on_encoded = on_encoded,
		.context = f,
	};
	assert_int_equal(bc_encoder_start(&f->encoder, WORKERS, BC_LEVEL_DEFAULT, &options), 0);
}

static void tear_down(struct fixture *f)
{
	bc_encoder_stop(f->encoder);
	bc_recording_info_destroy(&f->recording);
	bc_queue_destroy(&f->chunks);
	bc_queue_destroy(&f->outputs);
	bc_queue_destroy(&f->encoded);
	for (unsigned i = 0; i < WORKERS; i++) {
		free(f->slots[i]);
		free(f->all[i]);
	}
	pthread_mutex_destroy(&f->gate);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static bool is_busy(struct fixture *f, struct bc_thread_health_seen *longest)
{
	longest->since_ns = 0;
	bc_encoder_poll(f->encoder, longest);
	return longest->since_ns != 0;
}

TEST_F(a_worker_that_hangs_in_a_chunk_is_reported)
{
	struct bc_thread_health_seen longest;
	struct bc_thread_health_seen again;

	assert_false(is_busy(f, &longest));
	uint64_t before = bc_now_ns();
	pthread_mutex_lock(&f->gate);
	bc_queue_push(&f->chunks, f->slots[0]);
	assert_non_null(bc_queue_pop(&f->encoded));
	assert_true(is_busy(f, &longest));
	assert_in_range(longest.since_ns, before, bc_now_ns());
	assert_string_equal(longest.what, "encoding a chunk");
	assert_string_equal(longest.file, "");
	assert_true(strcmp(longest.who, "worker 1 of 2") == 0 ||
		    strcmp(longest.who, "worker 2 of 2") == 0);
	/* A second worker hangs later; the first one is still reported. */
	bc_queue_push(&f->chunks, f->slots[1]);
	assert_non_null(bc_queue_pop(&f->encoded));
	assert_true(is_busy(f, &again));
	assert_int_equal(again.since_ns, longest.since_ns);
	assert_string_equal(again.who, longest.who);
	/* An older operation of another thread is kept. */
	struct bc_thread_health_seen older = {.since_ns = before - 1, .who = "other"};
	bc_encoder_poll(f->encoder, &older);
	assert_string_equal(older.who, "other");
	pthread_mutex_unlock(&f->gate);
	while (is_busy(f, &longest))
		usleep(1000);
	for (unsigned i = 0; i < WORKERS; i++)
		bc_queue_push(&f->outputs, f->all[i]);
}
