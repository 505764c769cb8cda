#include "cli/segment_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NS_PER_S 1000000000

static void write_wall(char out[48], int64_t wall_ns)
{
	int64_t ns = wall_ns % NS_PER_S;
	time_t seconds = (time_t)(wall_ns / NS_PER_S);
	struct tm tm;
	char date[24] = "";

	if (ns < 0) {
		ns += NS_PER_S;
		seconds--;
	}
	if (gmtime_r(&seconds, &tm) != NULL)
		strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out, 48, "%s.%09dZ", date, (int)ns);
}

static double duration_s(const struct bc_segment_info *info)
{
	return (double)info->duration_ticks / (double)info->header.clock_hz;
}

static uint64_t unpacked_bytes(const struct bc_segment_info *info)
{
	return info->records * BC_RECORD_BYTES;
}

static double ratio(const struct bc_segment_info *info)
{
	return info->bytes != 0 ? (double)unpacked_bytes(info) / (double)info->bytes : 0;
}

static bool has_bit(const uint64_t bitmap[4], unsigned n)
{
	return (bitmap[n / 64] >> n % 64 & 1) != 0;
}

static const char *type_name(char out[8], unsigned type)
{
	const char *name = bc_reqtype_name((uint8_t)type);

	snprintf(out, 8, "%02x", type);
	return name != NULL ? name : out;
}

static void print_mapping(struct bc_output *output, const struct bc_segment_header *h)
{
	char attr[BC_CYCLES * 4 + 1] = "";

	if (!h->has_mapping)
		return;
	for (size_t i = 0, at = 0; i < BC_CYCLES; i++)
		at += (size_t)snprintf(attr + at, sizeof(attr) - at, "%s%x", i != 0 ? " " : "",
			h->mapping.attr[i]);
	bc_status_line(output, "mapping", "sizes of BYU %s, invalid cycles %s, attr %s",
		h->mapping.size_v1_0 ? "v1.0" : "v1.1",
		h->mapping.keep_invalid ? "kept" : "dropped", attr);
}

static void print_header(struct bc_output *output, const struct bc_segment_info *info)
{
	const struct bc_segment_header *h = &info->header;
	char text[sizeof(h->source_kind) + sizeof(h->source_name)];

	bc_status_line_safe(output, "recording", h->recording);
	if (h->label[0] != '\0')
		bc_status_line_safe(output, "label", h->label);
	bc_status_line(output, "segment", "%" PRIu32, h->segment);
	if (h->continues[0] != '\0')
		bc_status_line_safe(output, "continues", h->continues);
	snprintf(text, sizeof(text), "%s %s", h->source_kind, h->source_name);
	bc_status_line_safe(output, "source", text);
	if (h->board_serial[0] != '\0' || h->board_firmware[0] != '\0') {
		snprintf(text, sizeof(text), "serial %s, firmware %s", h->board_serial,
			h->board_firmware);
		bc_status_line_safe(output, "board", text);
	}
	if (h->clock_hz != 0)
		bc_status_line(output, "clock", "%" PRIu64 " Hz", h->clock_hz);
	else
		bc_status_line(output, "clock", "not known");
	print_mapping(output, h);
	bc_status_line_safe(output, "host", h->host);
	bc_status_line_safe(output, "program", h->program);
	if (h->metadata[0] == '\0')
		return;
	bc_output_format(output, "  %-11s ", "metadata");
	bc_output_escaped(output, h->metadata);
	bc_output_text(output, "\n", 1);
}

static void print_gaps(struct bc_output *output, const struct bc_segment_info *info)
{
	char causes[512] = "";
	size_t at = 0;

	for (unsigned i = 0; i < BC_GAP_CAUSES; i++) {
		const struct bc_gap_sum *sum = &info->causes[i];
		if (sum->count != 0)
			at += (size_t)snprintf(causes + at, sizeof(causes) - at, "%s%" PRIu64 " %s",
				at != 0 ? ", " : "", sum->count, bc_gap_cause_name(i));
	}
	if (info->gaps.count == 0)
		bc_status_line(output, "gaps", "0");
	else if (info->gaps.lost == 0 && info->gaps.is_inexact)
		bc_status_line(output, "gaps",
			"%" PRIu64 " (%s), an unknown number of samples lost", info->gaps.count,
			causes);
	else
		bc_status_line(output, "gaps", "%" PRIu64 " (%s), %s%" PRIu64 " sample%s lost",
			info->gaps.count, causes, info->gaps.is_inexact ? "at least " : "",
			info->gaps.lost, bc_plural(info->gaps.lost));
}

static void print_seen(struct bc_output *output, const struct bc_segment_info *info)
{
	char text[2048] = "";
	char number[8];
	size_t at = 0;

	for (unsigned i = 0; i < 256; i++)
		if (has_bit(info->types, i))
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s",
				at != 0 ? " " : "", type_name(number, i));
	bc_status_line(output, "types", "%s", text);
	text[0] = '\0';
	at = 0;
	for (unsigned i = 0; i < 256; i++)
		if (has_bit(info->procs, i))
			at += (size_t)snprintf(
				text + at, sizeof(text) - at, "%s%u", at != 0 ? " " : "", i);
	bc_status_line(output, "processors", "%s", text);
}

static const char *happening_name(uint8_t kind)
{
	switch (kind) {
	case BC_EVENT_MARK:
		return "mark";
	case BC_EVENT_TRIGGER:
		return "trigger";
	default:
		return "note";
	}
}

static void print_happenings(struct bc_output *output, const struct bc_segment_info *info)
{
	for (const struct bc_segment_happening *h = info->happenings; h != NULL; h = h->next) {
		bc_output_format(output, "  %-11s record %" PRIu64 "%s", happening_name(h->kind),
			h->record, h->bytes != 0 ? ": " : "");
		bc_output_safe_bytes(output, h->text, h->bytes);
		bc_output_text(output, "\n", 1);
	}
	if (info->happenings_left != 0)
		bc_status_line(output, "and more", "%" PRIu64 "; buscap dump shows them all",
			info->happenings_left);
}

void bc_segment_info_print(struct bc_output *output, const struct bc_segment_info *info)
{
	char wall[48];

	if (info->has_header)
		print_header(output, info);
	bc_status_line(output, "chunks", "%" PRIu64, info->chunks);
	if (info->records != 0)
		bc_status_line(output, "records", "%" PRIu64 " (%" PRIu64 " to %" PRIu64 ")",
			info->records, info->first_record, info->last_record);
	else
		bc_status_line(output, "records", "0");
	if (info->records != 0)
		bc_status_line(output, "ticks", "%" PRIu64 " to %" PRIu64, info->first_tick,
			info->last_tick);
	bc_status_line(output, "epochs", "%" PRIu64, info->epochs);
	if (info->has_wall) {
		write_wall(wall, info->wall_ns);
		bc_status_line(output, "first", "%s", wall);
	}
	if (info->has_header && info->header.clock_hz != 0)
		bc_status_line(output, "duration", "%.6f s", duration_s(info));
	else
		bc_status_line(output, "duration", "%" PRIu64 " ticks", info->duration_ticks);
	bc_status_line(output, "size", "%" PRIu64 " bytes for %" PRIu64 " of records, %.2f to 1",
		info->bytes, unpacked_bytes(info), ratio(info));
	print_gaps(output, info);
	bc_status_line(output, "marks", "%" PRIu64, info->marks);
	bc_status_line(output, "triggers", "%" PRIu64, info->triggers);
	print_happenings(output, info);
	print_seen(output, info);
}

static bool json_header(cJSON *object, const struct bc_segment_info *info)
{
	const struct bc_segment_header *h = &info->header;
	const char *label = h->label[0] != '\0' ? h->label : NULL;
	const char *continues = h->continues[0] != '\0' ? h->continues : NULL;

	if (!bc_json_add_text(object, "recording", h->recording) ||
		!bc_json_add_text(object, "label", label) ||
		!bc_json_add_u64(object, "segment", h->segment) ||
		!bc_json_add_text(object, "continues", continues) ||
		!bc_json_add_text(object, "host", h->host) ||
		!bc_json_add_text(object, "program", h->program))
		return false;
	cJSON *source = cJSON_AddObjectToObject(object, "source");
	if (!bc_json_add_text(source, "kind", h->source_kind) ||
		!bc_json_add_text(source, "name", h->source_name) ||
		!bc_json_add_u64(source, "clock_hz", h->clock_hz))
		return false;
	if (h->board_serial[0] != '\0' || h->board_firmware[0] != '\0') {
		cJSON *board = cJSON_AddObjectToObject(object, "board");
		if (!bc_json_add_text(board, "serial", h->board_serial) ||
			!bc_json_add_text(board, "firmware", h->board_firmware))
			return false;
	} else if (cJSON_AddNullToObject(object, "board") == NULL) {
		return false;
	}
	return cJSON_AddRawToObject(
		       object, "metadata", h->metadata[0] != '\0' ? h->metadata : "{}") != NULL;
}

static bool json_mapping(cJSON *object, const struct bc_segment_header *h)
{
	if (!h->has_mapping)
		return cJSON_AddNullToObject(object, "mapping") != NULL;
	cJSON *mapping = cJSON_AddObjectToObject(object, "mapping");
	if (!bc_json_add_text(mapping, "size", h->mapping.size_v1_0 ? "v1.0" : "v1.1") ||
		!bc_json_add_text(mapping, "invalid", h->mapping.keep_invalid ? "keep" : "drop"))
		return false;
	cJSON *attr = cJSON_AddArrayToObject(mapping, "attr");
	for (int i = 0; i < BC_CYCLES; i++)
		if (!cJSON_AddItemToArray(attr, cJSON_CreateNumber(h->mapping.attr[i])))
			return false;
	return true;
}

static bool json_gap_sum(cJSON *object, const struct bc_gap_sum *sum)
{
	return bc_json_add_u64(object, "count", sum->count) &&
	       bc_json_add_u64(object, "lost", sum->lost) &&
	       cJSON_AddBoolToObject(object, "exact", !sum->is_inexact) != NULL;
}

static bool json_gaps(cJSON *object, const struct bc_segment_info *info)
{
	cJSON *gaps = cJSON_AddObjectToObject(object, "gaps");
	if (!json_gap_sum(gaps, &info->gaps))
		return false;
	cJSON *causes = cJSON_AddObjectToObject(gaps, "causes");
	for (unsigned i = 0; i < BC_GAP_CAUSES; i++) {
		if (info->causes[i].count == 0)
			continue;
		cJSON *cause = cJSON_AddObjectToObject(causes, bc_gap_cause_name(i));
		if (!json_gap_sum(cause, &info->causes[i]))
			return false;
	}
	return causes != NULL;
}

static bool json_happenings(cJSON *object, const struct bc_segment_info *info)
{
	cJSON *list = cJSON_AddArrayToObject(object, "events");

	for (const struct bc_segment_happening *h = info->happenings; list != NULL && h != NULL;
		h = h->next) {
		cJSON *item = cJSON_CreateObject();
		if (!cJSON_AddItemToArray(list, item) ||
			!bc_json_add_text(item, "kind", happening_name(h->kind)) ||
			!bc_json_add_u64(item, "record", h->record) ||
			!bc_json_add_text(item, "text", h->bytes != 0 ? h->text : NULL))
			return false;
	}
	return list != NULL && bc_json_add_u64(object, "events_left", info->happenings_left);
}

static bool json_seen(cJSON *object, const struct bc_segment_info *info)
{
	cJSON *types = cJSON_AddArrayToObject(object, "types");
	cJSON *procs = cJSON_AddArrayToObject(object, "processors");
	char number[8];

	for (unsigned i = 0; i < 256; i++) {
		if (has_bit(info->types, i) &&
			!cJSON_AddItemToArray(types, cJSON_CreateString(type_name(number, i))))
			return false;
		if (has_bit(info->procs, i) && !cJSON_AddItemToArray(procs, cJSON_CreateNumber(i)))
			return false;
	}
	return types != NULL && procs != NULL;
}

/* Where something is not known, null. */
static bool json_when(cJSON *object, const char *name, uint64_t value, bool is_known)
{
	return is_known ? bc_json_add_u64(object, name, value)
			: cJSON_AddNullToObject(object, name) != NULL;
}

static bool json_time(cJSON *object, const struct bc_segment_info *info)
{
	bool has_records = info->records != 0;
	bool has_clock = info->has_header && info->header.clock_hz != 0;
	char wall[48];

	write_wall(wall, info->wall_ns);
	return json_when(object, "first_tick", info->first_tick, has_records) &&
	       json_when(object, "last_tick", info->last_tick, has_records) &&
	       bc_json_add_u64(object, "epochs", info->epochs) &&
	       bc_json_add_u64(object, "duration_ticks", info->duration_ticks) &&
	       (has_clock ? cJSON_AddNumberToObject(object, "duration_s", duration_s(info))
			  : cJSON_AddNullToObject(object, "duration_s")) != NULL &&
	       bc_json_add_text(object, "first_wall", info->has_wall ? wall : NULL) &&
	       (info->has_wall ? bc_json_add_i64(object, "first_wall_ns", info->wall_ns)
			       : cJSON_AddNullToObject(object, "first_wall_ns") != NULL);
}

bool bc_segment_info_json(cJSON *object, const struct bc_segment_info *info)
{
	bool has_records = info->records != 0;

	return cJSON_AddBoolToObject(object, "sealed", info->is_sealed) != NULL &&
	       bc_json_add_u64(object, "segments", info->segments) &&
	       bc_json_add_u64(object, "damages", info->damages) &&
	       (!info->has_header ||
		       (json_header(object, info) && json_mapping(object, &info->header))) &&
	       bc_json_add_u64(object, "chunks", info->chunks) &&
	       bc_json_add_u64(object, "records", info->records) &&
	       json_when(object, "first_record", info->first_record, has_records) &&
	       json_when(object, "last_record", info->last_record, has_records) &&
	       json_time(object, info) && bc_json_add_u64(object, "bytes", info->bytes) &&
	       bc_json_add_u64(object, "record_bytes", unpacked_bytes(info)) &&
	       cJSON_AddNumberToObject(object, "ratio", ratio(info)) != NULL &&
	       json_gaps(object, info) && bc_json_add_u64(object, "marks", info->marks) &&
	       bc_json_add_u64(object, "triggers", info->triggers) &&
	       json_happenings(object, info) && json_seen(object, info);
}
