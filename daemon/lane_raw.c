#include "daemon/lane_parts.h"

/* The block for so many entries and bytes more; NULL when none is free. */
static struct bc_raw_block *filling_block(struct bc_lane *l, uint32_t entries, size_t bytes)
{
	if (l->has_cut && !bc_lane_send_marked(l))
		return NULL;
	if (l->filling != NULL && !bc_raw_block_has_room(l->filling->raw, entries, bytes))
		bc_lane_submit(l);
	if (l->filling == NULL)
		l->filling = bc_lane_take_slot(l);
	return l->filling != NULL ? l->filling->raw : NULL;
}

/* What is left of a piece finds no block. */
static void drop_raw(struct bc_lane *l, const struct bc_source_data *data, size_t left)
{
	bool is_stuck = bc_pipeline_report(l->options.pipeline)->is_stuck;

	bc_raw_keep_drop(
		&l->raw, data, l->raw_kept, is_stuck ? BC_GAP_DISK : BC_GAP_BUFFER, uv_hrtime());
	l->counts->raw_dropped_bytes += left;
}

bool bc_lane_is_raw_fresh(const struct bc_lane *l)
{
	return l->options.keeps_raw && l->state == BC_LANE_RECORDING &&
	       l->raw.form == BC_FORMAT_UNKNOWN;
}

bool bc_lane_keep_raw(struct bc_lane *l, const struct bc_source_data *data, bool is_live)
{
	if (!l->options.keeps_raw || l->state != BC_LANE_RECORDING || !bc_raw_is_form(data->format))
		return true;
	size_t count = data->broken == NULL ? data->count : 0;
	do {
		size_t left = count - l->raw_kept;
		size_t n = left < BC_RAW_BLOCK_BYTES ? left : BC_RAW_BLOCK_BYTES;
		struct bc_raw_block *block = filling_block(l, bc_raw_keep_entries(&l->raw), n);
		if (block == NULL && !is_live)
			return false;
		if (block == NULL) {
			drop_raw(l, data, left);
			break;
		}
		l->counts->raw_dropped_bytes += bc_raw_keep_add(
			&l->raw, block, data, l->raw_kept, n);
		l->raw_kept += n;
		bc_lane_time_flush(l);
	} while (l->raw_kept < count);
	l->raw_kept = 0;
	return true;
}
