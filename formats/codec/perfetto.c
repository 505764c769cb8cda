/* Perfetto's trace format, for ui.perfetto.dev and trace_processor.
 *
 * A process named `bus` has a counter track for each class of request and a track each for gaps,
 * marks and triggers. The value of a counter at time t is the number of references of its class in
 * [t, t + interval); times with the same value as before are left out. Events are instants, with
 * their tick and record number. Time (formats/codec/timeline.h) is in ns.
 *
 * The file is a Trace message: a sequence of TracePackets in protobuf's wire format, which this
 * module writes itself. An inner message is written first and then moved to make room for its
 * length. Source: protos/perfetto/trace in Perfetto's repository. */
#include "formats/codec/codecs.h"

#include <errno.h>
#include <string.h>

#include "formats/bus/page_counts.h"
#include "formats/codec/timeline.h"

/* Field numbers of the messages, in the order Trace, TracePacket, TrackDescriptor,
 * ProcessDescriptor, TrackEvent and DebugAnnotation. */
enum {
	TRACE_PACKET = 1,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_TRACK_DESCRIPTOR = 60,
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
	PROCESS_PID = 1,
	PROCESS_NAME = 6,
	EVENT_ANNOTATION = 4,
	EVENT_TYPE = 9,
	EVENT_TRACK = 11,
	EVENT_NAME = 23,
	EVENT_COUNTER_VALUE = 30,
	ANNOTATION_UINT = 3,
	ANNOTATION_NAME = 10,
};

enum { TYPE_INSTANT = 3, TYPE_COUNTER = 4 };

/* Tracks, by uuid. The counters follow in the order of their classes. */
enum { PROCESS = 1, GAPS, MARKS, TRIGGERS, COUNTERS };

struct perfetto {
	struct bc_timeline time;
	uint64_t interval;
	uint64_t begin; /* of the current interval */
	uint64_t counts[BC_PAGE_CLASSES];
	uint64_t written[BC_PAGE_CLASSES]; /* current value of each counter */
	bool has_started;
};

static void perfetto_init(void *state, const struct bc_format_options *options)
{
	struct perfetto *t = state;

	t->interval = options->interval_ns;
	bc_timeline_init(&t->time, options, BC_NS_PER_S);
}

static char *put_number(char *out, unsigned field, uint64_t n)
{
	return bc_write_varint(bc_write_varint(out, field << 3), n);
}

static char *put_bytes(char *out, unsigned field, const char *at, size_t bytes)
{
	out = bc_write_varint(bc_write_varint(out, field << 3 | 2), bytes);
	memcpy(out, at, bytes);
	return out + bytes;
}

/* Makes the bytes [begin, end) a message. */
static char *wrap(char *begin, char *end, unsigned field)
{
	char head[16];
	size_t bytes = (size_t)(end - begin);
	char *head_end = bc_write_varint(bc_write_varint(head, field << 3 | 2), bytes);
	size_t n = (size_t)(head_end - head);

	memmove(begin + n, begin, bytes);
	memcpy(begin, head, n);
	return end + n;
}

static char *end_packet(char *begin, char *out)
{
	return wrap(begin, put_number(out, PACKET_SEQUENCE_ID, 1), TRACE_PACKET);
}

static char *put_event_packet(char *begin, char *out, uint64_t time)
{
	out = wrap(begin, out, PACKET_TRACK_EVENT);
	return end_packet(begin, put_number(out, PACKET_TIMESTAMP, time));
}

static char *put_track(char *begin, unsigned uuid, const char *name, bool is_counter)
{
	char *out = put_number(begin, TRACK_UUID, uuid);

	out = put_number(out, TRACK_PARENT, PROCESS);
	out = put_bytes(out, TRACK_NAME, name, strlen(name));
	if (is_counter)
		out = put_bytes(out, TRACK_COUNTER, "", 0);
	return end_packet(begin, wrap(begin, out, PACKET_TRACK_DESCRIPTOR));
}

static void print_head(void *state, struct bc_print *p)
{
	static const char *const classes[BC_PAGE_CLASSES] = {"fetch", "read", "write", "other"};
	const struct perfetto *t = state;
	const char *name = !t->time.is_timed       ? "bus (no times: 1 reference = 1 tick)"
			   : t->time.clock_hz == 0 ? "bus (unknown clock rate: 1 tick = 1 ns)"
						   : "bus";
	char *begin = p->out + p->used;
	char *out = put_number(begin, TRACK_UUID, PROCESS);
	char *process = out;

	out = put_bytes(put_number(out, PROCESS_PID, 1), PROCESS_NAME, name, strlen(name));
	out = wrap(process, out, TRACK_PROCESS);
	out = end_packet(begin, wrap(begin, out, PACKET_TRACK_DESCRIPTOR));
	out = put_track(out, GAPS, "gaps", false);
	out = put_track(out, MARKS, "marks", false);
	out = put_track(out, TRIGGERS, "triggers", false);
	for (unsigned c = 0; c < BC_PAGE_CLASSES; c++)
		out = put_track(out, COUNTERS + c, classes[c], true);
	p->used = (size_t)(out - p->out);
}

static char *write_counters(struct perfetto *t, char *out)
{
	for (unsigned c = 0; c < BC_PAGE_CLASSES; c++) {
		char *begin = out;
		if (t->counts[c] == t->written[c])
			continue;
		out = put_number(out, EVENT_TYPE, TYPE_COUNTER);
		out = put_number(out, EVENT_TRACK, COUNTERS + c);
		out = put_number(out, EVENT_COUNTER_VALUE, t->counts[c]);
		out = put_event_packet(begin, out, t->begin);
		t->written[c] = t->counts[c];
	}
	memset(t->counts, 0, sizeof(t->counts));
	return out;
}

/* Ends the current interval, and with it the counts of idle ones up to `begin`. */
static char *start_interval(struct perfetto *t, char *out, uint64_t begin)
{
	out = write_counters(t, out);
	t->begin += t->interval;
	if (t->begin < begin)
		out = write_counters(t, out);
	t->begin = begin;
	return out;
}

static void count(struct perfetto *t, unsigned type)
{
	int plain = bc_ref_type_plain(type);
	bool is_bus = plain >= 0 || type < BC_REF_MODIFY;

	t->counts[is_bus ? bc_page_class((uint8_t)(plain >= 0 ? plain : (int)type))
			 : BC_PAGE_OTHER]++;
}

static char *put_annotation(char *begin, const char *name, uint64_t n)
{
	char *out = put_bytes(begin, ANNOTATION_NAME, name, strlen(name));

	return wrap(begin, put_number(out, ANNOTATION_UINT, n), EVENT_ANNOTATION);
}

static char *put_instant(char *out, unsigned track, const char *name, size_t bytes, uint64_t tick)
{
	out = put_number(out, EVENT_TYPE, TYPE_INSTANT);
	out = put_number(out, EVENT_TRACK, track);
	out = put_bytes(out, EVENT_NAME, name, bytes);
	return put_annotation(out, "tick", tick);
}

static char *write_event(struct perfetto *t, char *begin, const struct bc_entry *entry)
{
	const struct bc_event *event = &entry->note.event;
	struct bc_text text = entry->note.text;
	unsigned track = event->kind == BC_EVENT_TRIGGER ? TRIGGERS : MARKS;
	char *out = begin;

	if (event->kind == BC_EVENT_GAP) {
		const char *cause = bc_gap_cause_name(event->cause);
		out = put_instant(out, GAPS, cause, strlen(cause), entry->tick);
		out = put_annotation(out, event->exact ? "lost" : "lost at least", event->value);
		if (event->duration_ns != 0)
			out = put_annotation(out, "duration_ns", event->duration_ns);
	} else {
		out = put_instant(out, track, text.bytes != 0 ? text.at : "board",
			text.bytes != 0 ? text.bytes : 5, entry->tick);
	}
	out = put_annotation(out, "record", entry->number);
	return put_event_packet(begin, out, t->time.now);
}

static int print_perfetto(void *state, struct bc_print *p)
{
	struct perfetto *t = state;

	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++) {
		const struct bc_entry *entry = p->entries;
		bool is_event = entry->kind == BC_ENTRY_EVENT;
		char *out = p->out + p->used;
		if (is_event && entry->note.event.kind == 0)
			continue;
		if (!bc_timeline_advance(&t->time, p))
			return -ERANGE;
		if (!t->has_started && t->time.is_timed)
			out = put_event_packet(
				out, put_instant(out, MARKS, "start", 5, t->time.start), 0);
		t->has_started = true;
		if (t->time.now - t->begin >= t->interval)
			out = start_interval(t, out, t->time.now - t->time.now % t->interval);
		if (is_event)
			out = write_event(t, out, entry);
		else
			count(t, entry->type);
		p->used = (size_t)(out - p->out);
	}
	return 0;
}

/* The last interval, and 0 after it. */
static bool print_tail(void *state, struct bc_print *p)
{
	struct perfetto *t = state;
	char *out = write_counters(t, p->out + p->used);

	t->begin += t->interval;
	p->used = (size_t)(write_counters(t, out) - p->out);
	return true;
}

/* Compares with print_head(); the lengths of the messages vary. */
static bool perfetto_begins(const uint8_t *head, size_t bytes)
{
	static const char own[] = "\x0A?\xE2\x03?\x08\x01\x1A?\x08\x01\x32?bus";
	size_t n = strlen(own);

	for (size_t i = 0; i < n && i < bytes; i++)
		if (own[i] != '?' && (uint8_t)own[i] != head[i])
			return false;
	return bytes >= n;
}

const struct bc_printer bc_perfetto_printer = {.state_bytes = sizeof(struct perfetto),
	.init = perfetto_init,
	.head = print_head,
	.print = print_perfetto,
	.tail = print_tail,
	.begins = perfetto_begins,
	.what = "buscap's perfetto"};
