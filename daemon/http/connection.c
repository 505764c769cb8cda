#include "daemon/http/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "formats/base/clock.h"

/* A connection is not closed in favour of another until its client has had this long to send a
 * request, or to read its response. */
#define GRACE_NS UINT64_C(50000000)

static void close_connection(struct bc_connection *c)
{
	shutdown(c->fd, SHUT_RDWR);
	c->connections->used[c->class]--;
	c->class = BC_CLASS_CLOSING;
	c->connections->used[BC_CLASS_CLOSING]++;
}

/* Finds the connection that has been waiting for its client the longest. A connection whose client
 * waits for the daemon, or reads a stream, is never closed in favour of another. */
static struct bc_connection *find_oldest(
	const struct bc_connections *connections, enum bc_connection_class class)
{
	struct bc_connection *oldest = NULL;

	for (struct bc_connection *c = connections->first; c != NULL; c = c->next)
		if (c->class == class && c->phase != BC_PHASE_WORKING &&
			(oldest == NULL || c->phase_start_ns < oldest->phase_start_ns))
			oldest = c;
	return oldest;
}

/* Sets *class to the class of a new connection, after closing an old one if necessary. Returns 0 or
 * -EAGAIN. */
static int choose_class(
	struct bc_connections *connections, bool is_owner, enum bc_connection_class *class)
{
	struct bc_connection *oldest = NULL;

	*class = is_owner ? BC_CLASS_OWNER : BC_CLASS_OTHER;
	if (connections->used[*class] < connections->max[*class])
		return 0;
	if (is_owner)
		oldest = find_oldest(connections, BC_CLASS_OWNER);
	if (oldest != NULL && bc_now_ns() - oldest->phase_start_ns < GRACE_NS)
		return -EAGAIN;
	if (oldest == NULL) {
		*class = BC_CLASS_REFUSED;
		if (connections->used[BC_CLASS_REFUSED] == BC_CONNECTIONS_REFUSED_MAX)
			oldest = find_oldest(connections, BC_CLASS_REFUSED);
	}
	if (oldest != NULL)
		close_connection(oldest);
	return 0;
}

int bc_connections_admit(struct bc_connections *connections, int fd, bool is_owner,
	struct bc_connection **connection)
{
	enum bc_connection_class class;
	int rc = choose_class(connections, is_owner, &class);

	if (rc != 0)
		return rc;
	struct bc_connection *c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	c->connections = connections;
	c->fd = fd;
	c->is_owner = is_owner;
	c->class = class;
	c->phase_start_ns = bc_now_ns();
	c->next = connections->first;
	if (c->next != NULL)
		c->next->prev = c;
	connections->first = c;
	connections->used[class]++;
	*connection = c;
	return 0;
}

void bc_connections_remove(struct bc_connections *connections, struct bc_connection *c)
{
	if (c->next != NULL)
		c->next->prev = c->prev;
	*(c->prev != NULL ? &c->prev->next : &connections->first) = c->next;
	connections->used[c->class]--;
	free(c);
}

void bc_connection_set_phase(struct bc_connection *c, enum bc_phase phase)
{
	c->phase = phase;
	c->phase_start_ns = bc_now_ns();
}
