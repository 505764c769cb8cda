#include "daemon/api/api_call.h"

#include <stdio.h>

#include "daemon/base/permissions.h"
#include "formats/base/json.h"

void bc_call_respond_object(
	struct bc_request *request, unsigned status, json_t *root, const char *allow)
{
	const char *const headers[] = {allow != NULL ? "Allow" : NULL, allow, NULL};
	char *line = bc_json_print_line(root);

	json_decref(root);
	bc_request_respond(request, status, BC_JSON_TYPE, line, headers);
}

void bc_call_respond(struct bc_request *request, unsigned status, const char *name, json_t *value)
{
	bc_call_respond_object(request, status, json_pack("{s:o}", name, value), NULL);
}

void bc_call_error(
	struct bc_request *request, unsigned status, const char *message, const char *allow)
{
	bc_call_respond_object(
		request, status, json_pack("{s:o}", "error", bc_json_text(message)), allow);
}

void bc_call_refuse(struct bc_call *call, enum bc_refusal refusal)
{
	static const unsigned statuses[] = {
		[BC_BAD_VALUE] = 400,
		[BC_NOT_FOUND] = 404,
		[BC_NOT_NOW] = 409,
		[BC_FAILED] = 500,
	};

	bc_call_error(call->request, statuses[refusal], call->err, NULL);
}

bool bc_call_check_permissions(struct bc_call *call, uint32_t permissions)
{
	uint32_t missing = permissions & call->api->reserved;
	enum bc_permission permission = 0;

	if (missing == 0 || bc_request_is_owner(call->request))
		return true;
	while ((missing & bc_permission_bit(permission)) == 0)
		permission++;
	snprintf(call->err, sizeof(call->err),
		"%s: reserved by the configuration for root and the user that buscapd runs as",
		bc_permission_name(permission));
	bc_call_error(call->request, 403, call->err, NULL);
	return false;
}

bool bc_call_may_arm(struct bc_call *call, unsigned triggers)
{
	return triggers == 0 ||
	       bc_call_check_permissions(call, bc_permission_bit(BC_PERMISSION_TRIGGER));
}
