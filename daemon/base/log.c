/* Standard error belongs to others: a terminal in which someone has pressed Ctrl-S, a pipe or a
 * journal that is not read. So only the log's own thread writes to it, and may wait there. A line
 * is copied into a queue of fixed size, which is locked only for that.
 *
 * When the queue is full, lines are dropped and counted until the thread has written all of it.
 * Then it writes how many are missing, which is where they are missing. The descriptor's flags are
 * left alone: O_NONBLOCK would apply to every program that shares the terminal or pipe.
 *
 * A line with fields for systemd's journal is queued as an entry of its native protocol
 * (systemd.io/JOURNAL_NATIVE_PROTOCOL), and written to standard error if the journal does not
 * accept it. Not with sd_journal_sendv(3): without a journal it returns success, and the line is
 * lost. A line without fields is written to standard error, also if that is the journal: there, the
 * journal knows the line's unit even if the process has ended before it is read.
 *
 * Without the thread (before bc_log_start(), or if that fails) lines are written directly. */
#include "daemon/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/write_out.h"
#include "formats/base/clock.h"
#include "formats/base/text.h"
#include "formats/base/utf8.h"

#define QUEUE_BYTES (256u * 1024)

/* Maximum bytes of a line before its end, "...\n" and a zero. */
#define LINE_BYTES (BC_LOG_LINE_MAX - sizeof("...\n"))

/* Maximum bytes of a line, or of its entry for the journal. */
#define ENTRY_BYTES (BC_LOG_LINE_MAX + 256u)

#define PRIORITY "PRIORITY="
#define MESSAGE  "\nMESSAGE="

/* At the end, the time for lines that are not written yet. */
#define FLUSH_S 1

static const char *const level_names[] = {
	[BC_LOG_ERROR] = "error",
	[BC_LOG_WARNING] = "warning",
	[BC_LOG_NOTICE] = "notice",
	[BC_LOG_INFO] = "info",
	[BC_LOG_DEBUG] = "debug",
};

/* MESSAGE_ID of each kind, as in docs/messages.md and systemd/buscapd.catalog. It never changes. */
static const char *const ids[] = {
	[BC_LOG_STARTED >> BC_LOG_KIND_SHIFT] = "8028b1ed7d7d42ff9ae74cdb61f5e1aa",
	[BC_LOG_ENDED >> BC_LOG_KIND_SHIFT] = "fd153248702049d2809fdaa4deed9625",
	[BC_LOG_LOST >> BC_LOG_KIND_SHIFT] = "3ade01f57c58492db3661ba1412c2b3c",
	[BC_LOG_DISK_FAILED >> BC_LOG_KIND_SHIFT] = "2d6d5ca869e448378ad5e4104c06934b",
	[BC_LOG_DISK_BACK >> BC_LOG_KIND_SHIFT] = "b6d5134b1e134a60a4d751d01ac9f76c",
	[BC_LOG_DISK_LOW >> BC_LOG_KIND_SHIFT] = "337cddf85b73430da69212dd2fd0849d",
	[BC_LOG_BOARD_GONE >> BC_LOG_KIND_SHIFT] = "254e27a29ff64cdaadbc9764bea1d7fa",
	[BC_LOG_BOARD_BACK >> BC_LOG_KIND_SHIFT] = "6dace0eb007a40d6a6ed8985e984383a",
	[BC_LOG_DAMAGED >> BC_LOG_KIND_SHIFT] = "486c505539ac4c1288279f12723dced4",
};

static atomic_int threshold = BC_LOG_INFO;
static atomic_uint_least64_t dropped;
static atomic_bool has_started;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool has_thread;
	bool is_full; /* lines are dropped until the queue is empty */
	bool is_ending;
	uint64_t unreported; /* dropped lines */
	int error;           /* errno of the last one that could not be written, or 0 */
	size_t first;        /* of the ring */
	size_t used;         /* whole lines, or entries for the journal, each with a zero */
	char ring[QUEUE_BYTES];
	char recording[BC_LOG_RECORDING_MAX]; /* or empty */
	char activity[400];                   /* or empty */
	const struct bc_log_footer *footer;   /* or NULL */
	bool is_footer_due;                   /* to be drawn, after the lines */
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER};

void bc_log_set_level(enum bc_log_level level)
{
	atomic_store(&threshold, (int)level);
}

bool bc_log_is_enabled(enum bc_log_level level)
{
	return (int)bc_log_priority(level) <= atomic_load(&threshold);
}

/* systemd sets JOURNAL_STREAM to the device and inode of the stream; programs started in a session
 * inherit the variable, but have another standard error. */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char own[64];
	struct stat st;

	if (stream == NULL || fstat(STDERR_FILENO, &st) != 0)
		return false;
	snprintf(own, sizeof(own), "%llu:%llu", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
	return strcmp(own, stream) == 0;
}

/* Writes the entry of a line "<6>TEXT\n" with these fields. Returns its length, or 0 if it has none
 * (`id` is NULL, `recording` is empty), or the line is not one for the journal. */
static size_t format_entry(char *entry, size_t size, const char *id, const char *recording,
	const char *activity, const char *line)
{
	bool has_recording = recording[0] != '\0';

	if (line[0] != '<' || (id == NULL && !has_recording))
		return 0;
	return (size_t)snprintf(entry, size,
		PRIORITY "%c\nSYSLOG_IDENTIFIER=buscapd%s%s%s%s%s%s" MESSAGE "%s", line[1],
		id != NULL ? "\nMESSAGE_ID=" : "", id != NULL ? id : "",
		has_recording ? "\nRECORDING=" : "", recording,
		activity[0] != '\0' ? "\nACTIVITY=" : "", activity, line + strlen("<6>"));
}

/* Returns the line of an entry, at its end. Overwrites the entry. */
static char *line_of(char *entry)
{
	char *line = strstr(entry, MESSAGE) + strlen(MESSAGE) - strlen("<6>");

	line[0] = '<';
	line[1] = entry[strlen(PRIORITY)];
	line[2] = '>';
	return line;
}

/* May wait for the journal. Returns 0 or a negative errno: then the journal does not have it. */
static int send_entry(const char *entry, size_t bytes)
{
	static const struct sockaddr_un journal = {
		.sun_family = AF_UNIX, .sun_path = "/run/systemd/journal/socket"};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	ssize_t sent = sendto(
		fd, entry, bytes, MSG_NOSIGNAL, (const struct sockaddr *)&journal, sizeof(journal));
	int rc = sent < 0 ? -errno : 0;
	close(fd);
	return rc;
}

/* The journal has its own time stamps. An error before the start is that of a command. */
static int format_prefix(char *out, size_t size, enum bc_log_level level)
{
	char time[BC_RFC3339_BYTES];
	bool is_problem = level < BC_LOG_NOTICE;

	if (is_journal())
		return snprintf(out, size, "<%d>", (int)level);
	if (!atomic_load(&has_started))
		return snprintf(
			out, size, "buscapd: %s", level == BC_LOG_WARNING ? "warning: " : "");
	bc_rfc3339_write(time, bc_wall_ns());
	time[strlen("2026-01-31T12:00:00.000")] = '\0';
	return snprintf(out, size, "%sZ buscapd: %s%s", time, is_problem ? level_names[level] : "",
		is_problem ? ": " : "");
}

/* Copies the next character of `text`, or escapes its first byte if it is invalid or harmful.
 * Returns the number of bytes consumed. */
static size_t escape_next(char piece[8], const char *text, size_t left)
{
	const uint8_t *at = (const uint8_t *)text;
	uint32_t bytes = bc_utf8_bytes(at, left);

	if (bytes != 0 && !bc_utf8_is_unsafe(bc_utf8_code(at, bytes))) {
		memcpy(piece, text, bytes);
		piece[bytes] = '\0';
		return bytes;
	}
	snprintf(piece, 8, "\\x%02x", at[0]);
	return 1;
}

size_t bc_log_write(char line[BC_LOG_LINE_MAX], size_t used, const char *text)
{
	size_t left = strlen(text);
	bool is_cut = false;
	char piece[8];

	while (left != 0 && !is_cut) {
		size_t consumed = escape_next(piece, text, left);
		size_t bytes = strlen(piece);
		is_cut = used + bytes > LINE_BYTES;
		memcpy(line + used, is_cut ? "..." : piece, is_cut ? 3 : bytes);
		used += is_cut ? 3 : bytes;
		text += consumed;
		left -= consumed;
	}
	line[used++] = '\n';
	line[used] = '\0';
	return used;
}

static void count_dropped(void)
{
	queue.unreported++;
	atomic_fetch_add(&dropped, 1);
}

static void append_line(const char *line, size_t bytes)
{
	size_t end = (queue.first + queue.used) % QUEUE_BYTES;
	size_t to_edge = bytes < QUEUE_BYTES - end ? bytes : QUEUE_BYTES - end;

	memcpy(queue.ring + end, line, to_edge);
	memcpy(queue.ring, line + to_edge, bytes - to_edge);
	queue.used += bytes;
}

/* Returns the length of the line or entry. */
static size_t take_line(char line[ENTRY_BYTES])
{
	size_t bytes = 0;

	do {
		line[bytes] = queue.ring[queue.first];
		queue.first = (queue.first + 1) % QUEUE_BYTES;
	} while (line[bytes++] != '\0');
	queue.used -= bytes;
	return bytes - 1;
}

static size_t format_dropped(char line[BC_LOG_LINE_MAX], uint64_t lines)
{
	char text[256];
	int n = format_prefix(line, BC_LOG_LINE_MAX, BC_LOG_WARNING);

	snprintf(text, sizeof(text), "standard error: %" PRIu64 " log line%s dropped: %s", lines,
		lines == 1 ? "" : "s",
		queue.error != 0 ? strerror(queue.error) : "nothing read it");
	return bc_log_write(line, (size_t)n, text);
}

/* Returns 0 or a negative errno. */
static int write_line(char *line, size_t bytes)
{
	if (strncmp(line, PRIORITY, strlen(PRIORITY)) == 0) {
		if (send_entry(line, bytes) == 0)
			return 0;
		line = line_of(line);
		bytes = strlen(line);
	}
	return bc_write_out(STDERR_FILENO, line, bytes);
}

/* Writes the next line, or how many are missing before it. Returns false if there is nothing. */
static bool write_next(void)
{
	char line[ENTRY_BYTES] = "";

	if (queue.used == 0 && !queue.is_full)
		return false;
	uint64_t missing = queue.is_full && queue.used != 0 ? 0 : queue.unreported;
	queue.is_full = queue.is_full && queue.used != 0;
	size_t bytes = missing != 0 ? format_dropped(line, missing) : take_line(line);
	const struct bc_log_footer *footer = queue.footer;
	queue.is_footer_due = footer != NULL;
	pthread_mutex_unlock(&queue.lock);
	if (footer != NULL)
		footer->erase();
	int rc = write_line(line, bytes);
	pthread_mutex_lock(&queue.lock);
	if (rc == 0) {
		queue.unreported -= missing;
		queue.error = queue.unreported == 0 ? 0 : queue.error;
		return true;
	}
	/* The line is lost. So is the one after a report that can't be written. */
	queue.error = -rc;
	if (missing == 0 || queue.used != 0)
		count_dropped();
	if (missing != 0 && queue.used != 0)
		take_line(line);
	return true;
}

static void write_footer(void (*write)(void))
{
	queue.is_footer_due = false;
	pthread_mutex_unlock(&queue.lock);
	write();
	pthread_mutex_lock(&queue.lock);
}

static void *write_lines(void *nothing)
{
	pthread_mutex_lock(&queue.lock);
	for (;;) {
		if (write_next())
			continue;
		if (queue.is_ending)
			break;
		if (queue.is_footer_due)
			write_footer(queue.footer->draw);
		else
			pthread_cond_wait(&queue.changed, &queue.lock);
	}
	if (queue.footer != NULL)
		write_footer(queue.footer->erase);
	queue.has_thread = false;
	pthread_cond_broadcast(&queue.changed);
	pthread_mutex_unlock(&queue.lock);
	return nothing;
}

void bc_log_start(void)
{
	pthread_condattr_t attr;
	sigset_t all;
	sigset_t before;

	atomic_store(&has_started, true);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&queue.changed, &attr);
	pthread_condattr_destroy(&attr);
	/* Also SIGTTOU, which would stop the whole program when it writes in the background. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&queue.lock);
	queue.is_ending = false;
	queue.has_thread = pthread_create(&queue.thread, NULL, write_lines, NULL) == 0;
	pthread_mutex_unlock(&queue.lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void bc_log_stop(void)
{
	struct timespec end;
	int rc = 0;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += FLUSH_S;
	pthread_mutex_lock(&queue.lock);
	bool had_thread = queue.has_thread;
	queue.is_ending = true;
	if (had_thread)
		pthread_cond_broadcast(&queue.changed);
	while (queue.has_thread && rc == 0)
		rc = pthread_cond_timedwait(&queue.changed, &queue.lock, &end);
	bool is_done = !queue.has_thread;
	pthread_mutex_unlock(&queue.lock);
	if (had_thread && is_done)
		pthread_join(queue.thread, NULL);
	else if (had_thread)
		pthread_detach(queue.thread);
}

void bc_log_set_recording(const char *id)
{
	pthread_mutex_lock(&queue.lock);
	snprintf(queue.recording, sizeof(queue.recording), "%s", id);
	pthread_mutex_unlock(&queue.lock);
}

void bc_log_set_activity(const char *text)
{
	pthread_mutex_lock(&queue.lock);
	snprintf(queue.activity, sizeof(queue.activity), "%s", text);
	pthread_mutex_unlock(&queue.lock);
}

void bc_log_draw(const struct bc_log_footer *footer)
{
	pthread_mutex_lock(&queue.lock);
	queue.footer = footer;
	queue.is_footer_due = true;
	if (queue.has_thread)
		pthread_cond_broadcast(&queue.changed);
	pthread_mutex_unlock(&queue.lock);
}

uint64_t bc_log_dropped(void)
{
	return atomic_load(&dropped);
}

/* Queues a line, or its entry for the journal. Returns false if the thread is not running. */
static bool queue_line(enum bc_log_level level, const char *line, size_t bytes)
{
	char entry[ENTRY_BYTES];

	pthread_mutex_lock(&queue.lock);
	bool has_thread = queue.has_thread;
	unsigned kind = level >> BC_LOG_KIND_SHIFT;
	bool is_lost = kind == BC_LOG_LOST >> BC_LOG_KIND_SHIFT;
	size_t entry_bytes = format_entry(entry, sizeof(entry), ids[kind], queue.recording,
		is_lost ? queue.activity : "", line);
	if (entry_bytes != 0) {
		line = entry;
		bytes = entry_bytes;
	}
	if (has_thread && (queue.is_full || bytes + 1 > QUEUE_BYTES - queue.used)) {
		queue.is_full = true;
		count_dropped();
	} else if (has_thread) {
		append_line(line, bytes + 1);
		pthread_cond_broadcast(&queue.changed);
	}
	pthread_mutex_unlock(&queue.lock);
	return has_thread;
}

static size_t escaped_bytes(const char *text)
{
	size_t left = strlen(text);
	size_t escaped = 0;
	char piece[8];

	while (left != 0) {
		size_t consumed = escape_next(piece, text, left);
		escaped += strlen(piece);
		text += consumed;
		left -= consumed;
	}
	return escaped;
}

/* Shortens text until it has at most `room` bytes when it is escaped. */
static void fit(char *text, size_t room)
{
	size_t max = room;

	bc_shorten(text, max);
	for (size_t bytes = escaped_bytes(text); bytes > room; bytes = escaped_bytes(text)) {
		size_t excess = (bytes - room + 3) / 4; /* a byte becomes up to four */
		max = strlen(text) - excess;
		bc_shorten(text, max);
	}
}

void bc_log(enum bc_log_level level, const char *format, ...)
{
	char text[BC_MESSAGE_MAX];
	char line[BC_LOG_LINE_MAX];
	va_list args;

	if (!bc_log_is_enabled(level))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	int n = format_prefix(line, sizeof(line), bc_log_priority(level));
	fit(text, LINE_BYTES - (size_t)n);
	size_t bytes = bc_log_write(line, (size_t)n, text);
	if (!queue_line(level, line, bytes) && bc_write_out(STDERR_FILENO, line, bytes) != 0)
		atomic_fetch_add(&dropped, 1);
}
