/* What the log says about losses. While samples are being lost, three messages: at the start, the
 * sum at growing intervals, and the total once nothing has been lost for QUIET_NS. At the end of a
 * recording, its summary. Also a warning if the data does not look like the configured protocol.
 *
 * All sums are differences between the counts at two polls: `before` the current period of losses,
 * `polled` the last time. */
#include "daemon/recorder/loss_report.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/recorder/recording.h"
#include "daemon/recorder/session.h"
#include "daemon/store/writer_report.h"
#include "formats/base/text.h"

/* Fewer than these between two polls say nothing about the data. */
#define MISFIT_SAMPLES 1000u
#define MISFIT_BYTES   65536u

/* Losses less than this apart are logged as one period of losses. */
#define QUIET_NS UINT64_C(10000000000)

static uint64_t lost_of(const struct bc_counts *c)
{
	return bc_losses_sum(&c->losses).lost;
}

/* Lost samples that had arrived. */
static uint64_t dropped_of(const struct bc_counts *c)
{
	return c->losses.lost[BC_GAP_BUFFER] + c->losses.lost[BC_GAP_DISK];
}

/* Logs, once, that the data does not look like the configured protocol. */
static void check_misfit(struct bc_loss_report *r, const struct bc_counts *c)
{
	uint64_t received = c->received - r->polled.received;
	uint64_t invalid = c->dropped_invalid - r->polled.dropped_invalid;
	uint64_t skipped = c->skipped_bytes - r->polled.skipped_bytes;
	bool is_noise = received >= MISFIT_SAMPLES && invalid > received / 10;
	bool is_no_frame = received == 0 && skipped >= MISFIT_BYTES;

	if (!r->is_misfit && is_noise)
		bc_log_limited(r->limits, BC_LOG_WARNING,
			"source: %s of the last %s samples are invalid cycles, dropped; wrong "
			"protocol, or raw6 misaligned?",
			BC_GROUPED(invalid), BC_GROUPED(received));
	if (!r->is_misfit && is_no_frame)
		bc_log_limited(r->limits, BC_LOG_WARNING,
			"source: %s bytes in the last second contain no valid frame, skipped; "
			"wrong protocol?",
			BC_GROUPED(skipped));
	if (received == 0 && skipped == 0)
		return;
	if (r->is_misfit && !is_noise && !is_no_frame)
		bc_log_limited(r->limits, BC_LOG_NOTICE, "source: data is valid again");
	r->is_misfit = is_noise || is_no_frame;
}

#define LOSSES_MAX (BC_GAP_CAUSES * 48u + 48u)

/* Writes the samples lost by cause; causes without are omitted. */
static void write_losses(char out[LOSSES_MAX], const struct bc_losses *losses)
{
	static const char *const words[BC_GAP_CAUSES] = {
		[BC_GAP_BUFFER] = "buffer full",
		[BC_GAP_DISK] = "disk stuck",
		[BC_GAP_BOARD] = "board overflow",
		[BC_GAP_CRC] = "damaged frames",
		[BC_GAP_DAMAGED] = "damaged input",
		[BC_GAP_CRASH] = "unclean end",
	};
	size_t used = 0;

	out[0] = '\0';
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		if (losses->lost[cause] != 0)
			used += (size_t)snprintf(out + used, LOSSES_MAX - used, "%s%s (%s)",
				used != 0 ? ", " : "", BC_GROUPED(losses->lost[cause]),
				words[cause] != NULL ? words[cause] : bc_gap_cause_name(cause));
}

static void start_period(struct bc_loss_report *r, uint64_t now)
{
	r->is_losing = true;
	r->before = r->polled;
	r->losing_since_ns = r->polled_ns;
	r->log_interval_ns = BC_LOG_WINDOW_NS;
	r->log_at_ns = now + r->log_interval_ns;
}

static void check_losses(
	struct bc_loss_report *r, const struct bc_counts *c, const char *activity, uint64_t now)
{
	bool has_lost = lost_of(c) != lost_of(&r->polled);
	bool is_new = has_lost && !r->is_losing;
	char losses[LOSSES_MAX];

	if (is_new)
		start_period(r, now);
	if (has_lost)
		r->lost_ns = now;
	bool is_quiet = r->is_losing && now - r->lost_ns >= QUIET_NS;
	if (!is_new && !is_quiet && (!r->is_losing || now < r->log_at_ns))
		return;
	const struct bc_losses since = bc_losses_since(&c->losses, &r->before.losses);
	double seconds = (double)((is_quiet ? r->lost_ns : now) - r->losing_since_ns) * 1e-9;
	write_losses(losses, &since);
	if (dropped_of(c) == dropped_of(&r->polled))
		activity = "";
	const char *separator = activity[0] != '\0' ? "; " : "";
	bc_log_set_activity(activity);
	if (is_new) {
		bc_log_limited(r->limits, BC_LOG_WARNING | BC_LOG_LOST,
			"samples lost: %s in the last %.1f s%s%s; the recording continues, with a "
			"gap at each place",
			losses, seconds, separator, activity);
	} else if (is_quiet) {
		r->is_losing = false;
		bc_log_limited(r->limits, BC_LOG_NOTICE,
			"no samples lost for 10 s; lost before: %s in %.1f s", losses, seconds);
	} else {
		bc_log(BC_LOG_WARNING | BC_LOG_LOST,
			"samples still being lost: %s in the last %.0f s%s%s%s", losses, seconds,
			separator, activity,
			dropped_of(c) != dropped_of(&r->before)
				? "; disk or machine too slow for the source?"
				: "");
		r->log_interval_ns = bc_log_next_window(r->log_interval_ns);
		r->log_at_ns = now + r->log_interval_ns;
	}
	bc_log_set_activity("");
}

void bc_loss_report_poll(
	struct bc_loss_report *r, const struct bc_counts *c, const char *activity, uint64_t now)
{
	check_losses(r, c, activity, now);
	check_misfit(r, c);
	r->polled = *c;
	r->polled_ns = now;
}

/* Writes the losses of a whole recording, including those of unknown size; "" if there are none. */
static void write_total(char out[LOSSES_MAX], const struct bc_losses *losses)
{
	struct bc_loss sum = bc_losses_sum(losses);

	write_losses(out, losses);
	size_t used = strlen(out);
	if (sum.inexact != 0)
		snprintf(out + used, LOSSES_MAX - used, "%san unknown number (in %s gap%s)",
			used != 0 ? ", " : "", BC_GROUPED(sum.inexact), bc_plural(sum.inexact));
}

static void log_written(const char *recording, const struct bc_counts *c, const struct bc_counts *b,
	const struct bc_writer_notice *totals, bool is_whole)
{
	uint64_t records = totals->records;
	uint64_t received = c->received - b->received;
	uint64_t invalid = c->dropped_invalid - b->dropped_invalid;
	uint64_t idle = c->dropped_idle - b->dropped_idle;
	char after[48] = "";

	if (received == 0 && records == 0) {
		bc_log(BC_LOG_NOTICE | BC_LOG_ENDED, "%s: nothing recorded: no samples received",
			recording);
		return;
	}
	if (idle != 0)
		snprintf(after, sizeof(after), ", %s after the end", BC_GROUPED(idle));
	bc_log(BC_LOG_NOTICE | BC_LOG_ENDED,
		"%s: %s records written in %s segment%s, %s bytes; %s samples received, %s "
		"invalid%s%s",
		recording, BC_GROUPED(records), BC_GROUPED(totals->segments),
		bc_plural(totals->segments), BC_GROUPED(totals->bytes), BC_GROUPED(received),
		BC_GROUPED(invalid), is_whole ? ", 0 lost" : "", after);
}

static void log_lost(const char *recording, const struct bc_losses *losses, uint64_t gaps,
	uint64_t damages, uint64_t skipped)
{
	char lost[LOSSES_MAX];
	char in_gaps[64] = "";
	char damaged[128] = "";

	write_total(lost, losses);
	if (lost[0] != '\0')
		snprintf(in_gaps, sizeof(in_gaps), "; %s gap%s recorded%s", BC_GROUPED(gaps),
			bc_plural(gaps), damages != 0 ? "; " : "");
	if (damages != 0)
		snprintf(damaged, sizeof(damaged),
			"%s damaged place%s in the source, %s bytes skipped", BC_GROUPED(damages),
			bc_plural(damages), BC_GROUPED(skipped));
	bc_log(BC_LOG_WARNING | (lost[0] != '\0' ? BC_LOG_LOST : BC_LOG_DAMAGED), "%s: %s%s%s%s",
		recording, lost[0] != '\0' ? "samples lost: " : "", lost, in_gaps, damaged);
}

void bc_loss_report_summary(const struct bc_recording *r, bool is_only_recording,
	const struct bc_writer_notice *totals, const struct bc_session_outcome *outcome)
{
	const char *recording = r->info.header.recording;
	const struct bc_counts *c = &r->after.counts;
	const struct bc_counts *b = &r->before.counts;
	uint64_t breaks = r->after.breaks - r->before.breaks;
	uint64_t damages = r->after.damages - r->before.damages;
	bool has_lost = bc_losses_has_any(&r->losses) || damages != 0;
	bool is_whole = !has_lost && totals->abandoned == 0;

	/* With several recordings in a run, not all received samples belong to this one. */
	if (!is_only_recording)
		bc_log(BC_LOG_NOTICE | BC_LOG_ENDED,
			"%s: %s records written in %s segment%s, %s bytes%s", recording,
			BC_GROUPED(totals->records), BC_GROUPED(totals->segments),
			bc_plural(totals->segments), BC_GROUPED(totals->bytes),
			is_whole ? ", 0 lost" : "");
	else if (c->received != b->received || totals->records != 0 || !outcome->has_failed)
		log_written(recording, c, b, totals, is_whole);
	if (breaks != 0)
		bc_log(BC_LOG_WARNING, "%s: stream interruptions: %s, recorded as gaps", recording,
			BC_GROUPED(breaks));
	if (has_lost)
		log_lost(recording, &r->losses, totals->loss.gaps, damages,
			c->skipped_bytes - b->skipped_bytes);
	if (totals->abandoned != 0)
		bc_log(BC_LOG_ERROR | BC_LOG_LOST,
			"%s: %s records in memory could not be written and are lost: the disk "
			"accepted nothing",
			recording, BC_GROUPED(totals->abandoned));
	else if (outcome->has_failed)
		bc_log(BC_LOG_ERROR, "%s", outcome->err);
}
