/* What the headers of two segments say about how their recordings are related. */
#ifndef BC_CLI_DIFF_DIFF_ORIGIN_H
#define BC_CLI_DIFF_DIFF_ORIGIN_H

#include <stdbool.h>

#include "cli/io/trace.h"
#include "formats/trace/filter.h"

struct bc_diff_origin {
	bool is_known;
	char recordings[1024]; /* ids of this recording and of those that it was made from */
	char cut[1024];        /* the selection, if it was cut from another one; or empty */
	bool has_filter;       /* it selects by address, type or processor: */
	struct bc_filter filter;
};

/* Reads the header of the trace's current file, without reading on. */
void bc_diff_origin_read(struct bc_diff_origin *origin, const struct bc_trace *trace);

/* Whether both were made from one recording, so that they are on one clock. */
bool bc_diff_origin_is_shared(const struct bc_diff_origin *a, const struct bc_diff_origin *b);

#endif
