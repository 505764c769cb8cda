#include "daemon/main/disk_alarm.h"

#include <inttypes.h>

#define S_NS       UINT64_C(1000000000)
#define GOOD_POLLS 60u

bool bc_disk_alarm_poll(struct bc_disk_alarm *alarm, const struct bc_status *status,
	uint64_t limit_ns, uint64_t now_ns)
{
	uint64_t limit = limit_ns / S_NS;
	bool was_low = alarm->is_low;
	struct bc_space_forecast forecast = bc_status_forecast(status);
	uint64_t left = forecast.will_fill ? forecast.seconds_left : UINT64_MAX;

	alarm->good_polls = left / 2 >= limit ? alarm->good_polls + 1 : 0;
	alarm->is_low = left < limit || (was_low && alarm->good_polls < GOOD_POLLS);
	if (alarm->is_low && !was_low)
		bc_log_limited(&alarm->limits, BC_LOG_WARNING,
			"%s: full in %" PRIu64
			" min at the current rate; free some space, or set a rule in [space]",
			status->dir, left / 60);
	if (!alarm->is_low && was_low)
		bc_log_limited(
			&alarm->limits, BC_LOG_NOTICE, "%s: no longer nearly full", status->dir);
	bc_log_limits_poll(&alarm->limits, now_ns);
	return alarm->is_low && !was_low;
}
