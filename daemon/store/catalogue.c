/* Two tables: the recordings by id, each with its files by number; and the recordings in their
 * order, which is sorted again when it is next needed after a change that was not at its end.
 *
 * Invariant: the tables contain the disk's answers, never what someone intended.
 * bc_catalogue_look() asks the disk about one name and enters the answer; if another answer was
 * entered meanwhile, it asks again. So the writer, which looks after each change it makes, and the
 * listing, which looks for the changes of others, need no order between them.
 *
 * While the catalogue is incomplete, a listing assumes that the sealed segments of a recording
 * whose sequence number is known are ours: reading a header takes ten times as long as a status. An
 * assumed file counts in the sums, so a rule may delete others for its bytes. Before a file is
 * deleted, its header is read in any case.
 *
 * Recordings are ordered by the sequence number in their headers. One whose number is unknown
 * comes after the recordings with lower ids: at the start of the order it would be deleted before
 * older ones, at its end the segments being recorded would be deleted before it.
 *
 * Memory: 24 bytes per file, about 150 per recording. */
#include "daemon/store/catalogue.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "formats/base/atomic_file.h"
#include "formats/recording/recording_list.h"
#include "formats/segment/segment_header.h"

/* No recorder counts this far: a header with such a number says nothing about the next one. */
#define SEQUENCE_END (UINT64_C(1) << 63)

struct file {
	uint64_t bytes : 58;
	uint64_t frames : 1;     /* enum bc_frame_format */
	uint64_t is_assumed : 1; /* to be ours: its header was not read */
	uint64_t is_partial : 1;
	uint64_t has_links : 1;
	uint64_t is_refused : 1; /* it could not be deleted */
	uint64_t is_left : 1;    /* it could not be sealed */
	int64_t changed_ns;
	uint32_t number;
	uint16_t damaged;
	uint8_t listing; /* the last one that has seen it, modulo 256 */
	uint8_t error;   /* 0: ours; else the errno of bc_segment_owner_check() */
};

struct bc_catalogue_recording {
	uint64_t sequence; /* 0: unknown */
	uint64_t order;    /* `sequence`, or the highest of the recordings with lower ids */
	struct file *files;
	uint32_t count;
	uint32_t capacity;
	uint32_t own; /* files that are ours */
	char id[];
};

/* The tables. Call all of this with the lock held. */

static struct bc_segment_name name_of(
	const struct bc_catalogue_recording *r, const struct file *file)
{
	struct bc_segment_name name = {.segment = file->number,
		.is_partial = file->is_partial,
		.frames = file->frames,
		.damaged = file->damaged};

	memcpy(name.recording, r->id, strlen(r->id) + 1);
	return name;
}

static int compare_id(const void *item, const void *id)
{
	return strcmp((*(struct bc_catalogue_recording *const *)item)->id, id);
}

/* As bc_segment_name_compare(), within a recording. */
static int compare_file(const void *item, const void *key)
{
	const struct file *file = item;
	const struct bc_segment_name *name = key;
	int64_t order = (int64_t)file->number - (int64_t)name->segment;

	if (order == 0)
		order = (int64_t)file->damaged - (int64_t)name->damaged;
	if (order == 0)
		order = (int64_t)file->is_partial - (int64_t)name->is_partial;
	if (order == 0)
		order = (int64_t)file->frames - (int64_t)name->frames;
	return order < 0 ? -1 : order > 0;
}

static int compare_place(const void *item, const void *key)
{
	const struct bc_catalogue_recording *r = *(struct bc_catalogue_recording *const *)item;
	const struct bc_catalogue_place *place = key;

	return r->order != place->order ? (r->order < place->order ? -1 : 1)
					: strcmp(r->id, place->name.recording);
}

/* Returns the index of the first of `count` sorted items that is not before the key. */
static size_t lower_bound(const void *items, size_t count, size_t item_bytes, const void *key,
	int (*compare)(const void *item, const void *key))
{
	size_t low = 0;

	while (low < count) {
		size_t middle = low + (count - low) / 2;
		if (compare((const char *)items + middle * item_bytes, key) < 0)
			low = middle + 1;
		else
			count = middle;
	}
	return low;
}

/* Where a file is in the tables, or would be. */
struct entry {
	size_t at;                                /* in by_id */
	struct bc_catalogue_recording *recording; /* NULL: unknown */
	uint32_t file_at;
	struct file *file; /* NULL: unknown */
};

static struct entry find_recording(const struct bc_catalogue *c, const char *id)
{
	struct entry e = {
		.at = lower_bound(c->by_id, c->count, sizeof(c->by_id[0]), id, compare_id)};

	if (e.at < c->count && strcmp(c->by_id[e.at]->id, id) == 0)
		e.recording = c->by_id[e.at];
	return e;
}

static struct entry find_file(const struct bc_catalogue *c, const struct bc_segment_name *name)
{
	struct entry e = find_recording(c, name->recording);
	const struct bc_catalogue_recording *r = e.recording;

	if (r == NULL)
		return e;
	e.file_at = (uint32_t)lower_bound(
		r->files, r->count, sizeof(*r->files), name, compare_file);
	if (e.file_at < r->count && compare_file(&r->files[e.file_at], name) == 0)
		e.file = &r->files[e.file_at];
	return e;
}

/* Adds a file to the sums, or removes it from them. */
static void count_file(struct bc_catalogue *c, struct bc_catalogue_recording *r,
	const struct file *file, bool adds)
{
	uint64_t bytes = adds ? file->bytes : 0 - (uint64_t)file->bytes;
	uint32_t one = adds ? 1 : UINT32_MAX;

	if (file->error != 0)
		return;
	r->own += one;
	c->sums.bytes += bytes;
	if (file->damaged != 0)
		c->sums.damaged_bytes += bytes;
	else
		c->sums.segments += adds ? 1 : UINT64_MAX;
}

static int compare_order(const void *a, const void *b)
{
	const struct bc_catalogue_recording *x = *(struct bc_catalogue_recording *const *)a;
	const struct bc_catalogue_recording *y = *(struct bc_catalogue_recording *const *)b;

	return x->order != y->order ? (x->order < y->order ? -1 : 1) : strcmp(x->id, y->id);
}

static void sort_by_order(struct bc_catalogue *c)
{
	uint64_t highest = 0;
	bool is_sorted = true;

	if (c->is_sorted)
		return;
	for (size_t i = 0; i < c->count; i++) {
		struct bc_catalogue_recording *r = c->by_id[i];
		highest = r->sequence > highest ? r->sequence : highest;
		r->order = r->sequence != 0 ? r->sequence : highest;
		is_sorted = is_sorted && r->order == highest;
		c->by_order[i] = r;
	}
	if (!is_sorted)
		qsort(c->by_order, c->count, sizeof(struct bc_catalogue_recording *),
			compare_order);
	c->is_sorted = true;
}

static void move_items(struct bc_catalogue_recording **items, size_t to, size_t from, size_t end)
{
	memmove(&items[to], &items[from], (end - from) * sizeof(struct bc_catalogue_recording *));
}

static bool grow_tables(struct bc_catalogue *c)
{
	size_t capacity = 2 * c->count + 64;
	struct bc_catalogue_recording **by_id = reallocarray(c->by_id, capacity, sizeof(*by_id));

	if (by_id == NULL)
		return false;
	c->by_id = by_id;
	struct bc_catalogue_recording **by_order = reallocarray(
		c->by_order, capacity, sizeof(*by_order));
	if (by_order == NULL)
		return false;
	c->by_order = by_order;
	c->capacity = capacity;
	return true;
}

/* Returns NULL if out of memory. */
static struct bc_catalogue_recording *insert_recording(
	struct bc_catalogue *c, size_t at, const char *id, uint64_t sequence)
{
	size_t id_bytes = strlen(id) + 1;

	if (c->count == c->capacity && !grow_tables(c))
		return NULL;
	struct bc_catalogue_recording *r = malloc(sizeof(*r) + id_bytes);
	if (r == NULL)
		return NULL;
	*r = (struct bc_catalogue_recording){.sequence = sequence, .order = sequence};
	memcpy(r->id, id, id_bytes);
	move_items(c->by_id, at + 1, at, c->count);
	c->by_id[at] = r;
	/* Usually it is the last one by id and in order. */
	c->is_sorted = c->is_sorted && at == c->count && sequence != 0 &&
		       (c->count == 0 || c->by_order[c->count - 1]->order <= sequence);
	c->by_order[c->count++] = r;
	return r;
}

/* Returns the index of a recording in by_order. */
static size_t order_of(const struct bc_catalogue *c, const struct bc_catalogue_recording *r)
{
	size_t at = 0;

	while (c->by_order[at] != r)
		at++;
	return at;
}

static void remove_recording(struct bc_catalogue *c, size_t at)
{
	struct bc_catalogue_recording *r = c->by_id[at];

	if (c->is_sorted) {
		size_t place = order_of(c, r);
		move_items(c->by_order, place, place + 1, c->count);
	}
	move_items(c->by_id, at, at + 1, c->count);
	c->count--;
	free(r->files);
	free(r);
}

/* Returns NULL if out of memory. */
static struct file *insert_file(struct bc_catalogue_recording *r, uint32_t at)
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
	r->files[at] = (struct file){.error = EIO};
	return &r->files[at];
}

static void remove_file(struct bc_catalogue *c, const struct bc_segment_name *name)
{
	struct entry e = find_file(c, name);
	struct bc_catalogue_recording *r = e.recording;

	if (e.file == NULL)
		return;
	count_file(c, r, e.file, false);
	r->count--;
	memmove(e.file, e.file + 1, (r->count - e.file_at) * sizeof(*e.file));
	if (r->count == 0)
		remove_recording(c, e.at);
	c->serial++;
}

/* What the disk says about a file. */
struct answer {
	struct stat status;
	int error; /* as in struct file */
	bool is_assumed;
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
	struct entry e = find_file(c, name);
	struct bc_catalogue_recording *r = e.recording;
	struct file *file = e.file;

	if (r == NULL)
		r = insert_recording(c, e.at, name->recording, answer->sequence);
	if (r == NULL)
		return -ENOMEM;
	if (file == NULL)
		file = insert_file(r, e.file_at);
	if (file == NULL) {
		if (r->count == 0)
			remove_recording(c, e.at);
		return -ENOMEM;
	}
	bool is_changed = e.file == NULL || file->error != answer->error;
	count_file(c, r, file, false);
	*file = (struct file){
		.bytes = (uint64_t)answer->status.st_size & (UINT64_MAX >> 6),
		.frames = name->frames & 1,
		.is_assumed = answer->is_assumed,
		.changed_ns = changed_ns_of(&answer->status),
		.number = name->segment,
		.damaged = (uint16_t)name->damaged,
		.listing = c->listing,
		.error = (uint8_t)answer->error,
		.is_partial = name->is_partial,
		.has_links = answer->status.st_nlink > 1,
		.is_refused = file->is_refused,
		.is_left = file->is_left,
	};
	count_file(c, r, file, true);
	c->serial += is_changed;
	if (r->sequence == 0 && answer->sequence != 0) {
		r->sequence = answer->sequence;
		c->is_sorted = false;
	}
	if (answer->sequence > c->sums.highest && answer->sequence < SEQUENCE_END)
		c->sums.highest = answer->sequence;
	return is_changed && answer->error != 0;
}

/* What the tables say about a file. */
struct known {
	uint64_t serial;
	struct file file; /* with an error if the file is unknown */
	uint64_t sequence;
	bool can_assume; /* without reading its header, the file is taken for ours */
};

static struct known known_of(struct bc_catalogue *c, const struct bc_segment_name *name)
{
	struct entry e = find_file(c, name);
	struct known known = {.serial = c->serial, .file = {.error = EIO}};

	if (e.file != NULL)
		known.file = *e.file;
	if (e.recording != NULL) {
		known.sequence = e.recording->sequence;
		known.can_assume = e.file == NULL && !c->sums.is_complete && known.sequence != 0 &&
				   !name->is_partial && name->damaged == 0;
	}
	return known;
}

/* Looking */

static const char *foreign_text(int rc)
{
	return rc == -EBADMSG   ? "no intact header of buscapd"
	       : rc == -EUCLEAN ? "its header is damaged"
	       : rc == -EXDEV   ? "its header names another file or program"
				: strerror(-rc);
}

/* Returns whether another program, such as buscap cut, is writing this file. */
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

/* Returns whether a file is as it was when its header was read. */
static bool is_unchanged(const struct file *file, const struct stat *status)
{
	bool is_settled = file->error == 0 || bc_segment_is_foreign(-file->error);

	return is_settled && file->bytes == (uint64_t)status->st_size &&
	       file->changed_ns == changed_ns_of(status);
}

static bool must_read(enum bc_look mode, const struct stat *status,
	const struct bc_segment_name *name, const struct known *known)
{
	bool is_unread = !is_unchanged(&known->file, status);

	switch (mode) {
	case BC_LOOK:
		return known->file.error != 0 || (is_unread && !name->is_partial);
	case BC_LOOK_LISTED:
		return is_unread && !known->can_assume;
	case BC_LOOK_INSIDE:
		break;
	}
	return true;
}

/* Asks the disk. Returns 0 if the file is ours, or a negative errno. */
static int ask(struct answer *answer, int dir_fd, const char *file,
	const struct bc_segment_name *name, const struct known *known, enum bc_look mode)
{
	struct bc_segment_header header = {.sequence = 0};

	*answer = (struct answer){.sequence = known->sequence};
	int rc = fstatat(dir_fd, file, &answer->status, AT_SYMLINK_NOFOLLOW);
	/* Without links, it is being deleted, or the file system does not count them. */
	if (rc == 0 && answer->status.st_nlink == 0)
		rc = fstatat(dir_fd, file, &answer->status, AT_SYMLINK_NOFOLLOW);
	if (rc != 0)
		return -errno;
	if (!S_ISREG(answer->status.st_mode))
		return -ENOENT;
	if (must_read(mode, &answer->status, name, known)) {
		rc = bc_segment_owner_check(&header, dir_fd, file, name);
		answer->sequence = rc == 0 ? header.sequence : 0;
	} else if (is_unchanged(&known->file, &answer->status)) {
		rc = -known->file.error;
		answer->is_assumed = known->file.is_assumed;
	} else {
		answer->is_assumed = known->can_assume;
	}
	/* A header that can't be read for the moment (a lease, a timeout) says nothing new. */
	if (rc == 0 || bc_segment_is_foreign(rc)) {
		answer->error = -rc;
	} else {
		answer->error = known->file.error != EIO ? known->file.error : 0;
		answer->is_assumed = answer->error == 0;
	}
	return rc;
}

int bc_catalogue_look(struct bc_catalogue *c, int dir_fd, const struct bc_segment_name *name,
	enum bc_look mode, struct stat *status, struct bc_log_limits *limits)
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
		rc = ask(&answer, dir_fd, file, name, &known, mode);
		pthread_mutex_lock(&c->lock);
		is_current = c->serial == known.serial;
		if (is_current && rc == -ENOENT)
			remove_file(c, name);
		else if (is_current && answer.status.st_mode != 0)
			put = put_file(c, name, &answer);
		pthread_mutex_unlock(&c->lock);
	}
	if (put > 0 && !is_output(name, file, dir_fd))
		bc_log_limited(limits, BC_LOG_WARNING, "%s: ignored: %s", file, foreign_text(rc));
	if (status != NULL)
		*status = answer.status;
	return put < 0 ? put : rc;
}

/* Listings */

void bc_catalogue_begin_listing(struct bc_catalogue *c)
{
	pthread_mutex_lock(&c->lock);
	c->listing++;
	pthread_mutex_unlock(&c->lock);
}

bool bc_catalogue_find(struct bc_catalogue *c, const struct bc_segment_name *name, bool *is_assumed)
{
	pthread_mutex_lock(&c->lock);
	const struct file *file = find_file(c, name).file;
	*is_assumed = file != NULL && file->is_assumed;
	pthread_mutex_unlock(&c->lock);
	return file != NULL;
}

bool bc_catalogue_find_before(struct bc_catalogue *c, struct bc_segment_name *name, bool is_left)
{
	bool is_found = false;

	pthread_mutex_lock(&c->lock);
	struct entry e = find_file(c, name);
	for (size_t i = e.at + (e.recording != NULL); !is_found && i-- != 0;) {
		const struct bc_catalogue_recording *r = c->by_id[i];
		for (uint32_t n = i == e.at ? e.file_at : r->count; !is_found && n-- != 0;) {
			is_found = is_left ? r->files[n].is_left
					   : r->files[n].listing != c->listing;
			if (is_found)
				*name = name_of(r, &r->files[n]);
		}
	}
	pthread_mutex_unlock(&c->lock);
	return is_found;
}

void bc_catalogue_set_complete(struct bc_catalogue *c, bool is_complete)
{
	pthread_mutex_lock(&c->lock);
	c->sums.is_complete = is_complete;
	sort_by_order(c);
	pthread_mutex_unlock(&c->lock);
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
	const struct bc_catalogue_recording *r = find_recording(c, id).recording;
	for (uint32_t i = 0; r != NULL && i < r->count; i++)
		if (r->files[i].error == 0 && r->files[i].damaged == 0)
			bytes += r->files[i].bytes;
	pthread_mutex_unlock(&c->lock);
	return bytes;
}

bool bc_catalogue_is_after(
	const struct bc_catalogue_place *place, const struct bc_catalogue_place *other)
{
	return place->order != other->order
		       ? place->order > other->order
		       : bc_segment_name_compare(&place->name, &other->name) > 0;
}

/* Whether a file is sealed, and none of its number open or torn; or was left open by this run. */
static bool is_deletable(const struct bc_catalogue_recording *r, uint32_t at)
{
	const struct file *file = &r->files[at];

	if (file->error != 0 || (file->is_partial && !file->is_left) || file->damaged != 0)
		return false;
	for (uint32_t i = at + 1; i < r->count && r->files[i].number == file->number; i++)
		if (r->files[i].is_partial && !r->files[i].is_left && r->files[i].error == 0)
			return false;
	return true;
}

void bc_catalogue_leave(struct bc_catalogue *c, const struct bc_segment_name *name)
{
	pthread_mutex_lock(&c->lock);
	struct file *file = find_file(c, name).file;
	if (file != NULL)
		file->is_left = true;
	pthread_mutex_unlock(&c->lock);
}

void bc_catalogue_refuse(struct bc_catalogue *c, const struct bc_segment_name *name)
{
	pthread_mutex_lock(&c->lock);
	struct file *file = find_file(c, name).file;
	if (file != NULL)
		file->is_refused = true;
	pthread_mutex_unlock(&c->lock);
}

bool bc_catalogue_next(struct bc_catalogue *c, struct bc_catalogue_place *place,
	struct bc_catalogue_traits *traits)
{
	bool is_found = false;

	pthread_mutex_lock(&c->lock);
	sort_by_order(c);
	struct entry e = find_file(c, &place->name);
	uint32_t at = e.file_at + (e.file != NULL);
	for (size_t i = lower_bound(
		     c->by_order, c->count, sizeof(c->by_order[0]), place, compare_place);
		!is_found && i < c->count; i++) {
		const struct bc_catalogue_recording *r = c->by_order[i];
		at = strcmp(r->id, place->name.recording) == 0 ? at : 0;
		for (; !is_found && at < r->count; at++) {
			is_found = is_deletable(r, at);
			if (is_found) {
				*traits = (struct bc_catalogue_traits){
					r->files[at].has_links, r->files[at].is_refused};
				*place = (struct bc_catalogue_place){
					r->order, name_of(r, &r->files[at])};
			}
		}
	}
	pthread_mutex_unlock(&c->lock);
	return is_found;
}

void bc_catalogue_find_ages(struct bc_catalogue *c, struct bc_catalogue_ages *ages, int64_t wall_ns,
	uint64_t max_age_ns, int64_t leap_ns)
{
	int64_t later = wall_ns;
	uint64_t age = 0;

	*ages = (struct bc_catalogue_ages){.has_old = false};
	pthread_mutex_lock(&c->lock);
	sort_by_order(c);
	for (size_t i = c->count; !ages->has_old && i-- != 0;) {
		const struct bc_catalogue_recording *r = c->by_order[i];
		for (uint32_t at = r->count; !ages->has_old && at-- != 0;) {
			const struct file *file = &r->files[at];
			int64_t step = later - file->changed_ns;
			if (file->error != 0)
				continue;
			if (ages->newest.recording[0] == '\0') {
				ages->newest = name_of(r, file);
				ages->newest_ns = file->changed_ns;
			}
			if (step > 0 && step <= leap_ns)
				age += (uint64_t)step;
			if (step > 0)
				later = file->changed_ns;
			ages->has_old = age > max_age_ns;
			if (ages->has_old)
				ages->old = (struct bc_catalogue_place){r->order, name_of(r, file)};
		}
	}
	pthread_mutex_unlock(&c->lock);
}

/* Pages */

/* Returns whether clients see a file: our segment, as far as its header can be read. */
static bool is_readable(const struct bc_catalogue_recording *r, const struct file *file)
{
	return file->damaged == 0 && (file->error == 0 || file->error == EUCLEAN ||
					     (r->own != 0 && file->error != EXDEV));
}

static bool has_readable(const struct bc_catalogue_recording *r)
{
	uint32_t i = 0;

	while (i < r->count && !is_readable(r, &r->files[i]))
		i++;
	return i < r->count;
}

/* A file is omitted if another one with its number comes before it: readers skip it. */
static void copy_readable(struct bc_recording_list *list, const struct bc_catalogue_recording *r)
{
	struct bc_recording *copy = &list->recordings[list->count++];
	struct bc_recording_file *to = &list->files[list->file_count];

	*copy = (struct bc_recording){.first = list->file_count};
	memcpy(copy->id, r->id, strlen(r->id) + 1);
	for (uint32_t i = 0; i < r->count; i++) {
		const struct file *file = &r->files[i];
		if (!is_readable(r, file) ||
			(copy->count != 0 && to[copy->count - 1].number == file->number))
			continue;
		to[copy->count++] = (struct bc_recording_file){
			.number = file->number,
			.frames = file->frames,
			.is_partial = file->is_partial,
			.state = file->is_partial ? BC_FILE_UNSEALED : BC_FILE_SEALED,
		};
	}
	list->file_count += copy->count;
}

/* Copies recordings [first, end) of by_order. */
static int copy_page(
	struct bc_catalogue *c, size_t first, size_t end, struct bc_recording_list *list)
{
	size_t files = 0;

	for (size_t i = first; i < end; i++)
		files += c->by_order[i]->count;
	list->recordings = calloc(end - first + 1, sizeof(*list->recordings));
	list->files = calloc(files + 1, sizeof(*list->files));
	list->dirs = calloc(1, sizeof(*list->dirs));
	if (list->recordings == NULL || list->files == NULL || list->dirs == NULL)
		return -ENOMEM;
	list->dir_count = 1;
	list->dirs->name = strdup("");
	if (list->dirs->name == NULL)
		return -ENOMEM;
	for (size_t i = first; i < end; i++)
		if (has_readable(c->by_order[i]))
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
	size_t at = before != NULL ? find_recording(c, before).at : end;
	if (at < end)
		end = order_of(c, c->by_id[at]);
	size_t first = end;
	for (uint32_t count = 0; first != 0 && count < max; first--)
		count += has_readable(c->by_order[first - 1]);
	for (size_t i = 0; i < first; i++)
		*omitted += has_readable(c->by_order[i]);
	int rc = copy_page(c, first, end, list);
	pthread_mutex_unlock(&c->lock);
	if (rc != 0)
		bc_recording_list_free(list);
	return rc;
}

void bc_catalogue_init(struct bc_catalogue *c)
{
	*c = (struct bc_catalogue){.is_sorted = true};
	pthread_mutex_init(&c->lock, NULL);
}

void bc_catalogue_free(struct bc_catalogue *c)
{
	for (size_t i = 0; i < c->count; i++) {
		free(c->by_id[i]->files);
		free(c->by_id[i]);
	}
	pthread_mutex_destroy(&c->lock);
	free(c->by_id);
	free(c->by_order);
}
