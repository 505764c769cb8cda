#include "cli/web/web_query.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/fail.h"
#include "formats/base/number.h"
#include "formats/trace/filter_parse.h"

/* Records in one response: without a limit in the query, and at most. */
#define RECORDS     1000u
#define RECORDS_MAX 10000u
#define CONTEXT_MAX 1000u

const char *const bc_web_query_names[] = {"addr", "type", "proc", "port", "region", "records",
	"from", "to", "first", "last", "context", "count", NULL};

struct query {
	const struct bc_name_map *names;
	const char *(*value)(void *context, const char *name);
	void *context;
	char *err;
	size_t errlen;
};

/* Reads a number, if the query has it. */
static bool read_number(
	const struct query *q, const char *name, uint64_t min, uint64_t max, uint64_t *value)
{
	const char *text = q->value(q->context, name);

	if (text == NULL || (bc_number_read(value, text) && *value >= min && *value <= max))
		return true;
	snprintf(q->err, q->errlen, "%s=%.60s: must be %" PRIu64 " to %" PRIu64, name, text, min,
		max);
	return false;
}

static bool read_flag(const struct query *q, const char *name, bool *value)
{
	const char *text = q->value(q->context, name);

	*value = text != NULL && strcmp(text, "true") == 0;
	if (text == NULL || *value || strcmp(text, "false") == 0)
		return true;
	snprintf(q->err, q->errlen, "%s=%.60s: must be true or false", name, text);
	return false;
}

static bool read_numbers(const struct query *q, struct bc_span *span)
{
	const char *text = q->value(q->context, "records");

	if (text == NULL || (bc_number_read_range(&span->first, &span->last, text) &&
				    span->first <= span->last))
		return true;
	snprintf(q->err, q->errlen,
		"records=%.60s: must be a range of record numbers, such as 100-199", text);
	return false;
}

static bool read_condition(const struct query *q, const char *name, struct bc_filter *filter)
{
	const char *text = q->value(q->context, name);
	char time[64];
	char why[256];
	bool ok;

	if (text == NULL)
		return true;
	if (strcmp(name, "from") != 0 && strcmp(name, "to") != 0)
		return bc_filter_parse_condition(filter, q->names, name, text, q->err, q->errlen);
	/* In a query, "+" stands for a blank, which no time begins with. */
	if (text[0] == ' ' && strlen(text) < sizeof(time)) {
		snprintf(time, sizeof(time), "+%s", text + 1);
		text = time;
	}
	ok = name[0] == 'f' ? bc_filter_parse_from(filter, text, why, sizeof(why))
			    : bc_filter_parse_to(filter, text, why, sizeof(why));
	if (!ok)
		snprintf(q->err, q->errlen, "%s=%.60s: %s", name, text, why);
	return ok;
}

bool bc_web_query_read(struct bc_search_options *o, const struct bc_name_map *names,
	const char *(*value)(void *context, const char *name), void *context, char *err,
	size_t errlen)
{
	static const char *const conditions[] = {
		"addr", "type", "proc", "port", "region", "from", "to"};
	const struct query q = {names, value, context, err, errlen};

	*o = (struct bc_search_options){.first = 0};
	bc_filter_init(&o->filter);
	for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++)
		if (!read_condition(&q, conditions[i], &o->filter))
			return false;
	if (!read_numbers(&q, &o->filter.numbers) ||
		!read_number(&q, "first", 1, RECORDS_MAX, &o->first) ||
		!read_number(&q, "last", 1, RECORDS_MAX, &o->last) ||
		!read_number(&q, "context", 0, CONTEXT_MAX, &o->context) ||
		!read_flag(&q, "count", &o->is_count))
		return false;
	int modes = (o->first != 0) + (o->last != 0) + o->is_count;
	if (modes > 1 || (o->is_count && o->context != 0))
		return bc_fail(err, errlen, "%s",
			modes > 1 ? "first, last and count exclude each other"
				  : "count excludes context");
	if (modes == 0)
		o->first = RECORDS;
	return true;
}
