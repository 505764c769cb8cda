#include "daemon/store/rotator.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/store/reserve.h"
#include "formats/base/clock.h"

#define CHECK_NS UINT64_C(1000000000)

/* More than a chunk that has only the gaps and the end that recovery adds. */
#define NOTE_BYTES 1024u

/* Space
 *
 * A check of the rules gives the bytes that may be written before one can break (space_left);
 * writes are counted against it, and the rules are checked again when they exceed it, and once a
 * second.
 *
 * At the start, the catalogue gets a moment: then the rules of a directory that is not large apply
 * to the first chunk. A large one takes too long: the buffer is for the disk. */

#define PATIENCE_NS UINT64_C(250000000)

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

/* What a chunk adds to its segment, including the end of the file. */
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

static bool open_segment(struct bc_rotator *r, const struct bc_encoded *e)
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

/* Whether the open segment has room for the chunk below the limit of its length, then for its end,
 * or for what recovery adds. */
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
	e->is_written = true;
	r->open.unsynced += e->info.records;
	r->last = e->info;
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
	if (r->open.segment.file.fd < 0 && !open_segment(r, e))
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

bool bc_rotator_write(struct bc_rotator *r, struct bc_encoded *e)
{
	return e->bytes == 0 || e->is_written || (make_room(r, e) && append_chunk(r, e));
}

/* Returns whether the recording has a chunk. */
static bool has_content(const struct bc_rotator *r, const struct bc_encoded *e)
{
	return e->bytes != 0 || r->open.segment.file.fd >= 0 || r->open.total.segments != 0 ||
	       r->open.total.left_open != 0;
}

/* Adds the end to an encoded chunk. Returns false if there is no room. */
static bool insert_end(struct bc_rotator *r, struct bc_encoded *e)
{
	struct bc_chunk *note = r->note;
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

/* Starts a chunk without records after those written. */
static struct bc_chunk *start_note(struct bc_rotator *r, const struct bc_encoded *e)
{
	struct bc_chunk *note = r->note;

	bc_chunk_reset(note, r->last.last_tick, r->last.epoch);
	note->info.recording_tag = e->recording->tag;
	note->info.first_record = r->last.first_record + r->last.records;
	note->info.wall_ns = e->info.wall_ns;
	memcpy(note->info.lost, r->last.lost, sizeof(note->info.lost));
	return note;
}

/* Replaces a chunk by one without records. */
static void encode_note(struct bc_chunk *note, struct bc_encoded *e)
{
	bc_chunk_add_lost(note, note->info.lost);
	bc_chunk_gaps(note, &e->gaps, &e->lost);
	e->bytes = bc_chunk_encode(e->data, note, BC_LEVEL_DEFAULT, &e->pages, &e->header_bytes);
	e->info = note->info;
	e->is_written = false;
}

/* Replaces a chunk by one that only has the end. */
static void replace_by_end(struct bc_rotator *r, struct bc_encoded *e)
{
	struct bc_chunk *note = start_note(r, e);

	if (!bc_recording_end_add(note, &e->recording->end))
		assert(false && "an empty chunk has room for it");
	encode_note(note, e);
	memset(&e->losses, 0, sizeof(e->losses)); /* they are written, or discarded */
}

bool bc_rotator_write_last(struct bc_rotator *r, struct bc_encoded *e, bool discards)
{
	if (!e->has_end && discards) {
		e->has_end = true;
		replace_by_end(r, e);
	} else if (!e->has_end && (!has_content(r, e) || (e->bytes != 0 && insert_end(r, e)))) {
		e->has_end = true;
	} else if (!e->has_end) {
		if (!bc_rotator_write(r, e))
			return false;
		e->has_end = true;
		replace_by_end(r, e);
	}
	return bc_rotator_write(r, e);
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

/* Adds a gap for each cause of a loss. */
static void add_given_up(struct bc_chunk *note, const struct bc_losses *given_up)
{
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		struct bc_event gap = {
			.kind = BC_EVENT_GAP,
			.cause = (uint8_t)cause,
			.exact = given_up->inexact[cause] == 0,
			.value = given_up->lost[cause],
		};
		if (given_up->gaps[cause] == 0)
			continue;
		if (!bc_chunk_add_event(note, &gap, NULL))
			assert(false && "an empty chunk holds an event of each cause");
	}
}

/* Turns the recording's last chunk into one with gaps for everything given up, and the end unless
 * it is written. Returns false if there is neither. */
static bool encode_given_up(struct bc_rotator *r, struct bc_encoded *e)
{
	bool has_end = e->has_end && e->is_written;
	bool is_empty = !has_content(r, e);
	struct bc_chunk *note = start_note(r, e);

	add_given_up(note, &r->given_up);
	if (note->info.events == 0 && (has_end || is_empty))
		return false;
	if (!has_end && !bc_recording_end_add(note, &e->recording->end))
		assert(false && "it has room for the end, too");
	encode_note(note, e);
	return true;
}

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

	if (!encode_given_up(r, e))
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

/* Seals the segment, if need be in the space of the reserve, or closes it. */
static void end_given_up(struct bc_rotator *r)
{
	if (bc_open_segment_cut(&r->open) ||
		(bc_reserve_release(r->open.dir_fd) && bc_open_segment_cut(&r->open)))
		return;
	bc_open_segment_abandon(&r->open);
}

void bc_rotator_give_up(struct bc_rotator *r, struct bc_encoded *e)
{
	if (!e->is_written) {
		r->open.stats.abandoned += e->info.records;
		r->open.total.abandoned += e->info.records;
		bc_losses_add(&r->given_up, &e->losses);
		r->given_up.gaps[BC_GAP_DISK] += e->info.records != 0;
		r->given_up.lost[BC_GAP_DISK] += e->info.records;
	}
	if (!e->is_last)
		return;
	write_given_up(r, e);
	end_given_up(r);
}

/* Housekeeping */

static void sync_open(struct bc_rotator *r)
{
	r->sync_at_ns = bc_now_ns() + r->rules.sync_ns;
	bc_open_segment_sync(&r->open);
}

/* Logs once if there is no space for the reserve. Other errors make the writer stuck, too. */
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

	if (bc_open_segment_has_unsynced(&r->open) && now >= r->sync_at_ns)
		sync_open(r);
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
	r->note = malloc(sizeof(*r->note));
	if (r->note == NULL)
		return -ENOMEM;
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
	memset(&r->last, 0, sizeof(r->last));
	memset(&r->given_up, 0, sizeof(r->given_up));
}

void bc_rotator_close(struct bc_rotator *r)
{
	if (bc_open_segment_has_unsynced(&r->open))
		sync_open(r);
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
	free(r->note);
}
