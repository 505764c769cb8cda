/* What an earlier run can leave, and what becomes of it:
 *
 *   unsealed                    copied; the original is deleted if all that it has is in the copy,
 *                               or renamed to .damaged
 *   unsealed, and a sealed      an earlier start was killed after it had sealed the copy: if that
 *   segment of the same name    has everything, the original is deleted, otherwise .damaged
 *   the newest recording's      its recorder was killed between two segments: a segment follows
 *   last segment without end    that has only the end
 *
 * At every moment each whole chunk is readable in at least one file: an original goes only after
 * its copy is sealed. So a start that is killed is repeated by the next, with the same result. */
#include "daemon/main/startup_recovery.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log_limit.h"
#include "daemon/main/signals.h"
#include "daemon/store/segment_list.h"
#include "formats/base/atomic_file.h"
#include "formats/base/number.h"
#include "formats/segment/recover.h"

struct recovery {
	const char *dir;
	int dir_fd;
	const char *boot_id;
	void (*on_progress)(void *context, const char *file);
	void *context;
	char file[BC_SEGMENT_NAME_MAX]; /* the current one */
	struct bc_progress_cb progress;
	struct bc_log_limits limits;
};

static void on_file_progress(void *context)
{
	const struct recovery *r = context;

	r->on_progress(r->context, r->file);
}

enum outcome {
	IS_RECOVERED,
	IS_REMOVED, /* nothing that can be read is left under its names */
	IS_LEFT,    /* unchanged */
};

/* A file left open by an earlier run. */
struct leftover {
	const struct bc_segment_name *name;
	char from[BC_SEGMENT_NAME_MAX];
	char to[BC_SEGMENT_NAME_MAX];   /* its sealed name */
	char kept[BC_SEGMENT_NAME_MAX]; /* its name as a damaged file */
	struct bc_recovered found;
};

static void log_failure(struct recovery *r, const char *file, const char *what, int rc)
{
	bc_log_limited(&r->limits, BC_LOG_ERROR,
		"%s/%s: left open by an earlier run; can't %s it now: %s", r->dir, file, what,
		strerror(-rc));
}

/* Writes what of the original is not in the copy. */
static void write_lost(char *out, size_t size, const struct leftover *l)
{
	const struct bc_recovered *found = &l->found;

	out[0] = '\0';
	if (found->is_only_torn && found->torn_records != 0)
		snprintf(out, size, "; torn: lost %" PRIu64 " in the last chunk",
			found->torn_records);
	else if (found->is_only_torn)
		snprintf(out, size, "; torn: lost %" PRIu64 " bytes after the last whole chunk",
			found->damaged_bytes);
	else if (found->damages != 0)
		snprintf(out, size,
			"; damaged: lost %" PRIu64 " bytes in %" PRIu64
			" place%s (first: offset %" PRIu64 ", %s); the original is kept as %s",
			found->damaged_bytes, found->damages, bc_plural(found->damages),
			found->first.offset, found->first.what, l->kept);
}

static void log_recovered(struct recovery *r, const struct leftover *l)
{
	const struct bc_recovered *found = &l->found;
	bool is_whole = found->damages == 0;
	char lost[256 + BC_SEGMENT_NAME_MAX];

	write_lost(lost, sizeof(lost), l);
	bc_log_limited(&r->limits, is_whole ? BC_LOG_NOTICE : BC_LOG_WARNING,
		"%s/%s: left open by an earlier run; recovered %s%" PRIu64 " record%s%s", r->dir,
		l->to, is_whole ? "all " : "", found->records, bc_plural(found->records), lost);
}

/* Renames a file to a name that ends in .damaged. Returns 0 or a negative errno. */
static int keep_damaged(const struct recovery *r, struct leftover *l)
{
	struct bc_segment_name kept = *l->name;
	int rc = -EEXIST;

	kept.is_partial = false;
	for (unsigned n = 1; rc == -EEXIST && n <= BC_DAMAGED_MAX; n++) {
		kept.damaged = n;
		bc_segment_name_write(l->kept, &kept);
		rc = bc_rename_new(r->dir_fd, l->from, l->kept);
	}
	return rc;
}

/* Keeps or deletes the original. Returns whether that succeeded. */
static bool settle_original(struct recovery *r, struct leftover *l, bool is_kept)
{
	int rc = 0;

	if (is_kept)
		rc = keep_damaged(r, l);
	else if (unlinkat(r->dir_fd, l->from, 0) != 0)
		rc = -errno;
	if (rc != 0)
		log_failure(r, l->from, is_kept ? "rename" : "delete", rc);
	return rc == 0;
}

/* A sealed file has the final name of this one. If it has everything that can be read in this one,
 * an earlier run has sealed the copy and was killed before it deleted the original. */
static enum outcome compare_with_sealed(struct recovery *r, struct leftover *l, int in, int sealed)
{
	bool has_all;
	int rc = bc_recover_compare(&l->found, &has_all, in, sealed, &r->progress);

	if (rc != 0) {
		log_failure(r, l->from, "compare", rc);
		return IS_LEFT;
	}
	bool is_copied = has_all && (l->found.damages == 0 || l->found.is_only_torn);
	if (!settle_original(r, l, !is_copied))
		return IS_LEFT;
	if (is_copied)
		bc_log_limited(&r->limits, BC_LOG_NOTICE,
			"%s/%s: already recovered by an earlier run; deleted", r->dir, l->from);
	else if (has_all)
		bc_log_limited(&r->limits, BC_LOG_NOTICE,
			"%s/%s: already recovered by an earlier run; the damaged original is kept "
			"as %s",
			r->dir, l->from, l->kept);
	else
		bc_log_limited(&r->limits, BC_LOG_WARNING,
			"%s/%s: the sealed file of this name has other contents; kept as %s; to "
			"read it: buscap recover %s/%s -o OUT",
			r->dir, l->from, l->kept, r->dir, l->kept);
	return IS_REMOVED;
}

/* Deletes the original if everything that can be read in it is in the copy, and keeps it otherwise.
 */
static enum outcome finish_original(struct recovery *r, struct leftover *l)
{
	const struct bc_recovered *found = &l->found;
	bool is_kept = found->is_written ? found->damages != 0 && !found->is_only_torn
					 : found->has_content;

	if (!settle_original(r, l, is_kept))
		return IS_LEFT;
	if (found->is_written)
		log_recovered(r, l);
	else if (is_kept)
		bc_log_limited(&r->limits, BC_LOG_WARNING,
			"%s/%s: left open by an earlier run; nothing in it can be read (%s); kept "
			"as %s; to try again: buscap recover %s/%s -o %s/%s",
			r->dir, l->from, found->first.what, l->kept, r->dir, l->kept, r->dir,
			l->to);
	else
		bc_log_limited(&r->limits, BC_LOG_NOTICE,
			"%s/%s: left open by an earlier run; empty, deleted", r->dir, l->from);
	return found->is_written ? IS_RECOVERED : IS_REMOVED;
}

/* Removes an unfinished copy, left by a recovery that was killed. */
static void remove_unfinished(const struct recovery *r, const char *sealed)
{
	char name[BC_SEGMENT_NAME_MAX + sizeof(BC_RECOVER_SUFFIX)];

	snprintf(name, sizeof(name), "%s" BC_RECOVER_SUFFIX, sealed);
	int fd = openat(r->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return;
	if (!bc_is_being_written(fd))
		unlinkat(r->dir_fd, name, 0);
	close(fd);
}

/* Copies what is whole. Without a header of ours, or a file of its recording that has one, a file
 * is ours only if a chunk in it proves it; otherwise it stays as it is, and retention reports it.
 */
static enum outcome copy_original(struct recovery *r, struct leftover *l, int in,
	const struct bc_recover_options *options, bool is_ours)
{
	int rc = bc_recover(&l->found, in, r->dir_fd, l->to, options);

	/* It is ours, and an earlier run was killed while it copied it. */
	if (rc == -EEXIST && !is_ours) {
		remove_unfinished(r, l->to);
		rc = bc_recover(&l->found, in, r->dir_fd, l->to, options);
	}
	if (rc != 0)
		log_failure(r, l->from, "recover", rc);
	if (rc != 0 || (!is_ours && !l->found.is_written))
		return IS_LEFT;
	return finish_original(r, l);
}

/* `is_last`: it is the last segment of its recording. */
static enum outcome recover_file(
	struct recovery *r, const struct bc_segment_entry *partial, bool is_last)
{
	struct leftover l = {.name = &partial->name};
	struct bc_segment_name sealed = partial->name;
	struct bc_recover_options options = {
		.fallback = &partial->name,
		/* A new header keeps the recording's place in the order. Equal ones sort by id. */
		.sequence = partial->order != 0 ? partial->order : 1,
		.must_be_fallback = true,
		.progress = &r->progress,
		.boot_id = is_last ? r->boot_id : NULL,
	};
	bool is_ours = partial->owner == 0 || partial->is_recording_known;
	int other = -1;

	sealed.is_partial = false;
	bc_segment_name_write(l.from, &partial->name);
	bc_segment_name_write(l.to, &sealed);
	memcpy(r->file, l.from, sizeof(l.from));
	on_file_progress(r);
	int in = openat(r->dir_fd, l.from, O_RDONLY | O_CLOEXEC);
	if (in < 0) {
		log_failure(r, l.from, "open", -errno);
		return IS_LEFT;
	}
	if (bc_is_being_written(in)) {
		bc_log_limited(&r->limits, BC_LOG_NOTICE,
			"%s/%s: left alone: another program is writing it", r->dir, l.from);
		close(in);
		return IS_LEFT;
	}
	if (is_ours) {
		remove_unfinished(r, l.to);
		other = openat(r->dir_fd, l.to, O_RDONLY | O_CLOEXEC);
	}
	enum outcome outcome = other >= 0 ? compare_with_sealed(r, &l, in, other)
					  : copy_original(r, &l, in, &options, is_ours);
	if (other >= 0)
		close(other);
	close(in);
	return outcome;
}

/* Whether to look what is in a file without a header of ours. */
static bool is_open_entry(const struct bc_segment_entry *entry)
{
	return entry->name.is_partial;
}

static bool is_first_file(const struct bc_segment_list *list, size_t i)
{
	const struct bc_segment_entry *entry = &list->entries[i];

	return i == 0 || strcmp(entry[-1].name.recording, entry->name.recording) != 0;
}

/* Returns whether no later segment of the recording follows. */
static bool is_last_segment(const struct bc_segment_list *list, size_t i)
{
	const struct bc_segment_entry *entry = &list->entries[i];

	for (size_t j = i + 1; j < list->count; j++) {
		const struct bc_segment_entry *later = &list->entries[j];
		if (strcmp(later->name.recording, entry->name.recording) != 0)
			return true;
		if (bc_is_segment_entry(later) && later->name.segment != entry->name.segment)
			return false;
	}
	return true;
}

/* Adds the end to the newest recording if it has none although its last segment is sealed. Its
 * recorder was killed between two segments. */
static void end_newest(struct recovery *r, struct bc_startup_found *found)
{
	struct bc_segment_list list;
	struct bc_recovered added;
	char last[BC_SEGMENT_NAME_MAX];
	char next[BC_SEGMENT_NAME_MAX];

	if (bc_segments_list(&list, r->dir_fd, NULL) != 0)
		return;
	size_t i = list.count;
	while (i != 0 &&
		(!bc_is_segment_entry(&list.entries[i - 1]) || list.entries[i - 1].sequence == 0))
		i--;
	bool is_ours = i != 0 && !list.entries[i - 1].name.is_partial;
	if (is_ours) {
		struct bc_segment_name *name = &list.entries[i - 1].name;
		bc_segment_name_write(last, name);
		name->segment++;
		bc_segment_name_write(next, name);
	}
	free(list.entries);
	int fd = is_ours ? openat(r->dir_fd, last, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	remove_unfinished(r, next);
	int rc = bc_recover_end(&added, fd, r->dir_fd, next, r->boot_id);
	close(fd);
	if (rc != 0)
		bc_log_limited(&r->limits, BC_LOG_ERROR,
			"%s/%s: can't find out how its recording ended: %s", r->dir, last,
			strerror(-rc));
	if (rc != 0 || !added.is_written)
		return;
	found->recovered++;
	bc_log_limited(&r->limits, BC_LOG_WARNING,
		"%s/%s: the last segment of a recording that was killed; its end and a gap of "
		"unknown size are in %s",
		r->dir, last, next);
}

int bc_startup_recover(struct bc_startup_found *found, const char *dir, int dir_fd,
	const char *boot_id, void (*on_progress)(void *context, const char *file), void *context)
{
	struct recovery r = {.dir = dir,
		.dir_fd = dir_fd,
		.boot_id = boot_id,
		.on_progress = on_progress,
		.context = context};
	struct bc_segment_list list;

	r.progress = (struct bc_progress_cb){.on_progress = on_file_progress, .context = &r};
	memset(found, 0, sizeof(*found));
	int rc = bc_segments_list(&list, dir_fd, NULL);
	if (rc != 0)
		return rc;
	bc_segment_list_adopt(&list, is_open_entry);
	if (list.count != 0)
		found->sequence = list.entries[list.count - 1].order;
	/* Recovery may take long: a stop signal leaves the remaining files for the next start. */
	for (size_t i = 0; i < list.count; i++) {
		const struct bc_segment_entry *entry = &list.entries[i];
		const struct bc_segment_name *name = &entry->name;
		enum outcome outcome = name->damaged != 0 ? IS_REMOVED : IS_LEFT;
		/* An unknown number may be any: leave one for each. */
		if (entry->sequence == 0 && is_first_file(&list, i))
			found->sequence++;
		if (name->is_partial && !bc_signals_is_stop_pending())
			outcome = recover_file(&r, entry, is_last_segment(&list, i));
		found->recovered += outcome == IS_RECOVERED;
		/* Without a number, it may not be a recording of buscapd. */
		if (outcome == IS_RECOVERED || (outcome == IS_LEFT && entry->sequence != 0))
			memcpy(found->newest, name->recording, BC_RECORDING_ID_MAX);
	}
	free(list.entries);
	if (!bc_signals_is_stop_pending())
		end_newest(&r, found);
	bc_log_limits_end(&r.limits);
	fsync(dir_fd);
	return 0;
}
