/* The watch's way through records: which of them some trigger hits. Of daemon/watch.c alone. */
#ifndef BC_DAEMON_WATCH_SEARCH_H
#define BC_DAEMON_WATCH_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/watch.h"

/* Goes from record *at < info.records to the next at which armed triggers hit, and returns these, a
 * bit each; 0, and *at is info.records, when there is none. Marks that the chunk has no room for
 * are counted as missed on the way. */
uint32_t bc_watch_search(
	struct bc_watch *watch, const struct bc_chunk *chunk, uint32_t *at, uint64_t clock_hz);

/* Whether a trigger hits at the record that an event stands before. */
bool bc_watch_is_of_event(const struct bc_trigger *trigger, const struct bc_event *event);

#endif
