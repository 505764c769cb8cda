#include "cli/io/gap_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/term/console.h"

const char *bc_lost_text(char out[BC_LOST_TEXT_MAX], uint64_t lost, bool is_exact)
{
	if (lost == 0 && !is_exact)
		return "an unknown number of samples lost";
	snprintf(out, BC_LOST_TEXT_MAX, "%s%" PRIu64 " sample%s lost", is_exact ? "" : "at least ",
		lost, bc_plural(lost));
	return out;
}

const char *bc_gap_text(char out[BC_GAP_TEXT_MAX], const struct bc_event *gap)
{
	const char *name = bc_gap_cause_name(gap->cause);
	char lasted[32] = "";
	char lost[BC_LOST_TEXT_MAX];

	if (gap->duration_ns != 0)
		snprintf(lasted, sizeof(lasted), ", %.6f s", (double)gap->duration_ns * 1e-9);
	snprintf(out, BC_GAP_TEXT_MAX, "%s (%s%s)", bc_lost_text(lost, gap->value, gap->exact),
		name, lasted);
	return out;
}
