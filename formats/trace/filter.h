/* Selects part of a trace by number, tick, epoch, time of day, address, type and processor.
 *
 * The same filter applies at three levels. bc_filter_chunk() decides from a chunk's header whether
 * the chunk may contain a match. bc_filter_records() tests BYU records, many at a time.
 * bc_filter_entry() tests an entry of any kind. An entry matches if it meets all conditions. */
#ifndef BC_FORMATS_TRACE_FILTER_H
#define BC_FORMATS_TRACE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/bus/chunk.h"
#include "formats/bus/page_counts.h"
#include "formats/trace/entry.h"

struct bc_span {
	uint64_t first;
	uint64_t last; /* inclusive */
};

static inline bool bc_span_has(struct bc_span span, uint64_t n)
{
	return n >= span.first && n <= span.last;
}

#define BC_FILTER_RANGES     16u
#define BC_FILTER_TYPE_WORDS ((BC_REF_TYPES + 63) / 64)
#define BC_PORT_TYPES        (UINT64_C(3) << BC_REQ_IOREAD) /* in types[0] */

struct bc_filter {
	struct bc_span numbers; /* of records, or of lines */
	struct bc_span ticks;
	struct bc_span epochs;
	bool has_wall;
	int64_t from_ns;       /* time of day: at or after this, in ns since 1970 */
	int64_t to_ns;         /* and before this */
	bool from_is_relative; /* to the start of the trace, until bc_filter_start() */
	bool to_is_relative;
	bool has_addr;
	struct bc_span addr; /* matches references that touch any byte of it */
	/* A region or ports: only those that touch any byte of one of these ranges, the first ones
	 * of memory, the others of I/O ports. `addr` spans all. */
	unsigned ranges_count; /* 0: any access to `addr` */
	unsigned memory_count;
	struct bc_span ranges[BC_FILTER_RANGES];
	bool has_types;
	uint64_t types[BC_FILTER_TYPE_WORDS]; /* bitmap */
	bool has_procs;
	uint64_t procs[(UINT16_MAX + 1) / 64];
};

/* Initializes a filter that matches everything. */
void bc_filter_init(struct bc_filter *filter);

void bc_filter_add_type(struct bc_filter *filter, unsigned type);

/* True if the filter selects I/O ports only. */
static inline bool bc_filter_is_at_ports(const struct bc_filter *filter)
{
	return filter->ranges_count != 0 && filter->memory_count == 0;
}

void bc_filter_add_procs(struct bc_filter *filter, uint16_t first, uint16_t last);

/* Makes relative times absolute, now that the time of the trace's first record is known. */
void bc_filter_start(struct bc_filter *filter, int64_t wall_ns);

/* The part of a chunk that matches by number and time. All ticks, if the filter has no time. */
struct bc_filter_bounds {
	struct bc_span numbers;
	struct bc_span ticks;
};

/* Returns whether a chunk may contain matching records or events, and sets *bounds if so. A chunk
 * without records counts as the position after the previous record. `clock_hz` converts times of
 * day to ticks; if it is 0 (unknown), the whole chunk has the time of day of its header. */
bool bc_filter_chunk(const struct bc_filter *filter, const struct bc_chunk_info *info,
	uint64_t clock_hz, struct bc_filter_bounds *bounds);

/* The address of an entry that matches; if only other bytes of its burst do, the first of these. */
uint64_t bc_filter_touched(const struct bc_filter *filter, const struct bc_entry *entry);

/* Sets *query to what to look for in page counts. Returns false if the filter has no addresses. */
bool bc_filter_page_query(const struct bc_filter *filter, struct bc_page_query *query);

#define BC_FILTER_RECORDS 64u

/* Matches up to BC_FILTER_RECORDS records by address, type and processor only. Returns a bit mask
 * of matches, the first record in bit 0. Sets *ticks to the sum of deltas but BC_TIME_NONE. */
uint64_t bc_filter_records(
	const struct bc_filter *filter, const uint8_t *records, size_t n, uint64_t *ticks);

/* Returns whether an entry matches. The time of day is not tested, as entries have none. An
 * instruction or micro-op matches if any of its references does. An entry without an address, type
 * or processor does not match a filter for one, but events (gaps, marks, ...) match any. */
bool bc_filter_entry(const struct bc_filter *filter, const struct bc_entry *entry);

#endif
