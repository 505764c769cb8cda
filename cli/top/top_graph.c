#include "cli/top/top_graph.h"

#include <math.h>

#define SHOWN_SECONDS 240u
#define EIGHTHS       8u

unsigned bc_top_graph_step(unsigned width)
{
	static const unsigned steps[] = {1, 2, 5, 10, 15, 30, 60};
	const unsigned most = sizeof(steps) / sizeof(steps[0]) - 1;
	unsigned i = 0;

	while (i < most && steps[i] * width < SHOWN_SECONDS)
		i++;
	return steps[i];
}

struct bucket {
	bool is_known;
	double value;
	double highest;
};

static struct bucket bucket_of(
	const struct bc_top_state *state, enum bc_top_series series, uint64_t first, unsigned step)
{
	struct bucket bucket = {0};
	unsigned known = 0;
	double sum = 0;

	for (unsigned i = 0; i < step; i++) {
		const struct bc_top_second *second = bc_top_state_second(state, first + i);
		if (second == NULL)
			continue;
		known++;
		sum += second->values[series];
		bucket.highest = fmax(bucket.highest, second->values[series]);
	}
	bucket.is_known = known != 0;
	if (known != 0)
		bucket.value = series == BC_TOP_BUFFER || series == BC_TOP_LOST ? bucket.highest
										: sum / known;
	return bucket;
}

/* Returns the height of a column in eighths of a row: one for 0, at least two above 0. */
static unsigned eighths_of(double value, double full, unsigned rows)
{
	double all = (double)(rows * EIGHTHS);

	if (!(value > 0) || !(full > 0))
		return 1;
	return (unsigned)fmax(2, fmin(ceil(value / full * all), all));
}

static void draw_column(struct bc_top_grid *grid, unsigned x, unsigned y, unsigned rows,
	enum bc_top_style style, unsigned eighths)
{
	static const char plain[EIGHTHS + 1] = " _.,-=+*#";

	for (unsigned row = rows; row-- != 0 && eighths != 0;) {
		unsigned part = eighths < EIGHTHS ? eighths : EIGHTHS;
		uint32_t code = grid->is_utf8 ? 0x2580 + part : (uint32_t)plain[part];
		bc_top_write_code(grid, x, y + row, style, code);
		eighths -= part;
	}
}

double bc_top_graph_draw(struct bc_top_grid *grid, unsigned x, unsigned y, unsigned width,
	unsigned rows, enum bc_top_style style, const struct bc_top_state *state,
	enum bc_top_series series, uint64_t end)
{
	unsigned step = bc_top_graph_step(width);
	/* Column boundaries are multiples of `step`, so that columns move left but do not change.
	 */
	uint64_t last = end / step;
	double highest = 0;

	for (unsigned i = 0; i < width && i <= last; i++) {
		struct bucket bucket = bucket_of(state, series, (last - i) * step, step);
		highest = fmax(highest, bucket.highest);
	}
	double full = series == BC_TOP_BUFFER ? 1 : highest;
	for (unsigned i = 0; i < width && i <= last; i++) {
		struct bucket bucket = bucket_of(state, series, (last - i) * step, step);
		if (bucket.is_known)
			draw_column(grid, x + width - 1 - i, y, rows,
				bucket.value > 0 ? style : BC_TOP_GRAPH,
				eighths_of(bucket.value, full, rows));
	}
	return highest;
}
