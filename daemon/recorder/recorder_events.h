/* The recorder's events: the objects of GET /v1/events (docs/api.md). An event is only made while
 * there are listeners. State, disk and board events are only emitted on change. */
#ifndef BC_DAEMON_RECORDER_RECORDER_EVENTS_H
#define BC_DAEMON_RECORDER_RECORDER_EVENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/losses.h"
#include "daemon/store/writer_report.h"

struct bc_board;
struct bc_mark;
struct bc_trigger_match;
struct bc_recording;
struct bc_recording_now;
struct bc_trigger;
struct bc_writer_notice;

struct bc_recorder_events {
	const char *dir; /* the output directory, for paths */
	void *context;

	/* As in struct bc_recorder_options. */
	void (*on_event)(void *context, const char *name, json_t *object);
	bool (*has_listeners)(void *context);

	/* As last emitted. */
	const char *state; /* initially "idle" */
	bool is_stuck;
	char disk_error[sizeof(((struct bc_writer_stats *)0)->error)];
	int board_state; /* initially -1 */
	uint64_t board_unplugs;
	struct bc_losses losses;
};

/* `event` is recording-started or recording-ended. */
void bc_recorder_events_recording(struct bc_recorder_events *events, const char *event,
	const struct bc_recording *recording, const struct bc_recording_now *now);

/* Emits the state, a string constant, if it has changed. Call it before any event that shows it. */
void bc_recorder_events_state(struct bc_recorder_events *events, const char *now);

/* Emit the state of the disk or the board if it has changed. `board` may be NULL. */
void bc_recorder_events_disk(
	struct bc_recorder_events *events, const struct bc_writer_stats *stats);
void bc_recorder_events_board(struct bc_recorder_events *events, const struct bc_board *board);

/* Emits what has been lost since the last call, by cause. Returns whether that is anything. */
bool bc_recorder_events_gaps(struct bc_recorder_events *events, const struct bc_losses *losses);

void bc_recorder_events_armed(struct bc_recorder_events *events, const struct bc_trigger *trigger);
void bc_recorder_events_disarmed(struct bc_recorder_events *events, const char *name);
void bc_recorder_events_segment(
	struct bc_recorder_events *events, const struct bc_writer_notice *notice);

void bc_recorder_events_mark(struct bc_recorder_events *events, const struct bc_mark *mark);

/* `note`: the metadata that were added, a JSON object; empty: none. */
void bc_recorder_events_note(
	struct bc_recorder_events *events, const struct bc_recording *recording, const char *note);

/* `record`: its number in the recording; UINT64_MAX outside a recording. */
void bc_recorder_events_match(
	struct bc_recorder_events *events, const struct bc_trigger_match *match, uint64_t record);

#endif
