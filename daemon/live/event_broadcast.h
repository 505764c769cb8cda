/* The events: what changes, as newline-delimited JSON to whoever reads along, one object a change.
 *
 * Each object is {"event": NAME, "seq": N, "time": RFC 3339, ...}. Numbers go up by one from object
 * to object of a stream: a reader that was too slow for some is told so by {"event": "missed",
 * "seq": N, "time", "count": C} at their place, and goes on with N + C. The first object has the
 * number of the last that was posted before.
 *
 * All readers share one queue: BC_EVENT_BROADCAST_BYTES of text in BC_EVENT_BROADCAST_OBJECTS
 * objects at most, however many read. What is pushed out of it, and what is too long for
 * BC_EVENT_BROADCAST_OBJECT_BYTES, those miss who haven't read it. A reader holds one object more,
 * of which it was sent a part. It all belongs to the loop's thread. */
#ifndef BC_DAEMON_LIVE_EVENT_BROADCAST_H
#define BC_DAEMON_LIVE_EVENT_BROADCAST_H

#include "formats/base/must_check.h"

#include <jansson.h>
#include <stdbool.h>

#define BC_EVENT_BROADCAST_READERS      64u
#define BC_EVENT_BROADCAST_OTHERS       56u /* of them, who isn't the owner */
#define BC_EVENT_BROADCAST_BYTES        (1u << 20)
#define BC_EVENT_BROADCAST_OBJECTS      4096u
#define BC_EVENT_BROADCAST_OBJECT_BYTES (256u << 10)

struct bc_event_broadcast;
struct bc_request;

/* Returns 0 or -ENOMEM. */
int bc_event_broadcast_open(struct bc_event_broadcast **bulletin) BC_MUST_CHECK;

/* The server was closed before, and with it all readers. NULL is none. */
void bc_event_broadcast_close(struct bc_event_broadcast *bulletin);

/* Whether anybody reads: if not, objects needn't be made. */
bool bc_event_broadcast_has_readers(const struct bc_event_broadcast *bulletin);
unsigned bc_event_broadcast_readers(const struct bc_event_broadcast *bulletin);

/* Posts an event: `object`, which is taken, has the members behind event, seq and time; NULL stands
 * for memory that ran out, which is counted as missed. Cheap, however slow the readers are. */
void bc_event_broadcast_post(struct bc_event_broadcast *bulletin, const char *name, json_t *object);

/* Answers a request with the stream of events. Its first object is a "status": `first`, which is
 * taken, has its members, as for bc_event_broadcast_post(). Returns 0; -EBUSY when
 * BC_EVENT_BROADCAST_READERS read already, or BC_EVENT_BROADCAST_OTHERS and this is one more of
 * them; or -ENOMEM. Then the request is the caller's to answer. */
int bc_event_broadcast_add(struct bc_event_broadcast *bulletin, struct bc_request *request,
	json_t *first) BC_MUST_CHECK;

#endif
