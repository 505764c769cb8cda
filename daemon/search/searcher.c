#include "daemon/search/searcher.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/ioprio.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/http/request.h"
#include "daemon/store/segment_list.h"
#include "formats/base/clock.h"
#include "formats/base/json.h"
#include "formats/search/hit_json.h"

#define SECOND_NS UINT64_C(1000000000)

#define OUT_BYTES    65536u
#define LINES_BYTES  (OUT_BYTES - 256) /* of them; the rest is for the last line */
#define STOP_SECONDS 2
#define NICE         19

enum state { WAITING, RUNNING, DONE };

/* A search. It belongs to the loop and, while it runs, to the thread; the last of them frees it. */
struct job {
	struct bc_searcher *searcher;
	struct bc_searcher_request request;
	/* The loop's: */
	struct bc_request *held;  /* until the recording is found; NULL: has its response */
	struct bc_stream *stream; /* the response */
	bool is_owner;            /* the client is */
	/* The thread's: */
	uint64_t until_ns;  /* the end of its time */
	uint64_t damaged;   /* places */
	const char *reason; /* why it was cut off; NULL: it was not */
	/* Protected by the searcher's lock: */
	enum state state;
	bool is_found;    /* there is something to search; false when DONE: no such recording */
	bool is_closed;   /* by the loop: the output is not read any more */
	uint64_t idle_ns; /* when DONE: since then the client has read nothing */
	char out[OUT_BYTES];
	size_t first; /* of `used` bytes, in a ring */
	size_t used;
};

struct bc_searcher {
	uv_async_t async;
	pthread_t thread;
	char *dir;
	uint64_t bytes_per_s;
	uint64_t limit_ns;  /* of a search */
	uint64_t client_ns; /* of a client that reads nothing */
	uint64_t due_ns;    /* the thread's: the next bytes may be read from then on */
	struct job *jobs[BC_SEARCHES_MAX]; /* the loop's; NULL: free */
	unsigned others;                   /* of users other than the owner */
	/* Protected by the lock: */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a new job, room in the output, the end */
	bool is_ending;
	struct job *queue[BC_SEARCHES_MAX]; /* waiting, those of the owner first */
	unsigned waiting;
};

/* ---- the thread */

/* Waits for a change until a time of bc_now_ns(). Needs the lock. */
static void wait_until(struct bc_searcher *s, uint64_t until_ns)
{
	struct timespec until = {
		.tv_sec = (time_t)(until_ns / SECOND_NS), .tv_nsec = (long)(until_ns % SECOND_NS)};

	pthread_cond_timedwait(&s->changed, &s->lock, &until);
}

/* Whether nobody wants the results any more. Needs the lock. */
static bool is_unwanted(const struct job *job)
{
	return job->is_closed || job->searcher->is_ending;
}

/* Cuts the search off, if there is a reason. */
static bool cut_off(struct job *job, const char *reason)
{
	if (job->reason == NULL)
		job->reason = reason;
	return false;
}

/* Keeps to the rate: bytes may be read when the time for those before them is over. */
static bool on_pace(void *context, uint64_t bytes)
{
	struct job *job = context;
	struct bc_searcher *s = job->searcher;
	uint64_t now;

	pthread_mutex_lock(&s->lock);
	uint64_t until = s->due_ns < job->until_ns ? s->due_ns : job->until_ns;
	while ((now = bc_now_ns()) < until && !is_unwanted(job) && job->reason == NULL)
		wait_until(s, until);
	bool is_over = is_unwanted(job) || job->reason != NULL;
	pthread_mutex_unlock(&s->lock);
	if (!is_over && now >= job->until_ns)
		return cut_off(job, "time limit");
	if (!is_over && s->bytes_per_s != 0)
		s->due_ns = now + (uint64_t)((double)bytes / (double)s->bytes_per_s * 1e9);
	return !is_over;
}

/* Appends to the output, which has room. Needs the lock. */
static void append(struct job *job, const char *text, size_t bytes)
{
	size_t at = (job->first + job->used) % OUT_BYTES;
	size_t n = bytes < OUT_BYTES - at ? bytes : OUT_BYTES - at;

	memcpy(job->out + at, text, n);
	memcpy(job->out, text + n, bytes - n);
	job->used += bytes;
}

/* Until when to wait for a client that reads nothing. */
static uint64_t client_limit(const struct job *job)
{
	uint64_t until = bc_now_ns() + job->searcher->client_ns;

	return until < job->until_ns ? until : job->until_ns;
}

/* Sends a line when there is room for it in the first `room` bytes of the output. Returns false if
 * the search must end. */
static bool send_line(struct job *job, json_t *object, size_t room)
{
	struct bc_searcher *s = job->searcher;
	char *text = bc_json_print_line(object);
	size_t bytes = text != NULL ? strlen(text) : 0;
	uint64_t until = client_limit(job);

	json_decref(object);
	if (text == NULL || bytes > room) {
		free(text);
		return cut_off(job, "out of memory");
	}
	pthread_mutex_lock(&s->lock);
	size_t used = job->used;
	while (job->used + bytes > room && !is_unwanted(job) && bc_now_ns() < until) {
		uv_async_send(&s->async);
		wait_until(s, until);
		if (job->used < used)
			until = client_limit(job);
		used = job->used;
	}
	bool has_room = job->used + bytes <= room;
	if (has_room)
		append(job, text, bytes);
	bool is_over = is_unwanted(job);
	if (!s->is_ending) /* then the handle may be closed */
		uv_async_send(&s->async);
	pthread_mutex_unlock(&s->lock);
	free(text);
	if (has_room)
		return !is_over;
	return cut_off(job, bc_now_ns() < job->until_ns ? "slow client" : "time limit");
}

static bool on_hit(void *context, const struct bc_search_hit *hit)
{
	struct job *job = context;

	return job->reason == NULL &&
	       send_line(job, bc_search_hit_json(hit, json_null()), LINES_BYTES);
}

static void on_fault(void *context, const struct bc_search_fault *fault)
{
	struct job *job = context;
	if (!bc_search_fault_is_damage(fault))
		return;
	job->damaged++;
	if (job->reason == NULL)
		send_line(job, bc_search_fault_json(fault), LINES_BYTES);
}

/* The paths of the segments to search, in order. Returns their number, or -1 if out of memory. */
static int list_paths(const struct job *job, const struct bc_segment_list *list, char **paths)
{
	const char *dir = job->searcher->dir;
	int count = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct bc_segment_entry *entry = &list->entries[i];
		char file[BC_SEGMENT_NAME_MAX];
		if (!bc_is_segment_entry(entry) ||
			(job->request.recording[0] != '\0' &&
				strcmp(entry->name.recording, job->request.recording) != 0))
			continue;
		bc_segment_entry_name(file, entry);
		if (asprintf(&paths[count], "%s/%s", dir, file) < 0) {
			paths[count] = NULL;
			return -1;
		}
		count++;
	}
	return count;
}

static void search_paths(struct job *job, char *const *paths, int count)
{
	const struct bc_search_io io = {.context = job, .fault = on_fault, .pace = on_pace};
	uint64_t matches = 0;
	const char *missing;

	if (count < 0 || bc_search_run(&job->request.options, paths, count, &io, on_hit, &matches,
				 &missing) != 0)
		cut_off(job, "out of memory");
	/* It always has room: see LINES_BYTES. */
	send_line(job,
		bc_search_end_json(matches, count < 0 ? 0 : count, job->damaged, job->reason),
		OUT_BYTES);
}

/* Lets the response begin. */
static void report_found(struct job *job)
{
	struct bc_searcher *s = job->searcher;

	pthread_mutex_lock(&s->lock);
	job->is_found = true;
	if (!s->is_ending) /* then the handle may be closed */
		uv_async_send(&s->async);
	pthread_mutex_unlock(&s->lock);
}

static bool must_have_segments(const struct bc_searcher_request *request)
{
	return request->recording[0] != '\0' && !request->is_known;
}

static void run_job(struct job *job)
{
	struct bc_segment_list list = {.entries = NULL};

	job->until_ns = bc_now_ns() + job->searcher->limit_ns;
	int dir_fd = open(job->searcher->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = dir_fd >= 0 ? bc_segments_list(&list, dir_fd, NULL) : -errno;
	bc_segment_list_adopt(&list, bc_is_readable_entry);
	char **paths = calloc(list.count + 1, sizeof(*paths));

	if (rc != 0)
		on_fault(job, &(struct bc_search_fault){.kind = BC_SEARCH_UNREADABLE,
				      .file = job->searcher->dir,
				      .error = rc});
	int count = paths != NULL ? list_paths(job, &list, paths) : -1;
	if (rc != 0 || count != 0 || !must_have_segments(&job->request)) {
		report_found(job);
		search_paths(job, paths, count);
	}
	for (size_t i = 0; paths != NULL && i < list.count; i++)
		free(paths[i]);
	free(paths);
	free(list.entries);
	if (dir_fd >= 0)
		close(dir_fd);
}

/* Gives way to the recording. A sandbox may refuse the class of I/O; then the kernel takes it from
 * the priority. */
static void lower_priority(void)
{
	pthread_setname_np(pthread_self(), "searcher");
	setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
	syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
}

static void *run_searcher(void *context)
{
	struct bc_searcher *s = context;

	lower_priority();
	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (s->waiting == 0 && !s->is_ending)
			pthread_cond_wait(&s->changed, &s->lock);
		if (s->is_ending)
			break;
		struct job *job = s->queue[0];
		memmove(s->queue, s->queue + 1, --s->waiting * sizeof(struct job *));
		job->state = RUNNING;
		pthread_mutex_unlock(&s->lock);
		run_job(job);
		pthread_mutex_lock(&s->lock);
		job->state = DONE;
		job->idle_ns = bc_now_ns();
		if (job->is_closed)
			free(job);
		else if (!s->is_ending)
			uv_async_send(&s->async);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- the loop */

static size_t on_read(void *context, char *out, size_t size)
{
	struct job *job = context;
	struct bc_searcher *s = job->searcher;

	pthread_mutex_lock(&s->lock);
	size_t n = size < job->used ? size : job->used;
	size_t to_end = n < OUT_BYTES - job->first ? n : OUT_BYTES - job->first;
	memcpy(out, job->out + job->first, to_end);
	memcpy(out + to_end, job->out, n - to_end);
	job->first = (job->first + n) % OUT_BYTES;
	job->used -= n;
	if (n != 0) {
		job->idle_ns = bc_now_ns();
		pthread_cond_signal(&s->changed);
	}
	pthread_mutex_unlock(&s->lock);
	return n;
}

static bool is_over(void *context)
{
	const struct job *job = context;
	struct bc_searcher *s = job->searcher;

	pthread_mutex_lock(&s->lock);
	bool is_done = job->state == DONE && job->used == 0;
	pthread_mutex_unlock(&s->lock);
	return is_done;
}

/* Removes a job that waits. Needs the lock. */
static void remove_waiting(struct bc_searcher *s, const struct job *job)
{
	unsigned i = 0;

	while (s->queue[i] != job)
		i++;
	s->waiting--;
	memmove(s->queue + i, s->queue + i + 1, (s->waiting - i) * sizeof(struct job *));
}

/* Does nothing if the job has no place any more. */
static void free_place(struct job *job)
{
	struct bc_searcher *s = job->searcher;

	for (unsigned i = 0; i < BC_SEARCHES_MAX; i++)
		if (s->jobs[i] == job) {
			s->jobs[i] = NULL;
			s->others -= !job->is_owner;
		}
}

static void on_closed(void *context)
{
	struct job *job = context;
	struct bc_searcher *s = job->searcher;

	free_place(job);
	pthread_mutex_lock(&s->lock);
	if (job->state == WAITING)
		remove_waiting(s, job);
	bool is_running = job->state == RUNNING;
	job->is_closed = true;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (!is_running)
		free(job);
}

/* Returns false if out of memory. */
static bool start_stream(struct job *job, struct bc_request *request)
{
	static const struct bc_stream_ops ops = {
		.read = on_read, .is_over = is_over, .closed = on_closed};

	job->stream = bc_request_stream(request, "application/x-ndjson", &ops, job);
	return job->stream != NULL;
}

/* The client has disconnected before its response. */
static void on_abandoned(void *context)
{
	struct job *job = context;

	bc_request_respond(job->held, 500, NULL, NULL, NULL);
	on_closed(job);
}

/* Responds to a held request, once it is known whether its recording exists. */
static void answer(struct job *job)
{
	struct bc_request *request = job->held;

	pthread_mutex_lock(&job->searcher->lock);
	bool is_found = job->is_found;
	bool is_done = job->state == DONE;
	pthread_mutex_unlock(&job->searcher->lock);
	if (!is_found && !is_done)
		return;
	job->held = NULL;
	if (is_found && start_stream(job, request))
		return;
	bc_request_respond(request, 404, "application/json",
		is_found ? NULL : strdup("{\"error\":\"no such recording\"}\n"), NULL);
	on_closed(job);
}

static void on_async(uv_async_t *async)
{
	struct bc_searcher *s = async->data;

	for (unsigned i = 0; i < BC_SEARCHES_MAX; i++)
		if (s->jobs[i] != NULL && s->jobs[i]->held != NULL)
			answer(s->jobs[i]);
		else if (s->jobs[i] != NULL)
			bc_stream_wake(s->jobs[i]->stream);
}

/* Whether a search has ended, but its client does not read what is left. */
static bool is_stalled(const struct job *job)
{
	struct bc_searcher *s = job->searcher;

	pthread_mutex_lock(&s->lock);
	bool is_idle = job->state == DONE && bc_now_ns() - job->idle_ns >= s->client_ns;
	pthread_mutex_unlock(&s->lock);
	return is_idle && job->held == NULL;
}

/* Disconnects the client of a stalled search for a new one. Returns false if there is none. */
static bool drop_stalled(struct bc_searcher *s, bool is_owner)
{
	for (unsigned i = 0; i < BC_SEARCHES_MAX; i++) {
		struct job *job = s->jobs[i];
		if (job == NULL || (job->is_owner && !is_owner) || !is_stalled(job))
			continue;
		free_place(job);
		bc_stream_abort(job->stream);
		return true;
	}
	return false;
}

/* Returns BC_SEARCHES_MAX if no place is free for this client. */
static unsigned find_place(const struct bc_searcher *s, bool is_owner)
{
	unsigned place = 0;

	if (!is_owner && s->others == BC_SEARCHES_OTHERS)
		return BC_SEARCHES_MAX;
	while (place < BC_SEARCHES_MAX && s->jobs[place] != NULL)
		place++;
	return place;
}

int bc_searcher_add(
	struct bc_searcher *s, struct bc_request *request, const struct bc_searcher_request *search)
{
	static const struct bc_deferred_ops held_ops = {.abandoned = on_abandoned};
	bool is_owner = bc_request_is_owner(request);
	unsigned place = find_place(s, is_owner);

	if (place == BC_SEARCHES_MAX && drop_stalled(s, is_owner))
		place = find_place(s, is_owner);
	if (place == BC_SEARCHES_MAX)
		return -EBUSY;
	struct job *job = calloc(1, sizeof(*job));
	if (job == NULL)
		return -ENOMEM;
	job->searcher = s;
	job->request = *search;
	job->is_owner = is_owner;
	if (must_have_segments(search)) {
		job->held = request;
		bc_request_defer(request, &held_ops, job);
	} else if (!start_stream(job, request)) {
		free(job);
		return -ENOMEM;
	}
	s->jobs[place] = job;
	s->others += !is_owner;
	pthread_mutex_lock(&s->lock);
	unsigned at = s->waiting++;
	for (; is_owner && at != 0 && !s->queue[at - 1]->is_owner; at--)
		s->queue[at] = s->queue[at - 1];
	s->queue[at] = job;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

/* ---- open and close */

static void on_async_closed(uv_handle_t *handle)
{
	struct bc_searcher *s = handle->data;

	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s->dir);
	free(s);
}

int bc_searcher_open(struct bc_searcher **searcher, uv_loop_t *loop, const char *dir,
	uint64_t bytes_per_s, uint64_t limit_ns, uint64_t client_ns)
{
	struct bc_searcher *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;

	if (s == NULL)
		return -ENOMEM;
	s->dir = strdup(dir);
	s->bytes_per_s = bytes_per_s;
	s->limit_ns = limit_ns;
	s->client_ns = client_ns;
	int rc = s->dir != NULL ? uv_async_init(loop, &s->async, on_async) : -ENOMEM;
	if (rc != 0) {
		free(s->dir);
		free(s);
		return rc;
	}
	s->async.data = s;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attr);
	pthread_condattr_destroy(&attr);
	rc = -pthread_create(&s->thread, NULL, run_searcher, s);
	if (rc != 0) {
		uv_close((uv_handle_t *)&s->async, on_async_closed);
		return rc;
	}
	*searcher = s;
	return 0;
}

void bc_searcher_close(struct bc_searcher *s)
{
	struct timespec until;

	if (s == NULL)
		return;
	for (unsigned i = 0; i < BC_SEARCHES_MAX; i++)
		assert(s->jobs[i] == NULL);
	pthread_mutex_lock(&s->lock);
	s->is_ending = true;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += STOP_SECONDS;
	bool is_over = pthread_timedjoin_np(s->thread, NULL, &until) == 0;
	uv_close((uv_handle_t *)&s->async, is_over ? on_async_closed : NULL);
}
