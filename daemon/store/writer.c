/* The writer's thread. It puts the chunks that the encoder's workers have finished in any order
 * back into order: `waiting` has a place for each that can be encoded at a time, and the next one
 * is processed when it arrives. process_chunk() is repeated until it succeeds; while the disk is
 * stuck, every 0.5 s.
 *
 * The loop sees copies: publish() exchanges stats, notices, rules and the order to give up a
 * recording under the lock, after each chunk. That order holds until the recording's ENDED has been
 * published, so chunks that are still in the encoder are given up too. */
#include "daemon/store/writer.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/store/rotator.h"
#include "formats/base/clock.h"

struct bc_writer {
	struct bc_writer_options options;
	pthread_t thread;

	pthread_mutex_t lock; /* for the members up to `abandoned` */
	struct bc_writer_rules new_rules;
	struct bc_writer_stats shared;
	struct bc_writer_notice *notices;
	const struct bc_recording_info *abandoned; /* to be given up, or NULL */

	uint64_t finish_ns; /* when bc_writer_finish() was called; 0: not yet. The caller's. */
	atomic_bool has_ended;

	/* Writer thread only. */
	struct bc_rotator rotator;
	bool give_up; /* chunks up to the last one of `abandoned` */
	const struct bc_recording_info *recording;
	uint64_t next; /* sequence number of the chunk to write next */
	unsigned waiting_count;
	struct bc_encoded *waiting[]; /* by sequence number modulo encoded_max */
};

static bool has_ended_notice(
	const struct bc_writer_notice *notice, const struct bc_recording_info *recording)
{
	for (; notice != NULL; notice = notice->next)
		if (notice->kind == BC_NOTICE_ENDED && notice->recording == recording)
			return true;
	return false;
}

/* Exchanges stats, notices and orders with the loop. */
static void publish(struct bc_writer *w)
{
	w->rotator.stats.is_open = w->rotator.segment.file.fd >= 0 || w->rotator.sealing != 0;
	pthread_mutex_lock(&w->lock);
	w->shared = w->rotator.stats;
	if (has_ended_notice(w->rotator.notices, w->abandoned))
		w->abandoned = NULL;
	bc_writer_notices_append(&w->notices, w->rotator.notices);
	w->rotator.notices = NULL;
	w->rotator.rules = w->new_rules;
	w->give_up = w->abandoned != NULL && !has_ended_notice(w->rotator.ended, w->abandoned);
	pthread_mutex_unlock(&w->lock);
	w->options.on_notices(w->options.context);
}

/* Writes or gives up a chunk, then ends the segment and the recording if the chunk says so. Returns
 * false to be called again. */
static bool process_chunk(struct bc_writer *w, struct bc_encoded *e)
{
	struct bc_rotator *rotator = &w->rotator;

	if (e->recording != w->recording) {
		if (!bc_rotator_start(rotator, e->recording))
			return false;
		w->recording = e->recording;
	}
	if (w->give_up) {
		bc_rotator_give_up(rotator, e);
	} else {
		if (!bc_rotator_write(rotator, e))
			return false;
		/* After stop_bytes, only the recording's end follows: no new segment for it. */
		bool must_cut = e->cut_after || e->is_last ||
				(bc_rotator_is_full(rotator) && !rotator->stats.is_full);
		if (must_cut && !bc_rotator_cut(rotator))
			return false;
	}
	if (e->is_last) {
		bc_rotator_end(rotator);
		w->recording = NULL;
	}
	return true;
}

/* Processes the waiting chunks that are next in sequence. */
static void process_waiting(struct bc_writer *w)
{
	unsigned count = w->options.encoded_max;
	struct bc_encoded *e;

	while ((e = w->waiting[w->next % count]) != NULL) {
		if (w->rotator.stats.is_stuck && !w->give_up &&
			bc_now_ns() < w->rotator.retry_at_ns)
			return;
		bc_thread_health_start(&w->rotator.health, "processing a chunk", "");
		bool is_done = process_chunk(w, e);
		if (is_done) {
			w->waiting[w->next++ % count] = NULL;
			w->waiting_count--;
			w->options.on_written(w->options.context, e);
		}
		publish(w);
		if (!is_done)
			return;
	}
}

static void writer_maintain(struct bc_writer *w)
{
	bc_thread_health_start(&w->rotator.health, "doing maintenance", "");
	bc_rotator_maintain(&w->rotator, w->waiting_count != 0);
	publish(w);
}

static void *writer_thread(void *context)
{
	struct bc_writer *w = context;
	const unsigned count = w->options.encoded_max;

	writer_maintain(w);
	for (;;) {
		uint64_t now = bc_now_ns();
		uint64_t until = bc_rotator_due_ns(&w->rotator);
		uint64_t retry_at = w->rotator.retry_at_ns;
		/* Nothing to retry while a worker still has the next chunk. */
		bool can_retry = w->waiting[w->next % count] != NULL;
		if (w->rotator.stats.is_stuck && can_retry && retry_at < until)
			until = retry_at;
		bc_thread_health_idle(&w->rotator.health);
		struct bc_encoded *e = bc_queue_pop_within(
			w->options.encoded, until > now ? until - now : 0);
		if (e != NULL) {
			assert(w->waiting[e->sequence % count] == NULL);
			w->waiting[e->sequence % count] = e;
			w->waiting_count++;
		} else if (bc_queue_is_over(w->options.encoded)) {
			if (w->waiting_count == 0)
				break;
			nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		}
		process_waiting(w);
		if (e == NULL || bc_now_ns() >= bc_rotator_due_ns(&w->rotator))
			writer_maintain(w);
	}
	bc_rotator_close(&w->rotator);
	publish(w);
	atomic_store(&w->has_ended, true);
	return NULL;
}

int bc_writer_start(struct bc_writer **writer, const struct bc_writer_options *options)
{
	size_t waiting = options->encoded_max * sizeof(struct bc_encoded *);
	struct bc_writer *w = calloc(1, sizeof(*w) + waiting);

	if (w == NULL)
		return -ENOMEM;
	int rc = bc_rotator_init(&w->rotator, options);
	if (rc != 0) {
		free(w);
		return rc;
	}
	w->options = *options;
	w->new_rules = options->rules;
	pthread_mutex_init(&w->lock, NULL);
	rc = pthread_create(&w->thread, NULL, writer_thread, w);
	if (rc != 0) {
		pthread_mutex_destroy(&w->lock);
		bc_rotator_close(&w->rotator);
		bc_rotator_destroy(&w->rotator);
		free(w);
		return -rc;
	}
	*writer = w;
	return 0;
}

struct bc_writer_notice *bc_writer_pop_notices(struct bc_writer *w, struct bc_writer_stats *stats)
{
	pthread_mutex_lock(&w->lock);
	*stats = w->shared;
	struct bc_writer_notice *first = w->notices;
	w->notices = NULL;
	pthread_mutex_unlock(&w->lock);
	return first;
}

void bc_writer_poll(struct bc_writer *w, struct bc_thread_health_seen *longest)
{
	bc_sealer_poll(w->rotator.sealer, longest);
	bc_thread_health_poll(&w->rotator.health, longest);
	/* Between its operations it seems to be idle; report it until it has ended. */
	if (longest->since_ns == 0 && w->finish_ns != 0 && !atomic_load(&w->has_ended))
		*longest = (struct bc_thread_health_seen){
			.since_ns = w->finish_ns,
			.wall_ns = bc_wall_ns() - (int64_t)(bc_now_ns() - w->finish_ns),
			.who = "the writer",
			.what = "ending",
		};
}

void bc_writer_set_rules(struct bc_writer *w, const struct bc_writer_rules *rules)
{
	pthread_mutex_lock(&w->lock);
	w->new_rules = *rules;
	pthread_mutex_unlock(&w->lock);
}

void bc_writer_abandon(struct bc_writer *w, const struct bc_recording_info *recording)
{
	pthread_mutex_lock(&w->lock);
	if (!has_ended_notice(w->notices, recording))
		w->abandoned = recording;
	pthread_mutex_unlock(&w->lock);
}

void bc_writer_finish(struct bc_writer *w)
{
	if (w->finish_ns != 0)
		return;
	w->finish_ns = bc_now_ns();
	bc_queue_close(w->options.encoded);
}

void bc_writer_stop(struct bc_writer *w)
{
	if (w == NULL)
		return;
	bc_writer_finish(w);
	pthread_join(w->thread, NULL);
	pthread_mutex_destroy(&w->lock);
	bc_rotator_destroy(&w->rotator);
	bc_writer_notices_free(w->notices);
	free(w);
}
