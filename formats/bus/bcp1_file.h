/* Reads a saved bcp1 stream by the receiver's rules of docs/board-protocol.md: frames, the gaps
 * before them, triggers, and damaged bytes. */
#ifndef BC_FORMATS_BUS_BCP1_FILE_H
#define BC_FORMATS_BUS_BCP1_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/input_stream.h"
#include "formats/bus/bcp1.h"
#include "formats/bus/chunk.h"

#define BC_FRAMES_BUFFER (256u << 10)

enum bc_frames_found {
	BC_FRAMES_END,
	BC_FRAMES_FRAME,   /* a whole frame: see `frame`, `epoch` */
	BC_FRAMES_GAP,     /* samples are missing before the next frame with samples: see `gap` */
	BC_FRAMES_TRIGGER, /* the board's trigger fired before the next sample */
	BC_FRAMES_DAMAGE,  /* bytes outside whole frames: see `damage` */
};

struct bc_frames_gap {
	enum bc_gap_cause cause;
	bool is_exact;
	uint64_t lost;   /* at least */
	uint64_t offset; /* of the header that revealed the gap */
};

struct bc_frames_damage {
	uint64_t offset;
	uint64_t bytes;
	char what[96];
};

struct bc_frames {
	/* Result of the last call. */
	struct bc_bcp1_frame frame;
	uint32_t epoch;
	struct bc_frames_gap gap;
	struct bc_frames_damage damage;

	/* Counts so far. */
	uint64_t frames;
	uint64_t samples;
	uint64_t gaps;
	uint64_t lost; /* at least */
	bool has_last; /* the last frame so far has BC_BCP1_LAST */

	/* Pending results, returned in this order: the damage; then, if the frame has samples or
	 * the stream has ended, one gap per cause and the triggers; the frame; the end. */
	bool has_damage;
	bool has_gap[BC_GAP_CAUSES];
	uint32_t triggers;
	bool has_frame;
	bool is_over;
	struct bc_frames_gap gaps_found[BC_GAP_CAUSES];

	/* State of the reader. */
	bool has_sequence;
	uint32_t sequence;    /* expected in the next frame */
	uint64_t tick;        /* of the last sample, or of the header of a damaged or empty frame */
	uint64_t whole_end;   /* end of the last whole frame */
	uint64_t damaged_end; /* where the last damaged frame should end; 0: none since whole_end */
	char damaged[48];     /* text that describes this frame */
	struct bc_input_stream stream;
	const uint8_t *data;
	size_t bytes;
	bool is_read; /* the input has ended or failed */
	int error;    /* -EBADMSG if it failed */
	struct bc_bcp1_reader reader;
	uint8_t buffer[BC_FRAMES_BUFFER];
};

/* Starts reading a bcp1 stream, such as bc_input_stream() of an input. Returns 0 or -ENOMEM. */
int bc_frames_open(struct bc_frames **frames, struct bc_input_stream stream);
void bc_frames_close(struct bc_frames *frames);

/* Returns the next enum bc_frames_found, or a negative errno if reading fails. -EBADMSG replaces
 * the end if the LZ4 frames around the stream are damaged or torn. */
int bc_frames_next(struct bc_frames *frames);

#endif
