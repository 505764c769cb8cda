#include "formats/recording/lanes.h"

#include <errno.h>
#include <stdlib.h>

int bc_lanes_init(struct bc_lanes *lanes, struct bc_segments *files)
{
	*lanes = (struct bc_lanes){
		.files = files, .lanes = calloc((size_t)files->count + 1, sizeof(*lanes->lanes))};
	if (lanes->lanes == NULL)
		return -ENOMEM;
	for (int i = 0; i < files->count; i++) {
		if (!bc_segments_follows(files, i)) {
			lanes->lanes[lanes->count] = (struct bc_lane){
				.id = lanes->count, .begin = i, .ns = INT64_MIN, .place.at = -1};
			lanes->count++;
		}
		lanes->lanes[lanes->count - 1].end = i + 1;
	}
	return 0;
}

static void close_lane(struct bc_lane *lane)
{
	bc_segment_file_close(&lane->place.file);
	lane->place.at = -1;
	free(lane->state);
	lane->state = NULL;
}

/* Gives the open file back to its lane. */
static void leave(struct bc_lanes *lanes)
{
	if (lanes->current != NULL)
		bc_segments_exchange(lanes->files, &lanes->current->place);
	lanes->current = NULL;
}

void bc_lanes_free(struct bc_lanes *lanes)
{
	leave(lanes);
	for (int i = 0; i < lanes->count; i++)
		close_lane(&lanes->lanes[i]);
	free(lanes->lanes);
}

void bc_lanes_enter(struct bc_lanes *lanes, struct bc_lane *lane)
{
	if (lane == lanes->current)
		return;
	leave(lanes);
	/* Its next file may already be open, from an earlier search. */
	if (lane->state != NULL || lanes->files->at != lane->begin)
		bc_segments_exchange(lanes->files, &lane->place);
	lanes->current = lane;
}

void bc_lanes_start(struct bc_lanes *lanes)
{
	struct bc_segments *files = lanes->files;

	for (int i = 0; i < lanes->count && lanes->count != 1; i++) {
		struct bc_lane *lane = &lanes->lanes[i];
		if (bc_segments_start(files, lane->begin, &lane->ns))
			continue;
		if (!bc_segments_open(files, lane->begin, NULL))
			lane->begin++; /* it is reported */
		else if (files->file.table.count != 0)
			lane->ns = files->file.table.rows[0].info.wall_ns;
	}
}

static int compare_lanes(const void *x, const void *y)
{
	const struct bc_lane *a = x;
	const struct bc_lane *b = y;

	return a->ns != b->ns ? (a->ns > b->ns) - (a->ns < b->ns) : a->id - b->id;
}

void bc_lanes_sort(struct bc_lanes *lanes)
{
	qsort(lanes->lanes, (size_t)lanes->count, sizeof(*lanes->lanes), compare_lanes);
}

struct bc_lane *bc_lanes_next(struct bc_lanes *lanes, int64_t *until_ns)
{
	struct bc_lane *next = NULL;

	if (lanes->current != NULL && lanes->current->is_over) {
		struct bc_lane *over = lanes->current;
		leave(lanes);
		close_lane(over);
	}
	while (lanes->first < lanes->count && lanes->lanes[lanes->first].is_over)
		lanes->first++;
	*until_ns = INT64_MAX;
	for (int i = lanes->first; i < lanes->count; i++) {
		struct bc_lane *lane = &lanes->lanes[i];
		if (lane->is_over)
			continue;
		if (next == NULL || lane->ns < next->ns) {
			*until_ns = next != NULL ? next->ns : INT64_MAX;
			next = lane;
		} else if (lane->ns < *until_ns) {
			*until_ns = lane->ns;
		}
		/* Lanes that have not begun are sorted, so no later one is earlier. */
		if (lane->state == NULL && lane != next)
			break;
	}
	if (next != NULL)
		bc_lanes_enter(lanes, next);
	return next;
}
