/* Reads bcp1. The samples of each frame become entries; gaps and damage between frames become
 * events and faults. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/bus/bcp1_file.h"
#include "formats/bus/mapping.h"
#include "formats/reader/reader_kind.h"

struct frame_state {
	struct bc_frames *frames;
	bool has_frame; /* samples [next, header.samples) of the current frame are still to be
			   returned */
	uint32_t next;
	uint64_t tick;   /* of the previous sample */
	uint64_t number; /* of the next sample */
	bool has_epoch;
	uint32_t epoch; /* of the last entry */
	bool is_over;
	struct bc_mapping mapping;
};

static int open_frames(struct bc_reader *r)
{
	struct bc_mapping_options mapping = bc_mapping_options_default();
	struct frame_state *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	r->state = f;
	mapping.keep_invalid = true; /* the target decides whether to drop them */
	bc_mapping_init(&f->mapping, &mapping);
	return bc_frames_open(&f->frames, bc_input_stream(r->input));
}

static void close_frames(struct bc_reader *r)
{
	struct frame_state *f = r->state;

	if (f == NULL)
		return;
	bc_frames_close(f->frames);
	free(f);
}

/* Returns as many samples of the frame as fit. */
static void next_samples(struct bc_reader *r, struct frame_state *f, struct bc_batch *batch)
{
	const struct bc_bcp1_header *header = &f->frames->frame.header;
	bool has_agent = (header->flags & BC_BCP1_AGENT) != 0;

	while (f->next < header->samples && batch->count < BC_READER_ENTRIES) {
		const uint8_t *sample = f->frames->frame.samples +
					(size_t)f->next * BC_BCP1_SAMPLE_BYTES;
		struct bc_entry *entry = &r->entries[batch->count++];
		f->tick += f->next != 0 ? bc_le16(sample + BC_SAMPLE_BYTES) : 0;
		bc_entry_of_sample(entry, sample, &f->mapping,
			has_agent ? sample[5] & 15 : header->proc, f->number++, f->tick);
		entry->epoch = f->epoch;
		f->next++;
	}
	f->has_frame = f->next < header->samples;
}

static void add_event(
	struct bc_reader *r, struct frame_state *f, struct bc_batch *batch, struct bc_event event)
{
	struct bc_entry *entry = &r->entries[batch->count++];

	bc_entry_reference(entry, 0, 0, f->number);
	entry->kind = BC_ENTRY_EVENT;
	entry->tick = f->frames->frame.header.tick;
	entry->epoch = f->frames->epoch;
	entry->note.event = event;
	entry->note.text = (struct bc_text){.at = "", .bytes = 0};
}

static void start_frame(struct bc_reader *r, struct frame_state *f, struct bc_batch *batch)
{
	if (f->frames->frame.header.samples == 0)
		return;
	if (f->has_epoch && f->epoch != f->frames->epoch)
		add_event(r, f, batch, (struct bc_event){.kind = 0});
	f->has_epoch = true;
	f->epoch = f->frames->epoch;
	f->has_frame = true;
	f->next = 0;
	f->tick = f->frames->frame.header.tick;
}

static int next_frame(struct bc_reader *r, struct bc_batch *batch)
{
	struct frame_state *f = r->state;

	while (batch->count == 0) {
		if (f->has_frame) {
			next_samples(r, f, batch);
			break;
		}
		if (f->is_over)
			return 0;
		int rc = bc_frames_next(f->frames);
		switch (rc) {
		case BC_FRAMES_FRAME:
			start_frame(r, f, batch);
			break;
		case BC_FRAMES_GAP:
			add_event(r, f, batch,
				(struct bc_event){.kind = BC_EVENT_GAP,
					.cause = (uint8_t)f->frames->gap.cause,
					.exact = f->frames->gap.is_exact,
					.value = f->frames->gap.lost});
			if (f->frames->gap.cause != BC_GAP_SEQUENCE)
				break;
			r->fault = (struct bc_fault){.offset = f->frames->gap.offset};
			snprintf(r->fault.what, sizeof(r->fault.what), "frames are missing here");
			batch->fault = &r->fault;
			return 1;
		case BC_FRAMES_TRIGGER:
			add_event(r, f, batch, (struct bc_event){.kind = BC_EVENT_TRIGGER});
			break;
		case BC_FRAMES_DAMAGE:
			r->fault = (struct bc_fault){.offset = f->frames->damage.offset,
				.bytes = f->frames->damage.bytes};
			snprintf(
				r->fault.what, sizeof(r->fault.what), "%s", f->frames->damage.what);
			batch->fault = &r->fault;
			return 1;
		case BC_FRAMES_END:
			f->is_over = true;
			break;
		case -EBADMSG:
			f->is_over = true;
			r->fault = (struct bc_fault){.offset = f->frames->whole_end};
			snprintf(r->fault.what, sizeof(r->fault.what),
				"the compressed data is damaged or torn here");
			batch->fault = &r->fault;
			return 1;
		default:
			return rc;
		}
	}
	return 1;
}

const struct bc_reader_kind bc_frame_reader = {
	.open = open_frames, .next = next_frame, .close = close_frames};
