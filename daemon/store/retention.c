/* Lists the directory, sorts the files by age, and deletes the oldest sealed segments, each with
 * its raw capture, until every rule holds. Usage is summed once from the list and adjusted after
 * each deletion.
 *
 * The directory is the only state, so files of earlier runs count too, and files that are added or
 * deleted from outside are noticed. A failed deletion ends the check: newer files must not be
 * deleted instead. Each check costs O(n log n) time and O(n) memory for n files, so the rotator
 * checks once a second and only counts bytes in between. */
#include "daemon/store/retention.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/store/manifest.h"

static int append_entry(
	struct bc_segment_list *list, size_t *capacity, const struct bc_segment_entry *entry)
{
	if (list->entries == NULL || list->count == *capacity) {
		*capacity = *capacity == 0 ? 64 : *capacity * 2;
		struct bc_segment_entry *more = realloc(
			list->entries, *capacity * sizeof(*list->entries));
		if (more == NULL)
			return -ENOMEM;
		list->entries = more;
	}
	list->entries[list->count++] = *entry;
	return 0;
}

void bc_segment_entry_name(char out[BC_SEGMENT_NAME_MAX], const struct bc_segment_entry *entry)
{
	if (entry->format == BC_FORMAT_SEGMENT)
		bc_segment_name_write(out, &entry->name);
	else
		bc_raw_name_write(out, &entry->name, entry->format);
}

static bool read_name(struct bc_segment_entry *entry, const char *file)
{
	entry->format = BC_FORMAT_SEGMENT;
	return bc_segment_name_read(&entry->name, file) ||
	       bc_raw_name_read(&entry->name, &entry->format, file);
}

static bool is_same_number(const struct bc_segment_entry *a, const struct bc_segment_entry *b)
{
	return a->name.segment == b->name.segment &&
	       strcmp(a->name.recording, b->name.recording) == 0;
}

static int compare_entries(const void *a, const void *b)
{
	const struct bc_segment_entry *x = a;
	const struct bc_segment_entry *y = b;

	if (is_same_number(x, y) && x->format != y->format)
		return x->format < y->format ? -1 : 1;
	return bc_segment_name_compare(&x->name, &y->name);
}

int bc_segments_list(struct bc_segment_list *list, int dir_fd)
{
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
		struct bc_segment_entry entry;
		struct stat st;
		if (!read_name(&entry, item->d_name) ||
			fstatat(dir_fd, item->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
			!S_ISREG(st.st_mode))
			continue;
		entry.bytes = (uint64_t)st.st_size;
		entry.changed_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
		rc = append_entry(list, &capacity, &entry);
	}
	closedir(dir);
	if (rc != 0) {
		free(list->entries);
		memset(list, 0, sizeof(*list));
	} else if (list->count != 0) {
		qsort(list->entries, list->count, sizeof(*list->entries), compare_entries);
	}
	return rc;
}

/* Current usage, to compare with the rules. */
struct usage {
	uint64_t files;
	uint64_t used;
	uint64_t free;
};

/* Returns the rule that is broken, or NULL. `oldest` may be NULL: then max_age is not checked. */
static const char *broken_rule(const struct usage *usage, const struct bc_retention_rules *rules,
	uint64_t files, const struct bc_segment_entry *oldest)
{
	if (files != 0 && usage->files > files)
		return "files";
	if (rules->max_use_bytes != 0 && usage->used > rules->max_use_bytes)
		return "max_use";
	if (rules->keep_free_bytes != 0 && usage->free < rules->keep_free_bytes)
		return "keep_free";
	if (rules->max_age_ns != 0 && oldest != NULL) {
		int64_t age = bc_wall_ns() - oldest->changed_ns;
		if (age > 0 && (uint64_t)age > rules->max_age_ns)
			return "max_age";
	}
	return NULL;
}

static uint64_t subtract(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static bool delete_file(struct bc_retention_state *state, int dir_fd,
	const struct bc_segment_entry *entry, const char *rule, struct bc_thread_health *health)
{
	char file[BC_SEGMENT_NAME_MAX];

	bc_segment_entry_name(file, entry);
	if (health != NULL)
		bc_thread_health_start(health, "deleting", file);
	if (unlinkat(dir_fd, file, 0) != 0) {
		snprintf(state->error, sizeof(state->error), "%s: can't delete (rule %s): %s", file,
			rule, strerror(errno));
		return false;
	}
	bc_log(BC_LOG_INFO, "%s: deleted by rule %s", file, rule);
	state->deleted++;
	return true;
}

/* Deletes the sealed files of one number: a segment and its raw capture. */
static bool delete_pair(struct bc_retention_state *state, struct usage *usage, int dir_fd,
	const struct bc_segment_entry *pair, size_t count, const char *rule,
	struct bc_thread_health *health)
{
	for (size_t i = 0; i < count; i++) {
		if (pair[i].name.is_partial)
			continue;
		if (!delete_file(state, dir_fd, &pair[i], rule, health))
			return false;
		usage->files -= pair[i].format == BC_FORMAT_SEGMENT;
		usage->used = subtract(usage->used, pair[i].bytes);
		usage->free += pair[i].bytes;
	}
	return true;
}

/* Returns whether the recording of the entry before `end` has no files left. All sealed files
 * before `end` have been deleted. */
static bool is_recording_gone(const struct bc_segment_list *list, size_t end)
{
	const char *recording = list->entries[end - 1].name.recording;

	if (end < list->count && strcmp(list->entries[end].name.recording, recording) == 0)
		return false;
	for (size_t i = end; i-- > 0;) {
		if (strcmp(list->entries[i].name.recording, recording) != 0)
			break;
		if (list->entries[i].name.is_partial)
			return false;
	}
	return true;
}

static struct usage usage_of(const struct bc_segment_list *list)
{
	struct usage usage = {.files = 0};

	for (size_t i = 0; i < list->count; i++) {
		usage.files += list->entries[i].format == BC_FORMAT_SEGMENT;
		usage.used += list->entries[i].bytes;
	}
	return usage;
}

int bc_retention_enforce(struct bc_retention_state *state, int dir_fd,
	const struct bc_retention_rules *rules, uint64_t files, uint64_t coming_bytes,
	uint64_t coming_files, struct bc_thread_health *health)
{
	struct bc_segment_list list;
	struct statvfs fs;

	memset(state, 0, sizeof(*state));
	if (fstatvfs(dir_fd, &fs) != 0)
		return -errno;
	int rc = bc_segments_list(&list, dir_fd);
	if (rc != 0)
		return rc;
	struct usage usage = usage_of(&list);
	usage.files += coming_files;
	usage.used += coming_bytes;
	usage.free = subtract((uint64_t)fs.f_bavail * fs.f_frsize, coming_bytes);

	const char *rule;
	size_t next;
	for (size_t i = 0; i < list.count; i = next) {
		const struct bc_segment_entry *first = &list.entries[i];
		for (next = i + 1; next < list.count; next++)
			if (!is_same_number(first, &list.entries[next]))
				break;
		if (first->name.is_partial)
			continue; /* open or torn */
		rule = broken_rule(&usage, rules, files, first);
		if (rule == NULL)
			break;
		if (!delete_pair(state, &usage, dir_fd, first, next - i, rule, health))
			break; /* never delete newer files instead */
		if (is_recording_gone(&list, next))
			bc_manifest_remove(dir_fd, first->name.recording);
	}
	free(list.entries);
	rule = broken_rule(&usage, rules, 0, NULL);
	state->used_bytes = subtract(usage.used, coming_bytes);
	state->segments = subtract(usage.files, coming_files);
	state->free_bytes = usage.free + coming_bytes;
	state->is_over = rule != NULL;
	if (rule != NULL)
		snprintf(state->err, sizeof(state->err),
			"rule %s is broken and no sealed segment is left to delete", rule);
	return 0;
}
