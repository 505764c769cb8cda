/* The recorder decides what is recorded. It owns the pipeline and the session of the source. It
 * starts and ends recordings by configuration, request, trigger and limit, and emits events.
 *
 * There is at most one recording at a time; another is refused. A request returns BC_GRANTED, or
 * why it was refused, with a sentence in `err`.
 *
 *     bc_recorder_open()
 *     requests; bc_recorder_poll() several times a second
 *     bc_recorder_end()       on_over() follows when everything is sealed
 *     bc_recorder_close()
 *
 * All functions are called on the loop thread. */
#ifndef BC_DAEMON_RECORDER_RECORDER_H
#define BC_DAEMON_RECORDER_RECORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "capture/source/source.h"
#include "daemon/config/config.h"
#include "daemon/ingest/channel.h"
#include "daemon/ingest/trigger.h"
#include "daemon/ingest/trigger_engine.h"
#include "daemon/recorder/recording.h"
#include "daemon/recorder/status.h"
#include "formats/base/must_check.h"
#include "formats/base/usage.h"

struct bc_catalogue;
struct bc_log_limits;
struct bc_recorder;

struct bc_recorder_options {
	uv_loop_t *loop;
	const struct bc_config *config; /* the daemon's, which changes it before a reload */
	int dir_fd;                     /* the caller's; remains open */
	struct bc_catalogue *catalogue; /* the caller's */
	struct bc_log_limits *limits;   /* of the loop's thread */
	bool is_once;                   /* the run ends with its recording */
	const char *before;  /* id of the recording that the first one continues; or empty */
	uint64_t sequence;   /* the highest of the recordings in the directory */
	const char *boot_id; /* of the kernel; NULL: unknown */
	const struct bc_channel_viewer *viewer; /* NULL: none */
	void *context;

	/* Something has changed: an event of GET /v1/events (docs/api.md), and its members after
	 * event, seq and time. The callee takes them; NULL means out of memory. */
	void (*on_event)(void *context, const char *name, json_t *members);

	/* Returns whether anyone reads events. */
	bool (*has_readers)(void *context);

	/* A segment has been sealed. */
	void (*on_sealed)(void *context, const struct bc_writer_notice *notice);

	/* The last recording is sealed or abandoned, with --once or after bc_recorder_end(). */
	void (*on_over)(void *context);
};

/* Starts the pipeline and the source, which the recorder owns from here on. Returns 0, or a
 * negative errno with the source closed and *what set to a constant text: what did not start. */
int bc_recorder_open(struct bc_recorder **recorder, const struct bc_recorder_options *options,
	struct bc_source *source, const char **what) BC_MUST_CHECK;

/* Call after on_over(), not within it. Memory is freed with the last handle. NULL is allowed. */
void bc_recorder_close(struct bc_recorder *recorder);

/* Ends all recordings and the source, for shutdown. */
void bc_recorder_end(struct bc_recorder *recorder);

/* Returns whether the source has ended, or is being ended, and its last data is being written. */
bool bc_recorder_is_finishing(const struct bc_recorder *recorder);

/* Abandons what is not written. */
void bc_recorder_abandon(struct bc_recorder *recorder);

/* Applies a changed configuration. */
void bc_recorder_reload(struct bc_recorder *recorder);

/* Emits events for changes, and checks idle triggers. */
void bc_recorder_poll(struct bc_recorder *recorder);

/* Ends the thread that uses the disk, once all recordings have ended: it is idle when
 * bc_recorder_longest_activity() is. */
void bc_recorder_finish(struct bc_recorder *recorder);

/* Returns the thread that has been busy with its current work for the longest. */
struct bc_thread_health_seen bc_recorder_longest_activity(struct bc_recorder *recorder);

/* What a thread had been doing for long when samples were last lost for lack of a chunk; or "". */
const char *bc_recorder_loss_activity(const struct bc_recorder *recorder);

struct bc_counts *bc_recorder_counts(struct bc_recorder *recorder);
const struct bc_writer_stats *bc_recorder_stats(const struct bc_recorder *recorder);
struct bc_buffer_state bc_recorder_buffer(struct bc_recorder *recorder);

/* Returns the exit code of the run and logs files that need attention. Damage in a replay's input
 * is BC_EXIT_DAMAGED, in a live stream it is BC_EXIT_LOST. */
enum bc_exit bc_recorder_exit(struct bc_recorder *recorder);

/* Returns the status. Pending events are emitted first, so status and events never disagree. The
 * server's members are 0. Pointers in it are valid until the next call. */
struct bc_status bc_recorder_status(struct bc_recorder *recorder);

/* Requests */

#define BC_REFUSAL_MAX 512u

enum bc_refusal {
	BC_GRANTED,
	BC_BAD_VALUE, /* the request is invalid */
	BC_NOT_FOUND,
	BC_NOT_NOW, /* not possible in the current state */
	BC_FAILED,
};

struct bc_start {
	const char *label;    /* bc_word_is_valid(); NULL or empty: the configuration's */
	const char *metadata; /* from bc_metadata_read(), overrides the configuration's; NULL or
				 empty: nothing */
	struct bc_stop_rules limits;       /* all 0: the configuration's */
	struct bc_time_or_size pre;        /* how much of the flight recorder to include */
	struct bc_time_or_size post;       /* a snapshot continues for this long */
	bool until_stopped;                /* a snapshot continues until stopped */
	const struct bc_trigger *triggers; /* armed until the recording ends */
	unsigned triggers_count;
};

/* Starts a recording. */
enum bc_refusal bc_recorder_start(
	struct bc_recorder *recorder, const struct bc_start *start, char err[BC_REFUSAL_MAX]);

/* Records the contents of the flight recorder; `pre` NONE: all. */
enum bc_refusal bc_recorder_snapshot(
	struct bc_recorder *recorder, const struct bc_start *start, char err[BC_REFUSAL_MAX]);

/* If the newest recording has ended and is being sealed, calls done() when it is sealed. Returns
 * false if it is not, or if out of memory. */
bool bc_recorder_await_sealing(struct bc_recorder *recorder, void *context,
	void (*done)(void *context, const struct bc_recording *ended));

/* Ends the recording in progress, unless it has ended and is being sealed; done(), which may be
 * NULL, is called when it is sealed. */
enum bc_refusal bc_recorder_stop(struct bc_recorder *recorder, char err[BC_REFUSAL_MAX],
	void *context, void (*done)(void *context, const struct bc_recording *ended));

/* Starts a new segment. */
enum bc_refusal bc_recorder_rotate(struct bc_recorder *recorder, char err[BC_REFUSAL_MAX]);

#define BC_MARK_TEXT_MAX 1024u

/* Sets a mark of 1 to BC_MARK_TEXT_MAX bytes after the latest record. *mark becomes the mark as
 * JSON (docs/api.md), for the caller to release; NULL if out of memory. */
enum bc_refusal bc_recorder_mark(
	struct bc_recorder *recorder, const char *text, json_t **mark, char err[BC_REFUSAL_MAX]);

/* Adds to the metadata of the recording in progress: a JSON object of strings. */
enum bc_refusal bc_recorder_note(
	struct bc_recorder *recorder, const char *metadata, char err[BC_REFUSAL_MAX]);

/* Arms a trigger; disarms the one with this name. */
enum bc_refusal bc_recorder_arm(
	struct bc_recorder *recorder, const struct bc_trigger *trigger, char err[BC_REFUSAL_MAX]);
enum bc_refusal bc_recorder_disarm(
	struct bc_recorder *recorder, const char *name, char err[BC_REFUSAL_MAX]);

/* What there is */

/* The recording in progress, or else the latest one that is being sealed, or NULL. */
const struct bc_recording *bc_recorder_current(const struct bc_recorder *recorder);

/* A recording of this run by its id, if it is not sealed yet or the latest sealed one; or NULL. */
const struct bc_recording *bc_recorder_find(const struct bc_recorder *recorder, const char *id);

/* Returns it with its progress as JSON; NULL if out of memory. */
json_t *bc_recorder_json(const struct bc_recorder *recorder, const struct bc_recording *recording);

/* The triggers that are armed. */
const struct bc_trigger_engine *bc_recorder_triggers(const struct bc_recorder *recorder);

#endif
