/* Figures for papers: one picture as SVG, with labelled axes and a legend. docs/report.md shows
 * them. */
#ifndef BC_CLI_WEB_FIGURE_H
#define BC_CLI_WEB_FIGURE_H

#include "cli/overview/overview.h"
#include "formats/base/json.h"

enum bc_figure {
	BC_FIGURE_NONE,
	BC_FIGURE_TIMELINE,
	BC_FIGURE_HEAT_MAP,
	BC_FIGURE_WORKING_SET,
	BC_FIGURE_MISS_RATIO,
};

#define BC_FIGURES "timeline|heat-map|working-set|miss-ratio"

/* True if it is made from records, not from a picture. */
static inline bool bc_figure_is_curve(enum bc_figure figure)
{
	return figure == BC_FIGURE_WORKING_SET || figure == BC_FIGURE_MISS_RATIO;
}

/* Returns BC_FIGURE_NONE for another text. */
enum bc_figure bc_figure_parse(const char *name);

#define BC_FIGURE_ALL ((1u << BC_PAGE_CLASSES) - 1)

/* Appends a timeline or heat map of the picture that was drawn last. `classes` has a bit for each
 * class that is counted. Returns as bc_overview_events_json(); or -EXDEV if the recordings have
 * different axes. */
int bc_figure_picture(struct bc_byte_buffer *text, struct bc_overview *overview,
	enum bc_figure figure, unsigned classes) BC_MUST_CHECK;

/* Appends a curve of what bc_stats_read() has read. Returns 0; -ENODATA if it has no points;
 * -ENOMEM or -EFBIG. */
int bc_figure_curve(
	struct bc_byte_buffer *text, const json_t *stats, enum bc_figure figure) BC_MUST_CHECK;

#endif
