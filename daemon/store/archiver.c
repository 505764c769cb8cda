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
#include <unistd.h>

#include "daemon/base/log_limit.h"
#include "daemon/store/segment_list.h"
#include "formats/base/clock.h"
#include "formats/base/hash.h"
#include "formats/segment/archive.h"

#define SECOND_NS UINT64_C(1000000000)
#define SECOND_MS 1000

#define POLL_MS  (60 * SECOND_MS)
#define RETRY_NS (3600 * SECOND_NS)
#define NEVER    UINT64_MAX

/* Below that of the recording, but enough to end soon on a busy machine. */
#define NICE 10

#define STOP_SECONDS 2

/* A segment that need not be looked at, unless it changes. */
struct seen {
	uint64_t name_hash;
	uint64_t bytes;
	int64_t changed_ns;
	uint64_t until_ns; /* bc_now_ns(), or NEVER: for good */
};

struct bc_archiver {
	pthread_t thread;
	char *dir;
	int wake_fd; /* readable: the end */
	atomic_bool is_allowed;
	_Atomic uint64_t keep_free_bytes;
	uint64_t after_ns;
	uint64_t bytes_per_s;
	uint64_t due_ns;   /* bc_now_ns() from which on the next bytes may be used */
	struct seen *seen; /* sorted by name_hash */
	size_t seen_count;
	struct bc_log_limits limits;
};

/* Waits for this time. Returns false at the end. */
static bool wait_ms(struct bc_archiver *a, int ms)
{
	struct pollfd wake = {.fd = a->wake_fd, .events = POLLIN};

	return poll(&wake, 1, ms) <= 0;
}

static bool wait_until_allowed(struct bc_archiver *a)
{
	while (!atomic_load(&a->is_allowed))
		if (!wait_ms(a, SECOND_MS))
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
	for (; now < a->due_ns; now = bc_now_ns()) {
		uint64_t left_ms = (a->due_ns - now) / 1000000 + 1;
		if (!wait_ms(a, left_ms < SECOND_MS ? (int)left_ms : SECOND_MS))
			return;
	}
	a->due_ns = now + (uint64_t)((double)bytes / (double)a->bytes_per_s * 1e9);
}

static int compare_seen(const void *a, const void *b)
{
	const struct seen *x = a;
	const struct seen *y = b;

	return (x->name_hash > y->name_hash) - (x->name_hash < y->name_hash);
}

static struct seen seen_of(const struct bc_segment_entry *entry)
{
	char file[BC_SEGMENT_NAME_MAX];

	bc_segment_entry_name(file, entry);
	return (struct seen){
		.name_hash = bc_hash(file, strlen(file)),
		.bytes = entry->bytes,
		.changed_ns = entry->changed_ns,
	};
}

/* Whether a segment was looked at before, and need not be now. Sets seen->until_ns. */
static bool is_seen(const struct bc_archiver *a, struct seen *seen)
{
	const struct seen *before = a->seen_count == 0 ? NULL
						       : bsearch(seen, a->seen, a->seen_count,
								 sizeof(*seen), compare_seen);

	if (before == NULL || before->bytes != seen->bytes ||
		before->changed_ns != seen->changed_ns || before->until_ns <= bc_now_ns())
		return false;
	seen->until_ns = before->until_ns;
	return true;
}

static void log_failure(
	struct bc_archiver *a, const char *file, const struct bc_archived *archived, int rc)
{
	const char *why = archived->why;

	if (rc == -EBADMSG)
		bc_log_limited(&a->limits, BC_LOG_WARNING, "%s/%s: can't archive it: %s", a->dir,
			file, why);
	else
		bc_log_limited(&a->limits, BC_LOG_WARNING, "%s/%s: can't archive it now: %s%s%s",
			a->dir, file, why, why[0] != '\0' ? ": " : "", strerror(-rc));
}

/* Returns until when the segment need not be looked at again. */
static uint64_t archive_segment(
	struct bc_archiver *a, int dir_fd, const struct bc_segment_entry *entry)
{
	const struct bc_archive_options options = {
		.wake_fd = a->wake_fd,
		.keep_free_bytes = atomic_load(&a->keep_free_bytes),
		.on_bytes = on_bytes,
		.context = a,
	};
	struct bc_archived archived;
	char file[BC_SEGMENT_NAME_MAX];

	bc_segment_entry_name(file, entry);
	int rc = bc_segment_archive(&archived, dir_fd, file, &options);
	if (rc == 0 && archived.is_replaced)
		bc_log(BC_LOG_INFO, "%s: archived: %.1f MB, was %.1f MB", file,
			(double)archived.bytes_after * 1e-6, (double)archived.bytes_before * 1e-6);
	if (rc == 0)
		return archived.is_replaced ? 0 : NEVER; /* the new file differs from the entry */
	if (rc == -ECANCELED || rc == -ENOENT || rc == -EBUSY)
		return 0;
	log_failure(a, file, &archived, rc);
	return rc == -EBADMSG ? NEVER : bc_now_ns() + RETRY_NS;
}

/* Archives the segments that are old enough, from the oldest on, and remembers what it has seen. */
static void archive_all(struct bc_archiver *a, int dir_fd, struct bc_known_files *known)
{
	struct bc_segment_list list;
	int64_t newest_ns = bc_wall_ns() - (int64_t)a->after_ns;
	size_t count = 0;

	if (bc_segments_list(&list, dir_fd, known) != 0)
		return;
	struct seen *all = malloc((list.count + 1) * sizeof(*all));
	for (size_t i = 0; all != NULL && i < list.count && wait_ms(a, 0) && wait_until_allowed(a);
		i++) {
		const struct bc_segment_entry *entry = &list.entries[i];
		if (!bc_is_segment_entry(entry) || entry->name.is_partial ||
			entry->changed_ns > newest_ns || !bc_is_own_entry(entry, dir_fd))
			continue;
		all[count] = seen_of(entry);
		if (!is_seen(a, &all[count]))
			all[count].until_ns = archive_segment(a, dir_fd, entry);
		count++;
	}
	free(list.entries);
	if (all == NULL)
		return;
	qsort(all, count, sizeof(*all), compare_seen);
	free(a->seen);
	a->seen = all;
	a->seen_count = count;
}

static void *run_archiver(void *context)
{
	struct bc_archiver *a = context;
	struct bc_known_files known = {.files = NULL};

	/* On Linux, this is of the thread, and the I/O scheduler goes by it, too. */
	(void)!setpriority(PRIO_PROCESS, 0, NICE);
	do {
		/* Another directory may have the name by now. */
		int dir_fd = open(a->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dir_fd >= 0) {
			archive_all(a, dir_fd, &known);
			close(dir_fd);
		}
		bc_log_limits_poll(&a->limits, bc_now_ns());
	} while (wait_ms(a, POLL_MS));
	bc_log_limits_end(&a->limits);
	free(known.files);
	return NULL;
}

static void free_archiver(struct bc_archiver *a)
{
	if (a->wake_fd >= 0)
		close(a->wake_fd);
	free(a->seen);
	free(a->dir);
	free(a);
}

int bc_archiver_start(struct bc_archiver **archiver, const struct bc_archiver_options *options)
{
	struct bc_archiver *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return -ENOMEM;
	a->dir = strdup(options->dir);
	a->wake_fd = eventfd(0, EFD_CLOEXEC);
	a->after_ns = options->after_ns;
	a->bytes_per_s = options->bytes_per_s;
	atomic_init(&a->is_allowed, false);
	atomic_init(&a->keep_free_bytes, 0);
	int rc = a->dir == NULL ? -ENOMEM : a->wake_fd < 0 ? -errno : 0;
	if (rc == 0)
		rc = -pthread_create(&a->thread, NULL, run_archiver, a);
	if (rc != 0) {
		free_archiver(a);
		return rc;
	}
	*archiver = a;
	return 0;
}

void bc_archiver_allow(struct bc_archiver *a, bool is_allowed, uint64_t keep_free_bytes)
{
	atomic_store(&a->keep_free_bytes, keep_free_bytes);
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
