#include "cli/client/socket_probe.h"

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

static void why_not_permitted(char *out, size_t room, const char *path)
{
	const struct group *entry = NULL;
	struct stat st;

	if (stat(path, &st) == 0) {
		if ((st.st_mode & S_IWGRP) == 0) {
			snprintf(out, room,
				"permission denied: its owner alone may ask; try as root");
			return;
		}
		entry = getgrgid(st.st_gid);
	}
	const char *group = entry != NULL ? entry->gr_name : "buscap";
	snprintf(out, room,
		"permission denied: who may ask is in the group %s; join it (usermod -aG %s NAME, "
		"and log in again) or try as root",
		group, group);
}

static void why_refused(char *out, size_t room, const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
		snprintf(out, room,
			"it is no socket: name that of buscapd with --socket PATH or "
			"$BUSCAP_SOCKET");
	else
		snprintf(out, room, "the connection is refused: buscapd has ended; start it again");
}

void bc_socket_probe_error(char *out, size_t room, const char *path, int error, long timeout_ms)
{
	switch (-error) {
	case 0:
		snprintf(out, room, "the connection broke: try again");
		break;
	case ENOENT:
	case ENOTDIR:
		snprintf(out, room,
			"there is no such socket: is buscapd running? Start it, or say where its "
			"socket is with --socket PATH or $BUSCAP_SOCKET");
		break;
	case EACCES:
	case EPERM:
		why_not_permitted(out, room, path);
		break;
	case ECONNREFUSED:
		why_refused(out, room, path);
		break;
	case ENAMETOOLONG:
		snprintf(out, room,
			"the path is too long for a socket, which has 107 bytes for it; name "
			"another with --socket PATH or $BUSCAP_SOCKET");
		break;
	case EAGAIN:
		snprintf(out, room,
			"no answer within %ld s: buscapd takes no connections; if that stays so, "
			"look into its log",
			timeout_ms / 1000);
		break;
	default:
		snprintf(out, room, "can't connect: %s", strerror(-error));
		break;
	}
}
