#include "daemon/http/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "daemon/base/clock.h"

/* A connection isn't ended for another before it had this long to ask, or to read its answer. */
#define GRACE_NS UINT64_C(50000000)

static void set_place(struct bc_connection *c, enum bc_place place)
{
	c->all->used[c->place]--;
	c->place = place;
	c->all->used[place]++;
}

static void end(struct bc_connection *c)
{
	shutdown(c->fd, SHUT_RDWR);
	set_place(c, BC_PLACE_ENDING);
}

/* The oldest that waits for its client. A client that waits for us, or reads a stream, never makes
 * way. */
static struct bc_connection *find_oldest(const struct bc_connections *all, enum bc_place place)
{
	struct bc_connection *oldest = NULL;

	for (struct bc_connection *c = all->first; c != NULL; c = c->next)
		if (c->place == place && c->phase != BC_PHASE_WORKING &&
			(oldest == NULL || c->since_ns < oldest->since_ns))
			oldest = c;
	return oldest;
}

/* Returns 0 with a place to be had in *place, or -EAGAIN. */
static int make_place(struct bc_connections *all, bool is_owner, enum bc_place *place)
{
	struct bc_connection *oldest = NULL;

	*place = is_owner ? BC_PLACE_OWNER : BC_PLACE_OTHER;
	if (all->used[*place] < all->max[*place])
		return 0;
	if (is_owner)
		oldest = find_oldest(all, BC_PLACE_OWNER);
	if (oldest != NULL && bc_now_ns() - oldest->since_ns < GRACE_NS)
		return -EAGAIN;
	if (oldest == NULL) {
		*place = BC_PLACE_REFUSED;
		if (all->used[BC_PLACE_REFUSED] == BC_CONNECTIONS_REFUSED)
			oldest = find_oldest(all, BC_PLACE_REFUSED);
	}
	if (oldest != NULL)
		end(oldest);
	return 0;
}

int bc_connections_admit(
	struct bc_connections *all, int fd, bool is_owner, struct bc_connection **connection)
{
	enum bc_place place;
	int rc = make_place(all, is_owner, &place);

	if (rc != 0)
		return rc;
	struct bc_connection *c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	c->all = all;
	c->fd = fd;
	c->is_owner = is_owner;
	c->place = place;
	c->since_ns = bc_now_ns();
	c->next = all->first;
	if (c->next != NULL)
		c->next->before = c;
	all->first = c;
	all->used[place]++;
	*connection = c;
	return 0;
}

void bc_connections_remove(struct bc_connections *all, struct bc_connection *c)
{
	if (c->next != NULL)
		c->next->before = c->before;
	*(c->before != NULL ? &c->before->next : &all->first) = c->next;
	all->used[c->place]--;
	free(c);
}

void bc_connection_set_phase(struct bc_connection *c, enum bc_phase phase)
{
	c->phase = phase;
	c->since_ns = bc_now_ns();
}
