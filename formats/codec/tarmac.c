/* Tarmac: traces of Arm's models and simulators, read by ISPRAS Trace Matcher. One record per line.
 *
 *   TIME UNIT [CPU] IT|IS|IF [(ID)] ADDR OPCODE SET MODE : DISASSEMBLY     an instruction
 *   TIME UNIT       ES (ADDR:OPCODE) SET MODE: [CCFAIL] DISASSEMBLY        the same
 *   TIME UNIT [CPU] M<R|W><BYTES><ATTRIBUTE> ADDR DATA                     a memory access
 *   TIME UNIT       R08|W04|... [X] ADDR DATA                              the same
 *   TIME UNIT       LD|ST ADDR XXXXXXXX XXXXXXXX XXXXXXXX XXXXXXXX ...     accesses in 16 bytes
 *   TIME UNIT [CPU] R NAME VALUE                                           a register write
 *
 * UNIT is clk, ns, cs, cyc, tic, ps or us, with or without a space before it. A line without a time
 * has the time of the previous line. CPU is "cpu0", or just a number. ADDR is hexadecimal; ":PHYS",
 * "_NS" or another state, and a second ",ADDR" may follow. docs/formats.md has the details.
 *
 * Every line becomes one or more entries. The first has the verbatim line, the others are
 * is_continued. Lines of any other kind, comments and blank lines become a BC_ENTRY_LINE. A line is
 * malformed only if it starts like one of these records, but lacks a required number, the
 * instruction set, a register's name or value, or a closing parenthesis; if a number has more than
 * 64 bits; if a time is not in whole picoseconds; or if data does not match the size of its access.
 *
 * Sources: Trace Format of ISPRAS Trace Matcher; lines written by Arm's tools. */
#include "formats/codec/codecs.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "formats/base/fast_text.h"
#include "formats/base/hash.h"
#include "formats/codec/tarmac_line.h"

/* ---- the numbers of processors that are named: "cpu1", "cluster0.cpu1", "css.rse.cpu"
 *
 * A name has the number in it: the one after "cpu" or "core", or else the last. If it has none, or
 * another name has the same, it gets the lowest number that is free, which the notes report. */

#define CPU_NAMES 256u

/* Zeroes are an empty list. */
struct cpu_names {
	unsigned count;
	unsigned last; /* the name found last */
	unsigned odd;  /* names whose number is not in them */
	uint64_t unnumbered;
	uint64_t used[(UINT16_MAX + 1) / 64];  /* bits: numbers of processors */
	uint64_t named[(UINT16_MAX + 1) / 64]; /* numbers of names in the list */
	struct cpu_name {
		uint64_t hash;
		uint16_t proc;
		bool is_odd;
		char end[BC_NOTES_NAME_BYTES];
	} names[CPU_NAMES];
};

static bool has_bit(const uint64_t *bits, uint16_t number)
{
	return (bits[number / 64] >> number % 64 & 1) != 0;
}

static void set_bit(uint64_t *bits, uint16_t number)
{
	bits[number / 64] |= UINT64_C(1) << number % 64;
}

/* Reads the number at `at`, of up to 16 bits. */
static bool read_number(const char *at, const char *end, uint16_t *number)
{
	uint32_t sum = 0;

	if (at == end || !bc_is_digit(*at))
		return false;
	for (; at < end && bc_is_digit(*at); at++) {
		sum = sum * 10 + (uint32_t)(*at - '0');
		if (sum > UINT16_MAX)
			return false;
	}
	*number = (uint16_t)sum;
	return true;
}

/* Finds the number in a name: that after the last "cpu" or "core", or else the last one. */
static bool find_number(const char *name, size_t bytes, uint16_t *number)
{
	const char *end = name + bytes;
	bool has_word = false;
	bool is_found = false;

	for (const char *at = name; at < end; at++) {
		size_t word = strncasecmp(at, "cpu", 3) == 0    ? 3
			      : strncasecmp(at, "core", 4) == 0 ? 4
								: 0;
		if (word != 0 && (size_t)(end - at) > word) {
			const char *digits = at + word;
			digits += *digits == '_' || *digits == '[' || *digits == '-';
			if (read_number(digits, end, number))
				has_word = is_found = true;
		} else if (!has_word && bc_is_digit(*at) && (at == name || !bc_is_digit(at[-1]))) {
			is_found |= read_number(at, end, number);
		}
	}
	return is_found;
}

static struct cpu_name *find_name(struct cpu_names *names, uint64_t hash)
{
	if (names->count != 0 && names->names[names->last].hash == hash)
		return &names->names[names->last];
	for (unsigned i = 0; i < names->count; i++)
		if (names->names[i].hash == hash) {
			names->last = i;
			return &names->names[i];
		}
	return NULL;
}

/* Sets *proc to the number of a name, which is added if it is new. Returns false, and counts the
 * line, if there are too many names. */
static bool number_cpu(struct cpu_names *names, const char *name, size_t bytes, uint16_t *proc)
{
	uint64_t hash = bc_hash(name, bytes);
	const struct cpu_name *known = find_name(names, hash);
	uint16_t number = 0;

	if (known != NULL) {
		*proc = known->proc;
		return true;
	}
	if (names->count == CPU_NAMES) {
		names->unnumbered++;
		return false;
	}
	bool is_odd = !find_number(name, bytes, &number) || has_bit(names->used, number);
	if (is_odd)
		for (number = 0; number < UINT16_MAX && has_bit(names->used, number);)
			number++;
	set_bit(names->used, number);
	set_bit(names->named, number);
	struct cpu_name *added = &names->names[names->last = names->count++];
	*added = (struct cpu_name){.hash = hash, .proc = number, .is_odd = is_odd};
	names->odd += is_odd;
	size_t cut = bytes < sizeof(added->end) ? 0 : bytes - (sizeof(added->end) - 1);
	memcpy(added->end, name + cut, bytes - cut);
	*proc = number;
	return true;
}

/* The same for "cpu0" and the like, and for just a number. */
static bool number_plain_cpu(struct cpu_names *names, uint16_t number, uint16_t *proc)
{
	char name[16];

	if (has_bit(names->named, number)) {
		snprintf(name, sizeof(name), "cpu%u", (unsigned)number);
		return number_cpu(names, name, strlen(name), proc);
	}
	set_bit(names->used, number);
	*proc = number;
	return true;
}

static void get_cpu_notes(const struct cpu_names *names, struct bc_parse_notes *notes)
{
	unsigned n = 0;

	notes->unnumbered = names->unnumbered;
	notes->names = names->odd;
	for (unsigned i = 0; i < names->count && n < BC_NOTES_NAMES; i++) {
		if (!names->names[i].is_odd)
			continue;
		notes->named[n].proc = names->names[i].proc;
		memcpy(notes->named[n++].name, names->names[i].end, BC_NOTES_NAME_BYTES);
	}
}

/* ---- lines */

/* State from previous lines. */
struct tarmac {
	uint64_t tick;
	uint8_t unit;
	uint8_t metric; /* ns, us or ps: all such times are read in this unit; BC_UNIT_TICK: none
			   yet */
	bool has_time;
	uint16_t access; /* of the LD or ST that this line may continue, or BC_TARMAC_NO_ACCESS */
	uint64_t unread; /* lines with more than was read */
	struct cpu_names cpus;
};

/* Length of the instruction set's name, or 0. */
static unsigned set_bytes(const char *at)
{
	if (*at == 'T' && ((at[1] == '1' && at[2] == '6') || (at[1] == '3' && at[2] == '2')))
		return bc_is_token_end(at[3]) ? 3 : 0;
	if (*at != 'A' && *at != 'T' && *at != 'O' && *at != 'X')
		return 0;
	return bc_is_token_end(at[1]) ? 1 : 0;
}

static bool is_letter(char c)
{
	return (uint8_t)((c | 0x20) - 'a') < 26;
}

/* End of a word that has no colon. */
static const char *plain_word_end(const char *at)
{
	while (*at != ':' && !bc_is_token_end(*at))
		at++;
	return at;
}

/* Length of the name of an instruction set that is not known: a word that is followed by the mode
 * and a colon. Otherwise 0. */
static unsigned unknown_set_bytes(const char *at)
{
	const char *end = plain_word_end(at);
	const char *mode = bc_tarmac_skip(end);
	const char *mode_end = plain_word_end(mode);

	return *end != ':' && mode_end != mode && *bc_tarmac_skip(mode_end) == ':'
		       ? (unsigned)(end - at)
		       : 0;
}

/* Digits, or the same number of hyphens if the fetch failed. */
static bool parse_opcode(const char **at, struct bc_entry *entry)
{
	struct bc_instruction *i = &entry->instruction;
	const char *begin = *at;
	size_t digits;

	if (*begin == '-') {
		while (**at == '-')
			++*at;
		digits = (size_t)(*at - begin);
		i->effect = BC_EFFECT_FETCHFAIL;
	} else {
		if (!bc_parse_hex_block(at, &i->opcode))
			return false;
		digits = (size_t)(*at - begin);
		i->digits = (uint8_t)digits;
	}
	if (digits > 16)
		return false;
	entry->size = digits % 2 == 0 ? (uint32_t)(digits / 2) : 0;
	entry->traits |= entry->size != 0 ? BC_TRAIT_SIZE : 0;
	return true;
}

/* True if the word can be an opcode: at least two digits, so not the instruction set C. */
static bool is_opcode(const char *at)
{
	const char *end = at;

	while (*end == '-' || bc_hex_value[(uint8_t)*end] <= 15)
		end++;
	return end - at >= 2 && bc_is_token_end(*end);
}

/* Parses what follows the opcode: instruction set, mode and disassembly. */
static enum bc_tarmac_result parse_set_and_mode(
	struct bc_tarmac_line *line, const char *at, struct bc_instruction *i, bool is_es)
{
	at = bc_tarmac_skip(at);
	if (*at == '\n')
		return bc_tarmac_malformed(
			line, at, "expected an instruction set: A, T, T16, T32, O or X");
	i->set = bc_tarmac_text(at, at + set_bytes(at));
	i->mode = bc_tarmac_text(at, at);
	at = bc_tarmac_skip(at + (i->set.bytes != 0 ? i->set.bytes : unknown_set_bytes(at)));

	const char *word = at;
	while (*at != ':' && ((uint8_t)*at > ' ' || !bc_is_token_end(*at)))
		at++;
	const char *colon = bc_tarmac_skip(at);
	if (*colon == ':') {
		i->mode = bc_tarmac_text(word, at);
		word = bc_tarmac_skip(colon + 1);
	}
	if (is_es && memcmp(word, "CCFAIL", 6) == 0 && bc_is_token_end(word[6])) {
		i->effect = i->effect == BC_EFFECT_EXECUTED ? BC_EFFECT_SKIPPED : i->effect;
		word = bc_tarmac_skip(word + 6);
	}
	line->end = bc_line_end(word);
	const char *end = line->end > word && line->end[-1] == '\r' ? line->end - 1 : line->end;
	i->disassembly = bc_tarmac_text(word, end);
	return BC_TARMAC_PARSED;
}

/* Parses the parentheses after IT: the decimal index of the instruction; or its address; or its
 * address and index in hexadecimal. Sets *addr to the possible address, used if none follows. */
static enum bc_tarmac_result parse_parentheses(
	struct bc_tarmac_line *line, const char **at, struct bc_instruction *i, const char **addr)
{
	const char *begin = *at + 1;
	const char *p = begin;
	uint64_t value;

	*addr = begin;
	if (bc_parse_decimal(&p, &i->id) && *p == ')') {
		i->has_id = true;
		*at = bc_tarmac_skip(p + 1);
		return BC_TARMAC_PARSED;
	}
	const char *end = begin;
	bool is_hex = bc_parse_hex_block(&end, &value);
	if (is_hex && *end == ':') {
		end++;
		*addr = NULL;
		is_hex = i->has_id = bc_parse_hex_block(&end, &i->id);
	}
	if (!is_hex || *end != ')')
		return bc_tarmac_malformed(
			line, end > p ? end : p, "expected a number of at most 64 bits and ')'");
	*at = bc_tarmac_skip(end + 1);
	return BC_TARMAC_PARSED;
}

/* True if the word in place of the opcode is the instruction set. */
static bool is_set(const char *at)
{
	return set_bytes(at) != 0 || (!is_opcode(at) && unknown_set_bytes(at) != 0);
}

static struct bc_entry *add_instruction(struct bc_tarmac_line *line, enum bc_effect effect)
{
	struct bc_entry *entry = bc_tarmac_add(line, BC_ENTRY_INSTRUCTION, 0, 0);

	entry->instruction = (struct bc_instruction){.effect = (uint8_t)effect};
	return entry;
}

static enum bc_tarmac_result parse_it(struct bc_tarmac_line *line, const char *at)
{
	struct bc_entry *entry = add_instruction(
		line, at[1] == 'S' ? BC_EFFECT_SKIPPED : BC_EFFECT_EXECUTED);
	struct bc_instruction *i = &entry->instruction;
	const char *addr = NULL;

	at = bc_tarmac_skip(at + 2);
	if (*at == '(' && !bc_tarmac_is_capability(at)) {
		if (parse_parentheses(line, &at, i, &addr) != BC_TARMAC_PARSED)
			return BC_TARMAC_MALFORMED;
	} else if (*at != '\n' && *at != '(' && bc_hex_value[(uint8_t)*at] > 15) {
		return BC_TARMAC_VERBATIM;
	}
	const char *first = at;
	if (*at != '-' && !bc_tarmac_parse_address(line, &at, &entry->addr))
		return bc_tarmac_malformed(line, at, BC_TARMAC_ADDRESS_EXPECTED);
	if (addr != NULL && (at == first || is_set(bc_tarmac_skip(at)))) {
		/* An instruction set follows. So the number just read is the opcode, and the
		 * address is in the parentheses. */
		if (!bc_parse_hex_block(&addr, &entry->addr))
			return bc_tarmac_malformed(line, addr, BC_TARMAC_ADDRESS_EXPECTED);
		i->has_id = false;
		at = first;
	} else {
		struct bc_text security; /* the mode has it too */
		bc_traits traits = 0;
		if (at == first || !bc_tarmac_parse_physical(&at, &entry->phys, &security, &traits))
			return bc_tarmac_malformed(line, at, BC_TARMAC_ADDRESS_EXPECTED);
		entry->traits |= traits & BC_TRAIT_PHYS;
		at = bc_tarmac_skip(at);
	}
	if (!parse_opcode(&at, entry) || !bc_is_token_end(*at))
		return bc_tarmac_malformed(
			line, at, "expected a hexadecimal opcode of at most 64 bits");
	return parse_set_and_mode(line, at, i, false);
}

static enum bc_tarmac_result parse_es(struct bc_tarmac_line *line, const char *at)
{
	struct bc_entry *entry = add_instruction(line, BC_EFFECT_EXECUTED);

	at = bc_tarmac_skip(at + 2);
	if (*at != '(')
		return BC_TARMAC_VERBATIM; /* EXC, Reset */
	at++;
	if (!bc_parse_hex_block(&at, &entry->addr) || *at != ':')
		return bc_tarmac_malformed(
			line, at, "expected a hexadecimal address of at most 64 bits and ':'");
	at++;
	if (!parse_opcode(&at, entry) || *at != ')')
		return bc_tarmac_malformed(
			line, at, "expected a hexadecimal opcode of at most 64 bits and ')'");
	return parse_set_and_mode(line, at + 1, &entry->instruction, true);
}

/* End of one group of a register's value: digits, x or X if unknown, '-' if unchanged, '|' between
 * the parts of a capability. */
static const char *value_end(const char *at)
{
	if (bc_tarmac_is_capability(at)) {
		while (*at != ')' && !bc_is_token_end(*at))
			at++;
		return at + (*at == ')');
	}
	if (bc_tarmac_is_separator(*at))
		return at;
	while (bc_hex_value[(uint8_t)*at] <= 15 || bc_tarmac_is_unknown(*at) ||
		bc_tarmac_is_separator(*at) || *at == '-' || *at == '|')
		at++;
	return at;
}

static enum bc_tarmac_result parse_register(struct bc_tarmac_line *line, const char *at)
{
	const char *name = bc_tarmac_skip(at + 1);
	const char *name_end = bc_tarmac_word_end(name);

	if (name == name_end)
		return bc_tarmac_malformed(line, name, "expected the name of a register");
	at = bc_tarmac_skip(name_end);
	if (*at == '(' && !bc_tarmac_is_capability(at)) { /* which bank: R1 (USR) */
		while (*at != '\n' && *at != ')')
			at++;
		if (*at == '\n')
			return bc_tarmac_malformed(line, at, "expected ')'");
		at = bc_tarmac_skip(at + 1);
	}
	const char *value = at;
	const char *end = value_end(at);
	if (*value == '\n')
		return bc_tarmac_malformed(line, at, "expected a hexadecimal value");
	if (end == value || !bc_is_token_end(*end)) {
		/* "TLBI ALLE3": neither a register nor a value. */
		if (!bc_is_digit(*value))
			return BC_TARMAC_VERBATIM;
		return bc_tarmac_malformed(line, end, "expected a hexadecimal value");
	}
	/* Spaces may split a value into groups of eight digits. What else follows is a remark. */
	if (end - value == 8) {
		for (;;) {
			const char *group = bc_tarmac_skip(end);
			const char *group_end = value_end(group);
			if (group_end - group != 8 || !bc_is_token_end(*group_end))
				break;
			end = group_end;
		}
	}
	struct bc_entry *entry = bc_tarmac_add(line, BC_ENTRY_REGISTER, 0, 0);
	entry->reg.name = bc_tarmac_text(name, name_end);
	entry->reg.value = bc_tarmac_text(value, end);
	line->end = end;
	return BC_TARMAC_PARSED;
}

/* The unit named by a word, or BC_UNIT_TICK. */
static unsigned unit_of(const char *at)
{
	for (unsigned unit = BC_UNIT_CLK; unit < BC_UNITS; unit++) {
		const char *name = bc_unit_name(unit);
		size_t bytes = strlen(name);
		if (strncmp(at, name, bytes) == 0 && bc_is_token_end(at[bytes]))
			return unit;
	}
	return BC_UNIT_TICK;
}

/* True if the word begins a record: a number before it is then a time, even without a unit. */
static bool is_record(const char *at)
{
	const char *end = bc_tarmac_word_end(at);
	size_t bytes = (size_t)(end - at);

	if (bytes > 3 && memcmp(at, "cpu", 3) == 0)
		return bc_is_digit(at[3]);
	if (*at == 'M')
		return bytes > 2 && end[-1] != ':' &&
		       (at[1] == 'R' || at[1] == 'W' || at[2] == 'R' || at[2] == 'W');
	if (bytes == 3)
		return (*at == 'R' || *at == 'W') && bc_is_digit(at[1]) && bc_is_digit(at[2]);
	if (bytes == 1)
		return *at == 'R' || *at == 'E';
	return bytes == 2 && (memcmp(at, "IT", 2) == 0 || memcmp(at, "IS", 2) == 0 ||
				     memcmp(at, "IF", 2) == 0 || memcmp(at, "ES", 2) == 0 ||
				     memcmp(at, "LD", 2) == 0 || memcmp(at, "ST", 2) == 0);
}

/* True if the word begins a line of any kind, and so is not a name. */
static bool is_kind(const char *at)
{
	static const char *const kinds[] = {
		"BR", "CACHE", "CADI", "E", "EXC", "P", "SIGNAL", "SIGNAL:", "Tarmac", "TTW"};
	size_t bytes = (size_t)(bc_tarmac_word_end(at) - at);

	if (bytes == 0 || is_record(at))
		return true;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strlen(kinds[i]) == bytes && memcmp(kinds[i], at, bytes) == 0)
			return true;
	return false;
}

/* True if the word before a record names a component: like a name or path, without a last colon. */
static bool is_component(const char *at)
{
	const char *end = bc_tarmac_word_end(at);
	const char *next = bc_tarmac_skip(end);

	return (is_letter(*at) || memchr("_./[\\", *at, 5) != NULL) && end[-1] != ':' &&
	       !is_kind(at) && *next != '\n' && is_kind(next) && memcmp(next, "cpu", 3) != 0;
}

/* True if the word after a number is a component, not an unknown unit: it has a dot or a digit. */
static bool is_clear_component(const char *at)
{
	const char *end = bc_tarmac_word_end(at);

	for (const char *p = at; p < end; p++)
		if (*p == '.' || bc_is_digit(*p))
			return is_component(at);
	return false;
}

/* Converts a time with a fraction, whose digits follow the point at `point`, to picoseconds.
 * Returns false if that is not a whole number of at most 64 bits. */
static bool add_fraction(uint64_t *value, const char *point, uint64_t picoseconds)
{
	const char *p = point + 1;

	for (uint64_t left = picoseconds; left != 1; left /= 10) {
		unsigned digit = bc_is_digit(*p) ? (uint8_t)(*p++ - '0') : 0;
		if (__builtin_mul_overflow(*value, 10, value) ||
			__builtin_add_overflow(*value, digit, value))
			return false;
	}
	while (*p == '0')
		p++;
	return !bc_is_digit(*p);
}

/* Converts a time to the unit in which this trace's times are read, rounding down. Returns false if
 * it has more than 64 bits then. */
static bool scale(struct tarmac *t, uint64_t *value, unsigned *unit)
{
	uint64_t picoseconds = bc_unit_picoseconds(*unit);

	if (picoseconds == 0)
		return true;
	if (t->metric == BC_UNIT_TICK)
		t->metric = (uint8_t)*unit;
	uint64_t target = bc_unit_picoseconds(t->metric);
	assert(target != 0);
	__uint128_t scaled = (__uint128_t)*value * picoseconds / target;
	*value = (uint64_t)scaled;
	*unit = t->metric;
	return scaled <= UINT64_MAX;
}

/* Parses the time: a number, with a unit unless a record follows. A fraction of a microsecond or
 * nanosecond makes it picoseconds. Returns whether there is one, with *at after it. If it has more
 * than 64 bits, sets line->bad. */
static bool parse_time(struct bc_tarmac_line *line, struct tarmac *t, const char **at)
{
	const char *p = *at;
	uint64_t value = 0;

	if (!bc_is_digit(*p))
		return false;
	bool fits = bc_parse_decimal(&p, &value);
	const char *bad = p;
	while (bc_is_digit(*p))
		p++;
	const char *point = *p == '.' ? p++ : NULL;
	while (point != NULL && bc_is_digit(*p))
		p++;
	const char *name = bc_tarmac_skip(p);
	unsigned unit = unit_of(name);
	bool is_metric = bc_unit_picoseconds(unit) != 0;
	if (point != NULL ? !is_metric
			  : unit == BC_UNIT_TICK &&
				    (p == name || !(is_record(name) || is_clear_component(name))))
		return false;
	if (point != NULL) {
		fits = fits && add_fraction(&value, point, bc_unit_picoseconds(unit));
		bad = point;
		unit = BC_UNIT_PS;
	}
	unsigned text_unit = unit;
	fits = fits && scale(t, &value, &unit);
	if (unit != text_unit)
		line->dependence = BC_LINE_NEEDS_PREFIX;
	*at = unit == BC_UNIT_TICK ? name : bc_tarmac_skip(bc_tarmac_word_end(name));
	if (fits) {
		t->tick = value;
		t->unit = (uint8_t)unit;
		t->has_time = true;
	} else {
		line->bad = bad;
	}
	return true;
}

/* Parses "cpu0" or, after a time, just a number or the name of a component. */
static const char *parse_cpu(
	struct bc_tarmac_line *line, struct cpu_names *cpus, const char *at, bool has_time)
{
	const char *p = at;
	const char *end = bc_tarmac_word_end(at);
	uint64_t cpu = UINT64_MAX;
	bool is_cpu = at[0] == 'c' && at[1] == 'p' && at[2] == 'u';
	bool is_numbered;

	if (is_cpu)
		p += 3;
	if ((is_cpu || has_time) && bc_parse_decimal(&p, &cpu) && bc_is_space(*p) &&
		cpu <= UINT16_MAX)
		is_numbered = number_plain_cpu(cpus, (uint16_t)cpu, &line->proc);
	else if (is_cpu ||
		 (is_component(at) &&
			 (has_time || find_name(cpus, bc_hash(at, (size_t)(end - at))) != NULL)))
		is_numbered = number_cpu(cpus, at, (size_t)(end - at), &line->proc);
	else
		return at;
	line->traits |= is_numbered ? BC_TRAIT_PROC : 0;
	if (line->proc != cpu || !bc_is_space(*p))
		line->dependence = BC_LINE_NEEDS_PREFIX;
	return bc_tarmac_skip(end);
}

static enum bc_tarmac_result parse_kind(
	struct bc_tarmac_line *line, struct tarmac *t, const char *at, uint16_t access)
{
	switch (*at) {
	case 'I':
		if ((at[1] == 'T' || at[1] == 'S' || at[1] == 'F') && bc_is_token_end(at[2]))
			return parse_it(line, at);
		return BC_TARMAC_VERBATIM;
	case 'R':
		return bc_is_token_end(at[1]) ? parse_register(line, at)
					      : bc_tarmac_parse_rw(line, at);
	case 'W':
		return bc_tarmac_parse_rw(line, at);
	case 'M':
		return bc_tarmac_parse_m(line, at);
	case 'E':
		return at[1] == 'S' && bc_is_token_end(at[2]) ? parse_es(line, at)
							      : BC_TARMAC_VERBATIM;
	case 'L':
	case 'S':
		if (at[1] != (*at == 'L' ? 'D' : 'T') || !bc_is_token_end(at[2]))
			return BC_TARMAC_VERBATIM;
		return bc_tarmac_parse_ld_st(line, at, &t->access);
	default:
		t->access = access;
		return bc_tarmac_parse_continued(line, at, &t->access);
	}
}

static enum bc_tarmac_result parse_line(struct bc_tarmac_line *line, struct tarmac *t)
{
	const char *at = bc_tarmac_skip(line->p->at);
	uint16_t access = t->access;
	bool has_time = parse_time(line, t, &at);
	const char *bad_time = line->bad;

	at = parse_cpu(line, &t->cpus, at, has_time);
	line->traits |= t->has_time ? BC_TRAIT_TIME : 0;
	/* After a time, a name or a number would be a processor. */
	if (t->has_time && !has_time && !is_component(at) && !bc_is_digit(*at))
		line->dependence = BC_LINE_NEEDS_PREFIX;
	line->tick = t->tick;
	line->unit = t->unit;
	line->words = line->end = at;
	t->access = BC_TARMAC_NO_ACCESS;
	enum bc_tarmac_result result = parse_kind(line, t, at, access);
	if (result == BC_TARMAC_PARSED && bad_time != NULL)
		return bc_tarmac_malformed(line, bad_time,
			"expected a decimal time of at most 64 bits, in whole picoseconds");
	return result;
}

static void tarmac_init(void *state, const struct bc_format_options *options)
{
	struct tarmac *t = state;

	*t = (struct tarmac){.access = BC_TARMAC_NO_ACCESS,
		.metric = options->in_picoseconds ? BC_UNIT_PS : BC_UNIT_TICK};
}

/* The most entries that a record can become. */
static size_t most_entries(const char *at)
{
	uint64_t bytes = 0;

	if (*at != 'M')
		return 16;
	while (is_letter(*at))
		at++;
	return bc_parse_decimal(&at, &bytes) && bytes <= BC_TARMAC_ACCESS_MAX
		       ? (size_t)bytes / 8 + 1
		       : BC_LINE_ENTRIES;
}

/* True for an access record (M, R08, W08), which allows no remark after it. */
static bool is_access(const char *at)
{
	return *at == 'M' || ((*at == 'R' || *at == 'W') && !bc_is_token_end(at[1]));
}

/* Parses the records after the one at `begin`. A register or a row of bytes may have a remark. */
static void parse_more(struct bc_tarmac_line *line, struct tarmac *t, const char *begin)
{
	bool is_bare = is_access(begin);
	const char *at = line->end;

	while (*(at = bc_tarmac_skip(at)) != '\n') {
		size_t made = line->made;
		bool is_more = is_record(at) && *at != 'E' && *at != 'I' && *at != 'c';
		if (is_more && made + most_entries(at) <= BC_LINE_ENTRIES &&
			parse_kind(line, t, at, BC_TARMAC_NO_ACCESS) == BC_TARMAC_PARSED) {
			is_bare = is_access(at);
			at = line->end;
			continue;
		}
		line->made = made;
		line->has_more |= is_more || is_bare;
		at = bc_tarmac_word_end(at);
	}
}

static enum bc_parse_end parse_tarmac(void *state, struct bc_parse *p)
{
	struct tarmac *t = state;

	for (; p->at < p->end; p->number++) {
		if (!bc_parse_has_room(p))
			return BC_PARSE_FULL;
		struct bc_tarmac_line line = {.p = p};
		enum bc_tarmac_result result = parse_line(&line, t);
		if (result == BC_TARMAC_MALFORMED)
			return bc_parse_bad(p, line.bad, line.expected);
		if (result == BC_TARMAC_PARSED && *line.end != '\n')
			parse_more(&line, t, line.words);
		t->unread += line.has_more;
		if (result == BC_TARMAC_VERBATIM) {
			line.made = 0;
			struct bc_entry *kept = bc_tarmac_add(&line, BC_ENTRY_LINE, 0, 0);
			kept->words = bc_tarmac_text(line.words, bc_line_end(line.words));
		}
		const char *end = *line.end == '\n' ? line.end : bc_line_end(line.end);
		p->entries[p->count].line = bc_tarmac_text(p->at, end);
		p->entries[p->count].dependence = line.dependence;
		p->entries[p->count].prefix = (uint32_t)(line.words - p->at);
		p->count += line.made;
		p->at = end + 1;
	}
	return BC_PARSE_DONE;
}

/* True if the name can't be mistaken for a hexadecimal number, with or without 0x. */
static bool is_register_name(const struct bc_text *name)
{
	if (bc_is_digit(*name->at))
		return false;
	for (uint32_t i = 0; i < name->bytes; i++)
		if (bc_hex_value[(uint8_t)name->at[i]] > 15)
			return true;
	return false;
}

/* A record that no other text has, a unit or "cpu0". "R 2000a044 4" and the like are lines of many
 * traces; a register has a name, and without a unit all its digits. */
static bool is_typical_tarmac(const char *line, const struct bc_entry *entry)
{
	bool has_unit = entry->unit != BC_UNIT_TICK;
	const char *at = bc_skip_spaces(line);

	if (entry->kind == BC_ENTRY_REGISTER)
		return is_register_name(&entry->reg.name) &&
		       (has_unit || entry->reg.value.bytes >= 8);
	if (entry->kind != BC_ENTRY_LINE)
		return true;
	if (bc_is_digit(*at) && has_unit) /* otherwise the unit is the previous line's */
		return true;
	while (bc_is_digit(*at))
		at++;
	at = bc_skip_spaces(at);
	return memcmp(at, "cpu", 3) == 0 && bc_is_digit(at[3]);
}

static void get_notes(const void *state, struct bc_parse_notes *notes)
{
	const struct tarmac *t = state;

	notes->unread = t->unread;
	get_cpu_notes(&t->cpus, notes);
}

const struct bc_parser bc_tarmac_parser = {.state_bytes = sizeof(struct tarmac),
	.init = tarmac_init,
	.parse = parse_tarmac,
	.is_typical = is_typical_tarmac,
	.notes = get_notes};
