#include "cli/report/report_state.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/grow.h"

bool bc_report_add(struct bc_report_text *t, const char *bytes, size_t count)
{
	t->is_full = t->is_full || count > t->limit - t->used;
	if (t->is_full || t->is_no_memory)
		return false;
	char *grown = bc_grow(t->bytes, &t->capacity, t->used + count, 1);
	t->is_no_memory = grown == NULL;
	if (grown == NULL)
		return false;
	t->bytes = grown;
	memcpy(t->bytes + t->used, bytes, count);
	t->used += count;
	return true;
}

bool bc_report_format(struct bc_report_text *t, const char *format, ...)
{
	char piece[1024];
	va_list args;

	va_start(args, format);
	int n = vsnprintf(piece, sizeof(piece), format, args);
	va_end(args);
	assert(n >= 0 && (size_t)n < sizeof(piece));
	return bc_report_add(t, piece, (size_t)n);
}

int bc_report_result(const struct bc_report_text *t, int rc)
{
	return t->is_full ? -EFBIG : t->is_no_memory ? -ENOMEM : rc;
}
