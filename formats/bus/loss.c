#include "formats/bus/loss.h"

struct bc_loss bc_losses_sum(const struct bc_losses *losses)
{
	struct bc_loss sum = {.gaps = 0};

	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		sum.gaps += losses->gaps[cause];
		sum.lost += losses->lost[cause];
		sum.inexact += losses->inexact[cause];
	}
	return sum;
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
}

struct bc_losses bc_losses_since(const struct bc_losses *now, const struct bc_losses *before)
{
	struct bc_losses since = *now;

	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		since.gaps[cause] -= before->gaps[cause];
		since.lost[cause] -= before->lost[cause];
		since.inexact[cause] -= before->inexact[cause];
	}
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
}
