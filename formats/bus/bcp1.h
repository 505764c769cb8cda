/* bcp1: the framed stream that a capture board sends. docs/board-protocol.md specifies it.
 *
 * A frame is a 32-byte header, samples of 8 bytes (a bus sample and the ticks since the previous
 * one) and, if there are samples, a CRC-32 of them.
 *
 * Writing: fill a struct bc_bcp1_header and call bc_bcp1_write_frame().
 * Reading: pass pieces of the stream, of any size, to bc_bcp1_next(). Each call returns at most one
 * frame. At the end of the stream, call it with `last` set until it returns BC_BCP1_MORE. */
#ifndef BC_FORMATS_BUS_BCP1_H
#define BC_FORMATS_BUS_BCP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/input_stream.h"
#include "formats/bus/chunk.h"

#define BC_BCP1_HEADER_BYTES 32
#define BC_BCP1_SAMPLE_BYTES 8
#define BC_BCP1_CRC_BYTES    4
#define BC_BCP1_SAMPLES_MAX  65535
#define BC_BCP1_FRAME_MAX \
	(BC_BCP1_HEADER_BYTES + BC_BCP1_SAMPLES_MAX * BC_BCP1_SAMPLE_BYTES + BC_BCP1_CRC_BYTES)

/* Value of `lost` if the board lost this many samples or more. */
#define BC_BCP1_LOST_MANY 0xFFFFFFFFu

enum bc_bcp1_flag {
	BC_BCP1_AGENT = 1,   /* each sample's control byte has the agent id in its low nibble */
	BC_BCP1_LOSS = 2,    /* the board lost samples just before this frame */
	BC_BCP1_TRIGGER = 4, /* the board's trigger fired at the first sample */
	BC_BCP1_LAST = 8,    /* the last frame after STOP */
};

struct bc_bcp1_header {
	uint16_t flags;    /* enum bc_bcp1_flag */
	uint8_t proc;      /* processor id of all samples, if BC_BCP1_AGENT is clear */
	uint32_t sequence; /* previous frame's + 1, wraps */
	uint32_t samples;  /* 0 .. BC_BCP1_SAMPLES_MAX */
	uint64_t tick;     /* of the first sample; without samples, now. Below BC_TICK_END */
	uint32_t lost;     /* with BC_BCP1_LOSS: samples lost before this frame */
};

/* The length of a whole frame with this number of samples. */
static inline size_t bc_bcp1_frame_bytes(uint32_t samples)
{
	size_t payload = (size_t)samples * BC_BCP1_SAMPLE_BYTES;
	return BC_BCP1_HEADER_BYTES + payload + (samples != 0 ? BC_BCP1_CRC_BYTES : 0);
}

/* Writes the 32 bytes of a header, including its CRC. */
void bc_bcp1_write_header(uint8_t out[BC_BCP1_HEADER_BYTES], const struct bc_bcp1_header *header);

/* Completes a frame whose samples are already at frame + BC_BCP1_HEADER_BYTES: writes the header
 * before and the CRC after them. Returns bc_bcp1_frame_bytes(header->samples), which is the size
 * that `frame` must have. */
size_t bc_bcp1_write_frame(uint8_t *frame, const struct bc_bcp1_header *header);

/* Reads a header. Returns false, with *header unspecified, if it is invalid: wrong magic or CRC,
 * sample count or tick out of range. Ignores unknown flags and the reserved byte. */
bool bc_bcp1_read_header(struct bc_bcp1_header *header, const uint8_t in[BC_BCP1_HEADER_BYTES]);

enum bc_bcp1_found {
	BC_BCP1_MORE,    /* all bytes are consumed: more are needed, or the stream has ended */
	BC_BCP1_FRAME,   /* a whole valid frame */
	BC_BCP1_DAMAGED, /* a valid header whose samples are torn, fail their CRC or have a tick
			  * that is not below BC_TICK_END */
};

struct bc_bcp1_reader {
	uint64_t skipped_bytes; /* bytes so far outside valid frames */
	uint64_t offset;        /* in the stream, of the next byte to examine */
	size_t start;           /* bytes buffered by earlier calls: buffer[start .. end) */
	size_t end;
	uint8_t buffer[BC_BCP1_FRAME_MAX];
};

struct bc_bcp1_frame {
	struct bc_bcp1_header header;
	uint64_t offset;        /* of the header, in the stream */
	const uint8_t *samples; /* header.samples of 8 bytes each; NULL for BC_BCP1_DAMAGED. Valid
				 * until the next call: in the reader or the caller's bytes */
};

/* Starts a reader, or restarts it for another stream. */
void bc_bcp1_reader_init(struct bc_bcp1_reader *reader);

/* Searches the buffered bytes and the `*bytes` bytes at `*data` for the next frame, and moves both
 * past the bytes it consumed. Copies an incomplete frame. Call again until BC_BCP1_MORE.
 *
 * `last` means that no more bytes follow: an incomplete frame is then damaged, and the bytes after
 * its header are searched. Bytes that don't start a valid header are skipped one by one and counted
 * in skipped_bytes, as is a damaged frame. */
enum bc_bcp1_found bc_bcp1_next(struct bc_bcp1_reader *reader, const uint8_t **data, size_t *bytes,
	bool last, struct bc_bcp1_frame *frame);

/* ---- saved streams
 *
 * Reads a saved bcp1 stream by the receiver's rules of docs/board-protocol.md: frames, the gaps
 * before them, triggers, and damaged bytes. */

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
