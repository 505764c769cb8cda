/* Bytes that come in pieces, up to a limit: an answer, or a line whose end hasn't come. */
#ifndef BC_CLI_CLIENT_BYTE_BUFFER_H
#define BC_CLI_CLIENT_BYTE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

/* All zero but for `most` at first. */
struct bc_byte_buffer {
	char *bytes; /* with a zero behind them; NULL before the first piece */
	size_t used;
	size_t room;
	size_t most; /* more than this is refused */
	bool is_too_long;
	bool is_without_memory;
};

/* Adds a piece. Returns false, with the reason set and the bytes as they were, when it would be
 * more than `most`, or memory ran out. */
bool bc_byte_buffer_add(struct bc_byte_buffer *gathered, const char *bytes, size_t n);

/* All of it is zero then. */
void bc_byte_buffer_free(struct bc_byte_buffer *gathered);

#endif
