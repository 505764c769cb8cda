/* Records as text, many at a time: what bc_record_print() writes, several times as fast.
 *
 * A bus shows few combinations of type, size, attr and proc: the text of each, which stands between
 * address and time, is made once and kept. */
#ifndef BC_CLI_IO_RECORD_TEXT_H
#define BC_CLI_IO_RECORD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/bus/dialect.h"
#include "formats/bus/record.h"

#define BC_RECORD_TEXTS 256u

struct bc_record_text {
	struct {
		uint32_t meta; /* bytes 4..7 of a record */
		uint8_t bytes; /* 0: none yet */
		char text[27];
	} kept[BC_RECORD_TEXTS];
};

/* Sets up an empty one. */
void bc_record_text_init(struct bc_record_text *text);

/* Prints n records at `out`, which has room for n * BC_RECORD_TEXT_MAX. Returns the number of bytes
 * written. */
size_t bc_record_text_print(
	struct bc_record_text *text, char *out, const uint8_t *records, size_t n);

#define BC_MISFIT_TEXT_MAX 128

/* Whether a record of a dialect has an address or a time of more than the 32 bits that a BYU record
 * has for it; `out` then gets a clause that names the value. */
bool bc_misfit_print(char out[BC_MISFIT_TEXT_MAX], const uint8_t *in, enum bc_format format);

#endif
