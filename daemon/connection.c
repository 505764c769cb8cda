#include "daemon/connection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/exchange.h"

/* A connection isn't ended for another before it had this long to ask, or to take its answer. */
#define GRACE_NS UINT64_C(50000000)

/* A refused client has this long to read why. */
#define REFUSED_NS UINT64_C(1000000000)

/* What doesn't fit into the socket at once is not for us to wait for. */
static void tell(int fd, const char *status, const char *sentence)
{
	char text[512];
	char body[256];
	int n = snprintf(body, sizeof(body), "{\"error\":\"%s\"}\n", sentence);
	int length = snprintf(text, sizeof(text),
		"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
		"Connection: close\r\n\r\n%s",
		status, n, body);

	if (send(fd, text, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
}

static void release_refused(struct bc_connections *all, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		close(all->refused[i].fd);
	all->refused_count -= n;
	memmove(all->refused, all->refused + n, all->refused_count * sizeof(all->refused[0]));
}

/* Closed at once, with the request unread, the socket would break under a client that is still
 * writing it. */
static void refuse(struct bc_connections *all, int fd, uint64_t now_ns)
{
	tell(fd, "503 Service Unavailable",
		"there are too many connections; try again later, or close others");
	shutdown(fd, SHUT_WR);
	if (all->refused_count == BC_CONNECTIONS_REFUSED)
		release_refused(all, 1);
	all->refused[all->refused_count].fd = fd;
	all->refused[all->refused_count].until_ns = now_ns + REFUSED_NS;
	all->refused_count++;
}

static void end(struct bc_connections *all, struct bc_connection *c)
{
	shutdown(c->fd, SHUT_RDWR);
	c->is_ending = true;
	c->due_ns = 0;
	*(c->is_owner ? &all->owners : &all->others) -= 1;
}

/* Which of the owner's may go for another of the owner's: the oldest of those that we wait for, or
 * that don't take their answers. What waits for us, and streams, may not. */
static struct bc_connection *find_dispensable(const struct bc_connections *all)
{
	struct bc_connection *oldest = NULL;

	for (struct bc_connection *c = all->first; c != NULL; c = c->next) {
		bool waits_for_us = c->due_ns == 0 &&
				    (c->request == NULL || !bc_exchange_is_sending(c->request));
		if (c->is_owner && !c->is_ending && !waits_for_us &&
			(oldest == NULL || c->since_ns < oldest->since_ns))
			oldest = c;
	}
	return oldest;
}

static enum bc_admission make_place(struct bc_connections *all, bool is_owner, uint64_t now_ns)
{
	if (!is_owner)
		return all->others < all->others_max ? BC_ADMITTED : BC_REFUSED;
	if (all->owners < all->owners_max)
		return BC_ADMITTED;
	struct bc_connection *goes = find_dispensable(all);
	if (goes == NULL)
		return BC_REFUSED;
	if (now_ns - goes->since_ns < GRACE_NS)
		return BC_ADMITTED_LATER;
	end(all, goes);
	return BC_ADMITTED;
}

enum bc_admission bc_connections_admit(struct bc_connections *all, int fd, bool is_owner,
	uint64_t now_ns, struct bc_connection **connection)
{
	enum bc_admission admission = make_place(all, is_owner, now_ns);
	struct bc_connection *c = NULL;

	*connection = NULL;
	if (admission == BC_ADMITTED_LATER)
		return admission;
	if (admission == BC_ADMITTED)
		c = calloc(1, sizeof(*c));
	if (c == NULL) {
		refuse(all, fd, now_ns);
		return BC_REFUSED;
	}
	c->all = all;
	c->fd = fd;
	c->is_owner = is_owner;
	c->since_ns = now_ns;
	c->due_ns = now_ns + all->patience_ns;
	c->next = all->first;
	if (c->next != NULL)
		c->next->before = c;
	all->first = c;
	all->count++;
	*(is_owner ? &all->owners : &all->others) += 1;
	*connection = c;
	return BC_ADMITTED;
}

void bc_connections_remove(struct bc_connections *all, struct bc_connection *c)
{
	if (c->next != NULL)
		c->next->before = c->before;
	*(c->before != NULL ? &c->before->next : &all->first) = c->next;
	all->count--;
	if (!c->is_ending)
		*(c->is_owner ? &all->owners : &all->others) -= 1;
	free(c);
}

void bc_connections_look(struct bc_connections *all, uint64_t now_ns)
{
	unsigned n = 0;

	for (struct bc_connection *c = all->first; c != NULL; c = c->next) {
		if (c->due_ns == 0 || now_ns < c->due_ns)
			continue;
		/* A kept connection that nothing came on is not owed an answer. */
		if (c->is_begun || c->requests == 0)
			bc_connection_tell(
				c, "408 Request Timeout", "the request took too long to come");
		end(all, c);
	}
	while (n < all->refused_count && now_ns >= all->refused[n].until_ns)
		n++;
	release_refused(all, n);
}

void bc_connections_close(struct bc_connections *all)
{
	release_refused(all, all->refused_count);
}

void bc_connection_tell(const struct bc_connection *c, const char *status, const char *sentence)
{
	tell(c->fd, status, sentence);
}

void bc_connection_begun(struct bc_connections *all, struct bc_connection *c, uint64_t now_ns)
{
	c->is_begun = true;
	if (c->requests != 0 && !c->is_ending)
		c->due_ns = now_ns + all->patience_ns;
}

void bc_connection_whole(struct bc_connection *c, uint64_t now_ns)
{
	c->due_ns = 0;
	c->since_ns = now_ns;
}

void bc_connection_done(struct bc_connections *all, struct bc_connection *c, uint64_t now_ns)
{
	c->is_begun = false;
	c->has_bad_path = false;
	c->request = NULL;
	c->requests++;
	c->since_ns = now_ns;
	if (!c->is_ending)
		c->due_ns = now_ns + all->patience_ns;
}
