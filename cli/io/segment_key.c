#include "cli/io/segment_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/reader/input.h"
#include "formats/segment/segment_index.h"

/* How far to search a file for an intact header or chunk. */
#define HEAD_BYTES (4u << 20)

static void name_by_header(struct bc_segment_key *key, const struct bc_segment_header *header)
{
	key->is_known = true;
	key->tag = bc_recording_tag(header->recording);
	key->name.segment = header->segment;
	strcpy(key->name.recording, header->recording);
}

/* Searches for the first header or chunk, which identifies the segment. */
static void find_identity(struct bc_segment_key *key, struct bc_input *input)
{
	static const uint64_t ends[] = {BC_PROBE_BYTES, HEAD_BYTES};
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	struct bc_segment_reader *reader = NULL;
	int rc = chunk != NULL ? bc_input_segments(input, &reader) : -ENOMEM;

	for (int i = 0; rc == 0 && i < 2 && !key->is_known; i++) {
		rc = bc_segment_reader_range(reader, 0, ends[i]);
		int found = rc == 0 ? bc_segment_read(reader, chunk) : BC_FOUND_END;
		while (found == BC_FOUND_DAMAGE || found == BC_FOUND_INDEX)
			found = bc_segment_read(reader, chunk);
		if (found == BC_FOUND_SEGMENT) {
			name_by_header(key, bc_segment_reader_header(reader));
		} else if (found == BC_FOUND_CHUNK) {
			key->is_known = true;
			key->tag = chunk->info.recording_tag;
			key->name.segment = chunk->info.segment;
		}
	}
	bc_segment_reader_close(reader);
	free(chunk);
}

/* Takes the recording from the file's name, unless the chunks' tag contradicts it. */
static void name_by_file(struct bc_segment_key *key, const char *path)
{
	struct bc_segment_name name;

	if (!bc_segment_name_read(&name, basename(path)))
		return;
	key->name.is_partial = name.is_partial;
	if (key->name.recording[0] != '\0')
		return;
	if (!key->is_known || bc_recording_tag(name.recording) == key->tag) {
		strcpy(key->name.recording, name.recording);
		key->name.segment = key->is_known ? key->name.segment : name.segment;
		key->is_known = true;
		key->tag = bc_recording_tag(name.recording);
	}
}

struct bc_segment_key bc_segment_key_of_name(const struct bc_segment_name *name)
{
	return (struct bc_segment_key){.is_segment = true,
		.is_known = true,
		.tag = bc_recording_tag(name->recording),
		.name = *name};
}

struct bc_segment_key bc_segment_key_read(const char *path)
{
	struct bc_segment_key key = {.is_segment = true};
	struct bc_segment_header header;
	struct bc_index_head head;
	struct bc_probe probe;
	struct bc_input *input;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return key;
	if (bc_segment_header_load(&header, fd) == 0) {
		name_by_header(&key, &header);
		key.has_index = bc_segment_index_read_head(&head, fd) == 0;
	} else if (bc_input_open(&input, (struct bc_input_stream){.fd = fd, .wake_fd = -1},
			   BC_FORMAT_UNKNOWN, &probe) == 0) {
		key.is_segment = probe.format == BC_FORMAT_SEGMENT;
		if (key.is_segment)
			find_identity(&key, input);
		bc_input_close(input);
	}
	close(fd);
	name_by_file(&key, path);
	return key;
}

int bc_segment_key_compare(const struct bc_segment_key *a, const struct bc_segment_key *b)
{
	bool has_name = a->name.recording[0] != '\0';

	if (a->is_known != b->is_known)
		return a->is_known ? -1 : 1;
	if (!a->is_known)
		return 0;
	if (has_name != (b->name.recording[0] != '\0'))
		return has_name ? -1 : 1;
	if (!has_name && a->tag != b->tag)
		return a->tag < b->tag ? -1 : 1;
	int order = bc_segment_name_compare(&a->name, &b->name);
	if (order == 0 && a->has_index != b->has_index)
		return a->has_index ? -1 : 1;
	return order;
}
