/* What became of each frame that a board made: the sums of struct board_sent, exact to the byte.
 *
 * The stream is a row of pieces: a frame, garbage, or a whole run of raw6. board_ledger_open()
 * begins one, board_ledger_give() and board_ledger_swallow() say what went into transfers and what
 * was lost on the way, in the order of its bytes, and board_ledger_close() that no more will. The
 * last pieces are kept, so that bytes can be taken back. */
#ifndef BC_TESTS_BOARD_BOARD_LEDGER_H
#define BC_TESTS_BOARD_BOARD_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/board/board.h"

enum board_piece_kind { BOARD_PIECE_FRAME, BOARD_PIECE_GARBAGE, BOARD_PIECE_RAW };

#define BOARD_NOT_FLIPPED UINT64_MAX

struct board_piece {
	enum board_piece_kind kind;
	bool is_closed;
	bool has_hole;       /* bytes behind the first `whole` were swallowed or taken back */
	uint32_t reported;   /* losses that its header tells */
	uint64_t bytes;      /* of all of it */
	uint64_t samples;    /* in it */
	uint64_t flipped_at; /* the byte with a flipped bit, or BOARD_NOT_FLIPPED */
	uint64_t whole;      /* bytes given from the beginning on, up to the first hole */
	uint64_t behind;     /* bytes given behind it */
};

#define BOARD_LEDGER_PIECES 65536

struct board_ledger {
	struct board_sent sums; /* what is not of the stream is the board's to fill in */
	struct board_piece *pieces;
	uint64_t count; /* pieces opened; the newest is at (count - 1) % BOARD_LEDGER_PIECES */
};

bool board_ledger_init(struct board_ledger *ledger);
void board_ledger_free(struct board_ledger *ledger);

/* Begins a piece; the one before it is closed. Of `piece` the kind, told, bytes, samples and
 * flipped_at are read. */
void board_ledger_open(struct board_ledger *ledger, const struct board_piece *piece);

/* Adds to the piece under way: raw6 has no frames, and its piece grows. */
void board_ledger_extend(struct board_ledger *ledger, uint64_t bytes, uint64_t samples);

/* The next bytes of the piece under way went into a transfer, or nowhere. */
void board_ledger_give(struct board_ledger *ledger, uint64_t bytes);
void board_ledger_swallow(struct board_ledger *ledger, uint64_t bytes);

/* The rest of the piece under way, if there is one, will never be sent. */
void board_ledger_close(struct board_ledger *ledger);

/* Whether a piece is under way, and whether any byte of it was given. */
bool board_ledger_is_open(const struct board_ledger *ledger);
bool board_ledger_is_begun(const struct board_ledger *ledger);

/* The last `bytes` bytes given did not arrive after all. Returns false, with nothing changed, when
 * they go back beyond the pieces kept. */
bool board_ledger_take_back(struct board_ledger *ledger, uint64_t bytes);

#endif
