/* buscap's commands: for each, what --help prints, and the function that runs it. The function
 * takes argv[0], the command's name, and returns enum bc_exit. */
#ifndef BC_CLI_TERM_COMMANDS_H
#define BC_CLI_TERM_COMMANDS_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

/* The commands in the order of --help: bc_NAME_usage, and what runs it, bc_cmd_FUNCTION().
 * bc_cmd_daemon() sends the request named by argv[0]. */
/* clang-format off */
#define BC_COMMAND_LIST(X) \
	X(info, info) \
	X(dump, dump) \
	X(convert, convert) \
	X(stats, stats) \
	X(find, find) \
	X(marks, marks) \
	X(report, report) \
	X(cut, cut) \
	X(merge, merge) \
	X(diff, diff) \
	X(verify, verify) \
	X(recover, recover) \
	X(formats, formats) \
	X(sim, sim) \
	X(status, status) \
	X(top, top) \
	X(web, web) \
	X(record, daemon) \
	X(rotate, daemon) \
	X(mark, daemon) \
	X(snapshot, daemon) \
	X(trigger, daemon) \
	X(tail, tail) \
	X(events, events)
/* clang-format on */

#define BC_COMMAND_DECLARE(name, function)              \
	extern const struct bc_usage bc_##name##_usage; \
	enum bc_exit bc_cmd_##function(const struct bc_console *console, int argc, char **argv);
BC_COMMAND_LIST(BC_COMMAND_DECLARE)

/* Runs "buscap ARGUMENT...", for example argv = {"buscap", "info", "--json", "x.byu.lz4"}. Permutes
 * argv. The console has no command. Returns the exit code. */
enum bc_exit bc_commands_run(const struct bc_console *console, int argc, char **argv);

#endif
