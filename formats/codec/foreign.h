/* Names what a file is that buscap can't read, so that a message can say how to get at the trace in
 * it: other compressions, archives, UTF-16. */
#ifndef BC_FORMATS_CODEC_FOREIGN_H
#define BC_FORMATS_CODEC_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/codec/unpack.h"

/* Describes the content of a file, which may be compressed with `packing`, from the first bytes of
 * its content. Returns false if they are none of these; otherwise sets *err to a clause. Two bytes
 * are enough for some, so call it only if no format fits. `may_be_records`: several do; then at
 * least four bytes must be right. */
bool bc_describe_foreign(char *err, size_t errlen, enum bc_packing packing, const uint8_t *head,
	size_t bytes, bool may_be_records);

/* Whether a file is a program, library or object file. The tables of numbers in it may fit a format
 * of records. */
bool bc_is_elf(const uint8_t *head, size_t bytes);

#endif
