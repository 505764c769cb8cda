/* What the socket answers: each path and method is led to the recorder, the streams, the counts.
 * docs/api.md is the reference, docs/openapi.json the same for programs.
 *
 *     struct bc_api api = {...};
 *     struct bc_server_options options = {.context = &api, .request = bc_api_request, ...};
 */
#ifndef BC_DAEMON_API_H
#define BC_DAEMON_API_H

#include <stdint.h>

#include "daemon/bulletin.h"
#include "daemon/catalog.h"
#include "daemon/mix.h"
#include "daemon/recorder.h"
#include "daemon/request.h"
#include "daemon/tap.h"

/* All are the owner's, and outlast the server. */
struct bc_api {
	void *context;
	struct bc_status (*status)(void *context); /* the whole: recorder, server and streams */
	struct bc_recorder *recorder;
	struct bc_bulletin *bulletin;
	struct bc_taps *taps;
	struct bc_mix *mix;
	struct bc_catalog *catalog;
	uint32_t reserved; /* bits of enum bc_right: for the owner alone */
};

/* Answers a request, now or when what it asks for is done. */
void bc_api_request(void *api, struct bc_request *request);

/* The same for metrics_listen: /metrics, and nothing else. */
void bc_api_metrics_only(void *api, struct bc_request *request);

#endif
