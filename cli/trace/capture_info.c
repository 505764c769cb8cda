#include "cli/trace/capture_info.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/term/output.h"

static void add_block(struct bc_capture_info *info, const struct bc_raw_block *block)
{
	if (info->blocks++ == 0)
		info->offset = block->offset;
	info->stream_bytes += block->bytes;
	for (uint32_t i = 0; i < block->entries; i++) {
		const struct bc_raw_entry *entry = &block->table[i];
		if (entry->kind == BC_RAW_BREAK) {
			info->breaks++;
			info->dropped_bytes += entry->lost_bytes;
		} else {
			info->transfers += entry->has_times;
		}
	}
}

static void set_header(struct bc_capture_info *info, const struct bc_segment_header *header)
{
	if (info->has_header)
		return;
	info->has_header = true;
	info->header = *header;
}

int bc_capture_info_gather(struct bc_capture_info *info, struct bc_file *file,
	bc_on_capture_damage on_damage, void *context)
{
	struct bc_segment_reader *reader = NULL;
	struct bc_raw_block *block = malloc(sizeof(*block));
	int found = block != NULL ? bc_input_capture(file->input, &reader) : -ENOMEM;
	bool is_open = false; /* a capture has started, and its end is expected */

	memset(info, 0, sizeof(*info));
	while (found >= 0 && (found = bc_raw_read(reader, block)) > BC_FOUND_END) {
		switch ((enum bc_segment_found)found) {
		case BC_FOUND_SEGMENT:
			info->unsealed += is_open;
			is_open = true;
			info->files++;
			set_header(info, bc_segment_reader_header(reader));
			break;
		case BC_FOUND_CHUNK:
			info->files += !is_open;
			is_open = true;
			add_block(info, block);
			info->holes += bc_segment_reader_follows(reader) == BC_RAW_AFTER_HOLE;
			break;
		case BC_FOUND_INDEX:
			info->files += !is_open;
			is_open = false;
			break;
		case BC_FOUND_DAMAGE:
			info->damages++;
			on_damage(context, bc_segment_reader_damage(reader));
			break;
		case BC_FOUND_END:
			break;
		}
	}
	info->unsealed += is_open || info->files == 0;
	if (reader != NULL)
		info->bytes = bc_segment_reader_offset(reader);
	bc_segment_reader_close(reader);
	free(block);
	return found;
}

void bc_capture_info_print(struct bc_output *output, const struct bc_capture_info *info)
{
	bc_status_line(output, "size", "%" PRIu64 " byte%s", info->bytes, bc_plural(info->bytes));
	if (info->files > 1)
		bc_status_line(output, "files", "%" PRIu64, info->files);
	if (info->has_header) {
		const struct bc_segment_header *h = &info->header;
		char source[sizeof(h->source_kind) + sizeof(h->source_name)];
		snprintf(source, sizeof(source), "%s %s", h->source_kind, h->source_name);
		bc_status_line_safe(output, "recording", h->recording);
		bc_status_line(output, "segment", "%" PRIu32, h->segment);
		bc_status_line_safe(output, "source", source);
		if (h->clock_hz != 0)
			bc_status_line(output, "clock", "%" PRIu64 " Hz", h->clock_hz);
		else
			bc_status_line(output, "clock", "unknown");
	}
	bc_status_line(output, "stream", "%" PRIu64 " byte%s, from byte %" PRIu64,
		info->stream_bytes, bc_plural(info->stream_bytes), info->offset);
	bc_status_line(output, "blocks", "%" PRIu64, info->blocks);
	bc_status_line(output, "transfers", "%" PRIu64 " with times", info->transfers);
	bc_status_line(output, "breaks", "%" PRIu64 ", %" PRIu64 " byte%s dropped", info->breaks,
		info->dropped_bytes, bc_plural(info->dropped_bytes));
	if (info->holes != 0)
		bc_status_line(output, "holes", "%" PRIu64, info->holes);
}

json_t *bc_capture_info_json(const struct bc_capture_info *info)
{
	const struct bc_segment_header *h = &info->header;

	return bc_json_object((struct bc_json_member[]){
		{"bytes", bc_json_u64(info->bytes)},
		{"files", bc_json_u64(info->files)},
		{"sealed", json_boolean(info->unsealed == 0)},
		{"recording", bc_json_text(info->has_header ? h->recording : NULL)},
		{"segment", bc_json_u64(h->segment)},
		{"clock_hz", bc_json_u64(h->clock_hz)},
		{"stream_bytes", bc_json_u64(info->stream_bytes)},
		{"stream_offset", bc_json_u64(info->offset)},
		{"blocks", bc_json_u64(info->blocks)},
		{"transfers", bc_json_u64(info->transfers)},
		{"breaks", bc_json_u64(info->breaks)},
		{"dropped_bytes", bc_json_u64(info->dropped_bytes)},
		{"holes", bc_json_u64(info->holes)},
		{"damaged_places", bc_json_u64(info->damages)},
		{NULL, NULL},
	});
}
