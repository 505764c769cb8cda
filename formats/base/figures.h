/* The figures of the daemon's status. One table, formats/base/figure_rows.h, has a row for each
 * member, from which are made
 *
 *     the JSON of GET /v1/status      daemon/recorder/status.c, the only one to expand VALUE
 *     /metrics                        daemon/api/metrics.c
 *     counts in `status` and `top`    cli/live/status.c
 *     docs/api.md, docs/openapi.json  docs/tables.py (make docs)
 *
 * A row is FIGURE(path, TYPE, VALUE, metric, help, ...); an object's row precedes its
 * members' rows. TYPE says how VALUE becomes JSON (VALUE_COUNT() and so on in status.c). Paths,
 * metrics, their types and units never change. */
#ifndef BC_FORMATS_BASE_FIGURES_H
#define BC_FORMATS_BASE_FIGURES_H

#include <stddef.h>

enum bc_tone { BC_TONE_PLAIN, BC_TONE_GOOD, BC_TONE_WARN, BC_TONE_BAD, BC_TONES };

/* The lines of `buscap status` that show counts of the table. */
enum bc_figure_line { BC_FIGURE_NO_LINE, BC_FIGURE_BOARD, BC_FIGURE_LOST, BC_FIGURE_DAEMON };

struct bc_figure {
	const char *path;   /* in the status: "counts.received" */
	const char *metric; /* without "buscapd_"; a counter ends in "_total". NULL: none */
	const char *help;   /* a sentence */

	/* The metric has a label of this name. A count by name: a sample for each member. A text:
	 * the label's value, in the one sample of all figures with this metric, which is 1; its
	 * help is the first one's. */
	const char *label;

	/* The values of a state, separated by spaces: the metric has a sample for each. */
	const char *states;

	/* Shown unless 0 as "12 WORDs AFTER", without a space before AFTER. */
	enum bc_figure_line line;
	enum bc_tone tone;
	const char *word;
	const char *after;
};

extern const struct bc_figure bc_figures[];
extern const size_t bc_figures_count;

#endif
