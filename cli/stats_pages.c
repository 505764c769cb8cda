#include "cli/stats_pages.h"

#include <inttypes.h>
#include <stdio.h>

static double percent(uint64_t part, uint64_t whole)
{
	return whole != 0 ? 100 * (double)part / (double)whole : 0;
}

/* "4096", "at least 4096". */
static void print_blocks(struct bc_output *o, const char *name, uint64_t lines, bool lines_least,
	uint64_t pages, bool pages_least)
{
	bc_output_format(o, "  %-22s %9s %12" PRIu64 " %9s %12" PRIu64 "\n", name,
		lines_least ? "at least" : "", lines, pages_least ? "at least" : "", pages);
}

static void print_footprint(struct bc_output *o, const struct bc_stats *s)
{
	static const struct {
		const char *name;
		unsigned touch;
	} ways[] = {{"read", BC_TOUCH_READ}, {"written", BC_TOUCH_WRITE},
		{"fetched from", BC_TOUCH_FETCH}};
	const struct bc_footprint *f = &s->footprint;
	bool lines_least = f->lines_full || f->is_cut;
	bool pages_least = f->pages_full || f->is_cut;

	bc_output_format(o, "\nfootprint %22s %" PRIu64 " bytes    pages of %" PRIu64 " bytes\n",
		"lines of", s->options.footprint.line_bytes, s->options.footprint.page_bytes);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		print_blocks(o, ways[i].name, bc_line_table_count(&f->lines, ways[i].touch),
			lines_least, bc_line_table_count(&f->pages, ways[i].touch), pages_least);
	print_blocks(o, "in all", f->lines.count, lines_least, f->pages.count, pages_least);
	bc_output_format(o, "  %-22s %9s %12" PRIu64 " %9s %12" PRIu64 "\n", "bytes in all",
		lines_least ? "at least" : "", f->lines.count * s->options.footprint.line_bytes,
		pages_least ? "at least" : "", f->pages.count * s->options.footprint.page_bytes);
	bc_output_format(o, "  %-22s 0x%08" PRIx64 " to 0x%08" PRIx64 "\n", "addresses",
		f->addr_low, f->addr_high);
}

static void print_reuse(struct bc_output *o, const struct bc_stats *s)
{
	const struct bc_footprint *f = &s->footprint;
	uint64_t sum = 0;
	uint64_t all = 0;

	for (unsigned k = 0; k < BC_REUSE_BUCKETS; k++)
		all += f->reuse[k];
	bc_output_format(
		o, "\nreuse: a line was touched last within so many references to memory\n");
	for (unsigned k = 0; k < BC_REUSE_BUCKETS && all != 0; k++) {
		char name[24];
		sum += f->reuse[k];
		snprintf(name, sizeof(name), "%" PRIu64, UINT64_C(1) << k);
		bc_output_format(
			o, "  %-22s %14" PRIu64 " %9.2f %%\n", name, sum, percent(sum, f->touches));
		if (sum == all)
			break;
	}
	bc_output_format(o, "  %-22s %14" PRIu64 " %9.2f %%\n", "never before", f->first,
		percent(f->first, f->touches));
	if (f->untracked != 0)
		bc_output_format(o, "  %-22s %14" PRIu64 " %9.2f %%\n", "not known, no memory",
			f->untracked, percent(f->untracked, f->touches));
}

void bc_stats_print_memory(struct bc_output *o, const struct bc_stats *s)
{
	if (s->footprint.references == 0)
		return;
	print_footprint(o, s);
	print_reuse(o, s);
}

/* What ticks are called, and how long they take. */
struct scale {
	const char *word;
	double hz; /* 0: not known */
};

static void line(struct bc_output *o, const char *name)
{
	bc_output_format(o, "  %-22s ", name);
}

/* "125 ticks", "125 ticks, 1.89 us". */
static void ticks(struct bc_output *o, const struct scale *scale, uint64_t n)
{
	static const struct {
		double least;
		double unit;
		const char *word;
	} units[] = {{1, 1, "s"}, {1e-3, 1e-3, "ms"}, {1e-6, 1e-6, "us"}, {0, 1e-9, "ns"}};
	double s = scale->hz != 0 ? (double)n / scale->hz : 0;
	size_t i = 0;

	bc_output_format(o, "%" PRIu64 " %s", n, scale->word);
	if (scale->hz == 0)
		return;
	while (s < units[i].least)
		i++;
	bc_output_format(o, " (%.6g %s)", s / units[i].unit, units[i].word);
}

static void rate(struct bc_output *o, const struct scale *scale, double n, double in_ticks)
{
	bc_output_format(o, "%.6g references a 1000 %s", 1000 * n / in_ticks, scale->word);
	if (scale->hz != 0)
		bc_output_format(o, " (%.6g a second)", n / in_ticks * scale->hz);
}

static void print_windows(
	struct bc_output *o, const struct scale *scale, const struct bc_clockline *c)
{
	struct bc_clock_windows w;

	if (!bc_clockline_windows(c, &w))
		return;
	line(o, "busiest window");
	rate(o, scale, (double)w.most, (double)w.ticks);
	bc_output_format(o, "\n");
	line(o, "quietest window");
	rate(o, scale, (double)w.fewest, (double)w.ticks);
	bc_output_format(o, "\n");
	line(o, "windows");
	bc_output_format(o, "%" PRIu64 " of ", w.count);
	ticks(o, scale, w.ticks);
	bc_output_format(o, "\n");
}

static void print_intervals(
	struct bc_output *o, const struct scale *scale, const struct bc_clockline *c)
{
	if (c->intervals == 0)
		return;
	line(o, "intervals");
	bc_output_format(o, "%" PRIu64 " known, %" PRIu64 " to %" PRIu64 " %s, %.6g on average\n",
		c->intervals, c->interval_min, c->interval_max, scale->word,
		(double)c->interval_ticks / (double)c->intervals);
	line(o, "idles");
	bc_output_format(
		o, "%" PRIu64 " of more than %" PRIu64 " %s", c->idles, c->idle_ticks, scale->word);
	if (c->idles != 0) {
		bc_output_format(
			o, ", %.2f %% of the time, longest ", percent(c->idle_sum_ticks, c->ticks));
		ticks(o, scale, c->interval_max);
	}
	bc_output_format(o, "\n");
	line(o, "bursts");
	bc_output_format(o, "%" PRIu64 " with at most %" PRIu64 " %s between references", c->bursts,
		c->burst_ticks, scale->word);
	if (c->bursts != 0)
		bc_output_format(o, ", %.2f %% of them, longest %" PRIu64 ", %.1f on average",
			percent(c->burst_references, c->references), c->burst_longest,
			(double)c->burst_references / (double)c->bursts);
	bc_output_format(o, "\n");
}

static void print_epochs(
	struct bc_output *o, const struct scale *scale, const struct bc_clockline *c)
{
	const unsigned most = 8;

	if (c->epochs < 2)
		return;
	line(o, "epochs");
	bc_output_format(o, "%" PRIu64 ", each with a clock of its own\n", c->epochs);
	for (unsigned i = 0; i < c->epochs && i < most; i++) {
		const struct bc_epoch_span *span = &c->spans[i];
		char name[24];
		snprintf(name, sizeof(name), "  epoch %u", i);
		line(o, name);
		bc_output_format(o, "%" PRIu64 " references, tick %" PRIu64 " to %" PRIu64 ", ",
			span->references, span->first_tick, span->last_tick);
		ticks(o, scale, span->last_tick - span->first_tick);
		bc_output_format(o, "\n");
	}
	if (c->epochs > most)
		bc_output_format(o, "  and %" PRIu64 " more\n", c->epochs - most);
}

static void print_drift(struct bc_output *o, const struct bc_stats *s)
{
	struct bc_drift_result drift;

	bc_drift_result(&s->drift, &drift);
	line(o, "clock drift");
	if (drift.state == BC_DRIFT_KNOWN)
		bc_output_format(o,
			"%+.2f ppm against the host's clock, +- %.2f ppm, by %" PRIu64
			" chunks in %.1f s\n",
			drift.ppm, drift.error_ppm, drift.pairs, drift.seconds);
	else
		bc_output_format(o, "not known: %s\n", bc_stats_why_no_drift(&drift));
}

void bc_stats_print_time(struct bc_output *o, const struct bc_stats *s)
{
	const struct bc_clockline *c = &s->clockline;
	struct scale scale = {.word = "ticks", .hz = bc_stats_hz(s)};

	if (c->references == 0)
		return;
	if (s->unit != BC_UNIT_TICK && !s->is_unit_mixed)
		scale.word = bc_unit_name(s->unit);
	bc_output_format(o, "\ntime\n");
	line(o, "duration");
	ticks(o, &scale, c->ticks);
	bc_output_format(o, "\n");
	if (c->ticks != 0) {
		line(o, "rate");
		rate(o, &scale, (double)c->references, (double)c->ticks);
		bc_output_format(o, "\n");
	}
	if (!s->options.is_totals) {
		print_windows(o, &scale, c);
		print_intervals(o, &scale, c);
	}
	if (c->backward != 0) {
		line(o, "backward");
		bc_output_format(o, "%" PRIu64 " reference%s earlier than the one before\n",
			c->backward, c->backward == 1 ? " is" : "s are");
	}
	print_epochs(o, &scale, c);
	if (s->format == BC_FORMAT_SEGMENT)
		print_drift(o, s);
}
