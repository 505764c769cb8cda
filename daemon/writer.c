#include "daemon/writer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/lock.h"
#include "daemon/log.h"
#include "daemon/space.h"
#include "formats/segment_writer.h"

#define RETRY_NS UINT64_C(500000000)
#define LOOK_NS  UINT64_C(1000000000) /* at the space and at the open file */

/* With max_use and no filesize rule a segment is an eighth of it, so that there is something to
 * delete. */
#define FILE_FRACTION 8

struct bc_writer {
	struct bc_writer_options options;
	pthread_t thread;

	pthread_mutex_t lock; /* what both threads touch */
	struct bc_writer_rules new_rules;
	struct bc_writer_report shared;
	bool is_abandoning;

	/* The writer's thread's own. */
	int dir_fd;
	bool owns_dir_fd;
	struct bc_writer_rules rules;
	struct bc_writer_report report;
	bool give_up;
	struct bc_segment_writer segment;
	const struct bc_recording *recording;
	uint32_t next_segment;
	uint64_t unsynced; /* records written to the open segment and not durable */
	uint64_t sync_at_ns;
	uint64_t retry_at_ns;
	uint64_t stuck_since_ns;
	char stuck_reason[200]; /* as logged last */
	char space_error[256];  /* the same */
	uint64_t look_at_ns;
	uint64_t looked_at_bytes; /* report.bytes then */
	uint64_t room_bytes;      /* that might be written then before a space rule would break */
	uint64_t next_record;     /* behind the last written one of the recording */
	uint64_t given_up;        /* records of the recording */
	struct bc_chunk *note;    /* for the gap that says so */
	uint64_t next;            /* sequence number of the chunk to write next */
	struct bc_encoded *waiting[]; /* by sequence number, modulo outputs_count */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Lets the loop see how things stand, and takes over what it wants. */
static void publish(struct bc_writer *w)
{
	w->report.is_open = w->segment.fd >= 0;
	pthread_mutex_lock(&w->lock);
	w->shared = w->report;
	w->rules = w->new_rules;
	w->give_up = w->is_abandoning;
	pthread_mutex_unlock(&w->lock);
	w->options.reported(w->options.context);
}

static void set_error(struct bc_writer *w, const char *what, const char *why)
{
	if (w->report.file[0] != '\0')
		snprintf(w->report.error, sizeof(w->report.error), "%s/%s: %s: %s", w->options.dir,
			w->report.file, what, why);
	else
		snprintf(w->report.error, sizeof(w->report.error), "%s: %s: %s", w->options.dir,
			what, why);
}

/* The chunk in hand must wait. Always returns false. */
static bool get_stuck(struct bc_writer *w, const char *what, const char *why)
{
	char reason[sizeof(w->stuck_reason)];

	set_error(w, what, why);
	snprintf(reason, sizeof(reason), "%s: %s", what, why);
	if (!w->report.is_stuck || strcmp(reason, w->stuck_reason) != 0)
		bc_log(BC_LOG_ERROR,
			"%s; trying again twice a second; a source that can't wait loses what the "
			"buffer can't hold, and it is counted",
			w->report.error);
	memcpy(w->stuck_reason, reason, sizeof(reason));
	if (!w->report.is_stuck)
		w->stuck_since_ns = now_ns();
	w->report.is_stuck = true;
	w->retry_at_ns = now_ns() + RETRY_NS;
	return false;
}

static void get_unstuck(struct bc_writer *w)
{
	if (!w->report.is_stuck)
		return;
	w->report.is_stuck = false;
	w->report.is_hopeless = false;
	bc_log(BC_LOG_NOTICE, "%s: writing again, after %.1f s", w->options.dir,
		(double)(now_ns() - w->stuck_since_ns) * 1e-9);
}

static bool is_hopeless(int error)
{
	return error == ENOENT || error == ENOTDIR || error == EACCES || error == EPERM ||
	       error == EROFS || error == ENAMETOOLONG;
}

static bool is_out_of_space(int error)
{
	return error == ENOSPC || error == EDQUOT;
}

/* Leaves the open file as it is; an empty one goes. */
static void abandon_segment(struct bc_writer *w)
{
	if (w->segment.fd < 0)
		return;
	if (w->segment.chunks == 0) {
		unlinkat(w->dir_fd, w->segment.open_name, 0);
		w->next_segment--; /* its number is free again */
	} else {
		w->report.unsealed++;
	}
	bc_segment_abandon(&w->segment);
	w->unsynced = 0;
}

static void leave_segment(struct bc_writer *w)
{
	if (w->segment.chunks != 0)
		bc_log(BC_LOG_ERROR,
			"%s/%s: left as it is, its %" PRIu64
			" records with it; the next start recovers them",
			w->options.dir, w->segment.open_name, w->segment.records);
	abandon_segment(w);
}

static void sync_segment(struct bc_writer *w)
{
	int rc = bc_segment_sync(&w->segment);

	w->sync_at_ns = now_ns() + w->rules.sync_ns;
	if (rc == 0) {
		w->report.durable += w->unsynced;
		w->unsynced = 0;
		return;
	}
	set_error(w, "can't make it durable", strerror(-rc));
	bc_log(BC_LOG_ERROR,
		"%s; it stays as %s, its last %" PRIu64
		" records may be lost; going on in a new segment",
		w->report.error, w->segment.open_name, w->unsynced);
	abandon_segment(w);
}

/* Ends the open segment, if there is one. Returns false when that must be tried again. */
static bool seal_segment(struct bc_writer *w)
{
	uint64_t records = w->segment.records;
	uint32_t chunks = w->segment.chunks;

	if (w->segment.fd < 0 || chunks == 0) {
		abandon_segment(w);
		return true;
	}
	/* Apart from the index, which may be tried again: records that a failed sync has given up
	 * would look durable after the next. */
	if (w->segment.durable != w->segment.bytes) {
		sync_segment(w);
		if (w->segment.fd < 0)
			return true;
	}
	int rc = bc_segment_seal(&w->segment);
	if (rc == 0) {
		bc_log(BC_LOG_INFO, "%s: sealed, %" PRIu64 " records in %" PRIu32 " chunk%s",
			w->report.file, records, chunks, chunks == 1 ? "" : "s");
		return true;
	}
	if (is_out_of_space(-rc))
		return get_stuck(w, "can't seal it", strerror(-rc));
	set_error(w, "can't seal it", strerror(-rc));
	bc_log(BC_LOG_ERROR, "%s; it stays as %s, to be recovered at the next start",
		w->report.error, w->segment.open_name);
	abandon_segment(w);
	return true;
}

/* Somebody deleted the open file: what was written to it is gone, and what followed would be. */
static void check_deleted(struct bc_writer *w)
{
	if (w->segment.fd < 0 || !bc_segment_is_deleted(&w->segment))
		return;
	set_error(w, "deleted while it was being written", "its records are lost");
	bc_log(BC_LOG_ERROR, "%s: %" PRIu64 " of them; going on in a new segment", w->report.error,
		w->segment.records);
	bc_segment_abandon(&w->segment);
	w->report.deleted++;
	w->unsynced = 0;
}

/* The directory may have been removed, and made again, since it was opened. Returns whether there
 * is another one now, and it is ours. */
static bool reopen_dir(struct bc_writer *w)
{
	struct stat old;
	struct stat new;
	char why[256];

	if (fstat(w->dir_fd, &old) != 0 || stat(w->options.dir, &new) != 0 ||
		(old.st_dev == new.st_dev &&old.st_ino == new.st_ino))
		return false;
	int fd = bc_dir_open(w->options.dir, why, sizeof(why));
	if (fd < 0)
		return false;
	if (w->owns_dir_fd)
		close(w->dir_fd);
	w->dir_fd = fd;
	w->owns_dir_fd = true;
	return true;
}

/* How much may be written before a rule would break. */
static uint64_t room_in(const struct bc_space_rules *rules, const struct bc_space_state *state)
{
	uint64_t room = UINT64_MAX;

	if (rules->max_use_bytes != 0)
		room = rules->max_use_bytes - state->used_bytes;
	if (rules->keep_free_bytes != 0 && state->free_bytes - rules->keep_free_bytes < room)
		room = state->free_bytes - rules->keep_free_bytes;
	return room;
}

/* Keeps to the space rules. Returns false when nothing may be written now. */
static bool enforce_space(struct bc_writer *w, uint64_t coming_bytes, uint64_t coming_files)
{
	struct bc_space_state state;
	uint64_t files = coming_files != 0 ? w->rules.rotation.files : 0;

	w->looked_at_bytes = w->report.bytes;
	w->look_at_ns = now_ns() + LOOK_NS;
	w->room_bytes = UINT64_MAX;
	int rc = bc_space_enforce(
		&state, w->dir_fd, &w->rules.space, files, coming_bytes, coming_files);
	if (rc != 0)
		return true; /* the write itself will say what is wrong */
	if (state.is_over && w->segment.fd >= 0 && w->segment.chunks != 0) {
		/* The open segment is all that is left: sealed, it may be deleted. */
		if (!seal_segment(w))
			return false;
		rc = bc_space_enforce(&state, w->dir_fd, &w->rules.space, files, coming_bytes, 1);
		if (rc != 0)
			return true;
	}
	w->report.free_bytes = state.free_bytes;
	if (strcmp(state.error, w->space_error) != 0 && state.error[0] != '\0')
		bc_log(BC_LOG_ERROR, "%s/%s", w->options.dir, state.error);
	memcpy(w->space_error, state.error, sizeof(state.error));
	if (state.is_over)
		return get_stuck(w, "no room", state.why);
	w->room_bytes = room_in(&w->rules.space, &state);
	return true;
}

/* What a chunk adds to its segment, with the index that the segment then has. */
static uint64_t coming_bytes_of(const struct bc_writer *w, const struct bc_encoded *e)
{
	return e->bytes + bc_index_bytes(w->segment.fd >= 0 ? w->segment.chunks + 1 : 1);
}

/* Looks at the space again before a chunk that might break a rule. */
static bool make_room(struct bc_writer *w, const struct bc_encoded *e)
{
	uint64_t coming = coming_bytes_of(w, e);
	uint64_t since = w->report.bytes - w->looked_at_bytes;

	return w->segment.fd < 0 || w->room_bytes == UINT64_MAX ||
	       since + coming <= w->room_bytes || enforce_space(w, coming, 0);
}

static bool open_segment(struct bc_writer *w, const struct bc_encoded *e)
{
	struct bc_segment_header header = e->recording->header;
	struct bc_segment_name name = {.segment = w->next_segment};
	char file[BC_SEGMENT_NAME_MAX];

	header.segment = w->next_segment;
	header.wall_ns = e->info.wall_ns;
	header.first_tick = e->info.first_tick;
	header.first_epoch = e->info.epoch;
	header.first_record = e->info.first_record;
	memcpy(name.recording, header.recording, sizeof(name.recording));
	bc_segment_name_write(file, &name);
	if (!enforce_space(w, coming_bytes_of(w, e), 1))
		return false;
	int rc = bc_segment_create(&w->segment, w->dir_fd, file, BC_PARTIAL_SUFFIX, &header);
	if (rc == -ENOENT && reopen_dir(w))
		rc = bc_segment_create(&w->segment, w->dir_fd, file, BC_PARTIAL_SUFFIX, &header);
	if (rc != 0) {
		w->report.file[0] = '\0';
		w->report.is_hopeless = is_hopeless(-rc);
		return get_stuck(w, "can't begin a segment there", strerror(-rc));
	}
	memcpy(w->report.file, file, sizeof(file));
	w->report.segment = w->next_segment++;
	w->report.bytes += w->segment.bytes;
	w->report.recording_bytes += w->segment.bytes;
	w->sync_at_ns = now_ns() + w->rules.sync_ns;
	bc_log(BC_LOG_DEBUG, "%s: begun with record %" PRIu64, file, e->info.first_record);
	return true;
}

/* Puts a chunk into the open segment, or a new one. Returns false when that must be tried again. */
static bool append(struct bc_writer *w, struct bc_encoded *e)
{
	if (!make_room(w, e) || (w->segment.fd < 0 && !open_segment(w, e)))
		return false;
	int rc = bc_segment_append(
		&w->segment, e->data, e->header_bytes, &e->info, e->gaps, e->lost);
	if ((rc == -EFBIG || rc == -ENOMEM) && w->segment.chunks != 0)
		return seal_segment(w) && append(w, e);
	if (rc != 0) {
		get_stuck(w, "can't write to it", strerror(-rc));
		if (!is_out_of_space(-rc))
			leave_segment(w); /* the next try is in a new one */
		return false;
	}
	get_unstuck(w);
	bc_log(BC_LOG_DEBUG, "%s: chunk %" PRIu32 ", %" PRIu32 " records, %zu bytes",
		w->report.file, w->segment.chunks - 1, e->info.records, e->bytes);
	e->is_written = true;
	w->unsynced += e->info.records;
	w->next_record = e->info.first_record + e->info.records;
	w->report.written += e->info.records;
	w->report.recording_records += e->info.records;
	w->report.bytes += e->bytes;
	w->report.recording_bytes += e->bytes;
	w->report.is_full = w->rules.stop_bytes != 0 &&
			    w->report.recording_bytes >= w->rules.stop_bytes;
	return true;
}

static bool is_segment_full(const struct bc_writer *w)
{
	uint64_t limit = w->rules.rotation.file_bytes;

	if (limit == 0)
		limit = w->rules.space.max_use_bytes / FILE_FRACTION;
	return w->segment.fd >= 0 && ((limit != 0 && w->segment.bytes >= limit) ||
					     w->segment.chunks == BC_SEGMENT_CHUNKS);
}

static void begin_recording(struct bc_writer *w, const struct bc_recording *recording)
{
	w->recording = recording;
	w->next_segment = 0;
	w->next_record = 0;
	w->given_up = 0;
	w->report.recording_bytes = 0;
	w->report.recording_records = 0;
	w->report.is_full = false;
}

/* Ends what is open with a gap for the records given up, if the disk takes that much. `e` is the
 * recording's last chunk, and its bytes aren't wanted any more. */
static void note_given_up(struct bc_writer *w, struct bc_encoded *e)
{
	struct bc_chunk *note = w->note;
	struct bc_event gap = {
		.kind = BC_EVENT_GAP,
		.cause = BC_GAP_DISK,
		.exact = true,
		.value = w->given_up,
	};
	size_t header_bytes;

	if (w->given_up == 0 || w->segment.fd < 0 || w->segment.chunks == 0)
		return;
	bc_chunk_reset(note, e->info.last_tick, e->info.epoch);
	note->info.recording_tag = e->recording->tag;
	note->info.first_record = w->next_record;
	note->info.wall_ns = e->info.wall_ns;
	if (!bc_chunk_add_event(note, &gap, NULL))
		assert(!"an empty chunk has room for an event");
	bc_chunk_encode(e->data, note, &header_bytes);
	int rc = bc_segment_append(&w->segment, e->data, header_bytes, &note->info, 1, w->given_up);
	if (rc != 0)
		bc_log(BC_LOG_ERROR, "%s/%s: the gap at its end can't be written: %s",
			w->options.dir, w->report.file, strerror(-rc));
}

static void give_up(struct bc_writer *w, struct bc_encoded *e)
{
	if (!e->is_written) {
		w->report.abandoned += e->info.records;
		w->given_up += e->info.records;
	}
	if (!e->is_last)
		return;
	note_given_up(w, e);
	seal_segment(w);
	abandon_segment(w);
}

/* Deals with a chunk. Returns false when it must wait and be tried again. */
static bool deal_with(struct bc_writer *w, struct bc_encoded *e)
{
	if (e->recording != w->recording)
		begin_recording(w, e->recording);
	if (w->give_up) {
		give_up(w, e);
	} else {
		if (e->bytes != 0 && !e->is_written) {
			if (w->report.is_full)
				w->report.unrecorded += e->info.records;
			else if (!append(w, e))
				return false;
		}
		bool is_cut = e->cut_after || e->is_last || w->report.is_full || is_segment_full(w);
		if (is_cut && !seal_segment(w))
			return false;
		get_unstuck(w);
	}
	if (e->is_last) {
		w->report.recordings_ended++;
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
		if (w->report.is_stuck && !w->give_up && now_ns() < w->retry_at_ns)
			return;
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
	uint64_t now = now_ns();

	if (w->unsynced != 0 && now >= w->sync_at_ns)
		sync_segment(w);
	if (now >= w->look_at_ns) {
		check_deleted(w);
		if (enforce_space(w, 0, 0) && !has_waiting(w))
			get_unstuck(w);
	}
	publish(w);
}

static void *run(void *context)
{
	struct bc_writer *w = context;
	const unsigned count = w->options.outputs_count;

	keep_house(w);
	for (;;) {
		uint64_t now = now_ns();
		uint64_t until = w->look_at_ns;
		if (w->unsynced != 0 && w->sync_at_ns < until)
			until = w->sync_at_ns;
		if (w->report.is_stuck && has_waiting(w) && w->retry_at_ns < until)
			until = w->retry_at_ns;
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
		if (e == NULL)
			keep_house(w);
		else if (now_ns() >= w->look_at_ns ||
			 (w->unsynced != 0 && now_ns() >= w->sync_at_ns))
			keep_house(w);
	}
	if (w->segment.fd >= 0 && w->unsynced != 0)
		sync_segment(w);
	abandon_segment(w);
	publish(w);
	return NULL;
}

int bc_writer_start(struct bc_writer **writer, const struct bc_writer_options *options)
{
	size_t waiting = options->outputs_count * sizeof(struct bc_encoded *);
	struct bc_writer *w = calloc(1, sizeof(*w) + waiting);

	if (w == NULL)
		return -ENOMEM;
	w->note = malloc(sizeof(*w->note));
	if (w->note == NULL) {
		free(w);
		return -ENOMEM;
	}
	w->options = *options;
	w->rules = options->rules;
	w->new_rules = options->rules;
	w->dir_fd = options->dir_fd;
	w->segment.fd = -1;
	pthread_mutex_init(&w->lock, NULL);
	int rc = pthread_create(&w->thread, NULL, run, w);
	if (rc != 0) {
		pthread_mutex_destroy(&w->lock);
		free(w->note);
		free(w);
		return -rc;
	}
	*writer = w;
	return 0;
}

void bc_writer_report(struct bc_writer *w, struct bc_writer_report *report)
{
	pthread_mutex_lock(&w->lock);
	*report = w->shared;
	pthread_mutex_unlock(&w->lock);
}

void bc_writer_set_rules(struct bc_writer *w, const struct bc_writer_rules *rules)
{
	pthread_mutex_lock(&w->lock);
	w->new_rules = *rules;
	pthread_mutex_unlock(&w->lock);
}

void bc_writer_abandon(struct bc_writer *w)
{
	pthread_mutex_lock(&w->lock);
	w->is_abandoning = true;
	pthread_mutex_unlock(&w->lock);
}

void bc_writer_stop(struct bc_writer *w)
{
	if (w == NULL)
		return;
	bc_queue_close(w->options.encoded);
	pthread_join(w->thread, NULL);
	if (w->owns_dir_fd)
		close(w->dir_fd);
	pthread_mutex_destroy(&w->lock);
	free(w->note);
	free(w);
}
