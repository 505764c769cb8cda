/* Symbols of ELF files that the test writes byte by byte, and of System.map. How symbols of real
 * programs agree with nm is tested in tests/system/test_names.py. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/trace/name_map.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define IMAGE_MAX 4096u
#define TEXT      0x100000u /* .text */
#define TEXT_SIZE 0x1000u

/* ELF constants, from the System V ABI. */
enum { NOTYPE = 0, OBJECT = 1, FUNC = 2, SECTION = 3, FILE_NAME = 4, IFUNC = 10 };
enum { UNDEF = 0, IN_TEXT = 1, IN_NOTE = 2, ABSOLUTE = 0xfff1, COMMON = 0xfff2 };

static const struct symbol {
	const char *name;
	unsigned type;
	unsigned section;
	uint32_t value;
	uint32_t size;
} symbols[] = {
	{"file.c", FILE_NAME, ABSOLUTE, 0, 0},
	{"", SECTION, IN_TEXT, TEXT, 0},
	{"start", FUNC, IN_TEXT, TEXT + 0x10, 0x20},
	{"start.inner", FUNC, IN_TEXT, TEXT + 0x18, 4},
	{"hidden_label", NOTYPE, IN_TEXT, TEXT + 0x20, 0},
	{"label", NOTYPE, IN_TEXT, TEXT + 0x40, 0},
	{"table", OBJECT, IN_TEXT, TEXT + 0x50, 8},
	{"chosen", IFUNC, IN_TEXT, TEXT + 0x60, 1},
	{"last_label", FUNC, IN_TEXT, TEXT + 0xff0, 0},
	{"end_label", NOTYPE, IN_TEXT, TEXT + TEXT_SIZE, 0},
	{"note", NOTYPE, IN_NOTE, 0x30, 0},
	{"missing", FUNC, UNDEF, TEXT + 0x80, 4},
	{"common", OBJECT, COMMON, TEXT + 0x90, 4},
	{"fixed", OBJECT, ABSOLUTE, 0xb8000, 4000},
};

/* The name of each address that has one. */
static const struct {
	uint32_t first;
	uint32_t last;
	uint32_t start; /* of the symbol */
	const char *name;
} wanted[] = {
	{TEXT + 0x10, TEXT + 0x17, TEXT + 0x10, "start"},
	{TEXT + 0x18, TEXT + 0x1b, TEXT + 0x18, "start.inner"},
	{TEXT + 0x1c, TEXT + 0x2f, TEXT + 0x10, "start"},
	{TEXT + 0x30, TEXT + 0x3f, TEXT + 0x20, "hidden_label"},
	{TEXT + 0x40, TEXT + 0x4f, TEXT + 0x40, "label"},
	{TEXT + 0x50, TEXT + 0x57, TEXT + 0x50, "table"},
	{TEXT + 0x60, TEXT + 0x60, TEXT + 0x60, "chosen"},
	{TEXT + 0xff0, TEXT + 0xfff, TEXT + 0xff0, "last_label"},
	{0xb8000, 0xb8000 + 3999, 0xb8000, "fixed"},
};

struct image {
	bool is_64;
	bool is_big;
	size_t used;
	uint8_t bytes[IMAGE_MAX];
};

static void add(struct image *image, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		image->bytes[image->used++] = (uint8_t)(value >>
							8 * (image->is_big ? bytes - 1 - i : i));
}

/* A field with the size of an address. */
static void add_word(struct image *image, uint64_t value)
{
	add(image, value, image->is_64 ? 8 : 4);
}

static void add_section(struct image *image, unsigned type, unsigned flags, uint64_t addr,
	uint64_t offset, uint64_t size, unsigned link, uint64_t entry)
{
	add(image, 0, 4);
	add(image, type, 4);
	add_word(image, flags);
	add_word(image, addr);
	add_word(image, offset);
	add_word(image, size);
	add(image, link, 4);
	add(image, 0, 4);
	add_word(image, 1);
	add_word(image, entry);
}

static void add_symbol(struct image *image, uint32_t name, const struct symbol *symbol)
{
	add(image, name, 4);
	if (!image->is_64) {
		add(image, symbol->value, 4);
		add(image, symbol->size, 4);
	}
	add(image, symbol->type | 1u << 4, 1);
	add(image, 0, 1);
	add(image, symbol->section, 2);
	if (image->is_64) {
		add(image, symbol->value, 8);
		add(image, symbol->size, 8);
	}
}

/* Writes a file of sections: none, .text and .note (not in the file), strings, symbols. */
static void make_image(struct image *image, bool is_64, bool is_big, unsigned table_type)
{
	unsigned header = is_64 ? 64 : 52;
	unsigned section = is_64 ? 64 : 40;
	unsigned entry = is_64 ? 24 : 16;
	size_t strings = header + 5 * section;
	size_t strings_size = 1;
	const struct symbol none = {"", NOTYPE, UNDEF, 0, 0};
	uint32_t name = 1;

	for (size_t i = 0; i < COUNT_OF(symbols); i++)
		strings_size += strlen(symbols[i].name) + 1;
	*image = (struct image){.is_64 = is_64, .is_big = is_big, .used = 16};
	memcpy(image->bytes, "\177ELF", 4);
	image->bytes[4] = is_64 ? 2 : 1;
	image->bytes[5] = is_big ? 2 : 1;
	image->bytes[6] = 1;
	add(image, 2, 2); /* an executable */
	add(image, is_big ? 20 : 3, 2);
	add(image, 1, 4);
	add_word(image, TEXT);
	add_word(image, 0);
	add_word(image, header);
	add(image, 0, 4);
	add(image, header, 2);
	add(image, 0, 4);
	add(image, section, 2);
	add(image, 5, 2);
	add(image, 0, 2);
	assert_int_equal(image->used, header);
	add_section(image, 0, 0, 0, 0, 0, 0, 0);
	add_section(image, 8, 6, TEXT, 0, TEXT_SIZE, 0, 0); /* SHT_NOBITS, ALLOC | EXECINSTR */
	add_section(image, 8, 0, 0, 0, 0x100, 0, 0);
	add_section(image, 3, 0, 0, strings, strings_size, 0, 0);
	add_section(image, table_type, 0, 0, strings + strings_size,
		(COUNT_OF(symbols) + 1) * entry, 3, entry);
	image->used++;
	for (size_t i = 0; i < COUNT_OF(symbols); i++) {
		strcpy((char *)image->bytes + image->used, symbols[i].name);
		image->used += strlen(symbols[i].name) + 1;
	}
	add_symbol(image, 0, &none);
	for (size_t i = 0; i < COUNT_OF(symbols); i++) {
		add_symbol(image, name, &symbols[i]);
		name += (uint32_t)strlen(symbols[i].name) + 1;
	}
}

static int load_bytes(
	struct bc_name_map *map, const uint8_t *bytes, size_t n, uint64_t offset, char err[256])
{
	int fd = memfd_create("symbols", MFD_CLOEXEC);

	err[0] = '\0';
	assert_true(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	int rc = bc_name_file_add_symbols(map, fd, offset, err, 256);
	close(fd);
	return rc;
}

static void check_names(const struct bc_name_map *map, uint64_t offset)
{
	uint64_t previous = 0;

	for (size_t i = 0; i < COUNT_OF(wanted); i++) {
		struct bc_name name;
		uint64_t addr = wanted[i].first;
		/* Nothing between the ranges has a name. */
		for (uint64_t gap = previous + 1;
			i != 0 && wanted[i].first > previous && gap < wanted[i].first; gap++)
			assert_false(bc_name_map_find(map, false, gap + offset, &name));
		for (; addr <= wanted[i].last; addr++) {
			assert_true(bc_name_map_find(map, false, addr + offset, &name));
			assert_string_equal(name.text, wanted[i].name);
			assert_true(name.is_symbol);
			assert_int_equal(name.offset, addr - wanted[i].start);
			assert_false(bc_name_map_find(map, true, addr + offset, &name));
		}
		previous = wanted[i].last;
	}
}

static const struct {
	bool is_64;
	bool is_big;
	unsigned table_type; /* SHT_SYMTAB, SHT_DYNSYM */
	uint64_t offset;
} forms[] = {
	{false, false, 2, 0},
	{false, true, 2, 0},
	{true, false, 2, 0},
	{true, true, 2, 0},
	{true, false, 11, 0},
	{false, false, 2, 0x40000000},
	{true, false, 2, 0 - UINT64_C(0xb0000)},
	{true, true, 2, 0xffff800000000000},
};

TEST_CASES(symbols_have_their_ranges_in_every_class_and_byte_order, forms)
{
	struct image image;
	char err[256];
	struct bc_name_map *map = bc_name_map_open();

	make_image(&image, c->is_64, c->is_big, c->table_type);
	assert_int_equal(load_bytes(map, image.bytes, image.used, c->offset, err), 0);
	check_names(map, c->offset);
	bc_name_map_close(map);
}

TEST(a_region_is_a_symbol_with_exactly_this_name)
{
	struct image image;
	char err[256];
	struct bc_name_region region;
	struct bc_name_map *map = bc_name_map_open();

	make_image(&image, false, false, 2);
	assert_int_equal(load_bytes(map, image.bytes, image.used, 0, err), 0);
	assert_true(bc_name_map_region(map, "start.inner", &region, err, sizeof(err)));
	assert_int_equal(region.count, 1);
	assert_int_equal(region.ranges[0].first, TEXT + 0x18);
	assert_int_equal(region.ranges[0].last, TEXT + 0x1b);
	assert_true(bc_name_map_region(map, "label", &region, err, sizeof(err)));
	assert_int_equal(region.ranges[0].first, TEXT + 0x40);
	assert_false(bc_name_map_region(map, "Start", &region, err, sizeof(err)));
	assert_string_equal(err, "no region has this name; similar names: start, start.inner");
	bc_name_map_close(map);
}

/* A damaged file gives an error with a reason, or symbols. */
static void load_damaged(const uint8_t *bytes, size_t n)
{
	char err[256];
	struct bc_name name;
	struct bc_name_map *map = bc_name_map_open();
	int rc = load_bytes(map, bytes, n, 0, err);

	assert_true(rc == 0 || (rc == -EINVAL && err[0] != '\0'));
	if (rc != 0)
		assert_false(bc_name_map_find(map, false, TEXT + 0x10, &name));
	bc_name_map_close(map);
}

TEST(every_truncated_file_is_an_error_or_has_symbols)
{
	struct image image;

	for (unsigned form = 0; form < 4; form++) {
		make_image(&image, form / 2 != 0, form % 2 != 0, 2);
		for (size_t n = 0; n < image.used; n++) {
			char err[256];
			struct bc_name_map *map = bc_name_map_open();
			assert_int_equal(load_bytes(map, image.bytes, n, 0, err), -EINVAL);
			assert_true(err[0] != '\0');
			bc_name_map_close(map);
		}
	}
}

TEST(every_flipped_bit_of_a_file_is_survived_sweep)
{
	struct image image;
	unsigned step = test_stride(15);

	for (unsigned form = 0; form < 4; form++) {
		make_image(&image, form / 2 != 0, form % 2 != 0, 2);
		for (size_t bit = form; bit < 8 * image.used; bit += step) {
			image.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
			load_damaged(image.bytes, image.used);
			image.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

TEST(fields_with_extreme_values_are_survived)
{
	static const uint8_t extremes[] = {0xff, 0x7f, 0x80, 0x00};
	struct dice dice = {.state = 3};
	struct image image;

	for (unsigned round = 0; round < 20000 / test_stride(15); round++) {
		make_image(&image, dice_below(&dice, 2) != 0, dice_below(&dice, 2) != 0, 2);
		size_t headers = (image.is_64 ? 64 : 52) + 5u * (image.is_64 ? 64 : 40);
		for (unsigned n = 1 + dice_below(&dice, 3); n != 0; n--)
			memset(image.bytes + 16 + dice_below(&dice, (uint32_t)headers - 24),
				extremes[dice_below(&dice, COUNT_OF(extremes))],
				1 + dice_below(&dice, 8));
		load_damaged(image.bytes, image.used);
	}
}

TEST(an_elf_file_in_a_pipe_is_an_error)
{
	char err[256];
	int fds[2];
	struct image image;
	struct bc_name_map *map = bc_name_map_open();

	make_image(&image, true, false, 2);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], image.bytes, image.used), (ssize_t)image.used);
	close(fds[1]);
	assert_int_equal(bc_name_file_add_symbols(map, fds[0], 0, err, sizeof(err)), -EINVAL);
	assert_string_equal(err, "an ELF file must be a regular file, not a pipe");
	close(fds[0]);
	bc_name_map_close(map);
}

static const char *name_at(const struct bc_name_map *map, uint64_t addr, uint64_t *offset)
{
	struct bc_name name;

	if (!bc_name_map_find(map, false, addr, &name))
		return "";
	*offset = name.offset;
	return name.text;
}

TEST(symbols_of_a_system_map_extend_to_the_next_one)
{
	static const char text[] = "00000000 A constant\n"
				   "c0100000 T startup_32\r\n"
				   "                 U undefined\n"
				   "U too\n"
				   "\n"
				   "c0100010 t  local_one\t[module]\n"
				   "c0100010 T alias\n"
				   "c0100050 D data\n"
				   "ffffffffffffff00 B top\n";
	struct bc_name_map *map = bc_name_map_open();
	struct bc_name_region region;
	char err[256];
	uint64_t offset = 0;

	assert_int_equal(load_bytes(map, (const uint8_t *)text, strlen(text), 0, err), 0);
	assert_string_equal(name_at(map, 0, &offset), "");
	assert_string_equal(name_at(map, 0xc00fffff, &offset), "");
	assert_string_equal(name_at(map, 0xc0100000, &offset), "startup_32");
	assert_string_equal(name_at(map, 0xc010000f, &offset), "startup_32");
	assert_int_equal(offset, 15);
	assert_string_equal(name_at(map, 0xc0100010, &offset), "alias");
	assert_string_equal(name_at(map, 0xc010004f, &offset), "alias");
	assert_true(bc_name_map_region(map, "local_one", &region, err, sizeof(err)));
	assert_int_equal(region.ranges[0].first, 0xc0100010);
	assert_int_equal(region.ranges[0].last, 0xc010004f);
	assert_string_equal(name_at(map, 0xc0100050, &offset), "data");
	assert_string_equal(name_at(map, 0xc011004f, &offset), "data"); /* at most 64 KiB */
	assert_string_equal(name_at(map, 0xc0110050, &offset), "");
	assert_string_equal(name_at(map, UINT64_MAX, &offset), "top");
	bc_name_map_close(map);
}

static const struct {
	const char *text;
	const char *err;
} bad_maps[] = {
	{"", "no symbols of functions or objects"},
	{"00000000 A constant\n", "no symbols of functions or objects"},
	{"c0100000 T a\nc0100000\n", "line 2: neither ELF nor a symbol such as"},
	{"c0100000 T", "line 1: neither"},
	{"c0100000 TT a", "line 1: neither"},
	{"c0100000T a", "line 1: neither"},
	{"T c0100000 a", "line 1: neither"},
	{"11111111111111111 T a", "line 1: neither"},
	{"hello", "line 1: neither"},
	{"\177EL", "line 1: neither"},
};

TEST_CASES(a_line_that_is_not_a_symbol_is_an_error, bad_maps)
{
	char err[256];
	struct bc_name_map *map = bc_name_map_open();
	int rc = load_bytes(map, (const uint8_t *)c->text, strlen(c->text), 0, err);

	assert_int_equal(rc, -EINVAL);
	assert_memory_equal(err, c->err, strlen(c->err));
	bc_name_map_close(map);
}

static const struct {
	const char *text;
	size_t bytes;
	uint64_t offset;
} specs[] = {
	{"vmlinux", 7, 0},
	{"vmlinux:0", 7, 0},
	{"vmlinux:1000", 7, 0x1000},
	{"vmlinux:+0x1000", 7, 0x1000},
	{"vmlinux:-c0000000", 7, 0 - UINT64_C(0xc0000000)},
	{"a:b:ffffffffffffffff", 3, UINT64_MAX},
	{"a:b", 1, 0xb},
	{"vmlinux:", 8, 0},
	{"vmlinux:-", 9, 0},
	{"vmlinux:xyz", 11, 0},
	{"vmlinux:12345678901234567", 25, 0},
	{"", 0, 0},
};

TEST_CASES(an_offset_follows_the_last_colon, specs)
{
	uint64_t offset;

	assert_int_equal(bc_symbols_split(c->text, &offset), c->bytes);
	assert_true(offset == c->offset);
}
