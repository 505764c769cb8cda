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
 * its copy is sealed. So if a start is killed, the next one repeats it with the same result.
 *
 * The directory may have 100,000 recordings, and nothing is recorded before this is over. So only
 * names are listed. Headers are read of recordings with an open file, and of the last RECENT ones
 * by their ids, which is by time: the newest is among them unless the clock was wrong.
 *
 * The next recording's sequence number must be above all others, whatever the clock was. If all
 * headers were read, that is one more than the highest. Otherwise a file in the directory has a
 * number above all of earlier runs, as long as a run makes fewer than RUN_NUMBERS. */
#include "daemon/main/startup_recovery.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/log_limit.h"
#include "daemon/main/signals.h"
#include "formats/base/atomic_file.h"
#include "formats/base/text.h"
#include "formats/recording/recording_list.h"
#include "formats/segment/recover.h"
#include "formats/segment/segment_header.h"

/* The last recordings by their ids. */
#define RECENT 100u

/* Files of a recording whose headers are read until one is ours. */
#define HEADERS 16u

/* A directory with more recordings than RECENT has this file: a decimal number. */
#define NUMBER_FILE  ".buscapd.sequence"
#define NUMBER_BYTES 24
#define RUN_NUMBERS  (UINT64_C(1) << 30)

/* No run makes such a number. */
#define NUMBER_END (UINT64_C(1) << 63)

struct recovery {
	const char *dir;
	int dir_fd;
	const char *boot_id;
	void (*on_progress)(void *context, const char *file);
	void *context;
	struct bc_recording_list list;
	uint64_t *origins; /* of the list: the sequence number + 1; 0: not yet read; may be NULL */
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
		snprintf(out, size, "; torn: lost %s in the last chunk",
			BC_GROUPED(found->torn_records));
	else if (found->is_only_torn)
		snprintf(out, size, "; torn: lost %s bytes after the last whole chunk",
			BC_GROUPED(found->damaged_bytes));
	else if (found->damages != 0)
		snprintf(out, size,
			"; damaged: lost %s bytes in %s place%s (first: offset %" PRIu64
			", %s); the original is kept as %s",
			BC_GROUPED(found->damaged_bytes), BC_GROUPED(found->damages),
			bc_plural(found->damages), found->first.offset, found->first.what, l->kept);
}

static void log_recovered(struct recovery *r, const struct leftover *l)
{
	const struct bc_recovered *found = &l->found;
	bool is_whole = found->damages == 0;
	char lost[256 + BC_SEGMENT_NAME_MAX];

	write_lost(lost, sizeof(lost), l);
	bc_log_limited(&r->limits, is_whole ? BC_LOG_NOTICE : BC_LOG_WARNING | BC_LOG_DAMAGED,
		"%s/%s: left open by an earlier run; recovered %s%s record%s%s", r->dir, l->to,
		is_whole ? "all " : "", BC_GROUPED(found->records), bc_plural(found->records),
		lost);
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
		bc_log_limited(&r->limits, BC_LOG_WARNING | BC_LOG_DAMAGED,
			"%s/%s: the sealed file of this name has other contents; kept as %s; to "
			"read it: buscap recover %s/%s -o OUT",
			r->dir, l->from, l->kept, r->dir, l->kept);
	return IS_REMOVED;
}

/* Deletes the original if all that can be read in it is in the copy, and keeps it otherwise. */
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
		bc_log_limited(&r->limits, BC_LOG_WARNING | BC_LOG_DAMAGED,
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

/* Returns whether a file has nothing but zeros, as a power cut may leave it. */
static bool is_blank(int fd)
{
	static const uint8_t zeros[65536];
	uint8_t bytes[sizeof(zeros)];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, bytes, sizeof(bytes), at)) > 0 &&
		memcmp(bytes, zeros, (size_t)n) == 0)
		at += n;
	return n == 0;
}

/* Copies what is whole. Without a header of ours, or a file of its recording that has one, a file
 * is ours only if a chunk in it proves it, or if it is blank and has the id of a recording;
 * otherwise it stays as it is, and retention reports it. */
static enum outcome copy_original(struct recovery *r, struct leftover *l, int in,
	const struct bc_recover_options *options, bool is_ours)
{
	int64_t start_ns;
	int rc = bc_recover(&l->found, in, r->dir_fd, l->to, options);

	/* It is ours, and an earlier run was killed while it copied it. */
	if (rc == -EEXIST && !is_ours) {
		remove_unfinished(r, l->to);
		rc = bc_recover(&l->found, in, r->dir_fd, l->to, options);
	}
	if (rc != 0)
		log_failure(r, l->from, "recover", rc);
	if (rc != 0)
		return IS_LEFT;
	if (!l->found.is_written && is_blank(in))
		l->found.has_content = false;
	else if (!l->found.is_written && !is_ours)
		return IS_LEFT;
	if (!l->found.has_content && !is_ours &&
		!bc_recording_id_start(&start_ns, l->name->recording))
		return IS_LEFT;
	return finish_original(r, l);
}

/* What the headers say about a recording. */
struct origin {
	bool is_ours;   /* a file of it is */
	bool is_unread; /* a header can't be read now */
	uint64_t sequence;
	uint64_t order; /* that, or the highest of the recordings with lower ids */
};

/* Returns as bc_segment_owner_check(). */
static int check_owner(const struct recovery *r, struct bc_segment_header *header,
	const struct bc_segment_name *name)
{
	char file[BC_SEGMENT_NAME_MAX];

	bc_segment_name_write(file, name);
	return bc_segment_owner_check(header, r->dir_fd, file, name);
}

static const struct bc_recording_file *file_of(
	const struct recovery *r, const struct bc_recording *recording, uint32_t i)
{
	return &r->list.files[recording->first + i];
}

/* Reads headers of a recording until one is ours and has a sequence number. */
static struct origin read_origin(const struct recovery *r, const struct bc_recording *recording)
{
	struct origin origin = {.sequence = 0};
	struct bc_segment_header header;

	for (uint32_t i = 0; i < recording->count && i < HEADERS && origin.sequence == 0; i++) {
		struct bc_segment_name name = bc_recording_file_name(
			recording, file_of(r, recording, i));
		int rc = check_owner(r, &header, &name);
		origin.is_unread = origin.is_unread || !(rc == 0 || bc_segment_is_foreign(rc));
		if (rc != 0)
			continue;
		origin.is_ours = true;
		origin.sequence = header.sequence;
	}
	origin.order = origin.sequence;
	return origin;
}

/* Finds the place of a recording without a number. */
static uint64_t order_before(const struct recovery *r, uint32_t at)
{
	uint64_t highest = 0;

	for (uint32_t i = at > RECENT ? at - RECENT : 0; i < at; i++) {
		uint64_t known = r->origins != NULL ? r->origins[i] : 0;
		uint64_t sequence = known != 0 ? known - 1
					       : read_origin(r, &r->list.recordings[i]).sequence;
		if (r->origins != NULL)
			r->origins[i] = sequence + 1;
		highest = sequence > highest ? sequence : highest;
	}
	return highest;
}

/* `is_last`: it is the last segment of its recording. */
static enum outcome recover_file(struct recovery *r, const struct bc_segment_name *partial,
	const struct origin *origin, bool is_last)
{
	struct leftover l = {.name = partial};
	struct bc_segment_name sealed = *partial;
	struct bc_segment_header header;
	struct bc_recover_options options = {
		.fallback = partial,
		/* A new header keeps the recording's place in the order. Equal ones sort by id. */
		.sequence = origin->order != 0 ? origin->order : 1,
		.must_be_fallback = true,
		.progress = &r->progress,
		.boot_id = is_last ? r->boot_id : NULL,
	};
	struct stat status;
	int other = -1;

	sealed.is_partial = false;
	bc_segment_name_write(l.from, partial);
	bc_segment_name_write(l.to, &sealed);
	memcpy(r->file, l.from, sizeof(l.from));
	on_file_progress(r);
	if (fstatat(r->dir_fd, l.from, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
		!S_ISREG(status.st_mode))
		return IS_LEFT;
	int in = openat(r->dir_fd, l.from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (in < 0) {
		log_failure(r, l.from, "open", -errno);
		return IS_LEFT;
	}
	if (bc_is_being_written(in)) {
		bc_log_limited(&r->limits, BC_LOG_NOTICE,
			"%s/%s: ignored: another program is writing it", r->dir, l.from);
		close(in);
		return IS_LEFT;
	}
	bool is_ours = origin->is_ours || check_owner(r, &header, partial) == 0;
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

/* Returns whether no later segment of the recording follows. */
static bool is_last_segment(
	const struct recovery *r, const struct bc_recording *recording, uint32_t of)
{
	struct bc_segment_header header;

	for (uint32_t i = of + 1; i < recording->count; i++) {
		const struct bc_recording_file *file = file_of(r, recording, i);
		struct bc_segment_name name = bc_recording_file_name(recording, file);
		if (file->damaged == 0 && file->number != file_of(r, recording, of)->number &&
			(file->is_partial ||
				!bc_segment_is_foreign(check_owner(r, &header, &name))))
			return false;
	}
	return true;
}

/* Adds the end to the newest recording if it has none although its last segment is sealed. Its
 * recorder was killed between two segments. */
static void end_newest(struct recovery *r, struct bc_startup_found *found)
{
	const struct bc_recording *recording = bc_recording_find(&r->list, found->newest);
	struct bc_segment_header header;
	struct bc_segment_name name;
	struct bc_recovered added;
	char last[BC_SEGMENT_NAME_MAX];
	char next[BC_SEGMENT_NAME_MAX];
	int fd = -1;

	for (uint32_t i = recording != NULL ? recording->count : 0; fd < 0 && i-- != 0;) {
		name = bc_recording_file_name(recording, file_of(r, recording, i));
		int owner = name.damaged != 0 ? -EXDEV : check_owner(r, &header, &name);
		if (bc_segment_is_foreign(owner))
			continue;
		if (owner != 0 || name.is_partial || header.sequence == 0)
			return;
		bc_segment_name_write(last, &name);
		fd = openat(r->dir_fd, last, O_RDONLY | O_CLOEXEC);
		name.segment++;
		bc_segment_name_write(next, &name);
	}
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
	bc_log_limited(&r->limits, BC_LOG_WARNING | BC_LOG_DAMAGED,
		"%s/%s: the last segment of a recording that was killed; its end and a gap of "
		"unknown size are in %s",
		r->dir, last, next);
}

/* Recovers the open files of a recording. Returns whether anything readable of it is left. */
static bool recover_recording(struct recovery *r, struct bc_startup_found *found,
	const struct bc_recording *recording, const struct origin *origin)
{
	bool is_left = false;

	for (uint32_t i = 0; i < recording->count; i++) {
		const struct bc_recording_file *file = file_of(r, recording, i);
		struct bc_segment_name name = bc_recording_file_name(recording, file);
		enum outcome outcome = file->damaged != 0 ? IS_REMOVED : IS_LEFT;
		/* Recovery may take long: a stop signal leaves the rest for the next start. */
		if (file->is_partial && !bc_signals_is_stop_pending())
			outcome = recover_file(r, &name, origin, is_last_segment(r, recording, i));
		found->recovered += outcome == IS_RECOVERED;
		/* Without a number, it may not be a recording of buscapd. */
		is_left = is_left || outcome == IS_RECOVERED ||
			  (outcome == IS_LEFT && origin->sequence != 0);
	}
	return is_left;
}

static bool has_open_file(const struct recovery *r, const struct bc_recording *recording)
{
	for (uint32_t i = 0; i < recording->count; i++)
		if (file_of(r, recording, i)->is_partial)
			return true;
	return false;
}

/* Recovers all recordings and finds the newest. Returns whether any had an open file. */
static bool recover_all(struct recovery *r, struct bc_startup_found *found)
{
	uint64_t newest = 0;  /* its order */
	uint64_t highest = 0; /* of the recent ones so far */
	uint64_t unknown = 0;
	bool has_open = false;

	r->origins = calloc(r->list.count + 1, sizeof(*r->origins));
	for (uint32_t i = 0; i < r->list.count; i++) {
		const struct bc_recording *recording = &r->list.recordings[i];
		bool is_recent = r->list.count - i <= RECENT;
		bool is_open = has_open_file(r, recording);
		if (!is_recent && !is_open)
			continue;
		struct origin origin = read_origin(r, recording);
		if (origin.sequence == 0)
			origin.order = is_recent && highest != 0 ? highest : order_before(r, i);
		if (origin.sequence > highest && origin.sequence < NUMBER_END)
			highest = origin.sequence;
		/* An unknown number may be any: leave one for each. */
		unknown += origin.sequence == 0 && (origin.is_ours || origin.is_unread || is_open);
		has_open = has_open || is_open;
		if (recover_recording(r, found, recording, &origin) && origin.order >= newest) {
			newest = origin.order;
			memcpy(found->newest, recording->id, BC_RECORDING_ID_MAX);
		}
	}
	free(r->origins);
	r->origins = NULL;
	found->sequence = highest + unknown;
	return has_open;
}

/* Returns 0 if the text is not a number that buscapd writes. */
static uint64_t parse_number(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	uint64_t number = digits != 0 && digits <= 20 ? strtoull(text, NULL, 10) : 0;

	return number < NUMBER_END ? number : 0;
}

/* Raises the number above all recordings whose headers were not read, and stores it for the next
 * start. If that fails, the next start knows only the recent recordings' numbers. */
static void raise_number(struct recovery *r, struct bc_startup_found *found)
{
	char text[NUMBER_BYTES] = "";
	int fd = openat(r->dir_fd, NUMBER_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	int error = fd < 0 ? errno : 0;

	if (fd >= 0 && pread(fd, text, sizeof(text) - 1, 0) > 0) {
		uint64_t number = parse_number(text);
		found->sequence = number > found->sequence ? number : found->sequence;
	}
	found->sequence += RUN_NUMBERS;
	int n = snprintf(text, sizeof(text), "%020" PRIu64 "\n", found->sequence);
	if (fd >= 0 && (pwrite(fd, text, (size_t)n, 0) != n || fdatasync(fd) != 0))
		error = errno;
	if (error != 0)
		bc_log_limited(&r->limits, BC_LOG_WARNING, "%s/%s: can't write: %s", r->dir,
			NUMBER_FILE, strerror(error));
	if (fd >= 0)
		close(fd);
}

int bc_startup_recover(struct bc_startup_found *found, const char *dir, int dir_fd,
	const char *boot_id, void (*on_progress)(void *context, const char *file), void *context)
{
	struct recovery r = {.dir = dir,
		.dir_fd = dir_fd,
		.boot_id = boot_id,
		.on_progress = on_progress,
		.context = context};

	r.progress = (struct bc_progress_cb){.on_progress = on_file_progress, .context = &r};
	memset(found, 0, sizeof(*found));
	int rc = bc_recording_list_read(&r.list, dir_fd, false);
	if (rc != 0) {
		raise_number(&r, found);
		bc_log_limits_end(&r.limits);
		return rc;
	}
	bool is_large = r.list.count > RECENT;
	if (recover_all(&r, found)) {
		bc_recording_list_free(&r.list);
		rc = bc_recording_list_read(&r.list, dir_fd, false);
	}
	if (rc == 0 && !bc_signals_is_stop_pending())
		end_newest(&r, found);
	if (is_large)
		raise_number(&r, found);
	bc_recording_list_free(&r.list);
	bc_log_limits_end(&r.limits);
	fsync(dir_fd);
	return 0;
}
