#include "formats/base/suggest.h"

#include <stdbool.h>
#include <string.h>

/* At most this many edits make a typing error. */
#define EDITS_MAX 2u

struct bc_suggestion bc_suggestion_start(const char *word)
{
	struct bc_suggestion s = {.nearest = NULL, .edits = EDITS_MAX + 1};
	size_t n = strlen(word);

	if (n <= BC_SUGGESTION_BYTES)
		memcpy(s.word, word, n + 1);
	return s;
}

/* The Levenshtein distance of two words: the number of letters to insert, delete or replace. Only
 * one row of the table is kept. */
static size_t edit_distance(const char *known, const char word[BC_SUGGESTION_BYTES + 1])
{
	size_t row[BC_SUGGESTION_BYTES + 1];
	size_t n = strlen(word);

	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 0; known[i] != '\0'; i++) {
		size_t corner = row[0];
		row[0] = i + 1;
		for (size_t j = 0; j < n; j++) {
			size_t best = corner + (known[i] != word[j]);
			best = row[j] + 1 < best ? row[j] + 1 : best;
			best = row[j + 1] + 1 < best ? row[j + 1] + 1 : best;
			corner = row[j + 1];
			row[j + 1] = best;
		}
	}
	return row[n];
}

void bc_suggestion_add(struct bc_suggestion *s, const char *known, const char *meaning)
{
	size_t n = strlen(s->word);

	if (n == 0)
		return;
	bool is_prefix = n > 1 && strncmp(s->word, known, n) == 0;
	size_t edits = is_prefix ? 0 : edit_distance(known, s->word);
	/* Not similar: half of the letters differ, and the first one does too. */
	if (edits >= s->edits || (2 * edits >= n && s->word[0] != known[0]))
		return;
	s->edits = edits;
	s->nearest = meaning;
}
