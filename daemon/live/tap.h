/* Live records: what is on the bus now, as newline-delimited JSON to whoever asks for it, by
 * filters of their own.
 *
 *   {"record": N, "tick": T, "epoch": E, "addr": "0x1f00", "type": "MEMREAD", "size": 8, "attr": 3,
 *    "proc": 0, "time": 5}        N is its number in the recording, null outside of one; "time" is
 *                                 null where there is no delta; a type without a name is "0xf2"
 *   {"missed": N}                 N records of the bus were not looked at, here; with "events": M
 *                                 there was no room for M gaps, marks and triggers, either
 *   {"gap": {"cause": "board", "lost": N, "exact": true}}
 *   {"mark": {"text": "...", "record": N, "tick": T, "epoch": E}}, and {"trigger": {...}} alike
 *
 * Taps never slow the capture. All of them together may take 5 % of the loop's time, for looking at
 * records, making text of them and sending it; beyond it, or when a tap's queue is full, records
 * are passed over and counted, exactly. Those looked at and those missed are all that passed since
 * a tap was opened. Text is made when the client can take it.
 *
 * Memory: 280 KiB a tap. It all belongs to the loop's thread. */
#ifndef BC_DAEMON_LIVE_TAP_H
#define BC_DAEMON_LIVE_TAP_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/live/tap_queue.h"
#include "formats/base/must_check.h"
#include "formats/bus/chunk.h"
#include "formats/trace/filter.h"

#define BC_TAPS_MAX    8u
#define BC_TAPS_OTHERS 6u /* of them, who isn't the owner */

/* What a client is to be told of is told this much later at most, many records at a time. */
#define BC_TAPS_DELAY_MS 10u

struct bc_request;
struct bc_taps;

/* Returns 0 or -ENOMEM. */
int bc_taps_open(struct bc_taps **taps, uv_loop_t *loop) BC_MUST_CHECK;

/* The server was closed before, and with it all taps. Memory goes when the loop has closed its
 * handle. NULL is none. */
void bc_taps_close(struct bc_taps *taps);

unsigned bc_taps_count(const struct bc_taps *taps);

/* Answers a request with live records: those that the filter wants by address, type and processor
 * (nothing else of it is looked at), and all gaps, marks and triggers. The stream ends after
 * `limit` records; 0: never. Returns 0; -EBUSY when there are BC_TAPS_MAX already, or
 * BC_TAPS_OTHERS and this is one more of them; or -ENOMEM. Then the request is the caller's to
 * answer. */
int bc_taps_add(struct bc_taps *taps, struct bc_request *request, const struct bc_filter *filter,
	uint64_t limit) BC_MUST_CHECK;

/* Shows the records from `from` to the chunk's end, which are new, with the events at their
 * positions; those at the end of the chunk belong to the record that comes next, or to
 * bc_taps_end(). `first_record` is the number of record `from` in the recording, or
 * BC_TAP_NO_RECORD; `tick_before` the tick of the record before it. */
void bc_taps_records(struct bc_taps *taps, const struct bc_chunk *chunk, uint32_t from,
	uint64_t first_record, uint64_t tick_before);

/* The chunk is handed on: shows the events behind its last record. Once a chunk. */
void bc_taps_end(struct bc_taps *taps, const struct bc_chunk *chunk);

/* Shows an event that is in no chunk, behind the records shown last: a gap, or a mark or trigger
 * with `text`, event->text_bytes long. */
void bc_taps_event(struct bc_taps *taps, const struct bc_event *event, const char *text);

/* Counts records that nobody could look at. */
void bc_taps_passed(struct bc_taps *taps, uint64_t records);

#endif
