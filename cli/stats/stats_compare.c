/* Two runs side by side, from the statistics of each as a JSON object (stats_print.c).
 *
 * Both are walked at once. Each value becomes a figure, whose name is its path. A row of an array
 * has its name or first member in the path, and belongs to the row of the other run that has the
 * same. What one run lacks is unknown, but 0 in a table of counts. */
#include "cli/stats/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/term/text.h"
#include "formats/base/grow.h"

#define VALUE_MAX 80

struct figure {
	char *name;
	json_t *a; /* NULL: unknown */
	json_t *b;
	uint64_t more; /* left out after it */
};

struct comparison {
	struct figure *figures;
	size_t count;
	size_t capacity;
	uint64_t top; /* of a table's figures, those that differ most; UINT64_MAX: not a page */
	json_t *zero;
	json_t *absent; /* what a run lacks: NULL or `zero` */
	bool lacks_memory;
};

static double change(const struct figure *f)
{
	return fabs(json_number_value(f->b) - json_number_value(f->a));
}

static int compare_changes(const void *x, const void *y)
{
	return (change(x) < change(y)) - (change(x) > change(y));
}

static bool is_nothing(const json_t *value)
{
	return value == NULL || json_is_null(value) ||
	       (json_is_number(value) && json_number_value(value) == 0);
}

/* Adds a figure, and takes its name. On a page, those that are 0 in both runs are left out. */
static void add_figure(struct comparison *c, char *name, json_t *a, json_t *b)
{
	const struct figure f = {
		.name = name, .a = a != NULL ? a : c->absent, .b = b != NULL ? b : c->absent};
	struct figure *grown = bc_grow(c->figures, &c->capacity, c->count, sizeof(*grown));

	c->figures = grown != NULL ? grown : c->figures;
	c->lacks_memory |= grown == NULL;
	if (grown == NULL || (c->top != UINT64_MAX && is_nothing(f.a) && is_nothing(f.b)))
		free(name);
	else
		grown[c->count++] = f;
}

/* Takes the name. */
static void compare_values(struct comparison *c, char *name, json_t *a, json_t *b);

static void compare_members(struct comparison *c, const char *path, json_t *a, json_t *b)
{
	json_t *const runs[] = {a, b};
	const char *key;
	json_t *value;
	char *name;

	for (unsigned i = 0; i < 2; i++)
		json_object_foreach(runs[i], key, value)
		{
			if (i == 1 && json_object_get(a, key) != NULL)
				continue;
			if (asprintf(&name, "%s%s%s", path, *path != '\0' ? "." : "", key) >= 0)
				compare_values(
					c, name, json_object_get(a, key), json_object_get(b, key));
			else
				c->lacks_memory = true;
		}
}

/* Returns the numbers of an array's rows by the name or first member of each. */
static json_t *index_rows(struct comparison *c, json_t *array, bool is_ordered)
{
	json_t *rows = json_object();
	json_t *row;
	size_t i;

	c->lacks_memory |= rows == NULL;
	json_array_foreach(array, i, row)
	{
		const char *first = is_ordered ? "" : json_object_iter_key(json_object_iter(row));
		json_t *value = json_object_get(row, first);
		const char *name = json_string_value(json_object_get(row, "name"));
		json_t *numbers = json_object();
		const char *key;
		char digits[24];
		snprintf(digits, sizeof(digits), strcmp(first, "addr") == 0 ? "0x%08llx" : "%lld",
			is_ordered ? (json_int_t)i : json_integer_value(value));
		name = name != NULL ? name : json_string_value(value);
		json_object_foreach(row, key, value)
		{
			c->lacks_memory |= json_is_number(value) && strcmp(key, first) != 0 &&
					   json_object_set(numbers, key, value) != 0;
		}
		c->lacks_memory |= json_object_set_new(
					   rows, name != NULL ? name : digits, numbers) != 0;
	}
	return rows;
}

static void compare_arrays(struct comparison *c, const char *path, json_t *a, json_t *b)
{
	static const char *const series[] = {/* they end with the trace */
		"time.epochs", "reuse.within", "working_set", "miss_ratio"};
	const size_t first = c->count;
	bool is_table = true;

	for (size_t i = 0; i < sizeof(series) / sizeof(series[0]); i++)
		is_table = is_table && strcmp(path, series[i]) != 0;
	json_t *rows_a = index_rows(c, a, strcmp(path, series[0]) == 0);
	json_t *rows_b = index_rows(c, b, strcmp(path, series[0]) == 0);
	c->absent = is_table && a != NULL && b != NULL ? c->zero : NULL;
	compare_members(c, path, rows_a, rows_b);
	c->absent = NULL;
	const size_t count = c->count - first;
	if (is_table && count > c->top) {
		qsort(&c->figures[first], count, sizeof(*c->figures), compare_changes);
		while (c->count - first > c->top)
			free(c->figures[--c->count].name);
		c->figures[c->count - 1].more = count - c->top;
	}
	json_decref(rows_a);
	json_decref(rows_b);
}

static void compare_values(struct comparison *c, char *name, json_t *a, json_t *b)
{
	if (!json_is_object(a) && !json_is_object(b) && !json_is_array(a) && !json_is_array(b)) {
		add_figure(c, name, a, b);
		return;
	}
	(json_is_array(a) || json_is_array(b) ? compare_arrays : compare_members)(c, name, a, b);
	free(name);
}

static json_t *figure_json(const struct figure *f)
{
	const bool has_both = json_is_number(f->a) && json_is_number(f->b);
	const bool is_whole = json_is_integer(f->a) && json_is_integer(f->b);
	const json_int_t more = json_integer_value(f->b) - json_integer_value(f->a);
	const double from = json_number_value(f->a);
	const double by = has_both ? json_number_value(f->b) - from : NAN;

	return BC_JSON_OBJECT({"a", f->a != NULL ? json_incref(f->a) : json_null()},
		{"b", f->b != NULL ? json_incref(f->b) : json_null()},
		{"difference", is_whole ? json_integer(more) : bc_json_double(by)},
		{"percent", bc_json_double(from != 0 ? 100 * by / fabs(from) : NAN)});
}

static void print_value(struct bc_output *o, json_t *value, const char *plus)
{
	const json_int_t n = json_integer_value(value);
	const char *sign = n < 0 ? "-" : n > 0 ? plus : "";
	char text[VALUE_MAX] = "-";

	if (json_is_integer(value))
		snprintf(text, sizeof(text), "%s%s", sign, BC_GROUPED((uint64_t)llabs(n)));
	else if (json_is_real(value))
		snprintf(text, sizeof(text), *plus != '\0' ? "%+.9g" : "%.9g",
			json_real_value(value));
	else if (json_is_string(value))
		bc_safe_text(text, sizeof(text), json_string_value(value));
	else if (json_is_boolean(value))
		strcpy(text, json_is_true(value) ? "true" : "false");
	bc_output_format(o, " %16s", text);
}

static void print_figure(struct bc_output *o, const struct figure *f, json_t *row)
{
	const double percent = json_number_value(json_object_get(row, "percent"));
	char name[VALUE_MAX];

	bc_output_format(o, "%-32s", bc_safe_text(name, sizeof(name), f->name));
	print_value(o, json_object_get(row, "a"), "");
	print_value(o, json_object_get(row, "b"), "");
	print_value(o, json_object_get(row, "difference"), "+");
	if (percent != 0)
		bc_output_format(o, " %+9.2f %%", percent);
	bc_output_text(o, "\n", 1);
	if (f->more != 0)
		bc_output_format(o, "and %s more\n", BC_GROUPED(f->more));
}

bool bc_stats_compare(struct bc_output *o, json_t *a, json_t *b, bool is_json, uint64_t top)
{
	struct comparison c = {.top = is_json ? UINT64_MAX : top, .zero = json_integer(0)};
	json_t *all = json_object();

	compare_members(&c, "", a, b);
	c.lacks_memory |= c.zero == NULL;
	if (!is_json)
		bc_output_format(o, "%-32s %16s %16s %16s\n", "", "A", "B", "difference");
	for (size_t i = 0; i < c.count; i++) {
		json_t *row = figure_json(&c.figures[i]);
		if (!is_json)
			print_figure(o, &c.figures[i], row);
		c.lacks_memory |= json_object_set_new(all, c.figures[i].name, row) != 0;
		free(c.figures[i].name);
	}
	free(c.figures);
	json_decref(c.zero);
	bool ok = !c.lacks_memory;
	if (ok && is_json)
		bc_output_json_value(o, all);
	else
		json_decref(all);
	return ok;
}
