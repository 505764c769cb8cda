#include "formats/stats/string_counter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "formats/base/grow.h"

#define FIRST_SLOTS 256u

/* Finds the slot of a string, or the free slot for it. */
static uint32_t *find_slot(const struct bc_string_counter *n, struct bc_text name)
{
	size_t mask = n->slot_count - 1;
	size_t at = XXH3_64bits(name.at, name.bytes) & mask;

	for (;; at = (at + 1) & mask) {
		uint32_t *slot = &n->slots[at];
		if (*slot == 0)
			return slot;
		const struct bc_string_count *row = &n->rows[*slot - 1];
		if (row->text.bytes == name.bytes &&
			memcmp(n->text + n->starts[*slot - 1], name.at, name.bytes) == 0)
			return slot;
	}
}

/* Doubles the slots, and allocates rows for half of them. */
static int grow_rows(struct bc_string_counter *n)
{
	size_t slot_count = n->slot_count != 0 ? n->slot_count * 2 : FIRST_SLOTS;
	uint32_t *slots = calloc(slot_count, sizeof(*slots));
	struct bc_string_count *rows = realloc(n->rows, slot_count / 2 * sizeof(*rows));

	if (rows != NULL)
		n->rows = rows;
	uint32_t *starts = realloc(n->starts, slot_count / 2 * sizeof(*starts));
	if (starts != NULL)
		n->starts = starts;
	if (slots == NULL || rows == NULL || starts == NULL) {
		free(slots);
		return -ENOMEM;
	}
	free(n->slots);
	n->slots = slots;
	n->slot_count = slot_count;
	for (size_t i = 0; i < n->count; i++) {
		struct bc_text name = {
			.at = n->text + n->starts[i], .bytes = n->rows[i].text.bytes};
		*find_slot(n, name) = (uint32_t)i + 1;
	}
	return 0;
}

static int grow_text(struct bc_string_counter *n, size_t bytes)
{
	char *text = bc_grow(n->text, &n->text_capacity, n->text_used + bytes, 1);

	if (text == NULL)
		return -ENOMEM;
	n->text = text;
	return 0;
}

int bc_string_counter_add(struct bc_string_counter *n, struct bc_text name)
{
	if (n->slot_count == 0 && grow_rows(n) != 0)
		return -ENOMEM;
	uint32_t *slot = find_slot(n, name);
	if (*slot != 0) {
		n->rows[*slot - 1].count++;
		n->total++;
		return 0;
	}
	if (n->count == BC_STRING_COUNTER_MAX ||
		name.bytes > BC_STRING_COUNTER_TEXT_MAX - n->text_used) {
		n->others++;
		n->total++;
		return 0;
	}
	if (n->count == n->slot_count / 2) {
		if (grow_rows(n) != 0)
			return -ENOMEM;
		slot = find_slot(n, name);
	}
	if (grow_text(n, name.bytes) != 0)
		return -ENOMEM;
	memcpy(n->text + n->text_used, name.at, name.bytes);
	n->starts[n->count] = (uint32_t)n->text_used;
	n->rows[n->count] = (struct bc_string_count){.text.bytes = name.bytes, .count = 1};
	n->text_used += name.bytes;
	n->total++;
	*slot = (uint32_t)++n->count;
	return 0;
}

static int compare_counts(const void *a, const void *b)
{
	const struct bc_string_count *x = a;
	const struct bc_string_count *y = b;
	uint32_t both = x->text.bytes < y->text.bytes ? x->text.bytes : y->text.bytes;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	int order = memcmp(x->text.at, y->text.at, both);
	if (order != 0)
		return order;
	return (x->text.bytes > y->text.bytes) - (x->text.bytes < y->text.bytes);
}

void bc_string_counter_sort(struct bc_string_counter *n)
{
	for (size_t i = 0; i < n->count; i++)
		n->rows[i].text.at = n->text + n->starts[i];
	if (n->count != 0)
		qsort(n->rows, n->count, sizeof(*n->rows), compare_counts);
}

char *bc_string_count_text(const struct bc_string_count *name)
{
	char *text = malloc(4 * (size_t)name->text.bytes + 1);
	char *out = text;

	if (text == NULL)
		return NULL;
	for (uint32_t i = 0; i < name->text.bytes; i++) {
		uint8_t byte = (uint8_t)name->text.at[i];
		if (byte > ' ' && byte < 0x7F && byte != '\\')
			*out++ = (char)byte;
		else
			out += sprintf(out, "\\x%02x", byte);
	}
	*out = '\0';
	return text;
}

void bc_string_counter_free(struct bc_string_counter *n)
{
	free(n->rows);
	free(n->text);
	free(n->starts);
	free(n->slots);
	*n = (struct bc_string_counter){.rows = NULL};
}
