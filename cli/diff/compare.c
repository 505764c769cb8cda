/* Compares and hashes entries by one table: which member of struct bc_entry has which field of
 * which kind of entry, and how it is read. Both walk the table, so they agree: entries that do not
 * differ in the selected fields have the same hash. References have a fast path. */
#include "cli/diff/compare.h"

#include <assert.h>
#include <string.h>

static const char *const names[BC_FIELD_COUNT] = {"kind", "addr", "type", "size", "attr", "proc",
	"time", "space", "data", "phys", "enables", "letter", "effect", "id", "opcode", "set",
	"mode", "disassembly", "name", "value", "step", "registers", "flags", "branch", "access",
	"immediate", "memory", "fallthrough", "target", "macro", "micro", "text", "event", "attrib",
	"security"};

const char *bc_field_name(uint64_t field)
{
	assert(field != 0 && (field & (field - 1)) == 0 && field >> BC_FIELD_COUNT == 0);
	return names[__builtin_ctzll(field)];
}

/* Fields that an entry has only if bc_entry.traits says so. */
static const struct {
	uint32_t trait;
	uint64_t field;
} optional[] = {
	{BC_TRAIT_SIZE, BC_FIELD_SIZE},
	{BC_TRAIT_ATTR, BC_FIELD_ATTR},
	{BC_TRAIT_PROC, BC_FIELD_PROC},
	{BC_TRAIT_TIME, BC_FIELD_TIME},
	{BC_TRAIT_SPACE, BC_FIELD_SPACE},
	{BC_TRAIT_DATA, BC_FIELD_DATA},
	{BC_TRAIT_PHYS, BC_FIELD_PHYS},
	{BC_TRAIT_SAMPLE, BC_FIELD_ENABLES},
	{BC_TRAIT_LETTER, BC_FIELD_LETTER},
	{BC_TRAIT_ATTRIB, BC_FIELD_ATTRIB},
	{BC_TRAIT_SECURITY, BC_FIELD_SECURITY},
};

#define OPTIONALS (sizeof(optional) / sizeof(optional[0]))

/* Fields that only some kinds have. */
static const struct {
	bc_traits traits;
	uint64_t fields;
} of_kinds[] = {
	{BC_TRAIT_INSTRUCTION, BC_FIELD_EFFECT | BC_FIELD_ID | BC_FIELD_OPCODE | BC_FIELD_SET |
				       BC_FIELD_MODE | BC_FIELD_DISASSEMBLY},
	{BC_TRAIT_REGISTER, BC_FIELD_NAME | BC_FIELD_VALUE},
	{BC_TRAIT_UOP, BC_FIELD_STEP | BC_FIELD_REGISTERS | BC_FIELD_FLAGS | BC_FIELD_BRANCH |
			       BC_FIELD_ACCESS | BC_FIELD_IMMEDIATE | BC_FIELD_MEMORY |
			       BC_FIELD_FALLTHROUGH | BC_FIELD_TARGET | BC_FIELD_MACRO |
			       BC_FIELD_MICRO},
	{BC_TRAIT_KERNEL | BC_TRAIT_EVENT | BC_TRAIT_LINE, BC_FIELD_TEXT},
	{BC_TRAIT_EVENT, BC_FIELD_EVENT},
};

uint64_t bc_compare_fields(uint32_t holds_a, uint32_t holds_b)
{
	uint64_t fields = (UINT64_C(1) << BC_FIELD_COUNT) - 1 - BC_FIELD_ID;

	for (size_t i = 0; i < OPTIONALS; i++)
		if ((holds_a & holds_b & optional[i].trait) == 0)
			fields &= ~optional[i].field;
	for (size_t i = 0; i < sizeof(of_kinds) / sizeof(of_kinds[0]); i++)
		if ((holds_a & holds_b & of_kinds[i].traits) == 0)
			fields &= ~of_kinds[i].fields;
	return fields;
}

/* How the value of a field is read, so that equivalent values are equal. */
enum reading {
	NUMBER,
	VERBATIM,
	ANY_CASE,
	ANY_SPACE, /* a run of white space is one space; none at the ends */
	DIGITS,    /* ignores case, separators and leading zeros */
};

struct cursor {
	const char *at;
	const char *end;
	enum reading reading;
	bool has_begun;
};

static bool is_white(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct cursor start_cursor(struct bc_text text, enum reading reading)
{
	return (struct cursor){.at = text.at,
		.end = text.bytes != 0 ? text.at + text.bytes : text.at,
		.reading = reading};
}

static int lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

/* Returns the next character, or -1 at the end. */
static int next_char(struct cursor *c)
{
	bool was_white = false;

	if (c->reading == ANY_SPACE)
		for (; c->at != c->end && is_white(*c->at); c->at++)
			was_white = true;
	if (c->reading == DIGITS)
		while (c->at != c->end &&
			(*c->at == '_' || *c->at == ':' || (*c->at == '0' && !c->has_begun)))
			c->at++;
	if (c->at == c->end)
		return -1;
	if (was_white && c->has_begun)
		return ' ';
	c->has_begun = true;
	if (c->reading == ANY_CASE || c->reading == DIGITS)
		return lower(*c->at++);
	return (unsigned char)*c->at++;
}

static bool is_same_text(struct bc_text a, struct bc_text b, enum reading reading)
{
	if (a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.at, b.at, a.bytes) == 0))
		return true;
	if (reading == VERBATIM || a.bytes == 0 || b.bytes == 0)
		return false;
	struct cursor x = start_cursor(a, reading);
	struct cursor y = start_cursor(b, reading);
	for (;;) {
		int c = next_char(&x);
		if (c != next_char(&y))
			return false;
		if (c < 0)
			return true;
	}
}

/* ---- the fields and where an entry has them */

#define AT(member) offsetof(struct bc_entry, member), sizeof(((struct bc_entry *)0)->member)

#define ANY_KIND BC_ENTRY_KINDS

static const struct member {
	uint64_t field;
	uint8_t kind; /* enum bc_entry_kind, or ANY_KIND */
	uint8_t reading;
	uint16_t trait; /* compared only if both entries have it; 0: always, an absent field is 0 */
	uint16_t at;
	uint16_t bytes;
} members[] = {
	{BC_FIELD_ADDR, BC_ENTRY_REFERENCE, NUMBER, 0, AT(addr)},
	{BC_FIELD_TYPE, BC_ENTRY_REFERENCE, NUMBER, 0, AT(type)},
	{BC_FIELD_ADDR, BC_ENTRY_INSTRUCTION, NUMBER, 0, AT(addr)},
	{BC_FIELD_EFFECT, BC_ENTRY_INSTRUCTION, NUMBER, 0, AT(instruction.effect)},
	{BC_FIELD_OPCODE, BC_ENTRY_INSTRUCTION, NUMBER, 0, AT(instruction.opcode)},
	{BC_FIELD_SET, BC_ENTRY_INSTRUCTION, VERBATIM, 0, AT(instruction.set)},
	{BC_FIELD_MODE, BC_ENTRY_INSTRUCTION, VERBATIM, 0, AT(instruction.mode)},
	{BC_FIELD_DISASSEMBLY, BC_ENTRY_INSTRUCTION, ANY_SPACE, 0, AT(instruction.disassembly)},
	{BC_FIELD_ADDR, BC_ENTRY_UOP, NUMBER, 0, AT(addr)},
	{BC_FIELD_STEP, BC_ENTRY_UOP, NUMBER, 0, AT(uop.step)},
	{BC_FIELD_REGISTERS, BC_ENTRY_UOP, NUMBER, 0, AT(uop.src1)},
	{BC_FIELD_REGISTERS, BC_ENTRY_UOP, NUMBER, 0, AT(uop.src2)},
	{BC_FIELD_REGISTERS, BC_ENTRY_UOP, NUMBER, 0, AT(uop.dest)},
	{BC_FIELD_FLAGS, BC_ENTRY_UOP, NUMBER, 0, AT(uop.flags)},
	{BC_FIELD_BRANCH, BC_ENTRY_UOP, NUMBER, 0, AT(uop.branch)},
	{BC_FIELD_ACCESS, BC_ENTRY_UOP, NUMBER, 0, AT(uop.access)},
	{BC_FIELD_IMMEDIATE, BC_ENTRY_UOP, NUMBER, 0, AT(uop.immediate)},
	{BC_FIELD_MEMORY, BC_ENTRY_UOP, NUMBER, 0, AT(uop.mem_addr)},
	{BC_FIELD_FALLTHROUGH, BC_ENTRY_UOP, NUMBER, 0, AT(uop.fallthrough)},
	{BC_FIELD_TARGET, BC_ENTRY_UOP, NUMBER, 0, AT(uop.target)},
	{BC_FIELD_MACRO, BC_ENTRY_UOP, VERBATIM, 0, AT(uop.macro)},
	{BC_FIELD_MICRO, BC_ENTRY_UOP, VERBATIM, 0, AT(uop.micro)},
	{BC_FIELD_NAME, BC_ENTRY_REGISTER, ANY_CASE, 0, AT(reg.name)},
	{BC_FIELD_VALUE, BC_ENTRY_REGISTER, DIGITS, 0, AT(reg.value)},
	{BC_FIELD_LETTER, BC_ENTRY_KERNEL, VERBATIM, 0, AT(kernel.tag)},
	{BC_FIELD_TEXT, BC_ENTRY_KERNEL, VERBATIM, 0, AT(kernel.rest)},
	{BC_FIELD_EVENT, BC_ENTRY_EVENT, NUMBER, 0, AT(note.event.kind)},
	{BC_FIELD_EVENT, BC_ENTRY_EVENT, NUMBER, 0, AT(note.event.cause)},
	{BC_FIELD_EVENT, BC_ENTRY_EVENT, NUMBER, 0, AT(note.event.exact)},
	{BC_FIELD_EVENT, BC_ENTRY_EVENT, NUMBER, 0, AT(note.event.value)},
	{BC_FIELD_TEXT, BC_ENTRY_EVENT, VERBATIM, 0, AT(note.text)},
	{BC_FIELD_TEXT, BC_ENTRY_LINE, ANY_SPACE, 0, AT(words)},
	{BC_FIELD_SIZE, ANY_KIND, NUMBER, 0, AT(size)},
	{BC_FIELD_ATTR, ANY_KIND, NUMBER, 0, AT(attr)},
	{BC_FIELD_PROC, ANY_KIND, NUMBER, 0, AT(proc)},
	{BC_FIELD_SPACE, ANY_KIND, NUMBER, 0, AT(space)},
	{BC_FIELD_DATA, ANY_KIND, NUMBER, 0, AT(data)},
	{BC_FIELD_PHYS, ANY_KIND, NUMBER, 0, AT(phys)},
	{BC_FIELD_LETTER, ANY_KIND, NUMBER, BC_TRAIT_LETTER, AT(letter)},
	{BC_FIELD_ENABLES, ANY_KIND, NUMBER, BC_TRAIT_SAMPLE, AT(sample)},
	{BC_FIELD_ATTRIB, ANY_KIND, VERBATIM, BC_TRAIT_ATTRIB, AT(access.attrib)},
	{BC_FIELD_SECURITY, ANY_KIND, ANY_CASE, BC_TRAIT_SECURITY, AT(access.security)},
};

#define MEMBERS (sizeof(members) / sizeof(members[0]))

/* True if entries of this kind and with these traits have the member's field. */
static bool is_used(const struct member *p, unsigned kind, bc_traits traits, uint64_t fields)
{
	return (p->kind == kind || p->kind == ANY_KIND) && (p->field & fields) != 0 &&
	       (p->trait & ~traits) == 0;
}

static inline bool is_number_same(
	const struct bc_entry *a, const struct bc_entry *b, const struct member *p)
{
	const char *x = (const char *)a + p->at;
	const char *y = (const char *)b + p->at;

	return p->bytes == 8   ? memcmp(x, y, 8) == 0
	       : p->bytes == 4 ? memcmp(x, y, 4) == 0
	       : p->bytes == 1 ? *x == *y
			       : memcmp(x, y, p->bytes) == 0;
}

/* Returns the bytes as they are in memory: only good for equality. */
static uint64_t number_at(const struct bc_entry *entry, const struct member *p)
{
	uint64_t number = 0;

	memcpy(&number, (const char *)entry + p->at, p->bytes);
	return number;
}

static struct bc_text text_at(const struct bc_entry *entry, const struct member *p)
{
	struct bc_text text;

	memcpy(&text, (const char *)entry + p->at, sizeof(text));
	return text;
}

uint64_t bc_compare_entries(const struct bc_entry *a, const struct bc_entry *b, uint64_t fields)
{
	uint64_t differ = 0;

	if (a->kind != b->kind)
		return BC_FIELD_KIND;
	/* Fast path: references that are equal in all fields are equal in any selection. */
	if (a->kind == BC_ENTRY_REFERENCE && a->addr == b->addr && a->type == b->type &&
		a->traits == b->traits && a->size == b->size && a->attr == b->attr &&
		a->proc == b->proc && a->letter == b->letter && a->space == b->space &&
		a->data == b->data && a->phys == b->phys &&
		(a->traits & (BC_TRAIT_SAMPLE | BC_TRAIT_ATTRIB | BC_TRAIT_SECURITY)) == 0)
		return 0;
	for (size_t i = 0; i < OPTIONALS; i++)
		if (((a->traits ^ b->traits) & optional[i].trait) != 0)
			differ |= optional[i].field;
	for (const struct member *p = members; p < members + MEMBERS; p++)
		if (is_used(p, a->kind, a->traits & b->traits, fields & ~differ) &&
			(p->reading == NUMBER
					? !is_number_same(a, b, p)
					: !is_same_text(text_at(a, p), text_at(b, p), p->reading)))
			differ |= p->field;
	if (a->kind == BC_ENTRY_INSTRUCTION) {
		const struct bc_instruction *x = &a->instruction;
		const struct bc_instruction *y = &b->instruction;
		if (x->has_id && y->has_id && x->id != y->id)
			differ |= BC_FIELD_ID;
		if ((x->digits == 0) != (y->digits == 0))
			differ |= BC_FIELD_OPCODE;
	}
	return differ & fields & ~BC_FIELD_TIME;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	/* Rotate, so that the order of the values matters. */
	hash = ((hash << 23 | hash >> 41) + UINT64_C(0xD6E8FEB86659FD93)) ^ value;
	hash *= UINT64_C(0x9E3779B97F4A7C15);
	return hash ^ hash >> 29;
}

static uint64_t mix_text(uint64_t hash, struct bc_text text, enum reading reading)
{
	struct cursor c = start_cursor(text, reading);
	uint64_t sum = text.bytes != 0; /* an empty text differs from 0 */
	int letter;

	if (text.bytes != 0)
		while ((letter = next_char(&c)) >= 0)
			sum = (sum ^ (uint64_t)letter) * UINT64_C(0x100000001B3);
	return mix(hash, sum);
}

uint64_t bc_compare_hash(const struct bc_entry *entry, uint64_t fields)
{
	uint64_t hash = mix(0, entry->kind);
	uint64_t traits = 0;

	for (size_t i = 0; i < OPTIONALS; i++)
		if ((fields & ~BC_FIELD_TIME & optional[i].field) != 0)
			traits |= entry->traits & optional[i].trait;
	hash = mix(hash, traits);
	for (const struct member *p = members; p < members + MEMBERS; p++)
		if (is_used(p, entry->kind, entry->traits, fields))
			hash = p->reading == NUMBER ? mix(hash, number_at(entry, p))
						    : mix_text(hash, text_at(entry, p), p->reading);
	if (entry->kind == BC_ENTRY_INSTRUCTION && (fields & BC_FIELD_OPCODE) != 0)
		hash = mix(hash, entry->instruction.digits == 0);
	return hash;
}
