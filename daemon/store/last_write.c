/* What becomes of a recording's last chunk, by the state in struct bc_encoded:
 *
 *     CHUNK      the end is added to its events; if they leave no room, the chunk is written and
 *                then replaced with one that has only the end. After stop_bytes it is discarded, so
 *                only the end remains.
 *     END        it has the recording's end, or needs none, because the recording is empty
 *     WRITTEN    done
 *
 * In every state the recording may be given up (bc_writer_abandon()): then the chunk becomes one
 * without records, with a gap for everything given up, and the end unless it is written.
 *
 * Invariant: nothing is written twice; every sample given up is in a gap of the last segment or in
 * one line of the log; a recording without an end is completed by the next start. */
#include "daemon/store/last_write.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int bc_last_write_init(struct bc_last_write *l)
{
	l->note = malloc(sizeof(*l->note));
	return l->note == NULL ? -ENOMEM : 0;
}

void bc_last_write_destroy(struct bc_last_write *l)
{
	free(l->note);
}

void bc_last_write_start(struct bc_last_write *l)
{
	memset(&l->last, 0, sizeof(l->last));
	memset(&l->given_up, 0, sizeof(l->given_up));
}

bool bc_last_write_add_end(struct bc_last_write *l, struct bc_encoded *e)
{
	struct bc_chunk *note = l->note;
	size_t frame_bytes = e->bytes - e->header_bytes;

	if (!bc_chunk_header_read(note, e->data, e->header_bytes) ||
		!bc_recording_end_add(note, &e->recording->end))
		return false;
	note->info.event_bytes = note->info.events * BC_EVENT_BYTES + note->text_bytes;
	size_t header_bytes = bc_chunk_info_header_bytes(&note->info);
	memmove(e->data + header_bytes, e->data + e->header_bytes, frame_bytes);
	bc_chunk_header_write(e->data, note);
	e->header_bytes = header_bytes;
	e->bytes = header_bytes + frame_bytes;
	e->info = note->info;
	return true;
}

/* Starts a chunk without records after the last one written. */
static void start_note(struct bc_last_write *l, const struct bc_encoded *e)
{
	struct bc_chunk_info *info = &l->note->info;

	bc_chunk_reset(l->note, l->last.last_tick, l->last.epoch);
	info->recording_tag = e->recording->tag;
	info->first_record = l->last.first_record + l->last.records;
	info->wall_ns = e->info.wall_ns;
	info->totals = l->last.totals;
}

static void must_fit(bool is_added)
{
	assert(is_added && "a chunk without records has room for a gap of each cause and the end");
	(void)is_added;
}

/* Replaces a chunk with the note. */
static void encode_note(struct bc_last_write *l, struct bc_encoded *e)
{
	struct bc_compressor compressor = {.level = bc_segment_header_level(&e->recording->header)};

	bc_totals_add(&l->note->info.totals, l->note);
	e->loss = bc_chunk_loss(l->note);
	e->bytes = bc_chunk_encode(e->data, l->note, &compressor, &e->pages, &e->header_bytes);
	e->info = l->note->info;
	e->state = BC_ENCODED_END;
}

void bc_last_write_only_end(struct bc_last_write *l, struct bc_encoded *e)
{
	start_note(l, e);
	must_fit(bc_recording_end_add(l->note, &e->recording->end));
	encode_note(l, e);
	memset(&e->losses, 0, sizeof(e->losses)); /* they are written, or discarded */
}

bool bc_last_write_gaps(struct bc_last_write *l, struct bc_encoded *e, bool is_empty)
{
	bool has_end = e->state == BC_ENCODED_WRITTEN;

	uint64_t away_ns = l->given_up.away_ns; /* all in the first gap */

	start_note(l, e);
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		struct bc_event gap = {
			.kind = BC_EVENT_GAP,
			.cause = (uint8_t)cause,
			.exact = l->given_up.inexact[cause] == 0,
			.value = l->given_up.lost[cause],
			.duration_ns = away_ns,
		};
		if (l->given_up.gaps[cause] == 0)
			continue;
		must_fit(bc_chunk_add_event(l->note, &gap, NULL));
		away_ns = 0;
	}
	if (l->note->info.events == 0 && (has_end || is_empty))
		return false;
	if (!has_end)
		must_fit(bc_recording_end_add(l->note, &e->recording->end));
	encode_note(l, e);
	return true;
}

/* The reserve */

/* The record of a loss takes a few kilobytes: one segment with a chunk without records. */
#define LEAST_BYTES 16384u

/* Allocates as much as possible beyond the first `have` bytes. Returns 0 or a negative errno. */
static int extend(int fd, uint64_t have)
{
	int error = 0;

	for (uint64_t bytes = BC_RESERVE_BYTES; bytes >= LEAST_BYTES && bytes > have; bytes /= 2) {
		int rc = posix_fallocate(fd, 0, (off_t)bytes);
		if (rc == 0)
			break;
		error = error != 0 ? error : rc;
		/* A failed attempt may have allocated some. */
		if (ftruncate(fd, (off_t)have) != 0)
			break;
	}
	return -error;
}

int bc_reserve_fill(int dir_fd)
{
	struct stat st;
	int rc = -ENOSPC;

	if (fstatat(dir_fd, BC_RESERVE_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		(uint64_t)st.st_size >= BC_RESERVE_BYTES)
		return 0;
	int fd = openat(dir_fd, BC_RESERVE_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0)
		rc = extend(fd, (uint64_t)st.st_size);
	bool is_empty = fstat(fd, &st) == 0 && st.st_size == 0;
	close(fd);
	if (is_empty)
		unlinkat(dir_fd, BC_RESERVE_NAME, 0);
	return rc;
}

bool bc_reserve_release(int dir_fd)
{
	return unlinkat(dir_fd, BC_RESERVE_NAME, 0) == 0;
}
