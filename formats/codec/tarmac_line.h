/* A line of Tarmac while it is parsed: shared by formats/codec/tarmac.c and
 * formats/codec/tarmac_access.c. formats/codec/tarmac_print.c has the same limit. */
#ifndef BC_FORMATS_CODEC_TARMAC_LINE_H
#define BC_FORMATS_CODEC_TARMAC_LINE_H

#include "formats/base/fast_text.h"
#include "formats/codec/block_parse.h"
#include "formats/trace/parser.h"

/* The longest supported memory access, in bytes. */
#define BC_TARMAC_ACCESS_MAX 512u

/* Result of parsing a line. */
enum bc_tarmac_result {
	BC_TARMAC_PARSED,
	BC_TARMAC_VERBATIM, /* of an unmodelled kind; kept as a line */
	BC_TARMAC_MALFORMED,
};

/* The entries made so far are in the parse's entries, after the first `count`. */
struct bc_tarmac_line {
	struct bc_parse *p;
	size_t made;
	bc_traits traits; /* for each of its entries */
	uint16_t proc;
	uint8_t unit;
	uint8_t dependence; /* enum bc_line_dependence */
	uint64_t tick;
	const char *words; /* after the time and processor */
	const char *end;   /* parsed up to here, at most the newline */
	const char *bad;
	const char *expected;
	bool has_more; /* than was read */
};

#define BC_TARMAC_ADDRESS_EXPECTED "expected a hexadecimal address of at most 64 bits"

static inline enum bc_tarmac_result bc_tarmac_malformed(
	struct bc_tarmac_line *line, const char *bad, const char *expected)
{
	line->bad = bad;
	line->expected = expected;
	return BC_TARMAC_MALFORMED;
}

/* Adds an entry for the line. There is room for BC_LINE_ENTRIES. */
static inline struct bc_entry *bc_tarmac_add(
	struct bc_tarmac_line *line, unsigned kind, unsigned type, uint64_t addr)
{
	struct bc_parse *p = line->p;
	struct bc_entry *entry = &p->entries[p->count + line->made];

	bc_entry_reference(entry, type, addr, p->number);
	entry->kind = (uint8_t)kind;
	entry->traits = line->traits;
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

/* Like bc_skip_spaces() and bc_token_end(), for the usual case: at most one space, and letters. */
static inline const char *bc_tarmac_skip(const char *at)
{
	if ((uint8_t)*at > ' ')
		return at;
	if (*at == ' ' && (uint8_t)at[1] > ' ')
		return at + 1;
	return bc_skip_spaces(at);
}

static inline const char *bc_tarmac_word_end(const char *at)
{
	for (;; at++) {
		while ((uint8_t)*at > ' ')
			at++;
		if (bc_is_token_end(*at))
			return at;
	}
}

/* Characters allowed between the digits of a number. */
static inline bool bc_tarmac_is_separator(char c)
{
	return c == '_' || c == ':';
}

static inline bool bc_tarmac_is_unknown(char c)
{
	return (c | 0x20) == 'x';
}

/* True for a capability as address, "(1|dc5f000000010005|80001000)": tag, metadata and address. */
static inline bool bc_tarmac_is_capability(const char *at)
{
	if (*at++ != '(')
		return false;
	while (bc_hex_value[(uint8_t)*at] <= 15)
		at++;
	return *at == '|';
}

/* Parses an address. The tag and the metadata of a capability are left out. */
static inline bool bc_tarmac_parse_address(
	struct bc_tarmac_line *line, const char **at, uint64_t *addr)
{
	if (!bc_tarmac_is_capability(*at))
		return bc_parse_hex_block(at, addr);
	line->has_more = true;
	for (const char *p = *at; !bc_is_token_end(*p) && *p != ')'; p++)
		*at = *p == '|' ? p + 1 : *at;
	if (!bc_parse_hex_block(at, addr) || **at != ')')
		return false;
	++*at;
	return true;
}

/* Skips what may follow an address: a physical address, its security, and the address of a second
 * half. Stores the first two, if there are any. Returns false if the address does not end there. */
static inline bool bc_tarmac_parse_physical(
	const char **at, uint64_t *phys, struct bc_text *security, uint32_t *traits)
{
	if (**at == ':') {
		++*at;
		if (!bc_parse_hex_block(at, phys))
			return false;
		*traits |= BC_TRAIT_PHYS;
	}
	if (**at == '_') {
		const char *first = ++*at;
		while (!bc_is_token_end(**at) && **at != ',')
			++*at;
		*security = bc_tarmac_text(first, *at);
		*traits |= *at != first ? BC_TRAIT_SECURITY : 0;
	}
	if (**at == ',')
		*at = bc_tarmac_word_end(*at);
	return bc_is_token_end(**at);
}

/* ---- memory accesses, in tarmac_access.c
 *
 * Parses the memory access lines (M, R08 and W08, LD and ST) into references.
 *
 * Each function starts at the word for the kind. An access of more than eight bytes becomes several
 * references of eight bytes each and possibly a shorter one, from the lowest address up. If no byte
 * is known, it becomes a single reference. */

/* M, optionally a letter for the kind of bus cycle, R or W, size in bytes, attributes. */
enum bc_tarmac_result bc_tarmac_parse_m(struct bc_tarmac_line *line, const char *at);

/* R08, W04 and so on. */
enum bc_tarmac_result bc_tarmac_parse_rw(struct bc_tarmac_line *line, const char *at);

#define BC_TARMAC_NO_ACCESS UINT16_MAX

/* LD and ST lines, and continuation lines, which have an address in place of the kind. *access is
 * the type of the access on the previous line, or BC_TARMAC_NO_ACCESS; it is set to this one's. */
enum bc_tarmac_result bc_tarmac_parse_ld_st(
	struct bc_tarmac_line *line, const char *at, uint16_t *access);
enum bc_tarmac_result bc_tarmac_parse_continued(
	struct bc_tarmac_line *line, const char *at, uint16_t *access);

#endif
