/* A TCP address to listen on, such as 127.0.0.1:8080 or [::1]:8080: for the daemon and buscap web.
 * Addresses are numeric, so that nothing depends on a name server; localhost is 127.0.0.1. */
#ifndef BC_FORMATS_BASE_TCP_ADDRESS_H
#define BC_FORMATS_BASE_TCP_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "formats/base/must_check.h"

union bc_tcp_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Parses "ADDR:PORT", with IPv6 in brackets. Port 0: any free one. */
bool bc_tcp_address_parse(union bc_tcp_address *address, const char *text) BC_MUST_CHECK;

/* True if only this host can connect. */
bool bc_tcp_address_is_loopback(const union bc_tcp_address *address);

uint16_t bc_tcp_address_port(const union bc_tcp_address *address);

/* True if a Host header's value is localhost or a loopback address, with any port or none. */
bool bc_tcp_host_is_loopback(const char *host);

/* True if a Host header's value is this address and port: as a numeric address, or as localhost if
 * clients on this host can connect. If the address is any (0.0.0.0 or [::]), every numeric address
 * matches; a name does not, because others can point it at this host (DNS rebinding). */
bool bc_tcp_address_is_host(const union bc_tcp_address *address, const char *host);

/* Listens on the address, and sets its port if it was 0. Returns a non-blocking socket, which the
 * caller closes, or a negative errno. */
int bc_tcp_address_listen(union bc_tcp_address *address) BC_MUST_CHECK;

/* Maximum size of the text of an address, with the terminating zero. */
#define BC_TCP_ADDRESS_TEXT 64

/* Writes the address for a link, "127.0.0.1:8080"; the loopback address if it listens on all. */
void bc_tcp_address_write(char out[BC_TCP_ADDRESS_TEXT], const union bc_tcp_address *address);

#endif
