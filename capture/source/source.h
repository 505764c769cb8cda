/* Where samples come from: a board, a saved capture, the simulated bus. One interface, so that a
 * replay runs the very code of a live recording.
 *
 *     make the source (capture/source/file_source.h, capture/source/sim_source.h)
 *     bc_source_start()      data begin to come to the sink, on the loop's thread
 *     sink.data() returns false: the sink is full. The source keeps that data as it is and waits;
 *     bc_source_resume()     offers it again
 *     bc_source_stop()       the source ends early, with what it still has to say, now or later;
 *                            before the start it does nothing
 *     sink.end()             once, the last call to the sink
 *     bc_source_close()      frees everything; at any time after making
 *
 * A live source never waits: its sink takes everything, and drops and counts what it has no room
 * for. */
#ifndef BC_CAPTURE_SOURCE_SOURCE_H
#define BC_CAPTURE_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/format_id.h"
#include "formats/bus/chunk.h"
#include "formats/segment/segment_header.h"

/* A place where the stream breaks: what comes behind it doesn't go on where what came before
 * stopped. */
struct bc_source_break {
	enum bc_gap_cause cause;
	uint64_t duration_ns; /* of the host's clock, for which nothing could come; 0: says nothing
			       */
	bool is_cut;          /* bytes are missing here: a frame or sample that was begun before is
			       * not completed by what follows. Else it may be */
	bool is_restart; /* the board may have begun anew: no clock or number leads across; then
			  * it is a cut, too */
	uint64_t lost;   /* BC_GAP_BOARD: samples that the board says it has lost since the stream
			  * began or was restarted, those that its frames told of among them */
};

/* A piece of the stream, valid until sink.data() has returned true for it: bytes, or a break, or a
 * chunk. */
struct bc_source_data {
	enum bc_format format;
	const uint8_t *bytes; /* plain formats and bcp1: any number, cut anywhere */
	size_t count;
	bool has_times;    /* they arrived from since_ns to until_ns on the host's clock, */
	uint64_t since_ns; /* counted from when the stream began; what one piece ends with */
	uint64_t until_ns; /* the next begins with, or a later time */
	const struct bc_source_break *broken; /* a break, instead of bytes */
	const struct bc_chunk
		*chunk;   /* BC_FORMAT_SEGMENT: a chunk of a segment, instead of bytes */
	uint64_t missing; /* and how many records of its recording are missing before it */
	const struct bc_segment_header *header; /* and its segment's header; NULL: damaged */
};

enum bc_source_level { BC_NOTICE_INFO, BC_NOTICE_NOTICE, BC_NOTICE_WARNING };

struct bc_source_sink {
	void *context;

	/* Takes a piece. false: not all of it; the same piece is offered again after
	 * bc_source_resume(). */
	bool (*data)(void *context, const struct bc_source_data *data);

	/* Some of the input can't be read; what follows is whole again. `what` is a phrase with the
	 * place. */
	void (*damage)(void *context, const char *what);

	/* Something happened that a person may want to know: a sentence for the log. Those of one
	 * kind, an address that stays, may come often. May be NULL. */
	void (*log)(void *context, enum bc_source_level level, const char *kind, const char *what);

	/* The stream is over: 0, or a negative errno with a phrase in `what`. */
	void (*end)(void *context, int status, const char *what);
};

/* The owner of what is embedded in it: a source of its head, of a handle of the loop. */
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

struct bc_source;

struct bc_source_ops {
	int (*start)(struct bc_source *source);
	void (*resume)(struct bc_source *source);
	void (*stop)(struct bc_source *source);
	void (*last_frame)(struct bc_source *source); /* may be NULL */
	void (*close)(struct bc_source *source);
};

struct bc_board;

/* The head of every source. */
struct bc_source {
	const struct bc_source_ops *ops;
	struct bc_source_sink sink;   /* set by bc_source_start() */
	const char *kind;             /* "usb", "file", "sim" */
	char name[256];               /* what the user calls it */
	bool is_live;                 /* it can't wait */
	bool is_replay;               /* time in it is the bus's, not the host's */
	bool is_stream;               /* a pipe: what was read of it can't be read again */
	uint64_t clock_hz;            /* ticks a second; 0: not known */
	const struct bc_board *board; /* capture/usb/board.h; NULL: it has none */
};

/* Begins. The sink is copied, its context kept. Returns 0 or a negative errno; then only
 * bc_source_close() may follow. */
static inline int bc_source_start(struct bc_source *source, const struct bc_source_sink *sink)
{
	source->sink = *sink;
	return source->ops->start(source);
}

static inline void bc_source_resume(struct bc_source *source)
{
	source->ops->resume(source);
}

static inline void bc_source_stop(struct bc_source *source)
{
	if (source->sink.end != NULL)
		source->ops->stop(source);
}

/* The stream itself has said that it is over: a board's last frame. A source that knows better goes
 * on if more comes. */
static inline void bc_source_last_frame(struct bc_source *source)
{
	if (source->ops->last_frame != NULL)
		source->ops->last_frame(source);
}

/* Ends the source without a word to the sink. Its memory is freed when the loop has closed its
 * handles, which waits for a read that hangs. NULL is no source. */
static inline void bc_source_close(struct bc_source *source)
{
	if (source != NULL)
		source->ops->close(source);
}

#endif
