#include "daemon/base/journal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PRIORITY "PRIORITY="
#define MESSAGE  "\nMESSAGE="

/* systemd sets JOURNAL_STREAM to the device and inode of the stream; programs started in a session
 * inherit the variable, but have another standard error. */
bool bc_journal_is_stderr(void)
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

size_t bc_journal_format(
	char *entry, size_t size, const char *id, const char *recording, const char *line)
{
	bool has_recording = recording[0] != '\0';

	if (line[0] != '<' || (id == NULL && !has_recording))
		return 0;
	return (size_t)snprintf(entry, size,
		PRIORITY "%c\nSYSLOG_IDENTIFIER=buscapd%s%s%s%s" MESSAGE "%s", line[1],
		id != NULL ? "\nMESSAGE_ID=" : "", id != NULL ? id : "",
		has_recording ? "\nRECORDING=" : "", recording, line + strlen("<6>"));
}

bool bc_journal_is_entry(const char *text)
{
	return strncmp(text, PRIORITY, strlen(PRIORITY)) == 0;
}

char *bc_journal_line(char *entry)
{
	char *line = strstr(entry, MESSAGE) + strlen(MESSAGE) - strlen("<6>");

	line[0] = '<';
	line[1] = entry[strlen(PRIORITY)];
	line[2] = '>';
	return line;
}

int bc_journal_send(const char *entry, size_t bytes)
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
