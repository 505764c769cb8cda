#include "cli/io/gap_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/term/console.h"

const char *bc_gap_text(char out[BC_GAP_TEXT_MAX], const struct bc_event *gap)
{
	const char *name = bc_gap_cause_name(gap->cause);
	char lasted[32] = "";

	if (gap->duration_ns != 0)
		snprintf(lasted, sizeof(lasted), ", %.6f s", (double)gap->duration_ns * 1e-9);
	if (!gap->exact && gap->value == 0)
		snprintf(out, BC_GAP_TEXT_MAX, "an unknown number of samples lost (%s%s)", name,
			lasted);
	else
		snprintf(out, BC_GAP_TEXT_MAX, "%s%" PRIu64 " sample%s lost (%s%s)",
			gap->exact ? "" : "at least ", gap->value, bc_plural(gap->value), name,
			lasted);
	return out;
}
