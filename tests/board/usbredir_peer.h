/* The host's side of usbredir for a software board: requests of a virtual machine, received over a
 * stream socket, become calls of tests/board/board.h, and the answers go back. libusbredirparser
 * implements the protocol.
 *
 *     peer_new()       over a connected socket; announces the device when the guest says hello
 *     peer_turn()      reads, answers and writes as far as possible without blocking
 *     peer_fd(), peer_events(), peer_due_ns()   what to wait for before the next turn
 *     peer_finish()    before an unplug that must not lose anything
 *     peer_free()      closes the socket, which is an unplug for the guest
 *
 * Bulk transfers are held until the board has data for them or the guest cancels them; control
 * transfers that the board never answers likewise. The guest is QEMU with Linux: what these never
 * send is not answered, and nothing limits how much they let us hold. */
#ifndef BC_TESTS_BOARD_USBREDIR_PEER_H
#define BC_TESTS_BOARD_USBREDIR_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/board/board.h"

struct peer;

/* Takes over a connected, non-blocking stream socket. The board must outlive the peer.
 * Returns NULL if out of memory; the caller then keeps the socket. */
struct peer *peer_new(int fd, struct board *board);

/* Also writes every stream byte that is sent to the guest from now on to this file, which the
 * caller keeps. Check ferror() for write errors. */
void peer_keep(struct peer *peer, FILE *kept);

/* Runs one turn. Returns false when the connection has ended, for the reason in peer_error(); then
 * only call peer_free(). */
bool peer_turn(struct peer *peer, uint64_t now_ns);

/* Delivers pending answers to the guest and waits until it has closed the connection, for at most
 * `limit_ms`. After that, only call peer_free(). */
void peer_finish(struct peer *peer, unsigned limit_ms);

/* The socket, and the events to poll() for. */
int peer_fd(const struct peer *peer);
short peer_events(const struct peer *peer);

/* Returns when a turn is due without an event of the socket; UINT64_MAX: never. */
uint64_t peer_due_ns(const struct peer *peer, uint64_t now_ns);

/* Why the connection has ended; valid as long as the peer. */
const char *peer_error(const struct peer *peer);

/* Closes the socket and frees everything. NULL may be passed. */
void peer_free(struct peer *peer);

#endif
