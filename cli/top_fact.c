#include "cli/top_fact.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/console.h"
#include "cli/quantity.h"

/* Less than so many hours of disk are a reason to act, or to act soon. */
#define HOURS_BAD  1.0
#define HOURS_WARN 8.0

struct bc_top_fact bc_top_fact_begin(struct bc_top_grid *grid, unsigned x, unsigned y, unsigned end)
{
	return (struct bc_top_fact){
		.grid = grid, .begin = x, .x = x, .y = y, .sign = x, .end = end, .separator = ", "};
}

/* The sign that there is more. */
#define MORE_WIDTH 2u

/* Puts it behind the last phrase that leaves room for it, or at the end of the first. */
static void say_more(struct bc_top_fact *fact)
{
	fact->is_full = true;
	if (fact->end < fact->sign + MORE_WIDTH) {
		bc_top_put_code(fact->grid, fact->end - 1, fact->y, BC_TOP_DIM,
			fact->grid->is_utf8 ? 0x2026 : '~');
		return;
	}
	for (unsigned x = fact->sign; x < fact->end; x++)
		bc_top_put_code(fact->grid, x, fact->y, BC_TOP_PLAIN, ' ');
	bc_top_put(fact->grid, fact->sign, fact->y, MORE_WIDTH, BC_TOP_DIM,
		fact->grid->is_utf8 ? " \u2026" : " ~");
}

void bc_top_say(struct bc_top_fact *fact, enum bc_top_style style, const char *format, ...)
{
	char text[1200];
	va_list args;

	if (fact->is_full)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	unsigned room = fact->end > fact->x ? fact->end - fact->x : 0;
	if (fact->x == fact->begin) {
		fact->x += bc_top_put(fact->grid, fact->x, fact->y, room, style, text);
		fact->sign = fact->x;
		return;
	}
	unsigned between = (unsigned)strlen(fact->separator);
	unsigned columns = between + bc_top_columns(fact->grid, text);
	/* The last phrase may take the place of the sign, which then isn't needed. */
	if (columns > room || fact->end - fact->sign < MORE_WIDTH) {
		say_more(fact);
		return;
	}
	bc_top_put(fact->grid, fact->x, fact->y, room, BC_TOP_PLAIN, fact->separator);
	bc_top_put(fact->grid, fact->x + between, fact->y, room - between, style, text);
	fact->x += columns;
	if (fact->end - fact->x >= MORE_WIDTH)
		fact->sign = fact->x;
}

void bc_top_put_label(struct bc_top_grid *grid, unsigned y, unsigned room, const char *label)
{
	if (room != 0)
		bc_top_put(grid, 0, y, room - 1, BC_TOP_DIM, label);
}

const char *bc_top_seconds(char out[BC_QUANTITY_MAX], double seconds)
{
	if (seconds >= 1 && seconds < 10)
		snprintf(out, BC_QUANTITY_MAX, "%.0f s", floor(seconds));
	else
		bc_quantity_time(out, floor(seconds));
	return out;
}

static struct bc_top_fact begin(const struct bc_top_facts *facts, const char *label)
{
	if (facts->is_labelled)
		bc_top_put_label(facts->grid, facts->y, facts->label, label);
	return bc_top_fact_begin(facts->grid, facts->label, facts->y, facts->grid->width);
}

static void say_count(struct bc_top_fact *fact, enum bc_top_style style, const char *before,
	uint64_t count, const char *after)
{
	char text[BC_QUANTITY_MAX];

	bc_top_say(fact, style, "%s%s%s", before, bc_quantity_count(text, count), after);
}

void bc_top_fact_source(const struct bc_top_facts *facts)
{
	const struct bc_top_status *s = &facts->state->status;
	struct bc_top_fact fact = begin(facts, "source");
	char hz[BC_QUANTITY_MAX];

	bc_top_say(&fact, BC_TOP_PLAIN, "%s", s->source.kind[0] != '\0' ? s->source.kind : "none");
	if (s->source.clock_hz != 0)
		bc_top_say(&fact, BC_TOP_PLAIN, "clock %sHz",
			bc_quantity_rate(hz, (double)s->source.clock_hz));
	if (s->source.name[0] != '\0' && strcmp(s->source.name, s->source.kind) != 0)
		bc_top_say(&fact, BC_TOP_PLAIN, "%s", s->source.name);
}

void bc_top_fact_board(const struct bc_top_facts *facts)
{
	const struct bc_top_status *s = &facts->state->status;
	struct bc_top_fact fact = begin(facts, "board");
	bool is_well = strcmp(s->board.state, "streaming") == 0;

	bc_top_say(&fact, is_well ? BC_TOP_GOOD : BC_TOP_WARN, "%s", s->board.state);
	if (s->board.id[0] != '\0')
		bc_top_say(&fact, BC_TOP_PLAIN, "%s%s%s", s->board.id,
			s->board.serial[0] != '\0' ? " " : "", s->board.serial);
	if (s->board.unplugs != 0)
		bc_top_say(&fact, BC_TOP_WARN, "unplugged %" PRIu64 " time%s", s->board.unplugs,
			bc_plural(s->board.unplugs));
	if (s->board.troubles != 0)
		bc_top_say(&fact, BC_TOP_WARN, "%" PRIu64 " fault%s", s->board.troubles,
			bc_plural(s->board.troubles));
	if (s->board.last_error[0] != '\0')
		bc_top_say(&fact, BC_TOP_WARN, "last: %s", s->board.last_error);
	if (s->board.speed[0] != '\0')
		bc_top_say(&fact, BC_TOP_PLAIN, "%s speed", s->board.speed);
	if (s->board.product[0] != '\0')
		bc_top_say(&fact, BC_TOP_PLAIN, "%s", s->board.product);
	if (s->board.firmware[0] != '\0')
		bc_top_say(&fact, BC_TOP_PLAIN, "firmware %s", s->board.firmware);
}

void bc_top_fact_recording(const struct bc_top_facts *facts)
{
	const struct bc_top_status *s = &facts->state->status;
	struct bc_top_fact fact = begin(facts, "recording");
	const char *slash = strrchr(s->recording.path, '/');

	bc_top_say(&fact, BC_TOP_PLAIN, "%s", s->recording.id);
	/* A label is the end of the id, mostly. */
	if (strstr(s->recording.id, s->recording.label) == NULL)
		bc_top_say(&fact, BC_TOP_PLAIN, "%s", s->recording.label);
	if (slash != NULL)
		bc_top_say(&fact, BC_TOP_PLAIN, "in %.*s",
			slash != s->recording.path ? (int)(slash - s->recording.path) : 1,
			s->recording.path);
}

void bc_top_fact_amounts(const struct bc_top_facts *facts)
{
	const struct bc_top_status *s = &facts->state->status;
	struct bc_top_fact fact = begin(facts, "recording");
	char text[BC_QUANTITY_MAX];

	if (!s->recording.is_there) {
		bc_top_say(&fact, BC_TOP_PLAIN, "none");
		if (s->mode[0] != '\0')
			bc_top_say(&fact, BC_TOP_PLAIN, "mode %s", s->mode);
		return;
	}
	bc_top_say(&fact, BC_TOP_PLAIN, "%s record%s",
		bc_quantity_rate(text, (double)s->recording.records),
		bc_plural(s->recording.records));
	bc_top_say(&fact, BC_TOP_PLAIN, "%s", bc_quantity_bytes(text, (double)s->recording.bytes));
	double seconds = (double)facts->now->wall - s->recording.started_s;
	if (s->recording.started_s > 0 && seconds >= 0)
		bc_top_say(&fact, BC_TOP_PLAIN, "for %s", bc_top_seconds(text, seconds));
	bc_top_say(&fact, BC_TOP_PLAIN, "segment %" PRIu64, s->recording.segment);
}

void bc_top_fact_replay(const struct bc_top_facts *facts)
{
	struct bc_top_fact fact = begin(facts, "replay");

	bc_top_say(&fact, BC_TOP_PLAIN, "of %s", facts->state->status.replay);
}

void bc_top_fact_flight(const struct bc_top_facts *facts)
{
	const struct bc_top_status *s = &facts->state->status;
	struct bc_top_fact fact = begin(facts, "flight");
	char text[BC_QUANTITY_MAX];

	bc_top_say(&fact, BC_TOP_PLAIN, "holds %s", bc_quantity_time(text, s->flight.seconds));
	if (s->flight.limit_seconds > 0)
		bc_top_say(&fact, BC_TOP_PLAIN, "%s at most",
			bc_quantity_time(text, s->flight.limit_seconds));
	bc_top_say(&fact, BC_TOP_PLAIN, "%s", bc_quantity_bytes(text, (double)s->flight.bytes));
	if (s->flight.limit_bytes != 0)
		bc_top_say(&fact, BC_TOP_PLAIN, "%s at most",
			bc_quantity_bytes(text, (double)s->flight.limit_bytes));
}

/* "18 minutes left", "10.6 hours left", "3.2 days left". */
static void say_hours(struct bc_top_fact *fact, double hours)
{
	enum bc_top_style style = hours < HOURS_BAD    ? BC_TOP_BAD
				  : hours < HOURS_WARN ? BC_TOP_WARN
						       : BC_TOP_GOOD;

	if (hours < 1)
		bc_top_say(fact, style, "%.0f minutes left", floor(hours * 60 + 0.001));
	else if (hours < 48)
		bc_top_say(fact, style, "%.1f hours left", hours);
	else if (hours < 24.0 * 1000)
		bc_top_say(fact, style, "%.1f days left", hours / 24);
	else
		bc_top_say(fact, style, "more than 999 days left");
}

void bc_top_fact_disk(const struct bc_top_facts *facts)
{
	const struct bc_top_status *s = &facts->state->status;
	struct bc_top_fact fact = begin(facts, "disk");
	char text[BC_QUANTITY_MAX];

	if (s->disk.last_error[0] != '\0')
		bc_top_say(&fact, BC_TOP_BAD, "%s", s->disk.last_error);
	if (s->disk.hours_left >= 0)
		say_hours(&fact, s->disk.hours_left);
	bc_top_say(&fact, BC_TOP_PLAIN, "%s free",
		bc_quantity_bytes(text, (double)s->disk.free_bytes));
}

void bc_top_fact_lost(const struct bc_top_facts *facts)
{
	const struct bc_top_state *state = facts->state;
	const struct bc_top_status *s = &state->status;
	struct bc_top_fact fact = begin(facts, "lost");
	uint64_t lost = bc_top_lost(s);
	char text[BC_QUANTITY_MAX];

	if (lost != 0)
		say_count(&fact, BC_TOP_BAD, "", lost, lost == 1 ? " sample" : " samples");
	else if (s->counts.gaps != 0)
		bc_top_say(&fact, BC_TOP_WARN, "no samples by count");
	else
		bc_top_say(&fact, BC_TOP_GOOD, "none");
	if (state->lost_ns != 0)
		bc_top_say(&fact, BC_TOP_BAD, "last %s ago",
			bc_top_seconds(text, (double)(facts->now->ns - state->lost_ns) / 1e9));
	if (s->counts.gaps != 0)
		say_count(&fact, BC_TOP_WARN, "", s->counts.gaps,
			s->counts.gaps == 1 ? " gap" : " gaps");
	if (s->counts.buffer != 0)
		say_count(&fact, BC_TOP_BAD, "buffer ", s->counts.buffer, "");
	if (s->counts.disk != 0)
		say_count(&fact, BC_TOP_BAD, "disk ", s->counts.disk, "");
	if (s->counts.board != 0)
		say_count(&fact, BC_TOP_BAD, "board ", s->counts.board, "");
	if (s->counts.skipped_bytes != 0)
		bc_top_say(&fact, BC_TOP_WARN, "%s skipped",
			bc_quantity_bytes(text, (double)s->counts.skipped_bytes));
}

void bc_top_fact_left_out(const struct bc_top_facts *facts)
{
	const struct bc_top_status *s = &facts->state->status;
	struct bc_top_fact fact = begin(facts, "left out");

	if (s->counts.idle != 0)
		say_count(&fact, BC_TOP_PLAIN, "idle ", s->counts.idle, "");
	if (s->counts.filtered != 0)
		say_count(&fact, BC_TOP_PLAIN, "filtered ", s->counts.filtered, "");
	if (s->counts.invalid != 0)
		say_count(&fact, BC_TOP_PLAIN, "invalid ", s->counts.invalid, "");
}

void bc_top_fact_more(const struct bc_top_facts *facts)
{
	const struct bc_top_status *s = &facts->state->status;
	struct bc_top_fact fact = begin(facts, "daemon");

	bc_top_say(&fact, BC_TOP_PLAIN, "version %s", s->version);
	bc_top_say(&fact, BC_TOP_PLAIN, "%" PRIu64 " client%s", s->clients, bc_plural(s->clients));
	if (s->sealed.failed != 0)
		bc_top_say(&fact, BC_TOP_BAD, "%" PRIu64 " command%s failed", s->sealed.failed,
			bc_plural(s->sealed.failed));
	if (s->sealed.waiting != 0)
		bc_top_say(&fact, BC_TOP_PLAIN, "%" PRIu64 " command%s waiting", s->sealed.waiting,
			bc_plural(s->sealed.waiting));
	if (s->sealed.segments != 0)
		bc_top_say(&fact, BC_TOP_PLAIN, "%" PRIu64 " segment%s sealed", s->sealed.segments,
			bc_plural(s->sealed.segments));
	if (s->triggers != 0)
		bc_top_say(&fact, BC_TOP_PLAIN, "%" PRIu64 " trigger%s armed", s->triggers,
			bc_plural(s->triggers));
}
