#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "formats/base/bytes.h"
#include "formats/segment/segment_header.h"
#include "tests/support/test.h"

static struct bc_segment_header full_header(void)
{
	struct bc_segment_header h = {
		.recording = "20261120T091500Z-3f9a2c-boot",
		.label = "boot",
		.sequence = 9007199254740993,
		.boot_id = "0123456789abcdef0123456789abcdef",
		.segment = 7,
		.continues = "20261120T081500Z-000001",
		.source_kind = "usb",
		.source_name = "board \"1\" \\ \xC3\xA9\n\x01",
		.board_serial = "0123456789ABCDEF0123456789ABCDEF",
		.board_firmware = "2.0-rc1+build123",
		.clock_hz = 66666666,
		.has_mapping = true,
		.mapping = {.size_v1_0 = true, .keep_invalid = true},
		.compression = "dense",
		.host = "lab-7",
		.program = "buscapd 0.1.0",
		.wall_ns = INT64_C(1795166100123456789),
		.first_tick = (UINT64_C(1) << 53) - 1,
		.first_epoch = 3,
		.first_record = UINT64_C(123456789012345),
		.metadata = "{\"who\":\"me\",\"n\":[1,2,{\"x\":null}],\"\":\"\"}",
	};

	for (int i = 0; i < BC_CYCLE_TYPES; i++)
		h.mapping.attr[i] = (uint8_t)(255 - i);
	return h;
}

/* Writes a header and returns its frame without the empty frame before it. */
static uint8_t *write_header(const struct bc_segment_header *h, size_t *frame_bytes)
{
	uint8_t *out;
	size_t bytes;

	assert_int_equal(bc_segment_header_write(&out, &bytes, h), 0);
	assert_memory_equal(out, bc_frames_info[BC_FRAMES_LZ4].empty, BC_EMPTY_FRAME_BYTES);
	*frame_bytes = bytes - BC_EMPTY_FRAME_BYTES;
	uint8_t *frame = malloc(*frame_bytes);
	assert_non_null(frame);
	memcpy(frame, out + BC_EMPTY_FRAME_BYTES, *frame_bytes);
	free(out);
	assert_int_equal(bc_segment_header_bytes(frame), *frame_bytes);
	return frame;
}

/* Returns a header frame with this text and a valid hash. */
static uint8_t *frame_of(const char *text, size_t *bytes)
{
	size_t length = strlen(text);
	uint8_t *frame = malloc(length + 16);

	assert_non_null(frame);
	*bytes = length + 16;
	bc_write_le32(frame, 0x184D2A50);
	bc_write_le32(frame + 4, (uint32_t)length + 8);
	memcpy(frame + 8, text, length);
	bc_write_le64(frame + 8 + length, XXH3_64bits(frame, 8 + length));
	return frame;
}

static void assert_same(const struct bc_segment_header *a, const struct bc_segment_header *b)
{
	assert_int_equal(a->version, BC_SEGMENT_VERSION);
	assert_string_equal(a->recording, b->recording);
	assert_string_equal(a->label, b->label);
	assert_int_equal(a->sequence, b->sequence);
	assert_string_equal(a->boot_id, b->boot_id);
	assert_int_equal(a->segment, b->segment);
	assert_string_equal(a->continues, b->continues);
	assert_string_equal(a->source_kind, b->source_kind);
	assert_string_equal(a->source_name, b->source_name);
	assert_string_equal(a->board_serial, b->board_serial);
	assert_string_equal(a->board_firmware, b->board_firmware);
	assert_int_equal(a->clock_hz, b->clock_hz);
	assert_int_equal(a->has_mapping, b->has_mapping);
	if (a->has_mapping) {
		assert_int_equal(a->mapping.size_v1_0, b->mapping.size_v1_0);
		assert_int_equal(a->mapping.keep_invalid, b->mapping.keep_invalid);
		assert_memory_equal(a->mapping.attr, b->mapping.attr, BC_CYCLE_TYPES);
	}
	assert_string_equal(a->compression, b->compression);
	assert_string_equal(a->host, b->host);
	assert_string_equal(a->program, b->program);
	assert_true(a->wall_ns == b->wall_ns);
	assert_int_equal(a->first_tick, b->first_tick);
	assert_int_equal(a->first_epoch, b->first_epoch);
	assert_int_equal(a->first_record, b->first_record);
	assert_string_equal(a->metadata, b->metadata);
}

TEST(every_field_is_read_back)
{
	struct bc_segment_header h = full_header();
	struct bc_segment_header back;
	size_t bytes;

	for (int variant = 0; variant < 4; variant++) {
		h.has_mapping = variant != 1;
		h.mapping.size_v1_0 = variant != 2;
		h.mapping.keep_invalid = variant != 3;
		uint8_t *frame = write_header(&h, &bytes);
		memset(&back, 0xFF, sizeof(back));
		assert_true(bc_segment_header_read(&back, frame, bytes));
		assert_same(&back, &h);
		free(frame);
	}
}

/* The JSON text of a header's frame. */
static char *text_of(const uint8_t *out, size_t bytes)
{
	size_t before = BC_EMPTY_FRAME_BYTES + BC_SKIPPABLE_BYTES;

	return strndup((const char *)out + before, bytes - before - BC_HASH_BYTES);
}

static void assert_segment_text(const struct bc_segment_header *h, const char *expected)
{
	uint8_t *out;
	size_t bytes;

	assert_int_equal(bc_segment_header_write(&out, &bytes, h), 0);
	char *text = text_of(out, bytes);
	assert_string_equal(text, expected);
	free(text);
	free(out);
}

static const char empty_text[] =
	"{\"format\":\"buscap-segment\",\"version\":4,\"recording\":\"\",\"sequence\":0,"
	"\"label\":null,\"segment\":0,\"continues\":null,"
	"\"source\":{\"kind\":\"\",\"name\":\"\",\"clock_hz\":0},"
	"\"board\":null,\"mapping\":null,\"host\":\"\",\"program\":\"\",\"boot_id\":null,"
	"\"first\":{\"wall\":\"1970-01-01T00:00:00Z\",\"wall_ns\":0,\"tick\":0,\"epoch\":0,"
	"\"record\":0},\"metadata\":{}}";

/* Order, spacing and escapes of the JSON are part of the format. */
TEST(a_header_is_written_byte_for_byte)
{
	struct bc_segment_header empty = {0};
	struct bc_segment_header h = full_header();

	assert_segment_text(&empty, empty_text);
	strcpy(h.metadata, "{\"who\":\"me\",\"\xC3\xA9/\":\"\\u20ac\\n\\/\"}");
	assert_segment_text(&h,
		"{\"format\":\"buscap-segment\",\"compression\":\"dense\",\"version\":4,"
		"\"recording\":\"20261120T091500Z-3f9a2c-boot\",\"sequence\":9007199254740993,"
		"\"label\":\"boot\",\"segment\":7,"
		"\"continues\":\"20261120T081500Z-000001\","
		"\"source\":{\"kind\":\"usb\",\"name\":\"board \\\"1\\\" \\\\ \xC3\xA9\\n\\u0001\","
		"\"clock_hz\":66666666},"
		"\"board\":{\"serial\":\"0123456789ABCDEF0123456789ABCDEF\","
		"\"firmware\":\"2.0-rc1+build123\"},"
		"\"mapping\":{\"size\":\"v1.0\",\"invalid\":\"keep\","
		"\"attr\":[255,254,253,252,251,250,249,248,247,246,"
		"245,244,243,242,241,240]},"
		"\"host\":\"lab-7\",\"program\":\"buscapd 0.1.0\","
		"\"boot_id\":\"0123456789abcdef0123456789abcdef\","
		"\"first\":{\"wall\":\"2026-11-20T09:15:00Z\",\"wall_ns\":1795166100123456789,"
		"\"tick\":9007199254740991,\"epoch\":3,\"record\":123456789012345},"
		"\"metadata\":{\"who\":\"me\",\"\xC3\xA9/\":\"\xE2\x82\xAC\\n/\"}}");
}

/* The source's name in the header's JSON, without quotes. */
static void assert_name_text(const char *name, const char *expected)
{
	struct bc_segment_header h = {0};
	uint8_t *out;
	size_t bytes;

	assert_true(strlen(name) < sizeof(h.source_name));
	strcpy(h.source_name, name);
	assert_int_equal(bc_segment_header_write(&out, &bytes, &h), 0);
	char *text = text_of(out, bytes);
	char *start = strstr(text, "\"name\":\"");
	char *end = strstr(text, "\",\"clock_hz\"");
	assert_true(start != NULL && end != NULL);
	*end = '\0';
	assert_string_equal(start + strlen("\"name\":\""), expected);
	free(text);
	free(out);
}

TEST(every_character_is_escaped_byte_for_byte)
{
	static const char *const cases[][2] = {
		{"\x01\x02\x03\x04\x05\x06\x07\x08",
			"\\u0001\\u0002\\u0003\\u0004\\u0005\\u0006\\u0007\\b"},
		{"\x09\x0A\x0B\x0C\x0D\x0E\x0F\x10", "\\t\\n\\u000b\\f\\r\\u000e\\u000f\\u0010"},
		{"\x11\x12\x13\x14\x15\x16\x17\x18",
			"\\u0011\\u0012\\u0013\\u0014\\u0015\\u0016\\u0017\\u0018"},
		{"\x19\x1A\x1B\x1C\x1D\x1E\x1F",
			"\\u0019\\u001a\\u001b\\u001c\\u001d\\u001e\\u001f"},
		{"\"\\/'<>&\x7F", "\\\"\\\\/'<>&\x7F"},
		{"\\u001F\\\x1F", "\\\\u001F\\\\\\u001f"},
		/* first and last UTF-8 sequence of each length; a non-character and a line
		   separator */
		{"\xC2\x80\xDF\xBF", "\xC2\x80\xDF\xBF"},
		{"\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF",
			"\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF"},
		{"\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\xE2\x80\xA8",
			"\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\xE2\x80\xA8"},
		/* invalid UTF-8 is read as Latin-1 */
		{"a\xFF\x80z", "a\xC3\xBF\xC2\x80z"},
		{"\xC3", "\xC3\x83"},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++)
		assert_name_text(cases[i][0], cases[i][1]);
	for (int c = ' '; c < 0x7F; c++) {
		const char name[] = {(char)c, '\0'};
		const char escaped[] = {'\\', (char)c, '\0'};
		assert_name_text(name, c == '"' || c == '\\' ? escaped : name);
	}
}

TEST(the_limits_of_every_number_are_read_back)
{
	static const uint64_t numbers[] = {
		0, 1, UINT32_MAX, UINT64_C(1) << 32, (UINT64_C(1) << 53) + 1, INT64_MAX};
	static const int64_t walls[] = {0, 1, -1, INT64_C(-1000000000), INT64_MAX, INT64_MIN};

	for (size_t i = 0; i < COUNT_OF(numbers); i++) {
		struct bc_segment_header h = {
			.clock_hz = numbers[i],
			.first_tick = numbers[i],
			.first_record = numbers[i],
			.segment = (uint32_t)numbers[i],
			.first_epoch = (uint32_t)numbers[i],
		};
		struct bc_segment_header back;
		size_t bytes;
		uint8_t *frame = write_header(&h, &bytes);
		assert_true(bc_segment_header_read(&back, frame, bytes));
		assert_same(&back, &h);
		free(frame);
	}
	for (size_t i = 0; i < COUNT_OF(walls); i++) {
		struct bc_segment_header h = {.wall_ns = walls[i]};
		struct bc_segment_header back;
		size_t bytes;
		uint8_t *frame = write_header(&h, &bytes);
		assert_true(bc_segment_header_read(&back, frame, bytes));
		assert_true(back.wall_ns == walls[i]);
		free(frame);
	}
}

static void assert_metadata_comes_back(const char *text, const char *expected)
{
	struct bc_segment_header h = {0};
	struct bc_segment_header back;
	size_t bytes;

	assert_true(strlen(text) < BC_METADATA_MAX);
	strcpy(h.metadata, text);
	uint8_t *frame = write_header(&h, &bytes);
	assert_true(bc_segment_header_read(&back, frame, bytes));
	assert_string_equal(back.metadata, expected);
	free(frame);
}

TEST(metadata_of_any_length_that_fits_is_read_back)
{
	char text[BC_METADATA_MAX];

	for (size_t n = BC_METADATA_MAX - 64; n < BC_METADATA_MAX; n++) {
		memset(text, 'x', n);
		memcpy(text, "{\"a\":\"", 6);
		memcpy(text + n - 2, "\"}", 3);
		assert_int_equal(strlen(text), n);
		assert_metadata_comes_back(text, text);
	}
}

TEST(metadata_must_be_an_object)
{
	static const char *const texts[] = {
		"[]", "null", "1", "\"x\"", "{", "{\"a\"}", "{a:1}", "x{}", " "};

	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		struct bc_segment_header h = {0};
		uint8_t *out = (uint8_t *)&h;
		size_t bytes;
		strcpy(h.metadata, texts[i]);
		assert_int_equal(bc_segment_header_write(&out, &bytes, &h), -EINVAL);
		assert_null(out);
	}
}

/* Written by another program: the rest can be read. */
TEST(metadata_that_is_too_long_is_dropped)
{
	size_t n = 3 * BC_METADATA_MAX;
	char *text = malloc(n + 200);
	struct bc_segment_header back;
	size_t bytes;

	assert_non_null(text);
	int head = sprintf(text, "{\"format\":\"buscap-segment\",\"version\":1,"
				 "\"recording\":\"r\",\"metadata\":{\"a\":\"");
	memset(text + head, 'x', n);
	strcpy(text + (size_t)head + n, "\"},\"label\":\"l\"}");
	uint8_t *frame = frame_of(text, &bytes);
	assert_true(bc_segment_header_read(&back, frame, bytes));
	assert_string_equal(back.metadata, "");
	assert_string_equal(back.recording, "r");
	assert_string_equal(back.label, "l");
	free(frame);
	free(text);
}

TEST(every_flipped_bit_is_refused)
{
	struct bc_segment_header h = full_header();
	struct bc_segment_header back;
	size_t bytes;
	uint8_t *frame = write_header(&h, &bytes);

	for (size_t bit = 0; bit < bytes * 8; bit++) {
		frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
		/* A header with another length is not read at all. */
		if (bc_segment_header_bytes(frame) == bytes)
			assert_false(bc_segment_header_read(&back, frame, bytes));
		else
			assert_true(bit < 64);
		frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_true(bc_segment_header_read(&back, frame, bytes));
	free(frame);
}

TEST(a_length_out_of_range_is_refused)
{
	uint8_t in[BC_SKIPPABLE_BYTES];
	static const struct {
		uint32_t magic;
		uint32_t size;
		size_t bytes;
	} cases[] = {
		{0x184D2A50, 7, 0},
		{0x184D2A50, 8, 16},
		{0x184D2A50, BC_SEGMENT_HEADER_MAX - 8, BC_SEGMENT_HEADER_MAX},
		{0x184D2A50, BC_SEGMENT_HEADER_MAX - 7, 0},
		{0x184D2A50, UINT32_MAX, 0},
		{0x184D2A51, 100, 0},
		{0x184D2A52, 100, 0},
		{0x184D2204, 100, 0},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		bc_write_le32(in, cases[i].magic);
		bc_write_le32(in + 4, cases[i].size);
		assert_int_equal(bc_segment_header_bytes(in), cases[i].bytes);
	}
}

TEST(other_json_is_refused_even_with_a_valid_hash)
{
	static const char *const texts[] = {"", "x", "null", "[]", "{}", "{",
		"{\"format\":\"buscap-segment\"}", "{\"version\":1}",
		"{\"format\":\"other\",\"version\":1}", "{\"format\":1,\"version\":1}",
		"{\"format\":\"buscap-segment\",\"version\":0}",
		"{\"format\":\"buscap-segment\",\"version\":\"1\"}",
		"{\"format\":\"buscap-segment\",\"version\":-1}",
		"{\"Format\":\"buscap-segment\",\"version\":1}",
		"{\"format\":\"buscap-segmentation-of-more\",\"version\":1}"};

	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		struct bc_segment_header back;
		size_t bytes;
		uint8_t *frame = frame_of(texts[i], &bytes);
		if (bc_segment_header_read(&back, frame, bytes))
			fail_msg("%s is accepted as a header", texts[i]);
		free(frame);
	}
}

TEST(members_of_the_wrong_type_are_empty)
{
	size_t bytes;
	struct bc_segment_header back;
	uint8_t *frame = frame_of(
		"{\"format\":\"buscap-segment\",\"version\":3,\"recording\":5,\"label\":{},"
		"\"segment\":\"x\",\"continues\":[],\"source\":3,\"board\":\"b\","
		"\"mapping\":{\"attr\":[1,\"x\",-5,1e300]},\"first\":{\"wall_ns\":1e300,"
		"\"tick\":-3,\"epoch\":1e300,\"record\":1e300},\"metadata\":7}",
		&bytes);
	struct bc_segment_header empty = {0};

	assert_true(bc_segment_header_read(&back, frame, bytes));
	assert_int_equal(back.version, 3);
	assert_string_equal(back.recording, "");
	assert_string_equal(back.label, "");
	assert_int_equal(back.segment, 0);
	assert_string_equal(back.continues, "");
	assert_string_equal(back.source_kind, "");
	assert_string_equal(back.board_serial, "");
	assert_true(back.has_mapping);
	assert_int_equal(back.mapping.attr[0], 1);
	assert_int_equal(back.mapping.attr[1], empty.mapping.attr[1]);
	assert_true(back.wall_ns == 0);
	assert_int_equal(back.first_tick, 0);
	assert_int_equal(back.first_record, UINT64_C(1) << 53);
	assert_string_equal(back.metadata, "");
	free(frame);
}

TEST(long_texts_are_truncated)
{
	char text[2000];
	char filler[1001];
	struct bc_segment_header back;
	size_t bytes;

	memset(filler, 'y', 1000);
	filler[1000] = '\0';
	snprintf(text, sizeof(text),
		"{\"format\":\"buscap-segment\",\"version\":1,\"recording\":\"%s\"}", filler);
	uint8_t *frame = frame_of(text, &bytes);
	assert_true(bc_segment_header_read(&back, frame, bytes));
	assert_int_equal(strlen(back.recording), BC_RECORDING_ID_MAX - 1);
	free(frame);
	snprintf(text, sizeof(text),
		"{\"format\":\"buscap-segment\",\"version\":1,\"board\":{\"serial\":\"%s\"}}",
		filler);
	frame = frame_of(text, &bytes);
	assert_true(bc_segment_header_read(&back, frame, bytes));
	assert_int_equal(strlen(back.board_serial), 32);
	free(frame);
}

/* Deeply nested JSON is refused without recursion. */
TEST(deep_nesting_is_refused)
{
	size_t depth = 100000;
	char *text = malloc(depth + 1);
	struct bc_segment_header back;
	size_t bytes;

	assert_non_null(text);
	memset(text, '[', depth);
	text[depth] = '\0';
	uint8_t *frame = frame_of(text, &bytes);
	assert_false(bc_segment_header_read(&back, frame, bytes));
	free(frame);
	free(text);
}
