#include "formats/bus/sample.h"

#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/fast_format.h"

static const char *const names[BC_CYCLE_TYPES] = {
	[0] = "INVALID",
	[BC_CYCLE_INT_ACK] = "INT_ACK",
	[2] = "INVALID",
	[BC_CYCLE_SPECIAL] = "SPECIAL",
	[4] = "INVALID",
	[BC_CYCLE_IO_READ] = "IO_READ",
	[6] = "INVALID",
	[BC_CYCLE_IO_WRITE] = "IO_WRITE",
	[BC_CYCLE_I_FETCH] = "I_FETCH",
	[BC_CYCLE_NC_I_FETCH] = "NC_I_FETCH",
	[10] = "INVALID",
	[11] = "INVALID",
	[BC_CYCLE_D_READ] = "D_READ",
	[BC_CYCLE_NC_D_READ] = "NC_D_READ",
	[BC_CYCLE_WRITE_BACK] = "WRITE_BACK",
	[BC_CYCLE_D_WRITE] = "D_WRITE",
};

const char *bc_cycle_name(unsigned cycle)
{
	return names[cycle % BC_CYCLE_TYPES];
}

int bc_cycle_by_name(const char *name)
{
	for (int cycle = 0; cycle < BC_CYCLE_TYPES; cycle++)
		if (strcmp(names[cycle], name) == 0)
			return cycle == 0 ? -1 : cycle; /* 0 is the first INVALID */
	return -1;
}

/* " NAME\n" by cycle type, padded to a constant length, because such a copy is fastest. */
#define TAIL_BYTES 16

static const struct {
	uint8_t bytes;
	char text[TAIL_BYTES];
} tails[BC_CYCLE_TYPES] = {
	[0] = {9, " INVALID\n"},
	[BC_CYCLE_INT_ACK] = {9, " INT_ACK\n"},
	[2] = {9, " INVALID\n"},
	[BC_CYCLE_SPECIAL] = {9, " SPECIAL\n"},
	[4] = {9, " INVALID\n"},
	[BC_CYCLE_IO_READ] = {9, " IO_READ\n"},
	[6] = {9, " INVALID\n"},
	[BC_CYCLE_IO_WRITE] = {10, " IO_WRITE\n"},
	[BC_CYCLE_I_FETCH] = {9, " I_FETCH\n"},
	[BC_CYCLE_NC_I_FETCH] = {12, " NC_I_FETCH\n"},
	[10] = {9, " INVALID\n"},
	[11] = {9, " INVALID\n"},
	[BC_CYCLE_D_READ] = {8, " D_READ\n"},
	[BC_CYCLE_NC_D_READ] = {11, " NC_D_READ\n"},
	[BC_CYCLE_WRITE_BACK] = {12, " WRITE_BACK\n"},
	[BC_CYCLE_D_WRITE] = {9, " D_WRITE\n"},
};

_Static_assert(8 + 1 + 2 + TAIL_BYTES <= BC_SAMPLE_TEXT_MAX, "the whole padded tail fits");

size_t bc_sample_print(char out[BC_SAMPLE_TEXT_MAX], const uint8_t sample[BC_SAMPLE_BYTES])
{
	unsigned cycle = sample[5] >> 4;
	char *p = bc_write_hex32(out, bc_be32(sample));

	*p++ = ' ';
	p = bc_write_hex8(p, sample[4]);
	memcpy(p, tails[cycle].text, TAIL_BYTES);
	return (size_t)(p - out) + tails[cycle].bytes;
}
