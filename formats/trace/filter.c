/* Matches chunks, records and entries.
 *
 * A chunk is ruled out by its header alone: numbers, ticks, time of day, then the limits and sets
 * that follow from its records. Records are matched 64 at a time into a bit mask: one comparison
 * each selects candidates by address, and only these are examined for bursts and sizes. Both may
 * only err on the side of a match: a record at addr_high may extend 255 bytes, and a burst may
 * start 31 bytes below its address. */
#include "formats/trace/filter.h"
#include "formats/bus/tick_time.h"

#include <string.h>

#define NS_PER_S 1000000000

void bc_filter_init(struct bc_filter *f)
{
	memset(f, 0, sizeof(*f));
	f->numbers.last = UINT64_MAX;
	f->ticks.last = UINT64_MAX;
	f->epochs.last = UINT64_MAX;
	f->addr.last = UINT64_MAX;
	f->from_ns = INT64_MIN;
	f->to_ns = INT64_MAX;
}

void bc_filter_add_type(struct bc_filter *f, unsigned type)
{
	f->has_types = true;
	f->types[type / 64] |= UINT64_C(1) << type % 64;
}

void bc_filter_add_procs(struct bc_filter *f, uint16_t first, uint16_t last)
{
	f->has_procs = true;
	for (unsigned proc = first; proc <= last; proc++)
		f->procs[proc / 64] |= UINT64_C(1) << proc % 64;
}

void bc_filter_start(struct bc_filter *f, int64_t wall_ns)
{
	if (f->from_is_relative && __builtin_add_overflow(f->from_ns, wall_ns, &f->from_ns))
		f->from_ns = INT64_MAX;
	if (f->to_is_relative && __builtin_add_overflow(f->to_ns, wall_ns, &f->to_ns))
		f->to_ns = INT64_MAX;
	f->from_is_relative = f->to_is_relative = false;
}

static bool has_bit(const uint64_t *words, unsigned bit)
{
	return (words[bit / 64] >> bit % 64 & 1) != 0;
}

/* Intersects two spans. Returns false if the intersection is empty. */
static bool narrow_span(struct bc_span *span, struct bc_span by)
{
	if (by.first > span->first)
		span->first = by.first;
	if (by.last < span->last)
		span->last = by.last;
	return span->first <= span->last;
}

/* Narrows the ticks to the time of day of the filter. */
static bool narrow_wall(const struct bc_filter *f, const struct bc_chunk_info *info,
	uint64_t clock_hz, struct bc_span *ticks)
{
	if (clock_hz == 0)
		return info->wall_ns >= f->from_ns && info->wall_ns < f->to_ns;
	if (f->to_ns <= info->wall_ns)
		return false;
	__int128 from = bc_time_tick(bc_chunk_clock(info, clock_hz), f->from_ns);
	__int128 to = bc_time_tick(bc_chunk_clock(info, clock_hz), f->to_ns);
	if (from > UINT64_MAX)
		return false;
	return narrow_span(ticks,
		(struct bc_span){(uint64_t)from, to > UINT64_MAX ? UINT64_MAX : (uint64_t)to - 1});
}

/* True if a record of the chunk may match by address, type and processor. */
static bool may_match(const struct bc_filter *f, const struct bc_chunk_info *info)
{
	uint64_t types = 0;
	uint64_t procs = 0;

	for (unsigned i = 0; i < 4; i++) {
		types |= f->types[i] & info->types[i];
		procs |= f->procs[i] & info->procs[i];
	}
	/* A record at addr_high may extend 255 bytes further, a burst at addr_low start lower. */
	uint64_t low = info->addr_low & ~(uint64_t)BC_BURST_BELOW;
	if (f->has_addr &&
		(low > f->addr.last || (uint64_t)info->addr_high + UINT8_MAX <= f->addr.first))
		return false;
	if (bc_filter_is_at_ports(f) && (info->types[0] & BC_PORT_TYPES) == 0)
		return false;
	return (!f->has_types || types != 0) && (!f->has_procs || procs != 0);
}

static bool has_time(const struct bc_filter *f)
{
	return f->has_wall || f->ticks.first != 0 || f->ticks.last != UINT64_MAX;
}

bool bc_filter_chunk(const struct bc_filter *f, const struct bc_chunk_info *info, uint64_t clock_hz,
	struct bc_filter_bounds *bounds)
{
	uint64_t first = info->first_record;
	uint64_t last = first + info->records - 1;

	if (info->records == 0)
		first = last = first != 0 ? first - 1 : 0;
	bounds->numbers = (struct bc_span){first, last};
	/* Without a time, wrong ticks in the header must not hide records. */
	bounds->ticks = has_time(f) ? (struct bc_span){info->first_tick, info->last_tick}
				    : (struct bc_span){0, UINT64_MAX};
	if (!bc_span_has(f->epochs, info->epoch) || !narrow_span(&bounds->numbers, f->numbers) ||
		!narrow_span(&bounds->ticks, f->ticks))
		return false;
	if (f->has_wall && !narrow_wall(f, info, clock_hz, &bounds->ticks))
		return false;
	/* Events may match regardless of the records. */
	return info->events != 0 || may_match(f, info);
}

static void add_page_range(
	struct bc_page_query *query, struct bc_span span, bool in_memory, bool at_ports)
{
	query->ranges[query->count++] = (struct bc_page_range){
		.first = span.first < UINT32_MAX ? (uint32_t)span.first : UINT32_MAX,
		.last = span.last < UINT32_MAX ? (uint32_t)span.last : UINT32_MAX,
		.in_memory = in_memory,
		.at_ports = at_ports};
}

bool bc_filter_page_query(const struct bc_filter *f, struct bc_page_query *query)
{
	*query = (struct bc_page_query){.count = 0};
	if (f->ranges_count == 0)
		add_page_range(query, f->addr, true, true);
	for (unsigned i = 0; i < f->ranges_count; i++)
		add_page_range(query, f->ranges[i], i < f->memory_count, i >= f->memory_count);
	for (unsigned type = 0; type <= UINT8_MAX; type++) {
		if (f->has_types && !has_bit(f->types, type))
			continue;
		unsigned class = 1u << bc_page_class((uint8_t)type);
		if (bc_is_port_access(type))
			query->port_classes |= class;
		else
			query->memory_classes |= class;
	}
	return f->has_addr;
}

static bool span_overlaps(struct bc_span span, uint64_t addr, uint64_t size)
{
	uint64_t last = addr + (size != 0 ? size - 1 : 0);

	return addr <= span.last && (last < addr || last >= span.first);
}

/* Returns the first range of the region that a reference touches, or NULL. */
static const struct bc_span *find_range(
	const struct bc_filter *f, uint64_t addr, uint64_t size, bool is_port)
{
	unsigned i = is_port ? f->memory_count : 0;
	unsigned end = is_port ? f->ranges_count : f->memory_count;

	for (; i < end; i++)
		if (span_overlaps(f->ranges[i], addr, size))
			return &f->ranges[i];
	return NULL;
}

static bool filter_touches(const struct bc_filter *f, uint64_t addr, uint64_t size, unsigned type)
{
	return span_overlaps(f->addr, addr, size) &&
	       (f->ranges_count == 0 || find_range(f, addr, size, bc_is_port_access(type)) != NULL);
}

/* Which of the records may match by address: most don't, and one comparison tells. */
static uint64_t match_near(
	const struct bc_filter *f, const uint8_t *records, size_t n, uint64_t *ticks)
{
	uint64_t low = f->addr.first > UINT8_MAX ? f->addr.first - UINT8_MAX : 0;
	uint64_t high = f->addr.last > UINT64_MAX - BC_BURST_BELOW ? UINT64_MAX
								   : f->addr.last + BC_BURST_BELOW;
	uint64_t span = high - low;
	uint64_t bits = 0;
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		const uint8_t *p = records + i * BC_RECORD_BYTES;
		sum += bc_record_ticks(p);
		bits |= (uint64_t)(bc_le32(p) - low <= span) << i;
	}
	*ticks = sum;
	return bits;
}

/* Which of the records in `bits` match by address, with bursts and sizes. */
static uint64_t match_addr(const struct bc_filter *f, const uint8_t *records, uint64_t bits)
{
	for (uint64_t left = bits; left != 0; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		const uint8_t *p = records + i * BC_RECORD_BYTES;
		if (!filter_touches(f, bc_burst_start(bc_le32(p), p[5]), p[5], p[4]))
			bits ^= UINT64_C(1) << i;
	}
	return bits;
}

/* Which records match by type and processor. */
static uint64_t match_fields(const struct bc_filter *f, const uint8_t *records, size_t n)
{
	uint64_t all_types = f->has_types ? 0 : UINT64_MAX;
	uint64_t all_procs = f->has_procs ? 0 : UINT64_MAX;
	uint64_t matches = 0;

	for (size_t i = 0; i < n; i++) {
		const uint8_t *p = records + i * BC_RECORD_BYTES;
		uint64_t type = (f->types[p[4] / 64] | all_types) >> p[4] % 64;
		uint64_t proc = (f->procs[p[7] / 64] | all_procs) >> p[7] % 64;
		matches |= (type & proc & 1) << i;
	}
	return matches;
}

uint64_t bc_filter_records(
	const struct bc_filter *f, const uint8_t *records, size_t n, uint64_t *ticks)
{
	uint64_t bits = n < BC_FILTER_RECORDS ? (UINT64_C(1) << n) - 1 : UINT64_MAX;

	if (f->has_addr)
		bits = match_near(f, records, n, ticks);
	else
		*ticks = bc_records_ticks(records, n, 0);
	if (bits != 0 && (f->has_types || f->has_procs))
		bits &= match_fields(f, records, n);
	return f->has_addr ? match_addr(f, records, bits) : bits;
}

static bool has_reference(const struct bc_filter *f, const struct bc_entry *entry)
{
	struct bc_entry made[BC_REFERENCES_MAX];
	const struct bc_entry *at = entry;
	size_t n = 1;

	if (entry->kind != BC_ENTRY_REFERENCE) {
		n = bc_entry_references(made, entry);
		at = made;
	}
	for (size_t i = 0; i < n; i++)
		if ((!f->has_addr ||
			    filter_touches(f, bc_entry_start(&at[i]), at[i].size, at[i].type)) &&
			(!f->has_types || has_bit(f->types, at[i].type)))
			return true;
	return false;
}

bool bc_filter_entry(const struct bc_filter *f, const struct bc_entry *entry)
{
	if (!bc_span_has(f->numbers, entry->number) || !bc_span_has(f->ticks, entry->tick) ||
		!bc_span_has(f->epochs, entry->epoch))
		return false;
	if (entry->kind == BC_ENTRY_EVENT)
		return true;
	if (f->has_procs &&
		((entry->traits & BC_TRAIT_PROC) == 0 || !has_bit(f->procs, entry->proc)))
		return false;
	return (!f->has_addr && !f->has_types) || has_reference(f, entry);
}

uint64_t bc_filter_touched(const struct bc_filter *f, const struct bc_entry *entry)
{
	uint64_t start = bc_entry_start(entry);
	bool is_port = bc_is_port_access(entry->type);
	const struct bc_span *range = f->ranges_count == 0
					      ? &f->addr
					      : find_range(f, start, entry->size, is_port);

	if (!f->has_addr || entry->kind != BC_ENTRY_REFERENCE || range == NULL ||
		bc_span_has(*range, entry->addr))
		return entry->addr;
	return range->first > start ? range->first : start;
}
