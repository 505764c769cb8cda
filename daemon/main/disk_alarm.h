/* Notices that the disk will be full soon, and logs it. */
#ifndef BC_DAEMON_MAIN_DISK_ALARM_H
#define BC_DAEMON_MAIN_DISK_ALARM_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/log_limit.h"

/* Zero at the start, except the first. */
struct bc_disk_alarm {
	struct bc_log_limits *limits; /* of the loop's thread */
	bool is_low;
	bool lacks_inodes;
	unsigned good_polls; /* since it was last low */
};

/* Call once a second. `left_s`: time until the disk of `dir` is full;
 * UINT64_MAX: it does not become full. `has_no_inodes`: because no file can be created, which
 * is logged also if the disk is low already. The disk
 * becomes low when that is less than limit_ns (0: never), and is low until there has been twice
 * that time for a minute, because the rate varies. Returns whether is_low has changed. */
bool bc_disk_alarm_poll(struct bc_disk_alarm *alarm, const char *dir, uint64_t left_s,
	bool has_no_inodes, uint64_t limit_ns);

#endif
