/* Rules for rotation, stopping and retention, named like dumpcap's -b and -a; lengths of trace. */
#ifndef BC_DAEMON_BASE_RULES_H
#define BC_DAEMON_BASE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/base/quantity.h"

/* The assumed bus clock in Hz if it is unknown; docs/configuration.md. */
#define BC_DEFAULT_CLOCK_HZ 66000000u

/* When to start a new segment, and how many to keep. 0: no such rule. */
struct bc_rotation {
	uint64_t file_bytes;  /* after the chunk that exceeds it */
	uint64_t duration_ns; /* this long after the start of the segment */
	uint64_t interval_ns; /* when the clock reaches a multiple of this */
	uint64_t files;       /* segments to keep, including the open one */
};

/* When to stop a recording. 0: no such rule. */
struct bc_stop_rules {
	uint64_t duration_ns;
	uint64_t records;
	uint64_t file_bytes; /* all segments together */
};

/* With max_use but no filesize rule, a segment is at most this part of max_use, so that there is
 * always a sealed segment to delete. */
#define BC_MAX_USE_SEGMENTS 8

/* How much space recordings may use; like journald's settings. 0: no such rule. */
struct bc_retention_rules {
	uint64_t max_use_bytes;
	uint64_t keep_free_bytes;
	uint64_t max_age_ns;
};

/* The rules for the writer. */
struct bc_writer_rules {
	struct bc_rotation rotation;
	struct bc_retention_rules space;
	uint64_t sync_ns; /* call fdatasync this often while there is new data */
};

/* The names of settings, as in [trigger NAME]: up to 32 letters, digits, underscores and dashes. */
#define BC_SETTING_NAME_MAX 32u
bool bc_setting_name_is_valid(const char *name);

/* A length of trace: a time, a size of records, or everything. */

enum bc_time_or_size_unit {
	BC_TIME_OR_SIZE_NONE,
	BC_TIME_OR_SIZE_TIME,
	BC_TIME_OR_SIZE_BYTES,
	BC_TIME_OR_SIZE_ALL
};

struct bc_time_or_size {
	enum bc_time_or_size_unit unit;
	uint64_t value; /* ns, or bytes of records (BC_RECORD_BYTES each), else 0 */
};

/* Parses a time ("5s", "10ms", "2min", or a number of seconds), a size with a unit ("16M"), or
 * "all". "0" is BC_TIME_OR_SIZE_NONE. On failure returns false with a phrase in `err`. */
bool bc_time_or_size_read(
	struct bc_time_or_size *length, const char *text, char *err, size_t errlen) BC_MUST_CHECK;

/* Formats a length as bc_time_or_size_read() parses it; BC_TIME_OR_SIZE_NONE is "0". */
void bc_time_or_size_print(char out[BC_QUANTITY_TEXT_MAX], struct bc_time_or_size length);

#endif
