/* Converts a reference to Pentium bus cycles: the inverse of formats/bus/mapping.h with its default
 * attributes.
 *
 *     bc_bus_encoder_start()          selects the cycles and determines what they cannot express
 *     bc_bus_encoder_next() ...       returns address and byte enables of one sample after another
 *
 *   type                  cycles
 *   FETCH                 I_FETCH, a burst, for 32 bytes with a known attr other than 0;
 *                         otherwise NC_I_FETCH
 *   MEMREAD               D_READ, a burst, on the same condition; otherwise NC_D_READ
 *   MEMWRITE              WRITE_BACK, a burst, for 32 bytes with an attr other than 0 and 1;
 *                         otherwise D_WRITE
 *   IOREAD IOWRITE INTA   IO_READ, IO_WRITE, INT_ACK
 *   SHUTDOWN ... HALT     SPECIAL, selected by byte enables; CNTRLAGNTRES has BE FF. Address
 *                         bit 4 is set for STOPCLKACK and clear for HALT
 *   F0 + n                the invalid cycle n
 *
 * A burst or a special cycle is one sample with the unchanged address; a burst has byte enables 00.
 * All other references are split at multiples of 8 bytes, the width of the bus: one sample per 8
 * bytes, with an aligned address. A reference without a size, or with size 0, is one sample with
 * the unchanged address and BE FF. */
#ifndef BC_FORMATS_CODEC_BUS_ENCODE_H
#define BC_FORMATS_CODEC_BUS_ENCODE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/trace/entry.h"

struct bc_bus_encoder {
	uint64_t addr;   /* next byte; before the first sample, the address of the reference */
	uint64_t last;   /* address of the last byte, or `addr` if the address is used unchanged */
	uint8_t be;      /* byte enables of a sample that is not split */
	uint8_t control; /* of every sample: the cycle type, low nibble 0 */
	bool is_split;   /* split into samples of at most 8 bytes */
	bool is_memory;  /* the address is a memory address */
	bool is_over;
	uint32_t lost; /* traits of the reference that the cycles do not represent */
};

/* Starts encoding a reference. Its type must exist on a Pentium bus. Returns false, with *encoder
 * set, if the reference extends beyond 64 bits of address. */
bool bc_bus_encoder_start(struct bc_bus_encoder *encoder, const struct bc_entry *entry);

/* Returns address and byte enables of the next sample. Call only while !is_over. */
void bc_bus_encoder_next(struct bc_bus_encoder *encoder, uint64_t *addr, uint8_t *be);

#endif
