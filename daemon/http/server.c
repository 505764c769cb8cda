#include "daemon/http/server.h"

#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/http/request_internal.h"

#define TIMEOUT_S        10
#define LOOK_MS          1000 /* how often clients of streams are checked */
#define DEAF_MS          20
#define CONNECTION_BYTES 32768 /* of libmicrohttpd, for heads both ways */
#define CONNECTIONS_MOST 4096u

/* A program built with the headers of an older libmicrohttpd runs with the newer library too, whose
 * soname is the same; the older library passes over the flag. */
#if MHD_VERSION < 0x00097707
#define MHD_USE_NO_THREAD_SAFETY (1u << 19)
#endif

/* Taken from the queue at a time: the loop has more to do. */
#define ACCEPT_AT_ONCE 16

/* Connections that were shut down and not noticed yet, at most: those that one round ends. */
#define ENDING_PLACES 64u

/* At the end each stream gets so many turns more. */
#define LAST_TURNS 4u

struct bc_server {
	struct bc_server_options options;
	struct MHD_Daemon *mhd;
	struct bc_connections connections;
	struct bc_connection *arriving; /* being given to libmicrohttpd */
	int waiting_fd;                 /* of the owner, accepted, for a place; -1: none */
	bool is_deaf; /* until some time has passed: no descriptor was to be had, or no place */
	uv_poll_t listening;
	uv_poll_t poll;
	uv_timer_t timer; /* for libmicrohttpd's time-outs */
	uv_timer_t look;  /* while there are connections, or the server is deaf */
	uv_idle_t soon;
	unsigned open_handles;
};

/* Turning */

static void turn(struct bc_server *server);

static void on_timer(uv_timer_t *timer)
{
	turn(timer->data);
}

static void on_soon(uv_idle_t *idle)
{
	turn(idle->data);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	turn(poll->data);
}

static void turn_soon(void *context)
{
	struct bc_server *server = context;

	uv_idle_start(&server->soon, on_soon);
}

/* Lets libmicrohttpd work, and come back when one of its time-outs is due. What it can go on with
 * at once waits for the rest of the loop's round: a timer of 0 ms would not. */
static void turn(struct bc_server *server)
{
	MHD_UNSIGNED_LONG_LONG due_ms;

	uv_idle_stop(&server->soon);
	uv_timer_stop(&server->timer);
	uint64_t began_ns = bc_thread_ns();
	MHD_run(server->mhd);
	server->connections.served_ns += bc_thread_ns() - began_ns;
	if (MHD_get_timeout(server->mhd, &due_ms) != MHD_YES)
		return;
	if (due_ms == 0)
		turn_soon(server);
	else
		uv_timer_start(&server->timer, on_timer, due_ms, 0);
}

/* libmicrohttpd doesn't see the client of a suspended connection go. */
static void end_streams_of_gone_clients(struct bc_server *server)
{
	for (struct bc_connection *c = server->connections.first; c != NULL; c = c->next) {
		struct pollfd fd = {.fd = c->fd};
		if (c->request != NULL && bc_request_is_waiting_stream(c->request) &&
			poll(&fd, 1, 0) > 0 && (fd.revents & (POLLHUP | POLLERR)) != 0)
			bc_request_end_stream(c->request);
	}
}

static void on_listening(uv_poll_t *poll, int status, int events);
static void take_some(struct bc_server *server);

static void on_look(uv_timer_t *timer)
{
	struct bc_server *server = timer->data;

	end_streams_of_gone_clients(server);
	if (server->is_deaf) {
		server->is_deaf = false;
		uv_poll_start(&server->listening, UV_READABLE, on_listening);
		take_some(server);
	} else if (server->connections.first == NULL) {
		uv_timer_stop(&server->look);
	}
}

/* Arrivals */

static bool is_owner(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

/* For what isn't to be had now, those that connect wait in the kernel's queue. */
static void be_deaf(struct bc_server *server)
{
	server->is_deaf = true;
	uv_poll_stop(&server->listening);
	uv_timer_start(&server->look, on_look, DEAF_MS, LOOK_MS);
}

/* Returns false when no more can be taken now. */
static bool admit(struct bc_server *server, int fd)
{
	bool is_of_owner = server->options.is_local && is_owner(fd);
	struct sockaddr_storage address = {.ss_family = AF_UNIX};
	socklen_t length = sizeof(address);

	int rc = bc_connections_admit(&server->connections, fd, is_of_owner, &server->arriving);
	server->waiting_fd = rc == -EAGAIN ? fd : -1;
	if (rc == -EAGAIN) {
		be_deaf(server);
		return false;
	}
	if (rc != 0) {
		close(fd);
		return true;
	}
	if (getpeername(fd, (struct sockaddr *)&address, &length) != 0)
		length = sizeof(address.ss_family);
	if (MHD_add_connection(server->mhd, fd, (struct sockaddr *)&address, length) != MHD_YES &&
		server->arriving != NULL)
		bc_connections_remove(&server->connections, server->arriving);
	server->arriving = NULL;
	return true;
}

/* Returns false when no more can be taken now, or there is none. */
static bool take_one(struct bc_server *server)
{
	if (server->waiting_fd >= 0)
		return admit(server, server->waiting_fd);
	int fd = accept4(server->options.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		return admit(server, fd);
	if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
		be_deaf(server);
	return errno == ECONNABORTED || errno == EINTR;
}

static void take_some(struct bc_server *server)
{
	for (int i = 0; i < ACCEPT_AT_ONCE && take_one(server); i++)
		;
	if (!uv_is_active((uv_handle_t *)&server->look))
		uv_timer_start(&server->look, on_look, LOOK_MS, LOOK_MS);
	/* Those that have asked are answered before more come in. */
	turn(server);
}

static void on_listening(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	take_some(poll->data);
}

/* What libmicrohttpd tells */

static struct bc_connection *connection_of(struct MHD_Connection *mhd)
{
	return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static void on_connection(void *context, struct MHD_Connection *mhd, void **slot,
	enum MHD_ConnectionNotificationCode what)
{
	struct bc_server *server = context;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		*slot = server->arriving;
		server->arriving->mhd = mhd;
		server->arriving = NULL;
	} else {
		bc_connections_remove(&server->connections, *slot);
	}
}

/* The target of a request is there, and not decoded yet. */
static void *on_target(void *context, const char *target, struct MHD_Connection *mhd)
{
	(void)context;
	connection_of(mhd)->has_zero = strstr(target, "%00") != NULL;
	return NULL;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *mhd, const char *path,
	const char *method, const char *version, const char *body, size_t *body_bytes,
	void **request)
{
	(void)context;
	(void)version;
	return bc_request_part(connection_of(mhd), path, method, body, body_bytes, request);
}

static void on_completed(void *context, struct MHD_Connection *mhd, void **request,
	enum MHD_RequestTerminationCode err)
{
	struct bc_connection *connection = connection_of(mhd);

	(void)context;
	(void)err;
	bc_request_completed(*request);
	*request = NULL;
	connection->request = NULL;
	bc_connection_set_phase(connection, BC_PHASE_ASKING);
}

/* What libmicrohttpd says of its clients is theirs to know, not the log's. */
static void ignore_log(void *context, const char *format, va_list args)
{
	(void)context;
	(void)format;
	(void)args;
}

/* The server's life */

unsigned bc_server_clients(const struct bc_server *server)
{
	const unsigned *used = server->connections.used;

	return used[BC_PLACE_OWNER] + used[BC_PLACE_OTHER];
}

static void on_closed(uv_handle_t *handle)
{
	struct bc_server *server = handle->data;

	if (--server->open_handles == 0)
		free(server);
}

static void resume_all(struct bc_server *server)
{
	for (struct bc_connection *c = server->connections.first; c != NULL; c = c->next)
		if (c->request != NULL)
			bc_request_resume(c->request);
}

void bc_server_close(struct bc_server *server)
{
	if (server == NULL)
		return;
	/* Streams may have something to say still: why they end, for one. Who asks now is told. */
	server->connections.request = NULL;
	for (unsigned turns = 0; turns < LAST_TURNS; turns++) {
		resume_all(server);
		MHD_run(server->mhd);
	}
	resume_all(server);
	uv_close((uv_handle_t *)&server->listening, on_closed);
	uv_close((uv_handle_t *)&server->poll, on_closed); /* before what it polls is closed */
	MHD_stop_daemon(server->mhd);
	if (server->waiting_fd >= 0)
		close(server->waiting_fd);
	assert(server->connections.first == NULL);
	uv_close((uv_handle_t *)&server->timer, on_closed);
	uv_close((uv_handle_t *)&server->look, on_closed);
	uv_close((uv_handle_t *)&server->soon, on_closed);
}

/* Without MHD_USE_NO_THREAD_SAFETY libmicrohttpd 1.0 takes a connection only in its next turn, and
 * says nothing of one that it then has no place for. */
static struct MHD_Daemon *start_mhd(struct bc_server *server)
{
	const struct bc_server_options *options = &server->options;
	unsigned places = options->connections_max + BC_SERVER_OWNER_PLACES +
			  BC_CONNECTIONS_REFUSED + ENDING_PLACES;
	unsigned timeout_s = options->timeout_s != 0 ? options->timeout_s : TIMEOUT_S;

	return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG |
					MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_THREAD_SAFETY,
		0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, ignore_log, NULL,
		MHD_OPTION_CONNECTION_LIMIT, places, MHD_OPTION_CONNECTION_TIMEOUT, timeout_s,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
		MHD_OPTION_URI_LOG_CALLBACK, on_target, server, MHD_OPTION_NOTIFY_COMPLETED,
		on_completed, server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
		MHD_OPTION_END);
}

static int init_polls(struct bc_server *server, uv_loop_t *loop)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(
		server->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	int rc = info != NULL ? uv_poll_init(loop, &server->poll, info->epoll_fd) : -EIO;

	if (rc != 0)
		return rc;
	server->poll.data = server;
	server->open_handles = 1;
	rc = uv_poll_init(loop, &server->listening, server->options.listen_fd);
	if (rc != 0) {
		uv_close((uv_handle_t *)&server->poll, on_closed); /* which frees the server */
		return rc;
	}
	server->listening.data = server;
	return 0;
}

int bc_server_start(
	struct bc_server **result, uv_loop_t *loop, const struct bc_server_options *options)
{
	assert(options->connections_max >= 1 && options->connections_max <= CONNECTIONS_MOST);
	struct bc_server *server = calloc(1, sizeof(*server));

	if (server == NULL)
		return -ENOMEM;
	server->options = *options;
	server->waiting_fd = -1;
	server->connections = (struct bc_connections){
		.max = {[BC_PLACE_OTHER] = options->connections_max,
			[BC_PLACE_OWNER] = BC_SERVER_OWNER_PLACES},
		.long_bytes = options->long_bytes != 0 ? options->long_bytes : BC_ANSWER_LONG_BYTES,
		.server = server,
		.turn_soon = turn_soon,
		.context = options->context,
		.request = options->request,
	};
	server->mhd = start_mhd(server);
	if (server->mhd == NULL) {
		free(server);
		return -EIO;
	}
	int rc = init_polls(server, loop);
	if (rc != 0) {
		MHD_stop_daemon(server->mhd);
		if (server->open_handles == 0)
			free(server);
		return rc;
	}
	uv_timer_init(loop, &server->timer);
	uv_timer_init(loop, &server->look);
	uv_idle_init(loop, &server->soon);
	server->timer.data = server;
	server->look.data = server;
	server->soon.data = server;
	server->open_handles = 5;
	uv_poll_start(&server->poll, UV_READABLE, on_poll);
	uv_poll_start(&server->listening, UV_READABLE, on_listening);
	*result = server;
	return 0;
}
