/* "did you mean": the known word that is most like one that isn't known.
 *
 *     struct bc_suggestion s = bc_suggestion_start("dmup");
 *     bc_suggestion_add(&s, "dump", "dump") ...   each known word, and what it means
 *     bc_suggestion_add(&s, "cat", "dump")
 *     s.nearest                                   what is meant; NULL: none is similar */
#ifndef BC_FORMATS_BASE_SUGGEST_H
#define BC_FORMATS_BASE_SUGGEST_H

#include <stddef.h>

/* Words that are longer are not compared. */
#define BC_SUGGESTION_BYTES 31u

struct bc_suggestion {
	char word[BC_SUGGESTION_BYTES + 1]; /* "": too long */
	const char *nearest;                /* what the most similar of the known words means */
	size_t edits;                       /* to get from the word to that one */
};

struct bc_suggestion bc_suggestion_start(const char *word);

/* The first of those that are equally similar wins. A known word that begins with the unknown one
 * is the most similar. Only `meaning` is kept. */
void bc_suggestion_add(struct bc_suggestion *suggestion, const char *known, const char *meaning);

#endif
