/* A callback for long-running work on files: called after each piece, to show that the work is not
 * stuck. */
#ifndef BC_FORMATS_BASE_PROGRESS_CB_H
#define BC_FORMATS_BASE_PROGRESS_CB_H

#include <stddef.h>

struct bc_progress_cb {
	void (*on_progress)(void *context);
	void *context;
};

/* Calls the callback. `progress` may be NULL. */
static inline void bc_report_progress(const struct bc_progress_cb *progress)
{
	if (progress != NULL)
		progress->on_progress(progress->context);
}

#endif
