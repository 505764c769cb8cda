/* What the socket answers: each path and method is led to the recorder, the streams, the counts.
 * docs/api.md is the reference, docs/openapi.json the same for programs.
 *
 *     struct bc_api api = {...};
 *     struct bc_server_options options = {.context = &api, .request = bc_api_request, ...};
 */
#ifndef BC_DAEMON_API_API_H
#define BC_DAEMON_API_API_H

#include "daemon/api/api_call.h"

/* Answers a request, now or when what it asks for is done. */
void bc_api_request(void *api, struct bc_request *request);

/* The same for metrics_listen: /metrics, and nothing else. */
void bc_api_metrics_only(void *api, struct bc_request *request);

#endif
