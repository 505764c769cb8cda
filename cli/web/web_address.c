#include "cli/web/web_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "formats/base/number.h"

#define BACKLOG 64

/* The send buffer of a connection. libmicrohttpd closes a connection that makes no progress for
 * some seconds, and notices progress only when a third of this buffer is free. The system's default
 * grows to megabytes, which a slow client can't read in that time. */
#define SEND_BYTES (128 << 10)

/* Browsers omit this port. */
#define HTTP_PORT 80u

static void set_v4(struct bc_web_address *a, struct in_addr host, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = host};

	memcpy(&a->address, &in, sizeof(in));
	a->bytes = sizeof(in);
}

static void set_v6(struct bc_web_address *a, struct in6_addr host, uint16_t port)
{
	struct sockaddr_in6 in = {
		.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = host};

	memcpy(&a->address, &in, sizeof(in));
	a->bytes = sizeof(in);
}

static struct sockaddr_in v4_of(const struct bc_web_address *a)
{
	struct sockaddr_in in;

	memcpy(&in, &a->address, sizeof(in));
	return in;
}

static struct sockaddr_in6 v6_of(const struct bc_web_address *a)
{
	struct sockaddr_in6 in;

	memcpy(&in, &a->address, sizeof(in));
	return in;
}

/* Parses a numeric address, or one in brackets. */
static bool set_numeric(struct bc_web_address *a, const char *host, uint16_t port)
{
	char inner[INET6_ADDRSTRLEN];
	struct in_addr v4;
	struct in6_addr v6;
	size_t n = strlen(host);

	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, host, &v4) == 1) {
		set_v4(a, v4, port);
		return true;
	}
	if (n < 2 || n - 2 >= sizeof(inner) || host[0] != '[' || host[n - 1] != ']')
		return false;
	snprintf(inner, sizeof(inner), "%.*s", (int)(n - 2), host + 1);
	if (inet_pton(AF_INET6, inner, &v6) != 1)
		return false;
	set_v6(a, v6, port);
	return true;
}

/* Splits "HOST:PORT" or "HOST". Returns false if the host is too long. *port is NULL if there is
 * none. */
static bool split(char host[BC_WEB_ADDRESS_TEXT], const char **port, const char *text)
{
	const char *bracket = strrchr(text, ']');
	const char *colon = strrchr(bracket != NULL ? bracket : text, ':');
	size_t n = colon != NULL ? (size_t)(colon - text) : strlen(text);

	*port = colon != NULL ? colon + 1 : NULL;
	if (n >= BC_WEB_ADDRESS_TEXT)
		return false;
	memcpy(host, text, n);
	host[n] = '\0';
	return true;
}

bool bc_web_address_parse(struct bc_web_address *a, const char *text)
{
	char host[BC_WEB_ADDRESS_TEXT];
	const char *port;
	uint64_t number;

	if (!split(host, &port, text) || port == NULL || !bc_number_read(&number, port) ||
		number > UINT16_MAX)
		return false;
	return set_numeric(
		a, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, (uint16_t)number);
}

bool bc_web_address_is_loopback(const struct bc_web_address *a)
{
	struct in6_addr v6 = v6_of(a).sin6_addr;

	if (a->address.ss_family == AF_INET)
		return ntohl(v4_of(a).sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&v6);
}

/* Whether it is the address of all interfaces. */
static bool is_any(const struct bc_web_address *a)
{
	struct in6_addr v6 = v6_of(a).sin6_addr;

	if (a->address.ss_family == AF_INET)
		return v4_of(a).sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&v6);
}

uint16_t bc_web_address_port(const struct bc_web_address *a)
{
	return ntohs(a->address.ss_family == AF_INET ? v4_of(a).sin_port : v6_of(a).sin6_port);
}

bool bc_web_address_is_host(const struct bc_web_address *a, const char *text)
{
	char host[BC_WEB_ADDRESS_TEXT];
	char expected[8];
	struct bc_web_address other;
	const char *port;

	snprintf(expected, sizeof(expected), "%u", bc_web_address_port(a));
	if (!split(host, &port, text) || (port == NULL && bc_web_address_port(a) != HTTP_PORT) ||
		(port != NULL && strcmp(port, expected) != 0))
		return false;
	if (strcasecmp(host, "localhost") == 0)
		return is_any(a) || bc_web_address_is_loopback(a);
	if (!set_numeric(&other, host, bc_web_address_port(a)) ||
		other.address.ss_family != a->address.ss_family)
		return false;
	return is_any(a) || memcmp(&other.address, &a->address, a->bytes) == 0;
}

int bc_web_address_listen(struct bc_web_address *a)
{
	const int one = 1;
	const int send_bytes = SEND_BYTES;
	int fd = socket(a->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	a->bytes = a->address.ss_family == AF_INET ? sizeof(struct sockaddr_in)
						   : sizeof(struct sockaddr_in6);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof(send_bytes)) == 0 &&
		(a->address.ss_family == AF_INET ||
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) == 0) &&
		bind(fd, (const struct sockaddr *)&a->address, a->bytes) == 0 &&
		listen(fd, BACKLOG) == 0 &&
		getsockname(fd, (struct sockaddr *)&a->address, &a->bytes) == 0)
		return fd;
	int rc = -errno;
	close(fd);
	return rc;
}

void bc_web_address_write(char out[BC_WEB_ADDRESS_TEXT], const struct bc_web_address *a)
{
	char host[INET6_ADDRSTRLEN] = "";
	struct in_addr v4 = v4_of(a).sin_addr;
	struct in6_addr v6 = v6_of(a).sin6_addr;

	if (is_any(a)) {
		v4.s_addr = htonl(INADDR_LOOPBACK);
		v6 = in6addr_loopback;
	}
	if (a->address.ss_family == AF_INET)
		inet_ntop(AF_INET, &v4, host, sizeof(host));
	else
		inet_ntop(AF_INET6, &v6, host, sizeof(host));
	snprintf(out, BC_WEB_ADDRESS_TEXT, a->address.ss_family == AF_INET ? "%s:%u" : "[%s]:%u",
		host, bc_web_address_port(a));
}
