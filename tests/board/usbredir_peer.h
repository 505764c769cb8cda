/* The host's side of usbredir for a board in software: what a virtual machine asks over a stream
 * socket becomes calls of tests/board/board.h, and their answers go back. The protocol itself is
 * libusbredirparser's.
 *
 *     peer_new()       over a connected socket; the device is announced when the guest says hello
 *     peer_turn()      reads, answers, writes, as far as it goes without waiting
 *     peer_fd(), peer_events(), peer_due_ns()   what to wait for until the next turn
 *     peer_finish()    before an unplug that shall lose nothing
 *     peer_free()      to the guest the device is gone when the socket is closed
 *
 * Bulk transfers are held until the board has something for them or the guest cancels them; so are
 * control transfers that the board never answers. Bulk receiving, bulk streams and filters are not
 * offered; isochronous and interrupt transfers are refused, for the board has no such endpoint.
 *
 * Nothing that the guest sends is trusted. What is no usbredir, or not for a host, ends the
 * connection; a packet from the guest has at most 128 MiB, by the library, an answer 16. The number
 * of transfers held is limited, and so is what waits to be written: while that limit is reached
 * nothing more is read. */
#ifndef BC_TESTS_BOARD_USBREDIR_PEER_H
#define BC_TESTS_BOARD_USBREDIR_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/board/board.h"

struct peer;
struct usbredirparser;

/* Takes over a connected, non-blocking stream socket. The board stays the caller's and is there
 * for longer than the peer; `packet_bytes` is as in its options and tells the speed. NULL when
 * memory ran out; the socket is then still the caller's. */
struct peer *peer_new(int fd, struct board *board, uint16_t packet_bytes);

/* Every byte of the stream that is given to the guest from now on is written to this file, too,
 * which stays the caller's. A write that fails shows in ferror(). */
void peer_keep(struct peer *peer, FILE *kept);

/* One turn. Returns false when the connection is over, for a reason that peer_why() tells; only
 * peer_free() is left to call then. */
bool peer_turn(struct peer *peer, uint64_t now_ns);

/* Lets the guest have the answers that are on their way to it and waits until it has closed the
 * connection, for so long at most. Only peer_crossed() and peer_free() are left to call then. */
void peer_finish(struct peer *peer, unsigned limit_ms);

/* The socket, and what poll() is to look for. */
int peer_fd(const struct peer *peer);
short peer_events(const struct peer *peer);

/* When a turn is due that no event of the socket announces; UINT64_MAX: none is. */
uint64_t peer_due_ns(const struct peer *peer, uint64_t now_ns);

/* Bulk transfers that were answered with data and then cancelled, since the two passed each other:
 * the guest throws such data away, which the board counts as sent. */
struct peer_crossed {
	uint64_t transfers;
	uint64_t bytes;
};
struct peer_crossed peer_crossed(const struct peer *peer);

/* libusbredirparser's side of it, for its callbacks. */
struct usbredirparser *peer_parser(struct peer *peer);

/* Why the connection is over: text that lives as long as the peer. */
const char *peer_why(const struct peer *peer);

/* Closes the socket and frees everything. NULL may be passed. */
void peer_free(struct peer *peer);

#endif
