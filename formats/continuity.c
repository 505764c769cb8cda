#include "formats/continuity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void bc_continuity_reset(struct bc_continuity *c)
{
	free(c->holes);
	memset(c, 0, sizeof(*c));
}

void bc_continuity_jump(struct bc_continuity *c, uint64_t tag, uint64_t next)
{
	c->has_recording = true;
	c->tag = tag;
	c->next = next;
	c->has_number = false;
	c->hole_count = 0;
}

void bc_continuity_expect(struct bc_continuity *c, const struct bc_segment_header *header)
{
	uint64_t tag = bc_recording_tag(header->recording);

	if (!c->has_recording || c->tag != tag)
		bc_continuity_jump(c, tag, header->first_record);
}

static int add_hole(struct bc_continuity *c, uint64_t first, uint64_t records)
{
	if (c->hole_count == c->hole_room) {
		size_t room = c->hole_room != 0 ? 2 * c->hole_room : 64;
		struct bc_hole *holes = realloc(c->holes, room * sizeof(*holes));
		if (holes == NULL)
			return -ENOMEM;
		c->holes = holes;
		c->hole_room = room;
	}
	c->holes[c->hole_count++] = (struct bc_hole){.first = first, .records = records};
	return 0;
}

/* Takes the chunk's records out of the hole that they fill. Returns BC_PLACE_BEHIND if there is
 * one. */
static int fill_hole(struct bc_continuity *c, const struct bc_chunk_info *info)
{
	for (size_t i = 0; i < c->hole_count; i++) {
		struct bc_hole *hole = &c->holes[i];
		uint64_t before = info->first_record - hole->first;
		if (info->first_record < hole->first || before > hole->records ||
			hole->records - before < info->records)
			continue;
		uint64_t behind = hole->records - before - info->records;
		hole->records = before;
		int rc = behind != 0 ? add_hole(c, info->first_record + info->records, behind) : 0;
		return rc < 0 ? rc : BC_PLACE_BEHIND;
	}
	return BC_PLACE_AGAIN;
}

int bc_continuity_take(struct bc_continuity *c, const struct bc_chunk *chunk, uint64_t *missing)
{
	const struct bc_chunk_info *info = &chunk->info;

	*missing = 0;
	if (!c->has_recording || c->tag != info->recording_tag)
		bc_continuity_jump(c, info->recording_tag, info->first_record);
	bool is_further = !c->has_number || info->segment > c->segment ||
			  (info->segment == c->segment && info->number > c->number);
	/* A chunk without records says with its number alone that it was there before. */
	if (info->records == 0 && !is_further && info->segment == c->segment &&
		info->number == c->number)
		return BC_PLACE_AGAIN;
	if (info->first_record < c->next)
		return info->records == 0 ? BC_PLACE_BEHIND : fill_hole(c, info);

	*missing = bc_chunk_missing(chunk, c->next);
	if (info->first_record > c->next) {
		int rc = add_hole(c, c->next, info->first_record - c->next);
		if (rc < 0)
			return rc;
	}
	c->next = info->first_record + info->records;
	if (is_further) {
		c->has_number = true;
		c->segment = info->segment;
		c->number = info->number;
	}
	return BC_PLACE_NEXT;
}
