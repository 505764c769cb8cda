/* An encoded chunk on its way from the encoder to the writer. */
#ifndef BC_DAEMON_STORE_ENCODED_H
#define BC_DAEMON_STORE_ENCODED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/losses.h"
#include "daemon/store/recording_info.h"
#include "formats/segment/raw_capture.h"

struct bc_encoded {
	uint64_t sequence;
	const struct bc_recording_info *recording;
	bool cut_after;
	bool is_last;
	bool is_written;     /* set by the writer, for retries */
	bool is_raw_written; /* likewise for the raw block */
	bool has_end;        /* likewise: it has the recording's end, or needs none */
	struct bc_chunk_info info;
	uint64_t gaps;           /* gap events */
	uint64_t lost;           /* samples lost in them */
	struct bc_losses losses; /* gaps and lost samples, by cause */
	size_t header_bytes;
	size_t bytes; /* 0: an empty chunk */
	enum bc_format raw_form;
	uint32_t raw_plain_bytes;
	size_t raw_bytes; /* 0: no raw block */
	uint8_t *raw;     /* BC_RAW_ENCODED_MAX bytes with keep_raw, else NULL */
	struct bc_chunk_pages pages;
	uint8_t data[BC_CHUNK_ENCODED_MAX];
};

#endif
