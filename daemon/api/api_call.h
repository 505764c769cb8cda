/* The context of a request while the API handles it, and ways to respond. */
#ifndef BC_DAEMON_API_API_CALL_H
#define BC_DAEMON_API_API_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/api/event_broadcast.h"
#include "daemon/api/history.h"
#include "daemon/api/listing.h"
#include "daemon/api/page_sampler.h"
#include "daemon/api/tap.h"
#include "daemon/recorder/recorder.h"
#include "formats/http/server.h"

#define BC_JSON_TYPE "application/json"

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

struct bc_call {
	struct bc_api *api;
	struct bc_request *request;
	char name[256]; /* the variable part of the path, or empty */
	char err[512];  /* the message for bc_call_refuse() */
};

/* Responds with an object and takes ownership of it. NULL means out of memory and sends a 500.
 * `allow` is the Allow header of a 405, else NULL. */
void bc_call_respond_object(
	struct bc_request *request, unsigned status, json_t *object, const char *allow);

/* Responds with {"NAME": VALUE}; otherwise the same. */
void bc_call_respond(struct bc_request *request, unsigned status, const char *name, json_t *value);

/* Responds with {"error": MESSAGE}. */
void bc_call_error(
	struct bc_request *request, unsigned status, const char *message, const char *allow);

/* Responds with the error in call->err and the HTTP status for `refusal`. */
void bc_call_refuse(struct bc_call *call, enum bc_refusal refusal);

/* Returns whether the client has all of these permissions, a set of bc_permission_bit(). If not, it
 * has been sent a 403. */
bool bc_call_check_permissions(struct bc_call *call, uint32_t permissions);

/* The same for the triggers of a recording, which need their own permission. */
bool bc_call_may_arm(struct bc_call *call, unsigned triggers);

#endif
