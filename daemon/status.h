/* The status object: how things stand, as GET /v1/status gives it and --once prints it. Its members
 * are a promise to scripts: more may come, none is renamed. */
#ifndef BC_DAEMON_STATUS_H
#define BC_DAEMON_STATUS_H

#include <stdint.h>

#include "capture/source.h"
#include "daemon/counts.h"
#include "daemon/pipeline.h"
#include "daemon/recording.h"
#include "daemon/writer.h"

struct bc_rates {
	double samples_per_s;
	double bytes_in_per_s; /* of records, before compression */
	double bytes_out_per_s;
};

struct bc_status {
	const char *state; /* idle, waiting, recording, replaying, draining, failed */
	const char *source_kind;
	const char *source_name;
	uint64_t clock_hz;
	const struct bc_board *board;         /* NULL: the source has none */
	const struct bc_recording *recording; /* NULL: none */
	const char *dir;
	const struct bc_counts *counts;
	const struct bc_writer_report *report;
	struct bc_buffer_state buffer;
	struct bc_rates rates;
	uint64_t damages;
	unsigned clients;
	double uptime_s;
};

/* One line of JSON with its newline, for the caller to free; NULL when memory ran out. */
char *bc_status_write(const struct bc_status *status);

#endif
