#include "daemon/recorder/status.h"

#include <stdio.h>
#include <string.h>

#include "capture/usb/board.h"
#include "daemon/recorder/space_forecast.h"
#include "formats/base/json.h"
#include "formats/segment/metadata.h"

const char *const bc_status_states[] = {
	"idle", "waiting", "recording", "replaying", "draining", "failed", NULL};
const char *const bc_status_modes[] = {"always", "on-demand", "flight", NULL};

static json_t *counters_json(const struct bc_board *b)
{
	if (!b->has_counters)
		return json_null();
	return bc_json_object((struct bc_json_member[]){
		{"samples", bc_json_u64(b->counters.samples)},
		{"lost_samples", bc_json_u64(b->counters.lost)},
		{"fifo_peak_samples", bc_json_u64(b->counters.fifo_high)},
		{NULL, NULL},
	});
}

/* What the board reports about itself; null if it does not. */
static json_t *info_json(const struct bc_board *b)
{
	if (!b->has_info)
		return json_null();
	return bc_json_object((struct bc_json_member[]){
		{"firmware", bc_json_text(b->firmware)},
		{"serial", bc_json_text(b->own_serial)},
		{"protocol_version", bc_json_u64(b->protocol_version)},
		{"clock_hz", bc_json_u64(b->clock_hz)},
		{"features", bc_json_u64(b->features)},
		{"fifo_samples", bc_json_u64(b->fifo_samples)},
		{NULL, NULL},
	});
}

/* Empty until the board has been found. */
static json_t *identity_json(const struct bc_board *b)
{
	const struct bc_board_identity *id = &b->identity;
	char text[16];

	if (id->vid == 0)
		return json_object();
	snprintf(text, sizeof(text), "%04x:%04x", id->vid, id->pid);
	return bc_json_object((struct bc_json_member[]){
		{"id", bc_json_text(text)},
		{"serial", bc_json_text_or_null(id->serial)},
		{"product", bc_json_text_or_null(id->product)},
		{"port", bc_json_text(id->port)},
		{"address", bc_json_u64(id->address)},
		{"speed", bc_json_text(id->speed)},
		{"endpoint", bc_json_u64(id->endpoint)},
		{"packet_bytes", bc_json_u64(id->packet_bytes)},
		{"transfers", bc_json_u64(b->transfers)},
		{"transfer_bytes", bc_json_u64(b->transfer_bytes)},
		{"info", info_json(b)},
		{NULL, NULL},
	});
}

static json_t *board_json(const struct bc_board *b)
{
	if (b == NULL)
		return json_null();
	json_t *board = json_pack("{s:s}", "state", bc_board_state_name(b->state));
	json_t *counts = bc_json_object((struct bc_json_member[]){
		{"counters", counters_json(b)},
		{"received_bytes", bc_json_u64(b->bytes)},
		{"plugs", bc_json_u64(b->plugs)},
		{"unplugs", bc_json_u64(b->unplugs)},
		{"stalls", bc_json_u64(b->stalls)},
		{"overflows", bc_json_u64(b->overflows)},
		{"errors", bc_json_u64(b->errors)},
		{"timeouts", bc_json_u64(b->timeouts)},
		{"silences", bc_json_u64(b->silences)},
		{"restarts", bc_json_u64(b->restarts)},
		{"last_error", bc_json_text_or_null(b->last_error)},
		{NULL, NULL},
	});
	bool has_identity = json_object_update_new(board, identity_json(b)) == 0;
	if (json_object_update_new(board, counts) == 0 && has_identity)
		return board;
	json_decref(board);
	return NULL;
}

static json_t *source_json(const struct bc_status *s)
{
	return bc_json_object((struct bc_json_member[]){
		{"kind", bc_json_text(s->source_kind)},
		{"name", bc_json_text(s->source_name)},
		{"clock_hz", bc_json_u64(s->clock_hz)},
		{"board", board_json(s->board)},
		{NULL, NULL},
	});
}

void bc_status_progress(const struct bc_status *s, struct bc_status_progress *progress)
{
	const struct bc_writer_stats *stats = s->stats;

	memset(progress, 0, sizeof(*progress));
	if (stats->recording_tag != s->recording->tag)
		return;
	progress->segment = stats->segment;
	progress->records = stats->recording_records;
	progress->bytes = stats->recording_bytes;
	if (stats->file[0] == '\0')
		return;
	snprintf(progress->path, sizeof(progress->path), "%s/%s%s", s->dir, stats->file,
		stats->is_open ? BC_PARTIAL_SUFFIX : "");
}

static json_t *recording_json(const struct bc_status *s)
{
	struct bc_status_progress progress;

	if (s->recording == NULL)
		return json_null();
	const struct bc_segment_header *header = &s->recording->header;
	bc_status_progress(s, &progress);
	return bc_json_object((struct bc_json_member[]){
		{"id", bc_json_text(header->recording)},
		{"label", bc_json_text_or_null(header->label)},
		{"started", bc_json_time_seconds(s->recording->started_ns)},
		{"segment", bc_json_u64(progress.segment)},
		{"path", bc_json_text_or_null(progress.path)},
		{"records", bc_json_u64(progress.records)},
		{"bytes", bc_json_u64(progress.bytes)},
		{"metadata", bc_metadata_parse(header->metadata)},
		{NULL, NULL},
	});
}

/* Samples lost, by cause. */
static json_t *lost_json(const struct bc_losses *losses)
{
	json_t *object = json_object();
	int rc = 0;

	for (unsigned cause = 1; cause < BC_GAP_CAUSES; cause++)
		rc |= json_object_set_new(
			object, bc_gap_cause_name(cause), bc_json_u64(losses->lost[cause]));
	if (rc == 0)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *counts_json(const struct bc_status *s)
{
	const struct bc_counts *c = s->counts;
	const struct bc_loss_sum lost = bc_losses_sum(&c->losses);
	json_t *dropped = bc_json_object((struct bc_json_member[]){
		{"buffer", bc_json_u64(c->dropped_buffer)},
		{"disk", bc_json_u64(c->dropped_disk)},
		{"invalid", bc_json_u64(c->dropped_invalid)},
		{"filtered", bc_json_u64(c->dropped_filtered)},
		{"idle", bc_json_u64(c->dropped_idle)},
		{NULL, NULL},
	});

	return bc_json_object((struct bc_json_member[]){
		{"received", bc_json_u64(c->received)},
		{"written", bc_json_u64(c->written)},
		{"durable", bc_json_u64(c->durable)},
		{"in_flight", bc_json_u64(c->in_flight)},
		{"dropped", dropped},
		{"lost", lost_json(&c->losses)},
		{"gaps", bc_json_u64(lost.gaps)},
		{"inexact_gaps", bc_json_u64(lost.inexact)},
		{"skipped_bytes", bc_json_u64(c->skipped_bytes)},
		{"damaged_places", bc_json_u64(s->damages)},
		{"unknown_special_cycles", bc_json_u64(c->unknown_special)},
		{"deleted_records", bc_json_u64(c->deleted_records)},
		{NULL, NULL},
	});
}

static json_t *rates_json(const struct bc_status *s)
{
	return bc_json_object((struct bc_json_member[]){
		{"samples_per_second", bc_json_u64((uint64_t)s->rates.samples_per_s)},
		{"record_bytes_per_second", bc_json_u64((uint64_t)s->rates.bytes_in_per_s)},
		{"written_bytes_per_second", bc_json_u64((uint64_t)s->rates.bytes_out_per_s)},
		{NULL, NULL},
	});
}

static json_t *buffer_json(const struct bc_status *s)
{
	return bc_json_object((struct bc_json_member[]){
		{"chunks", bc_json_u64(s->buffer.chunks)},
		{"free_chunks", bc_json_u64(s->buffer.free)},
		{"min_free_chunks", bc_json_u64(s->buffer.min_free)},
		{NULL, NULL},
	});
}

static double tenths(double value)
{
	return (double)(uint64_t)(value * 10) / 10;
}

/* What the rules and the growth of the last minute mean for the disk. */
static struct bc_space_forecast forecast(const struct bc_status *s)
{
	return bc_space_forecast(&s->rotation, &s->space, s->stats, s->rates.growth_per_s);
}

bool bc_status_time_left(const struct bc_status *s, uint64_t *seconds)
{
	struct bc_space_forecast f = forecast(s);

	*seconds = f.seconds_left;
	return f.will_fill;
}

/* Null if there is no such limit. */
static json_t *limit_json(uint64_t limit)
{
	return limit != 0 ? bc_json_u64(limit) : json_null();
}

static json_t *ring_json(const struct bc_status *s)
{
	struct bc_space_forecast f = forecast(s);

	if (!f.has_ring)
		return json_null();
	return bc_json_object((struct bc_json_member[]){
		{"bytes", bc_json_u64(s->stats->used_bytes)},
		{"limit_bytes", limit_json(f.limit_bytes)},
		{"segments", bc_json_u64(s->stats->segments)},
		{"limit_segments", limit_json(f.limit_segments)},
		{NULL, NULL},
	});
}

static json_t *disk_json(const struct bc_status *s)
{
	const struct bc_writer_stats *stats = s->stats;
	uint64_t seconds;
	json_t *left = bc_status_time_left(s, &seconds) ? bc_json_u64(seconds) : json_null();

	return bc_json_object((struct bc_json_member[]){
		{"free_bytes",
			stats->is_free_unknown ? json_null() : bc_json_u64(stats->free_bytes)},
		{"ring", ring_json(s)},
		{"time_left_seconds", left},
		{"stuck", json_boolean(stats->is_stuck)},
		{"last_error", bc_json_text_or_null(stats->error)},
		{"last_error_cause", bc_json_text_or_null(stats->error + stats->error_cause)},
		{NULL, NULL},
	});
}

static json_t *flight_json(const struct bc_status *s)
{
	const struct bc_status_flight *f = s->flight;

	if (f == NULL)
		return json_null();
	return bc_json_object((struct bc_json_member[]){
		{"seconds", bc_json_double(tenths(f->seconds))},
		{"bytes", bc_json_u64(f->bytes)},
		{"records", bc_json_u64(f->records)},
		{"chunks", bc_json_u64(f->chunks)},
		{"limit_seconds", bc_json_double(f->limit_seconds)},
		{"limit_bytes", bc_json_u64(f->limit_bytes)},
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

static json_t *sealed_json(const struct bc_status *s)
{
	return bc_json_object((struct bc_json_member[]){
		{"segments", bc_json_u64(s->stats->sealed)},
		{"commands_waiting", bc_json_u64(s->commands_waiting)},
		{"commands_failed", bc_json_u64(s->commands_failed)},
		{NULL, NULL},
	});
}

json_t *bc_status_json(const struct bc_status *s)
{
	return bc_json_object((struct bc_json_member[]){
		{"version", bc_json_text(BC_VERSION)},
		{"state", bc_json_text(s->state)},
		{"mode", bc_json_text(s->mode)},
		{"source", source_json(s)},
		{"directory", bc_json_text(s->dir)},
		{"recording", recording_json(s)},
		{"flight", flight_json(s)},
		{"counts", counts_json(s)},
		{"rates", rates_json(s)},
		{"buffer", buffer_json(s)},
		{"disk", disk_json(s)},
		{"sealed", sealed_json(s)},
		{"triggers", bc_json_u64(s->triggers)},
		{"clients", bc_json_u64(s->clients)},
		{"streams", streams_json(s)},
		{"dropped_log_lines", bc_json_u64(s->dropped_log_lines)},
		{"uptime_seconds", bc_json_double(tenths(s->uptime_s))},
		{NULL, NULL},
	});
}

char *bc_status_write(const struct bc_status *s)
{
	json_t *root = bc_status_json(s);
	char *line = bc_json_print_line(root);

	json_decref(root);
	return line;
}
