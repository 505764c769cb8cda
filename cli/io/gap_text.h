/* Describes a gap, for people. */
#ifndef BC_CLI_IO_GAP_TEXT_H
#define BC_CLI_IO_GAP_TEXT_H

#include "formats/bus/chunk.h"

#define BC_GAP_TEXT_MAX 128 /* bytes, with the terminating zero */

/* Writes "at least 250 samples lost (buffer, 0.001200 s)". Returns `out`. */
const char *bc_gap_text(char out[BC_GAP_TEXT_MAX], const struct bc_event *gap);

#endif
