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

/* What goes with each file. */
struct recovery {
	const char *dir;
	int dir_fd;
	const struct bc_startup_recovery_listener *listener;
	char file[BC_SEGMENT_NAME_MAX]; /* at which it is */
	struct bc_progress_cb progress;
	struct bc_log_limits limits;
};

static void on_progress(void *context)
{
	const struct recovery *r = context;

	r->listener->on_progress(r->listener->context, r->file);
}

static void report(struct recovery *p, const char *name, const struct bc_recovered *r)
{
	if (!r->is_written) {
		bc_log_limited(&p->limits, BC_LOG_NOTICE,
			"%s/%s: an earlier run left no whole chunk in it; removed", p->dir, name);
		return;
	}
	if (r->damages == 0)
		bc_log_limited(&p->limits, BC_LOG_NOTICE,
			"%s/%s: left open by an earlier run; recovered whole, %" PRIu64 " records",
			p->dir, name, r->records);
	else
		bc_log_limited(&p->limits, BC_LOG_WARNING,
			"%s/%s: torn by an earlier run's end; recovered %" PRIu64
			" records; %" PRIu64 " bytes in it were of no whole chunk, and are lost",
			p->dir, name, r->records, r->damaged_bytes);
}

enum outcome {
	IS_RECOVERED,
	IS_REMOVED, /* there was nothing in it */
	IS_LEFT,    /* as it is */
};

/* How many records the whole chunks of a segment hold. Returns 0 or a negative errno. */
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

/* A run that ended between the sealing of a copy and the removal of its original leaves both.
 * Returns whether the sealed one has all that the other has. */
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
			"%s/%s" BC_MANIFEST_SUFFIX ": the hash of %s can't be added: %s", r->dir,
			name->recording, file, strerror(-rc));
}

/* The run that sealed a copy may have ended before it was in the manifest. */
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

/* It can't be recovered now. */
static void tell_left(struct recovery *r, const char *from, int rc)
{
	if (rc == -EEXIST)
		bc_log_limited(&r->limits, BC_LOG_ERROR,
			"%s/%s: a sealed segment of its name is there, with fewer records; look at "
			"both with buscap info, and remove one",
			r->dir, from);
	else
		bc_log_limited(&r->limits, BC_LOG_ERROR,
			"%s/%s: an earlier run left it open, and it can't be recovered now: %s; it "
			"stays as it is",
			r->dir, from, strerror(-rc));
}

static enum outcome recover(struct recovery *r, const struct bc_segment_name *partial)
{
	struct bc_segment_name sealed = *partial;
	struct bc_recovered recovered = {0};
	char from[BC_SEGMENT_NAME_MAX];
	char to[BC_SEGMENT_NAME_MAX];
	char half_done[BC_SEGMENT_NAME_MAX + sizeof(BC_RECOVER_SUFFIX)];

	sealed.is_partial = false;
	bc_segment_name_write(from, partial);
	memcpy(r->file, from, sizeof(from));
	on_progress(r);
	bc_segment_name_write(to, &sealed);
	snprintf(half_done, sizeof(half_done), "%s" BC_RECOVER_SUFFIX, to);
	/* A copy that was not finished; its original is `from`. */
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
			"%s/%s: recovered by an earlier run, and sealed; removed", r->dir, from);
		add_copy(r, &sealed, to);
		return IS_REMOVED;
	}
	if (rc != 0) {
		tell_left(r, from, rc);
		return IS_LEFT;
	}
	report(r, to, &recovered);
	if (recovered.is_written)
		add_to_manifest(r, &sealed, to, recovered.hash);
	return recovered.is_written ? IS_RECOVERED : IS_REMOVED;
}

/* A raw capture loses what is not whole at its end, and is otherwise as it was. */
static void recover_raw(struct recovery *r, const struct bc_segment_entry *partial)
{
	struct bc_segment_entry sealed = *partial;
	struct bc_raw_recovered found;
	char from[BC_SEGMENT_NAME_MAX];
	char to[BC_SEGMENT_NAME_MAX];

	sealed.name.is_partial = false;
	bc_segment_entry_name(from, partial);
	memcpy(r->file, from, sizeof(from));
	on_progress(r);
	bc_segment_entry_name(to, &sealed);
	int rc = bc_raw_recover(&found, r->dir_fd, from, to, &r->progress);
	if (rc == -EEXIST)
		bc_log_limited(&r->limits, BC_LOG_ERROR,
			"%s/%s: a sealed raw capture of its name is there; look at both with "
			"buscap info, and remove one",
			r->dir, from);
	else if (rc != 0)
		bc_log_limited(&r->limits, BC_LOG_ERROR,
			"%s/%s: an earlier run left it open, and it can't be made whole now: %s; "
			"it stays as it is",
			r->dir, from, strerror(-rc));
	else if (found.blocks == 0)
		bc_log_limited(&r->limits, BC_LOG_NOTICE,
			"%s/%s: an earlier run left no whole block in it; removed", r->dir, from);
	else
		bc_log_limited(&r->limits,
			found.cut_bytes + found.damages == 0 ? BC_LOG_NOTICE : BC_LOG_WARNING,
			"%s/%s: left open by an earlier run; kept %" PRIu64 " bytes of the stream "
			"in %" PRIu64 " blocks, cut off %" PRIu64
			" bytes of no whole block; places damaged before: %" PRIu64,
			r->dir, to, found.bytes, found.blocks, found.cut_bytes, found.damages);
	if (rc == 0 && found.blocks != 0)
		add_to_manifest(r, &sealed.name, to, found.hash);
}

/* Recovering takes a while; whoever wants the daemon to end meanwhile finds the rest as it was. The
 * signals are blocked, and the loop takes them later. */
static bool is_reported_to_stop(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 &&
	       (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

int bc_startup_recover(const char *dir, int dir_fd, char newest[BC_RECORDING_ID_MAX],
	const struct bc_startup_recovery_listener *listener)
{
	struct recovery r = {.dir = dir, .dir_fd = dir_fd, .listener = listener};
	struct bc_segment_list list;
	int recovered = 0;
	int rc = bc_segments_list(&list, dir_fd);

	r.progress = (struct bc_progress_cb){.on_progress = on_progress, .context = &r};
	newest[0] = '\0';
	if (rc != 0)
		return rc;
	for (size_t i = 0; i < list.count; i++) {
		const struct bc_segment_name *name = &list.entries[i].name;
		if (list.entries[i].format != BC_FORMAT_SEGMENT) {
			if (name->is_partial && !is_reported_to_stop())
				recover_raw(&r, &list.entries[i]);
			continue;
		}
		enum outcome outcome = IS_LEFT;
		if (name->is_partial && !is_reported_to_stop())
			outcome = recover(&r, name);
		recovered += outcome == IS_RECOVERED;
		if (outcome != IS_REMOVED)
			memcpy(newest, name->recording, BC_RECORDING_ID_MAX);
	}
	bc_log_limits_end(&r.limits);
	free(list.entries);
	fsync(dir_fd);
	return recovered;
}
