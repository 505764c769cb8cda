/* A file that grows by whole pieces under a temporary name, and gets its final name when durable.
 *
 *     bc_atomic_file_create()                  creates NAME with a suffix
 *     bc_atomic_file_append() ...              appends one piece, or nothing
 *     bc_atomic_file_sync() ...                makes the pieces durable
 *     bc_atomic_file_seal() or bc_atomic_file_abandon()
 *
 * The bytes are hashed as they are written, so sealing does not read the file back. The open file
 * is locked (flock(2)), which shows that its writer is alive.
 *
 * Not thread-safe: one thread at a time. */
#ifndef BC_FORMATS_BASE_ATOMIC_FILE_H
#define BC_FORMATS_BASE_ATOMIC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"

#define BC_ATOMIC_FILE_NAME_MAX 256

/* XXH3-128 with seed 0, in 32 hex digits, as `xxhsum -H2` prints it, and a zero. */
#define BC_FILE_HASH_CHARS 33

struct XXH3_state_s; /* xxhash.h */

struct bc_atomic_file {
	int fd;                                  /* -1: closed */
	int dir_fd;                              /* owned by the caller */
	char name[BC_ATOMIC_FILE_NAME_MAX];      /* final name */
	char open_name[BC_ATOMIC_FILE_NAME_MAX]; /* name until sealed */
	uint64_t max_bytes;                      /* limit of its length, when it was created */
	uint64_t bytes;                          /* length of the appended pieces */
	uint64_t durable;                        /* bytes covered by the last sync */
	bool is_name_durable;
	uint64_t end_bytes;                   /* length of the end, after the pieces */
	bool has_stale_tail;                  /* truncation failed: old bytes may follow */
	struct XXH3_state_s *hash;            /* of the pieces */
	struct XXH3_state_s *end_hash;        /* of pieces and end, if end_bytes is not 0 */
	char sealed_hash[BC_FILE_HASH_CHARS]; /* of the file sealed last; or empty */
	uint64_t sealed_bytes;                /* its length */
};

/* Creates `name` + `suffix` in a directory and writes `head`. Returns 0, or a negative errno with
 * no file left behind and *file closed: -EEXIST if either name exists, -ENAMETOOLONG, -ENOSPC, ...;
 * -EBUSY if another process took the new file for one left by a crash. */
int bc_atomic_file_create(struct bc_atomic_file *file, int dir_fd, const char *name,
	const char *suffix, const uint8_t *head, size_t head_bytes) BC_MUST_CHECK;

/* Appends a piece. Returns 0, or a negative errno with the partial piece truncated. */
int bc_atomic_file_append(
	struct bc_atomic_file *file, const uint8_t *piece, size_t bytes) BC_MUST_CHECK;

/* Writes part of the file's end: data that is not counted as a piece and can be removed with
 * bc_atomic_file_truncate(). Several calls write one after another. Returns 0, or a negative errno;
 * then call bc_atomic_file_truncate(). */
int bc_atomic_file_append_end(
	struct bc_atomic_file *file, const uint8_t *piece, size_t bytes) BC_MUST_CHECK;

/* Truncates the file after its last whole piece. */
void bc_atomic_file_truncate(struct bc_atomic_file *file);

/* Makes what an open file holds durable, and the names in a directory unless dir_fd is -1. Returns
 * 0 or a negative errno. Any thread. */
int bc_fd_sync(int fd, int dir_fd) BC_MUST_CHECK;

/* Makes the pieces and the name durable. If it fails, nothing of this file may be: abandon it. */
int bc_atomic_file_sync(struct bc_atomic_file *file) BC_MUST_CHECK;

/* Syncs, renames the file to its final name (never replacing a file) and syncs the directory.
 * Returns 0 with the file closed and sealed_hash set, or a negative errno with the file still open
 * and its end truncated. */
int bc_atomic_file_seal(struct bc_atomic_file *file) BC_MUST_CHECK;

/* Closes the file as it is. */
void bc_atomic_file_abandon(struct bc_atomic_file *file);

/* True if the open file's name is gone, or is another file's, without our lock: its data is not in
 * the directory. What the file system does not know is not taken for that. */
bool bc_atomic_file_is_deleted(const struct bc_atomic_file *file);

/* True if the writer of an open file is alive; always false where the file system has no locks. If
 * false, the caller holds a lock until `fd` is closed. */
bool bc_is_being_written(int fd) BC_MUST_CHECK;

/* Renames a file without replacing another. Returns 0 or a negative errno. */
int bc_rename_new(int dir_fd, const char *from, const char *to) BC_MUST_CHECK;

#endif
