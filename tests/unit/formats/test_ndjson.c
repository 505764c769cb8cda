#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/format_id.h"
#include "formats/trace/parser.h"
#include "tests/support/printed.h"
#include "tests/support/sample_entries.h"
#include "tests/support/test.h"

#define BYU_TRAITS                                                                               \
	(BC_TRAIT_REFERENCE | BC_TRAIT_FETCH | BC_TRAIT_CYCLE | BC_TRAIT_P6 | BC_TRAIT_INVALID | \
		BC_TRAIT_SIZE | BC_TRAIT_ATTR | BC_TRAIT_PROC | BC_TRAIT_TIME)

static void check(bc_traits traits, const struct bc_entry *entry, const char *expected)
{
	char *text = print_text(BC_FORMAT_NDJSON, traits, entry, 1);

	assert_string_equal(text, expected);
	free(text);
}

TEST(each_kind_has_its_keys)
{
	struct bc_entry entry;

	entry = whole_reference();
	check(ALL_TRAITS, &entry,
		"{\"kind\":\"reference\",\"number\":7,\"tick\":99,\"unit\":\"clk\",\"epoch\":1,"
		"\"type\":\"MEMREAD\",\"addr\":\"0x1e5\",\"size\":4,\"attr\":3,\"proc\":2,"
		"\"delta\":12,\"letter\":\"x\",\"space\":\"0x9f8e7\",\"phys\":\"0x8000001e5\","
		"\"data\":\"0x0000beef\",\"attrib\":\"X\",\"security\":\"NS\",\"bus_addr\":"
		"\"0x1e0\",\"byte_enables\":\"0xf0\","
		"\"control\":\"0xd5\",\"line\":\"the line\"}\n");
	entry = whole_instruction();
	check(ALL_TRAITS & ~(uint32_t)BC_TRAIT_EVENT, &entry,
		"{\"kind\":\"instruction\",\"number\":3,\"tick\":271,\"unit\":\"ns\","
		"\"addr\":\"0xffffffc000080000\",\"size\":4,\"proc\":1,\"phys\":\"0x80000\","
		"\"effect\":\"skipped\",\"id\":12,\"set\":\"O\",\"mode\":\"EL3h_s\","
		"\"opcode\":\"0x0000001f\",\"disassembly\":\"add  x0, x1, \\\"#1\\\"\","
		"\"line\":\"271 ns IT ...\"}\n");
	entry = whole_uop();
	check(BC_TRAIT_UOP, &entry,
		"{\"kind\":\"uop\",\"number\":5,\"step\":1,\"pc\":\"0x440d7e\",\"src1\":4,"
		"\"src2\":-1,\"dest\":49,\"flags\":\"W\",\"branch\":\"-\",\"access\":\"L\","
		"\"immediate\":-24,\"mem_addr\":\"0x7fffffffe588\",\"fallthrough\":\"0x440d82\","
		"\"target\":\"0x0\",\"macro\":\"MOVS_L,X\",\"micro\":\"LOAD\"}\n");
	entry = whole_register();
	check(BC_TRAIT_REGISTER | BC_TRAIT_TIME | BC_TRAIT_LINE, &entry,
		"{\"kind\":\"register\",\"number\":4,\"tick\":271,\"unit\":\"ns\","
		"\"register\":\"cpsr\",\"value\":\"0x0000_00d3\"}\n");
	entry = whole_kernel_event();
	check(BC_TRAIT_KERNEL | BC_TRAIT_TIME | BC_TRAIT_LETTER, &entry,
		"{\"kind\":\"kernel\",\"number\":2,\"tick\":1311768467463790334,\"tag\":\"M\","
		"\"rest\":\"100 1a2b3c4d foobar.so\"}\n");
	entry = whole_line("BR\tx");
	check(BC_TRAIT_LINE, &entry, "{\"kind\":\"line\",\"number\":6,\"line\":\"BR\\tx\"}\n");
}

TEST(each_event_has_its_keys)
{
	const bc_traits traits = BYU_TRAITS | BC_TRAIT_EVENT;
	struct bc_entry entry;

	entry = whole_event(0, "");
	check(traits, &entry, "{\"kind\":\"epoch\",\"number\":40,\"tick\":1000,\"epoch\":2}\n");
	entry = whole_event(BC_EVENT_GAP, "");
	check(traits, &entry,
		"{\"kind\":\"gap\",\"number\":40,\"tick\":1000,\"epoch\":2,\"cause\":\"disk\","
		"\"lost\":250,\"exact\":true,\"duration_ns\":17}\n");
	entry.note.event.exact = false;
	entry.note.event.duration_ns = 0;
	check(traits, &entry,
		"{\"kind\":\"gap\",\"number\":40,\"tick\":1000,\"epoch\":2,\"cause\":\"disk\","
		"\"lost\":250,\"exact\":false}\n");
	entry = whole_event(BC_EVENT_MARK, "here");
	check(traits, &entry,
		"{\"kind\":\"mark\",\"number\":40,\"tick\":1000,\"epoch\":2,\"text\":\"here\"}\n");
	entry = whole_event(BC_EVENT_TRIGGER, "");
	check(traits, &entry, "{\"kind\":\"trigger\",\"number\":40,\"tick\":1000,\"epoch\":2}\n");
}

/* Decodes the UTF-8 character at `at` arithmetically and checks that encoding it in the fewest
 * bytes gives the same. Returns its length, or 0. */
static size_t decode(const uint8_t *at, size_t left, uint32_t *character)
{
	static const uint32_t first_of_length[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = at[0] < 0x80 ? 1 : at[0] >> 5 == 6 ? 2 : at[0] >> 4 == 14 ? 3 : 4;

	if (n == 4 && at[0] >> 3 != 30)
		return 0;
	if (n > left)
		return 0;
	uint32_t sum = n == 1 ? at[0] : at[0] & (0x7Fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((at[i] & 0xC0) != 0x80)
			return 0;
		sum = sum << 6 | (at[i] & 0x3F);
	}
	*character = sum;
	if (sum < first_of_length[n] || sum > 0x10FFFF || (sum >= 0xD800 && sum <= 0xDFFF))
		return 0;
	return n;
}

/* Parses a JSON string into characters; fails if it is invalid. Returns the position after the
 * closing quote. */
static const uint8_t *read_string(const uint8_t *at, const uint8_t *end, uint32_t *out, size_t *n)
{
	static const char letters[] = "\"\\/bfnrt";
	static const char values[] = "\"\\/\b\f\n\r\t";

	assert_int_equal(*at++, '"');
	for (*n = 0; *at != '"'; out++, ++*n) {
		assert_true(at < end && *at >= 0x20);
		if (*at == '\\' && at[1] == 'u') {
			unsigned value;
			assert_int_equal(sscanf((const char *)at + 2, "%4x", &value), 1);
			*out = value;
			at += 6;
		} else if (*at == '\\') {
			const char *letter = strchr(letters, at[1]);
			assert_non_null(letter);
			*out = (uint8_t)values[letter - letters];
			at += 2;
		} else {
			size_t bytes = decode(at, (size_t)(end - at), out);
			assert_int_not_equal(bytes, 0);
			at += bytes;
		}
	}
	return at + 1;
}

static void check_text(const uint8_t *text, uint32_t bytes)
{
	struct bc_format_options options = bc_format_options_default();
	struct bc_entry entry = whole_kernel_event();
	const char *const before = "{\"kind\":\"kernel\",\"number\":2,\"tag\":\"M\",\"rest\":";
	uint32_t expected[8];
	uint32_t got[64];
	size_t n = 0;
	size_t count = 0;

	for (uint32_t i = 0; i < bytes; count++) {
		size_t length = decode(text + i, bytes - i, &expected[count]);
		if (length == 0)
			expected[count] = text[i];
		i += (uint32_t)(length != 0 ? length : 1);
	}
	options.source_traits = BC_TRAIT_KERNEL;
	entry.kernel.rest = (struct bc_text){.at = (const char *)text, .bytes = bytes};
	struct printed all = print_all(BC_FORMAT_NDJSON, &options, &entry, 1);
	assert_memory_equal(all.text, before, strlen(before));
	const uint8_t *at = (const uint8_t *)all.text + strlen(before);
	const uint8_t *end = (const uint8_t *)all.text + all.bytes;
	for (const uint8_t *p = at; p < end - 1; p++) /* no control characters */
		assert_true(*p >= 0x20 && *p != 0x7F && (*p != 0xC2 || p[1] >= 0xA0));
	at = read_string(at, end, got, &n);
	assert_int_equal(end - at, 2);
	assert_memory_equal(at, "}\n", 2);
	assert_int_equal(n, count);
	assert_memory_equal(got, expected, count * sizeof(*got));
	printed_free(&all);
}

TEST(any_two_bytes_become_the_right_string)
{
	for (unsigned a = 0; a < 256; a++) {
		for (unsigned b = a % test_stride(25); b < 256; b += test_stride(25)) {
			const uint8_t text[] = {(uint8_t)a, (uint8_t)b};
			check_text(text, 2);
		}
		const uint8_t text[] = {(uint8_t)a};
		check_text(text, 1);
	}
}

TEST(valid_utf8_is_kept_and_invalid_utf8_is_not)
{
	static const uint8_t edges[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2,
		0xDF, 0xE0, 0xE1, 0xED, 0xEE, 0xF0, 0xF1, 0xF4, 0xF5};
	const unsigned n = sizeof(edges);

	for (unsigned i = 0; i < n * n * n * n; i += test_stride(43)) {
		const uint8_t text[] = {edges[i / n / n / n], edges[i / n / n % n],
			edges[i / n % n], edges[i % n], 0x80};
		if (text[0] < 0xC0)
			continue;
		check_text(text, 4);
		if (i % 5 == 0)
			check_text(text, 5);
	}
}

TEST(the_longest_line_of_controls_fits)
{
	struct bc_format_options options = bc_format_options_default();
	struct bc_entry entries[2] = {whole_line("first"), whole_instruction()};
	char *bytes = malloc(BC_LINE_MAX);

	assert_non_null(bytes);
	memset(bytes, 1, BC_LINE_MAX);
	options.source_traits = ALL_TRAITS;
	entries[1].line = (struct bc_text){.at = bytes, .bytes = BC_LINE_MAX - 1};
	entries[1].instruction.disassembly = entries[1].line;
	entries[1].instruction.set.bytes = 0;
	entries[1].instruction.mode.bytes = 0;
	struct printed all = print_all(BC_FORMAT_NDJSON, &options, entries, 2);
	assert_int_equal(all.rc, 0);
	size_t count = 0;
	for (const char *at = all.text; (at = strstr(at, "\\u0001")) != NULL; at += 6)
		count++;
	assert_int_equal(count, 2 * (BC_LINE_MAX - 1));
	printed_free(&all);
	free(bytes);
}
