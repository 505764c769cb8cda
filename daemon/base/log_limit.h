/* Lines that may come again and again, kept to as many as a person reads. Of each kind (its format)
 * and level the first ten are logged as they come. Those that follow are counted, and summed up
 * with the latest of them in full:
 *
 *     41 more times in the last 60.0 s; the latest: /data: can't make it durable: ...
 *
 * after a minute, then after two, four, and so on up to an hour for as long as it goes on; sooner,
 * when there was none for a quarter of that time. When there was none for all of it, and for a
 * quarter of an hour at least, the next ten are logged as they come again. So the first is told at
 * once, the last soon, and a fault that comes and goes for a week is some hundreds of lines.
 *
 * A set of limits is one thread's own, zero at its start:
 *
 *     bc_log_limited()    instead of bc_log()
 *     bc_log_limits_poll() now and then: once a second, say
 *     bc_log_limits_end()  what is still counted is told */
#ifndef BC_DAEMON_BASE_LOG_LIMIT_H
#define BC_DAEMON_BASE_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/log.h"

#define BC_LOG_BURST         10u
#define BC_LOG_WINDOW_NS     UINT64_C(60000000000)
#define BC_LOG_WINDOW_MAX_NS UINT64_C(3600000000000)

#define BC_LOG_QUIET_NS UINT64_C(900000000000)

/* Kinds of a set; those beyond share the last one's limit, at the level of the most urgent. */
#define BC_LOG_KINDS 40u

struct bc_log_limit {
	const char *kind;
	unsigned said;
	uint64_t unsaid;
	uint64_t since_ns;  /* the first of those */
	uint64_t window_ns; /* 0: there was none for long */
	uint64_t last_ns;
	enum bc_log_level level;
	char latest[400]; /* the text of the latest that was only counted; "..." if it is longer */
};

struct bc_log_limits {
	unsigned count;
	struct bc_log_limit of[BC_LOG_KINDS];
};

/* What goes on is told after this time, if it was told after `window_ns` before: twice as long. */
static inline uint64_t bc_log_next_window(uint64_t window_ns)
{
	return window_ns < BC_LOG_WINDOW_MAX_NS / 2 ? window_ns * 2 : BC_LOG_WINDOW_MAX_NS;
}

/* Whether a line may be logged now; else it is counted. */
bool bc_log_limit_admits(struct bc_log_limit *limit, uint64_t now_ns);

/* How many lines are to be summed up now, with *seconds the time in which they came; 0: none. They
 * are forgotten. */
uint64_t bc_log_limit_due(struct bc_log_limit *limit, uint64_t now_ns, double *seconds);

/* Logs a line, or counts it. One that the log's level leaves out is neither. */
void bc_log_limited(struct bc_log_limits *limits, enum bc_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same of a text whose kind, an address that stays, is known otherwise. */
void bc_log_limited_text(
	struct bc_log_limits *limits, enum bc_log_level level, const char *kind, const char *text);

/* Sums up what is due. */
void bc_log_limits_poll(struct bc_log_limits *limits, uint64_t now_ns);

/* Sums up everything. */
void bc_log_limits_end(struct bc_log_limits *limits);

#endif
