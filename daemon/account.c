#include "daemon/account.h"

#include <inttypes.h>
#include <uv.h>

#include "daemon/log.h"
#include "formats/record.h"

/* In the time between two looks: from so many on, they say something. */
#define MISFIT_SAMPLES 1000u
#define MISFIT_BYTES   65536u

static uint64_t lost_of(const struct bc_counts *c)
{
	return c->dropped_buffer + c->dropped_disk + c->board_lost;
}

/* Says, once, that what comes can hardly be what it is taken for. */
static void look_for_misfit(struct bc_account *a, const struct bc_counts *c)
{
	uint64_t received = c->received - a->looked.received;
	uint64_t invalid = c->dropped_invalid - a->looked.dropped_invalid;
	uint64_t skipped = c->skipped_bytes - a->looked.skipped_bytes;
	bool is_noise = received >= MISFIT_SAMPLES && invalid > received / 10;
	bool is_no_frame = received == 0 && skipped >= MISFIT_BYTES;

	if (!a->is_misfit && is_noise)
		bc_log(BC_LOG_WARNING,
			"%" PRIu64 " of the last %" PRIu64
			" samples are no valid cycles: is the protocol another, or has raw6 lost "
			"its place?",
			invalid, received);
	if (!a->is_misfit && is_no_frame)
		bc_log(BC_LOG_WARNING,
			"bytes come (%" PRIu64
			" since the last look), and no valid frame among them: is the "
			"protocol another?",
			skipped);
	if (received != 0 || skipped != 0)
		a->is_misfit = is_noise || is_no_frame;
}

void bc_account_look(
	struct bc_account *a, const struct bc_counts *c, const struct bc_writer_report *report)
{
	uint64_t now = uv_hrtime();
	double seconds = (double)(now - a->looked_ns) * 1e-9;
	uint64_t written_bytes = (c->written - a->looked.written) * BC_RECORD_BYTES;

	a->rates.samples_per_s = (double)(c->received - a->looked.received) / seconds;
	a->rates.bytes_in_per_s = (double)written_bytes / seconds;
	a->rates.bytes_out_per_s = (double)(report->bytes - a->looked_bytes) / seconds;
	if (lost_of(c) != lost_of(&a->looked))
		bc_log(BC_LOG_WARNING,
			"samples lost in the last %.0f s: %" PRIu64 " buffer, %" PRIu64
			" disk, %" PRIu64 " board; the gaps are on record at their places",
			seconds, c->dropped_buffer - a->looked.dropped_buffer,
			c->dropped_disk - a->looked.dropped_disk,
			c->board_lost - a->looked.board_lost);
	look_for_misfit(a, c);
	a->looked = *c;
	a->looked_ns = now;
	a->looked_bytes = report->bytes;
}

static void log_written(const char *recording, const struct bc_counts *c)
{
	if (c->received == 0)
		bc_log(BC_LOG_NOTICE, "nothing was recorded: the source gave no sample");
	else if (c->dropped_idle != 0)
		bc_log(BC_LOG_NOTICE,
			"%s: %" PRIu64 " records written; %" PRIu64 " samples received, %" PRIu64
			" of them invalid cycles, %" PRIu64 " after the recording's end",
			recording, c->written, c->received, c->dropped_invalid, c->dropped_idle);
	else
		bc_log(BC_LOG_NOTICE,
			"%s: %" PRIu64 " records written; %" PRIu64 " samples received, %" PRIu64
			" of them invalid cycles",
			recording, c->written, c->received, c->dropped_invalid);
}

void bc_account_summary(const char *recording, const struct bc_counts *c,
	const struct bc_writer_report *report, const struct bc_session_outcome *outcome)
{
	if (c->received != 0 || !outcome->has_failed)
		log_written(recording, c);
	if (outcome->breaks != 0)
		bc_log(BC_LOG_WARNING, "breaks in the stream: %" PRIu64 "; each is a gap on record",
			outcome->breaks);
	if (lost_of(c) != 0 || outcome->damages != 0)
		bc_log(BC_LOG_WARNING,
			"gaps on record: %" PRIu64 "; samples lost: %" PRIu64
			" for want of buffer, %" PRIu64 " of disk, %" PRIu64
			" by the board; places damaged: %" PRIu64 ", bytes skipped: %" PRIu64,
			c->gaps, c->dropped_buffer, c->dropped_disk, c->board_lost,
			outcome->damages, c->skipped_bytes);
	if (c->raw_dropped_bytes != 0)
		bc_log(BC_LOG_WARNING,
			"bytes of the stream that the raw capture lacks: %" PRIu64
			"; its breaks say where",
			c->raw_dropped_bytes);
	if (report->unsealed != 0)
		bc_log(BC_LOG_ERROR,
			"files that could not be sealed: %u; the next start recovers what is in "
			"their .partial files",
			report->unsealed);
	if (report->deleted != 0)
		bc_log(BC_LOG_ERROR, "files that somebody deleted while they were written: %u",
			report->deleted);
	if (outcome->has_failed)
		bc_log(BC_LOG_ERROR, "%s", outcome->why);
}

enum bc_exit bc_account_exit(bool is_replay, const struct bc_counts *c,
	const struct bc_writer_report *report, const struct bc_session_outcome *outcome)
{
	if (outcome->has_no_device)
		return BC_EXIT_NO_DEVICE;
	if (outcome->has_failed || report->unsealed != 0 || report->deleted != 0)
		return BC_EXIT_FAILED;
	if (is_replay && outcome->damages != 0)
		return BC_EXIT_DAMAGED;
	bool is_whole = lost_of(c) == 0 && c->raw_dropped_bytes == 0 && outcome->damages == 0;
	return is_whole && (is_replay || outcome->breaks == 0) ? BC_EXIT_OK : BC_EXIT_LOST;
}
