#include "daemon/main/startup_recovery.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log_limit.h"
#include "daemon/store/manifest.h"
#include "daemon/store/retention.h"
#include "formats/segment/recover.h"
#include "formats/segment/segment_index.h"

struct recovery {
	const char *dir;
	int dir_fd;
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

static void log_recovered(struct recovery *r, const char *name, const struct bc_recovered *result)
{
	if (!result->is_written) {
		bc_log_limited(&r->limits, BC_LOG_NOTICE,
			"%s/%s: left open by an earlier run; no whole chunk, deleted", r->dir,
			name);
		return;
	}
	if (result->damages == 0)
		bc_log_limited(&r->limits, BC_LOG_NOTICE,
			"%s/%s: left open by an earlier run; recovered all %" PRIu64 " records",
			r->dir, name, result->records);
	else
		bc_log_limited(&r->limits, BC_LOG_WARNING,
			"%s/%s: left open by an earlier run, torn; recovered %" PRIu64
			" records, lost %" PRIu64 " bytes after the last whole chunk",
			r->dir, name, result->records, result->damaged_bytes);
}

enum outcome {
	IS_RECOVERED,
	IS_REMOVED, /* it was empty, or a copy exists */
	IS_LEFT,    /* unchanged */
};

/* Counts the records in the whole chunks of a segment. Returns 0 or a negative errno. */
static int count_records(const struct recovery *r, int fd, uint64_t *records)
{
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	struct bc_segment_reader *reader = NULL;
	int found = -ENOMEM;

	*records = 0;
	if (chunk != NULL)
		found = bc_segment_reader_open(&reader,
			(struct bc_input_stream){.fd = fd, .wake_fd = -1, .progress = &r->progress},
			NULL, 0);
	if (found == 0) {
		while ((found = bc_segment_read(reader, chunk)) > BC_FOUND_END)
			*records += found == BC_FOUND_CHUNK ? chunk->info.records : 0;
		bc_segment_reader_close(reader);
	}
	free(chunk);
	return found;
}

/* A crash between sealing the copy and deleting the original leaves both. Returns whether the
 * sealed file has all records of the other one. */
static bool is_copied(const struct recovery *r, const char *from, const char *to)
{
	struct bc_segment_index index;
	uint64_t records;
	int from_fd = openat(r->dir_fd, from, O_RDONLY | O_CLOEXEC);
	int to_fd = openat(r->dir_fd, to, O_RDONLY | O_CLOEXEC);
	bool has_all = false;

	if (from_fd >= 0 && to_fd >= 0 && bc_segment_index_load(&index, to_fd) == 0) {
		has_all = count_records(r, from_fd, &records) == 0 && index.head.records >= records;
		bc_segment_index_free(&index);
	}
	if (from_fd >= 0)
		close(from_fd);
	if (to_fd >= 0)
		close(to_fd);
	return has_all;
}

static void add_to_manifest(
	struct recovery *r, const struct bc_segment_name *name, const char *file, const char *hash)
{
	int rc = hash[0] != '\0' ? bc_manifest_add(r->dir_fd, name->recording, file, hash) : -EIO;

	if (rc != 0)
		bc_log_limited(&r->limits, BC_LOG_WARNING,
			"%s/%s" BC_MANIFEST_SUFFIX ": can't add the hash of %s: %s", r->dir,
			name->recording, file, strerror(-rc));
}

/* Adds a copy sealed by an earlier run to the manifest if it is missing. */
static void add_copy(struct recovery *r, const struct bc_segment_name *name, const char *file)
{
	char hash[BC_FILE_HASH_CHARS] = "";

	if (bc_manifest_has(r->dir_fd, name->recording, file))
		return;
	int fd = openat(r->dir_fd, file, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && bc_file_hash_compute(hash, fd, &r->progress) != 0)
		hash[0] = '\0';
	if (fd >= 0)
		close(fd);
	add_to_manifest(r, name, file, hash);
}

static void log_left(struct recovery *r, const char *from, int rc)
{
	if (rc == -EEXIST)
		bc_log_limited(&r->limits, BC_LOG_ERROR,
			"%s/%s: a sealed segment with fewer records has the same name; compare "
			"them with buscap info and delete one",
			r->dir, from);
	else
		bc_log_limited(&r->limits, BC_LOG_ERROR,
			"%s/%s: left open by an earlier run; can't recover it now: %s", r->dir,
			from, strerror(-rc));
}

static enum outcome recover_segment(struct recovery *r, const struct bc_segment_name *partial)
{
	struct bc_segment_name sealed = *partial;
	struct bc_recovered recovered = {0};
	char from[BC_SEGMENT_NAME_MAX];
	char to[BC_SEGMENT_NAME_MAX];
	char half_done[BC_SEGMENT_NAME_MAX + sizeof(BC_RECOVER_SUFFIX)];

	sealed.is_partial = false;
	bc_segment_name_write(from, partial);
	memcpy(r->file, from, sizeof(from));
	on_file_progress(r);
	bc_segment_name_write(to, &sealed);
	snprintf(half_done, sizeof(half_done), "%s" BC_RECOVER_SUFFIX, to);
	/* An unfinished copy of `from`, left by a crash. */
	unlinkat(r->dir_fd, half_done, 0);

	int fd = openat(r->dir_fd, from, O_RDONLY | O_CLOEXEC);
	int rc = fd < 0 ? -errno
			: bc_recover(&recovered, fd, r->dir_fd, to, partial, BC_RECOVER_SALVAGE,
				  &r->progress);
	if (fd >= 0)
		close(fd);
	bool was_copied = rc == -EEXIST && is_copied(r, from, to);
	if (was_copied)
		rc = 0;
	if (rc == 0 && unlinkat(r->dir_fd, from, 0) != 0)
		rc = -errno;
	if (was_copied && rc == 0) {
		bc_log_limited(&r->limits, BC_LOG_NOTICE,
			"%s/%s: already recovered by an earlier run; deleted", r->dir, from);
		add_copy(r, &sealed, to);
		return IS_REMOVED;
	}
	if (rc != 0) {
		log_left(r, from, rc);
		return IS_LEFT;
	}
	log_recovered(r, to, &recovered);
	if (recovered.is_written)
		add_to_manifest(r, &sealed, to, recovered.hash);
	return recovered.is_written ? IS_RECOVERED : IS_REMOVED;
}

/* A raw capture is truncated after its last whole block; damage before that stays in it. */
static void recover_raw(struct recovery *r, const struct bc_segment_entry *partial)
{
	struct bc_segment_entry sealed = *partial;
	struct bc_raw_recovered found;
	char from[BC_SEGMENT_NAME_MAX];
	char to[BC_SEGMENT_NAME_MAX];

	sealed.name.is_partial = false;
	bc_segment_entry_name(from, partial);
	memcpy(r->file, from, sizeof(from));
	on_file_progress(r);
	bc_segment_entry_name(to, &sealed);
	int rc = bc_raw_recover(&found, r->dir_fd, from, to, &r->progress);
	if (rc == -EEXIST)
		bc_log_limited(&r->limits, BC_LOG_ERROR,
			"%s/%s: a sealed raw capture has the same name; compare them with buscap "
			"info and delete one",
			r->dir, from);
	else if (rc != 0)
		bc_log_limited(&r->limits, BC_LOG_ERROR,
			"%s/%s: left open by an earlier run; can't recover it now: %s", r->dir,
			from, strerror(-rc));
	else if (found.blocks == 0)
		bc_log_limited(&r->limits, BC_LOG_NOTICE,
			"%s/%s: left open by an earlier run; no whole block, deleted", r->dir,
			from);
	else
		bc_log_limited(&r->limits,
			found.cut_bytes + found.damages == 0 ? BC_LOG_NOTICE : BC_LOG_WARNING,
			"%s/%s: left open by an earlier run; recovered %" PRIu64
			" bytes in %" PRIu64 " blocks, lost %" PRIu64
			" bytes after the last whole block; damaged places: %" PRIu64,
			r->dir, to, found.bytes, found.blocks, found.cut_bytes, found.damages);
	if (rc == 0 && found.blocks != 0)
		add_to_manifest(r, &sealed.name, to, found.hash);
}

/* Recovery may take long: a stop signal leaves the remaining files for the next start. The signals
 * are blocked until the loop handles them. */
static bool is_stop_pending(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 &&
	       (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

int bc_startup_recover(const char *dir, int dir_fd, char newest[BC_RECORDING_ID_MAX],
	void (*on_progress)(void *context, const char *file), void *context)
{
	struct recovery r = {
		.dir = dir, .dir_fd = dir_fd, .on_progress = on_progress, .context = context};
	struct bc_segment_list list;
	int recovered = 0;
	int rc = bc_segments_list(&list, dir_fd);

	r.progress = (struct bc_progress_cb){.on_progress = on_file_progress, .context = &r};
	newest[0] = '\0';
	if (rc != 0)
		return rc;
	for (size_t i = 0; i < list.count; i++) {
		const struct bc_segment_name *name = &list.entries[i].name;
		if (list.entries[i].format != BC_FORMAT_SEGMENT) {
			if (name->is_partial && !is_stop_pending())
				recover_raw(&r, &list.entries[i]);
			continue;
		}
		enum outcome outcome = IS_LEFT;
		if (name->is_partial && !is_stop_pending())
			outcome = recover_segment(&r, name);
		recovered += outcome == IS_RECOVERED;
		if (outcome != IS_REMOVED)
			memcpy(newest, name->recording, BC_RECORDING_ID_MAX);
	}
	bc_log_limits_end(&r.limits);
	free(list.entries);
	fsync(dir_fd);
	return recovered;
}
