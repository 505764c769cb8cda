/* Prints a comparison: a page of text in the manner of `diff -u`, or a JSON object for each
 * difference and one for the summary. The functions named put_...() print parts of a line of text;
 * json_...() make parts of an object. bc_diff_print_...() at the end choose. */
#include "cli/diff/diff.h"

#include <inttypes.h>
#include <string.h>

#include "cli/diff/compare.h"
#include "formats/base/json.h"

#define RED   "\033[31m"
#define GREEN "\033[32m"
#define CYAN  "\033[36m"
#define PLAIN "\033[0m"

/* Prints names of fields, each after the first one after the separator. */
static void put_fields(struct bc_diff *d, uint64_t fields, const char *separator)
{
	for (uint64_t left = fields; left != 0; left &= left - 1)
		bc_output_format(&d->output, "%s%s", left == fields ? "" : separator,
			bc_field_name(left & (0 - left)));
}

static void put_line(struct bc_diff *d, char mark, const struct bc_diff_line *line)
{
	const char *color = mark == '-' ? RED : mark == '+' ? GREEN : "";
	bool has_color = d->has_color && color[0] != '\0';

	bc_output_format(&d->output, "%s%c %8" PRIu64 "  %s", has_color ? color : "", mark,
		line->number, line->text);
	if (mark == '+' && d->is_paired && line->fields != 0) {
		bc_output_format(&d->output, "  [");
		put_fields(d, line->fields, ",");
		bc_output_format(&d->output, "]");
	}
	bc_output_format(&d->output, "%s\n", has_color ? PLAIN : "");
}

/* Prints "record 17 to 36 of A" or "after record 16 of A". */
static void put_position(struct bc_diff *d, const struct bc_diff_side *side)
{
	char place[BC_PLACE_TEXT_MAX];
	char name = side == &d->a ? 'A' : 'B';

	if (side->count != 0) {
		bc_output_format(
			&d->output, "%s", bc_trace_place(&side->trace, side->first, place));
		if (side->count > 1)
			bc_output_format(&d->output, " to %" PRIu64, side->end);
		bc_output_format(&d->output, " of %c", name);
	} else if (side->has_previous) {
		bc_output_format(&d->output, "after %s of %c",
			bc_trace_place(&side->trace, side->previous, place), name);
	} else {
		bc_output_format(&d->output, "before the first of %c", name);
	}
}

static void put_head(struct bc_diff *d)
{
	uint64_t n = d->a.count;
	uint64_t k = d->b.count;

	bc_output_format(
		&d->output, "\n%s@@ %s: ", d->has_color ? CYAN : "", BC_GROUPED(d->differences));
	if (n == 0 && k == 0) {
		bc_output_format(&d->output, "a gap");
	} else if (n == 0 || k == 0) {
		bc_output_format(&d->output, "%s %s only in %c", BC_GROUPED(n + k),
			n + k == 1 ? "entry" : "entries", n != 0 ? 'A' : 'B');
	} else if (d->is_paired) {
		bc_output_format(&d->output, n == 1 ? "differs in " : "%s entries differ in ",
			BC_GROUPED(n));
		put_fields(d, d->differ, ", ");
	} else {
		bc_output_format(&d->output, "%s of A where %s of B %s", BC_GROUPED(n),
			BC_GROUPED(k), k == 1 ? "is" : "are");
	}
	bc_output_format(&d->output, ": ");
	put_position(d, n != 0 ? &d->a : &d->b);
	bc_output_format(&d->output, ", ");
	put_position(d, n != 0 ? &d->b : &d->a);
	bc_output_format(&d->output, "%s\n", d->has_color ? PLAIN : "");
}

static void put_more(struct bc_diff *d, char mark, const struct bc_diff_side *side)
{
	if (side->count > d->show)
		bc_output_format(&d->output, "%c      ... and %s more\n", mark,
			BC_GROUPED(side->count - d->show));
}

static void put_gap(struct bc_diff *d, const struct bc_diff_side *side)
{
	if (side->has_gap)
		bc_output_format(&d->output, "# here %c has a %s\n", side == &d->a ? 'A' : 'B',
			side->gap.text);
}

static void print_difference(struct bc_diff *d)
{
	put_head(d);
	for (size_t i = 0; i < d->before_count; i++)
		put_line(d, ' ', &d->before[i]);
	for (size_t i = 0; i < d->show && i < d->a.count; i++) {
		put_line(d, '-', &d->a.lines[i]);
		if (d->is_paired)
			put_line(d, '+', &d->b.lines[i]);
	}
	put_more(d, '-', &d->a);
	for (size_t i = 0; !d->is_paired && i < d->show && i < d->b.count; i++)
		put_line(d, '+', &d->b.lines[i]);
	put_more(d, '+', &d->b);
	put_gap(d, &d->a);
	put_gap(d, &d->b);
	if (d->is_lost)
		bc_output_format(&d->output, "# no match found within %s entries (--lookahead)%s\n",
			BC_GROUPED(d->how.lookahead),
			d->is_pipe ? "; a pipe can't be searched further, a file can" : "");
	if (d->shifted != 0)
		bc_output_format(&d->output, "# from here B's clock is %s tick%s %s than before\n",
			BC_GROUPED(
				d->shifted > 0 ? (uint64_t)d->shifted : 0 - (uint64_t)d->shifted),
			d->shifted == 1 || d->shifted == -1 ? "" : "s",
			d->shifted > 0 ? "further ahead" : "further behind");
}

static void print_filtered(
	struct bc_diff *d, const struct bc_diff_side *side, const struct bc_diff_side *other)
{
	bc_output_format(&d->output, "\n@@ %s: %s %s only in %c: %c was cut with ",
		BC_GROUPED(d->differences), BC_GROUPED(side->filtered),
		side->filtered == 1 ? "entry" : "entries", side == &d->a ? 'A' : 'B',
		side == &d->a ? 'B' : 'A');
	bc_output_safe(&d->output, other->origin.cut);
	bc_output_format(&d->output, "\n");
}

static void put_left_out(struct bc_diff *d, const struct bc_diff_side *side)
{
	for (unsigned bit = 0; bit < BC_TRAIT_BITS; bit++)
		if (side->converter.left_out[bit] != 0)
			bc_output_format(&d->output,
				"not compared, because the other format can't hold them: %s of %c "
				"(%s)\n",
				BC_GROUPED(side->converter.left_out[bit]),
				side == &d->a ? 'A' : 'B', bc_trait_name(1u << bit));
}

static void print_summary(struct bc_diff *d, bool is_whole)
{
	const char *what = d->differences == 0 ? is_whole ? "the same" : "no difference found"
					       : "different";

	bc_output_format(&d->output, "%s%s", d->differences != 0 ? "\n" : "", what);
	if (d->differences != 0)
		bc_output_format(&d->output, " in %s place%s%s", BC_GROUPED(d->differences),
			bc_plural(d->differences), d->is_stopped ? ", then stopped" : "");
	bc_output_format(&d->output,
		": %s of A and %s of B compared; %s match, %s in different order, %s changed, %s "
		"only in A, %s only in B",
		BC_GROUPED(d->a.entries), BC_GROUPED(d->b.entries), BC_GROUPED(d->same),
		BC_GROUPED(d->reordered), BC_GROUPED(d->changed),
		BC_GROUPED(d->only_a + d->a.filtered), BC_GROUPED(d->only_b + d->b.filtered));
	bc_output_format(&d->output, "\n");
	put_left_out(d, &d->a);
	put_left_out(d, &d->b);
	if (!is_whole && !d->is_stopped)
		bc_output_format(&d->output, "parts that could not be read were not compared\n");
}

/* Returns the kind of the current difference. */
static const char *difference_kind(const struct bc_diff *d)
{
	if (d->a.count == 0 && d->b.count == 0)
		return "gap";
	return d->a.count == 0 ? "only_b" : d->b.count == 0 ? "only_a" : "changed";
}

static json_t *json_fields(uint64_t fields)
{
	json_t *array = json_array();

	for (; fields != 0; fields &= fields - 1)
		array = bc_json_append(array, json_string(bc_field_name(fields & (0 - fields))));
	return array;
}

/* Sets a member. If that fails, frees the object and returns NULL. */
static json_t *with(json_t *object, const char *name, json_t *value)
{
	if (json_object_set_new(object, name, value) == 0)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *json_side(const struct bc_diff *d, const struct bc_diff_side *side)
{
	json_t *object = with(json_object(), "count", bc_json_u64(side->count));
	json_t *entries = json_array();

	if (side->count != 0) {
		object = with(object, "first", bc_json_u64(side->first));
		object = with(object, "last", bc_json_u64(side->end));
	}
	if (side->has_gap)
		object = with(object, "gap", bc_json_text(side->gap.text));
	if (side->has_previous)
		object = with(object, "behind", bc_json_u64(side->previous));
	for (size_t i = 0; i < d->show && i < side->count; i++) {
		const struct bc_diff_line *line = &side->lines[i];
		json_t *item = with(json_object(), "number", bc_json_u64(line->number));
		item = with(item, "text", bc_json_text(line->text));
		if (d->is_paired)
			item = with(item, "fields", json_fields(line->fields));
		entries = bc_json_append(entries, item);
	}
	return with(object, "entries", entries);
}

static void json_difference(struct bc_diff *d)
{
	bc_output_json_value(
		&d->output, BC_JSON_OBJECT({"difference", bc_json_u64(d->differences)},
				    {"kind", json_string(difference_kind(d))},
				    {"a", json_side(d, &d->a)}, {"b", json_side(d, &d->b)},
				    {"fields", json_fields(d->is_paired ? d->differ : 0)},
				    {"clock_shift", json_integer(d->shifted)},
				    {"is_lost", json_boolean(d->is_lost)}));
}

static void json_filtered(
	struct bc_diff *d, const struct bc_diff_side *side, const struct bc_diff_side *other)
{
	bc_output_json_value(
		&d->output, BC_JSON_OBJECT({"difference", bc_json_u64(d->differences)},
				    {"kind", json_string(side == &d->a ? "only_a" : "only_b")},
				    {"filtered", bc_json_u64(side->filtered)},
				    {"cut", bc_json_text(other->origin.cut)}));
}

static json_t *json_trace(const struct bc_diff_side *side)
{
	char place[BC_PLACE_TEXT_MAX];
	json_t *left_out = json_object();

	bc_trace_place(&side->trace, 0, place);
	place[strcspn(place, " ")] = '\0';
	for (unsigned bit = 0; bit < BC_TRAIT_BITS; bit++)
		if (side->converter.left_out[bit] != 0)
			left_out = with(left_out, bc_trait_name(1u << bit),
				bc_json_u64(side->converter.left_out[bit]));
	return BC_JSON_OBJECT({"file", bc_json_text(side->files.paths[0])},
		{"files", json_integer(side->files.count)},
		{"format", json_string(bc_format_name(side->trace.format))},
		{"numbers", json_string(place)}, {"entries", bc_json_u64(side->entries)},
		{"left_out", left_out});
}

static void json_summary(struct bc_diff *d, bool is_whole)
{
	bc_output_json_value(&d->output,
		BC_JSON_OBJECT({"differences", bc_json_u64(d->differences)},
			{"is_whole", json_boolean(is_whole)}, {"same", bc_json_u64(d->same)},
			{"reordered", bc_json_u64(d->reordered)},
			{"changed", bc_json_u64(d->changed)},
			{"only_a", bc_json_u64(d->only_a + d->a.filtered)},
			{"only_b", bc_json_u64(d->only_b + d->b.filtered)},
			{"a", json_trace(&d->a)}, {"b", json_trace(&d->b)},
			{"fields", json_fields(d->how.fields)}));
}

/* ---- in the chosen form */

static void put_side(struct bc_diff *d, const char *name, const struct bc_diff_side *side)
{
	int more = side->files.count - 1;

	bc_output_format(&d->output, "%s", name);
	bc_output_safe(&d->output, side->trace.file.name);
	if (more > 0)
		bc_output_format(&d->output, " and %d more", more);
	bc_output_format(&d->output, " (%s)\n", bc_format_name(side->trace.format));
}

void bc_diff_print_start(struct bc_diff *d)
{
	if (d->is_json || d->is_quiet)
		return;
	put_side(d, "--- A: ", &d->a);
	put_side(d, "+++ B: ", &d->b);
}

void bc_diff_print_context(struct bc_diff *d, const struct bc_diff_line *line)
{
	put_line(d, ' ', line);
}

void bc_diff_print_difference(struct bc_diff *d)
{
	if (d->is_json)
		json_difference(d);
	else if (!d->is_quiet)
		print_difference(d);
}

void bc_diff_print_filtered(
	struct bc_diff *d, const struct bc_diff_side *side, const struct bc_diff_side *other)
{
	if (d->is_json)
		json_filtered(d, side, other);
	else if (!d->is_quiet)
		print_filtered(d, side, other);
}

void bc_diff_print_summary(struct bc_diff *d, bool is_whole)
{
	if (d->is_json)
		json_summary(d, is_whole);
	else if (!d->is_quiet)
		print_summary(d, is_whole);
}
