/* Tracks what became of each frame that a board made: the sums in struct board_sent, exact to the
 * byte.
 *
 * The stream is a sequence of pieces: a frame, garbage, or a whole run of raw6.
 * board_ledger_open() starts a piece. board_ledger_give() and board_ledger_swallow() record, in
 * stream order, which bytes went into transfers and which were dropped. board_ledger_close() ends
 * the piece. */
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
	bool has_hole;       /* bytes after the first `whole` were dropped */
	uint32_t reported;   /* loss reported in its header */
	uint64_t bytes;      /* its size */
	uint64_t samples;    /* samples in it */
	uint64_t flipped_at; /* the byte with a flipped bit, or BOARD_NOT_FLIPPED */
	uint64_t whole;      /* bytes sent from its start up to the first hole */
	uint64_t after_hole; /* bytes sent after the hole */
};

struct board_ledger {
	struct board_sent sums;   /* only the stream's part; the board fills in the rest */
	struct board_piece piece; /* the current one */
	bool has_piece;
};

/* Starts a piece and closes the previous one. Reads kind, reported, bytes, samples and flipped_at
 * of `piece`. */
void board_ledger_open(struct board_ledger *ledger, const struct board_piece *piece);

/* Adds to the current piece: raw6 has no frames, so its piece grows. */
void board_ledger_extend(struct board_ledger *ledger, uint64_t bytes, uint64_t samples);

/* The next bytes of the current piece went into a transfer, or were dropped. */
void board_ledger_give(struct board_ledger *ledger, uint64_t bytes);
void board_ledger_swallow(struct board_ledger *ledger, uint64_t bytes);

/* The rest of the current piece, if any, will not be sent. */
void board_ledger_close(struct board_ledger *ledger);

/* Whether there is a current piece, and whether any byte of it was sent. */
bool board_ledger_is_open(const struct board_ledger *ledger);
bool board_ledger_is_begun(const struct board_ledger *ledger);

#endif
