/* The words with which limits are given: dumpcap's `filesize:`, `duration:`, `interval:`, `files:`,
 * `records:`; and the sizes and times in them and in the configuration. */
#ifndef BC_DAEMON_BASE_RULES_H
#define BC_DAEMON_BASE_RULES_H

#include "formats/base/must_check.h"

#include <stdbool.h>
#include <stdint.h>

/* The assumed bus clock in Hz if it is unknown; docs/configuration.md. */
#define BC_DEFAULT_CLOCK_HZ 66000000u

/* When a new segment begins, and how many are kept. 0: no such rule. */
struct bc_rotation {
	uint64_t file_bytes;  /* cut after the chunk that passes it */
	uint64_t duration_ns; /* this long after the segment began */
	uint64_t interval_ns; /* at multiples of this of the clock */
	uint64_t files;       /* segments kept, the open one among them */
};

/* When a recording ends. 0: no such rule. */
struct bc_stop_rules {
	uint64_t duration_ns;
	uint64_t records;
	uint64_t file_bytes; /* of all its segments */
};

/* How much room recordings may take, as journald's settings of these names. 0: no such rule. */
struct bc_retention_rules {
	uint64_t max_use_bytes;
	uint64_t keep_free_bytes;
	uint64_t max_age_ns;
};

/* What the writer keeps to. */
struct bc_writer_rules {
	struct bc_rotation rotation;
	struct bc_retention_rules space;
	uint64_t sync_ns; /* fdatasync this often while there is something to sync */
};

/* Reads "RULE:VALUE" of -b and -a. On failure returns false with a sentence in *err, which is
 * constant text. */
bool bc_rotation_read(
	struct bc_rotation *rotation, const char *text, const char **err) BC_MUST_CHECK;
bool bc_stop_rule_read(
	struct bc_stop_rules *rules, const char *text, const char **err) BC_MUST_CHECK;

/* Reads a whole number. */
bool bc_number_read(uint64_t *value, const char *text) BC_MUST_CHECK;

/* Reads a size: a number with K, M, G or T (of 1024), or without, in units of `unit` bytes. */
bool bc_size_read(uint64_t *bytes, const char *text, uint64_t unit) BC_MUST_CHECK;

/* Reads a time: a number with ms, s, m, h or d, or without, in seconds. A fraction may follow a
 * point. 292 years are the most. */
bool bc_time_read(uint64_t *ns, const char *text) BC_MUST_CHECK;

#endif
