/* What a command prints: its standard output and error, line by line into the log. So many lines
 * are logged and the others counted; all are read, slowly where there are many, so that a flood
 * costs the loop little and whoever makes it waits. The loop's thread. */
#ifndef BC_DAEMON_HOOK_HOOK_OUTPUT_H
#define BC_DAEMON_HOOK_HOOK_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/base/log_limit.h"
#include "formats/base/must_check.h"

/* Lines of one command that are logged, and bytes of a line. */
#define BC_HOOK_LINES_MAX 50u
#define BC_HOOK_LINE_MAX  400u

struct bc_hook_output {
	int fd;
	uv_poll_t poll;
	uv_timer_t pause;
	const char *name; /* whose output it is; the caller's */
	bool is_over;     /* nobody can write to it any more */
	bool is_draining;
	size_t burst; /* bytes read since the last pause */
	char line[BC_HOOK_LINE_MAX];
	size_t used;
	bool is_long;       /* the line has more than that */
	unsigned lines_max; /* of it may be logged; the caller's to set before the loop turns */
	struct bc_log_limits *limits; /* likewise, of what is said when there are more */
	unsigned lines;               /* logged */
	uint64_t left_out;
	unsigned open_handles;
	void *context;
	void (*on_end)(void *context);
	void (*on_closed)(void *context);
};

/* Makes a pipe, whose end to write to is the caller's to give on and close. on_end() is called when
 * nobody has it any more. Returns 0, or a negative errno with nothing to close. */
int bc_hook_output_open(struct bc_hook_output *output, uv_loop_t *loop, int *write_fd,
	const char *name, void (*on_end)(void *context), void *context) BC_MUST_CHECK;

/* What is there still is read without a pause: the command has ended. on_end() may be called from
 * within. */
void bc_hook_output_drain(struct bc_hook_output *output);

/* Ends it; on_closed() is called when its memory is free. */
void bc_hook_output_close(struct bc_hook_output *output, void (*on_closed)(void *context));

#endif
