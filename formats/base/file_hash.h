/* The hash of a whole file, for manifests (docs/manifest.md): XXH3-128 with seed 0, in hex, as
 * printed by `xxhsum -H2`. */
#ifndef BC_FORMATS_BASE_FILE_HASH_H
#define BC_FORMATS_BASE_FILE_HASH_H

#include "formats/base/must_check.h"
#include "formats/base/progress_cb.h"

#define BC_FILE_HASH_CHARS 33 /* 32 hex digits and the terminating zero */

struct XXH3_state_s; /* xxhash.h */

/* Formats the hash of all data that `state` has received. */
void bc_file_hash_format(char out[BC_FILE_HASH_CHARS], const struct XXH3_state_s *state);

/* Reads a whole regular file and computes its hash. Does not move the file offset. `progress` is
 * called after each 256 KiB and may be NULL. Returns 0 or a negative errno. */
int bc_file_hash_compute(
	char out[BC_FILE_HASH_CHARS], int fd, const struct bc_progress_cb *progress) BC_MUST_CHECK;

#endif
