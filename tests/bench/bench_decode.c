/* Prints the CPU time of decoding bcp1 samples into records, compared with memcpy() of the records,
 * the minimum for any decoder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/sim/sim.h"
#include "formats/bus/stamp.h"
#include "tests/support/cpu_time.h"

#define FRAMES 256u
#define ROUNDS 40

struct bench {
	uint8_t *stream; /* complete frames */
	size_t bytes;
	size_t records;
	struct bc_chunk *chunk;
	uint8_t *copy;
};

static void make_stream(struct bench *b)
{
	struct bc_sim_options options = {.seed = 1, .agents = 1};
	struct bc_sim *sim;

	if (bc_sim_open(&sim, &options) != 0)
		exit(1);
	b->stream = malloc((size_t)FRAMES * BC_SIM_FRAME_MAX);
	for (unsigned i = 0; i < FRAMES; i++)
		b->bytes += bc_sim_next(
			sim, BC_SIM_FRAME_SAMPLES, UINT64_MAX, b->stream + b->bytes);
	bc_sim_close(sim);
}

/* Decodes all frames into chunks: CRC, mapping, deltas. Returns the number of records. */
static size_t decode(const struct bench *b, const struct bc_mapping *mapping)
{
	static struct bc_bcp1_reader reader;
	struct bc_stamper stamper;
	struct bc_bcp1_frame frame;
	const uint8_t *at = b->stream;
	size_t left = b->bytes;
	size_t records = 0;

	bc_stamper_init(&stamper, mapping);
	bc_bcp1_reader_init(&reader);
	bc_chunk_reset(b->chunk, 0, 0);
	while (bc_bcp1_next(&reader, &at, &left, true, &frame) == BC_BCP1_FRAME) {
		struct bc_samples run = bc_samples_of_frame(&frame);
		while (run.count != 0) {
			struct bc_stamped stamped;
			if (bc_stamp_samples(&stamper, &run, BC_NO_TICK_LIMIT, b->chunk,
				    &stamped) == BC_STAMP_FULL)
				bc_chunk_reset(b->chunk, stamper.record_tick, 0);
			records += stamped.kept;
		}
	}
	return records;
}

int main(void)
{
	struct bench b = {.chunk = calloc(1, sizeof(struct bc_chunk))};
	static struct bc_mapping mapping;
	const struct bc_mapping_options options = bc_mapping_options_default();
	double decoding = 1e9;
	double copying = 1e9;

	const size_t records_max = (size_t)FRAMES * BC_SIM_FRAME_SAMPLES;

	b.copy = malloc(records_max * BC_RECORD_BYTES);
	if (b.chunk == NULL || b.copy == NULL)
		return 1;
	memset(b.copy, 1, records_max * BC_RECORD_BYTES);
	bc_mapping_init(&mapping, &options);
	make_stream(&b);
	for (int round = 0; round < ROUNDS; round++) {
		double start = cpu_time_s();
		b.records = decode(&b, &mapping);
		double middle = cpu_time_s();
		for (size_t left = b.records; left != 0;) {
			size_t n = left < BC_CHUNK_RECORDS ? left : BC_CHUNK_RECORDS;
			memcpy(b.chunk->records, b.copy + (b.records - left) * BC_RECORD_BYTES,
				n * BC_RECORD_BYTES);
			__asm__ volatile("" : : "r"(b.chunk->records) : "memory");
			left -= n;
		}
		double end = cpu_time_s();
		decoding = middle - start < decoding ? middle - start : decoding;
		copying = end - middle < copying ? end - middle : copying;
	}
	printf("decode (CRC, mapping, deltas): %.2f ns per sample, %.2f x the CPU time of memcpy "
	       "of "
	       "the records\n",
		decoding * 1e9 / (double)b.records, decoding / copying);
	free(b.stream);
	free(b.copy);
	free(b.chunk);
	return 0;
}
