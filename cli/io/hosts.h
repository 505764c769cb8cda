/* --hosts of find, marks, info and status: runs the command on many hosts over ssh, and prints what
 * they answer, merged. A line of the file is an ssh destination and a directory; without one, the
 * daemon's is read. */
#ifndef BC_CLI_IO_HOSTS_H
#define BC_CLI_IO_HOSTS_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/io/filter_args.h"
#include "cli/term/console.h"
#include "cli/term/output.h"

enum { BC_HOSTS_OPT_FILE = 1300, BC_HOSTS_OPT_JOBS, BC_HOSTS_OPT_TIMEOUT };

/* Rows for the options of a command, which ignores them: bc_hosts_ask() reads the values. */
/* clang-format off */
#define BC_HOSTS_OPTIONS \
	{BC_HOSTS_OPT_FILE, "hosts", "FILE", "file", \
		"ask the hosts in FILE ($BUSCAP_HOSTS) over ssh; each line has a destination and, unless it is the daemon's, a directory"}, \
	{BC_HOSTS_OPT_JOBS, "jobs", "N", "number", "ask at most N hosts at a time (16); one that is silent for 1 s does not count"}, \
	{BC_HOSTS_OPT_TIMEOUT, "timeout", "TIME", "time", "leave out hosts that need more time (30s)"}
/* clang-format on */

static inline bool bc_hosts_has(int letter)
{
	return letter >= BC_HOSTS_OPT_FILE && letter <= BC_HOSTS_OPT_TIMEOUT;
}

/* What a command answers with --json. */
struct bc_hosts_answer {
	const struct bc_usage *usage;
	const char *text; /* a member that each object has; the longest has `text_width` bytes */
	const char *time; /* to merge by; NULL: one object, and no directory is asked for */
	/* Prints a row; `is_first`: and the heading. NULL: objects are records or marks, and those
	 * of several hosts that differ only in `file` are printed once. */
	void (*print)(struct bc_output *output, const json_t *object, int node_width,
		int text_width, bool is_first);
};

/* Returns false if neither --hosts is given nor, without operands, $BUSCAP_HOSTS is set. Otherwise
 * sets *code to the command's: BC_EXIT_DAMAGED if some hosts failed or found damage, BC_EXIT_FAILED
 * if all failed. Of a host that failed, only the reason is printed. `operands` are those before the
 * files; `args` and `names` may be NULL. Call this when the options have been read. */
bool bc_hosts_ask(const struct bc_console *console, const struct bc_hosts_answer *answer, int argc,
	char **argv, int operands, const struct bc_filter_args *args,
	const struct bc_name_map *names, enum bc_exit *code);

#endif
