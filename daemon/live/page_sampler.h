/* What is on the bus, from a sample of the records: how many of each request type and processor,
 * and the hottest 4 KiB pages. For whoever looks at a recording while it goes on; what is exact is
 * in the files.
 *
 *     bc_page_sampler_open() -> (bc_page_sampler_records() | bc_page_sampler_age() |
 * bc_page_sampler_json())... -> bc_page_sampler_close()
 *
 * Of each 1024 records 64 are counted: those that stand behind one another, in the ring of the
 * 1024, from a place that is drawn anew each time. So each record has the same chance, whatever the
 * period of what the bus does, and a sixteenth is counted, to within 64 records.
 *
 * Counts of types and processors are of the mix's life. Pages are those of memory requests (fetch,
 * read, write); their counts halve each BC_PAGE_SAMPLER_HALF_NS, so that they tell of the last half
 * minute. Only BC_PAGE_SAMPLER_PAGES of them are held, in sets of BC_PAGE_SAMPLER_WAYS. A page for
 * which its set has no place takes that of the set's coldest, which is then forgotten; how many
 * requests the page may have had before that is kept, and told. It is at most the forgotten page's
 * count (the Space-Saving method of Metwally, Agrawal and El Abbadi, in each set).
 *
 * Nothing is allocated after bc_page_sampler_open(); it takes 0.1 MiB. One thread. */
#ifndef BC_DAEMON_LIVE_PAGE_SAMPLER_H
#define BC_DAEMON_LIVE_PAGE_SAMPLER_H

#include <jansson.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/bus/chunk.h"

#define BC_PAGE_SAMPLER_BLOCK    1024u /* records, of which */
#define BC_PAGE_SAMPLER_SAMPLES  64u   /* are counted */
#define BC_PAGE_SAMPLER_PAGE_LOG 12    /* a page is 4 KiB */
#define BC_PAGE_SAMPLER_PAGES    4096u
#define BC_PAGE_SAMPLER_WAYS     8u
#define BC_PAGE_SAMPLER_TOLD     32u /* pages in the JSON, at most */
#define BC_PAGE_SAMPLER_HALF_NS  UINT64_C(10000000000)

struct bc_page_sampler;

/* Returns 0 or -ENOMEM. */
int bc_page_sampler_open(struct bc_page_sampler **mix) BC_MUST_CHECK;

/* NULL is allowed. */
void bc_page_sampler_close(struct bc_page_sampler *mix);

/* The chunk's records from number `from` on are new. Cheap enough to be called for all that is
 * received: 15 of 16 records are not looked at. */
void bc_page_sampler_records(
	struct bc_page_sampler *mix, const struct bc_chunk *chunk, uint32_t from);

/* It is now `now_ns` of the monotonic clock: what was counted before is worth less. To be called
 * about once a second; between two calls nothing ages. The first call begins the time. */
void bc_page_sampler_age(struct bc_page_sampler *mix, uint64_t now_ns);

/* {"sampled": records counted, "of": records seen,
 *  "types": {"MEMREAD": n, "0xf2": n, ...}, "procs": {"0": n, ...},
 *  "memory": memory requests counted, each halved as it ages,
 *  "pages": [{"addr": "0x0009f000", "samples": n, "more": m}, ...]}
 *
 * The page had at least `samples` and at most `samples + more` of the `memory`; both are rounded so
 * that this stays true. Pages come by `samples`, the most first, equal ones by address; those with
 * none are left out. The caller's to free; NULL when memory ran out. */
json_t *bc_page_sampler_json(const struct bc_page_sampler *mix);

#endif
