/* A report that is being made, and the text that it becomes. */
#ifndef BC_CLI_OVERVIEW_REPORT_STATE_H
#define BC_CLI_OVERVIEW_REPORT_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/overview/overview.h"
#include "formats/trace/name_map.h"

/* Text that grows up to a limit. Once it is full, or memory has run out, nothing more is added. */
struct bc_report_text {
	char *bytes;
	size_t used;
	size_t capacity;
	size_t limit;
	bool is_full;
	bool is_no_memory;
};

struct bc_report {
	struct bc_overview *overview;    /* with a picture */
	const struct bc_name_map *names; /* NULL: none */
	const char *reduced; /* why the resolution is lower than wanted; NULL: it isn't */
	uint32_t max_events;
	unsigned width; /* text: columns of the terminal */
	bool is_utf8;   /* text: otherwise ASCII */
};

/* Append to the text. Return false if nothing more can be added. */
bool bc_report_add(struct bc_report_text *text, const char *bytes, size_t count);
bool bc_report_format(struct bc_report_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Write a report. Return 0, or a negative errno: -EFBIG if the text is full, -ENOMEM. */
int bc_report_json(struct bc_report *report, struct bc_report_text *text);
int bc_report_html(struct bc_report *report, struct bc_report_text *text);
int bc_report_plain(struct bc_report *report, struct bc_report_text *text);

/* What a function that wrote a text returns, if what it called returned `rc`. */
int bc_report_result(const struct bc_report_text *text, int rc);

#endif
