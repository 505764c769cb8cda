/* Which files there are, and the recordings that their segments make up. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/overview/overview_internal.h"

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Makes o->files those of the sorted names. */
static int set_files(struct bc_overview *o, char *const *names, uint32_t count)
{
	struct bc_overview_file **files = calloc((size_t)count + 1, sizeof(*files));
	uint32_t old = 0;
	uint32_t i = 0;

	if (files == NULL)
		return -ENOMEM;
	for (; i < count; i++) {
		for (; old < o->file_count && strcmp(o->files[old]->name, names[i]) < 0; old++) {
			bc_overview_empty_file(o, o->files[old]);
			bc_overview_free_file(o->files[old]);
		}
		bool is_known = old < o->file_count && strcmp(o->files[old]->name, names[i]) == 0;
		struct bc_overview_file *file = is_known ? o->files[old++]
							 : bc_overview_new_file(names[i]);
		if (file == NULL)
			break;
		files[i] = file;
	}
	for (; old < o->file_count; old++) {
		bc_overview_empty_file(o, o->files[old]);
		bc_overview_free_file(o->files[old]);
	}
	free(o->files);
	o->files = files;
	o->file_count = i;
	return i == count ? 0 : -ENOMEM;
}

/* ---- segments and recordings */

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_numbers(const struct bc_overview_segment *a, const struct bc_overview_segment *b)
{
	int order = compare_u64(a->number, b->number);

	return order != 0 ? order : (int)b->is_sealed - (int)a->is_sealed;
}

static int compare_tags(const void *x, const void *y)
{
	const struct bc_overview_segment *a = *(struct bc_overview_segment *const *)x;
	const struct bc_overview_segment *b = *(struct bc_overview_segment *const *)y;
	int order = compare_u64(a->tag, b->tag);

	return order != 0 ? order : compare_numbers(a, b);
}

/* By the first record of the recording, which `recording` has the tag's group of. */
static int compare_starts(const void *x, const void *y, void *context)
{
	const struct bc_overview_recording *recordings = context;
	const struct bc_overview_segment *a = *(struct bc_overview_segment *const *)x;
	const struct bc_overview_segment *b = *(struct bc_overview_segment *const *)y;
	int64_t from_a = recordings[a->recording].from_ns;
	int64_t from_b = recordings[b->recording].from_ns;

	if (from_a != from_b)
		return from_a < from_b ? -1 : 1;
	return compare_tags(x, y);
}

/* Collects the segments, each once. */
static int collect_segments(struct bc_overview *o)
{
	uint32_t count = 0;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < o->file_count; i++)
		count += o->files[i]->segment_count;
	free(o->segments);
	o->segment_count = 0;
	o->segments = calloc((size_t)count + 1, sizeof(*o->segments));
	if (o->segments == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < o->file_count; i++)
		for (uint32_t at = 0; at < o->files[i]->segment_count; at++)
			o->segments[o->segment_count++] = &o->files[i]->segments[at];
	qsort(o->segments, o->segment_count, sizeof(*o->segments), compare_tags);
	for (uint32_t i = 0; i < o->segment_count; i++) {
		struct bc_overview_segment *s = o->segments[i];
		if (kept == 0 || o->segments[kept - 1]->tag != s->tag ||
			o->segments[kept - 1]->number != s->number) {
			o->segments[kept++] = s;
			continue;
		}
		if (!s->file->is_repeated)
			o->io.fault(
				o->io.context, &(struct bc_search_fault){.kind = BC_SEARCH_REPEATED,
						       .file = s->file->name});
		s->file->is_repeated = true;
	}
	o->segment_count = kept;
	return 0;
}

static void add_to_recording(
	struct bc_overview_recording *r, struct bc_overview_segment *s, bool is_first)
{
	if (is_first)
		*r = (struct bc_overview_recording){
			.from_ns = s->from_ns, .to_ns = s->to_ns, .first_record = s->first_record};
	if (is_first || s->id[0] != '\0') {
		r->id = s->id;
		r->label = s->label;
		r->host = s->host;
		r->metadata = s->file->metadata != NULL ? s->file->metadata : "";
		r->clock_hz = s->clock_hz;
	}
	r->from_ns = s->from_ns < r->from_ns ? s->from_ns : r->from_ns;
	r->to_ns = s->to_ns > r->to_ns ? s->to_ns : r->to_ns;
	r->segments++;
	r->records += s->records;
	r->bytes += s->bytes;
	r->gaps += s->gaps;
	r->lost += s->lost_after > s->lost_base ? s->lost_after - s->lost_base : 0;
}

/* ---- segments that are missing */

static struct bc_segment_span span_of(const struct bc_overview_segment *s)
{
	return (struct bc_segment_span){.tag = s->tag,
		.segment = s->number,
		.is_read = true,
		.first = s->first_record,
		.next = s->next_record,
		.from_ns = s->from_ns,
		.to_ns = s->to_ns};
}

static int compare_spans(const void *x, const void *y)
{
	const struct bc_segment_span *a = x;
	const struct bc_segment_span *b = y;
	int order = compare_u64(a->tag, b->tag);

	return order != 0 ? order : compare_u64(a->segment, b->segment);
}

/* Lists, sorted, the segments in files that are named as such and can't be read, or were deleted
 * after they had been listed. Returns NULL if out of memory. */
static struct bc_segment_span *list_unread(const struct bc_overview *o, size_t *count)
{
	struct bc_segment_span *unread = calloc((size_t)o->file_count + 1, sizeof(*unread));
	struct bc_segment_name name;

	*count = 0;
	for (uint32_t i = 0; unread != NULL && i < o->file_count; i++)
		if (o->files[i]->segment_count == 0 && !o->files[i]->is_foreign &&
			bc_segment_name_read(&name, basename(o->files[i]->path)))
			unread[(*count)++] = (struct bc_segment_span){
				.tag = bc_recording_tag(name.recording), .segment = name.segment};
	if (unread != NULL)
		qsort(unread, *count, sizeof(*unread), compare_spans);
	return unread;
}

static void report_hole(struct bc_overview *o, const struct bc_overview_segment *s,
	const struct bc_segment_span *before, const struct bc_segment_span *after)
{
	struct bc_missing_segments missing;
	char what[BC_MISSING_TEXT];

	if (!bc_missing_between(&missing, before, after))
		return;
	o->recordings[s->recording].missing_segments += missing.count;
	o->recordings[s->recording].missing += missing.records;
	if (o->hole_count == BC_OVERVIEW_DAMAGES)
		return;
	o->holes[o->hole_count++] = (struct bc_overview_hole){
		.recording = s->recording, .file = s->file->name, .missing = missing};
	o->io.fault(o->io.context, &(struct bc_search_fault){.kind = BC_SEARCH_MISSING,
					   .file = s->file->name,
					   .what = bc_missing_write(what, &missing)});
}

/* Reports those that are not here between a segment and each one that can't be read up to number
 * `end`. Returns the last of these. */
static struct bc_segment_span pass_unread(struct bc_overview *o,
	const struct bc_overview_segment *s, struct bc_segment_span last, uint64_t end,
	const struct bc_segment_span *unread, size_t count)
{
	for (size_t u = 0; u < count; u++) {
		bool is_later = last.tag != s->tag || unread[u].segment > last.segment;
		if (unread[u].tag != s->tag || !is_later || unread[u].segment >= end)
			continue;
		report_hole(o, s, &last, &unread[u]);
		last = unread[u];
	}
	return last;
}

/* Reports the segments that are not here. How many records these had is unknown next to one that
 * can't be read. */
static int report_holes(struct bc_overview *o)
{
	size_t count;
	struct bc_segment_span *unread = list_unread(o, &count);

	o->hole_count = 0;
	for (uint32_t i = 0; unread != NULL && i < o->segment_count; i++) {
		const struct bc_overview_segment *s = o->segments[i];
		const struct bc_segment_span end = span_of(s);
		bool is_first = i == 0 || o->segments[i - 1]->tag != s->tag;
		struct bc_segment_span last = {.tag = ~s->tag};
		if (!is_first)
			last = span_of(o->segments[i - 1]);
		if (is_first || s->hole.count != 0)
			last = pass_unread(o, s, last, s->number, unread, count);
		report_hole(o, s, &last, &end);
		if (i + 1 == o->segment_count || o->segments[i + 1]->tag != s->tag)
			pass_unread(o, s, end, UINT64_MAX, unread, count);
	}
	free(unread);
	return unread != NULL ? 0 : -ENOMEM;
}

/* ---- */

/* Makes the recordings of the segments, which are sorted by tag or by recording. */
static void make_recordings(struct bc_overview *o)
{
	bool is_closed = true;

	o->recording_count = 0;
	for (uint32_t i = 0; i < o->segment_count; i++) {
		struct bc_overview_segment *s = o->segments[i];
		const struct bc_overview_segment *before = i != 0 ? o->segments[i - 1] : NULL;
		bool is_first = before == NULL || before->tag != s->tag;
		bool follows = !is_first && before->number + 1 == s->number;
		if (is_first)
			o->recording_count++;
		s->recording = o->recording_count - 1;
		s->lost_base = follows ? before->lost_after : s->lost_before;
		const struct bc_segment_span after = span_of(s);
		const struct bc_segment_span last = span_of(before != NULL ? before : s);
		bc_missing_between(&s->hole, &last, &after);
		struct bc_overview_recording *r = &o->recordings[s->recording];
		add_to_recording(r, s, is_first);
		is_closed = (is_first || is_closed) &&
			    (s->is_sealed || !bc_segment_path_is_partial(s->file->path));
		r->state = is_closed             ? s->end
			   : s->file->is_written ? BC_OVERVIEW_RECORDING
						 : BC_OVERVIEW_OPEN;
		bool is_later = is_closed && s->end != BC_OVERVIEW_OPEN && s->ended_ns > r->to_ns;
		r->ended_ns = is_later ? s->ended_ns : r->to_ns;
	}
}

static int link_segments(struct bc_overview *o)
{
	int rc = collect_segments(o);

	free(o->recordings);
	o->recording_count = 0;
	o->from_ns = o->to_ns = 0;
	o->recordings = calloc((size_t)o->segment_count + 1, sizeof(*o->recordings));
	if (rc != 0 || o->recordings == NULL) {
		o->segment_count = 0;
		return -ENOMEM;
	}
	make_recordings(o);
	qsort_r(o->segments, o->segment_count, sizeof(*o->segments), compare_starts, o->recordings);
	make_recordings(o);
	o->from_ns = o->recording_count != 0 ? INT64_MAX : 0;
	o->to_ns = o->recording_count != 0 ? INT64_MIN : 0;
	for (uint32_t i = 0; i < o->recording_count; i++) {
		const struct bc_overview_recording *r = &o->recordings[i];
		o->from_ns = r->from_ns < o->from_ns ? r->from_ns : o->from_ns;
		o->to_ns = r->to_ns > o->to_ns ? r->to_ns : o->to_ns;
	}
	return report_holes(o);
}

int bc_overview_update(struct bc_overview *o, char *const *paths, int count)
{
	char **names = calloc((size_t)count + 1, sizeof(*names));
	int rc = names != NULL ? 0 : -ENOMEM;

	bc_overview_close_file(o);
	bc_overview_clear(o);
	o->stop = 0;
	if (rc == 0) {
		if (count != 0) {
			memcpy(names, paths, (size_t)count * sizeof(*names));
			qsort(names, (size_t)count, sizeof(*names), compare_text);
		}
		rc = set_files(o, names, (uint32_t)count);
	}
	for (uint32_t i = 0; rc == 0 && i < o->file_count; i++)
		rc = bc_overview_update_file(o, o->files[i]);
	free(names);
	int linked = link_segments(o);
	return rc != 0 ? rc : linked;
}

/* ---- */

int bc_overview_open(struct bc_overview **overview, const struct bc_search_io *io)
{
	struct bc_overview *o = calloc(1, sizeof(*o));

	*overview = o;
	if (o == NULL)
		return -ENOMEM;
	o->io = *io;
	o->chunk = malloc(sizeof(*o->chunk));
	o->run = malloc(sizeof(*o->run));
	if (o->chunk != NULL && o->run != NULL)
		return 0;
	bc_overview_close(o);
	*overview = NULL;
	return -ENOMEM;
}

void bc_overview_close(struct bc_overview *o)
{
	if (o == NULL)
		return;
	bc_overview_close_file(o);
	bc_overview_clear(o);
	for (uint32_t i = 0; i < o->file_count; i++) {
		bc_overview_empty_file(o, o->files[i]);
		bc_overview_free_file(o->files[i]);
	}
	free(o->files);
	free(o->segments);
	free(o->recordings);
	free(o->chunk);
	free(o->run);
	free(o);
}

const struct bc_overview_recording *bc_overview_recordings(
	const struct bc_overview *o, uint32_t *count)
{
	*count = o->recording_count;
	return o->recordings;
}

int64_t bc_overview_from(const struct bc_overview *o)
{
	return o->from_ns;
}

int64_t bc_overview_to(const struct bc_overview *o)
{
	return o->to_ns;
}

const struct bc_overview_damage *bc_overview_damages(const struct bc_overview *o, uint32_t *count)
{
	*count = o->damage_count;
	return o->damages;
}

const struct bc_overview_hole *bc_overview_holes(const struct bc_overview *o, uint32_t *count)
{
	*count = o->hole_count;
	return o->holes;
}
