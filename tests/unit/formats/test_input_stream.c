#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "formats/base/input_stream.h"
#include "tests/support/dice.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

TEST_THREADS;

struct fixture {
	struct temp_dir dir;
	int wake_fd;
};

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	f->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(f->wake_fd >= 0);
}

static void tear_down(struct fixture *f)
{
	close(f->wake_fd);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

/* Reads to the end in pieces of `size` bytes. */
static void assert_reads(
	struct bc_input_stream stream, const uint8_t *expected, size_t n, size_t size)
{
	uint8_t *out = malloc(n + size);
	size_t done = 0;
	ssize_t now;

	assert_non_null(out);
	while ((now = bc_input_stream_read(stream, out + done, size)) > 0) {
		assert_true((size_t)now <= size);
		done += (size_t)now;
		assert_true(done <= n);
	}
	assert_int_equal(now, 0);
	assert_int_equal(done, n);
	assert_memory_equal(out, expected, n);
	assert_int_equal(bc_input_stream_read(stream, out, size), 0); /* the end again */
	free(out);
}

struct feeder {
	int fd;
	const uint8_t *bytes;
	size_t n;
	size_t step;
};

static void *feed(void *context)
{
	const struct feeder *feeder = context;

	for (size_t at = 0; at < feeder->n; at += feeder->step) {
		size_t n = feeder->n - at < feeder->step ? feeder->n - at : feeder->step;
		if (write(feeder->fd, feeder->bytes + at, n) != (ssize_t)n)
			break;
	}
	close(feeder->fd);
	return NULL;
}

/* With blocking and non-blocking pipes; reads that can be cancelled, and others. */
TEST_F(a_pipe_is_read_as_bytes_arrive)
{
	struct dice dice = {.state = 5};
	uint8_t bytes[3000];

	dice_fill(&dice, bytes, sizeof(bytes));
	for (int i = 0; i < 4; i++) {
		int flags = i & 1 ? O_NONBLOCK : 0;
		int wake_fd = i & 2 ? f->wake_fd : -1;
		for (size_t step = 1; step <= 3000; step *= 10) {
			int fds[2];
			pthread_t thread;
			assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
			assert_int_equal(fcntl(fds[0], F_SETFL, flags), 0);
			struct feeder feeder = {fds[1], bytes, sizeof(bytes), step};
			assert_int_equal(pthread_create(&thread, NULL, feed, &feeder), 0);
			assert_reads((struct bc_input_stream){.fd = fds[0], .wake_fd = wake_fd},
				bytes, sizeof(bytes), 777);
			pthread_join(thread, NULL);
			close(fds[0]);
		}
	}
}

TEST_F(a_wakeup_has_priority_over_data_and_nothing_is_lost)
{
	uint64_t wake = 1;
	uint8_t out[4];
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(write(fds[1], "1234", 4), 4);
	close(fds[1]);
	assert_int_equal(write(f->wake_fd, &wake, sizeof(wake)), sizeof(wake));
	struct bc_input_stream stream = {.fd = fds[0], .wake_fd = f->wake_fd};
	for (int i = 0; i < 2; i++)
		assert_int_equal(bc_input_stream_read(stream, out, 4), -ECANCELED);
	assert_int_equal(read(f->wake_fd, &wake, sizeof(wake)), sizeof(wake));
	assert_int_equal(bc_input_stream_read(stream, out, 4), 4);
	assert_memory_equal(out, "1234", 4);
	close(fds[0]);
}

struct reading {
	struct bc_input_stream stream;
	ssize_t result;
};

TEST_F(unreadable_files_are_errors)
{
	uint8_t out[4];
	int fds[2];

	assert_int_equal(bc_input_stream_read(
				 (struct bc_input_stream){.fd = f->dir.fd, .wake_fd = -1}, out, 4),
		-EISDIR);
	assert_int_equal(
		bc_input_stream_read(
			(struct bc_input_stream){.fd = f->dir.fd, .wake_fd = f->wake_fd}, out, 4),
		-EISDIR);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	close(fds[1]);
	close(fds[0]);
	assert_int_equal(
		bc_input_stream_read((struct bc_input_stream){.fd = fds[0], .wake_fd = -1}, out, 4),
		-EBADF);
	assert_int_equal(
		bc_input_stream_read(
			(struct bc_input_stream){.fd = fds[0], .wake_fd = f->wake_fd}, out, 4),
		-EBADF);
}
