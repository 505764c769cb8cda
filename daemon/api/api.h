/* The HTTP API: routes requests by method and path. docs/api.md is the reference, docs/openapi.json
 * its machine-readable form.
 *
 *     struct bc_api api = {...};
 *     struct bc_server_options options = {.context = &api, .request = bc_api_request, ...}; */
#ifndef BC_DAEMON_API_API_H
#define BC_DAEMON_API_API_H

#include <stdint.h>

#include "daemon/api/event_broadcast.h"
#include "daemon/api/history.h"
#include "daemon/api/listing.h"
#include "daemon/api/page_sampler.h"
#include "daemon/api/tap.h"
#include "daemon/recorder/recorder.h"
#include "formats/http/server.h"

/* All objects belong to the caller and must outlive the server. */
struct bc_api {
	void *context;
	struct bc_status (*status)(void *context); /* of recorder, server and streams */
	struct bc_recorder *recorder;
	struct bc_event_broadcast *broadcast;
	struct bc_taps *taps;
	struct bc_page_sampler *sampler;
	struct bc_history *history;
	struct bc_listing *listing;
	const struct bc_name_map *names; /* for regions in filters and triggers */
	uint32_t reserved;               /* for the owner: a set of bc_permission_bit() */
};

/* Responds to a request, at once or when the operation is complete. `api` is a struct bc_api. */
void bc_api_request(void *api, struct bc_request *request);

/* The same for metrics_listen, which serves only /metrics. */
void bc_api_metrics_only(void *api, struct bc_request *request);

#endif
