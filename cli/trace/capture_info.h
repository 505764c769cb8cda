/* Statistics of a raw capture (formats/segment/raw_capture.h), gathered by reading all of it and
 * verifying every checksum. */
#ifndef BC_CLI_TRACE_CAPTURE_INFO_H
#define BC_CLI_TRACE_CAPTURE_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/io/file.h"
#include "cli/term/output.h"
#include "formats/base/json.h"
#include "formats/segment/segment_reader.h"

struct bc_capture_info {
	uint64_t bytes;    /* of the file */
	uint64_t files;    /* captures concatenated in the file; the header is that of the first */
	uint64_t unsealed; /* of these, without a valid end */
	bool has_header;
	struct bc_segment_header header;
	uint64_t stream_bytes;
	uint64_t offset; /* position of the first block in the stream */
	uint64_t blocks;
	uint64_t transfers; /* with known times */
	uint64_t breaks;
	uint64_t dropped_bytes; /* not recorded, according to the breaks */
	uint64_t holes;         /* places where part of the stream is missing without a break */
	uint64_t damages;
};

/* Called for each damaged place. */
typedef void (*bc_on_capture_damage)(void *context, const struct bc_segment_damage *damage);

/* Reads the file to its end. Returns 0 or a negative errno. */
int bc_capture_info_gather(struct bc_capture_info *info, struct bc_file *file,
	bc_on_capture_damage on_damage, void *context);

void bc_capture_info_print(struct bc_output *output, const struct bc_capture_info *info);

/* Returns a new object, or NULL if out of memory. */
json_t *bc_capture_info_json(const struct bc_capture_info *info);

#endif
