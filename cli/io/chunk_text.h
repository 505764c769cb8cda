/* The text of a segment's chunks, printed by the threads that decode them, for formats that print
 * each record by itself. */
#ifndef BC_CLI_IO_CHUNK_TEXT_H
#define BC_CLI_IO_CHUNK_TEXT_H

#include "cli/io/target.h"
#include "formats/segment/decode_ahead.h"
#include "formats/trace/entry.h"

/* The work for a reader (struct bc_reader_options) whose records go to this target. Of a target
 * that can't have text this way, the threads only decode. */
struct bc_chunk_work bc_chunk_text_work(struct bc_target *target);

/* Writes the text of the first records of a run, all that have any, and advances the run. `result`
 * is the batch's. */
void bc_chunk_text_write(void *result, struct bc_target *target, struct bc_record_run *run);

#endif
