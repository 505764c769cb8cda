/* A small segment for tests of damage, with several chunks and events: its bytes, and for each
 * chunk the expected records and the expected output of `buscap dump`. */
#ifndef BC_TESTS_SUPPORT_SMALL_SEGMENT_H
#define BC_TESTS_SUPPORT_SMALL_SEGMENT_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/segment/segment_index.h"
#include "formats/segment/segment_reader.h"
#include "formats/segment/segment_writer.h"
#include "tests/support/command_run.h"
#include "tests/support/segments.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

#define SMALL_CHUNKS    6u
#define SMALL_RECORDS   46u /* in all chunks */
#define SMALL_RECORDING "20261120T091500Z-3f9a2c"

struct small_chunk {
	size_t begin; /* offset in the file */
	size_t end;
	uint64_t first_record;
	uint32_t records;
	uint32_t epoch;
	uint8_t bytes[16 * BC_RECORD_BYTES];
	char text[2048]; /* output of dump */
};

struct small_segment {
	char name[BC_ATOMIC_FILE_NAME_MAX];
	uint8_t *bytes;
	size_t size;
	size_t summary_at;
	size_t index_at;
	struct small_chunk chunks[SMALL_CHUNKS];
	struct test_edges edges; /* where its parts begin and end */
};

/* The chunks: records, epoch, and one event. */
static const struct {
	uint32_t records;
	uint32_t epoch;
	struct bc_event event;
	const char *text; /* of the event */
	const char *line; /* output of dump for the event */
} small_plan[SMALL_CHUNKS] = {
	{10, 0, {.kind = BC_EVENT_MARK, .position = 4, .text_bytes = 7}, "a\nmark\\",
		"# mark: a\\x0amark\\x5c\n"},
	{7, 0,
		{.kind = BC_EVENT_GAP,
			.position = 2,
			.cause = BC_GAP_BOARD,
			.exact = true,
			.value = 123},
		NULL, "# gap: 123 samples lost (board)\n"},
	{12, 0, {.kind = BC_EVENT_GAP, .position = 0, .cause = BC_GAP_CRC, .value = 5}, NULL,
		"# gap: at least 5 samples lost (crc)\n"},
	{8, 0, {.kind = BC_EVENT_GAP, .position = 8, .cause = BC_GAP_SEQUENCE}, NULL,
		"# gap: an unknown number of samples lost (sequence)\n"},
	{0, 0,
		{.kind = BC_EVENT_GAP,
			.position = 0,
			.cause = BC_GAP_BUFFER,
			.exact = true,
			.value = 1},
		NULL, "# gap: 1 sample lost (buffer)\n"},
	{9, 1, {.kind = BC_EVENT_TRIGGER, .position = 3}, NULL, "# trigger\n"},
};

static const struct {
	uint8_t reqtype;
	const char *name;
} small_types[] = {{BC_REQ_FETCH, "FETCH"}, {BC_REQ_MEMREAD, "MEMREAD"},
	{BC_REQ_IOWRITE, "IOWRITE"}, {0xF2, "f2"}, {BC_REQ_CNTRLAGNTRES, "CNTRLAGNTRES"}};

/* Fills a chunk and its expected contents according to the plan. */
static inline void small_fill(struct bc_chunk *chunk, struct small_chunk *expected, unsigned number,
	uint64_t first_record, uint64_t *tick)
{
	struct bc_event event = small_plan[number].event;
	char *text = expected->text;
	bool is_new = first_record == 0 || number == SMALL_CHUNKS - 1;

	bc_chunk_reset(chunk, *tick, small_plan[number].epoch);
	chunk->info.recording_tag = bc_recording_tag(SMALL_RECORDING);
	chunk->info.first_record = first_record;
	chunk->info.wall_ns = INT64_C(1795166100000000000) + number;
	expected->first_record = first_record;
	expected->records = small_plan[number].records;
	expected->epoch = small_plan[number].epoch;
	if (is_new) {
		*tick = 1000;
		struct bc_event anchor = {.kind = BC_EVENT_ANCHOR, .exact = true, .value = *tick};
		assert_true(bc_chunk_add_event(chunk, &anchor, NULL));
	}
	assert_true(bc_chunk_add_event(chunk, &event, small_plan[number].text));
	for (uint32_t i = 0; i <= expected->records; i++) {
		if (i == event.position)
			text += sprintf(text, "%s", small_plan[number].line);
		if (i == expected->records)
			break;
		uint64_t n = first_record + i;
		size_t type = n % (COUNT_OF(small_types));
		struct bc_record record = {
			.addr = (uint32_t)(n * 0x01234567 + 0xABC),
			.reqtype = small_types[type].reqtype,
			.size = n % 7 == 0 ? 32 : 8,
			.attr = (uint8_t)(n % 4),
			.proc = (uint8_t)(n % 3),
			.time = is_new && i == 0 ? BC_TIME_NONE : (uint32_t)(n * 3 + 1),
		};
		*tick += record.time != BC_TIME_NONE ? record.time : 0;
		if (i == 0)
			chunk->info.first_tick = *tick;
		chunk->info.last_tick = *tick;
		bc_record_store(chunk->records + (size_t)i * BC_RECORD_BYTES, &record);
		text += sprintf(text, "%08" PRIx32 "\t%s\t%2u\t%02x\t%u\t%08" PRIx32 "\n",
			record.addr, small_types[type].name, record.size, record.attr, record.proc,
			record.time);
	}
	chunk->info.records = expected->records;
	memcpy(expected->bytes, chunk->records, (size_t)expected->records * BC_RECORD_BYTES);
}

/* Writes segment `number` of the recording with the real writer. Its first record is
 * `first_record`. */
static inline void small_make(
	struct small_segment *s, const struct temp_dir *dir, uint32_t number, uint64_t first_record)
{
	struct bc_segment_header header = {
		.recording = SMALL_RECORDING,
		.label = "boot",
		.segment = number,
		.source_kind = "sim",
		.source_name = "sim",
		.clock_hz = 66000000,
		.host = "lab",
		.program = "buscapd 0.0.0",
		.wall_ns = INT64_C(1795166100000000000),
		.first_tick = 1000,
		.first_record = first_record,
		.metadata = "{\"who\":\"me\",\"n\":[1,2]}",
	};
	struct bc_segment_writer writer;
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	uint64_t tick = 1000 + first_record;

	memset(s, 0, sizeof(*s));
	snprintf(s->name, sizeof(s->name), SMALL_RECORDING "-%05" PRIu32 ".byu.lz4", number);
	assert_int_equal(bc_segment_create(&writer, dir->fd, s->name, ".partial", &header), 0);
	for (unsigned i = 0; i < SMALL_CHUNKS; i++) {
		struct small_chunk *expected = &s->chunks[i];
		small_fill(chunk, expected, i, first_record, &tick);
		expected->begin = writer.file.bytes;
		test_edges_add(&s->edges, expected->begin);
		bool is_gap = small_plan[i].event.kind == BC_EVENT_GAP;
		size_t header_bytes = segment_append(
			&writer, chunk, is_gap, is_gap ? small_plan[i].event.value : 0);
		test_edges_add(&s->edges, expected->begin + header_bytes);
		expected->end = writer.file.bytes;
		first_record += expected->records;
	}
	s->summary_at = writer.file.bytes;
	assert_int_equal(bc_segment_seal(&writer), 0);
	s->bytes = temp_read(dir, s->name, &s->size);
	s->index_at = s->size - bc_index_bytes(SMALL_CHUNKS);
	test_edges_add(&s->edges, 0);
	test_edges_add(&s->edges, BC_EMPTY_FRAME_BYTES);
	test_edges_add(&s->edges, s->summary_at);
	test_edges_add(&s->edges, s->index_at);
	test_edges_add(&s->edges, s->size);
	free(chunk);
}

/* Writes the expected output of dump if only the chunks in `keep` are readable. Returns its length.
 */
static inline size_t small_expect(
	char *out, const struct small_segment *s, const bool keep[SMALL_CHUNKS])
{
	uint64_t lost = 0;
	char *p = out;
	bool has_epoch = false;
	uint32_t epoch = 0;

	for (unsigned i = 0; i < SMALL_CHUNKS; i++) {
		if (!keep[i]) {
			lost += s->chunks[i].records;
			continue;
		}
		if (lost != 0)
			p += sprintf(p, "# gap: %" PRIu64 " samples lost (damaged)\n", lost);
		lost = 0;
		if (has_epoch && epoch != s->chunks[i].epoch)
			p += sprintf(p, "# epoch %" PRIu32 "\n", s->chunks[i].epoch);
		has_epoch = true;
		epoch = s->chunks[i].epoch;
		p += sprintf(p, "%s", s->chunks[i].text);
	}
	*p = '\0';
	return (size_t)(p - out);
}

#endif
