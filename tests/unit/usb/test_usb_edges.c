/* The USB source when the board or the owner interferes at every possible point: before every
 * kernel call of libusb, and at every turn of the loop. It ends once and leaks nothing. */
#include <stdatomic.h>

#include "tests/support/test.h"
#include "tests/support/usb_run.h"

TEST_THREADS;
TEST_VALGRIND;

/* What happens before the nth call, on the thread of the call. */
enum action { UNPLUG, REPLUG, LOSE_POWER, STOP, CLOSE, ACTIONS };

struct edge {
	struct usb_run *run;
	enum action action;
	uv_async_t poke; /* stop and close belong on the loop's thread */
	atomic_bool has_happened;
	bool is_poked;
};

static void close_source(struct usb_run *run)
{
	if (!run->is_closed) {
		run->is_closed = true;
		bc_source_close(run->source);
	}
}

static void on_poke(uv_async_t *poke)
{
	struct edge *edge = poke->data;

	edge->is_poked = true;
	if (edge->action == STOP)
		bc_source_stop(edge->run->source);
	else
		close_source(edge->run);
}

static void happen(void *context)
{
	struct edge *edge = context;

	switch (edge->action) {
	case UNPLUG:
		usbfs_unplug(edge->run->port);
		break;
	case REPLUG:
		usbfs_unplug(edge->run->port);
		usb_run_plug(edge->run);
		break;
	case LOSE_POWER:
		usbfs_lose_power(edge->run->port);
		break;
	case STOP:
	case CLOSE:
	case ACTIONS:
		uv_async_send(&edge->poke);
		break;
	}
	atomic_store(&edge->has_happened, true);
}

static void begin_edge(struct edge *edge, struct usb_run *run, enum action action)
{
	*edge = (struct edge){.run = run, .action = action};
	run->options.transfers = 2;
	run->options.transfer_bytes = 4096;
	run->options.back_off_ns = 1;
	run->options.back_off_max_ns = 1000000;
	usb_run_board(run, 2000000);
	usb_run_plug(run);
	usb_run_command(run, "frame 500");
	uv_async_init(&run->loop, &edge->poke, on_poke);
	edge->poke.data = edge;
}

static bool is_gone(const struct edge *edge)
{
	return atomic_load(&edge->has_happened) &&
	       (edge->action == UNPLUG || edge->action == LOSE_POWER);
}

/* Streams, stalls and streams again, as far as possible. */
static void run_edge(struct edge *edge)
{
	struct usb_run *run = edge->run;
	bool has_stalled = false;

	while (!run->is_closed && run->ends == 0 && run->samples < 2000 &&
		!(is_gone(edge) && !run->source->board->is_present)) {
		if (run->samples >= 1000 && !has_stalled && !is_gone(edge)) {
			usb_run_command(run, "stall");
			has_stalled = true;
		}
		if (edge->action == LOSE_POWER && is_gone(edge))
			usbfs_unplug(run->port);
		uv_run(&run->loop, UV_RUN_ONCE);
	}
}

static void end_edge(struct edge *edge)
{
	struct usb_run *run = edge->run;

	if (!run->is_closed && run->ends == 0)
		bc_source_stop(run->source);
	usb_run_until(run, run->is_closed || run->ends == 1);
	if (!run->is_closed) {
		assert_int_equal(run->status, 0);
		usb_run_frames(run, NULL, 0, true);
		assert_int_equal(run->bytes, usbfs_sent(run->port).bytes);
		assert_true(run->samples <= usbfs_sent(run->port).samples);
		/* A break cuts the frame around a stall in two. */
		assert_true(usbfs_sent(run->port).samples - run->samples <= 500);
		assert_true(run->source->board->unplugs <= 1);
		assert_true(run->breaks_count <= 3);
	}
	uv_close((uv_handle_t *)&edge->poke, NULL);
	usbfs_hook(0, NULL, NULL);
	usb_run_again(run);
}

static void try_before_every_call(struct usb_run *run, enum action action)
{
	bool has_happened = true;

	for (unsigned n = 1; has_happened; n += test_stride(5)) {
		struct edge edge;
		usbfs_set_threaded(n % 2 == 0);
		begin_edge(&edge, run, action);
		/* Not within libusb_init(): libusb 1.0.26 leaks a device that is unplugged then. */
		usb_run_source(run);
		usbfs_hook(n, happen, &edge);
		usb_run_start(run);
		run_edge(&edge);
		end_edge(&edge);
		has_happened = atomic_load(&edge.has_happened);
		assert_true(n < 2000);
	}
	usb_run_start(run);
	usb_run_close(run);
}

TEST_RUN(anything_may_happen_before_every_call)
{
	for (enum action action = UNPLUG; action < ACTIONS; action++) {
		try_before_every_call(run, action);
		usb_run_open(run);
	}
}

static void try_at_every_turn(struct usb_run *run, enum action action)
{
	for (unsigned turns = 0; turns < 60; turns += test_stride(5)) {
		struct edge edge;
		begin_edge(&edge, run, action);
		usb_run_start(run);
		for (unsigned i = 0; i < turns; i++) {
			if (i == 20)
				usb_run_command(run, "stall");
			uv_run(&run->loop, UV_RUN_ONCE);
		}
		if (action == STOP)
			bc_source_stop(run->source);
		else
			close_source(run);
		end_edge(&edge);
	}
	usb_run_start(run);
	usb_run_close(run);
}

TEST_RUN(it_may_be_stopped_or_closed_at_every_turn)
{
	try_at_every_turn(run, STOP);
	usb_run_open(run);
	try_at_every_turn(run, CLOSE);
}
