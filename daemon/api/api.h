/* The HTTP API: routes requests by method and path. docs/api.md is the reference, docs/openapi.json
 * its machine-readable form.
 *
 *     struct bc_api api = {...};
 *     struct bc_server_options options = {.context = &api, .request = bc_api_request, ...};
 */
#ifndef BC_DAEMON_API_API_H
#define BC_DAEMON_API_API_H

#include "daemon/api/api_call.h"

/* Responds to a request, immediately or when the operation is complete. `api` is a struct bc_api.
 */
void bc_api_request(void *api, struct bc_request *request);

/* The same for metrics_listen, which serves only /metrics. */
void bc_api_metrics_only(void *api, struct bc_request *request);

#endif
