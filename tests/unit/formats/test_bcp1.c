#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "formats/bus/bcp1.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

/* CRC-32 bit by bit, from its definition. */
static uint32_t crc_of(const uint8_t *p, size_t n)
{
	uint32_t crc = 0xFFFFFFFF;

	for (size_t i = 0; i < n; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
	}
	return ~crc;
}

static void write_le(uint8_t *p, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t read_le(const uint8_t *p, unsigned bytes)
{
	uint64_t value = 0;

	while (bytes-- > 0)
		value = value << 8 | p[bytes];
	return value;
}

static void update_header_crc(uint8_t *header)
{
	write_le(header + 28, crc_of(header, 28), 4);
}

/* Headers */

static const struct bc_bcp1_header some_header = {
	.flags = BC_BCP1_LOSS | BC_BCP1_TRIGGER,
	.proc = 9,
	.sequence = 0x01020304,
	.samples = 3,
	.tick = UINT64_C(0x1122334455667788),
	.lost = 0xA1B2C3D4,
};

static void assert_same_header(const struct bc_bcp1_header *a, const struct bc_bcp1_header *b)
{
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->proc, b->proc);
	assert_int_equal(a->sequence, b->sequence);
	assert_int_equal(a->samples, b->samples);
	assert_true(a->tick == b->tick);
	assert_int_equal(a->lost, b->lost);
}

TEST(a_header_has_the_documented_layout)
{
	uint8_t expected[BC_BCP1_HEADER_BYTES] = {
		'B', 'C', 'P', '1', 6, 0, 9, 0, 4, 3, 2, 1, 3, 0, 0, 0};
	uint8_t out[BC_BCP1_HEADER_BYTES];

	write_le(expected + 16, some_header.tick, 8);
	write_le(expected + 24, some_header.lost, 4);
	update_header_crc(expected);
	bc_bcp1_write_header(out, &some_header);
	assert_memory_equal(out, expected, sizeof(out));
}

TEST(every_bit_of_every_field_comes_back)
{
	struct bc_bcp1_header headers[16 + 8 + 32 + 16 + 63 + 32] = {{0}};
	size_t n = 0;

	for (unsigned bit = 0; bit < 16; bit++)
		headers[n++].flags = (uint16_t)(1 << bit);
	for (unsigned bit = 0; bit < 8; bit++)
		headers[n++].proc = (uint8_t)(1 << bit);
	for (unsigned bit = 0; bit < 32; bit++)
		headers[n++].sequence = UINT32_C(1) << bit;
	for (unsigned bit = 0; bit < 16; bit++)
		headers[n++].samples = UINT32_C(1) << bit;
	for (unsigned bit = 0; bit < 63; bit++)
		headers[n++].tick = UINT64_C(1) << bit;
	for (unsigned bit = 0; bit < 32; bit++)
		headers[n++].lost = UINT32_C(1) << bit;
	for (size_t i = 0; i < n; i++) {
		uint8_t bytes[BC_BCP1_HEADER_BYTES];
		struct bc_bcp1_header back;
		memset(&back, 0xFF, sizeof(back));
		bc_bcp1_write_header(bytes, &headers[i]);
		assert_true(bc_bcp1_read_header(&back, bytes));
		assert_same_header(&back, &headers[i]);
	}
}

TEST(every_flipped_bit_of_a_header_is_refused)
{
	uint8_t bytes[BC_BCP1_HEADER_BYTES];
	struct bc_bcp1_header back;

	bc_bcp1_write_header(bytes, &some_header);
	for (unsigned bit = 0; bit < sizeof(bytes) * 8; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(bc_bcp1_read_header(&back, bytes));
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_true(bc_bcp1_read_header(&back, bytes));
}

TEST(a_header_out_of_range_is_refused_even_with_a_valid_crc)
{
	static const struct {
		uint32_t samples;
		uint64_t tick;
		bool is_valid;
	} cases[] = {
		{BC_BCP1_SAMPLES_MAX, BC_TICK_END - 1, true},
		{BC_BCP1_SAMPLES_MAX + 1, 0, false},
		{UINT32_MAX, 0, false},
		{0, BC_TICK_END, false},
		{0, UINT64_MAX, false},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		uint8_t bytes[BC_BCP1_HEADER_BYTES];
		struct bc_bcp1_header back;
		bc_bcp1_write_header(bytes, &some_header);
		write_le(bytes + 12, cases[i].samples, 4);
		write_le(bytes + 16, cases[i].tick, 8);
		update_header_crc(bytes);
		assert_int_equal(bc_bcp1_read_header(&back, bytes), cases[i].is_valid);
	}
}

TEST(unknown_flags_and_the_reserved_byte_are_ignored)
{
	uint8_t bytes[BC_BCP1_HEADER_BYTES];
	struct bc_bcp1_header back;

	bc_bcp1_write_header(bytes, &some_header);
	bytes[5] = 0xFF;
	bytes[7] = 0xFF;
	update_header_crc(bytes);
	assert_true(bc_bcp1_read_header(&back, bytes));
	assert_int_equal(back.flags & 15, some_header.flags);
	assert_int_equal(back.samples, some_header.samples);
}

TEST(a_frame_with_samples_ends_with_their_crc)
{
	struct dice dice = {.state = 5};

	for (uint32_t samples = 0; samples < 20; samples++) {
		struct bc_bcp1_header header = {.samples = samples};
		size_t bytes = 32 + 8 * samples + (samples != 0 ? 4 : 0);
		uint8_t *frame = malloc(bytes);
		uint8_t copy[20 * BC_BCP1_SAMPLE_BYTES];

		assert_non_null(frame);
		dice_fill(&dice, copy, sizeof(copy));
		memcpy(frame + 32, copy, (size_t)8 * samples);
		assert_int_equal(bc_bcp1_frame_bytes(samples), bytes);
		assert_int_equal(bc_bcp1_write_frame(frame, &header), bytes);
		assert_memory_equal(frame + 32, copy, (size_t)8 * samples);
		if (samples != 0)
			assert_int_equal(read_le(frame + bytes - 4, 4), crc_of(copy, 8 * samples));
		free(frame);
	}
}

/* Streams. A reader's results are a list of findings. */
struct finding {
	bool is_frame; /* otherwise damaged */
	uint64_t offset;
	uint32_t sequence;
	uint32_t samples;
	uint32_t crc; /* of its samples */
};

#define FINDINGS_MAX 64

struct findings {
	struct finding at[FINDINGS_MAX];
	size_t n;
	uint64_t skipped_bytes;
	uint64_t offset;
};

static void assert_same_findings(const struct findings *a, const struct findings *b)
{
	assert_int_equal(a->n, b->n);
	for (size_t i = 0; i < a->n; i++) {
		assert_int_equal(a->at[i].is_frame, b->at[i].is_frame);
		assert_int_equal(a->at[i].offset, b->at[i].offset);
		assert_int_equal(a->at[i].sequence, b->at[i].sequence);
		assert_int_equal(a->at[i].samples, b->at[i].samples);
		assert_int_equal(a->at[i].crc, b->at[i].crc);
	}
	assert_int_equal(a->skipped_bytes, b->skipped_bytes);
	assert_int_equal(a->offset, b->offset);
}

static void add_finding(struct findings *f, struct finding finding)
{
	assert_true(f->n < FINDINGS_MAX);
	f->at[f->n++] = finding;
}

/* A simple reference reader, which has the whole stream in memory. */
static struct findings read_reference(const uint8_t *p, size_t n)
{
	struct findings f = {.offset = n};

	for (size_t at = 0; at < n;) {
		const uint8_t *h = p + at;
		uint32_t samples = n - at >= 32 ? (uint32_t)read_le(h + 12, 4) : 0;
		size_t bytes = 32 + (size_t)samples * 8 + (samples != 0 ? 4 : 0);
		if (n - at < 32 || memcmp(h, "BCP1", 4) != 0 ||
			read_le(h + 28, 4) != crc_of(h, 28) || samples > 65535 ||
			read_le(h + 16, 8) >> 63 != 0) {
			f.skipped_bytes++;
			at++;
			continue;
		}
		struct finding finding = {
			.offset = at, .sequence = (uint32_t)read_le(h + 8, 4), .samples = samples};
		uint32_t crc = samples != 0 && n - at >= bytes ? crc_of(h + 32, (size_t)samples * 8)
							       : 0;
		uint64_t tick = read_le(h + 16, 8);
		for (uint32_t i = 1; n - at >= bytes && i < samples; i++)
			tick += read_le(h + 32 + (size_t)i * 8 + 6, 2);
		finding.is_frame = n - at >= bytes && tick >> 63 == 0 &&
				   (samples == 0 || crc == read_le(h + bytes - 4, 4));
		finding.crc = finding.is_frame ? crc : 0;
		add_finding(&f, finding);
		f.skipped_bytes += finding.is_frame ? 0 : 1;
		at += finding.is_frame ? bytes : 1;
	}
	return f;
}

/* Passes n bytes to the reader and overwrites them afterwards. */
static void feed(struct bc_bcp1_reader *reader, struct findings *f, const uint8_t *bytes, size_t n,
	bool last)
{
	static uint8_t scratch[4096];
	const uint8_t *data = scratch;
	struct bc_bcp1_frame frame;
	enum bc_bcp1_found found;

	assert_true(n <= sizeof(scratch));
	memcpy(scratch, bytes, n);
	size_t left = n;
	while ((found = bc_bcp1_next(reader, &data, &left, last, &frame)) != BC_BCP1_MORE) {
		struct finding finding = {
			.is_frame = found == BC_BCP1_FRAME,
			.offset = frame.offset,
			.sequence = frame.header.sequence,
			.samples = frame.header.samples,
		};
		if (!finding.is_frame)
			assert_null(frame.samples);
		else if (finding.samples != 0)
			finding.crc = crc_of(frame.samples, (size_t)finding.samples * 8);
		add_finding(f, finding);
	}
	assert_int_equal(left, 0);
	assert_ptr_equal(data, scratch + n);
	f->skipped_bytes = reader->skipped_bytes;
	f->offset = reader->offset;
	memset(scratch, 0xA5, n);
}

struct fixture {
	struct bc_bcp1_reader *reader; /* a separate allocation, for AddressSanitizer */
	uint8_t stream[2048];
	size_t n;
	struct findings expected;
};

static void append(struct fixture *f, const void *bytes, size_t n)
{
	assert_true(f->n + n <= sizeof(f->stream));
	memcpy(f->stream + f->n, bytes, n);
	f->n += n;
}

/* Appends a frame and returns its offset. */
static size_t append_frame(struct fixture *f, uint32_t sequence, uint32_t samples)
{
	struct bc_bcp1_header header = {
		.sequence = sequence, .samples = samples, .tick = UINT64_C(1000) * sequence};
	struct dice dice = {.state = sequence + 1};
	uint8_t frame[512];
	size_t at = f->n;

	assert_true(bc_bcp1_frame_bytes(samples) <= sizeof(frame));
	dice_fill(&dice, frame + BC_BCP1_HEADER_BYTES, (size_t)samples * BC_BCP1_SAMPLE_BYTES);
	append(f, frame, bc_bcp1_write_frame(frame, &header));
	return at;
}

/* A stream of about 600 bytes with every kind of damage. */
static void set_up(struct fixture *f)
{
	f->reader = malloc(sizeof(*f->reader));
	assert_non_null(f->reader);
	append(f, "xB", 2);
	append_frame(f, 1, 2);
	append(f, "BCP1BCPBCBBCP", 13); /* whole and truncated magics without a header */
	append_frame(f, 2, 0);          /* a heartbeat */
	size_t header = append_frame(f, 3, 1);
	f->stream[header + 9] ^= 0x10; /* a corrupt header: its frame is garbage */
	size_t payload = append_frame(f, 4, 3);
	f->stream[payload + 40] ^= 1; /* corrupt samples */
	append_frame(f, 5, 1);
	size_t torn = append_frame(f, 6, 4);
	f->n = torn + 32 + 11; /* torn: the next frame is read as its samples */
	append_frame(f, 7, 1);
	append_frame(f, 8, 0);
	size_t outer = append_frame(f, 9, 6); /* a frame whose samples contain a frame: */
	append_frame(f, 10, 1);
	memcpy(f->stream + outer + 32 + 3, f->stream + f->n - 44, 44);
	f->n -= 44;
	write_le(f->stream + outer + 32 + 48, crc_of(f->stream + outer + 32, 48), 4);
	size_t nest = append_frame(
		f, 11, 6); /* the same with a wrong CRC: the inner frame counts */
	append_frame(f, 12, 1);
	memcpy(f->stream + nest + 32 + 3, f->stream + f->n - 44, 44);
	f->n -= 44;
	append_frame(f, 13, 5);
	f->n -= 5; /* torn at the end */
	append(f, "BCP", 3);
	f->expected = read_reference(f->stream, f->n);
}

static void tear_down(struct fixture *f)
{
	free(f->reader);
}

TEST_SHARED_FIXTURE(fixture, set_up, tear_down)

/* Checks the reference reader against the stream's known contents. */
TEST_F(the_reference_reader_finds_the_known_contents)
{
	static const struct {
		bool is_frame;
		uint32_t sequence;
		uint64_t offset;
	} expected[] = {
		{true, 1, 2},
		{true, 2, 67}, /* 2 + 52 + 13 */
		{false, 4, 143},
		{true, 5, 203},
		{false, 6, 247},
		{true, 7, 290},
		{true, 8, 334},
		{true, 9, 366},
		{false, 11, 450},
		{true, 12, 485},
		{false, 13, 534},
	};

	assert_int_equal(f->expected.n, COUNT_OF(expected));
	for (size_t i = 0; i < f->expected.n; i++) {
		assert_int_equal(f->expected.at[i].is_frame, expected[i].is_frame);
		assert_int_equal(f->expected.at[i].sequence, expected[i].sequence);
		assert_int_equal(f->expected.at[i].offset, expected[i].offset);
	}
	/* All but the whole frames: 52 + 32 + 44 + 44 + 32 + 84 + 44. */
	assert_int_equal(f->expected.skipped_bytes, f->n - 332);
}

static void assert_split(struct fixture *f, size_t first, size_t second)
{
	struct findings found = {0};

	bc_bcp1_reader_init(f->reader);
	feed(f->reader, &found, f->stream, first, false);
	assert_true(f->reader->offset <= first);
	feed(f->reader, &found, f->stream + first, second - first, false);
	feed(f->reader, &found, f->stream + second, f->n - second, true);
	assert_same_findings(&found, &f->expected);
}

TEST_F(every_split_into_three_reads_gives_the_same_result)
{
	for (size_t first = 0; first <= f->n; first++)
		for (size_t second = first; second <= f->n; second += test_stride(5))
			assert_split(f, first, second);
}

TEST_F(reads_of_any_length_give_the_same_result)
{
	for (size_t step = 1; step <= f->n; step++) {
		struct findings found = {0};
		bc_bcp1_reader_init(f->reader);
		for (size_t at = 0; at < f->n; at += step)
			feed(f->reader, &found, f->stream + at, step < f->n - at ? step : f->n - at,
				false);
		feed(f->reader, &found, f->stream, 0, true);
		assert_same_findings(&found, &f->expected);
	}
}

TEST_F(every_prefix_is_read_to_its_end)
{
	for (size_t n = 0; n <= f->n; n++) {
		struct findings expected = read_reference(f->stream, n);
		struct findings found = {0};
		bc_bcp1_reader_init(f->reader);
		feed(f->reader, &found, f->stream, n, true);
		assert_same_findings(&found, &expected);
		assert_int_equal(f->reader->offset, n);

		/* The same with the rest passed byte by byte. */
		memset(&found, 0, sizeof(found));
		bc_bcp1_reader_init(f->reader);
		for (size_t at = 0; at < n; at++)
			feed(f->reader, &found, f->stream + at, 1, false);
		feed(f->reader, &found, f->stream, 0, true);
		assert_same_findings(&found, &expected);
	}
}

TEST_F(every_flipped_bit_gives_the_reference_result)
{
	for (size_t bit = 0; bit < f->n * 8; bit++) {
		struct findings found = {0};
		f->stream[bit / 8] ^= (uint8_t)(1 << bit % 8);
		struct findings expected = read_reference(f->stream, f->n);
		bc_bcp1_reader_init(f->reader);
		feed(f->reader, &found, f->stream, bit % f->n, false);
		feed(f->reader, &found, f->stream + bit % f->n, f->n - bit % f->n, true);
		assert_same_findings(&found, &expected);
		f->stream[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

TEST_F(a_restarted_reader_has_forgotten_the_previous_stream)
{
	for (size_t n = 0; n <= f->n; n += 7) {
		struct findings found = {0};
		bc_bcp1_reader_init(f->reader);
		feed(f->reader, &found, f->stream, n, false);
		memset(&found, 0, sizeof(found));
		bc_bcp1_reader_init(f->reader);
		feed(f->reader, &found, f->stream, f->n, true);
		assert_same_findings(&found, &f->expected);
	}
}

/* A frame that is whole in the caller's bytes is not copied. */
TEST_F(a_whole_frame_in_one_read_is_not_copied)
{
	const uint8_t *data = f->stream;
	size_t left = f->n;
	struct bc_bcp1_frame frame;

	bc_bcp1_reader_init(f->reader);
	assert_int_equal(bc_bcp1_next(f->reader, &data, &left, false, &frame), BC_BCP1_FRAME);
	assert_ptr_equal(frame.samples, f->stream + 2 + BC_BCP1_HEADER_BYTES);
	assert_ptr_equal(data, f->stream + 54);
	assert_int_equal(left, f->n - 54);
}

TEST_F(a_frame_in_which_a_tick_is_out_of_range_is_damaged)
{
	static const struct {
		uint64_t before_end; /* the header's tick */
		uint16_t ticks[3];
		bool is_valid;
	} cases[] = {
		{1, {0, 0, 0}, true},
		{1, {9, 0, 0}, true}, /* the first sample's tick is that of the header */
		{1, {0, 1, 0}, false},
		{1, {0, 0, 1}, false},
		{65536, {0, 65535, 0}, true},
		{65536, {0, 65535, 1}, false},
		{131071, {0, 65535, 65535}, true},
		{131070, {0, 65535, 65535}, false},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct bc_bcp1_header header = {
			.samples = 3, .tick = BC_TICK_END - cases[i].before_end};
		uint8_t frame[32 + 3 * 8 + 4] = {0};
		struct findings found = {0};

		for (size_t sample = 0; sample < 3; sample++)
			write_le(frame + 32 + 8 * sample + 6, cases[i].ticks[sample], 2);
		size_t bytes = bc_bcp1_write_frame(frame, &header);
		struct findings expected = read_reference(frame, bytes);
		bc_bcp1_reader_init(f->reader);
		feed(f->reader, &found, frame, bytes, true);
		assert_same_findings(&found, &expected);
		assert_int_equal(found.n, 1);
		assert_int_equal(found.at[0].is_frame, cases[i].is_valid);
	}
}

/* Large frames and malicious streams */

static uint8_t *make_large_frame(uint32_t sequence, size_t *bytes)
{
	struct bc_bcp1_header header = {.sequence = sequence, .samples = BC_BCP1_SAMPLES_MAX};
	uint8_t *frame = malloc(BC_BCP1_FRAME_MAX);

	assert_non_null(frame);
	for (size_t i = 0; i < BC_BCP1_SAMPLES_MAX * (size_t)BC_BCP1_SAMPLE_BYTES; i++)
		frame[BC_BCP1_HEADER_BYTES + i] = (uint8_t)(i * i >> 7);
	*bytes = bc_bcp1_write_frame(frame, &header);
	assert_int_equal(*bytes, BC_BCP1_FRAME_MAX);
	return frame;
}

/* Counts findings in a stream read in pieces of `step` bytes. */
static void run_large(
	struct fixture *f, const uint8_t *bytes, size_t n, size_t step, size_t counts[2])
{
	struct bc_bcp1_frame frame;

	bc_bcp1_reader_init(f->reader);
	counts[0] = counts[1] = 0;
	for (size_t at = 0;; at += step) {
		bool last = at >= n;
		const uint8_t *data = last ? bytes : bytes + at;
		size_t left = last ? 0 : step < n - at ? step : n - at;
		enum bc_bcp1_found found;
		while ((found = bc_bcp1_next(f->reader, &data, &left, last, &frame)) !=
			BC_BCP1_MORE)
			counts[found == BC_BCP1_FRAME]++;
		assert_int_equal(left, 0);
		if (last)
			break;
	}
	assert_int_equal(f->reader->offset, n);
}

TEST_F(the_largest_frames_are_read_in_pieces_of_any_length)
{
	static const size_t steps[] = {
		997, 4096, 65536, 300007, BC_BCP1_FRAME_MAX - 1, BC_BCP1_FRAME_MAX, 1u << 20};
	enum { FRAMES = 5 };
	size_t bytes;
	uint8_t *frame = make_large_frame(1, &bytes);
	uint8_t *stream = malloc(FRAMES * (bytes + 1));
	size_t n = 0;

	assert_non_null(stream);
	for (int i = 0; i < FRAMES;
		i++) { /* a byte between frames, so that each has another offset in the buffer */
		memcpy(stream + n, frame, bytes);
		n += bytes;
		stream[n++] = 'B';
	}
	for (size_t i = 0; i < COUNT_OF(steps); i++) {
		size_t counts[2];
		run_large(f, stream, n, steps[i], counts);
		assert_int_equal(counts[true], FRAMES);
		assert_int_equal(counts[false], 0);
		assert_int_equal(f->reader->skipped_bytes, FRAMES);
	}
	free(stream);
	free(frame);
}

TEST_F(a_false_claim_of_most_samples_delays_but_loses_nothing)
{
	struct bc_bcp1_header claim = {.samples = BC_BCP1_SAMPLES_MAX};
	uint8_t head[BC_BCP1_HEADER_BYTES];
	size_t good = f->expected.n;

	/* The stream after the false header is found when the claim turns out false: at the end, or
	 * when all claimed bytes have arrived. */
	bc_bcp1_write_header(head, &claim);
	for (int has_all = 0; has_all < 2; has_all++) {
		struct findings found = {0};
		static const uint8_t zeros[4096];
		bc_bcp1_reader_init(f->reader);
		feed(f->reader, &found, head, sizeof(head), false);
		feed(f->reader, &found, f->stream, f->n, false);
		assert_int_equal(found.n, 0);
		size_t at = sizeof(head) + f->n;
		while (has_all && at < BC_BCP1_FRAME_MAX) {
			size_t n = BC_BCP1_FRAME_MAX - at < sizeof(zeros) ? BC_BCP1_FRAME_MAX - at
									  : sizeof(zeros);
			assert_int_equal(found.n, 0);
			feed(f->reader, &found, zeros, n, false);
			at += n;
		}
		if (has_all)
			assert_int_equal(found.n, 1 + good);
		feed(f->reader, &found, head, 0, true);
		assert_int_equal(found.n, 1 + good);
		assert_false(found.at[0].is_frame);
		assert_int_equal(found.at[0].samples, BC_BCP1_SAMPLES_MAX);
		for (size_t i = 0; i < good; i++) {
			assert_int_equal(found.at[1 + i].is_frame, f->expected.at[i].is_frame);
			assert_int_equal(found.at[1 + i].sequence, f->expected.at[i].sequence);
			assert_int_equal(found.at[1 + i].offset,
				f->expected.at[i].offset + BC_BCP1_HEADER_BYTES);
		}
		assert_int_equal(found.offset, at);
	}
}

/* Each claim fills the reader's buffer to its end, starting 32 bytes after the previous one. */
TEST_F(a_largest_frame_after_false_claims_is_found)
{
	enum { CLAIMS = 3 };
	struct bc_bcp1_header claim = {.samples = BC_BCP1_SAMPLES_MAX};
	size_t bytes;
	uint8_t *frame = make_large_frame(9, &bytes);
	uint8_t *stream = malloc(CLAIMS * BC_BCP1_HEADER_BYTES + bytes);
	size_t n = CLAIMS * BC_BCP1_HEADER_BYTES;

	assert_non_null(stream);
	for (size_t i = 0; i < CLAIMS; i++)
		bc_bcp1_write_header(stream + i * BC_BCP1_HEADER_BYTES, &claim);
	memcpy(stream + n, frame, bytes);
	n += bytes;
	for (size_t step = 1000; step < 2 * n; step = step * 3 + 1) {
		size_t counts[2];
		run_large(f, stream, n, step, counts);
		assert_int_equal(counts[true], 1);
		assert_int_equal(counts[false], CLAIMS);
		assert_int_equal(f->reader->skipped_bytes, CLAIMS * BC_BCP1_HEADER_BYTES);
	}
	free(stream);
	free(frame);
}

TEST_F(consecutive_false_claims_are_each_examined)
{
	enum { HEADERS = 200 };
	size_t n = HEADERS * BC_BCP1_HEADER_BYTES;
	uint8_t *stream = malloc(n);
	size_t counts[2];

	assert_non_null(stream);
	for (uint32_t i = 0; i < HEADERS; i++)
		bc_bcp1_write_header(stream + (size_t)i * BC_BCP1_HEADER_BYTES,
			&(struct bc_bcp1_header){.sequence = i, .samples = BC_BCP1_SAMPLES_MAX});
	for (size_t step = 1; step <= 64; step++) {
		run_large(f, stream, n, step, counts);
		assert_int_equal(counts[true], 0);
		assert_int_equal(counts[false], HEADERS);
		assert_int_equal(f->reader->skipped_bytes, n);
	}
	free(stream);
}

TEST_F(endless_magics_are_skipped)
{
	static const char *const patterns[] = {"BCP1", "B", "BC", "BCP", "BCP1BCPBCB", "x"};
	size_t n = 1 << 18;
	uint8_t *stream = malloc(n);
	size_t counts[2];

	assert_non_null(stream);
	for (size_t p = 0; p < COUNT_OF(patterns); p++) {
		size_t length = strlen(patterns[p]);
		for (size_t i = 0; i < n; i++)
			stream[i] = (uint8_t)patterns[p][i % length];
		for (size_t step = 1; step <= n; step *= 8) {
			run_large(f, stream, n, step, counts);
			assert_int_equal(counts[true] + counts[false], 0);
			assert_int_equal(f->reader->skipped_bytes, n);
		}
	}
	free(stream);
}
