/* From a source's stream to records in chunks: frames are taken apart, what is damaged is found,
 * ticks become deltas, epochs and gaps are noticed.
 *
 * bc_decoder_push() takes a piece of the stream as the source gives it. When the channel has no
 * chunk free, samples of a live source are dropped and counted where they were; any other source is
 * made to wait. When the tick limit is reached, the decoder's owner is asked what that means. */
#ifndef BC_DAEMON_INGEST_DECODER_H
#define BC_DAEMON_INGEST_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"

struct bc_channel;
struct bc_mapping;
struct bc_source_data;

/* What to do with the sample whose tick has reached the limit. */
enum bc_limit_answer {
	BC_LIMIT_CONTINUE, /* the limit was moved: take it */
	BC_LIMIT_WAIT,     /* not yet: the source waits for bc_source_resume() */
	BC_LIMIT_END,      /* never: the recording is over */
};

struct bc_decoder_options {
	struct bc_channel *channel;
	const struct bc_mapping *mapping; /* kept */
	bool is_live;                     /* the source can't wait */
	uint64_t clock_hz;
	void *context;

	/* The first tick of the recording, and of each epoch. Sets limits. */
	void (*on_epoch)(void *context, uint64_t tick);

	/* bc_decoder_tick_limit() has been reached by a sample with this tick. */
	enum bc_limit_answer (*on_limit)(void *context, uint64_t tick);

	/* The stream itself says that nothing follows: a board's last frame. May be NULL. */
	void (*on_last)(void *context);

	/* Something in the stream can't be read: `what` is a phrase with the place. */
	void (*on_damage)(void *context, const char *what);
};

struct bc_decoder;

/* Makes a decoder for one stream. Returns 0 or -ENOMEM. */
int bc_decoder_open(
	struct bc_decoder **decoder, const struct bc_decoder_options *options) BC_MUST_CHECK;
void bc_decoder_close(struct bc_decoder *decoder);

/* The ticks of a second, where the time of raw6 samples is told in nanoseconds. */
void bc_decoder_set_clock(struct bc_decoder *decoder, uint64_t clock_hz);

/* Takes a piece. Returns false when it could not take all of it: call again with the same piece,
 * once there is room. */
bool bc_decoder_push(struct bc_decoder *decoder, const struct bc_source_data *data);

/* The stream is over: judges what is left of it. Returns false when there is no room for that yet.
 */
bool bc_decoder_finish(struct bc_decoder *decoder);

/* No sample at or past this tick is taken. BC_NO_TICK_LIMIT at the start. */
void bc_decoder_set_tick_limit(struct bc_decoder *decoder, uint64_t tick);

/* Nothing more is wanted: what still comes is passed over. May be called while a piece is being
 * taken. */
void bc_decoder_end(struct bc_decoder *decoder);

/* Whether that was said, or a limit said it. */
bool bc_decoder_is_over(const struct bc_decoder *decoder);

/* What the pieces so far end in the middle of: the beginning of a frame or a sample, whose length
 * is returned. Valid until the next piece. */
size_t bc_decoder_partial_input(const struct bc_decoder *decoder, const uint8_t **bytes);

/* The tick of the sample taken last. */
uint64_t bc_decoder_tick(const struct bc_decoder *decoder);

#endif
