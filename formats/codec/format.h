/* The table of formats: what each can hold, and its parser and printer. Their names are in
 * formats/base/format_id.h. docs/formats.md describes the formats and has the conversion matrix. */
#ifndef BC_FORMATS_CODEC_FORMAT_H
#define BC_FORMATS_CODEC_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/format_id.h"

struct bc_parser;
struct bc_printer;

struct bc_format_info {
	const char *summary; /* a short phrase for lists */
	bool is_text;
	bool can_read;
	bool can_write;
	const struct bc_parser *parser;   /* NULL: not parsed line by line or record by record */
	const struct bc_printer *printer; /* NULL: not printed entry by entry */
	uint32_t holds;        /* traits (formats/trace/entry.h) that it has a place for */
	uint32_t may_lose;     /* traits that individual entries may still lose */
	uint32_t needs;        /* BC_HAS_SIZE: it cannot hold references without a size */
	unsigned read_options; /* BC_OPTION_* (formats/base/format_id.h) */
	unsigned write_options;
};

/* Never NULL. The entry of BC_FORMAT_UNKNOWN can neither be read nor written. */
const struct bc_format_info *bc_format_info(enum bc_format format);

/* How well one format converts to another. */
enum bc_conversion {
	BC_CONVERSION_LOSSLESS, /* everything is kept */
	BC_CONVERSION_LOSSY,    /* some traits are lost */
	BC_CONVERSION_REFUSED,  /* nothing could be kept, or the target cannot be written */
};

/* Sets *lost to the traits of `from` that `to` cannot hold. */
enum bc_conversion bc_format_conversion(enum bc_format from, enum bc_format to, uint32_t *lost);

/* The same for a trace with these traits. Reading options may have added traits to those of its
 * format. */
enum bc_conversion bc_traits_conversion(uint32_t holds, enum bc_format to, uint32_t *lost);

/* Traits that `to` has a place for, but that individual entries may lose: times that are too far
 * apart, several references at one time, sizes that no bus cycle has. Losses are counted as they
 * happen. */
uint32_t bc_format_may_lose(enum bc_format from, enum bc_format to);

/* Why the conversion is refused, as a clause. */
const char *bc_format_refusal(enum bc_format from, enum bc_format to);

#endif
