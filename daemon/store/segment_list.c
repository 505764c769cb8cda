/* Lists a directory, asks for the owner of each file, and sorts.
 *
 * Reading a header costs an open file and three reads, seconds for a large directory, and minutes
 * on a slow disk. So a listing reads the newest file of each recording, and a few others. The rest
 * are assumed to be ours, too, until a later listing has read them; nothing is deleted unread.
 *
 * The answers are kept: for a file of ours that is open as long as its name and inode stay the
 * same, otherwise as long as its size and the time of its last change do, too. A file that could
 * not be read for another reason than a lack of permission is asked again each time.
 *
 * The order is that of the sequence numbers in the headers. A recording whose number is unknown is
 * placed by its id: after the recordings with lower ids. If it were the first of all, it would be
 * deleted before older ones; if it were the last, the segments being recorded would be deleted
 * before it. */
#include "daemon/store/segment_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/grow.h"
#include "formats/base/hash.h"
#include "formats/segment/segment_owner.h"

struct bc_known_file {
	uint64_t name_hash;
	uint64_t inode;
	uint64_t bytes;
	int64_t status_changed_ns;
	uint64_t sequence;
	int owner;
	bool is_assumed;
};

/* How many headers a listing reads in addition to one of each recording. */
#define READS_MAX 64u

static int append_entry(
	struct bc_segment_list *list, size_t *capacity, const struct bc_segment_entry *entry)
{
	struct bc_segment_entry *entries = bc_grow(
		list->entries, capacity, list->count, sizeof(*entries));

	if (entries == NULL)
		return -ENOMEM;
	list->entries = entries;
	list->entries[list->count++] = *entry;
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	const struct bc_segment_entry *x = a;
	const struct bc_segment_entry *y = b;

	return bc_segment_name_compare(&x->name, &y->name);
}

static int compare_entries(const void *a, const void *b)
{
	const struct bc_segment_entry *x = a;
	const struct bc_segment_entry *y = b;

	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return compare_names(x, y);
}

/* Adds size, times and links to an entry, under its new name if it was sealed after it was listed.
 * Returns false if it is gone or not a file. */
static bool load_status(struct bc_segment_entry *entry, int dir_fd)
{
	char file[BC_SEGMENT_NAME_MAX];
	struct stat st;

	bc_segment_name_write(file, &entry->name);
	if (fstatat(dir_fd, file, &st, AT_SYMLINK_NOFOLLOW) != 0) {
		if (!entry->name.is_partial)
			return false;
		entry->name.is_partial = false;
		return load_status(entry, dir_fd);
	}
	entry->bytes = (uint64_t)st.st_size;
	entry->disk_bytes = st.st_blocks != 0 ? (uint64_t)st.st_blocks * 512 : entry->bytes;
	entry->links = st.st_nlink;
	entry->inode = st.st_ino;
	entry->changed_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	entry->status_changed_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
	return S_ISREG(st.st_mode);
}

/* Owners */

static int compare_known(const void *a, const void *b)
{
	const struct bc_known_file *x = a;
	const struct bc_known_file *y = b;

	return (x->name_hash > y->name_hash) - (x->name_hash < y->name_hash);
}

/* Whether the owner of a file stays the same while the file does. */
static bool is_final(int owner)
{
	return owner == 0 || owner == -EBADMSG || owner == -EUCLEAN || owner == -EXDEV ||
	       owner == -EACCES || owner == -EPERM;
}

static bool is_unchanged(const struct bc_known_file *before, const struct bc_segment_entry *entry)
{
	if (before->inode != entry->inode || !is_final(before->owner))
		return false;
	return (before->owner == 0 && entry->name.is_partial) ||
	       (before->bytes == entry->bytes &&
		       before->status_changed_ns == entry->status_changed_ns);
}

/* Where a listing is, from the newest file on. */
struct lookup {
	int dir_fd;
	const struct bc_known_files *known;
	unsigned reads_left;
	const struct bc_segment_entry *ours; /* the last one of ours that was found; may be NULL */
};

/* Whether nothing speaks against a file: it is sealed, and its recording is ours. */
static bool may_be_assumed(const struct lookup *l, const struct bc_segment_entry *entry)
{
	return l->ours != NULL && strcmp(l->ours->name.recording, entry->name.recording) == 0 &&
	       !entry->name.is_partial && entry->name.damaged == 0;
}

/* Finds out whose a file is, and sets *now to what to remember. It may have been sealed since. */
static void find_owner(struct lookup *l, struct bc_segment_entry *entry, struct bc_known_file *now)
{
	const struct bc_known_files *known = l->known;
	struct bc_segment_header header;
	char file[BC_SEGMENT_NAME_MAX];

	bc_segment_name_write(file, &entry->name);
	*now = (struct bc_known_file){
		.name_hash = bc_hash(file, strlen(file)),
		.inode = entry->inode,
		.bytes = entry->bytes,
		.status_changed_ns = entry->status_changed_ns,
	};
	const struct bc_known_file *before = known->count == 0
						     ? NULL
						     : bsearch(now, known->files, known->count,
							       sizeof(*now), compare_known);
	bool is_optional = may_be_assumed(l, entry);
	if (before != NULL && is_unchanged(before, entry) &&
		(!before->is_assumed || (is_optional && l->reads_left == 0))) {
		now->owner = before->owner;
		now->sequence = before->sequence;
		now->is_assumed = before->is_assumed;
	} else if (is_optional && l->reads_left == 0) {
		now->sequence = l->ours->sequence;
		now->is_assumed = true;
	} else {
		now->owner = bc_segment_owner_check(&header, l->dir_fd, file, &entry->name);
		now->sequence = now->owner == 0 ? header.sequence : 0;
		l->reads_left -= is_optional;
	}
	if (now->owner == -ENOENT && entry->name.is_partial) {
		entry->name.is_partial = false;
		if (load_status(entry, l->dir_fd)) {
			find_owner(l, entry, now);
			return;
		}
	}
	entry->owner = now->owner;
	entry->sequence = now->sequence;
	entry->is_assumed = now->is_assumed;
	entry->is_new = before == NULL || before->owner != now->owner;
	l->ours = entry->owner == 0 ? entry : l->ours;
}

/* Finds the owners of all files, which are sorted by name, and replaces what is known by that. */
static int find_owners(struct bc_segment_list *list, int dir_fd, struct bc_known_files *known)
{
	struct bc_known_file *files = malloc((list->count + 1) * sizeof(*files));
	struct lookup l = {.dir_fd = dir_fd, .known = known, .reads_left = READS_MAX};

	if (files == NULL)
		return -ENOMEM;
	for (size_t i = list->count; i-- != 0;)
		find_owner(&l, &list->entries[i], &files[i]);
	qsort(files, list->count, sizeof(*files), compare_known);
	free(known->files);
	known->files = files;
	known->count = list->count;
	return 0;
}

/* Sets sequence and order of the files, which are sorted by name. */
static void set_order(struct bc_segment_list *list)
{
	struct bc_segment_entry *entry = list->entries;
	struct bc_segment_entry *end = entry + list->count;
	uint64_t highest = 0;

	while (entry < end) {
		struct bc_segment_entry *first = entry;
		uint64_t sequence = 0;
		bool is_known = false;
		for (; entry < end && strcmp(entry->name.recording, first->name.recording) == 0;
			entry++) {
			is_known = is_known || entry->owner == 0;
			sequence = sequence != 0 ? sequence : entry->sequence;
		}
		if (sequence > highest)
			highest = sequence;
		for (; first < entry; first++) {
			first->is_recording_known = is_known;
			first->sequence = sequence;
			first->order = sequence != 0 ? sequence : highest;
		}
	}
}

/* Removes all but one of equal names: a file that was sealed meanwhile may be listed twice. */
static void remove_repeated(struct bc_segment_list *list)
{
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++)
		if (i == 0 || compare_names(&list->entries[count - 1], &list->entries[i]) != 0)
			list->entries[count++] = list->entries[i];
	list->count = count;
}

static int compare_owners(const void *a, const void *b)
{
	const struct bc_segment_entry *x = a;
	const struct bc_segment_entry *y = b;

	if ((x->owner == 0) != (y->owner == 0))
		return x->owner == 0 ? -1 : 1;
	return compare_entries(x, y);
}

static int sort(struct bc_segment_list *list, int dir_fd, struct bc_known_files *known)
{
	qsort(list->entries, list->count, sizeof(*list->entries), compare_names);
	int rc = find_owners(list, dir_fd, known);
	if (rc != 0)
		return rc;
	/* Some names may have changed. */
	qsort(list->entries, list->count, sizeof(*list->entries), compare_names);
	remove_repeated(list);
	set_order(list);
	qsort(list->entries, list->count, sizeof(*list->entries), compare_owners);
	while (list->count != 0 && list->entries[list->count - 1].owner != 0) {
		list->count--;
		list->foreign++;
	}
	return 0;
}

bool bc_is_own_entry(const struct bc_segment_entry *entry, int dir_fd)
{
	struct bc_segment_header header;
	char file[BC_SEGMENT_NAME_MAX];

	bc_segment_name_write(file, &entry->name);
	return !entry->is_assumed ||
	       bc_segment_owner_check(&header, dir_fd, file, &entry->name) == 0;
}

void bc_segment_list_adopt(
	struct bc_segment_list *list, bool (*is_adopted)(const struct bc_segment_entry *))
{
	size_t all = list->count + list->foreign;
	size_t next = list->count;

	for (size_t i = list->count; i < all; i++)
		if (is_adopted(&list->entries[i])) {
			struct bc_segment_entry entry = list->entries[next];
			list->entries[next++] = list->entries[i];
			list->entries[i] = entry;
		}
	list->count = next;
	list->foreign = all - next;
	if (list->count != 0)
		qsort(list->entries, list->count, sizeof(*list->entries), compare_entries);
}

bool bc_is_readable_entry(const struct bc_segment_entry *entry)
{
	return entry->owner == -EUCLEAN || (entry->owner != -EXDEV && entry->is_recording_known);
}

int bc_segments_list(struct bc_segment_list *list, int dir_fd, struct bc_known_files *known)
{
	struct bc_known_files own = {.files = NULL};
	size_t capacity = 0;
	int rc = 0;
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	memset(list, 0, sizeof(*list));
	if (dir == NULL) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	for (struct dirent *item; rc == 0 && (item = readdir(dir)) != NULL;) {
		struct bc_segment_entry entry = {.sequence = 0};
		if (bc_segment_name_read(&entry.name, item->d_name) && load_status(&entry, dir_fd))
			rc = append_entry(list, &capacity, &entry);
	}
	closedir(dir);
	if (rc == 0 && list->count != 0)
		rc = sort(list, dir_fd, known != NULL ? known : &own);
	free(own.files);
	if (rc != 0) {
		free(list->entries);
		memset(list, 0, sizeof(*list));
	}
	return rc;
}
