/* Compares the record encoder's levels with LZ4's encoders on the chunks of BYU files:
 * bench_encoder NAME FILE [NAME FILE]... CPU time is that of the thread, the best of ROUNDS. */
#include <lz4.h>
#include <lz4hc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/bus/chunk.h"
#include "formats/segment/record_encoder.h"
#include "tests/support/cpu_time.h"

#define ROUNDS     5
#define CHUNKS_MAX 16

struct sum {
	double seconds;
	size_t in;
	size_t out;
};

static uint8_t out[LZ4_COMPRESSBOUND(BC_CHUNK_BYTES)];

static size_t compress_hc(const uint8_t *in, size_t bytes)
{
	return (size_t)LZ4_compress_HC(
		(const char *)in, (char *)out, (int)bytes, (int)sizeof(out), LZ4HC_CLEVEL_DEFAULT);
}

/* level BC_LEVELS: LZ4 HC 9. */
static void measure(struct sum *sum, const uint8_t *data, size_t bytes, unsigned level)
{
	*sum = (struct sum){0};
	for (size_t at = 0; at < bytes; at += BC_CHUNK_BYTES) {
		size_t n = bytes - at < BC_CHUNK_BYTES ? bytes - at : BC_CHUNK_BYTES;
		double start = cpu_time_s();
		size_t size = level == BC_LEVELS ? compress_hc(data + at, n)
						 : bc_record_compress(out, sizeof(out), data + at,
							   n, (enum bc_level)level);
		sum->seconds += cpu_time_s() - start;
		sum->in += n;
		sum->out += size;
	}
}

static uint8_t *read_file(const char *path, size_t *bytes)
{
	size_t room = (size_t)CHUNKS_MAX * BC_CHUNK_BYTES;
	uint8_t *data = malloc(room);
	FILE *file = fopen(path, "rb");

	if (data == NULL || file == NULL)
		exit(1);
	*bytes = fread(data, 1, room, file) / BC_RECORD_BYTES * BC_RECORD_BYTES;
	fclose(file);
	return data;
}

static void compare(const char *name, const char *path)
{
	struct sum best[BC_LEVELS + 1];
	size_t bytes;
	uint8_t *data = read_file(path, &bytes);

	for (int round = 0; round < ROUNDS; round++)
		for (unsigned level = 0; level < BC_LEVELS; level++) {
			struct sum sum;
			measure(&sum, data, bytes, level);
			if (round == 0 || sum.seconds < best[level].seconds)
				best[level] = sum;
		}
	measure(&best[BC_LEVELS], data, bytes, BC_LEVELS); /* slow: once */
	const struct sum *lz4 = &best[BC_LEVEL_LZ4];
	double lz4_rate = (double)lz4->in / lz4->seconds;
	for (unsigned level = 0; level <= BC_LEVELS; level++) {
		const struct sum *s = &best[level];
		char level_name[BC_LEVEL_NAME_MAX];
		bc_level_write(level_name, level);
		printf("  %-28s %-8s %6.2f : 1  %5.3f x size  %5.2f x speed\n",
			level == 0 ? name : "", level == BC_LEVELS ? "LZ4 HC 9" : level_name,
			(double)s->in / (double)s->out,
			(double)s->out * (double)lz4->in / (double)lz4->out / (double)s->in,
			(double)s->in / s->seconds / lz4_rate);
	}
	free(data);
}

int main(int argc, char **argv)
{
	puts("the encoder's levels, compared with LZ4_compress_default:");
	for (int i = 1; i + 1 < argc; i += 2)
		compare(argv[i], argv[i + 1]);
	return 0;
}
