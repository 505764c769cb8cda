/* Fuzz target: the frame reader must find the same frames in the whole input and in pieces. The
 * first byte of the input is the length of the pieces. */
#include <stdlib.h>
#include <string.h>

#include "formats/bus/bcp1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct summary {
	uint64_t frames;
	uint64_t damaged;
	uint64_t samples;
	uint64_t skipped;
	uint64_t offset;
};

static struct summary read_all(
	struct bc_bcp1_reader *reader, const uint8_t *data, size_t size, size_t piece)
{
	struct summary s = {0};
	struct bc_bcp1_frame frame;

	bc_bcp1_reader_init(reader);
	for (size_t at = 0; at <= size; at += piece) {
		const uint8_t *p = data + at;
		size_t n = size - at < piece ? size - at : piece;
		bool is_last = size - at <= piece;
		enum bc_bcp1_found found;
		while ((found = bc_bcp1_next(reader, &p, &n, is_last, &frame)) != BC_BCP1_MORE) {
			s.frames += found == BC_BCP1_FRAME;
			s.damaged += found == BC_BCP1_DAMAGED;
			for (uint32_t i = 0; found == BC_BCP1_FRAME && i < frame.header.samples;
				i++)
				s.samples += frame.samples[i * BC_BCP1_SAMPLE_BYTES + 7];
		}
		if (is_last)
			break;
	}
	s.skipped = reader->skipped_bytes;
	s.offset = reader->offset;
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct bc_bcp1_reader reader;

	if (size == 0)
		return 0;
	size_t piece = (size_t)data[0] + 1;
	struct summary whole = read_all(&reader, data + 1, size - 1, size);
	struct summary pieces = read_all(&reader, data + 1, size - 1, piece);
	if (memcmp(&whole, &pieces, sizeof(whole)) != 0 || whole.offset != size - 1)
		abort();
	return 0;
}
