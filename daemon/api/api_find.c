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

static void respond(struct bc_call *call, const char *recording)
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
	respond(call, "");
}

void bc_api_get_records(struct bc_call *call)
{
	if (strlen(call->name) < BC_RECORDING_ID_MAX)
		respond(call, call->name);
	else
		bc_call_error(call->request, 404, "no such recording", NULL);
}
