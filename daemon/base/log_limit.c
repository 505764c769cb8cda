#include "daemon/base/log_limit.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "formats/base/utf8.h"

/* Who asks may have looked at the clock a little earlier. */
static uint64_t elapsed(uint64_t now, uint64_t since)
{
	return now > since ? now - since : 0;
}

bool bc_log_limit_admits(struct bc_log_limit *l, uint64_t now)
{
	uint64_t quiet = l->window_ns > BC_LOG_QUIET_NS ? l->window_ns : BC_LOG_QUIET_NS;

	if (l->window_ns == 0 || (l->unsaid == 0 && elapsed(now, l->last_ns) >= quiet)) {
		l->window_ns = BC_LOG_WINDOW_NS;
		l->said = 0;
	}
	l->last_ns = now;
	if (l->said < BC_LOG_BURST) {
		l->said++;
		return true;
	}
	if (l->unsaid++ == 0)
		l->since_ns = now;
	return false;
}

static uint64_t sum_up(struct bc_log_limit *l, uint64_t now, double *seconds)
{
	uint64_t unsaid = l->unsaid;

	*seconds = (double)elapsed(now, l->since_ns) * 1e-9;
	l->unsaid = 0;
	l->window_ns = bc_log_next_window(l->window_ns);
	return unsaid;
}

uint64_t bc_log_limit_due(struct bc_log_limit *l, uint64_t now, double *seconds)
{
	bool is_due = elapsed(now, l->since_ns) >= l->window_ns ||
		      elapsed(now, l->last_ns) >= l->window_ns / 4;

	return l->unsaid != 0 && is_due ? sum_up(l, now, seconds) : 0;
}

static void tell(const struct bc_log_limit *l, uint64_t unsaid, double seconds)
{
	bc_log(l->level, "%" PRIu64 " more time%s in the last %.1f s; the latest: %s", unsaid,
		unsaid == 1 ? "" : "s", seconds, l->latest);
}

/* What is more urgent is never counted among what is less so. */
static struct bc_log_limit *limit_of(
	struct bc_log_limits *limits, enum bc_log_level level, const char *kind)
{
	for (unsigned i = 0; i < limits->count; i++)
		if (limits->of[i].kind == kind && limits->of[i].level == level)
			return &limits->of[i];
	if (limits->count == BC_LOG_KINDS)
		return &limits->of[BC_LOG_KINDS - 1];
	struct bc_log_limit *limit = &limits->of[limits->count++];
	limit->kind = kind;
	limit->level = level;
	return limit;
}

static void keep(struct bc_log_limit *l, const char *text)
{
	bool is_cut = strlen(text) >= sizeof(l->latest);
	size_t most = sizeof(l->latest) - (is_cut ? sizeof("...") : 1);

	snprintf(l->latest, sizeof(l->latest), "%.*s%s", (int)bc_utf8_fit(text, most), text,
		is_cut ? "..." : "");
}

void bc_log_limited_text(
	struct bc_log_limits *limits, enum bc_log_level level, const char *kind, const char *text)
{
	double seconds;

	if (!bc_log_is_enabled(level))
		return;
	struct bc_log_limit *l = limit_of(limits, level, kind);
	uint64_t now = bc_now_ns();
	uint64_t unsaid = bc_log_limit_due(l, now, &seconds);
	if (unsaid != 0)
		tell(l, unsaid, seconds);
	if (bc_log_limit_admits(l, now)) {
		bc_log(level, "%s", text);
		return;
	}
	l->level = level < l->level ? level : l->level;
	keep(l, text);
}

void bc_log_limited(struct bc_log_limits *limits, enum bc_log_level level, const char *format, ...)
{
	char text[BC_LOG_LINE_MAX];
	va_list args;

	if (!bc_log_is_enabled(level))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	bc_log_limited_text(limits, level, format, text);
}

void bc_log_limits_poll(struct bc_log_limits *limits, uint64_t now)
{
	double seconds;

	for (unsigned i = 0; i < limits->count; i++) {
		uint64_t unsaid = bc_log_limit_due(&limits->of[i], now, &seconds);
		if (unsaid != 0)
			tell(&limits->of[i], unsaid, seconds);
	}
}

void bc_log_limits_end(struct bc_log_limits *limits)
{
	double seconds;
	uint64_t now = bc_now_ns();

	for (unsigned i = 0; i < limits->count; i++) {
		if (limits->of[i].unsaid == 0)
			continue;
		uint64_t unsaid = sum_up(&limits->of[i], now, &seconds);
		tell(&limits->of[i], unsaid, seconds);
	}
}
