/* A request on its way to its answer. */
#ifndef BC_DAEMON_API_CALL_H
#define BC_DAEMON_API_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/api.h"
#include "daemon/recorder.h"
#include "daemon/request.h"

#define BC_JSON_TYPE "application/json"

struct bc_call {
	struct bc_api *api;
	struct bc_request *request;
	const char *name; /* the path's last part, where the route has it open; else NULL */
	char why[512];    /* a sentence, for bc_call_refuse() */
};

/* Answers, with an object that is taken; NULL is memory that ran out, and a 500. `allow` is for a
 * 405, else NULL. */
void bc_call_answer_object(
	struct bc_request *request, unsigned status, json_t *object, const char *allow);

/* The same with {"NAME": VALUE}. */
void bc_call_answer(struct bc_request *request, unsigned status, const char *name, json_t *value);

/* The same with {"error": SENTENCE}. */
void bc_call_error(
	struct bc_request *request, unsigned status, const char *sentence, const char *allow);

/* The same with the sentence in call->why, and the status that fits. */
void bc_call_refuse(struct bc_call *call, enum bc_refusal refusal);

/* Whether the client has these rights, bits of enum bc_right; else it has been answered. */
bool bc_call_may(struct bc_call *call, uint32_t rights);

#endif
