/* Converts entries to what a target format can hold, and counts what it cannot.
 *
 * An entry of a kind that the target lacks becomes the references that it implies, or is left out.
 * A reference of a type that the target lacks becomes a read, a write or a fetch, or is left out. A
 * field that the target lacks is dropped. Each loss is counted by trait. */
#ifndef BC_FORMATS_CODEC_ENTRY_CONVERT_H
#define BC_FORMATS_CODEC_ENTRY_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/format_id.h"
#include "formats/codec/format.h"
#include "formats/trace/entry.h"

struct bc_entry_converter {
	uint32_t holds; /* traits that the target can hold */
	uint32_t needs;
	bool keep_invalid;
	uint64_t reduced[BC_TRAIT_BITS];  /* entries that lost this trait */
	uint64_t left_out[BC_TRAIT_BITS]; /* entries that were left out because of this trait */
	const struct bc_entry *at;        /* the rest of the batch */
	size_t count;
	const struct bc_entry *lost; /* the first entry that lost something, or NULL */
	uint32_t lost_traits;
	struct bc_entry made[2 * BC_REFERENCES_MAX];
};

void bc_entry_converter_init(struct bc_entry_converter *converter, enum bc_format target,
	const struct bc_format_options *target_options);

/* Sets the batch to convert. The entries must stay valid until it is used up. */
void bc_entry_convert_batch(
	struct bc_entry_converter *converter, const struct bc_entry *entries, size_t count);

/* Returns the length of the next run of entries that the target can hold, or 0 when the batch is
 * used up. Sets converter->lost if an entry up to the end of this run lost something. */
size_t bc_entry_converter_next(struct bc_entry_converter *converter, const struct bc_entry **run);

#endif
