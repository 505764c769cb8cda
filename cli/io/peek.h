/* A look at the start of a trace whose format leaves open which fields an entry has, to find out
 * what can be compared with another trace. */
#ifndef BC_CLI_IO_PEEK_H
#define BC_CLI_IO_PEEK_H

#include "cli/io/trace.h"

struct bc_peek {
	uint32_t has;  /* fields of any entry near the start: BC_HAS_*; 0: not known */
	unsigned unit; /* of the first time in ns, us or ps; BC_UNIT_TICK: none */
};

/* Reads the start of a Tarmac trace, without messages. The result is empty for other formats, and
 * for files that can't be read twice. */
struct bc_peek bc_peek(const struct bc_console *console, const char *path, enum bc_format format,
	const struct bc_reader_options *options);

/* Whether both have units, and these differ. */
bool bc_peek_units_differ(struct bc_peek a, struct bc_peek b);

#endif
