/* The TCP address that `buscap web` listens on. */
#ifndef BC_CLI_WEB_WEB_ADDRESS_H
#define BC_CLI_WEB_WEB_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "formats/base/must_check.h"

struct bc_web_address {
	struct sockaddr_storage address;
	socklen_t bytes; /* of `address` */
};

/* Parses "ADDR:PORT": a numeric address, IPv6 in brackets, or localhost (127.0.0.1). Port 0: any
 * free one. */
bool bc_web_address_parse(struct bc_web_address *address, const char *text) BC_MUST_CHECK;

/* Whether only this host can connect. */
bool bc_web_address_is_loopback(const struct bc_web_address *address);

uint16_t bc_web_address_port(const struct bc_web_address *address);

/* Whether a Host header names this address and port: as a numeric address, or as localhost if
 * clients of this host can connect. If the address is that of all interfaces, any numeric address
 * will do; what matters is that it is not a name, which others can point at this host (DNS
 * rebinding). */
bool bc_web_address_is_host(const struct bc_web_address *address, const char *host);

/* Listens on the address, and sets its port if it was 0. Returns a socket, which the caller closes,
 * or a negative errno. */
int bc_web_address_listen(struct bc_web_address *address) BC_MUST_CHECK;

/* Writes the address for a link, "127.0.0.1:8080"; that of this host if it listens on all
 * interfaces. */
#define BC_WEB_ADDRESS_TEXT 64
void bc_web_address_write(char out[BC_WEB_ADDRESS_TEXT], const struct bc_web_address *address);

#endif
