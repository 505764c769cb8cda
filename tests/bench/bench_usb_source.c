/* Prints the CPU time of a board's bytes on their way from the kernel to the sink, through the USB
 * source on its loop, against the least that libusb allows: a reader that submits the same
 * transfers again and throws away what they bring. Both read from the same board in software, in
 * turn; what that costs is in both figures, and is measured alone as well. */
#include <errno.h>
#include <libusb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "capture/usb/usb_source.h"
#include "tests/board/usbfs.h"

#define TRANSFERS      16
#define TRANSFER_BYTES (64 << 10)
#define BENCH_BYTES    (UINT64_C(1) << 30)
#define RUNS           7

static double cpu_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void need(bool is_good, const char *what)
{
	if (is_good)
		return;
	fprintf(stderr, "bench_usb_source: %s failed\n", what);
	exit(1);
}

/* A bare reader */

struct bare {
	uint64_t bytes;
	unsigned flying;
};

static void LIBUSB_CALL on_transfer(struct libusb_transfer *transfer)
{
	struct bare *bare = transfer->user_data;

	need(transfer->status == LIBUSB_TRANSFER_COMPLETED, "a transfer");
	bare->bytes += (uint64_t)transfer->actual_length;
	if (bare->bytes >= BENCH_BYTES || libusb_submit_transfer(transfer) != 0)
		bare->flying--;
}

static double read_bare(void)
{
	struct libusb_transfer *transfers[TRANSFERS];
	struct bare bare = {0};
	libusb_context *context;

	need(libusb_init(&context) == 0, "libusb_init");
	libusb_device_handle *handle = libusb_open_device_with_vid_pid(context, 0x1209, 0x0001);
	need(handle != NULL, "opening the board");
	need(libusb_claim_interface(handle, 0) == 0, "claiming it");
	for (int i = 0; i < TRANSFERS; i++) {
		transfers[i] = libusb_alloc_transfer(0);
		libusb_fill_bulk_transfer(transfers[i], handle, BOARD_ENDPOINT,
			malloc(TRANSFER_BYTES), TRANSFER_BYTES, on_transfer, &bare, 0);
		transfers[i]->flags = LIBUSB_TRANSFER_FREE_BUFFER;
	}
	double start = cpu_s();
	for (int i = 0; i < TRANSFERS; i++) {
		need(libusb_submit_transfer(transfers[i]) == 0, "submitting");
		bare.flying++;
	}
	while (bare.flying != 0)
		libusb_handle_events(context);
	double took = cpu_s() - start;
	for (int i = 0; i < TRANSFERS; i++)
		libusb_free_transfer(transfers[i]);
	libusb_release_interface(handle, 0);
	libusb_close(handle);
	libusb_exit(context);
	return took * (double)BENCH_BYTES / (double)bare.bytes;
}

/* The source */

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
		ours->start = cpu_s();
	ours->bytes += data->count;
	if (ours->bytes >= BENCH_BYTES && ours->took == 0)
		ours->took = (cpu_s() - ours->start) * (double)BENCH_BYTES / (double)ours->bytes;
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
	need(status == 0, "the source");
	ours->has_ended = true;
}

static double read_ours(void)
{
	struct bc_usb_options options = bc_usb_options_default();
	struct bc_source *source;
	struct ours ours = {0};
	struct bc_source_sink sink = {
		.context = &ours, .data = on_data, .damage = on_damage, .end = on_end};
	uv_loop_t loop;

	options.transfers = TRANSFERS;
	options.transfer_bytes = TRANSFER_BYTES;
	need(uv_loop_init(&loop) == 0, "the loop");
	need(bc_usb_source_open(&source, &loop, &options) == 0, "making the source");
	need(bc_source_start(source, &sink) == 0, "starting it");
	while (ours.took == 0)
		uv_run(&loop, UV_RUN_ONCE);
	bc_source_close(source);
	uv_run(&loop, UV_RUN_DEFAULT);
	need(uv_loop_close(&loop) == 0, "closing the loop");
	return ours.took;
}

static int compare(const void *a, const void *b)
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
	double bare[RUNS];
	double ours[RUNS];
	const double mb = (double)BENCH_BYTES / 1e6;

	need(board != NULL, "making a board");
	memset(bytes, 0x5A, sizeof(bytes));
	usbfs_start();
	usbfs_replay(usbfs_plug(board), bytes, sizeof(bytes));
	read_bare();
	for (int i = 0; i < RUNS; i++) {
		bare[i] = read_bare();
		ours[i] = read_ours();
	}
	qsort(bare, RUNS, sizeof(bare[0]), compare);
	qsort(ours, RUNS, sizeof(ours[0]), compare);
	printf("USB: %.0f MB in %d transfers of %d KiB: source on its loop %.2f us of CPU a MB, "
	       "bare "
	       "libusb reader %.2f: %.3f x (the board in software is in both)\n",
		mb, TRANSFERS, TRANSFER_BYTES >> 10, ours[RUNS / 2] / mb * 1e6,
		bare[RUNS / 2] / mb * 1e6, ours[RUNS / 2] / bare[RUNS / 2]);
	usbfs_stop();
	board_free(board);
	return 0;
}
