/* How a recording ended: the text of its BC_EVENT_END, the last event of its last chunk. A clean
 * end has one; after a kill or a power cut, recovery adds it. docs/segment-format.md has the
 * members. */
#ifndef BC_FORMATS_SEGMENT_RECORDING_END_H
#define BC_FORMATS_SEGMENT_RECORDING_END_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/bus/chunk.h"
#include "formats/segment/segment_header.h"

struct bc_recording_end {
	char reason[16];  /* "request", ...; "crash" and "power" are recovery's */
	int64_t ended_ns; /* time of day; after a crash, the last time that is known */
	char boot_id[BC_BOOT_ID_BYTES]; /* of the machine when the event was written; or empty */
};

/* Maximum length of the event's text. */
#define BC_RECORDING_END_MAX 160

/* Adds the event after the chunk's last record. Returns false if there is no room. */
bool bc_recording_end_add(struct bc_chunk *chunk, const struct bc_recording_end *end) BC_MUST_CHECK;

/* Finds the event in a chunk. Returns false if there is none, or if it is invalid. */
bool bc_recording_end_find(struct bc_recording_end *end, const struct bc_chunk *chunk);

/* Whether recovery has written it. */
bool bc_recording_end_is_recovered(const struct bc_recording_end *end);

#endif
