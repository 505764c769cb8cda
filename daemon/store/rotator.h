/* The open segment: writes encoded chunks to it and rotates it. Has the sealer sync and seal the
 * segments and apply the space rules (daemon/store/sealer.h), and takes over what it has done.
 *
 *     bc_rotator_start()      for each recording
 *     bc_rotator_write()      for each chunk, or bc_rotator_give_up()
 *     bc_rotator_cut()        where a segment ends
 *     bc_rotator_end()        when the last chunk is written or given up
 *     bc_rotator_maintain()   at bc_rotator_due_ns()
 *
 * If bc_rotator_write() or bc_rotator_cut() returns false, call it again at retry_at_ns. A file
 * that fails for good is closed without sealing, and logged. Writer thread only. */
#ifndef BC_DAEMON_STORE_ROTATOR_H
#define BC_DAEMON_STORE_ROTATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/log_limit.h"
#include "daemon/base/thread_health.h"
#include "daemon/store/catalogue.h"
#include "daemon/store/encoded.h"
#include "daemon/store/last_write.h"
#include "daemon/store/sealer.h"
#include "daemon/store/writer_options.h"
#include "daemon/store/writer_report.h"
#include "formats/base/must_check.h"
#include "formats/segment/segment_writer.h"

struct bc_rotator {
	const char *dir; /* for messages, and to open it again */
	int dir_fd;
	struct bc_catalogue *catalogue; /* of the directory */
	bool owns_dir_fd;
	bool is_mounted;                /* the directory is a mount point */
	bool is_dir_moved;              /* `dir` no longer names the directory */
	struct bc_thread_health health; /* the current operation; read by the loop */
	struct bc_writer_stats stats;
	const struct bc_recording_info *recording; /* the current one, or NULL */
	struct bc_writer_notice *notices;          /* for the loop */
	struct bc_writer_notice *total;            /* of the recording so far: its ENDED */
	struct bc_writer_notice *ended; /* of recordings that have ended, but are not sealed */
	bool has_chunk;                 /* the recording */
	struct bc_sealer *sealer;
	struct bc_segment_writer segment;
	struct bc_complete_segment *complete; /* for it; allocated before the file */
	bool is_syncing;                      /* `complete->sync` is submitted */
	uint32_t next_number;
	uint64_t unsynced; /* records written to the open segment but not durable */
	unsigned sealing;  /* segments that the sealer has not returned, and their bytes */
	uint64_t sealing_bytes;
	uint64_t lag_bytes; /* how far the sealer may lag behind */
	uint64_t retry_at_ns;
	uint64_t stuck_since_ns;
	char stuck_reason[200]; /* the reason logged last */
	struct bc_log_limits limits;

	struct bc_writer_rules rules; /* may be changed between calls */
	uint64_t sync_at_ns;
	uint64_t check_at_ns; /* next check of the space and the open segment */
	struct bc_space_check check;
	bool is_checking;    /* `check` is submitted */
	bool is_over;        /* at the last check */
	char over[200];      /* why */
	bool has_waited;     /* for the catalogue, at the start */
	uint64_t space_left; /* bytes that could be written at the last check; UINT64_MAX: any */
	uint64_t space_checked_at; /* stats.bytes at the last check */
	char space_error[256];     /* the error logged last */
	bool has_no_reserve;       /* logged: the reserve can't be created */
	struct bc_last_write last_write;
};

/* Starts the sealer, which wakes options->encoded when to call bc_rotator_take(). Returns 0 or a
 * negative errno. */
int bc_rotator_init(
	struct bc_rotator *rotator, const struct bc_writer_options *options) BC_MUST_CHECK;

/* Call after bc_rotator_close(), or if no file was ever opened. */
void bc_rotator_destroy(struct bc_rotator *rotator);

/* Starts a recording, after bc_rotator_end() of the one before. Returns false if out of memory. */
bool bc_rotator_start(
	struct bc_rotator *rotator, const struct bc_recording_info *recording) BC_MUST_CHECK;

/* Writes a chunk, with the recording's end if it is the last one. Discards its records once the
 * recording has reached stop_bytes. A recording without any chunk gets no end. Returns false to be
 * called again with the same chunk; it then continues where it stopped. */
bool bc_rotator_write(struct bc_rotator *rotator, struct bc_encoded *encoded) BC_MUST_CHECK;

/* Ends the open segment and has it sealed; no-op without one. Returns false to be called again. */
bool bc_rotator_cut(struct bc_rotator *rotator) BC_MUST_CHECK;

/* Takes over what the sealer has done. */
void bc_rotator_take(struct bc_rotator *rotator);

/* Ends the recording, whose segments are complete: ENDED is sent when the sealer has done them. */
void bc_rotator_end(struct bc_rotator *rotator);

/* Returns whether the open segment has reached its maximum size. */
bool bc_rotator_is_full(const struct bc_rotator *rotator);

/* Counts a chunk as given up. The recording's last chunk becomes gaps for everything given up: in
 * the open segment or a new one, on a full disk in the space of the reserve. Then has the segment
 * sealed. Overwrites the chunk's data. */
void bc_rotator_give_up(struct bc_rotator *rotator, struct bc_encoded *encoded);

/* Returns when to call bc_rotator_maintain() next. */
uint64_t bc_rotator_due_ns(const struct bc_rotator *rotator);

/* Syncs the segment and checks the space, if due. `has_waiting`: chunks wait to be written. */
void bc_rotator_maintain(struct bc_rotator *rotator, bool has_waiting);

/* Has the open segment synced and closed without sealing, and ends the sealer. */
void bc_rotator_close(struct bc_rotator *rotator);

#endif
