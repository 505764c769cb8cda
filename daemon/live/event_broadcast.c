#include "daemon/live/event_broadcast.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/rfc3339.h"
#include "daemon/http/request.h"
#include "formats/base/json.h"

struct object {
	uint64_t seq;
	unsigned holders; /* the queue, and readers in the middle of it */
	size_t bytes;
	char *text; /* a line */
};

struct reader {
	struct reader *next;
	struct reader **link;
	struct bc_event_broadcast *bulletin;
	struct bc_push *push;
	bool is_owner;
	uint64_t next_seq;
	struct object *part; /* being sent, or NULL */
	size_t part_sent;
};

struct bc_event_broadcast {
	struct reader *readers;
	unsigned reader_count;
	unsigned other_count; /* of them, not the owner's */
	uint64_t last_seq;    /* that was posted */
	struct object *queue[BC_EVENT_BROADCAST_OBJECTS];
	unsigned first; /* of the queue: its oldest */
	unsigned count;
	size_t bytes;
};

/* Objects */

static void let_go(struct object *object)
{
	if (object == NULL || --object->holders != 0)
		return;
	free(object->text);
	free(object);
}

/* Takes `members`. Returns NULL when memory ran out, or it is too long. */
static struct object *make_object(const char *name, uint64_t seq, json_t *members)
{
	struct object *object = NULL;
	char *text = NULL;
	char time[BC_RFC3339_BYTES];

	bc_rfc3339_write(time, bc_wall_ns());
	json_t *whole = json_pack(
		"{s:s, s:o, s:s}", "event", name, "seq", bc_json_u64(seq), "time", time);
	if (json_object_update_new(whole, members) == 0)
		text = bc_json_print(whole);
	json_decref(whole);
	size_t n = text != NULL ? strlen(text) : 0;
	if (text != NULL && n < BC_EVENT_BROADCAST_OBJECT_BYTES)
		object = malloc(sizeof(*object));
	if (object == NULL) {
		free(text);
		return NULL;
	}
	text[n] = '\n'; /* in place of its zero */
	*object = (struct object){.seq = seq, .holders = 1, .bytes = n + 1, .text = text};
	return object;
}

/* The queue */

static void drop_oldest(struct bc_event_broadcast *b)
{
	struct object *oldest = b->queue[b->first];

	b->first = (b->first + 1) % BC_EVENT_BROADCAST_OBJECTS;
	b->count--;
	b->bytes -= oldest->bytes;
	let_go(oldest);
}

static struct object *oldest_from(const struct bc_event_broadcast *b, uint64_t seq)
{
	if (b->count == 0 ||
		b->queue[(b->first + b->count - 1) % BC_EVENT_BROADCAST_OBJECTS]->seq < seq)
		return NULL;
	/* Numbers are left out where memory ran out, so that it can't be reckoned. */
	unsigned low = 0;
	unsigned high = b->count - 1;
	while (low < high) {
		unsigned middle = (low + high) / 2;
		if (b->queue[(b->first + middle) % BC_EVENT_BROADCAST_OBJECTS]->seq < seq)
			low = middle + 1;
		else
			high = middle;
	}
	return b->queue[(b->first + low) % BC_EVENT_BROADCAST_OBJECTS];
}

void bc_event_broadcast_post(struct bc_event_broadcast *b, const char *name, json_t *object)
{
	uint64_t seq = ++b->last_seq;
	struct object *made = NULL;

	if (b->reader_count == 0)
		json_decref(object);
	else
		made = make_object(name, seq, object);
	if (made != NULL) {
		while (b->count == BC_EVENT_BROADCAST_OBJECTS ||
			b->bytes + made->bytes > BC_EVENT_BROADCAST_BYTES)
			drop_oldest(b);
		b->queue[(b->first + b->count++) % BC_EVENT_BROADCAST_OBJECTS] = made;
		b->bytes += made->bytes;
	}
	for (struct reader *reader = b->readers; reader != NULL; reader = reader->next)
		bc_push_wake(reader->push);
}

/* Readers */

/* Goes on with the object under way. Returns how much was written. */
static size_t put_part(struct reader *reader, char *out, size_t room)
{
	struct object *part = reader->part;
	size_t n = part->bytes - reader->part_sent;

	if (n > room)
		n = room;
	memcpy(out, part->text + reader->part_sent, n);
	reader->part_sent += n;
	if (reader->part_sent == part->bytes) {
		reader->part = NULL;
		let_go(part);
	}
	return n;
}

/* Begins to tell of those from next_seq that are not to be had. Returns false without memory. */
static bool begin_missed(struct reader *reader, uint64_t count)
{
	struct object *object = malloc(sizeof(*object));
	char time[BC_RFC3339_BYTES];
	char *text = NULL;

	bc_rfc3339_write(time, bc_wall_ns());
	int n = object != NULL ? asprintf(&text,
					 "{\"event\":\"missed\",\"seq\":%" PRIu64
					 ",\"time\":\"%s\",\"count\":%" PRIu64 "}\n",
					 reader->next_seq, time, count)
			       : -1;
	if (n < 0) {
		free(object);
		return false;
	}
	*object = (struct object){.holders = 1, .bytes = (size_t)n, .text = text};
	reader->part = object;
	reader->part_sent = 0;
	reader->next_seq += count;
	return true;
}

/* Begins with what comes next. Returns false when there is nothing. */
static bool begin_next(struct reader *reader)
{
	const struct bc_event_broadcast *b = reader->bulletin;
	struct object *object = oldest_from(b, reader->next_seq);
	uint64_t seq = object != NULL ? object->seq : b->last_seq + 1;

	if (seq > reader->next_seq)
		return begin_missed(reader, seq - reader->next_seq);
	if (object == NULL)
		return false;
	object->holders++;
	reader->part = object;
	reader->part_sent = 0;
	reader->next_seq = seq + 1;
	return true;
}

static size_t on_read(void *context, char *out, size_t room)
{
	struct reader *reader = context;
	size_t used = 0;

	while (used < room && (reader->part != NULL || begin_next(reader)))
		used += put_part(reader, out + used, room - used);
	return used;
}

static bool is_over(void *context)
{
	(void)context;
	return false;
}

static void on_closed(void *context)
{
	struct reader *reader = context;
	struct bc_event_broadcast *b = reader->bulletin;

	let_go(reader->part);
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
	static const struct bc_push_ops ops = {
		.read = on_read, .is_over = is_over, .closed = on_closed};
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
	reader->bulletin = b;
	reader->is_owner = is_owner;
	reader->next_seq = b->last_seq + 1;
	reader->part = object;
	reader->push = bc_request_stream(request, "application/x-ndjson", &ops, reader);
	if (reader->push == NULL)
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
	let_go(object);
	free(reader);
	return -ENOMEM;
}

unsigned bc_event_broadcast_readers(const struct bc_event_broadcast *b)
{
	return b->reader_count;
}

bool bc_event_broadcast_has_readers(const struct bc_event_broadcast *b)
{
	return b->reader_count != 0;
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
