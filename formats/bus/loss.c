/* Owns the arithmetic of losses and their two forms for others, text and JSON. Invariant: `inexact`
 * goes with `lost` wherever it is added, subtracted or written. */
#include "formats/bus/loss.h"

#include <stdio.h>
#include <string.h>

#include "formats/base/json.h"
#include "formats/base/text.h"

struct bc_loss bc_losses_sum(const struct bc_losses *losses)
{
	struct bc_loss sum = {.away_ns = losses->away_ns};

	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		sum.gaps += losses->gaps[cause];
		sum.lost += losses->lost[cause];
		sum.inexact += losses->inexact[cause];
	}
	return sum;
}

struct bc_totals bc_losses_totals(const struct bc_losses *losses)
{
	const struct bc_loss sum = bc_losses_sum(losses);
	struct bc_totals totals = {
		.gaps = sum.gaps, .inexact = sum.inexact, .away_ns = sum.away_ns};

	memcpy(totals.lost, losses->lost, sizeof(totals.lost));
	return totals;
}

struct bc_loss bc_totals_loss(const struct bc_totals *totals)
{
	struct bc_loss loss = {
		.gaps = totals->gaps, .inexact = totals->inexact, .away_ns = totals->away_ns};

	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		loss.lost += totals->lost[cause];
	return loss;
}

bool bc_losses_has_any(const struct bc_losses *losses)
{
	struct bc_loss sum = bc_losses_sum(losses);

	return sum.lost != 0 || sum.inexact != 0;
}

void bc_losses_add_gap(struct bc_losses *losses, const struct bc_event *gap)
{
	unsigned cause = gap->cause < BC_GAP_CAUSES ? gap->cause : 0;

	losses->gaps[cause]++;
	losses->lost[cause] += gap->value;
	losses->inexact[cause] += !gap->exact;
	losses->away_ns += gap->duration_ns;
}

void bc_losses_add_chunk(struct bc_losses *losses, const struct bc_chunk *chunk)
{
	for (uint32_t i = 0; i < chunk->info.events; i++)
		if (chunk->events[i].kind == BC_EVENT_GAP)
			bc_losses_add_gap(losses, &chunk->events[i]);
}

void bc_losses_add(struct bc_losses *losses, const struct bc_losses *more)
{
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		losses->gaps[cause] += more->gaps[cause];
		losses->lost[cause] += more->lost[cause];
		losses->inexact[cause] += more->inexact[cause];
	}
	losses->away_ns += more->away_ns;
}

struct bc_losses bc_losses_since(const struct bc_losses *now, const struct bc_losses *before)
{
	struct bc_losses since = *now;

	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		since.gaps[cause] -= before->gaps[cause];
		since.lost[cause] -= before->lost[cause];
		since.inexact[cause] -= before->inexact[cause];
	}
	since.away_ns -= before->away_ns;
	return since;
}

struct bc_loss bc_chunk_loss(const struct bc_chunk *chunk)
{
	struct bc_losses losses = {.gaps = {0}};

	bc_losses_add_chunk(&losses, chunk);
	return bc_losses_sum(&losses);
}

void bc_loss_add(struct bc_loss *loss, struct bc_loss more)
{
	loss->gaps += more.gaps;
	loss->lost += more.lost;
	loss->inexact += more.inexact;
	loss->away_ns += more.away_ns;
}

static uint64_t above(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

struct bc_loss bc_loss_since(struct bc_loss now, struct bc_loss before)
{
	return (struct bc_loss){above(now.gaps, before.gaps), above(now.lost, before.lost),
		above(now.inexact, before.inexact), above(now.away_ns, before.away_ns)};
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void bc_loss_raise(struct bc_loss *loss, struct bc_loss least)
{
	loss->gaps = larger(loss->gaps, least.gaps);
	loss->lost = larger(loss->lost, least.lost);
	loss->inexact = larger(loss->inexact, least.inexact);
	loss->away_ns = larger(loss->away_ns, least.away_ns);
}

json_t *bc_loss_json(const struct bc_loss *loss)
{
	return BC_JSON_OBJECT({"gaps", loss != NULL ? bc_json_u64(loss->gaps) : json_null()},
		{"lost", loss != NULL ? bc_json_u64(loss->lost) : json_null()},
		{"inexact_gaps", loss != NULL ? bc_json_u64(loss->inexact) : json_null()},
		{"away_ns", loss != NULL ? bc_json_u64(loss->away_ns) : json_null()});
}

json_t *bc_losses_json(const struct bc_losses *losses)
{
	const struct bc_loss sum = bc_losses_sum(losses);
	struct bc_json_member causes[BC_GAP_CAUSES + 1] = {{NULL, NULL}};
	unsigned count = 0;

	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		if (losses->gaps[cause] != 0)
			causes[count++] = (struct bc_json_member){bc_gap_cause_name(cause),
				BC_JSON_OBJECT({"gaps", bc_json_u64(losses->gaps[cause])},
					{"lost", bc_json_u64(losses->lost[cause])},
					{"inexact_gaps", bc_json_u64(losses->inexact[cause])})};
	return bc_json_merge(
		bc_loss_json(&sum), BC_JSON_OBJECT({"causes", bc_json_object(causes)}));
}

const char *bc_loss_text(char out[BC_LOSS_TEXT_MAX], struct bc_loss loss)
{
	int used = snprintf(out, BC_LOSS_TEXT_MAX, "an unknown number of samples lost");

	if (loss.lost != 0 || loss.inexact == 0)
		used = snprintf(out, BC_LOSS_TEXT_MAX, "%s%s sample%s lost",
			loss.inexact != 0 ? "at least " : "", BC_GROUPED(loss.lost),
			bc_plural(loss.lost));
	if (loss.away_ns != 0)
		snprintf(out + used, BC_LOSS_TEXT_MAX - (size_t)used, ", %.6f s",
			(double)loss.away_ns * 1e-9);
	return out;
}
