/* A report that is being made. */
#ifndef BC_CLI_REPORT_REPORT_STATE_H
#define BC_CLI_REPORT_REPORT_STATE_H

#include <stddef.h>

#include "cli/term/console.h"
#include "formats/names/name_map.h"
#include "formats/overview/overview.h"

/* Text that grows up to a limit. */
struct bc_report_text {
	char *bytes;
	size_t used;
	size_t capacity;
	size_t limit;
	bool is_full;      /* the limit was exceeded */
	bool is_no_memory; /* or there is no memory */
};

struct bc_report {
	struct bc_overview *overview;
	const struct bc_name_map *names; /* NULL: none */
	const char *title;
	const char *reduced; /* why the resolution is lower than wanted; NULL: it isn't */
	uint32_t max_events;
	unsigned width; /* text: of the terminal */
};

/* Append to the text. Return false if it is full or there is no memory. */
bool bc_report_add(struct bc_report_text *text, const char *bytes, size_t count);
bool bc_report_format(struct bc_report_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* bc_report_add() as a bc_overview_write_cb. */
bool bc_report_write(void *text, const char *bytes, size_t count);

/* Write a report. Return 0; -EFBIG if the text is full; or -ENOMEM. */
int bc_report_json(struct bc_report *report, struct bc_report_text *text);

#endif
