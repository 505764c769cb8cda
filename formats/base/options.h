/* Options of a trace format, given after its name: "laplace:endian=big", "bcp1:map=pages,seed=1".
 *
 * formats/codec/format.h has the keys that each format accepts for reading and for writing. */
#ifndef BC_FORMATS_BASE_OPTIONS_H
#define BC_FORMATS_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bc_option_key {
	BC_OPTION_ENDIAN = 1u << 0,   /* endian=little|big */
	BC_OPTION_INVALID = 1u << 1,  /* invalid=drop|keep: invalid bus cycles */
	BC_OPTION_MAP = 1u << 2,      /* map=none|pages */
	BC_OPTION_SEED = 1u << 3,     /* seed=N, for map=pages */
	BC_OPTION_CLOCK_HZ = 1u << 4, /* clock_hz=N: ticks per second */
	BC_OPTION_SESSION = 1u << 5,  /* session=N */
	BC_OPTION_SIZE = 1u << 6,     /* size=N: access size in bytes, if the format has none */
	BC_OPTION_SIGNALS = 1u << 7,  /* signals=vectors|bits */
};

struct bc_format_options {
	bool is_big_endian;
	bool keep_invalid;
	bool map_pages;
	uint64_t seed;
	uint64_t clock_hz; /* 0: unknown */
	uint32_t session;
	uint32_t size; /* 0: unknown */
	bool has_bit_signals;
	/* Not user options. Read times in ns and us as ps, to compare traces with different units.
	 */
	bool in_picoseconds;
	/* The caller that opens a printer sets the traits of the entries it will
	 * print (formats/trace/entry.h). */
	uint32_t source_holds;
	/* And whether the numbers of the entries are those of records in a recording. */
	bool source_is_segment;
};

struct bc_format_options bc_format_options_default(void);

/* Parses "key=value,key=value" into *options. `allowed` is a set of BC_OPTION_*: other keys are
 * errors. Returns false with an error message that names the key and the value. */
bool bc_format_options_read(struct bc_format_options *options, const char *text, unsigned allowed,
	char *err, size_t errlen);

/* The name of one key, a single BC_OPTION_* bit. */
const char *bc_option_key_name(unsigned key);

#endif
