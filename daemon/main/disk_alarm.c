#include "daemon/main/disk_alarm.h"

#include <inttypes.h>
#include <stdio.h>

#include "formats/base/clock.h"

#define GOOD_POLLS 60u

static void warn(struct bc_disk_alarm *alarm, const char *dir, uint64_t left_s)
{
	char when[64] = "now";

	if (left_s >= 60)
		snprintf(when, sizeof(when), "in %" PRIu64 " min at the current rate", left_s / 60);
	else if (left_s != 0)
		snprintf(when, sizeof(when), "in %" PRIu64 " s at the current rate", left_s);
	bc_log_limited(alarm->limits, BC_LOG_WARNING | BC_LOG_DISK_LOW,
		"%s: full %s; free some space, or set a rule in [space], such as keep_free = 5G",
		dir, when);
}

bool bc_disk_alarm_poll(struct bc_disk_alarm *alarm, const char *dir, uint64_t left_s,
	bool has_no_inodes, uint64_t limit_ns)
{
	uint64_t limit_s = limit_ns / BC_NS_PER_S;
	bool was_low = alarm->is_low;
	bool lacked_inodes = alarm->lacks_inodes;

	alarm->good_polls = left_s / 2 >= limit_s ? alarm->good_polls + 1 : 0;
	alarm->is_low = left_s < limit_s || (was_low && alarm->good_polls < GOOD_POLLS);
	alarm->lacks_inodes = alarm->is_low && (has_no_inodes || (was_low && lacked_inodes));
	if (alarm->lacks_inodes && !lacked_inodes)
		bc_log_limited(alarm->limits, BC_LOG_WARNING | BC_LOG_DISK_LOW,
			"%s: no file can be created: the file system has no free inodes; delete "
			"some files, or set keep_free in [space]",
			dir);
	else if (alarm->is_low && !was_low)
		warn(alarm, dir, left_s);
	if (!alarm->is_low && was_low)
		bc_log_limited(alarm->limits, BC_LOG_NOTICE, "%s: no longer nearly full", dir);
	return alarm->is_low != was_low;
}
