/* Value change dump: references over time, for GTKWave, PulseView and other waveform viewers.
 *
 * The variables are the counter `seq` (from 0, one more with each reference), `addr`, `type`, its
 * `name`, `size`, `attr` and `proc`. Only changes are written, and an unknown value is x. Time is
 * the absolute time of the trace: in picoseconds, rounded down, if the clock rate is known
 * (clock_hz); otherwise a tick is shown as 1 ns. In a trace without times, each reference is one
 * tick after the previous one.
 *
 * Time cannot go back in a dump. If the trace's time does, or its clock restarts, later entries are
 * moved to after the last one written, and counted as a loss of time. If several references have
 * the same time, a viewer shows the last one. The others are counted as lost, but `seq` includes
 * them.
 *
 * Source: IEEE Std 1364, value change dump; the type `string` is GTKWave's. */
#include "formats/codec/codecs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/fast_text.h"
#include "formats/codec/columns.h"

#define PS_PER_S  UINT64_C(1000000000000)
#define PS_PER_NS 1000

/* Viewers keep times in signed 64-bit numbers. */
#define TIME_MAX INT64_MAX

/* Current value of a variable; initially unknown (x). */
struct value {
	uint64_t number;
	bool is_known;
};

enum { SEQ, ADDR, TYPE, SIZE, ATTR, PROC, VARIABLES };

/* The variables as vectors, and as signals of one bit each, with consecutive ids from bit 0 on. */
static const struct variable {
	const char *name;
	uint8_t bits;
	char id;
	uint8_t signals;
	char signal_id;
} variables[VARIABLES] = {
	[SEQ] = {"seq", 64, '!', 1, '!'},
	[ADDR] = {"addr", 64, '"', 32, '"'},
	[TYPE] = {"type", 9, '#', 9, 'B'},
	[SIZE] = {"size", 32, '%', 8, 'K'},
	[ATTR] = {"attr", 8, '&', 8, 'S'},
	[PROC] = {"proc", 16, '\'', 8, '['},
};

struct vcd {
	uint64_t clock_hz; /* 0: a tick is 1 ns */
	bool is_timed;     /* the source has times */
	bool has_units;    /* the times may have their own units */
	bool is_in_ps;     /* unit of the dump: ps, otherwise ns */
	uint64_t step;     /* length of a tick in that unit, at least 1 */
	bool has_time;
	uint64_t time;  /* current time of the dump */
	__int128 raw;   /* the source's time at that point */
	__int128 ahead; /* offset from the source's time to the dump's */
	uint32_t epoch;
	uint64_t seq; /* number of the next reference */
	bool has_bit_signals;
	struct value shown[VARIABLES];
	struct bc_decimal_row times;
	struct bc_type_word types[BC_REF_TYPES];
};

static void vcd_init(void *state, const struct bc_format_options *options)
{
	struct vcd *vcd = state;

	vcd->clock_hz = options->clock_hz;
	vcd->has_bit_signals = options->has_bit_signals;
	vcd->is_timed = (options->source_holds & BC_HAS_TIME) != 0;
	/* Tarmac names units. */
	vcd->has_units = (options->source_holds & (BC_CAN_INSTRUCTION | BC_CAN_REGISTER)) != 0;
	vcd->is_in_ps = vcd->clock_hz != 0 || vcd->has_units;
	vcd->step = vcd->clock_hz != 0 ? PS_PER_S / vcd->clock_hz : vcd->is_in_ps ? PS_PER_NS : 1;
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

static char *print_vector(char *out, const struct variable *v)
{
	out += sprintf(
		out, "$var wire %u %c %s [%u:0] $end\n", v->bits, v->id, v->name, v->bits - 1u);
	return v == &variables[TYPE] ? stpcpy(out, "$var string 1 $ name $end\n") : out;
}

static void print_head(void *state, struct bc_print *p)
{
	const struct vcd *vcd = state;
	char *out = p->out + p->used;

	out = stpcpy(out, "$comment\n\t");
	if (!vcd->is_timed)
		out = stpcpy(out, "the trace has no times: each reference is one tick after the "
				  "previous one; ");
	if (vcd->clock_hz != 0)
		out += sprintf(out,
			"%" PRIu64 " ticks per second; times are rounded down to picoseconds",
			vcd->clock_hz);
	else
		out = stpcpy(out, "unknown clock rate: a tick is shown as 1 ns");
	if (vcd->has_units)
		out = stpcpy(out, "; times in us, ns or ps are unchanged");
	out = stpcpy(out, "\n$end\n$timescale ");
	out = stpcpy(out, vcd->is_in_ps ? "1 ps" : "1 ns");
	out = stpcpy(out, " $end\n"
			  "$scope module bus $end\n");
	for (unsigned v = 0; v < VARIABLES; v++)
		out = vcd->has_bit_signals ? print_signals(out, &variables[v])
					   : print_vector(out, &variables[v]);
	out = stpcpy(out, "$upscope $end\n"
			  "$enddefinitions $end\n");
	p->used = (size_t)(out - p->out);
}

/* The time of an entry by its own clock, in the unit of the dump. */
static __int128 raw_time(const struct vcd *vcd, const struct bc_entry *entry)
{
	uint64_t tick = vcd->is_timed ? entry->tick : vcd->seq;

	if (vcd->is_timed && (entry->has & BC_HAS_TIME) == 0)
		return vcd->raw;
	if (!vcd->is_in_ps)
		return tick;
	switch (entry->unit) {
	case BC_UNIT_PS:
		return tick;
	case BC_UNIT_NS:
		return (__int128)tick * PS_PER_NS;
	case BC_UNIT_US:
		return (__int128)tick * (PS_PER_NS * 1000);
	default:
		break;
	}
	if (vcd->clock_hz == 0)
		return (__int128)tick * PS_PER_NS;
	return (__int128)tick * (__int128)PS_PER_S / (__int128)vcd->clock_hz;
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
	struct vcd *vcd, char *out, unsigned v, uint64_t number, bool is_known)
{
	struct value *shown = &vcd->shown[v];

	if (shown->is_known == is_known && (shown->number == number || !is_known))
		return out;
	shown->number = number;
	shown->is_known = is_known;
	if (is_known)
		return write_bits(out, number, variables[v].id);
	out = BC_WRITE_LITERAL(out, "bx ");
	*out++ = variables[v].id;
	*out++ = '\n';
	return out;
}

static char *write_type(struct vcd *vcd, char *out, unsigned type)
{
	const struct bc_type_word *word = &vcd->types[type];

	if (vcd->shown[TYPE].is_known && vcd->shown[TYPE].number == type)
		return out;
	out = write_value(vcd, out, TYPE, type, true);
	*out++ = 's';
	memcpy(out, word, sizeof(*word));
	return BC_WRITE_LITERAL(out + word->bytes, " $\n");
}

/* Writes the bits of a variable that differ from the current ones. */
static char *write_signals(struct vcd *vcd, char *out, unsigned v, uint64_t number, bool is_known)
{
	struct value *shown = &vcd->shown[v];
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

/* Returns the end of the output, or NULL with p->err set if a number needs more bits than there are
 * signals. */
static char *write_all_signals(
	struct vcd *vcd, struct bc_print *p, char *out, const struct bc_entry *entry)
{
	uint32_t has = entry->has;
	struct value values[VARIABLES] = {
		[SEQ] = {vcd->seq++ & 1, true},
		[ADDR] = {entry->addr, true},
		[TYPE] = {entry->type, true},
		[SIZE] = {entry->size, (has & BC_HAS_SIZE) != 0},
		[ATTR] = {entry->attr, (has & BC_HAS_ATTR) != 0},
		[PROC] = {entry->proc, (has & BC_HAS_PROC) != 0},
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

static char *write_time(struct vcd *vcd, char *out, uint64_t time)
{
	vcd->time = time;
	*out++ = '#';
	out = bc_write_decimal_row(out, &vcd->times, time);
	*out++ = '\n';
	return out;
}

/* Advances the dump to the time of the entry. Returns the end of the output, or NULL with p->err
 * set. */
static char *advance_to(
	struct vcd *vcd, struct bc_print *p, char *out, const struct bc_entry *entry)
{
	__int128 raw = raw_time(vcd, entry);
	bool is_back = vcd->has_time && (raw < vcd->raw || entry->epoch != vcd->epoch);
	__int128 ahead = is_back ? (__int128)vcd->time + (__int128)vcd->step - raw : vcd->ahead;
	__int128 time = raw + ahead;

	if (time > TIME_MAX) {
		snprintf(p->err, sizeof(p->err),
			"time %" PRIu64 " doesn't fit in 63 bits of %s, the limit of VCD readers",
			entry->tick, vcd->is_in_ps ? "ps" : "ns");
		return NULL;
	}
	if (is_back)
		bc_print_lose(p, BC_HAS_TIME);
	vcd->raw = raw;
	vcd->ahead = ahead;
	vcd->epoch = entry->epoch;
	if (vcd->has_time && (uint64_t)time == vcd->time) {
		bc_print_lose(p, BC_CAN_REFERENCE);
		return out;
	}
	vcd->has_time = true;
	return write_time(vcd, out, (uint64_t)time);
}

static int print_vcd(void *state, struct bc_print *p)
{
	struct vcd *vcd = state;

	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++) {
		const struct bc_entry *entry = p->entries;
		uint32_t has = entry->has;
		char *out = advance_to(vcd, p, p->out + p->used, entry);
		if (out == NULL)
			return -ERANGE;
		if (vcd->has_bit_signals) {
			out = write_all_signals(vcd, p, out, entry);
			if (out == NULL)
				return -ERANGE;
			p->used = (size_t)(out - p->out);
			continue;
		}
		out = write_bits(out, vcd->seq++, variables[SEQ].id);
		out = write_value(vcd, out, ADDR, entry->addr, true);
		out = write_type(vcd, out, entry->type);
		out = write_value(vcd, out, SIZE, entry->size, (has & BC_HAS_SIZE) != 0);
		out = write_value(vcd, out, ATTR, entry->attr, (has & BC_HAS_ATTR) != 0);
		out = write_value(vcd, out, PROC, entry->proc, (has & BC_HAS_PROC) != 0);
		p->used = (size_t)(out - p->out);
	}
	return 0;
}

/* Writes one more timestamp, so that viewers show the last reference. */
static bool print_tail(void *state, struct bc_print *p)
{
	struct vcd *vcd = state;

	if (vcd->has_time && vcd->time <= TIME_MAX - vcd->step)
		p->used = (size_t)(write_time(vcd, p->out + p->used, vcd->time + vcd->step) -
				   p->out);
	return true;
}

const struct bc_printer bc_vcd_printer = {.state_bytes = sizeof(struct vcd),
	.init = vcd_init,
	.head = print_head,
	.print = print_vcd,
	.tail = print_tail};
