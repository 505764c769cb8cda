#include "formats/raw_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/raw_reader.h"

static void forget(struct bc_raw_writer *w)
{
	struct bc_new_file closed = {.fd = -1};

	memcpy(closed.sealed_hash, w->file.sealed_hash, sizeof(closed.sealed_hash));
	memset(w, 0, sizeof(*w));
	w->file = closed;
}

int bc_raw_create(struct bc_raw_writer *w, int dir_fd, const char *name,
	const struct bc_segment_header *header, enum bc_format form)
{
	uint8_t *head;
	size_t bytes;

	memset(w, 0, sizeof(*w));
	w->file.fd = -1;
	int rc = bc_raw_header_write(&head, &bytes, header, form);
	if (rc != 0)
		return rc;
	w->segment = header->segment;
	rc = bc_new_file_create(&w->file, dir_fd, name, BC_PARTIAL_SUFFIX, head, bytes);
	free(head);
	return rc;
}

int bc_raw_append(struct bc_raw_writer *w, const uint8_t *encoded, size_t bytes)
{
	int rc = bc_new_file_append(&w->file, encoded, bytes);

	w->blocks += rc == 0;
	return rc;
}

int bc_raw_seal(struct bc_raw_writer *w)
{
	int rc = bc_new_file_seal(&w->file);

	if (rc == 0)
		forget(w);
	return rc;
}

void bc_raw_abandon(struct bc_raw_writer *w)
{
	bc_new_file_abandon(&w->file);
	forget(w);
}

/* Goes through the file and finds where its last whole block ends. */
static int survey(struct bc_raw_recovered *r, int fd, uint64_t *end, const struct bc_steps *steps)
{
	struct bc_raw_block *block = malloc(sizeof(*block));
	struct bc_raw_reader *reader = NULL;
	uint64_t damages = 0;
	int found = -ENOMEM;

	if (block != NULL)
		found = bc_raw_reader_open(&reader,
			(struct bc_stream){.fd = fd, .wake_fd = -1, .steps = steps}, NULL, 0);
	while (found >= 0 && (found = bc_raw_read(reader, block)) > BC_RAW_FOUND_END) {
		damages += found == BC_RAW_FOUND_DAMAGE;
		if (found != BC_RAW_FOUND_BLOCK)
			continue;
		r->blocks++;
		r->bytes += block->bytes;
		r->damages = damages;
		*end = bc_raw_reader_offset(reader);
	}
	bc_raw_reader_close(reader);
	free(block);
	return found;
}

int bc_raw_recover(struct bc_raw_recovered *r, int dir_fd, const char *from, const char *to,
	const struct bc_steps *steps)
{
	struct stat st;
	uint64_t end = 0;
	int rc = 0;
	int fd = openat(dir_fd, from, O_RDWR | O_CLOEXEC);

	memset(r, 0, sizeof(*r));
	if (fd < 0 || fstat(fd, &st) != 0) {
		rc = -errno;
		goto out;
	}
	rc = survey(r, fd, &end, steps);
	if (rc != 0)
		goto out;
	r->cut_bytes = (uint64_t)st.st_size - end;
	if (r->blocks == 0) {
		rc = unlinkat(dir_fd, from, 0) != 0 ? -errno : 0;
		goto out;
	}
	if ((r->cut_bytes != 0 && ftruncate(fd, (off_t)end) != 0) || fdatasync(fd) != 0)
		rc = -errno;
	if (rc == 0)
		rc = bc_rename_new(dir_fd, from, to);
	if (rc == 0 && bc_file_hash_read(r->hash, fd, steps) != 0)
		r->hash[0] = '\0';
out:
	if (fd >= 0)
		close(fd);
	return rc;
}
