#include "daemon/base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/utf8.h"

static const char *const names[] = {
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

int bc_log_level_by_name(const char *name)
{
	for (int level = BC_LOG_ERROR; level <= BC_LOG_DEBUG; level++)
		if (strcmp(names[level], name) == 0)
			return level;
	return -1;
}

/* systemd sets JOURNAL_STREAM to the device and inode of the stream to the journal. Programs
 * started from a session inherit it, with another standard error. */
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

static int put_prefix(char *out, size_t room, enum bc_log_level level)
{
	if (is_journal())
		return snprintf(out, room, "<%d>", (int)level);
	if (level >= BC_LOG_NOTICE)
		return snprintf(out, room, "buscapd: ");
	return snprintf(out, room, "buscapd: %s: ", names[level]);
}

/* The next character of `text`, or the number of a byte that is none or is harmful. Returns how
 * many bytes of the text it is for. */
static size_t next_piece(char piece[8], const char *text, size_t left)
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
	const size_t room = BC_LOG_LINE_MAX - sizeof("...\n");
	size_t left = strlen(text);
	bool is_cut = false;
	char piece[8];

	while (left != 0 && !is_cut) {
		size_t took = next_piece(piece, text, left);
		size_t bytes = strlen(piece);
		is_cut = used + bytes > room;
		memcpy(line + used, is_cut ? "..." : piece, is_cut ? 3 : bytes);
		used += is_cut ? 3 : bytes;
		text += took;
		left -= took;
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
	int n = put_prefix(line, sizeof(line), level);
	if (write(STDERR_FILENO, line, bc_log_write(line, (size_t)n, text)) < 0)
		return; /* nobody is left to tell */
}
