/* Shared by the fuzz targets that need a directory. tests/fuzz/run.sh sets TMPDIR to a directory in
 * memory and removes it at the end. */
#ifndef BC_TESTS_FUZZ_SCRATCH_H
#define BC_TESTS_FUZZ_SCRATCH_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Creates a directory. Returns its descriptor. */
static inline int scratch_open(void)
{
	const char *parent = getenv("TMPDIR");
	char path[256];

	snprintf(path, sizeof(path), "%s/fuzz-XXXXXX", parent != NULL ? parent : "/tmp");
	if (mkdtemp(path) == NULL)
		abort();
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		abort();
	return fd;
}

#endif
