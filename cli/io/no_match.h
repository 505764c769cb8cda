/* What the input of a command has, for a user whose options match nothing in it. */
#ifndef BC_CLI_IO_NO_MATCH_H
#define BC_CLI_IO_NO_MATCH_H

#include "cli/io/filter_args.h"
#include "cli/term/console.h"
#include "formats/base/format_id.h"

#define BC_NO_MATCH_MAX 400u

/* Writes "; the input has records 1,000 to 1,999", about the first option that rules out all of the
 * input; "; the input is empty"; or "" if each option alone matches something, or if the files
 * can't be read again. Of sealed segments, only the index and the page summary are read. `format`
 * (BC_FORMAT_UNKNOWN: detect it) and `options` are the user's. Prints nothing. Returns `out`. */
const char *bc_no_match_text(char out[BC_NO_MATCH_MAX], const struct bc_console *console,
	const struct bc_filter_args *args, const char *const *paths, int count,
	enum bc_format format, const struct bc_format_options *options);

#endif
