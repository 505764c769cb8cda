/* Startup recovery of segments that an earlier run left open (.partial). What is whole is copied to
 * a sealed file under the final name. The original is then deleted if only its end was torn. If it
 * has anything else that is not in the copy, it is renamed to .damaged and kept. Only a file with
 * no more than a header is deleted without a copy.
 *
 * A power cut may leave a file without its header, or with another file's old data. Such a file is
 * treated like the others if another file of its recording is ours (segment_header.h), or if a
 * chunk in it names its recording. If it has the id of a recording and nothing but zeros, or
 * nothing at all, it is deleted. Otherwise nothing proves that it is ours, and it is left alone. */
#ifndef BC_DAEMON_MAIN_STARTUP_RECOVERY_H
#define BC_DAEMON_MAIN_STARTUP_RECOVERY_H

#include "formats/base/must_check.h"
#include "formats/segment/segment_name.h"

struct bc_startup_found {
	char newest[BC_RECORDING_ID_MAX]; /* id of the newest recording; or empty */
	uint64_t sequence;                /* no recording has a higher one */
	unsigned recovered;               /* segments */
};

/* Recovers every .partial file in the directory and logs the results; `dir` is for the messages. A
 * file that can't be recovered now (full disk) is left as it is. Adds the end to a recording that
 * was killed, with a gap of unknown size; `boot_id` is the current boot's. Stops early if a
 * stop signal is pending. Calls on_progress() repeatedly with the current file. Returns 0, or a
 * negative errno if the directory can't be read; *found is valid in any case. */
int bc_startup_recover(struct bc_startup_found *found, const char *dir, int dir_fd,
	const char *boot_id, void (*on_progress)(void *context, const char *file),
	void *context) BC_MUST_CHECK;

#endif
