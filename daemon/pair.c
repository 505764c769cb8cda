#include "daemon/pair.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/lock.h"
#include "daemon/log.h"
#include "formats/segment_name.h"

#define RETRY_NS UINT64_C(500000000)

static void set_error(struct bc_pair *p, const char *file, const char *what, const char *why)
{
	snprintf(p->report.error, sizeof(p->report.error), "%s%s%.150s: %s: %s", p->dir,
		file[0] != '\0' ? "/" : "", file, what, why);
}

bool bc_pair_get_stuck(struct bc_pair *p, const char *file, const char *what, const char *why)
{
	char reason[sizeof(p->stuck_reason)];

	set_error(p, file, what, why);
	snprintf(reason, sizeof(reason), "%s: %s", what, why);
	if (!p->report.is_stuck || strcmp(reason, p->stuck_reason) != 0)
		bc_log(BC_LOG_ERROR,
			"%s; trying again twice a second; a source that can't wait loses what the "
			"buffer can't hold, and it is counted",
			p->report.error);
	memcpy(p->stuck_reason, reason, sizeof(reason));
	if (!p->report.is_stuck)
		p->stuck_since_ns = bc_now_ns();
	p->report.is_stuck = true;
	p->retry_at_ns = bc_now_ns() + RETRY_NS;
	return false;
}

void bc_pair_get_unstuck(struct bc_pair *p)
{
	if (!p->report.is_stuck)
		return;
	p->report.is_stuck = false;
	p->report.is_hopeless = false;
	bc_log(BC_LOG_NOTICE, "%s: writing again, after %.1f s", p->dir,
		(double)(bc_now_ns() - p->stuck_since_ns) * 1e-9);
}

static bool is_hopeless(int error)
{
	return error == ENOENT || error == ENOTDIR || error == EACCES || error == EPERM ||
	       error == EROFS || error == ENAMETOOLONG;
}

bool bc_is_out_of_space(int error)
{
	return error == ENOSPC || error == EDQUOT;
}

/* The directory may have been removed, and made again, since it was opened. Returns whether there
 * is another one now, and it is ours. */
static bool reopen_dir(struct bc_pair *p)
{
	struct stat old;
	struct stat new;
	char why[256];

	if (fstat(p->dir_fd, &old) != 0 || stat(p->dir, &new) != 0 ||
		(old.st_dev == new.st_dev &&old.st_ino == new.st_ino))
		return false;
	int fd = bc_dir_open(p->dir, why, sizeof(why));
	if (fd < 0)
		return false;
	if (p->owns_dir_fd)
		close(p->dir_fd);
	p->dir_fd = fd;
	p->owns_dir_fd = true;
	return true;
}

uint32_t bc_pair_number(const struct bc_pair *p)
{
	if (p->segment.file.fd >= 0)
		return p->segment.segment;
	return p->raw.file.fd >= 0 ? p->raw.segment : p->next_number;
}

/* Ending */

/* Leaves the open segment as it is; an empty one goes, and its number is free again unless its raw
 * capture has it. */
static void abandon_segment(struct bc_pair *p)
{
	if (p->segment.file.fd < 0)
		return;
	if (p->segment.chunks == 0) {
		unlinkat(p->dir_fd, p->segment.file.open_name, 0);
		if (p->raw.file.fd < 0)
			p->next_number--;
	} else {
		p->report.unsealed++;
		p->must_cut = true;
	}
	bc_segment_abandon(&p->segment);
	p->unsynced = 0;
}

/* The same for the raw capture. */
static void abandon_raw(struct bc_pair *p)
{
	if (p->raw.file.fd < 0)
		return;
	if (p->raw.blocks == 0) {
		unlinkat(p->dir_fd, p->raw.file.open_name, 0);
		if (p->segment.file.fd < 0)
			p->next_number--;
	} else {
		p->report.unsealed++;
		p->must_cut = true;
	}
	bc_raw_abandon(&p->raw);
}

void bc_pair_leave_segment(struct bc_pair *p)
{
	if (p->segment.chunks != 0)
		bc_log(BC_LOG_ERROR,
			"%s/%s: left as it is, its %" PRIu64
			" records with it; the next start recovers them",
			p->dir, p->segment.file.open_name, p->segment.records);
	abandon_segment(p);
}

void bc_pair_leave_raw(struct bc_pair *p)
{
	if (p->raw.blocks != 0)
		bc_log(BC_LOG_ERROR,
			"%s/%s: left as it is; the next start keeps what is whole of it", p->dir,
			p->raw.file.open_name);
	abandon_raw(p);
}

static void sync_segment(struct bc_pair *p)
{
	int rc = bc_new_file_sync(&p->segment.file);

	if (rc == 0) {
		p->report.durable += p->unsynced;
		p->unsynced = 0;
		return;
	}
	set_error(p, p->report.file, "can't make it durable", strerror(-rc));
	bc_log(BC_LOG_ERROR,
		"%s; it stays as %s, its last %" PRIu64
		" records may be lost; going on in a new segment",
		p->report.error, p->segment.file.open_name, p->unsynced);
	abandon_segment(p);
}

static void sync_raw(struct bc_pair *p)
{
	int rc = bc_new_file_sync(&p->raw.file);

	if (rc == 0)
		return;
	set_error(p, p->raw.file.name, "can't make it durable", strerror(-rc));
	bc_log(BC_LOG_ERROR, "%s; it stays as %s; going on in a new segment", p->report.error,
		p->raw.file.open_name);
	abandon_raw(p);
}

/* Ends the open segment, if there is one. Returns false when that must be tried again. */
static bool seal_segment(struct bc_pair *p)
{
	uint64_t records = p->segment.records;
	uint32_t chunks = p->segment.chunks;

	if (p->segment.file.fd < 0 || chunks == 0) {
		abandon_segment(p);
		return true;
	}
	/* Apart from the index, which may be tried again: records that a failed sync has given up
	 * would look durable after the next. */
	if (p->segment.file.durable != p->segment.file.bytes) {
		sync_segment(p);
		if (p->segment.file.fd < 0)
			return true;
	}
	int rc = bc_segment_seal(&p->segment);
	if (rc == 0) {
		bc_log(BC_LOG_INFO, "%s: sealed, %" PRIu64 " records in %" PRIu32 " chunk%s",
			p->report.file, records, chunks, chunks == 1 ? "" : "s");
		return true;
	}
	if (bc_is_out_of_space(-rc))
		return bc_pair_get_stuck(p, p->report.file, "can't seal it", strerror(-rc));
	set_error(p, p->report.file, "can't seal it", strerror(-rc));
	bc_log(BC_LOG_ERROR, "%s; it stays as %s, to be recovered at the next start",
		p->report.error, p->segment.file.open_name);
	abandon_segment(p);
	return true;
}

/* The same for the raw capture. */
static bool seal_raw(struct bc_pair *p)
{
	struct bc_new_file *file = &p->raw.file;
	char name[BC_NEW_FILE_NAME_MAX];

	if (file->fd < 0 || p->raw.blocks == 0) {
		abandon_raw(p);
		return true;
	}
	if (file->durable != file->bytes) {
		sync_raw(p);
		if (file->fd < 0)
			return true;
	}
	uint32_t blocks = p->raw.blocks;
	memcpy(name, file->name, sizeof(name));
	int rc = bc_raw_seal(&p->raw);
	if (rc == 0) {
		bc_log(BC_LOG_DEBUG, "%s: sealed, %" PRIu32 " block%s", name, blocks,
			blocks == 1 ? "" : "s");
		return true;
	}
	if (bc_is_out_of_space(-rc))
		return bc_pair_get_stuck(p, name, "can't seal it", strerror(-rc));
	set_error(p, name, "can't seal it", strerror(-rc));
	bc_pair_leave_raw(p);
	return true;
}

bool bc_pair_cut(struct bc_pair *p)
{
	if (!seal_segment(p) || !seal_raw(p))
		return false;
	p->must_cut = false;
	return true;
}

void bc_pair_check_deleted(struct bc_pair *p)
{
	if (p->segment.file.fd >= 0 && bc_new_file_is_deleted(&p->segment.file)) {
		set_error(p, p->report.file, "deleted while it was being written",
			"its records are lost");
		bc_log(BC_LOG_ERROR, "%s: %" PRIu64 " of them; going on in a new segment",
			p->report.error, p->segment.records);
		bc_segment_abandon(&p->segment);
		p->report.deleted++;
		p->must_cut = true;
		p->unsynced = 0;
	}
	if (p->raw.file.fd >= 0 && bc_new_file_is_deleted(&p->raw.file)) {
		set_error(p, p->raw.file.name, "deleted while it was being written",
			"its bytes are lost; going on in a new segment");
		bc_log(BC_LOG_ERROR, "%s", p->report.error);
		bc_raw_abandon(&p->raw);
		p->report.deleted++;
		p->must_cut = true;
	}
}

/* Beginning */

static struct bc_segment_name name_of(const struct bc_segment_header *header)
{
	struct bc_segment_name name = {.segment = header->segment};

	memcpy(name.recording, header->recording, sizeof(name.recording));
	return name;
}

/* A file can't be begun. */
static bool refuse_file(struct bc_pair *p, const char *what, int rc)
{
	if (p->segment.file.fd < 0)
		p->report.file[0] = '\0';
	p->report.is_hopeless = is_hopeless(-rc);
	return bc_pair_get_stuck(p, "", what, strerror(-rc));
}

bool bc_pair_open_segment(struct bc_pair *p, const struct bc_segment_header *header)
{
	struct bc_segment_name name = name_of(header);
	char file[BC_SEGMENT_NAME_MAX];

	bc_segment_name_write(file, &name);
	int rc = bc_segment_create(&p->segment, p->dir_fd, file, BC_PARTIAL_SUFFIX, header);
	if (rc == -ENOENT && reopen_dir(p))
		rc = bc_segment_create(&p->segment, p->dir_fd, file, BC_PARTIAL_SUFFIX, header);
	if (rc != 0)
		return refuse_file(p, "can't begin a segment there", rc);
	memcpy(p->report.file, file, sizeof(file));
	p->report.segment = header->segment;
	p->report.bytes += p->segment.file.bytes;
	p->report.recording_bytes += p->segment.file.bytes;
	p->next_number = header->segment + 1;
	return true;
}

bool bc_pair_open_raw(
	struct bc_pair *p, const struct bc_segment_header *header, enum bc_format form)
{
	struct bc_segment_name name = name_of(header);
	char file[BC_SEGMENT_NAME_MAX];

	bc_raw_name_write(file, &name, form);
	int rc = bc_raw_create(&p->raw, p->dir_fd, file, header, form);
	if (rc == -ENOENT && reopen_dir(p))
		rc = bc_raw_create(&p->raw, p->dir_fd, file, header, form);
	if (rc != 0)
		return refuse_file(p, "can't begin a raw capture there", rc);
	p->report.bytes += p->raw.file.bytes;
	p->next_number = header->segment + 1;
	return true;
}

/* Durability */

bool bc_pair_has_unsynced(const struct bc_pair *p)
{
	return p->unsynced != 0 || p->raw.file.durable != p->raw.file.bytes;
}

void bc_pair_sync(struct bc_pair *p)
{
	if (p->unsynced != 0)
		sync_segment(p);
	if (p->raw.file.durable != p->raw.file.bytes)
		sync_raw(p);
}

void bc_pair_abandon(struct bc_pair *p)
{
	abandon_segment(p);
	abandon_raw(p);
}
