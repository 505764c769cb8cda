/* The manifest of a recording: RECORDING.xxh128 beside its segments, with the hash of each sealed
 * segment and raw capture, a line each as `xxhsum -c` reads them; docs/manifest.md.
 *
 * A line is added by whoever has sealed the file: the writer's thread, or at the start what
 * recovers files left open. Each call opens the manifest anew, so one that somebody moved away is
 * begun again. */
#ifndef BC_DAEMON_STORE_MANIFEST_H
#define BC_DAEMON_STORE_MANIFEST_H

#include <stdbool.h>

#include "formats/base/file_hash.h"
#include "formats/base/must_check.h"
#include "formats/segment/segment_header.h"

#define BC_MANIFEST_SUFFIX   ".xxh128"
#define BC_MANIFEST_NAME_MAX (BC_RECORDING_ID_MAX + 8)

void bc_manifest_name(char out[BC_MANIFEST_NAME_MAX], const char *recording);

/* Adds the line of a file of the recording and makes it durable; a torn last line, as a crash
 * leaves it, is cut off first. Returns 0, or a negative errno with the manifest as it was, as far
 * as the disk allows. */
int bc_manifest_add(int dir_fd, const char *recording, const char *file,
	const char hash[BC_FILE_HASH_CHARS]) BC_MUST_CHECK;

/* Whether the manifest has a whole line of that file. False, too, where it can't be read. */
bool bc_manifest_has(int dir_fd, const char *recording, const char *file);

/* Removes the manifest, whose last file has gone. */
void bc_manifest_remove(int dir_fd, const char *recording);

#endif
