/* How entries become one format's bytes: what its module gives to those who write traces.
 *
 * A printer is given only what its format holds: entries of its kinds, references of its types
 * (formats/reader/entry_convert.h sees to that, and counts what it leaves out). Fields that it has
 * no place for it passes over; fields that it has a place for and an entry lacks are printed as the
 * format's word for unknown, 0 where it has none. Nothing is ever cut to fit: what is too large is
 * an error that names the entry. */
#ifndef BC_FORMATS_TRACE_PRINTER_H
#define BC_FORMATS_TRACE_PRINTER_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "formats/base/options.h"
#include "formats/trace/entry.h"

/* One entry, or what stands before the first or behind the last, takes at most so many bytes: the
 * longest line, whole and in its parts, with each byte escaped in six, and the rest. */
#define BC_PRINT_MAX (12 * (16u << 10) + 4096)

struct bc_print {
	const struct bc_entry *entries; /* the first not printed yet; moved on */
	size_t count;                   /* how many are left */
	char *out;                      /* [used, room) is free */
	size_t used;
	size_t room;
	/* What of single entries the format could not hold after all, by trait: added to by the
	 * printer, which also sets the traits' bits in `lost`. */
	uint64_t *reduced; /* BC_TRAIT_BITS of them */
	uint32_t lost;
	/* A clause that says what of entries[0] doesn't fit: "its address 0x123456789 doesn't fit
	 * the 32 bits of a BYU record". */
	char err[160];
};

struct bc_printer {
	size_t state_bytes;
	/* Sets up a state, all zero, for a new file; NULL: zero will do. */
	void (*begin)(void *state, const struct bc_format_options *options);
	/* Writes what stands before the first entry; NULL: nothing does. */
	void (*head)(void *state, struct bc_print *print);
	/* Prints entries until all are or fewer than BC_PRINT_MAX bytes are free. Returns 0, or
	 * -ERANGE with `err` when entries[0] can't be written, or -ENOMEM likewise. */
	int (*print)(void *state, struct bc_print *print);
	/* Writes what stands behind the last entry, what was held back included; NULL: nothing
	 * does. Called until it returns true. */
	bool (*tail)(void *state, struct bc_print *print);
	/* Frees what `begin` took beside the state; NULL: nothing. */
	void (*end)(void *state);
};

/* Allocates and sets up a state for a new file. Call `end`, then free(). NULL: out of memory. */
static inline void *bc_printer_start(
	const struct bc_printer *printer, const struct bc_format_options *options)
{
	void *state = calloc(1, printer->state_bytes + 1);

	if (state != NULL && printer->begin != NULL)
		printer->begin(state, options);
	return state;
}

static inline void bc_print_lose(struct bc_print *print, uint32_t trait)
{
	print->reduced[__builtin_ctz(trait)]++;
	print->lost |= trait;
}

static inline bool bc_print_has_room(const struct bc_print *print)
{
	return print->room - print->used >= BC_PRINT_MAX;
}

#endif
