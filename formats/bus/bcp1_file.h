/* A saved bcp1 stream, finding by finding, as docs/board-protocol.md says that a receiver sees it:
 * the frames, the gaps before them, the bytes that belong to none. */
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
	BC_FRAMES_FRAME,   /* a whole frame; its epoch in `epoch` */
	BC_FRAMES_GAP,     /* samples missing before the next frame that has any: gap */
	BC_FRAMES_TRIGGER, /* the board's trigger fired before the next sample */
	BC_FRAMES_DAMAGE,  /* bytes that belong to no whole frame: damage */
};

struct bc_frames_gap {
	enum bc_gap_cause cause;
	bool is_exact;
	uint64_t lost;   /* at least */
	uint64_t offset; /* of the header that told it */
};

struct bc_frames_damage {
	uint64_t offset;
	uint64_t bytes;
	char what[96];
};

struct bc_frames {
	/* The finding. */
	struct bc_bcp1_frame frame;
	uint32_t epoch;
	struct bc_frames_gap gap;
	struct bc_frames_damage damage;

	/* Counts so far. */
	uint64_t frames;
	uint64_t samples;
	uint64_t gaps;
	uint64_t lost; /* at least */
	bool has_last; /* the board's last frame was the last */

	/* Findings not told yet, in their order: the damage; gaps, one a cause, and the trigger,
	 * when samples or the end have come; the frame; the end. */
	bool has_damage;
	bool has_gap[BC_GAP_CAUSES];
	uint32_t triggers;
	bool has_frame;
	bool is_over;
	struct bc_frames_gap gaps_found[BC_GAP_CAUSES];

	/* Where it stands. */
	bool has_sequence;
	uint32_t sequence;  /* the next frame's */
	uint64_t tick;      /* of the last sample, or of the header of a frame without good ones */
	uint64_t whole_end; /* offset behind the last whole frame */
	uint64_t hurt_end;  /* offset where the last damaged frame should end; 0: none since */
	char hurt[48];
	struct bc_input_stream stream;
	const uint8_t *data;
	size_t bytes;
	bool is_read; /* all of the input is, or all that can be */
	int error;    /* why no more can be */
	struct bc_bcp1_reader reader;
	uint8_t buffer[BC_FRAMES_BUFFER];
};

/* Starts reading a stream of bcp1 (bc_input_stream() of an input). Returns 0 or -ENOMEM. */
int bc_frames_open(struct bc_frames **frames, struct bc_input_stream stream);
void bc_frames_close(struct bc_frames *frames);

/* The next finding, enum bc_frames_found, or a negative errno of reading: -EBADMSG, when the LZ4
 * frames around it are damaged or torn, comes in place of the end. */
int bc_frames_next(struct bc_frames *frames);

#endif
