/* Follows the chunks of a recording and finds what is missing, late or duplicate.
 *
 * `next` is the record that should come next; `last` is the header of the chunk before it. A chunk
 * that starts later leaves a hole, kept in a sorted list. A chunk that starts earlier is late if it
 * fits in a hole, which it then shrinks or splits, and otherwise a duplicate. Chunks without
 * records are ordered by their numbers.
 *
 * Segments are followed in the same way: those between two that are here are a hole, which is named
 * with the records that are missing. A segment of which nothing was read has unknown records. */
#include "formats/segment/sequence_check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/grow.h"
#include "formats/base/text.h"
#include "formats/bus/tick_time.h"
#include "formats/segment/segment_name.h"

bool bc_missing_between(struct bc_missing_segments *missing, const struct bc_segment_span *before,
	const struct bc_segment_span *after)
{
	*missing = (struct bc_missing_segments){.count = 0};
	if (before->tag != after->tag || after->segment <= before->segment)
		return false;
	missing->first = before->segment + 1;
	missing->count = after->segment - missing->first;
	if (missing->count == 0 || !before->is_read || !after->is_read)
		return missing->count != 0;
	missing->from = before->next;
	missing->records = after->first > before->next ? after->first - before->next : 0;
	missing->from_ns = before->to_ns;
	missing->to_ns = after->from_ns > before->to_ns ? after->from_ns : before->to_ns;
	return missing->count != 0;
}

bool bc_missing_before(struct bc_missing_segments *missing, struct bc_segment_span *last,
	const struct bc_segment_span *begin, const struct bc_segment_span *end)
{
	bool is_missing = bc_missing_between(missing, last, begin);

	if (end->tag != last->tag || end->segment > last->segment ||
		(end->segment == last->segment && end->next > last->next))
		*last = *end;
	return is_missing;
}

const char *bc_missing_write(char out[BC_MISSING_TEXT], const struct bc_missing_segments *m)
{
	int n = 0;

	out[0] = '\0';
	if (m->records != 0)
		n = snprintf(out, BC_MISSING_TEXT, "%s record%s missing", BC_GROUPED(m->records),
			bc_plural(m->records));
	if (m->count == 0)
		snprintf(out + n, BC_MISSING_TEXT - (size_t)n, " from record %" PRIu64 " on",
			m->from);
	else if (m->count == 1)
		snprintf(out + n, BC_MISSING_TEXT - (size_t)n, "%ssegment %" PRIu32 " is not here",
			n != 0 ? ": " : "", m->first);
	else
		snprintf(out + n, BC_MISSING_TEXT - (size_t)n,
			"%ssegments %" PRIu32 " to %" PRIu32 " are not here", n != 0 ? ": " : "",
			m->first, m->first + m->count - 1);
	return out;
}

/* ---- sequence check */

/* No honest hole between two chunks spans more epochs. */
#define EPOCHS_MAX 65536u

void bc_sequence_check_reset(struct bc_sequence_check *c)
{
	free(c->holes);
	memset(c, 0, sizeof(*c));
}

void bc_sequence_check_jump(struct bc_sequence_check *c, uint64_t tag, uint64_t next)
{
	if (!c->has_recording || c->tag != tag) {
		c->has_recording = true;
		c->tag = tag;
		c->hole_count = 0;
		c->known_from = 0;
		c->start = next;
		c->start_segment = UINT32_MAX;
		c->start_number = UINT32_MAX;
	}
	c->next = next;
	c->has_number = false;
	c->has_last = false;
	c->has_segment = false;
	c->hole.count = 0;
	c->is_unread = false;
	c->is_start_unknown = false;
}

/* Expects a recording's first record at `first`, unless records of it were read. */
static void start_recording(struct bc_sequence_check *c, uint64_t tag, uint64_t first)
{
	if (!c->has_recording || c->tag != tag)
		bc_sequence_check_jump(c, tag, first);
	else if (c->is_start_unknown)
		c->next = c->start = first;
	c->is_start_unknown = false;
}

/* Adds a segment that is here, with its first record. Segments missing before it are a hole. */
static void note_segment(struct bc_sequence_check *c, uint32_t segment, uint64_t first)
{
	if (c->has_segment && segment <= c->latest_segment)
		return;
	if (c->has_segment && segment - c->latest_segment > 1) {
		if (c->hole.count == 0)
			c->hole.first = c->latest_segment + 1;
		c->hole.count = segment - c->hole.first;
		c->hole_end = first;
	}
	c->has_segment = true;
	c->latest_segment = segment;
}

void bc_sequence_check_skip(struct bc_sequence_check *c, const struct bc_chunk_info *info)
{
	bc_sequence_check_jump(c, info->recording_tag, info->first_record + info->records);
	c->has_number = true;
	c->segment = info->segment;
	c->number = info->number;
	c->has_last = true;
	c->last = *info;
	note_segment(c, info->segment, info->first_record);
}

/* The last tick that an earlier epoch can have had before a chunk starts. */
static uint64_t last_missing_tick(
	const struct bc_chunk_info *hole, const struct bc_chunk_info *info, uint64_t clock_hz)
{
	/* Without a clock rate, or after a step of the clock back, any. */
	if (clock_hz == 0 || info->wall_ns <= hole->wall_ns)
		return UINT64_MAX;
	__int128 tick = bc_time_tick(bc_chunk_clock(hole, clock_hz), info->wall_ns);
	return tick > UINT64_MAX ? UINT64_MAX : (uint64_t)tick;
}

bool bc_sequence_check_misses(const struct bc_sequence_check *c, const struct bc_chunk_info *info,
	uint64_t clock_hz, bc_needs_chunk *needs, void *context)
{
	struct bc_chunk_info hole = *info;
	bool is_one_epoch = c->has_last && c->last.epoch == info->epoch;

	if (!c->has_recording || c->tag != info->recording_tag || c->is_start_unknown ||
		info->first_record <= c->next)
		return false;
	hole.first_record = c->next;
	/* More than a chunk can have, but the number is only compared and printed. */
	uint64_t missing = info->first_record - c->next;
	hole.records = missing < UINT32_MAX ? (uint32_t)missing : UINT32_MAX;
	hole.events = 0;
	hole.addr_low = 0;
	hole.addr_high = UINT32_MAX;
	memset(hole.types, 0xFF, sizeof(hole.types));
	memset(hole.procs, 0xFF, sizeof(hole.procs));

	/* In the chunk's epoch. Without a tick between the two chunks, the missing records have the
	 * tick of the chunk's first record. */
	hole.first_tick = is_one_epoch ? c->last.last_tick + (c->last.last_tick != UINT64_MAX) : 0;
	hole.last_tick = info->first_tick - (info->first_tick != 0);
	if (hole.last_tick < hole.first_tick)
		hole.first_tick = hole.last_tick = info->first_tick;
	(void)bc_tick_time(&hole.wall_ns, bc_chunk_clock(is_one_epoch ? &c->last : info, clock_hz),
		hole.first_tick);
	if (needs(context, &hole))
		return true;
	/* Without a clock rate, at the time of day of either chunk. */
	hole.wall_ns = info->wall_ns;
	if (clock_hz == 0 && needs(context, &hole))
		return true;
	if (!c->has_last || is_one_epoch)
		return false;

	/* At the end of the previous chunk's epoch, and in the epochs between. */
	hole.epoch = c->last.epoch;
	hole.first_tick = c->last.last_tick + (c->last.last_tick != UINT64_MAX);
	(void)bc_tick_time(&hole.wall_ns, bc_chunk_clock(&c->last, clock_hz), hole.first_tick);
	hole.last_tick = last_missing_tick(&hole, info, clock_hz);
	if (needs(context, &hole) || info->epoch - hole.epoch > EPOCHS_MAX)
		return true;
	hole.last_tick -= hole.first_tick;
	hole.first_tick = 0;
	while (++hole.epoch < info->epoch)
		if (needs(context, &hole))
			return true;
	return false;
}

void bc_sequence_check_expect(struct bc_sequence_check *c, const struct bc_segment_header *header)
{
	start_recording(c, bc_recording_tag(header->recording), header->first_record);
	note_segment(c, header->segment, header->first_record);
}

bool bc_sequence_check_named(
	struct bc_sequence_check *c, const char *path, struct bc_missing_segments *missing)
{
	struct bc_segment_name name;

	if (!bc_segment_name_read(&name, basename(path)))
		return false;
	uint64_t tag = bc_recording_tag(name.recording);
	if (!c->has_recording || c->tag != tag) {
		bc_sequence_check_jump(c, tag, 0);
		c->is_start_unknown = true;
	} else if (c->has_segment && name.segment <= c->latest_segment) {
		return false;
	}
	note_segment(c, name.segment, 0);
	*missing = c->hole;
	c->hole.count = 0;
	c->is_unread = true;
	return missing->count != 0;
}

/* Forgets the first half of the holes. */
static void forget_holes(struct bc_sequence_check *c)
{
	size_t n = c->hole_count / 2;

	c->hole_count -= n;
	memmove(c->holes, c->holes + n, c->hole_count * sizeof(*c->holes));
	c->known_from = c->holes[0].first;
}

/* Inserts a hole in sorted order; one without records before another at the same place. */
static int add_hole(struct bc_sequence_check *c, uint64_t first, uint64_t records)
{
	size_t at;

	if (c->hole_count == BC_SEQUENCE_CHECK_HOLES)
		forget_holes(c);
	if (first < c->known_from)
		return 0;
	struct bc_hole *holes = bc_grow(c->holes, &c->hole_capacity, c->hole_count, sizeof(*holes));
	if (holes == NULL)
		return -ENOMEM;
	c->holes = holes;
	for (at = c->hole_count; at != 0 && c->holes[at - 1].first >= first + (records != 0); at--)
		c->holes[at] = c->holes[at - 1];
	c->holes[at] = (struct bc_hole){.first = first, .records = records};
	c->hole_count++;
	return 0;
}

/* The last hole that starts at or before a record, or NULL. */
static struct bc_hole *find_hole(const struct bc_sequence_check *c, uint64_t record)
{
	size_t low = 0;
	size_t high = c->hole_count;

	while (low != high) {
		size_t middle = low + (high - low) / 2;
		if (c->holes[middle].first <= record)
			low = middle + 1;
		else
			high = middle;
	}
	return low != 0 ? &c->holes[low - 1] : NULL;
}

/* True if the chunk comes before all others. Without records, only its number tells. */
static bool precedes_start(const struct bc_sequence_check *c, const struct bc_chunk_info *info)
{
	if (info->first_record != c->start || info->records != 0)
		return info->first_record < c->start;
	return info->segment < c->start_segment ||
	       (info->segment == c->start_segment && info->number < c->start_number);
}

/* Adds a chunk before the first one. What is between them is missing. */
static int extend_start(struct bc_sequence_check *c, const struct bc_chunk_info *info)
{
	uint64_t room = c->start - info->first_record;

	if (info->records > room)
		return BC_SEQUENCE_LATE; /* damage: their records overlap */
	c->start = info->first_record;
	c->start_segment = info->segment;
	c->start_number = info->number;
	int rc = add_hole(c, info->first_record + info->records, room - info->records);
	return rc < 0 ? rc : BC_SEQUENCE_LATE;
}

/* Removes a chunk's records from the hole that contains them all, and leaves a hole on either side.
 * Returns BC_SEQUENCE_LATE if there is such a hole or it may be forgotten, BC_SEQUENCE_DUPLICATE if
 * not, or -ENOMEM. */
static int fill_hole(struct bc_sequence_check *c, const struct bc_chunk_info *info)
{
	struct bc_hole *hole = find_hole(c, info->first_record);
	uint64_t before = hole != NULL ? info->first_record - hole->first : 0;

	if (hole == NULL || before > hole->records || hole->records - before < info->records)
		return info->first_record < c->known_from ? BC_SEQUENCE_LATE
							  : BC_SEQUENCE_DUPLICATE;
	uint64_t after = hole->records - before - info->records;
	if (info->records == 0)
		return BC_SEQUENCE_LATE;
	hole->records = before;
	int rc = add_hole(c, info->first_record + info->records, after);
	return rc < 0 ? rc : BC_SEQUENCE_LATE;
}

/* Finds losses that only the chunk's counts show. Without the previous chunk they are unknown,
 * except at the start of a recording. */
static void find_unreported(
	const struct bc_sequence_check *c, const struct bc_chunk *chunk, struct bc_missing *missing)
{
	static const struct bc_totals none;

	if (c->has_last)
		missing->samples = bc_chunk_unreported(chunk, &c->last.totals, missing->lost);
	else if (chunk->info.segment == 0 && chunk->info.number == 0)
		missing->samples = bc_chunk_unreported(chunk, &none, missing->lost);
}

/* True if chunks are missing before the next one, even if no records are. */
static bool skips_numbers(const struct bc_sequence_check *c, const struct bc_chunk_info *info)
{
	bool is_same = info->segment == c->segment;
	uint32_t number = is_same ? c->number + 1 : 0;

	return c->has_number && (info->number != number || info->segment - c->segment > 1);
}

/* Sets the place of what is missing before a chunk. */
static void set_place(
	struct bc_sequence_check *c, const struct bc_chunk_info *info, struct bc_missing *missing)
{
	struct bc_missing_segments *place = &missing->place;

	*place = (struct bc_missing_segments){.first = c->hole.first,
		.count = c->hole.count,
		.records = missing->records,
		.from = info->first_record - missing->records};
	if (place->count != 0 && c->is_unread)
		place->records = 0;
	else if (place->count != 0 && c->hole_end - c->next < place->records)
		place->records = c->hole_end - c->next;
	c->hole.count = 0;
	c->is_unread = false;
}

int bc_sequence_check_chunk(
	struct bc_sequence_check *c, const struct bc_chunk *chunk, struct bc_missing *missing)
{
	const struct bc_chunk_info *info = &chunk->info;

	memset(missing, 0, sizeof(*missing));
	start_recording(c, info->recording_tag, info->first_record);
	bool is_later = !c->has_number || info->segment > c->segment ||
			(info->segment == c->segment && info->number > c->number);
	/* Only its number shows that a chunk without records is not the next one. */
	if (info->first_record < c->next || (info->records == 0 && !is_later))
		return precedes_start(c, info) ? extend_start(c, info) : fill_hole(c, info);

	note_segment(c, info->segment, info->first_record);
	missing->records = bc_chunk_missing(chunk, c->next);
	set_place(c, info, missing);
	find_unreported(c, chunk, missing);
	if (info->first_record > c->next || skips_numbers(c, info)) {
		int rc = add_hole(c, c->next, info->first_record - c->next);
		if (rc < 0)
			return rc;
	}
	if (c->start_segment == UINT32_MAX) {
		c->start_segment = info->segment;
		c->start_number = info->number;
	}
	c->next = info->first_record + info->records;
	c->has_last = true;
	c->last = *info;
	if (is_later) {
		c->has_number = true;
		c->segment = info->segment;
		c->number = info->number;
	}
	return BC_SEQUENCE_NEXT;
}
