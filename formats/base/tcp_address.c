/* Numeric TCP addresses: parsing, comparing with the Host header of a request, and listening.
 * Nothing is looked up, so nothing depends on a name server, and a Host header that is a name other
 * than localhost never matches: a page of another site can't reach the server by DNS rebinding. */
#include "formats/base/tcp_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "formats/base/text.h"

#define BACKLOG 64

/* The send buffer of a connection. libmicrohttpd closes a connection that makes no progress for
 * some seconds, and notices progress only when a third of this buffer is free. The system's default
 * grows to megabytes, which a slow client can't read in that time. */
#define SEND_BYTES (128 << 10)

/* Browsers omit this port. */
#define HTTP_PORT 80

static bool is_v4(const union bc_tcp_address *a)
{
	return a->any.sa_family == AF_INET;
}

static socklen_t size_of(const union bc_tcp_address *a)
{
	return is_v4(a) ? sizeof(a->v4) : sizeof(a->v6);
}

/* True for the address of all interfaces. */
static bool is_any(const union bc_tcp_address *a)
{
	return is_v4(a) ? a->v4.sin_addr.s_addr == htonl(INADDR_ANY)
			: IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr);
}

bool bc_tcp_address_is_loopback(const union bc_tcp_address *a)
{
	return is_v4(a) ? ntohl(a->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
			: IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

uint16_t bc_tcp_address_port(const union bc_tcp_address *a)
{
	return ntohs(is_v4(a) ? a->v4.sin_port : a->v6.sin6_port);
}

/* Splits "HOST:PORT" or "HOST" (*port is NULL). Returns false if the host is too long. */
static bool split_host_port(char host[BC_TCP_ADDRESS_TEXT], const char **port, const char *text)
{
	const char *bracket = strrchr(text, ']');
	const char *colon = strrchr(bracket != NULL ? bracket : text, ':');
	size_t n = colon != NULL ? (size_t)(colon - text) : strlen(text);

	*port = colon != NULL ? colon + 1 : NULL;
	if (n >= BC_TCP_ADDRESS_TEXT)
		return false;
	memcpy(host, text, n);
	host[n] = '\0';
	return true;
}

static bool is_localhost(const char *host)
{
	return strcasecmp(host, "localhost") == 0;
}

/* Parses a numeric address, IPv6 in brackets, or localhost. */
static bool set_host(union bc_tcp_address *a, const char *host)
{
	char inner[INET6_ADDRSTRLEN];
	size_t n = strlen(host);

	memset(a, 0, sizeof(*a));
	a->v4.sin_family = AF_INET;
	if (inet_pton(AF_INET, is_localhost(host) ? "127.0.0.1" : host, &a->v4.sin_addr) == 1)
		return true;
	a->v6.sin6_family = AF_INET6;
	if (n < 2 || n - 2 >= sizeof(inner) || host[0] != '[' || host[n - 1] != ']')
		return false;
	snprintf(inner, sizeof(inner), "%.*s", (int)(n - 2), host + 1);
	return inet_pton(AF_INET6, inner, &a->v6.sin6_addr) == 1;
}

static void set_port(union bc_tcp_address *a, uint16_t port)
{
	*(is_v4(a) ? &a->v4.sin_port : &a->v6.sin6_port) = htons(port);
}

bool bc_tcp_address_parse(union bc_tcp_address *a, const char *text)
{
	char host[BC_TCP_ADDRESS_TEXT];
	const char *port;
	uint64_t number;

	if (!split_host_port(host, &port, text) || port == NULL || !bc_number_read(&number, port) ||
		number > UINT16_MAX || !set_host(a, host))
		return false;
	set_port(a, (uint16_t)number);
	return true;
}

bool bc_tcp_host_is_loopback(const char *text)
{
	char host[BC_TCP_ADDRESS_TEXT];
	const char *port;
	union bc_tcp_address address;

	return split_host_port(host, &port, text) && set_host(&address, host) &&
	       bc_tcp_address_is_loopback(&address);
}

bool bc_tcp_address_is_host(const union bc_tcp_address *a, const char *text)
{
	char host[BC_TCP_ADDRESS_TEXT];
	char expected[8];
	union bc_tcp_address other;
	const char *port;

	snprintf(expected, sizeof(expected), "%u", bc_tcp_address_port(a));
	if (!split_host_port(host, &port, text) ||
		(port == NULL && bc_tcp_address_port(a) != HTTP_PORT) ||
		(port != NULL && strcmp(port, expected) != 0))
		return false;
	if (is_localhost(host))
		return is_any(a) || bc_tcp_address_is_loopback(a);
	if (!set_host(&other, host) || is_v4(&other) != is_v4(a))
		return false;
	set_port(&other, bc_tcp_address_port(a));
	return is_any(a) || memcmp(&other, a, size_of(a)) == 0;
}

int bc_tcp_address_listen(union bc_tcp_address *a)
{
	const int one = 1;
	const int send_bytes = SEND_BYTES;
	socklen_t size = size_of(a);
	int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	/* With SO_REUSEADDR a restarted program can bind while old connections are in TIME_WAIT. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof(send_bytes)) == 0 &&
		(is_v4(a) || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) == 0) &&
		bind(fd, &a->any, size) == 0 && listen(fd, BACKLOG) == 0 &&
		getsockname(fd, &a->any, &size) == 0)
		return fd;
	int rc = -errno;
	close(fd);
	return rc;
}

void bc_tcp_address_write(char out[BC_TCP_ADDRESS_TEXT], const union bc_tcp_address *a)
{
	char host[INET6_ADDRSTRLEN] = "";
	union bc_tcp_address shown = *a;

	if (is_any(a))
		(void)set_host(&shown, is_v4(a) ? "127.0.0.1" : "[::1]");
	if (is_v4(a))
		inet_ntop(AF_INET, &shown.v4.sin_addr, host, sizeof(host));
	else
		inet_ntop(AF_INET6, &shown.v6.sin6_addr, host, sizeof(host));
	snprintf(out, BC_TCP_ADDRESS_TEXT, is_v4(a) ? "%s:%u" : "[%s]:%u", host,
		bc_tcp_address_port(a));
}
