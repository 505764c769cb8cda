/* The disk fills if the free space ends before the files have grown to the limit of the rules. Some
 * limits follow from the rules only; those in time also depend on the rate. */
#include "daemon/recorder/space_forecast.h"

#include <math.h>

#include "daemon/store/writer_report.h"

static double seconds_of(uint64_t ns)
{
	return ns != 0 ? (double)ns * 1e-9 : INFINITY;
}

/* The largest total size that the rules allow, at most `limit_bytes` if that is known. */
static double most_bytes(const struct bc_space_forecast *f, const struct bc_rotation *rotation,
	const struct bc_retention_rules *rules, double bytes_per_s)
{
	double segment_s = fmin(
		seconds_of(rotation->duration_ns), seconds_of(rotation->interval_ns));
	double most = f->limit_bytes != 0 ? (double)f->limit_bytes : INFINITY;

	if (rotation->files != 0)
		most = fmin(most, (double)rotation->files * segment_s * bytes_per_s);
	return fmin(most, seconds_of(rules->max_age_ns) * bytes_per_s);
}

static void limit(struct bc_space_forecast *f, uint64_t bytes)
{
	f->limit_bytes = f->limit_bytes == 0 || bytes < f->limit_bytes ? bytes : f->limit_bytes;
}

struct bc_space_forecast bc_space_forecast(const struct bc_rotation *rotation,
	const struct bc_retention_rules *rules, const struct bc_writer_stats *stats,
	double bytes_per_s)
{
	struct bc_space_forecast f = {.limit_segments = rotation->files};
	uint64_t keep = rules->keep_free_bytes;
	uint64_t bytes;

	if (rules->max_use_bytes != 0)
		limit(&f, rules->max_use_bytes);
	if (keep != 0 && !stats->is_free_unknown)
		limit(&f, stats->used_bytes +
				  (stats->free_bytes > keep ? stats->free_bytes - keep : 0));
	if (rotation->files != 0 && rotation->file_bytes != 0 &&
		!__builtin_mul_overflow(rotation->files, rotation->file_bytes, &bytes))
		limit(&f, bytes);
	f.has_ring = f.limit_bytes != 0 || f.limit_segments != 0;
	if (bytes_per_s < 1 || stats->is_free_unknown)
		return f;
	if (stats->has_no_inodes && keep == 0) {
		f.will_fill = true; /* at the end of the open file */
		return f;
	}
	double growth = most_bytes(&f, rotation, rules, bytes_per_s) - (double)stats->used_bytes;
	f.will_fill = growth > (double)stats->free_bytes;
	f.seconds_left = (uint64_t)((double)stats->free_bytes / bytes_per_s);
	return f;
}
