/* The USB source when kernel calls fail: every call of every kind, one at a time or all from one
 * on. The source eventually streams or logs the error, and ends when it is stopped. */
#include <errno.h>

#include "tests/support/test.h"
#include "tests/support/usb_run.h"

TEST_THREADS;
TEST_VALGRIND;

static const int errors[] = {EIO, ENODEV, ENOMEM, EBUSY, EACCES};

#define ERRORS (COUNT_OF(errors))

/* Streams, stalls and streams again. */
static void stream_through_stall(struct usb_run *run)
{
	usb_run_receive(run, 1000);
	usb_run_command(run, "stall");
	usb_run_receive(run, 3000);
}

static void begin_failing(struct usb_run *run)
{
	run->options.transfers = 3;
	run->options.transfer_bytes = 4096;
	run->options.back_off_ns = 1;
	run->options.back_off_max_ns = 1000000;
	usb_run_board(run, 2000000);
	usb_run_plug(run);
}

static void end_failing(struct usb_run *run)
{
	usb_run_stop(run);
	assert_int_equal(run->status, 0);
	assert_int_equal(run->bytes, usbfs_sent(run->port).bytes);
	usb_run_again(run);
}

static void count_calls(struct usb_run *run, unsigned counts[USBFS_CALLS])
{
	begin_failing(run);
	usb_run_start(run);
	stream_through_stall(run);
	usb_run_stop(run);
	for (enum usbfs_call call = 0; call < USBFS_CALLS; call++)
		counts[call] = usbfs_calls_of(call);
	usb_run_again(run);
}

/* The kernel always accepts these, whatever else fails. If they failed, resources would be
 * reported as leaked. */
static bool may_fail(enum usbfs_call call)
{
	return call != USBFS_DISCARD && call != USBFS_RELEASE;
}

/* Each call fails once: the effect is at most a break. */
TEST_RUN(every_call_that_fails_once_is_survived)
{
	unsigned counts[USBFS_CALLS];

	count_calls(run, counts);
	for (enum usbfs_call call = 0; call < USBFS_CALLS; call++) {
		unsigned count = may_fail(call) ? counts[call] : 0;
		/* Many sysfs files are read, but they fail in only a few ways. */
		size_t kinds = call == USBFS_SYSFS ? 1 : ERRORS;
		for (size_t e = 0; e < kinds; e++) {
			for (unsigned skip = (unsigned)e % test_stride(5);
				skip < count && skip < 30; skip += test_stride(5)) {
				begin_failing(run);
				usb_run_start(run);
				usbfs_fail(call, errors[e], skip, 1);
				stream_through_stall(run);
				if (e == 0) /* a stop takes some time */
					end_failing(run);
				else
					usb_run_again(run);
			}
		}
	}
}

/* All calls fail from one on: the source logs it or copes, and streams when they succeed again. */
TEST_RUN(every_call_that_keeps_failing_is_reported)
{
	static const enum usbfs_call calls[] = {
		USBFS_OPEN, USBFS_CLAIM, USBFS_SUBMIT, USBFS_ASK, USBFS_SYSFS};

	for (unsigned i = 0; i < COUNT_OF(calls); i++) {
		for (size_t e = 0; e < ERRORS; e++) {
			for (unsigned skip = 0; skip < 6; skip += 2 * test_stride(5)) {
				begin_failing(run);
				usb_run_start(run);
				usbfs_fail(calls[i], errors[e], skip, 1000000);
				usb_run_until(run, run->log_count != 0);
				usb_run_wait(run, 3);
				usbfs_fail(calls[i], 0, 0, 0);
				stream_through_stall(run);
				end_failing(run);
			}
		}
	}
}

/* The source can also be stopped and closed while calls fail. */
TEST_RUN(a_source_whose_calls_fail_can_still_be_stopped)
{
	for (enum usbfs_call call = 0; call < USBFS_CALLS; call++) {
		if (!may_fail(call) || call == USBFS_REAP)
			continue;
		for (unsigned skip = call % test_stride(5) % 8; skip < 8; skip += test_stride(5)) {
			begin_failing(run);
			usb_run_start(run);
			usbfs_fail(call, errors[skip % ERRORS], skip, 1000000);
			usb_run_wait(run, 5 + skip);
			if (skip % 2 == 0)
				usb_run_stop(run);
			usb_run_again(run);
		}
	}
}
