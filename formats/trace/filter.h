/* What of a trace is wanted: by number, tick, epoch, time of day, address, type and processor.
 *
 * One predicate in three forms. bc_filter_chunk() says by its header whether a chunk may hold an
 * answer at all; bc_filter_records() goes through BYU records, many at a time, and
 * bc_filter_entry() through entries of any kind. All that is asked for must hold. */
#ifndef BC_FORMATS_TRACE_FILTER_H
#define BC_FORMATS_TRACE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/bus/chunk.h"
#include "formats/trace/entry.h"

struct bc_span {
	uint64_t first;
	uint64_t last; /* inclusive */
};

static inline bool bc_span_has(struct bc_span span, uint64_t n)
{
	return n >= span.first && n <= span.last;
}

#define BC_FILTER_TYPE_WORDS ((BC_REF_TYPES + 63) / 64)

struct bc_filter {
	struct bc_span numbers; /* of records, or of lines */
	struct bc_span ticks;
	struct bc_span epochs;
	bool has_wall;
	int64_t from_ns; /* time of day: this or later, */
	int64_t to_ns;   /* and before this */
	bool has_addr;
	struct bc_span addr; /* what touches a byte of it */
	bool has_types;
	uint64_t types[BC_FILTER_TYPE_WORDS]; /* bitmap */
	bool has_procs;
	uint64_t procs[(UINT16_MAX + 1) / 64];
};

/* Everything is wanted. */
void bc_filter_init(struct bc_filter *filter);

void bc_filter_add_type(struct bc_filter *filter, unsigned type);
void bc_filter_add_procs(struct bc_filter *filter, uint16_t first, uint16_t last);

/* What of a chunk is wanted by number and time. */
struct bc_filter_bounds {
	struct bc_span numbers;
	struct bc_span ticks;
};

/* Whether a chunk may hold records, or events, that are wanted; *bounds is then set. A chunk
 * without records stands for what comes behind the record before it. `clock_hz` gives each tick its
 * time of day; 0: not known, all of the chunk has the chunk's. */
bool bc_filter_chunk(const struct bc_filter *filter, const struct bc_chunk_info *info,
	uint64_t clock_hz, struct bc_filter_bounds *bounds);

#define BC_FILTER_RECORDS 64u

/* Looks at n <= BC_FILTER_RECORDS records: returns those wanted by address, type and processor, the
 * first in bit 0. *ticks is set to the sum of their deltas, those that are none left out. */
uint64_t bc_filter_records(
	const struct bc_filter *filter, const uint8_t *records, size_t n, uint64_t *ticks);

/* Whether an entry is wanted, its time of day aside, which entries don't have. An instruction or
 * micro-op is wanted for any of the references that it stands for. What has no address, type or
 * processor is not wanted where one is asked for; but an event of a capture (a gap, a mark) is of
 * all of them. */
bool bc_filter_entry(const struct bc_filter *filter, const struct bc_entry *entry);

#endif
