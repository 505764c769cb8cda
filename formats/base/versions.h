/* The versions of a program and of the libraries with which it runs, for --version. */
#ifndef BC_FORMATS_BASE_VERSIONS_H
#define BC_FORMATS_BASE_VERSIONS_H

#include <stdio.h>

/* Prints "PROGRAM VERSION (COMMIT)", without the commit if it is unknown, and a line "NAME VERSION"
 * for each library that both programs use. */
void bc_versions_print(FILE *out, const char *program);

#endif
