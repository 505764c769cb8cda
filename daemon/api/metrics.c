#include "daemon/api/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/usb/board.h"
#include "formats/base/utf8.h"
#include "formats/segment/metadata.h"

/* A metric's name, its unit, with which the name then ends, or the empty text, and what it is. */
struct family {
	const char *name;
	const char *unit;
	const char *help;
};

static void begin(FILE *out, const struct family *family, const char *type)
{
	fprintf(out, "# TYPE buscapd_%s %s\n", family->name, type);
	if (family->unit[0] != '\0')
		fprintf(out, "# UNIT buscapd_%s %s\n", family->name, family->unit);
	fprintf(out, "# HELP buscapd_%s %s\n", family->name, family->help);
}

static void counter(FILE *out, const char *name, const char *unit, const char *help, uint64_t value)
{
	begin(out, &(struct family){name, unit, help}, "counter");
	fprintf(out, "buscapd_%s_total %" PRIu64 "\n", name, value);
}

static void gauge(FILE *out, const char *name, const char *unit, const char *help, uint64_t value)
{
	begin(out, &(struct family){name, unit, help}, "gauge");
	fprintf(out, "buscapd_%s %" PRIu64 "\n", name, value);
}

static void real(FILE *out, const char *name, const char *unit, const char *help, double value)
{
	begin(out, &(struct family){name, unit, help}, "gauge");
	fprintf(out, "buscapd_%s %.15g\n", name, value);
}

/* A label's value: backslash, quote and newline are escaped, and all of it is UTF-8. */
static void label(FILE *out, const char *name, const char *value, const char *behind)
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
	fprintf(out, "\"%s", behind);
	free(mended);
}

/* A state out of a list: 1 for the one that it is. */
static void state_set(
	FILE *out, const char *name, const char *help, const char *const *states, const char *state)
{
	begin(out, &(struct family){name, "", help}, "stateset");
	for (; *states != NULL; states++)
		fprintf(out, "buscapd_%s{buscapd_%s=\"%s\"} %d\n", name, name, *states,
			strcmp(*states, state) == 0);
}

static void write_board_identity(FILE *out, const struct bc_board *b)
{
	const struct bc_board_identity *id = &b->identity;
	char text[16];

	begin(out, &(struct family){"board", "", "The board that is there, or was last."}, "info");
	snprintf(text, sizeof(text), "%04x:%04x", id->vid, id->pid);
	fputs("buscapd_board_info{", out);
	label(out, "id", text, ",");
	label(out, "serial", id->serial, ",");
	label(out, "product", id->product, ",");
	label(out, "port", id->port, ",");
	snprintf(text, sizeof(text), "%u", id->address);
	label(out, "address", text, ",");
	label(out, "speed", id->speed, ",");
	snprintf(text, sizeof(text), "%u", id->endpoint);
	label(out, "endpoint", text, "");
	if (b->has_info) {
		fputs(",", out);
		label(out, "firmware", b->firmware, ",");
		label(out, "own_serial", b->own_serial, ",");
		snprintf(text, sizeof(text), "%" PRIu32, b->protocol_version);
		label(out, "protocol_version", text, ",");
		snprintf(text, sizeof(text), "%" PRIu32, b->features);
		label(out, "features", text, "");
	}
	fputs("} 1\n", out);
	gauge(out, "board_packet_bytes", "bytes", "Of a packet of its endpoint.", id->packet_bytes);
	gauge(out, "board_transfers", "", "Transfers in flight.", b->transfers);
	gauge(out, "board_transfer_bytes", "bytes", "Of each transfer.", b->transfer_bytes);
	if (!b->has_info)
		return;
	gauge(out, "board_clock_hertz", "hertz", "Its clock, as it says.", b->clock_hz);
	gauge(out, "board_fifo_samples", "samples", "What its FIFO holds, as it says.",
		b->fifo_samples);
}

static void write_board(FILE *out, const struct bc_board *b)
{
	static const char *const states[] = {
		"detached", "opening", "streaming", "stopping", "back-off", NULL};

	if (b == NULL)
		return;
	state_set(out, "board_state", "The board.", states, bc_board_state_name(b->state));
	if (b->identity.vid != 0)
		write_board_identity(out, b);
	if (b->has_counters) {
		gauge(out, "board_counted_samples", "samples",
			"Samples by the board's own count, as last read.", b->counters.samples);
		gauge(out, "board_counted_lost_samples", "samples",
			"Samples lost by the board's own count, as last read.", b->counters.lost);
		gauge(out, "board_fifo_high_samples", "samples",
			"The most that its FIFO held, as last read.", b->counters.fifo_high);
	}
	counter(out, "board_received_bytes", "bytes", "Bytes that boards sent.", b->bytes);
	counter(out, "board_plugs", "", "Times that a board began to stream.", b->plugs);
	counter(out, "board_unplugs", "", "Times that one went.", b->unplugs);
	counter(out, "board_stalls", "", "Transfers that ended by a stall.", b->stalls);
	counter(out, "board_overflows", "", "Transfers that ended by an overflow.", b->overflows);
	counter(out, "board_errors", "", "Transfers that failed otherwise.", b->errors);
	counter(out, "board_timeouts", "", "Transfers that ended by their time-out.", b->timeouts);
	counter(out, "board_silences", "", "Times that no data came for too long.", b->silences);
	counter(out, "board_restarts", "", "Times that a board was opened anew.", b->restarts);
	if (b->last_error[0] != '\0') {
		begin(out, &(struct family){"board_error", "", "Its last error."}, "info");
		fputs("buscapd_board_error_info{", out);
		label(out, "error", b->last_error, "} 1\n");
	}
}

static void write_source(FILE *out, const struct bc_status *s)
{
	begin(out, &(struct family){"source", "", "What is recorded."}, "info");
	fputs("buscapd_source_info{", out);
	label(out, "kind", s->source_kind, ",");
	label(out, "name", s->source_name, "} 1\n");
	gauge(out, "source_clock_hertz", "hertz", "The bus clock; 0: not known.", s->clock_hz);
	write_board(out, s->board);
}

/* Each of the user's pairs is a series: a key need not be a label's name. */
static void write_metadata(FILE *out, const char *text)
{
	json_t *metadata = bc_metadata_parse(text);
	const char *key;
	json_t *value;

	if (json_object_size(metadata) != 0)
		begin(out, &(struct family){"recording_metadata", "", "What the user noted on it."},
			"info");
	json_object_foreach(metadata, key, value)
	{
		fputs("buscapd_recording_metadata_info{", out);
		label(out, "key", key, ",");
		label(out, "value", json_string_value(value), "} 1\n");
	}
	json_decref(metadata);
}

static void write_recording(FILE *out, const struct bc_status *s)
{
	struct bc_status_progress progress;

	if (s->recording == NULL)
		return;
	bc_status_progress(s, &progress);
	begin(out, &(struct family){"recording", "", "The recording under way."}, "info");
	fputs("buscapd_recording_info{", out);
	label(out, "id", s->recording->header.recording, ",");
	label(out, "label", s->recording->header.label, ",");
	label(out, "path", progress.path, "} 1\n");
	gauge(out, "recording_start_time_seconds", "seconds", "When it was started, of the epoch.",
		(uint64_t)(s->recording->started_ns / 1000000000));
	gauge(out, "recording_segment", "", "The number of its newest segment.", progress.segment);
	gauge(out, "recording_records", "records", "Records written.", progress.records);
	gauge(out, "recording_bytes", "bytes", "Bytes on the disk.", progress.bytes);
	write_metadata(out, s->metadata);
}

static void write_counts(FILE *out, const struct bc_status *s)
{
	const struct bc_counts *c = s->counts;
	const struct {
		const char *reason;
		uint64_t samples;
	} dropped[] = {{"buffer", c->dropped_buffer}, {"disk", c->dropped_disk},
		{"invalid", c->dropped_invalid}, {"filtered", c->dropped_filtered},
		{"idle", c->dropped_idle}};

	counter(out, "received_samples", "samples", "Samples in valid frames.", c->received);
	counter(out, "written_samples", "samples", "Samples given to the kernel.", c->written);
	counter(out, "durable_samples", "samples", "Samples that are on the disk for good.",
		c->durable);
	gauge(out, "in_flight_samples", "samples", "Samples on their way to the disk.",
		c->in_flight);
	begin(out, &(struct family){"dropped_samples", "samples", "Samples not written, by why."},
		"counter");
	for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++)
		fprintf(out, "buscapd_dropped_samples_total{reason=\"%s\"} %" PRIu64 "\n",
			dropped[i].reason, dropped[i].samples);
	counter(out, "board_lost_samples", "samples", "Samples that boards said they lost.",
		c->board_lost);
	counter(out, "skipped_bytes", "bytes", "Bytes of no valid frame.", c->skipped_bytes);
	counter(out, "gaps", "", "Gaps on record.", c->gaps);
	counter(out, "damages", "", "Places where the source could not be read.", s->damages);
	counter(out, "unknown_special_cycles", "cycles", "Special cycles of no known kind.",
		c->unknown_special);
	counter(out, "raw_dropped_bytes", "bytes", "Bytes that the raw capture lacks.",
		c->raw_dropped_bytes);
}

static void write_way(FILE *out, const struct bc_status *s)
{
	double hours;

	gauge(out, "samples_per_second", "", "Samples received, in the last second.",
		(uint64_t)s->rates.samples_per_s);
	gauge(out, "record_bytes_per_second", "", "Bytes of records, before compression.",
		(uint64_t)s->rates.bytes_in_per_s);
	gauge(out, "written_bytes_per_second", "", "Bytes written.",
		(uint64_t)s->rates.bytes_out_per_s);
	gauge(out, "buffer_chunks", "chunks", "Chunks in the buffer.", s->buffer.chunks);
	gauge(out, "buffer_free_chunks", "chunks", "Of them, free.", s->buffer.free);
	gauge(out, "buffer_low_water_chunks", "chunks", "The fewest that were ever free.",
		s->buffer.low_water);
	gauge(out, "disk_free_bytes", "bytes", "Free on the file system.", s->stats->free_bytes);
	if (bc_status_hours_left(s, &hours))
		real(out, "disk_left_seconds", "seconds",
			"Until the disk is full, at the rate of now.", hours * 3600);
	gauge(out, "disk_stuck", "", "Whether the disk takes nothing: 1.", s->stats->is_stuck);
	if (s->stats->error[0] != '\0') {
		begin(out, &(struct family){"disk_error", "", "The disk's last error."}, "info");
		fputs("buscapd_disk_error_info{", out);
		label(out, "error", s->stats->error, "} 1\n");
	}
	counter(out, "sealed_segments", "segments", "Segments sealed.", s->sealed_segments);
	gauge(out, "sealed_commands_waiting", "", "Commands for sealed segments, to be run.",
		s->commands_waiting);
	counter(out, "sealed_commands_failed", "", "Of them, failed.", s->commands_failed);
	counter(out, "sealed_manifest_failed", "", "Sealed files whose hash no manifest has.",
		s->stats->manifest_failed);
}

static void write_flight(FILE *out, const struct bc_status_flight *f)
{
	if (f == NULL)
		return;
	real(out, "flight_seconds", "seconds", "What the flight recorder holds.",
		(double)(uint64_t)(f->seconds * 10) / 10);
	gauge(out, "flight_bytes", "bytes", "The same, in bytes of records.", f->bytes);
	gauge(out, "flight_records", "records", "The same, in records.", f->records);
	gauge(out, "flight_chunks", "chunks", "The same, in chunks of the buffer.", f->chunks);
	real(out, "flight_limit_seconds", "seconds", "The most that it holds; 0: no limit.",
		f->limit_seconds);
	gauge(out, "flight_limit_bytes", "bytes", "The same, in bytes; 0: no limit.",
		f->limit_bytes);
}

static void write_rest(FILE *out, const struct bc_status *s)
{
	write_flight(out, s->flight);
	if (s->replay_id != NULL) {
		begin(out, &(struct family){"replay", "", "The replay under way."}, "info");
		fputs("buscapd_replay_info{", out);
		label(out, "id", s->replay_id, ",");
		label(out, "path", s->replay_path, "} 1\n");
	}
	gauge(out, "triggers", "", "Triggers armed.", s->triggers);
	gauge(out, "clients", "", "Connections to the socket.", s->clients);
	begin(out, &(struct family){"streams", "", "Clients that read a stream, by which."},
		"gauge");
	fprintf(out,
		"buscapd_streams{stream=\"events\"} %u\nbuscapd_streams{stream=\"records\"} %u\n",
		s->streams_events, s->streams_records);
	real(out, "uptime_seconds", "seconds", "Since the daemon was started.",
		(double)(uint64_t)(s->uptime_s * 10) / 10);
}

char *bc_metrics_write(const struct bc_status *s)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (out == NULL)
		return NULL;
	begin(out, &(struct family){"build", "", "Which buscapd this is."}, "info");
	fprintf(out, "buscapd_build_info{version=\"%s\"} 1\n", BC_VERSION);
	state_set(out, "state", "What it does.", bc_status_states, s->state);
	state_set(out, "mode", "When it records.", bc_status_modes, s->mode);
	write_source(out, s);
	write_recording(out, s);
	write_counts(out, s);
	write_way(out, s);
	write_rest(out, s);
	fputs("# EOF\n", out);
	bool is_whole = ferror(out) == 0;
	if (fclose(out) == 0 && is_whole)
		return text;
	free(text);
	return NULL;
}
