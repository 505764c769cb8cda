/* Talks to the service manager in its datagram protocol, without sd_notify(3), which would wait for
 * a manager that does not read.
 *
 * Invariant: no call blocks. A state (READY, RELOADING, STOPPING) that could not be sent is kept in
 * `pending`, where a later one replaces it, and is sent with the next ping; others are dropped. */
#include "daemon/main/service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/usb/board.h"
#include "daemon/base/log.h"
#include "daemon/main/systemd.h"
#include "formats/base/clock.h"
#include "formats/base/text.h"
#include "formats/base/utf8.h"

/* Longer than any step of a stop in daemon/main/daemon.c: giving up the disk, a call that hangs,
 * the commands for sealed segments. */
#define EXTENSION_US 60000000

/* Pings per watchdog timeout; systemd recommends two. */
#define PINGS 4

/* Sending */

/* Sends without blocking. sd_notify() would block, and with it the recording, if the manager does
 * not read. Returns 0 or a negative errno. */
static int send_text(struct bc_service *s, const char *text)
{
	ssize_t sent = sendto(s->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
		(const struct sockaddr *)&s->address, s->address_bytes);
	int rc = sent < 0 ? -errno : 0;

	if (rc != 0 && rc != -EAGAIN && !s->has_complained) {
		s->has_complained = true;
		bc_log(BC_LOG_WARNING, "can't notify the service manager: %s", strerror(-rc));
	}
	return rc;
}

static void send_pending(struct bc_service *s)
{
	if (s->pending[0] != '\0' && send_text(s, s->pending) != -EAGAIN)
		s->pending[0] = '\0';
}

/* Replaces a state that is still pending. Nothing follows a stop. */
static void send_state(struct bc_service *s, const char *state)
{
	if (s->fd < 0 || s->is_stopping)
		return;
	snprintf(s->pending, sizeof(s->pending), "%s", state);
	send_pending(s);
}

/* Start and end */

/* If this fails, systemd ends the daemon after the watchdog's timeout. */
static void open_watchdog(struct bc_service *s)
{
	uint64_t us;
	char err[256];

	if (getenv("WATCHDOG_USEC") == NULL)
		return;
	const struct bc_systemd *systemd = bc_systemd_load(err, sizeof(err));
	if (systemd == NULL)
		bc_log(BC_LOG_WARNING, "can't feed the watchdog: %s", err);
	else if (systemd->sd_watchdog_enabled(0, &us) > 0)
		s->watchdog_ns = us * 1000;
}

void bc_service_open(struct bc_service *s)
{
	const char *path = getenv("NOTIFY_SOCKET");

	memset(s, 0, sizeof(*s));
	s->fd = -1;
	if (path == NULL || path[0] == '\0')
		return;
	size_t n = strlen(path);
	if ((path[0] != '/' && path[0] != '@') || n >= sizeof(s->address.sun_path)) {
		bc_log(BC_LOG_WARNING, "NOTIFY_SOCKET=%s: not a valid socket address", path);
		return;
	}
	s->address.sun_family = AF_UNIX;
	memcpy(s->address.sun_path, path, n);
	if (path[0] == '@')
		s->address.sun_path[0] = '\0';
	/* An abstract name has no terminating zero. */
	s->address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n +
				       (path[0] == '/' ? 1 : 0));
	s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s->fd < 0)
		bc_log(BC_LOG_WARNING, "can't notify the service manager: %s", strerror(errno));
	else
		open_watchdog(s);
}

void bc_service_close(struct bc_service *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

/* States */

void bc_service_ready(struct bc_service *s)
{
	send_state(s, "READY=1");
}

void bc_service_reload(struct bc_service *s)
{
	char state[64];

	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, bc_now_ns() / 1000);
	send_state(s, state);
}

void bc_service_stop(struct bc_service *s)
{
	send_state(s, "STOPPING=1");
	s->is_stopping = true;
	bc_service_extend(s, NULL);
}

/* Status */

/* Replaces control characters and invalid UTF-8 by '?'. */
static void sanitize(char *text)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < n;) {
		uint32_t bytes = bc_utf8_bytes((const uint8_t *)text + i, n - i);
		if (bytes == 0 || (unsigned char)text[i] < ' ' || text[i] == '\x7f') {
			text[i++] = '?';
			continue;
		}
		i += bytes;
	}
}

/* Writes "12.3 GB", "40 B", "5.0 M samples/s" or "40 samples/s": with a blank before a word. */
static void write_amount(char *out, size_t size, double amount, const char *unit)
{
	static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
	size_t i = 0;

	while (amount >= 999.5 && i + 1 < sizeof(prefixes) / sizeof(prefixes[0])) {
		amount /= 1000;
		i++;
	}
	snprintf(out, size, "%.*f%s%s%s", i != 0 && amount < 99.95 ? 1 : 0, amount,
		i != 0 || unit[0] != ' ' ? " " : "", prefixes[i], unit);
}

static void write_recording(char *out, size_t size, const struct bc_status *s, const char *doing,
	bool with_rate, bool has_id)
{
	const struct bc_buffer_state *buffer = &s->buffer;
	const struct bc_status_progress progress = bc_status_progress(s);
	struct bc_loss sum = bc_losses_sum(&s->counts->losses);
	char rate[32] = "";
	char records[32];
	char bytes[32];
	char lost[BC_LOSS_TEXT_MAX];
	char used[32] = "";

	if (s->recording == NULL) {
		snprintf(out, size, "%s", doing);
		return;
	}
	if (with_rate)
		write_amount(rate, sizeof(rate), s->rates.samples_per_s, " samples/s, ");
	write_amount(records, sizeof(records), (double)progress.records, " records");
	write_amount(bytes, sizeof(bytes), (double)progress.bytes, "B");
	sum.away_ns = 0;
	if (with_rate && buffer->chunks != 0)
		snprintf(used, sizeof(used), ", buffer %u %%",
			100 * (buffer->chunks - buffer->free) / buffer->chunks);
	snprintf(out, size, "%s%s%s: %s%s, %s, %s%s", doing, has_id ? " " : "",
		has_id ? s->recording->header.recording : "", rate, records, bytes,
		bc_loss_text(lost, sum), used);
}

static void write_stopping(char *out, size_t size, const struct bc_status *s)
{
	if (s->counts->in_flight != 0)
		snprintf(out, size, "stopping: %s sample%s left to write",
			BC_GROUPED(s->counts->in_flight), bc_plural(s->counts->in_flight));
	else if (s->commands_waiting != 0)
		snprintf(out, size, "stopping: %s command%s for sealed segments left",
			BC_GROUPED(s->commands_waiting), bc_plural(s->commands_waiting));
	else
		snprintf(out, size, "stopping");
}

void bc_service_text(
	char *out, size_t size, const struct bc_status *s, bool is_stopping, bool has_id)
{
	bool has_no_board = s->board != NULL && s->board->state != BC_BOARD_STREAMING;
	char words[BC_SERVICE_TEXT_MAX];

	if (is_stopping)
		write_stopping(words, sizeof(words), s);
	else if (strcmp(s->state, "recording") == 0 || strcmp(s->state, "replaying") == 0)
		write_recording(words, sizeof(words), s, s->state, true, has_id);
	else if (strcmp(s->state, "waiting") == 0 && s->counts->received == 0)
		snprintf(words, sizeof(words), "waiting for a board");
	else if (strcmp(s->state, "waiting") == 0)
		write_recording(
			words, sizeof(words), s, "waiting for a board to continue", false, has_id);
	else if (strcmp(s->state, "draining") == 0)
		write_recording(words, sizeof(words), s, "sealing", false, has_id);
	else if (strcmp(s->state, "failed") == 0)
		snprintf(words, sizeof(words), "source failed; see the log");
	else
		snprintf(words, sizeof(words), "%s%s", s->state,
			has_no_board ? ", waiting for a board" : "");
	bc_message(out, size, "%s%s%s", words,
		s->stats->is_stuck ? "; disk not accepting data: " : "",
		s->stats->is_stuck ? s->stats->error : "");
}

/* Sends `prefix`, and the status on a second line if it has changed. */
static void send_status(struct bc_service *s, const char *prefix, const char *words)
{
	char text[BC_SERVICE_TEXT_MAX];
	char notice[BC_SERVICE_TEXT_MAX + 128];

	bc_message(text, sizeof(text), "%s", words);
	sanitize(text);
	bool is_new = text[0] != '\0' && strcmp(text, s->text) != 0;
	if (prefix[0] == '\0' && !is_new)
		return;
	snprintf(notice, sizeof(notice), "%s%s%s%s", prefix,
		prefix[0] != '\0' && is_new ? "\n" : "", is_new ? "STATUS=" : "",
		is_new ? text : "");
	if (send_text(s, notice) == 0 && is_new)
		memcpy(s->text, text, sizeof(text));
}

void bc_service_notify(struct bc_service *s, const struct bc_status *status)
{
	char words[BC_SERVICE_TEXT_MAX];

	if (s->fd < 0)
		return;
	bc_service_text(words, sizeof(words), status, s->is_stopping, true);
	send_status(s, "", words);
}

void bc_service_extend(struct bc_service *s, const char *text)
{
	char extension[64];
	uint64_t now = bc_now_ns();

	if (s->fd < 0 || now < s->extend_at_ns)
		return;
	s->extend_at_ns = now + BC_NS_PER_S;
	snprintf(extension, sizeof(extension), "EXTEND_TIMEOUT_USEC=%d", EXTENSION_US);
	send_status(s, extension, text != NULL ? text : "");
}

void bc_service_fail(struct bc_service *s, int error, const char *err)
{
	char number[32];

	if (s->fd < 0)
		return;
	snprintf(number, sizeof(number), "ERRNO=%d", -error);
	send_status(s, number, err);
}

/* The watchdog */

void bc_service_watch(struct bc_service *s, bool is_stuck)
{
	if (s->fd < 0)
		return;
	send_pending(s);
	if (s->watchdog_ns == 0 || is_stuck)
		return;
	uint64_t now = bc_now_ns();
	if (now >= s->ping_at_ns && send_text(s, "WATCHDOG=1") != -EAGAIN)
		s->ping_at_ns = now + s->watchdog_ns / PINGS;
}
