/* Prints the CPU time of the USB source from the kernel to the sink, compared with the minimum that
 * libusb allows: a reader that resubmits the same transfers and discards the data. Both read from
 * the same emulated board, in turn. Both figures include the cost of the emulation. */
#include <errno.h>
#include <libusb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "capture/usb/usb_source.h"
#include "tests/board/usbfs.h"
#include "tests/support/cpu_time.h"
#include "tests/support/usb_options.h"

#define TRANSFERS      16
#define TRANSFER_BYTES (64 << 10)
#define BENCH_BYTES    (UINT64_C(1) << 30)
#define RUNS           7

static void check(bool is_good, const char *what)
{
	if (is_good)
		return;
	fprintf(stderr, "bench_usb_source: %s failed\n", what);
	exit(1);
}

/* ---- the minimal reader */

struct minimal {
	uint64_t bytes;
	unsigned pending;
};

static void LIBUSB_CALL on_transfer(struct libusb_transfer *transfer)
{
	struct minimal *minimal = transfer->user_data;

	check(transfer->status == LIBUSB_TRANSFER_COMPLETED, "transfer");
	minimal->bytes += (uint64_t)transfer->actual_length;
	if (minimal->bytes >= BENCH_BYTES || libusb_submit_transfer(transfer) != 0)
		minimal->pending--;
}

static double read_minimal(void)
{
	struct libusb_transfer *transfers[TRANSFERS];
	struct minimal minimal = {0};
	libusb_context *context;

	check(libusb_init(&context) == 0, "libusb_init");
	libusb_device_handle *handle = libusb_open_device_with_vid_pid(context, 0x1209, 0x0001);
	check(handle != NULL, "libusb_open_device_with_vid_pid");
	check(libusb_claim_interface(handle, 0) == 0, "libusb_claim_interface");
	for (int i = 0; i < TRANSFERS; i++) {
		transfers[i] = libusb_alloc_transfer(0);
		libusb_fill_bulk_transfer(transfers[i], handle, BOARD_ENDPOINT,
			malloc(TRANSFER_BYTES), TRANSFER_BYTES, on_transfer, &minimal, 0);
		transfers[i]->flags = LIBUSB_TRANSFER_FREE_BUFFER;
	}
	double start = cpu_time_s();
	for (int i = 0; i < TRANSFERS; i++) {
		check(libusb_submit_transfer(transfers[i]) == 0, "libusb_submit_transfer");
		minimal.pending++;
	}
	while (minimal.pending != 0)
		libusb_handle_events(context);
	double took = cpu_time_s() - start;
	for (int i = 0; i < TRANSFERS; i++)
		libusb_free_transfer(transfers[i]);
	libusb_release_interface(handle, 0);
	libusb_close(handle);
	libusb_exit(context);
	return took * (double)BENCH_BYTES / (double)minimal.bytes;
}

/* ---- the USB source */

struct ours {
	uint64_t bytes;
	double start;
	double took;
	bool has_ended;
};

static bool on_data(void *context, const struct bc_source_data *data)
{
	struct ours *ours = context;

	if (ours->bytes == 0)
		ours->start = cpu_time_s();
	ours->bytes += data->count;
	if (ours->bytes >= BENCH_BYTES && ours->took == 0)
		ours->took = (cpu_time_s() - ours->start) * (double)BENCH_BYTES /
			     (double)ours->bytes;
	return true;
}

static void on_damage(void *context, const char *what)
{
	(void)context;
	(void)what;
}

static void on_end(void *context, int status, const char *what)
{
	struct ours *ours = context;

	(void)what;
	check(status == 0, "USB source");
	ours->has_ended = true;
}

static double read_source(void)
{
	struct bc_usb_options options = usb_options_default();
	struct bc_source *source;
	struct ours ours = {0};
	struct bc_source_sink sink = {
		.context = &ours, .data = on_data, .damage = on_damage, .end = on_end};
	uv_loop_t loop;

	options.transfers = TRANSFERS;
	options.transfer_bytes = TRANSFER_BYTES;
	check(uv_loop_init(&loop) == 0, "uv_loop_init");
	check(bc_usb_source_open(&source, &loop, &options) == 0, "bc_usb_source_open");
	check(bc_source_start(source, &sink) == 0, "bc_source_start");
	while (ours.took == 0)
		uv_run(&loop, UV_RUN_ONCE);
	bc_source_close(source);
	uv_run(&loop, UV_RUN_DEFAULT);
	check(uv_loop_close(&loop) == 0, "uv_loop_close");
	return ours.took;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(void)
{
	static uint8_t bytes[1 << 20];
	struct board_options options = {.serial = "BENCH"};
	struct board *board = board_new(&options);
	double minimal[RUNS];
	double ours[RUNS];
	const double mb = (double)BENCH_BYTES / 1e6;

	check(board != NULL, "board_new");
	memset(bytes, 0x5A, sizeof(bytes));
	usbfs_start();
	usbfs_replay(usbfs_plug(board), bytes, sizeof(bytes));
	read_minimal();
	for (int i = 0; i < RUNS; i++) {
		minimal[i] = read_minimal();
		ours[i] = read_source();
	}
	qsort(minimal, RUNS, sizeof(minimal[0]), compare_doubles);
	qsort(ours, RUNS, sizeof(ours[0]), compare_doubles);
	printf("USB: %.0f MB in %d transfers of %d KiB: source %.2f us of CPU per MB, minimal "
	       "libusb reader %.2f: %.3f x (both include the emulated board)\n",
		mb, TRANSFERS, TRANSFER_BYTES >> 10, ours[RUNS / 2] / mb * 1e6,
		minimal[RUNS / 2] / mb * 1e6, ours[RUNS / 2] / minimal[RUNS / 2]);
	usbfs_stop();
	board_free(board);
	return 0;
}
