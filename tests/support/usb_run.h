/* Runs a USB source against software boards on its own loop, and records what its sink receives.
 *
 *     TEST_RUN(name)      a test with `run`: a loop, the shim, options; no source or board yet
 *     usb_run_board(), usb_run_plug()
 *     usb_run_source()    creates the source
 *     usb_run_start()     starts it, after creating it if necessary
 *     usb_run_until()     runs the loop until a condition holds; fails after RUN_SECONDS
 *     usb_run_stop()      stops the source and waits for its end
 *     usb_run_close()     closes everything and checks for leaks: handles, descriptors, claims,
 *     URBs; a test that does not call it does so at its end */
#ifndef BC_TESTS_SUPPORT_USB_RUN_H
#define BC_TESTS_SUPPORT_USB_RUN_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "capture/usb/board.h"
#include "capture/usb/usb_source.h"
#include "formats/bus/bcp1.h"
#include "tests/board/usbfs.h"
#include "tests/support/test.h"
#include "tests/support/usb_options.h"

#define RUN_SECONDS 60

/* A FIFO for many seconds of samples, so that it does not overflow if the machine stalls. */
#define RUN_FIFO_SAMPLES (1u << 24)

#define RUN_BREAKS 64
#define RUN_LOGS   64

struct usb_run {
	uv_loop_t loop;
	uv_timer_t tick; /* wakes the loop, so that conditions are checked */
	struct bc_usb_options options;
	struct bc_source *source;
	struct board *board;
	struct usbfs_port *_Atomic port; /* the latest plug, on any thread */
	struct bc_bcp1_reader reader;
	bool forwards_last;                   /* pass last frames on to bc_source_last_frame() */
	void (*on_data)(struct usb_run *run); /* called in the sink, may be NULL */
	void (*on_log)(struct usb_run *run);

	/* What the sink has received. */
	uint64_t bytes;
	uint64_t pieces;
	uint64_t frames;
	uint64_t samples;
	uint64_t damaged;
	uint64_t last_frames;
	uint64_t until_ns;
	unsigned breaks_count;
	struct bc_source_break breaks[RUN_BREAKS]; /* the first ones */
	unsigned log_count;
	char log[RUN_LOGS][256];
	unsigned ends;
	int status;
	char what[512];
	bool is_closed;
	bool is_open; /* usb_run_open() was called, and usb_run_close() not yet */
};

static inline void usb_run_frames(
	struct usb_run *run, const uint8_t *bytes, size_t count, bool last)
{
	struct bc_bcp1_frame frame;
	enum bc_bcp1_found found;

	while ((found = bc_bcp1_next(&run->reader, &bytes, &count, last, &frame)) != BC_BCP1_MORE) {
		if (found == BC_BCP1_DAMAGED) {
			run->damaged++;
			continue;
		}
		run->frames++;
		run->samples += frame.header.samples;
		if ((frame.header.flags & BC_BCP1_LAST) != 0) {
			run->last_frames++;
			if (run->forwards_last)
				bc_source_last_frame(run->source);
		}
	}
}

static inline bool usb_run_data(void *context, const struct bc_source_data *data)
{
	struct usb_run *run = context;

	assert_false(run->is_closed);
	assert_int_equal(run->ends, 0);
	if (data->broken != NULL) {
		if (run->breaks_count < RUN_BREAKS)
			run->breaks[run->breaks_count] = *data->broken;
		run->breaks_count++;
		if (data->broken->is_cut)
			usb_run_frames(run, NULL, 0, true);
		return true;
	}
	assert_true(data->count > 0);
	assert_true(data->has_times);
	assert_true(data->since_ns >= run->until_ns);
	assert_true(data->until_ns >= data->since_ns);
	run->until_ns = data->until_ns;
	run->bytes += data->count;
	run->pieces++;
	if (data->format == BC_FORMAT_BCP1)
		usb_run_frames(run, data->bytes, data->count, false);
	if (run->on_data != NULL)
		run->on_data(run);
	return true;
}

static inline void usb_run_damage(void *context, const char *what)
{
	(void)context;
	fail_msg("%s", what);
}

static inline void usb_run_log(
	void *context, enum bc_source_level level, const char *kind, const char *what)
{
	struct usb_run *run = context;

	(void)level;
	assert_false(run->is_closed);
	assert_non_null(kind);
	if (run->log_count < RUN_LOGS)
		snprintf(run->log[run->log_count], sizeof(run->log[0]), "%s", what);
	run->log_count++;
	if (getenv("USB_RUN_LOGS") != NULL)
		fprintf(stderr, "log: %s\n", what);
	if (run->on_log != NULL)
		run->on_log(run);
}

static inline void usb_run_end(void *context, int status, const char *what)
{
	struct usb_run *run = context;

	assert_false(run->is_closed);
	run->ends++;
	run->status = status;
	snprintf(run->what, sizeof(run->what), "%s", what);
}

static inline void usb_run_tick(uv_timer_t *timer)
{
	(void)timer;
}

static inline void usb_run_open(struct usb_run *run)
{
	struct board *board = run->board;

	memset(run, 0, sizeof(*run));
	run->board = board;
	run->is_open = true;
	usbfs_start();
	run->options = usb_options_default();
	run->options.wait_ns = 0;
	run->options.back_off_ns = 1000000;
	run->options.back_off_max_ns = 20000000;
	run->forwards_last = true;
	bc_bcp1_reader_init(&run->reader);
	assert_int_equal(uv_loop_init(&run->loop), 0);
	uv_timer_init(&run->loop, &run->tick);
	uv_timer_start(&run->tick, usb_run_tick, 5, 5);
}

static inline void usb_run_tear_down(struct usb_run *run)
{
	board_free(run->board);
}

TEST_FIXTURE(usb_run, usb_run_open, usb_run_tear_down)

static inline void usb_run_board_of(struct usb_run *run, const struct board_options *options)
{
	board_free(run->board);
	run->board = board_new(options);
	assert_non_null(run->board);
}

/* A board with this serial number (NULL: none) and rate, in samples per second. */
static inline void usb_run_board_named(struct usb_run *run, const char *serial, uint64_t rate)
{
	const struct board_options options = {
		.serial = serial, .rate = rate, .seed = 7, .fifo_samples = RUN_FIFO_SAMPLES};

	usb_run_board_of(run, &options);
}

static inline void usb_run_board(struct usb_run *run, uint64_t rate)
{
	usb_run_board_named(run, "A1", rate);
}

/* A board that sends plain samples. */
static inline void usb_run_board_raw6(struct usb_run *run)
{
	const struct board_options options = {.serial = "A1",
		.form = BOARD_RAW6,
		.rate = 1000000,
		.seed = 7,
		.fifo_samples = RUN_FIFO_SAMPLES};

	usb_run_board_of(run, &options);
	run->options.protocol = BC_FORMAT_RAW6;
}

static inline void usb_run_plug(struct usb_run *run)
{
	run->port = usbfs_plug(run->board);
	assert_non_null(run->port);
}

static inline void usb_run_command(struct usb_run *run, const char *command)
{
	char answer[BOARD_ANSWER];

	if (!usbfs_command(run->port, command, answer))
		fail_msg("%s: %s", command, answer);
}

/* Creates the source without starting it. */
static inline void usb_run_source(struct usb_run *run)
{
	assert_int_equal(bc_usb_source_open(&run->source, &run->loop, &run->options), 0);
	usbfs_forget_calls(); /* from here on the loop must not be blocked */
}

static inline void usb_run_start(struct usb_run *run)
{
	const struct bc_source_sink sink = {
		.context = run,
		.data = usb_run_data,
		.damage = usb_run_damage,
		.log = usb_run_log,
		.end = usb_run_end,
	};

	if (run->source == NULL)
		usb_run_source(run);
	assert_int_equal(bc_source_start(run->source, &sink), 0);
}

/* Plugs in a board A1 with this rate and starts the source. */
static inline void usb_run_stream(struct usb_run *run, uint64_t rate)
{
	usb_run_board(run, rate);
	usb_run_plug(run);
	usb_run_start(run);
}

#define usb_run_until(run, condition)                                               \
	do {                                                                        \
		uint64_t end_ns = uv_hrtime() + RUN_SECONDS * UINT64_C(1000000000); \
		while (!(condition)) {                                              \
			assert_true(uv_hrtime() < end_ns);                          \
			uv_run(&(run)->loop, UV_RUN_ONCE);                          \
		}                                                                   \
	} while (0)

/* Waits for `count` more samples. */
static inline void usb_run_receive(struct usb_run *run, uint64_t count)
{
	uint64_t want = run->samples + count;

	usb_run_until(run, run->samples >= want);
}

/* A board A1 that streams, as most tests begin. */
static inline void usb_run_streaming(struct usb_run *run)
{
	usb_run_stream(run, 1000000);
	usb_run_receive(run, 10000);
}

static inline const struct bc_board *board_of(const struct usb_run *run)
{
	return run->source->board;
}

/* Waits for `ms` milliseconds. */
static inline void usb_run_wait(struct usb_run *run, unsigned ms)
{
	uint64_t since_ns = uv_hrtime();

	usb_run_until(run, uv_hrtime() - since_ns >= ms * UINT64_C(1000000));
}

/* Returns how many log messages contain these words. */
static inline unsigned usb_run_logged(const struct usb_run *run, const char *words)
{
	unsigned count = 0;

	for (unsigned i = 0; i < run->log_count && i < RUN_LOGS; i++)
		count += strstr(run->log[i], words) != NULL;
	return count;
}

/* Unplugs the board and waits until the source knows. */
static inline void usb_run_unplug(struct usb_run *run)
{
	uint64_t unplugs = board_of(run)->unplugs;

	usbfs_unplug(run->port);
	usb_run_until(run, board_of(run)->unplugs > unplugs);
}

/* Plugs the board in again and waits for samples. */
static inline void usb_run_replug(struct usb_run *run)
{
	usb_run_plug(run);
	usb_run_receive(run, 10000);
}

/* Stops the source and waits for its end. */
static inline void usb_run_stop(struct usb_run *run)
{
	bc_source_stop(run->source);
	usb_run_until(run, run->ends == 1);
	usb_run_frames(run, NULL, 0, true);
}

static inline void usb_run_close(struct usb_run *run)
{
	if (!run->is_closed && run->source != NULL)
		bc_source_close(run->source);
	run->is_closed = true;
	run->is_open = false;
	uv_close((uv_handle_t *)&run->tick, NULL);
	uint64_t end_ns = uv_hrtime() + RUN_SECONDS * UINT64_C(1000000000);
	while (uv_run(&run->loop, UV_RUN_ONCE) != 0)
		assert_true(uv_hrtime() < end_ns);
	assert_int_equal(uv_loop_close(&run->loop), 0);
	assert_true(run->ends <= 1);
	assert_int_equal(usbfs_blocking_calls(pthread_self()), 0);
	assert_int_equal(usbfs_waits(pthread_self()), 0);
	struct usbfs_leaks leaks = usbfs_stop();
	assert_int_equal(leaks.nodes, 0);
	assert_int_equal(leaks.claims, 0);
	assert_int_equal(leaks.urbs, 0);
	assert_int_equal(leaks.unclaimed, 0);
	assert_int_equal(leaks.monitors, 0);
}

/* A clean end: all that left the board has arrived, apart from samples torn on the way. */
static inline struct board_sent usb_run_finish(struct usb_run *run)
{
	usb_run_stop(run);
	struct board_sent sent = usbfs_sent(run->port);
	assert_int_equal(run->status, 0);
	assert_int_equal(run->samples, sent.samples);
	assert_int_equal(run->bytes, sent.bytes);
	usb_run_close(run);
	return sent;
}

#define TEST_RUN(name)                                   \
	static void usb_run_##name(struct usb_run *run); \
	TEST_WITH(usb_run, run, name)                    \
	{                                                \
		usb_run_##name(run);                     \
		if (run->is_open)                        \
			usb_run_close(run);              \
	}                                                \
	static void usb_run_##name(struct usb_run *run)

/* Closes everything and starts afresh, for the next of many runs; keeps the board. */
static inline void usb_run_again(struct usb_run *run)
{
	usb_run_close(run);
	usb_run_open(run);
}

#endif
