/* Printer interface: how a format's module turns entries into bytes.
 *
 * A printer only receives entries that its format can hold: formats/codec/format.h converts
 * the others or leaves them out, and counts what is lost. A printer ignores fields that its format
 * has no place for. It prints fields that the entry lacks as the format's value for unknown, or as
 * 0. Nothing is truncated: a value that is too large is an error. */
#ifndef BC_FORMATS_TRACE_PRINTER_H
#define BC_FORMATS_TRACE_PRINTER_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "formats/base/format_id.h"
#include "formats/trace/entry.h"

/* Maximum output for one entry, for the head and for the tail, in bytes: the longest line twice
 * (whole and as separate fields), each byte escaped in six, plus the rest. */
#define BC_PRINT_MAX (12 * (16u << 10) + 4096)

struct bc_print {
	const struct bc_entry *entries; /* the next one; advanced by print() */
	size_t count;                   /* entries left */
	const struct bc_moment *moment; /* gives ticks a time of day; NULL: unknown */
	char *out;                      /* bytes [used, capacity) are free */
	size_t used;
	size_t capacity;
	/* Traits that individual entries lost although the format has a place for them: counts per
	 * trait, the set of these traits, and the first such entry. See bc_print_lose(). */
	uint64_t *trait_losses; /* BC_TRAIT_BITS counts */
	uint32_t lost;
	const struct bc_entry *loser;
	uint64_t splits; /* entries that were written as several */
	/* print_run(): output after out[0, used) that is the same as bytes of the run, or 0. */
	const uint8_t *same;
	size_t same_bytes;
	/* Why entries[0] cannot be written: "address 0x123456789 doesn't fit in the 32 bits". */
	char err[160];
};

struct bc_printer {
	size_t state_bytes;
	/* The format holds everything, and what is printed of a record depends on it alone: the
	 * state only makes it faster. */
	bool is_by_record;
	/* Initializes a zeroed state for a new file; NULL if zeroes are enough. */
	void (*init)(void *state, const struct bc_format_options *options);
	/* Writes what comes before the first entry; NULL if nothing does. */
	void (*head)(void *state, struct bc_print *print);
	/* Prints entries until none are left or fewer than BC_PRINT_MAX bytes are free. Returns 0;
	 * -ERANGE if entries[0] cannot be written, or -ENOMEM, both with `err` set. */
	int (*print)(void *state, struct bc_print *print);
	/* Prints the first records of a run, all that it can, as the converter and print() would
	 * print their entries, and advances the run. Leaves to them records that the format can't
	 * hold, and any others. Counts losses without setting `lost` and `loser`. NULL: the format
	 * has no faster way for runs. */
	void (*print_run)(void *state, struct bc_print *print, struct bc_record_run *run);
	/* Writes what comes after the last entry, including anything held back; NULL if nothing
	 * does. Call until it returns true. */
	bool (*tail)(void *state, struct bc_print *print);
	/* Frees what `init` allocated; NULL if nothing. */
	void (*free)(void *state);
	/* True if a file begins as all of the format do. `what` describes it if it can't be read.
	 */
	bool (*begins)(const uint8_t *head, size_t bytes);
	const char *what;
};

/* Allocates and initializes a state for a file, or NULL. Call `free` if not NULL, then free(). */
static inline void *bc_printer_start(
	const struct bc_printer *printer, const struct bc_format_options *options)
{
	void *state = calloc(1, printer->state_bytes + 1);

	if (state != NULL && printer->init != NULL)
		printer->init(state, options);
	return state;
}

/* Says why entries[0] cannot be written, as printf() does. Its value is -ERANGE. */
#define BC_REFUSE(print, ...) (snprintf((print)->err, sizeof((print)->err), __VA_ARGS__), -ERANGE)

static inline void bc_print_lose(struct bc_print *print, uint32_t trait)
{
	print->trait_losses[__builtin_ctz(trait)]++;
	if (print->lost == 0)
		print->loser = print->entries;
	print->lost |= trait;
}

static inline bool bc_print_has_room(const struct bc_print *print)
{
	return print->capacity - print->used >= BC_PRINT_MAX;
}

#endif
