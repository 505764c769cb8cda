/* Page counts: which pages of memory and which I/O ports some records touch, and how often. They
 * are what a search for an address reads instead of the records, and what a picture of address over
 * time is drawn from. docs/segment-format.md, section 8, has their form in a file.
 *
 * Memory is counted by pages of 4 KiB, I/O by port. Where that needs too much room, regions of a
 * power of two of pages, or of ports, are counted instead. A record counts once, at its address.
 *
 * Counts are exact: their sum is the number of records. */
#ifndef BC_FORMATS_BUS_PAGE_COUNTS_H
#define BC_FORMATS_BUS_PAGE_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/bus/record.h"

enum bc_page_class {
	BC_PAGE_FETCH,
	BC_PAGE_READ,  /* MEMREAD, MEMREADINV, IOREAD */
	BC_PAGE_WRITE, /* MEMWRITE, IOWRITE */
	BC_PAGE_OTHER, /* any other request, in the page of its address */
	BC_PAGE_CLASSES,
};

static inline enum bc_page_class bc_page_class(uint8_t reqtype)
{
	switch (reqtype) {
	case BC_REQ_FETCH:
		return BC_PAGE_FETCH;
	case BC_REQ_MEMREAD:
	case BC_REQ_MEMREADINV:
	case BC_REQ_IOREAD:
		return BC_PAGE_READ;
	case BC_REQ_MEMWRITE:
	case BC_REQ_IOWRITE:
		return BC_PAGE_WRITE;
	default:
		return BC_PAGE_OTHER;
	}
}

/* Pages and ports are numbered together, as places: page p (address / 4,096) is p, port p is
 * BC_PORT_0 + p. Only IOREAD and IOWRITE are at ports; the port is their address modulo 65,536. */
#define BC_PORT_0      (1u << 20)
#define BC_PORTS       (1u << 16)
#define BC_PAGE_SHIFTS 20u /* all of memory is one region */
#define BC_PORT_SHIFTS 16u

/* An access to I/O usually has at most this many bytes. */
#define BC_PORT_REACH 4u

struct bc_region {
	uint32_t first; /* its first place */
	uint64_t counts[BC_PAGE_CLASSES];
};

struct bc_page_counts {
	unsigned page_shift; /* a region of memory has 2^page_shift pages */
	unsigned port_shift; /* one of I/O has 2^port_shift ports */
	bool is_crossed; /* a record reaches into the next page, or beyond BC_PORT_REACH ports */
	uint32_t count;
	uint32_t capacity;         /* at least 2 */
	struct bc_region *regions; /* sorted */
};

/* Makes empty counts, of single pages and ports, for `capacity` regions. Returns 0 or -ENOMEM. */
int bc_page_counts_init(struct bc_page_counts *counts, uint32_t capacity) BC_MUST_CHECK;
void bc_page_counts_free(struct bc_page_counts *counts);

/* Makes them empty again. */
void bc_page_counts_clear(struct bc_page_counts *counts);

/* Adds other counts. The result is as coarse as the coarser of both, or coarser if need be. */
void bc_page_counts_add(struct bc_page_counts *counts, const struct bc_page_counts *other);

/* Makes the regions at least this large. */
void bc_page_counts_coarsen(
	struct bc_page_counts *counts, unsigned page_shift, unsigned port_shift);

/* Makes the regions larger until there are at most this many (at least 2). */
void bc_page_counts_limit(struct bc_page_counts *counts, uint32_t regions);

/* Coarsens the finer one to the granularity of the other. Returns true if they are then equal. */
bool bc_page_counts_agree(struct bc_page_counts *a, struct bc_page_counts *b);

/* The bytes that counts may have in a file: a part, 1 / `share`, of what they describe; or if that
 * is little, a larger part up to `small_most`. Otherwise the counts of little would be coarse. */
static inline size_t bc_page_counts_room(
	uint64_t bytes, unsigned share, unsigned small_share, size_t small_most)
{
	uint64_t small = bytes / small_share < small_most ? bytes / small_share : small_most;

	return (size_t)(bytes / share > small ? bytes / share : small);
}

/* Writes the counts in at most `room` bytes, with regions as large as it takes. Returns the length,
 * or 0 if there is no room even for the largest. */
size_t bc_page_counts_write(uint8_t *out, size_t room, const struct bc_page_counts *counts);

#define BC_ANY_RECORDS UINT64_MAX

/* Reads counts. Returns false, with the counts empty, if they are not valid, not `bytes` long, too
 * many regions, or don't add up to this number of records (or BC_ANY_RECORDS). */
bool bc_page_counts_read(struct bc_page_counts *counts, const uint8_t *in, size_t bytes,
	uint64_t records) BC_MUST_CHECK;

#define BC_PAGE_RANGES 16u

/* Addresses of memory, of I/O ports, or of both. */
struct bc_page_range {
	uint32_t first;
	uint32_t last; /* inclusive */
	bool in_memory;
	bool at_ports;
};

/* What to look for. */
struct bc_page_query {
	unsigned memory_classes; /* sets of bits 1 << enum bc_page_class */
	unsigned port_classes;
	unsigned count;
	struct bc_page_range ranges[BC_PAGE_RANGES];
};

/* True if a counted record may have a byte at one of the addresses. */
bool bc_page_counts_may_have(
	const struct bc_page_counts *counts, const struct bc_page_query *query);

#endif
