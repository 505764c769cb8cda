#include "cli/io/segment_order.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/reader/input.h"
#include "formats/segment/segment_index.h"
#include "formats/segment/segment_name.h"

struct key {
	const char *path;
	int given;     /* its position on the command line */
	bool is_known; /* tag and segment are known */
	bool has_index;
	uint64_t tag;
	struct bc_segment_name name; /* recording is empty while only its tag is known */
};

/* How far to search a file for an intact header or chunk. */
#define HEAD_BYTES (4u << 20)

static void name_by_header(struct key *key, const struct bc_segment_header *header)
{
	key->is_known = true;
	key->tag = bc_recording_tag(header->recording);
	key->name.segment = header->segment;
	strcpy(key->name.recording, header->recording);
}

/* Searches for the first header or chunk, which identifies the segment. */
static int read_key(struct key *key, struct bc_input *input, struct bc_chunk *chunk)
{
	struct bc_segment_reader *reader;
	int rc = bc_input_segments(input, &reader);

	if (rc != 0)
		return rc;
	uint64_t ends[] = {BC_PROBE_BYTES, HEAD_BYTES};
	for (int i = 0; i < 2 && !key->is_known; i++) {
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
	return 0;
}

/* Takes the recording from the file's name, unless the chunks' tag contradicts it. */
static void name_by_file(struct key *key)
{
	struct bc_segment_name name;

	if (!bc_segment_name_read(&name, basename(key->path)))
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

/* Returns false if the file exists but is not a segment. */
static bool make_key(struct key *key, struct bc_chunk *chunk)
{
	struct bc_segment_header header;
	struct bc_probe probe;
	struct bc_input *input;
	struct stat st;
	bool is_segment = true;
	int fd = open(key->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return true;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		is_segment = S_ISDIR(st.st_mode);
	} else if (bc_segment_header_load(&header, fd) == 0) {
		struct bc_index_head head;
		name_by_header(key, &header);
		key->has_index = bc_segment_index_read_head(&head, fd) == 0;
	} else {
		struct bc_input_stream stream = {.fd = fd, .wake_fd = -1};
		if (bc_input_open(&input, stream, BC_FORMAT_UNKNOWN, &probe) == 0) {
			is_segment = probe.format == BC_FORMAT_SEGMENT;
			if (is_segment && read_key(key, input, chunk) != 0)
				key->is_known = false;
			bc_input_close(input);
		}
	}
	close(fd);
	name_by_file(key);
	return is_segment;
}

/* If only the tag of a recording is known, another of the files may have its name. */
static void share_names(struct key *keys, int n)
{
	for (int i = 0; i < n; i++)
		for (int j = 0; keys[i].is_known && keys[i].name.recording[0] == '\0' && j < n; j++)
			if (keys[j].is_known && keys[j].tag == keys[i].tag)
				strcpy(keys[i].name.recording, keys[j].name.recording);
}

/* Orders named recordings first, then unnamed ones by tag, then unidentified files as given. Of
 * copies of a segment, those with an index come first, because they are whole. */
static int compare_keys(const void *a, const void *b)
{
	const struct key *x = a;
	const struct key *y = b;
	bool has_name = x->name.recording[0] != '\0';

	if (x->is_known != y->is_known)
		return x->is_known ? -1 : 1;
	if (has_name != (y->name.recording[0] != '\0'))
		return has_name ? -1 : 1;
	if (x->is_known && !has_name && x->tag != y->tag)
		return x->tag < y->tag ? -1 : 1;
	int order = x->is_known ? bc_segment_name_compare(&x->name, &y->name) : 0;
	if (order == 0 && x->has_index != y->has_index)
		return x->has_index ? -1 : 1;
	return order != 0 ? order : (x->given > y->given) - (x->given < y->given);
}

/* Returns the keys of n paths, which the caller frees, or NULL if one is not a segment. */
static struct key *read_keys(const char **paths, int n)
{
	struct key *keys = calloc((size_t)n + 1, sizeof(*keys));
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	bool all = keys != NULL && chunk != NULL && n > 1;

	for (int i = 0; all && i < n; i++) {
		keys[i].path = paths[i];
		keys[i].given = i;
		all = strcmp(paths[i], "-") != 0 && make_key(&keys[i], chunk);
	}
	free(chunk);
	if (all)
		return keys;
	free(keys);
	return NULL;
}

void bc_segment_order_sort(const char **paths, int n)
{
	struct key *keys = read_keys(paths, n);

	if (keys == NULL)
		return;
	share_names(keys, n);
	qsort(keys, (size_t)n, sizeof(*keys), compare_keys);
	for (int i = 0; i < n; i++)
		paths[i] = keys[i].path;
	free(keys);
}

bool bc_segment_order_is_one_recording(const char **paths, int n)
{
	struct key *keys = read_keys(paths, n);
	const struct key *first = NULL;
	bool is_one = keys != NULL;

	for (int i = 0; is_one && i < n; i++) {
		if (!keys[i].is_known)
			continue;
		first = first != NULL ? first : &keys[i];
		is_one = keys[i].tag == first->tag;
	}
	free(keys);
	return is_one;
}
