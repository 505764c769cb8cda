#include "cli/diff/diff_state.h"

#include <stdio.h>
#include <string.h>

#include "formats/base/json.h"
#include "formats/segment/segment_header.h"
#include "formats/trace/filter_parse.h"

static void add_recordings(struct bc_diff_origin *o, const char *ids)
{
	size_t used = strlen(o->recordings);

	snprintf(o->recordings + used, sizeof(o->recordings) - used, "%s%s", used != 0 ? " " : "",
		ids);
}

/* Narrows the addresses to those of another cut. What touches both of two ranges that overlap also
 * touches what they have in common. */
static void narrow_addr(struct bc_span *addr, struct bc_span by)
{
	if (by.first > addr->last || by.last < addr->first)
		return;
	addr->first = by.first > addr->first ? by.first : addr->first;
	addr->last = by.last < addr->last ? by.last : addr->last;
}

/* Adds a condition, "type=read", to a filter. Returns false if it selects by anything else. */
static bool add_condition(struct bc_filter *filter, const char *condition)
{
	static const struct {
		const char *name;
		bool (*parse)(struct bc_filter *, const char *, char *, size_t);
	} conditions[] = {{"addr=", bc_filter_parse_addr}, {"type=", bc_filter_parse_types},
		{"proc=", bc_filter_parse_procs}, {"port=", bc_filter_parse_port}};
	struct bc_span before = filter->addr;
	char err[256];

	for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++)
		if (strncmp(condition, conditions[i].name, 5) == 0 &&
			conditions[i].parse(filter, condition + 5, err, sizeof(err))) {
			narrow_addr(&filter->addr, before);
			return true;
		}
	return false;
}

/* Sets the filter from the options of a cut, "records=0-99 type=read". Ranges are left aside: what
 * they left out is in few pieces. Types and processors may be given in several options, and any of
 * them matches; so it does in a cut of a cut, whose options can't be told apart. */
static bool read_filter(struct bc_diff_origin *o)
{
	char words[sizeof(o->cut)];
	char *rest = words;
	char *word;
	bool has_filter = false;

	bc_filter_init(&o->filter);
	strcpy(words, o->cut);
	while ((word = strsep(&rest, " ")) != NULL)
		has_filter = add_condition(&o->filter, word) || has_filter;
	return has_filter;
}

void bc_diff_origin_read(struct bc_diff_origin *o, const struct bc_trace *trace)
{
	static const char *const sources[] = {"converted_from", "cut_from"};
	struct bc_segment_header header;

	memset(o, 0, sizeof(*o));
	if (!bc_trace_header(trace, &header))
		return;
	o->is_known = true;
	add_recordings(o, header.recording);
	json_t *metadata = bc_metadata_parse(header.metadata);
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		const char *ids = json_string_value(json_object_get(metadata, sources[i]));
		if (ids != NULL)
			add_recordings(o, ids);
	}
	const char *cut = json_string_value(json_object_get(metadata, "cut"));
	snprintf(o->cut, sizeof(o->cut), "%s", cut != NULL ? cut : "");
	o->has_filter = read_filter(o);
	json_decref(metadata);
}

/* Whether a word is among the words of a text. */
static bool has_word(const char *text, const char *word, size_t bytes)
{
	for (const char *at = text; *at != '\0'; at += strspn(at, " ")) {
		size_t n = strcspn(at, " ");
		if (n == bytes && memcmp(at, word, n) == 0)
			return true;
		at += n;
	}
	return false;
}

bool bc_diff_origin_is_shared(const struct bc_diff_origin *a, const struct bc_diff_origin *b)
{
	if (!a->is_known || !b->is_known)
		return false;
	for (const char *at = a->recordings; *at != '\0'; at += strspn(at, " ")) {
		size_t n = strcspn(at, " ");
		if (has_word(b->recordings, at, n))
			return true;
		at += n;
	}
	return false;
}
