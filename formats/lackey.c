#include "formats/lackey.h"

#include "formats/scan.h"

static void lackey_begin(void *state, const struct bc_format_options *options)
{
	(void)state;
	(void)options;
}

static inline int type_of(char letter)
{
	switch (letter) {
	case 'I':
		return BC_REQ_FETCH;
	case 'L':
		return BC_REQ_MEMREAD;
	case 'S':
		return BC_REQ_MEMWRITE;
	case 'M':
		return BC_REF_MODIFY;
	default:
		return -1;
	}
}

static enum bc_parse_end parse_lackey(void *state, struct bc_parse *p)
{
	(void)state;
	for (; p->at < p->end; p->number++) {
		uint64_t addr;
		uint64_t size;

		if (!bc_parse_has_room(p))
			return BC_PARSE_FULL;
		const char *at = bc_skip_spaces(p->at);
		int type = type_of(*at);
		if (*at == '\n' || (p->at[0] == '=' && p->at[1] == '=')) {
			p->at = bc_line_end(at) + 1;
			continue;
		}
		if (type < 0 || (!bc_is_space(at[1]) && at[1] != '\n'))
			return bc_parse_bad(p, at, "one of I, L, S, M is expected, or ==");
		at = bc_skip_spaces(at + 1);
		if (!bc_scan_hex_block(&at, &addr))
			return bc_parse_bad(
				p, at, "a hexadecimal address of at most 64 bits is expected");
		if (*at != ',')
			return bc_parse_bad(p, at, "a comma is expected behind the address");
		const char *digits = ++at;
		if (!bc_scan_decimal(&at, &size))
			return bc_parse_bad(p, at, "a decimal size of at most 32 bits is expected");
		if (size > UINT32_MAX)
			return bc_parse_bad(
				p, digits, "a decimal size of at most 32 bits is expected");
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

const struct bc_parser bc_lackey_parser = {.begin = lackey_begin, .parse = parse_lackey};
