#include "capture/source/block_replay.h"

#include <stdlib.h>
#include <string.h>

void bc_block_replay_start(
	struct bc_block_replay *r, const struct bc_raw_block *block, enum bc_raw_follows follows)
{
	r->next_entry = 0;
	r->consumed = 0;
	r->skip = follows != BC_RAW_CONTIGUOUS ? block->lead : 0;
	r->is_broken = follows == BC_RAW_AFTER_HOLE || follows == BC_RAW_OTHER_RECORDING;
	r->is_joined = false;
	r->broken = (struct bc_source_break){
		.cause = follows == BC_RAW_AFTER_HOLE ? BC_GAP_DAMAGED : BC_GAP_UNPLUGGED,
		.is_cut = true,
		.is_restart = follows == BC_RAW_OTHER_RECORDING,
	};
}

bool bc_block_replay_flush(struct bc_block_replay *r, const struct bc_source_sink *sink)
{
	if (r->joined_bytes == 0)
		return true;
	r->joined_data.bytes = r->joined;
	r->joined_data.count = r->joined_bytes;
	if (!sink->data(sink->context, &r->joined_data))
		return false;
	r->joined_bytes = 0;
	return true;
}

void bc_block_replay_free(struct bc_block_replay *r)
{
	free(r->joined);
	r->joined = NULL;
}

/* Appends bytes to the joined transfer. Returns false if out of memory, or if it would become
 * longer than any transfer can be. */
static bool replay_join(struct bc_block_replay *r, const struct bc_source_data *data)
{
	size_t need = r->joined_bytes + data->count;

	if (need > BC_RAW_TRANSFER_MAX)
		return false;
	if (need > r->joined_capacity) {
		uint8_t *more = realloc(r->joined, need);
		if (more == NULL)
			return false;
		r->joined = more;
		r->joined_capacity = need;
	}
	if (r->joined_bytes == 0) {
		r->joined_data = *data;
		if (data->header != NULL) {
			r->joined_header = *data->header;
			r->joined_data.header = &r->joined_header;
		}
	}
	memcpy(r->joined + r->joined_bytes, data->bytes, data->count);
	r->joined_bytes = need;
	return true;
}

static bool replay_break(const struct bc_block_replay *r, struct bc_source_data *data,
	const struct bc_source_sink *sink)
{
	data->broken = &r->broken;
	return sink->data(sink->context, data);
}

/* Passes on a transfer or a part of one. Parts are joined only for raw6, whose times are spread
 * over the whole transfer. */
static bool replay_transfer(struct bc_block_replay *r, const struct bc_raw_entry *entry,
	const struct bc_source_data *data, const struct bc_source_sink *sink)
{
	if (r->is_joined)
		return bc_block_replay_flush(r, sink);
	bool is_part = entry->is_continued || r->joined_bytes != 0;
	if (is_part && data->format == BC_FORMAT_RAW6 && replay_join(r, data)) {
		r->is_joined = !entry->is_continued;
		return entry->is_continued || bc_block_replay_flush(r, sink);
	}
	return bc_block_replay_flush(r, sink) &&
	       (data->count == 0 || sink->data(sink->context, data));
}

static bool replay_entry(struct bc_block_replay *r, const struct bc_raw_block *block,
	const struct bc_segment_header *header, const struct bc_source_sink *sink)
{
	const struct bc_raw_entry *entry = &block->table[r->next_entry];
	struct bc_source_data data = {.format = block->form, .header = header};

	if (entry->kind == BC_RAW_BREAK) {
		if (!bc_block_replay_flush(r, sink))
			return false;
		r->broken = (struct bc_source_break){
			.cause = entry->cause < BC_GAP_CAUSES ? entry->cause : BC_GAP_DAMAGED,
			.duration_ns = entry->duration_ns,
			.is_cut = entry->is_cut,
			.is_restart = entry->is_restart,
			.lost = entry->lost,
		};
		return replay_break(r, &data, sink);
	}
	uint32_t skip = r->skip < entry->bytes ? r->skip : entry->bytes;
	data.bytes = block->data + r->consumed + skip;
	data.count = entry->bytes - skip;
	data.has_times = entry->has_times;
	data.since_ns = entry->since_ns;
	data.until_ns = entry->until_ns;
	return replay_transfer(r, entry, &data, sink);
}

bool bc_block_replay_push(struct bc_block_replay *r, const struct bc_raw_block *block,
	const struct bc_segment_header *header, const struct bc_source_sink *sink,
	const bool *is_over)
{
	struct bc_source_data data = {.format = block->form, .header = header};

	if (r->is_broken) {
		if (!bc_block_replay_flush(r, sink) || !replay_break(r, &data, sink))
			return false;
		r->is_broken = false;
	}
	while (!*is_over && r->next_entry < block->entries) {
		if (!replay_entry(r, block, header, sink))
			return false;
		const struct bc_raw_entry *entry = &block->table[r->next_entry++];
		r->consumed += entry->bytes;
		r->skip -= r->skip < entry->bytes ? r->skip : entry->bytes;
		r->is_joined = false;
	}
	return true;
}
