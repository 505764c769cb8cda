/* Lines that a layout describes (formats/codec/layout.h): one access per line.
 *
 * A line must fit an alternative as a whole; the first that fits counts. An alternative without
 * {addr} skips its lines. Blank lines are skipped, too, and blanks at both ends and a '\r' are
 * ignored. If a line fits none, the error is at the furthest point that an alternative reached.
 * Matching never backtracks: each part takes as much as it can, and {...} ends where the text after
 * it first fits. */
#include "formats/codec/lines.h"

#include <stdio.h>
#include <string.h>

#include "formats/base/fast_text.h"
#include "formats/base/text.h"
#include "formats/codec/block_parse.h"
#include "formats/codec/codecs.h"

/* How far an alternative got with a line. */
struct failure {
	const char *at;
	const struct bc_layout_op *op; /* NULL: not yet */
};

struct values {
	uint64_t slot[BC_SLOTS];
	bool is_long; /* the data has more than 8 bytes */
	bool has_0x;
};

static bool has_bit(const struct bc_layout_alternative *a, enum bc_layout_slot slot)
{
	return (a->fields >> slot & 1) != 0;
}

/* ---- What a line may have at a place. Each function returns the next place, or NULL. */

static const char *parse_hex(const char *at, const struct bc_layout_op *op, struct values *v)
{
	uint64_t *value = &v->slot[op->slot];
	const char *end = at;

	if (bc_parse_hex_block(&end, value))
		return *value <= op->most ? end : NULL;
	/* Data of any length. */
	for (end = at; op->slot == BC_SLOT_DATA && bc_hex_value[(uint8_t)*end] <= 15; end++)
		v->is_long = true;
	return end != at ? end : NULL;
}

static const char *parse_decimal(const char *at, const struct bc_layout_op *op, struct values *v)
{
	uint64_t *value = &v->slot[op->slot];

	return bc_parse_decimal(&at, value) && *value <= op->most ? at : NULL;
}

/* A time in a unit. Digits after the point that are too many are dropped. */
static const char *parse_fraction(const char *at, const struct bc_layout_op *op, struct values *v)
{
	uint64_t *value = &v->slot[op->slot];

	if (!bc_parse_decimal(&at, value))
		return NULL;
	bool has_point = at[0] == '.' && bc_is_digit(at[1]);
	at += has_point;
	for (unsigned i = 0; i < op->digits; i++) {
		if (*value > op->most / 10 - 1)
			return NULL;
		*value *= 10;
		if (has_point && bc_is_digit(*at))
			*value += (unsigned)(*at++ - '0');
	}
	while (has_point && bc_is_digit(*at))
		at++;
	return *value <= op->most ? at : NULL;
}

/* The longest word of the table. */
static const char *parse_word(
	const struct bc_layout *l, const char *at, const struct bc_layout_op *op, struct values *v)
{
	const char small = op->any_case ? 0x20 : 0;
	unsigned longest = 0;

	for (unsigned i = op->first_word; i < (unsigned)op->first_word + op->words; i++) {
		const struct bc_layout_word *word = &l->word[i];
		unsigned n = 0;
		while (n < word->bytes && ((at[n] | small) == word->at[n] || at[n] == word->at[n]))
			n++;
		if (n != word->bytes || n <= longest)
			continue;
		longest = n;
		v->slot[BC_SLOT_TYPE] = i;
	}
	return longest != 0 ? at + longest : NULL;
}

static const char *match_text(const char *at, const struct bc_layout_op *op)
{
	for (unsigned i = 0; i < op->bytes; i++)
		if (at[i] != op->text[i])
			return NULL;
	return at + op->bytes;
}

static const char *match_blanks(const char *at)
{
	const char *end = at;

	while (bc_layout_is_blank(*end))
		end++;
	return end != at ? end : NULL;
}

/* {*} or {...}, up to where the texts after it first fit. Moves *op to the last of these. */
static const char *match_any(const char *at, const struct bc_layout_op **op)
{
	bool is_word = (*op)->kind == BC_LAYOUT_WORD;

	if (!is_word && (*op)[1].kind == BC_LAYOUT_END)
		return bc_line_end(at);
	for (const char *p = at + is_word; !is_word || (*at != '\n' && !bc_layout_is_blank(p[-1]));
		p++) {
		const struct bc_layout_op *next = *op + 1;
		const char *end = p;
		for (; end != NULL; next++)
			if (next->kind == BC_LAYOUT_TEXT)
				end = match_text(end, next);
			else if (next->kind == BC_LAYOUT_BLANKS)
				end = match_blanks(end);
			else
				break;
		if (end != NULL && (next->kind != BC_LAYOUT_END || *bc_skip_spaces(end) == '\n')) {
			*op = next - 1;
			return end;
		}
		if (*p == '\n')
			break;
		/* Blanks that don't fit from the first on fit from none. */
		while (!is_word && bc_layout_is_blank(p[0]) && bc_layout_is_blank(p[1]))
			p++;
	}
	return NULL;
}

/* Returns the next line, or NULL if the line does not fit. */
static const char *match(const struct bc_layout *l, const struct bc_layout_alternative *a,
	const char *at, struct values *v, struct failure *furthest)
{
	for (const struct bc_layout_op *op = &l->op[a->first];; op++) {
		const char *end = at;
		unsigned n;
		switch (op->kind) {
		case BC_LAYOUT_HEX:
			if (at[0] == '0' && (at[1] | 0x20) == 'x') {
				v->has_0x |= op->slot == BC_SLOT_ADDR;
				end += 2;
			}
			n = bc_hex16(end, &v->slot[op->slot]);
			end = n - 1 < 15 && v->slot[op->slot] <= op->most ? end + n
									  : parse_hex(end, op, v);
			break;
		case BC_LAYOUT_DECIMAL:
			end = parse_decimal(at, op, v);
			break;
		case BC_LAYOUT_FRACTION:
			end = parse_fraction(at, op, v);
			break;
		case BC_LAYOUT_TYPE:
			n = l->single[op->table][(uint8_t)*at];
			v->slot[BC_SLOT_TYPE] = n - 1;
			end = n != 0 && bc_layout_is_blank(at[1]) ? at + 1
								  : parse_word(l, at, op, v);
			break;
		case BC_LAYOUT_BLANKS:
			end = match_blanks(at);
			break;
		case BC_LAYOUT_TEXT:
			end = match_text(at, op);
			break;
		case BC_LAYOUT_END:
			at = bc_skip_spaces(at);
			if (*at == '\n')
				return at + 1;
			end = NULL;
			break;
		default:
			end = match_any(at, &op);
		}
		/* A number may be padded, as in "[    12]". */
		if (end == NULL && op->most != 0 && bc_layout_is_blank(*at)) {
			at = match_blanks(at);
			op--;
			continue;
		}
		if (end == NULL) {
			if (furthest->op == NULL || at > furthest->at)
				*furthest = (struct failure){at, op};
			return NULL;
		}
		at = end;
		/* The usual next operation. */
		if ((uint8_t)*at == op->next) {
			if (*at++ == '\n')
				return at;
			op++;
			while (op->kind == BC_LAYOUT_BLANKS && bc_layout_is_blank(*at))
				at++;
		}
	}
}

static void describe(struct bc_lines *s, const struct failure *f)
{
	static const char *const forms[] = {[BC_LAYOUT_BLANKS] = "a blank",
		[BC_LAYOUT_HEX] = "hexadecimal",
		[BC_LAYOUT_DECIMAL] = "decimal",
		[BC_LAYOUT_FRACTION] = "decimal",
		[BC_LAYOUT_WORD] = "a word, and what follows {*}",
		[BC_LAYOUT_ANY] = "what follows {...}",
		[BC_LAYOUT_END] = "the end of the line"};
	const struct bc_layout_op *op = f->op;
	int word = (int)strcspn(f->at, " \t\r\n,:;()[]");

	word = word < 24 ? word : 24;
	/* Each alternative ends in BC_LAYOUT_END, so a number before this one is of the same. */
	bool is_fraction = f->at[0] == '.' && bc_is_digit(f->at[1]) && op != s->layout.op &&
			   op[-1].kind == BC_LAYOUT_DECIMAL && op[-1].slot == BC_SLOT_TIME;
	if (is_fraction)
		snprintf(s->expected, sizeof(s->expected),
			"a time with a fraction needs a unit, such as {time:us}");
	else if (op->kind == BC_LAYOUT_TYPE && word != 0)
		snprintf(s->expected, sizeof(s->expected),
			"type '%.*s' is not in the table: {type:%.*s=read|...}", word, f->at, word,
			f->at);
	else if (op->kind == BC_LAYOUT_TEXT || op->kind == BC_LAYOUT_TYPE)
		snprintf(s->expected, sizeof(s->expected), "expected %s%.*s%s",
			op->kind == BC_LAYOUT_TEXT ? "\"" : "{", op->bytes < 60 ? op->bytes : 60,
			op->text, op->kind == BC_LAYOUT_TEXT ? "\"" : "}");
	else if (op->most != 0)
		snprintf(s->expected, sizeof(s->expected), "expected {%.*s} (%s, at most %u bits)",
			op->bytes, op->text, forms[op->kind],
			64u - (unsigned)__builtin_clzll(op->most));
	else
		snprintf(s->expected, sizeof(s->expected), "expected %s", forms[op->kind]);
}

/* Adds an access of the type with index `word`, or of the alternative's. Returns the entry. */
static inline struct bc_entry *add_entry(struct bc_lines *s, struct bc_parse *p,
	const struct bc_layout_alternative *a, uint64_t word, uint64_t addr, uint64_t size)
{
	struct bc_entry *entry = &p->entries[p->count++];
	unsigned type = (unsigned)a->type;

	if (a->type < 0) {
		type = s->layout.word[word].type;
		s->words |= UINT64_C(1) << word;
	}
	s->high_bits |= 1 | (addr & (addr << 1 | addr << 2));
	bc_entry_reference(entry, type, addr, p->number);
	if (size != 0 && type != BC_REF_FLUSH) { /* a flush transfers none */
		entry->traits = BC_TRAIT_SIZE;
		entry->size = (uint32_t)size;
	}
	return entry;
}

/* The fast path for nearly all lines of "{type} {addr}" with letters. Returns the next line, or
 * NULL for any other line. */
static inline const char *parse_short(struct bc_lines *s, const char *at, struct bc_parse *p)
{
	const struct bc_layout_alternative *a = &s->layout.alternative[0];
	unsigned letter = s->layout.single[0][(uint8_t)*at];
	uint64_t addr;
	unsigned digits = bc_hex16(at + 2, &addr);

	if (letter == 0 || at[1] != ' ' || digits - 1 >= 15 || at[2 + digits] != '\n')
		return NULL;
	add_entry(s, p, a, letter - 1, addr, a->size + s->size);
	return at + digits + 3;
}

/* The fields of an access that not every line has. */
static void add_fields(struct bc_lines *s, struct bc_entry *entry,
	const struct bc_layout_alternative *a, const struct values *v)
{
	bool has_time = has_bit(a, BC_SLOT_TIME) || has_bit(a, BC_SLOT_DELTA);

	if (has_bit(a, BC_SLOT_DATA) && !v->is_long) {
		entry->traits |= BC_TRAIT_DATA;
		entry->data = v->slot[BC_SLOT_DATA];
	}
	if (has_bit(a, BC_SLOT_PROC)) {
		entry->traits |= BC_TRAIT_PROC;
		entry->proc = (uint16_t)v->slot[BC_SLOT_PROC];
	}
	if (has_time) {
		entry->traits |= BC_TRAIT_TIME;
		entry->unit = a->unit;
		entry->tick = has_bit(a, BC_SLOT_TIME) ? v->slot[BC_SLOT_TIME] : s->tick;
	}
	s->has_0x |= v->has_0x;
	s->long_data += v->is_long;
	s->unread += a->ends_in_any;
}

/* Reads the line at `at`. Returns the next one, or NULL. */
static const char *parse_line(struct bc_lines *s, const char *at, struct bc_parse *p)
{
	const struct bc_layout *l = &s->layout;
	struct failure furthest = {at, NULL};
	struct values v = {.slot = {0}};

	for (unsigned i = 0; i < l->alternatives; i++) {
		const struct bc_layout_alternative *a = &l->alternative[i];
		v.is_long = v.has_0x = false;
		const char *next = match(l, a, at, &v, &furthest);
		if (next == NULL)
			continue;
		uint64_t delta = has_bit(a, BC_SLOT_DELTA) ? v.slot[BC_SLOT_DELTA] : 0;
		if (delta >= BC_TICK_END - s->tick) {
			p->bad = at;
			p->expected = "the sum of {delta} has more than 63 bits";
			return NULL;
		}
		s->tick += delta;
		if (has_bit(a, BC_SLOT_ADDR))
			add_fields(s,
				add_entry(s, p, a, v.slot[BC_SLOT_TYPE], v.slot[BC_SLOT_ADDR],
					a->has_size ? v.slot[BC_SLOT_SIZE] : a->size + s->size),
				a, &v);
		else
			s->skipped++;
		return next;
	}
	snprintf(s->expected, sizeof(s->expected), "no layout is given");
	if (furthest.op != NULL)
		describe(s, &furthest);
	p->bad = furthest.at;
	p->expected = s->expected;
	return NULL;
}

enum bc_parse_end bc_lines_parse(void *state, struct bc_parse *p)
{
	struct bc_lines *s = state;
	bool is_short = s->layout.is_short;

	for (; p->at < p->end; p->number++) {
		if (!bc_parse_has_room(p))
			return BC_PARSE_FULL;
		const char *next = is_short ? parse_short(s, p->at, p) : NULL;
		if (next == NULL) {
			const char *at = bc_skip_spaces(p->at);
			next = *at == '\n' ? at + 1 : parse_line(s, at, p);
		}
		if (next == NULL)
			return BC_PARSE_BAD;
		p->at = next;
	}
	return BC_PARSE_DONE;
}

void bc_lines_init(struct bc_lines *s, const char *layout, uint32_t size)
{
	char err[200];

	s->size = size;
	(void)bc_layout_compile(&s->layout, layout, err, sizeof(err));
}

#define DIGIT_TOPS UINT64_C(0x8888888888888888)

void bc_lines_notes(const void *state, struct bc_parse_notes *notes)
{
	const struct bc_lines *s = state;

	notes->skipped = s->skipped;
	notes->unread = s->unread;
	notes->long_data = s->long_data;
	notes->lacks_hex = !s->has_0x && s->high_bits != 0 && (s->high_bits & DIGIT_TOPS) == 0;
}

/* ---- -I 'lines:LAYOUT' */

static void init(void *state, const struct bc_format_options *options)
{
	bc_lines_init(state, options->layout, 0);
}

static bool check(const char *layout, char *err, size_t errlen)
{
	struct bc_layout compiled;

	if (layout == NULL)
		return bc_fail(err, errlen,
			"lines need a layout, such as 'lines:{type} {addr}'; see "
			"buscap-formats(5)");
	return bc_layout_compile(&compiled, layout, err, errlen);
}

static bc_traits get_traits(void *state, const char *at, const char *end, bool *has_wall)
{
	(void)at;
	(void)end;
	*has_wall = false;
	return bc_layout_traits(&((struct bc_lines *)state)->layout);
}

const struct bc_parser bc_lines_parser = {.state_bytes = sizeof(struct bc_lines),
	.init = init,
	.check = check,
	.traits = get_traits,
	.parse = bc_lines_parse,
	.notes = bc_lines_notes};
