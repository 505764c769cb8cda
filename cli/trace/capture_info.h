/* What a raw capture (formats/segment/raw_capture.h) holds: gathered by reading all of it, every
 * checksum checked. */
#ifndef BC_CLI_TRACE_CAPTURE_INFO_H
#define BC_CLI_TRACE_CAPTURE_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/io/file.h"
#include "cli/term/output.h"
#include "formats/base/json.h"
#include "formats/segment/segment_reader.h"

struct bc_capture_info {
	uint64_t bytes; /* of the file */
	uint64_t files; /* behind one another in it; the header is the first one's */
	bool has_header;
	struct bc_segment_header header;
	uint64_t stream_bytes;
	uint64_t offset; /* in the stream, of the first */
	uint64_t blocks;
	uint64_t transfers; /* whose times are known */
	uint64_t breaks;
	uint64_t dropped_bytes; /* that the breaks say were not kept */
	uint64_t holes; /* places where some of the stream is missing, with no break for it */
	uint64_t damages;
};

/* Told of each place that can't be read. */
typedef void (*bc_on_capture_damage)(void *context, const struct bc_segment_damage *damage);

/* Gathers. Returns 0 or a negative errno. */
int bc_capture_info_gather(struct bc_capture_info *info, struct bc_file *file,
	bc_on_capture_damage on_damage, void *context);

void bc_capture_info_print(struct bc_output *output, const struct bc_capture_info *info);

/* A new object. NULL when memory ran out. */
json_t *bc_capture_info_json(const struct bc_capture_info *info);

#endif
