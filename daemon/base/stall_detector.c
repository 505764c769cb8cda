#include "daemon/base/stall_detector.h"

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/rfc3339.h"

static double seconds_since(uint64_t since_ns)
{
	return (double)(bc_now_ns() - since_ns) * 1e-9;
}

static void tell_begin(const struct bc_thread_health_seen *stuck, const char *dir, bool is_watched)
{
	char since[BC_RFC3339_BYTES];
	bool has_file = stuck->file[0] != '\0';

	bc_rfc3339_write(since, bc_wall_ns() - (int64_t)(bc_now_ns() - stuck->since_ns));
	if (is_watched)
		bc_log(BC_LOG_ERROR,
			"%s has been %s%s%s%s%s for %.0f s, since %s, and the call doesn't return: "
			"the watchdog is not fed until it does; the service manager then ends "
			"buscapd and starts it again, which recovers what is open",
			stuck->who, stuck->what, has_file ? " " : "", has_file ? dir : "",
			has_file ? "/" : "", stuck->file, seconds_since(stuck->since_ns), since);
	else
		bc_log(BC_LOG_ERROR,
			"%s has been %s%s%s%s%s for %.0f s, since %s, and the call doesn't return: "
			"nothing more is written until it does; a source that can't wait loses "
			"what the buffer can't hold, and it is counted",
			stuck->who, stuck->what, has_file ? " " : "", has_file ? dir : "",
			has_file ? "/" : "", stuck->file, seconds_since(stuck->since_ns), since);
}

static void tell_end(const struct bc_thread_health_seen *stuck, bool is_watched)
{
	if (is_watched)
		bc_log(BC_LOG_NOTICE, "%s goes on, after %.0f s: the watchdog is fed again",
			stuck->who, seconds_since(stuck->since_ns));
	else
		bc_log(BC_LOG_NOTICE, "%s goes on, after %.0f s", stuck->who,
			seconds_since(stuck->since_ns));
}

bool bc_stall_detector_poll(struct bc_stall_detector *hang,
	const struct bc_thread_health_seen *longest, uint64_t limit_ns, const char *dir,
	bool is_watched)
{
	bool is_stuck = limit_ns != 0 && longest->since_ns != 0 &&
			bc_now_ns() - longest->since_ns >= limit_ns;

	if (is_stuck && longest->since_ns != hang->reported.since_ns) {
		tell_begin(longest, dir, is_watched);
		hang->reported = *longest;
	} else if (!is_stuck && hang->reported.since_ns != 0) {
		tell_end(&hang->reported, is_watched);
		hang->reported.since_ns = 0;
	}
	return is_stuck;
}
