/* The writer: one thread that puts encoded chunks into segment files, in order, makes them durable
 * on its own schedule, seals, and keeps to the space rules (daemon/files.h). Nobody else touches
 * the output directory.
 *
 * A chunk that can't be written stays and is tried again twice a second; the chunks behind it wait.
 * The loop learns of everything by bc_writer_report(), a copy of the writer's counts. */
#ifndef BC_DAEMON_WRITER_H
#define BC_DAEMON_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/queue.h"
#include "daemon/recording.h"
#include "daemon/rules.h"
#include "formats/segment_name.h"

struct bc_writer;

struct bc_writer_rules {
	struct bc_rotation rotation;
	struct bc_space_rules space;
	uint64_t stop_bytes; /* end the recording after the chunk that passes it; 0: don't */
	uint64_t sync_ns;    /* fdatasync this often while there is something to sync */
};

struct bc_writer_options {
	const char *dir; /* for messages, and to open it again when it was replaced */
	int dir_fd;      /* the caller's, stays open */
	struct bc_writer_rules rules;
	struct bc_queue *encoded;        /* struct bc_encoded, from the encoder */
	struct bc_queue *outputs;        /* given back to */
	unsigned outputs_count;          /* how many there are in all */
	void (*reported)(void *context); /* called on the writer's thread when there is news */
	void *context;
};

/* How things stand. Sums are since the start, of records unless they say bytes. */
struct bc_writer_report {
	uint64_t written;       /* given to the kernel */
	uint64_t durable;       /* of them, made durable */
	uint64_t unrecorded;    /* left out: they came after the recording had reached stop_bytes */
	uint64_t abandoned;     /* given up, by bc_writer_abandon() */
	uint64_t raw_abandoned; /* bytes of the stream, likewise */
	uint64_t bytes;         /* of all that was written */
	uint64_t recording_bytes; /* of the present recording's segments */
	uint64_t recording_records;
	uint64_t recordings_ended;
	bool is_stuck;     /* a chunk can't be written for now */
	bool is_hopeless;  /* and won't be without somebody's help: no directory, no permission */
	bool is_full;      /* the recording has reached stop_bytes */
	bool is_open;      /* `file` still has .partial behind its name */
	unsigned unsealed; /* files that could not be sealed */
	unsigned deleted;  /* files that somebody deleted while they were open */
	uint32_t segment;
	uint64_t free_bytes;            /* of the file system, when last looked */
	char file[BC_SEGMENT_NAME_MAX]; /* the open segment, or the one sealed last; empty: none yet
					 */
	char error[256];                /* the latest; empty: none yet */
};

/* Starts the thread. Returns 0 or a negative errno. */
int bc_writer_start(struct bc_writer **writer, const struct bc_writer_options *options)
	__attribute__((warn_unused_result));

void bc_writer_report(struct bc_writer *writer, struct bc_writer_report *report);

/* Changes the rules from here on. */
void bc_writer_set_rules(struct bc_writer *writer, const struct bc_writer_rules *rules);

/* Gives up what can't be written: chunks in hand and to come are counted and dropped. The open
 * segment ends with a gap for them where the disk takes that much, and is left as .partial where it
 * can't be sealed. */
void bc_writer_abandon(struct bc_writer *writer);

/* Ends the thread, when every chunk encoded is dealt with (close and drain the encoder before), and
 * frees the writer. NULL is none. */
void bc_writer_stop(struct bc_writer *writer);

#endif
