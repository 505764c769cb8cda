/* Entries that are kept for a while: owned copies of what a reader gave, texts included, in bounded
 * memory. formats/diff/match.h looks for a way on among them. */
#ifndef BC_FORMATS_DIFF_BACKLOG_H
#define BC_FORMATS_DIFF_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/trace/entry.h"

/* The entries kept are entries[begin, end), and so for the other arrays. */
struct bc_backlog {
	size_t begin;
	size_t end;
	size_t limit; /* so many at most */
	size_t room;
	struct bc_entry *entries; /* writable by who owns the backlog */
	uint64_t *hashes;         /* formats/diff/compare.h */
	uint64_t *ticks;          /* as formats/diff/align.h wants them */
	bool *is_taken;           /* the owner's; false of a new entry */
	size_t *text_at;          /* where an entry's texts begin in `text` */
	char *text;
	size_t text_end;
	size_t text_room;
};

/* Takes the memory for up to `limit` entries (not 0): about 500 bytes each, and 1 MiB. Returns 0 or
 * -ENOMEM, with nothing to free. */
int bc_backlog_init(struct bc_backlog *backlog, size_t limit) BC_MUST_CHECK;
void bc_backlog_free(struct bc_backlog *backlog);

static inline size_t bc_backlog_count(const struct bc_backlog *backlog)
{
	return backlog->end - backlog->begin;
}

/* Copies an entry in behind the others, with the hash of its `fields`; a whole line that stands
 * beside an entry's fields is not kept. Returns false, and changes nothing, when there is no room
 * for it, be it of entries or of text; one entry always finds room in an empty backlog. */
bool bc_backlog_add(struct bc_backlog *backlog, const struct bc_entry *entry, uint64_t fields);

/* Takes the first n away. Pointers to the others stay valid until the next call of add. */
void bc_backlog_pop(struct bc_backlog *backlog, size_t n);

#endif
