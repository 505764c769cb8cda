#include "cli/client/byte_buffer.h"

#include <stdlib.h>
#include <string.h>

bool bc_byte_buffer_add(struct bc_byte_buffer *b, const char *bytes, size_t n)
{
	if (n > b->max - b->used) {
		b->is_too_long = true;
		return false;
	}
	if (b->capacity - b->used <= n) {
		size_t capacity = (b->used + n) * 2 + 1;
		char *grown = realloc(b->bytes, capacity);
		if (grown == NULL) {
			b->is_out_of_memory = true;
			return false;
		}
		b->bytes = grown;
		b->capacity = capacity;
	}
	memcpy(b->bytes + b->used, bytes, n);
	b->used += n;
	b->bytes[b->used] = '\0';
	return true;
}

void bc_byte_buffer_free(struct bc_byte_buffer *b)
{
	free(b->bytes);
	*b = (struct bc_byte_buffer){0};
}
