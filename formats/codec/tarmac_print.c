/* Prints entries as Tarmac.
 *
 * An entry read from Tarmac is printed as its original line, once for all entries of the line. In a
 * part of a trace, the lines before it may be missing: a time or processor that depends on them is
 * written out, and a line that continues another is printed from its fields. So is any entry of
 * another format, in the forms of ISPRAS Trace Matcher, with "cpu0" if it has a processor:
 *
 *   12 clk MR4 00008034 000029b4                 a reference
 *   12 clk MW4 00008034 xxxxxxxx                 with unknown data
 *   12 clk IT (7) 00008000 fa000000 A svc_s : BLX {pc}+8
 *   12 clk IT (00008000) fa000000 A svc_s : BLX {pc}+8      an instruction without an index
 *   12 clk R r0 0000ab34
 *
 * Ticks without a named unit are printed as "clk". In a trace without times, each entry takes one
 * tick. An address has eight digits, or sixteen if needed; a physical address has twelve, as in
 * Fast Models, and then eight bytes of data have a '_' in the middle. */
#include "formats/codec/codecs.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/fast_text.h"
#include "formats/codec/tarmac_line.h"

struct tarmac_printer {
	uint64_t ticks;  /* next tick for an entry without a time */
	uint64_t number; /* of the last line that was printed, with all of its entries */
	bool has_number;
	bool is_part;
};

static char *write_address(char *out, const struct bc_entry *entry)
{
	out = bc_write_hex_padded(out, entry->addr, entry->addr > UINT32_MAX ? 16 : 8);
	if ((entry->traits & BC_TRAIT_PHYS) == 0)
		return out;
	*out++ = ':';
	return bc_write_hex_padded(out, entry->phys, 12);
}

static char *write_time(char *out, const struct bc_entry *entry, uint64_t tick)
{
	out = bc_write_decimal(out, tick);
	*out++ = ' ';
	out = stpcpy(out, bc_unit_name(entry->unit != BC_UNIT_TICK ? entry->unit : BC_UNIT_CLK));
	*out++ = ' ';
	if ((entry->traits & BC_TRAIT_PROC) != 0) {
		out = stpcpy(out, "cpu");
		out = bc_write_decimal(out, entry->proc);
		*out++ = ' ';
	}
	return out;
}

static char *write_opcode(char *out, const struct bc_entry *entry)
{
	const struct bc_instruction *i = &entry->instruction;
	unsigned unknown = entry->size - 1 < 8 ? entry->size * 2 : 8;

	if (i->digits != 0)
		return bc_write_hex_padded(out, i->opcode, i->digits);
	memset(out, '-', unknown);
	return out + unknown;
}

static char *write_instruction(char *out, const struct bc_entry *entry)
{
	const struct bc_instruction *i = &entry->instruction;

	/* An address in parentheses is recognised by the instruction set after the opcode. */
	bool is_enclosed = !i->has_id && i->set.bytes != 0;

	out = stpcpy(out, i->effect == BC_EFFECT_SKIPPED ? "IS " : "IT ");
	if (i->has_id) {
		*out++ = '(';
		out = bc_write_decimal(out, i->id);
		out = stpcpy(out, ") ");
	}
	if (is_enclosed)
		*out++ = '(';
	out = write_address(out, entry);
	if (is_enclosed)
		*out++ = ')';
	*out++ = ' ';
	out = write_opcode(out, entry);
	if (i->set.bytes != 0) {
		*out++ = ' ';
		out = bc_write_text(out, i->set);
	}
	if (i->mode.bytes != 0) {
		*out++ = ' ';
		out = bc_write_text(out, i->mode);
	}
	out = stpcpy(out, " : ");
	return bc_write_text(out, i->disassembly);
}

/* Attributes start with an underscore if the word would have eight letters, the last the bus. */
static char *write_attrib(char *out, const char *word, const struct bc_entry *entry)
{
	if ((entry->traits & BC_TRAIT_ATTRIB) == 0)
		return out;
	if (out - word + entry->access.attrib.bytes == 8)
		*out++ = '_';
	return bc_write_text(out, entry->access.attrib);
}

static char *write_reference(char *out, const struct bc_entry *entry)
{
	bool is_known = (entry->traits & BC_TRAIT_DATA) != 0 && entry->size <= 8;
	const char *word = out;

	*out++ = 'M';
	*out++ = bc_ref_type_plain(entry->type) == BC_REQ_MEMWRITE ? 'W' : 'R';
	out = bc_write_decimal(out, entry->size);
	out = write_attrib(out, word, entry);
	*out++ = ' ';
	out = write_address(out, entry);
	if ((entry->traits & BC_TRAIT_SECURITY) != 0) {
		*out++ = '_';
		out = bc_write_text(out, entry->access.security);
	}
	*out++ = ' ';
	if (!is_known) {
		memset(out, 'x', (size_t)entry->size * 2);
		return out + (size_t)entry->size * 2;
	}
	if ((entry->traits & BC_TRAIT_PHYS) != 0 && entry->size == 8) {
		out = bc_write_hex32(out, (uint32_t)(entry->data >> 32));
		*out++ = '_';
		return bc_write_hex32(out, (uint32_t)entry->data);
	}
	/* The size determines which bytes of the data are valid. */
	unsigned unused = (8 - entry->size) * 8;
	return bc_write_hex_padded(out, entry->data << unused >> unused, entry->size * 2);
}

static char *write_register(char *out, const struct bc_entry *entry)
{
	*out++ = 'R';
	*out++ = ' ';
	out = bc_write_text(out, entry->reg.name);
	*out++ = ' ';
	return bc_write_text(out, entry->reg.value);
}

char *bc_tarmac_print_fields(char *out, const struct bc_entry *entry, uint64_t tick)
{
	if (entry->kind == BC_ENTRY_REFERENCE &&
		(entry->size == 0 || entry->size > BC_TARMAC_ACCESS_MAX))
		return NULL;
	out = write_time(out, entry, tick);
	if (entry->kind == BC_ENTRY_INSTRUCTION)
		out = write_instruction(out, entry);
	else if (entry->kind == BC_ENTRY_REGISTER)
		out = write_register(out, entry);
	else
		out = write_reference(out, entry);
	*out++ = '\n';
	return out;
}

/* For a reference of unknown size, or larger than BC_TARMAC_ACCESS_MAX. */
static int refuse_size(struct bc_print *p, const struct bc_entry *entry)
{
	if (entry->size == 0)
		return BC_REFUSE(p, "its size is unknown, which a Tarmac memory access needs");
	return BC_REFUSE(p,
		"size of %" PRIu32
		" bytes exceeds the %u bytes supported for a Tarmac memory access",
		entry->size, BC_TARMAC_ACCESS_MAX);
}

/* Prints an entry of another format, or one whose line is no longer available. */
static int print_fields(struct tarmac_printer *t, struct bc_print *p, const struct bc_entry *entry)
{
	bool has_time = (entry->traits & BC_TRAIT_TIME) != 0;
	char *out = p->out + p->used;
	char *end = bc_tarmac_print_fields(out, entry, has_time ? entry->tick : t->ticks);

	if (end == NULL)
		return refuse_size(p, entry);
	t->ticks += !has_time;
	t->has_number = false;
	if (entry->kind == BC_ENTRY_REFERENCE && (entry->traits & BC_TRAIT_DATA) != 0 &&
		entry->size > 8)
		bc_print_lose(p, BC_TRAIT_DATA);
	p->used += (size_t)(end - out);
	return 0;
}

/* Prints an entry that has a line. */
static int print_line(struct tarmac_printer *t, struct bc_print *p, const struct bc_entry *entry)
{
	struct bc_text line = entry->line;
	char *out = p->out + p->used;

	if (t->is_part && entry->dependence == BC_LINE_CONTINUES)
		return print_fields(t, p, entry);
	if (t->is_part && entry->dependence == BC_LINE_NEEDS_PREFIX) {
		out = write_time(out, entry, entry->tick);
		line.at += entry->prefix;
		line.bytes -= entry->prefix;
	}
	out = bc_write_text(out, line);
	*out++ = '\n';
	p->used = (size_t)(out - p->out);
	t->number = entry->number;
	t->has_number = true;
	return 0;
}

static int print_tarmac(void *state, struct bc_print *p)
{
	struct tarmac_printer *t = state;

	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++) {
		const struct bc_entry *entry = p->entries;
		int rc = 0;
		if (entry->line.bytes != 0 || entry->kind == BC_ENTRY_LINE)
			rc = print_line(t, p, entry);
		else if (!entry->is_continued || !t->has_number || t->number != entry->number)
			rc = print_fields(t, p, entry);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static void start_tarmac(void *state, const struct bc_format_options *options)
{
	struct tarmac_printer *t = state;

	t->is_part = options->is_part;
}

const struct bc_printer bc_tarmac_printer = {
	.state_bytes = sizeof(struct tarmac_printer), .init = start_tarmac, .print = print_tarmac};
