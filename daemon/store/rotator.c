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
 * may fail for now, on a full disk. Then it has set stats.is_stuck and returns false, and the
 * caller repeats the whole call at retry_at_ns. Only a chunk that is
 * written, a segment that is sealed, or, if no chunk waits, the reserve that is written, ends that.
 *
 * Invariants:
 *   - bc_encoded.state tells how far a chunk is, so repeating a call writes nothing twice. The
 *     last chunk of a recording: daemon/store/last_write.c.
 *   - Each segment with chunks is counted once in `total`, as sealed or as left open. SEALED is
 * sent only for a file that is under its final name. Memory for that notice is allocated with the
 *     file, so a sealed file is always reported.
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
	r->retry_at_ns = bc_now_ns() + RETRY_NS;
	return false;
}

static void clear_stuck(struct bc_rotator *r)
{
	if (!r->stats.is_stuck)
		return;
	r->stats.is_stuck = false;
	r->stats.is_hopeless = false;
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

static uint32_t segment_number(const struct bc_rotator *r)
{
	return r->segment.file.fd >= 0 ? r->segment.segment : r->next_number;
}

/* The catalogue */

/* Has the catalogue look at a segment, by its open or its final name. */
static void look_at(struct bc_rotator *r, const char *file, bool is_partial)
{
	struct bc_segment_name name;

	if (!bc_segment_name_read(&name, file))
		return;
	name.is_partial = is_partial;
	(void)!bc_catalogue_look(r->catalogue, r->dir_fd, &name, BC_LOOK, NULL, &r->limits);
}

static void look_at_open(struct bc_rotator *r)
{
	if (r->segment.file.fd >= 0)
		look_at(r, r->segment.file.name, true);
}

/* Notices */

/* Allocates the notice for a segment that is about to be created. */
static bool allocate_notice(struct bc_rotator *r)
{
	if (r->sealed_notice == NULL)
		r->sealed_notice = malloc(sizeof(*r->sealed_notice));
	return r->sealed_notice != NULL;
}

/* Sends `what` in *notice, which the list then owns. Without memory for it, the event is not sent;
 * the file and the counts are unaffected. */
static void post_notice(
	struct bc_rotator *r, struct bc_writer_notice **notice, const struct bc_writer_notice *what)
{
	if (*notice == NULL)
		return;
	**notice = *what;
	(*notice)->recording = r->recording;
	bc_writer_notices_append(&r->notices, *notice);
	*notice = NULL;
}

/* Adds a segment to the recording's totals, when it is complete and none is open. */
static void add_segment(struct bc_rotator *r, const struct bc_writer_notice *of)
{
	r->total.records += of->records;
	r->total.bytes += of->bytes;
	r->stats.recording_bytes = r->total.bytes; /* with the index at its end */
	r->total.chunks += of->chunks;
	bc_loss_add(&r->total.loss, of->loss);
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

static void report_sealed(struct bc_rotator *r, struct bc_writer_notice *notice)
{
	bc_log(BC_LOG_INFO, "%s: sealed, %s record%s in %s chunk%s", notice->file,
		BC_GROUPED(notice->records), bc_plural(notice->records), BC_GROUPED(notice->chunks),
		bc_plural(notice->chunks));
	r->stats.sealed++;
	r->total.segments++;
	memcpy(r->total.file, notice->file, sizeof(notice->file));
	add_segment(r, notice);
	post_notice(r, &r->sealed_notice, notice);
}

void bc_rotator_end(struct bc_rotator *r, struct bc_writer_notice *notice)
{
	*notice = r->total;
	notice->recording = r->recording;
	notice->is_full = r->stats.is_full;
	bc_writer_notices_append(&r->notices, notice);
	r->recording = NULL;
}

/* Deleted files */

static void forget_file(struct bc_rotator *r)
{
	look_at_open(r);
	bc_segment_abandon(&r->segment);
	r->stats.file[0] = '\0';
	r->unsynced = 0;
}

static void check_deleted(struct bc_rotator *r)
{
	struct bc_segment_writer *writer = &r->segment;
	char lost[64];

	if (writer->file.fd < 0 || !bc_atomic_file_is_deleted(&writer->file))
		return;
	snprintf(lost, sizeof(lost), "%s records lost", BC_GROUPED(writer->records));
	set_error(r, writer->file.name, "deleted while open", lost);
	bc_log_limited(&r->limits, BC_LOG_ERROR | BC_LOG_DAMAGED, "%s; continuing in a new segment",
		r->stats.error);
	r->total.left_open++;
	r->stats.deleted++;
	r->stats.deleted_records += writer->records;
	forget_file(r);
}

/* Closing */

static void abandon_segment(struct bc_rotator *r)
{
	const struct bc_segment_writer *writer = &r->segment;
	struct bc_segment_name name;

	if (writer->file.fd < 0)
		return;
	bc_thread_health_start(&r->health, "closing", writer->file.open_name);
	if (writer->chunks == 0) {
		unlinkat(r->dir_fd, writer->file.open_name, 0);
		r->next_number--;
	} else {
		struct bc_writer_notice left = file_notice(writer, BC_NOTICE_ENDED);
		add_segment(r, &left);
		r->total.left_open++;
		r->stats.unsealed++;
	}
	bool is_left = writer->chunks != 0 && bc_segment_name_read(&name, writer->file.open_name);
	forget_file(r);
	if (is_left)
		bc_catalogue_leave(r->catalogue, &name);
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

/* By bytes, because a chunk may have only events. A file without chunks will be deleted. */
static bool has_unsynced(const struct bc_rotator *r)
{
	return r->segment.chunks != 0 && r->segment.file.durable != r->segment.file.bytes;
}

static void sync_file(struct bc_rotator *r)
{
	struct bc_segment_writer *writer = &r->segment;

	bc_thread_health_start(&r->health, "syncing", writer->file.open_name);
	int rc = bc_atomic_file_sync(&writer->file);
	if (rc == 0) {
		r->stats.durable += r->unsynced;
		r->unsynced = 0;
		return;
	}
	set_error(r, writer->file.name, "can't sync", strerror(-rc));
	bc_log_limited(&r->limits, BC_LOG_ERROR | BC_LOG_DISK_FAILED,
		"%s; left as %s, its last %s records may be lost; continuing in a new segment",
		r->stats.error, writer->file.open_name, BC_GROUPED(r->unsynced));
	abandon_segment(r);
}

/* Seals the open segment, as bc_rotator_cut(), but does not end being stuck. */
static bool cut(struct bc_rotator *r)
{
	struct bc_segment_writer *writer = &r->segment;

	check_deleted(r);
	if (writer->file.fd < 0 || writer->chunks == 0) {
		abandon_segment(r);
		return true;
	}
	/* Sync the records before writing the index, not together with it: writing the index may be
	 * retried, but after a failed sync the kernel has dropped the records, and the next sync
	 * would succeed without them. */
	if (writer->file.durable != writer->file.bytes) {
		sync_file(r);
		if (writer->file.fd < 0)
			return true;
	}
	struct bc_writer_notice notice = file_notice(writer, BC_NOTICE_SEALED);
	bc_thread_health_start(&r->health, "sealing", writer->file.open_name);
	int rc = bc_segment_seal(writer);
	if (rc == 0) {
		look_at(r, notice.file, true);
		look_at(r, notice.file, false);
		memcpy(notice.hash, writer->file.sealed_hash, sizeof(notice.hash));
		notice.bytes = writer->file.sealed_bytes;
		report_sealed(r, &notice);
		return true;
	}
	if (is_out_of_space(-rc))
		return mark_stuck(r, notice.file, "can't seal", strerror(-rc));
	check_deleted(r);
	if (writer->file.fd < 0)
		return true;
	set_error(r, notice.file, "can't seal", strerror(-rc));
	bc_log_limited(&r->limits, BC_LOG_ERROR | BC_LOG_DISK_FAILED,
		"%s; left as %s; sealed later, or by the next start", r->stats.error,
		writer->file.open_name);
	abandon_segment(r);
	return true;
}

bool bc_rotator_cut(struct bc_rotator *r)
{
	uint64_t sealed = r->stats.sealed;
	bool is_done = cut(r);

	if (r->stats.sealed != sealed)
		clear_stuck(r);
	return is_done;
}

static bool is_gone(const struct bc_rotator *r, const char *file)
{
	return file[0] != '\0' && faccessat(r->dir_fd, file, F_OK, 0) != 0 && errno == ENOENT;
}

static void forget_deleted(struct bc_rotator *r)
{
	if (r->segment.file.fd < 0 && is_gone(r, r->stats.file))
		r->stats.file[0] = '\0';
	if (is_gone(r, r->total.file))
		r->total.file[0] = '\0';
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
 * file system was lost and mounted again. The directory below a mount point does not replace that.
 * Returns true if so. */
static bool reopen_dir(struct bc_rotator *r)
{
	struct stat held;
	struct stat named;
	char err[256];

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
	if (!allocate_notice(r))
		return -ENOMEM;
	return bc_segment_create(&r->segment, r->dir_fd, file, BC_PARTIAL_SUFFIX, header);
}

/* Creates the file. Returns 0 or a negative errno. */
static int create_file(struct bc_rotator *r, const struct bc_segment_header *header)
{
	struct bc_segment_name name = {.segment = header->segment};
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
	header.segment = segment_number(r);
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
	post_notice(r, &opened, &notice);
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

static void check_space(
	struct bc_rotator *r, struct bc_retention_state *state, const struct coming *coming)
{
	const struct bc_retention_check check = {
		.catalogue = r->catalogue,
		.dir_fd = r->dir_fd,
		.rules = &r->rules.space,
		.files = r->rules.rotation.files,
		.coming_bytes = coming->bytes,
		.coming_files = coming->segments,
		.recording = r->recording != NULL ? r->recording->header.recording : NULL,
		.wall_ns = bc_wall_ns(),
		.boot_ns = bc_boot_ns(),
		.written_bytes = r->stats.bytes,
		.limits = &r->limits,
		.health = &r->health,
	};

	bc_thread_health_start(&r->health, "checking the space in", ".");
	r->space_checked_at = r->stats.bytes;
	look_at_open(r);
	bc_retention_enforce(&r->retention, state, &check);
	if (strcmp(state->error, r->space_error) != 0 && state->error[0] != '\0')
		bc_log_limited(&r->limits, BC_LOG_ERROR, "%s/%s; retrying every second", r->dir,
			state->error);
	memcpy(r->space_error, state->error, sizeof(r->space_error));
	r->space_left = state->is_waiting ? UINT64_MAX
			: state->is_over  ? 0
					  : space_left_of(&r->rules.space, state);
	if (state->deleted != 0)
		forget_deleted(r);
}

static bool has_rule(const struct bc_writer_rules *rules)
{
	const struct bc_retention_rules *space = &rules->space;

	return rules->rotation.files != 0 || space->max_use_bytes != 0 || space->max_age_ns != 0 ||
	       space->keep_free_bytes != 0;
}

/* Applies the space rules. Returns false if nothing may be written now. */
static bool enforce_space(struct bc_rotator *r, struct coming coming)
{
	struct bc_retention_state state;

	if (!r->has_waited && has_rule(&r->rules))
		(void)bc_catalogue_wait(r->catalogue, PATIENCE_NS);
	r->has_waited = true;
	check_space(r, &state, &coming);
	if (state.is_over && r->segment.chunks != 0) {
		/* Only the open segment is left. Once sealed, it can be deleted. */
		if (!bc_rotator_cut(r))
			return false;
		coming.segments = 1;
		check_space(r, &state, &coming);
	}
	r->stats.is_checked = !state.is_waiting;
	r->stats.is_free_known = !state.is_free_unknown;
	r->stats.free_bytes = state.free_bytes;
	r->stats.has_no_inodes = state.free_files == 0;
	r->stats.used_bytes = state.used_bytes;
	r->stats.segments = state.segments;
	if (state.is_over)
		return mark_stuck(r, r->stats.file, "no space", state.err);
	return true;
}

/* Applies the space rules if appending this much might break one. Returns false if it may not be
 * written now. */
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

static bool open_segment(struct bc_rotator *r, const struct bc_encoded *e)
{
	if (!enforce_space(r, (struct coming){coming_bytes_of(r, e), 1}))
		return false;
	int rc = create_segment(r, e);
	if (rc != 0)
		return create_failed(r, rc);
	r->sync_at_ns = bc_now_ns() + r->rules.sync_ns;
	bc_log(BC_LOG_DEBUG, "%s: created, first record %" PRIu64, r->stats.file,
		e->info.first_record);
	return true;
}

/* Returns whether the chunk fits below the limit of the segment's length, with the segment's end or
 * what recovery adds. */
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
	return e->bytes != 0 || r->segment.file.fd >= 0 || r->total.segments != 0 ||
	       r->total.left_open != 0;
}

/* Discards a chunk after stop_bytes, but not the recording's end. */
static void discard_chunk(struct bc_rotator *r, struct bc_encoded *e)
{
	r->stats.unrecorded += e->info.records;
	bc_losses_add(&r->total.discarded, &e->losses);
	if (e->is_last)
		bc_last_write_only_end(&r->last_write, e);
	else
		e->state = BC_ENCODED_WRITTEN;
}

/* Adds the recording's end to its last chunk, or writes that and replaces it with the end. Returns
 * false to be called again. */
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

/* Seals the segment, in the space of the reserve if necessary, or closes it unsealed. */
static void end_given_up(struct bc_rotator *r)
{
	if (cut(r) || (bc_reserve_release(r->dir_fd) && cut(r)))
		return;
	abandon_segment(r);
}

void bc_rotator_give_up(struct bc_rotator *r, struct bc_encoded *e)
{
	if (e->state != BC_ENCODED_WRITTEN) {
		r->stats.abandoned += e->info.records;
		r->total.abandoned += e->info.records;
		bc_losses_add(&r->last_write.given_up, &e->losses);
		r->last_write.given_up.gaps[BC_GAP_DISK] += e->info.records != 0;
		r->last_write.given_up.lost[BC_GAP_DISK] += e->info.records;
	}
	if (!e->is_last)
		return;
	write_given_up(r, e);
	end_given_up(r);
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
	return has_unsynced(r) && r->sync_at_ns < r->check_at_ns ? r->sync_at_ns : r->check_at_ns;
}

void bc_rotator_maintain(struct bc_rotator *r, bool has_waiting)
{
	uint64_t now = bc_now_ns();

	if (has_unsynced(r) && now >= r->sync_at_ns) {
		r->sync_at_ns = now + r->rules.sync_ns;
		sync_file(r);
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

int bc_rotator_init(struct bc_rotator *r, const char *dir, int dir_fd,
	struct bc_catalogue *catalogue, const struct bc_writer_rules *rules)
{
	memset(r, 0, sizeof(*r));
	int rc = bc_last_write_init(&r->last_write);
	if (rc != 0)
		return rc;
	bc_thread_health_init(&r->health);
	r->dir = dir;
	r->dir_fd = dir_fd;
	r->is_mounted = is_mount_point(dir);
	r->catalogue = catalogue;
	r->rules = *rules;
	r->segment.file.fd = -1;
	return 0;
}

void bc_rotator_start(struct bc_rotator *r, const struct bc_recording_info *recording)
{
	r->recording = recording;
	r->next_number = 0;
	r->total = (struct bc_writer_notice){.kind = BC_NOTICE_ENDED};
	r->stats.recording_tag = recording->tag;
	r->stats.recording_bytes = 0;
	r->stats.recording_records = 0;
	r->stats.is_full = false;
	r->stats.segment = 0;
	r->stats.first_record = 0;
	r->stats.file[0] = '\0';
	bc_last_write_start(&r->last_write);
}

void bc_rotator_close(struct bc_rotator *r)
{
	if (has_unsynced(r))
		sync_file(r);
	abandon_segment(r);
	bc_reserve_release(r->dir_fd);
	bc_log_limits_end(&r->limits);
}

void bc_rotator_destroy(struct bc_rotator *r)
{
	if (r->owns_dir_fd)
		close(r->dir_fd);
	bc_writer_notices_free(r->notices);
	free(r->sealed_notice);
	bc_thread_health_destroy(&r->health);
	bc_last_write_destroy(&r->last_write);
}
