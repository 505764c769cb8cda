/* Segments, written chunk by chunk with the real writer and read with the real reader. On errors,
 * the test fails. */
#ifndef BC_TESTS_SUPPORT_SEGMENTS_H
#define BC_TESTS_SUPPORT_SEGMENTS_H

#include "formats/bus/chunk.h"
#include "formats/segment/segment_reader.h"
#include "formats/segment/segment_writer.h"
#include "tests/support/compressor.h"
#include "tests/support/test.h"

/* Encodes a chunk and appends it. Its gaps lost `lost` samples. Returns the bytes of its header. */
static inline size_t segment_append(
	struct bc_segment_writer *writer, struct bc_chunk *chunk, uint64_t gaps, uint64_t lost)
{
	static uint8_t encoded[BC_CHUNK_ENCODED_MAX];
	static struct bc_chunk_pages pages;
	size_t header_bytes;
	struct bc_loss loss = bc_chunk_loss(chunk);

	loss.gaps = gaps;
	loss.lost = lost;
	bc_chunk_encode(encoded, chunk, &test_compressor, &pages, &header_bytes);
	assert_int_equal(bc_segment_append(
				 writer, encoded, header_bytes, &chunk->info, &loss, &pages.counts),
		0);
	return header_bytes;
}

static inline struct bc_segment_reader *segment_reader_of(int fd)
{
	struct bc_segment_reader *reader;

	assert_true(fd >= 0);
	assert_int_equal(bc_segment_reader_open(&reader,
				 (struct bc_input_stream){.fd = fd, .wake_fd = -1}, NULL, 0),
		0);
	return reader;
}

#endif
