#include "daemon/store/rotator.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/store/retention.h"

#define LOOK_NS UINT64_C(1000000000)

/* With max_use and no filesize rule a segment is an eighth of it, so that there is something to
 * delete. */
#define FILE_FRACTION 8

/* Room */

static uint64_t room_in(
	const struct bc_retention_rules *rules, const struct bc_retention_state *state)
{
	uint64_t room = UINT64_MAX;

	if (rules->max_use_bytes != 0)
		room = rules->max_use_bytes - state->used_bytes;
	if (rules->keep_free_bytes != 0 && state->free_bytes - rules->keep_free_bytes < room)
		room = state->free_bytes - rules->keep_free_bytes;
	return room;
}

static int look(struct bc_rotator *f, struct bc_retention_state *state, uint64_t coming_bytes,
	uint64_t coming_files, uint64_t files)
{
	bc_thread_health_start(&f->pair.stint, "looking through", ".");
	f->room_written = f->pair.report.bytes;
	f->room_bytes = UINT64_MAX;
	int rc = bc_retention_enforce(state, f->pair.dir_fd, &f->rules.space, files, coming_bytes,
		coming_files, &f->pair.stint);
	if (rc != 0)
		return rc;
	if (strcmp(state->error, f->space_error) != 0 && state->error[0] != '\0')
		bc_log_limited(&f->pair.limits, BC_LOG_ERROR,
			"%s/%s; it is tried again once a second", f->pair.dir, state->error);
	memcpy(f->space_error, state->error, sizeof(f->space_error));
	if (!state->is_over)
		f->room_bytes = room_in(&f->rules.space, state);
	if (state->deleted != 0)
		bc_open_segment_forget_deleted(&f->pair);
	return 0;
}

/* Keeps to the space rules. Returns false when nothing may be written now. */
static bool enforce_space(struct bc_rotator *f, uint64_t coming_bytes, uint64_t coming_files)
{
	struct bc_retention_state state;
	uint64_t files = coming_files != 0 ? f->rules.rotation.files : 0;

	f->look_at_ns = bc_now_ns() + LOOK_NS;
	if (look(f, &state, coming_bytes, coming_files, files) != 0)
		return true; /* the write itself will say what is wrong */
	if (state.is_over && (f->pair.segment.chunks != 0 || f->pair.raw.chunks != 0)) {
		/* The open files are all that is left: sealed, they may be deleted. */
		if (!bc_open_segment_cut(&f->pair))
			return false;
		if (look(f, &state, coming_bytes, 1, files) != 0)
			return true;
	}
	f->pair.report.free_bytes = state.free_bytes;
	if (state.is_over)
		return bc_open_segment_mark_stuck(
			&f->pair, f->pair.report.file, "no room", state.err);
	return true;
}

/* Looks at the space again before something is appended that might break a rule. */
static bool make_room(struct bc_rotator *f, uint64_t coming_bytes)
{
	uint64_t written = f->pair.report.bytes - f->room_written;

	return f->room_bytes == UINT64_MAX || written + coming_bytes <= f->room_bytes ||
	       enforce_space(f, coming_bytes, 0);
}

/* What a chunk adds to its segment, with the index that the segment then has. */
static uint64_t coming_bytes_of(const struct bc_rotator *f, const struct bc_encoded *e)
{
	return e->bytes +
	       bc_index_bytes(f->pair.segment.file.fd >= 0 ? f->pair.segment.chunks + 1 : 1);
}

/* Writing */

static struct bc_segment_header header_of(const struct bc_rotator *f, const struct bc_encoded *e)
{
	struct bc_segment_header header;

	bc_recording_info_header(e->recording, &header);
	header.segment = bc_open_segment_number(&f->pair);
	header.wall_ns = e->info.wall_ns;
	header.first_tick = e->info.first_tick;
	header.first_epoch = e->info.epoch;
	header.first_record = e->info.first_record;
	return header;
}

static bool open_segment(struct bc_rotator *f, const struct bc_encoded *e)
{
	if (!enforce_space(f, coming_bytes_of(f, e), 1))
		return false;
	struct bc_segment_header header = header_of(f, e);
	if (!bc_open_segment_open_segment(&f->pair, &header))
		return false;
	f->sync_at_ns = bc_now_ns() + f->rules.sync_ns;
	bc_log(BC_LOG_DEBUG, "%s: begun with record %" PRIu64, f->pair.report.file,
		e->info.first_record);
	return true;
}

static bool open_raw(struct bc_rotator *f, const struct bc_encoded *e)
{
	if (!enforce_space(f, e->raw_bytes, 0))
		return false;
	struct bc_segment_header header = header_of(f, e);
	if (!bc_open_segment_open_raw(&f->pair, &header, e->raw_form))
		return false;
	if (!bc_open_segment_has_unsynced(&f->pair))
		f->sync_at_ns = bc_now_ns() + f->rules.sync_ns;
	return true;
}

/* Puts a chunk into the open segment, or a new one. Returns false when that must be tried again. */
static bool append(struct bc_rotator *f, struct bc_encoded *e)
{
	if (f->pair.segment.file.fd >= 0 && !make_room(f, coming_bytes_of(f, e)))
		return false;
	if (f->pair.segment.file.fd < 0 && !open_segment(f, e))
		return false;
	bc_thread_health_start(&f->pair.stint, "writing to", f->pair.segment.file.open_name);
	int rc = bc_segment_append(
		&f->pair.segment, e->data, e->header_bytes, &e->info, e->gaps, e->lost);
	if ((rc == -EFBIG || rc == -ENOMEM) && f->pair.segment.chunks != 0)
		return bc_open_segment_cut(&f->pair) && append(f, e);
	if (rc != 0) {
		bc_open_segment_mark_stuck(
			&f->pair, f->pair.report.file, "can't write to it", strerror(-rc));
		if (!bc_is_out_of_space(-rc))
			bc_open_segment_abandon_segment(
				&f->pair); /* the next try is in a new one */
		return false;
	}
	bc_open_segment_clear_stuck(&f->pair);
	bc_log(BC_LOG_DEBUG, "%s: chunk %" PRIu32 ", %" PRIu32 " records, %zu bytes",
		f->pair.report.file, f->pair.segment.chunks - 1, e->info.records, e->bytes);
	e->is_written = true;
	f->pair.unsynced += e->info.records;
	f->next_record = e->info.first_record + e->info.records;
	f->pair.report.written += e->info.records;
	f->pair.report.recording_records += e->info.records;
	f->pair.report.bytes += e->bytes;
	f->pair.report.recording_bytes += e->bytes;
	f->pair.report.is_full = e->recording->stop_bytes != 0 &&
				 f->pair.report.recording_bytes >= e->recording->stop_bytes;
	return true;
}

/* The same for a raw block. */
static bool append_raw(struct bc_rotator *f, struct bc_encoded *e)
{
	if (f->pair.raw.file.fd >= 0 && !make_room(f, e->raw_bytes))
		return false;
	if (f->pair.raw.file.fd < 0 && !open_raw(f, e))
		return false;
	bc_thread_health_start(&f->pair.stint, "writing to", f->pair.raw.file.open_name);
	int rc = bc_raw_append(&f->pair.raw, e->raw, e->raw_bytes);
	if (rc != 0) {
		bc_open_segment_mark_stuck(
			&f->pair, f->pair.raw.file.name, "can't write to it", strerror(-rc));
		if (!bc_is_out_of_space(-rc))
			bc_open_segment_abandon_raw(&f->pair);
		return false;
	}
	bc_open_segment_clear_stuck(&f->pair);
	e->is_raw_written = true;
	f->pair.report.bytes += e->raw_bytes;
	return true;
}

/* The raw block first: its bytes are where the chunk's records come from. */
bool bc_rotator_write(struct bc_rotator *f, struct bc_encoded *e)
{
	if (f->pair.must_cut && !bc_open_segment_cut(&f->pair))
		return false;
	if (e->raw_bytes != 0 && !e->is_raw_written && !append_raw(f, e))
		return false;
	return e->bytes == 0 || e->is_written || append(f, e);
}

bool bc_rotator_are_full(const struct bc_rotator *f)
{
	uint64_t limit = f->rules.rotation.file_bytes;

	if (limit == 0)
		limit = f->rules.space.max_use_bytes / FILE_FRACTION;
	return (limit != 0 &&
		       (f->pair.segment.file.bytes >= limit || f->pair.raw.file.bytes >= limit)) ||
	       f->pair.segment.chunks == BC_SEGMENT_CHUNKS;
}

/* A gap for each cause. Returns how many, and what they say is lost. */
static uint64_t add_given_up(
	struct bc_chunk *note, const struct bc_losses *given_up, uint64_t *lost)
{
	uint64_t gaps = 0;

	*lost = 0;
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		struct bc_event gap = {
			.kind = BC_EVENT_GAP,
			.cause = (uint8_t)cause,
			.exact = !given_up->inexact[cause],
			.value = given_up->lost[cause],
		};
		if (given_up->gaps[cause] == 0)
			continue;
		if (!bc_chunk_add_event(note, &gap, NULL))
			assert(!"an empty chunk has room for an event of each cause");
		gaps++;
		*lost += gap.value;
	}
	return gaps;
}

/* Ends what is open with gaps for what was given up, if the disk takes that much. `e` is the
 * recording's last chunk, and its bytes aren't wanted any more. */
static void note_given_up(struct bc_rotator *f, struct bc_encoded *e)
{
	struct bc_chunk *note = f->note;
	size_t header_bytes;
	uint64_t lost;

	if (f->pair.segment.file.fd < 0 || f->pair.segment.chunks == 0)
		return;
	bc_chunk_reset(note, e->info.last_tick, e->info.epoch);
	note->info.recording_tag = e->recording->tag;
	note->info.first_record = f->next_record;
	note->info.wall_ns = e->info.wall_ns;
	uint64_t gaps = add_given_up(note, &f->given_up, &lost);
	if (gaps == 0)
		return;
	bc_chunk_encode(e->data, note, &header_bytes);
	bc_thread_health_start(&f->pair.stint, "writing to", f->pair.segment.file.open_name);
	int rc = bc_segment_append(
		&f->pair.segment, e->data, header_bytes, &note->info, gaps, lost);
	if (rc != 0)
		bc_log(BC_LOG_ERROR,
			"%s/%s: the gap at its end can't be written: %s; what was lost there is "
			"counted, and not on record",
			f->pair.dir, f->pair.report.file, strerror(-rc));
}

void bc_rotator_give_up(struct bc_rotator *f, struct bc_encoded *e)
{
	if (!e->is_written) {
		f->pair.report.abandoned += e->info.records;
		f->pair.total.abandoned += e->info.records;
		for (int cause = 0; cause < BC_GAP_CAUSES; cause++) {
			f->given_up.gaps[cause] += e->losses.gaps[cause];
			f->given_up.lost[cause] += e->losses.lost[cause];
			f->given_up.inexact[cause] |= e->losses.inexact[cause];
		}
		f->given_up.gaps[BC_GAP_DISK] += e->info.records != 0;
		f->given_up.lost[BC_GAP_DISK] += e->info.records;
	}
	if (e->raw_bytes != 0 && !e->is_raw_written)
		f->pair.report.raw_abandoned += e->raw_plain_bytes;
	if (!e->is_last)
		return;
	note_given_up(f, e);
	if (!bc_open_segment_cut(&f->pair))
		bc_open_segment_abandon(&f->pair);
}

/* Housekeeping */

static void sync_pair(struct bc_rotator *f)
{
	f->sync_at_ns = bc_now_ns() + f->rules.sync_ns;
	bc_open_segment_sync(&f->pair);
}

uint64_t bc_rotator_due_ns(const struct bc_rotator *f)
{
	return bc_open_segment_has_unsynced(&f->pair) && f->sync_at_ns < f->look_at_ns
		       ? f->sync_at_ns
		       : f->look_at_ns;
}

void bc_rotator_maintain(struct bc_rotator *f, bool has_waiting)
{
	uint64_t now = bc_now_ns();

	if (bc_open_segment_has_unsynced(&f->pair) && now >= f->sync_at_ns)
		sync_pair(f);
	bc_log_limits_poll(&f->pair.limits, now);
	if (now < f->look_at_ns)
		return;
	bc_thread_health_start(&f->pair.stint, "looking through", ".");
	bc_open_segment_check_deleted(&f->pair);
	if (enforce_space(f, 0, 0) && !has_waiting)
		bc_open_segment_clear_stuck(&f->pair);
}

/* Life */

int bc_rotator_init(
	struct bc_rotator *f, const char *dir, int dir_fd, const struct bc_writer_rules *rules)
{
	memset(f, 0, sizeof(*f));
	f->note = malloc(sizeof(*f->note));
	if (f->note == NULL)
		return -ENOMEM;
	bc_thread_health_init(&f->pair.stint);
	f->pair.dir = dir;
	f->pair.dir_fd = dir_fd;
	f->rules = *rules;
	f->pair.segment.file.fd = -1;
	f->pair.raw.file.fd = -1;
	return 0;
}

void bc_rotator_start(struct bc_rotator *f, const struct bc_recording_info *recording)
{
	bc_open_segment_start(&f->pair, recording);
	f->next_record = 0;
	memset(&f->given_up, 0, sizeof(f->given_up));
}

void bc_rotator_close(struct bc_rotator *f)
{
	if (bc_open_segment_has_unsynced(&f->pair))
		sync_pair(f);
	bc_open_segment_abandon(&f->pair);
	bc_log_limits_end(&f->pair.limits);
}

void bc_rotator_destroy(struct bc_rotator *f)
{
	if (f->pair.owns_dir_fd)
		close(f->pair.dir_fd);
	bc_writer_notices_free(f->pair.news.first);
	bc_thread_health_destroy(&f->pair.stint);
	free(f->note);
}
