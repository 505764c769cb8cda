/* Names of recordings and their files.
 *
 *   20261120T091500Z-3f9a2c            a recording: UTC start time and six hex digits
 *   20261120T091500Z-3f9a2c-boot       a recording with a label
 *   20261120T091500Z-3f9a2c-00000.byu.lz4            its first segment, sealed; .byu.zst if its
 *                                                    frames are zstd's
 *   20261120T091500Z-3f9a2c-00000.byu.lz4.partial    the segment while it is open, or torn
 *   20261120T091500Z-3f9a2c-00000.byu.lz4.damaged    what recovery could not read completely; more
 *                                                    such files are named .damaged.2, ...
 *
 * Segment numbers have five digits. From 100,000 on they have more, after a letter that says how
 * many: -a100000, -b1000000, ... So names sort by start time, and then by number. */
#ifndef BC_FORMATS_SEGMENT_SEGMENT_NAME_H
#define BC_FORMATS_SEGMENT_SEGMENT_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/compression.h"

/* True if a word is 1 .. BC_WORD_MAX letters, digits, '.', '_' and '-', as keys and labels are. */
#define BC_WORD_MAX 64
bool bc_word_is_valid(const char *word);

#define BC_RECORDING_ID_MAX 112         /* with the terminating zero */
#define BC_LABEL_MAX        BC_WORD_MAX /* characters; checked with bc_word_is_valid() */
#define BC_SEGMENT_NAME_MAX (BC_RECORDING_ID_MAX + 32)

#define BC_PARTIAL_SUFFIX ".partial"
#define BC_DAMAGED_SUFFIX ".damaged"

struct bc_segment_name {
	char recording[BC_RECORDING_ID_MAX];
	uint32_t segment;
	bool is_partial;
	enum bc_frame_format frames;
	unsigned damaged; /* 0: not damaged; 1: .damaged, 2: .damaged.2, ... */
};

#define BC_DAMAGED_MAX 999u

/* Makes the id of a recording that starts at `wall_ns`. The low 24 bits of `random` become the six
 * digits. `label` is valid or "". */
void bc_recording_id_write(
	char out[BC_RECORDING_ID_MAX], int64_t wall_ns, uint32_t random, const char *label);

void bc_segment_name_write(char out[BC_SEGMENT_NAME_MAX], const struct bc_segment_name *name);

/* Parses a file name without directories. Returns false if it is not a segment's name. */
bool bc_segment_name_read(struct bc_segment_name *name, const char *file);

/* For qsort(): orders by recording, then segment, then sealed, partial, damaged, then frames. */
int bc_segment_name_compare(const void *a, const void *b);

/* Gets the start of a recording from its id: the second, and its fraction in units of 1/4096 s.
 * Returns false if the id does not begin with it. */
bool bc_recording_id_start(int64_t *ns, const char *id);

#endif
