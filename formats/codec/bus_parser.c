/* Parsers of the bus formats without frames: raw6 (formats/bus/sample.h) and BYU in its dialects
 * (formats/bus/record.h). */
#include "formats/codec/codecs.h"

#include <stdbool.h>

#include "formats/bus/record.h"
#include "formats/bus/sample.h"

static void raw6_init(void *state, const struct bc_format_options *options)
{
	(void)options;
	bc_mapping_init(state, NULL);
}

static enum bc_parse_end parse_raw6(void *state, struct bc_parse *p)
{
	for (; p->at < p->end; p->at += BC_SAMPLE_BYTES, p->number++) {
		if (!bc_parse_has_room(p))
			return BC_PARSE_FULL;
		struct bc_entry *entry = &p->entries[p->count++];
		bc_entry_of_sample(
			entry, (const uint8_t *)p->at, state, 0, p->number, p->number + 1);
		/* The format has no processor and no time. */
		entry->traits &= ~(uint32_t)(BC_TRAIT_PROC | BC_TRAIT_TIME);
	}
	return BC_PARSE_DONE;
}

/* Each sample takes one tick; the first is at tick 1. */
const struct bc_parser bc_raw6_parser = {.record_bytes = BC_SAMPLE_BYTES,
	.state_bytes = sizeof(struct bc_mapping),
	.init = raw6_init,
	.parse = parse_raw6};

struct byu {
	uint64_t tick;   /* the sum of the times so far, without BC_TIME_NONE */
	bool is_inexact; /* an earlier record, other than the first, has no delta */
};

static inline enum bc_parse_end parse_records(
	struct byu *byu, struct bc_parse *p, enum bc_format format)
{
	size_t bytes = bc_dialect_bytes(format);

	for (; p->at < p->end; p->at += bytes, p->number++) {
		uint64_t addr;
		uint64_t time;
		if (!bc_parse_has_room(p))
			return BC_PARSE_FULL;
		const uint8_t *meta = bc_dialect_fields(
			(const uint8_t *)p->at, format, &addr, &time);
		uint64_t delta = time != BC_TIME_NONE ? time : 0;
		if (__builtin_add_overflow(byu->tick, delta, &byu->tick)) {
			byu->tick -= delta;
			return bc_parse_bad(p, p->at, "its time leads beyond 2^64 ticks");
		}
		byu->is_inexact |= time == BC_TIME_NONE && p->number != 0;
		struct bc_entry *entry = &p->entries[p->count++];
		bc_entry_reference(entry, meta[0], addr, p->number);
		entry->traits = BC_TRAIT_SIZE | BC_TRAIT_ATTR | BC_TRAIT_PROC | BC_TRAIT_TIME;
		entry->size = meta[1];
		entry->attr = meta[2];
		entry->proc = meta[3];
		entry->delta = time;
		entry->has_delta = true;
		entry->is_inexact = byu->is_inexact;
		entry->tick = byu->tick;
	}
	return BC_PARSE_DONE;
}

static void skip_byu(void *state, const uint8_t *records, size_t n)
{
	struct byu *byu = state;

	for (size_t i = 0; i < n; i++) {
		uint32_t time = bc_le32(records + i * BC_RECORD_BYTES + 8);
		byu->tick += time != BC_TIME_NONE ? time : 0;
		byu->is_inexact |= time == BC_TIME_NONE;
	}
}

/* One function per dialect, so that the dialect is a compile-time constant. */
#define DIALECT(name, format, bytes, skip_records)                             \
	static enum bc_parse_end parse_##name(void *state, struct bc_parse *p) \
	{                                                                      \
		return parse_records(state, p, format);                        \
	}                                                                      \
	const struct bc_parser bc_##name##_parser = {.record_bytes = (bytes),  \
		.state_bytes = sizeof(struct byu),                             \
		.parse = parse_##name,                                         \
		.skip = (skip_records)}

DIALECT(byu, BC_FORMAT_BYU, 12, skip_byu);
DIALECT(byu16, BC_FORMAT_BYU16, 16, NULL);
DIALECT(byu24, BC_FORMAT_BYU24, 24, NULL);
DIALECT(byu_be, BC_FORMAT_BYU_BE, 12, NULL);
