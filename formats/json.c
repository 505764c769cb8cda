#include "formats/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/utf8.h"

bool bc_json_add_u64(cJSON *object, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return cJSON_AddRawToObject(object, name, text) != NULL;
}

bool bc_json_add_i64(cJSON *object, const char *name, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	return cJSON_AddRawToObject(object, name, text) != NULL;
}

bool bc_json_add_text(cJSON *object, const char *name, const char *text)
{
	if (text == NULL)
		return cJSON_AddNullToObject(object, name) != NULL;
	if (bc_utf8_is_valid(text, strlen(text)))
		return cJSON_AddStringToObject(object, name, text) != NULL;
	char *mended = bc_utf8_mend(text);
	bool is_added = mended != NULL && cJSON_AddStringToObject(object, name, mended) != NULL;
	free(mended);
	return is_added;
}

void bc_json_get_text(const cJSON *object, const char *name, char *out, size_t room)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

	snprintf(out, room, "%s", text != NULL ? text : "");
}

uint64_t bc_json_get_u64(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
	const double most = 9007199254740992.0;

	if (!cJSON_IsNumber(item) || !(item->valuedouble > 0))
		return 0;
	return (uint64_t)(item->valuedouble < most ? item->valuedouble : most);
}
