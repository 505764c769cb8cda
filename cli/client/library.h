/* Shared libraries that are loaded when a command needs them. Loading libcurl and the thirty
 * libraries below it takes longer than most commands run.
 *
 * A macro lists the functions once. They become pointers with the same names, in a struct `lib`:
 *
 *     #define FUNCTIONS(F) F(curl_easy_init) F(curl_easy_cleanup)
 *     static struct { FUNCTIONS(BC_LIBRARY_POINTER) } lib;
 *     static struct bc_library library = {
 *             {"libcurl.so.4"}, (struct bc_library_entry[]){FUNCTIONS(BC_LIBRARY_ENTRY){0}}}; */
#ifndef BC_CLI_CLIENT_LIBRARY_H
#define BC_CLI_CLIENT_LIBRARY_H

#include <stdbool.h>

#include "cli/term/console.h"
#include "formats/base/must_check.h"

struct bc_library_entry {
	const char *function; /* NULL: end of the entries */
	void *pointer;        /* address of the pointer to set */
};
#define BC_LIBRARY_POINTER(function) __typeof__(function) *(function);
#define BC_LIBRARY_ENTRY(function)   {#function, &lib.function},

struct bc_library {
	const char *names[2]; /* "libcurl.so.4", and another to try; NULL: none */
	const struct bc_library_entry *entries;
	bool is_loaded; /* set by bc_library_load() */
};

/* Loads the library and sets the pointers, unless that is done; threads may call it. The library
 * stays loaded. If that fails, prints an error and returns BC_EXIT_FAILED. */
enum bc_exit bc_library_load(
	struct bc_library *library, const struct bc_console *console) BC_MUST_CHECK;

#endif
