/* The programs of `buscap sim TRACE...`: the memory accesses of traces, for the processors of the
 * simulated bus.
 *
 * Each trace is a process with its own pages, which get physical addresses when they are first
 * used. The processes are distributed over the processors. A processor with several switches after
 * every 100,000 accesses. */
#ifndef BC_CLI_TRACE_SIM_PROGRAMS_H
#define BC_CLI_TRACE_SIM_PROGRAMS_H

#include "capture/sim/sim.h"
#include "cli/term/console.h"
#include "formats/base/format_id.h"
#include "formats/base/must_check.h"
#include "formats/reader/reader.h"

struct bc_sim_programs;

/* Opens the traces. Sets sim->workload; sim->agents and sim->seed are used. Returns BC_EXIT_OK, or
 * prints an error and returns another code. */
enum bc_exit bc_sim_programs_open(struct bc_sim_programs **programs,
	const struct bc_console *console, const char **paths, int count, enum bc_format format,
	const struct bc_reader_options *options, struct bc_sim_options *sim) BC_MUST_CHECK;

/* Closes the traces; NULL is allowed. Returns the worst exit code of reading them, after reporting
 * entries that are not memory accesses. */
enum bc_exit bc_sim_programs_close(struct bc_sim_programs *programs);

#endif
