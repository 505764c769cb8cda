/* A search starts at the last range that begins at or below the address and goes back. From one
 * that ends before the address, `up` leads past all that do not end later; from one that has it,
 * only those that start within its size can be smaller. So it visits only ranges that overlap. */
#include "formats/names/name_layer.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/grow.h"

int bc_name_layer_add(
	struct bc_name_layer *l, const struct bc_name_range *range, const char *name, size_t bytes)
{
	struct bc_name_row *rows = bc_grow(l->rows, &l->capacity, l->count, sizeof(*rows));

	if (rows == NULL)
		return -ENOMEM;
	l->rows = rows;
	char *text = bc_grow(l->text, &l->text_capacity, l->text_used + bytes, 1);
	if (text == NULL)
		return -ENOMEM;
	l->text = text;
	l->rows[l->count++] = (struct bc_name_row){.first = range->first,
		.last = range->last,
		.name = l->text_used,
		.is_port = range->is_port};
	memcpy(l->text + l->text_used, name, bytes);
	l->text[l->text_used + bytes] = '\0';
	l->text_used += bytes + 1;
	return 0;
}

void bc_name_layer_free(struct bc_name_layer *l)
{
	free(l->rows);
	free(l->text);
}

/* Wide ranges come before narrow ones, and equal ones in the order in which they were added. */
static int compare(const void *x, const void *y)
{
	const struct bc_name_row *a = x;
	const struct bc_name_row *b = y;

	if (a->is_port != b->is_port)
		return a->is_port ? 1 : -1;
	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	if (a->last != b->last)
		return a->last > b->last ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

void bc_name_layer_sort(struct bc_name_layer *l)
{
	if (l->count != 0)
		qsort(l->rows, l->count, sizeof(*l->rows), compare);
	l->ports = l->count;
	for (size_t i = 0; i < l->count; i++) {
		struct bc_name_row *row = &l->rows[i];
		if (row->is_port && l->ports == l->count)
			l->ports = i;
		size_t begin = row->is_port ? l->ports : 0;
		size_t up = i;
		while (up > begin && l->rows[up - 1].last <= row->last)
			up = l->rows[up - 1].up;
		row->up = up;
	}
}

const struct bc_name_row *bc_name_layer_find(
	const struct bc_name_layer *l, bool is_port, uint64_t addr)
{
	size_t begin = is_port ? l->ports : 0;
	size_t low = begin;
	size_t high = is_port ? l->count : l->ports;
	const struct bc_name_row *best = NULL;

	while (low < high) { /* the first range that starts above the address */
		size_t middle = low + (high - low) / 2;
		if (l->rows[middle].first <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	while (low > begin &&
		(best == NULL || addr - l->rows[low - 1].first < best->last - best->first)) {
		const struct bc_name_row *row = &l->rows[low - 1];
		bool has_addr = row->last >= addr;
		if (has_addr && (best == NULL || row->last - row->first < best->last - best->first))
			best = row;
		low = has_addr ? low - 1 : row->up;
	}
	return best;
}

/* ---- regions */

/* In a filter, which has blanks between its conditions, '_' stands for a blank. */
static int fold(char c)
{
	return c == '_' ? ' ' : tolower((unsigned char)c);
}

static size_t common_bytes(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] != '\0' && fold(a[n]) == fold(b[n]))
		n++;
	return n;
}

static bool is_word_start(const char *text, size_t at)
{
	return at == 0 || !isalnum((unsigned char)text[at - 1]);
}

/* Whether the words of `name` follow each other in `text`. */
static bool has_words(const char *text, const char *name)
{
	size_t bytes = strlen(name);

	for (size_t at = 0; text[at] != '\0'; at++)
		if (is_word_start(text, at) && common_bytes(text + at, name) == bytes &&
			!isalnum((unsigned char)text[at + bytes]))
			return true;
	return false;
}

static bool is_name(const char *text, const char *name)
{
	size_t bytes = common_bytes(text, name);

	return text[bytes] == '\0' && name[bytes] == '\0';
}

size_t bc_name_likeness(const char *text, const char *name)
{
	size_t most = 0;

	for (size_t at = 0; text[at] != '\0'; at++) {
		size_t bytes = is_word_start(text, at) ? common_bytes(text + at, name) : 0;
		most = bytes > most ? bytes : most;
	}
	return most;
}

/* Rows come in order: only the last range can be continued. */
static int add_row(struct bc_name_region *region, const struct bc_name_row *row)
{
	struct bc_name_range *last = region->count != 0 ? &region->ranges[region->count - 1] : NULL;

	if (last != NULL && last->is_port == row->is_port &&
		(row->first <= last->last || row->first - last->last == 1)) {
		last->last = row->last > last->last ? row->last : last->last;
		return 0;
	}
	if (region->count == BC_NAME_REGION_RANGES)
		return -E2BIG;
	region->ranges[region->count++] = (struct bc_name_range){
		.is_port = row->is_port, .first = row->first, .last = row->last};
	return 0;
}

static int add_rows(const struct bc_name_layer *l, const char *name, struct bc_name_region *region,
	bool (*selects)(const char *text, const char *name))
{
	int rc = 0;

	for (size_t i = 0; i < l->count && rc == 0; i++)
		if (selects(bc_name_layer_text(l, &l->rows[i]), name))
			rc = add_row(region, &l->rows[i]);
	return rc;
}

static bool is_symbol(const char *text, const char *name)
{
	return strcmp(text, name) == 0;
}

int bc_name_layer_region(
	const struct bc_name_layer *l, const char *name, struct bc_name_region *region)
{
	if (l->is_symbols)
		return add_rows(l, name, region, is_symbol);
	int rc = add_rows(l, name, region, is_name);
	return rc != 0 || region->count != 0 ? rc : add_rows(l, name, region, has_words);
}
