#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/report_state.h"
#include "formats/base/clock.h"
#include "formats/base/json.h"
#include "formats/base/rfc3339.h"
#include "formats/overview/overview_json.h"

/* A bc_overview_write_cb. */
static bool write_text(void *text, const char *bytes, size_t count)
{
	return bc_report_add(text, bytes, count);
}

static int add_value(struct bc_report_text *t, const char *name, json_t *value)
{
	char *text = bc_json_print(value);
	int rc = text != NULL ? 0 : -ENOMEM;

	json_decref(value);
	if (rc == 0) {
		bc_report_format(t, ",\"%s\":", name);
		bc_report_add(t, text, strlen(text));
	}
	free(text);
	return rc;
}

int bc_report_json(struct bc_report *r, struct bc_report_text *t)
{
	const struct bc_overview_picture *p = bc_overview_picture(r->overview);
	int64_t now = bc_wall_ns();
	char made[BC_RFC3339_BYTES];

	bc_rfc3339_write(made, now - now % 1000000000);
	bc_report_format(t, "{\"overview\":");
	int rc = bc_overview_json(r->overview, r->names, write_text, t);
	bc_report_format(t, ",\"events\":");
	if (rc == 0)
		rc = bc_overview_events_json(
			r->overview, p->from_ns, p->to_ns, r->max_events, write_text, t);
	if (rc == 0)
		rc = add_value(t, "made", json_string(made));
	if (rc == 0)
		rc = add_value(t, "program", json_string("buscap " BC_VERSION));
	if (rc == 0)
		rc = add_value(t, "reduced", bc_json_text(r->reduced));
	bc_report_format(t, "}\n");
	return bc_report_result(t, rc);
}
