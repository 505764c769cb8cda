#include "cli/report/report_text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/term/console.h"
#include "cli/term/humanize.h"
#include "formats/base/grow.h"
#include "formats/base/utf8.h"

#define SECOND UINT64_C(1000000000)

struct bc_report_axis bc_report_axis_make(int64_t from_ns, int64_t to_ns, unsigned ticks)
{
	static const struct {
		uint64_t ns;
		const char *name;
		uint64_t steps[10]; /* in units */
	} units[] = {
		{1, "ns", {1, 2, 5, 10, 20, 50, 100, 200, 500}},
		{1000, "us", {1, 2, 5, 10, 20, 50, 100, 200, 500}},
		{1000000, "ms", {1, 2, 5, 10, 20, 50, 100, 200, 500}},
		{SECOND, "s", {1, 2, 5, 10, 15, 30}},
		{60 * SECOND, "min", {1, 2, 5, 10, 15, 30}},
		{3600 * SECOND, "h", {1, 2, 3, 6, 12}},
		{86400 * SECOND, "d", {1, 2, 5, 10, 20, 50, 100, 200, 500}},
	};
	struct bc_report_axis axis = {
		.from_ns = from_ns, .span_ns = (uint64_t)to_ns - (uint64_t)from_ns};

	axis.span_ns += axis.span_ns == 0;
	for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
		axis.unit = units[u].name;
		axis.unit_ns = units[u].ns;
		for (size_t i = 0; units[u].steps[i] != 0; i++) {
			axis.step_ns = units[u].ns * units[u].steps[i];
			if (axis.span_ns / axis.step_ns <= ticks)
				return axis;
		}
	}
	axis.step_ns = (axis.span_ns / ticks / axis.unit_ns + 1) * axis.unit_ns;
	return axis;
}

double bc_report_axis_at(const struct bc_report_axis *axis, int64_t ns)
{
	double at = ((double)ns - (double)axis->from_ns) / (double)axis->span_ns;

	if (ns >= axis->from_ns) /* exact where doubles are not */
		at = (double)((uint64_t)ns - (uint64_t)axis->from_ns) / (double)axis->span_ns;
	return fmin(fmax(at, 0), 1);
}

const char *bc_report_title(char out[BC_REPORT_WORDS_MAX], const struct bc_report *r)
{
	uint32_t count;
	const struct bc_overview_recording *all = bc_overview_recordings(r->overview, &count);

	if (count == 0)
		snprintf(out, BC_REPORT_WORDS_MAX, "no recordings");
	else if (count == 1)
		snprintf(out, BC_REPORT_WORDS_MAX, "%s",
			all[0].id[0] != '\0' ? all[0].id : "a recording without a header");
	else
		snprintf(out, BC_REPORT_WORDS_MAX, "%" PRIu32 " recordings, %s to %s", count,
			all[0].id, all[count - 1].id);
	return out;
}

/* Whether the total loss in all `gaps` gaps is exact: each is listed, and its size is known. */
static bool is_exact(const struct bc_report_events *e, uint64_t gaps)
{
	uint64_t listed = 0;

	for (uint32_t i = 0; i < e->count; i++) {
		const struct bc_overview_event *event = &e->events[i].event;
		if (event->kind == BC_EVENT_GAP && !event->is_exact)
			return false;
		listed += event->kind == BC_EVENT_GAP;
	}
	return listed >= gaps;
}

/* "1,234 records", or "1,234 of 9,876 records" if only these are drawn. */
static void records_text(char out[64], const struct bc_report *r, uint64_t records)
{
	const struct bc_overview_picture *p = bc_overview_picture(r->overview);
	char all[BC_HUMANIZE_MAX];
	char some[BC_HUMANIZE_MAX];
	uint64_t drawn = 0;

	for (uint32_t i = 0; i < p->column_count; i++)
		drawn += p->columns[i].records;
	snprintf(out, 64, "%s%s%s record%s", drawn < records ? bc_humanize_count(some, drawn) : "",
		drawn < records ? " of " : "", bc_humanize_count(all, records), bc_plural(records));
}

const char *bc_report_facts(char out[BC_REPORT_WORDS_MAX], const struct bc_report *r,
	const struct bc_report_events *events)
{
	static const char *const states[] = {
		[BC_OVERVIEW_OPEN] = "without its end",
		[BC_OVERVIEW_RECOVERED] = "recovered",
		[BC_OVERVIEW_SEALED] = "sealed",
	};
	struct bc_overview_recording sum = {.records = 0};
	char records[64];
	char bytes[BC_HUMANIZE_MAX];
	char lost[BC_HUMANIZE_MAX];
	char gaps[BC_HUMANIZE_MAX];
	bool is_clock_unknown = false;
	uint32_t count;
	const struct bc_overview_recording *all = bc_overview_recordings(r->overview, &count);

	for (uint32_t i = 0; i < count; i++) {
		is_clock_unknown = is_clock_unknown || all[i].clock_hz == 0;
		sum.records += all[i].records;
		sum.bytes += all[i].bytes;
		sum.lost += all[i].lost;
		sum.gaps += all[i].gaps;
	}
	records_text(records, r, sum.records);
	snprintf(out, BC_REPORT_WORDS_MAX, "%s%s%s, %s, %s gap%s, %s%s sample%s lost%s",
		count == 1 ? states[all[0].state] : "", count == 1 ? ", " : "", records,
		bc_humanize_bytes(bytes, (double)sum.bytes), bc_humanize_count(gaps, sum.gaps),
		bc_plural(sum.gaps), is_exact(events, sum.gaps) ? "" : "at least ",
		bc_humanize_count(lost, sum.lost), bc_plural(sum.lost),
		is_clock_unknown ? ", clock unknown: arrival times" : "");
	return out;
}

const char *bc_report_addresses(
	char out[BC_REPORT_ADDRESSES_MAX], const struct bc_overview_row *row)
{
	uint32_t first = row->place - BC_PORT_0;

	if (row->place < BC_PORT_0)
		snprintf(out, BC_REPORT_ADDRESSES_MAX, "%08" PRIx64 "-%08" PRIx64,
			(uint64_t)row->place * BC_PAGE_BYTES,
			((uint64_t)row->place + row->count) * BC_PAGE_BYTES - 1);
	else if (row->count == 1)
		snprintf(out, BC_REPORT_ADDRESSES_MAX, "io %04" PRIx32, first);
	else
		snprintf(out, BC_REPORT_ADDRESSES_MAX, "io %04" PRIx32 "-%04" PRIx32, first,
			first + row->count - 1);
	return out;
}

static bool on_event(void *context, const struct bc_overview_event *event)
{
	struct bc_report_events *e = context;

	e->is_cut_off = e->count == e->max;
	if (e->is_cut_off)
		return false;
	struct bc_report_event *events = bc_grow(
		e->events, &e->capacity, e->count, sizeof(*events));
	e->is_no_memory = events == NULL;
	if (events == NULL)
		return false;
	e->events = events;
	struct bc_report_event *copy = &e->events[e->count++];
	copy->event = *event;
	copy->event.text = NULL;
	snprintf(copy->text, sizeof(copy->text), "%.*s", (int)event->text_bytes, event->text);
	if (event->text_bytes >= sizeof(copy->text))
		strcpy(copy->text + bc_utf8_fit(copy->text, sizeof(copy->text) - 4), "...");
	return true;
}

int bc_report_events_list(struct bc_report_events *e, struct bc_report *r)
{
	const struct bc_overview_picture *p = bc_overview_picture(r->overview);

	*e = (struct bc_report_events){.max = r->max_events};
	int rc = bc_overview_events(r->overview, p->from_ns, p->to_ns, on_event, e);
	return e->is_no_memory ? -ENOMEM : rc;
}

void bc_report_events_free(struct bc_report_events *e)
{
	free(e->events);
}

const char *bc_report_gap_text(char out[BC_GAP_TEXT_MAX], const struct bc_overview_event *gap)
{
	return bc_gap_text(out, &(struct bc_event){.cause = gap->cause,
					.exact = gap->is_exact,
					.value = gap->lost,
					.duration_ns = gap->duration_ns});
}
