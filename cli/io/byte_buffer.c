#include "cli/io/byte_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/grow.h"

bool bc_byte_buffer_add(struct bc_byte_buffer *b, const char *bytes, size_t n)
{
	if (n > b->max - b->used) {
		b->is_too_long = true;
		return false;
	}
	char *grown = bc_grow(b->bytes, &b->capacity, b->used + n, 1);
	if (grown == NULL) {
		b->is_out_of_memory = true;
		return false;
	}
	b->bytes = grown;
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
