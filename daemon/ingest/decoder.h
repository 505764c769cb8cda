/* The decoder turns a source's stream into records in chunks: it splits it into frames or records,
 * reports damage, and detects gaps and epochs. The stamper (formats/bus/stamp.h) makes deltas.
 *
 * While no chunk is free, a live source's samples are dropped and counted as a gap; any other
 * source waits. When a sample reaches the tick limit, the owner decides.
 *
 *     bc_decoder_open()
 *     bc_decoder_push()      for each piece, in order; the same piece again while it returns false
 *     bc_decoder_finish()    at the end of the stream; again while it returns false
 *     bc_decoder_close()
 *
 * All functions are called on the loop thread. */
#ifndef BC_DAEMON_INGEST_DECODER_H
#define BC_DAEMON_INGEST_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"

struct bc_channel;
struct bc_mapping;
struct bc_source_data;

/* What to do with a sample that has reached the tick limit. */
enum bc_limit_answer {
	BC_LIMIT_CONTINUE, /* the limit was moved: decode it */
	BC_LIMIT_WAIT,     /* later: the source waits for bc_source_resume() */
	BC_LIMIT_END,      /* the recording has ended: ignore it and everything after it */
};

struct bc_decoder_options {
	struct bc_channel *channel;
	const struct bc_mapping *mapping; /* must outlive the decoder */
	bool is_live;                     /* the source cannot wait */
	uint64_t clock_hz;
	void *context;

	/* An epoch starts with this tick; also called for the first one. Sets limits. */
	void (*on_epoch)(void *context, uint64_t tick);

	/* A sample with this tick has reached the tick limit. */
	enum bc_limit_answer (*on_limit)(void *context, uint64_t tick);

	/* The piece ended with the board's last frame. May be NULL. */
	void (*on_last)(void *context);

	/* Part of the stream is unreadable: `what` is a phrase that says where. */
	void (*on_damage)(void *context, const char *what);
};

struct bc_decoder;

/* Creates a decoder for one stream. Returns 0 or -ENOMEM. */
int bc_decoder_open(
	struct bc_decoder **decoder, const struct bc_decoder_options *options) BC_MUST_CHECK;
void bc_decoder_close(struct bc_decoder *decoder);

/* Sets the clock in ticks per second, which converts the arrival times of raw6 samples. */
void bc_decoder_set_clock(struct bc_decoder *decoder, uint64_t clock_hz);

/* Decodes a piece. Returns false if it had to stop: call again with it when a chunk is free. */
bool bc_decoder_push(struct bc_decoder *decoder, const struct bc_source_data *data);

/* Ends the stream: decodes the rest or reports it as damage. Returns false if it has to wait for a
 * free chunk or because of BC_LIMIT_WAIT: call it again. */
bool bc_decoder_finish(struct bc_decoder *decoder);

/* Stops before any sample at or after this tick. Initially BC_NO_TICK_LIMIT. */
void bc_decoder_set_tick_limit(struct bc_decoder *decoder, uint64_t tick);

/* The source or the recorder was told to stop, so the stream may be cut anywhere: from now on, an
 * incomplete frame or record at its end is not damage. */
void bc_decoder_stop(struct bc_decoder *decoder);

/* Ignores everything from here on. May be called during bc_decoder_push(). */
void bc_decoder_end(struct bc_decoder *decoder);

/* Returns whether bc_decoder_end() or BC_LIMIT_END has ended it. */
bool bc_decoder_is_over(const struct bc_decoder *decoder);

/* Returns the tick of the last sample decoded. */
uint64_t bc_decoder_tick(const struct bc_decoder *decoder);

#endif
