/* The daemon's status (docs/api.md) as lines of phrases, and `buscap status`, which prints them.
 *
 * Each line is a function that reads the members it needs and writes phrases, the most important
 * first, because `buscap top` shows only as many as fit. Counts whose words depend on nothing else
 * are rows of formats/base/figure_rows.h; write_counts() writes them. A member that is missing or
 * of another type is 0, empty or false, because the status may come from another version of the
 * daemon. Texts are escaped when they are read (read_text()). */
#include "cli/live/status.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/io/client.h"
#include "cli/io/hosts.h"
#include "cli/term/commands.h"
#include "cli/term/console.h"
#include "cli/term/json_path.h"
#include "cli/term/options.h"
#include "cli/term/text.h"
#include "formats/base/clock.h"
#include "formats/bus/chunk.h"

/* Thresholds for the time until the disk is full. */
#define HOURS_BAD  1.0
#define HOURS_WARN 8.0

#define TEXT_MAX   1024u
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

/* Returns `out` with the text at a path, escaped; "" if it is missing. */
static const char *read_text(char out[TEXT_MAX], const json_t *s, const char *path)
{
	return bc_safe_text(out, TEXT_MAX, bc_json_path_text(s, path));
}

static bool has_object(const json_t *s, const char *path)
{
	return json_is_object(bc_json_path(s, path));
}

/* Writes a text between `before` and `after` unless it is empty. */
static void write_text(const json_t *s, writer *w, enum bc_tone tone, const char *before,
	const char *path, const char *after)
{
	char text[TEXT_MAX];

	if (*read_text(text, s, path) != '\0')
		write_phrase(w, tone, "%s%s%s", before, text, after);
}

/* Writes "12,345 segments sealed" unless the count is 0; `after` is " sealed". */
static void write_count(const json_t *s, writer *w, enum bc_tone tone, const char *path,
	const char *word, const char *after)
{
	uint64_t count = bc_json_path_count(s, path);

	if (count != 0)
		write_phrase(
			w, tone, "%s %s%s%s", BC_GROUPED(count), word, bc_plural(count), after);
}

/* Writes the counts of the table of figures that belong to a line, the worst first. */
static void write_counts(const json_t *s, writer *w, enum bc_figure_line line)
{
	for (unsigned tone = BC_TONES; tone-- != 0;)
		for (size_t i = 0; i < bc_figures_count; i++) {
			const struct bc_figure *f = &bc_figures[i];
			if (f->line == line && f->tone == tone)
				write_count(s, w, f->tone, f->path, f->word, f->after);
		}
}

/* Writes "buffer 12,345" unless the count is 0. */
static void write_part(const json_t *object, writer *w, enum bc_tone tone, const char *name)
{
	uint64_t count = bc_json_path_count(object, name);

	if (count != 0)
		write_phrase(w, tone, "%s %s", name, BC_GROUPED(count));
}

bool bc_is_status(const json_t *object)
{
	return json_is_string(bc_json_path(object, "state"));
}

struct bc_loss bc_status_loss(const json_t *s)
{
	const json_t *causes = bc_json_path(s, "counts.lost");
	struct bc_loss loss = {.gaps = bc_json_path_count(s, "counts.gaps"),
		.inexact = bc_json_path_count(s, "counts.inexact_gaps")};

	for (unsigned cause = 1; cause < BC_GAP_CAUSES; cause++)
		loss.lost += bc_json_path_count(causes, bc_gap_cause_name(cause));
	return loss;
}

bool bc_status_is_stuck(const json_t *s)
{
	return json_is_true(bc_json_path(s, "disk.stuck"));
}

const char *bc_status_seconds(char out[BC_HUMANIZE_MAX], double seconds)
{
	if (seconds >= 1 && seconds < 10)
		snprintf(out, BC_HUMANIZE_MAX, "%.0f s", floor(seconds));
	else
		bc_humanize_time(out, floor(seconds));
	return out;
}

static void write_source(const json_t *s, writer *w)
{
	uint64_t clock_hz = bc_json_path_count(s, "source.clock_hz");
	char kind[TEXT_MAX];
	char name[TEXT_MAX];
	char hz[BC_HUMANIZE_MAX];

	read_text(kind, s, "source.kind");
	write_phrase(w, BC_TONE_PLAIN, "%s", kind[0] != '\0' ? kind : "none");
	if (clock_hz != 0) {
		bc_humanize_rate(hz, (double)clock_hz);
		write_phrase(
			w, BC_TONE_PLAIN, "clock %s%sHz", hz, strchr(hz, ' ') != NULL ? "" : " ");
	}
	if (strcmp(read_text(name, s, "source.name"), kind) != 0 && name[0] != '\0')
		write_phrase(w, BC_TONE_PLAIN, "%s", name);
}

static void write_board(const json_t *s, writer *w)
{
	const json_t *b = bc_json_path(s, "source.board");
	char text[TEXT_MAX];
	char serial[TEXT_MAX];

	if (!json_is_object(b))
		return;
	read_text(text, b, "state");
	write_phrase(w, strcmp(text, "streaming") == 0 ? BC_TONE_GOOD : BC_TONE_WARN, "%s", text);
	read_text(serial, b, "serial");
	if (*read_text(text, b, "id") != '\0')
		write_phrase(
			w, BC_TONE_PLAIN, "%s%s%s", text, serial[0] != '\0' ? " " : "", serial);
	write_counts(s, w, BC_FIGURE_BOARD);
	write_text(b, w, BC_TONE_WARN, "last: ", "last_error", "");
	write_text(b, w, BC_TONE_PLAIN, "", "speed", " speed");
	write_text(b, w, BC_TONE_PLAIN, "", "product", "");
	write_text(b, w, BC_TONE_PLAIN, "firmware ", "info.firmware", "");
	if (!w->is_brief)
		write_text(b, w, BC_TONE_PLAIN, "port ", "port", "");
}

static void write_recording(const json_t *s, writer *w)
{
	char id[TEXT_MAX];
	char text[TEXT_MAX];

	if (!has_object(s, "recording"))
		return;
	write_phrase(w, BC_TONE_PLAIN, "%s", read_text(id, s, "recording.id"));
	/* The label is normally part of the id. */
	if (strstr(id, read_text(text, s, "recording.label")) == NULL)
		write_phrase(w, BC_TONE_PLAIN, "label %s", text);
	const char *slash = strrchr(read_text(text, s, "recording.path"), '/');
	if (slash != NULL)
		write_phrase(
			w, BC_TONE_PLAIN, "in %.*s", slash != text ? (int)(slash - text) : 1, text);
}

double bc_status_time(const json_t *s, const char *path)
{
	const char *text = bc_json_path_text(s, path);
	struct tm tm = {0};
	const char *rest = text != NULL ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;

	return rest != NULL ? (double)timegm(&tm) + (*rest == '.' ? atof(rest) : 0) : 0;
}

static void write_amounts(const json_t *s, writer *w)
{
	uint64_t records = bc_json_path_count(s, "recording.records");
	double bytes = (double)bc_json_path_count(s, "recording.bytes");
	double started = bc_status_time(s, "recording.started");
	double seconds = (double)w->now - started;
	char text[BC_HUMANIZE_MAX];

	if (!has_object(s, "recording")) {
		write_phrase(w, BC_TONE_PLAIN, "none");
		if (w->is_brief)
			write_text(s, w, BC_TONE_PLAIN, "mode ", "mode", "");
		return;
	}
	write_phrase(w, BC_TONE_PLAIN, "%s record%s",
		w->is_brief ? bc_humanize_rate(text, (double)records) : BC_GROUPED(records),
		bc_plural(records));
	write_phrase(w, BC_TONE_PLAIN, "%s", bc_humanize_bytes(text, bytes));
	if (!w->is_brief)
		write_text(s, w, BC_TONE_PLAIN, "since ", "recording.started", "");
	else if (started > 0 && seconds >= 0)
		write_phrase(w, BC_TONE_PLAIN, "for %s", bc_status_seconds(text, seconds));
	if (json_is_number(bc_json_path(s, "recording.segment")))
		write_phrase(w, BC_TONE_PLAIN, "segment %" PRIu64,
			bc_json_path_count(s, "recording.segment"));
}

static void write_rates(const json_t *s, writer *w)
{
	const json_t *rates = bc_json_path(s, "rates");
	char text[BC_HUMANIZE_MAX];

	if (json_is_null(bc_json_path(rates, "samples_per_second"))) {
		write_phrase(w, BC_TONE_PLAIN, "unknown");
		return;
	}
	write_phrase(w, BC_TONE_PLAIN, "%s samples/s",
		bc_humanize_rate(text, bc_json_path_number(rates, "samples_per_second")));
	write_phrase(w, BC_TONE_PLAIN, "%s/s of records",
		bc_humanize_bytes(text, bc_json_path_number(rates, "record_bytes_per_second")));
	write_phrase(w, BC_TONE_PLAIN, "%s/s to disk",
		bc_humanize_bytes(text, bc_json_path_number(rates, "written_bytes_per_second")));
}

static void write_lost(const json_t *s, writer *w)
{
	const json_t *counts = bc_json_path(s, "counts");
	const struct bc_loss loss = bc_status_loss(s);
	uint64_t skipped = bc_json_path_count(counts, "skipped_bytes");
	char text[BC_HUMANIZE_MAX];

	if (loss.lost != 0)
		write_phrase(w, BC_TONE_BAD, "%s%s sample%s", loss.inexact != 0 ? "at least " : "",
			BC_GROUPED(loss.lost), bc_plural(loss.lost));
	else if (loss.inexact != 0)
		write_phrase(w, BC_TONE_WARN, "unknown number of samples");
	else if (bc_json_path_count(counts, "deleted_records") == 0)
		write_phrase(w, BC_TONE_GOOD, "none");
	if (w->lost_s_ago >= 0)
		write_phrase(w, BC_TONE_BAD, "last %s ago", bc_status_seconds(text, w->lost_s_ago));
	write_counts(s, w, BC_FIGURE_LOST);
	for (unsigned cause = 1; cause < BC_GAP_CAUSES; cause++)
		write_part(bc_json_path(counts, "lost"), w, BC_TONE_BAD, bc_gap_cause_name(cause));
	if (skipped != 0)
		write_phrase(
			w, BC_TONE_WARN, "%s skipped", bc_humanize_bytes(text, (double)skipped));
}

static void write_left_out(const json_t *s, writer *w)
{
	const json_t *dropped = bc_json_path(s, "counts.dropped");

	write_part(dropped, w, BC_TONE_PLAIN, "idle");
	write_part(dropped, w, BC_TONE_PLAIN, "filtered");
	write_part(dropped, w, BC_TONE_PLAIN, "invalid");
}

static void write_buffer(const json_t *s, writer *w)
{
	double chunks = (double)bc_json_path_count(s, "buffer.chunks");
	double free = (double)bc_json_path_count(s, "buffer.free_chunks");
	double least = (double)bc_json_path_count(s, "buffer.min_free_chunks");
	const json_t *left = bc_json_path(s, "buffer.time_left_seconds");
	char text[BC_HUMANIZE_MAX];

	if (chunks == 0)
		return;
	write_phrase(w, BC_TONE_PLAIN, "%.0f %% in use", fmax(0, 100 * (1 - free / chunks)));
	write_phrase(w, BC_TONE_PLAIN, "max %.0f %%", fmax(0, 100 * (1 - least / chunks)));
	if (json_is_number(left))
		write_phrase(w, BC_TONE_PLAIN, "room for %s",
			bc_humanize_time(text, json_number_value(left)));
}

/* Writes "ring: 19.0 of 24.0 MB", or the segments if the bytes have no known limit. */
static void write_ring(const json_t *s, writer *w)
{
	const json_t *ring = bc_json_path(s, "disk.ring");
	uint64_t limit_bytes = bc_json_path_count(ring, "limit_bytes");
	char used[BC_HUMANIZE_MAX];
	char limit[BC_HUMANIZE_MAX];

	if (!json_is_object(ring) || json_is_null(bc_json_path(ring, "bytes")))
		return;
	if (limit_bytes == 0) {
		write_phrase(w, BC_TONE_PLAIN, "ring: %" PRIu64 " of %" PRIu64 " segments",
			bc_json_path_count(ring, "segments"),
			bc_json_path_count(ring, "limit_segments"));
		return;
	}
	bc_humanize_bytes(used, (double)bc_json_path_count(ring, "bytes"));
	bc_humanize_bytes(limit, (double)limit_bytes);
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
	else if (hours * 60 >= 1)
		write_phrase(w, tone, "%.0f min left", floor(hours * 60 + 0.001));
	else if (hours >= 0)
		write_phrase(w, tone, "%.0f s left", floor(hours * 3600 + 0.001));
}

/* Errors come first and the file last, because the end of a line may be cut off. */
static void write_disk(const json_t *s, writer *w)
{
	const json_t *disk = bc_json_path(s, "disk");
	const json_t *left = bc_json_path(disk, "time_left_seconds");
	bool is_stuck = bc_status_is_stuck(s);
	char error[TEXT_MAX]; /* "FILE: WHAT: WHY" */
	char cause[TEXT_MAX]; /* "WHAT: WHY" */
	char text[BC_HUMANIZE_MAX];

	read_text(error, disk, "last_error");
	if (*read_text(cause, disk, "last_error_cause") == '\0')
		strcpy(cause, error);
	int file = (int)(strlen(error) - strlen(cause)) - (int)strlen(": ");
	if (is_stuck)
		write_phrase(w, BC_TONE_BAD, "stuck: %s", cause);
	write_ring(s, w);
	if (!is_stuck && json_is_number(left))
		write_time_left(bc_json_path_number(disk, "time_left_seconds") / 3600, w);
	if (json_is_null(bc_json_path(disk, "free_bytes")))
		write_phrase(w, BC_TONE_PLAIN, "free space unknown");
	else
		write_phrase(w, BC_TONE_PLAIN, "%s free",
			bc_humanize_bytes(text, (double)bc_json_path_count(disk, "free_bytes")));
	if (!is_stuck && cause[0] != '\0')
		write_phrase(w, BC_TONE_WARN, "last error: %s", cause);
	if (file > 0)
		write_phrase(w, BC_TONE_PLAIN, "in %.*s", file, error);
}

/* Writes "12 s of 30 s", or "12 s" if the limit is 0. */
static void write_limited(writer *w, double value, double limit,
	const char *(*print)(char out[BC_HUMANIZE_MAX], double value))
{
	char text[BC_HUMANIZE_MAX];
	char most[BC_HUMANIZE_MAX];

	print(text, value);
	if (limit > 0)
		write_phrase(w, BC_TONE_PLAIN, "%s of %s", text, print(most, limit));
	else
		write_phrase(w, BC_TONE_PLAIN, "%s", text);
}

static void write_flight(const json_t *s, writer *w)
{
	const json_t *f = bc_json_path(s, "flight");

	if (!json_is_object(f))
		return;
	write_limited(w, bc_json_path_number(f, "seconds"), bc_json_path_number(f, "limit_seconds"),
		bc_humanize_time);
	write_limited(w, (double)bc_json_path_count(f, "bytes"),
		(double)bc_json_path_count(f, "limit_bytes"), bc_humanize_bytes);
	if (!w->is_brief)
		write_count(f, w, BC_TONE_PLAIN, "records", "record", "");
}

static void write_daemon(const json_t *s, writer *w)
{
	uint64_t clients = bc_json_path_count(s, "clients");

	if (w->is_brief)
		write_text(s, w, BC_TONE_PLAIN, "version ", "version", "");
	write_phrase(w, BC_TONE_PLAIN, "%" PRIu64 " client%s", clients, bc_plural(clients));
	if (!w->is_brief) {
		write_count(s, w, BC_TONE_PLAIN, "streams.events", "event stream", "");
		write_count(s, w, BC_TONE_PLAIN, "streams.records", "record stream", "");
	}
	write_counts(s, w, BC_FIGURE_DAEMON);
}

const struct bc_status_row bc_status_rows[BC_STATUS_LINES] = {
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

void bc_notes_print(
	struct bc_output *o, const json_t *metadata, const char *before, const char *after)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)metadata, key, value)
	{
		if (!json_is_string(value))
			continue;
		bc_output_format(o, "%s", before);
		bc_output_safe(o, key);
		bc_output_text(o, "=", 1);
		bc_output_safe(o, json_string_value(value));
		bc_output_format(o, "%s", after);
	}
}

void bc_status_print(struct bc_output *o, const json_t *s, const char *line_end)
{
	struct page page = {.o = o};
	const struct bc_status_writer w = {
		.write = print_phrase, .context = &page, .lost_s_ago = -1};
	bool has_recording = has_object(s, "recording");
	char version[TEXT_MAX];
	char state[TEXT_MAX];
	char mode[TEXT_MAX];
	char text[BC_HUMANIZE_MAX];
	char note_end[16];

	snprintf(note_end, sizeof(note_end), "%s\n", line_end);
	bc_output_format(o, "buscapd %s: %s%s, mode %s, up %s%s\n",
		read_text(version, s, "version"), read_text(state, s, "state"),
		bc_status_is_stuck(s) ? " (disk stuck)" : "", read_text(mode, s, "mode"),
		bc_humanize_time(text, bc_json_path_number(s, "uptime_seconds")), line_end);
	for (enum bc_status_line_id line = 0; line < BC_STATUS_LINES; line++) {
		page.label = line == BC_STATUS_AMOUNTS && has_recording
				     ? ""
				     : bc_status_rows[line].label;
		bc_status_rows[line].write(s, &w);
		if (page.label == NULL)
			bc_output_format(o, "%s\n", line_end);
		if (line == BC_STATUS_AMOUNTS)
			bc_notes_print(o, bc_json_path(s, "recording.metadata"),
				"             note ", note_end);
	}
}

/* ---- the command */

/* --wait: limit, interval, and when it says what it waits for. */
#define WAIT_SECONDS 30
#define WAIT_STEP_MS 50
#define SILENT_NS    UINT64_C(1000000000)

enum { OPTION_WAIT = BC_CLIENT_OPT_MORE };

static const struct bc_usage_option options[] = {
	{OPTION_WAIT, "wait", NULL, NULL, "wait up to 30 s for a daemon that is starting"},
	{'w', "watch", "[SECONDS]", "number",
		"repeat every SECONDS (1) until Ctrl-C; on a terminal, in place"},
	{'j', "json", NULL, NULL, "print the daemon's response as JSON on one line"},
	BC_CLIENT_OPTION_SOCKET,
	BC_HOSTS_OPTIONS,
	{0},
};

const struct bc_usage bc_status_usage = {
	.name = "status",
	.summary = "print the status of the running daemon",
	.text = "Prints the status of the running daemon: source and board, recording, rates, "
		"losses, buffer and disk.",
	.options = options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap status --watch 5",
};

struct status_options {
	const char *socket;
	bool is_json;
	bool is_waiting;
	bool is_watching;
	int period_ms;
};

/* Prints the status page or the JSON. Returns false if the response is not a status. */
static bool print_answer(struct bc_output *o, const struct bc_response *response,
	const struct status_options *parsed, bool is_in_place, bool is_first)
{
	if (!bc_is_status(response->json))
		return false;
	if (parsed->is_json) {
		bc_response_write_json(o, response);
		return true;
	}
	if (is_in_place)
		bc_output_format(o, is_first ? "\033[2J\033[H" : "\033[H");
	else if (!is_first)
		bc_output_text(o, "\n", 1);
	bc_status_print(o, response->json, is_in_place ? "\033[K" : "");
	if (is_in_place)
		bc_output_format(o, "\033[J");
	return true;
}

static enum bc_exit get_status(const struct bc_console *console, struct bc_client *client,
	const struct status_options *parsed, int interrupt, struct bc_response *response)
{
	uint64_t start_ns = bc_now_ns();
	uint64_t end_ns = start_ns + (parsed->is_waiting ? WAIT_SECONDS * UINT64_C(1000000000) : 0);
	bool is_silent = true;
	enum bc_exit code;

	while ((code = bc_client_call(client, "GET", "/v1/status", NULL, response)) ==
			BC_EXIT_UNREACHABLE &&
		bc_client_is_vacant(client) && bc_now_ns() < end_ns &&
		!bc_interrupt_wait(interrupt, WAIT_STEP_MS)) {
		bc_response_free(response);
		if (is_silent && bc_now_ns() - start_ns >= SILENT_NS) {
			bc_print_error(console, bc_client_path(client),
				"waiting up to %d s for buscapd to start", WAIT_SECONDS);
			is_silent = false;
		}
	}
	return code;
}

static enum bc_exit run_status(const struct bc_console *console, struct bc_client *client,
	const struct status_options *parsed, struct bc_output *o)
{
	bool is_in_place = parsed->is_watching && !parsed->is_json && isatty(console->out);
	int interrupt = parsed->is_watching ? bc_interrupt_open() : -1;
	enum bc_exit code = BC_EXIT_OK;
	struct bc_response response;

	for (bool is_first = true; code == BC_EXIT_OK; is_first = false) {
		code = get_status(console, client, parsed, interrupt, &response);
		if (code != BC_EXIT_OK)
			bc_client_print_error(client, code);
		else if (!print_answer(o, &response, parsed, is_in_place, is_first))
			code = bc_client_print_bad_response(client);
		bc_response_free(&response);
		bc_output_flush(o);
		if (!parsed->is_watching || bc_output_failed(o) ||
			bc_interrupt_wait(interrupt, parsed->period_ms))
			break;
	}
	return code;
}

/* Reads optarg. */
static bool parse_period(const struct bc_console *console, int *ms)
{
	uint64_t ns;

	if (!bc_option_time(console, "--watch", UINT64_C(100000000), UINT64_C(86400000000000), &ns))
		return false;
	*ms = (int)(ns / 1000000);
	return true;
}

/* If the command is finished, sets *code and returns false. */
static bool parse_status_options(const struct bc_console *console, int argc, char **argv,
	struct status_options *parsed, enum bc_exit *code)
{
	struct bc_options o;
	bool has_period = false; /* --watch=5, not --watch 5 */
	int letter;

	*code = BC_EXIT_USAGE;
	bc_options_start(&o, console, &bc_status_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		switch (letter) {
		case OPTION_WAIT:
			parsed->is_waiting = true;
			break;
		case 'w':
			parsed->is_watching = true;
			has_period = optarg != NULL;
			if (has_period && !parse_period(console, &parsed->period_ms))
				return false;
			break;
		case 'j':
			parsed->is_json = true;
			break;
		case BC_CLIENT_OPT_SOCKET:
			parsed->socket = optarg;
			break;
		default:
			if (bc_hosts_has(letter))
				break;
			*code = o.exit;
			return false;
		}
	}
	if (parsed->is_watching && !has_period && optind + 1 == argc) {
		optarg = argv[optind];
		return parse_period(console, &parsed->period_ms);
	}
	if (optind == argc)
		return true;
	*code = bc_print_usage_error(console, BC_NO_OPERANDS);
	return false;
}

/* Keeps the first phrase. */
static void keep_phrase(void *context, enum bc_tone tone, const char *phrase)
{
	char *cell = context;

	(void)tone;
	if (cell[0] == '\0')
		bc_message(cell, PHRASE_MAX, "%s", phrase);
}

static void print_host_status(
	struct bc_output *o, const json_t *status, int node_width, int text_width, bool is_first)
{
	static const enum bc_status_line_id lines[] = {
		BC_STATUS_RATES, BC_STATUS_LOST, BC_STATUS_BUFFER, BC_STATUS_DISK};
	char cells[4][PHRASE_MAX] = {"", "", "", ""};
	int state_width = text_width > 5 ? text_width : 5;

	for (size_t i = 0; i < 4; i++) {
		const struct bc_status_writer w = {
			.write = keep_phrase, .context = cells[i], .lost_s_ago = -1};
		bc_status_rows[lines[i]].write(status, &w);
	}
	if (is_first)
		bc_output_format(o, "%-*s  %-*s  %-16s  %-20s  %-12s  DISK\n", node_width, "NODE",
			state_width, "STATE", "RATE", "LOST", "BUFFER");
	bc_column_text(o, node_width, status, "node");
	bc_column_text(o, state_width, status, "state");
	bc_output_format(o, "%-16s  %-20s  %-12s  %s\n", cells[0], cells[1], cells[2], cells[3]);
}

static const struct bc_hosts_answer answer = {&bc_status_usage, "state", NULL, print_host_status};

enum bc_exit bc_cmd_status(const struct bc_console *console, int argc, char **argv)
{
	struct status_options parsed = {.period_ms = 1000};
	struct bc_client *client;
	struct bc_output output;
	enum bc_exit code;

	if (!parse_status_options(console, argc, argv, &parsed, &code))
		return code;
	if (bc_hosts_ask(console, &answer, argc, argv, 0, NULL, NULL, &code))
		return code;
	code = bc_client_open(&client, console, parsed.socket);
	if (code != BC_EXIT_OK)
		return code;
	if (!bc_output_open(&output, console)) {
		bc_client_close(client);
		return BC_EXIT_FAILED;
	}
	code = run_status(console, client, &parsed, &output);
	bc_client_close(client);
	return bc_exit_worse(code, bc_output_close(&output, console));
}
