/* The formats that are known here: what each can hold, and how it is read and written. Their names
 * are in formats/base/format_id.h.
 * docs/formats.md describes them, and has the matrix of what becomes of each in each. */
#ifndef BC_FORMATS_CODEC_FORMAT_H
#define BC_FORMATS_CODEC_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/format_id.h"

struct bc_parser;
struct bc_printer;

struct bc_format_info {
	const char *summary; /* a phrase for a list */
	bool is_text;
	bool can_read;
	bool can_write;
	const struct bc_parser *parser;   /* NULL: not read line by line or record by record */
	const struct bc_printer *printer; /* NULL: not written entry by entry */
	uint32_t holds;        /* traits (formats/trace/entry.h) that it has a place for */
	uint32_t may_lose;     /* traits of which it can't hold all that there may be */
	uint32_t needs;        /* BC_HAS_SIZE: references of no size have no place in it */
	uint8_t addr_bits;     /* 32 or 64 */
	unsigned read_options; /* BC_OPTION_* (formats/base/options.h) */
	unsigned write_options;
};

/* Never NULL; that of BC_FORMAT_UNKNOWN can neither be read nor written. */
const struct bc_format_info *bc_format_info(enum bc_format format);

/* Whether a trace of one format can stand in the other. */
enum bc_conversion {
	BC_CONVERSION_LOSSLESS, /* all of it can */
	BC_CONVERSION_LOSSY,    /* without some traits */
	BC_CONVERSION_REFUSED,  /* nothing of it can, or the format isn't written at all */
};

/* *lost: the traits of `from` that have no place in `to`. */
enum bc_conversion bc_format_conversion(enum bc_format from, enum bc_format to, uint32_t *lost);

/* The same of a trace that holds these traits, which its options may have added to. */
enum bc_conversion bc_traits_conversion(uint32_t holds, enum bc_format to, uint32_t *lost);

/* What single entries may lose on the way all the same, though the target has a place for it: times
 * that are too far apart, several references at one time, sizes that no cycle has. Counted when it
 * happens. */
uint32_t bc_format_may_lose(enum bc_format from, enum bc_format to);

/* A clause that says why a conversion is refused. */
const char *bc_format_refusal(enum bc_format from, enum bc_format to);

#endif
