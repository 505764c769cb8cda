#include "cli/client/status_lines.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Less than this many hours of disk are a reason to act, or to act soon. */
#define HOURS_BAD  1.0
#define HOURS_WARN 8.0

#define PHRASE_MAX 1200u

typedef const struct bc_status_writer writer;

static void say(writer *w, enum bc_tone tone, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void say(writer *w, enum bc_tone tone, const char *format, ...)
{
	char phrase[PHRASE_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(phrase, sizeof(phrase), format, args);
	va_end(args);
	w->say(w->context, tone, phrase);
}

/* A text, if there is one: the format has a %s for it. */
static void say_text(writer *w, enum bc_tone tone, const char *format, const char *text)
{
	char phrase[PHRASE_MAX];
	const char *at = strstr(format, "%s");

	if (*text == '\0')
		return;
	snprintf(phrase, sizeof(phrase), "%.*s%s%s", (int)(at - format), format, text, at + 2);
	w->say(w->context, tone, phrase);
}

/* "12,345 records", if there are any. */
static void say_count(writer *w, enum bc_tone tone, uint64_t count, const char *word)
{
	char text[BC_HUMANIZE_MAX];

	if (count != 0)
		say(w, tone, "%s %s%s", bc_humanize_count(text, count), word, bc_plural(count));
}

/* "buffer 12,345", if there are any. */
static void say_part(writer *w, enum bc_tone tone, const char *name, uint64_t count)
{
	char text[BC_HUMANIZE_MAX];

	if (count != 0)
		say(w, tone, "%s %s", name, bc_humanize_count(text, count));
}

/* "1.24 GB free", if there are any. */
static void say_bytes(writer *w, enum bc_tone tone, double bytes, const char *after)
{
	char text[BC_HUMANIZE_MAX];

	if (bytes > 0)
		say(w, tone, "%s%s", bc_humanize_bytes(text, bytes), after);
}

const char *bc_status_seconds(char out[BC_HUMANIZE_MAX], double seconds)
{
	if (seconds >= 1 && seconds < 10)
		snprintf(out, BC_HUMANIZE_MAX, "%.0f s", floor(seconds));
	else
		bc_humanize_time(out, floor(seconds));
	return out;
}

static void say_source(const struct bc_status *s, writer *w)
{
	char hz[BC_HUMANIZE_MAX];

	say(w, BC_TONE_PLAIN, "%s", s->source.kind[0] != '\0' ? s->source.kind : "none");
	if (s->source.clock_hz != 0) {
		bc_humanize_rate(hz, (double)s->source.clock_hz);
		say(w, BC_TONE_PLAIN, "clock %s%sHz", hz, strchr(hz, ' ') != NULL ? "" : " ");
	}
	if (strcmp(s->source.name, s->source.kind) != 0)
		say_text(w, BC_TONE_PLAIN, "%s", s->source.name);
}

static void say_board(const struct bc_status *s, writer *w)
{
	static const char *const faults[BC_STATUS_FAULTS] = {
		"stall", "overflow", "error", "timeout", "silence", "restart"};
	bool is_well = strcmp(s->board.state, "streaming") == 0;

	if (!s->board.is_there)
		return;
	say(w, is_well ? BC_TONE_GOOD : BC_TONE_WARN, "%s", s->board.state);
	if (s->board.id[0] != '\0')
		say(w, BC_TONE_PLAIN, "%s%s%s", s->board.id, s->board.serial[0] != '\0' ? " " : "",
			s->board.serial);
	say_count(w, BC_TONE_WARN, s->board.unplugs, "unplug");
	for (unsigned i = 0; i < BC_STATUS_FAULTS; i++)
		say_count(w, BC_TONE_WARN, s->board.faults[i], faults[i]);
	say_text(w, BC_TONE_WARN, "last: %s", s->board.last_error);
	say_text(w, BC_TONE_PLAIN, "%s speed", s->board.speed);
	say_text(w, BC_TONE_PLAIN, "%s", s->board.product);
	say_text(w, BC_TONE_PLAIN, "firmware %s", s->board.firmware);
	if (!w->is_brief)
		say_text(w, BC_TONE_PLAIN, "port %s", s->board.port);
}

static void say_recording(const struct bc_status *s, writer *w)
{
	const char *path = s->recording.path;
	const char *slash = strrchr(path, '/');

	if (!s->recording.is_there)
		return;
	say(w, BC_TONE_PLAIN, "%s", s->recording.id);
	/* A label is the end of the id, mostly. */
	if (strstr(s->recording.id, s->recording.label) == NULL)
		say_text(w, BC_TONE_PLAIN, "label %s", s->recording.label);
	if (slash != NULL)
		say(w, BC_TONE_PLAIN, "in %.*s", slash != path ? (int)(slash - path) : 1, path);
}

static void say_amounts(const struct bc_status *s, writer *w)
{
	uint64_t records = s->recording.records;
	char text[BC_HUMANIZE_MAX];

	if (!s->recording.is_there) {
		say(w, BC_TONE_PLAIN, "none");
		if (w->is_brief)
			say_text(w, BC_TONE_PLAIN, "mode %s", s->mode);
		return;
	}
	say(w, BC_TONE_PLAIN, "%s record%s",
		w->is_brief ? bc_humanize_rate(text, (double)records)
			    : bc_humanize_count(text, records),
		bc_plural(records));
	say(w, BC_TONE_PLAIN, "%s", bc_humanize_bytes(text, (double)s->recording.bytes));
	double seconds = (double)w->now - s->recording.started_s;
	if (!w->is_brief)
		say_text(w, BC_TONE_PLAIN, "since %s", s->recording.started);
	else if (s->recording.started_s > 0 && seconds >= 0)
		say(w, BC_TONE_PLAIN, "for %s", bc_status_seconds(text, seconds));
	say(w, BC_TONE_PLAIN, "segment %" PRIu64, s->recording.segment);
}

static void say_rates(const struct bc_status *s, writer *w)
{
	char text[BC_HUMANIZE_MAX];

	say(w, BC_TONE_PLAIN, "%s samples/s", bc_humanize_rate(text, s->rates.samples));
	say(w, BC_TONE_PLAIN, "%s/s of records", bc_humanize_bytes(text, s->rates.bytes_in));
	say(w, BC_TONE_PLAIN, "%s/s to disk", bc_humanize_bytes(text, s->rates.bytes_out));
}

static void say_lost(const struct bc_status *s, writer *w)
{
	uint64_t lost = bc_status_lost(s);
	char text[BC_HUMANIZE_MAX];

	if (lost != 0)
		say_count(w, BC_TONE_BAD, lost, "sample");
	else if (s->counts.gaps != 0)
		say(w, BC_TONE_WARN, "unknown number of samples");
	else
		say(w, BC_TONE_GOOD, "none");
	if (w->lost_s_ago >= 0)
		say(w, BC_TONE_BAD, "last %s ago", bc_status_seconds(text, w->lost_s_ago));
	say_count(w, BC_TONE_WARN, s->counts.gaps, "gap");
	say_part(w, BC_TONE_BAD, "buffer", s->counts.buffer);
	say_part(w, BC_TONE_BAD, "disk", s->counts.disk);
	say_part(w, BC_TONE_BAD, "board", s->counts.board);
	say_bytes(w, BC_TONE_WARN, (double)s->counts.skipped_bytes, " skipped");
	say_bytes(w, BC_TONE_WARN, (double)s->counts.raw_dropped_bytes, " not kept raw");
}

static void say_left_out(const struct bc_status *s, writer *w)
{
	say_part(w, BC_TONE_PLAIN, "idle", s->counts.idle);
	say_part(w, BC_TONE_PLAIN, "filtered", s->counts.filtered);
	say_part(w, BC_TONE_PLAIN, "invalid", s->counts.invalid);
}

static void say_buffer(const struct bc_status *s, writer *w)
{
	say(w, BC_TONE_PLAIN, "%" PRIu64 " of %" PRIu64 " chunks free", s->buffer.free,
		s->buffer.chunks);
	say(w, BC_TONE_PLAIN, "lowest %" PRIu64, s->buffer.low_water);
}

static void say_disk(const struct bc_status *s, writer *w)
{
	double hours = s->disk.hours_left;
	enum bc_tone tone = hours < HOURS_BAD    ? BC_TONE_BAD
			    : hours < HOURS_WARN ? BC_TONE_WARN
						 : BC_TONE_GOOD;
	char text[BC_HUMANIZE_MAX];

	say_text(w, BC_TONE_BAD, "%s", s->disk.last_error);
	if (hours >= 24.0 * 1000)
		say(w, tone, "more than 999 days left");
	else if (hours >= 48)
		say(w, tone, "%.1f days left", hours / 24);
	else if (hours >= 1)
		say(w, tone, "%.1f hours left", hours);
	else if (hours >= 0)
		say(w, tone, "%.0f minutes left", floor(hours * 60 + 0.001));
	say(w, BC_TONE_PLAIN, "%s free", bc_humanize_bytes(text, (double)s->disk.free_bytes));
}

static void say_flight(const struct bc_status *s, writer *w)
{
	char text[BC_HUMANIZE_MAX];

	if (!s->flight.is_there)
		return;
	say(w, BC_TONE_PLAIN, "holds %s", bc_humanize_time(text, s->flight.seconds));
	if (s->flight.limit_seconds > 0)
		say(w, BC_TONE_PLAIN, "%s at most",
			bc_humanize_time(text, s->flight.limit_seconds));
	say(w, BC_TONE_PLAIN, "%s", bc_humanize_bytes(text, (double)s->flight.bytes));
	say_bytes(w, BC_TONE_PLAIN, (double)s->flight.limit_bytes, " at most");
	if (!w->is_brief)
		say_count(w, BC_TONE_PLAIN, s->flight.records, "record");
}

static void say_daemon(const struct bc_status *s, writer *w)
{
	if (w->is_brief)
		say_text(w, BC_TONE_PLAIN, "version %s", s->version);
	say(w, BC_TONE_PLAIN, "%" PRIu64 " client%s", s->clients, bc_plural(s->clients));
	if (!w->is_brief) {
		say_count(w, BC_TONE_PLAIN, s->event_streams, "event stream");
		say_count(w, BC_TONE_PLAIN, s->record_streams, "record stream");
	}
	if (s->sealed.failed != 0)
		say(w, BC_TONE_BAD, "%" PRIu64 " command%s failed", s->sealed.failed,
			bc_plural(s->sealed.failed));
	if (s->sealed.manifest_failed != 0)
		say(w, BC_TONE_BAD, "%" PRIu64 " missing in the manifest",
			s->sealed.manifest_failed);
	if (s->sealed.waiting != 0)
		say(w, BC_TONE_PLAIN, "%" PRIu64 " command%s waiting", s->sealed.waiting,
			bc_plural(s->sealed.waiting));
	if (s->sealed.segments != 0)
		say(w, BC_TONE_PLAIN, "%" PRIu64 " segment%s sealed", s->sealed.segments,
			bc_plural(s->sealed.segments));
	if (s->triggers != 0)
		say(w, BC_TONE_PLAIN, "%" PRIu64 " trigger%s armed", s->triggers,
			bc_plural(s->triggers));
}

static void say_replay(const struct bc_status *s, writer *w)
{
	say_text(w, BC_TONE_PLAIN, "of %s", s->replay);
}

static const struct {
	const char *label;
	void (*say)(const struct bc_status *status, writer *w);
} lines[BC_STATUS_LINES] = {
	[BC_STATUS_SOURCE] = {"source", say_source},
	[BC_STATUS_BOARD] = {"board", say_board},
	[BC_STATUS_RECORDING] = {"recording", say_recording},
	[BC_STATUS_AMOUNTS] = {"recording", say_amounts},
	[BC_STATUS_REPLAY] = {"replay", say_replay},
	[BC_STATUS_RATES] = {"rate", say_rates},
	[BC_STATUS_LOST] = {"lost", say_lost},
	[BC_STATUS_LEFT_OUT] = {"left out", say_left_out},
	[BC_STATUS_BUFFER] = {"buffer", say_buffer},
	[BC_STATUS_DISK] = {"disk", say_disk},
	[BC_STATUS_FLIGHT] = {"flight", say_flight},
	[BC_STATUS_DAEMON] = {"daemon", say_daemon},
};

const char *bc_status_label(enum bc_status_line_id line)
{
	return lines[line].label;
}

void bc_status_say(const struct bc_status *status, enum bc_status_line_id line,
	const struct bc_status_writer *w)
{
	lines[line].say(status, w);
}

/* ---- the page of `buscap status` */

struct page {
	struct bc_output *o;
	const char *label; /* of the line under way; NULL: it has begun */
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

void bc_status_print(struct bc_output *o, const struct bc_status *s, const char *line_end)
{
	struct page page = {.o = o};
	const struct bc_status_writer w = {.say = print_phrase, .context = &page, .lost_s_ago = -1};
	char text[BC_HUMANIZE_MAX];

	bc_output_format(o, "buscapd %s: %s, mode %s, up %s%s\n", s->version, s->state, s->mode,
		bc_humanize_time(text, s->uptime_s), line_end);
	for (enum bc_status_line_id line = 0; line < BC_STATUS_LINES; line++) {
		page.label = line == BC_STATUS_AMOUNTS && s->recording.is_there ? ""
										: lines[line].label;
		lines[line].say(s, &w);
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
