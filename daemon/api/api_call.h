/* A request on its way to its answer, and what the paths answer from. */
#ifndef BC_DAEMON_API_API_CALL_H
#define BC_DAEMON_API_API_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/api/catalog.h"
#include "daemon/http/request.h"
#include "daemon/live/event_broadcast.h"
#include "daemon/live/page_sampler.h"
#include "daemon/live/tap.h"
#include "daemon/recorder/recorder.h"

#define BC_JSON_TYPE "application/json"

/* All are the owner's, and outlast the server. */
struct bc_api {
	void *context;
	struct bc_status (*status)(void *context); /* the whole: recorder, server and streams */
	struct bc_recorder *recorder;
	struct bc_event_broadcast *bulletin;
	struct bc_taps *taps;
	struct bc_page_sampler *mix;
	struct bc_catalog *catalog;
	uint32_t reserved; /* bits of enum bc_permission: for the owner alone */
};

struct bc_call {
	struct bc_api *api;
	struct bc_request *request;
	const char *name; /* the path's last part, where the route has it open; else NULL */
	char err[512];    /* a sentence, for bc_call_refuse() */
};

/* Answers, with an object that is taken; NULL is memory that ran out, and a 500. `allow` is for a
 * 405, else NULL. */
void bc_call_respond_object(
	struct bc_request *request, unsigned status, json_t *object, const char *allow);

/* The same with {"NAME": VALUE}. */
void bc_call_respond(struct bc_request *request, unsigned status, const char *name, json_t *value);

/* The same with {"error": SENTENCE}. */
void bc_call_error(
	struct bc_request *request, unsigned status, const char *sentence, const char *allow);

/* The same with the sentence in call->why, and the status that fits. */
void bc_call_refuse(struct bc_call *call, enum bc_refusal refusal);

/* Whether the client has these rights, bits of enum bc_permission; else it has been answered. */
bool bc_call_check_permissions(struct bc_call *call, uint32_t rights);

#endif
