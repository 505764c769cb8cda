/* Parses the memory access lines of Tarmac (M, R08 and W08, LD and ST) into references.
 *
 * Each function starts at the word for the kind. An access of more than eight bytes becomes several
 * references of eight bytes each and possibly a shorter one, from the lowest address up. If no byte
 * is known, it becomes a single reference. */
#ifndef BC_FORMATS_CODEC_TARMAC_ACCESS_H
#define BC_FORMATS_CODEC_TARMAC_ACCESS_H

#include "formats/codec/tarmac_line.h"

/* M, optionally a letter for the kind of bus cycle, R or W, size in bytes, attributes. */
enum bc_tarmac_result bc_tarmac_parse_m(struct bc_tarmac_line *line, const char *at);

/* R08, W04 and so on. */
enum bc_tarmac_result bc_tarmac_parse_rw(struct bc_tarmac_line *line, const char *at);

#define BC_TARMAC_NO_ACCESS UINT16_MAX

/* LD and ST lines, and continuation lines, which have an address in place of the kind. *access is
 * the type of the access on the previous line, or BC_TARMAC_NO_ACCESS, and is set to that of this
 * line. */
enum bc_tarmac_result bc_tarmac_parse_ld_st(
	struct bc_tarmac_line *line, const char *at, uint16_t *access);
enum bc_tarmac_result bc_tarmac_parse_continued(
	struct bc_tarmac_line *line, const char *at, uint16_t *access);

#endif
