/* The server's side of a request: libmicrohttpd delivers it piece by piece and sends its response.
 *
 * A request is freed when both libmicrohttpd (bc_request_completed()) and the receiver, which
 * responds to it, are done with it. While there is nothing to send, its connection is suspended and
 * costs no CPU time. */
#ifndef BC_DAEMON_HTTP_REQUEST_INTERNAL_H
#define BC_DAEMON_HTTP_REQUEST_INTERNAL_H

#include <microhttpd.h>

#include "daemon/http/connection.h"
#include "daemon/http/request.h"

/* libmicrohttpd's access handler. Called for the head of a request, for each piece of its body, at
 * its end, and again when it was resumed. */
enum MHD_Result bc_request_receive(struct bc_connection *connection, const char *path,
	const char *method, const char *body, size_t *body_bytes, void **request);

/* libmicrohttpd is done with the request. `request` may be NULL. */
void bc_request_completed(struct bc_request *request);

/* Whether the request is a stream whose connection is suspended. libmicrohttpd does not notice then
 * that the client disconnects. */
bool bc_request_is_suspended(const struct bc_request *request);

/* Ends such a stream: its client has disconnected. */
void bc_request_disconnected(struct bc_request *request);

/* Resumes the connection if it is suspended. libmicrohttpd can only be stopped when no connection
 * is suspended. */
void bc_request_resume(struct bc_request *request);

#endif
