#include "daemon/store/open_segment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/lock.h"
#include "daemon/store/manifest.h"
#include "daemon/store/recording_info.h"
#include "formats/segment/segment_name.h"

#define RETRY_NS UINT64_C(500000000)

static void set_error(
	struct bc_open_segment *p, const char *file, const char *what, const char *err)
{
	snprintf(p->report.error, sizeof(p->report.error), "%s%s%.150s: %s: %s", p->dir,
		file[0] != '\0' ? "/" : "", file, what, err);
}

bool bc_open_segment_mark_stuck(
	struct bc_open_segment *p, const char *file, const char *what, const char *err)
{
	char reason[sizeof(p->stuck_reason)];

	set_error(p, file, what, err);
	snprintf(reason, sizeof(reason), "%s: %s", what, err);
	if (!p->report.is_stuck || strcmp(reason, p->stuck_reason) != 0)
		bc_log_limited(&p->limits, BC_LOG_ERROR,
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

void bc_open_segment_clear_stuck(struct bc_open_segment *p)
{
	if (!p->report.is_stuck)
		return;
	p->report.is_stuck = false;
	p->report.is_hopeless = false;
	bc_log_limited(&p->limits, BC_LOG_NOTICE, "%s: writing again, after %.1f s", p->dir,
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
static bool reopen_dir(struct bc_open_segment *p)
{
	struct stat old;
	struct stat new;
	char err[256];

	if (fstat(p->dir_fd, &old) != 0 || stat(p->dir, &new) != 0 ||
		(old.st_dev == new.st_dev &&old.st_ino == new.st_ino))
		return false;
	int fd = bc_dir_open(p->dir, err, sizeof(err));
	if (fd < 0)
		return false;
	if (p->owns_dir_fd)
		close(p->dir_fd);
	p->dir_fd = fd;
	p->owns_dir_fd = true;
	return true;
}

uint32_t bc_open_segment_number(const struct bc_open_segment *p)
{
	if (p->segment.file.fd >= 0)
		return p->segment.segment;
	return p->raw.file.fd >= 0 ? p->raw.segment : p->next_number;
}

/* News */

static void post(struct bc_open_segment *p, const struct bc_writer_notice *what)
{
	struct bc_writer_notice *news = malloc(sizeof(*news));

	if (news == NULL) {
		p->report.news_lost++;
		return;
	}
	*news = *what;
	news->recording = p->recording;
	bc_writer_notices_add(&p->news, news);
}

/* Adds what was written of the open segment to the recording's. */
static void add_segment(struct bc_open_segment *p, const struct bc_writer_notice *of)
{
	p->total.records += of->records;
	p->total.bytes += of->bytes;
	p->total.chunks += of->chunks;
	p->total.gaps += of->gaps;
	p->total.lost += of->lost;
}

static struct bc_writer_notice news_of_segment(
	const struct bc_open_segment *p, enum bc_writer_notice_kind kind)
{
	struct bc_writer_notice news = {
		.kind = kind,
		.segment = p->segment.segment,
		.first_record = p->segment_first,
		.wall_ns = p->segment_wall_ns,
		.records = p->segment.records,
		.bytes = p->segment.file.bytes,
		.chunks = p->segment.chunks,
		.gaps = p->segment.gaps,
		.lost = p->segment.lost,
	};

	memcpy(news.file, p->report.file, sizeof(news.file));
	return news;
}

static struct bc_writer_notice news_of_raw(const struct bc_open_segment *p)
{
	struct bc_writer_notice news = {
		.kind = BC_NOTICE_RAW_SEALED,
		.segment = p->raw.segment,
		.first_record = p->raw_first,
		.wall_ns = p->raw_wall_ns,
		.bytes = p->raw.file.bytes,
		.chunks = p->raw.chunks,
	};

	snprintf(
		news.file, sizeof(news.file), "%.*s", (int)sizeof(news.file) - 1, p->raw.file.name);
	return news;
}

/* The recording is what matters: a manifest that can't be written is said to be so, once, and the
 * next file's line is tried anew. */
static void add_to_manifest(struct bc_open_segment *p, const struct bc_writer_notice *news)
{
	const char *recording = p->recording->header.recording;
	bc_thread_health_start(&p->stint, "adding to the manifest the hash of", news->file);
	int rc = bc_manifest_add(p->dir_fd, recording, news->file, news->hash);

	if (rc != 0) {
		p->report.manifest_failed++;
		if (rc != p->manifest_error)
			bc_log_limited(&p->limits, BC_LOG_ERROR,
				"%s/%s" BC_MANIFEST_SUFFIX
				": the hash of %s can't be added: %s; the recording goes on",
				p->dir, recording, news->file, strerror(-rc));
	}
	p->manifest_error = rc;
}

/* After the sealing, which closes the file. */
static void tell_sealed(struct bc_open_segment *p, struct bc_writer_notice *news)
{
	add_to_manifest(p, news);
	p->report.sealed++;
	p->total.segments++;
	memcpy(p->total.file, news->file, sizeof(news->file));
	add_segment(p, news);
	post(p, news);
}

void bc_open_segment_start(struct bc_open_segment *p, const struct bc_recording_info *recording)
{
	p->recording = recording;
	p->next_number = 0;
	p->total = (struct bc_writer_notice){.kind = BC_NOTICE_ENDED};
	p->report.recording_tag = recording->tag;
	p->report.recording_bytes = 0;
	p->report.recording_records = 0;
	p->report.is_full = false;
	p->report.segment = 0;
	p->report.file[0] = '\0';
}

void bc_open_segment_end(struct bc_open_segment *p, struct bc_writer_notice *news)
{
	*news = p->total;
	news->recording = p->recording;
	news->is_full = p->report.is_full;
	bc_writer_notices_add(&p->news, news);
	p->recording = NULL;
}

/* Ending */

/* Leaves the open segment as it is; an empty one goes, and its number is free again unless its raw
 * capture has it. */
static void abandon_segment(struct bc_open_segment *p)
{
	if (p->segment.file.fd < 0)
		return;
	bc_thread_health_start(&p->stint, "closing", p->segment.file.open_name);
	if (p->segment.chunks == 0) {
		unlinkat(p->dir_fd, p->segment.file.open_name, 0);
		if (p->raw.file.fd < 0)
			p->next_number--;
	} else {
		struct bc_writer_notice left = news_of_segment(p, BC_NOTICE_ENDED);
		add_segment(p, &left);
		p->total.left_open++;
		p->report.unsealed++;
		p->must_cut = true;
	}
	bc_segment_abandon(&p->segment);
	p->report.file[0] = '\0';
	p->unsynced = 0;
}

/* The same for the raw capture. */
static void abandon_raw(struct bc_open_segment *p)
{
	if (p->raw.file.fd < 0)
		return;
	bc_thread_health_start(&p->stint, "closing", p->raw.file.open_name);
	if (p->raw.chunks == 0) {
		unlinkat(p->dir_fd, p->raw.file.open_name, 0);
		if (p->segment.file.fd < 0)
			p->next_number--;
	} else {
		p->total.raw_bytes += p->raw.file.bytes;
		p->total.left_open++;
		p->report.unsealed++;
		p->must_cut = true;
	}
	bc_segment_abandon(&p->raw);
}

void bc_open_segment_abandon_segment(struct bc_open_segment *p)
{
	if (p->segment.chunks != 0)
		bc_log_limited(&p->limits, BC_LOG_ERROR,
			"%s/%s: left as it is, its %" PRIu64
			" records with it; the next start recovers them",
			p->dir, p->segment.file.open_name, p->segment.records);
	abandon_segment(p);
}

void bc_open_segment_abandon_raw(struct bc_open_segment *p)
{
	if (p->raw.chunks != 0)
		bc_log_limited(&p->limits, BC_LOG_ERROR,
			"%s/%s: left as it is; the next start keeps what is whole of it", p->dir,
			p->raw.file.open_name);
	abandon_raw(p);
}

static void sync_segment(struct bc_open_segment *p)
{
	bc_thread_health_start(&p->stint, "syncing", p->segment.file.open_name);
	int rc = bc_atomic_file_sync(&p->segment.file);

	if (rc == 0) {
		p->report.durable += p->unsynced;
		p->unsynced = 0;
		return;
	}
	set_error(p, p->report.file, "can't make it durable", strerror(-rc));
	bc_log_limited(&p->limits, BC_LOG_ERROR,
		"%s; it stays as %s, its last %" PRIu64
		" records may be lost; going on in a new segment",
		p->report.error, p->segment.file.open_name, p->unsynced);
	abandon_segment(p);
}

static void sync_raw(struct bc_open_segment *p)
{
	bc_thread_health_start(&p->stint, "syncing", p->raw.file.open_name);
	int rc = bc_atomic_file_sync(&p->raw.file);

	if (rc == 0)
		return;
	set_error(p, p->raw.file.name, "can't make it durable", strerror(-rc));
	bc_log_limited(&p->limits, BC_LOG_ERROR, "%s; it stays as %s; going on in a new segment",
		p->report.error, p->raw.file.open_name);
	abandon_raw(p);
}

/* Ends the open segment, if there is one. Returns false when that must be tried again. */
static bool seal_segment(struct bc_open_segment *p)
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
	struct bc_writer_notice news = news_of_segment(p, BC_NOTICE_SEALED);
	news.bytes += bc_index_bytes(chunks);
	bc_thread_health_start(&p->stint, "sealing", p->segment.file.open_name);
	int rc = bc_segment_seal(&p->segment);
	if (rc == 0) {
		memcpy(news.hash, p->segment.file.sealed_hash, sizeof(news.hash));
		tell_sealed(p, &news);
		bc_log(BC_LOG_INFO, "%s: sealed, %" PRIu64 " records in %" PRIu32 " chunk%s",
			p->report.file, records, chunks, chunks == 1 ? "" : "s");
		return true;
	}
	if (bc_is_out_of_space(-rc))
		return bc_open_segment_mark_stuck(
			p, p->report.file, "can't seal it", strerror(-rc));
	set_error(p, p->report.file, "can't seal it", strerror(-rc));
	bc_log_limited(&p->limits, BC_LOG_ERROR,
		"%s; it stays as %s, to be recovered at the next start", p->report.error,
		p->segment.file.open_name);
	abandon_segment(p);
	return true;
}

/* The same for the raw capture. */
static bool seal_raw(struct bc_open_segment *p)
{
	struct bc_atomic_file *file = &p->raw.file;
	char name[BC_ATOMIC_FILE_NAME_MAX];

	if (file->fd < 0 || p->raw.chunks == 0) {
		abandon_raw(p);
		return true;
	}
	if (file->durable != file->bytes) {
		sync_raw(p);
		if (file->fd < 0)
			return true;
	}
	uint32_t blocks = p->raw.chunks;
	memcpy(name, file->name, sizeof(name));
	struct bc_writer_notice news = news_of_raw(p);
	bc_thread_health_start(&p->stint, "sealing", file->open_name);
	int rc = bc_segment_seal(&p->raw);
	if (rc == 0) {
		memcpy(news.hash, p->raw.file.sealed_hash, sizeof(news.hash));
		add_to_manifest(p, &news);
		p->total.raw_bytes += news.bytes;
		post(p, &news);
		bc_log(BC_LOG_DEBUG, "%s: sealed, %" PRIu32 " block%s", name, blocks,
			blocks == 1 ? "" : "s");
		return true;
	}
	if (bc_is_out_of_space(-rc))
		return bc_open_segment_mark_stuck(p, name, "can't seal it", strerror(-rc));
	set_error(p, name, "can't seal it", strerror(-rc));
	bc_open_segment_abandon_raw(p);
	return true;
}

bool bc_open_segment_cut(struct bc_open_segment *p)
{
	if (!seal_segment(p) || !seal_raw(p))
		return false;
	p->must_cut = false;
	return true;
}

void bc_open_segment_check_deleted(struct bc_open_segment *p)
{
	if (p->segment.file.fd >= 0 && bc_atomic_file_is_deleted(&p->segment.file)) {
		set_error(p, p->report.file, "deleted while it was being written",
			"its records are lost");
		bc_log_limited(&p->limits, BC_LOG_ERROR,
			"%s: %" PRIu64 " of them; going on in a new segment", p->report.error,
			p->segment.records);
		bc_segment_abandon(&p->segment);
		p->report.file[0] = '\0';
		p->total.left_open++;
		p->report.deleted++;
		p->must_cut = true;
		p->unsynced = 0;
	}
	if (p->raw.file.fd >= 0 && bc_atomic_file_is_deleted(&p->raw.file)) {
		set_error(p, p->raw.file.name, "deleted while it was being written",
			"its bytes are lost");
		bc_log_limited(
			&p->limits, BC_LOG_ERROR, "%s; going on in a new segment", p->report.error);
		bc_segment_abandon(&p->raw);
		p->total.left_open++;
		p->report.deleted++;
		p->must_cut = true;
	}
}

static bool has_gone(const struct bc_open_segment *p, const char *file)
{
	return file[0] != '\0' && faccessat(p->dir_fd, file, F_OK, 0) != 0 && errno == ENOENT;
}

void bc_open_segment_forget_deleted(struct bc_open_segment *p)
{
	if (p->segment.file.fd < 0 && has_gone(p, p->report.file))
		p->report.file[0] = '\0';
	if (has_gone(p, p->total.file))
		p->total.file[0] = '\0';
}

/* Beginning */

static struct bc_segment_name name_of(const struct bc_segment_header *header)
{
	struct bc_segment_name name = {.segment = header->segment};

	memcpy(name.recording, header->recording, sizeof(name.recording));
	return name;
}

/* A file can't be begun. */
static bool refuse_file(struct bc_open_segment *p, const char *what, int rc)
{
	if (p->segment.file.fd < 0)
		p->report.file[0] = '\0';
	p->report.is_hopeless = is_hopeless(-rc);
	return bc_open_segment_mark_stuck(p, "", what, strerror(-rc));
}

bool bc_open_segment_open_segment(struct bc_open_segment *p, const struct bc_segment_header *header)
{
	struct bc_segment_name name = name_of(header);
	char file[BC_SEGMENT_NAME_MAX];

	bc_segment_name_write(file, &name);
	bc_thread_health_start(&p->stint, "beginning", file);
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
	p->segment_first = header->first_record;
	p->segment_wall_ns = header->wall_ns;
	struct bc_writer_notice news = {
		.kind = BC_NOTICE_BEGUN,
		.segment = header->segment,
		.first_record = header->first_record,
		.wall_ns = header->wall_ns,
	};
	memcpy(news.file, file, sizeof(news.file));
	post(p, &news);
	return true;
}

bool bc_open_segment_open_raw(
	struct bc_open_segment *p, const struct bc_segment_header *header, enum bc_format form)
{
	struct bc_segment_name name = name_of(header);
	char file[BC_SEGMENT_NAME_MAX];

	bc_raw_name_write(file, &name, form);
	bc_thread_health_start(&p->stint, "beginning", file);
	int rc = bc_raw_create(&p->raw, p->dir_fd, file, header, form);
	if (rc == -ENOENT && reopen_dir(p))
		rc = bc_raw_create(&p->raw, p->dir_fd, file, header, form);
	if (rc != 0)
		return refuse_file(p, "can't begin a raw capture there", rc);
	p->report.bytes += p->raw.file.bytes;
	p->raw_first = header->first_record;
	p->raw_wall_ns = header->wall_ns;
	p->next_number = header->segment + 1;
	return true;
}

/* Durability */

bool bc_open_segment_has_unsynced(const struct bc_open_segment *p)
{
	return p->unsynced != 0 || p->raw.file.durable != p->raw.file.bytes;
}

void bc_open_segment_sync(struct bc_open_segment *p)
{
	if (p->unsynced != 0)
		sync_segment(p);
	if (p->raw.file.durable != p->raw.file.bytes)
		sync_raw(p);
}

void bc_open_segment_abandon(struct bc_open_segment *p)
{
	abandon_segment(p);
	abandon_raw(p);
}
