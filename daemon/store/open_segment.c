/* Owns the file that is being written, and everything the loop learns about it: stats, notices, and
 * the recording's totals.
 *
 *     none     segment.file.fd < 0
 *     empty    created, without a chunk. It is deleted if it must be closed, and its number reused.
 *     open     has chunks. Ends sealed (bc_open_segment_cut()), or is left .partial after an error
 *              or because others deleted it; the next chunk then goes into a new segment.
 *
 * Besides, the writer may be stuck (stats.is_stuck): the last operation failed for now, and is to
 * be repeated at retry_at_ns. Only an operation that succeeds ends that.
 *
 * Invariant: each segment with chunks is counted once in `total`, as sealed or as left open, and
 * SEALED is sent only for a file that is under its final name. Memory for that notice is allocated
 * with the file, so a sealed file is always reported. */
#include "daemon/store/open_segment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/lock.h"
#include "daemon/store/recording_info.h"
#include "formats/base/clock.h"
#include "formats/base/host.h"
#include "formats/base/text.h"
#include "formats/segment/segment_name.h"

#define RETRY_NS UINT64_C(500000000)

#define DIR_BYTES 4096

static void set_error(
	struct bc_open_segment *o, const char *file, const char *what, const char *err)
{
	char *error = o->stats.error;
	const size_t size = sizeof(o->stats.error);
	char cause[sizeof(o->stats.error) / 2];

	/* A long path is shortened, the cause is not. */
	bc_message(cause, sizeof(cause), "%s: %s", what, err);
	bc_message(
		error, size - strlen(cause), "%s%s%s: ", o->dir, file[0] != '\0' ? "/" : "", file);
	o->stats.error_cause = (unsigned)strlen(error);
	memcpy(error + o->stats.error_cause, cause, strlen(cause) + 1);
}

bool bc_open_segment_mark_stuck(
	struct bc_open_segment *o, const char *file, const char *what, const char *err)
{
	char reason[sizeof(o->stuck_reason)];

	set_error(o, file, what, err);
	snprintf(reason, sizeof(reason), "%s: %s", what, err);
	if (!o->stats.is_stuck || strcmp(reason, o->stuck_reason) != 0)
		bc_log_limited(&o->limits, BC_LOG_ERROR,
			"%s; retrying every 0.5 s; a live source loses samples when the buffer is "
			"full",
			o->stats.error);
	memcpy(o->stuck_reason, reason, sizeof(reason));
	if (!o->stats.is_stuck)
		o->stuck_since_ns = bc_now_ns();
	o->stats.is_stuck = true;
	o->retry_at_ns = bc_now_ns() + RETRY_NS;
	return false;
}

void bc_open_segment_clear_stuck(struct bc_open_segment *o)
{
	if (!o->stats.is_stuck)
		return;
	o->stats.is_stuck = false;
	o->stats.is_hopeless = false;
	bc_log_limited(&o->limits, BC_LOG_NOTICE, "%s: writing again after %.1f s", o->dir,
		(double)(bc_now_ns() - o->stuck_since_ns) * 1e-9);
}

static bool is_permanent(int error)
{
	return error == ENOENT || error == ENOTDIR || error == EACCES || error == EPERM ||
	       error == EROFS || error == ENAMETOOLONG;
}

bool bc_is_out_of_space(int error)
{
	return error == ENOSPC || error == EDQUOT;
}

/* Opens the directory again if it was removed and created again. Returns true if so. */
static bool reopen_dir(struct bc_open_segment *o)
{
	struct stat old;
	struct stat new;
	char err[256];

	if (fstat(o->dir_fd, &old) != 0 || stat(o->dir, &new) != 0 ||
		(old.st_dev == new.st_dev &&old.st_ino == new.st_ino))
		return false;
	int fd = bc_dir_open(o->dir, err, sizeof(err));
	if (fd < 0)
		return false;
	if (bc_catalogue_set_dir(o->catalogue, fd) != 0) {
		close(fd);
		return false;
	}
	if (o->owns_dir_fd)
		close(o->dir_fd);
	o->dir_fd = fd;
	o->owns_dir_fd = true;
	return true;
}

static bool is_at_path(const struct stat *held, const char *path, struct stat *st)
{
	return stat(path, st) == 0 && held->st_dev == st->st_dev && held->st_ino == st->st_ino;
}

/* Returns whether the directory exists, but not under its name. Sets `to` to its new name, or to ""
 * if it has none because another file system is mounted over it. */
static bool is_dir_moved(const struct bc_open_segment *o, char to[DIR_BYTES])
{
	struct stat held;
	struct stat named;
	char link[32];

	if (fstat(o->dir_fd, &held) != 0 || held.st_nlink == 0)
		return false;
	if (is_at_path(&held, o->dir, &named))
		return false;
	if (stat(o->dir, &named) != 0 && errno != ENOENT && errno != ENOTDIR)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", o->dir_fd);
	ssize_t n = readlink(link, to, DIR_BYTES - 1);
	to[n > 0 ? n : 0] = '\0';
	if (!is_at_path(&held, to, &named))
		to[0] = '\0';
	return true;
}

void bc_open_segment_check_dir(struct bc_open_segment *o)
{
	char to[DIR_BYTES];
	bool is_moved = is_dir_moved(o, to);

	if (is_moved == o->is_dir_moved)
		return;
	o->is_dir_moved = is_moved;
	if (!is_moved) {
		bc_log_limited(&o->limits, BC_LOG_NOTICE, "%s: has its name again", o->dir);
		return;
	}
	if (to[0] == '\0') {
		set_error(o, "", "is hidden", "something is mounted over it");
		bc_log_limited(&o->limits, BC_LOG_WARNING,
			"%s; recordings continue in the hidden directory; unmount that, or restart "
			"buscapd",
			o->stats.error);
		return;
	}
	set_error(o, "", "was renamed", to);
	bc_log_limited(&o->limits, BC_LOG_WARNING,
		"%s; recordings continue there; rename it back, or restart buscapd",
		o->stats.error);
}

uint32_t bc_open_segment_number(const struct bc_open_segment *o)
{
	return o->segment.file.fd >= 0 ? o->segment.segment : o->next_number;
}

/* The catalogue */

/* Has the catalogue look at a segment, by its open or its final name. */
static void look_at(struct bc_open_segment *o, const char *file, bool is_partial)
{
	struct bc_segment_name name;

	if (!bc_segment_name_read(&name, file))
		return;
	name.is_partial = is_partial;
	(void)!bc_catalogue_look(o->catalogue, o->dir_fd, &name, false, NULL, &o->limits);
}

void bc_open_segment_look(struct bc_open_segment *o)
{
	if (o->segment.file.fd >= 0)
		look_at(o, o->segment.file.name, true);
}

/* Notices */

/* Allocates the notice for a segment that is about to be created. */
static bool allocate_notice(struct bc_open_segment *o)
{
	if (o->sealed_notice == NULL)
		o->sealed_notice = malloc(sizeof(*o->sealed_notice));
	return o->sealed_notice != NULL;
}

/* Sends `what` in *notice, which the list then owns. Without memory for it, the event is not sent;
 * the file and the counts are unaffected. */
static void post_notice(struct bc_open_segment *o, struct bc_writer_notice **notice,
	const struct bc_writer_notice *what)
{
	if (*notice == NULL)
		return;
	**notice = *what;
	(*notice)->recording = o->recording;
	bc_writer_notices_append(&o->notices, *notice);
	*notice = NULL;
}

/* Adds a segment to the recording's totals. */
static void add_segment(struct bc_open_segment *o, const struct bc_writer_notice *of)
{
	o->total.records += of->records;
	o->total.bytes += of->bytes;
	o->total.chunks += of->chunks;
	o->total.gaps += of->gaps;
	o->total.lost += of->lost;
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
		.gaps = writer->gaps,
		.lost = writer->lost,
	};

	snprintf(notice.file, sizeof(notice.file), "%.*s", (int)sizeof(notice.file) - 1,
		writer->file.name);
	return notice;
}

static void report_sealed(struct bc_open_segment *o, struct bc_writer_notice *notice)
{
	bc_log(BC_LOG_INFO, "%s: sealed, %" PRIu64 " record%s in %" PRIu64 " chunk%s", notice->file,
		notice->records, bc_plural(notice->records), notice->chunks,
		bc_plural(notice->chunks));
	o->stats.sealed++;
	o->total.segments++;
	memcpy(o->total.file, notice->file, sizeof(notice->file));
	add_segment(o, notice);
	post_notice(o, &o->sealed_notice, notice);
}

void bc_open_segment_start(struct bc_open_segment *o, const struct bc_recording_info *recording)
{
	o->recording = recording;
	o->next_number = 0;
	o->total = (struct bc_writer_notice){.kind = BC_NOTICE_ENDED};
	o->stats.recording_tag = recording->tag;
	o->stats.recording_bytes = 0;
	o->stats.recording_records = 0;
	o->stats.is_full = false;
	o->stats.segment = 0;
	o->stats.file[0] = '\0';
}

void bc_open_segment_end(struct bc_open_segment *o, struct bc_writer_notice *notice)
{
	*notice = o->total;
	notice->recording = o->recording;
	notice->is_full = o->stats.is_full;
	bc_writer_notices_append(&o->notices, notice);
	o->recording = NULL;
}

/* Deleted files */

static void forget_file(struct bc_open_segment *o)
{
	bc_open_segment_look(o);
	bc_segment_abandon(&o->segment);
	o->stats.file[0] = '\0';
	o->unsynced = 0;
}

void bc_open_segment_check_deleted(struct bc_open_segment *o)
{
	struct bc_segment_writer *writer = &o->segment;
	char lost[64];

	if (writer->file.fd < 0 || !bc_atomic_file_is_deleted(&writer->file))
		return;
	snprintf(lost, sizeof(lost), "%" PRIu64 " records lost", writer->records);
	set_error(o, writer->file.name, "deleted while open", lost);
	bc_log_limited(&o->limits, BC_LOG_ERROR, "%s; continuing in a new segment", o->stats.error);
	o->total.left_open++;
	o->stats.deleted++;
	o->stats.deleted_records += writer->records;
	forget_file(o);
}

/* End */

void bc_open_segment_abandon(struct bc_open_segment *o)
{
	const struct bc_segment_writer *writer = &o->segment;

	if (writer->file.fd < 0)
		return;
	bc_thread_health_start(&o->health, "closing", writer->file.open_name);
	if (writer->chunks == 0) {
		unlinkat(o->dir_fd, writer->file.open_name, 0);
		o->next_number--;
	} else {
		struct bc_writer_notice left = file_notice(writer, BC_NOTICE_ENDED);
		add_segment(o, &left);
		o->total.left_open++;
		o->stats.unsealed++;
	}
	forget_file(o);
}

void bc_open_segment_abandon_file(struct bc_open_segment *o)
{
	const struct bc_segment_writer *writer = &o->segment;

	if (writer->chunks != 0)
		bc_log_limited(&o->limits, BC_LOG_ERROR,
			"%s/%s: not sealed, %" PRIu64 " records; the next start recovers it",
			o->dir, writer->file.open_name, writer->records);
	bc_open_segment_abandon(o);
}

static void sync_file(struct bc_open_segment *o)
{
	struct bc_segment_writer *writer = &o->segment;

	bc_thread_health_start(&o->health, "syncing", writer->file.open_name);
	int rc = bc_atomic_file_sync(&writer->file);
	if (rc == 0) {
		o->stats.durable += o->unsynced;
		o->unsynced = 0;
		return;
	}
	set_error(o, writer->file.name, "can't sync", strerror(-rc));
	bc_log_limited(&o->limits, BC_LOG_ERROR,
		"%s; left as %s, its last %" PRIu64
		" records may be lost; continuing in a new segment",
		o->stats.error, writer->file.open_name, o->unsynced);
	bc_open_segment_abandon(o);
}

bool bc_open_segment_cut(struct bc_open_segment *o)
{
	struct bc_segment_writer *writer = &o->segment;

	bc_open_segment_check_deleted(o);
	if (writer->file.fd < 0 || writer->chunks == 0) {
		bc_open_segment_abandon(o);
		return true;
	}
	/* Sync the records before writing the index, not together with it: writing the index may be
	 * retried, but after a failed sync the kernel has dropped the records, and the next sync
	 * would succeed without them. */
	if (writer->file.durable != writer->file.bytes) {
		sync_file(o);
		if (writer->file.fd < 0)
			return true;
	}
	struct bc_writer_notice notice = file_notice(writer, BC_NOTICE_SEALED);
	bc_thread_health_start(&o->health, "sealing", writer->file.open_name);
	int rc = bc_segment_seal(writer);
	if (rc == 0) {
		look_at(o, notice.file, true);
		look_at(o, notice.file, false);
		memcpy(notice.hash, writer->file.sealed_hash, sizeof(notice.hash));
		notice.bytes = writer->file.sealed_bytes;
		report_sealed(o, &notice);
		return true;
	}
	if (bc_is_out_of_space(-rc))
		return bc_open_segment_mark_stuck(o, notice.file, "can't seal", strerror(-rc));
	bc_open_segment_check_deleted(o);
	if (writer->file.fd < 0)
		return true;
	set_error(o, notice.file, "can't seal", strerror(-rc));
	bc_log_limited(&o->limits, BC_LOG_ERROR, "%s; left as %s; the next start recovers it",
		o->stats.error, writer->file.open_name);
	bc_open_segment_abandon(o);
	return true;
}

static bool is_gone(const struct bc_open_segment *o, const char *file)
{
	return file[0] != '\0' && faccessat(o->dir_fd, file, F_OK, 0) != 0 && errno == ENOENT;
}

void bc_open_segment_forget_deleted(struct bc_open_segment *o)
{
	if (o->segment.file.fd < 0 && is_gone(o, o->stats.file))
		o->stats.file[0] = '\0';
	if (is_gone(o, o->total.file))
		o->total.file[0] = '\0';
}

/* Start */

static bool create_failed(struct bc_open_segment *o, int rc)
{
	o->stats.file[0] = '\0';
	o->stats.is_hopeless = is_permanent(-rc);
	bool lacks_inodes = rc == -ENOSPC && bc_free_space(o->dir_fd).files == 0;
	return bc_open_segment_mark_stuck(
		o, "", "can't create a segment", lacks_inodes ? "no free inodes" : strerror(-rc));
}

static int create_in_dir(
	struct bc_open_segment *o, const char *file, const struct bc_segment_header *header)
{
	if (!allocate_notice(o))
		return -ENOMEM;
	return bc_segment_create(&o->segment, o->dir_fd, file, BC_PARTIAL_SUFFIX, header);
}

/* Creates the file. Returns 0 or a negative errno. */
static int create_file(struct bc_open_segment *o, const struct bc_segment_header *header)
{
	struct bc_segment_name name = {.segment = header->segment};
	char file[BC_SEGMENT_NAME_MAX];

	memcpy(name.recording, header->recording, sizeof(name.recording));
	bc_segment_name_write(file, &name);
	bc_thread_health_start(&o->health, "creating", file);
	int rc = create_in_dir(o, file, header);
	if (rc == -ENOENT && reopen_dir(o))
		rc = create_in_dir(o, file, header);
	/* On a failing disk, a file may remain that could not be deleted. */
	if (rc == -EEXIST)
		o->next_number++;
	if (rc != 0)
		return rc;
	o->stats.bytes += o->segment.file.bytes;
	bc_open_segment_look(o);
	o->next_number = header->segment + 1;
	return 0;
}

int bc_open_segment_create_last(struct bc_open_segment *o, const struct bc_segment_header *header)
{
	int rc = create_file(o, header);

	if (rc != 0)
		return rc;
	const struct bc_writer_notice notice = file_notice(&o->segment, BC_NOTICE_OPENED);
	memcpy(o->stats.file, notice.file, sizeof(notice.file));
	o->stats.segment = header->segment;
	o->stats.recording_bytes += o->segment.file.bytes;
	struct bc_writer_notice *opened = malloc(sizeof(*opened));
	post_notice(o, &opened, &notice);
	return 0;
}

bool bc_open_segment_create(struct bc_open_segment *o, const struct bc_segment_header *header)
{
	int rc = bc_open_segment_create_last(o, header);

	return rc == 0 || create_failed(o, rc);
}

/* Durability */

/* By bytes, because a chunk may have only events. A file without chunks will be deleted. */
bool bc_open_segment_has_unsynced(const struct bc_open_segment *o)
{
	return o->segment.chunks != 0 && o->segment.file.durable != o->segment.file.bytes;
}

void bc_open_segment_sync(struct bc_open_segment *o)
{
	if (bc_open_segment_has_unsynced(o))
		sync_file(o);
}

void bc_open_segment_destroy(struct bc_open_segment *o)
{
	free(o->sealed_notice);
}
