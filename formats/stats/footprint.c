#include "formats/stats/footprint.h"

#include <errno.h>
#include <stdlib.h>

#include "formats/bus/record.h"

/* Records to prefetch ahead, so that a line's slot is in the cache when it is needed. */
#define PREFETCH_AHEAD 16

#define NO_MEMORY 0xFF

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
	f->line_shift = (unsigned)__builtin_ctzll(options->line_bytes);
	f->page_shift = (unsigned)__builtin_ctzll(options->page_bytes);
	/* There are at least as many lines as pages, and usually many more. */
	int rc = bc_line_table_open(&f->lines, options->memory_bytes / 4 * 3);
	return rc != 0 ? rc : bc_line_table_open(&f->pages, options->memory_bytes / 4);
}

void bc_footprint_close(struct bc_footprint *f)
{
	bc_line_table_close(&f->lines);
	bc_line_table_close(&f->pages);
	free(f->spaces);
	f->spaces = NULL;
}

/* How a reference of this type touches memory, or NO_MEMORY. */
static unsigned touch_of(unsigned type)
{
	switch (type) {
	case BC_REQ_FETCH:
		return BC_TOUCH_FETCH;
	case BC_REQ_MEMREAD:
	case BC_REQ_MEMREADINV:
		return BC_TOUCH_READ;
	case BC_REQ_MEMWRITE:
	case BC_REF_COPYBACK:
		return BC_TOUCH_WRITE;
	case BC_REF_MODIFY:
		return BC_TOUCH_READ | BC_TOUCH_WRITE;
	case BC_REF_MISC:
	case BC_REF_LETTER:
		return 0;
	default:
		return NO_MEMORY;
	}
}

/* n is at least 1. */
static inline unsigned log2_up(uint64_t n)
{
	return 63 - (unsigned)__builtin_clzll((n - 1) << 1 | 1);
}

static inline void touch_line(struct bc_footprint *f, uint64_t line, unsigned space, unsigned how)
{
	uint64_t page = line >> (f->page_shift - f->line_shift);
	uint64_t before;
	enum bc_line_touch found = bc_line_table_touch(
		&f->lines, line, space, how, f->references, &before);

	f->touches++;
	if (found == BC_LINE_FULL) {
		f->lines_full = true;
		f->untracked++;
	} else if (before == 0) {
		f->first++;
	} else {
		f->reuse[log2_up(f->references - before)]++;
	}
	/* If the line was touched in this way before, so was its page. */
	if (found != BC_LINE_UNCHANGED &&
		bc_line_table_touch(&f->pages, page, space, how, 1, &before) == BC_LINE_FULL)
		f->pages_full = true;
}

static void count_untracked(struct bc_footprint *f)
{
	f->touches++;
	f->untracked++;
	f->lines_full = f->pages_full = true;
}

static inline void touch_range(
	struct bc_footprint *f, uint64_t addr, uint32_t size, unsigned space, unsigned how)
{
	uint64_t last;

	/* An access beyond the last address is cut there. */
	if (__builtin_add_overflow(addr, size != 0 ? size - 1 : 0, &last))
		last = UINT64_MAX;
	f->addr_low = addr < f->addr_low ? addr : f->addr_low;
	f->addr_high = last > f->addr_high ? last : f->addr_high;
	if (++f->references >= BC_LINE_TOUCHES) {
		count_untracked(f);
		return;
	}
	uint64_t line = addr >> f->line_shift;
	uint64_t lines = (last >> f->line_shift) - line;
	if (lines >= BC_FOOTPRINT_LINES_MAX) {
		lines = BC_FOOTPRINT_LINES_MAX - 1;
		f->is_cut = true;
	}
	for (uint64_t i = 0; i <= lines; i++)
		touch_line(f, line + i, space, how);
}

/* Most records touch one line, which was touched in this way before. They are counted here; the
 * others are left to touch_range(). */
void bc_footprint_records(struct bc_footprint *f, const uint8_t *records, size_t n)
{
	uint8_t touches[256]; /* touch_of() */
	uint64_t low = f->addr_low;
	uint64_t high = f->addr_high;
	bool is_countable = f->references + n < BC_LINE_TOUCHES;

	for (unsigned type = 0; type < 256; type++)
		touches[type] = (uint8_t)touch_of(type);
	for (size_t i = 0; i < n; i++) {
		const uint8_t *p = records + i * BC_RECORD_BYTES;
		unsigned how = touches[p[4]];
		uint64_t before;
		if (i + PREFETCH_AHEAD < n)
			bc_line_table_prefetch(&f->lines,
				(uint64_t)bc_le32(p + PREFETCH_AHEAD * BC_RECORD_BYTES) >>
					f->line_shift,
				0);
		if (how == NO_MEMORY) {
			f->others++;
			continue;
		}
		uint64_t addr = bc_burst_start(bc_le32(p), p[5]);
		uint64_t last = addr + p[5] - (p[5] != 0);
		uint64_t line = addr >> f->line_shift;
		if (line != last >> f->line_shift || !is_countable ||
			!bc_line_table_touch_again(
				&f->lines, line, how, f->references + 1, &before)) {
			touch_range(f, addr, p[5], 0, how);
			continue;
		}
		low = addr < low ? addr : low;
		high = last > high ? last : high;
		f->references++;
		f->touches++;
		f->reuse[log2_up(f->references - before)]++;
	}
	f->addr_low = low < f->addr_low ? low : f->addr_low;
	f->addr_high = high > f->addr_high ? high : f->addr_high;
}

/* Finds the slot of an address space, or the free slot for it. */
static struct bc_space_slot *find_slot(const struct bc_footprint *f, uint32_t space)
{
	size_t mask = f->space_slots - 1;
	size_t at = space * UINT32_C(0x9E3779B1) >> 12 & mask;

	while (f->spaces[at].number != 0 && f->spaces[at].space != space)
		at = (at + 1) & mask;
	return &f->spaces[at];
}

static bool grow_spaces(struct bc_footprint *f)
{
	struct bc_footprint old = *f;

	f->space_slots = old.space_slots != 0 ? old.space_slots * 2 : 32;
	f->spaces = calloc(f->space_slots, sizeof(*f->spaces));
	if (f->spaces == NULL) {
		f->spaces = old.spaces;
		f->space_slots = old.space_slots;
		return false;
	}
	for (size_t i = 0; i < old.space_slots; i++)
		if (old.spaces[i].number != 0)
			*find_slot(f, old.spaces[i].space) = old.spaces[i];
	free(old.spaces);
	return true;
}

/* Finds or assigns the number of an address space. Returns false if there are too many. The last
 * one is remembered, because consecutive references are usually in the same space. */
static bool find_space(struct bc_footprint *f, uint32_t space, unsigned *number)
{
	_Static_assert(BC_LINE_SPACES <= 1u << 19, "the hash has twenty bits");
	if (f->space.number == 0 || f->space.space != space) {
		struct bc_space_slot *slot = NULL;
		if (f->space_slots != 0)
			slot = find_slot(f, space);
		if (slot == NULL || slot->number == 0) {
			if (f->space_count == BC_LINE_SPACES ||
				(f->space_count == f->space_slots / 2 && !grow_spaces(f)))
				return false;
			slot = find_slot(f, space);
			*slot = (struct bc_space_slot){space, ++f->space_count};
		}
		f->space = *slot;
	}
	*number = f->space.number - 1;
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
	if ((reference->has & BC_HAS_SPACE) != 0 && !find_space(f, reference->space, &space)) {
		f->references++;
		count_untracked(f);
		return;
	}
	touch_range(f, bc_entry_start(reference), reference->size, space, how);
}
