/* The Pentium bus sample: 6 bytes that describe one bus cycle.
 *
 *   offset  bytes  field
 *   0       4      address, big-endian
 *   4       1      byte enables, active low; bit 7 is the most significant of the eight bytes
 *   5       1      control: bits 7..4 the cycle type, bits 3..0 unused (bcp1: the agent id)
 *
 * A file of samples is the format `raw6`. Source: BYU Performance Evaluation Laboratory, Pentium
 * bus trace format. BYU's printer reads the address in the host's byte order; ours prints the true
 * address on every host. */
#ifndef BC_FORMATS_BUS_SAMPLE_H
#define BC_FORMATS_BUS_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/bytes.h"
#include "formats/bus/record.h"

#define BC_SAMPLE_BYTES 6

/* The cycle type: upper bits of the control byte (M/IO#, D/C#, W/R#, cache). Others: invalid. */
enum bc_cycle {
	BC_CYCLE_INT_ACK = 1,
	BC_CYCLE_SPECIAL = 3,
	BC_CYCLE_IO_READ = 5,
	BC_CYCLE_IO_WRITE = 7,
	BC_CYCLE_I_FETCH = 8,
	BC_CYCLE_NC_I_FETCH = 9,
	BC_CYCLE_D_READ = 12,
	BC_CYCLE_NC_D_READ = 13,
	BC_CYCLE_WRITE_BACK = 14,
	BC_CYCLE_D_WRITE = 15,
	BC_CYCLE_TYPES = 16,
};

/* The byte enables identify a special cycle. */
enum bc_special {
	BC_SPECIAL_SHUTDOWN = 0xFE,
	BC_SPECIAL_FLUSH = 0xFD,
	BC_SPECIAL_HALT = 0xFB, /* address bit 4 set: stop grant */
	BC_SPECIAL_WRITE_BACK = 0xF7,
	BC_SPECIAL_FLUSH_ACK = 0xEF,
	BC_SPECIAL_BRANCH_TRACE = 0xDF,
};

/* The name of cycle type `cycle` modulo 16 in the BYU document; "INVALID" for invalid types. */
const char *bc_cycle_name(unsigned cycle);

/* The cycle type with this name, or -1. "INVALID" gives -1. */
int bc_cycle_by_name(const char *name);

#define BC_SAMPLE_TEXT_MAX 32

/* Writes a line as BYU's printer does ("%08x %02x NAME\n"), without a zero. Returns its length. */
size_t bc_sample_print(char out[BC_SAMPLE_TEXT_MAX], const uint8_t sample[BC_SAMPLE_BYTES]);

/* ---- mapping to records
 *
 * Maps Pentium bus samples to BYU records with a table of 4096 entries: byte enables x cycle type.
 *
 * Set a struct bc_mapping_options, build the table once with bc_mapping_init(), and look up each
 * sample with bc_map_entry() and bc_map_sample(). It is then read-only, so threads can share it.
 *
 *   cycle         size            reqtype   attr  address
 *   INT_ACK       zeros in BE     INTA      0     lowest enabled byte
 *   SPECIAL       0               by BE     0     unchanged
 *   IO_READ       zeros in BE     IOREAD    0     lowest enabled byte
 *   IO_WRITE      zeros in BE     IOWRITE   0     lowest enabled byte
 *   I_FETCH       32, a burst     FETCH     3     unchanged
 *   NC_I_FETCH    zeros in BE     FETCH     0     lowest enabled byte
 *   D_READ        32, a burst     MEMREAD   3     unchanged
 *   NC_D_READ     zeros in BE     MEMREAD   0     lowest enabled byte
 *   WRITE_BACK    32, a burst     MEMWRITE  3     unchanged
 *   D_WRITE       zeros in BE     MEMWRITE  1     lowest enabled byte
 *   invalid       zeros in BE     F0 + type 0     lowest enabled byte (dropped unless kept)
 *
 * "Lowest enabled byte": (sample address & ~7) + the number of the lowest zero in BE; if no byte is
 * enabled, the unchanged address. Special cycles by BE: FE SHUTDOWN, FD FLUSH, FB HALT (with
 * address bit 4 set: STOPCLKACK), F7 SYNC, EF FLUSHACK, DF BRTRACEREC, any other CNTRLAGNTRES,
 * counted as unknown. */

struct bc_mapping_options {
	uint8_t attr[BC_CYCLE_TYPES]; /* the record's attr, by cycle type */
	bool size_v1_0;               /* BYU v1.0: no size above 8 */
	bool keep_invalid;            /* make records of invalid cycles instead of dropping them */
};

/* A table entry: what XORed with the address gives the record's first seven bytes (bits 0..2: the
 * address's low bits; 32..55: reqtype, size, attr), and these: */
#define BC_MAP_DROP    (UINT64_C(1) << 56) /* drop: an invalid cycle */
#define BC_MAP_UNKNOWN (UINT64_C(1) << 57) /* an undocumented special cycle */
#define BC_MAP_HALT    (UINT64_C(1) << 58) /* HALT, or STOPCLKACK if address bit 4 is set */
#define BC_MAP_ALIGN   (UINT64_C(7) << 60) /* first set the address's low bits */
#define BC_MAP_RARE    (UINT64_C(1) << 63) /* one of the first three */

struct bc_mapping {
	uint64_t entry[256 * BC_CYCLE_TYPES];
	struct bc_mapping_options options;
};

struct bc_mapping_options bc_mapping_options_default(void);

/* `options` NULL: the default, but keeps invalid cycles: the target decides whether to drop them.
 */
void bc_mapping_init(struct bc_mapping *mapping, const struct bc_mapping_options *options);

static inline uint64_t bc_map_entry(
	const struct bc_mapping *mapping, const uint8_t sample[BC_SAMPLE_BYTES])
{
	return mapping->entry[(uint16_t)(sample[4] << 8 | sample[5]) >> 4];
}

/* Writes a sample's record without its time, 8 bytes. `entry`: bc_map_entry(), not BC_MAP_RARE. */
static inline void bc_map_plain_sample(
	uint8_t *out, uint64_t entry, const uint8_t sample[BC_SAMPLE_BYTES], uint8_t proc)
{
	/* Branch-free: the order of bursts and single transfers is unpredictable. */
	bc_write_le64(out, (bc_be32(sample) | entry >> 60) ^ entry);
	out[7] = proc;
}

/* The same for any entry. */
static inline void bc_map_sample(
	uint8_t *out, uint64_t entry, const uint8_t sample[BC_SAMPLE_BYTES], uint8_t proc)
{
	bc_map_plain_sample(out, entry & ~BC_MAP_RARE, sample, proc);
	if ((entry & BC_MAP_HALT) != 0 && (sample[3] & 0x10) != 0)
		out[4] = BC_REQ_STOPCLKACK;
}

#endif
