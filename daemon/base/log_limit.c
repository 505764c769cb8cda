#include "daemon/base/log_limit.h"

#include <inttypes.h>
#include <stdarg.h>

#include "formats/base/clock.h"
#include "formats/base/text.h"

/* `since` may be later: callers read the clock at different times. */
static uint64_t elapsed(uint64_t now, uint64_t since)
{
	return now > since ? now - since : 0;
}

bool bc_log_limit_admits(struct bc_log_limit *l, uint64_t now)
{
	uint64_t quiet = l->window_ns > BC_LOG_QUIET_NS ? l->window_ns : BC_LOG_QUIET_NS;

	if (l->window_ns == 0 || (l->counted == 0 && elapsed(now, l->last_ns) >= quiet)) {
		l->window_ns = BC_LOG_WINDOW_NS;
		l->logged = 0;
	}
	l->last_ns = now;
	if (l->logged < BC_LOG_BURST) {
		l->logged++;
		return true;
	}
	if (l->counted++ == 0)
		l->since_ns = now;
	return false;
}

static uint64_t reset_count(struct bc_log_limit *l, uint64_t now, double *seconds)
{
	uint64_t counted = l->counted;

	*seconds = (double)elapsed(now, l->since_ns) * 1e-9;
	l->counted = 0;
	l->window_ns = bc_log_next_window(l->window_ns);
	return counted;
}

uint64_t bc_log_limit_due(struct bc_log_limit *l, uint64_t now, double *seconds)
{
	bool is_due = elapsed(now, l->since_ns) >= l->window_ns ||
		      elapsed(now, l->last_ns) >= l->window_ns / 4;

	return l->counted != 0 && is_due ? reset_count(l, now, seconds) : 0;
}

static void log_summary(const struct bc_log_limit *l, uint64_t counted, double seconds)
{
	bc_log(l->level, "%" PRIu64 " more time%s in the last %.1f s; the latest: %s", counted,
		counted == 1 ? "" : "s", seconds, l->latest);
}

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

void bc_log_limited_text(
	struct bc_log_limits *limits, enum bc_log_level level, const char *kind, const char *text)
{
	double seconds;

	if (!bc_log_is_enabled(level))
		return;
	struct bc_log_limit *l = limit_of(limits, level, kind);
	uint64_t now = bc_now_ns();
	uint64_t counted = bc_log_limit_due(l, now, &seconds);
	if (counted != 0)
		log_summary(l, counted, seconds);
	if (bc_log_limit_admits(l, now)) {
		bc_log(level, "%s", text);
		return;
	}
	if (bc_log_priority(level) < bc_log_priority(l->level))
		l->level = level;
	bc_message(l->latest, sizeof(l->latest), "%s", text);
}

void bc_log_limited(struct bc_log_limits *limits, enum bc_log_level level, const char *format, ...)
{
	char text[BC_LOG_LINE_MAX];
	va_list args;

	if (!bc_log_is_enabled(level))
		return;
	va_start(args, format);
	bc_vmessage(text, sizeof(text), format, args);
	va_end(args);
	bc_log_limited_text(limits, level, format, text);
}

void bc_log_limits_poll(struct bc_log_limits *limits, uint64_t now)
{
	double seconds;

	for (unsigned i = 0; i < limits->count; i++) {
		uint64_t counted = bc_log_limit_due(&limits->of[i], now, &seconds);
		if (counted != 0)
			log_summary(&limits->of[i], counted, seconds);
	}
}

void bc_log_limits_end(struct bc_log_limits *limits)
{
	double seconds;
	uint64_t now = bc_now_ns();

	for (unsigned i = 0; i < limits->count; i++) {
		if (limits->of[i].counted == 0)
			continue;
		uint64_t counted = reset_count(&limits->of[i], now, &seconds);
		log_summary(&limits->of[i], counted, seconds);
	}
}
