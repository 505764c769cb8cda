/* bcp1: the framed stream that a capture board sends, and that a saved capture holds.
 *
 * A frame is a 32-byte header, its samples of 8 bytes (a bus sample and the ticks since the one
 * before) and, when there are samples, a CRC-32 of them. docs/board-protocol.md is the full text.
 *
 * Writing: fill a struct bc_bcp1_header and call bc_bcp1_write_frame().
 * Reading: hold a struct bc_bcp1_reader, hand bc_bcp1_next() the bytes as they come, in pieces of
 * any size, and take one frame or one finding from each call; at the end of the stream call it with
 * `last` set until it wants more. */
#ifndef BC_FORMATS_BUS_BCP1_H
#define BC_FORMATS_BUS_BCP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/bus/chunk.h"

#define BC_BCP1_HEADER_BYTES 32
#define BC_BCP1_SAMPLE_BYTES 8
#define BC_BCP1_CRC_BYTES    4
#define BC_BCP1_SAMPLES_MAX  65535
#define BC_BCP1_FRAME_MAX \
	(BC_BCP1_HEADER_BYTES + BC_BCP1_SAMPLES_MAX * BC_BCP1_SAMPLE_BYTES + BC_BCP1_CRC_BYTES)

/* `lost` of a header whose board lost that many samples or more. */
#define BC_BCP1_LOST_MANY 0xFFFFFFFFu

enum bc_bcp1_flag {
	BC_BCP1_AGENT = 1,   /* each sample's control byte holds the agent id in its low nibble */
	BC_BCP1_LOSS = 2,    /* the board lost samples just before this frame */
	BC_BCP1_TRIGGER = 4, /* the board's trigger fired at the first sample */
	BC_BCP1_LAST = 8,    /* the last frame after STOP */
};

struct bc_bcp1_header {
	uint16_t flags;    /* enum bc_bcp1_flag */
	uint8_t proc;      /* processor id of all samples, when BC_BCP1_AGENT is clear */
	uint32_t sequence; /* +1 a frame, wraps */
	uint32_t samples;  /* 0 .. BC_BCP1_SAMPLES_MAX */
	uint64_t tick;     /* of the first sample, or now; below BC_TICK_END */
	uint32_t lost;     /* with BC_BCP1_LOSS: samples lost before this frame */
};

/* Bytes of a whole frame of so many samples. */
static inline size_t bc_bcp1_frame_bytes(uint32_t samples)
{
	size_t payload = (size_t)samples * BC_BCP1_SAMPLE_BYTES;
	return BC_BCP1_HEADER_BYTES + payload + (samples != 0 ? BC_BCP1_CRC_BYTES : 0);
}

/* Writes the 32 header bytes at `out`, their CRC included. */
void bc_bcp1_write_header(uint8_t out[BC_BCP1_HEADER_BYTES], const struct bc_bcp1_header *header);

/* Completes a frame in place: the header goes to `frame`, the CRC behind the samples, which already
 * stand at frame + BC_BCP1_HEADER_BYTES. Returns bc_bcp1_frame_bytes(header->samples), the room
 * that `frame` must have. */
size_t bc_bcp1_write_frame(uint8_t *frame, const struct bc_bcp1_header *header);

/* Reads a header. Returns false, with *header unspecified, for anything that is not a valid one:
 * wrong magic or CRC, sample count or tick out of range. Unknown flags and the reserved byte are
 * passed over. */
bool bc_bcp1_read_header(struct bc_bcp1_header *header, const uint8_t in[BC_BCP1_HEADER_BYTES]);

/* What one call of bc_bcp1_next() found. */
enum bc_bcp1_found {
	BC_BCP1_MORE,    /* nothing: all bytes are taken, more are needed (or the stream is over) */
	BC_BCP1_FRAME,   /* a whole valid frame */
	BC_BCP1_DAMAGED, /* a valid header whose samples are torn or fail their CRC; they are lost
			  */
};

struct bc_bcp1_reader {
	uint64_t skipped_bytes; /* bytes so far that belong to no valid frame */
	uint64_t offset;        /* place in the stream of the next byte to be judged */
	size_t start;           /* bytes kept from earlier calls: hold[start .. end) */
	size_t end;
	uint8_t hold[BC_BCP1_FRAME_MAX];
};

struct bc_bcp1_frame {
	struct bc_bcp1_header header;
	uint64_t offset;        /* place of the header in the stream, in bytes */
	const uint8_t *samples; /* header.samples of 8 bytes; NULL for BC_BCP1_DAMAGED. Valid until
				 * the next call, as long as the caller's own bytes are. */
};

/* Starts a reader, or starts it over on a new stream. */
void bc_bcp1_reader_init(struct bc_bcp1_reader *reader);

/* Looks for the next frame in what is held and in the `*bytes` bytes at `*data`, and moves both
 * past what it took. `last` says that nothing will follow: an unfinished frame is then damaged, and
 * what stands behind its header is searched. Call again until BC_BCP1_MORE. Anything that is not a
 * valid header is skipped, one byte at a time, and counted in skipped_bytes; so is a damaged frame.
 */
enum bc_bcp1_found bc_bcp1_next(struct bc_bcp1_reader *reader, const uint8_t **data, size_t *bytes,
	bool last, struct bc_bcp1_frame *frame);

#endif
