#include "cli/status_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/quantity.h"
#include "formats/json.h"

#define SAFE_MAX 1024

/* The page under way. */
struct page {
	struct bc_output *o;
	const cJSON *status;
	const char *line_end;
};

static const cJSON *get(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

static const char *text_of(const cJSON *object, const char *name)
{
	const char *text = cJSON_GetStringValue(get(object, name));

	return text != NULL && *text != '\0' ? text : NULL;
}

static uint64_t number_of(const cJSON *object, const char *name)
{
	return bc_json_get_u64(object, name);
}

/* Begins a line: the name in a column of its own; without one the line goes on with the fact above.
 */
static void begin(const struct page *p, const char *name)
{
	bc_output_format(p->o, "  %-10s ", name);
}

static void end(const struct page *p)
{
	bc_output_format(p->o, "%s\n", p->line_end);
}

static void add(const struct page *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add(const struct page *p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	bc_output_vformat(p->o, format, args);
	va_end(args);
}

static void add_text(const struct page *p, const char *before, const char *text)
{
	if (text == NULL)
		return;
	add(p, "%s", before);
	bc_output_safe(p->o, text);
}

/* "12,345 records". */
static void add_count(const struct page *p, const char *before, uint64_t n, const char *what)
{
	char count[BC_QUANTITY_MAX];

	add(p, "%s%s %s%s", before, bc_quantity_count(count, n), what, bc_plural(n));
}

static void add_bytes(const struct page *p, const char *before, uint64_t bytes, const char *after)
{
	char text[BC_QUANTITY_MAX];

	add(p, "%s%s%s", before, bc_quantity_bytes(text, (double)bytes), after);
}

static void print_head(const struct page *p)
{
	const cJSON *uptime = get(p->status, "uptime_s");
	char time[BC_QUANTITY_MAX];

	add(p, "buscapd");
	add_text(p, " ", text_of(p->status, "version"));
	add_text(p, ": ", text_of(p->status, "state"));
	add_text(p, ", mode ", text_of(p->status, "mode"));
	if (cJSON_IsNumber(uptime))
		add(p, ", up %s", bc_quantity_time(time, uptime->valuedouble));
	end(p);
}

static void print_source(const struct page *p)
{
	const cJSON *source = get(p->status, "source");
	uint64_t hz = number_of(source, "clock_hz");
	const char *kind = text_of(source, "kind");
	const char *name = text_of(source, "name");
	char rate[BC_QUANTITY_MAX];

	if (!cJSON_IsObject(source))
		return;
	begin(p, "source");
	add_text(p, "", kind);
	if (name != NULL && (kind == NULL || strcmp(name, kind) != 0))
		add_text(p, " ", name);
	if (hz != 0) {
		bc_quantity_rate(rate, (double)hz);
		add(p, ", clock %s%sHz", rate, strchr(rate, ' ') != NULL ? "" : " ");
	}
	end(p);
}

/* What of the board went wrong so far. */
static void add_troubles(const struct page *p, const cJSON *board)
{
	static const struct {
		const char *key;
		const char *what;
	} troubles[] = {{"unplugs", "unplug"}, {"stalls", "stall"}, {"overflows", "overflow"},
		{"errors", "error"}, {"timeouts", "time-out"}, {"silences", "silence"},
		{"restarts", "restart"}};

	for (size_t i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++)
		if (number_of(board, troubles[i].key) != 0)
			add_count(p, ", ", number_of(board, troubles[i].key), troubles[i].what);
}

static void print_board(const struct page *p)
{
	const cJSON *board = get(get(p->status, "source"), "board");

	if (!cJSON_IsObject(board))
		return;
	begin(p, "board");
	add_text(p, "", text_of(board, "state"));
	add_text(p, ", ", text_of(board, "product"));
	add_text(p, ", ", text_of(board, "id"));
	add_text(p, " serial ", text_of(board, "serial"));
	add_text(p, " at ", text_of(board, "port"));
	add_text(p, ", firmware ", text_of(get(board, "info"), "firmware"));
	add_troubles(p, board);
	end(p);
	if (text_of(board, "last_error") != NULL) {
		begin(p, "");
		add_text(p, "last error: ", text_of(board, "last_error"));
		end(p);
	}
}

static void print_recording(const struct page *p)
{
	const cJSON *r = get(p->status, "recording");
	const cJSON *note;

	if (r == NULL)
		return;
	begin(p, "recording");
	if (!cJSON_IsObject(r)) {
		add(p, "none");
		end(p);
		return;
	}
	add_text(p, "", text_of(r, "id"));
	add_text(p, ", label ", text_of(r, "label"));
	add_text(p, ", since ", text_of(r, "started"));
	end(p);
	if (text_of(r, "path") != NULL) {
		begin(p, "");
		add_text(p, "", text_of(r, "path"));
		end(p);
	}
	begin(p, "");
	add_count(p, "", number_of(r, "records"), "record");
	add_bytes(p, ", ", number_of(r, "bytes"), " on disk");
	add(p, ", segment %" PRIu64, number_of(r, "segment"));
	end(p);
	cJSON_ArrayForEach(note, get(r, "metadata"))
	{
		if (note->string == NULL || !cJSON_IsString(note))
			continue;
		begin(p, "");
		add_text(p, "note ", note->string);
		add_text(p, "=", note->valuestring);
		end(p);
	}
}

static void print_replay(const struct page *p)
{
	const cJSON *replay = get(p->status, "replay");

	if (!cJSON_IsObject(replay))
		return;
	begin(p, "replay");
	add_text(p, "of ", text_of(replay, "path"));
	end(p);
}

static void print_rates(const struct page *p)
{
	const cJSON *rates = get(p->status, "rates");
	char rate[BC_QUANTITY_MAX];

	if (!cJSON_IsObject(rates))
		return;
	begin(p, "rate");
	add(p, "%s samples/s", bc_quantity_rate(rate, (double)number_of(rates, "samples_per_s")));
	add_bytes(p, ", ", number_of(rates, "bytes_in_per_s"), "/s of records");
	add_bytes(p, ", ", number_of(rates, "bytes_out_per_s"), "/s to disk");
	end(p);
}

/* A list of "N words", the first after a ": " and the others after a ", ". */
static void add_parts(const struct page *p, const cJSON *object, const char *const parts[][2],
	size_t n, const char *before)
{
	char count[BC_QUANTITY_MAX];

	for (size_t i = 0; i < n; i++) {
		uint64_t part = number_of(object, parts[i][0]);
		if (part == 0)
			continue;
		add(p, "%s%s %s", before, bc_quantity_count(count, part), parts[i][1]);
		before = ", ";
	}
}

static void print_losses(const struct page *p)
{
	static const char *const dropped_by[][2] = {
		{"buffer", "the buffer had no room for"}, {"disk", "the disk didn't take"}};
	static const char *const lost_by_board[][2] = {{"board_lost", "lost by the board"}};
	static const char *const beside[][2] = {
		{"skipped_bytes", "bytes of the source made no sense"},
		{"raw_dropped_bytes", "bytes weren't kept raw"}};
	const cJSON *counts = get(p->status, "counts");
	const cJSON *dropped = get(counts, "dropped");
	uint64_t here = number_of(dropped, "buffer") + number_of(dropped, "disk");
	uint64_t board = number_of(counts, "board_lost");
	uint64_t gaps = number_of(counts, "gaps");

	if (!cJSON_IsObject(counts))
		return;
	begin(p, "lost");
	if (here + board == 0 && gaps == 0) {
		add(p, "nothing");
	} else if (here + board == 0) {
		add(p, "nobody knows how many samples");
	} else {
		add_count(p, "", here + board, "sample");
		add_parts(p, dropped, dropped_by, 2, ": ");
		add_parts(p, counts, lost_by_board, 1, here != 0 ? ", " : ": ");
	}
	if (gaps != 0)
		add_count(p, ", in ", gaps, "gap");
	end(p);
	if (number_of(counts, "skipped_bytes") + number_of(counts, "raw_dropped_bytes") != 0) {
		begin(p, "");
		add_parts(p, counts, beside, 2, "");
		end(p);
	}
}

/* What isn't recorded because it isn't to be: no loss. */
static void print_left_out(const struct page *p)
{
	static const char *const by[][2] = {{"filtered", "by filters"},
		{"invalid", "invalid bus cycles"}, {"idle", "while nothing was recorded"}};
	const cJSON *dropped = get(get(p->status, "counts"), "dropped");
	uint64_t all = number_of(dropped, "filtered") + number_of(dropped, "invalid") +
		       number_of(dropped, "idle");

	if (all == 0)
		return;
	begin(p, "left out");
	add_parts(p, dropped, by, 3, "");
	end(p);
}

static void print_buffer(const struct page *p)
{
	const cJSON *buffer = get(p->status, "buffer");

	if (!cJSON_IsObject(buffer))
		return;
	begin(p, "buffer");
	add(p, "%" PRIu64 " of %" PRIu64 " chunks free, %" PRIu64 " at the least",
		number_of(buffer, "free"), number_of(buffer, "chunks"),
		number_of(buffer, "low_water"));
	end(p);
}

static void print_disk(const struct page *p)
{
	const cJSON *disk = get(p->status, "disk");
	const cJSON *hours = get(disk, "hours_left");
	char time[BC_QUANTITY_MAX];

	if (!cJSON_IsObject(disk))
		return;
	begin(p, "disk");
	add_bytes(p, "", number_of(disk, "free_bytes"), " free");
	/* It is told in tenths of an hour. */
	if (cJSON_IsNumber(hours) && hours->valuedouble < 0.05)
		add(p, ", enough for less than 3 min at this rate");
	else if (cJSON_IsNumber(hours) && isfinite(hours->valuedouble))
		add(p, ", enough for %s at this rate",
			bc_quantity_time(time, hours->valuedouble * 3600));
	end(p);
	if (text_of(disk, "last_error") != NULL) {
		begin(p, "");
		add_text(p, "last error: ", text_of(disk, "last_error"));
		end(p);
	}
}

static void print_flight(const struct page *p)
{
	const cJSON *flight = get(p->status, "flight");
	const cJSON *seconds = get(flight, "seconds");
	char time[BC_QUANTITY_MAX];

	if (!cJSON_IsObject(flight))
		return;
	begin(p, "flight");
	add(p, "the last %s",
		bc_quantity_time(time, cJSON_IsNumber(seconds) ? seconds->valuedouble : 0));
	add_count(p, ": ", number_of(flight, "records"), "record");
	add_bytes(p, " in ", number_of(flight, "bytes"), "");
	if (cJSON_IsNumber(get(flight, "limit_seconds")) &&
		get(flight, "limit_seconds")->valuedouble > 0)
		add(p, "; %s at the most",
			bc_quantity_time(time, get(flight, "limit_seconds")->valuedouble));
	if (number_of(flight, "limit_bytes") != 0)
		add_bytes(p, "; ", number_of(flight, "limit_bytes"), " at the most");
	end(p);
}

static void print_sealed(const struct page *p)
{
	const cJSON *sealed = get(p->status, "sealed");
	uint64_t failed = number_of(sealed, "commands_failed");
	uint64_t waiting = number_of(sealed, "commands_waiting");

	if (number_of(sealed, "segments") == 0)
		return;
	begin(p, "sealed");
	add_count(p, "", number_of(sealed, "segments"), "segment");
	if (waiting != 0)
		add(p, ", %" PRIu64 " wait for the command", waiting);
	if (failed != 0)
		add(p, ", the command failed for %" PRIu64, failed);
	if (number_of(sealed, "manifest_failed") != 0)
		add(p, ", the hash of %" PRIu64 " is in no manifest",
			number_of(sealed, "manifest_failed"));
	end(p);
}

static void print_rest(const struct page *p)
{
	const cJSON *streams = get(p->status, "streams");
	uint64_t triggers = number_of(p->status, "triggers");

	if (triggers != 0) {
		begin(p, "triggers");
		add(p, "%" PRIu64 " armed", triggers);
		end(p);
	}
	if (!cJSON_IsNumber(get(p->status, "clients")))
		return;
	begin(p, "clients");
	add(p, "%" PRIu64, number_of(p->status, "clients"));
	if (cJSON_IsObject(streams))
		add(p, " (%" PRIu64 " read events, %" PRIu64 " records)",
			number_of(streams, "events"), number_of(streams, "records"));
	end(p);
}

void bc_status_print(struct bc_output *output, const cJSON *status, const char *line_end)
{
	const struct page page = {.o = output, .status = status, .line_end = line_end};

	print_head(&page);
	print_source(&page);
	print_board(&page);
	print_recording(&page);
	print_replay(&page);
	print_rates(&page);
	print_losses(&page);
	print_left_out(&page);
	print_buffer(&page);
	print_disk(&page);
	print_flight(&page);
	print_sealed(&page);
	print_rest(&page);
}
