/* Describes gaps and losses, for people. */
#ifndef BC_CLI_IO_GAP_TEXT_H
#define BC_CLI_IO_GAP_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/bus/chunk.h"

/* Bytes, with the terminating zero. */
#define BC_LOST_TEXT_MAX 64
#define BC_GAP_TEXT_MAX  128

/* Returns "an unknown number of samples lost", or `out` with "at least 250 samples lost" or
 * "250 samples lost". `lost` is a minimum unless it is exact; if that is 0, it is unknown. */
const char *bc_lost_text(char out[BC_LOST_TEXT_MAX], uint64_t lost, bool is_exact);

/* Writes "at least 250 samples lost (buffer, 0.001200 s)". Returns `out`. */
const char *bc_gap_text(char out[BC_GAP_TEXT_MAX], const struct bc_event *gap);

#endif
