#include "formats/dinero.h"

#include "formats/scan.h"
#include "formats/text.h"

struct din {
	uint32_t size; /* of every access: what the user says of them */
};

static const uint16_t din_types[] = {
	BC_REQ_MEMREAD, BC_REQ_MEMWRITE, BC_REQ_FETCH, BC_REF_MISC, BC_REF_FLUSH};

static const char bad_address[] = "a hexadecimal address of at most 64 bits is expected";

/* Digits, with 0x before them or not. */
static inline bool scan_hex(const char **at, uint64_t *value)
{
	if (**at == '0' && ((*at)[1] | 0x20) == 'x')
		*at += 2;
	return bc_scan_hex_block(at, value);
}

static inline bool is_word_end(char c)
{
	return c == '\n' || bc_is_space(c);
}

static void din_begin(void *state, const struct bc_format_options *options)
{
	struct din *din = state;

	din->size = options->size;
}

static enum bc_parse_end parse_din(void *state, struct bc_parse *p)
{
	const struct din *din = state;
	for (; p->at < p->end; p->number++) {
		uint64_t addr;

		if (!bc_parse_has_room(p))
			return BC_PARSE_FULL;
		const char *at = bc_skip_spaces(p->at);
		unsigned label = (unsigned)(*at - '0');
		if (label > 4 || !is_word_end(at[1]))
			return bc_parse_bad(p, at, "a label from 0 to 4 is expected");
		at = bc_skip_spaces(at + 1);
		if (!scan_hex(&at, &addr))
			return bc_parse_bad(p, at, bad_address);
		if (!is_word_end(*at))
			return bc_parse_bad(p, at, "a space is expected behind the address");
		struct bc_entry *entry = &p->entries[p->count++];
		bc_entry_reference(entry, din_types[label], addr, p->number);
		/* To flush the cache moves no bytes. */
		if (din->size != 0 && label != 4) {
			entry->has = BC_HAS_SIZE;
			entry->size = din->size;
		}
		p->at = (*at == '\n' ? at : bc_line_end(at)) + 1;
	}
	return BC_PARSE_DONE;
}

const struct bc_parser bc_din_parser = {
	.state_bytes = sizeof(struct din), .begin = din_begin, .parse = parse_din};

static int xdin_type(char letter)
{
	switch (letter) {
	case 'r':
		return BC_REQ_MEMREAD;
	case 'w':
		return BC_REQ_MEMWRITE;
	case 'i':
		return BC_REQ_FETCH;
	case 'm':
		return BC_REF_MISC;
	case 'c':
		return BC_REF_COPYBACK;
	case 'v':
		return BC_REF_INVALIDATE;
	default:
		return -1;
	}
}

static void xdin_begin(void *state, const struct bc_format_options *options)
{
	(void)state;
	(void)options;
}

static enum bc_parse_end parse_xdin(void *state, struct bc_parse *p)
{
	(void)state;
	for (; p->at < p->end; p->number++) {
		uint64_t addr;
		uint64_t size;

		if (!bc_parse_has_room(p))
			return BC_PARSE_FULL;
		const char *at = bc_skip_spaces(p->at);
		int type = xdin_type(*at);
		if (type < 0 || !is_word_end(at[1]))
			return bc_parse_bad(p, at, "one of r, w, i, m, c, v is expected");
		at = bc_skip_spaces(at + 1);
		if (!scan_hex(&at, &addr))
			return bc_parse_bad(p, at, bad_address);
		if (!is_word_end(*at))
			return bc_parse_bad(p, at, "a space is expected behind the address");
		const char *digits = at = bc_skip_spaces(at);
		bool has_size = scan_hex(&at, &size);
		if (!has_size || size > UINT32_MAX)
			return bc_parse_bad(p, has_size ? digits : at,
				"a hexadecimal size of at most 32 bits is expected");
		at = bc_skip_spaces(at);
		if (*at != '\n')
			return bc_parse_bad(p, at, "nothing is expected behind the size");
		struct bc_entry *entry = &p->entries[p->count++];
		bc_entry_reference(entry, (unsigned)type, addr, p->number);
		entry->has = size != 0 ? BC_HAS_SIZE : 0;
		entry->size = (uint32_t)size;
		p->at = at + 1;
	}
	return BC_PARSE_DONE;
}

const struct bc_parser bc_xdin_parser = {.begin = xdin_begin, .parse = parse_xdin};

static int begin_printer(void *state, const struct bc_format_options *options)
{
	(void)state;
	(void)options;
	return 0;
}

static char din_label(unsigned type)
{
	switch (type) {
	case BC_REQ_MEMREAD:
		return '0';
	case BC_REQ_MEMWRITE:
		return '1';
	case BC_REQ_FETCH:
		return '2';
	case BC_REF_FLUSH:
		return '4';
	default:
		return '3';
	}
}

static int print_din(void *state, struct bc_print *p)
{
	(void)state;
	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++) {
		char *out = p->out + p->used;
		*out++ = din_label(p->entries->type);
		*out++ = ' ';
		out = bc_put_hex(out, p->entries->addr);
		*out++ = '\n';
		p->used = (size_t)(out - p->out);
	}
	return 0;
}

const struct bc_printer bc_din_printer = {.begin = begin_printer, .print = print_din};

static char xdin_letter(unsigned type)
{
	switch (type) {
	case BC_REQ_MEMREAD:
		return 'r';
	case BC_REQ_MEMWRITE:
		return 'w';
	case BC_REQ_FETCH:
		return 'i';
	case BC_REF_COPYBACK:
		return 'c';
	case BC_REF_INVALIDATE:
		return 'v';
	default:
		return 'm';
	}
}

static int print_xdin(void *state, struct bc_print *p)
{
	(void)state;
	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++) {
		char *out = p->out + p->used;
		*out++ = xdin_letter(p->entries->type);
		*out++ = ' ';
		out = bc_put_hex(out, p->entries->addr);
		*out++ = ' ';
		out = bc_put_hex(out, p->entries->size);
		*out++ = '\n';
		p->used = (size_t)(out - p->out);
	}
	return 0;
}

const struct bc_printer bc_xdin_printer = {.begin = begin_printer, .print = print_xdin};
