/* What may be said of a format behind its name: "laplace:endian=big", "bcp1:map=pages,seed=1".
 *
 * Each format takes some of the keys (formats/codec/format.h says which), read from a trace,
 * written to one, or both. */
#ifndef BC_FORMATS_BASE_OPTIONS_H
#define BC_FORMATS_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bc_option_key {
	BC_OPTION_ENDIAN = 1u << 0,   /* endian=little|big */
	BC_OPTION_INVALID = 1u << 1,  /* invalid=drop|keep: invalid bus cycles */
	BC_OPTION_MAP = 1u << 2,      /* map=none|pages */
	BC_OPTION_SEED = 1u << 3,     /* seed=N, of map=pages */
	BC_OPTION_CLOCK_HZ = 1u << 4, /* clock_hz=N: ticks a second */
	BC_OPTION_SESSION = 1u << 5,  /* session=N */
	BC_OPTION_SIZE = 1u << 6,     /* size=N: bytes of an access whose size the format lacks */
};

struct bc_format_options {
	bool is_big_endian;
	bool keep_invalid;
	bool map_pages;
	uint64_t seed;
	uint64_t clock_hz; /* 0: not known */
	uint32_t session;
	uint32_t size; /* 0: unknown */
	/* Not said behind a name, but set by who opens a printer: the traits
	 * (formats/trace/entry.h) that may come. */
	uint32_t source_holds;
};

/* What holds where nothing is said. */
struct bc_format_options bc_format_options_default(void);

/* Reads "key=value,key=value" into *options; `allowed` are the keys that may be set, BC_OPTION_*.
 * Returns true, or false with `err` set to a clause that names key and value. */
bool bc_format_options_read(struct bc_format_options *options, const char *text, unsigned allowed,
	char *err, size_t errlen);

/* The name of a key: one bit. */
const char *bc_option_key_name(unsigned key);

#endif
