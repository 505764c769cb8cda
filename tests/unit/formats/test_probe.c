#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/bus/bcp1.h"
#include "formats/codec/probe.h"
#include "formats/segment/segment.h"
#include "formats/segment/segment_header.h"
#include "tests/support/compressor.h"
#include "tests/support/dice.h"
#include "tests/support/failing_heap.h"
#include "tests/support/test.h"
#include "tests/support/traces.h"

static struct bc_chunk_pages chunk_pages;

#define SEEDS   10
#define SAMPLES 12000u /* more than bc_probe() examines, in every format */

static const enum bc_format plain_formats[] = {
	BC_FORMAT_RAW6, BC_FORMAT_BYU, BC_FORMAT_BYU_BE, BC_FORMAT_BYU16, BC_FORMAT_BYU24};

#define PLAIN_FORMATS (COUNT_OF(plain_formats))

/* The simulated bus of one seed in every format. */
static struct trace make_trace(const struct trace *bcp1, enum bc_format format)
{
	return format == BC_FORMAT_RAW6 ? trace_to_raw6(bcp1) : trace_to_byu(bcp1, format);
}

static size_t at_most(size_t n, size_t most)
{
	return n < most ? n : most;
}

/* Probes a whole head. There must be a format or a reason. */
static struct bc_probe probe_whole(const uint8_t *bytes, size_t n)
{
	struct bc_probe probe;
	bool is_all = n <= BC_PROBE_BYTES;

	memset(&probe, 0xEE, sizeof(probe));
	assert_true(bc_probe(&probe, bytes, at_most(n, BC_PROBE_BYTES), is_all, BC_WINDOW_LOG));
	assert_true(probe.format < BC_FORMATS);
	assert_non_null(memchr(probe.err, '\0', sizeof(probe.err)));
	assert_true(probe.format != BC_FORMAT_UNKNOWN || probe.err[0] != '\0');
	return probe;
}

static void assert_detected(const struct trace *trace, enum bc_format format, bool is_lz4)
{
	struct bc_probe probe = probe_whole(trace->bytes, trace->n);

	if (probe.format != format)
		fail_msg("%s was detected as %s: %s", bc_format_name(format),
			bc_format_name(probe.format), probe.err);
	assert_int_equal(probe.packing == BC_PACKING_LZ4, is_lz4);
}

/* Probes growing prefixes of the head. A final answer must not change later. */
static void assert_final_answers_stay(const uint8_t *bytes, size_t n, size_t step)
{
	struct bc_probe last = probe_whole(bytes, n);
	bool has_answered = false;

	for (size_t part = 0; part < at_most(n, BC_PROBE_BYTES); part += step * test_stride(15)) {
		struct bc_probe probe;
		uint8_t *head = malloc(part + 1);
		assert_non_null(head);
		memcpy(head, bytes, part); /* exact size: finds reads past the end */
		head = realloc(head, part != 0 ? part : 1);
		if (bc_probe(&probe, head, part, false, BC_WINDOW_LOG)) {
			has_answered = true;
			assert_int_equal(probe.format, last.format);
			assert_int_equal(probe.packing, last.packing);
		} else {
			assert_false(has_answered);
		}
		probe_whole(head, part); /* the file might end here */
		free(head);
	}
}

static struct trace make_segment(bool has_chunk)
{
	struct bc_segment_header header = {.recording = "20261120T091500Z-3f9a2c", .clock_hz = 5};
	struct trace trace = {.bytes = malloc(BC_SEGMENT_HEADER_MAX + BC_CHUNK_ENCODED_MAX)};
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	size_t header_bytes;
	uint8_t *head;

	assert_non_null(trace.bytes);
	assert_non_null(chunk);
	assert_int_equal(bc_segment_header_write(&head, &trace.n, &header), 0);
	memcpy(trace.bytes, head, trace.n);
	free(head);
	if (has_chunk) {
		bc_chunk_reset(chunk, 7, 0);
		chunk->info.records = 50;
		memset(chunk->records, 0, 50 * BC_RECORD_BYTES);
		assert_true(bc_chunk_add_event(
			chunk, &(struct bc_event){.kind = BC_EVENT_MARK, .text_bytes = 4}, "mark"));
		trace.n += bc_chunk_encode(trace.bytes + trace.n, chunk, &test_compressor,
			&chunk_pages, &header_bytes);
	}
	free(chunk);
	return trace;
}

TEST(a_segment_is_detected_by_its_start)
{
	for (int has_chunk = 0; has_chunk < 2; has_chunk++) {
		struct trace segment = make_segment(has_chunk);
		assert_detected(&segment, BC_FORMAT_SEGMENT, false);
		assert_final_answers_stay(segment.bytes, segment.n, 1);
		/* Every prefix with the whole empty frame is the start of a segment. */
		for (size_t n = BC_EMPTY_FRAME_BYTES; n <= segment.n; n += test_stride(7))
			assert_int_equal(probe_whole(segment.bytes, n).format, BC_FORMAT_SEGMENT);
		trace_free(&segment);
	}
}

TEST(a_segment_with_a_damaged_start_is_detected_by_the_rest)
{
	struct trace segment = make_segment(true);

	for (size_t at = 0; at < segment.n; at += test_stride(7)) {
		segment.bytes[at] ^= 0x55;
		assert_detected(&segment, BC_FORMAT_SEGMENT, false);
		segment.bytes[at] ^= 0x55;
	}
	/* The end mark of its first frame has become the length of a block, but too large a one. */
	bc_write_le32(segment.bytes + 7, 0xFFFFFFFB);
	assert_detected(&segment, BC_FORMAT_SEGMENT, false);
	bc_write_le32(segment.bytes + 7, 0);
	for (size_t cut = 0; cut < 40; cut++) { /* the start is missing */
		struct trace rest = {segment.bytes + cut, segment.n - cut};
		assert_detected(&rest, BC_FORMAT_SEGMENT, false);
	}
	trace_free(&segment);
}

/* An empty frame may precede other LZ4 frames; it does not make a segment by itself. */
TEST(an_empty_lz4_frame_before_lz4_is_not_a_segment)
{
	struct trace bcp1 = trace_of_sim(1, 2000, 1);
	struct trace byu = trace_to_byu(&bcp1, BC_FORMAT_BYU);
	struct trace packed = trace_to_lz4(&byu, true);
	struct trace both = {malloc(packed.n + BC_EMPTY_FRAME_BYTES), 0};

	assert_non_null(both.bytes);
	memcpy(both.bytes, bc_frames_info[BC_FRAMES_LZ4].empty, BC_EMPTY_FRAME_BYTES);
	memcpy(both.bytes + BC_EMPTY_FRAME_BYTES, packed.bytes, packed.n);
	both.n = packed.n + BC_EMPTY_FRAME_BYTES;
	assert_detected(&both, BC_FORMAT_BYU, true);
	assert_final_answers_stay(both.bytes, both.n, 1);
	trace_free(&both);
	trace_free(&packed);
	trace_free(&byu);
	trace_free(&bcp1);
}

TEST(the_simulated_bus_is_detected_in_every_format)
{
	for (uint64_t seed = 0; seed < SEEDS; seed += test_stride(3)) {
		for (unsigned agents = 1; agents <= 4; agents += 3) {
			struct trace bcp1 = trace_of_sim(seed, SAMPLES, agents);
			assert_detected(&bcp1, BC_FORMAT_BCP1, false);
			for (size_t i = 0; i < PLAIN_FORMATS; i++) {
				struct trace trace = make_trace(&bcp1, plain_formats[i]);
				assert_detected(&trace, plain_formats[i], false);
				trace_free(&trace);
			}
			trace_free(&bcp1);
		}
	}
}

TEST(a_compressed_trace_is_detected_by_its_content)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct trace bcp1 = trace_of_sim(seed, SAMPLES, 1);
		struct trace packed = trace_to_lz4(&bcp1, true);
		assert_detected(&packed, BC_FORMAT_BCP1, true);
		trace_free(&packed);
		for (size_t i = 0; i < PLAIN_FORMATS; i++) {
			struct trace trace = make_trace(&bcp1, plain_formats[i]);
			packed = trace_to_lz4(&trace, false);
			assert_detected(&packed, plain_formats[i], true);
			trace_free(&packed);
			trace_free(&trace);
		}
		trace_free(&bcp1);
	}
}

/* A file cut at any position must be detected correctly or not at all, but never as another
 * format. */
TEST(no_prefix_of_the_simulated_bus_is_misdetected)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct trace bcp1 = trace_of_sim(seed, 2000, 1 + seed % 4);
		for (size_t n = seed % test_stride(15); n <= 1000; n += test_stride(15)) {
			enum bc_format format = probe_whole(bcp1.bytes, n).format;
			if (n >= 4) /* the magic is there: torn, but nothing else */
				assert_int_equal(format, BC_FORMAT_BCP1);
			else
				assert_int_equal(format, BC_FORMAT_UNKNOWN);
		}
		for (size_t i = 0; i < PLAIN_FORMATS; i++) {
			struct trace trace = make_trace(&bcp1, plain_formats[i]);
			for (size_t n = seed % test_stride(15); n <= 2400; n += test_stride(15)) {
				enum bc_format format = probe_whole(trace.bytes, n).format;
				if (format != BC_FORMAT_UNKNOWN && format != plain_formats[i])
					fail_msg("%zu bytes of %s, seed %u, were detected as %s", n,
						bc_format_name(plain_formats[i]), (unsigned)seed,
						bc_format_name(format));
			}
			trace_free(&trace);
		}
		trace_free(&bcp1);
	}
}

TEST(a_capture_that_starts_in_mid_frame_is_bcp1)
{
	struct trace bcp1 = trace_of_sim(3, SAMPLES, 2);

	for (size_t cut = 1; cut < 9000; cut += 31) {
		struct trace rest = {bcp1.bytes + cut, bcp1.n - cut};
		assert_detected(&rest, BC_FORMAT_BCP1, false);
	}
	trace_free(&bcp1);
}

TEST(final_answers_do_not_change)
{
	struct trace bcp1 = trace_of_sim(5, SAMPLES, 1);
	struct trace packed = trace_to_lz4(&bcp1, true);

	assert_final_answers_stay(bcp1.bytes, bcp1.n, 61);
	assert_final_answers_stay(packed.bytes, packed.n, 997);
	trace_free(&packed);
	for (size_t i = 0; i < PLAIN_FORMATS; i++) {
		struct trace trace = make_trace(&bcp1, plain_formats[i]);
		packed = trace_to_lz4(&trace, true);
		assert_final_answers_stay(trace.bytes, trace.n, 1499);
		assert_final_answers_stay(packed.bytes, packed.n, 1499);
		trace_free(&packed);
		trace_free(&trace);
	}
	trace_free(&bcp1);
}

static bool names(const struct bc_probe *probe, enum bc_format format)
{
	char words[sizeof(probe->err) + 2];
	char word[32];

	snprintf(words, sizeof(words), " %s", probe->err);
	for (char *p = words; *p != '\0'; p++)
		if (*p == ':' || *p == ',')
			*p = ' ';
	snprintf(word, sizeof(word), " %s ", bc_format_name(format));
	return strstr(words, word) != NULL;
}

TEST(an_empty_file_is_reported_as_empty)
{
	struct bc_probe probe = probe_whole((const uint8_t *)"", 0);
	struct trace nothing = {(uint8_t *)"", 0};
	struct trace packed = trace_to_lz4(&nothing, true);

	assert_int_equal(probe.format, BC_FORMAT_UNKNOWN);
	assert_int_equal(probe.packing, BC_PACKING_NONE);
	assert_non_null(strstr(probe.err, "empty"));
	probe = probe_whole(packed.bytes, packed.n);
	assert_int_equal(probe.format, BC_FORMAT_UNKNOWN);
	assert_int_equal(probe.packing, BC_PACKING_LZ4);
	assert_non_null(strstr(probe.err, "empty"));
	trace_free(&packed);
}

TEST(an_ambiguous_file_is_reported_with_all_formats)
{
	static const uint8_t zeros[480];

	for (size_t n = 24; n <= sizeof(zeros); n += 24) {
		struct bc_probe probe = probe_whole(zeros, n);
		assert_int_equal(probe.format, BC_FORMAT_UNKNOWN);
		assert_true(names(&probe, BC_FORMAT_BYU));
		assert_true(names(&probe, BC_FORMAT_BYU_BE));
		assert_true(names(&probe, BC_FORMAT_BYU16));
		assert_true(names(&probe, BC_FORMAT_BYU24));
		assert_false(names(&probe, BC_FORMAT_RAW6)); /* 0 is an invalid cycle */
		assert_false(names(&probe, BC_FORMAT_BCP1));
	}
}

/* Records with times that are plausible in both byte orders. */
TEST(byu_of_ambiguous_byte_order_is_reported)
{
	uint8_t bytes[100 * BC_RECORD_BYTES];

	for (uint32_t i = 0; i < 100; i++)
		bc_record_store(bytes + i * BC_RECORD_BYTES,
			&(struct bc_record){
				.addr = i * 8, .reqtype = 1, .size = 8, .attr = 3, .time = 0});
	struct bc_probe probe = probe_whole(bytes, sizeof(bytes));
	assert_int_equal(probe.format, BC_FORMAT_UNKNOWN);
	assert_true(names(&probe, BC_FORMAT_BYU));
	assert_true(names(&probe, BC_FORMAT_BYU_BE));
	assert_false(names(&probe, BC_FORMAT_BYU16));
}

TEST(noise_has_no_format)
{
	struct dice dice = {.state = 41};
	uint8_t *bytes = malloc(BC_PROBE_BYTES);

	assert_non_null(bytes);
	for (int i = 0; i < 50; i++) {
		size_t n = 600 + dice_below(&dice, BC_PROBE_BYTES - 600);
		dice_fill(&dice, bytes, n);
		struct bc_probe probe = probe_whole(bytes, n);
		assert_int_equal(probe.format, BC_FORMAT_UNKNOWN);
		assert_non_null(strstr(probe.err, "no known format"));
	}
	for (int i = 0; i < 2000; i++) { /* a few bytes may fit a format by chance, but there must
					    be a format or a reason */
		size_t n = dice_below(&dice, 100);
		dice_fill(&dice, bytes, n);
		probe_whole(bytes, n);
	}
	free(bytes);
}

/* Pictures, tables: values of one to four bytes, of which there are a few, in any order or in runs,
 * perhaps after a header. Most are such as a trace has. */
TEST(a_few_values_are_not_a_trace)
{
	static const uint8_t usual[] = {0, 0, 0, 1, 1, 2, 3, 4, 8, 0x10, 0x11, 0x20, 0x31, 0x55,
		0x80, 0x90, 0xC0, 0xD0, 0xE0, 0xF0, 0xFC, 0xFE, 0xFF};
	static uint8_t bytes[20000];
	struct dice dice = {.state = 47};

	for (unsigned i = 0; i < 3000; i++) {
		uint8_t values[4][4];
		unsigned width = 1 + dice_below(&dice, 4);
		unsigned count = 1 + dice_below(&dice, COUNT_OF(values));
		unsigned run = 1 + dice_below(&dice, 2) * dice_below(&dice, 50);
		size_t n = dice_below(&dice, 60);
		size_t end = 1000 + dice_below(&dice, sizeof(bytes) - 1000 - 200);
		dice_fill(&dice, bytes, n);
		for (unsigned v = 0; v < count * width; v++)
			values[v / width][v % width] =
				dice_below(&dice, 5) != 0
					? usual[dice_below(&dice, COUNT_OF(usual))]
					: (uint8_t)dice_roll(&dice);
		while (n < end) {
			const uint8_t *value = values[dice_below(&dice, count)];
			for (unsigned k = 0; k < run && n < end; k++, n += width)
				memcpy(bytes + n, value, width);
		}
		struct bc_probe probe = probe_whole(bytes, n);
		if (probe.format != BC_FORMAT_UNKNOWN)
			fail_msg("%u: %u values of %u bytes in runs of %u are %s", i, count, width,
				run, bc_format_name(probe.format));
	}
}

/* Of Pin's tools: the address of an instruction, that of its access, and flags. */
TEST(structures_of_other_tools_are_not_a_trace)
{
	struct dice dice = {.state = 48};
	uint8_t bytes[300 * 24];

	for (unsigned round = 0; round < 200; round++) {
		uint64_t base = round % 2 != 0 ? UINT64_C(0x7F0000000000) : 0x10000;
		unsigned writes = dice_below(&dice, 100);
		memset(bytes, 0, sizeof(bytes));
		for (unsigned i = 0; i < 300; i++) {
			uint8_t *p = bytes + i * (size_t)24;
			bc_write_le64(p, 0x400000 + dice_below(&dice, 0x2000));
			bc_write_le64(p + 8, base + dice_below(&dice, 0x100000));
			p[16] = dice_below(&dice, 100) < writes;
			p[17] = (uint8_t)(1u << dice_below(&dice, 4));
		}
		assert_int_equal(probe_whole(bytes, sizeof(bytes)).format, BC_FORMAT_UNKNOWN);
	}
}

/* Accesses of one type, of different sizes, as cut leaves them. */
TEST(a_trace_of_one_type_is_detected_by_its_sizes)
{
	struct trace bcp1 = trace_of_sim(11, SAMPLES, 1);

	for (size_t i = 1; i < PLAIN_FORMATS; i++) {
		struct trace all = make_trace(&bcp1, plain_formats[i]);
		size_t bytes = bc_dialect_bytes(plain_formats[i]);
		struct trace reads = {.bytes = malloc(all.n)};
		assert_non_null(reads.bytes);
		for (size_t at = 0; at + bytes <= all.n; at += bytes) {
			if (all.bytes[at + (bytes == BC_RECORD_BYTES ? 4 : 8)] != BC_REQ_MEMREAD)
				continue;
			memcpy(reads.bytes + reads.n, all.bytes + at, bytes);
			reads.n += bytes;
		}
		assert_detected(&reads, plain_formats[i], false);
		trace_free(&reads);
		trace_free(&all);
	}
	trace_free(&bcp1);
}

/* Only its start is examined, and the last line of that is cut off. */
TEST(a_long_compressed_text_is_detected)
{
	enum { LINES = 100000, LINE_BYTES = 7 };
	struct dice dice = {.state = 5};
	struct trace plain = {.bytes = malloc(LINES * LINE_BYTES + 1)};

	assert_non_null(plain.bytes);
	for (unsigned i = 0; i < LINES; i++)
		plain.n += (size_t)sprintf((char *)plain.bytes + plain.n, "0 %04x\n",
			(unsigned)dice_roll(&dice) & 0xFFFF);
	struct trace packed = trace_to_lz4(&plain, true);
	assert_true(packed.n > BC_PROBE_BYTES);
	assert_detected(&packed, BC_FORMAT_DIN, true);
	trace_free(&packed);
	trace_free(&plain);
}

TEST(out_of_memory_is_not_reported_as_damage)
{
	struct trace bcp1 = trace_of_sim(1, 100, 1);
	struct trace packed = trace_to_lz4(&bcp1, true);
	long failed = 0;

	do {
		struct bc_probe probe;
		failing_heap_start(failed++, false);
		assert_true(bc_probe(&probe, packed.bytes, packed.n, true, BC_WINDOW_LOG));
		failing_heap_stop();
		assert_int_equal(heap.live, 0);
		if (heap.has_failed)
			assert_string_equal(probe.err, "out of memory");
		else
			assert_int_equal(probe.format, BC_FORMAT_BCP1);
	} while (heap.has_failed);
	assert_true(failed > 2);
	trace_free(&packed);
	trace_free(&bcp1);
}

TEST(a_few_implausible_records_are_allowed)
{
	struct trace bcp1 = trace_of_sim(9, SAMPLES, 1);
	struct trace byu = trace_to_byu(&bcp1, BC_FORMAT_BYU);

	for (size_t i = 0; i < 20; i++)
		byu.bytes[i * 1200 + 4] = 0x99;
	assert_detected(&byu, BC_FORMAT_BYU, false);
	for (size_t i = 0; i < 2000; i += 4)
		byu.bytes[i * BC_RECORD_BYTES + 4] = 0x99;
	assert_detected(&byu, BC_FORMAT_UNKNOWN, false);
	trace_free(&byu);
	trace_free(&bcp1);
}

TEST(each_format_has_one_name_and_is_found_by_it)
{
	static const char *const words[BC_FORMATS] = {"unknown", "segment", "bcp1", "raw6", "byu",
		"byu16", "byu24", "byu-be", "laplace", "laplace-text", "laplace-events", "cis501",
		"tarmac", "din", "xdin", "lackey", "lines", "vcd", "perfetto", "rowbinary", "csv",
		"ndjson", "arrow"};

	for (unsigned format = 0; format < BC_FORMATS; format++) {
		assert_string_equal(bc_format_name((enum bc_format)format), words[format]);
		assert_int_equal(bc_format_by_name(words[format]), format);
	}
	assert_int_equal(bc_format_by_name(""), BC_FORMAT_UNKNOWN);
	assert_int_equal(bc_format_by_name("BYU"), BC_FORMAT_UNKNOWN);
	assert_int_equal(bc_format_by_name("byu2"), BC_FORMAT_UNKNOWN);
	assert_int_equal(bc_format_by_name("byu "), BC_FORMAT_UNKNOWN);
}
