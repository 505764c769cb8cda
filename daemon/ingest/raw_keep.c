#include "daemon/ingest/raw_keep.h"

#include "formats/bus/sample.h"

void bc_raw_keep_start_block(const struct bc_raw_keep *k, struct bc_raw_block *block, uint64_t tag)
{
	bc_raw_block_reset(block);
	block->recording_tag = tag;
	block->offset = k->offset;
	block->form = k->form;
}

void bc_raw_keep_flush(struct bc_raw_keep *k, struct bc_raw_block *block)
{
	for (uint32_t i = 0; i < k->pending_count; i++) {
		bc_raw_block_add(block, &k->pending[i], NULL);
		k->offset += k->pending[i].lost_bytes;
	}
	k->pending_count = 0;
	block->form = k->form;
}

static struct bc_raw_entry entry_of_break(const struct bc_source_break *broken)
{
	return (struct bc_raw_entry){
		.kind = BC_RAW_BREAK,
		.cause = (uint8_t)broken->cause,
		.is_cut = broken->is_cut,
		.is_restart = broken->is_restart,
		.duration_ns = broken->duration_ns,
		.lost = broken->lost,
	};
}

/* After a cut the stream starts with a whole sample. */
static void apply_cut(struct bc_raw_keep *k, const struct bc_source_break *broken)
{
	if (broken->is_cut)
		k->phase = 0;
}

static bool is_dropping(const struct bc_raw_keep *k)
{
	return k->pending_count != 0 && k->pending[k->pending_count - 1].lost_bytes != 0;
}

/* After dropped bytes the capture must continue with a whole sample, or a replay could not find the
 * sample boundary. Drops the rest of an incomplete one. Returns its length. */
static size_t skip_to_sample(struct bc_raw_keep *k, size_t count)
{
	if (k->form != BC_FORMAT_RAW6 || k->phase == 0 || !is_dropping(k))
		return 0;
	size_t rest = BC_SAMPLE_BYTES - k->phase;
	size_t n = rest < count ? rest : count;
	k->pending[k->pending_count - 1].lost_bytes += n;
	k->phase = (uint32_t)(k->phase + n) % BC_SAMPLE_BYTES;
	return n;
}

size_t bc_raw_keep_add(struct bc_raw_keep *k, struct bc_raw_block *block,
	const struct bc_source_data *data, size_t from, size_t count)
{
	k->form = data->format;
	if (data->broken != NULL) {
		struct bc_raw_entry entry = entry_of_break(data->broken);
		bc_raw_keep_flush(k, block);
		bc_raw_block_add(block, &entry, NULL);
		apply_cut(k, data->broken);
		return 0;
	}
	size_t left_out = skip_to_sample(k, count);
	struct bc_raw_entry entry = {
		.kind = BC_RAW_TRANSFER,
		.bytes = (uint32_t)(count - left_out),
		.has_times = data->has_times,
		.is_continued = data->has_times && from + count < data->count,
	};
	if (entry.bytes == 0)
		return left_out;
	if (data->has_times) {
		entry.since_ns = data->since_ns;
		entry.until_ns = data->until_ns;
	}
	bc_raw_keep_flush(k, block);
	if (block->bytes == 0 && k->form == BC_FORMAT_RAW6)
		block->lead = (BC_SAMPLE_BYTES - k->phase) % BC_SAMPLE_BYTES;
	bc_raw_block_add(block, &entry, data->bytes + from + left_out);
	k->offset += entry.bytes;
	k->phase = (k->phase + entry.bytes) % BC_SAMPLE_BYTES;
	return left_out;
}

static struct bc_raw_entry *next_pending(struct bc_raw_keep *k)
{
	if (k->pending_count == BC_RAW_PENDING)
		return &k->pending[BC_RAW_PENDING - 1];
	k->pending[k->pending_count] = (struct bc_raw_entry){.kind = BC_RAW_BREAK};
	return &k->pending[k->pending_count++];
}

void bc_raw_keep_drop(struct bc_raw_keep *k, const struct bc_source_data *data, size_t from,
	enum bc_gap_cause cause, uint64_t now_ns)
{
	struct bc_raw_entry *entry;

	k->form = data->format;
	if (data->broken != NULL) {
		entry = next_pending(k);
		/* A break that combines several gets the most severe cause; a loss counted by the
		 * board is the least severe. */
		if (entry->cause == 0 || data->broken->cause != BC_GAP_BOARD)
			entry->cause = (uint8_t)data->broken->cause;
		entry->is_restart = entry->is_restart || data->broken->is_restart;
		entry->is_cut = entry->is_cut || data->broken->is_cut;
		entry->duration_ns += data->broken->duration_ns;
		entry->lost = data->broken->lost;
		apply_cut(k, data->broken);
		return;
	}
	if (from == data->count)
		return;
	if (!is_dropping(k)) {
		entry = next_pending(k);
		entry->cause = (uint8_t)cause;
		entry->is_cut = true;
		k->dropping_since_ns = now_ns;
	} else {
		entry = &k->pending[k->pending_count - 1];
	}
	entry->lost_bytes += data->count - from;
	entry->duration_ns = now_ns - k->dropping_since_ns;
	k->phase = (uint32_t)((k->phase + data->count - from) % BC_SAMPLE_BYTES);
}
