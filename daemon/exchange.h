/* A request as libmicrohttpd brings it, piece by piece, and its answer as libmicrohttpd takes it:
 * the inside of daemon/request.h, between it and daemon/server.
 *
 * A request is freed when both are done with it: libmicrohttpd (bc_exchange_completed()) and
 * whoever answers. While nothing is there to be sent its connection is suspended, which costs
 * nothing. */
#ifndef BC_DAEMON_EXCHANGE_H
#define BC_DAEMON_EXCHANGE_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

#include "daemon/connection.h"
#include "daemon/request.h"
#include "daemon/server.h"

struct bc_request {
	struct bc_server *server;
	struct bc_connection *connection; /* NULL: libmicrohttpd is done with the request */
	const char *method;
	const char *path;
	char *body;
	size_t body_bytes;
	size_t body_room;
	size_t discarded_bytes;
	unsigned refusal; /* the status of the server's own answer, once all has come; 0: none */
	bool is_handed_on;
	bool is_answered; /* by whom it was handed to */
	bool is_suspended;
	unsigned status;
	struct MHD_Response *response; /* NULL although it is answered: memory ran out */
	struct bc_push *push;          /* NULL: no stream */
};

struct bc_push {
	struct bc_request *request;    /* NULL: libmicrohttpd is done with it */
	const struct bc_push_ops *ops; /* NULL: it never began */
	void *context;
	bool has_gone; /* the client */
};

/* What libmicrohttpd calls for a request: with its head, with each piece of its body, at its end,
 * and once more when it was resumed. Without options->request it is told that we stop. Returns what
 * libmicrohttpd wants to hear. */
enum MHD_Result bc_exchange_part(const struct bc_server_options *options, struct bc_server *server,
	struct bc_connection *connection, const char *path, const char *method, const char *body,
	size_t *body_bytes, void **request);

/* libmicrohttpd is done with the request. NULL is none. */
void bc_exchange_completed(struct bc_request *request);

/* Whether its answer is being sent, and is no stream. */
bool bc_exchange_is_sending(const struct bc_request *request);

/* Whether it is a stream that waits for data. */
bool bc_exchange_is_waiting_stream(const struct bc_request *request);

/* The client of a stream has gone: the stream is ended. */
void bc_exchange_end_stream(struct bc_request *request);

/* Resumes the connection if it is suspended: libmicrohttpd can't be stopped else. */
void bc_exchange_resume(struct bc_request *request);

#endif
