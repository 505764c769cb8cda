/* What the simulated USB (tests/board/usbfs.h) must notice: leaks, and a thread that waits for
 * another one's call. All else that it does is seen by the tests of the USB source. */
#include <fcntl.h>
#include <libusb.h>
#include <pthread.h>
#include <time.h>

#include "tests/board/usbfs.h"
#include "tests/support/test.h"

TEST_THREADS;
TEST_VALGRIND;

struct fixture {
	struct board *board;
	libusb_context *context;
	libusb_device_handle *handle;
};

static void set_up(struct fixture *f)
{
	static const struct board_options options = {.serial = "B-0001"};

	f->board = board_new(&options);
	assert_non_null(f->board);
	usbfs_start();
	usbfs_plug(f->board);
	assert_int_equal(libusb_init(&f->context), 0);
	f->handle = libusb_open_device_with_vid_pid(f->context, 0x1209, 1);
	assert_non_null(f->handle);
	assert_int_equal(libusb_claim_interface(f->handle, 0), 0);
}

static void tear_down(struct fixture *f)
{
	libusb_exit(f->context);
	usbfs_stop();
	board_free(f->board);
}

TEST_FIXTURE(fixture, set_up, tear_down)

TEST_F(leaks_are_reported)
{
	int fd = open("/dev/bus/usb/001/002", O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	libusb_close(f->handle);
	struct usbfs_leaks leaks = usbfs_stop();
	assert_int_equal(leaks.claims, 1);
	assert_int_equal(leaks.nodes, 1);
	assert_int_equal(leaks.urbs, 0);
	assert_int_equal(leaks.monitors, 1);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void *reset_device(void *context)
{
	assert_int_equal(libusb_reset_device(context), 0);
	return NULL;
}

TEST_F(while_a_thread_resets_the_device_others_wait_for_it)
{
	pthread_t thread;
	libusb_device_handle *other;
	unsigned tries = 0;

	usbfs_slow(USBFS_RESET, 20);
	do {
		usbfs_forget_calls();
		assert_int_equal(pthread_create(&thread, NULL, reset_device, f->handle), 0);
		while (usbfs_calls_of(USBFS_RESET) == 0)
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		assert_int_equal(usbfs_blocking_calls(pthread_self()), 0);
		assert_int_equal(libusb_open(libusb_get_device(f->handle), &other), 0);
		libusb_close(other);
		assert_int_equal(usbfs_blocking_calls(pthread_self()), 2);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(usbfs_blocking_calls(thread), 3); /* with release and claim */
		assert_true(++tries < 100);
	} while (usbfs_waits(pthread_self()) == 0);
	libusb_release_interface(f->handle, 0);
	libusb_close(f->handle);
}
