/* Fuzz target: the record encoder. The first byte selects the level, the second how much room the
 * output lacks; the rest is the input. LZ4 must decode what comes out. */
#include <lz4.h>
#include <stdlib.h>
#include <string.h>

#include "formats/segment/record_encoder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 3)
		return 0;
	enum bc_level level = data[0] % BC_LEVELS;
	size_t bytes = size - 2;
	size_t bound = (size_t)LZ4_compressBound((int)bytes);
	size_t room = bound - (data[1] < bound ? data[1] : bound);
	uint8_t *in = malloc(bytes);
	uint8_t *out = malloc(room + 1);
	uint8_t *back = malloc(bytes);

	if (in == NULL || out == NULL || back == NULL)
		abort();
	memcpy(in, data + 2, bytes);
	out[room] = 0xA5;
	size_t n = bc_record_compress(out, room, in, bytes, level);
	if (n > room || out[room] != 0xA5 || (n == 0 && room == bound))
		abort();
	if (n != 0 && (LZ4_decompress_safe((const char *)out, (char *)back, (int)n, (int)bytes) !=
				      (int)bytes ||
			      memcmp(back, in, bytes) != 0))
		abort();
	free(back);
	free(out);
	free(in);
	return 0;
}
