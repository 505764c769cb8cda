/* Fuzz target: the state machine of a USB source, driven by a sequence of events: boards that are
 * plugged in and unplugged, faults of the kernel's calls, commands to the board, and stops, with
 * turns of the loop in between. Each pair of bytes is an event and its argument. The data must be
 * in order, the source must end once, and nothing may be leaked. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "capture/usb/board.h"
#include "capture/usb/usb_source.h"
#include "tests/board/usbfs.h"

/* More events would only repeat the same states. */
#define EVENTS_MAX 48

/* The end of a source may take this long. */
#define END_SECONDS 15

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct run {
	uv_loop_t loop;
	uv_timer_t tick; /* wakes the loop */
	struct bc_source *source;
	struct board *board;
	struct usbfs_port *port; /* NULL: unplugged */
	uint64_t until_ns;
	unsigned ends;
	bool is_stopped;
	bool is_closed;
};

static bool on_data(void *context, const struct bc_source_data *data)
{
	struct run *run = context;

	if (run->ends != 0 || run->is_closed)
		abort();
	if (data->broken != NULL)
		return true;
	if (data->count == 0 || !data->has_times || data->since_ns < run->until_ns ||
		data->until_ns < data->since_ns)
		abort();
	run->until_ns = data->until_ns;
	return true;
}

static void on_log(void *context, enum bc_source_level level, const char *kind, const char *what)
{
	const struct run *run = context;

	(void)level;
	if (run->is_closed || kind == NULL || what[0] == '\0')
		abort();
	if (getenv("USB_RUN_LOGS") != NULL)
		fprintf(stderr, "log: %s\n", what);
}

static void on_damage(void *context, const char *what)
{
	(void)context;
	(void)what;
	abort(); /* only files are damaged */
}

static void on_end(void *context, int status, const char *what)
{
	struct run *run = context;

	if (run->ends++ != 0 || run->is_closed || status > 0 || (status != 0 && what[0] == '\0'))
		abort();
}

static void on_tick(uv_timer_t *timer)
{
	(void)timer;
}

static void run_ms(struct run *run, unsigned ms)
{
	uint64_t end_ns = uv_hrtime() + ms * UINT64_C(1000000);

	do {
		uv_run(&run->loop, UV_RUN_NOWAIT);
	} while (uv_hrtime() < end_ns);
}

static void plug(struct run *run)
{
	if (run->port == NULL)
		run->port = usbfs_plug(run->board);
}

static void unplug(struct run *run)
{
	if (run->port != NULL)
		usbfs_unplug(run->port);
	run->port = NULL;
}

static void fail_calls(unsigned argument)
{
	static const int errors[] = {EIO, ENODEV, EACCES, EBUSY, ENOMEM, EPIPE, EPROTO, ETIMEDOUT};
	/* Not USBFS_DISCARD: Linux never refuses to cancel a URB that is in flight, and libusb does
	 * not try again. */
	static const enum usbfs_call calls[] = {USBFS_OPEN, USBFS_SUBMIT, USBFS_REAP, USBFS_SYSFS,
		USBFS_CLAIM, USBFS_RELEASE, USBFS_CLEAR_HALT, USBFS_RESET};

	usbfs_fail(calls[argument & 7], errors[argument >> 3 & 7], argument >> 6 & 1,
		1 + (argument >> 7) * 3);
}

static void command_board(const struct run *run, unsigned argument)
{
	static const char *const commands[] = {"stall", "overflow 700", "protocol-error",
		"timeout 600", "lose 1000", "lose-frames 2", "corrupt", "garbage 300", "freeze",
		"thaw", "last", "requests hang", "requests stall", "requests answer", "short on",
		"short off", "lie no-endpoint", "lie zero-packet", "lie truncated-config",
		"lie wrong-class", "lie alternate", "lie short-info", "lie wild-info",
		"lie wild-serial", "lie none", "heartbeat 5", "heartbeat off", "frame 16",
		"rate 1000", "rate 200000", "trigger", "self-powered on"};
	char answer[BOARD_ANSWER];

	if (run->port != NULL)
		usbfs_command(run->port,
			commands[argument % (sizeof(commands) / sizeof(commands[0]))], answer);
}

static void apply_event(struct run *run, unsigned event, unsigned argument)
{
	switch (event % 12) {
	case 0:
		plug(run);
		break;
	case 1:
		unplug(run);
		break;
	case 2:
		if (run->port != NULL)
			usbfs_lose_power(run->port);
		break;
	case 3:
		fail_calls(argument);
		break;
	case 4:
	case 5:
		command_board(run, argument);
		break;
	case 6:
		usbfs_hold_events((argument & 1) != 0);
		break;
	case 7:
		usbfs_discard_with(argument * 16, 1 + argument % 3);
		break;
	case 8:
		if (run->port != NULL)
			usbfs_bind_driver(run->port, (argument & 1) != 0 ? "usbtest" : NULL);
		break;
	case 9:
		usbfs_set_memory((argument & 1) != 0 ? 70000 : 0);
		break;
	case 10:
		if (!run->is_stopped && argument % 4 == 0) {
			run->is_stopped = true;
			bc_source_stop(run->source);
		}
		break;
	default:
		run_ms(run, argument % 16);
		break;
	}
	uv_run(&run->loop, UV_RUN_NOWAIT);
}

static void start_run(struct run *run, unsigned options_byte)
{
	const struct board_options board = {.serial = "A1",
		.rate = 50000,
		.seed = 7,
		.is_ftdi = (options_byte & 1) != 0,
		.form = (options_byte & 2) != 0 ? BOARD_RAW6 : BOARD_BCP1};
	struct bc_usb_options options = bc_usb_options_default();
	const struct bc_source_sink sink = {
		.context = run, .data = on_data, .damage = on_damage, .log = on_log, .end = on_end};

	memset(run, 0, sizeof(*run));
	usbfs_start();
	usbfs_set_caps((options_byte & 4) != 0 ? USBFS_CAPS_SPLIT : USBFS_CAPS_XHCI);
	usbfs_set_threaded((options_byte & 8) != 0);
	run->board = board_new(&board);
	if (run->board == NULL || uv_loop_init(&run->loop) != 0)
		abort();
	uv_timer_init(&run->loop, &run->tick);
	uv_timer_start(&run->tick, on_tick, 2, 2);
	if (board.is_ftdi) {
		options.match.vid = 0x0403;
		options.match.pid = 0x6014;
		options.has_id = true;
		options.link = BC_USB_FTDI;
	}
	options.protocol = board.form == BOARD_RAW6 ? BC_FORMAT_RAW6 : BC_FORMAT_BCP1;
	options.transfers = 3;
	options.transfer_bytes = 16384;
	options.timeout_ms = (options_byte & 16) != 0 ? 20 : 0;
	options.silence_ns = (options_byte & 32) != 0 ? 20000000 : 0;
	options.reset_on_silence = (options_byte & 64) != 0;
	options.back_off_ns = 1000000;
	options.back_off_max_ns = 4000000;
	options.wait_ns = (options_byte & 128) != 0 ? 30000000 : 0;
	if (bc_usb_source_open(&run->source, &run->loop, &options) != 0)
		abort();
	if (bc_source_start(run->source, &sink) != 0)
		abort();
}

/* Stops the source unless it is to be closed without a stop. */
static void end_run(struct run *run, bool waits_for_end)
{
	uint64_t limit_ns = uv_hrtime() + END_SECONDS * UINT64_C(1000000000);

	usbfs_hold_events(false);
	if (waits_for_end) {
		if (!run->is_stopped)
			bc_source_stop(run->source);
		while (run->ends == 0 && uv_hrtime() < limit_ns)
			uv_run(&run->loop, UV_RUN_ONCE);
		if (run->ends != 1)
			abort();
	}
	bc_source_close(run->source);
	run->is_closed = true;
	uv_close((uv_handle_t *)&run->tick, NULL);
	while (uv_run(&run->loop, UV_RUN_ONCE) != 0)
		if (uv_hrtime() >= limit_ns)
			abort();
	struct usbfs_leaks leaks = usbfs_stop();
	if (uv_loop_close(&run->loop) != 0 || leaks.nodes != 0 || leaks.claims != 0 ||
		leaks.urbs != 0 || leaks.unclaimed != 0 || leaks.monitors != 0)
		abort();
	board_free(run->board);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run run;

	if (size < 2)
		return 0;
	start_run(&run, data[0]);
	if ((data[1] & 1) != 0)
		plug(&run);
	for (size_t at = 2; at + 1 < size && at < 2 + 2 * EVENTS_MAX; at += 2)
		apply_event(&run, data[at], data[at + 1]);
	end_run(&run, (data[1] & 2) != 0);
	return 0;
}
