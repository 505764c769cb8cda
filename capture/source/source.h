/* The interface of a source of samples: a board, a file or the simulated bus. A replay therefore
 * runs the same code as a live recording.
 *
 *     create the source (usb_source.h, file_source.h, sim_source.h)
 *     bc_source_start()      the sink receives data from now on, on the loop's thread
 *     sink.data() returns false: the sink is full. The source keeps that piece and pauses;
 *     bc_source_resume()     offers it again
 *     bc_source_stop()       ends the source early: the sink still receives what is left, then
 *                            end(), now or later. Does nothing before bc_source_start()
 *     sink.end()             once; the last call to the sink
 *     bc_source_close()      frees everything; at any time
 *
 * A live source can't pause: its sink accepts everything, and counts what it has to drop. */
#ifndef BC_CAPTURE_SOURCE_SOURCE_H
#define BC_CAPTURE_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/format_id.h"
#include "formats/bus/chunk.h"
#include "formats/segment/segment_header.h"
#include "formats/segment/sequence_check.h"

/* A place where the stream is interrupted: what follows does not continue what came before. */
struct bc_source_break {
	enum bc_gap_cause cause;
	uint64_t duration_ns; /* how long nothing could arrive, on the host's clock; 0: unknown */
	bool is_cut;     /* bytes are missing: a frame or sample cut off before the break is not
			  * completed after it. If false, it may be */
	bool is_restart; /* the board may have restarted: neither its clock nor its sequence numbers
			  * continue. Implies is_cut */
	uint64_t lost;   /* BC_GAP_BOARD: all samples that the board counts as lost since the stream
			  * started or restarted, including those that its frames reported */
};

/* A piece of the stream: bytes, a break or a chunk. Valid until sink.data() returns true for it. */
struct bc_source_data {
	enum bc_format format;
	const uint8_t *bytes; /* plain formats and bcp1: any number, cut anywhere */
	size_t count;
	bool has_times;    /* the bytes arrived from since_ns to until_ns, on the host's clock, */
	uint64_t since_ns; /* relative to the start of the stream. Times never decrease from one */
	uint64_t until_ns; /* piece to the next */
	const struct bc_source_break *broken; /* a break, if not NULL */
	const struct bc_chunk *chunk;         /* BC_FORMAT_SEGMENT: a chunk of a segment */
	const struct bc_missing *missing;     /* chunk: before it; NULL: nothing */
	bool is_late; /* chunk: chunks that follow it in its recording came before it */
	const struct bc_segment_header *header; /* header of the chunk's segment; NULL: damaged */
};

enum bc_source_level {
	BC_SOURCE_INFO,
	BC_SOURCE_NOTICE,
	BC_SOURCE_WARNING,
	BC_SOURCE_BOARD_GONE, /* a warning */
	BC_SOURCE_BOARD_BACK, /* a notice; also for the first time */
};

struct bc_source_sink {
	void *context;

	/* Consumes a piece. False if full: bc_source_resume() then offers the same piece again. */
	bool (*data)(void *context, const struct bc_source_data *data);

	/* Part of the input can't be read; reading continues after it. `what`: a phrase, where. */
	void (*damage)(void *context, const char *what);

	/* A sentence for the log. `kind` is an address that identifies its format, because messages
	 * of one kind may be frequent and are then rate-limited. May be NULL. */
	void (*log)(void *context, enum bc_source_level level, const char *kind, const char *what);

	/* The stream is over: 0, or a negative errno with a phrase in `what`. */
	void (*end)(void *context, int status, const char *what);
};

/* Returns the struct that a member is embedded in. */
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

struct bc_source;

struct bc_source_ops {
	int (*start)(struct bc_source *source);
	void (*resume)(struct bc_source *source); /* NULL: live, so never refused */
	void (*stop)(struct bc_source *source);
	void (*last_frame)(struct bc_source *source);          /* may be NULL */
	void (*bind)(struct bc_source *source, bool is_bound); /* may be NULL */
	void (*close)(struct bc_source *source);
};

struct bc_board;

/* The common part, embedded in every source. */
struct bc_source {
	const struct bc_source_ops *ops;
	struct bc_source_sink sink;   /* set by bc_source_start() */
	const char *kind;             /* "usb", "file", "sim" */
	char name[256];               /* for messages */
	bool is_live;                 /* can't pause */
	bool may_stand_still;         /* its clock stops while the host is too slow for it */
	bool is_replay;               /* its time is the bus's, not the host's */
	bool is_stream;               /* a FIFO: what was read can't be read again */
	uint64_t clock_hz;            /* ticks per second; 0: unknown */
	const struct bc_board *board; /* capture/usb/board.h; NULL if it is not a board */
};

/* Starts the source. Copies `sink`. Returns 0 or a negative errno; then, only close the source. */
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

/* Tells the source that the decoder has seen the board's last frame. More data may follow. */
static inline void bc_source_last_frame(struct bc_source *source)
{
	if (source->ops->last_frame != NULL)
		source->ops->last_frame(source);
}

/* Binds the source to its current board, or releases it; initially it is not bound. What is
 * recorded comes from one board with one clock: while the source is bound, it waits for this board
 * if it is unplugged, and clock_hz does not change. Otherwise the next data may come from another
 * board and have another clock. */
static inline void bc_source_bind(struct bc_source *source, bool is_bound)
{
	if (source->ops->bind != NULL)
		source->ops->bind(source, is_bound);
}

/* Ends the source without further calls to the sink. Its memory is freed when the loop has closed
 * its handles, which may wait for a blocked read. NULL may be passed. */
static inline void bc_source_close(struct bc_source *source)
{
	if (source != NULL)
		source->ops->close(source);
}

#endif
