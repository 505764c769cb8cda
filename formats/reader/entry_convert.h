/* Fits entries to what a target format can hold, and counts what it can't.
 *
 * An entry of a kind that the target lacks becomes the references that it stands for, or is left
 * out; a reference of a type that it lacks becomes a read, a write or a fetch, or is left out; a
 * field that it lacks is counted. Each loss is counted by trait. */
#ifndef BC_FORMATS_READER_ENTRY_CONVERT_H
#define BC_FORMATS_READER_ENTRY_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/options.h"
#include "formats/codec/format.h"
#include "formats/trace/entry.h"

struct bc_entry_converter {
	uint32_t holds; /* of the target */
	uint32_t needs;
	bool keep_invalid;
	uint64_t reduced[BC_TRAIT_BITS];  /* entries that stand in the target without this trait */
	uint64_t left_out[BC_TRAIT_BITS]; /* entries that don't, for want of it */
	const struct bc_entry *at;        /* what is left of the batch */
	size_t count;
	const struct bc_entry *lost; /* the first entry of the run that lost something, or NULL */
	uint32_t lost_traits;
	struct bc_entry made[2 * BC_REFERENCES_MAX];
};

void bc_entry_converter_init(struct bc_entry_converter *fit, enum bc_format target,
	const struct bc_format_options *target_options);

/* Begins with a batch, which must stay until it is used up. */
void bc_entry_convert_batch(
	struct bc_entry_converter *fit, const struct bc_entry *entries, size_t count);

/* The next run of entries that the target can hold: returns its length, 0 when the batch is used
 * up. fit->lost is set when something of this run, or before it, was lost. */
size_t bc_entry_converter_next(struct bc_entry_converter *fit, const struct bc_entry **run);

#endif
