/* Compresses records of every character and decodes them: encoder FIRST COUNT CHUNKS.
 *
 * COUNT inputs of 1 to 4,096 bytes, from number FIRST on, then CHUNKS inputs of a whole chunk, at
 * every level. Input and output have exactly the documented room, so that a sanitizer reports any
 * access beyond it. LZ4 decodes each block. The same arguments give the same inputs; the first that
 * fails is reported, and ends the program with exit code 1. */
#include <inttypes.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/bus/chunk.h"
#include "formats/segment/record_encoder.h"
#include "tests/support/odd_records.h"
#include "tests/support/traces.h"

#define SMALL_MAX 4096u

static void report_failure(uint64_t number, unsigned kind, size_t bytes, unsigned level)
{
	printf("input %" PRIu64 " (kind %u, %zu bytes) at level %u does not come back\n", number,
		kind, bytes, level);
	exit(1);
}

/* One input at each level, with room for any block, or now and then with too little. */
static void round_trips(struct dice *dice, const struct trace *bus, uint64_t number, size_t bytes)
{
	unsigned kind = dice_below(dice, ODD_KINDS);
	uint8_t *in = malloc(bytes);
	size_t room = (size_t)LZ4_compressBound((int)bytes);

	if (dice_below(dice, 4) == 0)
		room = 1 + dice_below(dice, (uint32_t)bytes);
	uint8_t *out = malloc(room);
	uint8_t *back = malloc(bytes);
	if (in == NULL || out == NULL || back == NULL)
		exit(1);
	odd_records(dice, kind, in, bytes, bus->bytes, bus->n / BC_RECORD_BYTES);
	for (unsigned level = 0; level < BC_LEVELS; level++) {
		size_t n = bc_record_compress(out, room, in, bytes, level);
		if (n > room || (n == 0 && room >= (size_t)LZ4_compressBound((int)bytes)))
			report_failure(number, kind, bytes, level);
		if (n != 0 && (LZ4_decompress_safe((const char *)out, (char *)back, (int)n,
				       (int)bytes) != (int)bytes ||
				      memcmp(back, in, bytes) != 0))
			report_failure(number, kind, bytes, level);
	}
	free(back);
	free(out);
	free(in);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	uint64_t first = strtoull(argv[1], NULL, 10);
	uint64_t count = strtoull(argv[2], NULL, 10);
	uint64_t chunks = strtoull(argv[3], NULL, 10);
	struct trace bcp1 = trace_of_sim(1, 2 * BC_CHUNK_RECORDS, 2);
	struct trace bus = trace_to_byu(&bcp1, BC_FORMAT_BYU);

	for (uint64_t i = 0; i < count + chunks; i++) {
		struct dice dice = {.state = (first + i) * UINT64_C(0x9E3779B97F4A7C15) | 1};
		dice_roll(&dice);
		round_trips(&dice, &bus, first + i,
			i < count ? 1 + dice_below(&dice, SMALL_MAX) : BC_CHUNK_BYTES);
	}
	trace_free(&bus);
	trace_free(&bcp1);
	return 0;
}
