#include "formats/segment/segment_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/segment/segment_index.h"

/* Recovery makes a header without a program if the old one is damaged. */
static bool is_by_buscapd(const struct bc_segment_header *header)
{
	return header->program[0] == '\0' || strcmp(header->program, "buscapd") == 0 ||
	       strncmp(header->program, "buscapd ", strlen("buscapd ")) == 0;
}

/* Whether the index of a sealed segment is that of the segment with this name. */
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
