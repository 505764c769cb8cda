#include "daemon/store/writer.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/base/clock.h"
#include "daemon/store/rotator.h"

struct bc_writer {
	struct bc_writer_options options;
	pthread_t thread;

	pthread_mutex_t lock; /* what both threads touch */
	struct bc_writer_rules new_rules;
	struct bc_writer_stats shared;
	struct bc_writer_notice_list news;
	const struct bc_recording_info *abandoned; /* give up all up to its end; NULL: nothing */

	/* The writer's thread's own. */
	struct bc_rotator files;
	bool give_up;
	const struct bc_recording_info *recording;
	struct bc_writer_notice *ended; /* for the end of the recording, which must not be missed */
	uint64_t next;                  /* sequence number of the chunk to write next */
	struct bc_encoded *waiting[];   /* by sequence number, modulo outputs_count */
};

static bool tells_end(
	const struct bc_writer_notice *news, const struct bc_recording_info *recording)
{
	for (; news != NULL; news = news->next)
		if (news->kind == BC_NOTICE_ENDED && news->recording == recording)
			return true;
	return false;
}

/* Lets the loop see how things stand, and takes over what it wants. */
static void publish(struct bc_writer *w)
{
	w->files.pair.report.is_open = w->files.pair.segment.file.fd >= 0;
	pthread_mutex_lock(&w->lock);
	w->shared = w->files.pair.report;
	if (tells_end(w->files.pair.news.first, w->abandoned))
		w->abandoned = NULL;
	bc_writer_notices_move(&w->news, &w->files.pair.news);
	w->files.rules = w->new_rules;
	w->give_up = w->abandoned != NULL;
	pthread_mutex_unlock(&w->lock);
	w->options.reported(w->options.context);
}

/* Writes a chunk, or leaves it out behind the recording's end. Returns false when that must be
 * tried again. */
static bool write_chunk(struct bc_writer *w, struct bc_encoded *e)
{
	struct bc_writer_stats *report = &w->files.pair.report;

	if (!report->is_full || e->is_written)
		return bc_rotator_write(&w->files, e);
	report->unrecorded += e->info.records;
	e->is_written = true;
	e->is_raw_written = true;
	return true;
}

/* Returns false when there is no memory to tell of its end with. */
static bool begin(struct bc_writer *w, const struct bc_recording_info *recording)
{
	if (w->ended == NULL)
		w->ended = malloc(sizeof(*w->ended));
	if (w->ended == NULL)
		return false;
	w->recording = recording;
	bc_rotator_start(&w->files, recording);
	return true;
}

/* Deals with a chunk. Returns false when it must wait and be tried again. */
static bool deal_with(struct bc_writer *w, struct bc_encoded *e)
{
	struct bc_rotator *files = &w->files;

	if (e->recording != w->recording && !begin(w, e->recording))
		return false;
	if (w->give_up) {
		bc_rotator_give_up(files, e);
	} else {
		if (!write_chunk(w, e))
			return false;
		bool is_cut = e->cut_after || e->is_last || files->pair.report.is_full ||
			      bc_rotator_are_full(files);
		if (is_cut && !bc_open_segment_cut(&files->pair))
			return false;
		bc_open_segment_clear_stuck(&files->pair);
	}
	if (e->is_last) {
		bc_open_segment_end(&files->pair, w->ended);
		w->ended = NULL;
		w->recording = NULL;
	}
	return true;
}

/* Deals with all chunks whose turn it is. */
static void pump(struct bc_writer *w)
{
	unsigned count = w->options.outputs_count;
	struct bc_encoded *e;

	while ((e = w->waiting[w->next % count]) != NULL) {
		if (w->files.pair.report.is_stuck && !w->give_up &&
			bc_now_ns() < w->files.pair.retry_at_ns)
			return;
		bc_thread_health_start(&w->files.pair.stint, "dealing with a chunk", "");
		bool is_done = deal_with(w, e);
		if (is_done) {
			w->waiting[w->next++ % count] = NULL;
			bc_queue_push(w->options.outputs, e);
		}
		publish(w);
		if (!is_done)
			return;
	}
}

static bool has_waiting(const struct bc_writer *w)
{
	for (unsigned i = 0; i < w->options.outputs_count; i++)
		if (w->waiting[i] != NULL)
			return true;
	return false;
}

static void keep_house(struct bc_writer *w)
{
	bc_thread_health_start(&w->files.pair.stint, "keeping house", "");
	bc_rotator_maintain(&w->files, has_waiting(w));
	publish(w);
}

static void *run(void *context)
{
	struct bc_writer *w = context;
	const unsigned count = w->options.outputs_count;

	keep_house(w);
	for (;;) {
		uint64_t now = bc_now_ns();
		uint64_t until = bc_rotator_due_ns(&w->files);
		uint64_t retry_at = w->files.pair.retry_at_ns;
		if (w->files.pair.report.is_stuck && has_waiting(w) && retry_at < until)
			until = retry_at;
		bc_thread_health_rest(&w->files.pair.stint);
		struct bc_encoded *e = bc_queue_pop_within(
			w->options.encoded, until > now ? until - now : 0);
		if (e != NULL) {
			assert(w->waiting[e->sequence % count] == NULL);
			w->waiting[e->sequence % count] = e;
		} else if (bc_queue_is_closed(w->options.encoded)) {
			if (!has_waiting(w))
				break;
			nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		}
		pump(w);
		if (e == NULL || bc_now_ns() >= bc_rotator_due_ns(&w->files))
			keep_house(w);
	}
	bc_rotator_close(&w->files);
	publish(w);
	return NULL;
}

int bc_writer_start(struct bc_writer **writer, const struct bc_writer_options *options)
{
	size_t waiting = options->outputs_count * sizeof(struct bc_encoded *);
	struct bc_writer *w = calloc(1, sizeof(*w) + waiting);

	if (w == NULL)
		return -ENOMEM;
	int rc = bc_rotator_init(&w->files, options->dir, options->dir_fd, &options->rules);
	if (rc != 0) {
		free(w);
		return rc;
	}
	w->options = *options;
	w->new_rules = options->rules;
	pthread_mutex_init(&w->lock, NULL);
	rc = pthread_create(&w->thread, NULL, run, w);
	if (rc != 0) {
		pthread_mutex_destroy(&w->lock);
		bc_rotator_destroy(&w->files);
		free(w);
		return -rc;
	}
	*writer = w;
	return 0;
}

void bc_writer_stats(struct bc_writer *w, struct bc_writer_stats *report)
{
	pthread_mutex_lock(&w->lock);
	*report = w->shared;
	pthread_mutex_unlock(&w->lock);
}

struct bc_writer_notice *bc_writer_pop_notices(struct bc_writer *w, struct bc_writer_stats *report)
{
	pthread_mutex_lock(&w->lock);
	if (report != NULL)
		*report = w->shared;
	struct bc_writer_notice *first = w->news.first;
	w->news = (struct bc_writer_notice_list){.first = NULL};
	pthread_mutex_unlock(&w->lock);
	return first;
}

void bc_writer_poll(struct bc_writer *w, struct bc_thread_health_seen *longest)
{
	if (bc_thread_health_poll(&w->files.pair.stint, longest))
		snprintf(longest->who, sizeof(longest->who), "the writer");
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
	if (!tells_end(w->news.first, recording))
		w->abandoned = recording;
	pthread_mutex_unlock(&w->lock);
}

void bc_writer_stop(struct bc_writer *w)
{
	if (w == NULL)
		return;
	bc_queue_close(w->options.encoded);
	pthread_join(w->thread, NULL);
	pthread_mutex_destroy(&w->lock);
	bc_rotator_destroy(&w->files);
	bc_writer_notices_free(w->news.first);
	free(w->ended);
	free(w);
}
