/* A reserve of disk space: a preallocated hidden file in the output directory. When the disk is
 * full and a loss must be recorded, the file is deleted, and the loss fits in its place. Writer
 * thread only. */
#ifndef BC_DAEMON_STORE_RESERVE_H
#define BC_DAEMON_STORE_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/must_check.h"

#define BC_RESERVE_NAME  ".buscapd.reserve"
#define BC_RESERVE_BYTES UINT64_C(524288)

/* Creates the file, or extends it if it is smaller than it should be. On a disk that is almost full
 * it takes what it can get. Returns 0 if the file has its full size, or a negative errno. */
int bc_reserve_fill(int dir_fd) BC_MUST_CHECK;

/* Deletes the file. Returns whether there was one. */
bool bc_reserve_release(int dir_fd);

#endif
