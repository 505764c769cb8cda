/* Detects the format of a file from its content.
 *
 * Segments and bcp1 have checksums, so their detection is certain. The plain record formats have no
 * marks. Each of them is checked against the bytes, and the user must name the format unless
 * exactly one fits. The detection never guesses.
 *
 * The frames of a segment belong to its format: its compression is what is around it. */
#ifndef BC_FORMATS_CODEC_PROBE_H
#define BC_FORMATS_CODEC_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/format_id.h"
#include "formats/codec/unpack.h"

/* Bytes from the start of a file that bc_probe() needs at most: a whole zstd block, at any
 * compression ratio. Of uncompressed files, a quarter of this is examined. */
#define BC_PROBE_BYTES 262144u

struct bc_probe {
	enum bc_format format;   /* BC_FORMAT_UNKNOWN: see `err` */
	enum bc_packing packing; /* its compression */
	enum bc_packing frames;  /* how the frames of a segment are compressed */
	const char *layout;      /* BC_FORMAT_LINES: of the lines */
	bool is_lines;           /* unknown format: lines, which may be described */
	bool is_table;           /* these are rows of as many cells as the first has names */
	bool needs_layout;       /* the user must describe it: `err` says so */
	bool is_foreign;         /* unknown format: `err` says what it is and what to do */
	char err[200];           /* unknown format: the reason, as a clause */
};

/* Examines the first bytes of a file, which may be compressed with LZ4, gzip, zstd or xz with
 * windows of up to 1 << window_log bytes. `is_all`: the file has no more bytes. Returns true if
 * *probe is final, or false if more bytes could change it (never with BC_PROBE_BYTES or is_all). */
bool bc_probe(struct bc_probe *probe, const uint8_t *head, size_t bytes, bool is_all,
	unsigned window_log);

#endif
