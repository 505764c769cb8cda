/* Value change dump: references over time, for GTKWave and other waveform viewers.
 *
 * Each of the first four processors has a scope, and the others share one; in a trace without
 * processors, there is one scope, `bus`. Its variables are `seq`, the number of the reference in
 * the dump, `addr`, `type`, its `name`, `size` and `attr`, and `proc` where processors share a
 * scope. Only changes are written. An unknown value is x, and so are all values from a gap to the
 * next reference. The scope `events` has a bit that toggles with each `gap`, `mark` and `trigger`,
 * the samples `lost` so far, and the `text` of the latest event.
 *
 * With signals=bits, all variables are signals of one bit, without scopes for processors.
 *
 * Time (formats/codec/timeline.h) is in ps if the clock rate is known or the trace names units,
 * otherwise in ns. If several references of a scope have the same time, a viewer shows the last
 * one. The others are counted as lost, but `seq` includes them.
 *
 * Source: IEEE Std 1364, value change dump; the type `string` and its escapes: GTKWave. */
#include "formats/codec/codecs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/fast_text.h"
#include "formats/codec/columns.h"
#include "formats/codec/timeline.h"
#include "formats/codec/vcd_ids.h"

/* Current value of a variable; initially unknown (x). */
struct value {
	uint64_t number;
	bool is_known;
};

struct scope {
	struct value shown[VARIABLES];
	bool has_reference;
	uint64_t time; /* of the latest reference */
};

struct vcd {
	struct bc_timeline time;
	bool is_named;   /* the times may have their own units */
	bool has_events; /* the source may have events */
	bool has_bit_signals;
	unsigned first_scope; /* SHARED: all references are there */
	bool has_time;
	uint64_t written; /* current time of the dump */
	uint64_t seq;     /* number of the next reference */
	uint64_t lost;
	unsigned toggles; /* bits 1 << enum bc_event_kind */
	struct scope scopes[SCOPES];
	struct bc_decimal_row times;
	struct bc_type_word types[BC_REF_TYPES];
};

static void vcd_init(void *state, const struct bc_format_options *options)
{
	struct vcd *vcd = state;
	bc_traits traits = options->source_traits;

	vcd->has_bit_signals = options->has_bit_signals;
	vcd->first_scope = vcd->has_bit_signals || (traits & BC_TRAIT_PROC) == 0 ? SHARED : 0;
	vcd->has_events = (traits & BC_TRAIT_EVENT) != 0;
	/* Tarmac names units. */
	vcd->is_named = (traits & (BC_TRAIT_INSTRUCTION | BC_TRAIT_REGISTER)) != 0;
	bc_timeline_init(&vcd->time, options,
		options->clock_hz != 0 || vcd->is_named ? BC_PS_PER_S : BC_NS_PER_S);
	bc_type_words(vcd->types);
}

static char *print_signals(char *out, const struct variable *v)
{
	for (unsigned i = 0; i < v->signals; i++)
		out += sprintf(out,
			v->signals == 1 ? "$var wire 1 %c %s $end\n" : "$var wire 1 %c %s%u $end\n",
			v->signal_id + (int)i, v->name, i);
	return out;
}

static char *print_vectors(char *out, unsigned scope)
{
	/* A processor's scope needs no number of it. */
	for (unsigned v = 0; v < (scope == SHARED ? VARIABLES : PROC); v++) {
		out += sprintf(out, "$var wire %u %c %s [%u:0] $end\n", variables[v].bits,
			ID(scope, v), variables[v].name, variables[v].bits - 1u);
		if (v == TYPE)
			out += sprintf(out, "$var string 1 %c name $end\n", ID(scope, NAME));
	}
	return out;
}

static char *print_scopes(const struct vcd *vcd, char *out)
{
	for (unsigned scope = vcd->first_scope; scope < SCOPES; scope++) {
		if (scope < SHARED)
			out += sprintf(out, "$scope module processor%u $end\n", scope);
		else
			out = stpcpy(out, vcd->first_scope == SHARED
						  ? "$scope module bus $end\n"
						  : "$scope module others $end\n");
		if (!vcd->has_bit_signals)
			out = print_vectors(out, scope);
		for (unsigned v = 0; vcd->has_bit_signals && v < VARIABLES; v++)
			out = print_signals(out, &variables[v]);
		out = stpcpy(out, "$upscope $end\n");
	}
	if (!vcd->has_events)
		return out;
	out += sprintf(out,
		"$scope module events $end\n"
		"$var wire 1 %c gap $end\n$var wire 1 %c mark $end\n$var wire 1 %c trigger $end\n",
		ID_EVENT(BC_EVENT_GAP), ID_EVENT(BC_EVENT_MARK), ID_EVENT(BC_EVENT_TRIGGER));
	if (!vcd->has_bit_signals)
		out += sprintf(out,
			"$var wire 64 %c lost [63:0] $end\n$var string 1 %c text $end\n", ID_LOST,
			ID_TEXT);
	return stpcpy(out, "$upscope $end\n");
}

static void print_head(void *state, struct bc_print *p)
{
	const struct vcd *vcd = state;
	char *out = p->out + p->used;

	out = stpcpy(out, "$comment\n\t");
	if (!vcd->time.is_timed)
		out = stpcpy(out, "the trace has no times: each reference is one tick after the "
				  "previous one; ");
	if (vcd->time.clock_hz != 0)
		out += sprintf(out,
			"%" PRIu64 " ticks per second; times are rounded down to picoseconds",
			vcd->time.clock_hz);
	else
		out = stpcpy(out, "unknown clock rate: a tick is shown as 1 ns");
	if (vcd->is_named)
		out = stpcpy(out, "; times in us, ns or ps are unchanged");
	out = stpcpy(out, "\n$end\n$timescale ");
	out = stpcpy(out, vcd->time.units_per_s == BC_PS_PER_S ? "1 ps" : "1 ns");
	out = print_scopes(vcd, stpcpy(out, " $end\n"));
	out = stpcpy(out, "$enddefinitions $end\n");
	p->used = (size_t)(out - p->out);
}

static char *write_bits(char *out, uint64_t number, char id)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	unsigned zeros = (unsigned)__builtin_clzll(number | 1);
	char *end = out + 1 + (64 - zeros);

	*out++ = 'b';
	/* Eight bits at a time, highest first: each byte masks its own bit, and a carry into the
	 * byte's top bit turns it into 1. */
	for (number <<= zeros; out < end; number <<= 8, out += 8) {
		uint64_t bits = (number >> 56) * ones & UINT64_C(0x0102040810204080);
		bits = ((bits + 0x7F * ones) >> 7 & ones) + '0' * ones;
		bc_write_le64((uint8_t *)out, bits);
	}
	end[0] = ' ';
	end[1] = id;
	end[2] = '\n';
	return end + 3;
}

/* Writes a value if it differs from the current one. */
static inline char *write_value(
	struct vcd *vcd, char *out, unsigned scope, unsigned v, uint64_t number, bool is_known)
{
	struct value *shown = &vcd->scopes[scope].shown[v];

	if (shown->is_known == is_known && (shown->number == number || !is_known))
		return out;
	shown->number = number;
	shown->is_known = is_known;
	if (is_known)
		return write_bits(out, number, ID(scope, v));
	out = BC_WRITE_LITERAL(out, "bx ");
	*out++ = ID(scope, v);
	*out++ = '\n';
	return out;
}

static char *write_type(struct vcd *vcd, char *out, unsigned scope, unsigned type)
{
	const struct bc_type_word *word = &vcd->types[type];
	const struct value *shown = &vcd->scopes[scope].shown[TYPE];

	if (shown->is_known && shown->number == type)
		return out;
	out = write_value(vcd, out, scope, TYPE, type, true);
	*out++ = 's';
	memcpy(out, word, sizeof(*word));
	out += word->bytes;
	*out++ = ' ';
	*out++ = ID(scope, NAME);
	*out++ = '\n';
	return out;
}

/* Writes the bits of a variable that differ from the current ones. */
static char *write_signals(struct vcd *vcd, char *out, unsigned v, uint64_t number, bool is_known)
{
	struct value *shown = &vcd->scopes[SHARED].shown[v];
	uint64_t all = (UINT64_C(1) << variables[v].signals) - 1;
	uint64_t changed = shown->is_known != is_known ? all
			   : is_known                  ? (shown->number ^ number) & all
						       : 0;

	for (; changed != 0; changed &= changed - 1) {
		int bit = __builtin_ctzll(changed);
		*out++ = "x01"[is_known ? 1 + (number >> bit & 1) : 0];
		*out++ = (char)(variables[v].signal_id + bit);
		*out++ = '\n';
	}
	*shown = (struct value){.number = number, .is_known = is_known};
	return out;
}

/* Returns the end of the output, or NULL with p->err set if a number has more bits than signals. */
static char *write_all_signals(
	struct vcd *vcd, struct bc_print *p, char *out, const struct bc_entry *entry)
{
	bc_traits traits = entry->traits;
	struct value values[VARIABLES] = {
		[SEQ] = {vcd->seq++ & 1, true},
		[ADDR] = {entry->addr, true},
		[TYPE] = {entry->type, true},
		[SIZE] = {entry->size, (traits & BC_TRAIT_SIZE) != 0},
		[ATTR] = {entry->attr, (traits & BC_TRAIT_ATTR) != 0},
		[PROC] = {entry->proc, (traits & BC_TRAIT_PROC) != 0},
	};

	for (unsigned v = 0; v < VARIABLES; v++) {
		if (values[v].is_known && values[v].number >> variables[v].signals != 0) {
			snprintf(p->err, sizeof(p->err),
				"%s 0x%" PRIx64 " doesn't fit the %u signals of signals=bits",
				variables[v].name, values[v].number, variables[v].signals);
			return NULL;
		}
		out = write_signals(vcd, out, v, values[v].number, values[v].is_known);
	}
	return out;
}

static char *write_vectors(struct vcd *vcd, char *out, unsigned scope, const struct bc_entry *entry)
{
	bc_traits traits = entry->traits;

	out = write_value(vcd, out, scope, SEQ, vcd->seq++, true);
	out = write_value(vcd, out, scope, ADDR, entry->addr, true);
	out = write_type(vcd, out, scope, entry->type);
	out = write_value(vcd, out, scope, SIZE, entry->size, (traits & BC_TRAIT_SIZE) != 0);
	out = write_value(vcd, out, scope, ATTR, entry->attr, (traits & BC_TRAIT_ATTR) != 0);
	if (scope == SHARED)
		out = write_value(
			vcd, out, scope, PROC, entry->proc, (traits & BC_TRAIT_PROC) != 0);
	return out;
}

static char *write_reference(
	struct vcd *vcd, struct bc_print *p, char *out, const struct bc_entry *entry)
{
	bool has_scope = (entry->traits & BC_TRAIT_PROC) != 0 && entry->proc < SHARED &&
			 vcd->first_scope != SHARED;
	unsigned number = has_scope ? entry->proc : SHARED;
	struct scope *scope = &vcd->scopes[number];

	if (scope->has_reference && scope->time == vcd->time.now)
		bc_print_lose(p, BC_TRAIT_REFERENCE);
	scope->has_reference = true;
	scope->time = vcd->time.now;
	return vcd->has_bit_signals ? write_all_signals(vcd, p, out, entry)
				    : write_vectors(vcd, out, number, entry);
}

/* All values are unknown until the next reference. */
static char *write_gap(struct vcd *vcd, char *out)
{
	for (unsigned v = 0; vcd->has_bit_signals && v < VARIABLES; v++)
		out = write_signals(vcd, out, v, 0, false);
	for (unsigned s = vcd->first_scope; !vcd->has_bit_signals && s < SCOPES; s++) {
		for (unsigned v = 0; v < VARIABLES; v++) {
			if (v == TYPE && vcd->scopes[s].shown[v].is_known)
				out += sprintf(out, "s %c\n", ID(s, NAME));
			out = write_value(vcd, out, s, v, 0, false);
		}
	}
	return out;
}

static char *write_text(char *out, const struct bc_entry *entry)
{
	const char *text = entry->note.text.at;
	size_t bytes = entry->note.text.bytes;

	if (entry->note.event.kind == BC_EVENT_GAP) {
		text = bc_gap_cause_name(entry->note.event.cause);
		bytes = strlen(text);
	}
	*out++ = 's';
	for (size_t i = 0; i < bytes; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c > ' ' && c < 0x7F && c != '\\')
			*out++ = (char)c;
		else
			out += sprintf(out, "\\%03o", c);
	}
	*out++ = ' ';
	*out++ = ID_TEXT;
	*out++ = '\n';
	return out;
}

static char *write_event(struct vcd *vcd, char *out, const struct bc_entry *entry)
{
	const struct bc_event *event = &entry->note.event;
	unsigned kind = event->kind == BC_EVENT_NOTE ? BC_EVENT_MARK : event->kind;

	if (kind == BC_EVENT_GAP)
		out = write_gap(vcd, out);
	vcd->toggles ^= 1u << kind;
	*out++ = (char)('0' + (vcd->toggles >> kind & 1));
	*out++ = ID_EVENT(kind);
	*out++ = '\n';
	if (vcd->has_bit_signals)
		return out;
	if (kind == BC_EVENT_GAP && event->value != 0)
		out = write_bits(out, vcd->lost += event->value, ID_LOST);
	return write_text(out, entry);
}

static char *write_time(struct vcd *vcd, char *out, uint64_t time)
{
	vcd->written = time;
	*out++ = '#';
	out = bc_write_decimal_row(out, &vcd->times, time);
	*out++ = '\n';
	return out;
}

/* Writes the time of the entry, if it is later than the latest one. */
static char *write_advance(struct vcd *vcd, char *out)
{
	if (vcd->has_time)
		return vcd->time.now == vcd->written ? out : write_time(vcd, out, vcd->time.now);
	vcd->has_time = true;
	/* libsigrok accepts no comments between values. */
	if (vcd->time.is_timed && !vcd->has_bit_signals)
		out += sprintf(out, "$comment time 0 is tick %" PRIu64 "%s%s $end\n",
			vcd->time.start, vcd->time.start_unit != BC_UNIT_TICK ? " " : "",
			bc_unit_name(vcd->time.start_unit));
	out = write_time(vcd, out, vcd->time.now);
	if (vcd->has_events)
		out += sprintf(out, "0%c\n0%c\n0%c\n", ID_EVENT(BC_EVENT_GAP),
			ID_EVENT(BC_EVENT_MARK), ID_EVENT(BC_EVENT_TRIGGER));
	if (vcd->has_events && !vcd->has_bit_signals)
		out = write_bits(out, 0, ID_LOST);
	return out;
}

static int print_vcd(void *state, struct bc_print *p)
{
	struct vcd *vcd = state;

	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++) {
		const struct bc_entry *entry = p->entries;
		/* An epoch shows in the time of its first reference. */
		if (entry->kind == BC_ENTRY_EVENT && entry->note.event.kind == 0)
			continue;
		if (!bc_timeline_advance(&vcd->time, p))
			return -ERANGE;
		char *out = write_advance(vcd, p->out + p->used);
		out = entry->kind == BC_ENTRY_EVENT ? write_event(vcd, out, entry)
						    : write_reference(vcd, p, out, entry);
		if (out == NULL)
			return -ERANGE;
		p->used = (size_t)(out - p->out);
	}
	return 0;
}

/* Writes one more timestamp, so that viewers show the last reference. */
static bool print_tail(void *state, struct bc_print *p)
{
	struct vcd *vcd = state;

	if (vcd->has_time && vcd->written <= INT64_MAX - vcd->time.step)
		p->used = (size_t)(write_time(
					   vcd, p->out + p->used, vcd->written + vcd->time.step) -
				   p->out);
	return true;
}

/* Of any program: keywords, of which one declares a scope or a variable. */
static bool vcd_begins(const uint8_t *head, size_t bytes)
{
	/* sigrok-cli writes a line with the rate first. */
	bool is_rate = bytes > 5 && memcmp(head, "META ", 5) == 0;
	for (; bytes != 0 && (*head <= ' ' || is_rate); head++, bytes--)
		is_rate &= *head != '\n';
	return bytes != 0 && *head == '$' && memmem(head, bytes, "$end", 4) != NULL &&
	       (memmem(head, bytes, "$var ", 5) != NULL ||
		       memmem(head, bytes, "$scope ", 7) != NULL);
}

bool bc_vcd_is_own(const uint8_t *head, size_t bytes)
{
	static const char *const starts[] = {"$scope module processor0 $end\n$var wire 64 ! seq ",
		"$scope module bus $end\n$var wire 64 = seq ",
		"$scope module bus $end\n$var wire 1 ! seq $end"};

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (memmem(head, bytes, starts[i], strlen(starts[i])) != NULL)
			return bytes > 10 && memcmp(head, "$comment\n\t", 10) == 0;
	return false;
}

const struct bc_printer bc_vcd_printer = {.state_bytes = sizeof(struct vcd),
	.init = vcd_init,
	.head = print_head,
	.print = print_vcd,
	.tail = print_tail,
	.begins = vcd_begins,
	.what = "a value change dump (vcd)"};
