#include "daemon/store/archiver.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log_limit.h"
#include "daemon/store/retention.h"
#include "formats/segment/archive.h"

#define SECOND_NS UINT64_C(1000000000)
#define SECOND_MS 1000

/* Between two looks at the directory. */
#define LOOK_MS (60 * SECOND_MS)

#define STOP_SECONDS 2

struct bc_archiver {
	pthread_t thread;
	char *dir;
	int dir_fd;
	int wake_fd; /* readable: the end */
	atomic_bool is_allowed;
	uint64_t after_ns;
	uint64_t bytes_per_s;
	uint64_t keep_free_bytes;
	uint64_t due_ns; /* bc_now_ns() from which on the next bytes may be used */
	struct bc_log_limits limits;
};

/* Waits, at most until the end. Returns false at the end. */
static bool rest(struct bc_archiver *a, int ms)
{
	struct pollfd wake = {.fd = a->wake_fd, .events = POLLIN};

	return poll(&wake, 1, ms) <= 0;
}

static bool wait_until_allowed(struct bc_archiver *a)
{
	while (!atomic_load(&a->is_allowed))
		if (!rest(a, SECOND_MS))
			return false;
	return true;
}

/* Keeps to the rate: each chunk may be used when the time for those before it is over. */
static void on_bytes(void *context, uint64_t bytes)
{
	struct bc_archiver *a = context;
	uint64_t now = bc_now_ns();

	if (!wait_until_allowed(a) || a->bytes_per_s == 0)
		return;
	if (a->due_ns > now)
		(void)rest(a, (int)((a->due_ns - now) / 1000000) + 1);
	a->due_ns = (a->due_ns > now ? a->due_ns : now) + bytes * SECOND_NS / a->bytes_per_s;
}

/* Whether the disk has room for a copy, which must not make the retention rules delete anything. */
static bool has_room(const struct bc_archiver *a, uint64_t bytes)
{
	struct statvfs fs;

	if (fstatvfs(a->dir_fd, &fs) != 0)
		return false;
	return (uint64_t)fs.f_bavail * fs.f_frsize > a->keep_free_bytes + 2 * bytes;
}

static void archive(struct bc_archiver *a, const struct bc_segment_entry *entry)
{
	const struct bc_archive_options options = {
		.wake_fd = a->wake_fd, .on_bytes = on_bytes, .context = a};
	struct bc_archived archived;
	char file[BC_SEGMENT_NAME_MAX];

	bc_segment_entry_name(file, entry);
	if (!has_room(a, entry->bytes))
		return;
	int rc = bc_segment_archive(&archived, a->dir_fd, file, &options);
	if (rc == 0 && archived.is_replaced)
		bc_log(BC_LOG_INFO, "%s: archived, %.2f of its size before", file,
			(double)archived.bytes_after / (double)archived.bytes_before);
	else if (rc == -EBADMSG)
		bc_log_limited(&a->limits, BC_LOG_WARNING, "%s/%s: can't archive it: %s%s%s",
			a->dir, file, archived.why, archived.what[0] != '\0' ? ": " : "",
			archived.what);
	else if (rc != 0 && rc != -ECANCELED && rc != -ENOENT && rc != -EBUSY)
		bc_log_limited(&a->limits, BC_LOG_WARNING, "%s/%s: can't archive it: %s", a->dir,
			file, strerror(-rc));
}

/* Archives the segments that are old enough, from the oldest on. */
static void archive_all(struct bc_archiver *a, struct bc_sequences *sequences)
{
	struct bc_segment_list list;
	int64_t newest_ns = bc_wall_ns() - (int64_t)a->after_ns;

	if (bc_segments_list(&list, a->dir_fd, sequences) != 0)
		return;
	for (size_t i = 0; i < list.count && rest(a, 0) && wait_until_allowed(a); i++) {
		const struct bc_segment_entry *entry = &list.entries[i];
		if (entry->format == BC_FORMAT_SEGMENT && !entry->name.is_partial &&
			entry->name.damaged == 0 && entry->changed_ns <= newest_ns)
			archive(a, entry);
	}
	free(list.entries);
}

/* Makes the thread as nice as can be, which also counts for the disk. */
static void become_nice(void)
{
	(void)!setpriority(PRIO_PROCESS, 0, 19); /* on Linux: of this thread */
}

static void *run_archiver(void *context)
{
	struct bc_archiver *a = context;
	struct bc_sequences sequences = {.known = NULL};

	become_nice();
	while (wait_until_allowed(a)) {
		archive_all(a, &sequences);
		bc_log_limits_poll(&a->limits, bc_now_ns());
		if (!rest(a, LOOK_MS))
			break;
	}
	bc_log_limits_end(&a->limits);
	free(sequences.known);
	return NULL;
}

static void free_archiver(struct bc_archiver *a)
{
	if (a->wake_fd >= 0)
		close(a->wake_fd);
	if (a->dir_fd >= 0)
		close(a->dir_fd);
	free(a->dir);
	free(a);
}

int bc_archiver_start(struct bc_archiver **archiver, const struct bc_archiver_options *options)
{
	struct bc_archiver *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return -ENOMEM;
	a->dir = strdup(options->dir);
	a->dir_fd = fcntl(options->dir_fd, F_DUPFD_CLOEXEC, 0);
	a->wake_fd = eventfd(0, EFD_CLOEXEC);
	a->after_ns = options->after_ns;
	a->bytes_per_s = options->bytes_per_s;
	a->keep_free_bytes = options->keep_free_bytes;
	atomic_init(&a->is_allowed, false);
	int rc = a->dir == NULL ? -ENOMEM : a->dir_fd < 0 || a->wake_fd < 0 ? -errno : 0;
	if (rc == 0)
		rc = -pthread_create(&a->thread, NULL, run_archiver, a);
	if (rc != 0) {
		free_archiver(a);
		return rc;
	}
	*archiver = a;
	return 0;
}

void bc_archiver_allow(struct bc_archiver *a, bool is_allowed)
{
	atomic_store(&a->is_allowed, is_allowed);
}

void bc_archiver_stop(struct bc_archiver *a)
{
	struct timespec until;

	if (a == NULL)
		return;
	(void)!eventfd_write(a->wake_fd, 1);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += STOP_SECONDS;
	if (pthread_timedjoin_np(a->thread, NULL, &until) == 0)
		free_archiver(a);
}
