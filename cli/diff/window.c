/* A window: the next entries of a trace, kept while they are aligned.
 *
 * Entries [begin, end) of parallel arrays are the window; their strings are copied to `text`, in
 * the same order. Passed entries are only skipped; append_entry() moves the rest to the start when
 * it reaches the end of an array (compact_window()), which a quarter of spare room makes rare.
 * While the window is empty, the owner reads directly from the source's run.
 *
 * Invariant: the window, then `run` (of `left` entries), then what the source returns next, are the
 * rest of the trace. */
#include "cli/diff/match_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "formats/bus/record.h"
#include "formats/trace/parser.h"

/* The strings of an entry come from one line or from a mark. */
#define TEXT_BASE (1u << 20)
#define TEXT_EACH 96u
#define TEXTS_MAX 4

_Static_assert(TEXT_BASE >= 2 * BC_LINE_MAX, "the strings of the longest line fit");

int bc_window_init(
	struct bc_window *w, const struct bc_match_source *source, uint64_t fields, size_t limit)
{
	size_t room = limit + limit / 4 + 1; /* moving what is kept is then rare enough */

	assert(limit != 0);
	*w = (struct bc_window){.source = *source,
		.fields = fields,
		.limit = limit,
		.room = room,
		.text_room = TEXT_BASE + limit * TEXT_EACH};
	w->entries = calloc(room, sizeof(*w->entries));
	w->keys = calloc(room, sizeof(*w->keys));
	w->is_taken = calloc(room, sizeof(*w->is_taken));
	w->text_at = calloc(room, sizeof(*w->text_at));
	w->text = malloc(w->text_room);
	if (w->entries != NULL && w->keys != NULL && w->is_taken != NULL && w->text_at != NULL &&
		w->text != NULL)
		return 0;
	bc_window_free(w);
	return -ENOMEM;
}

void bc_window_free(struct bc_window *w)
{
	free(w->entries);
	free(w->keys);
	free(w->is_taken);
	free(w->text_at);
	free(w->text);
	*w = (struct bc_window){0};
}

/* Collects pointers to the strings of an entry. Returns their number. */
static size_t texts_of(struct bc_entry *entry, struct bc_text *texts[TEXTS_MAX])
{
#define AT(member) offsetof(struct bc_entry, member)
	static const uint16_t at[BC_ENTRY_KINDS][TEXTS_MAX] = {
		[BC_ENTRY_INSTRUCTION] = {AT(instruction.set), AT(instruction.mode),
			AT(instruction.disassembly)},
		[BC_ENTRY_UOP] = {AT(uop.macro), AT(uop.micro)},
		[BC_ENTRY_REGISTER] = {AT(reg.name), AT(reg.value)},
		[BC_ENTRY_KERNEL] = {AT(kernel.tag), AT(kernel.rest)},
		[BC_ENTRY_EVENT] = {AT(note.text)},
		[BC_ENTRY_LINE] = {AT(line), AT(words)},
	};
	size_t n = 0;

	if ((entry->traits & BC_TRAIT_ATTRIB) != 0)
		texts[n++] = &entry->access.attrib;
	if ((entry->traits & BC_TRAIT_SECURITY) != 0)
		texts[n++] = &entry->access.security;
	for (size_t i = 0; i < TEXTS_MAX && at[entry->kind][i] != 0; i++)
		texts[n++] = (struct bc_text *)((char *)entry + at[entry->kind][i]);
	return n;
}

/* Moves the window to the start of the buffers. */
static void compact_window(struct bc_window *w)
{
	size_t n = bc_window_count(w);
	size_t shift = n != 0 ? w->text_at[w->begin] : w->text_end;

	memmove(w->entries, w->entries + w->begin, n * sizeof(*w->entries));
	memmove(w->keys, w->keys + w->begin, n * sizeof(*w->keys));
	memmove(w->is_taken, w->is_taken + w->begin, n * sizeof(*w->is_taken));
	memmove(w->text_at, w->text_at + w->begin, n * sizeof(*w->text_at));
	memmove(w->text, w->text + shift, w->text_end - shift);
	w->begin = 0;
	w->end = n;
	w->text_end -= shift;
	for (size_t i = 0; i < n; i++) {
		struct bc_text *texts[TEXTS_MAX];
		size_t count = texts_of(&w->entries[i], texts);
		for (size_t t = 0; t < count; t++)
			texts[t]->at -= texts[t]->bytes != 0 ? shift : 0;
		w->text_at[i] -= shift;
	}
}

/* Appends a copy of an entry, without the verbatim line of one that has fields. Returns false and
 * changes nothing if there is no room. An empty window has room for any entry. */
static bool append_entry(struct bc_window *w, const struct bc_entry *entry)
{
	struct bc_entry copy = *entry;
	struct bc_text *texts[TEXTS_MAX];
	size_t count = texts_of(&copy, texts);
	size_t need = 0;

	for (size_t t = 0; t < count; t++)
		need += texts[t]->bytes;
	if (w->end == w->room || w->text_end + need > w->text_room)
		compact_window(w);
	if (w->text_end + need > w->text_room)
		return false;
	if (copy.kind != BC_ENTRY_LINE)
		copy.line = (struct bc_text){.at = NULL};
	w->text_at[w->end] = w->text_end;
	for (size_t t = 0; t < count; t++) {
		if (texts[t]->bytes == 0)
			continue;
		memcpy(w->text + w->text_end, texts[t]->at, texts[t]->bytes);
		texts[t]->at = w->text + w->text_end;
		w->text_end += texts[t]->bytes;
	}
	w->entries[w->end] = copy;
	w->keys[w->end] = bc_compare_hash(&copy, w->fields);
	w->is_taken[w->end] = false;
	w->end++;
	return true;
}

/* Gets more entries when the last ones are used up. */
static void refill_run(struct bc_window *w)
{
	w->left = w->source.next(w->source.context, &w->run);
	w->is_over = w->left == 0;
}

size_t bc_window_span(struct bc_window *w, const struct bc_entry **span)
{
	size_t held = bc_window_count(w);

	*span = w->entries + w->begin;
	if (held != 0)
		return held;
	if (w->left == 0 && !w->is_over)
		refill_run(w);
	*span = w->run;
	return w->left;
}

void bc_window_hold(struct bc_window *w, size_t need)
{
	need = need < w->limit ? need : w->limit;
	/* One entry more is looked at, so that the end is known. */
	while (bc_window_count(w) < need || (w->left == 0 && !w->is_over)) {
		if (w->left == 0) {
			if (w->is_over)
				return;
			refill_run(w);
			continue;
		}
		if (!append_entry(w, w->run))
			return;
		w->run++;
		w->left--;
	}
}

static struct bc_predecessor predecessor_of(const struct bc_entry *entry)
{
	return (struct bc_predecessor){.has_time = (entry->traits & BC_TRAIT_TIME) != 0,
		.tick = entry->tick,
		.epoch = entry->epoch};
}

void bc_window_pass(struct bc_window *w, size_t n)
{
	if (n == 0)
		return;
	w->position += n;
	if (bc_window_count(w) == 0) {
		w->last = predecessor_of(&w->run[n - 1]);
		w->run += n;
		w->left -= n;
		return;
	}
	assert(n <= bc_window_count(w));
	w->last = predecessor_of(&w->entries[w->begin + n - 1]);
	w->begin += n;
	if (w->begin == w->end)
		w->begin = w->end = w->text_end = 0;
}

void bc_window_skip(struct bc_window *w, size_t n)
{
	assert(bc_window_count(w) == 0 && n > w->left);
	w->position += n;
	w->left = 0;
}

struct bc_predecessor bc_window_before(const struct bc_window *w, size_t i)
{
	return i == 0 ? w->last : predecessor_of(&w->entries[w->begin + i - 1]);
}

void bc_window_timed_keys(
	const struct bc_window *w, size_t n, bool by_delta, uint64_t skew, uint64_t *keys)
{
	struct bc_predecessor before = w->last;

	for (size_t i = 0; i < n; i++) {
		const struct bc_entry *entry = &w->entries[w->begin + i];
		bool is_known =
			(entry->traits & BC_TRAIT_TIME) != 0 &&
			(!by_delta || (before.has_time && before.epoch == entry->epoch &&
					      !(entry->has_delta && entry->delta == BC_TIME_NONE)));
		uint64_t time = !is_known  ? UINT64_MAX
				: by_delta ? entry->tick - before.tick
					   : entry->tick + skew;
		keys[i] = (w->keys[w->begin + i] ^ time) * UINT64_C(0x9E3779B97F4A7C15) ^ time >> 7;
		before = predecessor_of(entry);
	}
}
