/* Where samples come from: a board, a saved capture, the simulated bus. One interface, so that a
 * replay runs the very code of a live recording.
 *
 *     make the source (capture/file_source.h, capture/sim_source.h)
 *     bc_source_start()      data begin to come to the sink, on the loop's thread
 *     sink.data() returns false: the sink is full. The source keeps that data as it is and waits;
 *     bc_source_resume()     offers it again
 *     bc_source_stop()       the source ends early, with what it still has to say; before the
 *                            start it does nothing
 *     sink.end()             once, the last call to the sink
 *     bc_source_close()      frees everything; at any time after making
 *
 * A live source never waits: its sink takes everything, and drops and counts what it has no room
 * for. */
#ifndef BC_CAPTURE_SOURCE_H
#define BC_CAPTURE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/chunk.h"
#include "formats/probe.h"
#include "formats/segment_header.h"

/* A piece of the stream, valid until sink.data() has returned true for it. */
struct bc_source_data {
	enum bc_format format;
	const uint8_t *bytes; /* plain formats and bcp1: any number, cut anywhere */
	size_t count;
	const struct bc_chunk
		*chunk;   /* BC_FORMAT_SEGMENT: a chunk of a segment, instead of bytes */
	uint64_t missing; /* and how many records of its recording are missing before it */
	const struct bc_segment_header *header; /* and its segment's header; NULL: damaged */
};

struct bc_source_sink {
	void *context;

	/* Takes a piece. false: not all of it; the same piece is offered again after
	 * bc_source_resume(). */
	bool (*data)(void *context, const struct bc_source_data *data);

	/* Some of the input can't be read; what follows is whole again. `what` is a phrase with the
	 * place. */
	void (*damage)(void *context, const char *what);

	/* The stream is over: 0, or a negative errno with a phrase in `what`. */
	void (*end)(void *context, int status, const char *what);
};

struct bc_source;

struct bc_source_ops {
	int (*start)(struct bc_source *source);
	void (*resume)(struct bc_source *source);
	void (*stop)(struct bc_source *source);
	void (*close)(struct bc_source *source);
};

/* The head of every source. */
struct bc_source {
	const struct bc_source_ops *ops;
	struct bc_source_sink sink; /* set by bc_source_start() */
	const char *kind;           /* "usb", "file", "sim" */
	char name[256];             /* what the user calls it */
	bool is_live;               /* it can't wait */
	bool is_replay;             /* time in it is the bus's, not the host's */
	bool is_stream;             /* a pipe: what was read of it can't be read again */
	uint64_t clock_hz;          /* ticks a second; 0: not known */
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

/* Ends the source without a word to the sink. Its memory is freed when the loop has closed its
 * handles. NULL is no source. */
static inline void bc_source_close(struct bc_source *source)
{
	if (source != NULL)
		source->ops->close(source);
}

#endif
