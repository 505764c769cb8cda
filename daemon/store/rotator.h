/* Where encoded chunks and raw blocks go: into the open pair of files, or a new one, with the space
 * rules kept to, and the pair made durable and ended as the rules say.
 *
 * What can't be written must wait: bc_files_write() then returns false, as bc_pair_cut() does, and
 * may be called again at pair.retry_at_ns. Nothing is written twice. The writer's thread's own. */
#ifndef BC_DAEMON_STORE_ROTATOR_H
#define BC_DAEMON_STORE_ROTATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/open_segment.h"
#include "daemon/store/recording_info.h"
#include "daemon/base/rules.h"
#include "formats/base/must_check.h"

struct bc_files {
	struct bc_pair pair;
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
int bc_files_init(struct bc_files *files, const char *dir, int dir_fd,
	const struct bc_writer_rules *rules) BC_MUST_CHECK;

/* Leaves what is open as it is. */
void bc_files_destroy(struct bc_files *files);

/* A recording begins: nothing of another is open. */
void bc_files_begin(struct bc_files *files, const struct bc_recording *recording);

/* Writes what of a chunk and its raw block isn't written yet. Returns false when that must be tried
 * again. */
bool bc_files_write(struct bc_files *files, struct bc_encoded *encoded) BC_MUST_CHECK;

/* Whether the pair is as long as a rule lets it be. */
bool bc_files_are_full(const struct bc_files *files);

/* Counts a chunk as given up; the recording's last ends what is open, with a gap for all that was
 * given up if the disk takes that much. Overwrites the chunk's bytes. */
void bc_files_give_up(struct bc_files *files, struct bc_encoded *encoded);

/* When bc_files_keep_house() wants to be called next. */
uint64_t bc_files_due_ns(const struct bc_files *files);

/* Syncs and looks at the space, if it is time. */
void bc_files_keep_house(struct bc_files *files, bool has_waiting);

/* Makes durable what can be, and leaves the rest as it is. */
void bc_files_close(struct bc_files *files);

#endif
