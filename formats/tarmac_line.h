/* A line of Tarmac on its way to be entries: what formats/tarmac.c and the readers of single kinds
 * of records share. */
#ifndef BC_FORMATS_TARMAC_LINE_H
#define BC_FORMATS_TARMAC_LINE_H

#include "formats/parser.h"
#include "formats/scan.h"

/* What a line turned out to be. */
enum bc_tarmac_taken {
	BC_TARMAC_TAKEN,
	BC_TARMAC_KEPT, /* of a kind that isn't modelled */
	BC_TARMAC_MALFORMED,
};

/* What it has become stands in the parse's entries, behind those that count. */
struct bc_tarmac_line {
	struct bc_parse *p;
	size_t made;
	uint32_t has; /* of each of its entries */
	uint16_t proc;
	uint8_t unit;
	uint64_t tick;
	const char *end; /* a place up to which it was read, its newline at most */
	const char *bad;
	const char *expected;
};

#define BC_TARMAC_ADDRESS_EXPECTED "a hexadecimal address of at most 64 bits is expected"

static inline enum bc_tarmac_taken bc_tarmac_malformed(
	struct bc_tarmac_line *line, const char *bad, const char *expected)
{
	line->bad = bad;
	line->expected = expected;
	return BC_TARMAC_MALFORMED;
}

/* Makes the line one entry more; there is room for BC_LINE_ENTRIES. */
static inline struct bc_entry *bc_tarmac_add(
	struct bc_tarmac_line *line, unsigned kind, unsigned type, uint64_t addr)
{
	struct bc_parse *p = line->p;
	struct bc_entry *entry = &p->entries[p->count + line->made];

	bc_entry_reference(entry, type, addr, p->number);
	entry->kind = (uint8_t)kind;
	entry->has = line->has;
	entry->tick = line->tick;
	entry->unit = line->unit;
	entry->proc = line->proc;
	entry->is_continued = line->made++ != 0;
	return entry;
}

static inline struct bc_text bc_tarmac_text(const char *begin, const char *end)
{
	return (struct bc_text){.at = begin, .bytes = (uint32_t)(end - begin)};
}

static inline bool bc_tarmac_is_end(char c)
{
	return c == '\n' || bc_is_space(c);
}

/* What may stand among the digits of a number. */
static inline bool bc_tarmac_is_separator(char c)
{
	return c == '_' || c == ':';
}

static inline bool bc_tarmac_is_unknown(char c)
{
	return (c | 0x20) == 'x';
}

/* Behind an address there may be a physical one, its state, and the address of a second half: takes
 * them. Returns false where the address doesn't end as one. */
static inline bool bc_tarmac_take_physical(const char **at, uint64_t *phys, uint32_t *has)
{
	if (**at == ':') {
		++*at;
		if (!bc_scan_hex(at, phys))
			return false;
		*has = BC_HAS_PHYS;
	}
	if (**at == '_' || **at == ',')
		*at = bc_word_end(*at);
	return bc_tarmac_is_end(**at);
}

#endif
