/* Puts segment files in the order of their recordings, whatever order they were named in. */
#ifndef BC_CLI_IO_SEGMENT_ORDER_H
#define BC_CLI_IO_SEGMENT_ORDER_H

#include <stdbool.h>

#include "cli/term/console.h"

/* Sorts n paths by recording and segment number, as the segments' headers say; where a header is
 * damaged, as its first whole chunk says. The order stays as it is when one of them is no segment
 * in a regular file, and where nothing can be told. Says nothing of files that can't be read:
 * whoever reads them does. */
void bc_segment_order_sort(const char **paths, int n);

/* Whether these are segments of one recording, as far as they tell: of a file that can't be read or
 * is damaged nothing speaks against it. */
bool bc_segment_order_is_one_recording(const char **paths, int n);

#endif
