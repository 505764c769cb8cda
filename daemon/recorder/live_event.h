/* What the daemon tells its clients as it happens: the events of GET /v1/events (docs/api.md),
 * which daemon/api makes JSON if a client reads them. An event and what it points to are valid
 * until the function that gets it returns. */
#ifndef BC_DAEMON_RECORDER_LIVE_EVENT_H
#define BC_DAEMON_RECORDER_LIVE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/recorder/recording.h"

struct bc_trigger;
struct bc_trigger_match;

enum bc_live_event_kind {
	BC_LIVE_STATE,
	BC_LIVE_RECORDING_STARTED,
	BC_LIVE_RECORDING_ENDED,
	BC_LIVE_SEGMENT, /* started or sealed */
	BC_LIVE_MARK,
	BC_LIVE_NOTE,
	BC_LIVE_TRIGGER,
	BC_LIVE_TRIGGER_ARMED,
	BC_LIVE_TRIGGER_DISARMED,
	BC_LIVE_GAP,
	BC_LIVE_DISK,
	BC_LIVE_DISK_LOW,
	BC_LIVE_HANG,
	BC_LIVE_BOARD,
	BC_LIVE_CLOCK,
	BC_LIVE_COMMAND_FAILED,
	BC_LIVE_RELOAD,
	BC_LIVE_STOPPING,
};

struct bc_live_event {
	enum bc_live_event_kind kind;
	union {
		struct {
			const char *from;
			const char *to;
		} state;
		struct { /* of both kinds */
			const struct bc_recording *recording;
			struct bc_recording_now now;
		} recording;
		struct {
			const char *dir;
			const struct bc_writer_notice *notice;
		} segment;
		const struct bc_mark *mark;
		struct {
			const struct bc_recording *recording;
			const char *metadata; /* added: a JSON object; empty: none */
		} note;
		struct {
			const struct bc_trigger_match *match;
			uint64_t record; /* its number in the recording; UINT64_MAX outside one */
		} trigger;
		const struct bc_trigger *armed;
		const char *disarmed; /* its name */
		struct {
			unsigned cause;
			uint64_t gaps;
			uint64_t lost;
			bool is_exact;
			const char *activity; /* of a thread, for long; or "" */
		} gap;
		struct {
			bool is_stuck;
			const char *error; /* NULL: the disk has recovered */
		} disk;
		struct {
			bool is_low;
			uint64_t seconds_left; /* UINT64_MAX: the disk does not fill */
		} disk_low;
		const char *hang; /* NULL: the thread continues */
		struct {
			const char *state;
			const char *last_error; /* or empty */
			uint64_t unplugs;
		} board;
		struct {
			const char *reason;
			int64_t moved_ns;
		} clock;
		struct {
			const char *path;
			int exit_code; /* negative: none */
			const char *error;
		} command_failed;
		const char *signal; /* of BC_LIVE_STOPPING */
	};
};

#endif
