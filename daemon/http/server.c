#include "daemon/http/server.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/http/mhd.h"
#include "daemon/http/request_internal.h"
#include "formats/base/clock.h"

#define TIMEOUT_S        10
#define CHECK_MS         1000  /* how often suspended connections are checked for disconnects */
#define PAUSE_MS         20    /* how long accepting pauses without descriptors or room */
#define CONNECTION_BYTES 32768 /* libmicrohttpd's memory for both heads */
#define CONNECTIONS_MAX  4096u

/* A program built with the headers of an older libmicrohttpd also runs with the newer library,
 * which has the same soname. The older library ignores the flag. */
#if MHD_VERSION < 0x00097707
#define MHD_USE_NO_THREAD_SAFETY (1u << 19)
#endif

/* Connections accepted in one turn of the loop, which has other work too. */
#define ACCEPT_MAX 16

/* The most connections that are shut down before libmicrohttpd notices: those of one turn. */
#define CLOSING_MAX 64u

/* How often each stream is read once more when the server closes. */
#define LAST_RUNS 4u

struct bc_server {
	struct bc_server_options options;
	struct MHD_Daemon *mhd;
	struct bc_connections connections;
	struct bc_connection *arriving; /* being handed to libmicrohttpd */
	int waiting_fd;                 /* accepted, but the owner's limit is reached; -1: none */
	bool is_paused; /* not accepting for PAUSE_MS: no descriptors, or no room for the owner */
	uv_poll_t listening;
	uv_poll_t poll;
	uv_timer_t timer; /* for libmicrohttpd's timeouts */
	uv_timer_t check; /* runs while there are connections, or accepting is paused */
	uv_idle_t soon;
	unsigned open_handles;
};

/* Running libmicrohttpd */

static void run_mhd(struct bc_server *server);

static void on_timer(uv_timer_t *timer)
{
	run_mhd(timer->data);
}

static void on_soon(uv_idle_t *idle)
{
	run_mhd(idle->data);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	run_mhd(poll->data);
}

static void run_soon(void *context)
{
	struct bc_server *server = context;

	uv_idle_start(&server->soon, on_soon);
}

/* Runs libmicrohttpd and schedules the next run. If it could continue immediately, an idle handle
 * lets the rest of the loop's turn go first; a timer of 0 ms would not. */
static void run_mhd(struct bc_server *server)
{
	MHD_UNSIGNED_LONG_LONG due_ms;

	uv_idle_stop(&server->soon);
	uv_timer_stop(&server->timer);
	uint64_t start_ns = bc_thread_ns();
	bc_mhd.MHD_run(server->mhd);
	server->connections.served_ns += bc_thread_ns() - start_ns;
	if (bc_mhd.MHD_get_timeout(server->mhd, &due_ms) != MHD_YES)
		return;
	if (due_ms == 0)
		run_soon(server);
	else
		uv_timer_start(&server->timer, on_timer, due_ms, 0);
}

/* libmicrohttpd does not notice when the client of a suspended connection disconnects. */
static void end_disconnected(struct bc_server *server)
{
	for (struct bc_connection *c = server->connections.first; c != NULL; c = c->next) {
		struct pollfd fd = {.fd = c->fd};
		if (c->request != NULL && bc_request_is_suspended(c->request) &&
			poll(&fd, 1, 0) > 0 && (fd.revents & (POLLHUP | POLLERR)) != 0)
			bc_request_disconnected(c->request);
	}
}

static void on_listening(uv_poll_t *poll, int status, int events);
static void accept_some(struct bc_server *server);

static void on_check(uv_timer_t *timer)
{
	struct bc_server *server = timer->data;

	end_disconnected(server);
	if (server->is_paused) {
		server->is_paused = false;
		uv_poll_start(&server->listening, UV_READABLE, on_listening);
		accept_some(server);
	} else if (server->connections.first == NULL) {
		uv_timer_stop(&server->check);
	}
}

/* Accepting connections */

static bool peer_is_owner(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

/* Meanwhile, new clients wait in the kernel's queue. */
static void pause_accepting(struct bc_server *server)
{
	server->is_paused = true;
	uv_poll_stop(&server->listening);
	uv_timer_start(&server->check, on_check, PAUSE_MS, CHECK_MS);
}

/* Returns false if no more connections can be accepted now. */
static bool admit(struct bc_server *server, int fd)
{
	bool is_owner = server->options.is_local && peer_is_owner(fd);
	struct sockaddr_storage address = {.ss_family = AF_UNIX};
	socklen_t length = sizeof(address);

	int rc = bc_connections_admit(&server->connections, fd, is_owner, &server->arriving);
	server->waiting_fd = rc == -EAGAIN ? fd : -1;
	if (rc == -EAGAIN) {
		pause_accepting(server);
		return false;
	}
	if (rc != 0) {
		close(fd);
		return true;
	}
	if (getpeername(fd, (struct sockaddr *)&address, &length) != 0)
		length = sizeof(address.ss_family);
	if (bc_mhd.MHD_add_connection(server->mhd, fd, (struct sockaddr *)&address, length) !=
			MHD_YES &&
		server->arriving != NULL)
		bc_connections_remove(&server->connections, server->arriving);
	server->arriving = NULL;
	return true;
}

/* Returns false if no more connections can be accepted now, or none is waiting. */
static bool accept_one(struct bc_server *server)
{
	if (server->waiting_fd >= 0)
		return admit(server, server->waiting_fd);
	int fd = accept4(server->options.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		return admit(server, fd);
	if (errno == ECONNABORTED || errno == EINTR)
		return true;
	/* Out of descriptors or memory, refused by a firewall, ... */
	if (errno != EAGAIN)
		pause_accepting(server);
	return false;
}

static void accept_some(struct bc_server *server)
{
	for (int i = 0; i < ACCEPT_MAX && accept_one(server); i++)
		;
	if (!uv_is_active((uv_handle_t *)&server->check))
		uv_timer_start(&server->check, on_check, CHECK_MS, CHECK_MS);
	/* Serve these before accepting more. */
	run_mhd(server);
}

static void on_listening(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	accept_some(poll->data);
}

/* libmicrohttpd's callbacks */

static struct bc_connection *connection_of(struct MHD_Connection *mhd)
{
	return bc_mhd.MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
		->socket_context;
}

static void on_connection(void *context, struct MHD_Connection *mhd, void **slot,
	enum MHD_ConnectionNotificationCode code)
{
	struct bc_server *server = context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		*slot = server->arriving;
		server->arriving->mhd = mhd;
		server->arriving = NULL;
	} else {
		bc_connections_remove(&server->connections, *slot);
	}
}

/* Called with the target of a request before it is decoded. */
static void *on_target(void *context, const char *target, struct MHD_Connection *mhd)
{
	(void)context;
	connection_of(mhd)->has_zero_byte = strstr(target, "%00") != NULL;
	return NULL;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *mhd, const char *path,
	const char *method, const char *version, const char *body, size_t *body_bytes,
	void **request)
{
	(void)context;
	(void)version;
	return bc_request_receive(connection_of(mhd), path, method, body, body_bytes, request);
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
	bc_connection_set_phase(connection, BC_PHASE_RECEIVING);
}

/* libmicrohttpd's messages are about faulty clients, which do not belong in the log. */
static void ignore_log(void *context, const char *format, va_list args)
{
	(void)context;
	(void)format;
	(void)args;
}

/* Start and stop */

bool bc_server_load(char *err, size_t errlen)
{
	return bc_mhd_load(err, errlen);
}

unsigned bc_server_connections(const struct bc_server *server)
{
	const unsigned *used = server->connections.used;

	return used[BC_CLASS_OWNER] + used[BC_CLASS_OTHER];
}

static void on_closed(uv_handle_t *handle)
{
	struct bc_server *server = handle->data;

	if (--server->open_handles == 0)
		free(server);
}

void bc_server_listen(struct bc_server *server, int fd)
{
	accept_some(server);
	uv_poll_stop(&server->listening);
	(void)!dup3(fd, server->options.listen_fd, O_CLOEXEC);
	close(fd);
	if (!server->is_paused)
		uv_poll_start(&server->listening, UV_READABLE, on_listening);
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
	/* Streams may still have something to send, such as why they end. New requests get a 503.
	 */
	server->connections.request = NULL;
	for (unsigned runs = 0; runs < LAST_RUNS; runs++) {
		resume_all(server);
		bc_mhd.MHD_run(server->mhd);
	}
	resume_all(server);
	uv_close((uv_handle_t *)&server->listening, on_closed);
	uv_close((uv_handle_t *)&server->poll, on_closed); /* before libmicrohttpd closes its fd */
	bc_mhd.MHD_stop_daemon(server->mhd);
	if (server->waiting_fd >= 0)
		close(server->waiting_fd);
	assert(server->connections.first == NULL);
	uv_close((uv_handle_t *)&server->timer, on_closed);
	uv_close((uv_handle_t *)&server->check, on_closed);
	uv_close((uv_handle_t *)&server->soon, on_closed);
}

/* Without MHD_USE_NO_THREAD_SAFETY, libmicrohttpd 1.0 adds a connection only in its next run, and
 * does not report an error if that fails. */
static struct MHD_Daemon *start_mhd(struct bc_server *server)
{
	const struct bc_server_options *options = &server->options;
	unsigned connections = options->connections_max + BC_SERVER_OWNER_CONNECTIONS +
			       BC_CONNECTIONS_REFUSED_MAX + CLOSING_MAX;

	return bc_mhd.MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET |
					       MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME |
					       MHD_USE_NO_THREAD_SAFETY,
		0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, ignore_log, NULL,
		MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_CONNECTION_TIMEOUT,
		options->timeout_s != 0 ? options->timeout_s : TIMEOUT_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
		MHD_OPTION_URI_LOG_CALLBACK, on_target, server, MHD_OPTION_NOTIFY_COMPLETED,
		on_completed, server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
		MHD_OPTION_END);
}

static int init_polls(struct bc_server *server, uv_loop_t *loop)
{
	const union MHD_DaemonInfo *info = bc_mhd.MHD_get_daemon_info(
		server->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	int rc = info != NULL ? uv_poll_init(loop, &server->poll, info->epoll_fd) : -EIO;

	if (rc != 0)
		return rc;
	server->poll.data = server;
	server->open_handles = 1;
	rc = uv_poll_init(loop, &server->listening, server->options.listen_fd);
	if (rc != 0) {
		uv_close((uv_handle_t *)&server->poll, on_closed); /* frees the server */
		return rc;
	}
	server->listening.data = server;
	return 0;
}

int bc_server_start(
	struct bc_server **result, uv_loop_t *loop, const struct bc_server_options *options)
{
	assert(options->connections_max >= 1 && options->connections_max <= CONNECTIONS_MAX);
	struct bc_server *server = calloc(1, sizeof(*server));

	if (server == NULL)
		return -ENOMEM;
	server->options = *options;
	server->waiting_fd = -1;
	server->connections = (struct bc_connections){
		.max = {[BC_CLASS_OTHER] = options->connections_max,
			[BC_CLASS_OWNER] = options->owner_max != 0 ? options->owner_max
								   : BC_SERVER_OWNER_CONNECTIONS},
		.long_bytes_max = options->long_bytes_max != 0 ? options->long_bytes_max
							       : BC_RESPONSE_LONG_BYTES,
		.server = server,
		.run_soon = run_soon,
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
		bc_mhd.MHD_stop_daemon(server->mhd);
		if (server->open_handles == 0)
			free(server);
		return rc;
	}
	uv_timer_init(loop, &server->timer);
	uv_timer_init(loop, &server->check);
	uv_idle_init(loop, &server->soon);
	server->timer.data = server;
	server->check.data = server;
	server->soon.data = server;
	server->open_handles = 5;
	uv_poll_start(&server->poll, UV_READABLE, on_poll);
	uv_poll_start(&server->listening, UV_READABLE, on_listening);
	*result = server;
	return 0;
}
