/* Compiles a layout to the operations of formats/codec/layout.h, one alternative after the other.
 *
 * Invariant: each alternative ends in BC_LAYOUT_END. Between two numbers, and after {*} and {...},
 * there is a text, a blank or the end. */
#include "formats/codec/layout.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/text.h"

static const struct {
	const char *name;
	uint8_t kind;
	uint64_t most;
} fields[BC_SLOTS] = {
	[BC_SLOT_ADDR] = {"addr", BC_LAYOUT_HEX, UINT64_MAX},
	[BC_SLOT_PC] = {"pc", BC_LAYOUT_HEX, UINT64_MAX},
	[BC_SLOT_DATA] = {"data", BC_LAYOUT_HEX, UINT64_MAX},
	[BC_SLOT_SIZE] = {"size", BC_LAYOUT_DECIMAL, UINT32_MAX},
	[BC_SLOT_PROC] = {"proc", BC_LAYOUT_DECIMAL, UINT16_MAX},
	[BC_SLOT_TIME] = {"time", BC_LAYOUT_DECIMAL, BC_TICK_END - 1},
	[BC_SLOT_DELTA] = {"delta", BC_LAYOUT_DECIMAL, BC_TICK_END - 1},
	[BC_SLOT_TYPE] = {"type", BC_LAYOUT_TYPE, 0},
};

#define TIMES (1u << BC_SLOT_TIME | 1u << BC_SLOT_DELTA)

struct compiler {
	struct bc_layout *l;
	struct bc_layout_alternative *alternative;
	const struct bc_layout_op *usual; /* the first {type} without a table */
	const char *text;
	const char *at;
	char *err;
	size_t errlen;
};

static bool __attribute__((format(printf, 3, 4)))
fail(const struct compiler *c, const char *at, const char *format, ...)
{
	char what[160];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return bc_fail(c->err, c->errlen, "column %zu of the layout: %s",
		(size_t)(at - c->text) + 1, what);
}

static bool is_end(const char *at)
{
	return *at == '\0' || (at[0] == ' ' && at[1] == '|' && at[2] == ' ');
}

static struct bc_layout_op *last_op(const struct compiler *c)
{
	return c->l->ops > c->alternative->first ? &c->l->op[c->l->ops - 1] : NULL;
}

static bool is_number(const struct bc_layout_op *op)
{
	return op->kind == BC_LAYOUT_HEX || op->kind == BC_LAYOUT_DECIMAL ||
	       op->kind == BC_LAYOUT_FRACTION;
}

static bool is_any(const struct bc_layout_op *op)
{
	return op->kind == BC_LAYOUT_WORD || op->kind == BC_LAYOUT_ANY;
}

/* Adds an operation. Returns NULL after an error. */
static struct bc_layout_op *add_op(
	struct compiler *c, unsigned kind, const char *text, size_t bytes)
{
	const struct bc_layout_op *before = last_op(c);
	struct bc_layout_op op = {
		.kind = (uint8_t)kind, .next = -1, .text = text, .bytes = (uint16_t)bytes};
	bool is_text = kind == BC_LAYOUT_TEXT || kind == BC_LAYOUT_BLANKS || kind == BC_LAYOUT_END;

	if (c->l->ops == BC_LAYOUT_OPS) {
		fail(c, c->at, "more than %u fields and texts", BC_LAYOUT_OPS);
		return NULL;
	}
	if (before != NULL && !is_text &&
		(is_any(before) || (is_number(before) && is_number(&op)))) {
		fail(c, c->at, "a text or a blank must be between two fields");
		return NULL;
	}
	c->l->op[c->l->ops] = op;
	return &c->l->op[c->l->ops++];
}

static bool add_text(struct compiler *c, const char *text, size_t bytes)
{
	if (bytes > BC_LAYOUT_TEXT_MAX || memchr(text, '\n', bytes) != NULL)
		return fail(c, text, "a text of more than a line, or %u characters",
			BC_LAYOUT_TEXT_MAX);
	return add_op(c, BC_LAYOUT_TEXT, text, bytes) != NULL;
}

/* Ends the alternative, without blanks at its end. */
static bool end_alternative(struct compiler *c)
{
	struct bc_layout_op *last = last_op(c);

	if (last == NULL)
		return fail(c, c->at, "an empty alternative");
	c->alternative->ends_in_any = last->kind == BC_LAYOUT_ANY;
	if (last->kind != BC_LAYOUT_BLANKS)
		return add_op(c, BC_LAYOUT_END, NULL, 0) != NULL;
	last->kind = BC_LAYOUT_END;
	return true;
}

/* ---- fields */

static int type_by_name(const char *at, size_t bytes)
{
	return bc_ref_type_by_word((struct bc_text){at, (uint32_t)bytes});
}

static bool add_word(
	struct compiler *c, struct bc_layout_op *op, const char *at, size_t bytes, int type)
{
	struct bc_layout *l = c->l;

	if (l->words == BC_LAYOUT_WORDS)
		return fail(c, at, "more than %u words of types", BC_LAYOUT_WORDS);
	l->word[l->words++] = (struct bc_layout_word){at, (uint16_t)bytes, (uint16_t)type};
	if (bytes == 1)
		l->single[op->table][(uint8_t)*at] = (uint8_t)l->words;
	op->words++;
	return true;
}

/* Adds the words of {type}, in lower case; a line may have them in any case. */
static bool add_usual_words(struct compiler *c, struct bc_layout_op *op)
{
	for (const struct bc_usual_word *w = bc_usual_words; w->word != NULL; w++)
		if (!add_word(c, op, w->word, strlen(w->word), w->type))
			return false;
	for (unsigned ch = 'A'; ch <= 'Z'; ch++)
		c->l->single[op->table][ch] = c->l->single[op->table][ch | 0x20];
	op->any_case = true;
	return true;
}

/* Adds the words of {type:WORD=TYPE|WORD=TYPE}. */
static bool add_table(struct compiler *c, struct bc_layout_op *op, const char *form, size_t n)
{
	const char *end = form + n;

	for (const char *at = form; at < end;) {
		const char *bar = memchr(at, '|', (size_t)(end - at));
		bar = bar != NULL ? bar : end;
		const char *equals = memchr(at, '=', (size_t)(bar - at));
		if (equals == NULL || equals == at)
			return fail(c, at, "expected WORD=TYPE");
		int type = type_by_name(equals + 1, (size_t)(bar - equals) - 1);
		if (type < 0)
			return fail(c, equals + 1,
				"no type \"%.*s\"; types are read, write, fetch, ioread, iowrite, "
				"modify, misc, flush, and the names of BYU",
				(int)(bar - equals) - 1, equals + 1);
		if (!add_word(c, op, at, (size_t)(equals - at), type))
			return false;
		at = bar + 1;
	}
	return op->words != 0 || fail(c, form, "expected WORD=TYPE");
}

static bool set_form(struct compiler *c, struct bc_layout_op *op, const char *form, size_t n)
{
	bool is_time = op->slot == BC_SLOT_TIME;

	if (n == 1 && (*form == 'x' || *form == 'd')) {
		op->kind = *form == 'x' ? BC_LAYOUT_HEX : BC_LAYOUT_DECIMAL;
		return true;
	}
	for (size_t i = 0; is_time && i < BC_TIME_FORMS; i++) {
		if (strlen(bc_time_forms[i].name) != n ||
			memcmp(bc_time_forms[i].name, form, n) != 0)
			continue;
		op->kind = BC_LAYOUT_FRACTION;
		op->digits = bc_time_forms[i].digits;
		c->alternative->unit = bc_time_forms[i].unit;
		return true;
	}
	return fail(c, form,
		is_time ? "expected d, x, s, ms, us, ns or ps"
			: "expected d (decimal) or x (hexadecimal)");
}

/* {type=read} or {size=4} */
static bool set_constant(struct compiler *c, unsigned slot, const char *value, size_t n)
{
	struct bc_layout_alternative *a = c->alternative;

	if (slot == BC_SLOT_TYPE) {
		a->type = type_by_name(value, n);
		return a->type >= 0 || fail(c, value, "no type \"%.*s\"", (int)n, value);
	}
	if (slot != BC_SLOT_SIZE)
		return fail(c, value, "only type and size can be constant");
	for (size_t i = 0; i < n && a->size < 1000000; i++) {
		if (value[i] < '0' || value[i] > '9')
			return fail(c, value, "expected a decimal size");
		a->size = a->size * 10 + (unsigned)(value[i] - '0');
	}
	return (a->size != 0 && a->size < 1000000) || fail(c, value, "expected a size below 10^6");
}

static bool add_field(struct compiler *c, const char *name, const char *end)
{
	struct bc_layout_alternative *a = c->alternative;
	size_t n = strcspn(name, ":=}");
	unsigned slot = 0;

	while (slot < BC_SLOTS &&
		(strlen(fields[slot].name) != n || memcmp(fields[slot].name, name, n) != 0))
		slot++;
	if (slot == BC_SLOTS)
		return fail(c, name,
			"no field '%.*s'; fields are addr, pc, data, size, proc, time, delta, "
			"type, "
			"* and ...",
			(int)n, name);
	unsigned both = BC_SLOT_TIME ^ BC_SLOT_DELTA ^ slot;
	if ((a->fields >> slot & 1) != 0 ||
		((slot == BC_SLOT_TIME || slot == BC_SLOT_DELTA) && (a->fields >> both & 1) != 0))
		return fail(c, name, "a second '%.*s'", (int)n, name);
	a->fields |= (uint16_t)(1u << slot);
	const char *form = name + n + 1;
	size_t rest = form < end ? (size_t)(end - form) : 0;
	if (name[n] == '=')
		return set_constant(c, slot, form, rest);
	struct bc_layout_op *op = add_op(c, fields[slot].kind, name, n);
	if (op == NULL)
		return false;
	op->slot = (uint8_t)slot;
	op->most = fields[slot].most;
	a->has_size |= slot == BC_SLOT_SIZE;
	if (slot != BC_SLOT_TYPE)
		return name[n] == '}' || set_form(c, op, form, rest);
	if (name[n] == '}' && c->usual != NULL) { /* one table is for all of them */
		op->table = c->usual->table;
		op->first_word = c->usual->first_word;
		op->words = c->usual->words;
		op->any_case = true;
		return true;
	}
	if (c->l->tables == BC_LAYOUT_TYPES)
		return fail(c, name, "more than %u times {type}", BC_LAYOUT_TYPES);
	op->table = (uint8_t)c->l->tables++;
	op->first_word = (uint16_t)c->l->words;
	c->usual = name[n] == '}' ? op : c->usual;
	return name[n] == '}' ? add_usual_words(c, op) : add_table(c, op, form, rest);
}

static bool add_braces(struct compiler *c)
{
	const char *name = c->at + 1;

	if ((*name == '{' || *name == '}' || *name == '|') && name[1] == '}') {
		c->at += 3;
		return add_text(c, name, 1);
	}
	const char *end = strchr(name, '}');
	if (end == NULL)
		return fail(c, c->at, "no '}' ends this field; {{} is a brace");
	bool is_gap = end - name == 3 && memcmp(name, "...", 3) == 0;
	bool is_word = end - name == 1 && *name == '*';
	bool ok = is_gap || is_word
			  ? add_op(c, is_gap ? BC_LAYOUT_ANY : BC_LAYOUT_WORD, NULL, 0) != NULL
			  : add_field(c, name, end);
	c->at = end + 1;
	return ok;
}

static bool compile_alternative(struct compiler *c)
{
	struct bc_layout *l = c->l;
	const char *start = c->at;

	if (l->alternatives == BC_LAYOUT_ALTERNATIVES)
		return fail(c, start, "more than %u alternatives", BC_LAYOUT_ALTERNATIVES);
	c->alternative = &l->alternative[l->alternatives++];
	*c->alternative = (struct bc_layout_alternative){.first = (uint16_t)l->ops, .type = -1};
	while (!is_end(c->at)) {
		const char *from = c->at;
		bool ok;
		if (bc_layout_is_blank(*from)) {
			while (bc_layout_is_blank(*c->at) && !is_end(c->at))
				c->at++;
			ok = last_op(c) == NULL || add_op(c, BC_LAYOUT_BLANKS, NULL, 0) != NULL;
		} else if (*from == '{') {
			ok = add_braces(c);
		} else {
			c->at += strcspn(from, "{ \t");
			ok = add_text(c, from, (size_t)(c->at - from));
		}
		if (!ok)
			return false;
	}
	if (!end_alternative(c))
		return false;
	unsigned has = c->alternative->fields;
	if ((has >> BC_SLOT_ADDR & 1) != 0 && (has >> BC_SLOT_TYPE & 1) == 0)
		return fail(c, start, "{addr} without {type}; {type=read} makes all of them reads");
	return true;
}

/* The unit of the first alternative that has times. */
static unsigned unit_of_times(const struct bc_layout *l)
{
	unsigned i = 0;

	while (i + 1 < l->alternatives && (l->alternative[i].fields & TIMES) == 0)
		i++;
	return l->alternative[i].unit;
}

bool bc_layout_compile(struct bc_layout *layout, const char *text, char *err, size_t errlen)
{
	struct compiler c = {layout, layout->alternative, NULL, text, text, err, errlen};
	unsigned all = 0;

	memset(layout, 0, sizeof(*layout));
	do {
		c.at += layout->alternatives != 0 ? 3 : 0;
		if (!compile_alternative(&c))
			return false;
		all |= c.alternative->fields;
	} while (*c.at != '\0');
	for (unsigned i = 0; i + 1 < layout->ops; i++) {
		const struct bc_layout_op *after = &layout->op[i + 1];
		int next = after->kind == BC_LAYOUT_BLANKS ? ' '
			   : after->kind == BC_LAYOUT_END  ? '\n'
			   : after->kind == BC_LAYOUT_TEXT && after->bytes == 1
				   ? (uint8_t)*after->text
				   : -1;
		layout->op[i].next = (int16_t)next;
	}
	layout->is_short = layout->op[0].kind == BC_LAYOUT_TYPE &&
			   layout->op[1].kind == BC_LAYOUT_BLANKS &&
			   layout->op[2].kind == BC_LAYOUT_HEX &&
			   layout->op[2].slot == BC_SLOT_ADDR &&
			   layout->op[3].kind == BC_LAYOUT_END;
	unsigned times = all & TIMES;
	for (unsigned i = 0; i < layout->alternatives; i++)
		if ((TIMES & layout->alternative[i].fields) != 0 &&
			layout->alternative[i].unit != unit_of_times(layout))
			times = 0xFFFF;
	if ((times & (times - 1)) != 0)
		return bc_fail(err, errlen, "the alternatives have different kinds of times");
	return (all >> BC_SLOT_ADDR & 1) != 0 ||
	       bc_fail(err, errlen, "no alternative of the layout has {addr}");
}

bc_traits bc_layout_traits(const struct bc_layout *l)
{
	unsigned all = 0;
	bc_traits traits = BC_TRAIT_REFERENCE;

	for (unsigned i = 0; i < l->alternatives; i++) {
		all |= l->alternative[i].fields;
		if (l->alternative[i].type >= 0)
			traits |= bc_ref_type_trait((unsigned)l->alternative[i].type);
	}
	for (unsigned i = 0; i < l->words; i++)
		traits |= bc_ref_type_trait(l->word[i].type);
	traits |= (all >> BC_SLOT_SIZE & 1) != 0 ? BC_TRAIT_SIZE : 0;
	traits |= (all >> BC_SLOT_DATA & 1) != 0 ? BC_TRAIT_DATA : 0;
	traits |= (all >> BC_SLOT_PROC & 1) != 0 ? BC_TRAIT_PROC : 0;
	traits |= (all & TIMES) != 0 ? BC_TRAIT_TIME : 0;
	return traits;
}
