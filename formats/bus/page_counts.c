/* Page counts: a sorted list of regions, each with a count by class of request.
 *
 * All regions of memory have one size, a power of two of pages, and all of I/O another. Lists that
 * must become shorter double the size of whichever has more regions, so counts get coarser but stay
 * exact: their sum is the number of records. Two lists are merged from the end, in place.
 *
 * In a file, a region is the number of regions skipped since the previous one, a set of its
 * classes, and a varint for each. Reading checks the order and range of regions, and the sums. */
#include "formats/bus/page_counts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int bc_page_counts_init(struct bc_page_counts *c, uint32_t capacity)
{
	*c = (struct bc_page_counts){
		.capacity = capacity, .regions = malloc(capacity * sizeof(*c->regions))};
	return c->regions != NULL ? 0 : -ENOMEM;
}

void bc_page_counts_free(struct bc_page_counts *c)
{
	free(c->regions);
	*c = (struct bc_page_counts){.regions = NULL};
}

void bc_page_counts_clear(struct bc_page_counts *c)
{
	c->page_shift = 0;
	c->port_shift = 0;
	c->is_crossed = false;
	c->count = 0;
}

static void add_to(struct bc_region *region, const struct bc_region *other)
{
	for (unsigned i = 0; i < BC_PAGE_CLASSES; i++)
		region->counts[i] += other->counts[i];
}

/* The first place of the region that a place is in. */
static uint32_t region_of(const struct bc_page_counts *c, uint32_t place)
{
	unsigned shift = place < BC_PORT_0 ? c->page_shift : c->port_shift;

	return place >> shift << shift;
}

void bc_page_counts_coarsen(struct bc_page_counts *c, unsigned page_shift, unsigned port_shift)
{
	uint32_t kept = 0;

	if (page_shift <= c->page_shift && port_shift <= c->port_shift)
		return;
	c->page_shift = page_shift > c->page_shift ? page_shift : c->page_shift;
	c->port_shift = port_shift > c->port_shift ? port_shift : c->port_shift;
	for (uint32_t i = 0; i < c->count; i++) {
		struct bc_region region = c->regions[i];
		region.first = region_of(c, region.first);
		if (kept != 0 && c->regions[kept - 1].first == region.first)
			add_to(&c->regions[kept - 1], &region);
		else
			c->regions[kept++] = region;
	}
	c->count = kept;
}

/* The regions of memory, or of I/O, that these counts would have if they were as coarse as c. */
static uint32_t count_regions(
	const struct bc_page_counts *c, const struct bc_page_counts *counts, bool is_io)
{
	uint32_t last = UINT32_MAX;
	uint32_t n = 0;

	for (uint32_t i = 0; i < counts->count; i++) {
		uint32_t first = region_of(c, counts->regions[i].first);
		n += first != last && (first >= BC_PORT_0) == is_io;
		last = first;
	}
	return n;
}

/* Doubles the size of regions in c, of memory or of I/O, whichever has more of them in `counts`.
 * Returns false if they can't be larger. */
static bool double_regions(struct bc_page_counts *c, const struct bc_page_counts *counts)
{
	bool has_pages = c->page_shift < BC_PAGE_SHIFTS;
	bool has_ports = c->port_shift < BC_PORT_SHIFTS;

	if (!has_pages && !has_ports)
		return false;
	if (has_pages &&
		(!has_ports || count_regions(c, counts, false) >= count_regions(c, counts, true)))
		c->page_shift++;
	else
		c->port_shift++;
	return true;
}

/* Doubles the regions once. Returns false if that is impossible. */
static bool coarsen_once(struct bc_page_counts *c)
{
	struct bc_page_counts next = *c;
	bool is_possible = double_regions(&next, c);

	bc_page_counts_coarsen(c, next.page_shift, next.port_shift);
	return is_possible;
}

void bc_page_counts_limit(struct bc_page_counts *c, uint32_t regions)
{
	while (c->count > regions && coarsen_once(c))
		;
}

/* The number of regions after an addition. */
static uint32_t merged_count(const struct bc_page_counts *c, const struct bc_page_counts *other)
{
	uint32_t i = 0;
	uint32_t j = 0;
	uint32_t n = 0;

	for (; i < c->count || j < other->count; n++) {
		uint32_t a = i < c->count ? c->regions[i].first : UINT32_MAX;
		uint32_t b = j < other->count ? region_of(c, other->regions[j].first) : UINT32_MAX;
		uint32_t next = a < b ? a : b;
		i += a == next;
		while (j < other->count && region_of(c, other->regions[j].first) == next)
			j++;
	}
	return n;
}

void bc_page_counts_add(struct bc_page_counts *c, const struct bc_page_counts *other)
{
	uint32_t n;

	bc_page_counts_coarsen(c, other->page_shift, other->port_shift);
	while ((n = merged_count(c, other)) > c->capacity && coarsen_once(c))
		;
	c->is_crossed = c->is_crossed || other->is_crossed;
	/* In place, from the end: what is written never overtakes what is still to be read. */
	uint32_t i = c->count;
	uint32_t to = c->count = n;
	for (uint32_t j = other->count; j-- != 0;) {
		struct bc_region region = other->regions[j];
		region.first = region_of(c, region.first);
		while (i != 0 && c->regions[i - 1].first > region.first)
			c->regions[--to] = c->regions[--i];
		if (i != 0 && c->regions[i - 1].first == region.first)
			add_to(&c->regions[i - 1], &region);
		else if (to != n && c->regions[to].first == region.first)
			add_to(&c->regions[to], &region);
		else
			c->regions[--to] = region;
	}
}

bool bc_page_counts_agree(struct bc_page_counts *a, struct bc_page_counts *b)
{
	bc_page_counts_coarsen(a, b->page_shift, b->port_shift);
	bc_page_counts_coarsen(b, a->page_shift, a->port_shift);
	if (a->count != b->count || a->is_crossed != b->is_crossed)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (a->regions[i].first != b->regions[i].first ||
			memcmp(a->regions[i].counts, b->regions[i].counts,
				sizeof(a->regions[i].counts)) != 0)
			return false;
	return true;
}

/* ---- in a file */

#define HEAD_BYTES 2
#define CROSSED    0x80u
#define REGION_MAX (BC_VARINT_MAX * (1 + BC_PAGE_CLASSES))

/* The number of a region; the region of page 0 is 0. */
static uint32_t number_of(const struct bc_page_counts *c, uint32_t first)
{
	return first < BC_PORT_0
		       ? first >> c->page_shift
		       : (BC_PORT_0 >> c->page_shift) + ((first - BC_PORT_0) >> c->port_shift);
}

static uint8_t *write_region(uint8_t *p, uint32_t skipped, const struct bc_region *region)
{
	unsigned classes = 0;

	for (unsigned i = 0; i < BC_PAGE_CLASSES; i++)
		classes |= (unsigned)(region->counts[i] != 0) << i;
	p = bc_write_varint(p, (uint64_t)skipped << BC_PAGE_CLASSES | classes);
	for (unsigned i = 0; i < BC_PAGE_CLASSES; i++)
		if (region->counts[i] != 0)
			p = bc_write_varint(p, region->counts[i]);
	return p;
}

/* Writes the counts as coarse as c. Returns the length, or 0 if there is no room. */
static size_t try_write(uint8_t *out, size_t room, const struct bc_page_counts *c,
	const struct bc_page_counts *counts)
{
	uint8_t encoded[REGION_MAX];
	uint8_t *p = out + HEAD_BYTES;
	uint32_t next = 0;

	if (room < HEAD_BYTES)
		return 0;
	out[0] = (uint8_t)(c->page_shift | (counts->is_crossed ? CROSSED : 0));
	out[1] = (uint8_t)c->port_shift;
	for (uint32_t i = 0; i < counts->count;) {
		struct bc_region region = counts->regions[i];
		region.first = region_of(c, region.first);
		while (++i < counts->count &&
			region_of(c, counts->regions[i].first) == region.first)
			add_to(&region, &counts->regions[i]);
		uint32_t number = number_of(c, region.first);
		size_t n = (size_t)(write_region(encoded, number - next, &region) - encoded);
		if (n > room - (size_t)(p - out))
			return 0;
		memcpy(p, encoded, n);
		p += n;
		next = number + 1;
	}
	return (size_t)(p - out);
}

size_t bc_page_counts_write(uint8_t *out, size_t room, const struct bc_page_counts *counts)
{
	struct bc_page_counts c = *counts;
	size_t bytes;

	while ((bytes = try_write(out, room, &c, counts)) == 0 && double_regions(&c, counts))
		;
	return bytes;
}

/* Returns the end of the number, or NULL if it is not one. */
static const uint8_t *read_varint(uint64_t *value, const uint8_t *p, const uint8_t *end)
{
	*value = 0;
	for (unsigned shift = 0; p != end && shift < 63; shift += 7) {
		*value |= (uint64_t)(*p & 0x7F) << shift;
		if (*p++ < 0x80)
			return p;
	}
	return NULL;
}

/* Reads the counts of a region, and takes them from *left. */
static const uint8_t *read_counts(struct bc_region *region, uint64_t classes, uint64_t *left,
	const uint8_t *p, const uint8_t *end)
{
	for (unsigned i = 0; i < BC_PAGE_CLASSES; i++) {
		region->counts[i] = 0;
		if ((classes >> i & 1) == 0)
			continue;
		p = read_varint(&region->counts[i], p, end);
		if (p == NULL || region->counts[i] == 0 || region->counts[i] > *left)
			return NULL;
		*left -= region->counts[i];
	}
	return p;
}

static bool read_regions(
	struct bc_page_counts *c, const uint8_t *p, const uint8_t *end, uint64_t records)
{
	uint32_t pages = BC_PORT_0 >> c->page_shift;
	uint32_t regions = pages + (BC_PORTS >> c->port_shift);
	uint64_t number = 0;
	uint64_t left = records;

	for (; p != end; number++) {
		uint64_t head;
		p = read_varint(&head, p, end);
		number += head >> BC_PAGE_CLASSES;
		if (p == NULL || number >= regions || c->count == c->capacity)
			return false;
		struct bc_region *region = &c->regions[c->count++];
		region->first = number < pages
					? (uint32_t)number << c->page_shift
					: BC_PORT_0 + ((uint32_t)(number - pages) << c->port_shift);
		p = read_counts(region, head, &left, p, end);
		if (p == NULL || head % (1 << BC_PAGE_CLASSES) == 0)
			return false;
	}
	return left == 0 || records == BC_ANY_RECORDS;
}

bool bc_page_counts_read(
	struct bc_page_counts *c, const uint8_t *in, size_t bytes, uint64_t records)
{
	bc_page_counts_clear(c);
	if (bytes < HEAD_BYTES)
		return false;
	c->page_shift = in[0] & ~CROSSED;
	c->port_shift = in[1];
	c->is_crossed = (in[0] & CROSSED) != 0;
	if (c->page_shift <= BC_PAGE_SHIFTS && c->port_shift <= BC_PORT_SHIFTS &&
		read_regions(c, in + HEAD_BYTES, in + bytes, records))
		return true;
	bc_page_counts_clear(c);
	return false;
}

/* ---- queries */

/* True if a region that overlaps first .. last has one of the classes. */
static bool has_any(const struct bc_page_counts *c, uint32_t first, uint32_t last, unsigned classes)
{
	uint32_t low = 0;
	uint32_t high = c->count;

	first = region_of(c, first);
	while (low != high) {
		uint32_t middle = low + (high - low) / 2;
		if (c->regions[middle].first < first)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < c->count && c->regions[low].first <= last; low++)
		for (unsigned i = 0; i < BC_PAGE_CLASSES; i++)
			if ((classes >> i & 1) != 0 && c->regions[low].counts[i] != 0)
				return true;
	return false;
}

static bool has_memory(
	const struct bc_page_counts *c, const struct bc_page_range *range, unsigned classes)
{
	uint32_t below = c->is_crossed && range->first >= BC_PAGE_BYTES ? 1 : 0;

	return has_any(
		c, range->first / BC_PAGE_BYTES - below, range->last / BC_PAGE_BYTES, classes);
}

/* The ports may wrap around, as they are addresses modulo BC_PORTS. */
static bool has_ports(
	const struct bc_page_counts *c, const struct bc_page_range *range, unsigned classes)
{
	uint32_t below = c->is_crossed ? UINT8_MAX : BC_PORT_REACH - 1;
	uint32_t above = c->is_crossed ? BC_BURST_BELOW : 0;
	uint64_t ports = (uint64_t)range->last - range->first + 1 + below + above;
	uint32_t first = (range->first - below) % BC_PORTS;
	uint32_t last = (range->last + above) % BC_PORTS;

	if (ports >= BC_PORTS)
		return has_any(c, BC_PORT_0, BC_PORT_0 + BC_PORTS - 1, classes);
	if (first <= last)
		return has_any(c, BC_PORT_0 + first, BC_PORT_0 + last, classes);
	return has_any(c, BC_PORT_0 + first, BC_PORT_0 + BC_PORTS - 1, classes) ||
	       has_any(c, BC_PORT_0, BC_PORT_0 + last, classes);
}

bool bc_page_counts_may_have(const struct bc_page_counts *c, const struct bc_page_query *query)
{
	for (unsigned i = 0; i < query->count; i++) {
		const struct bc_page_range *range = &query->ranges[i];
		if ((range->in_memory && has_memory(c, range, query->memory_classes)) ||
			(range->at_ports && has_ports(c, range, query->port_classes)))
			return true;
	}
	return false;
}
