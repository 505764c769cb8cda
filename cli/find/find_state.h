/* The state of a search: its options and its results so far. */
#ifndef BC_CLI_FIND_FIND_STATE_H
#define BC_CLI_FIND_FIND_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/io/filter_args.h"
#include "cli/io/operands.h"
#include "cli/term/console.h"
#include "cli/term/output.h"
#include "formats/base/format_id.h"
#include "formats/base/options.h"
#include "formats/names/name_map.h"
#include "formats/search/search.h"

struct bc_find {
	const struct bc_console *console;
	struct bc_operands operands;
	struct bc_output output;
	/* Options. */
	struct bc_filter_args args;
	enum bc_format format; /* BC_FORMAT_UNKNOWN: detect it */
	struct bc_format_options format_options;
	struct bc_search_options options; /* without the filter, which is in `args` */
	bool is_json;
	struct bc_name_map *names; /* NULL: no names are shown */
	/* Results. */
	uint64_t matches;
	bool has_printed;
	enum bc_exit exit;
};

/* Whether enough has been found, or the output has failed. */
static inline bool bc_find_is_over(const struct bc_find *f)
{
	return (f->options.first != 0 && f->matches >= f->options.first) ||
	       bc_output_failed(&f->output);
}

#endif
