/* The lines of Tarmac that are memory accesses, made references: M, R08 and W08, LD and ST.
 *
 * Each takes a line at the word that says what it is. Data of more than eight bytes becomes several
 * references, of eight bytes each but for an odd rest, from the lowest address up; when no byte is
 * known, one. */
#ifndef BC_FORMATS_CODEC_TARMAC_ACCESS_H
#define BC_FORMATS_CODEC_TARMAC_ACCESS_H

#include "formats/codec/tarmac_line.h"

/* M, perhaps a letter for the kind of bus cycle, R or W, bytes, attributes. */
enum bc_tarmac_taken bc_tarmac_parse_m(struct bc_tarmac_line *line, const char *at);

/* R08, W04 and so on. */
enum bc_tarmac_taken bc_tarmac_parse_rw(struct bc_tarmac_line *line, const char *at);

#define BC_TARMAC_NO_ACCESS UINT16_MAX

/* LD and ST, and a line that goes on with one: an address where its kind should be. *access* is the
 * type of the access that the line before was, or BC_TARMAC_NO_ACCESS, and becomes this line's. */
enum bc_tarmac_taken bc_tarmac_parse_ld_st(
	struct bc_tarmac_line *line, const char *at, uint16_t *access);
enum bc_tarmac_taken bc_tarmac_parse_continued(
	struct bc_tarmac_line *line, const char *at, uint16_t *access);

#endif
