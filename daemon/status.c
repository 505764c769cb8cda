#include "daemon/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture/board.h"
#include "formats/json.h"

const char *const bc_status_states[] = {
	"idle", "waiting", "recording", "replaying", "draining", "failed", NULL};
const char *const bc_status_modes[] = {"always", "on-demand", "flight", NULL};

static bool add_counters(cJSON *board, const struct bc_board *b)
{
	if (!b->has_counters)
		return cJSON_AddNullToObject(board, "counters") != NULL;
	cJSON *counters = cJSON_AddObjectToObject(board, "counters");
	return counters != NULL && bc_json_add_u64(counters, "samples", b->counters.samples) &&
	       bc_json_add_u64(counters, "lost", b->counters.lost) &&
	       bc_json_add_u64(counters, "fifo_high", b->counters.fifo_high);
}

static bool add_identity(cJSON *board, const struct bc_board *b)
{
	const struct bc_board_identity *id = &b->identity;
	char text[16];

	snprintf(text, sizeof(text), "%04x:%04x", id->vid, id->pid);
	return bc_json_add_text(board, "id", text) &&
	       bc_json_add_text(board, "serial", id->serial[0] != '\0' ? id->serial : NULL) &&
	       bc_json_add_text(board, "product", id->product[0] != '\0' ? id->product : NULL) &&
	       bc_json_add_text(board, "port", id->port) &&
	       bc_json_add_u64(board, "address", id->address) &&
	       bc_json_add_text(board, "speed", id->speed) &&
	       bc_json_add_u64(board, "endpoint", id->endpoint) &&
	       bc_json_add_u64(board, "packet_bytes", id->packet_bytes) &&
	       bc_json_add_u64(board, "transfers", b->transfers) &&
	       bc_json_add_u64(board, "transfer_bytes", b->transfer_bytes);
}

/* What the board said of itself; null where it didn't. */
static bool add_info(cJSON *board, const struct bc_board *b)
{
	if (!b->has_info)
		return cJSON_AddNullToObject(board, "info") != NULL;
	cJSON *info = cJSON_AddObjectToObject(board, "info");
	return info != NULL && bc_json_add_text(info, "firmware", b->firmware) &&
	       bc_json_add_text(info, "serial", b->own_serial) &&
	       bc_json_add_u64(info, "protocol_version", b->protocol_version) &&
	       bc_json_add_u64(info, "clock_hz", b->clock_hz) &&
	       bc_json_add_u64(info, "features", b->features) &&
	       bc_json_add_u64(info, "fifo_samples", b->fifo_samples);
}

static bool add_board(cJSON *source, const struct bc_board *b)
{
	if (b == NULL)
		return cJSON_AddNullToObject(source, "board") != NULL;
	cJSON *board = cJSON_AddObjectToObject(source, "board");
	return board != NULL && bc_json_add_text(board, "state", bc_board_state_name(b->state)) &&
	       (b->identity.vid == 0 || (add_identity(board, b) && add_info(board, b))) &&
	       add_counters(board, b) && bc_json_add_u64(board, "bytes", b->bytes) &&
	       bc_json_add_u64(board, "plugs", b->plugs) &&
	       bc_json_add_u64(board, "unplugs", b->unplugs) &&
	       bc_json_add_u64(board, "stalls", b->stalls) &&
	       bc_json_add_u64(board, "overflows", b->overflows) &&
	       bc_json_add_u64(board, "errors", b->errors) &&
	       bc_json_add_u64(board, "timeouts", b->timeouts) &&
	       bc_json_add_u64(board, "silences", b->silences) &&
	       bc_json_add_u64(board, "restarts", b->restarts) &&
	       bc_json_add_text(
		       board, "last_error", b->last_error[0] != '\0' ? b->last_error : NULL);
}

static bool add_source(cJSON *root, const struct bc_status *s)
{
	cJSON *source = cJSON_AddObjectToObject(root, "source");

	return source != NULL && bc_json_add_text(source, "kind", s->source_kind) &&
	       bc_json_add_text(source, "name", s->source_name) &&
	       bc_json_add_u64(source, "clock_hz", s->clock_hz) && add_board(source, s->board);
}

void bc_status_progress(const struct bc_status *s, struct bc_status_progress *progress)
{
	const struct bc_writer_report *report = s->report;

	memset(progress, 0, sizeof(*progress));
	if (report->recording_tag != s->recording->tag)
		return;
	progress->segment = report->segment;
	progress->records = report->recording_records;
	progress->bytes = report->recording_bytes;
	if (report->file[0] == '\0')
		return;
	snprintf(progress->path, sizeof(progress->path), "%s/%s%s", s->dir, report->file,
		report->is_open ? BC_PARTIAL_SUFFIX : "");
}

static bool add_recording(cJSON *root, const struct bc_status *s)
{
	const char *metadata = s->metadata != NULL && s->metadata[0] != '\0' ? s->metadata : "{}";
	char started[32];
	struct bc_status_progress progress;

	if (s->recording == NULL)
		return cJSON_AddNullToObject(root, "recording") != NULL;
	const struct bc_segment_header *header = &s->recording->header;
	time_t seconds = (time_t)(s->recording->started_ns / 1000000000);
	struct tm tm;
	gmtime_r(&seconds, &tm);
	strftime(started, sizeof(started), "%Y-%m-%dT%H:%M:%SZ", &tm);
	bc_status_progress(s, &progress);
	cJSON *recording = cJSON_AddObjectToObject(root, "recording");
	return recording != NULL && bc_json_add_text(recording, "id", header->recording) &&
	       bc_json_add_text(
		       recording, "label", header->label[0] != '\0' ? header->label : NULL) &&
	       bc_json_add_text(recording, "started", started) &&
	       bc_json_add_u64(recording, "segment", progress.segment) &&
	       bc_json_add_text(
		       recording, "path", progress.path[0] != '\0' ? progress.path : NULL) &&
	       bc_json_add_u64(recording, "records", progress.records) &&
	       bc_json_add_u64(recording, "bytes", progress.bytes) &&
	       cJSON_AddRawToObject(recording, "metadata", metadata) != NULL;
}

static bool add_counts(cJSON *root, const struct bc_status *s)
{
	const struct bc_counts *c = s->counts;
	cJSON *counts = cJSON_AddObjectToObject(root, "counts");

	if (counts == NULL || !bc_json_add_u64(counts, "received", c->received) ||
		!bc_json_add_u64(counts, "written", c->written) ||
		!bc_json_add_u64(counts, "durable", c->durable) ||
		!bc_json_add_u64(counts, "in_flight", c->in_flight))
		return false;
	cJSON *dropped = cJSON_AddObjectToObject(counts, "dropped");
	return dropped != NULL && bc_json_add_u64(dropped, "buffer", c->dropped_buffer) &&
	       bc_json_add_u64(dropped, "disk", c->dropped_disk) &&
	       bc_json_add_u64(dropped, "invalid", c->dropped_invalid) &&
	       bc_json_add_u64(dropped, "filtered", c->dropped_filtered) &&
	       bc_json_add_u64(dropped, "idle", c->dropped_idle) &&
	       bc_json_add_u64(counts, "board_lost", c->board_lost) &&
	       bc_json_add_u64(counts, "skipped_bytes", c->skipped_bytes) &&
	       bc_json_add_u64(counts, "gaps", c->gaps) &&
	       bc_json_add_u64(counts, "damages", s->damages) &&
	       bc_json_add_u64(counts, "unknown_special", c->unknown_special) &&
	       bc_json_add_u64(counts, "raw_dropped_bytes", c->raw_dropped_bytes);
}

static bool add_rates(cJSON *root, const struct bc_status *s)
{
	cJSON *rates = cJSON_AddObjectToObject(root, "rates");

	return rates != NULL &&
	       bc_json_add_u64(rates, "samples_per_s", (uint64_t)s->rates.samples_per_s) &&
	       bc_json_add_u64(rates, "bytes_in_per_s", (uint64_t)s->rates.bytes_in_per_s) &&
	       bc_json_add_u64(rates, "bytes_out_per_s", (uint64_t)s->rates.bytes_out_per_s);
}

static bool add_buffer(cJSON *root, const struct bc_status *s)
{
	cJSON *buffer = cJSON_AddObjectToObject(root, "buffer");

	return buffer != NULL && bc_json_add_u64(buffer, "chunks", s->buffer.chunks) &&
	       bc_json_add_u64(buffer, "free", s->buffer.free) &&
	       bc_json_add_u64(buffer, "low_water", s->buffer.low_water);
}

static double tenths(double value)
{
	return (double)(uint64_t)(value * 10) / 10;
}

bool bc_status_hours_left(const struct bc_status *s, double *hours)
{
	double out = s->rates.bytes_out_per_s;

	if (out < 1)
		return false;
	*hours = tenths((double)s->report->free_bytes / out / 3600);
	return true;
}

static bool add_disk(cJSON *root, const struct bc_status *s)
{
	const struct bc_writer_report *report = s->report;
	cJSON *disk = cJSON_AddObjectToObject(root, "disk");
	double hours;

	if (disk == NULL || !bc_json_add_u64(disk, "free_bytes", report->free_bytes))
		return false;
	cJSON *left = bc_status_hours_left(s, &hours)
			      ? cJSON_AddNumberToObject(disk, "hours_left", hours)
			      : cJSON_AddNullToObject(disk, "hours_left");
	return left != NULL && cJSON_AddBoolToObject(disk, "stuck", report->is_stuck) != NULL &&
	       bc_json_add_text(
		       disk, "last_error", report->error[0] != '\0' ? report->error : NULL);
}

static bool add_flight(cJSON *root, const struct bc_status *s)
{
	const struct bc_status_flight *f = s->flight;

	if (f == NULL)
		return cJSON_AddNullToObject(root, "flight") != NULL;
	cJSON *flight = cJSON_AddObjectToObject(root, "flight");
	return flight != NULL &&
	       cJSON_AddNumberToObject(flight, "seconds", tenths(f->seconds)) != NULL &&
	       bc_json_add_u64(flight, "bytes", f->bytes) &&
	       bc_json_add_u64(flight, "records", f->records) &&
	       bc_json_add_u64(flight, "chunks", f->chunks) &&
	       cJSON_AddNumberToObject(flight, "limit_seconds", f->limit_seconds) != NULL &&
	       bc_json_add_u64(flight, "limit_bytes", f->limit_bytes);
}

static bool add_replay(cJSON *root, const struct bc_status *s)
{
	if (s->replay_id == NULL)
		return cJSON_AddNullToObject(root, "replay") != NULL;
	cJSON *replay = cJSON_AddObjectToObject(root, "replay");
	return replay != NULL && bc_json_add_text(replay, "id", s->replay_id) &&
	       bc_json_add_text(replay, "path", s->replay_path);
}

static bool add_streams(cJSON *root, const struct bc_status *s)
{
	cJSON *streams = cJSON_AddObjectToObject(root, "streams");

	return streams != NULL && bc_json_add_u64(streams, "events", s->streams_events) &&
	       bc_json_add_u64(streams, "records", s->streams_records);
}

static bool add_sealed(cJSON *root, const struct bc_status *s)
{
	cJSON *sealed = cJSON_AddObjectToObject(root, "sealed");

	return sealed != NULL && bc_json_add_u64(sealed, "segments", s->sealed_segments) &&
	       bc_json_add_u64(sealed, "commands_waiting", s->commands_waiting) &&
	       bc_json_add_u64(sealed, "commands_failed", s->commands_failed) &&
	       bc_json_add_u64(sealed, "manifest_failed", s->report->manifest_failed);
}

cJSON *bc_status_json(const struct bc_status *s)
{
	cJSON *root = cJSON_CreateObject();

	if (root != NULL && bc_json_add_text(root, "version", BC_VERSION) &&
		bc_json_add_text(root, "state", s->state) &&
		bc_json_add_text(root, "mode", s->mode) && add_source(root, s) &&
		add_recording(root, s) && add_replay(root, s) && add_flight(root, s) &&
		add_counts(root, s) && add_rates(root, s) && add_buffer(root, s) &&
		add_disk(root, s) && add_sealed(root, s) &&
		bc_json_add_u64(root, "triggers", s->triggers) &&
		bc_json_add_u64(root, "clients", s->clients) && add_streams(root, s) &&
		cJSON_AddNumberToObject(root, "uptime_s", tenths(s->uptime_s)) != NULL)
		return root;
	cJSON_Delete(root);
	return NULL;
}

char *bc_status_write(const struct bc_status *s)
{
	char *line = NULL;
	cJSON *root = bc_status_json(s);
	char *text = root != NULL ? cJSON_PrintUnformatted(root) : NULL;

	if (text != NULL && asprintf(&line, "%s\n", text) < 0)
		line = NULL;
	cJSON_free(text);
	cJSON_Delete(root);
	return line;
}
