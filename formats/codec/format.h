/* The table of formats: what each can hold, and its parser and printer. Their names are in
 * formats/base/format_id.h. docs/formats.md describes the formats and has the conversion matrix. */
#ifndef BC_FORMATS_CODEC_FORMAT_H
#define BC_FORMATS_CODEC_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/format_id.h"
#include "formats/trace/entry.h"

struct bc_parser;
struct bc_printer;

struct bc_format_info {
	const char *summary; /* a short phrase for lists */
	bool is_text;
	bool can_read;
	bool can_write;
	const struct bc_parser *parser;   /* NULL: not parsed line by line or record by record */
	const struct bc_printer *printer; /* NULL: not printed entry by entry */
	bc_traits traits;        /* traits (formats/trace/entry.h) that it has a place for */
	bc_traits lossy_traits;  /* traits that individual entries may still lose */
	bc_traits needed_traits; /* BC_TRAIT_SIZE: it cannot hold references without a size */
	unsigned read_options;   /* BC_OPTION_* (formats/base/format_id.h) */
	unsigned write_options;
};

/* Never NULL. The entry of BC_FORMAT_UNKNOWN can neither be read nor written. */
const struct bc_format_info *bc_format_info(enum bc_format format);

/* The parser of a format, with the layout that the user gives or NULL; NULL: it has none. */
const struct bc_parser *bc_format_parser(enum bc_format format, const char *layout);

/* Sets the options that follow the name of a format to be read or written; NULL: none. Returns
 * false with an error message. */
bool bc_format_read_options(enum bc_format format, bool is_output,
	struct bc_format_options *options, const char *text, char *err, size_t errlen);

/* How well one format converts to another. */
enum bc_conversion {
	BC_CONVERSION_LOSSLESS, /* everything is kept */
	BC_CONVERSION_LOSSY,    /* some traits are lost */
	BC_CONVERSION_REFUSED,  /* nothing could be kept, or the target cannot be written */
};

/* Sets *lost to the traits of `from` that `to` cannot hold. */
enum bc_conversion bc_format_conversion(enum bc_format from, enum bc_format to, uint32_t *lost);

/* The same for a trace with these traits. Reading options may have added traits to its format's. */
enum bc_conversion bc_traits_conversion(bc_traits traits, enum bc_format to, uint32_t *lost);

/* Traits that `to` has a place for, but that individual entries may lose: times that are too far
 * apart, several references at one time, sizes that no bus cycle has. Losses are counted. */
bc_traits bc_format_lossy_traits(enum bc_format from, enum bc_format to);

/* Why the conversion is refused, as a clause. */
const char *bc_format_refusal(enum bc_format from, enum bc_format to);

/* Converts entries to what a target format can hold, and counts what it cannot.
 *
 * An entry of a kind that the target lacks becomes the references that it implies, or is left out.
 * A reference of a type that the target lacks becomes a read, a write or both, or is left out, as a
 * fetch always is. Reads and writes are no traits: a target that does not tell them apart loses
 * that uncounted. A field that the target lacks is dropped. Each loss of a trait is counted. */

struct bc_entry_converter {
	bc_traits traits; /* traits that the target can hold */
	bc_traits needed_traits;
	bool keep_invalid;
	uint64_t trait_losses[BC_TRAIT_BITS]; /* entries that lost this trait */
	uint64_t left_out[BC_TRAIT_BITS];     /* entries that were left out because of this trait */
	uint64_t changed_types[BC_REF_TYPES]; /* became bc_ref_type_plain() */
	uint64_t left_out_types[BC_REF_TYPES]; /* references left out because of their type */
	const struct bc_entry *at;             /* the rest of the batch */
	size_t count;
	const struct bc_entry *lost; /* the first entry that lost something, or NULL */
	bc_traits lost_traits;
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
