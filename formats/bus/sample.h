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

#include <stddef.h>
#include <stdint.h>

#define BC_SAMPLE_BYTES 6

/* The cycle type: the upper four bits of the control byte (M/IO#, D/C#, W/R#, cache). Other values
 * are invalid cycles. */
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

/* Writes one line in the format of BYU's printer ("%08x %02x NAME\n"), without a terminating zero.
 * Returns the length. */
size_t bc_sample_print(char out[BC_SAMPLE_TEXT_MAX], const uint8_t sample[BC_SAMPLE_BYTES]);

#endif
