/* Prints many records at a time: the same text as bc_record_print(), several times as fast, or that
 * of the program b2a that BYU published with its traces.
 *
 * A trace has few combinations of type, size, attr and proc. The text of each combination, which is
 * printed between address and time, is formatted once and cached. */
#ifndef BC_CLI_IO_RECORD_TEXT_H
#define BC_CLI_IO_RECORD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/bus/chunk.h"
#include "formats/bus/record.h"
#include "formats/trace/entry.h"

#define BC_RECORD_TEXTS 256u

struct bc_record_text {
	struct {
		uint32_t meta; /* bytes 4..7 of a record */
		uint8_t bytes; /* 0: slot unused */
		char text[27];
	} kept[BC_RECORD_TEXTS];
	bool is_b2a;
};

/* Initialises an empty cache. b2a prints "%08lx NAME\t\t%2d\t%02x\t%1d\t%ld", with one tab after
 * names of seven letters and more, STOPCLKAK for STOPCLKACK, and no name for unknown types;
 * 0xffffffff ticks are -1, as on the 32-bit hosts it was written for. */
void bc_record_text_init(struct bc_record_text *text, bool is_b2a);

/* Returns the text between address and time of a record. It is valid until the next call. */
struct bc_text bc_record_text_middle(struct bc_record_text *text, const uint8_t *record);

/* Prints n records to `out`, which must hold n * BC_RECORD_TEXT_MAX bytes. Returns the number of
 * bytes written. */
size_t bc_record_text_print(
	struct bc_record_text *text, char *out, const uint8_t *records, size_t n);

/* ---- Gaps and losses, for people. */

/* Bytes, with the terminating zero. */
#define BC_LOST_TEXT_MAX 64
#define BC_GAP_TEXT_MAX  128

/* Returns "an unknown number of samples lost", or `out` with "at least 250 samples lost" or
 * "250 samples lost". `lost` is a minimum unless it is exact; if that is 0, it is unknown. */
const char *bc_lost_text(char out[BC_LOST_TEXT_MAX], uint64_t lost, bool is_exact);

/* Writes "at least 250 samples lost (buffer, 0.001200 s)". Returns `out`. */
const char *bc_gap_text(char out[BC_GAP_TEXT_MAX], const struct bc_event *gap);

#endif
