#include "daemon/base/thread_health.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "formats/base/clock.h"
#include "formats/base/text.h"

void bc_thread_health_init(struct bc_thread_health *h, const char *who)
{
	h->now = (struct bc_thread_health_seen){.what = ""};
	snprintf(h->now.who, sizeof(h->now.who), "%s", who);
	pthread_mutex_init(&h->lock, NULL);
}

void bc_thread_health_destroy(struct bc_thread_health *h)
{
	pthread_mutex_destroy(&h->lock);
}

void bc_thread_health_start(struct bc_thread_health *h, const char *what, const char *file)
{
	pthread_mutex_lock(&h->lock);
	h->now.since_ns = bc_now_ns();
	h->now.wall_ns = bc_wall_ns();
	h->now.what = what;
	snprintf(h->now.file, sizeof(h->now.file), "%s", file);
	pthread_mutex_unlock(&h->lock);
}

void bc_thread_health_idle(struct bc_thread_health *h)
{
	pthread_mutex_lock(&h->lock);
	h->now.since_ns = 0;
	pthread_mutex_unlock(&h->lock);
}

void bc_thread_health_poll(struct bc_thread_health *h, struct bc_thread_health_seen *longest)
{
	pthread_mutex_lock(&h->lock);
	if (h->now.since_ns != 0 && (longest->since_ns == 0 || h->now.since_ns < longest->since_ns))
		*longest = h->now;
	pthread_mutex_unlock(&h->lock);
}

static double seconds_since(uint64_t since_ns)
{
	return (double)(bc_now_ns() - since_ns) * 1e-9;
}

const char *bc_thread_health_text(char out[BC_THREAD_HEALTH_TEXT_MAX],
	const struct bc_thread_health_seen *seen, uint64_t least_ns)
{
	char since[BC_RFC3339_BYTES];

	out[0] = '\0';
	bc_rfc3339_write(since, seen->wall_ns);
	if (seen->since_ns != 0 && bc_now_ns() - seen->since_ns >= least_ns)
		snprintf(out, BC_THREAD_HEALTH_TEXT_MAX, "%s: %s%s%s since %s", seen->who,
			seen->what, seen->file[0] != '\0' ? " " : "", seen->file, since);
	return out;
}

static void log_stall(const struct bc_thread_health_seen *stuck, const char *dir, bool is_watched)
{
	char since[BC_RFC3339_BYTES];
	bool has_file = stuck->file[0] != '\0';

	bc_rfc3339_write(since, stuck->wall_ns);
	bc_log(BC_LOG_ERROR,
		is_watched
			? "%s hangs: %s%s%s%s%s for %.0f s, since %s; the watchdog is not notified "
			  "until it continues, so that systemd restarts buscapd"
			: "%s hangs: %s%s%s%s%s for %.0f s, since %s; if the buffer "
			  "fills up before it continues, a live source loses samples",
		stuck->who, stuck->what, has_file ? " " : "", has_file ? dir : "",
		has_file ? "/" : "", stuck->file, seconds_since(stuck->since_ns), since);
}

bool bc_stall_detector_poll(struct bc_stall_detector *detector,
	const struct bc_thread_health_seen *longest, uint64_t limit_ns, const char *dir,
	bool is_watched)
{
	bool is_stuck = limit_ns != 0 && longest->since_ns != 0 &&
			bc_now_ns() - longest->since_ns >= limit_ns;

	if (is_stuck && longest->since_ns != detector->reported.since_ns) {
		log_stall(longest, dir, is_watched);
		detector->reported = *longest;
	} else if (!is_stuck && detector->reported.since_ns != 0) {
		bc_log(BC_LOG_NOTICE, "%s continues after %.0f s%s", detector->reported.who,
			seconds_since(detector->reported.since_ns),
			is_watched ? "; the watchdog is notified again" : "");
		detector->reported.since_ns = 0;
	}
	return is_stuck;
}
