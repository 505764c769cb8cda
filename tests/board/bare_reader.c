/* bare_reader [-d VID:PID] [-n TRANSFERS] [-b BYTES] [-c BYTES] [-t SECONDS] [-p UNPLUGS]
 *             [-x MS] [-o FILE]
 * A minimal reader of a board with libusb: claims interface 0, sends START and keeps TRANSFERS
 * (16) of BYTES (65536) queued on endpoint 0x81. Its CPU time is the minimum for any reader, and
 * it tests an adapter without buscapd.
 *
 * It waits for the board, also after an unplug. It ends after a number of bytes (-c), seconds (-t)
 * or unplugs (-p), or on SIGTERM: then it sends STOP and reads the rest. With -x it cancels all
 * transfers and restarts them at that interval. The stream goes to FILE or is discarded. At the
 * end it prints a line of JSON. */

#include <getopt.h>
#include <libusb.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define MAX_TRANSFERS 256
#define INTERFACE     0
#define ENDPOINT      0x81

struct reader {
	libusb_context *context;
	libusb_device *arrived; /* found, not yet opened */
	libusb_device_handle *handle;
	struct libusb_transfer *transfers[MAX_TRANSFERS];
	int in_flight;
	bool is_cancelling;
	bool is_lost;
	FILE *out;
	/* options */
	unsigned vid, pid, count, bytes, cancel_ms;
	uint64_t limit_bytes, limit_ns, limit_unplugs;
	/* figures */
	uint64_t total, completed, shorts, cancelled, cancelled_bytes, errors, unplugs, opens;
};

static atomic_bool is_stopped; /* the signal may be delivered to a thread of libusb */

static void on_signal(int number)
{
	(void)number;
	atomic_store(&is_stopped, true);
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int LIBUSB_CALL on_arrival(
	libusb_context *context, libusb_device *device, libusb_hotplug_event event, void *data)
{
	struct reader *reader = data;

	(void)context;
	(void)event;
	if (reader->arrived != NULL)
		libusb_unref_device(reader->arrived);
	reader->arrived = libusb_ref_device(device);
	return 0;
}

static void LIBUSB_CALL on_transfer(struct libusb_transfer *transfer)
{
	struct reader *reader = transfer->user_data;

	reader->in_flight--;
	/* The data counts whatever the status. */
	if (transfer->actual_length > 0) {
		reader->total += (uint64_t)transfer->actual_length;
		if (reader->out != NULL)
			fwrite(transfer->buffer, 1, (size_t)transfer->actual_length, reader->out);
	}
	switch (transfer->status) {
	case LIBUSB_TRANSFER_COMPLETED:
		reader->completed++;
		reader->shorts += transfer->actual_length < transfer->length;
		break;
	case LIBUSB_TRANSFER_CANCELLED:
		reader->cancelled++;
		reader->cancelled_bytes += (uint64_t)transfer->actual_length;
		return;
	case LIBUSB_TRANSFER_NO_DEVICE:
		reader->is_lost = true;
		return;
	default:
		reader->errors++;
		reader->is_cancelling = true;
		return;
	}
	if (reader->is_cancelling || reader->is_lost)
		return;
	if (libusb_submit_transfer(transfer) == 0)
		reader->in_flight++;
	else
		reader->is_lost = true;
}

static int request(struct reader *reader, uint8_t number)
{
	return libusb_control_transfer(reader->handle, 0x41, number, 0, INTERFACE, NULL, 0, 1000);
}

static bool submit_all(struct reader *reader)
{
	for (unsigned i = 0; i < reader->count; i++) {
		struct libusb_transfer *transfer = reader->transfers[i];
		libusb_fill_bulk_transfer(transfer, reader->handle, ENDPOINT, transfer->buffer,
			(int)reader->bytes, on_transfer, reader, 0);
		if (libusb_submit_transfer(transfer) != 0)
			return false;
		reader->in_flight++;
	}
	return true;
}

static void open_arrived(struct reader *reader)
{
	int rc = libusb_open(reader->arrived, &reader->handle);

	libusb_unref_device(reader->arrived);
	reader->arrived = NULL;
	if (rc != 0) {
		fprintf(stderr, "bare_reader: open: %s\n", libusb_error_name(rc));
		reader->handle = NULL;
		return;
	}
	reader->opens++;
	reader->is_lost = reader->is_cancelling = false;
	rc = libusb_claim_interface(reader->handle, INTERFACE);
	/* If the board was unplugged again, is_lost is set and the next one is awaited. */
	if (rc == 0)
		rc = request(reader, 2);
	if (rc < 0 || !submit_all(reader)) {
		reader->errors += rc < 0 && rc != LIBUSB_ERROR_NO_DEVICE;
		reader->is_lost = true;
	}
}

static void turn(struct reader *reader)
{
	/* Cancelling only after a completed transfer would miss the partly filled ones. */
	struct timeval wait = {0, reader->cancel_ms != 0 ? 1000 : 20000};

	libusb_handle_events_timeout_completed(reader->context, &wait, NULL);
}

static void cancel_all(struct reader *reader)
{
	reader->is_cancelling = true;
	for (unsigned i = 0; i < reader->count; i++)
		libusb_cancel_transfer(reader->transfers[i]);
	while (reader->in_flight > 0)
		turn(reader);
}

static void close_board(struct reader *reader)
{
	libusb_release_interface(reader->handle, INTERFACE);
	libusb_close(reader->handle);
	reader->handle = NULL;
}

static bool is_done(const struct reader *reader, uint64_t began_ns)
{
	return atomic_load(&is_stopped) ||
	       (reader->limit_bytes != 0 && reader->total >= reader->limit_bytes) ||
	       (reader->limit_ns != 0 && now_ns(CLOCK_MONOTONIC) - began_ns >= reader->limit_ns) ||
	       (reader->limit_unplugs != 0 && reader->unplugs >= reader->limit_unplugs);
}

static void read_board(struct reader *reader, uint64_t began_ns)
{
	uint64_t cancel_ns = now_ns(CLOCK_MONOTONIC) + reader->cancel_ms * UINT64_C(1000000);

	while (!is_done(reader, began_ns)) {
		turn(reader);
		if (reader->handle == NULL && reader->arrived != NULL)
			open_arrived(reader);
		if (reader->handle == NULL)
			continue;
		if (reader->is_lost) {
			cancel_all(reader);
			close_board(reader);
			reader->unplugs++;
		} else if (reader->is_cancelling ||
			   (reader->cancel_ms != 0 && now_ns(CLOCK_MONOTONIC) >= cancel_ns)) {
			cancel_all(reader);
			cancel_ns = now_ns(CLOCK_MONOTONIC) + reader->cancel_ms * UINT64_C(1000000);
			reader->is_cancelling = false;
			libusb_clear_halt(reader->handle, ENDPOINT);
			if (!reader->is_lost && !submit_all(reader))
				reader->is_lost = true;
		}
	}
}

static void finish(struct reader *reader)
{
	/* Ends after 300 ms without data, not counting time in which this process was held up. */
	unsigned limit = reader->cancel_ms != 0 ? 300 : 15;
	unsigned quiet = 0;

	if (reader->handle == NULL)
		return;
	if (!reader->is_lost && request(reader, 3) >= 0)
		while (!reader->is_lost && !reader->is_cancelling && quiet < limit) {
			uint64_t before = reader->total;
			turn(reader);
			quiet = reader->total != before ? 0 : quiet + 1;
		}
	cancel_all(reader);
	close_board(reader);
}

static bool set_up(struct reader *reader)
{
	for (unsigned i = 0; i < reader->count; i++) {
		reader->transfers[i] = libusb_alloc_transfer(0);
		if (reader->transfers[i] == NULL)
			return false;
		reader->transfers[i]->buffer = malloc(reader->bytes);
		if (reader->transfers[i]->buffer == NULL)
			return false;
	}
	return libusb_init(&reader->context) == 0 &&
	       libusb_hotplug_register_callback(reader->context,
		       LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED, LIBUSB_HOTPLUG_ENUMERATE,
		       (int)reader->vid, (int)reader->pid, LIBUSB_HOTPLUG_MATCH_ANY, on_arrival,
		       reader, NULL) == 0;
}

static void report(const struct reader *reader, uint64_t began_ns, double cpu_s)
{
	double seconds = (double)(now_ns(CLOCK_MONOTONIC) - began_ns) / 1e9;
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	printf("{\"bytes\": %llu, \"seconds\": %.3f, \"cpu_s\": %.3f, \"transfers\": %llu, "
	       "\"short\": %llu, \"cancelled\": %llu, \"cancelled_bytes\": %llu, \"errors\": %llu, "
	       "\"opens\": %llu, \"unplugs\": %llu, \"rss_kib\": %ld}\n",
		(unsigned long long)reader->total, seconds, cpu_s,
		(unsigned long long)reader->completed, (unsigned long long)reader->shorts,
		(unsigned long long)reader->cancelled, (unsigned long long)reader->cancelled_bytes,
		(unsigned long long)reader->errors, (unsigned long long)reader->opens,
		(unsigned long long)reader->unplugs, usage.ru_maxrss);
}

static bool parse(struct reader *reader, int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "d:n:b:c:t:p:x:o:")) != -1) {
		switch (option) {
		case 'd':
			if (sscanf(optarg, "%x:%x", &reader->vid, &reader->pid) != 2)
				return false;
			break;
		case 'n':
			reader->count = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'b':
			reader->bytes = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'c':
			reader->limit_bytes = strtoull(optarg, NULL, 0);
			break;
		case 't':
			reader->limit_ns = (uint64_t)(strtod(optarg, NULL) * 1e9);
			break;
		case 'p':
			reader->limit_unplugs = strtoull(optarg, NULL, 0);
			break;
		case 'x':
			reader->cancel_ms = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'o':
			reader->out = fopen(optarg, "wb");
			if (reader->out == NULL)
				return false;
			break;
		default:
			return false;
		}
	}
	return optind == argc && reader->count >= 1 && reader->count <= MAX_TRANSFERS &&
	       reader->bytes >= 1;
}

int main(int argc, char **argv)
{
	struct reader reader = {.vid = 0x1209, .pid = 0x0001, .count = 16, .bytes = 65536};

	if (!parse(&reader, argc, argv)) {
		fprintf(stderr, "usage: bare_reader [-d VID:PID] [-n TRANSFERS] [-b BYTES] "
				"[-c BYTES] [-t SECONDS] [-p UNPLUGS] [-x MS] [-o FILE]\n");
		return 2;
	}
	sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_signal}, NULL);
	sigaction(SIGINT, &(struct sigaction){.sa_handler = on_signal}, NULL);
	if (!set_up(&reader)) {
		fprintf(stderr, "bare_reader: can't initialize libusb\n");
		return 1;
	}
	uint64_t began_ns = now_ns(CLOCK_MONOTONIC);
	read_board(&reader, began_ns);
	double cpu_s = (double)now_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
	finish(&reader);
	report(&reader, began_ns, cpu_s);
	for (unsigned i = 0; i < reader.count; i++) {
		free(reader.transfers[i]->buffer);
		libusb_free_transfer(reader.transfers[i]);
	}
	if (reader.arrived != NULL)
		libusb_unref_device(reader.arrived);
	libusb_exit(reader.context);
	return reader.out != NULL && fclose(reader.out) != 0;
}
