/* Segments of buscapd with only a header. */
#ifndef BC_TESTS_SUPPORT_HEADER_FILE_H
#define BC_TESTS_SUPPORT_HEADER_FILE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/segment/segment_header.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

/* Makes the segment that its name says, of a recording with this sequence number. */
static inline void header_file_make(const struct temp_dir *dir, const char *file, uint64_t sequence)
{
	struct bc_segment_header header = {.sequence = sequence, .program = "buscapd 0.0.0"};
	struct bc_segment_name name;
	uint8_t *bytes;
	size_t n;

	assert_true(bc_segment_name_read(&name, file));
	memcpy(header.recording, name.recording, sizeof(name.recording));
	header.segment = name.segment;
	assert_int_equal(bc_segment_header_write(&bytes, &n, &header), 0);
	temp_write(dir, file, bytes, n);
	free(bytes);
}

#endif
