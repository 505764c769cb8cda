#include "tests/support/formatted.h"
#include "tests/support/test.h"

#include <inttypes.h>

static const char good[] = " L 10,4";

/* Output of valgrind, including its own messages. */
static const char trace[] = "==4711== Lackey, an example Valgrind tool\n"
			    "==4711== \n"
			    "I  04016930,3\n"
			    " S 1ffefffd88,8\n"
			    " L 04222cac,1\n"
			    " M 0421c7cc,4\n"
			    "\n"
			    "==4711== Counted 1 call to main()\n";

TEST(loads_stores_modifies_and_fetches_are_read)
{
	static const struct {
		unsigned type;
		uint64_t addr;
		uint32_t size;
		uint64_t number;
	} expected[] = {
		{BC_REQ_FETCH, 0x4016930, 3, 3},
		{BC_REQ_MEMWRITE, UINT64_C(0x1ffefffd88), 8, 4},
		{BC_REQ_MEMREAD, 0x4222cac, 1, 5},
		{BC_REF_MODIFY, 0x421c7cc, 4, 6},
	};
	struct parsed parsed = parse_text(BC_FORMAT_LACKEY, "", trace);

	assert_int_equal(parsed.fault_count, 0);
	assert_int_equal(parsed.count, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(parsed.entries[i].kind, BC_ENTRY_REFERENCE);
		assert_int_equal(parsed.entries[i].traits, BC_TRAIT_SIZE);
		assert_int_equal(parsed.entries[i].type, expected[i].type);
		assert_true(parsed.entries[i].addr == expected[i].addr);
		assert_int_equal(parsed.entries[i].size, expected[i].size);
		assert_true(parsed.entries[i].number == expected[i].number);
	}
	parsed_free(&parsed);
}

TEST(a_trace_of_only_valgrind_messages_has_no_references)
{
	struct parsed parsed = parse_text(
		BC_FORMAT_LACKEY, "", "==1== a\n==\n==1==\n\n \r\n==2== I  10,4\n");

	assert_int_equal(parsed.fault_count, 0);
	assert_int_equal(parsed.count, 0);
	parsed_free(&parsed);
}

TEST(superblocks_and_marked_messages_are_no_references)
{
	struct parsed parsed = parse_text(BC_FORMAT_LACKEY, "",
		"SB 04016930\nI  04016930,3\n--4711-- Reading syms\n**4711** hello\n"
		"--00:00:00:01.234 4711-- REDIR\n==00:00:00:01.234 4711== x\nSB 1ffefffd88\r\n"
		" L 10,4\n");

	assert_int_equal(parsed.fault_count, 0);
	assert_int_equal(parsed.count, 2);
	assert_int_equal(parsed.entries[1].number, 8);
	parsed_free(&parsed);
}

TEST(addresses_have_64_bits_and_sizes_32)
{
	for (size_t i = 0; i < FORMATTED_EDGES; i++) {
		char line[100];
		uint32_t size = (uint32_t)formatted_edges[i];
		snprintf(line, sizeof(line), " S %08" PRIx64 ",%" PRIu32 "\r\n", formatted_edges[i],
			size);
		struct parsed parsed = parse_text(BC_FORMAT_LACKEY, "", line);
		assert_int_equal(parsed.count, 1);
		assert_true(parsed.entries[0].addr == formatted_edges[i]);
		assert_int_equal(parsed.entries[0].size, size);
		assert_int_equal(parsed.entries[0].traits, size != 0 ? BC_TRAIT_SIZE : 0);
		parsed_free(&parsed);
	}
	assert_malformed(
		BC_FORMAT_LACKEY, " L 10000000000000000,4", 20, "address of at most 64 bits", good);
	assert_malformed(BC_FORMAT_LACKEY, " L 0,4294967296", 6, "size of at most 32 bits", good);
	assert_malformed(BC_FORMAT_LACKEY, " L 0,99999999999999999999", 25, "size", good);
}

TEST(output_of_the_program_is_reported)
{
	static const struct {
		const char *line;
		size_t column;
		const char *words;
	} cases[] = {
		{"Hello, world", 1, "one of I, L, S, M"},
		{"Ignored", 1, "one of I, L, S, M"},
		{" X 10,4", 2, "one of I, L, S, M"},
		{"--help", 1, "one of I, L, S, M"},
		{"--4711- x", 1, "one of I, L, S, M"},
		{"** 12 bytes", 1, "one of I, L, S, M"},
		{"SB", 1, "one of I, L, S, M"},
		{"SB 10x", 1, "one of I, L, S, M"},
		{" l 10,4", 2, "one of I, L, S, M"},
		{"=4711= x", 1, "one of I, L, S, M"},
		{" ==4711== x", 2, "one of I, L, S, M"},
		{"I", 2, "address"},
		{"I  ", 4, "address"},
		{"I  g,4", 4, "address"},
		{"I  10", 6, "a comma"},
		{"I  10 ,4", 6, "a comma"},
		{"I  10h,4", 6, "a comma"},
		{"I  10,", 7, "size"},
		{"I  10, 4", 7, "size"},
		{"I  10,-4", 7, "size"},
		{"I  10,4x", 8, "expected nothing"},
		{"I  10,4 L 5,4", 9, "expected nothing"},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++)
		assert_malformed(
			BC_FORMAT_LACKEY, cases[i].line, cases[i].column, cases[i].words, good);
}

TEST(lackey_can_only_be_read)
{
	uint32_t lost;

	assert_true(bc_format_info(BC_FORMAT_LACKEY)->can_read);
	assert_false(bc_format_info(BC_FORMAT_LACKEY)->can_write);
	assert_int_equal(bc_format_conversion(BC_FORMAT_DIN, BC_FORMAT_LACKEY, &lost),
		BC_CONVERSION_REFUSED);
}
