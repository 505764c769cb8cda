/* The options that select part of a trace, and the filter built from them. */
#ifndef BC_CLI_IO_FILTER_ARGS_H
#define BC_CLI_IO_FILTER_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/io/trace.h"
#include "cli/term/console.h"
#include "cli/term/output.h"
#include "formats/base/format_id.h"
#include "formats/trace/filter.h"
#include "formats/trace/filter_parse.h"
#include "formats/trace/name_map.h"

enum {
	BC_FILTER_OPT_RECORDS = 1100,
	BC_FILTER_OPT_FROM,
	BC_FILTER_OPT_TO,
	BC_FILTER_OPT_TYPE,
	BC_FILTER_OPT_PROC,
	BC_FILTER_OPT_PORT,
	BC_FILTER_OPT_REGION,
};

/* Rows for the options of a command. */
/* clang-format off */
#define BC_FILTER_OPTION_RECORDS \
	{BC_FILTER_OPT_RECORDS, "records", "A-B", "range", \
		"only records A to B, counted from 0; in text formats lines, counted from 1"}
#define BC_FILTER_OPTION_EPOCH \
	{'e', "epoch", "A-B", "range", \
		"only these epochs, counted from 0 (the clock restarts with each)"}
#define BC_FILTER_OPTIONS_TIME \
	{BC_FILTER_OPT_FROM, "from", "TIME", "text", "from this time on: " BC_TIME_POINT_HELP}, \
	{BC_FILTER_OPT_TO, "to", "TIME", "text", "before this time"}
#define BC_FILTER_OPTION_PORT \
	{BC_FILTER_OPT_PORT, "port", "A-B", "range", \
		"only reads and writes of these hexadecimal I/O ports"}
#define BC_FILTER_OPTION_REGION \
	{BC_FILTER_OPT_REGION, "region", "NAME", "region", \
		"only references to memory and ports with this name: vga, com1, or one of --map and --symbols; \"help\" lists all"}
#define BC_FILTER_OPTIONS_ADDR \
	{'a', "addr", "A-B", "range", "only references that touch these hexadecimal addresses"}, \
	BC_FILTER_OPTION_PORT, BC_FILTER_OPTION_REGION
#define BC_FILTER_OPTIONS_FIELDS \
	{BC_FILTER_OPT_TYPE, "type", "NAME[,NAME]", "list:read|write|fetch|ioread|iowrite", \
		"only these types: " BC_TYPE_WORDS}, \
	{BC_FILTER_OPT_PROC, "proc", "N[,N-M]", "range", "only these processors; can be repeated"}
#define BC_FILTER_OPTIONS \
	BC_FILTER_OPTION_RECORDS, BC_FILTER_OPTION_EPOCH, BC_FILTER_OPTIONS_TIME, \
	BC_FILTER_OPTIONS_ADDR, BC_FILTER_OPTIONS_FIELDS
/* clang-format on */

/* What --from and --to then do. */
#define BC_NO_CLOCK_TEXT                                                                        \
	"clock rate unknown: --from and --to select whole chunks, by the time of day of their " \
	"first record"

struct bc_filter_args {
	struct bc_filter filter;
	unsigned given;      /* 0: none of these options */
	const char *region;  /* NULL: none; bc_filter_args_finish() looks it up */
	bool has_time;       /* --from or --to */
	bool has_tick;       /* --from or --to @TICK */
	bool has_start;      /* relative times of day have been made absolute */
	int64_t start_ns;    /* the time of day of the first chunk */
	bool has_warned;     /* about an unknown clock rate */
	char selection[512]; /* the options: "addr=1000-1fff type=MEMREAD"; without those that don't
				fit */
};

void bc_filter_args_init(struct bc_filter_args *args);

/* Parses the value in `optarg` of one of these options. Returns false for other letters; or for an
 * invalid value, after an error. Only --type and --proc may be repeated: values are combined. */
bool bc_filter_args_option(
	struct bc_filter_args *args, const struct bc_console *console, int letter);

/* The same for an address given as an operand. `names` as for bc_filter_args_finish(). */
bool bc_filter_args_operand(struct bc_filter_args *args, const struct bc_console *console,
	const struct bc_name_map *names, char *text);

/* Looks up the region, after the last option. `names` NULL: the names of a PC. Returns false if the
 * command must exit with *exit: after printing an error if no region has the name, or all names for
 * "help". Prints a hint if --type excludes all of it. */
bool bc_filter_args_finish(struct bc_filter_args *args, const struct bc_console *console,
	const struct bc_name_map *names, enum bc_exit *exit);

/* Returns true if an open trace has the fields that are selected by; otherwise prints an error that
 * names the missing one. */
bool bc_filter_args_check(const struct bc_filter_args *args, const struct bc_console *console,
	const struct bc_trace *trace);

/* Like bc_filter_chunk(), for the chunks of all segments in their order: the first one seen starts
 * the relative times. Warns once, about `file`, if the clock rate is needed but unknown. */
bool bc_filter_args_chunk(struct bc_filter_args *args, const struct bc_console *console,
	const char *file, const struct bc_chunk_info *info, uint64_t clock_hz,
	struct bc_filter_bounds *bounds);

/* ---- The options --map and --symbols, which name addresses, and these names (docs/names.md). */

enum {
	BC_NAME_OPT_MAP = 1200,
	BC_NAME_OPT_SYMBOLS,
};

/* Rows for the options of a command. */
/* clang-format off */
#define BC_NAME_OPTIONS \
	{BC_NAME_OPT_MAP, "map", "FILE", "map", \
		"names of addresses: \"pc\", or a file with lines such as \"a0000-bffff VGA memory\" and \"port 80 POST\"; can be repeated"}, \
	{BC_NAME_OPT_SYMBOLS, "symbols", "FILE[:OFFSET]", "file", \
		"the symbols of an ELF file or a System.map are names too; adds the hexadecimal offset (-c0000000) to their addresses; can be repeated"}
/* clang-format on */

/* True if the option adds names. */
static inline bool bc_name_args_has(int letter)
{
	return letter == BC_NAME_OPT_MAP || letter == BC_NAME_OPT_SYMBOLS;
}

/* Adds the names that the value in `optarg` selects, to a new map if *map is NULL. The caller
 * closes the map. Returns BC_EXIT_OK, or prints an error and returns another code. */
enum bc_exit bc_name_args_add(
	struct bc_name_map **map, const struct bc_console *console, int letter);

/* Prints `before`, the name of an address and `after`; nothing without a name or no map. */
void bc_name_print(struct bc_output *output, const struct bc_name_map *map, bool is_port,
	uint64_t addr, const char *before, const char *after);

#endif
