#include "cli/client/byte_buffer.h"

#include <stdlib.h>
#include <string.h>

bool bc_byte_buffer_add(struct bc_byte_buffer *g, const char *bytes, size_t n)
{
	if (n > g->most - g->used) {
		g->is_too_long = true;
		return false;
	}
	if (g->room - g->used <= n) {
		size_t room = (g->used + n) * 2 + 1;
		char *grown = realloc(g->bytes, room);
		if (grown == NULL) {
			g->is_without_memory = true;
			return false;
		}
		g->bytes = grown;
		g->room = room;
	}
	memcpy(g->bytes + g->used, bytes, n);
	g->used += n;
	g->bytes[g->used] = '\0';
	return true;
}

void bc_byte_buffer_free(struct bc_byte_buffer *g)
{
	free(g->bytes);
	*g = (struct bc_byte_buffer){0};
}
