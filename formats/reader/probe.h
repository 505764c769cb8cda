/* Tells what a file is by its content.
 *
 * Segments and bcp1 carry checksums: they are certain. The plain record formats carry nothing that
 * says what they are; each is held against the bytes, and where not exactly one fits, the user must
 * name the format. Nothing is guessed.
 *
 * A raw capture (formats/segment/raw_capture.h) is of the format whose bytes it keeps, in LZ4
 * frames; that there are tables beside them is told as well. */
#ifndef BC_FORMATS_READER_PROBE_H
#define BC_FORMATS_READER_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/codec/format.h"
#include "formats/reader/unpack.h"

/* So many bytes of a file's head are enough for bc_probe(): one whole block of zstd, however badly
 * it shrinks. Of what isn't compressed a quarter is looked at. */
#define BC_PROBE_BYTES 262144u

struct bc_probe {
	enum bc_format format;   /* BC_FORMAT_UNKNOWN: see `err` */
	enum bc_packing packing; /* and what it is compressed in */
	bool is_capture;         /* in LZ4 frames that are those of a raw capture */
	char err[200];           /* unknown: a clause that says what is in the way */
};

/* Looks at the first bytes of a file, which may be compressed in LZ4, gzip or zstd. `is_all`: there
 * are no more than these. Returns true when the answer in *probe stands, false when more bytes
 * could change it (never with BC_PROBE_BYTES of them or is_all). */
bool bc_probe(struct bc_probe *probe, const uint8_t *head, size_t bytes, bool is_all);

/* Whether the head begins as a raw capture does and is too short to tell its form. */
bool bc_may_be_capture(const uint8_t *head, size_t bytes);

#endif
