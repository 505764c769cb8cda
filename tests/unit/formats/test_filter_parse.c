#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "formats/trace/filter_parse.h"
#include "tests/support/test.h"

static struct bc_filter filter;

static bool matches(uint32_t addr, uint8_t type, uint8_t size, uint8_t proc)
{
	const struct bc_record record = {
		.addr = addr, .reqtype = type, .size = size, .proc = proc, .time = 1};
	uint8_t bytes[BC_RECORD_BYTES];
	uint64_t ticks;

	bc_record_store(bytes, &record);
	return bc_filter_records(&filter, bytes, 1, &ticks) != 0;
}

static void parse_valid(const char *text)
{
	char err[200] = "";

	if (!bc_filter_parse(&filter, NULL, text, err, sizeof(err)))
		fail_msg("'%s': %s", text, err);
}

TEST(all_conditions_must_hold)
{
	parse_valid("addr=1000-1fff type=read,write proc=0,2-3");
	assert_true(matches(0x1000, BC_REQ_MEMREAD, 4, 0));
	assert_true(matches(0xffe, BC_REQ_MEMREADINV, 4, 3));
	assert_true(matches(0x1fff, BC_REQ_MEMWRITE, 1, 2));
	assert_false(matches(0x2000, BC_REQ_MEMREAD, 4, 0));
	assert_false(matches(0x1000, BC_REQ_FETCH, 4, 0));
	assert_false(matches(0x1000, BC_REQ_MEMREAD, 4, 1));
	assert_false(matches(0x1000, BC_REQ_MEMREAD, 4, 4));
}

TEST(blanks_and_order_do_not_matter)
{
	struct bc_filter first;

	parse_valid("proc=1 type=FETCH");
	first = filter;
	parse_valid("  \ttype=fetch   proc=1\t ");
	assert_memory_equal(&first, &filter, sizeof(filter));
}

/* Each word for types has one meaning, also next to a port. */
TEST(read_write_and_fetch_are_of_memory)
{
	static const struct {
		const char *word;
		unsigned types[3];
	} words[] = {
		{"read", {BC_REQ_MEMREAD, BC_REQ_MEMREADINV, BC_REQ_MEMREAD}},
		{"write", {BC_REQ_MEMWRITE, BC_REQ_MEMWRITE, BC_REQ_MEMWRITE}},
		{"fetch", {BC_REQ_FETCH, BC_REQ_FETCH, BC_REQ_FETCH}},
		{"ioread", {BC_REQ_IOREAD, BC_REQ_IOREAD, BC_REQ_IOREAD}},
		{"iowrite", {BC_REQ_IOWRITE, BC_REQ_IOWRITE, BC_REQ_IOWRITE}},
	};
	char text[40];
	char err[200];

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		bool is_io = words[i].word[0] == 'i';
		snprintf(text, sizeof(text), "type=%s", words[i].word);
		parse_valid(text);
		for (unsigned type = 0; type < 0x100; type++)
			assert_int_equal(matches(0x3f8, (uint8_t)type, 1, 0),
				type == words[i].types[0] || type == words[i].types[1]);
		snprintf(text, sizeof(text), "port=3f8 type=%s", words[i].word);
		err[0] = '\0';
		assert_int_equal(bc_filter_parse(&filter, NULL, text, err, sizeof(err)), is_io);
		assert_int_equal(
			strstr(err, "types of I/O ports are ioread and iow") == NULL, is_io);
		for (unsigned type = 0; is_io && type < 0x100; type++)
			assert_int_equal(
				matches(0x3f8, (uint8_t)type, 1, 0), type == words[i].types[0]);
	}
}

TEST(a_port_is_an_i_o_access_at_its_address)
{
	struct bc_filter first;

	parse_valid("port=e0-e3");
	assert_true(matches(0xe0, BC_REQ_IOWRITE, 1, 0));
	assert_true(matches(0xe3, BC_REQ_IOWRITE, 1, 9));
	assert_true(matches(0xdf, BC_REQ_IOWRITE, 2, 0));
	assert_false(matches(0xe4, BC_REQ_IOWRITE, 1, 0));
	assert_true(matches(0xe0, BC_REQ_IOREAD, 1, 0));
	assert_false(matches(0xe0, BC_REQ_MEMWRITE, 1, 0));
	parse_valid("type=IO_WRITE port=e0-e3");
	assert_true(matches(0xe0, BC_REQ_IOWRITE, 1, 0));
	assert_false(matches(0xe0, BC_REQ_IOREAD, 1, 0));
	first = filter;
	parse_valid("type=IOWRITE port=0xE0-0xe3");
	assert_memory_equal(&first, &filter, sizeof(filter));
	parse_valid("port=e0-e3 type=0x11");
	assert_memory_equal(&first, &filter, sizeof(filter));
	parse_valid("port=80");
	assert_true(matches(0x80, BC_REQ_IOWRITE, 1, 0));
	assert_false(matches(0x81, BC_REQ_IOWRITE, 1, 0));
}

TEST(ranges_may_be_open)
{
	parse_valid("addr=fff0-");
	assert_true(matches(0xfff0, 0, 1, 0) && matches(UINT32_MAX, 0, 1, 0));
	assert_false(matches(0xffef, 0, 1, 0));
	parse_valid("addr=-fff");
	assert_true(matches(0, 0, 1, 0) && matches(0xfff, 0, 1, 0));
	assert_false(matches(0x1000, 0, 1, 0));
	parse_valid("addr=1234");
	assert_true(matches(0x1234, 0, 1, 0) && matches(0x1230, 0, 8, 0));
	assert_false(matches(0x1233, 0, 1, 0) || matches(0x1235, 0, 1, 0));
}

TEST(a_region_is_its_memory_and_its_ports)
{
	static const char *const texts[] = {
		"region=vga", "type=read,write,ioread,iowrite region=VGA"};
	struct bc_name_map *names = bc_name_map_open();
	char err[200];

	for (unsigned i = 0; i < 2; i++) {
		assert_true(bc_filter_parse(&filter, names, texts[i], err, sizeof(err)));
		assert_true(matches(0xa0000, BC_REQ_MEMREAD, 1, 0));
		assert_true(matches(0x9ffff, BC_REQ_MEMWRITE, 2, 0));
		assert_true(matches(0xbffff, BC_REQ_MEMWRITE, 1, 0));
		assert_true(matches(0x3c0, BC_REQ_IOWRITE, 1, 0));
		assert_true(matches(0x3df, BC_REQ_IOREAD, 1, 0));
		assert_false(matches(0x3bc, BC_REQ_IOREAD, 1, 0));
		assert_false(matches(0x3c0, BC_REQ_MEMREAD, 1, 0));
		assert_false(matches(0xa0000, BC_REQ_IOREAD, 1, 0));
		assert_false(matches(0xc0000, BC_REQ_MEMREAD, 1, 0));
		assert_false(matches(0x10000, BC_REQ_MEMREAD, 1, 0));
	}
	assert_true(bc_filter_parse(&filter, names, "region=IDE_1 type=ioread", err, sizeof(err)));
	assert_true(matches(0x1f7, BC_REQ_IOREAD, 1, 0));
	assert_false(matches(0x1f7, BC_REQ_IOWRITE, 1, 0));
	assert_false(bc_filter_parse(&filter, names, "region=vgs", err, sizeof(err)));
	assert_non_null(strstr(err, "region=vgs: no region has this name; similar names: VGA"));
	assert_false(bc_filter_parse(&filter, names, "region=ffffffffff", err, sizeof(err)));
	assert_non_null(strstr(err, "address too large"));
	assert_false(bc_filter_parse(&filter, names, "region=vga addr=1", err, sizeof(err)));
	assert_non_null(strstr(err, "addr=1: given twice"));
	assert_false(bc_filter_parse(&filter, names, "port=80 region=vga", err, sizeof(err)));
	assert_non_null(strstr(err, "region=vga: given twice"));
	bc_name_map_close(names);
}

TEST(a_region_matches_nothing_until_names_are_known)
{
	parse_valid("region=vga");
	for (unsigned addr = 0; addr < 1000; addr++)
		assert_false(matches(addr, BC_REQ_MEMREAD, 32, 0));
	assert_false(matches(0xa0000, BC_REQ_MEMREAD, 1, 0));
	assert_false(matches(UINT32_MAX, BC_REQ_MEMREAD, 1, 0));
}

TEST(an_error_names_the_condition_and_the_reason)
{
	static const struct {
		const char *text;
		const char *part;
	} bad[] = {
		{"", "empty filter"},
		{"  \t ", "empty filter"},
		{"everything", "everything: not a condition"},
		{"adr=1", "adr: unknown condition"},
		{"=1", "unknown condition"},
		{"addr=", "addr=: not a hexadecimal"},
		{"addr=-", "addr=-: not a hexadecimal"},
		{"addr=xyz", "addr=xyz: not a hexadecimal"},
		{"addr=1-2-3", "addr=1-2-3: not a hexadecimal"},
		{"addr=2-1", "addr=2-1: the range ends before"},
		{"addr=12345678901234567", "not a hexadecimal address range"},
		{"addr=1 addr=2", "addr=2: given twice"},
		{"type=read type=write", "type=write: given twice"},
		{"proc=1 proc=2", "proc=2: given twice"},
		{"port=e0 addr=1", "addr=1: given twice"},
		{"port=e0 type=read", "type=read: matches nothing: the types of I/O"},
		{"type=read port=e0", "port=e0: matches nothing: the types of I/O"},
		{"addr=1 port=e0", "port=e0: given twice"},
		{"port=10000", "port=10000: not a hexadecimal I/O port range"},
		{"port=0-10000", "I/O port range"},
		{"port=3-2", "I/O port range"},
		{"type=", "unknown type \"\""},
		{"type=read,", "unknown type \"\""},
		{"type=red", "unknown type \"red\"; did you mean read? Use read, write"},
		{"type=iowrit,read", "unknown type \"iowrit\"; did you mean IOWRITE? Use"},
		{"type=sample",
			"unknown type \"sample\"; use read, write and fetch (of memory), ioread"},
		{"type=0x100", "unknown type \"0x100\""},
		{"type=___", "unknown type \"___\""},
		{"proc=", "not a list of processors"},
		{"proc=1-", "not a list of processors"},
		{"proc=2-1", "not a list of processors"},
		{"proc=65536", "not a list of processors"},
		{"proc=99999999999999999999", "not a list of processors"},
		{"proc=-1", "not a list of processors"},
		{"proc=1,,2", "not a list of processors"},
	};
	char err[200];

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		err[0] = '\0';
		if (bc_filter_parse(&filter, NULL, bad[i].text, err, sizeof(err)))
			fail_msg("'%s' was accepted", bad[i].text);
		if (strstr(err, bad[i].part) == NULL)
			fail_msg("'%s': '%s'", bad[i].text, err);
	}
}

TEST(texts_of_any_length_are_accepted_or_refused)
{
	char err[16];

	for (size_t n = 1; n < 3000; n++) {
		char *text = malloc(n + 16);
		memset(text, '1', n);
		text[n] = '\0';
		assert_false(bc_filter_parse(&filter, NULL, text, err, sizeof(err)));
		memcpy(text, n > 5 ? "type=" : "addr=", n < 5 ? n : 5);
		assert_true(!bc_filter_parse(&filter, NULL, text, err, sizeof(err)) || n < 20);
		memset(text, ' ', n);
		strcpy(text + n, "proc=1");
		assert_int_equal(bc_filter_parse(&filter, NULL, text, err, sizeof(err)),
			n + strlen("proc=1") < 1024);
		free(text);
	}
}

TEST(a_filter_is_unchanged_after_an_error)
{
	struct bc_filter before;
	char err[200];

	parse_valid("type=read proc=3");
	before = filter;
	assert_false(bc_filter_parse_types(&filter, "write,nonsense", err, sizeof(err)));
	assert_false(bc_filter_parse_procs(&filter, "1,x", err, sizeof(err)));
	assert_false(bc_filter_parse_addr(&filter, "5-4", err, sizeof(err)));
	assert_false(bc_filter_parse_condition(&filter, NULL, "port", "10000", err, sizeof(err)));
	assert_memory_equal(&filter, &before, sizeof(filter));
	assert_true(bc_filter_parse_types(&filter, "write", err, sizeof(err)));
	assert_true(matches(0, BC_REQ_MEMREAD, 1, 3) && matches(0, BC_REQ_MEMWRITE, 1, 3));
}
