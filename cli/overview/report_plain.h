/* A report as text for a terminal. */
#ifndef BC_CLI_OVERVIEW_REPORT_PLAIN_H
#define BC_CLI_OVERVIEW_REPORT_PLAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/overview/overview.h"

/* A report that is being made. */
struct bc_report {
	struct bc_overview *overview;    /* with a picture */
	const struct bc_name_map *names; /* NULL: none */
	const char *reduced; /* why the resolution is lower than requested; NULL: it is not */
	uint32_t max_events;
	unsigned width; /* text: columns of the terminal */
	bool is_utf8;   /* text: otherwise ASCII */
};

/* Appends the report to `text`, which says if it is too long or memory ran out. Returns 0, or a
 * negative errno if the events can't be listed. */
int bc_report_plain(struct bc_report *report, struct bc_byte_buffer *text);

#endif
