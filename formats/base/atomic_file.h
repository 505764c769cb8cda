/* A file while it is being made: it grows by whole pieces under a name that says so, and gets its
 * own name when all of it is durable.
 *
 *     bc_atomic_file_create()                  NAME.partial (or so) appears
 *     bc_atomic_file_append() ...              each piece all or nothing
 *     bc_atomic_file_sync() ...                what was appended is durable
 *     bc_atomic_file_seal() or bc_atomic_file_abandon()
 *
 * What is appended is hashed on its way, so that the sealed file's hash is known without reading
 * it.
 *
 * formats/segment/segment_writer.h makes its files with it. One thread at a time.
 */
#ifndef BC_FORMATS_BASE_ATOMIC_FILE_H
#define BC_FORMATS_BASE_ATOMIC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/file_hash.h"
#include "formats/base/must_check.h"

#define BC_ATOMIC_FILE_NAME_MAX 256

struct bc_atomic_file {
	int fd;                                  /* -1: none is open */
	int dir_fd;                              /* the caller's */
	char name[BC_ATOMIC_FILE_NAME_MAX];      /* once sealed */
	char open_name[BC_ATOMIC_FILE_NAME_MAX]; /* until then */
	uint64_t bytes;                          /* of whole pieces in the file */
	uint64_t durable;                        /* of them, bytes that a sync has covered */
	bool is_name_durable;
	uint64_t end_bytes;                   /* behind them: of an end that may be undone */
	bool is_ragged;                       /* what was cut off may be there still */
	struct XXH3_state_s *hash;            /* of the whole pieces */
	struct XXH3_state_s *end_hash;        /* and of the end, where there is one */
	char sealed_hash[BC_FILE_HASH_CHARS]; /* of the file that was sealed last; or empty */
};

/* Creates the file in a directory, `name` with `suffix` behind it while it is open, and writes its
 * head. Returns 0, or a negative errno with nothing left behind and the file closed: -EEXIST when
 * either name is taken, -ENAMETOOLONG, -ENOSPC, ... */
int bc_atomic_file_create(struct bc_atomic_file *file, int dir_fd, const char *name,
	const char *suffix, const uint8_t *head, size_t head_bytes) BC_MUST_CHECK;

/* Appends a piece. Returns 0, or a negative errno with the file cut back to what it was. */
int bc_atomic_file_append(
	struct bc_atomic_file *file, const uint8_t *piece, size_t bytes) BC_MUST_CHECK;

/* Writes behind what is there, without counting it: an end that may be undone, of one piece or
 * more. Returns 0 or a negative errno; then, or when the end is not wanted any more,
 * bc_atomic_file_cut_back(). */
int bc_atomic_file_add_end(
	struct bc_atomic_file *file, const uint8_t *piece, size_t bytes) BC_MUST_CHECK;
void bc_atomic_file_cut_back(struct bc_atomic_file *file);

/* Makes durable what is appended, and the name. After a failure nothing of this file may be called
 * durable any more: abandon it. */
int bc_atomic_file_sync(struct bc_atomic_file *file) BC_MUST_CHECK;

/* Syncs, gives the file its final name (never replacing another) and syncs the directory. Returns 0
 * with the file closed and sealed_hash that of all its bytes, or a negative errno with it still
 * open and cut back. */
int bc_atomic_file_seal(struct bc_atomic_file *file) BC_MUST_CHECK;

/* Closes the file as it is. */
void bc_atomic_file_abandon(struct bc_atomic_file *file);

/* Whether the open file has lost its name: somebody deleted it, and what is written is gone. */
bool bc_atomic_file_is_deleted(const struct bc_atomic_file *file);

/* Gives a file another name, never that of another file. Returns 0 or a negative errno. */
int bc_rename_new(int dir_fd, const char *from, const char *to) BC_MUST_CHECK;

#endif
