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

uint64_t bc_field_by_name(const char *name, size_t bytes)
{
	for (unsigned i = 0; i < BC_FIELD_COUNT; i++)
		if (strlen(names[i]) == bytes && memcmp(names[i], name, bytes) == 0)
			return UINT64_C(1) << i;
	return 0;
}

/* Fields that an entry has only if bc_entry.has says so. */
static const struct {
	uint32_t trait;
	uint64_t field;
} optional[] = {
	{BC_HAS_SIZE, BC_FIELD_SIZE},
	{BC_HAS_ATTR, BC_FIELD_ATTR},
	{BC_HAS_PROC, BC_FIELD_PROC},
	{BC_HAS_TIME, BC_FIELD_TIME},
	{BC_HAS_SPACE, BC_FIELD_SPACE},
	{BC_HAS_DATA, BC_FIELD_DATA},
	{BC_HAS_PHYS, BC_FIELD_PHYS},
	{BC_HAS_SAMPLE, BC_FIELD_ENABLES},
	{BC_HAS_LETTER, BC_FIELD_LETTER},
	{BC_HAS_ATTRIB, BC_FIELD_ATTRIB},
	{BC_HAS_SECURITY, BC_FIELD_SECURITY},
};

#define OPTIONALS (sizeof(optional) / sizeof(optional[0]))

/* Fields that only some kinds have. */
static const struct {
	uint32_t traits;
	uint64_t fields;
} of_kinds[] = {
	{BC_CAN_INSTRUCTION, BC_FIELD_EFFECT | BC_FIELD_ID | BC_FIELD_OPCODE | BC_FIELD_SET |
				     BC_FIELD_MODE | BC_FIELD_DISASSEMBLY},
	{BC_CAN_REGISTER, BC_FIELD_NAME | BC_FIELD_VALUE},
	{BC_CAN_UOP, BC_FIELD_STEP | BC_FIELD_REGISTERS | BC_FIELD_FLAGS | BC_FIELD_BRANCH |
			     BC_FIELD_ACCESS | BC_FIELD_IMMEDIATE | BC_FIELD_MEMORY |
			     BC_FIELD_FALLTHROUGH | BC_FIELD_TARGET | BC_FIELD_MACRO |
			     BC_FIELD_MICRO},
	{BC_CAN_KERNEL | BC_CAN_EVENT | BC_CAN_LINE, BC_FIELD_TEXT},
	{BC_CAN_EVENT, BC_FIELD_EVENT},
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

/* How to read a string, so that equivalent strings compare equal. */
enum reading {
	AS_IT_STANDS,
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

static struct cursor read_text(struct bc_text text, enum reading reading)
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
static int take(struct cursor *c)
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
	if (reading == AS_IT_STANDS || a.bytes == 0 || b.bytes == 0)
		return false;
	struct cursor x = read_text(a, reading);
	struct cursor y = read_text(b, reading);
	for (;;) {
		int c = take(&x);
		if (c != take(&y))
			return false;
		if (c < 0)
			return true;
	}
}

static uint64_t compare_instructions(const struct bc_instruction *a, const struct bc_instruction *b)
{
	uint64_t differ = 0;

	if (a->effect != b->effect)
		differ |= BC_FIELD_EFFECT;
	if (a->has_id && b->has_id && a->id != b->id)
		differ |= BC_FIELD_ID;
	if (a->opcode != b->opcode || (a->digits == 0) != (b->digits == 0))
		differ |= BC_FIELD_OPCODE;
	if (!is_same_text(a->set, b->set, AS_IT_STANDS))
		differ |= BC_FIELD_SET;
	if (!is_same_text(a->mode, b->mode, AS_IT_STANDS))
		differ |= BC_FIELD_MODE;
	if (!is_same_text(a->disassembly, b->disassembly, ANY_SPACE))
		differ |= BC_FIELD_DISASSEMBLY;
	return differ;
}

static uint64_t compare_uops(const struct bc_uop *a, const struct bc_uop *b)
{
	uint64_t differ = 0;

	if (a->step != b->step)
		differ |= BC_FIELD_STEP;
	if (a->src1 != b->src1 || a->src2 != b->src2 || a->dest != b->dest)
		differ |= BC_FIELD_REGISTERS;
	if (a->flags != b->flags)
		differ |= BC_FIELD_FLAGS;
	if (a->branch != b->branch)
		differ |= BC_FIELD_BRANCH;
	if (a->access != b->access)
		differ |= BC_FIELD_ACCESS;
	if (a->immediate != b->immediate)
		differ |= BC_FIELD_IMMEDIATE;
	if (a->mem_addr != b->mem_addr)
		differ |= BC_FIELD_MEMORY;
	if (a->fallthrough != b->fallthrough)
		differ |= BC_FIELD_FALLTHROUGH;
	if (a->target != b->target)
		differ |= BC_FIELD_TARGET;
	if (!is_same_text(a->macro, b->macro, AS_IT_STANDS))
		differ |= BC_FIELD_MACRO;
	if (!is_same_text(a->micro, b->micro, AS_IT_STANDS))
		differ |= BC_FIELD_MICRO;
	return differ;
}

static uint64_t compare_kinds(const struct bc_entry *a, const struct bc_entry *b)
{
	switch (a->kind) {
	case BC_ENTRY_REFERENCE:
		return (a->addr != b->addr ? BC_FIELD_ADDR : 0) |
		       (a->type != b->type ? BC_FIELD_TYPE : 0);
	case BC_ENTRY_INSTRUCTION:
		return (a->addr != b->addr ? BC_FIELD_ADDR : 0) |
		       compare_instructions(&a->instruction, &b->instruction);
	case BC_ENTRY_UOP:
		return (a->addr != b->addr ? BC_FIELD_ADDR : 0) | compare_uops(&a->uop, &b->uop);
	case BC_ENTRY_REGISTER:
		return (is_same_text(a->reg.name, b->reg.name, ANY_CASE) ? 0 : BC_FIELD_NAME) |
		       (is_same_text(a->reg.value, b->reg.value, DIGITS) ? 0 : BC_FIELD_VALUE);
	case BC_ENTRY_KERNEL:
		return (is_same_text(a->kernel.rest, b->kernel.rest, AS_IT_STANDS)
				       ? 0
				       : BC_FIELD_TEXT) |
		       (is_same_text(a->kernel.tag, b->kernel.tag, AS_IT_STANDS) ? 0
										 : BC_FIELD_LETTER);
	case BC_ENTRY_EVENT: {
		const struct bc_event *x = &a->note.event;
		const struct bc_event *y = &b->note.event;
		bool is_same = x->kind == y->kind && x->cause == y->cause && x->exact == y->exact &&
			       x->value == y->value;
		return (is_same ? 0 : BC_FIELD_EVENT) |
		       (is_same_text(a->note.text, b->note.text, AS_IT_STANDS) ? 0 : BC_FIELD_TEXT);
	}
	default:
		return is_same_text(a->words, b->words, ANY_SPACE) ? 0 : BC_FIELD_TEXT;
	}
}

static uint64_t compare_optional(const struct bc_entry *a, const struct bc_entry *b)
{
	uint64_t differ = 0;

	for (size_t i = 0; i < OPTIONALS; i++)
		if (((a->has ^ b->has) & optional[i].trait) != 0)
			differ |= optional[i].field;
	if (a->size != b->size)
		differ |= BC_FIELD_SIZE;
	if (a->attr != b->attr)
		differ |= BC_FIELD_ATTR;
	if (a->proc != b->proc)
		differ |= BC_FIELD_PROC;
	if (a->space != b->space)
		differ |= BC_FIELD_SPACE;
	if (a->data != b->data)
		differ |= BC_FIELD_DATA;
	if (a->phys != b->phys)
		differ |= BC_FIELD_PHYS;
	if ((a->has & b->has & BC_HAS_LETTER) != 0 && a->letter != b->letter)
		differ |= BC_FIELD_LETTER;
	if ((a->has & b->has & BC_HAS_SAMPLE) != 0 &&
		memcmp(a->sample, b->sample, BC_SAMPLE_BYTES) != 0)
		differ |= BC_FIELD_ENABLES;
	if ((a->has & b->has & BC_HAS_ATTRIB) != 0 &&
		!is_same_text(a->access.attrib, b->access.attrib, AS_IT_STANDS))
		differ |= BC_FIELD_ATTRIB;
	if ((a->has & b->has & BC_HAS_SECURITY) != 0 &&
		!is_same_text(a->access.security, b->access.security, ANY_CASE))
		differ |= BC_FIELD_SECURITY;
	return differ;
}

uint64_t bc_compare_entries(const struct bc_entry *a, const struct bc_entry *b, uint64_t fields)
{
	if (a->kind != b->kind)
		return BC_FIELD_KIND;
	/* Fast path: references that are equal in all fields are equal in any selection. */
	if (a->kind == BC_ENTRY_REFERENCE && a->addr == b->addr && a->type == b->type &&
		a->has == b->has && a->size == b->size && a->attr == b->attr &&
		a->proc == b->proc && a->letter == b->letter && a->space == b->space &&
		a->data == b->data && a->phys == b->phys &&
		(a->has & (BC_HAS_SAMPLE | BC_HAS_ATTRIB | BC_HAS_SECURITY)) == 0)
		return 0;
	return (compare_kinds(a, b) | compare_optional(a, b)) & fields & ~BC_FIELD_TIME;
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
	struct cursor c = read_text(text, reading);
	uint64_t sum = text.bytes != 0; /* an empty text differs from 0 */
	int letter;

	if (text.bytes != 0)
		while ((letter = take(&c)) >= 0)
			sum = (sum ^ (uint64_t)letter) * UINT64_C(0x100000001B3);
	return mix(hash, sum);
}

static uint64_t hash_instruction(uint64_t hash, const struct bc_instruction *i, uint64_t fields)
{
	if ((fields & BC_FIELD_EFFECT) != 0)
		hash = mix(hash, i->effect);
	if ((fields & BC_FIELD_OPCODE) != 0)
		hash = mix(mix(hash, i->opcode), i->digits == 0);
	if ((fields & BC_FIELD_SET) != 0)
		hash = mix_text(hash, i->set, AS_IT_STANDS);
	if ((fields & BC_FIELD_MODE) != 0)
		hash = mix_text(hash, i->mode, AS_IT_STANDS);
	if ((fields & BC_FIELD_DISASSEMBLY) != 0)
		hash = mix_text(hash, i->disassembly, ANY_SPACE);
	return hash;
}

static uint64_t hash_uop(uint64_t hash, const struct bc_uop *u, uint64_t fields)
{
	const struct {
		uint64_t field;
		uint64_t value;
	} numbers[] = {
		{BC_FIELD_STEP, (uint64_t)u->step},
		{BC_FIELD_REGISTERS, (uint64_t)u->src1},
		{BC_FIELD_REGISTERS, (uint64_t)u->src2},
		{BC_FIELD_REGISTERS, (uint64_t)u->dest},
		{BC_FIELD_FLAGS, (uint64_t)u->flags},
		{BC_FIELD_BRANCH, (uint64_t)u->branch},
		{BC_FIELD_ACCESS, (uint64_t)u->access},
		{BC_FIELD_IMMEDIATE, (uint64_t)u->immediate},
		{BC_FIELD_MEMORY, u->mem_addr},
		{BC_FIELD_FALLTHROUGH, u->fallthrough},
		{BC_FIELD_TARGET, u->target},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if ((fields & numbers[i].field) != 0)
			hash = mix(hash, numbers[i].value);
	if ((fields & BC_FIELD_MACRO) != 0)
		hash = mix_text(hash, u->macro, AS_IT_STANDS);
	if ((fields & BC_FIELD_MICRO) != 0)
		hash = mix_text(hash, u->micro, AS_IT_STANDS);
	return hash;
}

static uint64_t hash_kind(uint64_t hash, const struct bc_entry *entry, uint64_t fields)
{
	bool has_addr = entry->kind <= BC_ENTRY_UOP;

	if (has_addr && (fields & BC_FIELD_ADDR) != 0)
		hash = mix(hash, entry->addr);
	switch (entry->kind) {
	case BC_ENTRY_REFERENCE:
		return (fields & BC_FIELD_TYPE) != 0 ? mix(hash, entry->type) : hash;
	case BC_ENTRY_INSTRUCTION:
		return hash_instruction(hash, &entry->instruction, fields);
	case BC_ENTRY_UOP:
		return hash_uop(hash, &entry->uop, fields);
	case BC_ENTRY_REGISTER:
		if ((fields & BC_FIELD_NAME) != 0)
			hash = mix_text(hash, entry->reg.name, ANY_CASE);
		return (fields & BC_FIELD_VALUE) != 0 ? mix_text(hash, entry->reg.value, DIGITS)
						      : hash;
	case BC_ENTRY_KERNEL:
		if ((fields & BC_FIELD_LETTER) != 0)
			hash = mix_text(hash, entry->kernel.tag, AS_IT_STANDS);
		return (fields & BC_FIELD_TEXT) != 0
			       ? mix_text(hash, entry->kernel.rest, AS_IT_STANDS)
			       : hash;
	case BC_ENTRY_EVENT: {
		const struct bc_event *event = &entry->note.event;
		if ((fields & BC_FIELD_EVENT) != 0)
			hash = mix(mix(hash, event->value), (uint64_t)event->kind << 16 |
								    (uint64_t)event->cause << 8 |
								    event->exact);
		return (fields & BC_FIELD_TEXT) != 0
			       ? mix_text(hash, entry->note.text, AS_IT_STANDS)
			       : hash;
	}
	default:
		return (fields & BC_FIELD_TEXT) != 0 ? mix_text(hash, entry->words, ANY_SPACE)
						     : hash;
	}
}

uint64_t bc_compare_hash(const struct bc_entry *entry, uint64_t fields)
{
	uint64_t hash = hash_kind(mix(0, entry->kind), entry, fields);
	uint64_t has = 0;

	for (size_t i = 0; i < OPTIONALS; i++)
		if ((fields & ~BC_FIELD_TIME & optional[i].field) != 0)
			has |= entry->has & optional[i].trait;
	hash = mix(hash, has);
	if ((fields & BC_FIELD_SIZE) != 0)
		hash = mix(hash, entry->size);
	if ((fields & BC_FIELD_ATTR) != 0)
		hash = mix(hash, entry->attr);
	if ((fields & BC_FIELD_PROC) != 0)
		hash = mix(hash, entry->proc);
	if ((fields & BC_FIELD_SPACE) != 0)
		hash = mix(hash, entry->space);
	if ((fields & BC_FIELD_DATA) != 0)
		hash = mix(hash, entry->data);
	if ((fields & BC_FIELD_PHYS) != 0)
		hash = mix(hash, entry->phys);
	if ((has & BC_HAS_LETTER) != 0)
		hash = mix(hash, (uint64_t)entry->letter);
	if ((has & BC_HAS_SAMPLE) != 0)
		for (size_t i = 0; i < BC_SAMPLE_BYTES; i++)
			hash = mix(hash, entry->sample[i]);
	if ((has & BC_HAS_ATTRIB) != 0)
		hash = mix_text(hash, entry->access.attrib, AS_IT_STANDS);
	if ((has & BC_HAS_SECURITY) != 0)
		hash = mix_text(hash, entry->access.security, ANY_CASE);
	return hash;
}
