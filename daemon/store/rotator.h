/* Where encoded chunks and raw blocks go: into the open pair of files, or a new one, with the space
 * rules kept to, and the pair made durable and ended as the rules say.
 *
 * What can't be written must wait: bc_rotator_write() then returns false, as bc_open_segment_cut()
 * does, and may be called again at pair.retry_at_ns. Nothing is written twice. The writer's
 * thread's own. */
#ifndef BC_DAEMON_STORE_ROTATOR_H
#define BC_DAEMON_STORE_ROTATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/rules.h"
#include "daemon/store/open_segment.h"
#include "daemon/store/recording_info.h"
#include "formats/base/must_check.h"

struct bc_rotator {
	struct bc_open_segment pair;
	struct bc_writer_rules rules; /* may be changed at any time */
	uint64_t sync_at_ns;
	uint64_t look_at_ns; /* at the space and at the open files */
	/* How much may still be written before a space rule breaks, so that the directory need not
	 * be searched before each chunk. */
	uint64_t room_bytes;       /* as of the last look */
	uint64_t room_written;     /* the bytes written then */
	char space_error[256];     /* as logged last */
	uint64_t next_record;      /* behind the last written one of the recording */
	struct bc_losses given_up; /* of the recording: its records, and the gaps among them */
	struct bc_chunk *note;     /* for the gaps that say so */
};

/* No file is open yet. `dir_fd` stays the caller's. Returns 0 or -ENOMEM. */
int bc_rotator_init(struct bc_rotator *files, const char *dir, int dir_fd,
	const struct bc_writer_rules *rules) BC_MUST_CHECK;

/* Leaves what is open as it is. */
void bc_rotator_destroy(struct bc_rotator *files);

/* A recording begins: nothing of another is open. */
void bc_rotator_start(struct bc_rotator *files, const struct bc_recording_info *recording);

/* Writes what of a chunk and its raw block isn't written yet. Returns false when that must be tried
 * again. */
bool bc_rotator_write(struct bc_rotator *files, struct bc_encoded *encoded) BC_MUST_CHECK;

/* Whether the pair is as long as a rule lets it be. */
bool bc_rotator_are_full(const struct bc_rotator *files);

/* Counts a chunk as given up; the recording's last ends what is open, with a gap for all that was
 * given up if the disk takes that much. Overwrites the chunk's bytes. */
void bc_rotator_give_up(struct bc_rotator *files, struct bc_encoded *encoded);

/* When bc_rotator_maintain() wants to be called next. */
uint64_t bc_rotator_due_ns(const struct bc_rotator *files);

/* Syncs and looks at the space, if it is time. */
void bc_rotator_maintain(struct bc_rotator *files, bool has_waiting);

/* Makes durable what can be, and leaves the rest as it is. */
void bc_rotator_close(struct bc_rotator *files);

#endif
