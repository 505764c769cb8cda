/* Sends events to all clients that read them: newline-delimited JSON, one object per event.
 *
 * Each object is {"event": NAME, "seq": N, "time": RFC 3339, ...}. `seq` increases by one per
 * object. A reader that was too slow for C events gets {"event": "missed", "seq": N, "time",
 * "count": C} in their place, and the next object has N + C. The first object has the number of the
 * last event published before.
 *
 * All readers share one queue of at most BC_EVENT_BROADCAST_OBJECTS objects and
 * BC_EVENT_BROADCAST_BYTES of text. New events push out the oldest; readers that have not read
 * those yet miss them. An event longer than BC_EVENT_BROADCAST_OBJECT_BYTES is missed by all.
 * A reader also holds the object of which it has been sent a part. Loop thread only. */
#ifndef BC_DAEMON_API_EVENT_BROADCAST_H
#define BC_DAEMON_API_EVENT_BROADCAST_H

#include <jansson.h>

#include "formats/base/must_check.h"

#define BC_EVENT_BROADCAST_READERS      64u
#define BC_EVENT_BROADCAST_OTHERS       56u /* of them, of users other than the owner */
#define BC_EVENT_BROADCAST_BYTES        (1u << 20)
#define BC_EVENT_BROADCAST_OBJECTS      4096u
#define BC_EVENT_BROADCAST_OBJECT_BYTES (256u << 10)

struct bc_event_broadcast;
struct bc_request;

/* Returns 0 or -ENOMEM. */
int bc_event_broadcast_open(struct bc_event_broadcast **broadcast) BC_MUST_CHECK;

/* The server must be closed first, which ends all readers. NULL is allowed. */
void bc_event_broadcast_close(struct bc_event_broadcast *broadcast);

/* Returns the number of readers. */
unsigned bc_event_broadcast_readers(const struct bc_event_broadcast *broadcast);

/* Publishes an event. Takes `object`, which has the members after event, seq and time; NULL means
 * out of memory: readers miss it. Cheap, however slow the readers are. There must be a reader. */
void bc_event_broadcast_publish(
	struct bc_event_broadcast *broadcast, const char *name, json_t *object);

/* Responds to a request with the stream of events. Its first object is a "status" with the members
 * of `first`, which this function takes ownership of. Returns 0; -EBUSY if there are
 * BC_EVENT_BROADCAST_READERS already, or BC_EVENT_BROADCAST_OTHERS and the client is not the owner;
 * or -ENOMEM. On failure the caller still has to respond to the request. */
int bc_event_broadcast_add(struct bc_event_broadcast *broadcast, struct bc_request *request,
	json_t *first) BC_MUST_CHECK;

#endif
