/* Estimates the traffic mix on the bus from a sample of the records: counts by request type and
 * processor, and the hottest 4 KiB pages. For live views; exact figures come from the files.
 *
 *     bc_page_sampler_open()
 *     bc_page_sampler_records(), bc_page_sampler_age(), bc_page_sampler_json() in any order
 *     bc_page_sampler_close()
 *
 * Sampling: 64 consecutive records of each block of 1024 are counted, starting at a random record
 * of the block and wrapping around at its end. So every record has the same chance even if the bus
 * traffic is periodic, and 1/16 of the records is counted, to within 64 records.
 *
 * Types and processors are counted since bc_page_sampler_open(). Pages are counted for memory
 * requests (fetch, read, write). Their counts halve every BC_PAGE_SAMPLER_HALF_LIFE_NS, so they
 * describe about the last half minute.
 *
 * BC_PAGE_SAMPLER_PAGES pages are counted, in sets of BC_PAGE_SAMPLER_WAYS, as in a cache. A
 * new page in a full set replaces the page with the lowest count and inherits that count as its
 * possible error: the requests that it may have had before (the Space-Saving algorithm by Metwally,
 * Agrawal and El Abbadi, applied to each set).
 *
 * Allocates 0.1 MiB in bc_page_sampler_open() and nothing later. Not thread-safe. */
#ifndef BC_DAEMON_API_PAGE_SAMPLER_H
#define BC_DAEMON_API_PAGE_SAMPLER_H

#include <jansson.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/bus/chunk.h"

#define BC_PAGE_SAMPLER_BLOCK        1024u /* records, of which */
#define BC_PAGE_SAMPLER_SAMPLES      64u   /* are counted */
#define BC_PAGE_SAMPLER_PAGE_LOG     12    /* a page is 4 KiB */
#define BC_PAGE_SAMPLER_PAGES        4096u
#define BC_PAGE_SAMPLER_WAYS         8u
#define BC_PAGE_SAMPLER_REPORTED     32u /* pages in the JSON, at most */
#define BC_PAGE_SAMPLER_HALF_LIFE_NS UINT64_C(10000000000)

struct bc_page_sampler;

/* Returns 0 or -ENOMEM. */
int bc_page_sampler_open(struct bc_page_sampler **sampler) BC_MUST_CHECK;

/* NULL is allowed. */
void bc_page_sampler_close(struct bc_page_sampler *sampler);

/* Counts a sample of the chunk's records from index `from` on. Cheap enough to be called for all
 * records: 15 of 16 are not read. */
void bc_page_sampler_records(
	struct bc_page_sampler *sampler, const struct bc_chunk *chunk, uint32_t from);

/* Ages the page counts to `now_ns` on the monotonic clock. Call it about once a second; counts do
 * not age between calls. The first call sets the start. */
void bc_page_sampler_age(struct bc_page_sampler *sampler, uint64_t now_ns);

/* Returns the figures, for the caller to free; NULL if out of memory:
 *
 *   {"records": records seen, "sampled_records": records counted,
 *    "types": {"MEMREAD": n, "0xf2": n, ...}, "procs": {"0": n, ...},
 *    "memory_requests": memory requests counted, aged like the pages,
 *    "pages": [{"addr": "0x0009f000", "requests": n, "max_error": m}, ...]}
 *
 * A page had at least `requests` and at most `requests + max_error` of the memory requests; both
 * are rounded so that this stays true. Pages are sorted by decreasing `requests`, then by address.
 * Pages without certain requests are omitted. */
json_t *bc_page_sampler_json(const struct bc_page_sampler *sampler);

#endif
