/* buscap's commands: for each, what --help prints, and the function that runs it. The function
 * takes argv[0], the command's name, and returns enum bc_exit. commands.c has the table.
 */
#ifndef BC_CLI_TERM_COMMANDS_H
#define BC_CLI_TERM_COMMANDS_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_info_usage;
extern const struct bc_usage bc_dump_usage;
extern const struct bc_usage bc_convert_usage;
extern const struct bc_usage bc_stats_usage;
extern const struct bc_usage bc_find_usage;
extern const struct bc_usage bc_marks_usage;
extern const struct bc_usage bc_report_usage;
extern const struct bc_usage bc_cut_usage;
extern const struct bc_usage bc_merge_usage;
extern const struct bc_usage bc_diff_usage;
extern const struct bc_usage bc_verify_usage;
extern const struct bc_usage bc_recover_usage;
extern const struct bc_usage bc_formats_usage;
extern const struct bc_usage bc_sim_usage;
extern const struct bc_usage bc_status_usage;
extern const struct bc_usage bc_top_usage;
extern const struct bc_usage bc_web_usage;
extern const struct bc_usage bc_record_usage;
extern const struct bc_usage bc_rotate_usage;
extern const struct bc_usage bc_mark_usage;
extern const struct bc_usage bc_snapshot_usage;
extern const struct bc_usage bc_trigger_usage;
extern const struct bc_usage bc_tail_usage;
extern const struct bc_usage bc_events_usage;

enum bc_exit bc_cmd_info(const struct bc_console *console, int argc, char **argv);
enum bc_exit bc_cmd_dump(const struct bc_console *console, int argc, char **argv);
enum bc_exit bc_cmd_convert(const struct bc_console *console, int argc, char **argv);
enum bc_exit bc_cmd_stats(const struct bc_console *console, int argc, char **argv);
enum bc_exit bc_cmd_find(const struct bc_console *console, int argc, char **argv);
enum bc_exit bc_cmd_marks(const struct bc_console *console, int argc, char **argv);
enum bc_exit bc_cmd_report(const struct bc_console *console, int argc, char **argv);
enum bc_exit bc_cmd_cut(const struct bc_console *console, int argc, char **argv);
enum bc_exit bc_cmd_merge(const struct bc_console *console, int argc, char **argv);
enum bc_exit bc_cmd_diff(const struct bc_console *console, int argc, char **argv);
enum bc_exit bc_cmd_verify(const struct bc_console *console, int argc, char **argv);
enum bc_exit bc_cmd_recover(const struct bc_console *console, int argc, char **argv);
enum bc_exit bc_cmd_formats(const struct bc_console *console, int argc, char **argv);
enum bc_exit bc_cmd_sim(const struct bc_console *console, int argc, char **argv);
enum bc_exit bc_cmd_status(const struct bc_console *console, int argc, char **argv);
enum bc_exit bc_cmd_top(const struct bc_console *console, int argc, char **argv);
enum bc_exit bc_cmd_web(const struct bc_console *console, int argc, char **argv);
/* Sends the request named by argv[0]. */
enum bc_exit bc_cmd_daemon(const struct bc_console *console, int argc, char **argv);
enum bc_exit bc_cmd_tail(const struct bc_console *console, int argc, char **argv);
enum bc_exit bc_cmd_events(const struct bc_console *console, int argc, char **argv);

/* Runs "buscap ARGUMENT...", for example argv = {"buscap", "info", "--json", "x.byu.lz4"}. Permutes
 * argv. The console has no command. Returns the exit code. */
enum bc_exit bc_commands_run(const struct bc_console *console, int argc, char **argv);

#endif
