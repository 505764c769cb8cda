#include "formats/segment_header.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "formats/bytes.h"
#include "formats/json.h"
#include "formats/raw_capture.h"

static bool add_source(cJSON *root, const struct bc_segment_header *h)
{
	cJSON *source = cJSON_AddObjectToObject(root, "source");

	return source != NULL && bc_json_add_text(source, "kind", h->source_kind) &&
	       bc_json_add_text(source, "name", h->source_name) &&
	       bc_json_add_u64(source, "clock_hz", h->clock_hz);
}

static bool add_board(cJSON *root, const struct bc_segment_header *h)
{
	if (h->board_serial[0] == '\0' && h->board_firmware[0] == '\0')
		return cJSON_AddNullToObject(root, "board") != NULL;
	cJSON *board = cJSON_AddObjectToObject(root, "board");
	return board != NULL && bc_json_add_text(board, "serial", h->board_serial) &&
	       bc_json_add_text(board, "firmware", h->board_firmware);
}

static bool add_mapping(cJSON *root, const struct bc_segment_header *h)
{
	if (!h->has_mapping)
		return cJSON_AddNullToObject(root, "mapping") != NULL;
	cJSON *mapping = cJSON_AddObjectToObject(root, "mapping");
	if (mapping == NULL ||
		!bc_json_add_text(mapping, "size", h->mapping.size_v1_0 ? "v1.0" : "v1.1") ||
		!bc_json_add_text(mapping, "invalid", h->mapping.keep_invalid ? "keep" : "drop"))
		return false;
	cJSON *attr = cJSON_AddArrayToObject(mapping, "attr");
	for (int cycle = 0; attr != NULL && cycle < BC_CYCLES; cycle++) {
		cJSON *number = cJSON_CreateNumber(h->mapping.attr[cycle]);
		if (number == NULL || !cJSON_AddItemToArray(attr, number))
			return false;
	}
	return attr != NULL;
}

static bool add_first(cJSON *root, const struct bc_segment_header *h)
{
	char text[32];
	time_t seconds = (time_t)(h->wall_ns / 1000000000);
	struct tm tm;
	cJSON *first = cJSON_AddObjectToObject(root, "first");

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return first != NULL && bc_json_add_text(first, "wall", text) &&
	       bc_json_add_i64(first, "wall_ns", h->wall_ns) &&
	       bc_json_add_u64(first, "tick", h->first_tick) &&
	       bc_json_add_u64(first, "epoch", h->first_epoch) &&
	       bc_json_add_u64(first, "record", h->first_record);
}

static bool add_metadata(cJSON *root, const char *text)
{
	cJSON *metadata = cJSON_Parse(text[0] != '\0' ? text : "{}");

	if (cJSON_IsObject(metadata) && cJSON_AddItemToObject(root, "metadata", metadata))
		return true;
	cJSON_Delete(metadata);
	return false;
}

static const char *text_or_null(const char *text)
{
	return text[0] != '\0' ? text : NULL;
}

/* What a file of this kind begins with. */
struct kind {
	uint32_t magic;
	uint32_t version;
	const char *format; /* the JSON's member of that name */
};

static const struct kind segment_kind = {
	BC_MAGIC_SEGMENT_HEADER, BC_SEGMENT_VERSION, "buscap-segment"};
static const struct kind raw_kind = {BC_MAGIC_RAW_HEADER, BC_RAW_VERSION, "buscap-raw"};

/* `form`: a raw capture's; NULL for a segment. */
static int write_header(uint8_t **out, size_t *bytes, const struct kind *kind,
	const struct bc_segment_header *h, const char *form)
{
	int rc = -ENOMEM;
	char *text = NULL;
	cJSON *root = cJSON_CreateObject();

	*out = NULL;
	if (root == NULL || !bc_json_add_text(root, "format", kind->format) ||
		(form != NULL && !bc_json_add_text(root, "form", form)) ||
		!bc_json_add_u64(root, "version", kind->version) ||
		!bc_json_add_text(root, "recording", h->recording) ||
		!bc_json_add_text(root, "label", text_or_null(h->label)) ||
		!bc_json_add_u64(root, "segment", h->segment) ||
		!bc_json_add_text(root, "continues", text_or_null(h->continues)) ||
		!add_source(root, h) || !add_board(root, h) || !add_mapping(root, h) ||
		!bc_json_add_text(root, "host", h->host) ||
		!bc_json_add_text(root, "program", h->program) || !add_first(root, h))
		goto out;
	if (!add_metadata(root, h->metadata)) {
		rc = -EINVAL;
		goto out;
	}
	text = cJSON_PrintUnformatted(root);
	if (text == NULL)
		goto out;

	size_t length = strlen(text);
	*bytes = BC_EMPTY_FRAME_BYTES + BC_SKIPPABLE_BYTES + length + BC_HASH_BYTES;
	if (*bytes > BC_SEGMENT_HEADER_MAX) {
		rc = -EINVAL;
		goto out;
	}
	uint8_t *p = malloc(*bytes);
	if (p == NULL)
		goto out;
	*out = p;
	memcpy(p, bc_empty_frame, BC_EMPTY_FRAME_BYTES);
	p += BC_EMPTY_FRAME_BYTES;
	bc_put_le32(p, kind->magic);
	bc_put_le32(p + 4, (uint32_t)(length + BC_HASH_BYTES));
	memcpy(p + BC_SKIPPABLE_BYTES, text, length);
	size_t hashed = BC_SKIPPABLE_BYTES + length;
	bc_put_le64(p + hashed, XXH3_64bits(p, hashed));
	rc = 0;
out:
	cJSON_free(text);
	cJSON_Delete(root);
	return rc;
}

int bc_segment_header_write(uint8_t **out, size_t *bytes, const struct bc_segment_header *h)
{
	return write_header(out, bytes, &segment_kind, h, NULL);
}

int bc_raw_header_write(
	uint8_t **out, size_t *bytes, const struct bc_segment_header *h, enum bc_format form)
{
	return write_header(out, bytes, &raw_kind, h, bc_format_name(form));
}

static size_t header_bytes(const uint8_t in[BC_SKIPPABLE_BYTES], const struct kind *kind)
{
	size_t bytes = (size_t)bc_le32(in + 4) + BC_SKIPPABLE_BYTES;

	if (bc_le32(in) != kind->magic || bytes > BC_SEGMENT_HEADER_MAX ||
		bytes < BC_SKIPPABLE_BYTES + BC_HASH_BYTES)
		return 0;
	return bytes;
}

size_t bc_segment_header_bytes(const uint8_t in[BC_SKIPPABLE_BYTES])
{
	return header_bytes(in, &segment_kind);
}

size_t bc_raw_header_bytes(const uint8_t in[BC_SKIPPABLE_BYTES])
{
	return header_bytes(in, &raw_kind);
}

static void read_mapping(struct bc_segment_header *h, const cJSON *mapping)
{
	const cJSON *attr = cJSON_GetObjectItemCaseSensitive(mapping, "attr");
	char text[8];

	h->has_mapping = cJSON_IsObject(mapping);
	bc_json_get_text(mapping, "size", text, sizeof(text));
	h->mapping.size_v1_0 = strcmp(text, "v1.0") == 0;
	bc_json_get_text(mapping, "invalid", text, sizeof(text));
	h->mapping.keep_invalid = strcmp(text, "keep") == 0;
	for (int cycle = 0; cycle < BC_CYCLES; cycle++) {
		const cJSON *number = cJSON_GetArrayItem(attr, cycle);
		if (cJSON_IsNumber(number))
			h->mapping.attr[cycle] = (uint8_t)number->valueint;
	}
}

/* Returns false when memory ran out. */
static bool read_metadata(struct bc_segment_header *h, const cJSON *metadata)
{
	if (!cJSON_IsObject(metadata) || metadata->child == NULL)
		return true;
	char *text = cJSON_PrintUnformatted(metadata);
	/* Where it doesn't fit it is left out whole: half a JSON object is none. */
	if (text != NULL && strlen(text) < sizeof(h->metadata))
		strcpy(h->metadata, text);
	cJSON_free(text);
	return text != NULL;
}

/* `form` (NULL: not wanted) is set to the member of that name. */
static bool read_header(struct bc_segment_header *h, const struct kind *kind, char form[16],
	const uint8_t *in, size_t bytes)
{
	size_t hashed = bytes - BC_HASH_BYTES;
	char format[24];

	if (bc_le64(in + hashed) != XXH3_64bits(in, hashed))
		return false;
	memset(h, 0, sizeof(*h));
	cJSON *root = cJSON_ParseWithLength(
		(const char *)in + BC_SKIPPABLE_BYTES, hashed - BC_SKIPPABLE_BYTES);
	bc_json_get_text(root, "format", format, sizeof(format));
	if (form != NULL)
		bc_json_get_text(root, "form", form, 16);
	h->version = (uint32_t)bc_json_get_u64(root, "version");
	bc_json_get_text(root, "recording", h->recording, sizeof(h->recording));
	bc_json_get_text(root, "label", h->label, sizeof(h->label));
	h->segment = (uint32_t)bc_json_get_u64(root, "segment");
	bc_json_get_text(root, "continues", h->continues, sizeof(h->continues));
	bc_json_get_text(root, "host", h->host, sizeof(h->host));
	bc_json_get_text(root, "program", h->program, sizeof(h->program));
	const cJSON *source = cJSON_GetObjectItemCaseSensitive(root, "source");
	bc_json_get_text(source, "kind", h->source_kind, sizeof(h->source_kind));
	bc_json_get_text(source, "name", h->source_name, sizeof(h->source_name));
	h->clock_hz = bc_json_get_u64(source, "clock_hz");
	const cJSON *board = cJSON_GetObjectItemCaseSensitive(root, "board");
	bc_json_get_text(board, "serial", h->board_serial, sizeof(h->board_serial));
	bc_json_get_text(board, "firmware", h->board_firmware, sizeof(h->board_firmware));
	read_mapping(h, cJSON_GetObjectItemCaseSensitive(root, "mapping"));
	const cJSON *first = cJSON_GetObjectItemCaseSensitive(root, "first");
	/* wall_ns lies above 2^53: what a double loses of it is less than a microsecond. */
	const cJSON *wall = cJSON_GetObjectItemCaseSensitive(first, "wall_ns");
	h->wall_ns = cJSON_IsNumber(wall) && wall->valuedouble > -9e18 && wall->valuedouble < 9e18
			     ? (int64_t)wall->valuedouble
			     : 0;
	h->first_tick = bc_json_get_u64(first, "tick");
	h->first_epoch = (uint32_t)bc_json_get_u64(first, "epoch");
	h->first_record = bc_json_get_u64(first, "record");
	bool is_whole = read_metadata(h, cJSON_GetObjectItemCaseSensitive(root, "metadata"));
	cJSON_Delete(root);
	return is_whole && strcmp(format, kind->format) == 0 && h->version != 0;
}

bool bc_segment_header_read(struct bc_segment_header *h, const uint8_t *in, size_t bytes)
{
	return read_header(h, &segment_kind, NULL, in, bytes);
}

bool bc_raw_header_read(
	struct bc_segment_header *h, enum bc_format *form, const uint8_t *in, size_t bytes)
{
	char name[16];

	if (!read_header(h, &raw_kind, name, in, bytes))
		return false;
	*form = bc_format_by_name(name);
	return bc_raw_is_form(*form);
}
