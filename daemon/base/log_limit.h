/* Rate limit for log lines that may repeat. Of each kind (its format string) and level the first
 * ten lines are logged immediately. Further lines are counted, and summarized with the latest one:
 *
 *     41 more times in the last 60.0 s; the latest: /data/REC-00000.byu.lz4: can't sync: ...
 *
 * The summary comes after a minute, then after two, four, and so on up to an hour while lines keep
 * coming; or earlier, if there was none for a quarter of that time. After a quiet period of that
 * whole time, and at least a quarter of an hour, ten lines are logged in full again. So the first
 * line is logged at once, the last one soon, and a week of a fault takes some hundred lines.
 *
 * A set of limits belongs to one thread and starts as zeros:
 *
 *     bc_log_limited()     instead of bc_log()
 *     bc_log_limits_poll() regularly, for example once a second
 *     bc_log_limits_end()  logs all remaining summaries */
#ifndef BC_DAEMON_BASE_LOG_LIMIT_H
#define BC_DAEMON_BASE_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/log.h"

#define BC_LOG_BURST         10u
#define BC_LOG_WINDOW_NS     UINT64_C(60000000000)
#define BC_LOG_WINDOW_MAX_NS UINT64_C(3600000000000)

#define BC_LOG_QUIET_NS UINT64_C(900000000000)

/* Kinds in a set. Further kinds share the last limit, at the level of the most urgent line. */
#define BC_LOG_KINDS 80u

struct bc_log_limit {
	const char *kind;
	unsigned logged;    /* lines in full, since the last quiet period */
	uint64_t counted;   /* lines since the last summary, not logged */
	uint64_t since_ns;  /* time of the first of these */
	uint64_t window_ns; /* time to the next summary; 0: no line yet */
	uint64_t last_ns;   /* time of the latest line */
	enum bc_log_level level;
	char latest[400]; /* text of the latest counted line, shortened */
};

struct bc_log_limits {
	unsigned count;
	struct bc_log_limit of[BC_LOG_KINDS];
};

/* The next window: twice as long, up to the maximum. */
static inline uint64_t bc_log_next_window(uint64_t window_ns)
{
	return window_ns < BC_LOG_WINDOW_MAX_NS / 2 ? window_ns * 2 : BC_LOG_WINDOW_MAX_NS;
}

/* Returns true if a line may be logged now; otherwise counts it. */
bool bc_log_limit_admits(struct bc_log_limit *limit, uint64_t now_ns);

/* Returns the number of counted lines if a summary is due, else 0. *seconds is the time since the
 * first of them. Resets the count. */
uint64_t bc_log_limit_due(struct bc_log_limit *limit, uint64_t now_ns, double *seconds);

/* Logs a line, or counts it. Does neither if its level is not logged. */
void bc_log_limited(struct bc_log_limits *limits, enum bc_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same for a string. `kind` identifies its limit; only its address is compared. */
void bc_log_limited_text(
	struct bc_log_limits *limits, enum bc_log_level level, const char *kind, const char *text);

/* Logs the summaries that are due. */
void bc_log_limits_poll(struct bc_log_limits *limits, uint64_t now_ns);

/* Logs all summaries. */
void bc_log_limits_end(struct bc_log_limits *limits);

#endif
