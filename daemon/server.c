#include "daemon/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECTIONS_MAX  256
#define IDLE_SECONDS     10
#define CONNECTION_BYTES 16384 /* of memory, and so of a request's headers */

struct bc_server {
	struct bc_server_options options;
	struct MHD_Daemon *mhd;
	uv_poll_t poll;
	uv_timer_t timer;
	unsigned open_handles;
};

/* Lets libmicrohttpd work, and come back when one of its time-outs is due. */
static void turn(struct bc_server *server);

static void on_timer(uv_timer_t *timer)
{
	turn(timer->data);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	turn(poll->data);
}

static void turn(struct bc_server *server)
{
	MHD_UNSIGNED_LONG_LONG due_ms;

	MHD_run(server->mhd);
	if (MHD_get_timeout(server->mhd, &due_ms) == MHD_YES)
		uv_timer_start(&server->timer, on_timer, due_ms, 0);
	else
		uv_timer_stop(&server->timer);
}

static enum MHD_Result answer(
	struct MHD_Connection *connection, unsigned status, char *json, const char *allow)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		strlen(json), json, MHD_RESPMEM_MUST_FREE);

	if (response == NULL) {
		free(json);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
	if (allow != NULL)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, allow);
	enum MHD_Result result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result answer_error(
	struct MHD_Connection *connection, unsigned status, const char *sentence, const char *allow)
{
	char *json = NULL;

	if (asprintf(&json, "{\"error\":\"%s\"}\n", sentence) < 0)
		return MHD_NO;
	return answer(connection, status, json, allow);
}

/* libmicrohttpd calls this when a request's headers are there, for its body, and at its end; it is
 * answered at the end. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *body, size_t *body_bytes,
	void **request)
{
	struct bc_server *server = context;

	(void)version;
	(void)body;
	if (*request == NULL) {
		*request = server; /* seen: any pointer but NULL */
		return MHD_YES;
	}
	if (*body_bytes != 0) {
		*body_bytes = 0;
		return MHD_YES;
	}
	if (strcmp(url, "/v1/status") != 0)
		return answer_error(connection, MHD_HTTP_NOT_FOUND,
			"there is nothing here; GET /v1/status tells how things stand", NULL);
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return answer_error(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
			"the status can only be read: use GET", "GET, HEAD");
	char *json = server->options.status(server->options.context);
	if (json == NULL)
		return MHD_NO;
	return answer(connection, MHD_HTTP_OK, json, NULL);
}

unsigned bc_server_clients(const struct bc_server *server)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(
		server->mhd, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

	return info != NULL ? info->num_connections : 0;
}

/* What libmicrohttpd says of its clients is theirs to know, not the log's. */
static void ignore_log(void *context, const char *format, va_list args)
{
	(void)context;
	(void)format;
	(void)args;
}

static void on_closed(uv_handle_t *handle)
{
	struct bc_server *server = handle->data;

	if (--server->open_handles == 0)
		free(server);
}

void bc_server_close(struct bc_server *server)
{
	if (server == NULL)
		return;
	uv_poll_stop(&server->poll);
	MHD_stop_daemon(server->mhd);
	uv_close((uv_handle_t *)&server->poll, on_closed);
	uv_close((uv_handle_t *)&server->timer, on_closed);
}

int bc_server_start(
	struct bc_server **result, uv_loop_t *loop, const struct bc_server_options *options)
{
	struct bc_server *server = calloc(1, sizeof(*server));

	if (server == NULL)
		return -ENOMEM;
	server->options = *options;
	/* It closes its listening socket when it stops; ours is removed with its lock. */
	int fd = dup(options->listen_fd);
	server->mhd = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request,
		server, MHD_OPTION_EXTERNAL_LOGGER, ignore_log, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_END);
	if (server->mhd == NULL) {
		close(fd);
		free(server);
		return -EIO;
	}
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(
		server->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	int rc = info != NULL ? uv_poll_init(loop, &server->poll, info->epoll_fd) : -EIO;
	if (rc != 0) {
		MHD_stop_daemon(server->mhd);
		free(server);
		return rc;
	}
	uv_timer_init(loop, &server->timer);
	server->poll.data = server;
	server->timer.data = server;
	server->open_handles = 2;
	uv_poll_start(&server->poll, UV_READABLE, on_poll);
	*result = server;
	return 0;
}
