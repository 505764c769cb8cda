/* A line's state is one word: the number of its last touch, and the ways in which it was touched.
 * The states of 128 neighbours are a block. Programs touch neighbours, so a block is usually in the
 * cache when its next line is touched. The blocks that a BYU record can reach are found in an array
 * of pointers; those of larger addresses and of other address spaces in a hash table. A block takes
 * 1 KiB, also for a lone line.
 *
 * Lines are counted by their set of touches, so reading the counts does not scan the blocks. */
#include "cli/stats/footprint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/host.h"
#include "formats/bus/record.h"

#define BLOCK_LINES_LOG 7u
#define BLOCK_LINES     (1u << BLOCK_LINES_LOG)
#define BLOCK_BYTES     (BLOCK_LINES * sizeof(uint64_t))

/* A state's bits from TOUCH_BITS on are the number of the last touch, from 1. 0: never touched. */
#define TOUCH_BITS 3

/* Blocks are allocated by so many. */
#define PIECE_BLOCKS 256u

#define FIRST_SLOTS 64u

enum line_touch {
	LINE_FULL,      /* the table is full, and the line is in none of its blocks */
	LINE_CHANGED,   /* the line is new, or had not been touched in this way */
	LINE_UNCHANGED, /* the line had been touched in this way before */
};

/* ---- the hash table: open addressing with linear probing, at most half full */

struct bc_block_slot {
	uint64_t number;
	uint64_t space;
	uintptr_t value; /* a block's address, or a space's number plus 1; 0: free */
};

static struct bc_block_slot *find_slot(
	const struct bc_block_map *m, uint64_t number, uint64_t space)
{
	size_t at = ((number ^ space << 48) * UINT64_C(0x9E3779B97F4A7C15)) >>
		    (64 - (unsigned)__builtin_ctzll(m->slot_count));

	while (m->slots[at].value != 0 &&
		(m->slots[at].number != number || m->slots[at].space != space))
		at = (at + 1) & (m->slot_count - 1);
	return &m->slots[at];
}

/* Returns the slot of a block, or the free slot for it; NULL if out of memory. */
static struct bc_block_slot *map_slot(struct bc_block_map *m, uint64_t number, uint64_t space)
{
	if (m->count >= m->slot_count / 2) {
		size_t count = m->slot_count != 0 ? m->slot_count * 2 : FIRST_SLOTS;
		struct bc_block_map grown = {calloc(count, sizeof(*m->slots)), count, m->count};
		if (grown.slots == NULL)
			return NULL;
		for (size_t i = 0; i < m->slot_count; i++)
			if (m->slots[i].value != 0)
				*find_slot(&grown, m->slots[i].number,
					m->slots[i].space) = m->slots[i];
		free(m->slots);
		*m = grown;
	}
	return find_slot(m, number, space);
}

static void map_set(struct bc_block_map *m, struct bc_block_slot *slot, uint64_t number,
	uint64_t space, uintptr_t value)
{
	*slot = (struct bc_block_slot){number, space, value};
	m->count++;
}

/* ---- lines */

/* Room for at least one block; max_bytes of them otherwise. Returns 0 or -ENOMEM. */
static int line_table_open(struct bc_line_table *t, unsigned shift, uint64_t max_bytes)
{
	*t = (struct bc_line_table){.blocks_left = max_bytes / BLOCK_BYTES};
	t->blocks_left += t->blocks_left == 0;
	t->low_count = (UINT64_C(1) << 32 >> shift >> BLOCK_LINES_LOG) + 1;
	t->low = calloc(
		t->low_count, sizeof(*t->low)); /* large: pages that are not used cost nothing */
	return t->low != NULL ? 0 : -ENOMEM;
}

static void line_table_close(struct bc_line_table *t)
{
	for (size_t i = 0; i < t->piece_count; i++)
		free(t->pieces[i]);
	free(t->pieces);
	free(t->high.slots);
	free(t->low);
	*t = (struct bc_line_table){.low = NULL};
}

/* Returns a block of lines that are not touched; NULL at the limit, or if out of memory. */
static uint64_t *new_block(struct bc_line_table *t)
{
	if (t->blocks_left == 0)
		return NULL;
	if (t->free_count == 0) {
		size_t blocks = t->blocks_left < PIECE_BLOCKS ? t->blocks_left : PIECE_BLOCKS;
		void **pieces = realloc(t->pieces, (t->piece_count + 1) * sizeof(*pieces));
		if (pieces == NULL)
			return NULL;
		t->pieces = pieces;
		t->free = calloc(blocks, BLOCK_BYTES);
		if (t->free == NULL)
			return NULL;
		t->pieces[t->piece_count++] = t->free;
		t->free_count = blocks;
	}
	t->blocks_left--;
	t->free_count--;
	uint64_t *block = t->free;
	t->free += BLOCK_LINES;
	return block;
}

/* Returns a line's block, which it makes if need be; NULL if the table is full. */
static uint64_t *find_block(struct bc_line_table *t, uint64_t number, unsigned space)
{
	if (space == 0 && number < t->low_count) {
		if (t->low[number] == NULL)
			t->low[number] = new_block(t);
		return t->low[number];
	}
	struct bc_block_slot *slot = map_slot(&t->high, number, space);
	if (slot == NULL || slot->value != 0)
		return slot != NULL ? (uint64_t *)slot->value : NULL;
	uint64_t *block = new_block(t);
	if (block != NULL)
		map_set(&t->high, slot, number, space, (uintptr_t)block);
	return block;
}

/* Records a touch of a line in the ways `touch` (BC_TOUCH_*, or 0). `number` counts touches,
 * from 1. Sets *before to the number of the line's previous touch, or 0. */
static enum line_touch line_table_touch(struct bc_line_table *t, uint64_t line, unsigned space,
	unsigned touch, uint64_t number, uint64_t *before)
{
	uint64_t *block = find_block(t, line >> BLOCK_LINES_LOG, space);

	if (block == NULL)
		return LINE_FULL;
	uint64_t *state = &block[line & (BLOCK_LINES - 1)];
	unsigned old = (unsigned)*state & BC_TOUCH_ALL;
	bool is_new = *state == 0;
	*before = *state >> TOUCH_BITS;
	*state = number << TOUCH_BITS | old | touch;
	if (!is_new && (old | touch) == old)
		return LINE_UNCHANGED;
	t->count += is_new;
	t->touched[old] -= !is_new;
	t->touched[old | touch]++;
	return LINE_CHANGED;
}

uint64_t bc_line_table_count(const struct bc_line_table *t, unsigned touch)
{
	uint64_t sum = 0;

	for (unsigned set = 1; set <= BC_TOUCH_ALL; set++)
		sum += (set & touch) != 0 ? t->touched[set] : 0;
	return sum;
}

/* ---- footprint */

#define NO_MEMORY UINT32_MAX

static bool is_power_of_two(uint64_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

int bc_footprint_open(struct bc_footprint *f, const struct bc_footprint_options *options)
{
	*f = (struct bc_footprint){.addr_low = UINT64_MAX};
	if (!is_power_of_two(options->line_bytes) || !is_power_of_two(options->page_bytes) ||
		options->page_bytes < options->line_bytes)
		return -EINVAL;
	f->has_more = options->has_working_set || options->has_miss_ratio;
	f->line_shift = (unsigned)__builtin_ctzll(options->line_bytes);
	f->page_shift = (unsigned)__builtin_ctzll(options->page_bytes);
	/* There are at least as many lines as pages, and usually many more. */
	if (line_table_open(&f->lines, f->line_shift, options->memory_bytes / 16 * 15) != 0 ||
		line_table_open(&f->pages, f->page_shift, options->memory_bytes / 16) != 0)
		return -ENOMEM;
	if (options->has_miss_ratio)
		f->stack = bc_lru_stack_open(BC_LRU_STACK_LINES);
	return options->has_miss_ratio && f->stack == NULL ? -ENOMEM : 0;
}

void bc_footprint_close(struct bc_footprint *f)
{
	free(f->stack);
	f->stack = NULL;
	line_table_close(&f->lines);
	line_table_close(&f->pages);
	free(f->spaces.slots);
	f->spaces = (struct bc_block_map){.slots = NULL};
}

/* How a reference of this type touches memory, or NO_MEMORY. */
static unsigned touch_of(unsigned type)
{
	const int plain = bc_ref_type_plain(type);

	return type == BC_REF_MODIFY                          ? BC_TOUCH_READ | BC_TOUCH_WRITE
	       : type == BC_REF_MISC || type == BC_REF_LETTER ? 0
	       : plain == BC_REQ_FETCH                        ? BC_TOUCH_FETCH
	       : plain == BC_REQ_MEMREAD                      ? BC_TOUCH_READ
	       : plain == BC_REQ_MEMWRITE                     ? BC_TOUCH_WRITE
							      : NO_MEMORY;
}

/* n is at least 1. */
static inline unsigned log2_up(uint64_t n)
{
	return 63 - (unsigned)__builtin_clzll((n - 1) << 1 | 1);
}

/* Two lines of a page, touched by one reference, have no time in between. */
static void add_gap(struct bc_line_table *t, uint64_t time)
{
	if (time == 0)
		return;
	t->gaps[log2_up(time)]++;
	t->gap_sums[log2_up(time)] += time;
}

/* For working sets and miss ratios. Pages have gaps, too, so every touch counts. */
static __attribute__((noinline)) void touch_more(struct bc_footprint *f, uint64_t line,
	unsigned space, unsigned how, enum line_touch found, uint64_t before)
{
	uint64_t page = line >> (f->page_shift - f->line_shift);

	if (f->stack != NULL)
		bc_lru_stack_touch(f->stack, line, space);
	if (found != LINE_FULL)
		add_gap(&f->lines, f->references - before);
	if (line_table_touch(&f->pages, page, space, how, f->references, &before) == LINE_FULL)
		f->pages_full = true;
	else
		add_gap(&f->pages, f->references - before);
}

static inline void touch_line(struct bc_footprint *f, uint64_t line, unsigned space, unsigned how)
{
	uint64_t page = line >> (f->page_shift - f->line_shift);
	uint64_t before = 0;
	enum line_touch found = line_table_touch(
		&f->lines, line, space, how, f->references, &before);

	f->touches++;
	if (found == LINE_FULL) {
		f->lines_full = true;
		f->untracked++;
	} else if (before == 0) {
		f->first++;
	} else if (before != f->references) { /* not at the same tick */
		f->reuse[log2_up(f->references - before)]++;
	}
	if (__builtin_expect(f->has_more, 0)) {
		touch_more(f, line, space, how, found, before);
		return;
	}
	/* If the line was touched in this way before, so was its page. */
	if (found != LINE_UNCHANGED &&
		line_table_touch(&f->pages, page, space, how, 1, &before) == LINE_FULL)
		f->pages_full = true;
}

static void count_untracked(struct bc_footprint *f)
{
	f->touches++;
	f->untracked++;
	f->lines_full = f->pages_full = true;
}

static inline __attribute__((always_inline)) void touch_range(
	struct bc_footprint *f, uint64_t addr, uint32_t size, unsigned space, unsigned how)
{
	uint64_t last;

	/* An access beyond the last address is cut there. */
	if (__builtin_add_overflow(addr, size != 0 ? size - 1 : 0, &last))
		last = UINT64_MAX;
	f->addr_low = addr < f->addr_low ? addr : f->addr_low;
	f->addr_high = last > f->addr_high ? last : f->addr_high;
	f->references++;
	uint64_t line = addr >> f->line_shift;
	uint64_t lines = (last >> f->line_shift) - line;
	if (lines >= BC_FOOTPRINT_LINES_MAX) {
		lines = BC_FOOTPRINT_LINES_MAX - 1;
		f->is_cut = true;
	}
	for (uint64_t i = 0; i <= lines; i++)
		touch_line(f, line + i, space, how);
}

/* What the fast path must know of a record's type and size. */
struct record_kinds {
	uint64_t needs[256];     /* touch_of() a type */
	uint32_t addr_mask[256]; /* of bc_burst_start(), by size */
	uint32_t reach[256];     /* from the first byte to the last, by size */
};

static void set_kinds(struct record_kinds *kinds)
{
	for (unsigned i = 0; i < 256; i++) {
		kinds->needs[i] = touch_of(i);
		kinds->addr_mask[i] = (uint32_t)bc_burst_start(UINT32_MAX, i);
		kinds->reach[i] = i - (i != 0);
	}
}

/* Counts records up to the first that does not touch a single line which was touched in this way
 * before. Nearly all are counted here, unless has_more. Returns their number. */
static size_t count_plain(
	struct bc_footprint *f, const struct record_kinds *kinds, const uint8_t *records, size_t n)
{
	uint64_t *const *low = f->lines.low;
	unsigned shift = f->line_shift;
	uint64_t references = f->references;
	uint64_t addr_low = f->addr_low;
	uint64_t addr_high = f->addr_high;
	const uint8_t *p = records;
	const uint8_t *end = records + n * BC_RECORD_BYTES;

	for (; p != end; p += BC_RECORD_BYTES) {
		uint64_t addr = bc_le32(p) & kinds->addr_mask[p[5]];
		uint64_t last = addr + kinds->reach[p[5]];
		uint64_t line = addr >> shift;
		uint64_t *block = low[line >> BLOCK_LINES_LOG];
		if (__builtin_expect(line != last >> shift || block == NULL, 0))
			break;
		uint64_t state = block[line & (BLOCK_LINES - 1)];
		/* A line that is new has no bit; NO_MEMORY has bits that no line has. */
		if (__builtin_expect((~state & kinds->needs[p[4]]) != 0, 0))
			break;
		addr_low = addr < addr_low ? addr : addr_low;
		addr_high = last > addr_high ? last : addr_high;
		references++;
		block[line & (BLOCK_LINES - 1)] = references << TOUCH_BITS | (state & BC_TOUCH_ALL);
		f->reuse[log2_up(references - (state >> TOUCH_BITS))]++;
	}
	f->touches += references - f->references;
	f->references = references;
	f->addr_low = addr_low;
	f->addr_high = addr_high;
	return (size_t)(p - records) / BC_RECORD_BYTES;
}

void bc_footprint_records(struct bc_footprint *f, const uint8_t *records, size_t n)
{
	struct record_kinds kinds;
	const uint8_t *end = records + n * BC_RECORD_BYTES;

	set_kinds(&kinds);
	for (const uint8_t *p = records;; p += BC_RECORD_BYTES) {
		if (!f->has_more)
			p += count_plain(f, &kinds, p, (size_t)(end - p) / BC_RECORD_BYTES) *
			     BC_RECORD_BYTES;
		if (p == end)
			break;
		if (kinds.needs[p[4]] == NO_MEMORY)
			f->others++;
		else
			touch_range(f, bc_le32(p) & kinds.addr_mask[p[5]], p[5], 0,
				(unsigned)kinds.needs[p[4]]);
	}
}

/* Finds the number of an address space, or assigns one. Returns false if there are too many. */
static bool find_space(struct bc_footprint *f, uint32_t space, unsigned *number)
{
	struct bc_block_slot *slot = map_slot(&f->spaces, space, 0);

	if (slot == NULL || (slot->value == 0 && f->spaces.count == BC_LINE_SPACES))
		return false;
	if (slot->value == 0)
		map_set(&f->spaces, slot, space, 0, f->spaces.count + 1);
	*number = (unsigned)slot->value - 1;
	return true;
}

void bc_footprint_reference(struct bc_footprint *f, const struct bc_entry *reference)
{
	unsigned how = touch_of(reference->type);
	unsigned space = 0;

	if (how == NO_MEMORY) {
		f->others++;
		return;
	}
	if ((reference->traits & BC_TRAIT_SPACE) != 0 && !find_space(f, reference->space, &space)) {
		f->references++;
		count_untracked(f);
		return;
	}
	touch_range(f, bc_entry_start(reference), reference->size, space, how);
}

/* ---- working set */

static void add_last_gaps(struct bc_line_table *t, uint64_t end)
{
	for (size_t i = 0; i < t->piece_count; i++) {
		const uint64_t *state = t->pieces[i];
		const uint64_t *stop = i + 1 < t->piece_count ? state + PIECE_BLOCKS * BLOCK_LINES
							      : t->free;
		for (; state != stop; state++)
			if (*state != 0)
				add_gap(t, end - (*state >> TOUCH_BITS));
	}
}

void bc_footprint_finish(struct bc_footprint *f)
{
	if (!f->has_more)
		return;
	add_last_gaps(&f->lines, f->references + 1);
	add_last_gaps(&f->pages, f->references + 1);
}

/* A line is in all windows but those between two of its touches, before the first and after the
 * last: a gap of t has t - w windows of w. So the sum over all windows follows from the gaps
 * (Denning and Schwartz, CACM 1972; Xiang and others, PACT 2011). */
double bc_footprint_working_set(
	const struct bc_footprint *f, const struct bc_line_table *t, unsigned k)
{
	const uint64_t w = UINT64_C(1) << k;
	unsigned __int128 without = 0;

	while (++k < BC_REUSE_BUCKETS)
		without += t->gap_sums[k] - (unsigned __int128)t->gaps[k] * w;
	return (double)t->count - (double)without / (double)(f->references - w + 1);
}

/* ---- JSON */

json_t *bc_footprint_windows_json(const struct bc_footprint *f, const char *unit)
{
	json_t *windows = json_array();

	for (unsigned k = 0; f->references >> k != 0; k++)
		windows = bc_json_append(windows,
			json_pack("{s:o, s:o, s:o}", unit, bc_json_u64(UINT64_C(1) << k), "lines",
				bc_json_double(bc_footprint_working_set(f, &f->lines, k)), "pages",
				bc_json_double(bc_footprint_working_set(f, &f->pages, k))));
	return windows;
}

json_t *bc_footprint_sizes_json(const struct bc_footprint *f)
{
	json_t *sizes = json_array();
	unsigned shift;

	for (unsigned k = 0; f->lines.count != 0 && (f->lines.count * 2 - 1) >> k != 0; k++) {
		uint64_t misses = bc_lru_stack_misses(f->stack, k, &shift);
		misses = misses < f->touches ? misses : f->touches;
		sizes = bc_json_append(
			sizes, json_pack("{s:o, s:o, s:o, s:o}", "bytes",
				       bc_json_u64(UINT64_C(1) << f->line_shift << k), "misses",
				       bc_json_u64(misses), "ratio",
				       bc_json_double((double)misses / (double)f->touches),
				       "one_line_in", bc_json_u64(UINT64_C(1) << shift)));
	}
	return sizes;
}
