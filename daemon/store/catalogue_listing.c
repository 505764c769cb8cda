/* inotify reports what others change (bc_catalogue_notice()), but not what another host changes on
 * a file server, nor more than its queue holds. So the thread lists again and again, at once after
 * an overflow; between listings it rests 200 times as long as the last one took, at most a minute.
 *
 * States: incomplete, until the directory has been listed once, and again after set_dir(): no rule
 * applies. A listing then reads the headers of the first files, and of each recording until one has
 * the sequence number, and assumes that its other sealed segments are ours: otherwise a start in a
 * large directory would wait for minutes. Complete: a listing reads the header of each file that is
 * new or has changed, and of some that were assumed to be ours. In a small directory, none is
 * assumed.
 *
 * The lock here is taken before the catalogue's. */
#include "daemon/store/catalogue_listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "formats/base/clock.h"
#include "formats/base/grow.h"
#include "formats/base/host.h"
#include "formats/base/text.h"
#include "formats/segment/recover.h"

/* The thread rests this many times as long as a listing takes, within these limits. */
#define REST_RATIO  200u
#define REST_MIN_NS UINT64_C(1000000000)
#define REST_MAX_NS UINT64_C(60000000000)

/* After a failed listing, it rests this long. */
#define RETRY_NS UINT64_C(5000000000)

/* After a failed attempt to seal what was left open: that, and this many times what it took. */
#define SEAL_RATIO 20u

/* bc_catalogue_notice() stops after this long and leaves the rest for the next call. A new file is
 * looked at when its writer closes it: until then, its header may be incomplete. */
#define NOTICE_NS UINT64_C(100000000)
#define NOTICED   (IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE)

/* A listing alternates between this much work and as much rest, to delay nothing else. */
#define TURN_NS UINT64_C(5000000)

/* The longest listing that bc_catalogue_refresh_small() repeats. */
#define SMALL_NS UINT64_C(20000000)

/* Headers that a listing reads although it could assume that the files are ours: this many, and one
 * of this many segments, so that after as many listings each has been read. */
#define LISTING_READS 64u

/* A listing that took longer is worth a line in the log. */
#define LONG_NS UINT64_C(1000000000)

#define STOP_NS UINT64_C(2000000000)

struct watch {
	struct bc_catalogue catalogue; /* the first member: see watch_of() */

	pthread_mutex_t listing_lock; /* held during a listing; for the members up to `lock` */
	int dir_fd;
	int last_error;
	uint64_t seal_at_ns; /* not before, because it failed */
	struct bc_log_limits limits;

	pthread_mutex_t lock; /* for the members up to has_ended */
	pthread_cond_t changed;
	int next_fd;      /* replaces dir_fd at the next listing; -1: none */
	uint64_t took_ns; /* the last listing */
	uint64_t begun;   /* listings */
	uint64_t listed;  /* number of the last complete one */
	uint64_t needed;  /* after an overflow: number of the listing to wait for */
	bool has_failed;  /* the last listing */
	bool is_stopping;
	bool has_ended; /* the thread */

	int notify_fd; /* of bc_catalogue_notice(); -1: none */

	bool has_thread;
	pthread_t thread;
	char *dir;
};

static struct watch *watch_of(struct bc_catalogue *catalogue)
{
	return (struct watch *)catalogue;
}

/* Listing */

struct listing {
	struct watch *w;
	uint64_t turn_ns;              /* when the current turn began */
	unsigned reads;                /* left of LISTING_READS */
	struct bc_segment_name *fresh; /* in the directory, but not in the tables */
	size_t count;
	size_t capacity;
};

static bool is_stopping(struct watch *w)
{
	pthread_mutex_lock(&w->lock);
	bool is = w->is_stopping;
	pthread_mutex_unlock(&w->lock);
	return is;
}

/* Rests if it is time to. Returns false to stop. */
static bool has_turn(struct listing *l)
{
	uint64_t now = bc_now_ns();

	if (now - l->turn_ns < TURN_NS)
		return true;
	if (is_stopping(l->w))
		return false;
	nanosleep(&(struct timespec){.tv_nsec = (long)TURN_NS}, NULL);
	l->turn_ns = bc_now_ns();
	return true;
}

/* Reads a header that could be assumed, as long as reads are left. */
static int look(struct listing *l, const struct bc_segment_name *name, bool is_assumed)
{
	bool reads = is_assumed && l->reads != 0;

	l->reads -= reads;
	return bc_catalogue_look(&l->w->catalogue, l->w->dir_fd, name,
		reads ? BC_LOOK_INSIDE : BC_LOOK_LISTED, NULL, &l->w->limits);
}

/* Looks at a file if it is in the tables; else remembers it. Returns 0 or -ENOMEM. */
static int compare_with_tables(struct listing *l, const struct bc_segment_name *name)
{
	bool is_assumed;

	if (bc_catalogue_find(&l->w->catalogue, name, &is_assumed)) {
		(void)look(l, name, is_assumed);
		return 0;
	}
	struct bc_segment_name *fresh = bc_grow(l->fresh, &l->capacity, l->count, sizeof(*fresh));
	if (fresh == NULL)
		return -ENOMEM;
	l->fresh = fresh;
	fresh[l->count++] = *name;
	return 0;
}

static int read_names(struct listing *l, DIR *dir)
{
	struct bc_segment_name name;
	int rc = 0;

	while (rc == 0) {
		errno = 0;
		const struct dirent *item = readdir(dir);
		if (item == NULL)
			return -errno;
		if (!has_turn(l))
			return -ECANCELED;
		if (bc_segment_name_read(&name, item->d_name))
			rc = compare_with_tables(l, &name);
	}
	return rc;
}

/* By name, so that they are added at the end of the tables. */
static int add_fresh(struct listing *l)
{
	if (l->count != 0)
		qsort(l->fresh, l->count, sizeof(*l->fresh), bc_segment_name_compare);
	for (size_t i = 0; i < l->count; i++) {
		if (!has_turn(l))
			return -ECANCELED;
		if (look(l, &l->fresh[i], true) == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

/* From the end of the tables, where removing is cheap. */
static int remove_stale(struct listing *l)
{
	struct watch *w = l->w;
	struct bc_segment_name name = {.recording = "\xff"}; /* after all ids */

	while (bc_catalogue_find_before(&w->catalogue, &name, false)) {
		(void)bc_catalogue_look(&w->catalogue, w->dir_fd, &name, BC_LOOK, NULL, &w->limits);
		if (!has_turn(l))
			return -ECANCELED;
	}
	return 0;
}

static int list_directory(struct watch *w)
{
	int fd = openat(w->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct listing l = {.w = w,
		.turn_ns = bc_now_ns(),
		.reads = LISTING_READS +
			 (unsigned)(bc_catalogue_sums(&w->catalogue).segments / LISTING_READS)};

	if (dir == NULL) {
		int rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	int rc = read_names(&l, dir);
	closedir(dir);
	if (rc == 0)
		rc = add_fresh(&l);
	if (rc == 0)
		rc = remove_stale(&l);
	free(l.fresh);
	return rc;
}

static void begin_listing(struct watch *w)
{
	bc_catalogue_begin_listing(&w->catalogue);
	pthread_mutex_lock(&w->lock);
	w->begun++;
	if (w->next_fd >= 0) {
		close(w->dir_fd);
		w->dir_fd = w->next_fd;
		w->next_fd = -1;
	}
	pthread_mutex_unlock(&w->lock);
}

int bc_catalogue_refresh(struct bc_catalogue *catalogue)
{
	struct watch *w = watch_of(catalogue);

	pthread_mutex_lock(&w->listing_lock);
	uint64_t began_ns = bc_now_ns();
	begin_listing(w);
	int rc = list_directory(w);
	bc_log_limits_poll(&w->limits, began_ns);
	pthread_mutex_lock(&w->lock);
	/* With a next_fd, it was of the old directory. */
	if (rc == 0 && w->next_fd < 0) {
		bc_catalogue_set_complete(catalogue, true);
		w->listed = w->begun;
	}
	w->took_ns = bc_now_ns() - began_ns;
	w->has_failed = rc != 0;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	pthread_mutex_unlock(&w->listing_lock);
	return rc;
}

void bc_catalogue_refresh_small(struct bc_catalogue *catalogue)
{
	struct watch *w = watch_of(catalogue);

	pthread_mutex_lock(&w->lock);
	bool is_small = bc_catalogue_sums(catalogue).is_complete && w->took_ns < SMALL_NS;
	pthread_mutex_unlock(&w->lock);
	if (is_small)
		(void)!bc_catalogue_refresh(catalogue);
}

/* Seals a copy of what the writer left open after an error. What can't be copied in whole waits for
 * the next start. Returns false if it can't be copied now. */
static bool seal_left(struct watch *w, const struct bc_segment_name *left)
{
	struct bc_segment_name sealed = *left;
	const struct bc_recover_options options = {.fallback = left, .must_be_fallback = true};
	struct bc_recovered found = {.is_written = false};
	char from[BC_SEGMENT_NAME_MAX];
	char to[BC_SEGMENT_NAME_MAX];
	struct stat st;

	sealed.is_partial = false;
	bc_segment_name_write(from, left);
	bc_segment_name_write(to, &sealed);
	int in = openat(w->dir_fd, from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (in < 0)
		return false;
	/* The recording needs the space more. */
	struct bc_free_space space = bc_free_space(w->dir_fd);
	bool has_room = faccessat(w->dir_fd, to, F_OK, 0) != 0 && fstat(in, &st) == 0 &&
			(!space.is_known || space.bytes / 2 > (uint64_t)st.st_size);
	int rc = has_room ? bc_recover(&found, in, w->dir_fd, to, &options) : -ENOSPC;
	close(in);
	if (rc != 0 || !found.is_written)
		return false;
	if (found.damages == 0 || found.is_only_torn)
		unlinkat(w->dir_fd, from, 0);
	bc_log_limited(&w->limits, BC_LOG_NOTICE, "%s/%s: sealed after an error, %s record%s",
		w->dir, to, BC_GROUPED(found.records), bc_plural(found.records));
	(void)!bc_catalogue_look(&w->catalogue, w->dir_fd, left, BC_LOOK, NULL, &w->limits);
	(void)!bc_catalogue_look(&w->catalogue, w->dir_fd, &sealed, BC_LOOK, NULL, &w->limits);
	return true;
}

static void seal_all_left(struct watch *w)
{
	struct bc_segment_name name = {.recording = "\xff"}; /* after all ids */
	uint64_t began_ns = bc_now_ns();
	bool is_done = true;

	if (began_ns < w->seal_at_ns)
		return;
	while (!is_stopping(w) && bc_catalogue_find_before(&w->catalogue, &name, true))
		is_done = seal_left(w, &name) && is_done;
	uint64_t now = bc_now_ns();
	w->seal_at_ns = is_done ? 0 : now + RETRY_NS + SEAL_RATIO * (now - began_ns);
}

/* The thread */

static struct timespec time_at(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}

bool bc_catalogue_wait(struct bc_catalogue *catalogue, uint64_t ns)
{
	struct watch *w = watch_of(catalogue);
	struct timespec until = time_at(bc_now_ns() + ns);
	bool is_complete;
	int rc = 0;

	pthread_mutex_lock(&w->lock);
	while (!(is_complete = bc_catalogue_sums(catalogue).is_complete) && rc == 0)
		rc = pthread_cond_timedwait(&w->changed, &w->lock, &until);
	pthread_mutex_unlock(&w->lock);
	return is_complete;
}

/* Rests after a listing. Returns false to end. */
static bool rest(struct watch *w)
{
	int rc = 0;

	pthread_mutex_lock(&w->lock);
	uint64_t rest_ns = w->has_failed ? RETRY_NS : REST_RATIO * w->took_ns;
	rest_ns = rest_ns < REST_MIN_NS ? REST_MIN_NS : rest_ns;
	struct timespec until = time_at(
		bc_now_ns() + (rest_ns < REST_MAX_NS ? rest_ns : REST_MAX_NS));
	while (!w->is_stopping && w->next_fd < 0 && rc == 0 &&
		(w->begun >= w->needed || w->has_failed))
		rc = pthread_cond_timedwait(&w->changed, &w->lock, &until);
	bool goes_on = !w->is_stopping;
	pthread_mutex_unlock(&w->lock);
	return goes_on;
}

static void log_listing(struct watch *w, int rc, bool was_complete)
{
	struct bc_catalogue_sums sums = bc_catalogue_sums(&w->catalogue);

	if (rc != 0 && rc != -ECANCELED && rc != w->last_error)
		bc_log(BC_LOG_ERROR, "%s: can't list the directory: %s; %s", w->dir, strerror(-rc),
			sums.is_complete ? "what others add or delete is not noticed"
					 : "the space rules do not apply");
	if (rc == 0 && !was_complete && w->took_ns >= LONG_NS)
		bc_log(BC_LOG_NOTICE,
			"%s: listing %llu segments took %.1f s; from now on, the space rules apply",
			w->dir, (unsigned long long)sums.segments, (double)w->took_ns * 1e-9);
	w->last_error = rc;
}

static void *catalogue_thread(void *context)
{
	struct watch *w = context;
	bool was_complete;

	do {
		was_complete = bc_catalogue_sums(&w->catalogue).is_complete;
		int rc = bc_catalogue_refresh(&w->catalogue);
		log_listing(w, rc, was_complete);
		if (rc == 0)
			seal_all_left(w);
	} while (rest(w));
	pthread_mutex_lock(&w->lock);
	w->has_ended = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* Returns -1 if inotify is not available. */
static int open_notify(int dir_fd)
{
	char path[32];
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
	if (fd >= 0 && inotify_add_watch(fd, path, NOTICED | IN_ONLYDIR) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int bc_catalogue_open(struct bc_catalogue **catalogue, int dir_fd)
{
	struct watch *w = calloc(1, sizeof(*w));
	pthread_condattr_t attr;

	if (w == NULL)
		return -ENOMEM;
	w->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	if (w->dir_fd < 0) {
		int rc = -errno;
		free(w);
		return rc;
	}
	w->next_fd = -1;
	w->notify_fd = open_notify(dir_fd);
	bc_catalogue_init(&w->catalogue);
	pthread_mutex_init(&w->listing_lock, NULL);
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &attr);
	pthread_condattr_destroy(&attr);
	*catalogue = &w->catalogue;
	return 0;
}

int bc_catalogue_start(struct bc_catalogue *catalogue, const char *dir)
{
	struct watch *w = watch_of(catalogue);

	if (w->notify_fd < 0)
		bc_log(BC_LOG_WARNING,
			"%s: inotify is not available (fs.inotify.max_user_instances?); what "
			"others add or delete is noticed within a minute",
			dir);
	w->dir = strdup(dir);
	int rc = w->dir == NULL ? -ENOMEM : -pthread_create(&w->thread, NULL, catalogue_thread, w);

	w->has_thread = rc == 0;
	return rc;
}

static void free_watch(struct watch *w)
{
	bc_catalogue_free(&w->catalogue);
	bc_log_limits_end(&w->limits);
	close(w->dir_fd);
	if (w->next_fd >= 0)
		close(w->next_fd);
	if (w->notify_fd >= 0)
		close(w->notify_fd);
	pthread_mutex_destroy(&w->listing_lock);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->changed);
	free(w->dir);
	free(w);
}

void bc_catalogue_stop(struct bc_catalogue *catalogue)
{
	struct watch *w = watch_of(catalogue);
	struct timespec until = time_at(bc_now_ns() + STOP_NS);
	int rc = 0;

	if (catalogue == NULL)
		return;
	pthread_mutex_lock(&w->lock);
	w->is_stopping = true;
	pthread_cond_broadcast(&w->changed);
	while (w->has_thread && !w->has_ended && rc == 0)
		rc = pthread_cond_timedwait(&w->changed, &w->lock, &until);
	bool is_leaked = w->has_thread && !w->has_ended;
	pthread_mutex_unlock(&w->lock);
	if (is_leaked)
		return;
	if (w->has_thread)
		pthread_join(w->thread, NULL);
	free_watch(w);
}

int bc_catalogue_set_dir(struct bc_catalogue *catalogue, int dir_fd)
{
	struct watch *w = watch_of(catalogue);
	int fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	int notify_fd = open_notify(dir_fd);
	pthread_mutex_lock(&w->lock);
	if (w->notify_fd >= 0)
		close(w->notify_fd);
	w->notify_fd = notify_fd;
	if (w->next_fd >= 0)
		close(w->next_fd);
	w->next_fd = fd;
	bc_catalogue_set_complete(catalogue, false);
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	return 0;
}

/* Changes by others */

static void look_at_changed(
	struct watch *w, int dir_fd, const char *events, size_t bytes, struct bc_log_limits *limits)
{
	struct bc_segment_name name;
	struct inotify_event event;

	for (size_t at = 0; at < bytes; at += sizeof(event) + event.len) {
		memcpy(&event, &events[at], sizeof(event));
		if ((event.mask & IN_Q_OVERFLOW) != 0) {
			pthread_mutex_lock(&w->lock);
			w->needed = w->begun + 1;
			pthread_cond_broadcast(&w->changed);
			pthread_mutex_unlock(&w->lock);
		} else if (event.len != 0 &&
			   bc_segment_name_read(&name, &events[at + sizeof(event)])) {
			(void)bc_catalogue_look(
				&w->catalogue, dir_fd, &name, BC_LOOK, NULL, limits);
		}
	}
}

bool bc_catalogue_notice(struct bc_catalogue *catalogue, int dir_fd, struct bc_log_limits *limits)
{
	struct watch *w = watch_of(catalogue);
	char events[2048];
	uint64_t began_ns = bc_now_ns();
	bool is_late = false;
	ssize_t n = 0;

	pthread_mutex_lock(&w->lock);
	int notify_fd = w->notify_fd;
	pthread_mutex_unlock(&w->lock);
	while (notify_fd >= 0 && !is_late && (n = read(notify_fd, events, sizeof(events))) > 0) {
		look_at_changed(w, dir_fd, events, (size_t)n, limits);
		is_late = bc_now_ns() - began_ns >= NOTICE_NS;
	}
	pthread_mutex_lock(&w->lock);
	bool is_current = !is_late && w->listed >= w->needed;
	pthread_mutex_unlock(&w->lock);
	return is_current;
}
