/* The trace formats and their names. formats/codec/format.h describes what each format can hold and
 * has its parser and printer. */
#ifndef BC_FORMATS_BASE_FORMAT_ID_H
#define BC_FORMATS_BASE_FORMAT_ID_H

#include <stdbool.h>

enum bc_format {
	BC_FORMAT_UNKNOWN,
	BC_FORMAT_SEGMENT, /* our own .byu.lz4, sealed or open, one or several concatenated */
	BC_FORMAT_BCP1,    /* formats/bus/bcp1.h */
	BC_FORMAT_RAW6,    /* formats/bus/sample.h */
	BC_FORMAT_BYU,     /* formats/bus/record.h */
	BC_FORMAT_BYU16,   /* dialects of BYU: formats/bus/dialect.h */
	BC_FORMAT_BYU24,
	BC_FORMAT_BYU_BE,
	BC_FORMAT_LAPLACE, /* formats/codec/laplace.c */
	BC_FORMAT_LAPLACE_TEXT,
	BC_FORMAT_LAPLACE_EVENTS, /* formats/codec/laplace.c */
	BC_FORMAT_CIS501,         /* formats/codec/cis501.c */
	BC_FORMAT_TARMAC,         /* formats/codec/tarmac.c */
	BC_FORMAT_DIN,            /* formats/codec/dinero.c */
	BC_FORMAT_XDIN,
	BC_FORMAT_LACKEY,    /* formats/codec/lackey.c */
	BC_FORMAT_VCD,       /* formats/codec/vcd.c */
	BC_FORMAT_ROWBINARY, /* formats/codec/byu_printer.c */
	BC_FORMAT_CSV,       /* formats/codec/csv.c */
	BC_FORMAT_NDJSON,    /* formats/codec/ndjson.c */
	BC_FORMATS,
};

/* "raw6", "byu16", ... */
const char *bc_format_name(enum bc_format format);

/* The format with this name, or BC_FORMAT_UNKNOWN. */
enum bc_format bc_format_by_name(const char *name);

/* Whether a format holds bus traffic, which the recorder records and replays: segments, bcp1, raw6
 * and the BYU dialects. */
static inline bool bc_format_is_bus(enum bc_format format)
{
	return format >= BC_FORMAT_SEGMENT && format <= BC_FORMAT_BYU_BE;
}

#endif
