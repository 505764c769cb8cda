#include "formats/stats/entry_counts.h"

#include <errno.h>

#include "formats/base/fast_parse.h"

static void count_gap(struct bc_gap_count *count, const struct bc_event *gap)
{
	count->gaps++;
	count->lost += gap->value;
	count->inexact += !gap->exact;
}

void bc_entry_counts_event(struct bc_entry_counts *c, const struct bc_event *event)
{
	c->marks += event->kind == BC_EVENT_MARK;
	c->triggers += event->kind == BC_EVENT_TRIGGER;
	if (event->kind != BC_EVENT_GAP)
		return;
	count_gap(&c->gaps, event);
	count_gap(&c->causes[event->cause < BC_GAP_CAUSES ? event->cause : 0], event);
}

static int count_uop(struct bc_entry_counts *c, const struct bc_uop *uop)
{
	c->loads += uop->access == 'L';
	c->stores += uop->access == 'S';
	c->taken += uop->branch == 'T';
	c->not_taken += uop->branch == 'N';
	c->flag_reads += uop->flags == 'R';
	c->flag_writes += uop->flags == 'W';
	int rc = bc_string_counter_add(&c->micros, uop->micro);
	if (rc != 0 || uop->step != 1)
		return rc;
	c->macro_ops++;
	return bc_string_counter_add(&c->macros, uop->macro);
}

static int count_instruction(struct bc_entry_counts *c, const struct bc_instruction *instruction)
{
	struct bc_text word = instruction->disassembly;

	c->effects[instruction->effect]++;
	if (instruction->set.bytes != 0 && bc_string_counter_add(&c->sets, instruction->set) != 0)
		return -ENOMEM;
	if (instruction->effect != BC_EFFECT_EXECUTED)
		return 0;
	while (word.bytes != 0 && bc_is_space(*word.at)) {
		word.at++;
		word.bytes--;
	}
	uint32_t bytes = 0;
	while (bytes < word.bytes && !bc_is_space(word.at[bytes]))
		bytes++;
	word.bytes = bytes;
	c->undecoded += bytes == 0;
	return bytes != 0 ? bc_string_counter_add(&c->mnemonics, word) : 0;
}

int bc_entry_counts_add(struct bc_entry_counts *c, const struct bc_entry *entry)
{
	c->kinds[entry->kind]++;
	switch ((enum bc_entry_kind)entry->kind) {
	case BC_ENTRY_INSTRUCTION:
		return count_instruction(c, &entry->instruction);
	case BC_ENTRY_UOP:
		return count_uop(c, &entry->uop);
	case BC_ENTRY_REGISTER:
		return bc_string_counter_add(&c->registers, entry->reg.name);
	case BC_ENTRY_KERNEL:
		return bc_string_counter_add(&c->tags, entry->kernel.tag);
	case BC_ENTRY_EVENT:
		bc_entry_counts_event(c, &entry->note.event);
		return 0;
	case BC_ENTRY_REFERENCE:
	case BC_ENTRY_LINE:
	case BC_ENTRY_KINDS:
		break;
	}
	return 0;
}

void bc_entry_counts_sort(struct bc_entry_counts *c)
{
	bc_string_counter_sort(&c->sets);
	bc_string_counter_sort(&c->mnemonics);
	bc_string_counter_sort(&c->macros);
	bc_string_counter_sort(&c->micros);
	bc_string_counter_sort(&c->registers);
	bc_string_counter_sort(&c->tags);
}

void bc_entry_counts_free(struct bc_entry_counts *c)
{
	bc_string_counter_free(&c->sets);
	bc_string_counter_free(&c->mnemonics);
	bc_string_counter_free(&c->macros);
	bc_string_counter_free(&c->micros);
	bc_string_counter_free(&c->registers);
	bc_string_counter_free(&c->tags);
}
