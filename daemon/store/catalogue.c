/* Keeps a table of the recordings, sorted by id, each with a sorted table of its files. Another
 * table has the recordings in their order; after a change that is not at its end, it is sorted
 * again when it is next needed.
 *
 * What is in the tables is what the disk said, never what someone intended: bc_catalogue_look()
 * asks the disk about one name and puts the answer into the tables. If another answer has arrived
 * meanwhile, it asks again. So the writer, which looks after each of its own changes,
 * and the thread, which lists the directory for those of others, need no order between them.
 *
 * What others change, inotify tells: bc_catalogue_notice() takes it in. It does not tell
 * everything: not what another host changes on a file server, and not more than its queue holds. So
 * the thread lists again and again, and at once after an overflow.
 *
 * A listing asks for the status of each file: a second or two per million calls, and the thread
 * rests 200 times as long as it took, but at most a minute. Headers take ten times as long. So a
 * listing reads one of each new recording, and a few others; the rest are assumed to be ours, too,
 * until a later listing has read them. Before a file is deleted, its header is read in any case.
 *
 * The order is that of the sequence numbers in the headers. A recording whose number is unknown is
 * placed by its id: after the recordings with lower ids. If it were the first of all, it would be
 * deleted before older ones; if it were the last, the segments being recorded would be deleted
 * before it.
 *
 * Memory: 24 bytes a file, about 150 a recording. */
#include "daemon/store/catalogue.h"

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
#include "formats/base/atomic_file.h"
#include "formats/base/clock.h"
#include "formats/base/grow.h"
#include "formats/base/text.h"
#include "formats/recording/recording_list.h"
#include "formats/segment/segment_header.h"

/* The thread rests this many times as long as a listing takes, within these limits. */
#define REST_RATIO  200u
#define REST_MIN_NS UINT64_C(1000000000)
#define REST_MAX_NS UINT64_C(60000000000)

/* After a failure, it rests the minimum; then twice as long after each, at most so long. */
#define RETRY_MAX_NS UINT64_C(30000000000)

/* bc_catalogue_notice() works at most this long, and leaves the rest for later. A new file is
 * looked at when its writer closes it: until then, its header may be incomplete. */
#define NOTICE_NS UINT64_C(100000000)
#define NOTICED   (IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE)

/* A listing works for this long, then rests as long, so that it delays nothing on a busy machine.
 */
#define TURN_NS UINT64_C(5000000)

/* bc_catalogue_refresh_small() */
#define SMALL_NS UINT64_C(20000000)

/* A listing that took longer is worth a line in the log. */
#define LONG_NS UINT64_C(1000000000)

/* How many headers a listing reads in addition to one of each recording. */
#define READS_MIN 64u

#define STOP_SECONDS 2

/* No recorder gets there. A header that has such a number says nothing about the next one. */
#define SEQUENCE_END (UINT64_C(1) << 63)

enum owner {
	OURS,
	ASSUMED,         /* ours, as far as is known: others of its recording are */
	FOREIGN_DAMAGED, /* by its index, it is that segment: -EUCLEAN */
	FOREIGN_OTHER,   /* -EXDEV */
	FOREIGN_TEXT,    /* -EBADMSG */
	FOREIGN_DENIED,  /* -EACCES, -EPERM */
	FOREIGN_UNREAD,  /* any other error: each listing tries again */
};

struct file {
	uint64_t bytes;
	int64_t changed_ns;
	uint32_t number;
	uint16_t damaged;
	uint8_t listing; /* the last one that has seen it, modulo 256 */
	uint8_t owner : 4;
	uint8_t is_partial : 1;
	uint8_t has_links : 1;
};

struct recording {
	uint64_t sequence; /* 0: unknown */
	uint64_t order;    /* that, or the highest of the recordings with lower ids */
	struct file *files;
	uint32_t count;
	uint32_t capacity;
	uint32_t own;
	char id[];
};

struct bc_catalogue {
	pthread_mutex_t listing_lock; /* for one listing at a time, and the members up to `lock` */
	int dir_fd;
	int own_fd; /* the same, if it is ours to close; or -1 */
	int last_error;
	struct bc_log_limits limits;

	pthread_mutex_t lock; /* for all that follows */
	pthread_cond_t changed;
	struct recording **by_id;
	struct recording **by_order;
	size_t count;
	size_t capacity; /* of both */
	bool is_sorted;  /* by_order is right */
	uint64_t highest;
	uint64_t serial; /* counts the files added, removed, and with a new owner */
	struct bc_catalogue_sums sums;
	uint64_t took_ns; /* the last listing */
	int next_fd;      /* for dir_fd; -1: none */
	uint8_t listing;
	uint64_t begun;    /* listings */
	uint64_t listed;   /* the last one of them that was complete */
	uint64_t needed;   /* after an overflow: that one, or a later one */
	uint64_t retry_ns; /* the rest after a failure; 0: there was none */
	bool is_stopping;

	int notify_fd; /* the writer's; -1: none */

	bool has_thread;
	pthread_t thread;
	char *dir;
};

/* The tables. All of this needs the lock. */

static struct bc_segment_name name_of(const struct recording *r, const struct file *file)
{
	struct bc_segment_name name = {
		.segment = file->number, .is_partial = file->is_partial, .damaged = file->damaged};

	memcpy(name.recording, r->id, strlen(r->id) + 1);
	return name;
}

/* The index of a recording, or where it would be. */
static size_t find_recording(const struct bc_catalogue *c, const char *id)
{
	size_t low = 0;
	size_t high = c->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcmp(c->by_id[middle]->id, id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct recording *recording_at(const struct bc_catalogue *c, size_t at, const char *id)
{
	return at < c->count && strcmp(c->by_id[at]->id, id) == 0 ? c->by_id[at] : NULL;
}

/* As bc_segment_name_compare(), within a recording. */
static int compare_file(const struct file *file, const struct bc_segment_name *name)
{
	int64_t order = (int64_t)file->number - (int64_t)name->segment;

	if (order == 0)
		order = (int64_t)file->damaged - (int64_t)name->damaged;
	if (order == 0)
		order = (int64_t)file->is_partial - (int64_t)name->is_partial;
	return order < 0 ? -1 : order > 0;
}

/* The index of a file, or where it would be. */
static uint32_t find_file(const struct recording *r, const struct bc_segment_name *name)
{
	uint32_t low = 0;
	uint32_t high = r->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (compare_file(&r->files[middle], name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct file *file_at(
	const struct recording *r, uint32_t at, const struct bc_segment_name *name)
{
	return at < r->count && compare_file(&r->files[at], name) == 0 ? &r->files[at] : NULL;
}

static bool is_own(const struct file *file)
{
	return file->owner == OURS || file->owner == ASSUMED;
}

static void add_to_sums(struct bc_catalogue *c, struct recording *r, const struct file *file)
{
	if (!is_own(file))
		return;
	r->own++;
	c->sums.bytes += file->bytes;
	c->sums.segments += file->damaged == 0;
	c->sums.damaged_bytes += file->damaged != 0 ? file->bytes : 0;
}

static void take_from_sums(struct bc_catalogue *c, struct recording *r, const struct file *file)
{
	if (!is_own(file))
		return;
	r->own--;
	c->sums.bytes -= file->bytes;
	c->sums.segments -= file->damaged == 0;
	c->sums.damaged_bytes -= file->damaged != 0 ? file->bytes : 0;
}

static int compare_order(const void *a, const void *b)
{
	const struct recording *x = *(struct recording *const *)a;
	const struct recording *y = *(struct recording *const *)b;

	return x->order != y->order ? (x->order < y->order ? -1 : 1) : strcmp(x->id, y->id);
}

static void sort_by_order(struct bc_catalogue *c)
{
	uint64_t highest = 0;
	bool is_sorted = true;

	if (c->is_sorted)
		return;
	for (size_t i = 0; i < c->count; i++) {
		struct recording *r = c->by_id[i];
		highest = r->sequence > highest ? r->sequence : highest;
		r->order = r->sequence != 0 ? r->sequence : highest;
		is_sorted = is_sorted && r->order == highest;
		c->by_order[i] = r;
	}
	if (!is_sorted)
		qsort(c->by_order, c->count, sizeof(struct recording *), compare_order);
	c->is_sorted = true;
}

/* The first recording that is not before this order and id. */
static size_t find_order(const struct bc_catalogue *c, uint64_t order, const char *id)
{
	size_t low = 0;
	size_t high = c->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct recording *r = c->by_order[middle];
		if (r->order < order || (r->order == order && strcmp(r->id, id) < 0))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void move_items(struct recording **items, size_t to, size_t from, size_t end)
{
	memmove(&items[to], &items[from], (end - from) * sizeof(struct recording *));
}

/* Returns NULL if out of memory. */
static struct recording *insert_recording(
	struct bc_catalogue *c, size_t at, const char *id, uint64_t sequence)
{
	size_t id_bytes = strlen(id) + 1;
	size_t capacity = c->capacity;
	struct recording **by_id = bc_grow(
		c->by_id, &capacity, c->count, sizeof(struct recording *));

	if (by_id == NULL)
		return NULL;
	c->by_id = by_id;
	if (capacity != c->capacity) {
		struct recording **by_order = reallocarray(
			c->by_order, capacity, sizeof(struct recording *));
		if (by_order == NULL)
			return NULL;
		c->by_order = by_order;
		c->capacity = capacity;
	}
	struct recording *r = malloc(sizeof(*r) + id_bytes);
	if (r == NULL)
		return NULL;
	*r = (struct recording){.sequence = sequence, .order = sequence};
	memcpy(r->id, id, id_bytes);
	move_items(c->by_id, at + 1, at, c->count);
	c->by_id[at] = r;
	/* Usually, it is the last in both orders. */
	c->is_sorted = c->is_sorted && at == c->count && sequence != 0 &&
		       (c->count == 0 || c->by_order[c->count - 1]->order <= sequence);
	c->by_order[c->count++] = r;
	return r;
}

static void remove_recording(struct bc_catalogue *c, size_t at)
{
	struct recording *r = c->by_id[at];

	if (c->is_sorted) {
		size_t place = find_order(c, r->order, r->id);
		move_items(c->by_order, place, place + 1, c->count);
	}
	move_items(c->by_id, at, at + 1, c->count);
	c->count--;
	free(r->files);
	free(r);
}

/* Returns NULL if out of memory. */
static struct file *insert_file(struct recording *r, uint32_t at)
{
	if (r->files == NULL || r->count == r->capacity) {
		uint32_t capacity = r->capacity + r->capacity / 2 + 1;
		struct file *files = reallocarray(r->files, capacity, sizeof(*files));
		if (files == NULL)
			return NULL;
		r->files = files;
		r->capacity = capacity;
	}
	memmove(&r->files[at + 1], &r->files[at], (r->count - at) * sizeof(*r->files));
	r->count++;
	r->files[at] = (struct file){.owner = FOREIGN_UNREAD};
	return &r->files[at];
}

static void remove_file(struct bc_catalogue *c, const struct bc_segment_name *name)
{
	size_t place = find_recording(c, name->recording);
	struct recording *r = recording_at(c, place, name->recording);
	uint32_t at = r != NULL ? find_file(r, name) : 0;
	const struct file *file = r != NULL ? file_at(r, at, name) : NULL;

	if (file == NULL)
		return;
	take_from_sums(c, r, file);
	r->count--;
	memmove(&r->files[at], &r->files[at + 1], (r->count - at) * sizeof(*r->files));
	if (r->count == 0)
		remove_recording(c, place);
	c->serial++;
}

/* What the disk says about a file. */
struct answer {
	struct stat status;
	enum owner owner;
	uint64_t sequence;
};

static int64_t changed_ns_of(const struct stat *status)
{
	return (int64_t)status->st_mtim.tv_sec * 1000000000 + status->st_mtim.tv_nsec;
}

/* Returns 1 if a foreign file is new, or foreign for a new reason; else 0, or -ENOMEM. */
static int put_file(
	struct bc_catalogue *c, const struct bc_segment_name *name, const struct answer *answer)
{
	size_t place = find_recording(c, name->recording);
	struct recording *r = recording_at(c, place, name->recording);
	bool is_new = false;

	if (r == NULL)
		r = insert_recording(c, place, name->recording, answer->sequence);
	if (r == NULL)
		return -ENOMEM;
	uint32_t at = find_file(r, name);
	struct file *file = file_at(r, at, name);
	if (file == NULL) {
		file = insert_file(r, at);
		is_new = true;
	}
	if (file == NULL) {
		if (r->count == 0)
			remove_recording(c, place);
		return -ENOMEM;
	}
	bool is_changed = is_new || file->owner != answer->owner;
	take_from_sums(c, r, file);
	*file = (struct file){
		.bytes = (uint64_t)answer->status.st_size,
		.changed_ns = changed_ns_of(&answer->status),
		.number = name->segment,
		.damaged = (uint16_t)name->damaged,
		.listing = c->listing,
		.owner = answer->owner,
		.is_partial = name->is_partial,
		.has_links = answer->status.st_nlink > 1,
	};
	add_to_sums(c, r, file);
	c->serial += is_changed;
	if (r->sequence == 0 && answer->sequence != 0) {
		r->sequence = answer->sequence;
		c->is_sorted = false;
	}
	if (answer->sequence > c->highest && answer->sequence < SEQUENCE_END)
		c->highest = answer->sequence;
	return is_changed && !is_own(file);
}

/* What is known about a file. */
struct known {
	uint64_t serial;
	bool is_there;
	bool has_own; /* another file of its recording is ours */
	struct file file;
	uint64_t sequence;
};

static struct known known_of(struct bc_catalogue *c, const struct bc_segment_name *name)
{
	const struct recording *r = recording_at(
		c, find_recording(c, name->recording), name->recording);
	const struct file *file = r != NULL ? file_at(r, find_file(r, name), name) : NULL;
	struct known known = {.serial = c->serial, .is_there = file != NULL};

	if (file != NULL)
		known.file = *file;
	if (r != NULL) {
		known.sequence = r->sequence;
		known.has_own = r->own > (file != NULL && is_own(file));
	}
	return known;
}

/* Looking */

static enum owner owner_of(int rc)
{
	return rc == 0                         ? OURS
	       : rc == -EUCLEAN                ? FOREIGN_DAMAGED
	       : rc == -EXDEV                  ? FOREIGN_OTHER
	       : rc == -EBADMSG                ? FOREIGN_TEXT
	       : rc == -EACCES || rc == -EPERM ? FOREIGN_DENIED
					       : FOREIGN_UNREAD;
}

static const char *foreign_text(int rc)
{
	return rc == -EBADMSG   ? "it has no intact header of buscapd"
	       : rc == -EUCLEAN ? "its header is damaged"
	       : rc == -EXDEV   ? "its header is that of another file or program"
				: strerror(-rc);
}

/* Whether another program, such as buscap cut, has this open file. */
static bool is_output(const struct bc_segment_name *name, const char *file, int dir_fd)
{
	int fd = -1;

	if (name->is_partial)
		fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool is = fd >= 0 && bc_is_being_written(fd);
	if (fd >= 0)
		close(fd);
	return is;
}

static void log_foreign(int dir_fd, const struct bc_segment_name *name, const char *file, int rc,
	struct bc_log_limits *limits)
{
	if (!is_output(name, file, dir_fd))
		bc_log_limited(limits, BC_LOG_WARNING,
			"%s: left alone and not counted: %s; if it is of no use, delete it", file,
			foreign_text(rc));
}

/* Whether the status is still that of the file as it was read. */
static bool is_unchanged(const struct file *file, const struct stat *status)
{
	return file->owner != FOREIGN_UNREAD && file->bytes == (uint64_t)status->st_size &&
	       file->changed_ns == changed_ns_of(status);
}

enum how {
	LOOK,         /* reads the header if it is not known to be ours */
	LOOK_INSIDE,  /* reads the header */
	LOOK_OUTSIDE, /* assumes that a sealed segment of a recording of ours is, too */
};

/* Asks the disk. Returns 0 or a negative errno: whose the file is. */
static int ask(struct answer *answer, int dir_fd, const char *file,
	const struct bc_segment_name *name, const struct known *known, enum how how)
{
	struct bc_segment_header header = {.sequence = 0};

	*answer = (struct answer){.owner = FOREIGN_UNREAD};
	if (fstatat(dir_fd, file, &answer->status, AT_SYMLINK_NOFOLLOW) != 0)
		return -errno;
	if (!S_ISREG(answer->status.st_mode))
		return -ENOENT;
	/* The open segment grows. */
	if (how == LOOK && known->is_there && is_own(&known->file) &&
		(name->is_partial || is_unchanged(&known->file, &answer->status))) {
		answer->owner = known->file.owner;
		answer->sequence = known->sequence;
		return 0;
	}
	if (how == LOOK_OUTSIDE && known->has_own && !name->is_partial && name->damaged == 0) {
		answer->owner = ASSUMED;
		answer->sequence = known->sequence;
		return 0;
	}
	int rc = bc_segment_owner_check(&header, dir_fd, file, name);
	answer->owner = owner_of(rc);
	answer->sequence = rc == 0 ? header.sequence : 0;
	return rc;
}

static int look(struct bc_catalogue *c, int dir_fd, const struct bc_segment_name *name,
	enum how how, struct stat *status, struct bc_log_limits *limits)
{
	char file[BC_SEGMENT_NAME_MAX];
	bool is_current = false;
	struct answer answer;
	int rc = 0;
	int put = 0;

	bc_segment_name_write(file, name);
	while (!is_current) {
		pthread_mutex_lock(&c->lock);
		struct known known = known_of(c, name);
		pthread_mutex_unlock(&c->lock);
		rc = ask(&answer, dir_fd, file, name, &known, how);
		pthread_mutex_lock(&c->lock);
		is_current = c->serial == known.serial;
		if (is_current && rc == -ENOENT)
			remove_file(c, name);
		else if (is_current && answer.status.st_nlink != 0)
			put = put_file(c, name, &answer);
		pthread_mutex_unlock(&c->lock);
	}
	if (put > 0)
		log_foreign(dir_fd, name, file, rc, limits);
	if (status != NULL)
		*status = answer.status;
	return put < 0 ? put : rc;
}

int bc_catalogue_look(struct bc_catalogue *c, int dir_fd, const struct bc_segment_name *name,
	bool reads_header, struct stat *status, struct bc_log_limits *limits)
{
	return look(c, dir_fd, name, reads_header ? LOOK_INSIDE : LOOK, status, limits);
}

/* Listing */

struct names {
	struct bc_segment_name *names;
	size_t count;
	size_t capacity;
};

static int add_name(struct names *names, const struct bc_segment_name *name)
{
	struct bc_segment_name *grown = bc_grow(
		names->names, &names->capacity, names->count, sizeof(*grown));

	if (grown == NULL)
		return -ENOMEM;
	names->names = grown;
	names->names[names->count++] = *name;
	return 0;
}

struct listing {
	struct bc_catalogue *c;
	int dir_fd;
	uint64_t turn_ns;   /* when the current turn began */
	unsigned reads;     /* of headers, that are left */
	struct names fresh; /* in the directory, but not in the tables */
	struct names stale; /* the other way round */
};

/* Rests if it is time to. Returns whether to go on. */
static bool has_turn(struct listing *l)
{
	uint64_t now = bc_now_ns();

	if (now - l->turn_ns < TURN_NS)
		return true;
	pthread_mutex_lock(&l->c->lock);
	bool is_stopping = l->c->is_stopping;
	pthread_mutex_unlock(&l->c->lock);
	if (is_stopping)
		return false;
	nanosleep(&(struct timespec){.tv_nsec = (long)TURN_NS}, NULL);
	l->turn_ns = bc_now_ns();
	return true;
}

/* Compares a file in the directory with the tables. */
static int compare_with_table(
	struct listing *l, const char *file, const struct bc_segment_name *name)
{
	struct bc_catalogue *c = l->c;
	struct stat status;

	if (fstatat(l->dir_fd, file, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
		return 0;
	pthread_mutex_lock(&c->lock);
	struct recording *r = recording_at(c, find_recording(c, name->recording), name->recording);
	struct file *known = r != NULL ? file_at(r, find_file(r, name), name) : NULL;
	bool is_same = known != NULL && is_unchanged(known, &status) &&
		       (known->owner != ASSUMED || l->reads == 0);
	if (known != NULL)
		known->listing = c->listing;
	if (is_same) {
		known->has_links = status.st_nlink > 1;
	} else if (known != NULL && known->owner == ASSUMED) {
		l->reads--;
	}
	pthread_mutex_unlock(&c->lock);
	if (known == NULL)
		return add_name(&l->fresh, name);
	if (!is_same)
		(void)look(c, l->dir_fd, name, LOOK_INSIDE, NULL, &c->limits);
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
			rc = compare_with_table(l, item->d_name, &name);
	}
	return rc;
}

/* By name: they are added at the end of the tables. */
static int add_fresh(struct listing *l)
{
	struct names *fresh = &l->fresh;
	struct bc_catalogue *c = l->c;

	if (fresh->count != 0)
		qsort(fresh->names, fresh->count, sizeof(*fresh->names), bc_segment_name_compare);
	for (size_t i = 0; i < fresh->count; i++) {
		const struct bc_segment_name *name = &fresh->names[i];
		bool is_first = i == 0 ||
				strcmp(fresh->names[i - 1].recording, name->recording) != 0;
		if (!has_turn(l))
			return -ECANCELED;
		enum how how = is_first || l->reads != 0 ? LOOK : LOOK_OUTSIDE;
		l->reads -= !is_first && l->reads != 0;
		if (look(c, l->dir_fd, name, how, NULL, &c->limits) == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

/* Adds the files of a recording that the listing has not seen. */
static int add_unseen(struct listing *l, const struct recording *r)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < r->count; i++) {
		const struct bc_segment_name name = name_of(r, &r->files[i]);
		if (r->files[i].listing != l->c->listing)
			rc = add_name(&l->stale, &name);
	}
	return rc;
}

/* From the end of the tables, where removing is cheap. */
static int remove_stale(struct listing *l)
{
	struct bc_catalogue *c = l->c;
	size_t at = 0;
	int rc = 0;

	for (bool is_end = false; rc == 0 && !is_end;) {
		pthread_mutex_lock(&c->lock);
		for (size_t end = at + 1000; rc == 0 && at < end && at < c->count; at++)
			rc = add_unseen(l, c->by_id[at]);
		is_end = at >= c->count;
		pthread_mutex_unlock(&c->lock);
	}
	for (size_t i = l->stale.count; rc == 0 && i-- != 0;) {
		(void)look(c, l->dir_fd, &l->stale.names[i], LOOK, NULL, &c->limits);
		rc = has_turn(l) ? 0 : -ECANCELED;
	}
	return rc;
}

static int list(struct bc_catalogue *c)
{
	int fd = openat(c->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct listing l = {.c = c, .dir_fd = c->dir_fd, .turn_ns = bc_now_ns()};

	if (dir == NULL) {
		int rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	pthread_mutex_lock(&c->lock);
	c->listing++;
	l.reads = READS_MIN + (unsigned)(c->sums.segments / READS_MIN);
	pthread_mutex_unlock(&c->lock);
	int rc = read_names(&l, dir);
	closedir(dir);
	if (rc == 0)
		rc = add_fresh(&l);
	if (rc == 0)
		rc = remove_stale(&l);
	free(l.fresh.names);
	free(l.stale.names);
	return rc;
}

static void begin_listing(struct bc_catalogue *c)
{
	pthread_mutex_lock(&c->lock);
	int fd = c->next_fd;
	c->next_fd = -1;
	c->begun++;
	pthread_mutex_unlock(&c->lock);
	if (fd < 0)
		return;
	if (c->own_fd >= 0)
		close(c->own_fd);
	c->own_fd = fd;
	c->dir_fd = fd;
}

int bc_catalogue_refresh(struct bc_catalogue *c)
{
	pthread_mutex_lock(&c->listing_lock);
	uint64_t began_ns = bc_now_ns();
	begin_listing(c);
	int rc = list(c);
	bc_log_limits_poll(&c->limits, began_ns);
	pthread_mutex_lock(&c->lock);
	sort_by_order(c);
	c->took_ns = bc_now_ns() - began_ns;
	/* With a next_fd, it was of the old directory. */
	if (rc == 0 && c->next_fd < 0) {
		c->sums.is_complete = true;
		c->listed = c->begun;
	}
	if (rc == 0)
		c->retry_ns = 0;
	else if (c->retry_ns < RETRY_MAX_NS)
		c->retry_ns = c->retry_ns == 0 ? REST_MIN_NS : c->retry_ns * 2;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	pthread_mutex_unlock(&c->listing_lock);
	return rc;
}

void bc_catalogue_refresh_small(struct bc_catalogue *c)
{
	pthread_mutex_lock(&c->lock);
	bool is_small = c->sums.is_complete && c->took_ns < SMALL_NS;
	pthread_mutex_unlock(&c->lock);
	if (is_small)
		(void)!bc_catalogue_refresh(c);
}

/* The thread */

static struct timespec time_at(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}

bool bc_catalogue_wait(struct bc_catalogue *c, uint64_t ns)
{
	struct timespec until = time_at(bc_now_ns() + ns);
	int rc = 0;

	pthread_mutex_lock(&c->lock);
	while (!c->sums.is_complete && rc == 0)
		rc = pthread_cond_timedwait(&c->changed, &c->lock, &until);
	bool is_complete = c->sums.is_complete;
	pthread_mutex_unlock(&c->lock);
	return is_complete;
}

/* Rests after a listing. Returns false to end. */
static bool rest(struct bc_catalogue *c)
{
	int rc = 0;

	pthread_mutex_lock(&c->lock);
	uint64_t rest_ns = c->retry_ns != 0 ? c->retry_ns : REST_RATIO * c->took_ns;
	rest_ns = rest_ns < REST_MIN_NS ? REST_MIN_NS : rest_ns;
	struct timespec until = time_at(
		bc_now_ns() + (rest_ns < REST_MAX_NS ? rest_ns : REST_MAX_NS));
	while (!c->is_stopping && c->next_fd < 0 && rc == 0 &&
		(c->begun >= c->needed || c->retry_ns != 0))
		rc = pthread_cond_timedwait(&c->changed, &c->lock, &until);
	bool goes_on = !c->is_stopping;
	pthread_mutex_unlock(&c->lock);
	return goes_on;
}

static void log_listing(struct bc_catalogue *c, int rc, bool was_complete)
{
	struct bc_catalogue_sums sums = bc_catalogue_sums(c);

	bool is_new = rc != 0 && rc != -ECANCELED && rc != c->last_error;
	if (is_new && sums.is_complete)
		bc_log(BC_LOG_ERROR,
			"%s: can't list the directory: %s; what others add or delete is not "
			"noticed",
			c->dir, strerror(-rc));
	if (is_new && !sums.is_complete)
		bc_log(BC_LOG_ERROR,
			"%s: can't list the directory: %s; the space rules do not apply", c->dir,
			strerror(-rc));
	if (rc == 0 && !was_complete && c->took_ns >= LONG_NS)
		bc_log(BC_LOG_NOTICE,
			"%s: listing %llu segments took %.1f s; from now on, the space rules apply",
			c->dir, (unsigned long long)sums.segments, (double)c->took_ns * 1e-9);
	c->last_error = rc;
}

static void *run(void *context)
{
	struct bc_catalogue *c = context;
	bool was_complete;

	do {
		was_complete = bc_catalogue_sums(c).is_complete;
		log_listing(c, bc_catalogue_refresh(c), was_complete);
	} while (rest(c));
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
	struct bc_catalogue *c = calloc(1, sizeof(*c));
	pthread_condattr_t attr;

	if (c == NULL)
		return -ENOMEM;
	c->dir_fd = dir_fd;
	c->own_fd = -1;
	c->next_fd = -1;
	c->notify_fd = open_notify(dir_fd);
	c->is_sorted = true;
	pthread_mutex_init(&c->listing_lock, NULL);
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->changed, &attr);
	pthread_condattr_destroy(&attr);
	*catalogue = c;
	return 0;
}

int bc_catalogue_start(struct bc_catalogue *c, const char *dir)
{
	if (c->notify_fd < 0)
		bc_log(BC_LOG_WARNING,
			"%s: inotify is not available (fs.inotify.max_user_instances?); what "
			"others add or delete is noticed within a minute",
			dir);
	c->dir = strdup(dir);
	int rc = c->dir == NULL ? -ENOMEM : -pthread_create(&c->thread, NULL, run, c);

	c->has_thread = rc == 0;
	return rc;
}

static void free_catalogue(struct bc_catalogue *c)
{
	for (size_t i = 0; i < c->count; i++) {
		free(c->by_id[i]->files);
		free(c->by_id[i]);
	}
	bc_log_limits_end(&c->limits);
	if (c->own_fd >= 0)
		close(c->own_fd);
	if (c->next_fd >= 0)
		close(c->next_fd);
	if (c->notify_fd >= 0)
		close(c->notify_fd);
	pthread_mutex_destroy(&c->listing_lock);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
	free(c->by_id);
	free(c->by_order);
	free(c->dir);
	free(c);
}

void bc_catalogue_stop(struct bc_catalogue *c)
{
	struct timespec until = time_at((uint64_t)bc_wall_ns());

	if (c == NULL)
		return;
	pthread_mutex_lock(&c->lock);
	c->is_stopping = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	until.tv_sec += STOP_SECONDS;
	if (!c->has_thread || pthread_timedjoin_np(c->thread, NULL, &until) == 0)
		free_catalogue(c);
}

int bc_catalogue_set_dir(struct bc_catalogue *c, int dir_fd)
{
	int fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (c->notify_fd >= 0)
		close(c->notify_fd);
	c->notify_fd = open_notify(dir_fd);
	pthread_mutex_lock(&c->lock);
	if (c->next_fd >= 0)
		close(c->next_fd);
	c->next_fd = fd;
	c->sums.is_complete = false;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	return 0;
}

/* Changes by others */

/* Has the thread list the directory again. */
static void need_listing(struct bc_catalogue *c)
{
	pthread_mutex_lock(&c->lock);
	c->needed = c->begun + 1;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

static void take_events(struct bc_catalogue *c, int dir_fd, const char *events, size_t bytes,
	struct bc_log_limits *limits)
{
	struct bc_segment_name name;
	struct inotify_event event;

	for (size_t at = 0; at < bytes; at += sizeof(event) + event.len) {
		memcpy(&event, &events[at], sizeof(event));
		if ((event.mask & IN_Q_OVERFLOW) != 0)
			need_listing(c);
		else if (event.len != 0 && bc_segment_name_read(&name, &events[at + sizeof(event)]))
			(void)look(c, dir_fd, &name, LOOK, NULL, limits);
	}
}

bool bc_catalogue_notice(struct bc_catalogue *c, int dir_fd, struct bc_log_limits *limits)
{
	char events[2048];
	uint64_t began_ns = bc_now_ns();
	bool is_late = false;
	ssize_t n = 0;

	while (c->notify_fd >= 0 && !is_late &&
		(n = read(c->notify_fd, events, sizeof(events))) > 0) {
		take_events(c, dir_fd, events, (size_t)n, limits);
		is_late = bc_now_ns() - began_ns >= NOTICE_NS;
	}
	pthread_mutex_lock(&c->lock);
	bool is_current = !is_late && c->listed >= c->needed;
	pthread_mutex_unlock(&c->lock);
	return is_current;
}

/* Questions */

struct bc_catalogue_sums bc_catalogue_sums(struct bc_catalogue *c)
{
	pthread_mutex_lock(&c->lock);
	struct bc_catalogue_sums sums = c->sums;
	pthread_mutex_unlock(&c->lock);
	return sums;
}

uint64_t bc_catalogue_bytes(struct bc_catalogue *c, const char *id)
{
	uint64_t bytes = 0;

	pthread_mutex_lock(&c->lock);
	const struct recording *r = recording_at(c, find_recording(c, id), id);
	for (uint32_t i = 0; r != NULL && i < r->count; i++)
		if (is_own(&r->files[i]) && r->files[i].damaged == 0)
			bytes += r->files[i].bytes;
	pthread_mutex_unlock(&c->lock);
	return bytes;
}

uint64_t bc_catalogue_highest(struct bc_catalogue *c)
{
	pthread_mutex_lock(&c->lock);
	uint64_t highest = c->highest;
	pthread_mutex_unlock(&c->lock);
	return highest;
}

bool bc_catalogue_is_after(
	const struct bc_catalogue_place *place, const struct bc_catalogue_place *other)
{
	return place->order != other->order
		       ? place->order > other->order
		       : bc_segment_name_compare(&place->name, &other->name) > 0;
}

static void set_file(
	struct bc_catalogue_file *file, const struct recording *r, const struct file *of)
{
	*file = (struct bc_catalogue_file){
		.name = name_of(r, of), .has_links = of->has_links, .changed_ns = of->changed_ns};
}

/* Whether a file is sealed, and none of its number is open or torn. */
static bool is_deletable(const struct recording *r, uint32_t at)
{
	const struct file *file = &r->files[at];

	if (!is_own(file) || file->is_partial || file->damaged != 0)
		return false;
	for (uint32_t i = at + 1; i < r->count && r->files[i].number == file->number; i++)
		if (r->files[i].is_partial && is_own(&r->files[i]))
			return false;
	return true;
}

/* The index of the first file after a name. */
static uint32_t find_after(const struct recording *r, const struct bc_segment_name *name)
{
	uint32_t at = 0;

	if (strcmp(r->id, name->recording) != 0)
		return 0;
	at = find_file(r, name);
	return at + (file_at(r, at, name) != NULL);
}

bool bc_catalogue_next(
	struct bc_catalogue *c, struct bc_catalogue_place *place, struct bc_catalogue_file *file)
{
	bool is_found = false;

	pthread_mutex_lock(&c->lock);
	sort_by_order(c);
	for (size_t i = find_order(c, place->order, place->name.recording);
		!is_found && i < c->count; i++) {
		const struct recording *r = c->by_order[i];
		for (uint32_t at = find_after(r, &place->name); !is_found && at < r->count; at++) {
			is_found = is_deletable(r, at);
			if (is_found) {
				set_file(file, r, &r->files[at]);
				*place = (struct bc_catalogue_place){r->order, file->name};
			}
		}
	}
	pthread_mutex_unlock(&c->lock);
	return is_found;
}

bool bc_catalogue_newest(struct bc_catalogue *c, struct bc_catalogue_file *file)
{
	bool is_found = false;

	pthread_mutex_lock(&c->lock);
	sort_by_order(c);
	for (size_t i = c->count; !is_found && i-- != 0;) {
		const struct recording *r = c->by_order[i];
		for (uint32_t at = r->count; !is_found && at-- != 0;) {
			is_found = is_own(&r->files[at]);
			if (is_found)
				set_file(file, r, &r->files[at]);
		}
	}
	pthread_mutex_unlock(&c->lock);
	return is_found;
}

bool bc_catalogue_too_old(struct bc_catalogue *c, int64_t wall_ns, uint64_t max_age_ns,
	int64_t leap_ns, struct bc_catalogue_place *last)
{
	int64_t later = wall_ns;
	uint64_t age = 0;
	bool is_found = false;

	pthread_mutex_lock(&c->lock);
	sort_by_order(c);
	for (size_t i = c->count; !is_found && i-- != 0;) {
		const struct recording *r = c->by_order[i];
		for (uint32_t at = r->count; !is_found && at-- != 0;) {
			const struct file *file = &r->files[at];
			int64_t step = later - file->changed_ns;
			if (!is_own(file))
				continue;
			if (step > 0 && step <= leap_ns)
				age += (uint64_t)step;
			if (step > 0)
				later = file->changed_ns;
			is_found = age > max_age_ns;
			if (is_found)
				*last = (struct bc_catalogue_place){r->order, name_of(r, file)};
		}
	}
	pthread_mutex_unlock(&c->lock);
	return is_found;
}

/* Pages */

/* Whether clients see a file: a segment of buscapd, as far as can be told without an intact header.
 */
static bool is_readable(const struct recording *r, const struct file *file)
{
	return file->damaged == 0 && (is_own(file) || file->owner == FOREIGN_DAMAGED ||
					     (r->own != 0 && file->owner != FOREIGN_OTHER));
}

static uint32_t count_readable(const struct recording *r)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < r->count; i++)
		count += is_readable(r, &r->files[i]);
	return count;
}

/* A file is left out if another one of its number comes before it: readers skip it. */
static void copy_readable(struct bc_recording_list *list, const struct recording *r)
{
	struct bc_recording *copy = &list->recordings[list->count++];
	const struct bc_recording_file *before = NULL;

	*copy = (struct bc_recording){.first = list->file_count};
	memcpy(copy->id, r->id, strlen(r->id) + 1);
	for (uint32_t i = 0; i < r->count; i++) {
		const struct file *file = &r->files[i];
		if (!is_readable(r, file) || (before != NULL && before->number == file->number))
			continue;
		before = &list->files[list->file_count++];
		list->files[list->file_count - 1] = (struct bc_recording_file){
			.number = file->number,
			.is_partial = file->is_partial,
			.state = file->is_partial ? BC_FILE_UNSEALED : BC_FILE_SEALED,
		};
		copy->count++;
	}
}

/* Needs the lock. Recordings [first, end) of by_order. */
static int copy_page(
	struct bc_catalogue *c, size_t first, size_t end, struct bc_recording_list *list)
{
	size_t files = 0;

	for (size_t i = first; i < end; i++)
		files += count_readable(c->by_order[i]);
	list->recordings = calloc(end - first + 1, sizeof(*list->recordings));
	list->files = calloc(files + 1, sizeof(*list->files));
	list->dirs = calloc(1, sizeof(*list->dirs));
	if (list->dirs != NULL)
		list->dirs->name = strdup("");
	if (list->recordings == NULL || list->files == NULL || list->dirs == NULL ||
		list->dirs->name == NULL)
		return -ENOMEM;
	list->dir_count = 1;
	for (size_t i = first; i < end; i++)
		if (count_readable(c->by_order[i]) != 0)
			copy_readable(list, c->by_order[i]);
	return 0;
}

int bc_catalogue_page(struct bc_catalogue *c, const char *before, uint32_t max,
	struct bc_recording_list *list, uint64_t *omitted)
{
	memset(list, 0, sizeof(*list));
	*omitted = 0;
	pthread_mutex_lock(&c->lock);
	sort_by_order(c);
	size_t end = c->count;
	size_t at = before != NULL ? find_recording(c, before) : end;
	if (at < end)
		end = find_order(c, c->by_id[at]->order, c->by_id[at]->id);
	size_t first = end;
	for (uint32_t count = 0; first != 0 && count < max; first--)
		count += count_readable(c->by_order[first - 1]) != 0;
	for (size_t i = 0; i < first; i++)
		*omitted += count_readable(c->by_order[i]) != 0;
	int rc = copy_page(c, first, end, list);
	pthread_mutex_unlock(&c->lock);
	if (rc != 0) {
		if (list->dirs != NULL && list->dir_count == 0)
			free(list->dirs->name);
		bc_recording_list_free(list);
	}
	return rc;
}
