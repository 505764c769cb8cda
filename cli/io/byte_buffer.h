/* A growing byte buffer with a maximum size, for responses and partial lines. */
#ifndef BC_CLI_IO_BYTE_BUFFER_H
#define BC_CLI_IO_BYTE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

/* Set `max` and zero the rest before the first use. */
struct bc_byte_buffer {
	char *bytes; /* null-terminated; NULL before the first bc_byte_buffer_add() */
	size_t used;
	size_t capacity;
	size_t max;
	bool is_too_long;      /* `max` was exceeded */
	bool is_out_of_memory; /* an allocation failed */
};

/* Appends bytes. On failure, sets the reason, leaves the contents unchanged and returns false. */
bool bc_byte_buffer_add(struct bc_byte_buffer *buffer, const char *bytes, size_t n);

/* Frees the contents and zeroes the buffer. */
void bc_byte_buffer_free(struct bc_byte_buffer *buffer);

#endif
