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

/* What is drawn. */
struct drawn {
	uint64_t records;
	uint64_t lost;
	uint64_t gaps;
	bool is_exact; /* `lost`: it is that of the gaps, and the size of each is known */
};

static struct drawn drawn_of(const struct bc_report *r, const struct bc_report_events *e)
{
	const struct bc_overview_picture *p = bc_overview_picture(r->overview);
	struct drawn drawn = {.is_exact = true};
	uint64_t known = 0;

	for (uint32_t i = 0; i < p->column_count; i++) {
		drawn.records += p->columns[i].records;
		drawn.lost += p->columns[i].lost;
	}
	for (uint32_t i = 0; i < e->count; i++) {
		const struct bc_overview_event *event = &e->events[i].event;
		if (event->kind != BC_EVENT_GAP)
			continue;
		drawn.gaps++;
		drawn.is_exact = drawn.is_exact && event->is_exact;
		known += event->lost;
	}
	drawn.is_exact = drawn.is_exact && !e->is_cut_off && known >= drawn.lost;
	return drawn;
}

/* "1,234 records", or "1,234 of 9,876 records" if only these are drawn. */
static void count_text(char out[64], uint64_t drawn, uint64_t all, const char *word)
{
	char some[BC_HUMANIZE_MAX];
	char whole[BC_HUMANIZE_MAX];

	snprintf(out, 64, "%s%s%s %s%s", drawn < all ? bc_humanize_count(some, drawn) : "",
		drawn < all ? " of " : "", bc_humanize_count(whole, all), word, bc_plural(all));
}

const char *bc_report_facts(char out[BC_REPORT_WORDS_MAX], const struct bc_report *r,
	const struct bc_report_events *events)
{
	static const char *const states[] = {
		[BC_OVERVIEW_OPEN] = "no end recorded",
		[BC_OVERVIEW_RECORDING] = "in progress",
		[BC_OVERVIEW_RECOVERED] = "recovered",
		[BC_OVERVIEW_SEALED] = "sealed",
	};
	struct bc_overview_recording sum = {.records = 0};
	char records[64];
	char bytes[BC_HUMANIZE_MAX];
	char number[BC_HUMANIZE_MAX];
	char lost[BC_HUMANIZE_MAX + 32] = "an unknown number of samples";
	char gaps[64];
	bool is_clock_unknown = false;
	struct drawn drawn = drawn_of(r, events);
	uint32_t count;
	const struct bc_overview_recording *all = bc_overview_recordings(r->overview, &count);

	for (uint32_t i = 0; i < count; i++) {
		is_clock_unknown = is_clock_unknown || all[i].clock_hz == 0;
		sum.records += all[i].records;
		sum.bytes += all[i].bytes;
		sum.gaps += all[i].gaps;
	}
	/* Of a whole recording, the number is known even if the list is cut off. */
	if (drawn.records == sum.records)
		drawn.gaps = sum.gaps;
	drawn.is_exact = drawn.is_exact || sum.gaps == 0;
	count_text(records, drawn.records, sum.records, "record");
	count_text(gaps, drawn.gaps, sum.gaps, "gap");
	if (drawn.lost != 0 || drawn.is_exact)
		snprintf(lost, sizeof(lost), "%s%s sample%s", drawn.is_exact ? "" : "at least ",
			bc_humanize_count(number, drawn.lost), bc_plural(drawn.lost));
	snprintf(out, BC_REPORT_WORDS_MAX, "%s%s%s, %s, %s%s, %s lost%s",
		count == 1 ? states[all[0].state] : "", count == 1 ? ", " : "", records,
		bc_humanize_bytes(bytes, (double)sum.bytes),
		drawn.gaps < sum.gaps && events->is_cut_off ? "at least " : "", gaps, lost,
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
