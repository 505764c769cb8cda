/* Dinero's traces: one reference per line.
 *
 *   din   LABEL HEXADDR      label 0 read, 1 write, 2 fetch, 3 miscellaneous, 4 flush; the
 *                            rest of the line is ignored
 *   xdin  C HEXADDR HEXSIZE  r read, w write, i fetch, m miscellaneous, c copy back,
 *                            v invalidate
 *
 * Neither format has times. Addresses have up to 64 bits. The parsers accept 0x before digits. din
 * is read by its layout (formats/codec/layout_names.c). In xdin, a blank line is malformed, because
 * Dinero IV stops at one. Source: the manual of Dinero IV. */
#include "formats/codec/codecs.h"

#include "formats/base/fast_text.h"
#include "formats/codec/block_parse.h"
#include "formats/codec/lines.h"

static const uint16_t din_types[] = {
	BC_REQ_MEMREAD, BC_REQ_MEMWRITE, BC_REQ_FETCH, BC_REF_MISC, BC_REF_FLUSH};

#define DIN_LABELS (sizeof(din_types) / sizeof(din_types[0]))

static const char bad_address_end[] = "expected a space after the address";
static const char bad_address[] = "expected a hexadecimal address of at most 64 bits";

/* Reads hex digits with an optional 0x. */
static inline bool parse_hex(const char **at, uint64_t *value)
{
	if (**at == '0' && ((*at)[1] | 0x20) == 'x')
		*at += 2;
	return bc_parse_hex_block(at, value);
}

static void din_init(void *state, const struct bc_format_options *options)
{
	bc_lines_init(state, BC_LAYOUT_DIN, options->size);
}

/* Dinero ignores the rest of a line, but the programs that write din write none. */
static bool is_typical_din(const char *line, const struct bc_entry *entry)
{
	const char *addr = bc_skip_spaces(bc_token_end(bc_skip_spaces(line)));

	(void)entry;
	return *bc_skip_spaces(bc_token_end(addr)) == '\n';
}

/* The words of the layout are the labels, for each alternative. */
static void get_notes(const void *state, struct bc_parse_notes *notes)
{
	const struct bc_lines *lines = state;
	uint64_t labels = lines->words | lines->words >> DIN_LABELS;

	bc_lines_notes(state, notes);
	notes->lacks_hex = false;
	notes->lacks_writes = (labels & (1u << 3 | 1u << 1)) == 1u << 3;
}

const struct bc_parser bc_din_parser = {.state_bytes = sizeof(struct bc_lines),
	.init = din_init,
	.parse = bc_lines_parse,
	.is_typical = is_typical_din,
	.notes = get_notes,
	.has_bare_hex = true};

static const struct {
	char letter;
	uint16_t type;
} xdin_types[] = {{'r', BC_REQ_MEMREAD}, {'w', BC_REQ_MEMWRITE}, {'i', BC_REQ_FETCH},
	{'c', BC_REF_COPYBACK}, {'v', BC_REF_INVALIDATE}, {'m', BC_REF_MISC}};

#define XDIN_TYPES (sizeof(xdin_types) / sizeof(xdin_types[0]))

static inline int xdin_type(char letter)
{
	for (unsigned i = 0; i < XDIN_TYPES; i++)
		if (xdin_types[i].letter == letter)
			return xdin_types[i].type;
	return -1;
}

/* Fast path: a letter and two numbers, separated by single spaces. */
static inline const char *parse_xdin_fast(const char *at, struct bc_reference_line *line)
{
	uint32_t blanks = bc_blanks32(at) & ~UINT32_C(3);
	uint32_t rest = blanks & (blanks - 1);
	unsigned space = blanks != 0 ? (unsigned)__builtin_ctz(blanks) : 0;
	unsigned end = rest != 0 ? (unsigned)__builtin_ctz(rest) : 0;
	unsigned n = bc_hex16(at + 2, &line->addr);
	unsigned m = bc_hex16(at + space + 1, &line->size);
	int type = xdin_type(*at);

	if (type < 0 || at[1] != ' ' || n == 0 || n + 2 != space || at[space] != ' ' || m == 0 ||
		m > 8 || space + 1 + m != end || at[end] != '\n')
		return NULL;
	line->type = (unsigned)type;
	return at + end + 1;
}

static const char *parse_xdin_line(struct bc_parse *p, struct bc_reference_line *line)
{
	const char *at = bc_skip_spaces(p->at);
	int type = xdin_type(*at);

	p->bad = at;
	p->expected = "expected one of r, w, i, m, c, v";
	if (type < 0 || !bc_is_token_end(at[1]))
		return NULL;
	line->type = (unsigned)type;
	at = bc_skip_spaces(at + 1);
	bool has_address = parse_hex(&at, &line->addr);
	p->bad = at;
	p->expected = has_address ? bad_address_end : bad_address;
	if (!has_address || !bc_is_token_end(*at))
		return NULL;
	const char *digits = at = bc_skip_spaces(at);
	bool has_size = parse_hex(&at, &line->size);
	return bc_end_reference_line(p, digits, at, has_size, line->size,
		"expected a hexadecimal size of at most 32 bits");
}

static enum bc_parse_end parse_xdin(void *state, struct bc_parse *p)
{
	(void)state;
	for (; p->at < p->end; p->number++) {
		struct bc_reference_line line;

		if (!bc_parse_has_room(p))
			return BC_PARSE_FULL;
		const char *next = parse_xdin_fast(p->at, &line);
		if (next == NULL)
			next = parse_xdin_line(p, &line);
		if (next == NULL)
			return BC_PARSE_BAD;
		bc_add_reference_line(p, &line, next);
	}
	return BC_PARSE_DONE;
}

#define VECTOR_BYTES 64u

/* Most references are at most a vector register. More digits than such a size needs are data. */
static bool is_typical_xdin(const char *line, const struct bc_entry *entry)
{
	const char *addr = bc_skip_spaces(bc_token_end(bc_skip_spaces(line)));
	const char *size = bc_skip_spaces(bc_token_end(addr));

	size += size[0] == '0' && (size[1] | 0x20) == 'x' ? 2 : 0;
	return bc_ref_type_plain(entry->type) >= 0 && entry->size != 0 &&
	       entry->size <= VECTOR_BYTES && bc_token_end(size) - size <= 2;
}

const struct bc_parser bc_xdin_parser = {
	.parse = parse_xdin, .is_typical = is_typical_xdin, .has_bare_hex = true};

static char din_label(unsigned type)
{
	for (unsigned i = 0; i < DIN_LABELS; i++)
		if (din_types[i] == type)
			return (char)('0' + i);
	return '3';
}

static char xdin_letter(unsigned type)
{
	unsigned i = 0;

	while (i < XDIN_TYPES - 1 && xdin_types[i].type != type)
		i++;
	return xdin_types[i].letter;
}

static int print_lines(struct bc_print *p, bool is_extended)
{
	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++) {
		const struct bc_entry *entry = p->entries;
		char *out = p->out + p->used;
		*out++ = (char)(is_extended ? xdin_letter(entry->type) : din_label(entry->type));
		*out++ = ' ';
		out = bc_write_hex(out, entry->addr);
		if (is_extended) {
			*out++ = ' ';
			out = bc_write_hex(out, entry->size);
		}
		*out++ = '\n';
		p->used = (size_t)(out - p->out);
	}
	return 0;
}

static int print_din(void *state, struct bc_print *p)
{
	(void)state;
	return print_lines(p, false);
}

static int print_xdin(void *state, struct bc_print *p)
{
	(void)state;
	return print_lines(p, true);
}

/* All addresses and sizes fit. In xdin, an unknown size is printed as 0. */
const struct bc_printer bc_din_printer = {.print = print_din};
const struct bc_printer bc_xdin_printer = {.print = print_xdin};
