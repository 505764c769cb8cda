#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/fast_text.h"
#include "formats/base/format_id.h"
#include "formats/base/text.h"
#include "formats/trace/parser.h"
#include "tests/support/dice.h"
#include "tests/support/printed.h"
#include "tests/support/sample_entries.h"
#include "tests/support/test.h"

#define BYU_TRAITS                                                                               \
	(BC_TRAIT_REFERENCE | BC_TRAIT_FETCH | BC_TRAIT_CYCLE | BC_TRAIT_P6 | BC_TRAIT_INVALID | \
		BC_TRAIT_SIZE | BC_TRAIT_ATTR | BC_TRAIT_PROC | BC_TRAIT_TIME)

static void check(
	bc_traits traits, const struct bc_entry *entries, size_t count, const char *expected)
{
	char *text = print_text(BC_FORMAT_CSV, traits, entries, count);

	assert_string_equal(text, expected);
	free(text);
}

TEST(a_trace_has_the_columns_it_may_fill)
{
	static const struct {
		bc_traits traits;
		const char *header;
	} cases[] = {
		{BC_TRAIT_REFERENCE, "number,type,addr\n"},
		{BC_TRAIT_REFERENCE | BC_TRAIT_SIZE, "number,type,addr,size\n"},
		{BYU_TRAITS, "number,tick,type,addr,size,attr,proc,delta\n"},
		{BYU_TRAITS | BC_TRAIT_EVENT,
			"kind,number,tick,epoch,type,addr,size,attr,proc,delta,cause,lost,exact,"
			"duration_ns,text\n"},
		{BC_TRAIT_REFERENCE | BC_TRAIT_SIZE | BC_TRAIT_ATTR | BC_TRAIT_SAMPLE,
			"number,type,addr,size,attr,bus_addr,byte_enables,control\n"},
		{BC_TRAIT_REFERENCE | BC_TRAIT_SIZE | BC_TRAIT_TIME | BC_TRAIT_SPACE |
				BC_TRAIT_LETTER,
			"number,tick,type,addr,size,letter,space\n"},
		{BC_TRAIT_KERNEL | BC_TRAIT_TIME | BC_TRAIT_LETTER, "number,tick,tag,rest\n"},
		{BC_TRAIT_UOP,
			"number,step,pc,src1,src2,dest,flags,branch,access,immediate,mem_addr,"
			"fallthrough,target,macro,micro\n"},
		{BC_TRAIT_INSTRUCTION | BC_TRAIT_REGISTER | BC_TRAIT_LINE | BC_TRAIT_REFERENCE |
				BC_TRAIT_SIZE | BC_TRAIT_PROC | BC_TRAIT_TIME | BC_TRAIT_DATA |
				BC_TRAIT_PHYS,
			"kind,number,tick,unit,type,addr,size,proc,phys,data,effect,id,set,mode,"
			"opcode,disassembly,register,value,line\n"},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++)
		check(cases[i].traits, NULL, 0, cases[i].header);
}

TEST(each_kind_has_its_cells)
{
	const struct bc_entry entries[] = {whole_reference(), whole_instruction(), whole_uop(),
		whole_register(), whole_kernel_event(), whole_event(0, ""),
		whole_event(BC_EVENT_GAP, ""), whole_event(BC_EVENT_MARK, "a \"b\""),
		whole_event(BC_EVENT_TRIGGER, ""), whole_line("BR x, y")};

	check(ALL_TRAITS, entries, COUNT_OF(entries),
		"kind,number,tick,unit,epoch,type,addr,size,attr,proc,delta,letter,space,phys,data,"
		"attrib,security,bus_addr,byte_enables,control,effect,id,set,mode,opcode,"
		"disassembly,register,value,step,pc,src1,src2,dest,flags,branch,access,immediate,"
		"mem_addr,fallthrough,target,macro,micro,tag,rest,cause,lost,exact,duration_ns,"
		"text,line\n"
		"reference,7,99,clk,1,MEMREAD,0x1e5,4,3,2,12,x,0x9f8e7,0x8000001e5,0x0000beef,X,NS,"
		"0x1e0,0xf0,0xd5,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,the line\n"
		"instruction,3,271,ns,0,,0xffffffc000080000,4,,1,,,,0x80000,,,,,,,skipped,12,O,"
		"EL3h_s,0x0000001f,\"add  x0, x1, \"\"#1\"\"\",,,,,,,,,,,,,,,,,,,,,,,,271 ns IT "
		"...\n"
		"uop,5,,,0,,,,,,,,,,,,,,,,,,,,,,,,1,0x440d7e,4,-1,49,W,-,L,-24,0x7fffffffe588,"
		"0x440d82,0x0,\"MOVS_L,X\",LOAD,,,,,,,,\n"
		"register,4,271,ns,0,,,,,0,,,,,,,,,,,,,,,,,cpsr,0x0000_00d3,,,,,,,,,,,,,,,,,,,,,,\n"
		"kernel,2,1311768467463790334,,0,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,M,100 "
		"1a2b3c4d foobar.so,,,,,,\n"
		"epoch,40,1000,,2,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\n"
		"gap,40,1000,,2,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,disk,250,true,17,,\n"
		"mark,40,1000,,2,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\"a \"\"b\"\"\",\n"
		"trigger,40,1000,,2,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\n"
		"line,6,,,0,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\"BR x, y\"\n");
}

TEST(a_time_of_day_is_that_of_the_tick)
{
	const struct bc_moment moment = {.is_known = true,
		.epoch = 2,
		.clock = {INT64_C(1795166100999999999), 100, 1000000000}};
	struct bc_format_options options = bc_format_options_default();
	struct bc_entry entries[4] = {whole_event(BC_EVENT_TRIGGER, "")}; /* tick 1000 */

	for (unsigned i = 1; i < 4; i++) {
		bc_entry_reference(&entries[i], BC_REQ_MEMREAD, 0x1e5, i);
		entries[i].traits = BC_TRAIT_TIME;
		entries[i].tick = 99 + i;
		entries[i].epoch = 2;
	}
	entries[2].epoch = 3;
	entries[3].traits = 0;
	options.source_traits = BC_TRAIT_REFERENCE | BC_TRAIT_EVENT | BC_TRAIT_TIME;
	options.source_has_wall = true;
	struct printed csv = print_all_at(
		BC_FORMAT_CSV, &options, &moment, entries, COUNT_OF(entries));
	assert_string_equal(csv.text,
		"kind,number,tick,epoch,time,type,addr,cause,lost,exact,duration_ns,text\n"
		"trigger,40,1000,2,2026-11-20T09:15:01.000000899Z,,,,,,,\n"
		"reference,1,100,2,2026-11-20T09:15:00.999999999Z,MEMREAD,0x1e5,,,,,\n"
		"reference,2,101,3,,MEMREAD,0x1e5,,,,,\n"
		"reference,3,,2,,MEMREAD,0x1e5,,,,,\n");
	printed_free(&csv);
	struct printed json = print_all_at(
		BC_FORMAT_NDJSON, &options, &moment, entries, COUNT_OF(entries));
	assert_string_equal(json.text,
		"{\"kind\":\"trigger\",\"number\":40,\"tick\":1000,\"epoch\":2,"
		"\"time\":\"2026-11-20T09:15:01.000000899Z\"}\n"
		"{\"kind\":\"reference\",\"number\":1,\"tick\":100,\"epoch\":2,"
		"\"time\":\"2026-11-20T09:15:00.999999999Z\",\"type\":\"MEMREAD\","
		"\"addr\":\"0x1e5\"}\n"
		"{\"kind\":\"reference\",\"number\":2,\"tick\":101,\"epoch\":3,"
		"\"type\":\"MEMREAD\",\"addr\":\"0x1e5\"}\n"
		"{\"kind\":\"reference\",\"number\":3,\"epoch\":2,\"type\":\"MEMREAD\","
		"\"addr\":\"0x1e5\"}\n");
	printed_free(&json);
}

TEST(numbers_of_all_lengths_are_exact)
{
	struct bc_decimal_row row = {0};
	struct bc_small_decimals small;
	struct dice dice = {4};
	char expected[32];
	char got[64];

	bc_small_decimals_init(&small);
	for (int round = 0; round < 400000; round += (int)test_stride(9)) {
		uint64_t n = dice_roll(&dice) >> dice_below(&dice, 64);
		if (round % 4 == 0) {
			n = 1;
			for (unsigned i = dice_below(&dice, 20); i != 0; i--)
				n *= 10;
			n += dice_below(&dice, 3) - UINT64_C(1);
		}
		int length = snprintf(expected, sizeof(expected), "%" PRIu64, n);
		assert_int_equal(bc_write_decimal(got, n) - got, length);
		assert_memory_equal(got, expected, (size_t)length);
		assert_int_equal(bc_write_decimal_row(got, &row, n) - got, length);
		assert_memory_equal(got, expected, (size_t)length);
		assert_int_equal(bc_write_small_decimal(got, &small, n) - got, length);
		assert_memory_equal(got, expected, (size_t)length);
		length = snprintf(expected, sizeof(expected), "%" PRId64, (int64_t)n);
		assert_int_equal(bc_write_signed(got, (int64_t)n) - got, length);
		assert_memory_equal(got, expected, (size_t)length);
		unsigned digits = dice_below(&dice, 20);
		length = snprintf(expected, sizeof(expected), "%0*" PRIx64, (int)digits, n);
		assert_int_equal(bc_write_hex_padded(got, n, digits) - got, length);
		assert_memory_equal(got, expected, (size_t)length);
	}
	for (uint32_t n = 0; n < 1000000; n += test_stride(9)) {
		snprintf(expected, sizeof(expected), "%" PRIu32, n);
		*bc_write_decimal(got, n) = '\0';
		assert_string_equal(got, expected);
	}
	assert_int_equal(bc_write_decimal(got, UINT64_MAX) - got, 20);
	assert_memory_equal(got, "18446744073709551615", 20);
	assert_int_equal(bc_write_signed(got, INT64_MIN) - got, 20);
	assert_memory_equal(got, "-9223372036854775808", 20);
}

static int64_t some_time(struct dice *dice, int64_t last)
{
	switch (dice_below(dice, 4)) {
	case 0:
		return (int64_t)dice_roll(dice);
	case 1: /* the ends of seconds */
		return (int64_t)dice_below(dice, 1000) * 1000000000 - 500000000000 +
		       (int64_t)dice_below(dice, 3) - 1;
	default:
		return last < INT64_MAX - 1000000000 ? last + (int64_t)dice_below(dice, 700000000)
						     : last;
	}
}

TEST(times_of_day_are_exact_in_any_order)
{
	struct bc_time_row row = {0};
	struct dice dice = {6};
	char expected[BC_RFC3339_BYTES];
	char got[64];
	int64_t ns = INT64_MIN;

	for (int round = 0; round < 40000; round++) {
		bc_rfc3339_write(expected, ns);
		*bc_write_time_row(got, &row, ns) = '\0';
		assert_string_equal(got, expected);
		ns = round == 20000 ? INT64_MAX : round == 30000 ? 0 : some_time(&dice, ns);
	}
}

/* Parses the text of a cell at `at` according to RFC 4180. Returns its end. */
static const char *read_cell(const char *at, char *out, size_t *bytes)
{
	size_t n = 0;

	if (*at != '"') {
		while (*at != ',' && *at != '\n')
			out[n++] = *at++;
		*bytes = n;
		return at;
	}
	for (at++;; at++) {
		if (*at == '"' && *++at != '"')
			break;
		out[n++] = *at;
	}
	*bytes = n;
	return at;
}

static void check_text(const char *text, uint32_t bytes)
{
	struct bc_format_options options = bc_format_options_default();
	struct bc_entry entry = whole_kernel_event();
	char got[64];
	size_t got_bytes;

	options.source_traits = BC_TRAIT_KERNEL;
	entry.kernel.rest = (struct bc_text){.at = text, .bytes = bytes};
	struct printed all = print_all(BC_FORMAT_CSV, &options, &entry, 1);
	assert_memory_equal(all.text, "number,tag,rest\n2,M,", 20);
	const char *end = read_cell(all.text + 20, got, &got_bytes);
	assert_ptr_equal(end, all.text + all.bytes - 1);
	assert_int_equal(*end, '\n');
	assert_int_equal(got_bytes, bytes);
	assert_memory_equal(got, text, bytes);
	printed_free(&all);
}

TEST(every_byte_of_a_text_round_trips)
{
	for (unsigned a = 0; a < 256; a++) {
		for (unsigned b = a % test_stride(25); b < 256; b += test_stride(25)) {
			const char text[] = {(char)a, 'x', (char)b};
			check_text(text, 3);
			check_text(text, 1);
		}
	}
}

TEST(every_letter_round_trips)
{
	char got[8];
	size_t bytes;

	for (unsigned letter = 1; letter < 256; letter++) {
		struct bc_entry entry = whole_reference();
		entry.letter = (char)letter;
		char *text = print_text(
			BC_FORMAT_CSV, BC_TRAIT_REFERENCE | BC_TRAIT_LETTER, &entry, 1);
		const char *row = strstr(text, "7,MEMREAD,0x1e5,");
		assert_non_null(row);
		const char *end = read_cell(row + 16, got, &bytes);
		assert_int_equal(*end, '\n');
		assert_int_equal(bytes, 1);
		assert_int_equal((uint8_t)got[0], letter);
		free(text);
	}
}

TEST(the_longest_line_of_quotes_fits)
{
	struct bc_format_options options = bc_format_options_default();
	struct bc_entry entries[2] = {whole_line("first"), whole_instruction()};
	size_t most = 2 * (BC_LINE_MAX - 1);
	char *quotes = malloc(8 * BC_LINE_MAX);

	assert_non_null(quotes);
	memset(quotes, '"', 8 * BC_LINE_MAX);
	options.source_traits = ALL_TRAITS;
	entries[1].line = (struct bc_text){.at = quotes, .bytes = BC_LINE_MAX - 1};
	entries[1].instruction.disassembly = entries[1].line;
	entries[1].instruction.set.bytes = 0;
	entries[1].instruction.mode.bytes = 0;
	struct printed all = print_all(BC_FORMAT_CSV, &options, entries, 2);
	assert_int_equal(all.rc, 0);
	size_t count = 0;
	for (size_t i = 0; i < all.bytes; i++)
		count += all.text[i] == '"';
	assert_int_equal(count, 2 * most + 4);
	printed_free(&all);
	free(quotes);
}
