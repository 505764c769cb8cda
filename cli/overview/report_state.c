#include "cli/overview/report_state.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/overview/overview_json.h"
#include "cli/overview/page.h"
#include "formats/base/clock.h"
#include "formats/base/grow.h"
#include "formats/base/json.h"
#include "formats/base/text.h"

bool bc_report_add(struct bc_report_text *t, const char *bytes, size_t count)
{
	t->is_full = t->is_full || count > t->limit - t->used;
	if (t->is_full || t->is_no_memory)
		return false;
	char *grown = bc_grow(t->bytes, &t->capacity, t->used + count, 1);
	t->is_no_memory = grown == NULL;
	if (grown == NULL)
		return false;
	t->bytes = grown;
	memcpy(t->bytes + t->used, bytes, count);
	t->used += count;
	return true;
}

bool bc_report_format(struct bc_report_text *t, const char *format, ...)
{
	char piece[1024];
	va_list args;

	va_start(args, format);
	int n = vsnprintf(piece, sizeof(piece), format, args);
	va_end(args);
	assert(n >= 0 && (size_t)n < sizeof(piece));
	return bc_report_add(t, piece, (size_t)n);
}

int bc_report_result(const struct bc_report_text *t, int rc)
{
	return t->is_full ? -EFBIG : t->is_no_memory ? -ENOMEM : rc;
}

/* ---- JSON */

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

/* ---- the page (page.c) with the JSON in it */

static const char element[] = "<script type=\"application/json\" id=\"report\">";

/* Adds JSON, in which only strings can have a '<'. Escaped, it can't end the element. */
static void add_escaped(struct bc_report_text *t, const char *text, size_t bytes)
{
	while (bytes != 0) {
		const char *sign = memchr(text, '<', bytes);
		size_t plain = sign != NULL ? (size_t)(sign - text) : bytes;
		if (!bc_report_add(t, text, plain) ||
			(sign != NULL && !bc_report_add(t, "\\u003c", 6)))
			return;
		plain += sign != NULL;
		text += plain;
		bytes -= plain;
	}
}

int bc_report_html(struct bc_report *r, struct bc_report_text *t)
{
	struct bc_report_text json = {.limit = t->limit};
	const char *place = memmem(bc_page_html, bc_page_html_bytes, element, sizeof(element) - 1);

	assert(place != NULL);
	place += sizeof(element) - 1;
	bc_report_add(t, bc_page_html, (size_t)(place - bc_page_html));
	int rc = bc_report_json(r, &json);
	if (rc == 0)
		add_escaped(t, json.bytes, json.used - 1); /* without the end of the line */
	free(json.bytes);
	bc_report_add(t, place, bc_page_html_bytes - (size_t)(place - bc_page_html));
	return bc_report_result(t, rc);
}
