#include "daemon/stale.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/space.h"
#include "formats/recover.h"

static void report(const char *dir, const char *name, const struct bc_recovered *r)
{
	if (!r->is_written) {
		bc_log(BC_LOG_NOTICE, "%s/%s: an earlier run left no whole chunk in it; removed",
			dir, name);
		return;
	}
	if (r->damages == 0)
		bc_log(BC_LOG_NOTICE,
			"%s/%s: left open by an earlier run; recovered whole, %" PRIu64 " records",
			dir, name, r->records);
	else
		bc_log(BC_LOG_WARNING,
			"%s/%s: torn by an earlier run's end; recovered %" PRIu64
			" records, %" PRIu64 " bytes were of no whole chunk",
			dir, name, r->records, r->damaged_bytes);
}

/* Recovers one. Returns whether a sealed segment came of it. */
static bool recover(const char *dir, int dir_fd, const struct bc_segment_name *partial)
{
	struct bc_segment_name sealed = *partial;
	struct bc_recovered recovered = {0};
	char from[BC_SEGMENT_NAME_MAX];
	char to[BC_SEGMENT_NAME_MAX];
	char half_done[BC_SEGMENT_NAME_MAX + sizeof(BC_RECOVER_SUFFIX)];

	sealed.is_partial = false;
	bc_segment_name_write(from, partial);
	bc_segment_name_write(to, &sealed);
	snprintf(half_done, sizeof(half_done), "%s" BC_RECOVER_SUFFIX, to);
	unlinkat(dir_fd, half_done, 0); /* a copy that was not finished; its original is `from` */

	int fd = openat(dir_fd, from, O_RDONLY | O_CLOEXEC);
	int rc = fd < 0 ? -errno
			: bc_recover(&recovered, fd, dir_fd, to, partial, BC_RECOVER_SALVAGE);
	if (fd >= 0)
		close(fd);
	if (rc == 0 && unlinkat(dir_fd, from, 0) != 0)
		rc = -errno;
	if (rc != 0) {
		bc_log(BC_LOG_ERROR,
			"%s/%s: an earlier run left it open, and it can't be recovered now: %s; it "
			"stays as it is",
			dir, from, strerror(-rc));
		return false;
	}
	report(dir, to, &recovered);
	return recovered.is_written;
}

int bc_stale_recover(const char *dir, int dir_fd, char newest[BC_RECORDING_ID_MAX])
{
	struct bc_segment_list list;
	int recovered = 0;
	int rc = bc_segments_list(&list, dir_fd);

	newest[0] = '\0';
	if (rc != 0)
		return rc;
	for (size_t i = 0; i < list.count; i++) {
		memcpy(newest, list.entries[i].name.recording, BC_RECORDING_ID_MAX);
		if (list.entries[i].name.is_partial)
			recovered += recover(dir, dir_fd, &list.entries[i].name);
	}
	free(list.entries);
	fsync(dir_fd);
	return recovered;
}
