#include "formats/trace/name_file.h"

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

#include "formats/base/text.h"
#include "formats/trace/name_map.h"

/* The longest range of a symbol without a size. */
#define REACH_MAX UINT64_C(0x10000)

/* Symbols in the making. */
struct symbols {
	struct bc_name_layer sized;
	struct bc_name_layer labels; /* below: they have no size */
	uint64_t offset;
};

/* Adds a symbol of `bytes` bytes, or a label that may extend that far. */
static int add_symbol(struct symbols *s, struct bc_name_layer *layer, uint64_t addr, uint64_t bytes,
	const char *name, size_t name_bytes)
{
	struct bc_name_range range = {.first = addr + s->offset};

	if (__builtin_add_overflow(range.first, bytes - 1, &range.last))
		range.last = UINT64_MAX;
	return bc_name_layer_add(layer, &range, name, name_bytes);
}

/* The first row from `at` on that starts above `addr`. */
static size_t next_above(const struct bc_name_layer *layer, size_t at, uint64_t addr)
{
	while (at < layer->count && layer->rows[at].first <= addr)
		at++;
	return at;
}

/* Ends each label before the next symbol. */
static void trim_labels(struct symbols *s)
{
	const struct bc_name_layer *others[] = {&s->labels, &s->sized};
	size_t next[2] = {0, 0};

	bc_name_layer_sort(&s->labels);
	bc_name_layer_sort(&s->sized);
	for (size_t i = 0; i < s->labels.count; i++) {
		struct bc_name_row *row = &s->labels.rows[i];
		for (unsigned k = 0; k < 2; k++) {
			next[k] = next_above(others[k], next[k], row->first);
			if (next[k] < others[k]->count &&
				others[k]->rows[next[k]].first <= row->last)
				row->last = others[k]->rows[next[k]].first - 1;
		}
	}
}

/* Adds the layers to the map, or frees them after an error. */
static int finish(struct symbols *s, struct bc_name_map *map, int rc, char *err, size_t errlen)
{
	s->sized.is_symbols = s->labels.is_symbols = true;
	if (rc == 0 && s->sized.count == 0 && s->labels.count == 0) {
		bc_message(err, errlen, "no symbols of functions or objects");
		rc = -EINVAL;
	}
	if (rc == 0) {
		trim_labels(s);
		rc = bc_name_map_add_layer(map, &s->labels);
		s->labels = (struct bc_name_layer){.rows = NULL};
	}
	if (rc == 0) {
		rc = bc_name_map_add_layer(map, &s->sized);
		s->sized = (struct bc_name_layer){.rows = NULL};
	}
	bc_name_layer_free(&s->labels);
	bc_name_layer_free(&s->sized);
	return rc;
}

/* ---- ELF */

/* A table of symbols, its strings, and what limits both. */
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

/* Adds the symbols of an ELF file, of the regular file `fd`, or of the lines of a text, with
 * `offset` (modulo 2^64) added to each address. Returns 0; -ENOMEM; or -EINVAL with what is wrong
 * in `err` and the map unchanged. */
static int symbols_add_elf(
	struct bc_name_map *map, int fd, uint64_t offset, char *err, size_t errlen)
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
	rc = finish(&s, map, rc, err, errlen);
	elf_end(t.elf);
	return rc;
}

/* ---- System.map */

static const char *word_end(const char *at, const char *end)
{
	while (at != end && *at != ' ' && *at != '\t' && *at != '\r')
		at++;
	return at;
}

/* Adds the symbol of a line that is not blank. Absolute, undefined and debugging symbols are not
 * addresses. Returns 0, -ENOMEM, or -EINVAL. */
static int add_line(struct symbols *s, const char *at, const char *end)
{
	bool has_addr = word_end(at, end) - at != 1 || strchr("Uwv", *at) == NULL;
	uint64_t addr = 0;
	const char *type = at;

	if (has_addr) {
		type = bc_hex_read(at, end, &addr);
		if (type == NULL || word_end(type, end) != type)
			return -EINVAL;
		type = bc_name_skip_blanks(type, end);
	}
	const char *name = bc_name_skip_blanks(word_end(type, end), end);
	const char *name_end = word_end(name, end);
	if (word_end(type, end) - type != 1 || name == name_end ||
		memchr(name, '\0', (size_t)(name_end - name)) != NULL)
		return -EINVAL;
	if (!has_addr || strchr("tTdDbBrRgGsSiuVvWw", *type) == NULL)
		return 0;
	return add_symbol(s, &s->labels, addr, REACH_MAX, name, (size_t)(name_end - name));
}

int bc_symbols_add_text(struct bc_name_map *map, const char *text, size_t bytes, uint64_t offset,
	char *err, size_t errlen)
{
	struct symbols s = {.offset = offset};
	const char *end = text + bytes;
	uint64_t number = 1;
	int rc = 0;

	for (const char *at = text; at < end && rc == 0; number++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline != NULL ? newline : end;
		const char *first = bc_name_skip_blanks(at, stop);
		at = newline != NULL ? newline + 1 : end;
		if (first != stop)
			rc = add_line(&s, first, stop);
		if (rc == -EINVAL)
			bc_message(err, errlen,
				"line %" PRIu64 ": neither ELF nor a symbol such as \"c0100000 T "
				"startup_32\"",
				number);
	}
	return finish(&s, map, rc, err, errlen);
}

/* ---- name file */

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

/* Reads a text into a new buffer, which is not terminated; of an ELF file, only the start. Returns
 * its length, or a negative errno. */
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
		if (n == 0 || (used >= sizeof(elf_magic) &&
				      memcmp(*text, elf_magic, sizeof(elf_magic)) == 0))
			return (ssize_t)used;
	}
}

int bc_name_file_add_map(struct bc_name_map *map, int fd, char *err, size_t errlen)
{
	char *text;
	ssize_t bytes = read_text(fd, &text);
	int rc = bytes < 0 ? (int)bytes
			   : bc_name_map_add_text(map, text, (size_t)bytes, err, errlen);

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
		rc = symbols_add_elf(map, fd, offset, err, errlen);
	else if (bytes >= 0)
		rc = bc_symbols_add_text(map, text, (size_t)bytes, offset, err, errlen);
	free(text);
	return rc;
}
