#include "daemon/base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/clock.h"
#include "formats/base/rfc3339.h"
#include "formats/base/utf8.h"

static const char *const level_names[] = {
	[BC_LOG_ERROR] = "error",
	[BC_LOG_WARNING] = "warning",
	[BC_LOG_NOTICE] = "notice",
	[BC_LOG_INFO] = "info",
	[BC_LOG_DEBUG] = "debug",
};

static atomic_int threshold = BC_LOG_INFO;

void bc_log_set_level(enum bc_log_level level)
{
	atomic_store(&threshold, (int)level);
}

bool bc_log_is_enabled(enum bc_log_level level)
{
	return (int)level <= atomic_load(&threshold);
}

/* Whether standard error is the journal. systemd sets JOURNAL_STREAM to the device and inode of the
 * stream; programs started in a session inherit the variable, but have another standard error. */
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

/* The journal has its own time stamps. */
static int format_prefix(char *out, size_t size, enum bc_log_level level)
{
	char time[BC_RFC3339_BYTES];
	bool is_problem = level < BC_LOG_NOTICE;

	if (is_journal())
		return snprintf(out, size, "<%d>", (int)level);
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
	const size_t limit = BC_LOG_LINE_MAX - sizeof("...\n");
	size_t left = strlen(text);
	bool is_cut = false;
	char piece[8];

	while (left != 0 && !is_cut) {
		size_t consumed = escape_next(piece, text, left);
		size_t bytes = strlen(piece);
		is_cut = used + bytes > limit;
		memcpy(line + used, is_cut ? "..." : piece, is_cut ? 3 : bytes);
		used += is_cut ? 3 : bytes;
		text += consumed;
		left -= consumed;
	}
	line[used++] = '\n';
	line[used] = '\0';
	return used;
}

void bc_log(enum bc_log_level level, const char *format, ...)
{
	char text[BC_LOG_LINE_MAX];
	char line[BC_LOG_LINE_MAX];
	va_list args;

	if (!bc_log_is_enabled(level))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	int n = format_prefix(line, sizeof(line), level);
	if (write(STDERR_FILENO, line, bc_log_write(line, (size_t)n, text)) < 0)
		return; /* there is no other place to report it */
}
