/* Real traces: compared with what Arm's own parser reads from them, and printed from their fields
 * where the forms of the lines permit it. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/fast_text.h"
#include "formats/codec/codecs.h"
#include "tests/support/tarmac_lines.h"
#include "tests/support/test.h"

#define DATA "../shared/data/tarmac/"

/* The contents of a file, with a newline at its end. If it does not exist: NULL, with a note. */
static char *file_read(const char *path, size_t *n)
{
	FILE *file = fopen(path, "rb");
	char *bytes;

	if (file == NULL) {
		print_message("skipped: %s does not exist\n", path);
		skip();
	}
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	*n = (size_t)ftell(file);
	rewind(file);
	bytes = malloc(*n + 2);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, *n, file), *n);
	fclose(file);
	if (bytes[*n - 1] != '\n')
		bytes[(*n)++] = '\n';
	bytes[*n] = '\0';
	return bytes;
}

/* An entry in the form of the reference; empty if the reference has no form for it. */
static size_t event_of(char *out, size_t room, const struct bc_entry *e)
{
	static const char *const effects[] = {"executed", "ccfail", "fetchfail"};
	const struct bc_instruction *i = &e->instruction;
	const char *set;

	switch (e->kind) {
	case BC_ENTRY_INSTRUCTION:
		set = i->set.at[0] == 'A' ? "ARM" : (i->set.at[0] == 'T' ? "Thumb" : "A64");
		return (size_t)snprintf(out, room,
			"* InstructionEvent time=%" PRIu64 " effect=%s pc=%" PRIx64
			" iset=%s width=%u instruction=%" PRIx64 " disassembly=\"%.*s\"\n",
			e->tick, effects[i->effect], e->addr, set, e->size * 8, i->opcode,
			(int)i->disassembly.bytes, i->disassembly.at);
	case BC_ENTRY_REFERENCE:
		return (size_t)snprintf(out, room,
			"* MemoryEvent time=%" PRIu64 " read=%s known=%s addr=%" PRIx64
			" size=%u contents=%" PRIx64 "\n",
			e->tick, e->type == BC_REQ_MEMREAD ? "true" : "false",
			e->has & BC_HAS_DATA ? "true" : "false", e->addr, e->size, e->data);
	default:
		return 0;
	}
}

/* The reference: a line, followed by its events. */
struct reference {
	const char *line;
	size_t line_bytes;
	const char *events;
	size_t events_bytes;
};

static bool reference_next(const char **at, struct reference *r)
{
	static const char mark[] = "--- Tarmac line: ";

	if (strncmp(*at, mark, strlen(mark)) != 0)
		return false;
	r->line = *at + strlen(mark);
	r->line_bytes = strcspn(r->line, "\n");
	r->events = r->line + r->line_bytes + 1;
	const char *next = strstr(r->events - 1, "\n--- Tarmac line: ");
	r->events_bytes = next != NULL ? (size_t)(next + 1 - r->events) : strlen(r->events);
	*at = r->events + r->events_bytes;
	return true;
}

struct agreed {
	unsigned lines;
	unsigned instructions;
	unsigned references;
	unsigned registers;
	unsigned unknown; /* registers that Arm's parser does not model, or writes that change
			     nothing */
	unsigned texts;   /* kept lines for which it has a text event or an exception */
	unsigned silent;  /* kept lines for which it has no event */
};

/* Arm's parser writes the bytes of a register that change. It knows only the low 32 bits of some,
 * and extends the value of others with zeros. */
static void check_register(const struct bc_entry *e, const struct reference *r)
{
	char start[64];
	char digits[BC_LINE_MAX];
	size_t n = 0;

	snprintf(start, sizeof(start), "* RegisterEvent time=%" PRIu64 " reg=", e->tick);
	assert_int_equal(strncmp(r->events, start, strlen(start)), 0);
	for (uint32_t i = 0; i < e->reg.value.bytes; i++) {
		char c = e->reg.value.at[i];
		if (isxdigit((unsigned char)c))
			digits[n++] = (char)tolower((unsigned char)c);
		else if (tolower((unsigned char)c) == 'x') /* read as 0 */
			digits[n++] = '0';
		assert_true(n < sizeof(digits));
	}
	for (const char *at = r->events + r->events_bytes - 1; *at != '='; at--)
		if (*at != ':' && *at != '\n')
			assert_int_equal(*at, n != 0 ? digits[--n] : '0');
}

/* For a kept line, Arm's parser has text or an exception at the same time, a warning, or
 * nothing. */
static void check_kept(const struct bc_entry *e, const struct reference *r, struct agreed *a)
{
	unsigned long long time;

	if (r->events_bytes == 0 || strncmp(r->events, "Parse warning: ", 15) == 0) {
		a->silent++;
		return;
	}
	assert_true(strncmp(r->events, "* TextOnlyEvent time=", 21) == 0 ||
		    strncmp(r->events, "* ExceptionEvent time=", 22) == 0);
	time = strtoull(strchr(r->events, '=') + 1, NULL, 10);
	assert_true(e->has & BC_HAS_TIME);
	assert_int_equal(e->tick, time);
	a->texts++;
}

static void check_line(
	const struct bc_entry *entries, size_t count, const struct reference *r, struct agreed *a)
{
	static char events[8192];
	size_t n = 0;

	a->lines++;
	if (entries[0].kind == BC_ENTRY_LINE) {
		check_kept(&entries[0], r, a);
		return;
	}
	if (entries[0].kind == BC_ENTRY_REGISTER) {
		if (r->events_bytes != 0)
			check_register(&entries[0], r);
		a->registers += r->events_bytes != 0;
		a->unknown += r->events_bytes == 0;
		return;
	}
	for (size_t i = 0; i < count; i++)
		n += event_of(events + n, sizeof(events) - n, &entries[i]);
	a->instructions += entries[0].kind == BC_ENTRY_INSTRUCTION;
	a->references += entries[0].kind == BC_ENTRY_REFERENCE ? (unsigned)count : 0;
	if (n != r->events_bytes || memcmp(events, r->events, n) != 0)
		print_message("%.*s%.*s", (int)n, events, (int)r->events_bytes, r->events);
	assert_int_equal(n, r->events_bytes);
	assert_memory_equal(events, r->events, n);
}

/* Undoes the conversion of times to the unit of the first line: ps in this file, so nothing is
 * lost. A line without a time has that of the line before it; *factor is that line's. */
static void restore_time(struct bc_entry *entries, size_t count, uint64_t *factor)
{
	uint64_t written = strtoull(entries[0].line.at, NULL, 10);

	if (entries[0].tick == written)
		*factor = 1;
	else if (entries[0].tick == written * 1000)
		*factor = 1000;
	for (size_t i = 0; i < count; i++)
		entries[i].tick /= *factor;
}

TEST(events_match_those_of_arms_parser)
{
	size_t n;
	size_t reference_n;
	char *text = file_read(DATA "parsertest.txt", &n);
	char *references = file_read(DATA "parsertest.ref", &reference_n);
	const char *at = references;
	struct agreed a = {.lines = 0};
	uint64_t factor = 1;
	struct reference r;

	struct lines l = lines_read(text, n, 1024);
	assert_int_equal(l.end, BC_PARSE_DONE);
	lines_check(&l);
	for (size_t i = 0; i < l.count;) {
		const struct bc_text *line = &l.entries[i].line;
		size_t count = 1;
		while (i + count < l.count && l.entries[i + count].is_continued)
			count++;
		if (line->bytes != 0 && line->at[0] != '#') {
			assert_true(reference_next(&at, &r));
			assert_int_equal(line->bytes, r.line_bytes);
			assert_memory_equal(line->at, r.line, line->bytes);
			restore_time(&l.entries[i], count, &factor);
			check_line(&l.entries[i], count, &r, &a);
		} else {
			assert_int_equal(l.entries[i].kind, BC_ENTRY_LINE);
		}
		i += count;
	}
	assert_false(reference_next(&at, &r));
	print_message(
		"  | %u lines agree: %u instructions, %u accesses, %u register writes; %u "
		"registers unknown to Arm's parser, %u kept lines are text for it, %u nothing\n",
		a.lines, a.instructions, a.references, a.registers, a.unknown, a.texts, a.silent);
	assert_int_equal(a.lines, 179);
	assert_int_equal(a.instructions, 36);
	assert_int_equal(a.references, 46);
	assert_int_equal(a.registers, 72);
	assert_int_equal(a.unknown, 5);
	assert_int_equal(a.texts, 20);
	lines_free(&l);
	free(text);
	free(references);
}

/* Prints each modelled line from its fields. */
static void check_fields(const char *path, unsigned lines, unsigned modelled)
{
	static char out[BC_PRINT_MAX];
	unsigned kinds[BC_ENTRY_KINDS] = {0};
	unsigned same = 0;
	size_t n;
	char *text = file_read(path, &n);
	struct lines l = lines_read(text, n, 1024);

	assert_int_equal(l.end, BC_PARSE_DONE);
	lines_check(&l);
	assert_int_equal(l.count, lines);
	for (size_t i = 0; i < l.count; i++) {
		const struct bc_entry *e = &l.entries[i];
		if (e->kind == BC_ENTRY_LINE)
			continue;
		char *end = bc_tarmac_print_fields(out, e, e->tick);
		assert_non_null(end);
		assert_int_equal(end - out, e->line.bytes + 1);
		assert_memory_equal(out, e->line.at, e->line.bytes + 1);
		kinds[e->kind]++;
		same++;
	}
	print_message(
		"  | %s: %u lines, %u printed unchanged from their fields: %u instructions, %u "
		"accesses, %u register writes\n",
		strrchr(path, '/') + 1, lines, same, kinds[BC_ENTRY_INSTRUCTION],
		kinds[BC_ENTRY_REFERENCE], kinds[BC_ENTRY_REGISTER]);
	assert_int_equal(same, modelled);
	lines_free(&l);
	free(text);
}

TEST(lines_of_a_64_bit_model_are_reproduced_from_their_fields)
{
	check_fields(DATA "quicksort.tarmac", 4322, 4306);
}

TEST(lines_of_a_32_bit_model_are_reproduced_from_their_fields)
{
	check_fields(DATA "calltest32.tarmac", 280, 276);
}
