#include "cli/io/socket_probe.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

int bc_socket_probe(const char *path, long timeout_ms)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	struct timeval time = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};

	if (*path == '\0')
		return -ENOENT;
	if (strlen(path) >= sizeof(name.sun_path))
		return -ENAMETOOLONG;
	memcpy(name.sun_path, path, strlen(path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	int rc = setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
	if (rc == 0)
		rc = connect(fd, (struct sockaddr *)&name, sizeof(name));
	rc = rc == 0 ? 0 : -errno;
	close(fd);
	return rc;
}

static void write_permission_error(char *err, size_t errlen, const char *path)
{
	const struct group *entry = NULL;
	struct stat st;

	if (stat(path, &st) == 0) {
		/* Joining the group root would allow far more. */
		if ((st.st_mode & S_IWGRP) == 0 || st.st_gid == 0) {
			snprintf(err, errlen,
				"permission denied: only its owner may connect; try as root, or "
				"set [socket] group for buscapd");
			return;
		}
		entry = getgrgid(st.st_gid);
	}
	const char *group = entry != NULL ? entry->gr_name : "buscap";
	snprintf(err, errlen,
		"permission denied: requires membership in the group %s; join it (usermod -aG %s "
		"NAME, then log in again) or try as root",
		group, group);
}

void bc_socket_probe_error(char *err, size_t errlen, const char *path, int error, long timeout_ms)
{
	struct stat st;

	switch (-error) {
	case 0:
		snprintf(err, errlen, "connection lost; try again");
		break;
	case ENOENT:
	case ENOTDIR:
		snprintf(err, errlen,
			"no such socket; is buscapd running? Start it, or pass its socket with "
			"--socket PATH or $BUSCAP_SOCKET");
		break;
	case EACCES:
	case EPERM:
		write_permission_error(err, errlen, path);
		break;
	case ECONNREFUSED:
		if (stat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
			snprintf(err, errlen,
				"not a socket; pass that of buscapd with --socket PATH or "
				"$BUSCAP_SOCKET");
		else
			snprintf(err, errlen, "connection refused: buscapd has stopped; start it");
		break;
	case ENAMETOOLONG:
		snprintf(err, errlen,
			"path longer than 107 bytes, the limit for sockets; pass another with "
			"--socket PATH or $BUSCAP_SOCKET");
		break;
	case EAGAIN:
		snprintf(err, errlen,
			"no response within %ld s: buscapd accepts no connections; if this "
			"persists, see journalctl -u buscapd",
			timeout_ms / 1000);
		break;
	default:
		snprintf(err, errlen, "can't connect: %s", strerror(-error));
		break;
	}
}
