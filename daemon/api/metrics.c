#include "daemon/api/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/usb/board.h"
#include "formats/base/utf8.h"
#include "formats/segment/metadata.h"

/* A metric. If it has a unit, the name ends with it; otherwise `unit` is empty. */
struct family {
	const char *name;
	const char *unit;
	const char *help;
};

static void write_family(FILE *out, const struct family *family, const char *type)
{
	fprintf(out, "# TYPE buscapd_%s %s\n", family->name, type);
	if (family->unit[0] != '\0')
		fprintf(out, "# UNIT buscapd_%s %s\n", family->name, family->unit);
	fprintf(out, "# HELP buscapd_%s %s\n", family->name, family->help);
}

static void write_counter(
	FILE *out, const char *name, const char *unit, const char *help, uint64_t value)
{
	write_family(out, &(struct family){name, unit, help}, "counter");
	fprintf(out, "buscapd_%s_total %" PRIu64 "\n", name, value);
}

static void write_gauge(
	FILE *out, const char *name, const char *unit, const char *help, uint64_t value)
{
	write_family(out, &(struct family){name, unit, help}, "gauge");
	fprintf(out, "buscapd_%s %" PRIu64 "\n", name, value);
}

static void write_real(
	FILE *out, const char *name, const char *unit, const char *help, double value)
{
	write_family(out, &(struct family){name, unit, help}, "gauge");
	fprintf(out, "buscapd_%s %.15g\n", name, value);
}

/* Writes NAME="VALUE" and `suffix`. Escapes backslash, quote and newline, and makes the value valid
 * UTF-8. */
static void write_label(FILE *out, const char *name, const char *value, const char *suffix)
{
	char *mended = value != NULL ? bc_utf8_repair(value) : NULL;

	fprintf(out, "%s=\"", name);
	for (const char *at = mended; at != NULL && *at != '\0'; at++) {
		if (*at == '\\' || *at == '"')
			fputc('\\', out);
		if (*at == '\n')
			fputs("\\n", out);
		else
			fputc(*at, out);
	}
	fprintf(out, "\"%s", suffix);
	free(mended);
}

/* A state set: one sample per state, 1 for the current one. */
static void write_state_set(
	FILE *out, const char *name, const char *help, const char *const *states, const char *state)
{
	write_family(out, &(struct family){name, "", help}, "stateset");
	for (; *states != NULL; states++)
		fprintf(out, "buscapd_%s{buscapd_%s=\"%s\"} %d\n", name, name, *states,
			strcmp(*states, state) == 0);
}

static void write_board_identity(FILE *out, const struct bc_board *b)
{
	const struct bc_board_identity *id = &b->identity;
	char text[16];

	write_family(out, &(struct family){"board", "", "The board, or the last one."}, "info");
	snprintf(text, sizeof(text), "%04x:%04x", id->vid, id->pid);
	fputs("buscapd_board_info{", out);
	write_label(out, "id", text, ",");
	write_label(out, "serial", id->serial, ",");
	write_label(out, "product", id->product, ",");
	write_label(out, "port", id->port, ",");
	snprintf(text, sizeof(text), "%u", id->address);
	write_label(out, "address", text, ",");
	write_label(out, "speed", id->speed, ",");
	snprintf(text, sizeof(text), "%u", id->endpoint);
	write_label(out, "endpoint", text, "");
	if (b->has_info) {
		fputs(",", out);
		write_label(out, "firmware", b->firmware, ",");
		write_label(out, "own_serial", b->own_serial, ",");
		snprintf(text, sizeof(text), "%" PRIu32, b->protocol_version);
		write_label(out, "protocol_version", text, ",");
		snprintf(text, sizeof(text), "%" PRIu32, b->features);
		write_label(out, "features", text, "");
	}
	fputs("} 1\n", out);
	write_gauge(out, "board_packet_bytes", "bytes", "Maximum packet size of the endpoint.",
		id->packet_bytes);
	write_gauge(out, "board_transfers", "", "Transfers kept in flight.", b->transfers);
	write_gauge(out, "board_transfer_bytes", "bytes", "Size of a transfer.", b->transfer_bytes);
	if (!b->has_info)
		return;
	write_gauge(
		out, "board_clock_hertz", "hertz", "Bus clock reported by the board.", b->clock_hz);
	write_gauge(out, "board_fifo_samples", "samples", "FIFO size reported by the board.",
		b->fifo_samples);
}

static void write_board(FILE *out, const struct bc_board *b)
{
	static const char *const states[] = {
		"detached", "opening", "streaming", "stopping", "back-off", NULL};

	if (b == NULL)
		return;
	write_state_set(
		out, "board_state", "State of the board.", states, bc_board_state_name(b->state));
	if (b->identity.vid != 0)
		write_board_identity(out, b);
	if (b->has_counters) {
		write_gauge(out, "board_counted_samples", "samples",
			"Samples counted by the board, as last read.", b->counters.samples);
		write_gauge(out, "board_counted_lost_samples", "samples",
			"Lost samples counted by the board, as last read.", b->counters.lost);
		write_gauge(out, "board_fifo_peak_samples", "samples",
			"Highest FIFO level reported by the board, as last read.",
			b->counters.fifo_high);
	}
	write_counter(
		out, "board_received_bytes", "bytes", "Bytes received from boards.", b->bytes);
	write_counter(out, "board_plugs", "", "Times a board started streaming.", b->plugs);
	write_counter(out, "board_unplugs", "", "Times a board was unplugged.", b->unplugs);
	write_counter(out, "board_stalls", "", "Transfers that stalled.", b->stalls);
	write_counter(out, "board_overflows", "", "Transfers that overflowed.", b->overflows);
	write_counter(out, "board_errors", "", "Transfers that failed in another way.", b->errors);
	write_counter(out, "board_timeouts", "", "Transfers that timed out.", b->timeouts);
	write_counter(
		out, "board_silences", "", "Times a board sent no data for too long.", b->silences);
	write_counter(
		out, "board_restarts", "", "Times a board was reset and reopened.", b->restarts);
	if (b->last_error[0] != '\0') {
		write_family(out, &(struct family){"board_error", "", "Last error of the board."},
			"info");
		fputs("buscapd_board_error_info{", out);
		write_label(out, "error", b->last_error, "} 1\n");
	}
}

static void write_source(FILE *out, const struct bc_status *s)
{
	write_family(out, &(struct family){"source", "", "Source of the samples."}, "info");
	fputs("buscapd_source_info{", out);
	write_label(out, "kind", s->source_kind, ",");
	write_label(out, "name", s->source_name, "} 1\n");
	write_gauge(out, "source_clock_hertz", "hertz", "Bus clock; 0 if unknown.", s->clock_hz);
	write_board(out, s->board);
}

/* One sample per key=value pair, because keys need not be valid label names. */
static void write_metadata(FILE *out, const char *text)
{
	json_t *metadata = bc_metadata_parse(text);
	const char *key;
	json_t *value;

	if (json_object_size(metadata) != 0)
		write_family(out,
			&(struct family){"recording_metadata", "",
				"User-defined metadata of the recording."},
			"info");
	json_object_foreach(metadata, key, value)
	{
		fputs("buscapd_recording_metadata_info{", out);
		write_label(out, "key", key, ",");
		write_label(out, "value", json_string_value(value), "} 1\n");
	}
	json_decref(metadata);
}

static void write_recording(FILE *out, const struct bc_status *s)
{
	struct bc_status_progress progress;

	if (s->recording == NULL)
		return;
	bc_status_progress(s, &progress);
	write_family(out, &(struct family){"recording", "", "The current recording."}, "info");
	fputs("buscapd_recording_info{", out);
	write_label(out, "id", s->recording->header.recording, ",");
	write_label(out, "label", s->recording->header.label, ",");
	write_label(out, "path", progress.path, "} 1\n");
	write_gauge(out, "recording_start_time_seconds", "seconds",
		"Start of the recording, Unix time.",
		(uint64_t)(s->recording->started_ns / 1000000000));
	write_gauge(
		out, "recording_segment", "", "Number of the newest segment.", progress.segment);
	write_gauge(out, "recording_records", "records", "Records written by the recording.",
		progress.records);
	write_gauge(
		out, "recording_bytes", "bytes", "Bytes on disk of the recording.", progress.bytes);
	write_metadata(out, s->recording->header.metadata);
}

static void write_counts(FILE *out, const struct bc_status *s)
{
	const struct bc_counts *c = s->counts;
	const struct bc_loss_sum lost = bc_losses_sum(&c->losses);
	const struct {
		const char *reason;
		uint64_t samples;
	} dropped[] = {{"buffer", c->dropped_buffer}, {"disk", c->dropped_disk},
		{"invalid", c->dropped_invalid}, {"filtered", c->dropped_filtered},
		{"idle", c->dropped_idle}};

	write_counter(out, "received_samples", "samples", "Samples received in valid frames.",
		c->received);
	write_counter(out, "written_samples", "samples", "Samples written to files.", c->written);
	write_counter(out, "durable_samples", "samples", "Samples written and synced to disk.",
		c->durable);
	write_gauge(out, "in_flight_samples", "samples", "Samples not written yet.", c->in_flight);
	write_family(out,
		&(struct family){"dropped_samples", "samples", "Samples not written, by reason."},
		"counter");
	for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++)
		fprintf(out, "buscapd_dropped_samples_total{reason=\"%s\"} %" PRIu64 "\n",
			dropped[i].reason, dropped[i].samples);
	write_family(out, &(struct family){"lost_samples", "samples", "Samples lost, by cause."},
		"counter");
	for (unsigned cause = 1; cause < BC_GAP_CAUSES; cause++)
		fprintf(out, "buscapd_lost_samples_total{cause=\"%s\"} %" PRIu64 "\n",
			bc_gap_cause_name(cause), c->losses.lost[cause]);
	write_counter(out, "gaps", "", "Gaps recorded.", lost.gaps);
	write_counter(out, "inexact_gaps", "",
		"Gaps in which an unknown number of samples, or more than counted, were lost.",
		lost.inexact);
	write_counter(
		out, "skipped_bytes", "bytes", "Bytes outside valid frames.", c->skipped_bytes);
	write_counter(out, "damaged_places", "", "Places where the source could not be read.",
		s->damages);
	write_counter(out, "unknown_special_cycles", "cycles", "Special cycles of unknown kind.",
		c->unknown_special);
	write_counter(out, "deleted_records", "records",
		"Records written to segments that were deleted while open.", c->deleted_records);
}

static void write_ring(FILE *out, const struct bc_status *s)
{
	struct bc_space_forecast f = bc_status_forecast(s);

	if (!f.has_ring)
		return;
	write_gauge(out, "ring_bytes", "bytes", "Size of all segments.", s->stats->used_bytes);
	write_gauge(
		out, "ring_segments", "segments", "Segments in the directory.", s->stats->segments);
	if (f.limit_bytes != 0)
		write_gauge(out, "ring_limit_bytes", "bytes",
			"Size at which the rules delete old segments.", f.limit_bytes);
	if (f.limit_segments != 0)
		write_gauge(out, "ring_limit_segments", "segments",
			"Number of segments at which the rules delete old ones.", f.limit_segments);
}

static void write_throughput(FILE *out, const struct bc_status *s)
{
	uint64_t seconds;

	write_gauge(out, "samples_per_second", "",
		"Samples received per second, over the last second.",
		(uint64_t)s->rates.samples_per_s);
	write_gauge(out, "record_bytes_per_second", "",
		"Bytes of records per second, before compression.",
		(uint64_t)s->rates.bytes_in_per_s);
	write_gauge(out, "written_bytes_per_second", "", "Bytes written to disk per second.",
		(uint64_t)s->rates.bytes_out_per_s);
	write_gauge(out, "buffer_chunks", "chunks", "Chunks in the buffer.", s->buffer.chunks);
	write_gauge(
		out, "buffer_free_chunks", "chunks", "Free chunks in the buffer.", s->buffer.free);
	write_gauge(out, "buffer_min_free_chunks", "chunks", "Lowest number of free chunks so far.",
		s->buffer.min_free);
	if (!s->stats->is_free_unknown)
		write_gauge(out, "disk_free_bytes", "bytes", "Free space on the file system.",
			s->stats->free_bytes);
	if (bc_status_time_left(s, &seconds))
		write_gauge(out, "disk_time_left_seconds", "seconds",
			"Time until the disk is full at the rate of the last minute.", seconds);
	write_ring(out, s);
	write_gauge(out, "disk_stuck", "", "Whether chunks cannot be written (1) or can (0).",
		s->stats->is_stuck);
	if (s->stats->error[0] != '\0') {
		write_family(
			out, &(struct family){"disk_error", "", "Last error of the disk."}, "info");
		fputs("buscapd_disk_error_info{", out);
		write_label(out, "error", s->stats->error, "} 1\n");
	}
	write_counter(out, "sealed_segments", "segments", "Segments sealed.", s->stats->sealed);
	write_gauge(out, "sealed_commands_waiting", "",
		"Commands for sealed segments that are waiting.", s->commands_waiting);
	write_counter(out, "sealed_commands_failed", "",
		"Commands for sealed segments that failed.", s->commands_failed);
}

static void write_flight(FILE *out, const struct bc_status_flight *f)
{
	if (f == NULL)
		return;
	write_real(out, "flight_seconds", "seconds", "Time held by the flight recorder.",
		(double)(uint64_t)(f->seconds * 10) / 10);
	write_gauge(out, "flight_bytes", "bytes", "Bytes of records held by the flight recorder.",
		f->bytes);
	write_gauge(out, "flight_records", "records", "Records held by the flight recorder.",
		f->records);
	write_gauge(
		out, "flight_chunks", "chunks", "Chunks held by the flight recorder.", f->chunks);
	write_real(out, "flight_limit_seconds", "seconds",
		"Time limit of the flight recorder; 0 if none.", f->limit_seconds);
	write_gauge(out, "flight_limit_bytes", "bytes",
		"Byte limit of the flight recorder; 0 if none.", f->limit_bytes);
}

static void write_rest(FILE *out, const struct bc_status *s)
{
	write_flight(out, s->flight);
	write_gauge(out, "triggers", "", "Armed triggers.", s->triggers);
	write_gauge(out, "clients", "", "Connections to the socket.", s->clients);
	write_family(out, &(struct family){"streams", "", "Clients reading a stream, by stream."},
		"gauge");
	fprintf(out,
		"buscapd_streams{stream=\"events\"} %u\nbuscapd_streams{stream=\"records\"} %u\n",
		s->streams_events, s->streams_records);
	write_counter(out, "dropped_log_lines", "lines",
		"Log lines dropped because standard error was not read or failed.",
		s->dropped_log_lines);
	write_real(out, "uptime_seconds", "seconds", "Time since the daemon started.",
		(double)(uint64_t)(s->uptime_s * 10) / 10);
}

/* Closes the stream. Returns its text, or NULL if out of memory. */
static char *finish(FILE *out, char **text)
{
	bool is_whole = ferror(out) == 0;

	if (fclose(out) == 0 && is_whole)
		return *text;
	free(*text);
	return NULL;
}

char *bc_metrics_write(const struct bc_status *s)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (out == NULL)
		return NULL;
	write_family(out, &(struct family){"build", "", "Version of buscapd."}, "info");
	fprintf(out, "buscapd_build_info{version=\"%s\"} 1\n", BC_VERSION);
	write_state_set(out, "state", "State of the daemon.", bc_status_states, s->state);
	write_state_set(out, "mode", "Recording mode.", bc_status_modes, s->mode);
	write_source(out, s);
	write_recording(out, s);
	write_counts(out, s);
	write_throughput(out, s);
	write_rest(out, s);
	fputs("# EOF\n", out);
	return finish(out, &text);
}

/* The text format */

/* Types of OpenMetrics in the text format, which names a metric with its suffix. */
static const struct text_type {
	const char *openmetrics;
	const char *type;
	const char *suffix;
} text_types[] = {
	{"counter", "counter", "_total"}, {"info", "gauge", "_info"}, {"stateset", "gauge", ""},
	{"gauge", "gauge", ""}, /* and all others */
};

#define TEXT_TYPES (sizeof(text_types) / sizeof(text_types[0]))

/* Rewrites a TYPE or HELP line; `line` is what follows that word. *of is the type of the last TYPE
 * line. */
static void write_text_comment(
	FILE *out, const char *word, const char *line, size_t n, const struct text_type **of)
{
	const char *rest = memchr(line, ' ', n);
	size_t name = (size_t)(rest - line);

	if (strcmp(word, "HELP") == 0) {
		fprintf(out, "# HELP %.*s%s%.*s\n", (int)name, line, (*of)->suffix, (int)(n - name),
			rest);
		return;
	}
	*of = text_types;
	while (*of != &text_types[TEXT_TYPES - 1] &&
		strncmp((*of)->openmetrics, rest + 1, n - name - 1) != 0)
		*of += 1;
	fprintf(out, "# TYPE %.*s%s %s\n", (int)name, line, (*of)->suffix, (*of)->type);
}

char *bc_metrics_write_text(const struct bc_status *s)
{
	const struct text_type *of = text_types;
	char *openmetrics = bc_metrics_write(s);
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = openmetrics != NULL ? open_memstream(&text, &bytes) : NULL;

	for (const char *line = openmetrics; out != NULL && *line != '\0';) {
		size_t n = strcspn(line, "\n");
		if (strncmp(line, "# TYPE ", 7) == 0)
			write_text_comment(out, "TYPE", line + 7, n - 7, &of);
		else if (strncmp(line, "# HELP ", 7) == 0)
			write_text_comment(out, "HELP", line + 7, n - 7, &of);
		else if (line[0] != '#') /* there is no UNIT and no EOF */
			fprintf(out, "%.*s\n", (int)n, line);
		line += n + 1;
	}
	free(openmetrics);
	return out != NULL ? finish(out, &text) : NULL;
}
