/* State captures: signals over time (a VCD, an analyser's csv) read as accesses at the edges of a
 * clock, as the user describes them. docs/formats.md has the options.
 *
 *     bc_capture_init()                 from options->layout, which bc_capture_check() accepts
 *     bc_capture_declare() ...          all signals of the file
 *     bc_capture_start()
 *     bc_capture_time(), bc_capture_change() ...
 *
 * Only the signals that are named use memory, of a fixed size. */
#ifndef BC_FORMATS_CODEC_CAPTURE_H
#define BC_FORMATS_CODEC_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/suggest.h"
#include "formats/bus/sample.h"
#include "formats/trace/parser.h"

#define BC_CAPTURE_TERMS 24u
#define BC_CAPTURE_TYPES 16u
#define BC_CAPTURE_BITS  2048u /* bits and vectors that belong to terms */
#define BC_CAPTURE_QUEUE 1024u /* changes that are newer than `setup` */
#define BC_CAPTURE_SLOTS 1024u

/* Femtoseconds. */
typedef unsigned __int128 bc_fs;
#define BC_FS_PER_S  UINT64_C(1000000000000000)
#define BC_FS_PER_NS UINT64_C(1000000)

/* The bits of a signal, at most 64, and which of them are x or z. */
struct bc_signal {
	uint64_t bits;
	uint64_t unknown;
};

/* A signal that the description names, for a role. */
struct bc_capture_term {
	uint8_t role;
	bool is_negative;
	bool is_latched;     /* an edge of the next term stores its value */
	struct bc_text name; /* in the description */
	/* The signal with this name. */
	unsigned fit; /* how well its name fits */
	uint64_t path;
	uint32_t width; /* 0: unknown */
	unsigned lowest;
	bool is_number;  /* a real or a string */
	unsigned others; /* signals that fit as well */
	struct bc_suggestion suggestion;
	char similar[96]; /* the paths of these, or of one with a similar name */
	struct bc_signal now;
	struct bc_signal past;   /* before `setup` */
	struct bc_signal stored; /* by the latch, before `setup` */
};

struct bc_capture_layout {
	unsigned terms;
	struct bc_capture_term term[BC_CAPTURE_TERMS]; /* 0 is not used */
	unsigned roles;                                /* 1 << role: has a term */
	unsigned types;
	struct {
		uint64_t value;
		uint16_t type;
	} type[BC_CAPTURE_TYPES];
	bc_fs setup;
};

struct bc_capture {
	struct bc_capture_layout layout;
	bc_fs scale; /* a unit of the file's times; 0: unknown, times are ticks */
	bool in_picoseconds;
	bool has_entry;
	bool is_off; /* between $dumpoff and $dumpon */
	bool has_time;
	unsigned edge; /* the clock that had one at this time; 0: none */
	bc_fs time;
	unsigned queued;
	struct {
		bc_fs time;
		uint8_t term;
		bool is_stored;
		struct bc_signal value;
	} queue[BC_CAPTURE_QUEUE];
	unsigned bits;
	struct {
		uint64_t id;
		uint8_t term; /* 0: not any more */
		int8_t bit;   /* -1: a vector */
		uint16_t next;
	} bit[BC_CAPTURE_BITS]; /* 0 is not used */
	uint16_t slot[BC_CAPTURE_SLOTS];
	struct bc_parse_notes notes;
	char err[160];
	struct bc_mapping mapping;
};

bool bc_capture_check(const char *layout, char *err, size_t errlen);
/* The traits() of a parser whose state begins with its struct bc_capture. */
bc_traits bc_capture_traits(void *state, const char *at, const char *end, bool *has_wall);
void bc_capture_init(struct bc_capture *capture, const struct bc_format_options *options);

/* Reads a time with a unit: "10 ns", "0.5us". Returns false if it is none. */
bool bc_capture_read_time(bc_fs *fs, const char *text, size_t bytes);

/* Reads a number with an optional fraction, in this unit, of at most 64 bits of ps. */
bool bc_capture_read_number(bc_fs *fs, struct bc_text text, bc_fs unit);

/* A number for any text. */
uint64_t bc_capture_id(const char *text, size_t bytes);

/* A signal of the file, whose path may end in an index: "top.cpu.addr [15:0]". `width` 0: unknown.
 */
void bc_capture_declare(
	struct bc_capture *capture, const char *path, uint64_t id, uint32_t width, bool is_number);

/* After all signals. Returns false with capture->err set if a name has no signal, or several. */
bool bc_capture_start(struct bc_capture *capture) BC_MUST_CHECK;

/* What follows happens at this time. Returns false with capture->err set if it goes back. A part of
 * a nanosecond makes all times picoseconds, before the first entry. */
bool bc_capture_time(struct bc_capture *capture, bc_fs time) BC_MUST_CHECK;

/* True if a signal with this id belongs to the description. */
bool bc_capture_uses(const struct bc_capture *capture, uint64_t id);

/* A signal has a new value. Adds at most one entry. */
void bc_capture_change(
	struct bc_capture *capture, struct bc_parse *p, uint64_t id, struct bc_signal value);

/* The tick of the present time, in *unit. */
uint64_t bc_capture_tick(const struct bc_capture *capture, uint8_t *unit);

#endif
