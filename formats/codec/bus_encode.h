/* A reference as Pentium bus cycles: the way back of formats/bus/mapping.h, with its default attrs.
 *
 *     bc_bus_encoder_start()          which cycles they are, and what of it they can't say
 *     bc_bus_encoder_next() ...       one sample's address and byte enables after another
 *
 *   type                  cycles
 *   FETCH                 I_FETCH, a burst, of 32 bytes whose attr is known and not 0; else
 *                         NC_I_FETCH
 *   MEMREAD               D_READ, a burst, likewise; else NC_D_READ
 *   MEMWRITE              WRITE_BACK, a burst, of 32 bytes whose attr is neither 0 nor 1; else
 *                         D_WRITE
 *   IOREAD IOWRITE INTA   IO_READ, IO_WRITE, INT_ACK
 *   SHUTDOWN ... HALT     SPECIAL, by byte enables; CNTRLAGNTRES has BE FF. Address bit 4 is set
 *                         for STOPCLKACK and clear for HALT
 *   F0 + n                the invalid cycle n
 *
 * A burst and a special cycle are one sample with the address as it stands; a burst's byte enables
 * are 00. All others are cut at the bus's 8 bytes, so that n bytes at any address are a sample for
 * each 8 of its bytes, with an address aligned to 8. Without a size, or with 0, it is one sample
 * with BE FF and the address as it stands. */
#ifndef BC_FORMATS_CODEC_BUS_ENCODE_H
#define BC_FORMATS_CODEC_BUS_ENCODE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/trace/entry.h"

struct bc_bus_encoder {
	uint64_t addr;   /* of the first byte to come; before the first sample, of the reference */
	uint64_t last;   /* of its last byte, or `addr` where the address stands as it is */
	uint8_t be;      /* of a sample that is not cut */
	uint8_t control; /* of all samples: the cycle type, low nibble 0 */
	bool is_cut;     /* into samples of at most 8 bytes */
	bool is_memory;  /* the address is one of memory */
	bool is_over;
	uint32_t lost; /* traits of the reference that the cycles don't give back */
};

/* Begins with a reference of a type that a Pentium bus has. Returns false, with *cycles set, when
 * its last byte would lie behind 64 bits of address. */
bool bc_bus_encoder_start(struct bc_bus_encoder *cycles, const struct bc_entry *entry);

/* The next sample's address and byte enables, from cycles that are not over. */
void bc_bus_encoder_next(struct bc_bus_encoder *cycles, uint64_t *addr, uint8_t *be);

#endif
