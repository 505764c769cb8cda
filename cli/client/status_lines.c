#include "cli/client/status_lines.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Thresholds for the time until the disk is full. */
#define HOURS_BAD  1.0
#define HOURS_WARN 8.0

#define PHRASE_MAX 1200u

typedef const struct bc_status_writer writer;

static void write_phrase(writer *w, enum bc_tone tone, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void write_phrase(writer *w, enum bc_tone tone, const char *format, ...)
{
	char phrase[PHRASE_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(phrase, sizeof(phrase), format, args);
	va_end(args);
	w->write(w->context, tone, phrase);
}

/* Writes a text unless it is empty. `format` has one %s. */
static void write_text(writer *w, enum bc_tone tone, const char *format, const char *text)
{
	char phrase[PHRASE_MAX];
	const char *at = strstr(format, "%s");

	if (*text == '\0')
		return;
	snprintf(phrase, sizeof(phrase), "%.*s%s%s", (int)(at - format), format, text, at + 2);
	w->write(w->context, tone, phrase);
}

/* Writes "12,345 segments sealed" unless the count is 0; `after` is " sealed". */
static void write_count(
	writer *w, enum bc_tone tone, uint64_t count, const char *word, const char *after)
{
	char text[BC_HUMANIZE_MAX];

	if (count != 0)
		write_phrase(w, tone, "%s %s%s%s", bc_humanize_count(text, count), word,
			bc_plural(count), after);
}

/* Writes "buffer 12,345" unless the count is 0. */
static void write_part(writer *w, enum bc_tone tone, const char *name, uint64_t count)
{
	char text[BC_HUMANIZE_MAX];

	if (count != 0)
		write_phrase(w, tone, "%s %s", name, bc_humanize_count(text, count));
}

/* Writes "1.24 GB free" unless the amount is 0. */
static void write_bytes(writer *w, enum bc_tone tone, double bytes, const char *after)
{
	char text[BC_HUMANIZE_MAX];

	if (bytes > 0)
		write_phrase(w, tone, "%s%s", bc_humanize_bytes(text, bytes), after);
}

const char *bc_status_seconds(char out[BC_HUMANIZE_MAX], double seconds)
{
	if (seconds >= 1 && seconds < 10)
		snprintf(out, BC_HUMANIZE_MAX, "%.0f s", floor(seconds));
	else
		bc_humanize_time(out, floor(seconds));
	return out;
}

static void write_source(const struct bc_status_model *s, writer *w)
{
	char hz[BC_HUMANIZE_MAX];

	write_phrase(w, BC_TONE_PLAIN, "%s", s->source.kind[0] != '\0' ? s->source.kind : "none");
	if (s->source.clock_hz != 0) {
		bc_humanize_rate(hz, (double)s->source.clock_hz);
		write_phrase(
			w, BC_TONE_PLAIN, "clock %s%sHz", hz, strchr(hz, ' ') != NULL ? "" : " ");
	}
	if (strcmp(s->source.name, s->source.kind) != 0)
		write_text(w, BC_TONE_PLAIN, "%s", s->source.name);
}

static void write_board(const struct bc_status_model *s, writer *w)
{
	static const char *const faults[BC_STATUS_FAULTS] = {
		"stall", "overflow", "error", "timeout", "silence", "restart"};
	bool is_well = strcmp(s->board.state, "streaming") == 0;

	if (!s->board.is_present)
		return;
	write_phrase(w, is_well ? BC_TONE_GOOD : BC_TONE_WARN, "%s", s->board.state);
	if (s->board.id[0] != '\0')
		write_phrase(w, BC_TONE_PLAIN, "%s%s%s", s->board.id,
			s->board.serial[0] != '\0' ? " " : "", s->board.serial);
	write_count(w, BC_TONE_WARN, s->board.unplugs, "unplug", "");
	for (unsigned i = 0; i < BC_STATUS_FAULTS; i++)
		write_count(w, BC_TONE_WARN, s->board.faults[i], faults[i], "");
	write_text(w, BC_TONE_WARN, "last: %s", s->board.last_error);
	write_text(w, BC_TONE_PLAIN, "%s speed", s->board.speed);
	write_text(w, BC_TONE_PLAIN, "%s", s->board.product);
	write_text(w, BC_TONE_PLAIN, "firmware %s", s->board.firmware);
	if (!w->is_brief)
		write_text(w, BC_TONE_PLAIN, "port %s", s->board.port);
}

static void write_recording(const struct bc_status_model *s, writer *w)
{
	const char *path = s->recording.path;
	const char *slash = strrchr(path, '/');

	if (!s->recording.is_present)
		return;
	write_phrase(w, BC_TONE_PLAIN, "%s", s->recording.id);
	/* The label is normally part of the id. */
	if (strstr(s->recording.id, s->recording.label) == NULL)
		write_text(w, BC_TONE_PLAIN, "label %s", s->recording.label);
	if (slash != NULL)
		write_phrase(
			w, BC_TONE_PLAIN, "in %.*s", slash != path ? (int)(slash - path) : 1, path);
}

static void write_amounts(const struct bc_status_model *s, writer *w)
{
	uint64_t records = s->recording.records;
	char text[BC_HUMANIZE_MAX];

	if (!s->recording.is_present) {
		write_phrase(w, BC_TONE_PLAIN, "none");
		if (w->is_brief)
			write_text(w, BC_TONE_PLAIN, "mode %s", s->mode);
		return;
	}
	write_phrase(w, BC_TONE_PLAIN, "%s record%s",
		w->is_brief ? bc_humanize_rate(text, (double)records)
			    : bc_humanize_count(text, records),
		bc_plural(records));
	write_phrase(w, BC_TONE_PLAIN, "%s", bc_humanize_bytes(text, (double)s->recording.bytes));
	double seconds = (double)w->now - s->recording.started_s;
	if (!w->is_brief)
		write_text(w, BC_TONE_PLAIN, "since %s", s->recording.started);
	else if (s->recording.started_s > 0 && seconds >= 0)
		write_phrase(w, BC_TONE_PLAIN, "for %s", bc_status_seconds(text, seconds));
	write_phrase(w, BC_TONE_PLAIN, "segment %" PRIu64, s->recording.segment);
}

static void write_rates(const struct bc_status_model *s, writer *w)
{
	char text[BC_HUMANIZE_MAX];

	write_phrase(w, BC_TONE_PLAIN, "%s samples/s", bc_humanize_rate(text, s->rates.samples));
	write_phrase(
		w, BC_TONE_PLAIN, "%s/s of records", bc_humanize_bytes(text, s->rates.bytes_in));
	write_phrase(w, BC_TONE_PLAIN, "%s/s to disk", bc_humanize_bytes(text, s->rates.bytes_out));
}

static void write_lost(const struct bc_status_model *s, writer *w)
{
	uint64_t lost = bc_status_model_lost(s);
	char text[BC_HUMANIZE_MAX];

	if (lost != 0 && s->counts.inexact_gaps != 0)
		write_phrase(w, BC_TONE_BAD, "at least %s sample%s", bc_humanize_count(text, lost),
			bc_plural(lost));
	else if (lost != 0)
		write_count(w, BC_TONE_BAD, lost, "sample", "");
	else if (s->counts.gaps != 0)
		write_phrase(w, BC_TONE_WARN, "unknown number of samples");
	else if (s->counts.deleted_records == 0)
		write_phrase(w, BC_TONE_GOOD, "none");
	write_count(w, BC_TONE_BAD, s->counts.deleted_records, "record", " in deleted files");
	if (w->lost_s_ago >= 0)
		write_phrase(w, BC_TONE_BAD, "last %s ago", bc_status_seconds(text, w->lost_s_ago));
	write_count(w, BC_TONE_WARN, s->counts.gaps, "gap", "");
	for (unsigned cause = 1; cause < BC_GAP_CAUSES; cause++)
		write_part(w, BC_TONE_BAD, bc_gap_cause_name(cause), s->counts.lost[cause]);
	write_bytes(w, BC_TONE_WARN, (double)s->counts.skipped_bytes, " skipped");
}

static void write_left_out(const struct bc_status_model *s, writer *w)
{
	write_part(w, BC_TONE_PLAIN, "idle", s->counts.idle);
	write_part(w, BC_TONE_PLAIN, "filtered", s->counts.filtered);
	write_part(w, BC_TONE_PLAIN, "invalid", s->counts.invalid);
}

static void write_buffer(const struct bc_status_model *s, writer *w)
{
	write_phrase(w, BC_TONE_PLAIN, "%" PRIu64 " of %" PRIu64 " chunks free", s->buffer.free,
		s->buffer.chunks);
	write_phrase(w, BC_TONE_PLAIN, "lowest %" PRIu64, s->buffer.min_free);
}

/* Writes "ring: 19.0 of 24.0 MB", or the segments if the bytes have no known limit. */
static void write_ring(const struct bc_status_model *s, writer *w)
{
	char used[BC_HUMANIZE_MAX];
	char limit[BC_HUMANIZE_MAX];

	if (!s->disk.has_ring)
		return;
	if (s->disk.ring_limit_bytes == 0) {
		write_phrase(w, BC_TONE_PLAIN, "ring: %" PRIu64 " of %" PRIu64 " segments",
			s->disk.ring_segments, s->disk.ring_limit_segments);
		return;
	}
	bc_humanize_bytes(used, (double)s->disk.ring_bytes);
	bc_humanize_bytes(limit, (double)s->disk.ring_limit_bytes);
	char *unit = strchr(used, ' ');
	if (unit != NULL && strchr(limit, ' ') != NULL && strcmp(unit, strchr(limit, ' ')) == 0)
		*unit = '\0';
	write_phrase(w, BC_TONE_PLAIN, "ring: %s of %s", used, limit);
}

static void write_time_left(double hours, writer *w)
{
	enum bc_tone tone = hours < HOURS_BAD    ? BC_TONE_BAD
			    : hours < HOURS_WARN ? BC_TONE_WARN
						 : BC_TONE_GOOD;

	if (hours >= 24.0 * 1000)
		write_phrase(w, tone, "more than 999 days left");
	else if (hours >= 48)
		write_phrase(w, tone, "%.1f days left", hours / 24);
	else if (hours >= 1)
		write_phrase(w, tone, "%.1f hours left", hours);
	else if (hours >= 0)
		write_phrase(w, tone, "%.0f minutes left", floor(hours * 60 + 0.001));
}

/* What is wrong comes first, and the file last, because the end of a line may be cut off. */
static void write_disk(const struct bc_status_model *s, writer *w)
{
	const char *error = s->disk.last_error;
	const char *cause = s->disk.last_error_cause[0] != '\0' ? s->disk.last_error_cause : error;
	int file = (int)(strlen(error) - strlen(cause)) - (int)strlen(": ");
	char text[BC_HUMANIZE_MAX];

	if (s->disk.is_stuck)
		write_phrase(w, BC_TONE_BAD, "stuck: %s", cause);
	write_ring(s, w);
	if (!s->disk.is_stuck)
		write_time_left(s->disk.seconds_left / 3600, w);
	if (s->disk.is_free_unknown)
		write_phrase(w, BC_TONE_PLAIN, "free space unknown");
	else
		write_phrase(w, BC_TONE_PLAIN, "%s free",
			bc_humanize_bytes(text, (double)s->disk.free_bytes));
	if (!s->disk.is_stuck)
		write_text(w, BC_TONE_WARN, "last error: %s", cause);
	if (file > 0)
		write_phrase(w, BC_TONE_PLAIN, "in %.*s", file, error);
}

static void write_flight(const struct bc_status_model *s, writer *w)
{
	char text[BC_HUMANIZE_MAX];
	char limit[BC_HUMANIZE_MAX];

	if (!s->flight.is_present)
		return;
	bc_humanize_time(text, s->flight.seconds);
	if (s->flight.limit_seconds > 0)
		write_phrase(w, BC_TONE_PLAIN, "%s of %s", text,
			bc_humanize_time(limit, s->flight.limit_seconds));
	else
		write_phrase(w, BC_TONE_PLAIN, "%s", text);
	bc_humanize_bytes(text, (double)s->flight.bytes);
	if (s->flight.limit_bytes != 0)
		write_phrase(w, BC_TONE_PLAIN, "%s of %s", text,
			bc_humanize_bytes(limit, (double)s->flight.limit_bytes));
	else
		write_phrase(w, BC_TONE_PLAIN, "%s", text);
	if (!w->is_brief)
		write_count(w, BC_TONE_PLAIN, s->flight.records, "record", "");
}

static void write_daemon(const struct bc_status_model *s, writer *w)
{
	if (w->is_brief)
		write_text(w, BC_TONE_PLAIN, "version %s", s->version);
	write_phrase(w, BC_TONE_PLAIN, "%" PRIu64 " client%s", s->clients, bc_plural(s->clients));
	if (!w->is_brief) {
		write_count(w, BC_TONE_PLAIN, s->event_streams, "event stream", "");
		write_count(w, BC_TONE_PLAIN, s->record_streams, "record stream", "");
	}
	write_count(w, BC_TONE_BAD, s->sealed.failed, "command", " failed");
	write_count(w, BC_TONE_WARN, s->dropped_log_lines, "log line", " dropped");
	write_count(w, BC_TONE_PLAIN, s->sealed.waiting, "command", " waiting");
	write_count(w, BC_TONE_PLAIN, s->sealed.segments, "segment", " sealed");
	write_count(w, BC_TONE_PLAIN, s->triggers, "trigger", " armed");
}

static const struct {
	const char *label;
	void (*write)(const struct bc_status_model *status, writer *w);
} lines[BC_STATUS_LINES] = {
	[BC_STATUS_SOURCE] = {"source", write_source},
	[BC_STATUS_BOARD] = {"board", write_board},
	[BC_STATUS_RECORDING] = {"recording", write_recording},
	[BC_STATUS_AMOUNTS] = {"recording", write_amounts},
	[BC_STATUS_RATES] = {"rate", write_rates},
	[BC_STATUS_LOST] = {"lost", write_lost},
	[BC_STATUS_LEFT_OUT] = {"left out", write_left_out},
	[BC_STATUS_BUFFER] = {"buffer", write_buffer},
	[BC_STATUS_DISK] = {"disk", write_disk},
	[BC_STATUS_FLIGHT] = {"flight", write_flight},
	[BC_STATUS_DAEMON] = {"daemon", write_daemon},
};

const char *bc_status_label(enum bc_status_line_id line)
{
	return lines[line].label;
}

void bc_status_write_line(const struct bc_status_model *status, enum bc_status_line_id line,
	const struct bc_status_writer *w)
{
	lines[line].write(status, w);
}

/* ---- the page of `buscap status` */

struct page {
	struct bc_output *o;
	const char *label; /* of the current line; NULL once written */
};

static void print_phrase(void *context, enum bc_tone tone, const char *phrase)
{
	struct page *page = context;

	(void)tone;
	if (page->label != NULL)
		bc_output_format(page->o, "  %-10s %s", page->label, phrase);
	else
		bc_output_format(page->o, ", %s", phrase);
	page->label = NULL;
}

void bc_status_print(struct bc_output *o, const struct bc_status_model *s, const char *line_end)
{
	struct page page = {.o = o};
	const struct bc_status_writer w = {
		.write = print_phrase, .context = &page, .lost_s_ago = -1};
	char text[BC_HUMANIZE_MAX];

	bc_output_format(o, "buscapd %s: %s%s, mode %s, up %s%s\n", s->version, s->state,
		s->disk.is_stuck ? " (disk stuck)" : "", s->mode,
		bc_humanize_time(text, s->uptime_s), line_end);
	for (enum bc_status_line_id line = 0; line < BC_STATUS_LINES; line++) {
		page.label = line == BC_STATUS_AMOUNTS && s->recording.is_present
				     ? ""
				     : lines[line].label;
		lines[line].write(s, &w);
		if (page.label == NULL)
			bc_output_format(o, "%s\n", line_end);
		if (line != BC_STATUS_AMOUNTS)
			continue;
		for (const char *note = s->recording.notes; *note != '\0';) {
			int n = (int)strcspn(note, "\n");
			bc_output_format(o, "  %-10s note %.*s%s\n", "", n, note, line_end);
			note += n + 1;
		}
	}
}
