#include "cli/diff/diff_origin.h"

#include <stdio.h>
#include <string.h>

#include "formats/base/json.h"
#include "formats/segment/metadata.h"
#include "formats/trace/filter_parse.h"

static void add_recordings(struct bc_diff_origin *o, const char *ids)
{
	size_t used = strlen(o->recordings);

	snprintf(o->recordings + used, sizeof(o->recordings) - used, "%s%s", used != 0 ? " " : "",
		ids);
}

/* Sets the filter from the options of a cut, "records=0-99 type=read". Ranges are left aside: what
 * they left out is in few pieces. */
static bool read_filter(struct bc_diff_origin *o)
{
	char words[sizeof(o->cut)];
	char err[128];
	size_t used = 0;

	for (const char *at = o->cut; *at != '\0'; at += strspn(at, " ")) {
		size_t n = strcspn(at, " ");
		if (strncmp(at, "addr=", 5) == 0 || strncmp(at, "type=", 5) == 0 ||
			strncmp(at, "proc=", 5) == 0) {
			memcpy(words + used, at, n);
			used += n;
			words[used++] = ' ';
		}
		at += n;
	}
	if (used == 0)
		return false;
	words[used - 1] = '\0';
	return bc_filter_parse(&o->filter, NULL, words, err, sizeof(err));
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
