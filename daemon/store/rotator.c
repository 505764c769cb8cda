/* Writes chunks to the open segment. Each chunk needs space by the rules (enforce_space()), and
 * room in the segment below the limit of its length; without room the segment is sealed, and the
 * chunk is the first of the next one. Each step may fail for now, on a full disk. It then returns
 * false and has marked the open segment as stuck; the caller repeats the whole call at
 * open.retry_at_ns.
 *
 * Invariant: bc_encoded.state says what is done of a chunk, so repeating a call writes nothing
 * twice. The last chunk of a recording: daemon/store/last_write.c.
 *
 * A check of the rules tells how many bytes may be written before one can break (space_left).
 * Writes are counted against it, and the rules are checked again when they exceed it, and once a
 * second. At the start, the catalogue gets a moment, so that in a directory that is not large the
 * rules apply to the first chunk. A large one takes too long: the buffer is for the disk. */
#include "daemon/store/rotator.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "formats/base/clock.h"

#define CHECK_NS UINT64_C(1000000000)

/* More than the chunk that recovery adds: gaps and the end. */
#define NOTE_BYTES 1024u

#define PATIENCE_NS UINT64_C(250000000) /* for the catalogue */

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

/* What is about to be written. */
struct coming {
	uint64_t bytes;
	uint64_t segments; /* to be created */
};

static void check_space(
	struct bc_rotator *r, struct bc_retention_state *state, const struct coming *coming)
{
	const struct bc_retention_check check = {
		.catalogue = r->open.catalogue,
		.dir_fd = r->open.dir_fd,
		.rules = &r->rules.space,
		.files = r->rules.rotation.files,
		.coming_bytes = coming->bytes,
		.coming_files = coming->segments,
		.recording = r->open.recording != NULL ? r->open.recording->header.recording : NULL,
		.wall_ns = bc_wall_ns(),
		.boot_ns = bc_boot_ns(),
		.written_bytes = r->open.stats.bytes,
		.limits = &r->open.limits,
		.health = &r->open.health,
	};

	bc_thread_health_start(&r->open.health, "checking the space in", ".");
	r->space_checked_at = r->open.stats.bytes;
	bc_open_segment_look(&r->open);
	bc_retention_enforce(&r->retention, state, &check);
	if (strcmp(state->error, r->space_error) != 0 && state->error[0] != '\0')
		bc_log_limited(&r->open.limits, BC_LOG_ERROR, "%s/%s; retrying every second",
			r->open.dir, state->error);
	memcpy(r->space_error, state->error, sizeof(r->space_error));
	r->space_left = state->is_waiting ? UINT64_MAX
			: state->is_over  ? 0
					  : space_left_of(&r->rules.space, state);
	if (state->deleted != 0)
		bc_open_segment_forget_deleted(&r->open);
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
		(void)bc_catalogue_wait(r->open.catalogue, PATIENCE_NS);
	r->has_waited = true;
	check_space(r, &state, &coming);
	if (state.is_over && r->open.segment.chunks != 0) {
		/* Only the open segment is left. Once sealed, it can be deleted. */
		if (!bc_open_segment_cut(&r->open))
			return false;
		coming.segments = 1;
		check_space(r, &state, &coming);
	}
	r->open.stats.is_free_unknown = state.is_free_unknown;
	r->open.stats.free_bytes = state.free_bytes;
	r->open.stats.has_no_inodes = state.free_files == 0;
	r->open.stats.used_bytes = state.used_bytes;
	r->open.stats.segments = state.segments;
	if (state.is_over)
		return bc_open_segment_mark_stuck(
			&r->open, r->open.stats.file, "no space", state.err);
	return true;
}

/* Applies the space rules if appending this much might break one. Returns false if it may not be
 * written now. */
static bool has_space_for(struct bc_rotator *r, uint64_t coming_bytes)
{
	uint64_t written = r->open.stats.bytes - r->space_checked_at;

	return r->space_left == UINT64_MAX || written + coming_bytes <= r->space_left ||
	       enforce_space(r, (struct coming){.bytes = coming_bytes});
}

/* Returns what a chunk adds to its segment, including the end of the file. */
static uint64_t coming_bytes_of(const struct bc_rotator *r, const struct bc_encoded *e)
{
	return e->bytes + bc_segment_end_bytes(&r->open.segment, 1);
}

/* Writing */

static struct bc_segment_header header_of(const struct bc_rotator *r, const struct bc_encoded *e)
{
	struct bc_segment_header header;

	bc_recording_info_header(e->recording, &header);
	header.segment = bc_open_segment_number(&r->open);
	header.wall_ns = e->info.wall_ns;
	header.first_tick = e->info.first_tick;
	header.first_epoch = e->info.epoch;
	header.first_record = e->info.first_record;
	return header;
}

static bool create_segment(struct bc_rotator *r, const struct bc_encoded *e)
{
	if (!enforce_space(r, (struct coming){coming_bytes_of(r, e), 1}))
		return false;
	struct bc_segment_header header = header_of(r, e);
	if (!bc_open_segment_create(&r->open, &header))
		return false;
	r->sync_at_ns = bc_now_ns() + r->rules.sync_ns;
	bc_log(BC_LOG_DEBUG, "%s: created, first record %" PRIu64, r->open.stats.file,
		e->info.first_record);
	return true;
}

/* Returns whether the chunk fits below the limit of the segment's length, with the segment's end or
 * what recovery adds. */
static bool segment_has_room(const struct bc_rotator *r, const struct bc_encoded *e)
{
	const struct bc_segment_writer *segment = &r->open.segment;
	uint64_t end_bytes = NOTE_BYTES + bc_segment_end_bytes(segment, 2);

	return segment->file.bytes + e->bytes + end_bytes <= segment->file.max_bytes;
}

/* Ends the open segment if it has no room for the chunk. Returns false to be called again. */
static bool make_room(struct bc_rotator *r, const struct bc_encoded *e)
{
	return r->open.segment.chunks == 0 || segment_has_room(r, e) ||
	       bc_open_segment_cut(&r->open);
}

/* Appends a chunk to the open segment and counts it. Returns 0 or a negative errno. */
static int append_to_segment(struct bc_rotator *r, struct bc_encoded *e)
{
	if (!segment_has_room(r, e))
		return -EFBIG;
	int rc = bc_segment_append(&r->open.segment, e->data, e->header_bytes, &e->info, e->gaps,
		e->lost, &e->pages.counts);
	if (rc != 0)
		return rc;
	bc_log(BC_LOG_DEBUG, "%s: chunk %" PRIu32 ", %" PRIu32 " records, %zu bytes",
		r->open.stats.file, r->open.segment.chunks - 1, e->info.records, e->bytes);
	e->state = BC_ENCODED_WRITTEN;
	r->open.unsynced += e->info.records;
	r->last_write.last = e->info;
	r->open.stats.written += e->info.records;
	r->open.stats.recording_records += e->info.records;
	r->open.stats.bytes += e->bytes;
	r->open.stats.recording_bytes += e->bytes;
	return 0;
}

/* Appends a chunk to the open segment or a new one. Returns false to be called again. */
static bool append_chunk(struct bc_rotator *r, struct bc_encoded *e)
{
	if (r->open.segment.file.fd >= 0 && !has_space_for(r, coming_bytes_of(r, e)))
		return false;
	if (r->open.segment.file.fd < 0 && !create_segment(r, e))
		return false;
	bc_thread_health_start(&r->open.health, "writing to", r->open.segment.file.open_name);
	int rc = append_to_segment(r, e);
	if ((rc == -EFBIG || rc == -ENOMEM) && r->open.segment.chunks != 0)
		return bc_open_segment_cut(&r->open) && append_chunk(r, e);
	if (rc != 0) {
		bc_open_segment_mark_stuck(
			&r->open, r->open.stats.file, "can't write", strerror(-rc));
		if (!bc_is_out_of_space(-rc))
			bc_open_segment_abandon_file(&r->open); /* retry in a new one */
		return false;
	}
	bc_open_segment_clear_stuck(&r->open);
	r->open.stats.is_full = e->recording->stop_bytes != 0 &&
				r->open.stats.recording_bytes >= e->recording->stop_bytes;
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
	return e->bytes != 0 || r->open.segment.file.fd >= 0 || r->open.total.segments != 0 ||
	       r->open.total.left_open != 0;
}

/* Discards a chunk after stop_bytes, but not the recording's end. */
static void discard_chunk(struct bc_rotator *r, struct bc_encoded *e)
{
	r->open.stats.unrecorded += e->info.records;
	bc_losses_add(&r->open.total.discarded, &e->losses);
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
	if (e->state == BC_ENCODED_CHUNK && r->open.stats.is_full)
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
	return (limit != 0 && r->open.segment.file.bytes >= limit) ||
	       r->open.segment.chunks == BC_SEGMENT_CHUNKS;
}

/* Losses */

/* Tries once to append the gaps to the open segment, or to a new one. The space rules are not
 * applied: the record of a loss is small. */
static int try_write_given_up(struct bc_rotator *r, struct bc_encoded *e)
{
	struct bc_open_segment *open = &r->open;

	bc_open_segment_check_deleted(open); /* the gaps would be lost with it */
	if (!make_room(r, e))
		return -ENOSPC;
	if (open->segment.file.fd < 0) {
		struct bc_segment_header header = header_of(r, e);
		int rc = bc_open_segment_create_last(open, &header);
		if (rc != 0)
			return rc;
	}
	bc_thread_health_start(&open->health, "writing to", open->segment.file.open_name);
	int rc = append_to_segment(r, e);
	if (rc != 0 && !bc_is_out_of_space(-rc))
		bc_open_segment_abandon_file(open);
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
		if (bc_is_out_of_space(-rc) && !bc_reserve_release(r->open.dir_fd))
			break;
	}
	if (e->gaps == 0)
		return; /* recovery adds the end if it is missing */
	if (rc == 0)
		bc_log(BC_LOG_WARNING,
			"%s/%s: ends with a gap: %" PRIu64 " samples could not be written",
			r->open.dir, r->open.stats.file, e->lost);
	else
		bc_log(BC_LOG_ERROR,
			"%s: %" PRIu64 " samples could not be written, and no file reports the "
			"loss",
			e->recording->header.recording, e->lost);
}

/* Seals the segment, in the space of the reserve if necessary, or closes it unsealed. */
static void end_given_up(struct bc_rotator *r)
{
	if (bc_open_segment_cut(&r->open) ||
		(bc_reserve_release(r->open.dir_fd) && bc_open_segment_cut(&r->open)))
		return;
	bc_open_segment_abandon(&r->open);
}

void bc_rotator_give_up(struct bc_rotator *r, struct bc_encoded *e)
{
	if (e->state != BC_ENCODED_WRITTEN) {
		r->open.stats.abandoned += e->info.records;
		r->open.total.abandoned += e->info.records;
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

/* Logs once if there is no space for the reserve. Other errors also make the writer stuck, which is
 * logged there. */
static void fill_reserve(struct bc_rotator *r)
{
	bc_thread_health_start(&r->open.health, "allocating", BC_RESERVE_NAME);
	int rc = bc_reserve_fill(r->open.dir_fd);
	bool is_full = bc_is_out_of_space(-rc);

	if (is_full && !r->has_no_reserve)
		bc_log(BC_LOG_WARNING,
			"%s/%s: can't reserve %u kB: %s; a loss may not be in the files if the "
			"disk is still full at the end",
			r->open.dir, BC_RESERVE_NAME, (unsigned)(BC_RESERVE_BYTES / 1024),
			strerror(-rc));
	r->has_no_reserve = is_full;
}

uint64_t bc_rotator_due_ns(const struct bc_rotator *r)
{
	return bc_open_segment_has_unsynced(&r->open) && r->sync_at_ns < r->check_at_ns
		       ? r->sync_at_ns
		       : r->check_at_ns;
}

void bc_rotator_maintain(struct bc_rotator *r, bool has_waiting)
{
	uint64_t now = bc_now_ns();

	if (bc_open_segment_has_unsynced(&r->open) && now >= r->sync_at_ns) {
		r->sync_at_ns = now + r->rules.sync_ns;
		bc_open_segment_sync(&r->open);
	}
	bc_log_limits_poll(&r->open.limits, now);
	if (now < r->check_at_ns)
		return;
	bc_thread_health_start(&r->open.health, "checking the files in", ".");
	bc_open_segment_check_deleted(&r->open);
	if (!r->open.stats.is_stuck)
		fill_reserve(r);
	bc_open_segment_check_dir(&r->open);
	if (enforce_space(r, (struct coming){0}) && !has_waiting)
		bc_open_segment_clear_stuck(&r->open);
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
	bc_thread_health_init(&r->open.health);
	r->open.dir = dir;
	r->open.dir_fd = dir_fd;
	r->open.catalogue = catalogue;
	r->rules = *rules;
	r->open.segment.file.fd = -1;
	return 0;
}

void bc_rotator_start(struct bc_rotator *r, const struct bc_recording_info *recording)
{
	bc_open_segment_start(&r->open, recording);
	bc_last_write_start(&r->last_write);
}

void bc_rotator_close(struct bc_rotator *r)
{
	bc_open_segment_sync(&r->open);
	bc_open_segment_abandon(&r->open);
	bc_reserve_release(r->open.dir_fd);
	bc_log_limits_end(&r->open.limits);
}

void bc_rotator_destroy(struct bc_rotator *r)
{
	if (r->open.owns_dir_fd)
		close(r->open.dir_fd);
	bc_writer_notices_free(r->open.notices);
	bc_open_segment_destroy(&r->open);
	bc_thread_health_destroy(&r->open.health);
	bc_last_write_destroy(&r->last_write);
}
