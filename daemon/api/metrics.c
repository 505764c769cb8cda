/* The text format 0.0.4 of Prometheus: for each metric a TYPE line, a HELP line and its samples.
 *
 * One table names the member of the status (docs/api.md) that each metric shows. A member that is
 * missing or null, such as those of a board where there is none, has no metric. A name that ends in
 * "_total" is a counter's, any other a gauge's. Text is in labels of a sample that is 1, whose name
 * ends in "_info"; a state has a sample for each of its values, of which one is 1.
 *
 * Invariant: a name, its type and its unit never change. */
#include "daemon/api/metrics.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "formats/base/json.h"

static const char *const board_states[] = {
	"detached", "opening", "streaming", "stopping", "back-off", NULL};

#define LABELS_MAX 11u

struct label {
	const char *name;
	const char *path; /* in the status */
};

/* With only a name, a path and a help the member is a number, a flag or a time. */
struct metric {
	const char *name;
	const char *path; /* in the status */
	const char *help;
	const char *each;                    /* a sample for each member; the name of the label */
	const char *const *states;           /* the values of a state, up to NULL */
	struct label labels[LABELS_MAX + 1]; /* of a sample that is 1, instead of a path */
};

static const struct metric metrics[] = {
	{"build_info", .help = "Version of buscapd.", .labels = {{"version", "version"}}},
	{"state", "state", .help = "State of the daemon.", .states = bc_status_states},
	{"mode", "mode", .help = "Recording mode.", .states = bc_status_modes},
	{"source_info", .help = "Source of the samples.",
		.labels = {{"kind", "source.kind"}, {"name", "source.name"}}},
	{"source_clock_hertz", "source.clock_hz", .help = "Bus clock; 0 if unknown."},
	{"board_state", "source.board.state", .help = "State of the board.",
		.states = board_states},
	{"board_info", .help = "The board, or the last one.",
		.labels = {{"id", "source.board.id"}, {"serial", "source.board.serial"},
			{"product", "source.board.product"}, {"port", "source.board.port"},
			{"address", "source.board.address"}, {"speed", "source.board.speed"},
			{"endpoint", "source.board.endpoint"},
			{"firmware", "source.board.info.firmware"},
			{"own_serial", "source.board.info.serial"},
			{"protocol_version", "source.board.info.protocol_version"},
			{"features", "source.board.info.features"}}},
	{"board_packet_bytes", "source.board.packet_bytes",
		.help = "Maximum packet size of the endpoint."},
	{"board_transfers", "source.board.transfers", .help = "Transfers kept in flight."},
	{"board_transfer_bytes", "source.board.transfer_bytes", .help = "Size of a transfer."},
	{"board_clock_hertz", "source.board.info.clock_hz",
		.help = "Bus clock reported by the board."},
	{"board_fifo_samples", "source.board.info.fifo_samples",
		.help = "FIFO size reported by the board."},
	{"board_counted_samples", "source.board.counters.samples",
		.help = "Samples counted by the board, as last read."},
	{"board_counted_lost_samples", "source.board.counters.lost_samples",
		.help = "Lost samples counted by the board, as last read."},
	{"board_fifo_peak_samples", "source.board.counters.fifo_peak_samples",
		.help = "Highest FIFO level reported by the board, as last read."},
	{"board_received_bytes_total", "source.board.received_bytes",
		.help = "Bytes received from boards."},
	{"board_plugs_total", "source.board.plugs", .help = "Times a board started streaming."},
	{"board_unplugs_total", "source.board.unplugs", .help = "Times a board was unplugged."},
	{"board_stalls_total", "source.board.stalls", .help = "Transfers that stalled."},
	{"board_overflows_total", "source.board.overflows", .help = "Transfers that overflowed."},
	{"board_errors_total", "source.board.errors",
		.help = "Transfers that failed in another way."},
	{"board_timeouts_total", "source.board.timeouts", .help = "Transfers that timed out."},
	{"board_silences_total", "source.board.silences",
		.help = "Times a board sent no data for too long."},
	{"board_restarts_total", "source.board.restarts",
		.help = "Times a board was reset and reopened."},
	{"board_error_info", .help = "Last error of the board.",
		.labels = {{"error", "source.board.last_error"}}},
	{"recording_info", .help = "The current recording.",
		.labels = {{"id", "recording.id"}, {"label", "recording.label"},
			{"path", "recording.path"}}},
	{"recording_start_time_seconds", "recording.started",
		.help = "Start of the recording, Unix time."},
	{"recording_segment", "recording.segment", .help = "Number of the newest segment."},
	{"recording_records", "recording.records", .help = "Records written by the recording."},
	{"recording_bytes", "recording.bytes", .help = "Bytes on disk of the recording."},
	{"recording_metadata_info", "recording.metadata",
		.help = "User-defined metadata of the recording.", .each = "key"},
	{"received_samples_total", "counts.received", .help = "Samples received in valid frames."},
	{"written_samples_total", "counts.written", .help = "Samples written to files."},
	{"durable_samples_total", "counts.durable", .help = "Samples written and synced to disk."},
	{"in_flight_samples", "counts.in_flight", .help = "Samples not written yet."},
	{"dropped_samples_total", "counts.dropped", .help = "Samples not written, by reason.",
		.each = "reason"},
	{"lost_samples_total", "counts.lost", .help = "Samples lost, by cause.", .each = "cause"},
	{"gaps_total", "counts.gaps", .help = "Gaps recorded."},
	{"inexact_gaps_total", "counts.inexact_gaps",
		.help = "Gaps in which an unknown number of samples, or more than counted, were "
			"lost."},
	{"skipped_bytes_total", "counts.skipped_bytes", .help = "Bytes outside valid frames."},
	{"damaged_places_total", "counts.damaged_places",
		.help = "Places where the source could not be read."},
	{"unknown_special_cycles_total", "counts.unknown_special_cycles",
		.help = "Special cycles of unknown kind."},
	{"deleted_records_total", "counts.deleted_records",
		.help = "Records written to segments that were deleted while open."},
	{"samples_per_second", "rates.samples_per_second",
		.help = "Samples received per second, over the last second."},
	{"record_bytes_per_second", "rates.record_bytes_per_second",
		.help = "Bytes of records per second, before compression."},
	{"written_bytes_per_second", "rates.written_bytes_per_second",
		.help = "Bytes written to disk per second."},
	{"buffer_chunks", "buffer.chunks", .help = "Chunks in the buffer."},
	{"buffer_free_chunks", "buffer.free_chunks", .help = "Free chunks in the buffer."},
	{"buffer_min_free_chunks", "buffer.min_free_chunks",
		.help = "Lowest number of free chunks so far."},
	{"disk_free_bytes", "disk.free_bytes", .help = "Free space on the file system."},
	{"disk_time_left_seconds", "disk.time_left_seconds",
		.help = "Time until the disk is full at the rate of the last minute."},
	{"ring_bytes", "disk.ring.bytes", .help = "Size of all segments."},
	{"ring_segments", "disk.ring.segments", .help = "Segments in the directory."},
	{"ring_limit_bytes", "disk.ring.limit_bytes",
		.help = "Size at which the rules delete old segments."},
	{"ring_limit_segments", "disk.ring.limit_segments",
		.help = "Number of segments at which the rules delete old ones."},
	{"disk_stuck", "disk.stuck", .help = "Whether chunks cannot be written (1) or can (0)."},
	{"disk_error_info", .help = "Last error of the disk.",
		.labels = {{"error", "disk.last_error"}}},
	{"sealed_segments_total", "sealed.segments", .help = "Segments sealed."},
	{"sealed_commands_waiting", "sealed.commands_waiting",
		.help = "Commands for sealed segments that are waiting."},
	{"sealed_commands_failed_total", "sealed.commands_failed",
		.help = "Commands for sealed segments that failed."},
	{"flight_seconds", "flight.seconds", .help = "Time held by the flight recorder."},
	{"flight_limit_seconds", "flight.limit_seconds",
		.help = "Time limit of the flight recorder; 0 if none."},
	{"flight_bytes", "flight.bytes", .help = "Bytes of records held by the flight recorder."},
	{"flight_records", "flight.records", .help = "Records held by the flight recorder."},
	{"flight_chunks", "flight.chunks", .help = "Chunks held by the flight recorder."},
	{"flight_limit_bytes", "flight.limit_bytes",
		.help = "Byte limit of the flight recorder; 0 if none."},
	{"triggers", "triggers", .help = "Armed triggers."},
	{"clients", "clients", .help = "Connections to the socket."},
	{"dropped_log_lines_total", "dropped_log_lines",
		.help = "Log lines dropped because standard error was not read or failed."},
	{"streams", "streams", .help = "Clients reading a stream, by stream.", .each = "stream"},
	{"uptime_seconds", "uptime_seconds", .help = "Time since the daemon started."},
};

static bool has_end(const char *name, const char *end)
{
	size_t n = strlen(name);

	return n >= strlen(end) && strcmp(name + n - strlen(end), end) == 0;
}

/* Writes a number, a flag as 0 or 1, or a time as Unix time. */
static void write_value(FILE *out, const json_t *value)
{
	const char *text = json_string_value(value);
	struct tm tm = {0};

	if (text != NULL && strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm) != NULL)
		fprintf(out, "%lld\n", (long long)timegm(&tm));
	else if (text != NULL) /* more than INT64_MAX, see bc_json_u64() */
		fprintf(out, "%s\n", text);
	else if (json_is_real(value))
		fprintf(out, "%.15g\n", json_real_value(value));
	else
		fprintf(out, "%" JSON_INTEGER_FORMAT "\n",
			json_is_true(value) ? 1 : json_integer_value(value));
}

/* Writes NAME="VALUE". Escapes backslash, quote and newline. */
static void write_label(FILE *out, const char *name, const json_t *value)
{
	const char *at = json_is_string(value) ? json_string_value(value) : "";

	fprintf(out, "%s=\"", name);
	if (json_is_integer(value))
		fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	for (; *at != '\0'; at++) {
		if (*at == '\\' || *at == '"')
			fputc('\\', out);
		if (*at == '\n')
			fputs("\\n", out);
		else
			fputc(*at, out);
	}
	fputc('"', out);
}

/* Leaves out labels whose member is missing; null is an empty text. */
static void write_info(FILE *out, const struct metric *m, const json_t *status)
{
	const char *before = "{";

	fprintf(out, "buscapd_%s", m->name);
	for (const struct label *label = m->labels; label->name != NULL; label++) {
		const json_t *value = bc_json_path(status, label->path);
		if (value == NULL)
			continue;
		fputs(before, out);
		write_label(out, label->name, value);
		before = ",";
	}
	fputs("} 1\n", out);
}

/* Metadata have labels for key and value, because a key need not be a valid name of a label. */
static void write_members(FILE *out, const struct metric *m, json_t *object)
{
	bool is_text = has_end(m->name, "_info");
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		fprintf(out, "buscapd_%s{%s=\"%s\"", m->name, m->each, key);
		if (is_text)
			write_label(out, ",value", value);
		fputs("} ", out);
		if (is_text)
			fputs("1\n", out);
		else
			write_value(out, value);
	}
}

static void write_metric(FILE *out, const struct metric *m, const json_t *status)
{
	json_t *value = bc_json_path(status, m->path == NULL ? m->labels[0].path : m->path);
	const char *const *state = m->states;

	if (value == NULL || json_is_null(value) || (m->each != NULL && !json_object_size(value)))
		return;
	fprintf(out, "# TYPE buscapd_%s %s\n# HELP buscapd_%s %s\n", m->name,
		has_end(m->name, "_total") ? "counter" : "gauge", m->name, m->help);
	if (m->path == NULL) {
		write_info(out, m, status);
	} else if (m->each != NULL) {
		write_members(out, m, value);
	} else if (state != NULL) {
		for (; *state != NULL; state++)
			fprintf(out, "buscapd_%s{buscapd_%s=\"%s\"} %d\n", m->name, m->name, *state,
				strcmp(*state, json_string_value(value)) == 0);
	} else {
		fprintf(out, "buscapd_%s ", m->name);
		write_value(out, value);
	}
}

char *bc_metrics_write(const struct bc_status *s)
{
	json_t *status = bc_status_json(s);
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = status != NULL ? open_memstream(&text, &bytes) : NULL;

	for (size_t i = 0; out != NULL && i < sizeof(metrics) / sizeof(metrics[0]); i++)
		write_metric(out, &metrics[i], status);
	json_decref(status);
	if (out == NULL)
		return NULL;
	bool is_whole = ferror(out) == 0;
	if (fclose(out) == 0 && is_whole)
		return text;
	free(text);
	return NULL;
}
