/* Names of addresses, against a search through all lines. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/names/name_map.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define LINES 60u

struct line {
	bool is_port;
	uint64_t first;
	uint64_t last;
};

/* Whether a range is preferred: it is smaller, or as large and starts later. */
static bool is_better(const struct line *a, const struct line *b)
{
	uint64_t a_bytes = a->last - a->first;
	uint64_t b_bytes = b->last - b->first;

	return a_bytes != b_bytes ? a_bytes < b_bytes : a->first > b->first;
}

static const char *search(
	const struct line *lines, size_t count, bool is_port, uint64_t addr, char name[24])
{
	const struct line *best = NULL;

	for (size_t i = 0; i < count; i++)
		if (lines[i].is_port == is_port && addr >= lines[i].first &&
			addr <= lines[i].last && (best == NULL || is_better(&lines[i], best)))
			best = &lines[i];
	if (best == NULL)
		return NULL;
	snprintf(name, 24, "%" PRIx64 "+%" PRIx64, best->first, best->last - best->first);
	return name;
}

TEST(the_smallest_range_has_the_name)
{
	struct dice dice = {.state = 5};

	for (unsigned round = 0; round < 300; round++) {
		struct line lines[LINES];
		char text[LINES * 64];
		char err[128];
		size_t used = 0;
		size_t count = dice_below(&dice, LINES);
		struct bc_name_map *map = bc_name_map_open();
		for (size_t i = 0; i < count; i++) {
			struct line *l = &lines[i];
			l->is_port = dice_below(&dice, 3) == 0;
			l->first = dice_below(&dice, 200);
			l->last = l->first + dice_below(&dice, 60);
			used += (size_t)sprintf(text + used,
				"%s%" PRIx64 "-%" PRIx64 " %" PRIx64 "+%" PRIx64 "\n",
				l->is_port ? "port " : "", l->first, l->last, l->first,
				l->last - l->first);
		}
		assert_int_equal(bc_name_map_add_text(map, text, used, err, sizeof(err)), 0);
		for (uint64_t addr = 0; addr < 280; addr++)
			for (int is_port = 0; is_port < 2; is_port++) {
				char name[24];
				const char *wanted = search(lines, count, is_port, addr, name);
				const char *got = bc_name_map_find(map, is_port, addr);
				if (wanted == NULL)
					assert_null(got);
				else
					assert_string_equal(got, wanted);
			}
		bc_name_map_close(map);
	}
}

static void add(struct bc_name_map *map, const char *text)
{
	char err[128] = "";

	assert_int_equal(bc_name_map_add_text(map, text, strlen(text), err, sizeof(err)), 0);
}

TEST(a_later_layer_hides_an_earlier_one)
{
	struct bc_name_map *map = bc_name_map_open();

	assert_null(bc_name_map_find(map, false, 0xb8000));
	assert_int_equal(bc_name_map_add_pc(map), 0);
	assert_string_equal(bc_name_map_find(map, false, 0xb8000), "colour text");
	add(map, "# mine\n\n  0xB8000-0xB8FFF\tthe screen  \r\nport 80 progress");
	assert_string_equal(bc_name_map_find(map, false, 0xb8fff), "the screen");
	assert_string_equal(bc_name_map_find(map, false, 0xb9000), "colour text");
	assert_string_equal(bc_name_map_find(map, true, 0x80), "progress");
	assert_null(bc_name_map_find(map, false, 0x100000));
	add(map, "ffffffffffffffff top");
	assert_string_equal(bc_name_map_find(map, false, UINT64_MAX), "top");
	bc_name_map_close(map);
}

TEST(a_malformed_line_is_an_error_and_changes_nothing)
{
	static const struct {
		const char *text;
		const char *err;
	} cases[] = {{"10 a\nxyz name", "line 2: expected a hexadecimal address"},
		{"10", "line 1: expected a name after the address"},
		{"10-20   \r\n", "line 1: expected a name after the address"},
		{"\n\n20-10 a", "line 3: the range ends before it starts"},
		{"10-zz a", "line 1: expected a range such as a0000-bffff"},
		{"10zz a", "line 1: expected a range such as a0000-bffff"},
		{"port 10000 a", "line 1: a port has at most 16 bits"},
		{"11111111111111111 a", "line 1: expected a hexadecimal address"},
		{"0 0123456789012345678901234567890123456789012345678901234567890123",
			"line 1: the name has more than 63 bytes"}};
	struct bc_name_map *map = bc_name_map_open();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char err[128] = "";
		assert_int_equal(bc_name_map_add_text(map, cases[i].text, strlen(cases[i].text),
					 err, sizeof(err)),
			-EINVAL);
		assert_string_equal(err, cases[i].err);
		assert_null(bc_name_map_find(map, false, 0x10));
	}
	bc_name_map_close(map);
}

/* Ranges that Linux reserves on every PC (standard_io_resources, probe_roms.c), and the base ports
 * of the BIOS data area and of ATA, with a word that the name must have. */
TEST(the_pc_map_agrees_with_published_lists)
{
	static const struct {
		bool is_port;
		uint64_t first;
		uint64_t last;
		const char *word;
	} known[] = {{true, 0x00, 0x1f, "DMA"}, {true, 0x20, 0x21, "interrupt controller 1"},
		{true, 0x40, 0x43, "timer"}, {true, 0x60, 0x60, "keyboard"},
		{true, 0x64, 0x64, "keyboard"}, {true, 0x70, 0x71, "CMOS"},
		{true, 0x81, 0x8f, "DMA"}, {true, 0xa0, 0xa1, "interrupt controller 2"},
		{true, 0xc0, 0xdf, "DMA"}, {true, 0xf0, 0xff, "coprocessor"},
		{true, 0x170, 0x177, "IDE 2"}, {true, 0x376, 0x376, "IDE 2"},
		{true, 0x1f0, 0x1f7, "IDE 1"}, {true, 0x3f6, 0x3f6, "IDE 1"},
		{true, 0x3f8, 0x3ff, "COM1"}, {true, 0x2f8, 0x2ff, "COM2"},
		{true, 0x3e8, 0x3ef, "COM3"}, {true, 0x2e8, 0x2ef, "COM4"},
		{true, 0x378, 0x37a, "LPT1"}, {true, 0x278, 0x27a, "LPT2"},
		{true, 0x3c0, 0x3cf, "VGA"}, {true, 0xcf8, 0xcf8, "PCI"},
		{true, 0xcfc, 0xcff, "PCI"}, {false, 0xa0000, 0xaffff, "VGA"},
		{false, 0xb8000, 0xbffff, "text"}, {false, 0xc0000, 0xc7fff, "video BIOS"},
		{false, 0xf0000, 0xfffff, "BIOS"}, {false, 0x400, 0x4ff, "BIOS data"},
		{false, 0xfec00000, 0xfec00fff, "I/O APIC"},
		{false, 0xfee00000, 0xfee00fff, "local APIC"}};
	struct bc_name_map *map = bc_name_map_open();

	assert_int_equal(bc_name_map_add_pc(map), 0);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		for (uint64_t addr = known[i].first; addr <= known[i].last; addr++) {
			const char *name = bc_name_map_find(map, known[i].is_port, addr);
			assert_non_null(name);
			assert_non_null(strstr(name, known[i].word));
		}
	bc_name_map_close(map);
}
