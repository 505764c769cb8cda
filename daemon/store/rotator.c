/* Owns the open segment, and everything the loop learns about it: stats, notices, the recording's
 * totals. Writes chunks to it, one recording after another.
 *
 *     none     segment.file.fd < 0
 *     empty    created, without a chunk. It is deleted if it must be closed, and its number reused.
 *     open     has chunks. Ends sealed (bc_rotator_cut()), or is left .partial after an error or
 *              because others deleted it; the next chunk then goes into a new segment. The
 *              catalogue's thread seals a copy of what was left when the disk works again.
 *
 * Each chunk needs space by the rules (enforce_space()), and room below the limit of the segment's
 * length; without room the segment is sealed, and the chunk is the first of the next one. Any step
 * may fail for now, on a full disk or behind a slow sealer. Then it has set stats.is_stuck and
 * returns false, and the caller repeats the whole call at retry_at_ns. Only a chunk or a segment's
 * end that is written, or, if no chunk waits, the reserve that is written, ends that.
 *
 * Invariants:
 *   - bc_encoded.state tells how far a chunk is, so repeating a call writes nothing twice. The
 *     last chunk of a recording: daemon/store/last_write.c.
 *   - Each segment with chunks is counted once in `total`, as sealed or as left open. SEALED is
 *     sent only for a file that is under its final name. Memory for that notice is allocated
 *     with the file, so a sealed file is always reported.
 *
 * A check of the rules tells how many bytes may be written before one can break (space_left).
 * Writes are counted against it, and the rules are checked again when they exceed it, and once a
 * second. At the start, the catalogue gets a moment, so that in a directory that is not large the
 * rules apply to the first chunk. A large one takes too long: the buffer is for the disk. */
#include "daemon/store/rotator.h"
#include "daemon/store/catalogue_listing.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/lock.h"
#include "daemon/base/log.h"
#include "formats/base/clock.h"
#include "formats/base/host.h"
#include "formats/base/text.h"
#include "formats/segment/segment_name.h"

#define RETRY_NS UINT64_C(500000000)

#define DIR_BYTES 4096

#define CHECK_NS UINT64_C(1000000000)

/* More than the chunk that recovery adds: gaps and the end. */
#define NOTE_BYTES 1024u

#define PATIENCE_NS UINT64_C(250000000) /* for the catalogue */

/* For a check of the space: less than the smallest buffer lasts at 40 MB/s. */
#define CHECK_PATIENCE_NS UINT64_C(100000000)

/* Segments that are not synced, with the open one: this many are allowed, more if they have fewer
 * bytes than the buffer. Each may take a megabyte of memory. */
#define UNSYNCED_ALWAYS 4u
#define UNSYNCED_MAX    24u

/* Errors */

static void set_error(struct bc_rotator *r, const char *file, const char *what, const char *err)
{
	char *error = r->stats.error;
	const size_t size = sizeof(r->stats.error);
	char cause[sizeof(r->stats.error) / 2];

	/* A long path is shortened, the cause is not. */
	bc_message(cause, sizeof(cause), "%s: %s", what, err);
	bc_message(
		error, size - strlen(cause), "%s%s%s: ", r->dir, file[0] != '\0' ? "/" : "", file);
	r->stats.error_cause = (unsigned)strlen(error);
	memcpy(error + r->stats.error_cause, cause, strlen(cause) + 1);
}

static bool mark_stuck(struct bc_rotator *r, const char *file, const char *what, const char *err)
{
	char reason[sizeof(r->stuck_reason)];

	set_error(r, file, what, err);
	snprintf(reason, sizeof(reason), "%s: %s", what, err);
	if (!r->stats.is_stuck || strcmp(reason, r->stuck_reason) != 0)
		bc_log_limited(&r->limits, BC_LOG_ERROR | BC_LOG_DISK_FAILED,
			"%s; retrying every 0.5 s; a live source loses samples when the buffer is "
			"full",
			r->stats.error);
	memcpy(r->stuck_reason, reason, sizeof(reason));
	if (!r->stats.is_stuck)
		r->stuck_since_ns = bc_now_ns();
	r->stats.is_stuck = true;
	r->stats.is_behind = false;
	r->retry_at_ns = bc_now_ns() + RETRY_NS;
	return false;
}

static void clear_stuck(struct bc_rotator *r)
{
	if (!r->stats.is_stuck)
		return;
	r->stats.is_stuck = false;
	r->stats.is_behind = r->stats.is_hopeless = false;
	bc_log_limited(&r->limits, BC_LOG_NOTICE | BC_LOG_DISK_BACK,
		"%s: writing again after %.1f s", r->dir,
		(double)(bc_now_ns() - r->stuck_since_ns) * 1e-9);
}

static bool is_permanent(int error)
{
	return error == ENOENT || error == ENOTDIR || error == EACCES || error == EPERM ||
	       error == EROFS || error == ENAMETOOLONG;
}

static bool is_out_of_space(int error)
{
	return error == ENOSPC || error == EDQUOT;
}

static bool is_at_path(const struct stat *held, const char *path, struct stat *st)
{
	return stat(path, st) == 0 && held->st_dev == st->st_dev && held->st_ino == st->st_ino;
}

static bool is_dir_usable(const struct bc_rotator *r)
{
	return faccessat(r->dir_fd, ".", W_OK, 0) == 0;
}

/* Returns whether the directory exists, but not under its name. Sets `to` to its new name, or to ""
 * if it has none because another file system is mounted over it. */
static bool is_dir_moved(const struct bc_rotator *r, char to[DIR_BYTES])
{
	struct stat held;
	struct stat named;
	char link[32];

	if (fstat(r->dir_fd, &held) != 0 || held.st_nlink == 0)
		return false;
	if (is_at_path(&held, r->dir, &named))
		return false;
	if (stat(r->dir, &named) != 0 && errno != ENOENT && errno != ENOTDIR)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", r->dir_fd);
	ssize_t n = readlink(link, to, DIR_BYTES - 1);
	to[n > 0 ? n : 0] = '\0';
	if (is_at_path(&held, to, &named))
		return true;
	to[0] = '\0';
	/* Some file systems change the inodes of directories, but it has our lock. */
	int fd = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool is_ours = fd >= 0 && bc_is_being_written(fd);
	if (fd >= 0)
		close(fd);
	return !is_ours;
}

static void check_dir(struct bc_rotator *r)
{
	char to[DIR_BYTES];
	bool is_moved = is_dir_moved(r, to);

	if (is_moved == r->is_dir_moved || !is_dir_usable(r))
		return;
	r->is_dir_moved = is_moved;
	if (!is_moved) {
		bc_log_limited(&r->limits, BC_LOG_NOTICE, "%s: has its name again", r->dir);
		return;
	}
	bool is_hidden = to[0] == '\0';
	set_error(r, "", is_hidden ? "is hidden" : "was renamed",
		is_hidden ? "something is mounted over it" : to);
	bc_log_limited(&r->limits, BC_LOG_WARNING, "%s; recordings continue %s, or restart buscapd",
		r->stats.error,
		is_hidden ? "in the hidden directory; unmount that" : "there; rename it back");
}

/* The catalogue */

/* Has the catalogue look at the open segment. */
static void look_at_open(struct bc_rotator *r)
{
	struct bc_segment_name name;

	if (r->segment.file.fd < 0 || !bc_segment_name_read(&name, r->segment.file.name))
		return;
	name.is_partial = true;
	(void)!bc_catalogue_look(r->catalogue, r->dir_fd, &name, BC_LOOK, NULL, &r->limits);
}

/* Notices */

static void free_complete(struct bc_complete_segment *complete)
{
	if (complete != NULL)
		free(complete->notice);
	free(complete);
}

/* Allocates what sealing a segment that is about to be created needs. */
static bool allocate_complete(struct bc_rotator *r)
{
	free_complete(r->complete);
	r->complete = calloc(1, sizeof(*r->complete));
	if (r->complete != NULL)
		r->complete->notice = malloc(sizeof(*r->complete->notice));
	return r->complete != NULL && r->complete->notice != NULL;
}

/* Sends `what` in *notice, which the list then owns. Without memory for it, the event is not sent;
 * the file and the counts are unaffected. */
static void post_notice(struct bc_rotator *r, struct bc_writer_notice **notice,
	const struct bc_writer_notice *what, const struct bc_recording_info *recording)
{
	if (*notice == NULL)
		return;
	**notice = *what;
	(*notice)->recording = recording;
	bc_writer_notices_append(&r->notices, *notice);
	*notice = NULL;
}

/* Adds a segment to its recording's totals. */
static void add_segment(struct bc_writer_notice *total, const struct bc_writer_notice *of)
{
	total->records += of->records;
	total->bytes += of->bytes;
	total->chunks += of->chunks;
	bc_loss_add(&total->loss, of->loss);
}

static struct bc_writer_notice file_notice(
	const struct bc_segment_writer *writer, enum bc_writer_notice_kind kind)
{
	struct bc_writer_notice notice = {
		.kind = kind,
		.segment = writer->segment,
		.first_record = writer->first_record,
		.wall_ns = writer->wall_ns,
		.records = writer->records,
		.bytes = writer->file.bytes,
		.chunks = writer->chunks,
		.loss = writer->loss,
	};

	snprintf(notice.file, sizeof(notice.file), "%.*s", (int)sizeof(notice.file) - 1,
		writer->file.name);
	return notice;
}

static void report_sealed(struct bc_rotator *r, struct bc_complete_segment *complete)
{
	struct bc_writer_notice *total = complete->total;
	struct bc_writer_notice notice = *complete->notice;

	memcpy(notice.hash, complete->writer.file.sealed_hash, sizeof(notice.hash));
	notice.bytes = complete->writer.file.sealed_bytes;
	bc_log(BC_LOG_INFO, "%s: sealed, %s record%s in %s chunk%s", notice.file,
		BC_GROUPED(notice.records), bc_plural(notice.records), BC_GROUPED(notice.chunks),
		bc_plural(notice.chunks));
	r->stats.sealed++;
	total->segments++;
	memcpy(total->file, notice.file, sizeof(notice.file));
	add_segment(total, &notice);
	post_notice(r, &complete->notice, &notice, total->recording);
}

/* Sends ENDED of the recordings whose segments are all done. */
static void post_ended(struct bc_rotator *r)
{
	while (r->ended != NULL && r->ended->sealing == 0) {
		struct bc_writer_notice *first = r->ended;
		r->ended = first->next;
		first->next = NULL;
		bc_writer_notices_append(&r->notices, first);
	}
}

void bc_rotator_end(struct bc_rotator *r)
{
	bool has_file = r->stats.file[0] != '\0' || r->stats.recording_records != 0;
	struct bc_writer_notice *written = malloc(sizeof(*written));
	struct bc_writer_notice all = {
		.kind = BC_NOTICE_WRITTEN,
		.records = r->stats.recording_records,
		.bytes = r->stats.recording_bytes,
		.segments = has_file ? r->stats.segment + 1 : 0,
	};

	memcpy(all.file, r->stats.file, sizeof(all.file));
	post_notice(r, &written, &all, r->recording);
	r->total->is_full = r->stats.is_full;
	bc_writer_notices_append(&r->ended, r->total);
	r->total = NULL;
	r->recording = NULL;
	post_ended(r);
}

/* Closing */

/* Passes the open segment to the sealer. */
static void complete_segment(struct bc_rotator *r, enum bc_seal_kind kind)
{
	struct bc_complete_segment *complete = r->complete;

	look_at_open(r);
	*complete->notice = file_notice(&r->segment, BC_NOTICE_SEALED);
	complete->total = r->total;
	complete->unsynced = r->unsynced;
	complete->writer = r->segment;
	complete->end = (struct bc_seal_task){.kind = kind, .segment = complete};
	r->total->sealing++;
	r->sealing++;
	r->sealing_bytes += complete->notice->bytes;
	r->segment = (struct bc_segment_writer){.file.fd = -1};
	r->complete = NULL;
	r->is_syncing = false;
	r->unsynced = 0;
	bc_sealer_submit(r->sealer, &complete->end);
}

static void report_deleted(
	struct bc_rotator *r, const char *file, uint64_t records, struct bc_writer_notice *total)
{
	char lost[64];

	snprintf(lost, sizeof(lost), "%s records lost", BC_GROUPED(records));
	set_error(r, file, "deleted while open", lost);
	bc_log_limited(&r->limits, BC_LOG_ERROR | BC_LOG_DAMAGED, "%s; continuing in a new segment",
		r->stats.error);
	total->left_open++;
	r->stats.deleted++;
	r->stats.deleted_records += records;
}

static void check_deleted(struct bc_rotator *r)
{
	struct bc_segment_writer *writer = &r->segment;

	if (writer->file.fd < 0 || !bc_atomic_file_is_deleted(&writer->file))
		return;
	report_deleted(r, writer->file.name, writer->records, r->total);
	r->stats.file[0] = '\0';
	r->complete->is_deleted = true;
	complete_segment(r, BC_SEAL_CLOSE);
}

static void count_unsealed(
	struct bc_rotator *r, const struct bc_writer_notice *left, struct bc_writer_notice *total)
{
	add_segment(total, left);
	total->left_open++;
	r->stats.unsealed++;
}

static void abandon_segment(struct bc_rotator *r)
{
	const struct bc_segment_writer *writer = &r->segment;

	if (writer->file.fd < 0)
		return;
	r->stats.file[0] = '\0';
	if (writer->chunks != 0) {
		struct bc_writer_notice left = file_notice(writer, BC_NOTICE_ENDED);
		count_unsealed(r, &left, r->total);
		complete_segment(r, BC_SEAL_CLOSE);
		return;
	}
	/* Its first write has failed, and nothing syncs it. */
	bc_thread_health_start(&r->health, "closing", writer->file.open_name);
	unlinkat(r->dir_fd, writer->file.open_name, 0);
	r->next_number--;
	look_at_open(r);
	bc_segment_abandon(&r->segment);
}

static void abandon_failed(struct bc_rotator *r)
{
	const struct bc_segment_writer *writer = &r->segment;

	if (writer->chunks != 0)
		bc_log_limited(&r->limits, BC_LOG_ERROR,
			"%s/%s: not sealed, %s records; sealed later, or by the next start", r->dir,
			writer->file.open_name, BC_GROUPED(writer->records));
	abandon_segment(r);
}

static void report_unsealed(struct bc_rotator *r, const char *file, const char *open_name, int rc)
{
	set_error(r, file, "can't seal", strerror(-rc));
	bc_log_limited(&r->limits, BC_LOG_ERROR | BC_LOG_DISK_FAILED,
		"%s; left as %s; sealed later, or by the next start", r->stats.error, open_name);
}

/* The index is written here, so that the sealer needs no space. */
static bool cut(struct bc_rotator *r, bool is_given_up)
{
	const struct bc_atomic_file *file = &r->segment.file;

	check_deleted(r);
	if (file->fd < 0 || r->segment.chunks == 0) {
		abandon_segment(r);
		return true;
	}
	bc_thread_health_start(&r->health, "ending", file->open_name);
	int rc = bc_segment_end(&r->segment);
	if (is_out_of_space(-rc))
		return mark_stuck(r, file->name, "can't seal", strerror(-rc));
	if (rc != 0) {
		report_unsealed(r, file->name, file->open_name, rc);
		abandon_segment(r);
		return true;
	}
	r->stats.recording_bytes += file->end_bytes;
	complete_segment(r, BC_SEAL_SEAL);
	if (!is_given_up)
		clear_stuck(r);
	return true;
}

bool bc_rotator_cut(struct bc_rotator *r)
{
	return cut(r, false);
}

/* Syncing */

/* By bytes, because a chunk may have only events. A file without chunks will be deleted. */
static bool has_unsynced(const struct bc_rotator *r)
{
	return r->segment.chunks != 0 && r->segment.file.durable != r->segment.file.bytes;
}

static void start_sync(struct bc_rotator *r)
{
	r->complete->sync = (struct bc_seal_task){
		.kind = BC_SEAL_SYNC,
		.segment = r->complete,
		.bytes = r->segment.file.bytes,
		.records = r->unsynced,
	};
	r->is_syncing = true;
	bc_sealer_submit(r->sealer, &r->complete->sync);
}

/* Names what a failed sync may have lost: everything since the last one, because the kernel drops
 * what it could not write. Nothing is written again: the disk may have any part of it. */
static void report_unsynced(
	struct bc_rotator *r, const char *file, const char *open_name, int rc, uint64_t records)
{
	set_error(r, file, "can't sync", strerror(-rc));
	bc_log_limited(&r->limits, BC_LOG_ERROR | BC_LOG_DISK_FAILED,
		"%s; left as %s, its last %s records may be lost; continuing in a new segment",
		r->stats.error, open_name, BC_GROUPED(records));
}

/* The segment may be complete by now. */
static void end_sync(struct bc_rotator *r, const struct bc_seal_task *sync)
{
	struct bc_complete_segment *complete = sync->segment;
	bool is_open = complete == r->complete;
	uint64_t *unsynced = is_open ? &r->unsynced : &complete->unsynced;

	if (is_open)
		r->is_syncing = false;
	if (sync->rc == 0) {
		r->stats.durable += sync->records;
		*unsynced -= sync->records;
		if (is_open)
			r->segment.file.durable = sync->bytes;
		return;
	}
	report_unsynced(r, is_open ? r->segment.file.name : complete->notice->file,
		complete->open_name, sync->rc, *unsynced);
	if (is_open)
		abandon_segment(r);
}

static void end_segment(struct bc_rotator *r, struct bc_complete_segment *complete)
{
	const struct bc_writer_notice *notice = complete->notice;
	bool is_seal = complete->end.kind == BC_SEAL_SEAL;
	struct bc_segment_name name;
	int rc = complete->end.rc;

	r->sealing--;
	r->sealing_bytes -= notice->bytes;
	complete->total->sealing--;
	if (is_seal && !complete->has_failed)
		r->stats.durable += complete->unsynced;
	if (is_seal && rc == 0) {
		report_sealed(r, complete);
	} else if (is_seal && complete->is_deleted) {
		report_deleted(r, notice->file, notice->records, complete->total);
	} else if (is_seal) {
		count_unsealed(r, notice, complete->total);
		if (!complete->has_failed)
			report_unsealed(r, notice->file, complete->open_name, rc);
		else if (complete->sync.rc == 0)
			report_unsynced(
				r, notice->file, complete->open_name, rc, complete->unsynced);
	}
	/* Now its lock is free. */
	bool is_left = !(is_seal && rc == 0) && !complete->is_deleted;
	if (is_left && bc_segment_name_read(&name, complete->open_name))
		bc_catalogue_leave(r->catalogue, &name);
	if (is_left && r->segment.file.fd < 0 && strcmp(r->stats.file, notice->file) == 0)
		r->stats.file[0] = '\0';
	free_complete(complete);
	post_ended(r);
}

static bool is_gone(const struct bc_rotator *r, const char *file)
{
	return file[0] != '\0' && faccessat(r->dir_fd, file, F_OK, 0) != 0 && errno == ENOENT;
}

static void forget_deleted(struct bc_rotator *r)
{
	if (r->segment.file.fd < 0 && r->sealing == 0 && is_gone(r, r->stats.file))
		r->stats.file[0] = '\0';
	if (r->total != NULL && is_gone(r, r->total->file))
		r->total->file[0] = '\0';
}

/* Creating */

static bool create_failed(struct bc_rotator *r, int rc)
{
	r->stats.file[0] = '\0';
	r->stats.is_hopeless = is_permanent(-rc);
	bool lacks_inodes = rc == -ENOSPC && bc_free_space(r->dir_fd).files == 0;
	return mark_stuck(
		r, "", "can't create a segment", lacks_inodes ? "no free inodes" : strerror(-rc));
}

static bool is_mount_point(const char *dir)
{
	struct stat st;
	struct stat parent;
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool is = fd >= 0 && fstat(fd, &st) == 0 && fstatat(fd, "..", &parent, 0) == 0 &&
		  st.st_dev != parent.st_dev;

	if (fd >= 0)
		close(fd);
	return is;
}

/* Opens the directory again if another one has its path: it was removed and created again, or its
 * file system was lost and mounted again. Returns true if so. The
 * directory below a mount point does not replace one. */
static bool reopen_dir(struct bc_rotator *r)
{
	struct stat held;
	struct stat named;
	char err[256];

	if (r->sealing != 0 || r->is_syncing || r->is_checking)
		return false; /* the sealer uses it */
	if (fstat(r->dir_fd, &held) == 0 && is_at_path(&held, r->dir, &named))
		return false;
	if (r->is_mounted && !is_mount_point(r->dir))
		return false;
	int fd = bc_dir_open(r->dir, err, sizeof(err));
	if (fd < 0)
		return false;
	abandon_failed(r);
	if (bc_catalogue_set_dir(r->catalogue, fd) != 0) {
		close(fd);
		return false;
	}
	bc_log_limited(
		&r->limits, BC_LOG_NOTICE, "%s: opened again; recordings continue there", r->dir);
	if (r->owns_dir_fd)
		close(r->dir_fd);
	r->dir_fd = fd;
	r->owns_dir_fd = true;
	return true;
}

static int create_in_dir(
	struct bc_rotator *r, const char *file, const struct bc_segment_header *header)
{
	if (r->sealing >= BC_SEALER_SEGMENTS)
		return -EBUSY; /* for the end of a recording; all else has waited */
	if (!allocate_complete(r))
		return -ENOMEM;
	int rc = bc_segment_create(&r->segment, r->dir_fd, file, BC_PARTIAL_SUFFIX, header);
	if (rc == 0)
		atomic_store(&r->check.of.coming_files, 0);
	r->complete->fd = r->segment.file.fd;
	r->complete->dir_fd = r->dir_fd;
	memcpy(r->complete->open_name, r->segment.file.open_name, sizeof(r->complete->open_name));
	return rc;
}

/* Creates the file. Returns 0 or a negative errno. */
static int create_file(struct bc_rotator *r, const struct bc_segment_header *header)
{
	struct bc_segment_name name = {.segment = header->segment,
		.frames = bc_level_frames(bc_segment_header_level(header))};
	char file[BC_SEGMENT_NAME_MAX];

	memcpy(name.recording, header->recording, sizeof(name.recording));
	bc_segment_name_write(file, &name);
	bc_thread_health_start(&r->health, "creating", file);
	int rc = create_in_dir(r, file, header);
	if (rc != 0 && rc != -EEXIST && !is_out_of_space(-rc) && reopen_dir(r))
		rc = create_in_dir(r, file, header);
	/* On a failing disk, a file may remain that could not be deleted. */
	if (rc == -EEXIST)
		r->next_number++;
	if (rc != 0)
		return rc;
	r->stats.bytes += r->segment.file.bytes;
	look_at_open(r);
	r->next_number = header->segment + 1;
	return 0;
}

static struct bc_segment_header header_of(const struct bc_rotator *r, const struct bc_encoded *e)
{
	struct bc_segment_header header;

	bc_recording_info_header(e->recording, &header);
	header.segment = r->segment.file.fd >= 0 ? r->segment.segment : r->next_number;
	header.wall_ns = e->info.wall_ns;
	header.first_tick = e->info.first_tick;
	header.first_epoch = e->info.epoch;
	header.first_record = e->info.first_record;
	return header;
}

/* Creates a segment that starts with a chunk. Returns 0 or a negative errno. */
static int create_segment(struct bc_rotator *r, const struct bc_encoded *e)
{
	struct bc_segment_header header = header_of(r, e);
	int rc = create_file(r, &header);

	if (rc != 0)
		return rc;
	const struct bc_writer_notice notice = file_notice(&r->segment, BC_NOTICE_OPENED);
	if (header.segment == 0)
		bc_log(BC_LOG_INFO | BC_LOG_STARTED, "%s: recording started: %s/%s",
			header.recording, r->dir, notice.file);
	memcpy(r->stats.file, notice.file, sizeof(notice.file));
	r->stats.segment = header.segment;
	r->stats.first_record = header.first_record;
	r->stats.recording_bytes += r->segment.file.bytes;
	struct bc_writer_notice *opened = malloc(sizeof(*opened));
	post_notice(r, &opened, &notice, r->recording);
	return 0;
}

/* Space */

static uint64_t space_left_of(
	const struct bc_retention_rules *rules, const struct bc_retention_state *state)
{
	uint64_t left = UINT64_MAX;

	if (rules->max_use_bytes != 0)
		left = state->used_bytes < rules->max_use_bytes
			       ? rules->max_use_bytes - state->used_bytes
			       : 0;
	return state->left_bytes < left ? state->left_bytes : left;
}

/* About to be written */
struct coming {
	uint64_t bytes;
	uint64_t segments; /* to be created */
};

static void start_check(struct bc_rotator *r, const struct coming *coming)
{
	struct bc_space_check *check = &r->check;

	check->task.kind = BC_SEAL_CHECK;
	check->rules = r->rules.space;
	check->recording[0] = '\0';
	if (r->recording != NULL)
		memcpy(check->recording, r->recording->header.recording, sizeof(check->recording));
	check->of = (struct bc_retention_check){
		.catalogue = r->catalogue,
		.dir_fd = r->dir_fd,
		.rules = &check->rules,
		.files = r->rules.rotation.files,
		.coming_bytes = coming->bytes,
		.coming_files = coming->segments,
		.recording = r->recording != NULL ? check->recording : NULL,
		.written_bytes = r->stats.bytes,
	};
	look_at_open(r);
	r->is_checking = true;
	bc_sealer_submit(r->sealer, &check->task);
}

static void end_check(struct bc_rotator *r)
{
	const struct bc_retention_state *state = &r->check.state;

	r->is_checking = false;
	if (strcmp(state->error, r->space_error) != 0 && state->error[0] != '\0')
		bc_log_limited(&r->limits, BC_LOG_ERROR, "%s/%s; retrying every second", r->dir,
			state->error);
	memcpy(r->space_error, state->error, sizeof(r->space_error));
	r->space_left = state->is_waiting ? UINT64_MAX
			: state->is_over  ? 0
					  : space_left_of(&r->check.rules, state);
	r->space_checked_at = r->check.of.written_bytes;
	r->is_over = state->is_over;
	memcpy(r->over, state->err, sizeof(r->over));
	r->stats.is_checked = !state->is_waiting;
	r->stats.is_free_known = !state->is_free_unknown;
	r->stats.free_bytes = state->free_bytes;
	r->stats.has_no_inodes = state->free_files == 0;
	r->stats.used_bytes = state->used_bytes;
	r->stats.segments = state->segments;
	if (state->deleted != 0)
		forget_deleted(r);
}

/* What the sealer has done */

/* Takes over the next task that is done. Returns false if none is within this time. */
static bool take_within(struct bc_rotator *r, uint64_t wait_ns)
{
	struct bc_seal_task *task = bc_sealer_take(r->sealer, wait_ns);

	if (task == NULL)
		return false;
	if (task->kind == BC_SEAL_SYNC || task->kind == BC_SEAL_SEAL)
		r->stats.last_sync_ns = task->took_ns;
	if (r->stats.last_sync_ns > r->stats.longest_sync_ns)
		r->stats.longest_sync_ns = r->stats.last_sync_ns;
	if (task->kind == BC_SEAL_CHECK)
		end_check(r);
	else if (task->kind == BC_SEAL_SYNC)
		end_sync(r, task);
	else
		end_segment(r, task->segment);
	return true;
}

void bc_rotator_take(struct bc_rotator *r)
{
	while (take_within(r, 0))
		;
}

/* Waits a moment for a check. */
static void check_space(struct bc_rotator *r, const struct coming *coming)
{
	uint64_t until_ns = bc_now_ns() + CHECK_PATIENCE_NS;

	bc_rotator_take(r);
	if (r->is_checking)
		return; /* the writer has waited for it */
	start_check(r, coming);
	bc_thread_health_start(&r->health, "waiting for the sealer", "");
	for (uint64_t now; r->is_checking && (now = bc_now_ns()) < until_ns;)
		take_within(r, until_ns - now);
}

static bool has_rule(const struct bc_writer_rules *rules)
{
	const struct bc_retention_rules *space = &rules->space;

	return rules->rotation.files != 0 || space->max_use_bytes != 0 || space->max_age_ns != 0 ||
	       space->keep_free_bytes != 0;
}

/* Applies the space rules. Returns false if nothing may be written now. While the sealer waits for
 * the disk, the rules apply later, but not much. */
static bool enforce_space(struct bc_rotator *r, struct coming coming)
{
	if (!r->has_waited && has_rule(&r->rules))
		(void)bc_catalogue_wait(r->catalogue, PATIENCE_NS);
	r->has_waited = true;
	check_space(r, &coming);
	if (!r->is_checking && r->is_over && r->segment.chunks != 0) {
		/* Only the open segment is left. Once sealed, it can be deleted. */
		if (!bc_rotator_cut(r))
			return false;
		r->is_over = false;
		coming.segments = 1;
		check_space(r, &coming);
	}
	if (r->is_over)
		return mark_stuck(r, r->stats.file, "no space", r->over);
	const uint64_t left = r->space_left;
	uint64_t written = r->stats.bytes - r->space_checked_at;
	if (!r->is_checking || left == UINT64_MAX || written + coming.bytes <= left + r->lag_bytes)
		return true;
	mark_stuck(r, r->stats.file, "no space",
		"the disk has not deleted what the rules want deleted");
	r->stats.is_behind = true;
	return false;
}

/* Applies the space rules if this much might break one. Returns false if it may not be written. */
static bool has_space_for(struct bc_rotator *r, uint64_t coming_bytes)
{
	uint64_t written = r->stats.bytes - r->space_checked_at;

	return r->space_left == UINT64_MAX || written + coming_bytes <= r->space_left ||
	       enforce_space(r, (struct coming){.bytes = coming_bytes});
}

/* Returns what a chunk adds to its segment, including the end of the file. */
static uint64_t coming_bytes_of(const struct bc_rotator *r, const struct bc_encoded *e)
{
	return e->bytes + bc_segment_end_bytes(&r->segment, 1);
}

/* Writing */

static bool is_behind(const struct bc_rotator *r)
{
	return r->sealing + 1 > UNSYNCED_MAX ||
	       (r->sealing + 1 > UNSYNCED_ALWAYS && r->sealing_bytes >= r->lag_bytes);
}

/* Waits if the sealer lags behind too far. Returns false to be called again. */
static bool wait_for_sealer(struct bc_rotator *r)
{
	uint64_t until_ns = bc_now_ns() + RETRY_NS;

	bc_rotator_take(r);
	bc_thread_health_start(&r->health, "waiting for the sealer", "");
	for (uint64_t now; is_behind(r) && (now = bc_now_ns()) < until_ns;)
		take_within(r, until_ns - now);
	if (!is_behind(r))
		return true;
	mark_stuck(r, "", "can't create a segment", "the ones before are not synced");
	r->stats.is_behind = true;
	r->retry_at_ns = 0;
	return false;
}

static bool open_segment(struct bc_rotator *r, const struct bc_encoded *e)
{
	if (!wait_for_sealer(r) || !enforce_space(r, (struct coming){coming_bytes_of(r, e), 1}))
		return false;
	int rc = create_segment(r, e);
	if (rc != 0)
		return create_failed(r, rc);
	r->sync_at_ns = bc_now_ns() + r->rules.sync_ns;
	bc_log(BC_LOG_DEBUG, "%s: created, first record %" PRIu64, r->stats.file,
		e->info.first_record);
	return true;
}

/* Whether the chunk fits into the file, with the segment's end or what recovery adds. */
static bool segment_has_room(const struct bc_rotator *r, const struct bc_encoded *e)
{
	const struct bc_segment_writer *segment = &r->segment;
	uint64_t end_bytes = NOTE_BYTES + bc_segment_end_bytes(segment, 2);

	return segment->file.bytes + e->bytes + end_bytes <= segment->file.max_bytes;
}

/* Ends the open segment if it has no room for the chunk. Returns false to be called again. */
static bool make_room(struct bc_rotator *r, const struct bc_encoded *e)
{
	return r->segment.chunks == 0 || segment_has_room(r, e) || bc_rotator_cut(r);
}

/* Appends a chunk to the open segment and counts it. Returns 0 or a negative errno. */
static int append_to_segment(struct bc_rotator *r, struct bc_encoded *e)
{
	if (!segment_has_room(r, e))
		return -EFBIG;
	int rc = bc_segment_append(
		&r->segment, e->data, e->header_bytes, &e->info, &e->loss, &e->pages.counts);
	if (rc != 0)
		return rc;
	bc_log(BC_LOG_DEBUG, "%s: chunk %" PRIu32 ", %" PRIu32 " records, %zu bytes", r->stats.file,
		r->segment.chunks - 1, e->info.records, e->bytes);
	e->state = BC_ENCODED_WRITTEN;
	r->has_chunk = true;
	r->unsynced += e->info.records;
	r->last_write.last = e->info;
	r->stats.written += e->info.records;
	r->stats.recording_records += e->info.records;
	r->stats.bytes += e->bytes;
	r->stats.recording_bytes += e->bytes;
	return 0;
}

/* Appends a chunk to the open segment or a new one. Returns false to be called again. */
static bool append_chunk(struct bc_rotator *r, struct bc_encoded *e)
{
	if (r->segment.file.fd >= 0 && !has_space_for(r, coming_bytes_of(r, e)))
		return false;
	if (r->segment.file.fd < 0 && !open_segment(r, e))
		return false;
	bc_thread_health_start(&r->health, "writing to", r->segment.file.open_name);
	int rc = append_to_segment(r, e);
	if ((rc == -EFBIG || rc == -ENOMEM) && r->segment.chunks != 0)
		return bc_rotator_cut(r) && append_chunk(r, e);
	if (rc != 0) {
		mark_stuck(r, r->stats.file, "can't write", strerror(-rc));
		if (!is_out_of_space(-rc))
			abandon_failed(r); /* retry in a new one */
		return false;
	}
	clear_stuck(r);
	r->stats.is_full = e->recording->stop_bytes != 0 &&
			   r->stats.recording_bytes >= e->recording->stop_bytes;
	return true;
}

/* Writes a chunk as it is. Returns false to be called again. */
static bool write_chunk(struct bc_rotator *r, struct bc_encoded *e)
{
	return e->bytes == 0 || e->state == BC_ENCODED_WRITTEN ||
	       (make_room(r, e) && append_chunk(r, e));
}

/* Returns whether the recording has a chunk. */
static bool has_content(const struct bc_rotator *r, const struct bc_encoded *e)
{
	return e->bytes != 0 || r->has_chunk;
}

/* Discards a chunk after stop_bytes, but not the recording's end. */
static void discard_chunk(struct bc_rotator *r, struct bc_encoded *e)
{
	r->stats.unrecorded += e->info.records;
	bc_losses_add(&r->total->discarded, &e->losses);
	if (e->is_last)
		bc_last_write_only_end(&r->last_write, e);
	else
		e->state = BC_ENCODED_WRITTEN;
}

/* Adds the recording's end to its last chunk, or writes that and replaces it with the end. Returns
 * false if it must be called again. */
static bool prepare_end(struct bc_rotator *r, struct bc_encoded *e)
{
	if (has_content(r, e) && (e->bytes == 0 || !bc_last_write_add_end(&r->last_write, e))) {
		if (!write_chunk(r, e))
			return false;
		bc_last_write_only_end(&r->last_write, e);
	}
	e->state = BC_ENCODED_END;
	return true;
}

bool bc_rotator_write(struct bc_rotator *r, struct bc_encoded *e)
{
	if (e->state == BC_ENCODED_CHUNK && r->stats.is_full)
		discard_chunk(r, e);
	else if (e->state == BC_ENCODED_CHUNK && e->is_last && !prepare_end(r, e))
		return false;
	return write_chunk(r, e);
}

bool bc_rotator_is_full(const struct bc_rotator *r)
{
	uint64_t limit = r->rules.rotation.file_bytes;

	if (limit == 0)
		limit = r->rules.space.max_use_bytes / BC_MAX_USE_SEGMENTS;
	return (limit != 0 && r->segment.file.bytes >= limit) ||
	       r->segment.chunks == BC_SEGMENT_CHUNKS;
}

/* Losses */

/* Tries once to append the gaps to the open segment, or to a new one. The space rules are not
 * applied: the record of a loss is small. */
static int try_write_given_up(struct bc_rotator *r, struct bc_encoded *e)
{
	check_deleted(r); /* the gaps would be lost with it */
	if (!make_room(r, e))
		return -ENOSPC;
	if (r->segment.file.fd < 0) {
		int rc = create_segment(r, e);
		if (rc != 0)
			return rc;
	}
	bc_thread_health_start(&r->health, "writing to", r->segment.file.open_name);
	int rc = append_to_segment(r, e);
	if (rc != 0 && !is_out_of_space(-rc))
		abandon_failed(r);
	return rc;
}

/* Writes gaps for everything given up, and the end. The segment that was open may have failed, and
 * the disk may be full: up to three attempts. */
static void write_given_up(struct bc_rotator *r, struct bc_encoded *e)
{
	int rc = -EIO;

	if (!bc_last_write_gaps(&r->last_write, e, !has_content(r, e)))
		return;
	for (int i = 0; rc != 0 && i < 3; i++) {
		rc = try_write_given_up(r, e);
		if (is_out_of_space(-rc) && !bc_reserve_release(r->dir_fd))
			break;
	}
	if (e->loss.gaps == 0)
		return; /* recovery adds the end if it is missing */
	if (rc == 0)
		bc_log(BC_LOG_WARNING | BC_LOG_LOST,
			"%s/%s: ends with a gap: %s samples could not be written", r->dir,
			r->stats.file, BC_GROUPED(e->loss.lost));
	else
		bc_log(BC_LOG_ERROR | BC_LOG_LOST,
			"%s: %s samples could not be written, and no file reports the loss",
			e->recording->header.recording, BC_GROUPED(e->loss.lost));
}

void bc_rotator_give_up(struct bc_rotator *r, struct bc_encoded *e)
{
	if (e->state != BC_ENCODED_WRITTEN) {
		r->stats.abandoned += e->info.records;
		r->total->abandoned += e->info.records;
		bc_losses_add(&r->last_write.given_up, &e->losses);
		r->last_write.given_up.gaps[BC_GAP_DISK] += e->info.records != 0;
		r->last_write.given_up.lost[BC_GAP_DISK] += e->info.records;
	}
	if (!e->is_last)
		return;
	write_given_up(r, e);
	/* Seals the segment, in the space of the reserve if necessary, or closes it unsealed. */
	if (!cut(r, true) && (!bc_reserve_release(r->dir_fd) || !cut(r, true)))
		abandon_segment(r);
}

/* Housekeeping */

/* Fills the reserve. Logs once if the disk has no space for it. Other errors also make the writer
 * stuck, which is logged there. */
static void fill_reserve(struct bc_rotator *r)
{
	bc_thread_health_start(&r->health, "allocating", BC_RESERVE_NAME);
	int rc = bc_reserve_fill(r->dir_fd);
	bool is_full = is_out_of_space(-rc);

	if (is_full && !r->has_no_reserve)
		bc_log(BC_LOG_WARNING,
			"%s/%s: can't reserve %u kB: %s; a loss may not be in the files if the "
			"disk is still full at the end",
			r->dir, BC_RESERVE_NAME, (unsigned)(BC_RESERVE_BYTES / 1024),
			strerror(-rc));
	r->has_no_reserve = is_full;
}

/* Returns whether the disk accepts data: writes the reserve again. */
static bool can_write(const struct bc_rotator *r)
{
	return (bc_reserve_release(r->dir_fd) || errno == ENOENT) &&
	       bc_reserve_fill(r->dir_fd) == 0;
}

uint64_t bc_rotator_due_ns(const struct bc_rotator *r)
{
	bool may_sync = has_unsynced(r) && !r->is_syncing;

	return may_sync && r->sync_at_ns < r->check_at_ns ? r->sync_at_ns : r->check_at_ns;
}

void bc_rotator_maintain(struct bc_rotator *r, bool has_waiting)
{
	uint64_t now = bc_now_ns();

	bc_rotator_take(r);
	if (has_unsynced(r) && !r->is_syncing && now >= r->sync_at_ns) {
		r->sync_at_ns = now + r->rules.sync_ns;
		start_sync(r);
	}
	bc_log_limits_poll(&r->limits, now);
	if (now < r->check_at_ns)
		return;
	bc_thread_health_start(&r->health, "checking the files in", ".");
	if (!is_dir_usable(r))
		(void)reopen_dir(r);
	check_deleted(r);
	if (!r->stats.is_stuck)
		fill_reserve(r);
	check_dir(r);
	bool has_space = enforce_space(r, (struct coming){0});
	if (r->stats.is_stuck && has_space && !has_waiting && can_write(r))
		clear_stuck(r);
	r->check_at_ns = bc_now_ns() + CHECK_NS;
}

/* Start and end */

int bc_rotator_init(struct bc_rotator *r, const struct bc_writer_options *options)
{
	memset(r, 0, sizeof(*r));
	int rc = bc_last_write_init(&r->last_write);
	if (rc != 0)
		return rc;
	rc = bc_sealer_start(&r->sealer, options->catalogue, options->encoded);
	if (rc != 0) {
		bc_last_write_destroy(&r->last_write);
		return rc;
	}
	bc_thread_health_init(&r->health, "the writer");
	r->dir = options->dir;
	r->dir_fd = options->dir_fd;
	r->catalogue = options->catalogue;
	r->rules = options->rules;
	r->lag_bytes = options->lag_bytes;
	r->is_mounted = is_mount_point(options->dir);
	r->segment.file.fd = -1;
	return 0;
}

bool bc_rotator_start(struct bc_rotator *r, const struct bc_recording_info *recording)
{
	r->total = calloc(1, sizeof(*r->total));
	if (r->total == NULL)
		return false;
	r->total->kind = BC_NOTICE_ENDED;
	r->total->recording = recording;
	r->has_chunk = false;
	r->recording = recording;
	r->next_number = 0;
	r->stats.recording_tag = recording->tag;
	r->stats.recording_bytes = 0;
	r->stats.recording_records = 0;
	r->stats.is_full = false;
	r->stats.segment = 0;
	r->stats.first_record = 0;
	r->stats.file[0] = '\0';
	bc_last_write_start(&r->last_write);
	return true;
}

void bc_rotator_close(struct bc_rotator *r)
{
	while (r->is_syncing)
		(void)take_within(r, CHECK_NS);
	if (has_unsynced(r))
		start_sync(r);
	abandon_segment(r);
	bc_sealer_finish(r->sealer);
	bc_rotator_take(r);
	bc_reserve_release(r->dir_fd);
	bc_log_limits_end(&r->limits);
}

void bc_rotator_destroy(struct bc_rotator *r)
{
	if (r->owns_dir_fd)
		close(r->dir_fd);
	bc_sealer_free(r->sealer);
	bc_writer_notices_free(r->notices);
	free_complete(r->complete);
	bc_writer_notices_free(r->ended);
	free(r->total);
	bc_thread_health_destroy(&r->health);
	bc_last_write_destroy(&r->last_write);
}
