#include "daemon/http/loopback.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "formats/base/number.h"

#define BACKLOG 16

static bool set_v4(struct bc_loopback *loopback, const char *host, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	if (inet_pton(AF_INET, host, &in.sin_addr) != 1 || ntohl(in.sin_addr.s_addr) >> 24 != 127)
		return false;
	memcpy(&loopback->address, &in, sizeof(in));
	loopback->bytes = sizeof(in);
	return true;
}

static bool set_v6(struct bc_loopback *loopback, uint16_t port)
{
	struct sockaddr_in6 in = {
		.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = in6addr_loopback};

	memcpy(&loopback->address, &in, sizeof(in));
	loopback->bytes = sizeof(in);
	return true;
}

bool bc_loopback_parse(struct bc_loopback *loopback, const char *text, char *err, size_t errlen)
{
	char host[64];
	uint64_t port;
	const char *colon = strrchr(text, ':');

	memset(loopback, 0, sizeof(*loopback));
	if (text[0] == '\0')
		return true;
	if (colon != NULL && (size_t)(colon - text) < sizeof(host) &&
		strlen(text) < sizeof(loopback->text) && bc_number_read(&port, colon + 1) &&
		port >= 1 && port <= UINT16_MAX) {
		snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
		snprintf(loopback->text, sizeof(loopback->text), "%s", text);
		if (strcmp(host, "[::1]") == 0 ? set_v6(loopback, (uint16_t)port)
					       : set_v4(loopback, host, (uint16_t)port))
			return true;
	}
	snprintf(err, errlen, "not a loopback address; expected 127.0.0.1:PORT or [::1]:PORT");
	return false;
}

bool bc_loopback_is_host(const char *host)
{
	struct bc_loopback address;
	char text[sizeof(address.text)];
	char err[100];
	const char *after = strrchr(host, ']') != NULL ? strrchr(host, ']') : host;
	size_t n = strlen(host);
	const char *port = strchr(after, ':');

	if (port != NULL)
		n = (size_t)(port - host);
	if (n == strlen("localhost") && strncasecmp(host, "localhost", n) == 0)
		return true;
	snprintf(text, sizeof(text), "%.*s:1", (int)n, host);
	return bc_loopback_parse(&address, text, err, sizeof(err)) && address.bytes != 0;
}

int bc_loopback_listen(const struct bc_loopback *loopback)
{
	const int one = 1;
	int fd = socket(loopback->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	/* A restarted daemon can bind while old connections are still in TIME_WAIT. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
		bind(fd, (const struct sockaddr *)&loopback->address, loopback->bytes) == 0 &&
		listen(fd, BACKLOG) == 0)
		return fd;
	int rc = -errno;
	close(fd);
	return rc;
}
