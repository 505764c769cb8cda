#include "formats/segment/missing_segments.h"

#include <inttypes.h>
#include <stdio.h>

#include "formats/base/text.h"

bool bc_missing_between(struct bc_missing_segments *missing, const struct bc_segment_span *before,
	const struct bc_segment_span *after)
{
	*missing = (struct bc_missing_segments){.count = 0};
	if (before->tag != after->tag || after->segment <= before->segment)
		return false;
	missing->first = before->segment + 1;
	missing->count = after->segment - missing->first;
	if (missing->count == 0 || !before->is_read || !after->is_read)
		return missing->count != 0;
	missing->from = before->next;
	missing->records = after->first > before->next ? after->first - before->next : 0;
	missing->from_ns = before->to_ns;
	missing->to_ns = after->from_ns > before->to_ns ? after->from_ns : before->to_ns;
	return missing->count != 0;
}

const char *bc_missing_write(char out[BC_MISSING_TEXT], const struct bc_missing_segments *m)
{
	char number[BC_GROUPED_MAX];
	int n = 0;

	out[0] = '\0';
	if (m->records != 0)
		n = snprintf(out, BC_MISSING_TEXT, "%s record%s missing",
			bc_number_group(number, m->records), bc_plural(m->records));
	if (m->count == 0)
		snprintf(out + n, BC_MISSING_TEXT - (size_t)n, " from record %" PRIu64 " on",
			m->from);
	else if (m->count == 1)
		snprintf(out + n, BC_MISSING_TEXT - (size_t)n, "%ssegment %" PRIu32 " is not here",
			n != 0 ? ": " : "", m->first);
	else
		snprintf(out + n, BC_MISSING_TEXT - (size_t)n,
			"%ssegments %" PRIu32 " to %" PRIu32 " are not here", n != 0 ? ": " : "",
			m->first, m->first + m->count - 1);
	return out;
}
