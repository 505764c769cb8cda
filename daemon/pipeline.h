/* The way from records to files, as the loop sees it: the chunk being filled, the pool it comes
 * from, the encoder and the writer behind it, and the counts of all that.
 *
 * The decoder asks for a chunk with bc_pipeline_chunk(), stamps records into it and says so with
 * bc_pipeline_took(); what it has to leave out goes to bc_pipeline_dropped(), what is missing in
 * the stream to bc_pipeline_gap(). The pipeline keeps gaps until there is a chunk to hold them,
 * cuts chunks by time, and hands them on. Where raw bytes are kept, each piece of the stream goes
 * through bc_pipeline_keep_raw() first.
 *
 *     bc_pipeline_open()
 *     bc_pipeline_begin()      a recording starts
 *     ... chunks, gaps, cuts
 *     bc_pipeline_finish()     the recording ends; on_ended() follows when it is on the disk
 *     bc_pipeline_close()
 *
 * All calls are of the loop's thread. */
#ifndef BC_DAEMON_PIPELINE_H
#define BC_DAEMON_PIPELINE_H

#include <uv.h>

#include "capture/source.h"
#include "daemon/counts.h"
#include "daemon/recording.h"
#include "daemon/writer.h"
#include "formats/stamp.h"

struct bc_pipeline;

struct bc_pipeline_options {
	uint64_t buffer_bytes; /* all chunks and output slots together */
	unsigned workers;
	bool keeps_raw;    /* the stream's bytes are saved beside its records */
	uint64_t flush_ns; /* a chunk is handed on this long after its first record */
	const char *dir;
	int dir_fd; /* the caller's, stays open */
	struct bc_writer_rules rules;
	void *context;
	void (*on_room)(void *context);   /* a chunk is free again, after there was none */
	void (*on_ended)(void *context);  /* the recording is written and sealed, or given up */
	void (*on_report)(void *context); /* the writer has news: bc_pipeline_report() */
};

/* The least buffer that so many workers can do with. */
uint64_t bc_pipeline_least_buffer(unsigned workers, bool keeps_raw);

/* Takes the memory and starts the threads. Returns 0 or a negative errno. */
int bc_pipeline_open(struct bc_pipeline **pipeline, uv_loop_t *loop,
	const struct bc_pipeline_options *options) __attribute__((warn_unused_result));

/* Ends the threads; no recording may be running. Memory goes when the loop has closed the handles.
 */
void bc_pipeline_close(struct bc_pipeline *pipeline);

/* Changes flush and rules from here on. */
void bc_pipeline_set_rules(
	struct bc_pipeline *pipeline, uint64_t flush_ns, const struct bc_writer_rules *rules);

/* Begins a recording, whose description the caller keeps until on_ended(). */
void bc_pipeline_begin(struct bc_pipeline *pipeline, const struct bc_recording *recording);

/* Keeps a new piece of the stream as it came, with keeps_raw; else does nothing. Called before the
 * piece is decoded, once. Without room, a live source's bytes are dropped, counted, and said to be
 * by a break in the capture; of any other source returns false: offer the piece again. */
bool bc_pipeline_keep_raw(
	struct bc_pipeline *pipeline, const struct bc_source_data *data, bool is_live);

/* The chunk to put records into: of the stamper's epoch, with what is missing before them noted.
 * NULL when none is free. */
struct bc_chunk *bc_pipeline_chunk(struct bc_pipeline *pipeline, const struct bc_stamper *stamper);

/* What a stamping call did with the chunk. */
void bc_pipeline_took(struct bc_pipeline *pipeline, const struct bc_stamped *stamped);

/* What a skipping call passed over because there was no chunk: counted, and a gap at this place. */
void bc_pipeline_dropped(struct bc_pipeline *pipeline, const struct bc_stamped *stamped);

/* Samples are missing here: `lost` of them, or at least so many. */
void bc_pipeline_gap(
	struct bc_pipeline *pipeline, enum bc_gap_cause cause, uint64_t lost, bool exact);

/* The same, for so long by the host's clock. */
void bc_pipeline_gap_lasting(struct bc_pipeline *pipeline, enum bc_gap_cause cause, uint64_t lost,
	bool exact, uint64_t duration_ns);

/* Carries over a gap of a recording that is replayed, or sets a mark or trigger. Position and text
 * offset are set here. Returns false when there is no chunk to hold it yet. */
bool bc_pipeline_event(struct bc_pipeline *pipeline, const struct bc_stamper *stamper,
	const struct bc_event *event, const char *text);

/* Hands on the chunk being filled, if it holds anything; the next goes on behind it. */
void bc_pipeline_submit(struct bc_pipeline *pipeline);

/* Ends the segment here: what comes next is in a new one. */
void bc_pipeline_cut(struct bc_pipeline *pipeline);

/* Ends the recording: what is in hand is written, the segment sealed. */
void bc_pipeline_finish(struct bc_pipeline *pipeline);

/* While finishing: give up what the disk doesn't take. */
void bc_pipeline_abandon(struct bc_pipeline *pipeline);

/* The host's time of day of the present chunk's first record, where it is not now. */
void bc_pipeline_set_wall(struct bc_pipeline *pipeline, int64_t wall_ns);

struct bc_counts *bc_pipeline_counts(struct bc_pipeline *pipeline);
const struct bc_writer_report *bc_pipeline_report(const struct bc_pipeline *pipeline);

/* Records taken into the present recording so far. */
uint64_t bc_pipeline_records(const struct bc_pipeline *pipeline);

struct bc_buffer_state {
	unsigned chunks; /* in the pool */
	unsigned free;
	unsigned low_water; /* the fewest that were ever free */
};
struct bc_buffer_state bc_pipeline_buffer(struct bc_pipeline *pipeline);

#endif
