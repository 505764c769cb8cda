/* Fuzz target: format detection, the segment reader and the index. Reading must end and stay in
 * bounds, and a whole chunk must match its hash. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "formats/codec/input.h"
#include "formats/segment/segment_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_chunks(struct bc_input *input)
{
	static struct bc_chunk chunk;
	struct bc_segment_reader *reader;
	int found;

	if (bc_input_segments(input, &reader) != 0)
		return;
	while ((found = bc_segment_read(reader, &chunk)) > BC_FOUND_END) {
		size_t bytes = (size_t)chunk.info.records * BC_RECORD_BYTES;
		if (found == BC_FOUND_CHUNK &&
			XXH3_64bits(chunk.records, bytes) != chunk.info.records_hash)
			abort();
	}
	bc_segment_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t plain[1 << 16];
	struct bc_segment_index index;
	struct bc_input *input;
	struct bc_probe probe;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	if (bc_input_open(&input, (struct bc_input_stream){.fd = fd, .wake_fd = -1},
		    BC_FORMAT_UNKNOWN, &probe) == 0) {
		if (probe.format == BC_FORMAT_SEGMENT)
			read_chunks(input);
		else
			while (bc_input_read(input, plain, sizeof(plain)) > 0)
				continue;
		bc_input_close(input);
	}
	if (bc_segment_index_load(&index, fd) == 0) {
		for (uint32_t row = 0; row < index.head.rows; row++) {
			struct bc_chunk_info info;
			bc_segment_index_row(&index, row, &info);
		}
		bc_segment_index_free(&index);
	}
	close(fd);
	return 0;
}
