#include "formats/bus/sample.h"

#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/fast_format.h"

/* Names, and " NAME\n" padded to a constant length, because copying a constant length is
 * fastest. */
#define TAIL_BYTES 16
#define CYCLE(name)                                            \
	{                                                      \
		name, sizeof(" " name "\n") - 1, " " name "\n" \
	}

static const struct {
	const char *name;
	uint8_t tail_bytes;
	char tail[TAIL_BYTES];
} cycles[BC_CYCLE_TYPES] = {
	[0] = CYCLE("INVALID"),
	[BC_CYCLE_INT_ACK] = CYCLE("INT_ACK"),
	[2] = CYCLE("INVALID"),
	[BC_CYCLE_SPECIAL] = CYCLE("SPECIAL"),
	[4] = CYCLE("INVALID"),
	[BC_CYCLE_IO_READ] = CYCLE("IO_READ"),
	[6] = CYCLE("INVALID"),
	[BC_CYCLE_IO_WRITE] = CYCLE("IO_WRITE"),
	[BC_CYCLE_I_FETCH] = CYCLE("I_FETCH"),
	[BC_CYCLE_NC_I_FETCH] = CYCLE("NC_I_FETCH"),
	[10] = CYCLE("INVALID"),
	[11] = CYCLE("INVALID"),
	[BC_CYCLE_D_READ] = CYCLE("D_READ"),
	[BC_CYCLE_NC_D_READ] = CYCLE("NC_D_READ"),
	[BC_CYCLE_WRITE_BACK] = CYCLE("WRITE_BACK"),
	[BC_CYCLE_D_WRITE] = CYCLE("D_WRITE"),
};

const char *bc_cycle_name(unsigned cycle)
{
	return cycles[cycle % BC_CYCLE_TYPES].name;
}

int bc_cycle_by_name(const char *name)
{
	for (int cycle = 0; cycle < BC_CYCLE_TYPES; cycle++)
		if (strcmp(cycles[cycle].name, name) == 0)
			return cycle == 0 ? -1 : cycle; /* 0 is the first INVALID */
	return -1;
}

_Static_assert(8 + 1 + 2 + TAIL_BYTES <= BC_SAMPLE_TEXT_MAX, "the whole padded tail fits");

size_t bc_sample_print(char out[BC_SAMPLE_TEXT_MAX], const uint8_t sample[BC_SAMPLE_BYTES])
{
	unsigned cycle = sample[5] >> 4;
	char *p = bc_write_hex32(out, bc_be32(sample));

	*p++ = ' ';
	p = bc_write_hex8(p, sample[4]);
	memcpy(p, cycles[cycle].tail, TAIL_BYTES);
	return (size_t)(p - out) + cycles[cycle].tail_bytes;
}
