/* The inside of a session, for the files that it is made of: session.c has source, decoder and
 * pace, session_recording.c the recording that is being made. What stands outside is
 * daemon/session.h. */
#ifndef BC_DAEMON_SESSION_PARTS_H
#define BC_DAEMON_SESSION_PARTS_H

#include "daemon/bus_time.h"
#include "daemon/decoder.h"
#include "daemon/log_limit.h"
#include "daemon/session.h"

enum session_state {
	SESSION_RUNNING,
	SESSION_STOPPING,  /* the source was told to end, or has ended: its rest is being taken */
	SESSION_FINISHING, /* the pipeline writes and seals what it has */
	SESSION_DONE,
};

enum { TIMER_PACE, TIMER_STOP, TIMER_ROTATE, TIMER_DEFER, TIMERS };

struct bc_session {
	struct bc_session_options options;
	struct bc_session_outcome outcome;
	enum session_state state;
	struct bc_lane *lane;
	struct bc_decoder *decoder;
	bool is_paced;
	bool has_source_ended;
	bool is_cut_short;     /* a replay was stopped before its end */
	bool has_data;         /* the first piece has come, */
	enum bc_format format; /* of this form */
	bool is_waiting;       /* the source was refused, and waits to be resumed */
	bool is_kept;          /* the piece that it was refused is in the raw capture already */
	uv_timer_t timers[TIMERS];
	unsigned open_handles;
	struct bc_bus_time time; /* a replay's */
	uint64_t pace_start_ns;

	struct bc_log_limits limits; /* of what the source tells, and what is damaged */

	unsigned unsealed; /* recordings that have ended, and are on their way to the disk */

	/* The recording under way, if `recording` isn't NULL. */
	struct bc_recording *recording;
	struct bc_rotation rotation;
	struct bc_stop_rules stop;
	bool is_rotation_timed;  /* the timer runs for the present segment */
	uint64_t records_at_cut; /* the segment has begun when there are more */
	bool has_cut;            /* the next segment's number is our doing */
	uint32_t segment;        /* the writer's latest */
	bool has_hit_limit;
};

/* session.c */

/* Ends the session, from within a call of the source: on the loop's next turn. */
void bc_session_stop_soon(struct bc_session *s);

/* Gives the decoder the nearest of what ends a segment, the recording or the pace. */
void bc_session_set_limit(struct bc_session *s);

/* session_recording.c */

/* What only the data tell of the recording. A replay of a segment is as its segment was (`from`);
 * one of a raw capture is mapped anew. */
void bc_session_complete_recording(struct bc_session *s, const struct bc_segment_header *from);

/* A segment begins with its first record: from then on its time runs. The other: from now. */
void bc_session_time_segment(struct bc_session *s);
void bc_session_time_rotation(struct bc_session *s);

/* The recording is as long as it may be, up to position `at`. */
void bc_session_reach_limit(struct bc_session *s, uint32_t at);

/* It gets nothing more from there on. */
void bc_session_end_recording(struct bc_session *s, uint32_t at);

#endif
