/* Decodes a register write of Tarmac: which bytes of which register it sets, in any of the
 * notations.
 *
 * Names are normalized to those of the registers, in lower case: r14_svc and lr are r14, r13_main_s
 * and msp_s are r13, E15 is x15, SP_EL3 is xsp, cpsr is psr. sp is r13 if the value has eight
 * digits and xsp if it has sixteen. Other registers keep their names. Only the low 32 bits of cpsr
 * and fpcr count. */
#ifndef BC_FORMATS_CODEC_TARMAC_REGISTER_H
#define BC_FORMATS_CODEC_TARMAC_REGISTER_H

#include "formats/base/must_check.h"
#include "formats/trace/entry.h"

#define BC_REGISTER_BYTES 256u /* the widest: a vector of 2,048 bits */

struct bc_register_write {
	char name[32];
	unsigned offset;                  /* of the lowest byte written */
	unsigned bytes;                   /* number of bytes written; 0: none ("--------") */
	uint8_t value[BC_REGISTER_BYTES]; /* most significant byte first */
};

/* Returns 0, or -EINVAL if the value is not a hexadecimal number of whole bytes (x is read as 0),
 * has hyphens between written digits or exceeds BC_REGISTER_BYTES, or if the name is too long. */
int bc_tarmac_register(struct bc_register_write *out, const struct bc_register *reg) BC_MUST_CHECK;

#endif
