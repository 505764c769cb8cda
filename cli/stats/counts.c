/* Counters of what `stats` lists: strings, entries by kind, and references by their fields.
 *
 * String counter: open addressing with linear probing, at most half full. A slot has the number of
 * a row; the strings lie one after the other in `text`, which moves as it grows, so a row has an
 * offset until bc_string_counter_sort() sets the pointers.
 *
 * Tally: BYU records are counted by the four bytes that hold type, size, memory type and processor,
 * which costs one increment a record; docs/stats.md. A slot's counts are added to the totals, field
 * by field, when another combination takes its place and at the end (bc_tally_settle()). */
#include "cli/stats/counts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "formats/base/fast_text.h"
#include "formats/base/grow.h"
#include "formats/bus/record.h"

#define FIRST_SLOTS 256u

/* Finds the slot of a string, or the free slot for it. */
static uint32_t *find_slot(const struct bc_string_counter *n, struct bc_text name)
{
	size_t mask = n->slot_count - 1;
	size_t at = XXH3_64bits(name.at, name.bytes) & mask;

	for (;; at = (at + 1) & mask) {
		uint32_t *slot = &n->slots[at];
		if (*slot == 0)
			return slot;
		const struct bc_string_count *row = &n->rows[*slot - 1];
		if (row->text.bytes == name.bytes &&
			memcmp(n->text + row->start, name.at, name.bytes) == 0)
			return slot;
	}
}

/* Doubles the slots, and allocates rows for half of them. */
static int grow_rows(struct bc_string_counter *n)
{
	size_t slot_count = n->slot_count != 0 ? n->slot_count * 2 : FIRST_SLOTS;
	uint32_t *slots = calloc(slot_count, sizeof(*slots));
	struct bc_string_count *rows = realloc(n->rows, slot_count / 2 * sizeof(*rows));

	if (rows != NULL)
		n->rows = rows;
	if (slots == NULL || rows == NULL) {
		free(slots);
		return -ENOMEM;
	}
	free(n->slots);
	n->slots = slots;
	n->slot_count = slot_count;
	for (size_t i = 0; i < n->count; i++) {
		struct bc_text name = {
			.at = n->text + n->rows[i].start, .bytes = n->rows[i].text.bytes};
		*find_slot(n, name) = (uint32_t)i + 1;
	}
	return 0;
}

int bc_string_counter_add(struct bc_string_counter *n, struct bc_text name)
{
	if (n->slot_count == 0 && grow_rows(n) != 0)
		return -ENOMEM;
	uint32_t *slot = find_slot(n, name);
	if (*slot != 0) {
		n->rows[*slot - 1].count++;
		n->total++;
		return 0;
	}
	if (n->count == BC_STRING_COUNTER_MAX ||
		name.bytes > BC_STRING_COUNTER_TEXT_MAX - n->text_used) {
		n->others++;
		n->total++;
		return 0;
	}
	if (n->count == n->slot_count / 2) {
		if (grow_rows(n) != 0)
			return -ENOMEM;
		slot = find_slot(n, name);
	}
	char *text = bc_grow(n->text, &n->text_capacity, n->text_used + name.bytes, 1);
	if (text == NULL)
		return -ENOMEM;
	n->text = text;
	memcpy(n->text + n->text_used, name.at, name.bytes);
	n->rows[n->count] = (struct bc_string_count){
		.text.bytes = name.bytes, .start = (uint32_t)n->text_used, .count = 1};
	n->text_used += name.bytes;
	n->total++;
	*slot = (uint32_t)++n->count;
	return 0;
}

static int compare_counts(const void *a, const void *b)
{
	const struct bc_string_count *x = a;
	const struct bc_string_count *y = b;
	uint32_t both = x->text.bytes < y->text.bytes ? x->text.bytes : y->text.bytes;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	int order = memcmp(x->text.at, y->text.at, both);
	if (order != 0)
		return order;
	return (x->text.bytes > y->text.bytes) - (x->text.bytes < y->text.bytes);
}

void bc_string_counter_sort(struct bc_string_counter *n)
{
	for (size_t i = 0; i < n->count; i++)
		n->rows[i].text.at = n->text + n->rows[i].start;
	if (n->count != 0)
		qsort(n->rows, n->count, sizeof(*n->rows), compare_counts);
}

char *bc_string_count_text(const struct bc_string_count *name)
{
	char *text = malloc(4 * (size_t)name->text.bytes + 1);
	char *out = text;

	if (text == NULL)
		return NULL;
	for (uint32_t i = 0; i < name->text.bytes; i++) {
		uint8_t byte = (uint8_t)name->text.at[i];
		if (byte > ' ' && byte < 0x7F && byte != '\\')
			*out++ = (char)byte;
		else
			out += sprintf(out, "\\x%02x", byte);
	}
	*out = '\0';
	return text;
}

void bc_string_counter_free(struct bc_string_counter *n)
{
	free(n->rows);
	free(n->text);
	free(n->slots);
	*n = (struct bc_string_counter){.rows = NULL};
}

/* ---- entry counts */

void bc_entry_counts_event(struct bc_entry_counts *c, const struct bc_event *event)
{
	c->marks += event->kind == BC_EVENT_MARK;
	c->triggers += event->kind == BC_EVENT_TRIGGER;
	if (event->kind == BC_EVENT_GAP)
		bc_losses_add_gap(&c->losses, event);
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

static void for_each_counter(
	struct bc_entry_counts *c, void (*call)(struct bc_string_counter *names))
{
	call(&c->sets);
	call(&c->mnemonics);
	call(&c->macros);
	call(&c->micros);
	call(&c->registers);
	call(&c->tags);
}

void bc_entry_counts_sort(struct bc_entry_counts *c)
{
	for_each_counter(c, bc_string_counter_sort);
}

void bc_entry_counts_free(struct bc_entry_counts *c)
{
	for_each_counter(c, bc_string_counter_free);
}

/* ---- tally */

/* A single counter cannot exceed the number of pending records. */
#define PENDING_MAX (1u << 31)

/* Adds the counts of a slot to the totals, field by field. */
static void settle_slot(struct bc_tally *t, struct bc_tally_slot *slot)
{
	uint32_t key = slot->key;
	uint64_t n = 0;

	for (unsigned i = 0; i < BC_TALLY_COUNTERS; i++) {
		n += slot->counts[i];
		slot->counts[i] = 0;
	}
	t->types[key & 255] += n;
	t->type_bytes[key & 255] += n * (key >> 8 & 255);
	t->bytes += n * (key >> 8 & 255);
	t->sizes[key >> 8 & 255] += n;
	t->attrs[key >> 16 & 255] += n;
	t->procs[key >> 24] += n;
}

void bc_tally_settle(struct bc_tally *t)
{
	if (t->pending == 0)
		return;
	for (unsigned slot = 0; slot < BC_TALLY_SLOTS; slot++)
		settle_slot(t, &t->slots[slot]);
	t->pending = 0;
}

static __attribute__((noinline, cold)) void reassign_slot(
	struct bc_tally *t, struct bc_tally_slot *slot, uint32_t key)
{
	settle_slot(t, slot);
	slot->key = key;
}

static inline void count_record(struct bc_tally *t, const uint8_t *record, unsigned i)
{
	uint32_t key = bc_le32(record + 4);
	struct bc_tally_slot *slot = &t->slots[(key * 0x9E3779B1u) >> 23];
	_Static_assert(BC_TALLY_SLOTS == 1u << 9, "the hash has nine bits");

	if (__builtin_expect(slot->key != key, 0))
		reassign_slot(t, slot, key);
	slot->counts[i]++;
}

static void count_records(struct bc_tally *t, const uint8_t *p, size_t n)
{
	_Static_assert(BC_TALLY_COUNTERS == 4, "four at a time");
	for (; n >= BC_TALLY_COUNTERS; n -= BC_TALLY_COUNTERS) {
		count_record(t, p, 0);
		count_record(t, p + BC_RECORD_BYTES, 1);
		count_record(t, p + (size_t)2 * BC_RECORD_BYTES, 2);
		count_record(t, p + (size_t)3 * BC_RECORD_BYTES, 3);
		p += (size_t)BC_TALLY_COUNTERS * BC_RECORD_BYTES;
	}
	for (; n != 0; n--, p += BC_RECORD_BYTES)
		count_record(t, p, 0);
}

void bc_tally_records(struct bc_tally *t, const uint8_t *records, size_t n)
{
	t->references += n;
	while (n != 0) {
		size_t part = n < PENDING_MAX - t->pending ? n : PENDING_MAX - t->pending;
		count_records(t, records, part);
		t->pending += (uint32_t)part;
		if (t->pending == PENDING_MAX)
			bc_tally_settle(t);
		records += part * BC_RECORD_BYTES;
		n -= part;
	}
}

static void count_large(struct bc_tally *t, uint32_t size)
{
	for (size_t i = 0; i < t->large_count; i++) {
		if (t->large[i].size != size)
			continue;
		t->large[i].references++;
		return;
	}
	if (t->large_count == BC_TALLY_LARGE) {
		t->large_others++;
		return;
	}
	t->large[t->large_count].size = size;
	t->large[t->large_count++].references = 1;
}

void bc_tally_reference(struct bc_tally *t, const struct bc_entry *reference)
{
	unsigned type = reference->type;

	t->references++;
	t->types[type]++;
	if (type == BC_REF_LETTER)
		t->letters[(uint8_t)reference->letter]++;
	if ((reference->traits & BC_TRAIT_SIZE) == 0) {
		t->without_size++;
	} else {
		t->bytes += reference->size;
		t->type_bytes[type] += reference->size;
		if (reference->size < 256)
			t->sizes[reference->size]++;
		else
			count_large(t, reference->size);
	}
	if ((reference->traits & BC_TRAIT_ATTR) != 0)
		t->attrs[reference->attr]++;
	else
		t->without_attr++;
	if ((reference->traits & BC_TRAIT_PROC) != 0)
		t->procs[reference->proc]++;
	else
		t->without_proc++;
}
