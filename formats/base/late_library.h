/* Shared libraries that are loaded when they are needed, because loading them takes longer than
 * most commands run: libmicrohttpd brings one for TLS and what it needs, libsystemd another.
 *
 * A macro lists the functions once. They become pointers with the same names, alone in a struct:
 *
 *     #define FUNCTIONS(F) F(sd_notify) F(sd_journal_sendv)
 *     static struct { FUNCTIONS(BC_LATE_POINTER) } lib;
 *     static struct bc_late_library library = {
 *             .name = "libsystemd.so.0",
 *             .package = "libsystemd0",
 *             .functions = (const char *const[]){FUNCTIONS(BC_LATE_NAME) NULL},
 *             .pointers = &lib}; */
#ifndef BC_FORMATS_BASE_LATE_LIBRARY_H
#define BC_FORMATS_BASE_LATE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "formats/base/must_check.h"

#define BC_LATE_POINTER(function) __typeof__(function) *(function);
#define BC_LATE_NAME(function)    #function,

struct bc_late_library {
	const char *name;             /* "libsystemd.so.0" */
	const char *package;          /* Debian's, for the error */
	const char *const *functions; /* ending with NULL */
	void *pointers;               /* the struct of pointers, in the same order */
	bool is_loaded;               /* set by bc_late_library_load() */
};

/* Loads the library and sets the pointers, unless that is done; threads may call it. The library
 * stays loaded. Returns false, with a message in `err`, if that fails. */
bool bc_late_library_load(struct bc_late_library *library, char *err, size_t errlen) BC_MUST_CHECK;

#endif
