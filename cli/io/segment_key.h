/* What segments are sorted by: recording and number. */
#ifndef BC_CLI_IO_SEGMENT_KEY_H
#define BC_CLI_IO_SEGMENT_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/segment/segment_name.h"

struct bc_segment_key {
	bool is_segment; /* or can't be read, or is too damaged to tell */
	bool is_known;   /* tag and segment are */
	bool has_index;
	uint64_t tag;                /* of the recording */
	struct bc_segment_name name; /* the recording is empty while only its tag is known */
};

struct bc_segment_key bc_segment_key_of_name(const struct bc_segment_name *name);

/* Reads the key of a regular file, under any name, from its header or, if that is damaged, its
 * first intact chunk. The rest comes from the file's name. Prints no errors. */
struct bc_segment_key bc_segment_key_read(const char *path);

/* Orders named recordings first, then unnamed ones by tag, then what is not known. Of copies of a
 * segment, those with an index come first, because they are whole. 0: neither. */
int bc_segment_key_compare(const struct bc_segment_key *a, const struct bc_segment_key *b);

#endif
