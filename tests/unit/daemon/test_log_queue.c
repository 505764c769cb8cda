/* The log's own thread: standard error that is not read, or can't be written, delays no caller. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/main/foreground.h"
#include "formats/base/clock.h"
#include "tests/support/test.h"

TEST_THREADS;

#define TEXT "0123456789012345678901234567890123456789012345678901234567890123456789"

/* Far more than the queue and a pipe hold. */
#define MANY 6000u

struct fixture {
	int stderr_fd;
	int pipe_fd;
	char *text; /* what was read */
	size_t used;
};

static void use_as_stderr(int fd)
{
	assert_true(fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	close(fd);
}

static void use_pipe(struct fixture *f)
{
	int fds[2] = {-1, -1};

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_true(fcntl(fds[1], F_SETPIPE_SZ, 4096) >= 0);
	use_as_stderr(fds[1]);
	f->pipe_fd = fds[0];
}

static void set_up(struct fixture *f)
{
	f->stderr_fd = dup(STDERR_FILENO);
	f->text = test_alloc(MANY * 200);
}

static void tear_down(struct fixture *f)
{
	bc_foreground_show("");
	assert_true(dup2(f->stderr_fd, STDERR_FILENO) >= 0);
	close(f->stderr_fd);
	close(f->pipe_fd);
	free(f->text);
}

TEST_FIXTURE(fixture, set_up, tear_down)

/* Reads until the text contains `last`, or until the end of the pipe. */
static void read_until(struct fixture *f, const char *last)
{
	ssize_t n = 1;

	while (n > 0 && (last == NULL || strstr(f->text, last) == NULL)) {
		n = read(f->pipe_fd, f->text + f->used, MANY * 200 - 1 - f->used);
		assert_true(n >= 0);
		f->used += (size_t)n;
		f->text[f->used] = '\0';
	}
}

/* Stops the log. Reads the rest of the pipe, whose last writer is closed. */
static void stop(struct fixture *f)
{
	bc_log_stop();
	assert_true(dup2(f->stderr_fd, STDERR_FILENO) >= 0);
	read_until(f, NULL);
}

/* Returns how many lines "line N" there are, from `first` on without a hole, and sets *end to what
 * follows them. */
static unsigned count_lines(const char *text, unsigned first, const char **end)
{
	unsigned number = first;
	char wanted[32];

	for (;; number++) {
		snprintf(wanted, sizeof(wanted), "Z buscapd: line %u ", number);
		if (strlen(text) < 23 || strncmp(text + 23, wanted, strlen(wanted)) != 0)
			break;
		text = strchr(text, '\n') + 1;
	}
	*end = text;
	return number - first;
}

TEST_F(a_status_line_is_rewritten_in_place_and_stays_below_the_lines)
{
	use_pipe(f);
	bc_log_start();
	bc_foreground_show("one");
	read_until(f, "\r\033[Kone");
	bc_foreground_show("two\x1b");
	read_until(f, "\r\033[Ktwo\\x1b");
	bc_foreground_show("two\x1b"); /* unchanged: not written again */
	bc_log(BC_LOG_INFO, "a line");
	read_until(f, "a line\n\r\033[Ktwo\\x1b");
	assert_null(strstr(f->text, "two\\x1b\r\033[Ktwo"));
	assert_non_null(strstr(f->text, "two\\x1b\r\033[K20"));
	stop(f);
	assert_string_equal(f->text + f->used - strlen("two\\x1b\r\033[K"), "two\\x1b\r\033[K");
}

TEST_F(only_the_latest_status_line_waits_for_the_reader)
{
	char status[64];

	use_pipe(f);
	uint64_t before = bc_log_dropped();
	bc_log_start();
	for (unsigned i = 0; i <= MANY; i++) {
		snprintf(status, sizeof(status), "status %u", i);
		bc_foreground_show(status);
	}
	read_until(f, "status 6000");
	stop(f);
	assert_int_equal(bc_log_dropped(), before);
}

TEST_F(lines_that_nobody_reads_delay_no_caller_and_are_counted)
{
	const char *rest;
	char wanted[128];

	use_pipe(f);
	uint64_t before = bc_log_dropped();
	bc_log_start();
	for (unsigned i = 0; i < MANY; i++)
		bc_log(BC_LOG_INFO, "line %u " TEXT, i);
	unsigned dropped = (unsigned)(bc_log_dropped() - before);
	assert_in_range(dropped, MANY / 4, MANY - 1000);
	read_until(f, " dropped: ");
	for (unsigned i = MANY; i < MANY + 10; i++)
		bc_log(BC_LOG_INFO, "line %u " TEXT, i);
	stop(f);
	assert_int_equal(bc_log_dropped() - before, dropped);
	assert_int_equal(count_lines(f->text, 0, &rest), MANY - dropped);
	snprintf(wanted, sizeof(wanted),
		"Z buscapd: warning: standard error: %u log lines dropped: nothing read it\n",
		dropped);
	assert_memory_equal(rest + 23, wanted, strlen(wanted));
	assert_int_equal(count_lines(strchr(rest, '\n') + 1, MANY, &rest), 10);
	assert_string_equal(rest, "");
}

/* Again and again: each hole is reported where it is. */
TEST_F(every_hole_is_reported_in_its_place)
{
	unsigned next = 0;

	use_pipe(f);
	bc_log_start();
	for (unsigned hole = 0; hole < 3; hole++) {
		uint64_t before = bc_log_dropped();
		while (bc_log_dropped() == before)
			bc_log(BC_LOG_INFO, "line %u " TEXT, next++);
		/* So that the next line is after the hole. */
		f->used = 0;
		f->text[0] = '\0';
		read_until(f, " dropped: ");
	}
	bc_log(BC_LOG_INFO, "line %u " TEXT, next);
	stop(f);
	assert_non_null(strstr(f->text, "standard error: 1 log line dropped: nothing read it\n"));
	char *last = strrchr(f->text, '\n');
	assert_true(last != NULL && last[1] == '\0' && strstr(f->text, TEXT "\n") != NULL);
}

TEST_F(lines_that_cant_be_written_are_counted_and_reported_with_the_reason)
{
	use_as_stderr(open("/dev/full", O_WRONLY | O_CLOEXEC));
	uint64_t before = bc_log_dropped();
	bc_log_start();
	for (unsigned i = 0; i < 5; i++)
		bc_log(BC_LOG_INFO, "line %u " TEXT, i);
	while (bc_log_dropped() != before + 5)
		poll(NULL, 0, 1);
	use_pipe(f);
	bc_log(BC_LOG_INFO, "line 5 " TEXT);
	stop(f);
	static const char wanted[] =
		"standard error: 5 log lines dropped: No space left on device\n";
	const char *report = strstr(f->text, wanted);
	const char *rest;
	assert_non_null(report);
	assert_int_equal(count_lines(report + strlen(wanted), 5, &rest), 1);
	assert_string_equal(rest, "");
}

/* Another program that shares the pipe has set O_NONBLOCK. */
TEST_F(a_nonblocking_reader_gets_every_line)
{
	const char *rest;

	use_pipe(f);
	assert_int_equal(fcntl(STDERR_FILENO, F_SETFL, O_WRONLY | O_NONBLOCK), 0);
	bc_log_start();
	for (unsigned i = 0; i < 500; i++)
		bc_log(BC_LOG_INFO, "line %u " TEXT, i);
	read_until(f, "line 499");
	stop(f);
	assert_int_equal(count_lines(f->text, 0, &rest), 500);
	assert_string_equal(rest, "");
}

static void *log_many(void *name)
{
	for (unsigned i = 0; i < 300; i++)
		bc_log(BC_LOG_INFO, "%s %u " TEXT " end", (const char *)name, i);
	return NULL;
}

TEST_F(threads_log_whole_lines)
{
	static char names[][8] = {"alpha", "beta", "gamma"};
	pthread_t threads[COUNT_OF(names)];
	unsigned lines = 0;

	use_pipe(f);
	bc_log_start();
	for (size_t i = 0; i < COUNT_OF(names); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, log_many, names[i]), 0);
	for (size_t i = 0; i < COUNT_OF(names); i++)
		pthread_join(threads[i], NULL);
	bc_log(BC_LOG_INFO, "last");
	read_until(f, ": last\n");
	stop(f);
	for (const char *line = f->text; *line != '\0'; line = strchr(line, '\n') + 1, lines++)
		assert_true(strncmp(strchr(line, '\n') - 4, " end", 4) == 0 || lines == 900);
	assert_int_equal(lines, 901);
}

TEST_F(without_a_thread_lines_are_written_at_once)
{
	use_pipe(f);
	bc_log(BC_LOG_INFO, "line 0 " TEXT);
	read_until(f, TEXT "\n");
	const char *rest;
	assert_int_equal(count_lines(f->text, 0, &rest), 1);
}

/* The last test, because the thread may still be ending after it. */
TEST_F(an_unread_log_does_not_delay_the_end_for_long)
{
	use_pipe(f);
	bc_log_start();
	for (unsigned i = 0; i < 100; i++)
		bc_log(BC_LOG_INFO, "line %u " TEXT, i);
	uint64_t before = bc_now_ns();
	bc_log_stop();
	assert_in_range(bc_now_ns() - before, 900000000, 30000000000);
	read_until(f, "line 99 " TEXT "\n"); /* its thread goes on, and ends */
}
