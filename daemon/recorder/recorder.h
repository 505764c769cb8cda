/* The recorder: what records, and what may be asked of it. It has the pipeline, the live source's
 * session and, for as long as one runs, a replay's; it begins and ends recordings by configuration,
 * request, trigger and limit, and tells what happens.
 *
 * One recording is made at a time, of the live source or of a replay; with both asked for, the
 * second is refused. Whoever asks gets BC_GRANTED, or why not, as a sentence.
 *
 *     bc_recorder_open()
 *     ... requests; bc_recorder_poll() ten times a second
 *     bc_recorder_end()       on_over() follows when all is sealed
 *     bc_recorder_close() */
#ifndef BC_DAEMON_RECORDER_RECORDER_H
#define BC_DAEMON_RECORDER_RECORDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "capture/source/source.h"
#include "daemon/config/config.h"
#include "daemon/ingest/channel.h"
#include "daemon/recorder/exit_status.h"
#include "daemon/recorder/recording.h"
#include "daemon/recorder/status.h"
#include "daemon/trigger/trigger.h"
#include "formats/base/must_check.h"

struct bc_recorder;

struct bc_recorder_options {
	uv_loop_t *loop;
	const struct bc_config *config; /* the daemon's, changed by it before a reload */
	int dir_fd;                     /* the caller's, stays open */
	bool is_once;                   /* the recording is all there is to do */
	const char *before;             /* the recording that the first one goes on after; empty */
	const struct bc_channel_viewer *viewer; /* NULL: none */
	void *context;

	/* Something has changed: an object of GET /v1/events, which is the callee's. NULL: there
	 * was no memory for it. */
	void (*on_event)(void *context, const char *name, json_t *object);
	bool (*has_listeners)(void *context); /* whether anybody hears of it */

	/* A segment, or the raw capture beside it, is sealed. */
	void (*on_sealed)(void *context, const struct bc_writer_notice *notice);

	/* Nothing is recorded any more, nor will be: the recording of --once, or what
	 * bc_recorder_end() ended, is sealed or given up. */
	void (*on_over)(void *context);
};

/* Starts the pipeline, and the source, which is the recorder's from here on. Returns 0, or a
 * negative errno with the source closed and *what, constant text, that couldn't be started. */
int bc_recorder_open(struct bc_recorder **recorder, const struct bc_recorder_options *options,
	struct bc_source *source, const char **what) BC_MUST_CHECK;

/* After on_over(), not within it. Memory goes when the loop has closed the handles. NULL is none.
 */
void bc_recorder_close(struct bc_recorder *recorder);

/* Ends everything, for a signal. */
void bc_recorder_end(struct bc_recorder *recorder);

/* Gives up what is not written yet. */
void bc_recorder_abandon(struct bc_recorder *recorder);

/* Whether the live source is over, so that nothing but replays can be recorded. */
bool bc_recorder_is_over(const struct bc_recorder *recorder);

/* The configuration has changed. */
void bc_recorder_reload(struct bc_recorder *recorder);

/* Tells what has changed, and looks for silence on the bus. */
void bc_recorder_poll(struct bc_recorder *recorder);

/* Which of the threads has been at one piece of work for the longest, and at what. */
struct bc_thread_health_seen bc_recorder_longest_activity(struct bc_recorder *recorder);

struct bc_counts *bc_recorder_counts(struct bc_recorder *recorder);
const struct bc_writer_stats *bc_recorder_stats(const struct bc_recorder *recorder);

/* How it all went: the exit code. */
enum bc_exit bc_recorder_exit(struct bc_recorder *recorder);

/* How things stand, after what has changed since is told: what this says and the events never
 * disagree. The server's part of it is left 0. What it points to lasts until the next call. */
struct bc_status bc_recorder_status(struct bc_recorder *recorder);

/* Requests */

enum bc_refusal {
	BC_GRANTED,
	BC_BAD_VALUE, /* the request makes no sense */
	BC_NOT_FOUND,
	BC_NOT_NOW, /* as things stand */
	BC_FAILED,
};

struct bc_start {
	const char *label;    /* NULL or empty: the configuration's */
	const char *metadata; /* a JSON object of texts over the configuration's; NULL or empty */
	struct bc_stop_rules limits;       /* all 0: the configuration's */
	struct bc_time_or_size pre;        /* so much of what the flight recorder holds */
	struct bc_time_or_size post;       /* a snapshot goes on for so long */
	bool until_stopped;                /* a snapshot goes on until it is stopped */
	const struct bc_trigger *triggers; /* armed until the recording's end */
	unsigned triggers_count;
};

/* Begins a recording of the live source. */
enum bc_refusal bc_recorder_start(
	struct bc_recorder *recorder, const struct bc_start *start, char *err, size_t errlen);

/* Writes out what the flight recorder holds; `pre` NONE is all of it. */
enum bc_refusal bc_recorder_snapshot(
	struct bc_recorder *recorder, const struct bc_start *start, char *err, size_t errlen);

/* Calls done() when the newest recording is sealed, if it has been ended and is being sealed.
 * Returns whether it is, and memory didn't run out. */
bool bc_recorder_await_sealing(struct bc_recorder *recorder, void *context,
	void (*done)(void *context, const struct bc_recording *ended));

/* Ends the recording under way; done(), which may be NULL, is called when it is sealed. */
enum bc_refusal bc_recorder_stop(struct bc_recorder *recorder, char *err, size_t errlen,
	void *context, void (*done)(void *context, const struct bc_recording *ended));

/* Begins a new segment. */
enum bc_refusal bc_recorder_rotate(struct bc_recorder *recorder, char *err, size_t errlen);

#define BC_MARK_TEXT_MAX 1024u

struct bc_mark {
	char text[BC_MARK_TEXT_MAX + 1];
	uint64_t record; /* it stands before this one of the recording; UINT64_MAX: there is none */
	uint64_t tick;   /* of the record behind it, or of the last before it */
	uint32_t epoch;
};

/* Sets a mark at the latest record. */
enum bc_refusal bc_recorder_mark(struct bc_recorder *recorder, const char *text,
	struct bc_mark *set, char *err, size_t errlen);

/* Adds to the metadata of the recording under way: a JSON object of texts. */
enum bc_refusal bc_recorder_note(
	struct bc_recorder *recorder, const char *metadata, char *err, size_t errlen);

struct bc_replay_request {
	const char *path;      /* absolute */
	enum bc_format format; /* BC_FORMAT_UNKNOWN: told by content */
	uint64_t clock_hz;     /* 0: not said */
	double speed;          /* 0: as fast as it goes */
	struct bc_start start; /* label, metadata, limits, triggers */
};

enum bc_refusal bc_recorder_replay(struct bc_recorder *recorder,
	const struct bc_replay_request *request, char *err, size_t errlen);

/* Ends a replay before its time: its id, or "current"; done() is called when it is sealed. */
enum bc_refusal bc_recorder_cancel(struct bc_recorder *recorder, const char *id, char *err,
	size_t errlen, void *context,
	void (*done)(void *context, const struct bc_recording *ended));

/* Arms a trigger, disarms the one of that name. */
enum bc_refusal bc_recorder_arm(
	struct bc_recorder *recorder, const struct bc_trigger *trigger, char *err, size_t errlen);
enum bc_refusal bc_recorder_disarm(
	struct bc_recorder *recorder, const char *name, char *err, size_t errlen);

/* Objects for answers; NULL: there is none, or no memory. */
json_t *bc_recorder_recording_json(struct bc_recorder *recorder); /* under way, or being sealed */
/* Of a recording of this run, by its id: those that are not sealed, and the latest that are. */
json_t *bc_recorder_known_json(struct bc_recorder *recorder, const char *id);
json_t *bc_recorder_ended_json(struct bc_recorder *recorder, const struct bc_recording *recording);
json_t *bc_recorder_ended_replay_json(
	struct bc_recorder *recorder, const struct bc_recording *recording);
json_t *bc_recorder_replays_json(struct bc_recorder *recorder);
json_t *bc_recorder_replay_json(struct bc_recorder *recorder, const char *id);
json_t *bc_recorder_mark_json(const struct bc_mark *mark);
json_t *bc_recorder_triggers_json(struct bc_recorder *recorder);
json_t *bc_recorder_trigger_json(struct bc_recorder *recorder, const char *name);

#endif
