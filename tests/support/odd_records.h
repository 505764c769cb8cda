/* Records of every character, likely and odd, for tests of the record encoder. */
#ifndef BC_TESTS_SUPPORT_ODD_RECORDS_H
#define BC_TESTS_SUPPORT_ODD_RECORDS_H

#include <string.h>

#include "formats/bus/record.h"
#include "tests/support/dice.h"

enum odd_kind {
	ODD_BUS,     /* a piece of a trace */
	ODD_EDITED,  /* the same, with some bytes changed */
	ODD_COPIES,  /* pieces of a trace, repeated at random distances, with some bytes changed */
	ODD_EQUAL,   /* one record */
	ODD_RANDOM,  /* random bytes */
	ODD_ADDRESS, /* one field is random, the others constant */
	ODD_TYPE,
	ODD_TIME,
	ODD_SEQUENCE, /* rising addresses, constant time */
	ODD_JITTER,   /* rising addresses, small random times */
	ODD_PERIOD,   /* a few records in turn */
	ODD_SPARSE,   /* zero, with a few random bytes */
	ODD_MIX,      /* a trace, then random bytes, then a trace */
	ODD_KINDS,
};

static inline void odd_edit(struct dice *dice, uint8_t *bytes, size_t n, uint32_t one_in)
{
	for (size_t i = dice_below(dice, one_in); i < n; i += 1 + dice_below(dice, 2 * one_in))
		bytes[i] = (uint8_t)(dice_below(dice, 2) ? dice_roll(dice) >> 40
							 : bytes[i] ^ 1u << dice_below(dice, 8));
}

static inline void odd_trace(
	struct dice *dice, uint8_t *out, size_t bytes, const uint8_t *trace, size_t trace_records)
{
	size_t records = bytes / BC_RECORD_BYTES + 1;
	size_t first = trace_records > records
			       ? dice_below(dice, (uint32_t)(trace_records - records))
			       : 0;

	for (size_t done = 0; done < bytes;) {
		size_t n = (trace_records - first) * BC_RECORD_BYTES;
		n = n < bytes - done ? n : bytes - done;
		memcpy(out + done, trace + first * BC_RECORD_BYTES, n);
		done += n;
	}
}

static inline void odd_copies(struct dice *dice, uint8_t *out, size_t bytes)
{
	for (size_t at = 8 * BC_RECORD_BYTES; at < bytes;) {
		uint32_t back = 1 + dice_below(dice, (uint32_t)(at / BC_RECORD_BYTES));
		size_t n = (1 + dice_below(dice, 40)) * BC_RECORD_BYTES;
		n = n < bytes - at ? n : bytes - at;
		for (size_t i = 0; i < n; i++)
			out[at + i] = out[at + i - (size_t)back * BC_RECORD_BYTES];
		odd_edit(dice, out + at, n, 100);
		at += n;
	}
}

/* Fills `out` with `bytes` bytes, not necessarily whole records. `trace` has at least one record.
 */
static inline void odd_records(struct dice *dice, enum odd_kind kind, uint8_t *out, size_t bytes,
	const uint8_t *trace, size_t trace_records)
{
	uint8_t one[BC_RECORD_BYTES];
	uint32_t period = 1 + dice_below(dice, 20);

	dice_fill(dice, one, sizeof(one));
	switch (kind) {
	case ODD_BUS:
	case ODD_EDITED:
	case ODD_COPIES:
	case ODD_MIX:
		odd_trace(dice, out, bytes, trace, trace_records);
		break;
	case ODD_RANDOM:
	case ODD_PERIOD:
		dice_fill(dice, out, bytes);
		break;
	case ODD_SPARSE:
		memset(out, 0, bytes);
		odd_edit(dice, out, bytes, 100);
		break;
	default:
		for (size_t i = 0; i < bytes; i++)
			out[i] = one[i % BC_RECORD_BYTES];
		break;
	}
	if (kind == ODD_EDITED)
		odd_edit(dice, out, bytes, 1 + dice_below(dice, 200));
	if (kind == ODD_COPIES)
		odd_copies(dice, out, bytes);
	if (kind == ODD_MIX)
		dice_fill(dice, out + bytes / 3, bytes / 3);
	for (size_t at = 0; at + BC_RECORD_BYTES <= bytes; at += BC_RECORD_BYTES) {
		struct bc_record r = bc_record_load(out + at);
		switch (kind) {
		case ODD_ADDRESS:
			r.addr = (uint32_t)dice_roll(dice);
			break;
		case ODD_TYPE:
			r.reqtype = (uint8_t)dice_roll(dice);
			break;
		case ODD_TIME:
			r.time = (uint32_t)dice_roll(dice);
			break;
		case ODD_JITTER:
			r.time = 3 + dice_below(dice, 6);
			r.addr += 8 * (uint32_t)(at / BC_RECORD_BYTES);
			break;
		case ODD_SEQUENCE:
			r.addr += 8 * (uint32_t)(at / BC_RECORD_BYTES);
			break;
		case ODD_PERIOD:
			if (at >= period * BC_RECORD_BYTES)
				r = bc_record_load(out + at - period * BC_RECORD_BYTES);
			break;
		default:
			break;
		}
		bc_record_store(out + at, &r);
	}
}

#endif
