/* Lists the directory, sorts the files by age, and deletes the oldest sealed segments, each with
 * its raw capture, until every rule holds. Usage is summed once from the list and adjusted after
 * each deletion.
 *
 * The directory is the only state, so files of earlier runs count too, and files that are added or
 * deleted from outside are noticed. A failed deletion ends the check: newer files must not be
 * deleted instead. Each check costs O(n log n) time and O(n) memory for n files, so the rotator
 * checks once a second and only counts bytes in between.
 *
 * The order is that of the sequence numbers in the headers. A recording whose number is unknown,
 * say because its files can't be opened, is placed by its id: after the recordings with lower ids.
 * If it were the first of all, it would be deleted before older ones; if it were the last, the
 * segments being recorded would be deleted before it.
 *
 * Otherwise the clock only matters for max_age, and may be wrong by years: set_ages() counts the
 * time that passed from file to file. */
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

#include "daemon/base/log.h"
#include "formats/base/grow.h"
#include "formats/segment/manifest.h"
#include "formats/segment/segment_header.h"

#define SECOND_NS INT64_C(1000000000)

/* Between two files, or after the newest one, this much time is taken for a change of the clock. */
#define LEAP_NS (180 * 86400 * SECOND_NS)

/* During a run, a larger change of the clock suspends max_age. */
#define JUMP_NS (3600 * SECOND_NS)

/* A file may be this much newer than the clock: a file server has its own. */
#define SLACK_NS (60 * SECOND_NS)

struct bc_sequence {
	char recording[BC_RECORDING_ID_MAX];
	uint64_t sequence;
};

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

	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	if (is_same_number(x, y) && x->format != y->format)
		return x->format < y->format ? -1 : 1;
	return bc_segment_name_compare(&x->name, &y->name);
}

static int compare_sequences(const void *a, const void *b)
{
	const struct bc_sequence *x = a;
	const struct bc_sequence *y = b;

	return strcmp(x->recording, y->recording);
}

/* Reads the sequence number in the header of a file. Returns 0 or a negative errno. */
static int load_sequence(uint64_t *sequence, int dir_fd, const struct bc_segment_entry *entry)
{
	struct bc_segment_header header;
	char file[BC_SEGMENT_NAME_MAX];

	bc_segment_entry_name(file, entry);
	int fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	int rc = bc_segment_header_load(&header, fd);
	*sequence = rc == 0 ? header.sequence : 0;
	close(fd);
	return rc;
}

/* Sets sequence and order of the files, which are sorted by name, and replaces what is known by the
 * recordings in the list. A recording of which no header could be read is tried again next time. */
static int set_sequences(
	const struct bc_segment_list *list, int dir_fd, struct bc_sequences *sequences)
{
	struct bc_segment_entry *entry = list->entries;
	struct bc_segment_entry *end = entry + list->count;
	struct bc_sequence *known = calloc(list->count, sizeof(*known));
	uint64_t highest = 0;
	size_t count = 0;

	if (known == NULL)
		return -ENOMEM;
	while (entry < end) {
		struct bc_sequence *now = &known[count];
		struct bc_segment_entry *first = entry;
		memcpy(now->recording, entry->name.recording, sizeof(now->recording));
		const struct bc_sequence *found = sequences->count == 0
							  ? NULL
							  : bsearch(now, sequences->known,
								    sequences->count, sizeof(*now),
								    compare_sequences);
		bool is_known = found != NULL;
		now->sequence = is_known ? found->sequence : 0;
		for (; entry < end && strcmp(entry->name.recording, now->recording) == 0; entry++)
			if (found == NULL && now->sequence == 0 &&
				load_sequence(&now->sequence, dir_fd, entry) == 0)
				is_known = true;
		if (now->sequence > highest)
			highest = now->sequence;
		for (; first < entry; first++) {
			first->sequence = now->sequence;
			first->order = now->sequence != 0 ? now->sequence : highest;
		}
		count += is_known;
	}
	free(sequences->known);
	sequences->known = known;
	sequences->count = count;
	return 0;
}

/* Adds size and time to an entry, under its new name if it was sealed after it was listed. Returns
 * false if it is gone or not a file. */
static bool load_status(struct bc_segment_entry *entry, int dir_fd)
{
	char file[BC_SEGMENT_NAME_MAX];
	struct stat st;

	bc_segment_entry_name(file, entry);
	if (fstatat(dir_fd, file, &st, AT_SYMLINK_NOFOLLOW) != 0) {
		if (!entry->name.is_partial)
			return false;
		entry->name.is_partial = false;
		return load_status(entry, dir_fd);
	}
	entry->bytes = (uint64_t)st.st_size;
	entry->changed_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	return S_ISREG(st.st_mode);
}

/* Removes all but one of equal names: a file that was sealed meanwhile may be listed twice. */
static void remove_repeated(struct bc_segment_list *list)
{
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++)
		if (i == 0 || compare_entries(&list->entries[count - 1], &list->entries[i]) != 0)
			list->entries[count++] = list->entries[i];
	list->count = count;
}

int bc_segments_list(struct bc_segment_list *list, int dir_fd, struct bc_sequences *sequences)
{
	struct bc_sequences own = {.known = NULL};
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
		if (read_name(&entry, item->d_name) && load_status(&entry, dir_fd))
			rc = append_entry(list, &capacity, &entry);
	}
	closedir(dir);
	if (rc == 0 && list->count != 0) {
		qsort(list->entries, list->count, sizeof(*list->entries), compare_entries);
		rc = set_sequences(list, dir_fd, sequences != NULL ? sequences : &own);
		qsort(list->entries, list->count, sizeof(*list->entries), compare_entries);
		remove_repeated(list);
	}
	free(own.known);
	if (rc != 0) {
		free(list->entries);
		memset(list, 0, sizeof(*list));
	}
	return rc;
}

/* Age */

/* Sets the age of each file: the time from file to file until now. A step back, or of more than
 * LEAP_NS, is a change of the clock, or a long time without any recording; it does not count. */
static void set_ages(struct bc_segment_list *list, int64_t wall_ns)
{
	int64_t later = wall_ns;
	uint64_t age = 0;

	for (size_t i = list->count; i-- != 0;) {
		struct bc_segment_entry *entry = &list->entries[i];
		int64_t step = later - entry->changed_ns;
		if (step > 0 && step <= LEAP_NS)
			age += (uint64_t)step;
		if (step > 0)
			later = entry->changed_ns;
		entry->age_ns = age;
	}
}

enum { CLOCK_OK, CLOCK_BEHIND, CLOCK_AHEAD, CLOCK_JUMPED };

/* Describes a time in the largest unit that suits it. */
static const char *span_text(char out[32], int64_t ns)
{
	double s = (double)(ns < 0 ? -ns : ns) / (double)SECOND_NS;

	if (s >= 2 * 86400)
		snprintf(out, 32, "%.0f days", s / 86400);
	else if (s >= 2 * 3600)
		snprintf(out, 32, "%.0f hours", s / 3600);
	else
		snprintf(out, 32, "%.0f minutes", s / 60);
	return out;
}

static void log_clock(int clock, const struct bc_segment_entry *newest, int64_t ns)
{
	char file[BC_SEGMENT_NAME_MAX] = "";
	char span[32];

	if (newest != NULL)
		bc_segment_entry_name(file, newest);
	span_text(span, ns);
	switch (clock) {
	case CLOCK_OK:
		if (newest != NULL)
			bc_log(BC_LOG_NOTICE, "rule max_age applies again: the clock has passed %s",
				file);
		return;
	case CLOCK_BEHIND:
		bc_log(BC_LOG_WARNING,
			"rule max_age is suspended: the clock is %s behind %s, the newest file; "
			"check the clock",
			span, file);
		return;
	case CLOCK_AHEAD:
		bc_log(BC_LOG_WARNING,
			"rule max_age does not count the %s since %s, the newest file; check the "
			"clock",
			span, file);
		return;
	case CLOCK_JUMPED:
		bc_log(BC_LOG_WARNING,
			"rule max_age is suspended until the next start: the clock has jumped %s "
			"by %s; check the clock",
			ns < 0 ? "back" : "ahead", span);
		return;
	}
}

/* Returns whether files may be deleted for their age. Logs when the answer changes. */
static bool is_age_known(struct bc_retention *r, const struct bc_segment_list *list,
	const struct bc_retention_check *check)
{
	const struct bc_segment_entry *newest = list->count != 0 ? &list->entries[list->count - 1]
								 : NULL;
	int64_t since = newest != NULL ? check->wall_ns - newest->changed_ns : 0;
	int64_t offset = check->wall_ns - (int64_t)check->boot_ns;
	int64_t change = offset - r->clock_offset_ns;
	int clock = CLOCK_OK;

	if (r->has_offset && (change > JUMP_NS || change < -JUMP_NS))
		r->jump_ns = change;
	r->has_offset = true;
	r->clock_offset_ns = offset;
	if (check->rules->max_age_ns == 0) {
		r->clock = CLOCK_OK;
		return true;
	}
	if (r->jump_ns != 0)
		clock = CLOCK_JUMPED;
	else if (since < -SLACK_NS)
		clock = CLOCK_BEHIND;
	else if (since > LEAP_NS)
		clock = CLOCK_AHEAD;
	/* A file was written after a long time: nothing to say. */
	if (clock != r->clock && !(clock == CLOCK_OK && r->clock == CLOCK_AHEAD))
		log_clock(clock, newest, clock == CLOCK_JUMPED ? r->jump_ns : since);
	r->clock = clock;
	return clock == CLOCK_OK || clock == CLOCK_AHEAD;
}

/* Current usage, to compare with the rules. */
struct usage {
	uint64_t files;
	uint64_t used;
	uint64_t damaged; /* bytes of damaged files, included in `used` */
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
	if (rules->max_age_ns != 0 && oldest != NULL && oldest->age_ns > rules->max_age_ns)
		return "max_age";
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
		if (pair[i].name.damaged != 0)
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

static bool is_damaged(const struct bc_segment_entry *entry)
{
	return entry->name.damaged != 0;
}

static struct usage usage_of(const struct bc_segment_list *list)
{
	struct usage usage = {.files = 0};

	for (size_t i = 0; i < list->count; i++) {
		const struct bc_segment_entry *entry = &list->entries[i];
		usage.files += bc_is_segment_entry(entry);
		usage.used += entry->bytes;
		usage.damaged += is_damaged(entry) ? entry->bytes : 0;
	}
	return usage;
}

/* Returns whether the files of one number can be deleted: some are sealed, none is open or torn. */
static bool is_deletable(const struct bc_segment_entry *pair, size_t count)
{
	bool is_sealed = false;

	for (size_t i = 0; i < count; i++) {
		if (pair[i].name.is_partial)
			return false;
		is_sealed = is_sealed || !is_damaged(&pair[i]);
	}
	return is_sealed;
}

/* Removes deleted files from the manifest. `last` is the last one of its recording; NULL: none. */
static void forget(int dir_fd, const struct bc_segment_entry *last)
{
	if (last != NULL)
		bc_manifest_forget(dir_fd, last->name.recording, last->name.segment);
}

static void delete_oldest(struct bc_retention_state *state, struct usage *usage,
	const struct bc_segment_list *list, const struct bc_retention_check *check)
{
	const struct bc_segment_entry *last = NULL;
	size_t next;

	for (size_t i = 0; i < list->count; i = next) {
		const struct bc_segment_entry *first = &list->entries[i];
		for (next = i + 1; next < list->count; next++)
			if (!is_same_number(first, &list->entries[next]))
				break;
		if (!is_deletable(first, next - i))
			continue;
		const char *rule = broken_rule(usage, check->rules, check->files, first);
		if (rule == NULL)
			break;
		if (last != NULL && strcmp(last->name.recording, first->name.recording) != 0)
			forget(check->dir_fd, last);
		if (!delete_pair(state, usage, check->dir_fd, first, next - i, rule, check->health))
			break; /* never delete newer files instead */
		if (is_recording_gone(list, next))
			bc_manifest_remove(check->dir_fd, first->name.recording);
		else
			last = first;
	}
	forget(check->dir_fd, last);
}

int bc_retention_enforce(struct bc_retention *retention, struct bc_retention_state *state,
	const struct bc_retention_check *check)
{
	struct bc_segment_list list;
	struct statvfs fs;

	memset(state, 0, sizeof(*state));
	if (fstatvfs(check->dir_fd, &fs) != 0)
		return -errno;
	int rc = bc_segments_list(&list, check->dir_fd, &retention->sequences);
	if (rc != 0)
		return rc;
	struct usage usage = usage_of(&list);
	usage.files += check->coming_files;
	usage.used += check->coming_bytes;
	usage.free = subtract((uint64_t)fs.f_bavail * fs.f_frsize, check->coming_bytes);
	/* Without a known age, no file is old. */
	if (is_age_known(retention, &list, check))
		set_ages(&list, check->wall_ns);
	delete_oldest(state, &usage, &list, check);
	free(list.entries);
	const char *rule = broken_rule(&usage, check->rules, 0, NULL);
	state->used_bytes = subtract(usage.used, check->coming_bytes);
	state->segments = subtract(usage.files, check->coming_files);
	state->free_bytes = usage.free + check->coming_bytes;
	state->is_over = rule != NULL;
	if (rule != NULL && usage.damaged != 0)
		snprintf(state->err, sizeof(state->err),
			"rule %s is broken and no sealed segment is left to delete; delete damaged "
			"files (%llu MB)",
			rule, (unsigned long long)(usage.damaged + 999999) / 1000000);
	else if (rule != NULL)
		snprintf(state->err, sizeof(state->err),
			"rule %s is broken and no sealed segment is left to delete", rule);
	return 0;
}
