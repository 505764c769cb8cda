/* The events: what changes, as newline-delimited JSON to whoever reads along, one object a change.
 *
 * Each object is {"event": NAME, "seq": N, "time": RFC 3339, ...}. Numbers go up by one from object
 * to object of a stream: a reader that was too slow for some is told so by {"event": "missed",
 * "seq": N, "time", "count": C} at their place, and goes on with N + C. The first object has the
 * number of the last that was posted before.
 *
 * All readers share one queue: BC_BULLETIN_BYTES of text in BC_BULLETIN_OBJECTS objects at most,
 * however many read. What is pushed out of it, and what is too long for BC_BULLETIN_OBJECT_BYTES,
 * those miss who haven't read it. A reader holds one object more, of which it was sent a part. It
 * all belongs to the loop's thread. */
#ifndef BC_DAEMON_LIVE_EVENT_BROADCAST_H
#define BC_DAEMON_LIVE_EVENT_BROADCAST_H

#include <jansson.h>
#include <stdbool.h>

#define BC_BULLETIN_READERS      64u
#define BC_BULLETIN_OTHERS       56u /* of them, who isn't the owner */
#define BC_BULLETIN_BYTES        (1u << 20)
#define BC_BULLETIN_OBJECTS      4096u
#define BC_BULLETIN_OBJECT_BYTES (256u << 10)

struct bc_bulletin;
struct bc_request;

/* Returns 0 or -ENOMEM. */
int bc_bulletin_open(struct bc_bulletin **bulletin) __attribute__((warn_unused_result));

/* The server was closed before, and with it all readers. NULL is none. */
void bc_bulletin_close(struct bc_bulletin *bulletin);

/* Whether anybody reads: if not, objects needn't be made. */
bool bc_bulletin_has_readers(const struct bc_bulletin *bulletin);
unsigned bc_bulletin_readers(const struct bc_bulletin *bulletin);

/* Posts an event: `object`, which is taken, has the members behind event, seq and time; NULL stands
 * for memory that ran out, which is counted as missed. Cheap, however slow the readers are. */
void bc_bulletin_post(struct bc_bulletin *bulletin, const char *name, json_t *object);

/* Answers a request with the stream of events. Its first object is a "status": `first`, which is
 * taken, has its members, as for bc_bulletin_post(). Returns 0; -EBUSY when BC_BULLETIN_READERS
 * read already, or BC_BULLETIN_OTHERS and this is one more of them; or -ENOMEM. Then the request is
 * the caller's to answer. */
int bc_bulletin_add(struct bc_bulletin *bulletin, struct bc_request *request, json_t *first)
	__attribute__((warn_unused_result));

#endif
