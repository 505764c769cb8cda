/* The trace formats: their names, and the options that are given after a name.
 * formats/codec/format.h describes what each format can hold and has its parser and printer. */
#ifndef BC_FORMATS_BASE_FORMAT_ID_H
#define BC_FORMATS_BASE_FORMAT_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/compression.h"

/* Each format with the names of its codec and of itself. Where the format is described: segments in
 * docs/segment-format.md, bcp1, raw6 and BYU in formats/bus, the others at the top of their modules
 * in formats/codec. The bus formats are first, and the BYU dialects together. */
/* clang-format off */
#define BC_FORMAT_LIST(F) \
	F(SEGMENT, segment, "segment") \
	F(BCP1, bcp1, "bcp1") \
	F(RAW6, raw6, "raw6") \
	F(BYU, byu, "byu") \
	F(BYU16, byu16, "byu16") \
	F(BYU24, byu24, "byu24") \
	F(BYU_BE, byu_be, "byu-be") \
	F(LAPLACE, laplace, "laplace") \
	F(LAPLACE_TEXT, laplace_text, "laplace-text") \
	F(LAPLACE_EVENTS, laplace_events, "laplace-events") \
	F(CIS501, cis501, "cis501") \
	F(TARMAC, tarmac, "tarmac") \
	F(DIN, din, "din") \
	F(XDIN, xdin, "xdin") \
	F(LACKEY, lackey, "lackey") \
	F(LINES, lines, "lines") \
	F(VCD, vcd, "vcd") \
	F(PERFETTO, perfetto, "perfetto") \
	F(ROWBINARY, rowbinary, "rowbinary") \
	F(CSV, csv, "csv") \
	F(NDJSON, ndjson, "ndjson") \
	F(ARROW, arrow, "arrow")

enum bc_format {
	BC_FORMAT_UNKNOWN,
#define BC_FORMAT_ENUM(format, codec, name) BC_FORMAT_##format,
	BC_FORMAT_LIST(BC_FORMAT_ENUM)
#undef BC_FORMAT_ENUM
	BC_FORMATS,
};
/* clang-format on */

/* "raw6", "byu16", ... */
const char *bc_format_name(enum bc_format format);

/* The format with this name, or BC_FORMAT_UNKNOWN. */
enum bc_format bc_format_by_name(const char *name);

/* The format that a file's name ends in: "x.csv", "x.byu.zst" (a segment); or BC_FORMAT_UNKNOWN. */
enum bc_format bc_format_by_path(const char *path);

/* Writes that no format has a name ("byuu", "byuu:endian=big"), and which one may be meant. */
void bc_format_unknown(char *err, size_t errlen, const char *name);

/* True for bus traffic, which the recorder replays: segments, bcp1, raw6 and the BYU dialects. */
static inline bool bc_format_is_bus(enum bc_format format)
{
	return format >= BC_FORMAT_SEGMENT && format <= BC_FORMAT_BYU_BE;
}

/* ---- options
 *
 * Options of a trace format, given after its name: "laplace:endian=big", "bcp1:map=pages,seed=1".
 *
 * formats/codec/format.h has the keys that each format accepts for reading and for writing. */

enum bc_option_key {
	BC_OPTION_ENDIAN = 1u << 0,      /* endian=little|big */
	BC_OPTION_INVALID = 1u << 1,     /* invalid=drop|keep: invalid bus cycles */
	BC_OPTION_MAP = 1u << 2,         /* map=none|pages */
	BC_OPTION_SEED = 1u << 3,        /* seed=N, for map=pages */
	BC_OPTION_CLOCK_HZ = 1u << 4,    /* clock_hz=N: ticks per second */
	BC_OPTION_SESSION = 1u << 5,     /* session=N */
	BC_OPTION_SIZE = 1u << 6,        /* size=N: access size in bytes, if the format has none */
	BC_OPTION_SIGNALS = 1u << 7,     /* signals=vectors|bits */
	BC_OPTION_INTERVAL = 1u << 8,    /* interval=TIME: of the values of a counter */
	BC_OPTION_COMPRESSION = 1u << 9, /* compression=LEVEL: of a segment's records */
};

struct bc_format_options {
	bool is_big_endian;
	bool keep_invalid;
	bool map_pages;
	uint64_t seed;
	uint64_t clock_hz; /* 0: unknown */
	uint32_t session;
	uint32_t size; /* 0: unknown */
	/* What the user says of a format that is described: all that follows "lines:". NULL: none.
	 * It must outlive the parser. */
	const char *layout;
	bool has_bit_signals;
	uint64_t interval_ns;
	bool has_compression; /* else the file's name says it */
	enum bc_level compression;
	/* Not for users. Reads times in ns and us as ps, to compare traces of different units. */
	bool in_picoseconds;
	/* Whoever opens a printer sets the traits it will print (formats/trace/entry.h). */
	uint32_t source_traits;
	/* True if entries of the source may be left out, or come from several. */
	bool is_part;
	/* True if the entries are numbered as records of a recording. */
	bool source_is_segment;
	/* True if entries may have a time of day: bc_print.moment. */
	bool source_has_wall;
};

struct bc_format_options bc_format_options_default(void);

/* Parses "key=value,key=value" into *options. `allowed` is a set of BC_OPTION_*: other keys are
 * errors. Returns false with an error message that names the key and the value. */
bool bc_format_options_read(struct bc_format_options *options, const char *text, unsigned allowed,
	char *err, size_t errlen);

/* The name of one key, a single BC_OPTION_* bit. */
const char *bc_option_key_name(unsigned key);

#endif
