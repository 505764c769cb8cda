#include "cli/client/status_model.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/term/json_path.h"
#include "cli/term/safe_text.h"

enum kind {
	TEXT,   /* escaped */
	COUNT,  /* uint64_t */
	NUMBER, /* double, not negative */
	TIME,   /* a time as text -> double, Unix time, 0 if invalid */
	OBJECT, /* bool: present */
	FLAG,   /* bool */
};

#define FIELD(kind, path, member)                                        \
	{                                                                \
		kind, path, offsetof(struct bc_status_model, member),    \
			sizeof(((struct bc_status_model *)NULL)->member) \
	}

static const struct field {
	enum kind kind;
	const char *path;
	size_t at;
	size_t bytes;
} fields[] = {
	FIELD(TEXT, "version", version),
	FIELD(TEXT, "state", state),
	FIELD(TEXT, "mode", mode),
	FIELD(NUMBER, "uptime_seconds", uptime_s),
	FIELD(COUNT, "clients", clients),
	FIELD(COUNT, "streams.events", event_streams),
	FIELD(COUNT, "streams.records", record_streams),
	FIELD(TEXT, "source.kind", source.kind),
	FIELD(TEXT, "source.name", source.name),
	FIELD(COUNT, "source.clock_hz", source.clock_hz),
	FIELD(OBJECT, "source.board", board.is_present),
	FIELD(TEXT, "source.board.state", board.state),
	FIELD(TEXT, "source.board.id", board.id),
	FIELD(TEXT, "source.board.serial", board.serial),
	FIELD(TEXT, "source.board.product", board.product),
	FIELD(TEXT, "source.board.port", board.port),
	FIELD(TEXT, "source.board.speed", board.speed),
	FIELD(TEXT, "source.board.info.firmware", board.firmware),
	FIELD(COUNT, "source.board.unplugs", board.unplugs),
	FIELD(COUNT, "source.board.stalls", board.faults[0]),
	FIELD(COUNT, "source.board.overflows", board.faults[1]),
	FIELD(COUNT, "source.board.errors", board.faults[2]),
	FIELD(COUNT, "source.board.timeouts", board.faults[3]),
	FIELD(COUNT, "source.board.silences", board.faults[4]),
	FIELD(COUNT, "source.board.restarts", board.faults[5]),
	FIELD(TEXT, "source.board.last_error", board.last_error),
	FIELD(OBJECT, "recording", recording.is_present),
	FIELD(TEXT, "recording.id", recording.id),
	FIELD(TEXT, "recording.label", recording.label),
	FIELD(TEXT, "recording.path", recording.path),
	FIELD(TEXT, "recording.started", recording.started),
	FIELD(TIME, "recording.started", recording.started_s),
	FIELD(COUNT, "recording.segment", recording.segment),
	FIELD(COUNT, "recording.records", recording.records),
	FIELD(COUNT, "recording.bytes", recording.bytes),
	FIELD(OBJECT, "flight", flight.is_present),
	FIELD(NUMBER, "flight.seconds", flight.seconds),
	FIELD(NUMBER, "flight.limit_seconds", flight.limit_seconds),
	FIELD(COUNT, "flight.records", flight.records),
	FIELD(COUNT, "flight.bytes", flight.bytes),
	FIELD(COUNT, "flight.limit_bytes", flight.limit_bytes),
	FIELD(COUNT, "counts.received", counts.received),
	FIELD(COUNT, "counts.dropped.filtered", counts.filtered),
	FIELD(COUNT, "counts.dropped.invalid", counts.invalid),
	FIELD(COUNT, "counts.dropped.idle", counts.idle),
	FIELD(COUNT, "counts.skipped_bytes", counts.skipped_bytes),
	FIELD(COUNT, "counts.deleted_records", counts.deleted_records),
	FIELD(COUNT, "counts.gaps", counts.gaps),
	FIELD(COUNT, "counts.inexact_gaps", counts.inexact_gaps),
	FIELD(NUMBER, "rates.samples_per_second", rates.samples),
	FIELD(NUMBER, "rates.record_bytes_per_second", rates.bytes_in),
	FIELD(NUMBER, "rates.written_bytes_per_second", rates.bytes_out),
	FIELD(COUNT, "buffer.chunks", buffer.chunks),
	FIELD(COUNT, "buffer.free_chunks", buffer.free),
	FIELD(COUNT, "buffer.min_free_chunks", buffer.min_free),
	FIELD(COUNT, "disk.free_bytes", disk.free_bytes),
	FIELD(NUMBER, "disk.time_left_seconds", disk.seconds_left),
	FIELD(OBJECT, "disk.ring", disk.has_ring),
	FIELD(COUNT, "disk.ring.bytes", disk.ring_bytes),
	FIELD(COUNT, "disk.ring.limit_bytes", disk.ring_limit_bytes),
	FIELD(COUNT, "disk.ring.segments", disk.ring_segments),
	FIELD(COUNT, "disk.ring.limit_segments", disk.ring_limit_segments),
	FIELD(FLAG, "disk.stuck", disk.is_stuck),
	FIELD(TEXT, "disk.last_error", disk.last_error),
	FIELD(TEXT, "disk.last_error_cause", disk.last_error_cause),
	FIELD(COUNT, "triggers", triggers),
	FIELD(COUNT, "dropped_log_lines", dropped_log_lines),
	FIELD(COUNT, "sealed.segments", sealed.segments),
	FIELD(COUNT, "sealed.commands_waiting", sealed.waiting),
	FIELD(COUNT, "sealed.commands_failed", sealed.failed),
};

static double parse_time(const char *text)
{
	struct tm tm = {0};

	if (text == NULL || strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) == NULL)
		return 0;
	time_t seconds = timegm(&tm);
	return seconds > 0 ? (double)seconds : 0;
}

static void parse_field(struct bc_status_model *status, const json_t *root, const struct field *f)
{
	void *out = (char *)status + f->at;

	switch (f->kind) {
	case TEXT:
		bc_safe_text(out, f->bytes, bc_json_path_text(root, f->path));
		break;
	case COUNT:
		*(uint64_t *)out = bc_json_path_count(root, f->path);
		break;
	case NUMBER:
		*(double *)out = bc_json_path_number(root, f->path);
		break;
	case TIME:
		*(double *)out = parse_time(bc_json_path_text(root, f->path));
		break;
	case OBJECT:
		*(bool *)out = json_is_object(bc_json_path(root, f->path));
		break;
	case FLAG:
		*(bool *)out = json_is_true(bc_json_path(root, f->path));
		break;
	}
}

static void parse_lost(struct bc_status_model *status, const json_t *object)
{
	char path[64];

	for (unsigned cause = 1; cause < BC_GAP_CAUSES; cause++) {
		snprintf(path, sizeof(path), "counts.lost.%s", bc_gap_cause_name(cause));
		status->counts.lost[cause] = bc_json_path_count(object, path);
	}
}

static void parse_notes(char *out, size_t bytes, json_t *metadata)
{
	const char *key;
	json_t *value;
	size_t used = 0;

	json_object_foreach(metadata, key, value)
	{
		char safe_key[256];
		char safe[1024];
		if (!json_is_string(value))
			continue;
		int n = snprintf(out + used, bytes - used, "%s=%s\n",
			bc_safe_text(safe_key, sizeof(safe_key), key),
			bc_safe_text(safe, sizeof(safe), json_string_value(value)));
		if (n < 0 || (size_t)n >= bytes - used) {
			out[used] = '\0';
			return;
		}
		used += (size_t)n;
	}
}

bool bc_status_model_parse(struct bc_status_model *status, const json_t *object)
{
	memset(status, 0, sizeof(*status));
	if (!json_is_string(bc_json_path(object, "state")))
		return false;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		parse_field(status, object, &fields[i]);
	parse_lost(status, object);
	status->disk.is_free_unknown = json_is_null(bc_json_path(object, "disk.free_bytes"));
	if (!json_is_number(bc_json_path(object, "disk.time_left_seconds")))
		status->disk.seconds_left = -1;
	parse_notes(status->recording.notes, sizeof(status->recording.notes),
		bc_json_path(object, "recording.metadata"));
	return true;
}
