/* Names of addresses: layers of ranges, the map of layers, and the files that layers come from.
 *
 * A layer is an array of ranges, sorted by their first address, wide ones before narrow ones. It is
 * filled in any order and sorted when it is added to the map. In each row, `up` is the index just
 * after the nearest earlier range that ends later.
 *
 * A search starts at the last range that begins at or below the address and goes back. From a range
 * that ends before the address, `up` skips all ranges that do not end later; once a range has the
 * address, only those within its size can be smaller: it visits only ranges that overlap. */

#include "formats/trace/name_map.h"

#include <ctype.h>
#include <errno.h>
#include <gelf.h>
#include <inttypes.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "formats/base/fast_text.h"
#include "formats/base/grow.h"
#include "formats/base/json.h"
#include "formats/base/suggest.h"
#include "formats/base/text.h"

struct layer_row {
	uint64_t first;
	uint64_t last;
	size_t up;   /* after the nearest earlier row of its kind that ends later; or its first */
	size_t name; /* offset in the layer's text */
	bool is_port;
};

struct layer {
	struct layer_row *rows; /* sorted by the first address, ports after memory */
	size_t count;
	size_t capacity;
	size_t ports; /* index of the first port */
	char *text;   /* the names, each with a terminating zero */
	size_t text_used;
	size_t text_capacity;
	bool is_symbols;
};

static const char *layer_text(const struct layer *layer, const struct layer_row *row)
{
	return layer->text + row->name;
}

/* Adds a range. Returns 0 or -ENOMEM. */
static int layer_add(
	struct layer *l, const struct bc_name_range *range, const char *name, size_t bytes)
{
	struct layer_row *rows = bc_grow(l->rows, &l->capacity, l->count, sizeof(*rows));

	if (rows == NULL)
		return -ENOMEM;
	l->rows = rows;
	char *text = bc_grow(l->text, &l->text_capacity, l->text_used + bytes, 1);
	if (text == NULL)
		return -ENOMEM;
	l->text = text;
	l->rows[l->count++] = (struct layer_row){.first = range->first,
		.last = range->last,
		.name = l->text_used,
		.is_port = range->is_port};
	memcpy(l->text + l->text_used, name, bytes);
	l->text[l->text_used + bytes] = '\0';
	l->text_used += bytes + 1;
	return 0;
}

static void layer_free(struct layer *l)
{
	free(l->rows);
	free(l->text);
}

/* Wide ranges come before narrow ones, and equal ones in the order in which they were added. */
static int compare_rows(const void *x, const void *y)
{
	const struct layer_row *a = x;
	const struct layer_row *b = y;

	if (a->is_port != b->is_port)
		return a->is_port ? 1 : -1;
	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	if (a->last != b->last)
		return a->last > b->last ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

static void layer_sort(struct layer *l)
{
	if (l->count != 0)
		qsort(l->rows, l->count, sizeof(*l->rows), compare_rows);
	l->ports = l->count;
	for (size_t i = 0; i < l->count; i++) {
		struct layer_row *row = &l->rows[i];
		if (row->is_port && l->ports == l->count)
			l->ports = i;
		size_t begin = row->is_port ? l->ports : 0;
		size_t up = i;
		while (up > begin && l->rows[up - 1].last <= row->last)
			up = l->rows[up - 1].up;
		row->up = up;
	}
}

/* Returns the smallest range that has an address, or NULL. */
static const struct layer_row *layer_find(const struct layer *l, bool is_port, uint64_t addr)
{
	size_t begin = is_port ? l->ports : 0;
	size_t low = begin;
	size_t high = is_port ? l->count : l->ports;
	const struct layer_row *best = NULL;

	while (low < high) { /* the first range that starts above the address */
		size_t middle = low + (high - low) / 2;
		if (l->rows[middle].first <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	while (low > begin &&
		(best == NULL || addr - l->rows[low - 1].first < best->last - best->first)) {
		const struct layer_row *row = &l->rows[low - 1];
		bool has_addr = row->last >= addr;
		if (has_addr && (best == NULL || row->last - row->first < best->last - best->first))
			best = row;
		low = has_addr ? low - 1 : row->up;
	}
	return best;
}

/* ---- regions */

/* A filter has blanks between its conditions, so '_' is a blank there. */
static int fold(char c)
{
	return c == '_' ? ' ' : tolower((unsigned char)c);
}

static size_t common_bytes(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] != '\0' && fold(a[n]) == fold(b[n]))
		n++;
	return n;
}

static bool is_word_start(const char *text, size_t at)
{
	return at == 0 || !isalnum((unsigned char)text[at - 1]);
}

/* True if `text` contains the words of `name` in a row. */
static bool has_words(const char *text, const char *name)
{
	size_t bytes = strlen(name);

	for (size_t at = 0; text[at] != '\0'; at++)
		if (is_word_start(text, at) && common_bytes(text + at, name) == bytes &&
			!isalnum((unsigned char)text[at + bytes]))
			return true;
	return false;
}

static bool is_name(const char *text, const char *name)
{
	size_t bytes = common_bytes(text, name);

	return text[bytes] == '\0' && name[bytes] == '\0';
}

/* True if the word at the start of `text` is `name` with one typing error. Case is ignored. */
static bool is_misspelt(const char *text, const char *name)
{
	char words[2][BC_SUGGESTION_BYTES + 1] = {"", ""};
	const char *from[] = {name, text};

	for (unsigned i = 0; i < 2; i++)
		for (size_t n = 0; n < BC_SUGGESTION_BYTES && isalnum((unsigned char)from[i][n]);
			n++)
			words[i][n] = (char)tolower((unsigned char)from[i][n]);
	struct bc_suggestion s = bc_suggestion_start(words[0]);
	bc_suggestion_add(&s, words[1], words[1]);
	return s.nearest != NULL && s.edits == 1;
}

/* How much a word in `text` is like `name`: the length of their longest common start, or of all of
 * `name` if it is misspelt. Case is ignored. */
static size_t name_likeness(const char *text, const char *name)
{
	size_t most = 0;

	for (size_t at = 0; text[at] != '\0'; at++) {
		if (!is_word_start(text, at))
			continue;
		size_t bytes = is_misspelt(text + at, name) ? strlen(name)
							    : common_bytes(text + at, name);
		most = bytes > most ? bytes : most;
	}
	return most;
}

/* Rows come in order: only the last range can be continued. */
static int add_row(struct bc_name_region *region, const struct layer_row *row)
{
	struct bc_name_range *last = region->count != 0 ? &region->ranges[region->count - 1] : NULL;

	if (last != NULL && last->is_port == row->is_port &&
		(row->first <= last->last || row->first - last->last == 1)) {
		last->last = row->last > last->last ? row->last : last->last;
		return 0;
	}
	if (region->count == BC_NAME_REGION_RANGES)
		return -E2BIG;
	region->ranges[region->count++] = (struct bc_name_range){
		.is_port = row->is_port, .first = row->first, .last = row->last};
	return 0;
}

static int add_rows(const struct layer *l, const char *name, struct bc_name_region *region,
	bool (*selects)(const char *text, const char *name))
{
	int rc = 0;

	for (size_t i = 0; i < l->count && rc == 0; i++)
		if (selects(layer_text(l, &l->rows[i]), name))
			rc = add_row(region, &l->rows[i]);
	return rc;
}

static bool is_symbol(const char *text, const char *name)
{
	return strcmp(text, name) == 0;
}

/* Adds the ranges that a name selects to `region`; see bc_name_map_region(). Returns 0, even if
 * it selects none, or -E2BIG. */
static int layer_region(const struct layer *l, const char *name, struct bc_name_region *region)
{
	if (l->is_symbols)
		return add_rows(l, name, region, is_symbol);
	int rc = add_rows(l, name, region, is_name);
	return rc != 0 || region->count != 0 ? rc : add_rows(l, name, region, has_words);
}

/* ---- the map */

/* Well-known addresses of a PC with a Pentium: memory below 1 MiB, the APICs, the ISA ports, as the
 * text of a layer. Sources: IBM PC/AT Technical Reference (memory and ports), Intel 82371 (PCI,
 * PIIX: configuration, IDE, reset), Intel MultiProcessor Specification 1.4 (APICs), VESA and IBM
 * VGA (display). */
static const char pc_map[] = "0-3ff          interrupt vectors\n"
			     "400-4ff        BIOS data area\n"
			     "500-9fbff      conventional memory\n"
			     "9fc00-9ffff    extended BIOS data area\n"
			     "a0000-affff    VGA graphics\n"
			     "b0000-b7fff    VGA monochrome text\n"
			     "b8000-bffff    VGA colour text\n"
			     "c0000-c7fff    video BIOS\n"
			     "c8000-dffff    option ROMs\n"
			     "e0000-effff    extended BIOS\n"
			     "f0000-fffff    BIOS\n"
			     "fec00000-fec00fff  I/O APIC\n"
			     "fee00000-fee00fff  local APIC\n"
			     "fffe0000-ffffffff  BIOS ROM\n"
			     "port 0-1f      DMA controller 1\n"
			     "port 20-21     interrupt controller 1\n"
			     "port 40-43     timer\n"
			     "port 60        keyboard data\n"
			     "port 61        speaker, NMI status\n"
			     "port 64        keyboard command\n"
			     "port 70        CMOS index, NMI mask\n"
			     "port 71        CMOS data\n"
			     "port 80        POST code\n"
			     "port 81-8f     DMA pages\n"
			     "port 92        A20 gate, fast reset\n"
			     "port a0-a1     interrupt controller 2\n"
			     "port c0-df     DMA controller 2\n"
			     "port f0-ff     coprocessor\n"
			     "port 170-177   IDE 2\n"
			     "port 1f0-1f7   IDE 1\n"
			     "port 200-207   game port\n"
			     "port 278-27f   LPT2\n"
			     "port 2e8-2ef   COM4\n"
			     "port 2f8-2ff   COM2\n"
			     "port 376       IDE 2 control\n"
			     "port 378-37f   LPT1\n"
			     "port 3b0-3bb   VGA monochrome registers\n"
			     "port 3bc-3bf   LPT3\n"
			     "port 3c0-3cf   VGA registers\n"
			     "port 3d0-3df   VGA colour registers\n"
			     "port 3e8-3ef   COM3\n"
			     "port 3f0-3f5   floppy disk\n"
			     "port 3f6       IDE 1 control\n"
			     "port 3f7       floppy disk\n"
			     "port 3f8-3ff   COM1\n"
			     "port 4d0-4d1   interrupt trigger modes\n"
			     "port cf8-cff   PCI configuration\n"
			     "port cf9       reset\n";

struct bc_name_map {
	struct layer *layers; /* the first one, of the PC, is only for regions */
	size_t count;
};

struct bc_name_map *bc_name_map_open(void)
{
	struct bc_name_map *map = calloc(1, sizeof(*map));

	if (map != NULL && bc_name_map_add_pc(map) == 0)
		return map;
	free(map);
	return NULL;
}

void bc_name_map_close(struct bc_name_map *map)
{
	if (map == NULL)
		return;
	for (size_t i = 0; i < map->count; i++)
		layer_free(&map->layers[i]);
	free(map->layers);
	free(map);
}

/* Sorts and adds a layer, which then belongs to the map. Returns 0; -ENOMEM: it is freed. */
static int add_layer(struct bc_name_map *map, struct layer *layer)
{
	struct layer *layers = reallocarray(map->layers, map->count + 1, sizeof(*layers));

	if (layers == NULL) {
		layer_free(layer);
		return -ENOMEM;
	}
	layer_sort(layer);
	layers[map->count++] = *layer;
	map->layers = layers;
	return 0;
}

static const char no_memory[] = "out of memory";

/* Calls add() with each line that is not blank, from its first character on; each ends in a
 * newline. It returns NULL, or what is wrong with the line. Returns 0, -ENOMEM, -EINVAL with the
 * line's number. */
static int add_lines(const char *text, size_t bytes,
	const char *(*add)(void *context, const char *at), void *context, char *err, size_t errlen)
{
	uint64_t number = 1;

	for (const char *at = text; at < text + bytes; at = bc_line_end(at) + 1, number++) {
		const char *first = bc_skip_spaces(at);
		const char *wrong = *first != '\n' ? add(context, first) : NULL;
		if (wrong == no_memory)
			return -ENOMEM;
		if (wrong != NULL) {
			bc_message(err, errlen, "line %" PRIu64 ": %s", number, wrong);
			return -EINVAL;
		}
	}
	return 0;
}

/* Adds the range and the name on a line to a layer. */
static const char *add_name_line(void *layer, const char *at)
{
	const char *end = bc_line_end(at);
	struct bc_name_range r = {.is_port = strncmp(at, "port", 4) == 0 && bc_is_space(at[4])};

	if (*at == '#')
		return NULL;
	at = bc_hex_read(bc_skip_spaces(at + (r.is_port ? 4 : 0)), end, &r.first);
	if (at == NULL)
		return "expected a hexadecimal address";
	r.last = r.first;
	if (*at == '-')
		at = bc_hex_read(at + 1, end, &r.last);
	if (at == NULL || !bc_is_token_end(*at))
		return "expected a range such as a0000-bffff";
	if (r.last < r.first)
		return "the range ends before it starts";
	if (r.is_port && r.last > 0xFFFF)
		return "a port has at most 16 bits";
	at = bc_skip_spaces(at);
	while (end != at && bc_is_space(end[-1]))
		end--;
	if (at == end)
		return "expected a name after the address";
	if (memchr(at, '\0', (size_t)(end - at)) != NULL)
		return "a name can't contain a zero byte";
	return layer_add(layer, &r, at, (size_t)(end - at)) == 0 ? NULL : no_memory;
}

static int add_map_text(
	struct bc_name_map *map, const char *text, size_t bytes, char *err, size_t errlen)
{
	struct layer layer = {.rows = NULL};
	int rc = add_lines(text, bytes, add_name_line, &layer, err, errlen);

	if (rc == 0)
		return add_layer(map, &layer);
	layer_free(&layer);
	return rc;
}

int bc_name_map_add_pc(struct bc_name_map *map)
{
	char err[128];

	return add_map_text(map, pc_map, strlen(pc_map), err, sizeof(err));
}

bool bc_name_map_find(
	const struct bc_name_map *map, bool is_port, uint64_t addr, struct bc_name *name)
{
	for (size_t i = map->count - 1; i != 0; i--) {
		const struct layer *layer = &map->layers[i];
		const struct layer_row *row = layer_find(layer, is_port, addr);
		if (row == NULL)
			continue;
		*name = (struct bc_name){.text = layer_text(layer, row),
			.is_symbol = layer->is_symbols,
			.offset = addr - row->first};
		return true;
	}
	return false;
}

json_t *bc_name_map_json(const struct bc_name_map *map, bool is_port, uint64_t addr)
{
	struct bc_name name;
	char *text = NULL;

	if (map == NULL || !bc_name_map_find(map, is_port, addr, &name))
		return json_null();
	if (!name.is_symbol || name.offset == 0)
		return bc_json_text(name.text);
	if (asprintf(&text, "%s+0x%" PRIx64, name.text, name.offset) < 0)
		return NULL;
	json_t *json = bc_json_text(text);
	free(text);
	return json;
}

/* Appends up to six of the names that are most like `name`, if any is. */
static void append_similar(
	const struct bc_name_map *map, const char *name, char *err, size_t errlen)
{
	const size_t least = 2; /* characters in common */
	size_t used = strlen(err);
	size_t most = least;
	unsigned count = 0;

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < map->count; i++) {
			const struct layer *layer = &map->layers[i];
			for (size_t row = 0; row < layer->count && count < 6; row++) {
				const char *text = layer_text(layer, &layer->rows[row]);
				size_t likeness = name_likeness(text, name);
				if (pass == 0) {
					most = likeness > most ? likeness : most;
				} else if (likeness == most && used + strlen(text) + 20 < errlen &&
					   strstr(err, text) == NULL) {
					used += (size_t)snprintf(err + used, errlen - used, "%s%s",
						count == 0 ? "; similar names: " : ", ", text);
					count++;
				}
			}
		}
}

bool bc_name_map_region(const struct bc_name_map *map, const char *name,
	struct bc_name_region *region, char *err, size_t errlen)
{
	*region = (struct bc_name_region){.count = 0};
	for (size_t i = map->count; i-- != 0 && name[0] != '\0';) {
		if (layer_region(&map->layers[i], name, region) != 0) {
			bc_message(err, errlen,
				"more than %u ranges have this name; use a longer one",
				BC_NAME_REGION_RANGES);
			return false;
		}
		if (region->count != 0)
			return true;
	}
	bc_message(err, errlen, "no region has this name");
	append_similar(map, name, err, errlen);
	return false;
}

const char *bc_name_map_nth(const struct bc_name_map *map, size_t n, struct bc_name_range *range)
{
	for (size_t i = map->count; i-- != 0; n -= map->layers[i].count)
		if (n < map->layers[i].count) {
			const struct layer_row *row = &map->layers[i].rows[n];
			*range = (struct bc_name_range){row->is_port, row->first, row->last};
			return layer_text(&map->layers[i], row);
		}
	return NULL;
}

/* ---- symbols */

/* The longest range of a symbol without a size. */
#define REACH_MAX UINT64_C(0x10000)

/* Symbols in the making. */
struct symbols {
	struct layer sized;
	struct layer labels; /* below: they have no size */
	uint64_t offset;
};

/* Adds a symbol of `bytes` bytes, or a label that may extend that far. */
static int add_symbol(struct symbols *s, struct layer *layer, uint64_t addr, uint64_t bytes,
	const char *name, size_t name_bytes)
{
	struct bc_name_range range = {.first = addr + s->offset};

	if (__builtin_add_overflow(range.first, bytes - 1, &range.last))
		range.last = UINT64_MAX;
	return layer_add(layer, &range, name, name_bytes);
}

/* The first row from `at` on that starts above `addr`. */
static size_t next_above(const struct layer *layer, size_t at, uint64_t addr)
{
	while (at < layer->count && layer->rows[at].first <= addr)
		at++;
	return at;
}

/* Ends each label before the next symbol. */
static void trim_labels(struct symbols *s)
{
	const struct layer *others[] = {&s->labels, &s->sized};
	size_t next[2] = {0, 0};

	layer_sort(&s->labels);
	layer_sort(&s->sized);
	for (size_t i = 0; i < s->labels.count; i++) {
		struct layer_row *row = &s->labels.rows[i];
		for (unsigned k = 0; k < 2; k++) {
			next[k] = next_above(others[k], next[k], row->first);
			if (next[k] < others[k]->count &&
				others[k]->rows[next[k]].first <= row->last)
				row->last = others[k]->rows[next[k]].first - 1;
		}
	}
}

/* Adds the layers to the map, or frees them after an error. */
static int finish_symbols(
	struct symbols *s, struct bc_name_map *map, int rc, char *err, size_t errlen)
{
	s->sized.is_symbols = s->labels.is_symbols = true;
	if (rc == 0 && s->sized.count == 0 && s->labels.count == 0) {
		bc_message(err, errlen, "no symbols of functions or objects");
		rc = -EINVAL;
	}
	if (rc == 0) {
		trim_labels(s);
		rc = add_layer(map, &s->labels);
		s->labels = (struct layer){.rows = NULL};
	}
	if (rc == 0) {
		rc = add_layer(map, &s->sized);
		s->sized = (struct layer){.rows = NULL};
	}
	layer_free(&s->labels);
	layer_free(&s->sized);
	return rc;
}

/* ---- ELF */

/* A table of symbols and its strings, which must be within the file. */
struct table {
	Elf *elf;
	uint64_t file_bytes;
	GElf_Shdr header;
	Elf_Data *symbols;
	Elf_Data *strings;
};

static int fail(char *err, size_t errlen, const char *what)
{
	bc_message(err, errlen, "%s", what);
	return -EINVAL;
}

/* Returns a section's content, or NULL if it is not in the file. Nothing is decompressed. */
static Elf_Data *read_section(const struct table *t, Elf_Scn *section, GElf_Shdr *header)
{
	if (section == NULL || gelf_getshdr(section, header) == NULL ||
		(header->sh_flags & SHF_COMPRESSED) != 0 || header->sh_type == SHT_NOBITS ||
		header->sh_offset > t->file_bytes ||
		header->sh_size > t->file_bytes - header->sh_offset)
		return NULL;
	return elf_getdata(section, NULL);
}

/* Finds the symbols, or else the dynamic ones. */
static int find_table(struct table *t, char *err, size_t errlen)
{
	Elf_Scn *section = NULL;
	Elf_Scn *found = NULL;
	GElf_Ehdr file;
	GElf_Shdr header;

	if (gelf_getehdr(t->elf, &file) == NULL || file.e_shoff > t->file_bytes)
		return fail(err, errlen, "damaged ELF file: its sections are missing");

	while ((section = elf_nextscn(t->elf, section)) != NULL) {
		if (gelf_getshdr(section, &header) == NULL)
			continue;
		if (header.sh_type == SHT_SYMTAB || (header.sh_type == SHT_DYNSYM && found == NULL))
			found = section;
		if (header.sh_type == SHT_SYMTAB)
			break;
	}
	if (found == NULL)
		return fail(err, errlen, "no symbol table; it was stripped");
	t->symbols = read_section(t, found, &t->header);
	if (t->symbols == NULL || t->symbols->d_buf == NULL)
		return fail(err, errlen, "damaged ELF file: its symbol table can't be read");
	t->strings = read_section(t, elf_getscn(t->elf, t->header.sh_link), &header);
	if (t->strings == NULL || t->strings->d_buf == NULL || header.sh_type != SHT_STRTAB)
		return fail(
			err, errlen, "damaged ELF file: the names of its symbols can't be read");
	return 0;
}

/* How far a label may extend: to the end of its section. 0: it is not in memory. */
static uint64_t label_bytes(const struct table *t, const GElf_Sym *symbol)
{
	Elf_Scn *section = symbol->st_shndx < SHN_LORESERVE ? elf_getscn(t->elf, symbol->st_shndx)
							    : NULL;
	GElf_Shdr header;

	if (section == NULL || gelf_getshdr(section, &header) == NULL ||
		(header.sh_flags & SHF_ALLOC) == 0 || symbol->st_value < header.sh_addr ||
		symbol->st_value - header.sh_addr >= header.sh_size)
		return 0;
	uint64_t left = header.sh_size - (symbol->st_value - header.sh_addr);
	return left < REACH_MAX ? left : REACH_MAX;
}

static int add_elf_symbol(struct symbols *s, const struct table *t, const GElf_Sym *symbol)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info);
	bool is_sized = symbol->st_size != 0 && type != STT_NOTYPE;

	if ((type != STT_NOTYPE && type != STT_FUNC && type != STT_OBJECT &&
		    type != STT_GNU_IFUNC) ||
		symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_COMMON)
		return 0;
	uint64_t bytes = is_sized ? symbol->st_size : label_bytes(t, symbol);
	const char *name = (const char *)t->strings->d_buf + symbol->st_name;
	size_t name_bytes = strnlen(name, t->strings->d_size - symbol->st_name);
	if (bytes == 0 || name_bytes == 0)
		return 0;
	return add_symbol(
		s, is_sized ? &s->sized : &s->labels, symbol->st_value, bytes, name, name_bytes);
}

static int add_table(struct symbols *s, const struct table *t, char *err, size_t errlen)
{
	size_t each = gelf_fsize(t->elf, ELF_T_SYM, 1, EV_CURRENT);
	int rc = 0;

	for (size_t i = 0; each != 0 && i < t->symbols->d_size / each && rc == 0; i++) {
		GElf_Sym symbol;
		if (i > INT_MAX || gelf_getsym(t->symbols, (int)i, &symbol) == NULL ||
			symbol.st_name >= t->strings->d_size)
			return fail(err, errlen, "damaged ELF file: a symbol can't be read");
		rc = add_elf_symbol(s, t, &symbol);
	}
	return rc;
}

static int add_elf(struct bc_name_map *map, int fd, uint64_t offset, char *err, size_t errlen)
{
	struct symbols s = {.offset = offset};
	struct table t = {.elf = NULL};
	struct stat st;
	int rc;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return fail(err, errlen, "an ELF file must be a regular file, not a pipe");
	t.file_bytes = (uint64_t)st.st_size;
	(void)elf_version(EV_CURRENT);
	t.elf = elf_begin(fd, ELF_C_READ, NULL);
	if (t.elf == NULL || elf_kind(t.elf) != ELF_K_ELF || gelf_getclass(t.elf) == ELFCLASSNONE) {
		bc_message(err, errlen, "damaged ELF file: %s",
			t.elf == NULL ? elf_errmsg(-1) : "its header is not valid");
		rc = -EINVAL;
	} else {
		rc = find_table(&t, err, errlen);
	}
	if (rc == 0)
		rc = add_table(&s, &t, err, errlen);
	rc = finish_symbols(&s, map, rc, err, errlen);
	elf_end(t.elf);
	return rc;
}

/* ---- System.map */

/* Adds the symbol on a line. Absolute, undefined and debugging symbols are not addresses. */
static const char *add_symbol_line(void *symbols, const char *at)
{
	static const char wrong[] = "neither ELF nor a symbol such as \"c0100000 T startup_32\"";
	struct symbols *s = symbols;
	bool has_addr = bc_token_end(at) - at != 1 || strchr("Uwv", *at) == NULL;
	uint64_t addr = 0;
	const char *type = at;

	if (has_addr) {
		type = bc_hex_read(at, bc_line_end(at), &addr);
		if (type == NULL || !bc_is_token_end(*type))
			return wrong;
		type = bc_skip_spaces(type);
	}
	const char *name = bc_skip_spaces(bc_token_end(type));
	const char *name_end = bc_token_end(name);
	if (bc_token_end(type) - type != 1 || name == name_end ||
		memchr(name, '\0', (size_t)(name_end - name)) != NULL)
		return wrong;
	if (!has_addr || strchr("tTdDbBrRgGsSiuVvWw", *type) == NULL)
		return NULL;
	return add_symbol(s, &s->labels, addr, REACH_MAX, name, (size_t)(name_end - name)) == 0
		       ? NULL
		       : no_memory;
}

static int add_symbol_text(struct bc_name_map *map, const char *text, size_t bytes, uint64_t offset,
	char *err, size_t errlen)
{
	struct symbols s = {.offset = offset};
	int rc = add_lines(text, bytes, add_symbol_line, &s, err, errlen);

	return finish_symbols(&s, map, rc, err, errlen);
}

/* ---- files */

#define TEXT_BYTES_MAX (64u << 20)

static const char elf_magic[4] = "\177ELF";

size_t bc_symbols_split(const char *text, uint64_t *offset)
{
	const char *colon = strrchr(text, ':');
	const char *end = text + strlen(text);
	uint64_t value;

	*offset = 0;
	if (colon == NULL)
		return (size_t)(end - text);
	const char *digits = colon + 1 + (colon[1] == '-' || colon[1] == '+');
	if (bc_hex_read(digits, end, &value) != end)
		return (size_t)(end - text);
	*offset = colon[1] == '-' ? 0 - value : value;
	return (size_t)(colon - text);
}

/* Reads a text into a new buffer, and ends it with a newline; of an ELF file, only the start.
 * Returns its length, or a negative errno. */
static ssize_t read_text(int fd, char **text)
{
	size_t capacity = 0;
	size_t used = 0;

	*text = NULL;
	for (;;) {
		if (used == capacity) {
			capacity = capacity == 0 ? 1 << 16 : 2 * capacity;
			char *grown = capacity <= TEXT_BYTES_MAX ? realloc(*text, capacity) : NULL;
			if (grown == NULL)
				return capacity <= TEXT_BYTES_MAX ? -ENOMEM : -EFBIG;
			*text = grown;
		}
		ssize_t n = read(fd, *text + used, capacity - used);
		if (n < 0 && errno != EINTR)
			return -errno;
		used += n > 0 ? (size_t)n : 0;
		if (used >= sizeof(elf_magic) && memcmp(*text, elf_magic, sizeof(elf_magic)) == 0)
			return (ssize_t)used;
		if (n == 0) {
			(*text)[used] = '\n';
			return (ssize_t)used + 1;
		}
	}
}

int bc_name_file_add_map(struct bc_name_map *map, int fd, char *err, size_t errlen)
{
	char *text;
	ssize_t bytes = read_text(fd, &text);
	int rc = bytes < 0 ? (int)bytes : add_map_text(map, text, (size_t)bytes, err, errlen);

	free(text);
	return rc;
}

int bc_name_file_add_symbols(
	struct bc_name_map *map, int fd, uint64_t offset, char *err, size_t errlen)
{
	char *text;
	ssize_t bytes = read_text(fd, &text);
	bool is_elf = bytes >= (ssize_t)sizeof(elf_magic) &&
		      memcmp(text, elf_magic, sizeof(elf_magic)) == 0;
	int rc = (int)bytes;

	if (is_elf)
		rc = add_elf(map, fd, offset, err, errlen);
	else if (bytes >= 0)
		rc = add_symbol_text(map, text, (size_t)bytes, offset, err, errlen);
	free(text);
	return rc;
}
