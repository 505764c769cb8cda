/* Describes an entry of any kind in one short line for people, as `buscap diff` shows it. Nothing
 * parses these lines. */
#ifndef BC_FORMATS_TRACE_ENTRY_TEXT_H
#define BC_FORMATS_TRACE_ENTRY_TEXT_H

#include <stddef.h>

#include "formats/trace/entry.h"

/* Maximum output of bc_entry_text(), in bytes, including the terminating zero. */
#define BC_ENTRY_TEXT_MAX 512

/* Writes a line such as "MEMREAD 000a0008 size 8 attr 0 proc 1 @115", terminated by a zero but
 * without a newline. The time comes last, after '@', with its unit. Bytes other than printable
 * ASCII become '?'. A line that is too long ends in "...". Returns the length of the line. */
size_t bc_entry_text(char out[BC_ENTRY_TEXT_MAX], const struct bc_entry *entry);

#endif
