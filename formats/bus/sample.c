/* Pentium bus samples: their text, and the table that maps each of the 4,096 combinations of cycle
 * type and byte enables to what a record needs. Everything that depends on the cycle is decided
 * when the table is built, so bc_map_sample() is one look-up and a few bit operations. */
#include "formats/bus/sample.h"

#include <string.h>

#include "formats/base/fast_text.h"

/* Names, and " NAME\n" padded to a constant length, because copying that is fastest. */
#define TAIL_BYTES 16
#define CYCLE(name, reqtype, is_burst)                                                \
	{                                                                             \
		name, sizeof(" " name "\n") - 1, " " name "\n", (reqtype), (is_burst) \
	}
#define INVALID(n) CYCLE("INVALID", BC_REQ_INVALID + (n), false)

static const struct {
	const char *name;
	uint8_t tail_bytes;
	char tail[TAIL_BYTES];
	uint8_t reqtype;
	bool is_burst;
} cycles[BC_CYCLE_TYPES] = {
	[0] = INVALID(0),
	[BC_CYCLE_INT_ACK] = CYCLE("INT_ACK", BC_REQ_INTA, false),
	[2] = INVALID(2),
	[BC_CYCLE_SPECIAL] = CYCLE("SPECIAL", 0, false),
	[4] = INVALID(4),
	[BC_CYCLE_IO_READ] = CYCLE("IO_READ", BC_REQ_IOREAD, false),
	[6] = INVALID(6),
	[BC_CYCLE_IO_WRITE] = CYCLE("IO_WRITE", BC_REQ_IOWRITE, false),
	[BC_CYCLE_I_FETCH] = CYCLE("I_FETCH", BC_REQ_FETCH, true),
	[BC_CYCLE_NC_I_FETCH] = CYCLE("NC_I_FETCH", BC_REQ_FETCH, false),
	[10] = INVALID(10),
	[11] = INVALID(11),
	[BC_CYCLE_D_READ] = CYCLE("D_READ", BC_REQ_MEMREAD, true),
	[BC_CYCLE_NC_D_READ] = CYCLE("NC_D_READ", BC_REQ_MEMREAD, false),
	[BC_CYCLE_WRITE_BACK] = CYCLE("WRITE_BACK", BC_REQ_MEMWRITE, true),
	[BC_CYCLE_D_WRITE] = CYCLE("D_WRITE", BC_REQ_MEMWRITE, false),
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

/* ---- mapping to records */

struct bc_mapping_options bc_mapping_options_default(void)
{
	return (struct bc_mapping_options){
		.attr =
			{
				[BC_CYCLE_I_FETCH] = 3,
				[BC_CYCLE_D_READ] = 3,
				[BC_CYCLE_WRITE_BACK] = 3,
				[BC_CYCLE_D_WRITE] = 1,
			},
	};
}

static uint64_t fields_entry(uint8_t reqtype, uint32_t size)
{
	return (uint64_t)(reqtype | size << 8) << 32;
}

/* By byte enables; 0: unknown. */
static const uint8_t specials[256] = {
	[BC_SPECIAL_SHUTDOWN] = BC_REQ_SHUTDOWN,
	[BC_SPECIAL_FLUSH] = BC_REQ_FLUSH,
	[BC_SPECIAL_HALT] = BC_REQ_HALT,
	[BC_SPECIAL_WRITE_BACK] = BC_REQ_SYNC,
	[BC_SPECIAL_FLUSH_ACK] = BC_REQ_FLUSHACK,
	[BC_SPECIAL_BRANCH_TRACE] = BC_REQ_BRTRACEREC,
};

static uint64_t special_entry(uint8_t be)
{
	if (specials[be] == 0)
		return fields_entry(BC_REQ_CNTRLAGNTRES, 0) | BC_MAP_UNKNOWN | BC_MAP_RARE;
	return fields_entry(specials[be], 0) |
	       (be == BC_SPECIAL_HALT ? BC_MAP_HALT | BC_MAP_RARE : 0);
}

/* The address becomes that of the lowest enabled byte: 7 ^ its number undoes BC_MAP_ALIGN. */
static uint64_t bytes_entry(uint8_t reqtype, uint8_t be)
{
	uint32_t size = 0;
	uint64_t lowest = 0;

	for (unsigned byte = 8; byte-- > 0;) {
		if ((be >> byte & 1) == 0) {
			size++;
			lowest = BC_MAP_ALIGN | (7 ^ byte);
		}
	}
	return fields_entry(reqtype, size) | lowest;
}

static uint64_t entry_of(unsigned cycle, uint8_t be, const struct bc_mapping_options *options)
{
	uint8_t reqtype = cycles[cycle].reqtype;
	bool is_dropped = reqtype >= BC_REQ_INVALID && !options->keep_invalid;

	if (cycle == BC_CYCLE_SPECIAL)
		return special_entry(be);
	if (cycles[cycle].is_burst)
		return fields_entry(reqtype, options->size_v1_0 ? 8 : 32);
	return bytes_entry(reqtype, be) | (is_dropped ? BC_MAP_DROP | BC_MAP_RARE : 0);
}

void bc_mapping_init(struct bc_mapping *mapping, const struct bc_mapping_options *options)
{
	struct bc_mapping_options all = bc_mapping_options_default();

	all.keep_invalid = true;
	options = options != NULL ? options : &all;
	mapping->options = *options;
	for (unsigned be = 0; be < 256; be++)
		for (unsigned cycle = 0; cycle < BC_CYCLE_TYPES; cycle++)
			mapping->entry[be << 4 | cycle] = entry_of(cycle, (uint8_t)be, options) |
							  (uint64_t)options->attr[cycle] << 48;
}
