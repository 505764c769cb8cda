/* Owns the queue of events as text, and the readers. An event is printed once, for all readers, and
 * freed when it has left the queue and no reader is in the middle of it.
 *
 * Invariant: the queue has the latest `count` events, and is empty without readers. A reader's
 * next_seq is the number after the last object that it has been sent, or whose loss it has been
 * sent: events that are not in the queue become one "missed". */
#include "daemon/api/event_broadcast.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/clock.h"
#include "formats/base/json.h"
#include "formats/base/text.h"
#include "formats/http/server.h"

struct object {
	unsigned refs; /* the queue, and readers that have been sent a part */
	size_t bytes;
	char *text; /* a line with its newline, not terminated */
};

struct reader {
	struct reader *next;
	struct reader **link;
	struct bc_event_broadcast *broadcast;
	struct bc_stream *stream;
	bool is_owner;
	uint64_t next_seq;
	struct object *part; /* being sent, or NULL */
	size_t part_sent;
};

struct bc_event_broadcast {
	struct reader *readers;
	unsigned reader_count;
	unsigned other_count; /* of them, of users other than the owner */
	uint64_t last_seq;    /* of the last published event */
	struct object *queue[BC_EVENT_BROADCAST_OBJECTS]; /* by number; NULL: not made */
	unsigned count;
	size_t bytes;
};

/* Objects */

static void object_unref(struct object *object)
{
	if (object == NULL || --object->refs != 0)
		return;
	free(object->text);
	free(object);
}

/* Takes ownership of `members`. Returns NULL if out of memory, or if the text is too long. */
static struct object *make_object(const char *name, uint64_t seq, json_t *members)
{
	struct object *object = NULL;
	char *text = NULL;
	char time[BC_RFC3339_BYTES];

	bc_rfc3339_write(time, bc_wall_ns());
	json_t *whole = json_pack(
		"{s:s, s:o, s:s}", "event", name, "seq", bc_json_u64(seq), "time", time);
	if (json_object_update_new(whole, members) == 0)
		text = bc_json_print_line(whole);
	json_decref(whole);
	size_t n = text != NULL ? strlen(text) : 0;
	if (text != NULL && n <= BC_EVENT_BROADCAST_OBJECT_BYTES)
		object = malloc(sizeof(*object));
	if (object == NULL) {
		free(text);
		return NULL;
	}
	*object = (struct object){.refs = 1, .bytes = n, .text = text};
	return object;
}

/* The queue */

static struct object **place_of(struct bc_event_broadcast *b, uint64_t seq)
{
	return &b->queue[seq % BC_EVENT_BROADCAST_OBJECTS];
}

static uint64_t oldest_seq(const struct bc_event_broadcast *b)
{
	return b->last_seq + 1 - b->count;
}

static void drop_oldest(struct bc_event_broadcast *b)
{
	struct object *oldest = *place_of(b, oldest_seq(b));

	b->count--;
	b->bytes -= oldest != NULL ? oldest->bytes : 0;
	object_unref(oldest);
}

void bc_event_broadcast_publish(struct bc_event_broadcast *b, const char *name, json_t *object)
{
	assert(b->reader_count != 0);
	struct object *queued = make_object(name, b->last_seq + 1, object);
	size_t bytes = queued != NULL ? queued->bytes : 0;

	while (b->count == BC_EVENT_BROADCAST_OBJECTS ||
		b->bytes + bytes > BC_EVENT_BROADCAST_BYTES)
		drop_oldest(b);
	*place_of(b, ++b->last_seq) = queued;
	b->count++;
	b->bytes += bytes;
	for (struct reader *reader = b->readers; reader != NULL; reader = reader->next)
		bc_stream_wake(reader->stream);
}

/* Readers */

/* Writes more of the current object. Returns the number of bytes written. */
static size_t send_part(struct reader *reader, char *out, size_t size)
{
	struct object *part = reader->part;
	size_t n = part->bytes - reader->part_sent;

	if (n > size)
		n = size;
	memcpy(out, part->text + reader->part_sent, n);
	reader->part_sent += n;
	if (reader->part_sent == part->bytes) {
		reader->part = NULL;
		object_unref(part);
	}
	return n;
}

/* Makes a "missed" for `count` events from next_seq the current object. False: out of memory. */
static bool start_missed(struct reader *reader, uint64_t count)
{
	struct object *object = make_object(
		"missed", reader->next_seq, json_pack("{s:o}", "count", bc_json_u64(count)));

	if (object == NULL)
		return false;
	reader->part = object;
	reader->part_sent = 0;
	reader->next_seq += count;
	return true;
}

/* Makes the next object the current one. Returns false at the end of the queue. */
static bool start_next(struct reader *reader)
{
	struct bc_event_broadcast *b = reader->broadcast;
	uint64_t oldest = oldest_seq(b);
	uint64_t seq = reader->next_seq > oldest ? reader->next_seq : oldest;

	while (seq <= b->last_seq && *place_of(b, seq) == NULL)
		seq++;
	if (seq > reader->next_seq)
		return start_missed(reader, seq - reader->next_seq);
	if (seq > b->last_seq)
		return false;
	reader->part = *place_of(b, seq);
	reader->part->refs++;
	reader->part_sent = 0;
	reader->next_seq = seq + 1;
	return true;
}

static size_t read_events(void *context, char *out, size_t size)
{
	struct reader *reader = context;
	size_t used = 0;

	while (used < size && (reader->part != NULL || start_next(reader)))
		used += send_part(reader, out + used, size - used);
	return used;
}

static void close_reader(void *context)
{
	struct reader *reader = context;
	struct bc_event_broadcast *b = reader->broadcast;

	object_unref(reader->part);
	if (reader->next != NULL)
		reader->next->link = reader->link;
	*reader->link = reader->next;
	b->other_count -= !reader->is_owner;
	free(reader);
	if (--b->reader_count == 0)
		while (b->count != 0)
			drop_oldest(b);
}

int bc_event_broadcast_add(struct bc_event_broadcast *b, struct bc_request *request, json_t *first)
{
	static const struct bc_stream_ops ops = {.read = read_events, .closed = close_reader};
	bool is_owner = bc_request_is_owner(request);

	if (b->reader_count == BC_EVENT_BROADCAST_READERS ||
		(!is_owner && b->other_count == BC_EVENT_BROADCAST_OTHERS)) {
		json_decref(first);
		return -EBUSY;
	}
	struct reader *reader = calloc(1, sizeof(*reader));
	struct object *object = make_object("status", b->last_seq, first);
	if (reader == NULL || object == NULL)
		goto fail;
	reader->broadcast = b;
	reader->is_owner = is_owner;
	reader->next_seq = b->last_seq + 1;
	reader->part = object;
	reader->stream = bc_request_stream(request, "application/x-ndjson", &ops, reader);
	if (reader->stream == NULL)
		goto fail;
	reader->next = b->readers;
	reader->link = &b->readers;
	if (reader->next != NULL)
		reader->next->link = &reader->next;
	b->readers = reader;
	b->reader_count++;
	b->other_count += !is_owner;
	return 0;
fail:
	object_unref(object);
	free(reader);
	return -ENOMEM;
}

unsigned bc_event_broadcast_readers(const struct bc_event_broadcast *b)
{
	return b->reader_count;
}

int bc_event_broadcast_open(struct bc_event_broadcast **result)
{
	*result = calloc(1, sizeof(**result));
	return *result != NULL ? 0 : -ENOMEM;
}

void bc_event_broadcast_close(struct bc_event_broadcast *b)
{
	if (b == NULL)
		return;
	assert(b->reader_count == 0 && b->count == 0);
	free(b);
}
