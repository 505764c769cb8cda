#include "daemon/api/api_find.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/search/search_query.h"

static const char *value_of(void *context, const char *name)
{
	return bc_request_query(context, name);
}

/* `is_known`: the recorder knows the recording, which may have no file yet. */
static void respond(struct bc_call *call, const char *recording, bool is_known)
{
	struct bc_searcher_request *search = calloc(1, sizeof(*search));
	int rc = search != NULL && call->api->searcher != NULL ? 0 : -ENOMEM;

	if (rc == 0 && !bc_search_query_read(&search->options, call->api->names, value_of,
			       call->request, call->err, sizeof(call->err))) {
		bc_call_refuse(call, BC_BAD_VALUE);
		free(search);
		return;
	}
	if (rc == 0) {
		snprintf(search->recording, sizeof(search->recording), "%s", recording);
		search->is_known = is_known;
		rc = bc_searcher_add(call->api->searcher, call->request, search);
	}
	free(search);
	if (rc == -EBUSY) {
		snprintf(call->err, sizeof(call->err),
			"too many searches: the limit is %u, or %u other than the owner; try again "
			"later",
			BC_SEARCHES_MAX, BC_SEARCHES_OTHERS);
		bc_call_error(call->request, 503, call->err, NULL);
	} else if (rc != 0) {
		bc_call_respond_object(call->request, 500, NULL, NULL);
	}
}

void bc_api_find(struct bc_call *call)
{
	respond(call, "", false);
}

void bc_api_get_records(struct bc_call *call)
{
	struct bc_recorder *recorder = call->api->recorder;
	bool is_current = strcmp(call->name, "current") == 0;
	json_t *known = is_current ? bc_recorder_recording_json(recorder)
				   : bc_recorder_known_json(recorder, call->name);
	const char *id = is_current ? json_string_value(json_object_get(known, "id")) : call->name;

	if (id != NULL && strlen(id) < BC_RECORDING_ID_MAX)
		respond(call, id, known != NULL);
	else
		bc_call_error(call->request, 404,
			is_current ? "nothing is being recorded" : "no such recording", NULL);
	json_decref(known);
}
