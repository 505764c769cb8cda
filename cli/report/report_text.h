/* Words and numbers that pictures of an overview have in common. */
#ifndef BC_CLI_REPORT_REPORT_TEXT_H
#define BC_CLI_REPORT_REPORT_TEXT_H

#include "cli/io/gap_text.h"
#include "cli/report/report_state.h"

/* ---- axis of time */

struct bc_report_axis {
	int64_t from_ns;
	uint64_t span_ns; /* at least 1 */
	uint64_t step_ns; /* between ticks */
	uint64_t unit_ns;
	const char *unit; /* "ms" */
};

/* An axis from one time to another, with at most this many ticks. */
struct bc_report_axis bc_report_axis_make(int64_t from_ns, int64_t to_ns, unsigned ticks);

/* The position of a time, from 0 to 1. */
double bc_report_axis_at(const struct bc_report_axis *axis, int64_t ns);

/* ---- words */

#define BC_REPORT_WORDS_MAX 512

/* The recording's id, "2 recordings, ID to ID", "no recordings" or "a recording without a header".
 * Returns `out`. */
const char *bc_report_title(char out[BC_REPORT_WORDS_MAX], const struct bc_report *report);

/* The addresses of a row: "000a0000-000affff", "io 03f8-03ff". */
#define BC_REPORT_ADDRESSES_MAX 32
const char *bc_report_addresses(
	char out[BC_REPORT_ADDRESSES_MAX], const struct bc_overview_row *row);

/* ---- events */

struct bc_report_event {
	struct bc_overview_event event;
	char text[64]; /* or its start and "..."; as in the file, so it must be escaped */
};

struct bc_report_events {
	struct bc_report_event *events;
	uint32_t count;
	size_t capacity;
	uint32_t max;
	bool is_cut_off;
	bool is_no_memory;
};

/* How much was recorded, and how much of it is drawn: "sealed, 29,490 of 999,948 records, 3.48 MB,
 * 2 of 9 gaps, at least 6,462 samples lost". Records and lost samples are those of the columns,
 * gaps those in `events`. "at least": the size of one of these gaps is unknown, or the columns have
 * losses that none of them reports. Returns `out`. */
const char *bc_report_facts(char out[BC_REPORT_WORDS_MAX], const struct bc_report *report,
	const struct bc_report_events *events);

/* Lists the events in the picture. Returns 0 or a negative errno. Free it in either case. */
int bc_report_events_list(struct bc_report_events *events, struct bc_report *report);
void bc_report_events_free(struct bc_report_events *events);

/* Describes a gap (cli/io/gap_text.h). Returns `out`. */
const char *bc_report_gap_text(char out[BC_GAP_TEXT_MAX], const struct bc_overview_event *gap);

#endif
