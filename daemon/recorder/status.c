/* The status of the daemon as JSON, the rates and the forecast for the disk.
 *
 * bc_status_json() makes the values of all figures (formats/base/figures.h) in one array, and adds
 * them to the objects that their paths name. What a figure shows may not exist: a board, a
 * recording. Its value is then made from an empty object, and dropped because its object is null.
 *
 * The disk fills if the free space ends before the files have grown to the limit of the rules. Some
 * limits follow from the rules only; those in time also depend on the rate. */
#include "daemon/recorder/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "capture/usb/board.h"
#include "formats/base/figures.h"
#include "formats/base/json.h"
#include "formats/bus/chunk.h"
#include "formats/bus/record.h"
#include "formats/segment/segment_header.h"

/* Returns the bytes per second since the oldest poll known, a minute ago at most. */
static double growth(const struct bc_rate_meter *m, uint64_t bytes_out, uint64_t now_ns)
{
	unsigned oldest = m->polls < BC_RATE_SECONDS ? 0 : m->polls % BC_RATE_SECONDS;

	return (double)(bytes_out - m->minute[oldest].bytes_out) /
	       ((double)(now_ns - m->minute[oldest].ns) * 1e-9);
}

void bc_rates_poll(struct bc_rates *rates, struct bc_rate_meter *meter,
	const struct bc_counts *counts, const struct bc_writer_stats *stats, uint64_t now_ns)
{
	double seconds = (double)(now_ns - meter->polled_ns) * 1e-9;
	uint64_t written_bytes = (counts->written - meter->written) * BC_RECORD_BYTES;
	uint64_t buffered = counts->written + counts->in_flight;

	rates->is_known = true;
	rates->samples_per_s = (double)(counts->received - meter->received) / seconds;
	rates->records_per_s = (double)(int64_t)(buffered - meter->buffered) / seconds;
	rates->bytes_in_per_s = (double)written_bytes / seconds;
	rates->bytes_out_per_s = (double)(stats->bytes - meter->bytes_out) / seconds;
	meter->minute[meter->polls % BC_RATE_SECONDS].ns = meter->polled_ns;
	meter->minute[meter->polls % BC_RATE_SECONDS].bytes_out = meter->bytes_out;
	meter->polls++;
	rates->growth_per_s = growth(meter, stats->bytes, now_ns);
	meter->polled_ns = now_ns;
	meter->received = counts->received;
	meter->written = counts->written;
	meter->buffered = buffered;
	meter->bytes_out = stats->bytes;
}

static double seconds_of(uint64_t ns)
{
	return ns != 0 ? (double)ns * 1e-9 : INFINITY;
}

/* The largest total size that the rules allow, at most `limit_bytes` if that is known. */
static double most_bytes(const struct bc_status *s, uint64_t limit_bytes)
{
	const struct bc_rotation *rotation = &s->rotation;
	double segment_s = fmin(
		seconds_of(rotation->duration_ns), seconds_of(rotation->interval_ns));
	double most = limit_bytes != 0 ? (double)limit_bytes : INFINITY;

	if (rotation->files != 0)
		most = fmin(most, (double)rotation->files * segment_s * s->rates.growth_per_s);
	return fmin(most, seconds_of(s->space.max_age_ns) * s->rates.growth_per_s);
}

static void set_lower_limit(struct bc_space_forecast *f, uint64_t bytes)
{
	f->limit_bytes = f->limit_bytes == 0 || bytes < f->limit_bytes ? bytes : f->limit_bytes;
}

struct bc_space_forecast bc_status_space(const struct bc_status *s)
{
	const struct bc_rotation *rotation = &s->rotation;
	const struct bc_writer_stats *stats = s->stats;
	struct bc_space_forecast f = {
		.limit_segments = rotation->files, .seconds_left = UINT64_MAX};
	uint64_t keep = s->space.keep_free_bytes;
	uint64_t bytes;

	if (s->space.max_use_bytes != 0)
		set_lower_limit(&f, s->space.max_use_bytes);
	if (keep != 0 && stats->is_free_known)
		set_lower_limit(
			&f, stats->used_bytes +
				    (stats->free_bytes > keep ? stats->free_bytes - keep : 0));
	if (rotation->files != 0 && rotation->file_bytes != 0 &&
		!__builtin_mul_overflow(rotation->files, rotation->file_bytes, &bytes))
		set_lower_limit(&f, bytes);
	bool is_unknown = keep != 0 && !stats->is_checked; /* it depends on the free space */
	f.has_ring = f.limit_bytes != 0 || f.limit_segments != 0 || is_unknown;
	f.limit_bytes = is_unknown ? 0 : f.limit_bytes;
	if (s->rates.growth_per_s < 1 || !stats->is_free_known)
		return f;
	if (stats->has_no_inodes && keep == 0)
		f.seconds_left = 0; /* at the end of the open file */
	else if (most_bytes(s, f.limit_bytes) - (double)stats->used_bytes >
		 (double)stats->free_bytes)
		f.seconds_left = (uint64_t)((double)stats->free_bytes / s->rates.growth_per_s);
	return f;
}

struct bc_status_progress bc_status_progress(const struct bc_status *s)
{
	const struct bc_writer_stats *stats = s->stats;
	struct bc_status_progress progress = {.path = ""};

	if (s->recording == NULL || stats->recording_tag != s->recording->tag)
		return progress;
	progress.segment = stats->segment;
	progress.records = stats->recording_records;
	progress.bytes = stats->recording_bytes;
	if (stats->file[0] != '\0')
		snprintf(progress.path, sizeof(progress.path), "%s/%s%s", s->dir, stats->file,
			stats->is_open ? BC_PARTIAL_SUFFIX : "");
	return progress;
}

/* The JSON object */

static json_t *lost_json(const struct bc_losses *losses)
{
	struct bc_json_member members[BC_GAP_CAUSES] = {{NULL, NULL}};

	for (unsigned cause = 1; cause < BC_GAP_CAUSES; cause++)
		members[cause - 1] = (struct bc_json_member){
			bc_gap_cause_name(cause), bc_json_u64(losses->lost[cause])};
	return bc_json_object(members);
}

static json_t *dropped_json(const struct bc_counts *c)
{
	return bc_json_object((struct bc_json_member[]){
		{"buffer", bc_json_u64(c->dropped_buffer)},
		{"disk", bc_json_u64(c->dropped_disk)},
		{"invalid", bc_json_u64(c->dropped_invalid)},
		{"filtered", bc_json_u64(c->dropped_filtered)},
		{"idle", bc_json_u64(c->dropped_idle)},
		{NULL, NULL},
	});
}

static json_t *streams_json(const struct bc_status *s)
{
	return bc_json_object((struct bc_json_member[]){
		{"events", bc_json_u64(s->streams_events)},
		{"records", bc_json_u64(s->streams_records)},
		{NULL, NULL},
	});
}

/* How long a call took, or null before the first one. */
static json_t *call_json(uint64_t ns)
{
	return ns != 0 ? bc_json_double((double)ns * 1e-9) : json_null();
}

static const char *disk_error(const struct bc_status *s)
{
	return s->busy[0] != '\0' && !s->stats->is_stuck ? s->busy : s->stats->error;
}

static double tenths(double value)
{
	return (double)(uint64_t)(value * 10) / 10;
}

/* null: nothing is recorded. A full buffer is that even while nothing enters it. */
static json_t *buffer_left_json(const struct bc_status *s)
{
	double free_records = (double)s->buffer.records_left;

	if (s->recording == NULL || (free_records > 0 && s->rates.records_per_s < 1))
		return json_null();
	return bc_json_double(tenths(free_records / fmax(1, s->rates.records_per_s)));
}

static json_t *count_if(bool is_known, uint64_t value)
{
	return is_known ? bc_json_u64(value) : json_null();
}

static json_t *rate_json(const struct bc_status *s, double rate)
{
	return count_if(s->rates.is_known, (uint64_t)rate);
}

static json_t *object_if(bool is_present)
{
	return is_present ? json_object() : json_null();
}

/* In place of a value: the member is absent. Its reference count is jansson's for constants. */
static json_t absent = {JSON_NULL, (size_t)-1};

/* Before a board has been found, the members that identify it are absent. */
static json_t *if_plugged(const struct bc_board *b, json_t *value)
{
	if (b->identity.vid != 0)
		return value;
	json_decref(value);
	return &absent;
}

/* Adds a value to the object that its path names, and takes it. Returns false if out of memory. */
static bool add_figure(json_t *status, const char *path, json_t *value)
{
	const char *name = strrchr(path, '.');
	json_t *object = status;
	char parent[64];

	if (name != NULL) {
		snprintf(parent, sizeof(parent), "%.*s", (int)(name - path), path);
		object = bc_json_path(status, parent);
	}
	if (value != &absent && json_is_object(object))
		return json_object_set_new(object, name != NULL ? name + 1 : path, value) == 0;
	json_decref(value);
	return value != NULL;
}

#define VALUE_COUNT(value)                  bc_json_u64(value)
#define VALUE_COUNT_OR_NULL(value)          (value)
#define VALUE_COUNTS(value)                 (value)
#define VALUE_FLAG(value)                   json_boolean(value)
#define VALUE_OBJECT(value)                 json_object()
#define VALUE_OBJECT_OR_NULL(value)         object_if(value)
#define VALUE_SECONDS(value)                bc_json_double(value)
#define VALUE_SECONDS_OR_NULL(value)        (value)
#define VALUE_TEXT(value)                   bc_json_text(value)
#define VALUE_TEXT_OR_NULL(value)           bc_json_text_or_null(value)
#define VALUE_TEXTS(value)                  (value)
#define VALUE_TIME(value)                   bc_json_time_seconds(value)
#define VALUE_PLUGGED_COUNT(value)          if_plugged(b, bc_json_u64(value))
#define VALUE_PLUGGED_OBJECT_OR_NULL(value) if_plugged(b, object_if(value))
#define VALUE_PLUGGED_TEXT(value)           if_plugged(b, bc_json_text(value))
#define VALUE_PLUGGED_TEXT_OR_NULL(value)   if_plugged(b, bc_json_text_or_null(value))

json_t *bc_status_json(const struct bc_status *s)
{
	static const struct bc_board no_board;
	static const struct bc_recording_info no_recording;
	const struct bc_board *b = s->board != NULL ? s->board : &no_board;
	const struct bc_recording_info *r = s->recording != NULL ? s->recording : &no_recording;
	const struct bc_status_flight *f = &s->flight;
	const struct bc_counts *c = s->counts;
	const struct bc_writer_stats *w = s->stats;
	const struct bc_loss lost = bc_losses_sum(&c->losses);
	const struct bc_space_forecast space = bc_status_space(s);
	const struct bc_status_progress progress = bc_status_progress(s);
	char board_id[16];

	snprintf(board_id, sizeof(board_id), "%04x:%04x", b->identity.vid, b->identity.pid);
	json_t *values[] = {
#define FIGURE(name, type, value, ...) VALUE_##type(value),
#include "formats/base/figure_rows.h"
	};
	json_t *status = json_object();
	bool ok = status != NULL;

	for (size_t i = 0; i < bc_figures_count; i++)
		ok = add_figure(status, bc_figures[i].path, values[i]) && ok;
	if (ok)
		return status;
	json_decref(status);
	return NULL;
}

char *bc_status_write(const struct bc_status *s)
{
	json_t *root = bc_status_json(s);
	char *line = bc_json_print_line(root);

	json_decref(root);
	return line;
}
