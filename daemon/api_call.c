#include "daemon/api_call.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/rights.h"
#include "formats/json.h"

void bc_call_answer_object(
	struct bc_request *request, unsigned status, cJSON *root, const char *allow)
{
	char *printed = root != NULL ? cJSON_PrintUnformatted(root) : NULL;
	char *line = NULL;

	if (printed != NULL && asprintf(&line, "%s\n", printed) < 0)
		line = NULL;
	cJSON_free(printed);
	cJSON_Delete(root);
	bc_request_answer(request, status, BC_JSON_TYPE, line, allow);
}

void bc_call_answer(struct bc_request *request, unsigned status, const char *name, cJSON *value)
{
	cJSON *root = value != NULL ? cJSON_CreateObject() : NULL;

	if (root == NULL)
		cJSON_Delete(value);
	else
		cJSON_AddItemToObject(root, name, value);
	bc_call_answer_object(request, status, root, NULL);
}

void bc_call_error(
	struct bc_request *request, unsigned status, const char *sentence, const char *allow)
{
	cJSON *root = cJSON_CreateObject();

	if (root != NULL && !bc_json_add_text(root, "error", sentence)) {
		cJSON_Delete(root);
		root = NULL;
	}
	bc_call_answer_object(request, status, root, allow);
}

void bc_call_refuse(struct bc_call *call, enum bc_refusal refusal)
{
	static const unsigned statuses[] = {
		[BC_BAD_VALUE] = 400,
		[BC_NOT_FOUND] = 404,
		[BC_NOT_NOW] = 409,
		[BC_FAILED] = 500,
	};

	bc_call_error(call->request, statuses[refusal], call->why, NULL);
}

bool bc_call_may(struct bc_call *call, uint32_t rights)
{
	uint32_t lacking = rights & call->api->reserved;
	enum bc_right right = 0;

	if (lacking == 0 || bc_request_is_owner(call->request))
		return true;
	while ((lacking & bc_right_bit(right)) == 0)
		right++;
	snprintf(call->why, sizeof(call->why),
		"the configuration reserves this (%s) for root and the user that buscapd runs as",
		bc_right_name(right));
	bc_call_error(call->request, 403, call->why, NULL);
	return false;
}
