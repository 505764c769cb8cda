/* The sealer: a thread that does what the writer need not wait for. It syncs the open segment,
 * seals and closes complete ones, and applies the space rules. Meanwhile the writer keeps writing,
 * to the open segment or the next one.
 *
 * Tasks are done one at a time and in order. So what is durable, and what is sealed, is a prefix of
 * what was written, but without what was written to segments whose sync or sealing has failed.
 *
 *     bc_sealer_start()
 *     bc_sealer_submit(), bc_sealer_take() ...    a task is the sealer's in between
 *     bc_sealer_finish(), bc_sealer_take(), bc_sealer_free() */
#ifndef BC_DAEMON_STORE_SEALER_H
#define BC_DAEMON_STORE_SEALER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/queue.h"
#include "daemon/base/thread_health.h"
#include "daemon/store/catalogue.h"
#include "daemon/store/retention.h"
#include "daemon/store/writer_report.h"
#include "formats/base/must_check.h"
#include "formats/segment/segment_writer.h"

/* Segments that may be submitted at a time. */
#define BC_SEALER_SEGMENTS 32u

enum bc_seal_kind {
	BC_SEAL_SYNC,  /* makes durable what the open segment has, while the writer appends to it */
	BC_SEAL_SEAL,  /* seals a segment that has its end, unless a sync of it has failed */
	BC_SEAL_CLOSE, /* leaves it .partial */
	BC_SEAL_CHECK, /* applies the space rules: struct bc_space_check */
};

struct bc_seal_task {
	enum bc_seal_kind kind;
	struct bc_complete_segment *segment; /* of all but CHECK */
	uint64_t bytes;                      /* SYNC: length of the segment when it is submitted */
	uint64_t records;                    /* SYNC: in that length, and not durable before */
	int rc;                              /* when done: 0 or a negative errno */
	uint64_t took_ns;                    /* when done */
};

/* What sealing a segment needs; allocated before its file is created. */
struct bc_complete_segment {
	struct bc_seal_task sync;
	struct bc_seal_task end; /* SEAL or CLOSE, after `sync` */
	int fd;
	int dir_fd;
	char open_name[BC_ATOMIC_FILE_NAME_MAX];
	struct bc_segment_writer writer; /* with `end`; it is closed when that is done */
	struct bc_writer_notice *notice; /* of SEALED */
	struct bc_writer_notice *total;  /* of its recording */
	uint64_t unsynced;               /* records that are not durable, when `end` is submitted */
	bool is_deleted;                 /* the file is gone */
	/* The sealer's, and the writer's when `end` is done. */
	uint64_t synced_bytes; /* by the last sync; 0: none */
	bool has_failed;       /* a sync */
};

struct bc_space_check {
	struct bc_seal_task task;
	struct bc_retention_check of; /* all but the clocks, `limits` and `health` */
	struct bc_retention_rules rules;
	char recording[BC_RECORDING_ID_MAX];
	struct bc_retention_state state; /* when done */
};

struct bc_sealer;

/* Starts the thread. It wakes `writer` when a task is done. Returns 0 or a negative errno. */
int bc_sealer_start(struct bc_sealer **sealer, struct bc_catalogue *catalogue,
	struct bc_queue *writer) BC_MUST_CHECK;

/* Submits a task that is not submitted. */
void bc_sealer_submit(struct bc_sealer *sealer, struct bc_seal_task *task);

/* Returns the next task that is done. Waits up to `wait_ns` for it; else returns NULL. */
struct bc_seal_task *bc_sealer_take(struct bc_sealer *sealer, uint64_t wait_ns);

void bc_sealer_poll(struct bc_sealer *sealer, struct bc_thread_health_seen *longest);

/* Does the remaining tasks and ends the thread. */
void bc_sealer_finish(struct bc_sealer *sealer);
void bc_sealer_free(struct bc_sealer *sealer); /* NULL is allowed */

#endif
