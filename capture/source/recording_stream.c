#include "capture/source/recording_stream.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "formats/segment/segment_name.h"

/* Finds the segment that follows number `after`. Returns whether there is one. */
static bool find_next(
	const struct bc_recording_stream *s, int64_t after, struct bc_segment_name *next)
{
	struct bc_segment_name name;
	bool is_found = false;

	rewinddir(s->dir);
	for (const struct dirent *entry; (entry = readdir(s->dir)) != NULL;) {
		if (!bc_segment_name_read(&name, entry->d_name) || name.is_partial ||
			name.damaged != 0 || strcmp(name.recording, s->recording) != 0 ||
			name.segment <= after || (is_found && name.segment > next->segment))
			continue;
		*next = name;
		is_found = true;
	}
	return is_found;
}

/* Opens the next segment that still exists. Returns 0, -ENOENT if there is none, or another
 * negative errno. */
static int open_next(struct bc_recording_stream *s)
{
	struct bc_segment_name name = {.segment = 0};
	char file[BC_SEGMENT_NAME_MAX];
	int64_t after = s->segment;
	int rc = -ENOENT;

	if (s->dir == NULL && (s->dir = opendir(s->path)) == NULL)
		return -errno;
	while (rc == -ENOENT && find_next(s, after, &name)) {
		after = name.segment;
		bc_segment_name_write(file, &name);
		s->fd = openat(dirfd(s->dir), file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		rc = s->fd < 0 ? -errno : 0;
	}
	if (rc == 0)
		s->segment = after;
	return rc;
}

static void close_segment(struct bc_recording_stream *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

ssize_t bc_recording_stream_read(void *context, void *out, size_t size)
{
	struct bc_recording_stream *s = context;

	for (;;) {
		int rc = s->fd < 0 ? open_next(s) : 0;
		if (rc != 0)
			return rc == -ENOENT && s->segment >= 0 ? 0 : rc;
		ssize_t n = read(s->fd, out, size);
		if (n > 0)
			return n;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			close_segment(s);
	}
}

void bc_recording_stream_close(struct bc_recording_stream *s)
{
	close_segment(s);
	if (s->dir != NULL)
		closedir(s->dir);
	s->dir = NULL;
}
