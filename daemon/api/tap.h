/* Live records: the records on the bus now as newline-delimited JSON, a stream (a tap) per client.
 *
 *   {"number": N, "tick": T, "epoch": E, "time": "2026-11-20T09:15:00.057000000Z",
 *    "addr": "0x1f00", "type": "MEMREAD", "size": 8, "attr": 3, "proc": 0, "delta": 5}
 *                                 N is the record's number in the recording, null when nothing is
 *                                 being recorded; "time" is null if the clock rate is unknown, and
 *                                 "delta" if there is none; a type without a name is written as
 *                                 "0xf2"
 *   {"skipped": {"records": N, "events": M}}
 *                                 at this position N records were not examined, and M gaps, marks
 *                                 and triggers did not fit into the queue
 *   {"gap": {"cause": "board", "lost": N, "exact": true}}
 *   {"mark": {"text": "...", "record": N, "tick": T, "epoch": E}}, and {"trigger": {...}} likewise
 *
 * Taps never slow the capture. All taps together may use 5 % of the loop's time to examine, format
 * and send records. When this budget or a tap's queue is exhausted, records are skipped and
 * counted. Every record since a tap was opened is either examined or counted as skipped. Records
 * are formatted only when the client can accept them.
 *
 * Memory: 330 KiB per tap. Loop thread only. */
#ifndef BC_DAEMON_API_TAP_H
#define BC_DAEMON_API_TAP_H

#include <stdint.h>
#include <uv.h>

#include "formats/base/must_check.h"
#include "formats/bus/chunk.h"
#include "formats/trace/filter.h"

/* An unknown record number. */
#define BC_TAP_NO_RECORD UINT64_MAX

#define BC_TAPS_MAX    8u
#define BC_TAPS_OTHERS 6u /* of them, of users other than the owner */

/* Records are sent in batches, with at most this delay. */
#define BC_TAPS_DELAY_MS 10u

struct bc_request;
struct bc_taps;

/* Returns 0 or -ENOMEM. */
int bc_taps_open(struct bc_taps **taps, uv_loop_t *loop) BC_MUST_CHECK;

/* The server must be closed first, which ends all taps. Memory is freed when the loop has closed
 * the timer. NULL is allowed. */
void bc_taps_close(struct bc_taps *taps);

unsigned bc_taps_count(const struct bc_taps *taps);

/* Responds to a request with live records: those that match the filter's address, type and
 * processor (its other conditions are ignored), and all gaps, marks and triggers. The stream ends
 * after `limit` records; 0: no limit. Returns 0; -EBUSY if there are BC_TAPS_MAX taps already, or
 * BC_TAPS_OTHERS and the client is not the owner; or -ENOMEM. On failure the caller still has to
 * respond to the request. */
int bc_taps_add(struct bc_taps *taps, struct bc_request *request, const struct bc_filter *filter,
	uint64_t limit) BC_MUST_CHECK;

/* Offers new records to all taps: those from index `from` to the end of the chunk, with the events
 * at their positions. Events after the last record are offered with the next record, or by
 * bc_taps_end(). `first_record` is the number of record `from` in the recording, or
 * BC_TAP_NO_RECORD; `tick_before` is the tick of the record before it; clock_hz 0: unknown. */
void bc_taps_records(struct bc_taps *taps, const struct bc_chunk *chunk, uint32_t from,
	uint64_t first_record, uint64_t tick_before, uint64_t clock_hz);

/* The chunk is complete: offers the events after its last record. Called once per chunk. */
void bc_taps_end(struct bc_taps *taps, const struct bc_chunk *chunk);

/* Counts records that were not available to the taps as skipped. */
void bc_taps_skip(struct bc_taps *taps, uint64_t records);

#endif
