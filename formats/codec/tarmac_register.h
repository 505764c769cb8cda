/* What a register write of Tarmac does: which bytes of which register, whatever way it is written.
 *
 * Names are those of the registers themselves, lower-case: r14_svc and lr are r14, r13_main_s and
 * msp_s are r13, E15 is x15, SP_EL3 is xsp, cpsr is psr. sp is r13 with eight digits and xsp with
 * sixteen. Other registers keep their names. Of cpsr and fpcr the low 32 bits count. */
#ifndef BC_FORMATS_CODEC_TARMAC_REGISTER_H
#define BC_FORMATS_CODEC_TARMAC_REGISTER_H

#include "formats/base/must_check.h"
#include "formats/trace/entry.h"

#define BC_REGISTER_BYTES 256u /* of the widest: a vector of 2,048 bits */

struct bc_register_write {
	char name[32];
	unsigned offset;                  /* of the lowest byte written */
	unsigned bytes;                   /* that are written; 0: none ("--------") */
	uint8_t value[BC_REGISTER_BYTES]; /* the most significant of them first */
};

/* Returns 0; or -EINVAL for a value that is no hexadecimal number of whole bytes (x is read as 0),
 * has hyphens among what is written, is wider than BC_REGISTER_BYTES, or a name that is longer than
 * there is room for. */
int bc_tarmac_register(struct bc_register_write *out, const struct bc_register *reg) BC_MUST_CHECK;

#endif
