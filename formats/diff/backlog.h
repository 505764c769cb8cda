/* A queue of entries, copied with their strings, in bounded memory. formats/diff/match.h searches
 * it to realign the rows after a difference. */
#ifndef BC_FORMATS_DIFF_BACKLOG_H
#define BC_FORMATS_DIFF_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/trace/entry.h"

/* The queue is entries[begin, end), and the same range of the other arrays. */
struct bc_backlog {
	size_t begin;
	size_t end;
	size_t limit; /* maximum number of entries */
	size_t room;
	struct bc_entry *entries; /* the owner of the queue may modify them */
	uint64_t *hashes;         /* formats/diff/compare.h */
	uint64_t *ticks;          /* in the form that formats/diff/align.h uses */
	bool *is_taken;           /* for use by the owner; false for a new entry */
	size_t *text_at;          /* offset of an entry's strings in `text` */
	char *text;
	size_t text_end;
	size_t text_room;
};

/* Allocates memory for up to `limit` entries (not 0): about 500 bytes each, plus 1 MiB. Returns 0,
 * or -ENOMEM with nothing to free. */
int bc_backlog_init(struct bc_backlog *backlog, size_t limit) BC_MUST_CHECK;
void bc_backlog_free(struct bc_backlog *backlog);

static inline size_t bc_backlog_count(const struct bc_backlog *backlog)
{
	return backlog->end - backlog->begin;
}

/* Appends a copy of an entry, with the hash of `fields`. The verbatim line of an entry with fields
 * is not copied. Returns false and changes nothing if there is no room for the entry or its
 * strings. An empty queue always has room for one entry. */
bool bc_backlog_add(struct bc_backlog *backlog, const struct bc_entry *entry, uint64_t fields);

/* Removes the first n entries. Pointers to the others stay valid until the next
 * bc_backlog_add(). */
void bc_backlog_pop(struct bc_backlog *backlog, size_t n);

#endif
