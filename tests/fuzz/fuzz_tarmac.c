/* Fuzz target: lines of Tarmac. The texts of entries must point into the block, a line that is not
 * malformed must be printed verbatim, and entries printed from their fields must parse as the same
 * entries. */
#include <stdlib.h>
#include <string.h>

#include "formats/codec/codecs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_text(const char *begin, const char *end, struct bc_text text)
{
	if (text.bytes != 0)
		check(text.at >= begin && text.at + text.bytes <= end &&
			memchr(text.at, '\n', text.bytes) == NULL);
}

static void check_texts(const char *begin, const char *end, const struct bc_entry *e)
{
	check_text(begin, end, e->line);
	check(e->is_continued == (e->line.at == NULL));
	if (e->kind == BC_ENTRY_INSTRUCTION) {
		check_text(begin, end, e->instruction.set);
		check_text(begin, end, e->instruction.mode);
		check_text(begin, end, e->instruction.disassembly);
	} else if (e->kind == BC_ENTRY_REGISTER) {
		check_text(begin, end, e->reg.name);
		check_text(begin, end, e->reg.value);
	}
}

static bool is_same(struct bc_text a, struct bc_text b)
{
	return a.bytes == b.bytes && memcmp(a.at, b.at, a.bytes) == 0;
}

static enum bc_parse_end parse(struct bc_parse *p, void *state)
{
	p->count = 0;
	p->capacity = BC_LINE_ENTRIES + 3;
	return bc_tarmac_parser.parse(state, p);
}

/* An access or a register write that is printed from its fields must parse as the same entry. */
static void check_fields(const struct bc_entry *e)
{
	static char out[BC_PRINT_MAX + BC_PARSE_PADDING];
	static struct bc_entry entries[BC_LINE_ENTRIES + 3];
	static uint64_t state[8192];
	struct bc_format_options options = bc_format_options_default();
	char *end = bc_tarmac_print_fields(out, e, e->tick);

	check(end != NULL && (size_t)(end - out) <= BC_PRINT_MAX && end[-1] == '\n');
	check(bc_tarmac_parser.state_bytes <= sizeof(state));
	bc_tarmac_parser.init(state, &options);
	struct bc_parse p = {.at = out, .end = end, .number = 1, .entries = entries};
	check(parse(&p, state) == BC_PARSE_DONE && p.count == 1);
	check(entries[0].kind == e->kind && entries[0].addr == e->addr &&
		entries[0].size == e->size && entries[0].data == e->data &&
		entries[0].tick == e->tick && entries[0].proc == e->proc &&
		entries[0].traits == (e->traits | BC_TRAIT_TIME));
	if (e->kind == BC_ENTRY_REFERENCE)
		check(entries[0].type == e->type && entries[0].phys == e->phys &&
			((e->traits & BC_TRAIT_ATTRIB) == 0 ||
				is_same(e->access.attrib, entries[0].access.attrib)) &&
			((e->traits & BC_TRAIT_SECURITY) == 0 ||
				is_same(e->access.security, entries[0].access.security)));
}

/* Prints the entries and compares the output with the lines at `line`. Returns the end of these
 * lines. */
static const char *check_printed(
	void *printer, const struct bc_entry *entries, size_t count, const char *line)
{
	static char out[2 * BC_PRINT_MAX];
	uint64_t trait_losses[BC_TRAIT_BITS] = {0};
	struct bc_print p = {.entries = entries, .count = count, .trait_losses = trait_losses};

	while (p.count != 0) {
		p.out = out;
		p.used = 0;
		p.capacity = sizeof(out);
		check(bc_tarmac_printer.print(printer, &p) == 0);
		check(memcmp(out, line, p.used) == 0);
		line += p.used;
	}
	return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct bc_entry entries[BC_LINE_ENTRIES + 3];
	struct bc_format_options options = bc_format_options_default();
	char *block = malloc(size + 1 + BC_PARSE_PADDING);
	static uint64_t state[8192];
	void *printer = bc_printer_start(&bc_tarmac_printer, &options);
	enum bc_parse_end end;

	check(block != NULL && printer != NULL);
	memcpy(block, data, size);
	block[size] = '\n';
	memset(block + size + 1, 0xA5, BC_PARSE_PADDING);
	bc_tarmac_parser.init(state, &options);
	struct bc_parse p = {.at = block, .end = block + size + 1, .number = 1, .entries = entries};
	do {
		const char *begin = p.at;
		end = parse(&p, state);
		for (size_t i = 0; i < p.count; i++) {
			check_texts(block, p.end, &entries[i]);
			if (entries[i].kind == BC_ENTRY_REFERENCE ||
				entries[i].kind == BC_ENTRY_REGISTER)
				check_fields(&entries[i]);
		}
		check(check_printed(printer, entries, p.count, begin) == p.at);
		if (end == BC_PARSE_BAD) {
			check(p.bad >= p.at && p.bad < p.end && p.expected != NULL);
			p.at = (const char *)memchr(p.at, '\n', (size_t)(p.end - p.at)) + 1;
			p.number++;
		}
	} while (end != BC_PARSE_DONE);
	check(p.at == p.end);
	free(printer);
	free(block);
	return 0;
}
