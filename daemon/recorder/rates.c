#include "daemon/recorder/rates.h"

#include "daemon/ingest/counts.h"
#include "daemon/store/writer_report.h"
#include "formats/bus/record.h"

/* Returns the bytes per second since the oldest poll known, a minute ago at most. */
static double growth(const struct bc_rate_meter *m, uint64_t bytes_out, uint64_t now_ns)
{
	unsigned oldest = m->polls < BC_RATE_SECONDS ? 0 : m->polls % BC_RATE_SECONDS;

	return (double)(bytes_out - m->minute[oldest].bytes_out) /
	       ((double)(now_ns - m->minute[oldest].ns) * 1e-9);
}

void bc_rates_poll(struct bc_rates *rates, struct bc_rate_meter *meter,
	const struct bc_counts *counts, const struct bc_writer_stats *stats, uint64_t now_ns)
{
	double seconds = (double)(now_ns - meter->polled_ns) * 1e-9;
	uint64_t written_bytes = (counts->written - meter->written) * BC_RECORD_BYTES;

	rates->samples_per_s = (double)(counts->received - meter->received) / seconds;
	rates->bytes_in_per_s = (double)written_bytes / seconds;
	rates->bytes_out_per_s = (double)(stats->bytes - meter->bytes_out) / seconds;
	meter->minute[meter->polls % BC_RATE_SECONDS].ns = meter->polled_ns;
	meter->minute[meter->polls % BC_RATE_SECONDS].bytes_out = meter->bytes_out;
	meter->polls++;
	rates->growth_per_s = growth(meter, stats->bytes, now_ns);
	meter->polled_ns = now_ns;
	meter->received = counts->received;
	meter->written = counts->written;
	meter->bytes_out = stats->bytes;
}
