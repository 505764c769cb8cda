#include "daemon/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

void bc_log(enum bc_log_level level, const char *format, ...)
{
	char line[1024];
	va_list args;

	if ((int)level > atomic_load(&threshold))
		return;
	int n = put_prefix(line, sizeof(line), level);
	va_start(args, format);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);
	va_end(args);
	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	for (int i = 0; i < n; i++)
		if ((unsigned char)line[i] < ' ')
			line[i] = '?'; /* a name from outside must not forge a line */
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return; /* nobody is left to tell */
}
