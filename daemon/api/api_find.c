#include "daemon/api/api_find.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/rules.h"
#include "formats/trace/filter_parse.h"

/* Records in one response: without a limit in the query, and at most. */
#define RECORDS     1000u
#define RECORDS_MAX 10000u
#define CONTEXT_MAX 1000u

const char *const bc_find_query[] = {"addr", "type", "proc", "port", "region", "records", "from",
	"to", "first", "last", "context", "count", NULL};

/* Reads a number, if the query has it. */
static bool read_number(
	struct bc_call *call, const char *name, uint64_t min, uint64_t max, uint64_t *value)
{
	const char *text = bc_request_query(call->request, name);

	if (text == NULL || (bc_number_read(value, text) && *value >= min && *value <= max))
		return true;
	snprintf(call->err, sizeof(call->err), "%s=%.60s: must be %" PRIu64 " to %" PRIu64, name,
		text, min, max);
	return false;
}

static bool read_flag(struct bc_call *call, const char *name, bool *value)
{
	const char *text = bc_request_query(call->request, name);

	*value = text != NULL && strcmp(text, "true") == 0;
	if (text == NULL || *value || strcmp(text, "false") == 0)
		return true;
	snprintf(call->err, sizeof(call->err), "%s=%.60s: must be true or false", name, text);
	return false;
}

/* Reads "100-199", "100-", "-199" or "100". */
static bool read_numbers(struct bc_call *call, struct bc_span *span)
{
	const char *text = bc_request_query(call->request, "records");
	char first[24];

	if (text == NULL)
		return true;
	size_t n = strcspn(text, "-");
	const char *last = text[n] == '-' ? text + n + 1 : text;
	snprintf(first, sizeof(first), "%.*s", (int)(n < sizeof(first) ? n : 0), text);
	*span = (struct bc_span){0, UINT64_MAX};
	bool ok = (n != 0 || *last != '\0') && (n == 0 || bc_number_read(&span->first, first)) &&
		  (*last == '\0' || bc_number_read(&span->last, last));
	if (ok && span->first <= span->last)
		return true;
	snprintf(call->err, sizeof(call->err),
		"records=%.60s: must be a range of record numbers, such as 100-199", text);
	return false;
}

static bool read_condition(struct bc_call *call, const char *name, struct bc_filter *filter)
{
	const char *text = bc_request_query(call->request, name);
	char why[256];
	bool ok;

	if (text == NULL)
		return true;
	if (strcmp(name, "from") != 0 && strcmp(name, "to") != 0)
		return bc_filter_parse_condition(
			filter, call->api->names, name, text, call->err, sizeof(call->err));
	ok = name[0] == 'f' ? bc_filter_parse_from(filter, text, why, sizeof(why))
			    : bc_filter_parse_to(filter, text, why, sizeof(why));
	if (!ok)
		snprintf(call->err, sizeof(call->err), "%s=%.60s: %s", name, text, why);
	return ok;
}

static bool read_options(struct bc_call *call, struct bc_search_options *o)
{
	static const char *const conditions[] = {
		"addr", "type", "proc", "port", "region", "from", "to"};

	bc_filter_init(&o->filter);
	for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++)
		if (!read_condition(call, conditions[i], &o->filter))
			return false;
	if (!read_numbers(call, &o->filter.numbers) ||
		!read_number(call, "first", 1, RECORDS_MAX, &o->first) ||
		!read_number(call, "last", 1, RECORDS_MAX, &o->last) ||
		!read_number(call, "context", 0, CONTEXT_MAX, &o->context) ||
		!read_flag(call, "count", &o->is_count))
		return false;
	int modes = (o->first != 0) + (o->last != 0) + o->is_count;
	if (modes > 1 || (o->is_count && o->context != 0)) {
		snprintf(call->err, sizeof(call->err), "%s",
			modes > 1 ? "first, last and count exclude each other"
				  : "count excludes context");
		return false;
	}
	if (modes == 0)
		o->first = RECORDS;
	return true;
}

static void respond(struct bc_call *call, const char *recording)
{
	struct bc_searcher_request *search = calloc(1, sizeof(*search));
	int rc = search != NULL && call->api->searcher != NULL ? 0 : -ENOMEM;

	if (rc == 0 && !read_options(call, &search->options)) {
		bc_call_refuse(call, BC_BAD_VALUE);
		free(search);
		return;
	}
	if (rc == 0) {
		snprintf(search->recording, sizeof(search->recording), "%s", recording);
		rc = bc_searcher_add(call->api->searcher, call->request, search);
	}
	free(search);
	if (rc == -EBUSY)
		bc_call_error(call->request, 503,
			"too many searches: the limit is 8, or 6 other than the owner; try again "
			"later",
			NULL);
	else if (rc != 0)
		bc_call_respond_object(call->request, 500, NULL, NULL);
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
