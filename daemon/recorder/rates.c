#include "daemon/recorder/rates.h"

#include "daemon/ingest/counts.h"
#include "daemon/store/writer_stats.h"
#include "formats/bus/record.h"

void bc_rates_poll(struct bc_rates *rates, struct bc_rate_meter *meter,
	const struct bc_counts *counts, const struct bc_writer_stats *stats, uint64_t now_ns)
{
	double seconds = (double)(now_ns - meter->polled_ns) * 1e-9;
	uint64_t written_bytes = (counts->written - meter->written) * BC_RECORD_BYTES;

	rates->samples_per_s = (double)(counts->received - meter->received) / seconds;
	rates->bytes_in_per_s = (double)written_bytes / seconds;
	rates->bytes_out_per_s = (double)(stats->bytes - meter->bytes_out) / seconds;
	*meter = (struct bc_rate_meter){
		.polled_ns = now_ns,
		.received = counts->received,
		.written = counts->written,
		.bytes_out = stats->bytes,
	};
}
