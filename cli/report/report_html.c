/* The page (cli/page) with the data in it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cli/page/page.h"
#include "cli/report/report_state.h"

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
