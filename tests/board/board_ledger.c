#include "tests/board/board_ledger.h"

#include "formats/bus/bcp1.h"
#include "formats/bus/sample.h"

static void count_frame(const struct board_piece *p, struct board_sent *sums)
{
	uint64_t given = p->whole + p->after_hole;
	bool is_flipped = p->flipped_at != BOARD_NOT_FLIPPED;
	bool is_whole = p->whole == p->bytes;

	if (p->whole >= BC_BCP1_HEADER_BYTES && p->flipped_at >= BC_BCP1_HEADER_BYTES)
		sums->lost += p->reported;
	if (is_whole && !is_flipped) {
		sums->frames++;
		sums->samples += p->samples;
	} else if (p->samples == 0 || !(is_whole || p->has_hole || p->is_closed)) {
		return; /* nothing to count, or not known yet */
	} else if (given != 0) {
		sums->torn_frames++;
		sums->torn_samples += p->samples;
	} else {
		sums->dropped_samples += p->samples;
	}
}

/* Returns what a piece adds to the sums in its current state. */
static struct board_sent count_piece(const struct board_piece *p)
{
	struct board_sent sums = {.bytes = p->whole + p->after_hole};

	switch (p->kind) {
	case BOARD_PIECE_FRAME:
		count_frame(p, &sums);
		break;
	case BOARD_PIECE_GARBAGE:
		break;
	case BOARD_PIECE_RAW:
		sums.samples = sums.bytes / BC_SAMPLE_BYTES;
		if (p->is_closed)
			sums.dropped_samples = p->samples - sums.samples;
		break;
	}
	return sums;
}

/* Replaces the contribution of a piece to the sums. */
static void recount(struct board_ledger *ledger, const struct board_sent *before,
	const struct board_piece *piece)
{
	struct board_sent now = count_piece(piece);
	struct board_sent *sums = &ledger->sums;

	sums->bytes += now.bytes - before->bytes;
	sums->frames += now.frames - before->frames;
	sums->samples += now.samples - before->samples;
	sums->torn_frames += now.torn_frames - before->torn_frames;
	sums->torn_samples += now.torn_samples - before->torn_samples;
	sums->dropped_samples += now.dropped_samples - before->dropped_samples;
	sums->lost += now.lost - before->lost;
}

void board_ledger_open(struct board_ledger *ledger, const struct board_piece *piece)
{
	board_ledger_close(ledger);
	ledger->piece = *piece;
	ledger->has_piece = true;
}

void board_ledger_extend(struct board_ledger *ledger, uint64_t bytes, uint64_t samples)
{
	ledger->piece.bytes += bytes;
	ledger->piece.samples += samples;
}

void board_ledger_give(struct board_ledger *ledger, uint64_t bytes)
{
	struct board_piece *piece = &ledger->piece;
	struct board_sent before = count_piece(piece);

	if (piece->has_hole)
		piece->after_hole += bytes;
	else
		piece->whole += bytes;
	recount(ledger, &before, piece);
}

void board_ledger_swallow(struct board_ledger *ledger, uint64_t bytes)
{
	struct board_piece *piece = &ledger->piece;
	struct board_sent before = count_piece(piece);

	if (bytes == 0)
		return;
	piece->has_hole = true;
	recount(ledger, &before, piece);
}

bool board_ledger_is_open(const struct board_ledger *ledger)
{
	return ledger->has_piece && !ledger->piece.is_closed;
}

bool board_ledger_is_begun(const struct board_ledger *ledger)
{
	return board_ledger_is_open(ledger) && ledger->piece.whole + ledger->piece.after_hole != 0;
}

void board_ledger_close(struct board_ledger *ledger)
{
	if (!board_ledger_is_open(ledger))
		return;
	struct board_piece *piece = &ledger->piece;
	struct board_sent before = count_piece(piece);

	piece->is_closed = true;
	recount(ledger, &before, piece);
}
