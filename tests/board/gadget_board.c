/* The software board (tests/board/board.h) as a USB device: on any Linux computer with a USB device
 * controller (docs/test-board.md), or with dummy_hcd in a virtual machine. It serves a FunctionFS
 * directory, which tests/tools/gadget.sh prepares, and needs only libc and libdeflate.
 *
 * It owns the board and the files of its two endpoints. A thread answers the host's requests (ep0),
 * one sends the stream (ep1), one reads commands; main() waits for a signal. The board is used only
 * with the lock held, and `changed` is signalled after anything that may give it data.
 *
 * The board has power while a host has configured the device. An unplug, a bus reset and a
 * controller that is unbound look the same: ep0 reports them, maybe after a failed write to ep1.
 * `connection` counts the reports. At most one transfer, which the kernel held at that moment, has
 * left the board and not reached the host. */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/usb/functionfs.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/board/board.h"

#define TRANSFER_BYTES 65536u
#define SECOND_NS      UINT64_C(1000000000)
#define EXIT_USAGE     2

static struct {
	struct board *board;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int control, bulk; /* ep0, ep1 */
	unsigned connection;
	bool is_daemon;
	bool is_ending; /* the last frame is due */
	bool is_over;   /* nothing is left to send */
} g = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static const char help[] =
	"usage: gadget_board [--daemon] BOARD DIRECTORY\n"
	"BOARD is serial=TEXT,firmware=TEXT,rate=N,seed=N,agents=N,fifo=N,send=N or fewer;\n"
	"functionfs is mounted on DIRECTORY: gadget.sh does that. It answers commands on\n"
	"standard input; at its end (without --daemon) or on SIGTERM it sends the last frame.\n";

/* At full and high speed, a vendor-specific interface with a bulk IN endpoint; no strings. FTDI's
 * requests go to the device: ALL_CTRL_RECIP. */
#define LE16(n) ((n)&0xFF), ((n) >> 8 & 0xFF)
#define LE32(n) LE16((n)&0xFFFF), LE16((unsigned)(n) >> 16)
#define INTERFACE(packet_bytes)                                                                 \
	9, USB_DT_INTERFACE, 0, 0, 1, USB_CLASS_VENDOR_SPEC, 0xFF, 0xFF, 0, 7, USB_DT_ENDPOINT, \
		BOARD_ENDPOINT, USB_ENDPOINT_XFER_BULK, LE16(packet_bytes), 0
static const uint8_t descriptors[] = {LE32(FUNCTIONFS_DESCRIPTORS_MAGIC_V2), LE32(52),
	LE32(FUNCTIONFS_HAS_FS_DESC | FUNCTIONFS_HAS_HS_DESC | FUNCTIONFS_ALL_CTRL_RECIP), LE32(2),
	LE32(2), INTERFACE(64), INTERFACE(512)};
static const uint8_t strings[] = {LE32(FUNCTIONFS_STRINGS_MAGIC), LE32(16), LE32(0), LE32(0)};

/* ---- the board */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/* Waits for a change, with the lock held, until that time and at most a second. */
static void wait_until_ns(uint64_t due)
{
	uint64_t end = now_ns() + SECOND_NS < due ? now_ns() + SECOND_NS : due;
	struct timespec t = {(time_t)(end / SECOND_NS), (long)(end % SECOND_NS)};

	pthread_cond_clockwait(&g.changed, &g.lock, CLOCK_MONOTONIC, &t);
}

static void unlock_changed(void)
{
	pthread_cond_broadcast(&g.changed);
	pthread_mutex_unlock(&g.lock);
}

/* The kernel drops an event when a later one replaces it: after an unplug that nobody has read, the
 * host's return is the only one. */
static void set_plugged(bool is_plugged)
{
	pthread_mutex_lock(&g.lock);
	g.connection++;
	board_unplug(g.board);
	if (is_plugged)
		board_plug(g.board, now_ns());
	unlock_changed();
}

/* ---- ep0: requests */

static void answer_request(const struct usb_ctrlrequest *request)
{
	static uint8_t data[UINT16_MAX]; /* of any wLength */

	pthread_mutex_lock(&g.lock);
	int n = board_control(g.board, (const uint8_t *)request, data, now_ns());
	unlock_changed();
	/* The wrong direction is a stall. If it fails, the host has given up the request. */
	if (((request->bRequestType & USB_DIR_IN) != 0) == (n >= 0))
		(void)!write(g.control, data, n >= 0 ? (size_t)n : 0);
	else
		(void)!read(g.control, data, 0);
}

static void *serve_requests(void *unused)
{
	struct usb_functionfs_event event;
	ssize_t n;

	/* EIDRM: the host has given up a request. EINTR: this computer has slept. */
	while ((n = read(g.control, &event, sizeof(event))) > 0 || errno == EIDRM ||
		errno == EINTR) {
		if (n > 0 && event.type == FUNCTIONFS_SETUP)
			answer_request(&event.u.setup);
		else if (n > 0 && event.type >= FUNCTIONFS_UNBIND &&
			 event.type <= FUNCTIONFS_DISABLE)
			set_plugged(event.type == FUNCTIONFS_ENABLE);
	}
	perror("gadget_board: ep0");
	exit(EXIT_FAILURE);
	return unused;
}

/* ---- ep1: the stream */

/* Stalls by reading, the wrong direction. EBADMSG: done; EAGAIN: a packet has not left yet. The
 * kernel answers CLEAR_FEATURE itself, and holds what is written until then: the board can
 * continue.
 */
static void halt(unsigned connection)
{
	static const uint8_t clear_feature[8] = {0x02, 1, 0, 0, BOARD_ENDPOINT, 0, 0, 0};
	uint8_t byte;

	while (connection == g.connection && read(g.bulk, &byte, 1) < 0 && errno == EAGAIN)
		wait_until_ns(now_ns() + SECOND_NS / 1000);
	if (connection == g.connection && errno != EBADMSG)
		fprintf(stderr, "gadget_board: ep1: %s; no stall\n", strerror(errno));
	board_control(g.board, clear_feature, NULL, now_ns());
}

/* Returns when the host has taken these bytes or is gone. What the kernel has no memory for has not
 * left and is sent again: at worst, the FIFO overflows. After an unknown error, part of it may have
 * left, and the host finds a gap; to send that part twice would be worse. */
static void send_bytes(const uint8_t *data, size_t n, unsigned connection)
{
	static int last;

	for (int error = ENOMEM; error == ENOMEM && connection == g.connection;) {
		pthread_mutex_unlock(&g.lock);
		error = write(g.bulk, data, n) < 0 ? errno : 0;
		pthread_mutex_lock(&g.lock);
		if (error == 0 || connection != g.connection)
			return;
		if (error == EAGAIN || error == ESHUTDOWN || error == ENODEV)
			board_unplug(g.board); /* ep0 reports it later */
		else if (error != last)
			fprintf(stderr, "gadget_board: ep1: %s; %s\n", strerror(error),
				error == ENOMEM ? "trying again" : "data lost");
		last = error;
		wait_until_ns(now_ns() + SECOND_NS / 100);
	}
}

static void *serve_stream(void *unused)
{
	static uint8_t data[TRANSFER_BYTES];
	size_t n;

	pthread_mutex_lock(&g.lock);
	for (;;) {
		uint64_t now = now_ns();
		int status = board_bulk_in(g.board, data, TRANSFER_BYTES, &n, now);
		unsigned connection = g.connection;
		if (n != 0)
			send_bytes(data, n, connection);
		/* A transfer ends with a packet that is not full: also at full speed. */
		if (n != TRANSFER_BYTES && n != 0 && n % 64 == 0)
			send_bytes(data, 0, connection);
		if (status == -EPIPE)
			halt(connection);
		if (status != BOARD_NAK && status != -ENODEV)
			continue;
		g.is_over = g.is_ending;
		pthread_cond_broadcast(&g.changed);
		wait_until_ns(status == BOARD_NAK ? board_due_ns(g.board, now) : UINT64_MAX);
	}
	return unused;
}

/* ---- commands */

/* Faults that only a bus can have, and what the kernel has been told at the start. */
#define IMPOSSIBLE "@(overflow|protocol-error|timeout|lie|serial|self-powered|requests hang)*"

static void *read_commands(void *unused)
{
	char line[4096];
	char answer[BOARD_ANSWER];

	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		pthread_mutex_lock(&g.lock);
		board_command(g.board, fnmatch(IMPOSSIBLE, line, FNM_EXTMATCH) != 0 ? line : "",
			answer, now_ns());
		unlock_changed();
		puts(answer);
	}
	if (!g.is_daemon)
		kill(getpid(), SIGTERM);
	return unused;
}

/* ---- the program */

static void open_endpoints(const char *directory)
{
	const char *name = "ep0";

	g.control = chdir(directory) == 0 ? open(name, O_RDWR | O_CLOEXEC) : -1;
	if (g.control >= 0 && write(g.control, descriptors, sizeof(descriptors)) > 0 &&
		write(g.control, strings, sizeof(strings)) > 0) {
		name = "ep1";
		g.bulk = open(name, O_RDWR | O_CLOEXEC | O_NONBLOCK); /* no host: EAGAIN */
		if (g.bulk >= 0)
			return;
	}
	fprintf(stderr, "gadget_board: %s/%s: %s; mount functionfs there, or use gadget.sh start\n",
		directory, name, strerror(errno));
	exit(EXIT_USAGE);
}

int main(int argc, char **argv)
{
	static void *(*const serve[])(void *) = {serve_requests, serve_stream, read_commands};
	char answer[BOARD_ANSWER];
	pthread_t thread;
	sigset_t ends;
	int number;

	g.is_daemon = argc > 1 && strcmp(argv[1], "--daemon") == 0;
	argv += g.is_daemon;
	if (argc - g.is_daemon != 3) {
		fputs(help, stderr);
		return EXIT_USAGE;
	}
	g.board = board_new_of(strdupa(argv[1]));
	if (g.board == NULL) {
		fprintf(stderr, "gadget_board: %s: no such board; see --help\n", argv[1]);
		return EXIT_USAGE;
	}
	board_unplug(g.board);
	open_endpoints(argv[2]);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < 3; i++)
		if (pthread_create(&thread, NULL, serve[i], NULL) != 0)
			return EXIT_FAILURE;
	sigwait(&ends, &number);

	uint64_t due = now_ns() + 2 * SECOND_NS; /* a host that sleeps takes no last frame */
	pthread_mutex_lock(&g.lock);
	g.is_ending = true;
	board_command(g.board, "last", answer, now_ns());
	pthread_cond_broadcast(&g.changed);
	while (!g.is_over && now_ns() < due)
		wait_until_ns(due);
	return EXIT_SUCCESS;
}
