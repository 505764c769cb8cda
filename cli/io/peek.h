/* A look at the start of a trace whose format leaves open which fields an entry has, to find out
 * what can be compared with another trace. */
#ifndef BC_CLI_IO_PEEK_H
#define BC_CLI_IO_PEEK_H

#include "cli/io/trace.h"

struct bc_peek {
	bool is_known; /* false: not a Tarmac file, or it can't be read twice */
	uint32_t has;  /* fields of any entry near the start: BC_HAS_* */
	unsigned unit; /* of the first time that names one, or BC_UNIT_TICK */
};

/* Reads the start of a Tarmac trace, without messages. Other formats are not known, nor are files
 * that can't be read twice. */
struct bc_peek bc_peek(const struct bc_console *console, const char *path, enum bc_format format,
	const struct bc_reader_options *options);

/* How the times of two traces relate. */
enum bc_peek_units {
	BC_PEEK_SAME,        /* also if one of them names no unit */
	BC_PEEK_CONVERTIBLE, /* such as ns and ps */
	BC_PEEK_UNRELATED,   /* such as clk and ns */
};
enum bc_peek_units bc_peek_compare_units(struct bc_peek a, struct bc_peek b);

#endif
