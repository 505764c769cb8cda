#include "cli/web/locality.h"

#include <errno.h>

#include "cli/stats/footprint.h"

/* Takes about 3 s. */
#define RECORDS_MAX 16000000u

static void on_records(void *context, const uint8_t *records, size_t count)
{
	bc_footprint_records(context, records, count);
}

int bc_locality_read(json_t **json, struct bc_overview *overview, const struct bc_filter *filter,
	const char *recording)
{
	const struct bc_footprint_options options = {.line_bytes = 32,
		.page_bytes = 4096,
		.memory_bytes = 256u << 20,
		.has_working_set = true,
		.has_miss_ratio = true};
	struct bc_footprint footprint;

	*json = NULL;
	int rc = bc_footprint_open(&footprint, &options);
	if (rc == 0)
		rc = bc_overview_read(
			overview, filter, recording, RECORDS_MAX, on_records, &footprint);
	if (rc == 0) {
		bc_footprint_finish(&footprint);
		*json = BC_JSON_OBJECT(
			{"working_set", bc_footprint_windows_json(&footprint, "references")},
			{"miss_ratio", bc_footprint_sizes_json(&footprint)},
			{"at_least", json_boolean(footprint.lines_full)});
		rc = *json != NULL ? 0 : -ENOMEM;
	}
	bc_footprint_close(&footprint);
	return rc;
}
