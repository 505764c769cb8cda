#include "formats/diff/moved.h"

#include <errno.h>
#include <stdlib.h>

/* Entries remembered of each trace. */
#define KEPT 65536u

#define SLOTS (2 * KEPT)

struct trace {
	uint64_t count; /* entries added; the last KEPT are at [i % KEPT] */
	uint64_t keys[KEPT];
	uint64_t positions[KEPT];
	uint64_t numbers[KEPT];
	/* Where a run of BC_MOVED_MIN begins, plus 1, by its hash. */
	uint64_t begins[SLOTS];
};

struct bc_moved {
	struct trace traces[2];
};

int bc_moved_open(struct bc_moved **moved)
{
	*moved = calloc(1, sizeof(**moved));
	return *moved != NULL ? 0 : -ENOMEM;
}

void bc_moved_close(struct bc_moved *moved)
{
	free(moved);
}

static size_t add_key(size_t hash, uint64_t key)
{
	return (hash ^ key) * UINT64_C(0x9E3779B97F4A7C15) ^ hash >> 29;
}

void bc_moved_add(
	struct bc_moved *moved, unsigned trace, uint64_t position, uint64_t number, uint64_t key)
{
	struct trace *t = &moved->traces[trace];
	uint64_t end = ++t->count;
	size_t hash = 0;

	t->keys[(end - 1) % KEPT] = key;
	t->positions[(end - 1) % KEPT] = position;
	t->numbers[(end - 1) % KEPT] = number;
	if (end < BC_MOVED_MIN ||
		t->positions[(end - BC_MOVED_MIN) % KEPT] != position - (BC_MOVED_MIN - 1))
		return;
	for (uint64_t i = end - BC_MOVED_MIN; i < end; i++)
		hash = add_key(hash, t->keys[i % KEPT]);
	t->begins[hash % SLOTS] = end - BC_MOVED_MIN + 1;
}

size_t bc_moved_find(const struct bc_moved *moved, unsigned trace, const uint64_t *keys, size_t n,
	uint64_t *number)
{
	const struct trace *t = &moved->traces[1 - trace];
	size_t hash = 0;
	size_t same = 0;

	if (n < BC_MOVED_MIN)
		return 0;
	for (size_t i = 0; i < BC_MOVED_MIN; i++)
		hash = add_key(hash, keys[i]);
	uint64_t begin = t->begins[hash % SLOTS];
	if (begin == 0 || begin - 1 + KEPT < t->count)
		return 0;
	begin--;
	while (same < n && begin + same < t->count &&
		t->keys[(begin + same) % KEPT] == keys[same] &&
		t->positions[(begin + same) % KEPT] == t->positions[begin % KEPT] + same)
		same++;
	*number = t->numbers[begin % KEPT];
	return same >= BC_MOVED_MIN ? same : 0;
}
