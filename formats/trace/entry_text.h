/* One entry in one short line for a person to read, whatever its kind: what a comparison shows.
 * It is no format: nothing reads it back. */
#ifndef BC_FORMATS_TRACE_ENTRY_TEXT_H
#define BC_FORMATS_TRACE_ENTRY_TEXT_H

#include <stddef.h>

#include "formats/trace/entry.h"

/* The most bytes that bc_entry_text() writes, the terminating zero included. */
#define BC_ENTRY_TEXT_MAX 512

/* "MEMREAD 000a0008 size 8 attr 0 proc 1 @115": writes it with a terminating zero and without a
 * newline. The time stands last, behind '@', with its unit. Bytes that are no printable ASCII
 * become
 * '?'; a line that is too long ends in "...". Returns its length. */
size_t bc_entry_text(char out[BC_ENTRY_TEXT_MAX], const struct bc_entry *entry);

#endif
