/* The text format 0.0.4 of Prometheus: for each metric a TYPE line, a HELP line and its samples.
 *
 * A name that ends in "_total" is a counter's, any other a gauge's. Text is in labels of a sample
 * that is 1, whose name ends in "_info"; a state has a sample for each of its values, of which one
 * is 1. What does not exist, such as a board, has no metric.
 *
 * Invariant: a name, its type and its unit never change. */
#include "daemon/api/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/usb/board.h"
#include "formats/base/utf8.h"
#include "formats/segment/metadata.h"

#define COUNTER "_total"

/* A list ends with {0}. The value may be any text; NULL: empty. */
struct label {
	const char *name;
	const char *value;
};

static void write_head(FILE *out, const char *name, const char *help)
{
	size_t n = strlen(name);
	size_t counter = strlen(COUNTER);
	bool is_counter = n > counter && strcmp(name + n - counter, COUNTER) == 0;

	fprintf(out, "# TYPE buscapd_%s %s\n# HELP buscapd_%s %s\n", name,
		is_counter ? "counter" : "gauge", name, help);
}

static void write_int(FILE *out, const char *name, const char *help, uint64_t value)
{
	write_head(out, name, help);
	fprintf(out, "buscapd_%s %" PRIu64 "\n", name, value);
}

static void write_real(FILE *out, const char *name, const char *help, double value)
{
	write_head(out, name, help);
	fprintf(out, "buscapd_%s %.15g\n", name, value);
}

/* Writes NAME="VALUE". Escapes backslash, quote and newline, and makes the value valid UTF-8. */
static void write_label(FILE *out, const struct label *label)
{
	char *mended = label->value != NULL ? bc_utf8_repair(label->value) : NULL;

	fprintf(out, "%s=\"", label->name);
	for (const char *at = mended; at != NULL && *at != '\0'; at++) {
		if (*at == '\\' || *at == '"')
			fputc('\\', out);
		if (*at == '\n')
			fputs("\\n", out);
		else
			fputc(*at, out);
	}
	fputc('"', out);
	free(mended);
}

static void write_sample(FILE *out, const char *name, const struct label *label, uint64_t value)
{
	fprintf(out, "buscapd_%s", name);
	for (const char *before = "{"; label->name != NULL; label++, before = ",") {
		fputs(before, out);
		write_label(out, label);
	}
	fprintf(out, "} %" PRIu64 "\n", value);
}

static void write_info(FILE *out, const char *name, const char *help, const struct label *labels)
{
	write_head(out, name, help);
	write_sample(out, name, labels, 1);
}

/* One sample per state, 1 for the current one. */
static void write_state(
	FILE *out, const char *name, const char *help, const char *const *states, const char *state)
{
	char label[64];

	snprintf(label, sizeof(label), "buscapd_%s", name);
	write_head(out, name, help);
	for (; *states != NULL; states++)
		write_sample(out, name, (struct label[]){{label, *states}, {0}},
			strcmp(*states, state) == 0);
}

static void write_board_identity(FILE *out, const struct bc_board *b)
{
	const struct bc_board_identity *id = &b->identity;
	char usb_id[16];
	char address[16];
	char endpoint[16];
	char version[16];
	char features[16];

	snprintf(usb_id, sizeof(usb_id), "%04x:%04x", id->vid, id->pid);
	snprintf(address, sizeof(address), "%u", id->address);
	snprintf(endpoint, sizeof(endpoint), "%u", id->endpoint);
	snprintf(version, sizeof(version), "%" PRIu32, b->protocol_version);
	snprintf(features, sizeof(features), "%" PRIu32, b->features);
	write_info(out, "board_info", "The board, or the last one.",
		(struct label[]){
			{"id", usb_id},
			{"serial", id->serial},
			{"product", id->product},
			{"port", id->port},
			{"address", address},
			{"speed", id->speed},
			{"endpoint", endpoint},
			{b->has_info ? "firmware" : NULL, b->firmware},
			{"own_serial", b->own_serial},
			{"protocol_version", version},
			{"features", features},
			{0},
		});
	write_int(out, "board_packet_bytes", "Maximum packet size of the endpoint.",
		id->packet_bytes);
	write_int(out, "board_transfers", "Transfers kept in flight.", b->transfers);
	write_int(out, "board_transfer_bytes", "Size of a transfer.", b->transfer_bytes);
	if (!b->has_info)
		return;
	write_int(out, "board_clock_hertz", "Bus clock reported by the board.", b->clock_hz);
	write_int(out, "board_fifo_samples", "FIFO size reported by the board.", b->fifo_samples);
}

static void write_board(FILE *out, const struct bc_board *b)
{
	static const char *const states[] = {
		"detached", "opening", "streaming", "stopping", "back-off", NULL};

	if (b == NULL)
		return;
	write_state(
		out, "board_state", "State of the board.", states, bc_board_state_name(b->state));
	if (b->identity.vid != 0)
		write_board_identity(out, b);
	if (b->has_counters) {
		write_int(out, "board_counted_samples",
			"Samples counted by the board, as last read.", b->counters.samples);
		write_int(out, "board_counted_lost_samples",
			"Lost samples counted by the board, as last read.", b->counters.lost);
		write_int(out, "board_fifo_peak_samples",
			"Highest FIFO level reported by the board, as last read.",
			b->counters.fifo_high);
	}
	write_int(out, "board_received_bytes_total", "Bytes received from boards.", b->bytes);
	write_int(out, "board_plugs_total", "Times a board started streaming.", b->plugs);
	write_int(out, "board_unplugs_total", "Times a board was unplugged.", b->unplugs);
	write_int(out, "board_stalls_total", "Transfers that stalled.", b->stalls);
	write_int(out, "board_overflows_total", "Transfers that overflowed.", b->overflows);
	write_int(out, "board_errors_total", "Transfers that failed in another way.", b->errors);
	write_int(out, "board_timeouts_total", "Transfers that timed out.", b->timeouts);
	write_int(out, "board_silences_total", "Times a board sent no data for too long.",
		b->silences);
	write_int(
		out, "board_restarts_total", "Times a board was reset and reopened.", b->restarts);
	if (b->last_error[0] != '\0')
		write_info(out, "board_error_info", "Last error of the board.",
			(struct label[]){{"error", b->last_error}, {0}});
}

static void write_source(FILE *out, const struct bc_status *s)
{
	write_info(out, "source_info", "Source of the samples.",
		(struct label[]){{"kind", s->source_kind}, {"name", s->source_name}, {0}});
	write_int(out, "source_clock_hertz", "Bus clock; 0 if unknown.", s->clock_hz);
	write_board(out, s->board);
}

/* One sample per key=value pair, because keys need not be valid label names. */
static void write_metadata(FILE *out, const char *text)
{
	static const char name[] = "recording_metadata_info";
	json_t *metadata = bc_metadata_parse(text);
	const char *key;
	json_t *value;

	if (json_object_size(metadata) != 0)
		write_head(out, name, "User-defined metadata of the recording.");
	json_object_foreach(metadata, key, value) write_sample(out, name,
		(struct label[]){{"key", key}, {"value", json_string_value(value)}, {0}}, 1);
	json_decref(metadata);
}

static void write_recording(FILE *out, const struct bc_status *s)
{
	struct bc_status_progress progress;

	if (s->recording == NULL)
		return;
	bc_status_progress(s, &progress);
	write_info(out, "recording_info", "The current recording.",
		(struct label[]){
			{"id", s->recording->header.recording},
			{"label", s->recording->header.label},
			{"path", progress.path},
			{0},
		});
	write_int(out, "recording_start_time_seconds", "Start of the recording, Unix time.",
		(uint64_t)(s->recording->started_ns / 1000000000));
	write_int(out, "recording_segment", "Number of the newest segment.", progress.segment);
	write_int(out, "recording_records", "Records written by the recording.", progress.records);
	write_int(out, "recording_bytes", "Bytes on disk of the recording.", progress.bytes);
	write_metadata(out, s->recording->header.metadata);
}

static void write_dropped(FILE *out, const struct bc_counts *c)
{
	static const char name[] = "dropped_samples_total";
	const struct {
		const char *reason;
		uint64_t samples;
	} dropped[] = {{"buffer", c->dropped_buffer}, {"disk", c->dropped_disk},
		{"invalid", c->dropped_invalid}, {"filtered", c->dropped_filtered},
		{"idle", c->dropped_idle}};

	write_head(out, name, "Samples not written, by reason.");
	for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++)
		write_sample(out, name, (struct label[]){{"reason", dropped[i].reason}, {0}},
			dropped[i].samples);
}

static void write_lost(FILE *out, const struct bc_losses *losses)
{
	static const char name[] = "lost_samples_total";

	write_head(out, name, "Samples lost, by cause.");
	for (unsigned cause = 1; cause < BC_GAP_CAUSES; cause++)
		write_sample(out, name, (struct label[]){{"cause", bc_gap_cause_name(cause)}, {0}},
			losses->lost[cause]);
}

static void write_counts(FILE *out, const struct bc_status *s)
{
	const struct bc_counts *c = s->counts;
	const struct bc_loss_sum lost = bc_losses_sum(&c->losses);

	write_int(out, "received_samples_total", "Samples received in valid frames.", c->received);
	write_int(out, "written_samples_total", "Samples written to files.", c->written);
	write_int(out, "durable_samples_total", "Samples written and synced to disk.", c->durable);
	write_int(out, "in_flight_samples", "Samples not written yet.", c->in_flight);
	write_dropped(out, c);
	write_lost(out, &c->losses);
	write_int(out, "gaps_total", "Gaps recorded.", lost.gaps);
	write_int(out, "inexact_gaps_total",
		"Gaps in which an unknown number of samples, or more than counted, were lost.",
		lost.inexact);
	write_int(out, "skipped_bytes_total", "Bytes outside valid frames.", c->skipped_bytes);
	write_int(out, "damaged_places_total", "Places where the source could not be read.",
		s->damages);
	write_int(out, "unknown_special_cycles_total", "Special cycles of unknown kind.",
		c->unknown_special);
	write_int(out, "deleted_records_total",
		"Records written to segments that were deleted while open.", c->deleted_records);
}

static void write_ring(FILE *out, const struct bc_status *s)
{
	struct bc_space_forecast f = bc_status_forecast(s);

	if (!f.has_ring)
		return;
	write_int(out, "ring_bytes", "Size of all segments.", s->stats->used_bytes);
	write_int(out, "ring_segments", "Segments in the directory.", s->stats->segments);
	if (f.limit_bytes != 0)
		write_int(out, "ring_limit_bytes", "Size at which the rules delete old segments.",
			f.limit_bytes);
	if (f.limit_segments != 0)
		write_int(out, "ring_limit_segments",
			"Number of segments at which the rules delete old ones.", f.limit_segments);
}

static void write_disk(FILE *out, const struct bc_status *s)
{
	uint64_t seconds;

	if (!s->stats->is_free_unknown)
		write_int(out, "disk_free_bytes", "Free space on the file system.",
			s->stats->free_bytes);
	if (bc_status_time_left(s, &seconds))
		write_int(out, "disk_time_left_seconds",
			"Time until the disk is full at the rate of the last minute.", seconds);
	write_ring(out, s);
	write_int(out, "disk_stuck", "Whether chunks cannot be written (1) or can (0).",
		s->stats->is_stuck);
	if (s->stats->error[0] != '\0')
		write_info(out, "disk_error_info", "Last error of the disk.",
			(struct label[]){{"error", s->stats->error}, {0}});
}

static void write_throughput(FILE *out, const struct bc_status *s)
{
	write_int(out, "samples_per_second", "Samples received per second, over the last second.",
		(uint64_t)s->rates.samples_per_s);
	write_int(out, "record_bytes_per_second",
		"Bytes of records per second, before compression.",
		(uint64_t)s->rates.bytes_in_per_s);
	write_int(out, "written_bytes_per_second", "Bytes written to disk per second.",
		(uint64_t)s->rates.bytes_out_per_s);
	write_int(out, "buffer_chunks", "Chunks in the buffer.", s->buffer.chunks);
	write_int(out, "buffer_free_chunks", "Free chunks in the buffer.", s->buffer.free);
	write_int(out, "buffer_min_free_chunks", "Lowest number of free chunks so far.",
		s->buffer.min_free);
	write_disk(out, s);
	write_int(out, "sealed_segments_total", "Segments sealed.", s->stats->sealed);
	write_int(out, "sealed_commands_waiting", "Commands for sealed segments that are waiting.",
		s->commands_waiting);
	write_int(out, "sealed_commands_failed_total", "Commands for sealed segments that failed.",
		s->commands_failed);
}

static void write_flight(FILE *out, const struct bc_status_flight *f)
{
	if (f == NULL)
		return;
	write_real(out, "flight_seconds", "Time held by the flight recorder.",
		(double)(uint64_t)(f->seconds * 10) / 10);
	write_real(out, "flight_limit_seconds", "Time limit of the flight recorder; 0 if none.",
		f->limit_seconds);
	write_int(out, "flight_bytes", "Bytes of records held by the flight recorder.", f->bytes);
	write_int(out, "flight_records", "Records held by the flight recorder.", f->records);
	write_int(out, "flight_chunks", "Chunks held by the flight recorder.", f->chunks);
	write_int(out, "flight_limit_bytes", "Byte limit of the flight recorder; 0 if none.",
		f->limit_bytes);
}

static void write_rest(FILE *out, const struct bc_status *s)
{
	write_flight(out, s->flight);
	write_int(out, "triggers", "Armed triggers.", s->triggers);
	write_int(out, "clients", "Connections to the socket.", s->clients);
	write_int(out, "dropped_log_lines_total",
		"Log lines dropped because standard error was not read or failed.",
		s->dropped_log_lines);
	write_head(out, "streams", "Clients reading a stream, by stream.");
	write_sample(
		out, "streams", (struct label[]){{"stream", "events"}, {0}}, s->streams_events);
	write_sample(
		out, "streams", (struct label[]){{"stream", "records"}, {0}}, s->streams_records);
	write_real(out, "uptime_seconds", "Time since the daemon started.",
		(double)(uint64_t)(s->uptime_s * 10) / 10);
}

char *bc_metrics_write(const struct bc_status *s)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (out == NULL)
		return NULL;
	write_info(out, "build_info", "Version of buscapd.",
		(struct label[]){{"version", BC_VERSION}, {0}});
	write_state(out, "state", "State of the daemon.", bc_status_states, s->state);
	write_state(out, "mode", "Recording mode.", bc_status_modes, s->mode);
	write_source(out, s);
	write_recording(out, s);
	write_counts(out, s);
	write_throughput(out, s);
	write_rest(out, s);
	bool is_whole = ferror(out) == 0;
	if (fclose(out) == 0 && is_whole)
		return text;
	free(text);
	return NULL;
}
