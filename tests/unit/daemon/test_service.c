#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "capture/usb/board.h"
#include "daemon/base/thread_health.h"
#include "daemon/main/service.h"
#include "formats/base/utf8.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

#define REC "20261120T091500Z-3f9a2c-boot"
#define S   UINT64_C(1000000000)

struct fixture {
	struct temp_dir dir;
	int manager; /* listens */
	struct bc_service service;
	struct bc_stall_detector hang;
	struct bc_recording_info recording;
	struct bc_counts counts;
	struct bc_writer_stats report;
	struct bc_board board;
	struct bc_status status;
	int stderr_fd; /* the real one, while the log goes into the directory */
};

/* The monotonic clock of this program: moved by the tests, from the machine's first second on. */
static uint64_t clock_ns;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	if (clock != CLOCK_MONOTONIC)
		return (int)syscall(SYS_clock_gettime, clock, now);
	now->tv_sec = (time_t)(clock_ns / S);
	now->tv_nsec = (long)(clock_ns % S);
	return 0;
}

static void open_service(struct fixture *f, const char *watchdog_us)
{
	char path[TEMP_PATH_BYTES];

	setenv("NOTIFY_SOCKET", temp_path(&f->dir, "notify", path), 1);
	unsetenv("WATCHDOG_PID");
	if (watchdog_us != NULL)
		setenv("WATCHDOG_USEC", watchdog_us, 1);
	else
		unsetenv("WATCHDOG_USEC");
	bc_service_open(&f->service);
	assert_true(bc_service_is_connected(&f->service));
	assert_int_equal(bc_service_is_watched(&f->service), watchdog_us != NULL);
}

static void set_up(struct fixture *f)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char path[TEMP_PATH_BYTES];

	clock_ns = 1;
	temp_dir_make(&f->dir);
	temp_path(&f->dir, "notify", path);
	assert_true(strlen(path) < sizeof(address.sun_path));
	memcpy(address.sun_path, path, strlen(path) + 1);
	f->manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(f->manager, (struct sockaddr *)&address, sizeof(address)), 0);
	f->service.fd = -1;
	bc_recording_info_init(&f->recording);
	snprintf(f->recording.header.recording, sizeof(f->recording.header.recording), REC);
	f->recording.tag = 7;
	f->report.recording_tag = 7;
	snprintf(f->report.file, sizeof(f->report.file), REC "-00000.byu.lz4");
	f->status = (struct bc_status){
		.state = "recording",
		.busy = "",
		.recording = &f->recording,
		.dir = "/var/lib/buscapd",
		.counts = &f->counts,
		.stats = &f->report,
	};
	f->stderr_fd = dup(STDERR_FILENO);
	int fd = openat(f->dir.fd, "log", O_WRONLY | O_CREAT | O_APPEND, 0600);
	assert_true(fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	close(fd);
}

static void tear_down(struct fixture *f)
{
	dup2(f->stderr_fd, STDERR_FILENO);
	close(f->stderr_fd);
	bc_service_close(&f->service);
	close(f->manager);
	bc_recording_info_destroy(&f->recording);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

/* Returns the next notification, or the empty string. */
static const char *next_notification(struct fixture *f)
{
	static char text[4096];
	ssize_t n = recv(f->manager, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static unsigned lines_logged(struct fixture *f, const char *words)
{
	static char text[65536];
	int fd = openat(f->dir.fd, "log", O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	unsigned count = 0;

	close(fd);
	text[n > 0 ? n : 0] = '\0';
	for (const char *at = text; (at = strstr(at, words)) != NULL; at++)
		count++;
	return count;
}

/* Text */

static void assert_text(struct fixture *f, bool is_stopping, const char *wanted)
{
	char words[BC_SERVICE_TEXT_MAX];

	bc_service_text(words, sizeof(words), &f->status, is_stopping, true);
	assert_string_equal(words, wanted);
}

TEST_F(the_status_of_a_recording_is_one_line)
{
	assert_text(f, false, "recording " REC ": 0 samples/s, 0 records, 0 B, 0 samples lost");
	f->status.rates.samples_per_s = 4987654;
	f->report.recording_bytes = 12345678901;
	f->report.recording_records = 999600;
	f->status.buffer = (struct bc_buffer_state){.chunks = 60, .free = 39};
	assert_text(f, false,
		"recording " REC
		": 5.0 M samples/s, 1.0 M records, 12.3 GB, 0 samples lost, buffer 35 %");
	char words[BC_SERVICE_TEXT_MAX];
	bc_service_text(words, sizeof(words), &f->status, false, false);
	assert_string_equal(words,
		"recording: 5.0 M samples/s, 1.0 M records, 12.3 GB, 0 samples lost, buffer 35 %");
	f->report.recording_records = 0;
	f->status.buffer.chunks = 0;
	f->counts.losses.lost[BC_GAP_BUFFER] = 1;
	f->counts.losses.lost[BC_GAP_DISK] = 20;
	f->counts.losses.lost[BC_GAP_CRC] = 300;
	f->counts.dropped_idle = f->counts.dropped_filtered = f->counts.dropped_invalid = 9999;
	f->status.rates.samples_per_s = 999.4;
	f->report.recording_bytes = 999499;
	assert_text(
		f, false, "recording " REC ": 999 samples/s, 0 records, 999 kB, 321 samples lost");
	f->status.rates.samples_per_s = 999.6;
	f->report.recording_bytes = 999;
	assert_text(
		f, false, "recording " REC ": 1.0 k samples/s, 0 records, 999 B, 321 samples lost");
	f->status.rates.samples_per_s = 99940;
	f->report.recording_bytes = UINT64_MAX;
	assert_text(f, false,
		"recording " REC ": 99.9 k samples/s, 0 records, 18447 PB, 321 samples lost");
	/* The newest file was abandoned, and the next is not created yet. */
	f->report.recording_bytes = 12345678901;
	f->report.file[0] = '\0';
	assert_text(f, false,
		"recording " REC ": 99.9 k samples/s, 0 records, 12.3 GB, 321 samples lost");
	/* The writer is still writing another recording. */
	f->report.recording_tag = 8;
	assert_text(
		f, false, "recording " REC ": 99.9 k samples/s, 0 records, 0 B, 321 samples lost");
}

TEST_F(a_loss_of_unknown_size_is_not_none)
{
	f->counts.losses.gaps[BC_GAP_UNPLUGGED] = f->counts.losses.inexact[BC_GAP_UNPLUGGED] = 1;
	assert_text(f, false,
		"recording " REC
		": 0 samples/s, 0 records, 0 B, an unknown number of samples lost");
	f->counts.losses.gaps[BC_GAP_BUFFER] = 1;
	f->counts.losses.lost[BC_GAP_BUFFER] = 20;
	assert_text(f, false,
		"recording " REC ": 0 samples/s, 0 records, 0 B, at least 20 samples lost");
}

TEST_F(each_state_has_its_text)
{
	f->status.board = &f->board;
	f->status.state = "waiting";
	assert_text(f, false, "waiting for a board");
	f->counts.received = 5;
	f->report.recording_bytes = 2500;
	assert_text(f, false,
		"waiting for a board to continue " REC ": 0 records, 2.5 kB, 0 samples lost");
	f->status.state = "draining";
	assert_text(f, false, "sealing " REC ": 0 records, 2.5 kB, 0 samples lost");
	f->status.recording = NULL;
	assert_text(f, false, "sealing");
	f->status.state = "failed";
	assert_text(f, false, "source failed; see the log");
	f->status.state = "idle";
	assert_text(f, false, "idle, waiting for a board");
	f->board.state = BC_BOARD_STREAMING;
	assert_text(f, false, "idle");
	f->status.board = NULL;
	assert_text(f, false, "idle");
	f->report.is_stuck = true;
	snprintf(f->report.error, sizeof(f->report.error), "/x: no room: full");
	assert_text(f, false, "idle; disk not accepting data: /x: no room: full");
}

TEST_F(every_state_has_some_text)
{
	static const char *const states[] = {
		"idle", "waiting", "recording", "replaying", "draining", "failed"};
	char words[BC_SERVICE_TEXT_MAX];

	for (size_t i = 0; i < COUNT_OF(states); i++) {
		f->status.state = states[i];
		bc_service_text(words, sizeof(words), &f->status, false, true);
		assert_true(strlen(words) >= 4);
		assert_true(words[0] != ' ' && words[strlen(words) - 1] != ' ');
	}
}

TEST_F(a_stop_reports_what_is_left)
{
	f->counts.in_flight = 1234567;
	f->status.commands_waiting = 3;
	assert_text(f, true, "stopping: 1,234,567 samples left to write");
	f->counts.in_flight = 0;
	assert_text(f, true, "stopping: 3 commands for sealed segments left");
	f->status.commands_waiting = 1;
	assert_text(f, true, "stopping: 1 command for sealed segments left");
	f->counts.in_flight = 1;
	assert_text(f, true, "stopping: 1 sample left to write");
	f->counts.in_flight = 0;
	f->status.commands_waiting = 0;
	assert_text(f, true, "stopping");
}

/* Notifications */

TEST_F(a_status_is_one_line_of_valid_utf8)
{
	open_service(f, NULL);
	f->status.state = "idle";
	f->report.is_stuck = true;
	snprintf(f->report.error, sizeof(f->report.error), "/\xc3\xa9/a\nREADY=1\r\x1b[m\xff\xc3");
	bc_service_notify(&f->service, &f->status);
	assert_string_equal(next_notification(f),
		"STATUS=idle; disk not accepting data: /\xc3\xa9/a?READY=1??[m??");
	assert_string_equal(next_notification(f), "");
}

TEST_F(a_long_text_is_cut)
{
	char err[3000];

	open_service(f, NULL);
	for (size_t i = 0; i < sizeof(err) - 1; i += 2)
		memcpy(err + i, "\xc3\xa9", 2);
	err[sizeof(err) - 1] = '\0';
	bc_service_fail(&f->service, -EBUSY, err);
	const char *text = next_notification(f);
	assert_memory_equal(text, "ERRNO=16\nSTATUS=\xc3\xa9", 18);
	assert_in_range(strlen(text), 500, BC_SERVICE_TEXT_MAX + 16);
	assert_true(bc_utf8_is_valid(text, strlen(text)));
}

TEST_F(an_unchanged_status_is_sent_once)
{
	open_service(f, NULL);
	f->status.state = "idle";
	for (int i = 0; i < 3; i++) {
		bc_service_notify(&f->service, &f->status);
		assert_string_equal(next_notification(f), i == 0 ? "STATUS=idle" : "");
	}
	f->status.state = "failed";
	bc_service_notify(&f->service, &f->status);
	assert_string_equal(next_notification(f), "STATUS=source failed; see the log");
}

TEST_F(extensions_are_sent_at_most_once_a_second)
{
	open_service(f, NULL);
	for (int i = 0; i < 100; i++) {
		bc_service_extend(&f->service, "recovering x");
		clock_ns += S / 100;
	}
	assert_string_equal(
		next_notification(f), "EXTEND_TIMEOUT_USEC=60000000\nSTATUS=recovering x");
	assert_string_equal(next_notification(f), "");
	bc_service_extend(&f->service, "recovering x");
	assert_string_equal(next_notification(f), "EXTEND_TIMEOUT_USEC=60000000");
	clock_ns += S;
	bc_service_extend(&f->service, NULL);
	assert_string_equal(next_notification(f), "EXTEND_TIMEOUT_USEC=60000000");
}

TEST_F(no_ready_or_reloading_after_stop)
{
	open_service(f, NULL);
	bc_service_ready(&f->service);
	bc_service_stop(&f->service);
	bc_service_stop(&f->service);
	bc_service_reload(&f->service);
	bc_service_ready(&f->service);
	assert_string_equal(next_notification(f), "READY=1");
	assert_string_equal(next_notification(f), "STOPPING=1");
	assert_string_equal(next_notification(f), "EXTEND_TIMEOUT_USEC=60000000");
	assert_string_equal(next_notification(f), "");
}

/* Fills the manager's queue. Returns the number of messages. */
static unsigned fill_queue(struct fixture *f)
{
	unsigned count = 0;

	while (sendto(f->service.fd, "X", 1, MSG_DONTWAIT, (struct sockaddr *)&f->service.address,
		       f->service.address_bytes) == 1)
		count++;
	assert_int_equal(errno, EAGAIN);
	return count;
}

TEST_F(the_latest_unsent_state_is_sent_later)
{
	open_service(f, NULL);
	unsigned count = fill_queue(f);
	bc_service_ready(&f->service);
	bc_service_reload(&f->service);
	bc_service_ready(&f->service);
	bc_service_watch(&f->service, false);
	for (unsigned i = 0; i < count; i++)
		assert_string_equal(next_notification(f), "X");
	assert_string_equal(next_notification(f), "");
	bc_service_watch(&f->service, false);
	assert_string_equal(next_notification(f), "READY=1");
	bc_service_watch(&f->service, false);
	assert_string_equal(next_notification(f), "");
	assert_int_equal(lines_logged(f, "\n"), 0);
}

TEST_F(a_missing_manager_is_logged_once)
{
	open_service(f, "1");
	close(f->manager);
	bc_service_ready(&f->service);
	for (int i = 0; i < 10; i++)
		bc_service_watch(&f->service, false);
	bc_service_stop(&f->service);
	assert_int_equal(lines_logged(f, "\n"), 1);
	assert_int_equal(lines_logged(f, "can't notify"), 1);
	f->manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
}

TEST_F(without_a_manager_every_call_does_nothing)
{
	unsetenv("NOTIFY_SOCKET");
	setenv("WATCHDOG_USEC", "1", 1);
	bc_service_open(&f->service);
	assert_false(bc_service_is_connected(&f->service));
	assert_false(bc_service_is_watched(&f->service));
	bc_service_extend(&f->service, "x");
	bc_service_ready(&f->service);
	bc_service_watch(&f->service, true);
	bc_service_notify(&f->service, &f->status);
	bc_service_reload(&f->service);
	bc_service_fail(&f->service, -EIO, "x");
	bc_service_stop(&f->service);
	bc_service_close(&f->service);
	assert_int_equal(lines_logged(f, "\n"), 0);
}

/* The watchdog */

TEST_F(the_watchdog_is_pinged_four_times_per_timeout)
{
	open_service(f, "60000000");
	for (int i = 0; i < 15; i++) {
		bc_service_watch(&f->service, false);
		clock_ns += S;
	}
	assert_string_equal(next_notification(f), "WATCHDOG=1");
	assert_string_equal(next_notification(f), "");
	bc_service_watch(&f->service, false);
	assert_string_equal(next_notification(f), "WATCHDOG=1");
}

/* Polls a second later, when a ping is due. Returns the notification. */
static const char *feed(
	struct fixture *f, const struct bc_thread_health_seen *longest, uint64_t limit_ns)
{
	clock_ns += S;
	bc_service_watch(
		&f->service, bc_stall_detector_poll(&f->hang, longest, limit_ns, "/var/lib/buscapd",
				     bc_service_is_watched(&f->service)));
	return next_notification(f);
}

TEST_F(a_hanging_thread_stops_the_pings)
{
	struct bc_thread_health_seen writer = {
		.who = "the writer", .what = "syncing", .file = "a.byu.lz4.partial"};
	struct bc_thread_health_seen worker = {.who = "worker 1 of 2", .what = "encoding a chunk"};

	open_service(f, "1000000");
	clock_ns = 100 * S;
	writer.wall_ns = INT64_C(1795166100000000000); /* 2026 */
	/* Below the limit. */
	writer.since_ns = clock_ns - 47 * S;
	assert_string_equal(feed(f, &writer, 60 * S), "WATCHDOG=1");
	assert_int_equal(lines_logged(f, "\n"), 0);
	/* No limit. */
	assert_string_equal(feed(f, &writer, 0), "WATCHDOG=1");
	/* Above the limit: logged once. */
	for (int i = 0; i < 5; i++)
		assert_string_equal(feed(f, &writer, 50 * S), "");
	assert_int_equal(lines_logged(f, "\n"), 1);
	assert_int_equal(lines_logged(f, "buscapd: the writer hangs: syncing "
					 "/var/lib/buscapd/a.byu.lz4.partial for 50 s, since 20"),
		1);
	/* It continues: logged once. */
	writer.since_ns = clock_ns;
	for (int i = 0; i < 3; i++)
		assert_string_equal(feed(f, &writer, 50 * S), "WATCHDOG=1");
	assert_int_equal(lines_logged(f, "\n"), 2);
	assert_int_equal(lines_logged(f, "the writer continues after 55 s; the watchdog"), 1);
	/* Another thread hangs. */
	worker.since_ns = clock_ns - 69 * S;
	assert_string_equal(feed(f, &worker, 60 * S), "");
	assert_int_equal(lines_logged(f, "worker 1 of 2 hangs: encoding a chunk for 70 s"), 1);
	worker.since_ns = 0;
	assert_string_equal(feed(f, &worker, 60 * S), "WATCHDOG=1");
	assert_int_equal(lines_logged(f, "\n"), 4);
}

TEST_F(a_hanging_thread_is_logged_without_a_watchdog)
{
	struct bc_thread_health_seen writer = {.who = "the writer", .what = "listing", .file = "."};

	clock_ns = 100 * S;
	writer.since_ns = clock_ns - 50 * S;
	assert_false(bc_stall_detector_poll(&f->hang, &writer, 0, "/d", false));
	assert_false(bc_stall_detector_poll(&f->hang, &writer, 60 * S, "/d", false));
	assert_int_equal(lines_logged(f, "\n"), 0);
	for (int i = 0; i < 5; i++)
		assert_true(bc_stall_detector_poll(&f->hang, &writer, 50 * S, "/d", false));
	assert_int_equal(
		lines_logged(f, "buscapd: the writer hangs: listing /d/. for 50 s, since"), 1);
	assert_int_equal(lines_logged(f, "if the buffer fills up before it continues"), 1);
	writer.since_ns = 0;
	for (int i = 0; i < 5; i++)
		assert_false(bc_stall_detector_poll(&f->hang, &writer, 50 * S, "/d", false));
	assert_int_equal(lines_logged(f, "the writer continues after 50 s\n"), 1);
	assert_int_equal(lines_logged(f, "\n"), 2);
	assert_int_equal(lines_logged(f, "watchdog"), 0);
}
