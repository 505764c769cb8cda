/* The manifest of a recording, RECORDING.xxh128 in the output directory: one line with the hash of
 * each sealed segment and raw capture, in the format of `xxhsum -c`; docs/manifest.md.
 *
 * The writer's thread adds a line when it seals a file, as does the recovery at startup. Another
 * process may change hashes meanwhile (buscap archive). Each call opens the file by name, so a
 * manifest that was moved away is created again. */
#ifndef BC_FORMATS_SEGMENT_MANIFEST_H
#define BC_FORMATS_SEGMENT_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/file_hash.h"
#include "formats/base/must_check.h"
#include "formats/segment/segment_header.h"

#define BC_MANIFEST_SUFFIX ".xxh128"

/* Appends the line for a file and syncs it. A torn last line, left by a crash, is truncated first.
 * Returns 0 or a negative errno; after an error the manifest is unchanged if the disk allows. */
int bc_manifest_add(int dir_fd, const char *recording, const char *file,
	const char hash[BC_FILE_HASH_CHARS]) BC_MUST_CHECK;

/* Finds the file's line and copies its hash, unless `hash` is NULL; a torn line does not count.
 * Returns 0, -ENOENT without such a line or without a manifest, or another negative errno. */
int bc_manifest_find(int dir_fd, const char *recording, const char *file,
	char hash[BC_FILE_HASH_CHARS]) BC_MUST_CHECK;

/* Overwrites the hash of a file in place and syncs the manifest. Returns 0, -ENOENT if there is no
 * manifest or it does not list the file, or another negative errno. Sets *is_touched to whether the
 * manifest may have the new hash. */
int bc_manifest_change(int dir_fd, const char *recording, const char *file,
	const char hash[BC_FILE_HASH_CHARS], bool *is_touched) BC_MUST_CHECK;

/* Removes the lines of files up to this number that no longer exist, by replacing the manifest. If
 * that fails, or another process is changing the manifest, they remain until the next call. */
void bc_manifest_forget(int dir_fd, const char *recording, uint32_t segment);

/* Deletes the manifest, and one that a killed process has left unfinished. */
void bc_manifest_remove(int dir_fd, const char *recording);

#endif
