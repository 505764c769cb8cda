/* For long work on files: somebody is called after each piece of it that is done, so that whoever
 * waits sees that it gets on. Not called while a call hangs. */
#ifndef BC_FORMATS_BASE_PROGRESS_CB_H
#define BC_FORMATS_BASE_PROGRESS_CB_H

#include <stddef.h>

struct bc_progress_cb {
	void (*on_step)(void *context);
	void *context;
};

/* A piece is done. NULL: nobody waits. */
static inline void bc_step(const struct bc_progress_cb *steps)
{
	if (steps != NULL)
		steps->on_step(steps->context);
}

#endif
