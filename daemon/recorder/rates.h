/* The current rates of samples and bytes. */
#ifndef BC_DAEMON_RECORDER_RATES_H
#define BC_DAEMON_RECORDER_RATES_H

#include <stdint.h>

struct bc_rates {
	double samples_per_s;
	double bytes_in_per_s; /* of records, before compression */
	double bytes_out_per_s;
	double growth_per_s; /* bytes_out_per_s over the last minute */
};

#define BC_RATE_SECONDS 60u

/* The counts at the last poll; zero at the start, except polled_ns. */
struct bc_rate_meter {
	uint64_t polled_ns; /* of bc_now_ns() */
	uint64_t received;
	uint64_t written;
	uint64_t bytes_out;

	/* The polls of the last minute, in a ring. */
	unsigned polls;
	struct {
		uint64_t ns;
		uint64_t bytes_out;
	} minute[BC_RATE_SECONDS];
};

struct bc_counts;
struct bc_writer_stats;

/* Sets the rates since the last poll, which is to be a second ago; now_ns is bc_now_ns(). */
void bc_rates_poll(struct bc_rates *rates, struct bc_rate_meter *meter,
	const struct bc_counts *counts, const struct bc_writer_stats *stats, uint64_t now_ns);

#endif
