/* Memory accesses of Tarmac: M lines, R08 and W08, LD and ST. See tarmac_line.h.
 *
 * Data is a number or, on a bus in memory order, a row of bytes; both become parts of up to eight
 * bytes from the lowest address up. An access without known bytes stays whole. */
#include "formats/codec/tarmac_line.h"

#include <byteswap.h>

_Static_assert(
	BC_TARMAC_ACCESS_MAX / 8 <= BC_LINE_ENTRIES, "an access's parts fit a line's entries");

/* A memory access, before its data is parsed. */
struct access {
	unsigned type;
	uint32_t size;
	bool is_memory_order; /* the byte at the lowest address is written first */
	uint64_t addr;
	uint64_t phys;
	struct bc_text attrib;
	struct bc_text security;
	bc_traits traits;
};

static void add_access(struct bc_tarmac_line *line, const struct access *a, uint64_t offset,
	uint32_t size, bool is_known, uint64_t data)
{
	struct bc_entry *entry = bc_tarmac_add(line, BC_ENTRY_REFERENCE, a->type, a->addr + offset);

	entry->traits |= BC_TRAIT_SIZE | a->traits | (is_known ? BC_TRAIT_DATA : 0);
	entry->size = size;
	entry->phys = (a->traits & BC_TRAIT_PHYS) != 0 ? a->phys + offset : 0;
	entry->access.attrib = a->attrib;
	entry->access.security = a->security;
	entry->data = is_known ? data : 0;
}

/* Reads up to 16 digits, skipping separators. Returns false if there are fewer. */
static bool parse_digits(const char **at, unsigned digits, bool *is_known, uint64_t *data)
{
	const char *p = *at;
	uint64_t sum = 0;

	*is_known = true;
	while (digits != 0) {
		uint8_t digit = bc_hex_value[(uint8_t)*p];
		if (digit <= 15) {
			sum = sum << 4 | digit;
		} else if (bc_tarmac_is_unknown(*p)) {
			*is_known = false;
		} else if (bc_tarmac_is_separator(*p) || bc_is_space(*p)) {
			p++;
			continue;
		} else {
			break;
		}
		digits--;
		p++;
	}
	*at = p;
	*data = sum;
	return digits == 0;
}

static uint64_t swapped(uint64_t data, uint32_t bytes)
{
	return bswap_64(data) >> (8 - bytes) * 8;
}

/* Up to eight bytes of an access. */
struct part {
	uint64_t data;
	uint8_t bytes;
	bool is_known;
};

/* Adds the parts of an access, from the lowest address up. */
static void add_parts(struct bc_tarmac_line *line, const struct access *a, const struct part *parts,
	unsigned count)
{
	bool is_known = false;
	uint64_t offset = 0;

	for (unsigned i = 0; i < count; i++)
		is_known |= parts[i].is_known;
	if (!is_known) { /* no data that would have to be split */
		add_access(line, a, 0, a->size, false, 0);
		return;
	}
	for (unsigned i = 0; i < count; i++) {
		const struct part *part = &parts[a->is_memory_order ? i : count - 1 - i];
		add_access(line, a, offset, part->bytes, part->is_known, part->data);
		offset += part->bytes;
	}
}

/* Parses the data of an access that is narrower than the bus: all 4 or 8 bytes that were on it.
 * Only the lanes selected by the address belong to the access. */
static bool parse_lanes(struct bc_tarmac_line *line, const char *at, const struct access *a)
{
	const char *p = at;
	uint64_t data;

	if (a->size >= 8 || !bc_parse_hex_block(&p, &data) || !bc_is_token_end(*p))
		return false;
	size_t bus = (size_t)(p - at) / 2;
	size_t lane = a->addr % (bus != 0 ? bus : 1);
	if ((size_t)(p - at) != 2 * bus || (bus != 4 && bus != 8) || bus <= a->size ||
		lane + a->size > bus)
		return false;
	if (a->is_memory_order)
		data = swapped(data, (uint32_t)bus);
	line->end = p;
	add_access(
		line, a, 0, a->size, true, data >> lane * 8 & ((UINT64_C(1) << a->size * 8) - 1));
	return true;
}

static enum bc_tarmac_result parse_data(
	struct bc_tarmac_line *line, const char *at, const struct access *a)
{
	static const char expected[] =
		"expected two hexadecimal digits for each byte of the access";
	struct part parts[BC_TARMAC_ACCESS_MAX / 8];
	uint32_t left = a->size;
	unsigned count = 0;

	if (parse_lanes(line, at, a))
		return BC_TARMAC_PARSED;
	/* A part shorter than eight bytes is at the highest address, whose digits come first. */
	while (left != 0) {
		struct part *part = &parts[count++];
		uint32_t odd = left % 8 != 0 && (left < 8 || !a->is_memory_order) ? left % 8 : 8;
		part->bytes = (uint8_t)odd;
		if (!parse_digits(&at, odd * 2, &part->is_known, &part->data))
			return bc_tarmac_malformed(line, at, expected);
		if (a->is_memory_order)
			part->data = swapped(part->data, odd);
		left -= odd;
	}
	if (!bc_is_token_end(*at))
		return bc_tarmac_malformed(line, at, expected);
	line->end = at;
	add_parts(line, a, parts, count);
	return BC_TARMAC_PARSED;
}

/* A word instead of an address, as in "MCW4___R (01000250:000000bb) TRANSFER 00000000". */
static bool is_name(const char *at)
{
	bool is_hex = true;

	for (; !bc_is_token_end(*at); at++) {
		if (*at < 'A' || *at > 'Z')
			return false;
		is_hex &= *at <= 'F';
	}
	return !is_hex;
}

/* Sets the attributes, without the outer underscores, which stand for missing ones. */
static void set_attrib(struct access *a, const char *at, const char *end)
{
	while (at != end && *at == '_')
		at++;
	while (at != end && end[-1] == '_')
		end--;
	if (at == end)
		return;
	a->attrib = bc_tarmac_text(at, end);
	a->traits |= BC_TRAIT_ATTRIB;
}

/* Parses a memory access after the word for its kind. */
static enum bc_tarmac_result parse_access(
	struct bc_tarmac_line *line, const char *at, struct access *a)
{
	at = bc_tarmac_skip(at);
	if ((*at == 'X' || *at == 'T') && bc_is_space(at[1])) {
		set_attrib(a, at, at + 1);
		at = bc_tarmac_skip(at + 1);
	}
	if (*at == '(' && !bc_tarmac_is_capability(at)) { /* the instruction that made the access */
		while (*at != '\n' && *at != ')')
			at++;
		at = bc_tarmac_skip(at + (*at == ')'));
	}
	if (is_name(at))
		return BC_TARMAC_VERBATIM;
	if (!bc_tarmac_parse_address(line, &at, &a->addr) ||
		!bc_tarmac_parse_physical(&at, &a->phys, &a->security, &a->traits))
		return bc_tarmac_malformed(line, at, BC_TARMAC_ADDRESS_EXPECTED);
	at = bc_tarmac_skip(at);
	if (*at == '(') /* (ABORTED) */
		return BC_TARMAC_VERBATIM;
	return parse_data(line, at, a);
}

/* If the attributes extend the word to eight letters, the last letter is the bus: D for data in
 * memory order, or I or A (instructions, peripherals), which are not modelled. */
enum bc_tarmac_result bc_tarmac_parse_m(struct bc_tarmac_line *line, const char *at)
{
	const char *p = at + 1;
	struct access a = {.type = BC_REQ_MEMREAD};
	uint64_t size;

	if (*p >= 'A' && *p <= 'Z' && (p[1] == 'R' || p[1] == 'W'))
		p++;
	if (*p != 'R' && *p != 'W')
		return BC_TARMAC_VERBATIM;
	a.type = *p++ == 'W' ? BC_REQ_MEMWRITE : BC_REQ_MEMREAD;
	if (!bc_parse_decimal(&p, &size) || size == 0 || size > BC_TARMAC_ACCESS_MAX)
		return BC_TARMAC_VERBATIM;
	a.size = (uint32_t)size;
	const char *attrib = p;
	while ((*p >= 'A' && *p <= 'Z') || *p == '_')
		p++;
	if (!bc_is_token_end(*p))
		return BC_TARMAC_VERBATIM;
	if (p - at == 8 && (p[-1] == 'I' || p[-1] == 'A'))
		return BC_TARMAC_VERBATIM;
	a.is_memory_order = p - at == 8 && p[-1] == 'D';
	set_attrib(&a, attrib, p - a.is_memory_order);
	return parse_access(line, p, &a);
}

enum bc_tarmac_result bc_tarmac_parse_rw(struct bc_tarmac_line *line, const char *at)
{
	struct access a = {.type = *at == 'R' ? BC_REQ_MEMREAD : BC_REQ_MEMWRITE};
	unsigned tens = (uint8_t)(at[1] - '0');

	if (tens > 9 || (uint8_t)(at[2] - '0') > 9 || !bc_is_token_end(at[3]))
		return BC_TARMAC_VERBATIM;
	a.size = tens * 10 + (uint8_t)(at[2] - '0');
	return a.size != 0 ? parse_access(line, at + 3, &a) : BC_TARMAC_VERBATIM;
}

#define REGION_BYTES   16
#define REGION_UNUSED  256u
#define REGION_UNKNOWN 257u

/* Reads sixteen bytes, highest address first: each two digits, ".." or "##". */
static bool parse_region(const char **at, unsigned bytes[REGION_BYTES])
{
	for (unsigned i = REGION_BYTES; i-- != 0;) {
		const char *p = *at = bc_tarmac_skip(*at);
		unsigned high = bc_hex_value[(uint8_t)p[0]];
		unsigned low = bc_hex_value[(uint8_t)p[1]];
		if (high <= 15 && low <= 15)
			bytes[i] = high << 4 | low;
		else if (p[0] == '.' && p[1] == '.')
			bytes[i] = REGION_UNUSED;
		else if (p[0] == '#' && p[1] == '#')
			bytes[i] = REGION_UNKNOWN;
		else
			return false;
		*at = p + 2;
	}
	return bc_is_token_end(**at);
}

/* Parses the address and bytes of an LD or ST line. Adjacent bytes form accesses of at most eight
 * bytes, split from the highest address down, as Arm's parser does; the lowest is added first.
 * Sets *access to the type, unless the line is malformed. */
static enum bc_tarmac_result parse_byte_row(
	struct bc_tarmac_line *line, const char *at, uint16_t type, uint16_t *access)
{
	struct access a = {.type = type};
	unsigned bytes[REGION_BYTES];
	struct part parts[REGION_BYTES];
	unsigned offsets[REGION_BYTES];
	unsigned count = 0;

	at = bc_tarmac_skip(at);
	if (!bc_parse_hex_block(&at, &a.addr) || !bc_is_token_end(*at))
		return bc_tarmac_malformed(line, at, BC_TARMAC_ADDRESS_EXPECTED);
	if (!parse_region(&at, bytes))
		return bc_tarmac_malformed(line, at, "expected 16 bytes: digits, .. or ##");
	for (unsigned end = REGION_BYTES; end != 0; end--) {
		struct part *part = &parts[count];
		unsigned i = end;
		*part = (struct part){.is_known = bytes[end - 1] != REGION_UNKNOWN};
		while (i != 0 && end - i < 8 && bytes[i - 1] != REGION_UNUSED &&
			(bytes[i - 1] != REGION_UNKNOWN) == part->is_known)
			part->data = part->data << 8 | (bytes[--i] & 0xFF);
		if (i == end)
			continue;
		part->bytes = (uint8_t)(end - i);
		offsets[count++] = i;
		end = i + 1;
	}
	while (count-- != 0)
		add_access(line, &a, offsets[count], parts[count].bytes, parts[count].is_known,
			parts[count].data);
	line->end = at;
	*access = type;
	/* No bytes were accessed, so there is no entry. */
	return line->made != 0 ? BC_TARMAC_PARSED : BC_TARMAC_VERBATIM;
}

enum bc_tarmac_result bc_tarmac_parse_ld_st(
	struct bc_tarmac_line *line, const char *at, uint16_t *access)
{
	uint16_t type = *at == 'L' ? BC_REQ_MEMREAD : BC_REQ_MEMWRITE;
	const char *addr = bc_tarmac_skip(at + 2);

	*access = BC_TARMAC_NO_ACCESS;
	if (*addr != '\n' && bc_hex_value[(uint8_t)*addr] > 15)
		return BC_TARMAC_VERBATIM;
	return parse_byte_row(line, addr, type, access);
}

enum bc_tarmac_result bc_tarmac_parse_continued(
	struct bc_tarmac_line *line, const char *at, uint16_t *access)
{
	uint16_t type = *access;
	const char *p = at;
	uint64_t addr;

	*access = BC_TARMAC_NO_ACCESS;
	if (type == BC_TARMAC_NO_ACCESS || !bc_parse_hex_block(&p, &addr) || !bc_is_space(*p))
		return BC_TARMAC_VERBATIM;
	p = bc_tarmac_skip(p);
	if (bc_hex_value[(uint8_t)*p] > 15 && *p != '.' && *p != '#')
		return BC_TARMAC_VERBATIM;
	line->dependence = BC_LINE_CONTINUES;
	return parse_byte_row(line, at, type, access);
}
