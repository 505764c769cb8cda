/* The text format 0.0.4 of Prometheus: for each metric a TYPE line, a HELP line and its samples.
 *
 * The metrics come from the table of figures (formats/base/figures.h), read from the status. A
 * figure that is missing or null has no metric: without a board, there are no figures of the board.
 * Text is in labels of a sample that is 1, whose name ends in "_info".
 *
 * Invariant: a name, its type and its unit never change; one TYPE and one HELP a name. */
#include "daemon/api/metrics.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "formats/base/figures.h"
#include "formats/base/json.h"

static bool has_end(const char *name, const char *end)
{
	size_t n = strlen(name);

	return n >= strlen(end) && strcmp(name + n - strlen(end), end) == 0;
}

/* Writes a number, a flag as 0 or 1, or a time as Unix time. */
static void write_value(FILE *out, const json_t *value)
{
	const char *text = json_string_value(value);
	struct tm tm = {0};

	if (text != NULL && strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm) != NULL)
		fprintf(out, "%lld\n", (long long)timegm(&tm));
	else if (text != NULL) /* more than INT64_MAX, see bc_json_u64() */
		fprintf(out, "%s\n", text);
	else if (json_is_real(value))
		fprintf(out, "%.15g\n", json_real_value(value));
	else
		fprintf(out, "%" JSON_INTEGER_FORMAT "\n",
			json_is_true(value) ? 1 : json_integer_value(value));
}

/* Writes NAME="VALUE". Escapes backslash, quote and newline. */
static void write_label(FILE *out, const char *name, const json_t *value)
{
	const char *at = json_is_string(value) ? json_string_value(value) : "";

	fprintf(out, "%s=\"", name);
	if (json_is_integer(value))
		fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	for (; *at != '\0'; at++) {
		if (*at == '\\' || *at == '"')
			fputc('\\', out);
		if (*at == '\n')
			fputs("\\n", out);
		else
			fputc(*at, out);
	}
	fputc('"', out);
}

/* Writes the sample of all figures that are labels of this metric. Leaves out labels whose member
 * is missing; null is an empty text. */
static void write_info(FILE *out, const char *metric, const json_t *status)
{
	const char *before = "{";

	fprintf(out, "buscapd_%s", metric);
	for (size_t i = 0; i < bc_figures_count; i++) {
		const struct bc_figure *f = &bc_figures[i];
		const json_t *value = bc_json_path(status, f->path);
		if (f->label == NULL || value == NULL || strcmp(f->metric, metric) != 0)
			continue;
		fputs(before, out);
		write_label(out, f->label, value);
		before = ",";
	}
	fputs("} 1\n", out);
}

/* Metadata have labels for key and value, because a key need not be a valid name of a label. */
static void write_members(FILE *out, const struct bc_figure *f, json_t *object)
{
	bool is_text = has_end(f->metric, "_info");
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		fprintf(out, "buscapd_%s{%s=\"%s\"", f->metric, f->label, key);
		if (is_text)
			write_label(out, ",value", value);
		fputs("} ", out);
		if (is_text)
			fputs("1\n", out);
		else
			write_value(out, value);
	}
}

static void write_states(FILE *out, const struct bc_figure *f, const char *current)
{
	const char *state = f->states;

	while (*state != '\0') {
		int n = (int)strcspn(state, " ");
		bool is_current = strlen(current) == (size_t)n &&
				  strncmp(state, current, (size_t)n) == 0;
		fprintf(out, "buscapd_%s{buscapd_%s=\"%.*s\"} %d\n", f->metric, f->metric, n, state,
			is_current);
		state += n + (state[n] == ' ');
	}
}

/* True if this figure is a label of the metric of an earlier one. */
static bool is_repeated(size_t figure)
{
	for (size_t i = 0; i < figure; i++)
		if (bc_figures[i].metric != NULL &&
			strcmp(bc_figures[i].metric, bc_figures[figure].metric) == 0)
			return true;
	return false;
}

static bool has_value(const json_t *value)
{
	return value != NULL && !json_is_null(value);
}

static void write_metric(FILE *out, size_t figure, const json_t *status)
{
	const struct bc_figure *f = &bc_figures[figure];
	json_t *value = bc_json_path(status, f->path);
	bool is_by_name = f->label != NULL && json_is_object(value);
	const struct bc_figure *label = f;

	if (f->metric == NULL || is_repeated(figure) || !has_value(value) ||
		(is_by_name && json_object_size(value) == 0))
		return;
	/* An object's metric has the texts of its members, if they are there. */
	if (json_is_object(value) && !is_by_name)
		while (label->label == NULL || strcmp(label->metric, f->metric) != 0)
			label++;
	if (!has_value(bc_json_path(status, label->path)))
		return;
	fprintf(out, "# TYPE buscapd_%s %s\n# HELP buscapd_%s %s\n", f->metric,
		has_end(f->metric, "_total") ? "counter" : "gauge", f->metric, f->help);
	if (is_by_name) {
		write_members(out, f, value);
	} else if (f->states != NULL) {
		write_states(out, f, json_string_value(value));
	} else if (has_end(f->metric, "_info")) {
		write_info(out, f->metric, status);
	} else {
		fprintf(out, "buscapd_%s ", f->metric);
		write_value(out, value);
	}
}

char *bc_metrics_write(const struct bc_status *s)
{
	json_t *status = bc_status_json(s);
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = status != NULL ? open_memstream(&text, &bytes) : NULL;

	for (size_t i = 0; out != NULL && i < bc_figures_count; i++)
		write_metric(out, i, status);
	json_decref(status);
	if (out == NULL)
		return NULL;
	bool is_whole = ferror(out) == 0;
	if (fclose(out) == 0 && is_whole)
		return text;
	free(text);
	return NULL;
}
