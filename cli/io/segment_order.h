/* Sorts segment files by recording and segment number, however the user listed them. */
#ifndef BC_CLI_IO_SEGMENT_ORDER_H
#define BC_CLI_IO_SEGMENT_ORDER_H

#include <stdbool.h>

#include "cli/term/console.h"

/* Sorts n paths by recording and segment number; of copies of a segment, a whole one comes first.
 * The numbers are read from the segment header or, if that is damaged, from the first intact chunk.
 * If one of the paths is not a regular file with a segment, the order is unchanged. Files that
 * can't be identified go last. Prints no errors: reading the files does. */
void bc_segment_order_sort(const char **paths, int n);

/* Returns true if all n paths are segments of the same recording. Files that are unreadable or
 * too damaged are assumed to belong to it. */
bool bc_segment_order_is_one_recording(const char **paths, int n);

#endif
