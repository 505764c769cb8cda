/* The JSON at the start of a segment: writing and reading it, the user's metadata in it, the event
 * that ends a recording, and whether a file belongs to buscapd.
 *
 * Invariant: a header that was read and is written again keeps members that this version doesn't
 * know (bc_segment_header_json()). The text has no control characters, which each magic has, so a
 * search for frames never finds one inside it. */
#include "formats/segment/segment_header.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/bytes.h"
#include "formats/base/json.h"
#include "formats/base/text.h"
#include "formats/base/utf8.h"
#include "formats/segment/segment_index.h"

static json_t *board_json(const struct bc_segment_header *h)
{
	if (h->board_serial[0] == '\0' && h->board_firmware[0] == '\0')
		return json_null();
	return BC_JSON_OBJECT({"serial", bc_json_text(h->board_serial)},
		{"firmware", bc_json_text(h->board_firmware)});
}

static json_t *mapping_json(const struct bc_segment_header *h)
{
	if (!h->has_mapping)
		return json_null();
	json_t *attr = json_array();
	for (int cycle = 0; cycle < BC_CYCLE_TYPES; cycle++)
		attr = bc_json_append(attr, json_integer(h->mapping.attr[cycle]));
	return BC_JSON_OBJECT({"size", json_string(h->mapping.size_v1_0 ? "v1.0" : "v1.1")},
		{"invalid", json_string(h->mapping.keep_invalid ? "keep" : "drop")},
		{"attr", attr});
}

static json_t *first_json(const struct bc_segment_header *h)
{
	return BC_JSON_OBJECT({"wall", bc_json_time_seconds(h->wall_ns)},
		{"wall_ns", json_integer(h->wall_ns)}, {"tick", bc_json_u64(h->first_tick)},
		{"epoch", bc_json_u64(h->first_epoch)}, {"record", bc_json_u64(h->first_record)});
}

json_t *bc_segment_origin_json(const struct bc_segment_header *h)
{
	return BC_JSON_OBJECT({"recording", bc_json_text(h->recording)},
		{"sequence", bc_json_u64(h->sequence)}, {"label", bc_json_text_or_null(h->label)},
		{"segment", bc_json_u64(h->segment)},
		{"continues", bc_json_text_or_null(h->continues)},
		{"source", json_pack("{s:o, s:o, s:o, s:s*}", "kind", bc_json_text(h->source_kind),
				   "name", bc_json_text(h->source_name), "clock_hz",
				   bc_json_u64(h->clock_hz), "axis",
				   h->axis[0] != '\0' ? h->axis : NULL)},
		{"board", board_json(h)}, {"mapping", mapping_json(h)},
		{"host", bc_json_text(h->host)}, {"program", bc_json_text(h->program)});
}

#define FORMAT "buscap-segment" /* the JSON member "format" */

/* Takes ownership of `metadata`. */
static char *header_text(const struct bc_segment_header *h, json_t *metadata)
{
	bool has_compression = h->compression[0] != '\0';
	json_t *root = json_pack("{s:s, s:s*, s:i}", "format", FORMAT, "compression",
		has_compression ? h->compression : NULL, "version", (int)BC_SEGMENT_VERSION);
	json_t *rest = BC_JSON_OBJECT({"boot_id", bc_json_text_or_null(h->boot_id)},
		{"first", first_json(h)}, {"metadata", metadata});
	root = bc_json_merge(bc_json_merge(root, bc_segment_origin_json(h)), rest);
	char *text = bc_json_print(root);

	json_decref(root);
	return text;
}

/* Takes ownership of `text`, which is NULL if out of memory. */
static int write_text(uint8_t **out, size_t *bytes, enum bc_level level, char *text)
{
	int rc = -ENOMEM;

	*out = NULL;
	if (text == NULL)
		return rc;
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
	memcpy(p, bc_frames_info[bc_level_frames(level)].empty, BC_EMPTY_FRAME_BYTES);
	p += BC_EMPTY_FRAME_BYTES;
	bc_write_le32(p, BC_MAGIC_SEGMENT_HEADER);
	bc_write_le32(p + 4, (uint32_t)(length + BC_HASH_BYTES));
	memcpy(p + BC_SKIPPABLE_BYTES, text, length);
	bc_checksum_write(p + BC_SKIPPABLE_BYTES + length, p);
	rc = 0;
out:
	free(text);
	return rc;
}

int bc_segment_header_write(uint8_t **out, size_t *bytes, const struct bc_segment_header *h)
{
	json_t *metadata = bc_metadata_parse(h->metadata);

	*out = NULL;
	if (!json_is_object(metadata)) {
		int rc = metadata == NULL ? -errno : -EINVAL;
		json_decref(metadata);
		return rc;
	}
	return write_text(out, bytes, bc_segment_header_level(h), header_text(h, metadata));
}

json_t *bc_segment_header_json(const uint8_t *in, size_t bytes)
{
	return bc_json_parse((const char *)in + BC_SKIPPABLE_BYTES,
		bytes - BC_SKIPPABLE_BYTES - BC_HASH_BYTES, 0, NULL);
}

int bc_segment_header_write_json(
	uint8_t **out, size_t *bytes, enum bc_level level, const json_t *json)
{
	return write_text(out, bytes, level, bc_json_print_exact(json));
}

size_t bc_segment_header_bytes(const uint8_t in[BC_SKIPPABLE_BYTES])
{
	return bc_skippable_bytes(in, BC_MAGIC_SEGMENT_HEADER, BC_SKIPPABLE_BYTES + BC_HASH_BYTES,
		BC_SEGMENT_HEADER_MAX);
}

static void read_mapping(struct bc_segment_header *h, const json_t *mapping)
{
	const json_t *attr = json_object_get(mapping, "attr");
	char text[8];

	h->has_mapping = json_is_object(mapping);
	bc_json_member_text(mapping, "size", text, sizeof(text));
	h->mapping.size_v1_0 = strcmp(text, "v1.0") == 0;
	bc_json_member_text(mapping, "invalid", text, sizeof(text));
	h->mapping.keep_invalid = strcmp(text, "keep") == 0;
	for (size_t cycle = 0; cycle < BC_CYCLE_TYPES; cycle++)
		h->mapping.attr[cycle] = (uint8_t)json_integer_value(json_array_get(attr, cycle));
}

/* Returns false if out of memory. */
static bool read_metadata(struct bc_segment_header *h, const json_t *metadata)
{
	if (json_object_size(metadata) == 0)
		return true;
	char *text = bc_json_print(metadata);
	/* Metadata that does not fit is dropped: a truncated JSON object is useless. */
	if (text != NULL && strlen(text) < sizeof(h->metadata))
		strcpy(h->metadata, text);
	free(text);
	return text != NULL;
}

/* True if this can be a JSON object without line breaks. JSON escapes control characters, and each
 * magic has one, so no other frame starts in such a text: a search for frames takes one pass. */
static bool is_line(const uint8_t *text, size_t bytes)
{
	if (bytes == 0 || text[0] != '{')
		return false;
	for (size_t i = 0; i < bytes; i++)
		if (text[i] < ' ')
			return false;
	return true;
}

bool bc_segment_header_read(struct bc_segment_header *h, const uint8_t *in, size_t bytes)
{
	size_t hashed = bytes - BC_HASH_BYTES;
	char format[24];

	errno = EBADMSG;
	if (!is_line(in + BC_SKIPPABLE_BYTES, hashed - BC_SKIPPABLE_BYTES) ||
		!bc_checksum_is_valid(in + hashed, in))
		return false;
	memset(h, 0, sizeof(*h));
	json_t *root = bc_segment_header_json(in, bytes);
	bool is_out_of_memory = root == NULL && errno == ENOMEM;
	bc_json_member_text(root, "format", format, sizeof(format));
	h->version = (uint32_t)bc_json_member_u64(root, "version");
	bc_json_member_text(root, "recording", h->recording, sizeof(h->recording));
	h->sequence = bc_json_member_u64(root, "sequence");
	bc_json_member_text(root, "label", h->label, sizeof(h->label));
	h->segment = (uint32_t)bc_json_member_u64(root, "segment");
	bc_json_member_text(root, "continues", h->continues, sizeof(h->continues));
	bc_json_member_text(root, "compression", h->compression, sizeof(h->compression));
	bc_json_member_text(root, "host", h->host, sizeof(h->host));
	bc_json_member_text(root, "program", h->program, sizeof(h->program));
	bc_json_member_text(root, "boot_id", h->boot_id, sizeof(h->boot_id));
	const json_t *source = json_object_get(root, "source");
	bc_json_member_text(source, "kind", h->source_kind, sizeof(h->source_kind));
	bc_json_member_text(source, "name", h->source_name, sizeof(h->source_name));
	h->clock_hz = bc_json_member_u64(source, "clock_hz");
	bc_json_member_text(source, "axis", h->axis, sizeof(h->axis));
	const json_t *board = json_object_get(root, "board");
	bc_json_member_text(board, "serial", h->board_serial, sizeof(h->board_serial));
	bc_json_member_text(board, "firmware", h->board_firmware, sizeof(h->board_firmware));
	read_mapping(h, json_object_get(root, "mapping"));
	const json_t *first = json_object_get(root, "first");
	h->wall_ns = json_integer_value(json_object_get(first, "wall_ns"));
	h->first_tick = bc_json_member_u64(first, "tick");
	h->first_epoch = (uint32_t)bc_json_member_u64(first, "epoch");
	h->first_record = bc_json_member_u64(first, "record");
	if (!read_metadata(h, json_object_get(root, "metadata")))
		is_out_of_memory = true;
	json_decref(root);
	errno = is_out_of_memory ? ENOMEM : EBADMSG;
	return !is_out_of_memory && strcmp(format, FORMAT) == 0 && h->version != 0;
}

int bc_segment_header_load(struct bc_segment_header *h, int fd)
{
	uint8_t start[BC_EMPTY_FRAME_BYTES + BC_SKIPPABLE_BYTES];
	int rc = bc_segment_read_at(fd, start, sizeof(start), 0);

	if (rc != 0)
		return rc;
	size_t bytes = bc_segment_header_bytes(start + BC_EMPTY_FRAME_BYTES);
	uint8_t *frame = bytes != 0 ? malloc(bytes) : NULL;
	if (frame == NULL)
		return bytes != 0 ? -ENOMEM : -EBADMSG;
	rc = bc_segment_read_at(fd, frame, bytes, BC_EMPTY_FRAME_BYTES);
	if (rc == 0 && !bc_segment_header_read(h, frame, bytes))
		rc = -errno;
	free(frame);
	return rc;
}

enum bc_level bc_segment_header_level(const struct bc_segment_header *h)
{
	enum bc_level level;

	(void)bc_level_read(&level, h->compression);
	return level;
}

uint64_t bc_segment_header_axis_hz(const struct bc_segment_header *h)
{
	return h->axis[0] != '\0' && strcmp(h->axis, "seconds") != 0 ? 1000000000 : h->clock_hz;
}

struct bc_chunk_info bc_segment_header_chunk(const struct bc_segment_header *header)
{
	return (struct bc_chunk_info){.recording_tag = bc_recording_tag(header->recording),
		.segment = header->segment,
		.first_record = header->first_record,
		.wall_ns = header->wall_ns};
}

/* ---- the end of a recording */

bool bc_recording_end_add(struct bc_chunk *chunk, const struct bc_recording_end *end)
{
	char text[BC_RECORDING_END_MAX];
	int n = snprintf(text, sizeof(text),
		"{\"reason\":\"%s\",\"ended\":%" PRId64 ",\"boot_id\":\"%s\"}", end->reason,
		end->ended_ns, end->boot_id);
	struct bc_event event = {
		.kind = BC_EVENT_END,
		.position = chunk->info.records,
		.text_bytes = (uint16_t)n,
	};

	return bc_chunk_add_event(chunk, &event, text);
}

void bc_boot_id_read(char out[BC_BOOT_ID_BYTES])
{
	char buffer[64];
	const char *text = getenv("BUSCAPD_BOOT_ID");
	size_t n = 0;

	if (text == NULL) {
		int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
		ssize_t bytes = fd >= 0 ? read(fd, buffer, sizeof(buffer) - 1) : 0;
		buffer[bytes > 0 ? bytes : 0] = '\0';
		if (fd >= 0)
			close(fd);
		text = buffer;
	}
	for (; *text != '\0' && n < BC_BOOT_ID_BYTES - 1; text++)
		if (strchr("0123456789abcdef", *text) != NULL)
			out[n++] = *text;
	out[n == BC_BOOT_ID_BYTES - 1 ? n : 0] = '\0';
}

bool bc_recording_end_find(struct bc_recording_end *end, const struct bc_chunk *chunk)
{
	const struct bc_event *event = &chunk->events[chunk->info.events];

	do {
		if (event == chunk->events)
			return false;
		event--;
	} while (event->kind != BC_EVENT_END);
	json_t *object = bc_json_parse(chunk->text + event->text, event->text_bytes, 0, NULL);
	bc_json_member_text(object, "reason", end->reason, sizeof(end->reason));
	end->ended_ns = json_integer_value(json_object_get(object, "ended"));
	bc_json_member_text(object, "boot_id", end->boot_id, sizeof(end->boot_id));
	json_decref(object);
	return end->reason[0] != '\0';
}

bool bc_recording_end_is_recovered(const struct bc_recording_end *end)
{
	return strcmp(end->reason, "crash") == 0 || strcmp(end->reason, "power") == 0;
}

/* ---- the owner of a file */

/* Recovery makes a header without a program if the old one is damaged. */
static bool is_by_buscapd(const struct bc_segment_header *header)
{
	return header->program[0] == '\0' || strcmp(header->program, "buscapd") == 0 ||
	       strncmp(header->program, "buscapd ", strlen("buscapd ")) == 0;
}

/* True if the index of a sealed segment belongs to the segment with this name. */
static bool has_index_of(int fd, const struct bc_segment_name *name)
{
	struct bc_segment_index index;
	struct bc_chunk_info info = {.recording_tag = 0};

	if (bc_segment_index_load(&index, fd) != 0)
		return false;
	bool has_row = index.head.rows != 0;
	if (has_row)
		bc_segment_index_row(&index, 0, &info);
	bc_segment_index_free(&index);
	return has_row && info.recording_tag == bc_recording_tag(name->recording) &&
	       info.segment == name->segment;
}

int bc_segment_owner_check(struct bc_segment_header *header, int dir_fd, const char *file,
	const struct bc_segment_name *name)
{
	struct stat st;
	int fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -errno;
	int rc = fstat(fd, &st) != 0    ? -errno
		 : !S_ISREG(st.st_mode) ? -EBADMSG
					: bc_segment_header_load(header, fd);
	if (rc == 0 && (!is_by_buscapd(header) || strcmp(header->recording, name->recording) != 0 ||
			       header->segment != name->segment))
		rc = -EXDEV;
	if (rc == -EBADMSG && has_index_of(fd, name))
		rc = -EUCLEAN;
	close(fd);
	return rc;
}

bool bc_segment_is_foreign(int rc)
{
	return rc == -EBADMSG || rc == -EUCLEAN || rc == -EXDEV || rc == -EACCES || rc == -EPERM;
}

/* ---- metadata */

static bool check_member(const char *key, const char *value, char *err, size_t errlen)
{
	if (!bc_word_is_valid(key))
		return bc_fail(
			err, errlen, "the key must have 1 to 64 letters, digits, '.', '_' and '-'");
	if (value == NULL)
		return bc_fail(err, errlen, "must be a string");
	return strlen(value) <= BC_METADATA_VALUE_MAX ||
	       bc_fail(err, errlen, "too long; the limit is %u bytes", BC_METADATA_VALUE_MAX);
}

/* Writes an object as text to `out`. Returns false, with `out` unchanged, if it does not fit. */
static bool write_object(char out[BC_METADATA_MAX], const json_t *object, char *err, size_t errlen)
{
	char *text = json_object_size(object) != 0 ? bc_json_print(object) : strdup("");
	bool fits = text != NULL && strlen(text) < BC_METADATA_MAX;

	if (fits)
		strcpy(out, text);
	else if (text == NULL)
		bc_fail(err, errlen, "out of memory");
	else
		bc_message(
			err, errlen, "the metadata is longer than %d bytes", BC_METADATA_MAX - 1);
	free(text);
	return fits;
}

json_t *bc_metadata_parse(const char *text)
{
	return text != NULL && text[0] != '\0' ? bc_json_parse(text, strlen(text), 0, NULL)
					       : json_object();
}

bool bc_metadata_from_json(
	char out[BC_METADATA_MAX], const json_t *object, char *err, size_t errlen)
{
	const char *key;
	json_t *value;
	char why[96];

	if (!json_is_object(object))
		return bc_fail(err, errlen, "the metadata is not a JSON object of strings");
	json_object_foreach((json_t *)object, key, value)
	{
		if (!check_member(key, json_string_value(value), why, sizeof(why)))
			return bc_fail(err, errlen, "metadata.%.64s: %s", key, why);
	}
	return write_object(out, object, err, errlen);
}

bool bc_metadata_read(char out[BC_METADATA_MAX], const char *text, char *err, size_t errlen)
{
	json_t *object = bc_json_parse(text, strlen(text), 0, NULL);
	bool ok = bc_metadata_from_json(out, object, err, errlen);

	json_decref(object);
	return ok;
}

bool bc_metadata_set(
	char all[BC_METADATA_MAX], const char *key, const char *value, char *err, size_t errlen)
{
	bool ok = false;

	if (!check_member(key, value, err, errlen))
		return false;
	if (!bc_utf8_is_valid(value, strlen(value)))
		return bc_fail(err, errlen, "must be UTF-8");
	json_t *object = bc_metadata_parse(all);
	json_object_del(object, key);
	if (object != NULL &&
		(value[0] == '\0' || json_object_set_new(object, key, json_string(value)) == 0))
		ok = write_object(all, object, err, errlen);
	else
		bc_fail(err, errlen, "out of memory");
	json_decref(object);
	return ok;
}

bool bc_metadata_merge(char all[BC_METADATA_MAX], const char *more, char *err, size_t errlen)
{
	json_t *old = bc_metadata_parse(all);
	json_t *new = bc_metadata_parse(more);
	bool ok = false;

	if (!json_is_object(old) || !json_is_object(new))
		bc_fail(err, errlen, "the metadata is not a JSON object");
	else if (json_object_update(old, new) != 0)
		bc_fail(err, errlen, "out of memory");
	else
		ok = write_object(all, old, err, errlen);
	json_decref(old);
	json_decref(new);
	return ok;
}
