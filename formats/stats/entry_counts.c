#include "formats/stats/entry_counts.h"

#include <errno.h>

#include "formats/base/fast_parse.h"

static void count_gap(struct bc_gap_count *count, const struct bc_event *gap)
{
	count->gaps++;
	count->lost += gap->value;
	count->inexact += !gap->exact;
}

void bc_happenings_event(struct bc_happenings *h, const struct bc_event *event)
{
	h->marks += event->kind == BC_EVENT_MARK;
	h->triggers += event->kind == BC_EVENT_TRIGGER;
	if (event->kind != BC_EVENT_GAP)
		return;
	count_gap(&h->gaps, event);
	count_gap(&h->causes[event->cause < BC_GAP_CAUSES ? event->cause : 0], event);
}

static int count_uop(struct bc_happenings *h, const struct bc_uop *uop)
{
	h->loads += uop->access == 'L';
	h->stores += uop->access == 'S';
	h->taken += uop->branch == 'T';
	h->not_taken += uop->branch == 'N';
	h->flag_reads += uop->flags == 'R';
	h->flag_writes += uop->flags == 'W';
	int rc = bc_string_counter_add(&h->micros, uop->micro);
	if (rc != 0 || uop->step != 1)
		return rc;
	h->macro_ops++;
	return bc_string_counter_add(&h->macros, uop->macro);
}

static int count_instruction(struct bc_happenings *h, const struct bc_instruction *instruction)
{
	struct bc_text word = instruction->disassembly;

	h->effects[instruction->effect]++;
	if (instruction->set.bytes != 0 && bc_string_counter_add(&h->sets, instruction->set) != 0)
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
	h->undecoded += bytes == 0;
	return bytes != 0 ? bc_string_counter_add(&h->mnemonics, word) : 0;
}

int bc_happenings_entry(struct bc_happenings *h, const struct bc_entry *entry)
{
	h->kinds[entry->kind]++;
	switch ((enum bc_entry_kind)entry->kind) {
	case BC_ENTRY_INSTRUCTION:
		return count_instruction(h, &entry->instruction);
	case BC_ENTRY_UOP:
		return count_uop(h, &entry->uop);
	case BC_ENTRY_REGISTER:
		return bc_string_counter_add(&h->registers, entry->reg.name);
	case BC_ENTRY_KERNEL:
		return bc_string_counter_add(&h->tags, entry->kernel.tag);
	case BC_ENTRY_EVENT:
		bc_happenings_event(h, &entry->note.event);
		return 0;
	case BC_ENTRY_REFERENCE:
	case BC_ENTRY_LINE:
	case BC_ENTRY_KINDS:
		break;
	}
	return 0;
}

void bc_happenings_sort(struct bc_happenings *h)
{
	bc_string_counter_sort(&h->sets);
	bc_string_counter_sort(&h->mnemonics);
	bc_string_counter_sort(&h->macros);
	bc_string_counter_sort(&h->micros);
	bc_string_counter_sort(&h->registers);
	bc_string_counter_sort(&h->tags);
}

void bc_happenings_free(struct bc_happenings *h)
{
	bc_string_counter_free(&h->sets);
	bc_string_counter_free(&h->mnemonics);
	bc_string_counter_free(&h->macros);
	bc_string_counter_free(&h->micros);
	bc_string_counter_free(&h->registers);
	bc_string_counter_free(&h->tags);
}
