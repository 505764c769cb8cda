/* Names of addresses, against a search through all lines. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/trace/name_map.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define LINES 60u

static int add_text(struct bc_name_map *map, const char *text, size_t bytes, char err[128])
{
	int fd = memfd_create("names", MFD_CLOEXEC);

	assert_true(fd >= 0 && write(fd, text, bytes) == (ssize_t)bytes);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	int rc = bc_name_file_add_map(map, fd, err, 128);
	close(fd);
	return rc;
}

/* The name of an address, or NULL. */
static const char *find(const struct bc_name_map *map, bool is_port, uint64_t addr)
{
	struct bc_name name;

	return bc_name_map_find(map, is_port, addr, &name) ? name.text : NULL;
}

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
		assert_int_equal(add_text(map, text, used, err), 0);
		for (uint64_t addr = 0; addr < 280; addr++)
			for (int is_port = 0; is_port < 2; is_port++) {
				char name[24];
				const char *wanted = search(lines, count, is_port, addr, name);
				const char *got = find(map, is_port, addr);
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

	assert_int_equal(add_text(map, text, strlen(text), err), 0);
}

TEST(a_later_layer_hides_an_earlier_one)
{
	struct bc_name_map *map = bc_name_map_open();

	assert_null(find(map, false, 0xb8000));
	assert_int_equal(bc_name_map_add_pc(map), 0);
	assert_string_equal(find(map, false, 0xb8000), "VGA colour text");
	add(map, "# mine\n\n  0xB8000-0xB8FFF\tthe screen  \r\nport 80 progress");
	assert_string_equal(find(map, false, 0xb8fff), "the screen");
	assert_string_equal(find(map, false, 0xb9000), "VGA colour text");
	assert_string_equal(find(map, true, 0x80), "progress");
	assert_null(find(map, false, 0x100000));
	add(map, "ffffffffffffffff top");
	assert_string_equal(find(map, false, UINT64_MAX), "top");
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
		{"11111111111111111 a", "line 1: expected a hexadecimal address"}};
	struct bc_name_map *map = bc_name_map_open();

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		char err[128] = "";
		assert_int_equal(add_text(map, cases[i].text, strlen(cases[i].text), err), -EINVAL);
		assert_string_equal(err, cases[i].err);
		assert_null(find(map, false, 0x10));
	}
	bc_name_map_close(map);
}

/* Ranges that are published in the IBM PC/AT Technical Reference, the VGA and PCI specifications
 * and Linux (standard_io_resources, probe_roms.c), with a word that their names must have. */
static const struct {
	bool is_port;
	uint64_t first;
	uint64_t last;
	const char *word;
} published[] = {{true, 0x00, 0x1f, "DMA"}, {true, 0x20, 0x21, "interrupt controller 1"},
	{true, 0x40, 0x43, "timer"}, {true, 0x60, 0x60, "keyboard"}, {true, 0x61, 0x61, "speaker"},
	{true, 0x64, 0x64, "keyboard"}, {true, 0x70, 0x70, "CMOS"}, {true, 0x71, 0x71, "CMOS"},
	{true, 0x80, 0x80, "POST"}, {true, 0x81, 0x8f, "DMA"}, {true, 0x92, 0x92, "A20"},
	{true, 0xa0, 0xa1, "interrupt controller 2"}, {true, 0xc0, 0xdf, "DMA"},
	{true, 0xf0, 0xff, "coprocessor"}, {true, 0x170, 0x177, "IDE 2"},
	{true, 0x1f0, 0x1f7, "IDE 1"}, {true, 0x376, 0x376, "IDE 2"}, {true, 0x3f6, 0x3f6, "IDE 1"},
	{true, 0x278, 0x27f, "LPT2"}, {true, 0x378, 0x37f, "LPT1"}, {true, 0x3bc, 0x3bf, "LPT3"},
	{true, 0x2e8, 0x2ef, "COM4"}, {true, 0x2f8, 0x2ff, "COM2"}, {true, 0x3e8, 0x3ef, "COM3"},
	{true, 0x3f8, 0x3ff, "COM1"}, {true, 0x3b0, 0x3bb, "VGA"}, {true, 0x3c0, 0x3cf, "VGA"},
	{true, 0x3d0, 0x3df, "VGA"}, {true, 0x3f0, 0x3f5, "floppy"}, {true, 0x3f7, 0x3f7, "floppy"},
	{true, 0xcf8, 0xcf8, "PCI"}, {true, 0xcfa, 0xcff, "PCI"}, {true, 0xcf9, 0xcf9, "reset"},
	{false, 0x0, 0x3ff, "interrupt vectors"}, {false, 0x400, 0x4ff, "BIOS data"},
	{false, 0xa0000, 0xaffff, "VGA"}, {false, 0xb0000, 0xb7fff, "monochrome"},
	{false, 0xb8000, 0xbffff, "colour text"}, {false, 0xc0000, 0xc7fff, "video BIOS"},
	{false, 0xf0000, 0xfffff, "BIOS"}, {false, 0xfec00000, 0xfec00fff, "I/O APIC"},
	{false, 0xfee00000, 0xfee00fff, "local APIC"}};

TEST_CASES(the_pc_map_agrees_with_published_lists_at_every_edge, published)
{
	struct bc_name_map *map = bc_name_map_open();

	assert_int_equal(bc_name_map_add_pc(map), 0);
	const char *name = find(map, c->is_port, c->first);
	assert_non_null(name);
	assert_non_null(strstr(name, c->word));
	for (uint64_t addr = c->first; addr <= c->last; addr++)
		assert_ptr_equal(find(map, c->is_port, addr), name);
	assert_ptr_not_equal(find(map, c->is_port, c->first - 1), name);
	assert_ptr_not_equal(find(map, c->is_port, c->last + 1), name);
	bc_name_map_close(map);
}

static const char two_layers[] = "1000-1fff   Frame buffer\n"
				 "2000-2fff   Frame buffer tail\n"
				 "4000        frame\n"
				 "port 300-30f frame grabber\n"
				 "port 310     frame grabber\n"
				 "5000-5fff   VGA\n"
				 "6000        reframe\n"
				 "7000        frames\n";

/* The ranges of each region, "p" before those of ports; or the error. */
static const struct {
	const char *name;
	const char *ranges;
} regions[] = {
	{"frame", "4000-4000"}, /* an equal name comes before words */
	{"FRAME", "4000-4000"},
	{"frame buffer", "1000-1fff"},
	{"frame_buffer", "1000-1fff"},
	{"buffer", "1000-2fff"}, /* adjacent ranges are one */
	{"grabber", "p300-310"},
	{"buffer tail", "2000-2fff"},
	{"vga", "5000-5fff"}, /* hides the PC's */
	{"com1", "p3f8-3ff"},
	{"ide", "p170-177 p1f0-1f7 p376-376 p3f6-3f6"},
	{"IDE_1", "p1f0-1f7"},
	{"bios", "f0000-fffff"},
	{"video bios", "c0000-c7fff"},
	{"nmi status", "p61-61"},
	{"fram", "no region has this name; similar names: Frame buffer, Frame buffer tail, frame, "
		 "frames, frame grabber"},
	{"keybord", "no region has this name; similar names: keyboard data, keyboard command"},
	{"zzz", "no region has this name"},
	{"", "no region has this name"},
};

TEST_CASES(a_region_has_the_ranges_of_its_name_in_the_last_layer_that_knows_it, regions)
{
	struct bc_name_map *map = bc_name_map_open();
	struct bc_name_region region;
	char text[256] = "";
	size_t used = 0;

	add(map, two_layers);
	if (bc_name_map_region(map, c->name, &region, text, sizeof(text)))
		for (unsigned i = 0; i < region.count; i++)
			used += (size_t)snprintf(text + used, sizeof(text) - used,
				"%s%s%" PRIx64 "-%" PRIx64, i != 0 ? " " : "",
				region.ranges[i].is_port ? "p" : "", region.ranges[i].first,
				region.ranges[i].last);
	assert_string_equal(text, c->ranges);
	bc_name_map_close(map);
}

/* Of the last layer first; then the PC's. */
TEST(all_names_can_be_listed)
{
	struct bc_name_map *map = bc_name_map_open();
	struct bc_name_range range;
	size_t n = 0;

	add(map, "port 80 POST\n1000-1fff b\n");
	add(map, "");
	add(map, "7000 last\n");
	const char *const names[] = {"last", "b", "POST", "interrupt vectors"};
	const uint64_t ends[] = {0x7000, 0x1fff, 0x80, 0x3ff};
	for (; n < 4; n++) {
		assert_string_equal(bc_name_map_nth(map, n, &range), names[n]);
		assert_int_equal(range.last, ends[n]);
		assert_int_equal(range.is_port, n == 2);
	}
	while (bc_name_map_nth(map, n, &range) != NULL)
		n++;
	assert_in_range(n, 45, 60);
	assert_null(bc_name_map_nth(map, SIZE_MAX, &range));
	bc_name_map_close(map);
}

TEST(the_vga_is_its_memory_and_its_ports)
{
	struct bc_name_map *map = bc_name_map_open();
	struct bc_name_region region;
	struct bc_name name;
	char err[256];

	assert_true(bc_name_map_region(map, "vga", &region, err, sizeof(err)));
	assert_int_equal(region.count, 3);
	assert_int_equal(region.ranges[0].first, 0xa0000);
	assert_int_equal(region.ranges[0].last, 0xbffff);
	assert_int_equal(region.ranges[1].first, 0x3b0);
	assert_int_equal(region.ranges[2].last, 0x3df);
	assert_false(bc_name_map_find(map, false, 0xa0000, &name)); /* it was not added */
	bc_name_map_close(map);
}

TEST(a_region_of_too_many_ranges_is_an_error)
{
	struct bc_name_map *map = bc_name_map_open();
	struct bc_name_region region;
	char text[2048];
	char err[256];
	size_t used = 0;

	for (unsigned i = 0; i < BC_NAME_REGION_RANGES + 1; i++) {
		used += (size_t)sprintf(text + used, "%x part\n", i * 2);
		if (i == BC_NAME_REGION_RANGES - 1) {
			add(map, text);
			assert_true(bc_name_map_region(map, "part", &region, err, sizeof(err)));
			assert_int_equal(region.count, BC_NAME_REGION_RANGES);
		}
	}
	add(map, text);
	assert_false(bc_name_map_region(map, "part", &region, err, sizeof(err)));
	assert_string_equal(err, "more than 16 ranges have this name; use a longer one");
	bc_name_map_close(map);
}

TEST(a_long_name_is_kept_whole)
{
	struct bc_name_map *map = bc_name_map_open();
	char text[6000] = "10 ";

	memset(text + 3, 'x', 5000);
	add(map, text);
	assert_string_equal(find(map, false, 0x10), text + 3);
	bc_name_map_close(map);
}
