/* Numbers the processors of a trace that names them: "cpu1", "cluster0.cpu1", "css.rse.cpu".
 *
 * A name has the number that is in it: that after "cpu" or "core", or the last one. If there is
 * none, or another name has it already, the name gets the lowest number that no name has so far.
 * These are in the notes of the parser. */
#ifndef BC_FORMATS_CODEC_CPU_NAMES_H
#define BC_FORMATS_CODEC_CPU_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/trace/parser.h"

#define BC_CPU_NAMES 256u

/* Zeroes are an empty list. */
struct bc_cpu_names {
	unsigned count;
	unsigned last; /* the name found last */
	unsigned odd;  /* names whose number is not in them */
	uint64_t unnumbered;
	uint64_t used[(UINT16_MAX + 1) / 64];  /* bits: numbers of processors */
	uint64_t named[(UINT16_MAX + 1) / 64]; /* those of names in the list */
	struct bc_cpu_name {
		uint64_t hash;
		uint16_t proc;
		bool is_odd;
		char end[BC_NOTES_NAME_BYTES];
	} names[BC_CPU_NAMES];
};

/* Sets *proc to the number of a name, which is added if it is new. Returns false, and counts the
 * line, if there are too many names. */
bool bc_cpu_number(struct bc_cpu_names *names, const char *name, size_t bytes, uint16_t *proc);

/* The same for "cpu0" and the like, and for just a number. */
bool bc_cpu_plain(struct bc_cpu_names *names, uint16_t number, uint16_t *proc);

/* Whether this is a known name. */
bool bc_cpu_is_known(const struct bc_cpu_names *names, const char *name, size_t bytes);

void bc_cpu_notes(const struct bc_cpu_names *names, struct bc_parse_notes *notes);

#endif
