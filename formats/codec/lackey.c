/* Output of valgrind --tool=lackey --trace-mem=yes: one reference per line. It is parsed, and
 * printed only for display: no trace is converted to it.
 *
 *   I  ADDR,SIZE    fetch
 *    L ADDR,SIZE    load
 *    S ADDR,SIZE    store
 *    M ADDR,SIZE    load and store by one instruction
 *
 * The address is hexadecimal, the size decimal. There are no times. Blank lines, and lines that
 * start with == (valgrind's own messages), are skipped. Anything else, such as output of the traced
 * program, is malformed. Source: Valgrind's manual, "Lackey". */
#include "formats/codec/codecs.h"

#include <string.h>

#include "formats/base/fast_text.h"
#include "formats/codec/block_parse.h"

static inline int type_of(char letter)
{
	return letter == 'I'   ? BC_REQ_FETCH
	       : letter == 'L' ? BC_REQ_MEMREAD
	       : letter == 'S' ? BC_REQ_MEMWRITE
	       : letter == 'M' ? BC_REF_MODIFY
			       : -1;
}

/* Parses a line with a reference. Returns the next line, or NULL. */
static const char *parse_line(struct bc_parse *p, struct bc_reference_line *line)
{
	const char *at = bc_skip_spaces(p->at);
	int type = type_of(*at);

	p->bad = at;
	p->expected = "expected one of I, L, S, M, or ==";
	if (type < 0 || !bc_is_token_end(at[1]))
		return NULL;
	line->type = (unsigned)type;
	at = bc_skip_spaces(at + 1);
	bool has_address = bc_parse_hex_block(&at, &line->addr);
	p->bad = at;
	p->expected = has_address ? "expected a comma after the address"
				  : "expected a hexadecimal address of at most 64 bits";
	if (!has_address || *at != ',')
		return NULL;
	const char *digits = ++at;
	line->size = 0;
	bool has_size = bc_parse_decimal(&at, &line->size);
	return bc_end_reference_line(
		p, digits, at, has_size, line->size, "expected a decimal size of at most 32 bits");
}

struct lackey {
	uint64_t skipped; /* lines that are no references */
};

/* True for a message of Valgrind, which is marked with the process (==123==, --123--, **123** or,
 * with -d, --123:1:, optionally after a time), and for a superblock, SB and its address. */
static bool is_other(const char *at)
{
	const char *p = at + 2;
	uint64_t addr;

	if (at[0] == 'S' && at[1] == 'B' && *p++ == ' ')
		return bc_parse_hex(&p, &addr) && bc_is_token_end(*p);
	if (at[0] != at[1] || (*at != '=' && *at != '-' && *at != '*'))
		return false;
	while (bc_is_digit(*p) || *p == ':' || *p == '.' || *p == ' ')
		p++;
	if (p == at + 2 || *at == '=')
		return *at == '=';
	return (p[0] == *at && p[1] == *at) ||
	       (*at == '-' && memchr(at + 2, ':', (size_t)(p - at - 2)) != NULL);
}

static enum bc_parse_end parse_lackey(void *state, struct bc_parse *p)
{
	struct lackey *lackey = state;

	for (; p->at < p->end; p->number++) {
		struct bc_reference_line line;

		if (!bc_parse_has_room(p))
			return BC_PARSE_FULL;
		const char *at = bc_skip_spaces(p->at);
		bool is_skipped = is_other(p->at);
		lackey->skipped += is_skipped && p->at[0] != '=';
		if (*at == '\n' || is_skipped) {
			p->at = bc_line_end(at) + 1;
			continue;
		}
		const char *next = parse_line(p, &line);
		if (next == NULL)
			return BC_PARSE_BAD;
		bc_add_reference_line(p, &line, next);
	}
	return BC_PARSE_DONE;
}

/* Lackey writes the letter of a fetch in the first column and the others in the second. Elsewhere
 * they belong to other texts, such as the path "M 10,20" of a picture. */
static bool is_typical_lackey(const char *line, const struct bc_entry *entry)
{
	return entry->type == BC_REQ_FETCH ? *line == 'I' : *line == ' ' && line[1] > ' ';
}

static void get_notes(const void *state, struct bc_parse_notes *notes)
{
	const struct lackey *lackey = state;

	notes->skipped = lackey->skipped;
}

const struct bc_parser bc_lackey_parser = {.state_bytes = sizeof(struct lackey),
	.parse = parse_lackey,
	.is_typical = is_typical_lackey,
	.notes = get_notes};

static const char *head_of(unsigned type)
{
	return type == BC_REQ_FETCH      ? "I  "
	       : type == BC_REQ_MEMREAD  ? " L "
	       : type == BC_REQ_MEMWRITE ? " S "
					 : " M ";
}

static int print_lackey(void *state, struct bc_print *p)
{
	(void)state;
	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++) {
		char *out = p->out + p->used;
		uint64_t addr = p->entries->addr;
		memcpy(out, head_of(p->entries->type), 3);
		out += 3;
		out = addr <= UINT32_MAX ? bc_write_hex32(out, (uint32_t)addr)
					 : bc_write_hex(out, addr);
		*out++ = ',';
		out = bc_write_decimal(out, p->entries->size);
		*out++ = '\n';
		p->used = (size_t)(out - p->out);
	}
	return 0;
}

const struct bc_printer bc_lackey_printer = {.print = print_lackey};
