#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/store/archiver.h"
#include "tests/support/log_capture.h"
#include "tests/support/small_segment.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

TEST_THREADS;

struct fixture {
	struct temp_dir dir;
	struct small_segment segment;
	struct log_capture log;
};

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	small_make(&f->segment, f->dir.fd, 0, 0);
	bc_log_set_level(BC_LOG_INFO);
}

static void tear_down(struct fixture *f)
{
	free(f->segment.bytes);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

/* Lets an archiver work until it has logged something. Returns its log. */
static const char *run_archiver(struct fixture *f, uint64_t keep_free_bytes)
{
	const struct bc_archiver_options options = {.dir = f->dir.path, .after_ns = 1};
	struct bc_archiver *archiver;

	log_capture_start(&f->log);
	struct pollfd logged = {.fd = f->log.pipe_fd, .events = POLLIN};
	assert_int_equal(bc_archiver_start(&archiver, &options), 0);
	bc_archiver_allow(archiver, true, keep_free_bytes);
	assert_int_equal(poll(&logged, 1, -1), 1);
	bc_archiver_stop(archiver);
	return log_capture_stop(&f->log);
}

TEST_F(copies_leave_the_space_free_that_was_asked_for_last)
{
	assert_non_null(strstr(run_archiver(f, UINT64_MAX / 2), "can't archive it now: "));
	assert_non_null(strstr(run_archiver(f, 0), ": archived: "));
}
