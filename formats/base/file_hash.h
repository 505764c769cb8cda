/* The hash of a whole file: XXH3-128, seed 0, in hex as `xxhsum -H2` prints it. The lines of a
 * manifest (docs/manifest.md) are made of it. */
#ifndef BC_FORMATS_BASE_FILE_HASH_H
#define BC_FORMATS_BASE_FILE_HASH_H

#include "formats/base/must_check.h"
#include "formats/base/progress_cb.h"

#define BC_FILE_HASH_CHARS 33 /* 32 hex digits, and the terminating zero */

struct XXH3_state_s; /* xxhash.h */

/* The hash of what the state has been given so far. */
void bc_file_hash_write(char out[BC_FILE_HASH_CHARS], const struct XXH3_state_s *state);

/* The hash of a regular file, read from its beginning to its end; each piece read is a step, and
 * `steps` may be NULL. Returns 0 or a negative errno. */
int bc_file_hash_read(
	char out[BC_FILE_HASH_CHARS], int fd, const struct bc_progress_cb *steps) BC_MUST_CHECK;

#endif
