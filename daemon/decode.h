/* The inside of a decoder, for the files that each know one kind of stream: decode_frames.c (bcp1),
 * decode_plain.c (raw6 and the dialects of BYU), decode_chunk.c (segments). What stands outside is
 * daemon/decoder.h.
 *
 * Each turns what comes into a run, a row of samples or records that lie one behind the other in
 * memory, and bc_decode_drain() stamps that into chunks. A piece that can't be taken whole is
 * offered again: all state of it is in the struct. */
#ifndef BC_DAEMON_DECODE_H
#define BC_DAEMON_DECODE_H

#include "daemon/decoder.h"
#include "formats/bcp1.h"
#include "formats/stamp.h"

/* Records of a dialect are turned into BYU so many at a time. */
#define BC_SLICE_RECORDS 2048u

#define BC_CARRY_BYTES 24 /* the longest record of a plain format */

enum bc_run_kind { BC_RUN_NONE, BC_RUN_SAMPLES, BC_RUN_RECORDS };

struct bc_decoder {
	struct bc_decoder_options options;
	struct bc_stamper stamper;
	uint64_t tick_limit;
	bool is_over;
	bool has_begun; /* on_epoch() was called for the first */

	/* What is being stamped. Its bytes are the source's, or of the fields below. */
	enum bc_run_kind run_kind;
	struct bc_samples samples;
	struct bc_records records;

	/* The piece being taken. */
	bool in_piece;
	const uint8_t *at;
	size_t left;
	bool is_judged;      /* a break: what came before it has been */
	uint64_t break_lost; /* and what it says is lost */
	uint32_t next_event; /* of its chunk */
	uint64_t clock_hz;   /* of its chunk's segment */

	/* bcp1 */
	bool is_bcp1;
	bool has_sequence;
	uint32_t sequence; /* expected next */
	bool has_tick;
	uint64_t seen_tick; /* of the latest sample or heartbeat */
	bool has_trigger;   /* the frame in hand wants a trigger event */
	bool wants_epoch;   /* the board may have begun anew: no delta leads into its next frame */
	uint64_t told_lost; /* by headers, since the stream began or was restarted */
	uint64_t skipped;   /* of the reader's skipped_bytes, those counted */
	uint64_t explained; /* and those that some report of damage has spoken of */
	bool is_in_damage;  /* what is skipped now belongs to a damaged frame, reported already */
	struct bc_bcp1_reader bcp1;

	/* Plain formats */
	enum bc_format format;
	uint64_t records_read;
	uint64_t raw_tick;       /* raw6: of the sample taken last */
	struct bc_pace raw_pace; /* of those to come in this piece */
	size_t carried;          /* bytes of a record that the piece before ended in */
	uint8_t carry[BC_CARRY_BYTES];
	uint8_t slice[BC_SLICE_RECORDS * BC_RECORD_BYTES];
};

/* Says that something can't be read: a phrase with the place. */
void bc_decode_damage(struct bc_decoder *d, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Tells the owner of an epoch, the first among them, that begins with this tick. */
void bc_decode_epoch(struct bc_decoder *d, uint64_t first_tick);

/* Stamps the run in hand, or drops it. Returns false when it must wait. */
bool bc_decode_drain(struct bc_decoder *d);

/* Takes the piece's frames; with is_last nothing follows them. Returns false when it must wait. */
bool bc_decode_frames(struct bc_decoder *d, bool is_last);

/* Says that bytes before this offset were skipped which no damaged frame accounts for. */
void bc_decode_explain_skipped(struct bc_decoder *d, uint64_t offset);

/* raw6, before a piece: the times of its samples. They are as far apart as the piece's end is from
 * its beginning; where nobody knows that, a tick. */
void bc_decode_pace(struct bc_decoder *d, const struct bc_source_data *data);

/* Takes the piece's records. Returns false when it must wait. */
bool bc_decode_plain(struct bc_decoder *d);

/* A chunk of a segment: first the one, then the other, which returns false when it must wait. */
void bc_decode_begin_chunk(struct bc_decoder *d, const struct bc_source_data *data);
bool bc_decode_chunk(struct bc_decoder *d, const struct bc_source_data *data);

#endif
