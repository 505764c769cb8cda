#include "formats/diff/backlog.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "formats/diff/align.h"
#include "formats/diff/compare.h"
#include "formats/trace/parser.h"

/* The strings of an entry come from one line or from a mark. */
#define TEXT_BASE (1u << 20)
#define TEXT_EACH 96u
#define TEXTS_MAX 4

_Static_assert(TEXT_BASE >= 2 * BC_LINE_MAX, "the strings of the longest line fit");

int bc_backlog_init(struct bc_backlog *b, size_t limit)
{
	size_t room = 2 * limit;

	assert(limit != 0);
	*b = (struct bc_backlog){
		.limit = limit, .room = room, .text_room = TEXT_BASE + limit * TEXT_EACH};
	b->entries = calloc(room, sizeof(*b->entries));
	b->hashes = calloc(room, sizeof(*b->hashes));
	b->ticks = calloc(room, sizeof(*b->ticks));
	b->is_taken = calloc(room, sizeof(*b->is_taken));
	b->text_at = calloc(room, sizeof(*b->text_at));
	b->text = malloc(b->text_room);
	if (b->entries != NULL && b->hashes != NULL && b->ticks != NULL && b->is_taken != NULL &&
		b->text_at != NULL && b->text != NULL)
		return 0;
	bc_backlog_free(b);
	return -ENOMEM;
}

void bc_backlog_free(struct bc_backlog *b)
{
	free(b->entries);
	free(b->hashes);
	free(b->ticks);
	free(b->is_taken);
	free(b->text_at);
	free(b->text);
	*b = (struct bc_backlog){0};
}

/* Collects pointers to the strings of an entry. Returns their number. */
static size_t texts_of(struct bc_entry *entry, struct bc_text *texts[TEXTS_MAX])
{
	switch (entry->kind) {
	case BC_ENTRY_INSTRUCTION:
		texts[0] = &entry->instruction.set;
		texts[1] = &entry->instruction.mode;
		texts[2] = &entry->instruction.disassembly;
		return 3;
	case BC_ENTRY_UOP:
		texts[0] = &entry->uop.macro;
		texts[1] = &entry->uop.micro;
		return 2;
	case BC_ENTRY_REGISTER:
		texts[0] = &entry->reg.name;
		texts[1] = &entry->reg.value;
		return 2;
	case BC_ENTRY_KERNEL:
		texts[0] = &entry->kernel.tag;
		texts[1] = &entry->kernel.rest;
		return 2;
	case BC_ENTRY_EVENT:
		texts[0] = &entry->note.text;
		return 1;
	case BC_ENTRY_LINE:
		texts[0] = &entry->line;
		return 1;
	default:
		return 0;
	}
}

/* Moves everything to the start of the buffers. */
static void compact(struct bc_backlog *b)
{
	size_t n = bc_backlog_count(b);
	size_t shift = n != 0 ? b->text_at[b->begin] : b->text_end;

	memmove(b->entries, b->entries + b->begin, n * sizeof(*b->entries));
	memmove(b->hashes, b->hashes + b->begin, n * sizeof(*b->hashes));
	memmove(b->ticks, b->ticks + b->begin, n * sizeof(*b->ticks));
	memmove(b->is_taken, b->is_taken + b->begin, n * sizeof(*b->is_taken));
	memmove(b->text_at, b->text_at + b->begin, n * sizeof(*b->text_at));
	memmove(b->text, b->text + shift, b->text_end - shift);
	b->begin = 0;
	b->end = n;
	b->text_end -= shift;
	for (size_t i = 0; i < n; i++) {
		struct bc_text *texts[TEXTS_MAX];
		size_t count = texts_of(&b->entries[i], texts);
		for (size_t t = 0; t < count; t++)
			texts[t]->at -= texts[t]->bytes != 0 ? shift : 0;
		b->text_at[i] -= shift;
	}
}

bool bc_backlog_add(struct bc_backlog *b, const struct bc_entry *entry, uint64_t fields)
{
	struct bc_entry copy = *entry;
	struct bc_text *texts[TEXTS_MAX];
	size_t count = texts_of(&copy, texts);
	size_t need = 0;

	for (size_t t = 0; t < count; t++)
		need += texts[t]->bytes;
	if (bc_backlog_count(b) == b->limit)
		return false;
	if (b->end == b->room || b->text_end + need > b->text_room)
		compact(b);
	if (b->text_end + need > b->text_room)
		return false;
	if (copy.kind != BC_ENTRY_LINE)
		copy.line = (struct bc_text){.at = NULL};
	b->text_at[b->end] = b->text_end;
	for (size_t t = 0; t < count; t++) {
		if (texts[t]->bytes == 0)
			continue;
		memcpy(b->text + b->text_end, texts[t]->at, texts[t]->bytes);
		texts[t]->at = b->text + b->text_end;
		b->text_end += texts[t]->bytes;
	}
	b->entries[b->end] = copy;
	b->hashes[b->end] = bc_compare_hash(&copy, fields);
	b->ticks[b->end] = (copy.has & BC_HAS_TIME) != 0 ? copy.tick : BC_TICK_NONE;
	b->is_taken[b->end] = false;
	b->end++;
	return true;
}

void bc_backlog_pop(struct bc_backlog *b, size_t n)
{
	assert(n <= bc_backlog_count(b));
	b->begin += n;
	if (b->begin != b->end)
		return;
	b->begin = b->end = 0;
	b->text_end = 0;
}
