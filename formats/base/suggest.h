/* "did you mean": the known word that is most like one that isn't known.
 *
 *     struct bc_suggestion s = bc_suggestion_start("dmup");
 *     bc_suggestion_add(&s, "dump") ...           each known word
 *     s.nearest                                   NULL: none is similar */
#ifndef BC_FORMATS_BASE_SUGGEST_H
#define BC_FORMATS_BASE_SUGGEST_H

#include <stddef.h>

/* Words that are longer are not compared. */
#define BC_SUGGESTION_BYTES 31u

struct bc_suggestion {
	char word[BC_SUGGESTION_BYTES + 1]; /* "": too long */
	const char *nearest;                /* one of the known words */
	size_t edits;                       /* to get from one to the other */
};

struct bc_suggestion bc_suggestion_start(const char *word);

/* The first of those that are equally similar wins. A known word that begins with the unknown one
 * is the most similar. */
void bc_suggestion_add(struct bc_suggestion *suggestion, const char *known);

#endif
