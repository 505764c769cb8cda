/* Puts segment files in the order of their recordings, whatever order they were named in. */
#ifndef BC_CLI_ORDER_H
#define BC_CLI_ORDER_H

#include "cli/console.h"

/* Sorts n paths by recording and segment number, as the segments' headers say; where a header is
 * damaged, as its first whole chunk says. The order stays as it is when one of them is no segment
 * in a regular file, and where nothing can be told. Says nothing of files that can't be read:
 * whoever reads them does. */
void bc_order_segments(const char **paths, int n);

#endif
