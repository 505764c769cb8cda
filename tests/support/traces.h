/* The simulated bus in the formats bcp1, raw6, BYU and its dialects, optionally compressed. */
#ifndef BC_TESTS_SUPPORT_TRACES_H
#define BC_TESTS_SUPPORT_TRACES_H

#include <stdlib.h>
#include <string.h>

#include <lz4frame.h>

#include "capture/sim/sim.h"
#include "formats/base/bytes.h"
#include "formats/bus/record.h"
#include "formats/bus/sample.h"
#include "formats/codec/input.h"
#include "tests/support/test.h"

struct trace {
	uint8_t *bytes; /* freed by trace_free() */
	size_t n;
};

static inline void trace_free(struct trace *trace)
{
	free(trace->bytes);
	trace->bytes = NULL;
	trace->n = 0;
}

static inline struct trace trace_of_sim(uint64_t seed, uint64_t samples, unsigned agents)
{
	struct bc_sim_options options = {.seed = seed, .count = samples, .agents = agents};
	struct trace trace = {.bytes = malloc(samples * 40 + BC_SIM_FRAME_MAX)};
	struct bc_sim *sim;

	assert_non_null(trace.bytes);
	assert_int_equal(bc_sim_open(&sim, &options), 0);
	for (size_t n; (n = bc_sim_next(sim, 1000, UINT64_MAX, trace.bytes + trace.n)) != 0;)
		trace.n += n;
	bc_sim_close(sim);
	return trace;
}

/* Converts an intact bcp1 trace to raw6. */
static inline struct trace trace_to_raw6(const struct trace *bcp1)
{
	struct trace trace = {.bytes = malloc(bcp1->n)};
	struct bc_bcp1_header header;

	assert_non_null(trace.bytes);
	for (size_t at = 0; at < bcp1->n; at += bc_bcp1_frame_bytes(header.samples)) {
		assert_true(bc_bcp1_read_header(&header, bcp1->bytes + at));
		const uint8_t *p = bcp1->bytes + at + BC_BCP1_HEADER_BYTES;
		for (uint32_t i = 0; i < header.samples; i++, p += BC_BCP1_SAMPLE_BYTES) {
			memcpy(trace.bytes + trace.n, p, BC_SAMPLE_BYTES);
			trace.n += BC_SAMPLE_BYTES;
		}
	}
	return trace;
}

/* Writes a record in a dialect of BYU. Returns its length. */
static inline size_t trace_write_record(
	uint8_t *out, const struct bc_record *r, enum bc_format format)
{
	uint8_t meta[4] = {r->reqtype, r->size, r->attr, r->proc};

	switch (format) {
	case BC_FORMAT_BYU_BE:
		bc_write_be32(out, r->addr);
		memcpy(out + 4, meta, 4);
		bc_write_be32(out + 8, r->time);
		return 12;
	case BC_FORMAT_BYU16:
		bc_write_le64(out, r->addr);
		memcpy(out + 8, meta, 4);
		bc_write_le32(out + 12, r->time);
		return 16;
	case BC_FORMAT_BYU24:
		bc_write_le64(out, r->addr);
		memcpy(out + 8, meta, 4);
		memset(out + 12, 0, 4);
		bc_write_le64(out + 16, r->time);
		return 24;
	default:
		bc_record_store(out, r);
		return 12;
	}
}

/* Converts an intact bcp1 trace to a dialect of BYU, like a recording. */
static inline struct trace trace_to_byu(const struct trace *bcp1, enum bc_format format)
{
	struct trace trace = {.bytes = malloc(bcp1->n * 3 + 24)};
	struct bc_mapping_options options = bc_mapping_options_default();
	struct bc_mapping *mapping = malloc(sizeof(*mapping));
	struct bc_bcp1_header header;
	uint64_t before = 0;

	assert_non_null(trace.bytes);
	assert_non_null(mapping);
	bc_mapping_init(mapping, &options);
	for (size_t at = 0; at < bcp1->n; at += bc_bcp1_frame_bytes(header.samples)) {
		assert_true(bc_bcp1_read_header(&header, bcp1->bytes + at));
		const uint8_t *p = bcp1->bytes + at + BC_BCP1_HEADER_BYTES;
		uint64_t tick = header.tick;
		for (uint32_t i = 0; i < header.samples; i++, p += BC_BCP1_SAMPLE_BYTES) {
			uint64_t entry = bc_map_entry(mapping, p);
			uint8_t record[BC_RECORD_BYTES];
			tick += bc_le16(p + 6);
			if ((entry & BC_MAP_DROP) != 0)
				continue;
			bc_map_sample(record, entry, p,
				header.flags & BC_BCP1_AGENT ? p[5] & 15 : header.proc);
			bc_write_le32(record + 8,
				trace.n == 0 ? BC_TIME_NONE : (uint32_t)(tick - before));
			struct bc_record r = bc_record_load(record);
			trace.n += trace_write_record(trace.bytes + trace.n, &r, format);
			before = tick;
		}
	}
	free(mapping);
	return trace;
}

/* Compresses to one LZ4 frame with blocks of 64 KiB. */
static inline struct trace trace_to_lz4(const struct trace *plain, int has_checksum)
{
	LZ4F_preferences_t preferences = {
		.frameInfo = {.blockSizeID = LZ4F_max64KB,
			.blockMode = LZ4F_blockIndependent,
			.contentChecksumFlag = has_checksum ? LZ4F_contentChecksumEnabled
							    : LZ4F_noContentChecksum},
	};
	size_t capacity = LZ4F_compressFrameBound(plain->n, &preferences);
	struct trace trace = {.bytes = malloc(capacity)};

	assert_non_null(trace.bytes);
	trace.n = LZ4F_compressFrame(trace.bytes, capacity, plain->bytes, plain->n, &preferences);
	assert_false(LZ4F_isError(trace.n));
	return trace;
}

#endif
