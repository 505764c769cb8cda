/* What the server calls for a request that libmicrohttpd brings piece by piece, and whose answer it
 * takes.
 *
 * A request is freed when both are done with it: libmicrohttpd (bc_request_completed()) and its
 * receiver, who answers it. While there is nothing to send its connection is suspended, which costs
 * nothing. */
#ifndef BC_DAEMON_HTTP_REQUEST_INTERNAL_H
#define BC_DAEMON_HTTP_REQUEST_INTERNAL_H

#include <microhttpd.h>

#include "daemon/http/connection.h"
#include "daemon/http/request.h"

/* To be called for a request's head, for each piece of its body, at its end, and once more when it
 * was resumed. Returns what libmicrohttpd wants to hear. */
enum MHD_Result bc_request_part(struct bc_connection *connection, const char *path,
	const char *method, const char *body, size_t *body_bytes, void **request);

/* libmicrohttpd is done with the request. NULL is none. */
void bc_request_completed(struct bc_request *request);

/* Whether it is a stream that waits for data. */
bool bc_request_is_waiting_stream(const struct bc_request *request);

/* The client of a stream has gone: ends the stream. */
void bc_request_end_stream(struct bc_request *request);

/* Resumes the connection if it is suspended: libmicrohttpd can't be stopped before. */
void bc_request_resume(struct bc_request *request);

#endif
