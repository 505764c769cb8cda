#include "cli/diff/diff_json.h"

#include <string.h>

#include "formats/base/json.h"
#include "formats/diff/compare.h"

/* Returns the kind of the current difference. */
static const char *kind(const struct bc_diff *d)
{
	if (d->a.count == 0 && d->b.count == 0)
		return "gap";
	return d->a.count == 0 ? "only_b" : d->b.count == 0 ? "only_a" : "changed";
}

static json_t *names_of(uint64_t fields)
{
	json_t *array = json_array();

	for (; fields != 0; fields &= fields - 1)
		if (json_array_append_new(
			    array, json_string(bc_field_name(fields & (0 - fields)))) != 0) {
			json_decref(array);
			return NULL;
		}
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

static json_t *side_of(const struct bc_diff *d, const struct bc_diff_side *side)
{
	json_t *object = with(json_object(), "count", bc_json_u64(side->count));
	json_t *entries = json_array();

	if (side->count != 0) {
		object = with(object, "first", bc_json_u64(side->first));
		object = with(object, "last", bc_json_u64(side->end));
	}
	if (side->has_gap)
		object = with(object, "gap", bc_json_text(side->gap.text));
	if (side->moved != 0) {
		object = with(object, "moved", bc_json_u64(side->moved));
		object = with(object, "moved_first", bc_json_u64(side->moved_first));
		object = with(object, "moved_from", bc_json_u64(side->moved_from));
	}
	if (side->has_behind)
		object = with(object, "behind", bc_json_u64(side->behind));
	for (size_t i = 0; i < d->show && i < side->count; i++) {
		const struct bc_diff_line *line = &side->lines[i];
		json_t *item = with(json_object(), "number", bc_json_u64(line->number));
		item = with(item, "text", bc_json_text(line->text));
		if (d->is_paired)
			item = with(item, "fields", names_of(line->fields));
		if (json_array_append_new(entries, item) != 0) {
			json_decref(entries);
			entries = NULL;
		}
	}
	return with(object, "entries", entries);
}

bool bc_diff_json_difference(struct bc_diff *d)
{
	return bc_output_json_value(
		&d->output, bc_json_object((struct bc_json_member[]){
				    {"difference", bc_json_u64(d->differences)},
				    {"kind", json_string(kind(d))},
				    {"a", side_of(d, &d->a)},
				    {"b", side_of(d, &d->b)},
				    {"fields", names_of(d->is_paired ? d->differ : 0)},
				    {"clock_shift", json_integer(d->shifted)},
				    {"is_lost", json_boolean(d->is_lost)},
				    {NULL, NULL},
			    }));
}

bool bc_diff_json_filtered(
	struct bc_diff *d, const struct bc_diff_side *side, const struct bc_diff_side *other)
{
	return bc_output_json_value(
		&d->output, bc_json_object((struct bc_json_member[]){
				    {"difference", bc_json_u64(d->differences)},
				    {"kind", json_string(side == &d->a ? "only_a" : "only_b")},
				    {"filtered", bc_json_u64(side->filtered)},
				    {"cut", bc_json_text(other->origin.cut)},
				    {NULL, NULL},
			    }));
}

static json_t *trace_of(const struct bc_diff_side *side)
{
	char place[BC_PLACE_TEXT_MAX];
	json_t *left_out = json_object();

	bc_trace_place(&side->trace, 0, place);
	place[strcspn(place, " ")] = '\0';
	for (unsigned bit = 0; bit < BC_TRAIT_BITS; bit++)
		if (side->fit.left_out[bit] != 0)
			left_out = with(left_out, bc_trait_name(1u << bit),
				bc_json_u64(side->fit.left_out[bit]));
	return bc_json_object((struct bc_json_member[]){
		{"file", bc_json_text(side->files.paths[0])},
		{"files", json_integer(side->files.count)},
		{"format", json_string(bc_format_name(side->trace.format))},
		{"numbers", json_string(place)},
		{"entries", bc_json_u64(side->entries)},
		{"left_out", left_out},
		{NULL, NULL},
	});
}

bool bc_diff_json_summary(struct bc_diff *d, bool is_whole)
{
	return bc_output_json_value(
		&d->output, bc_json_object((struct bc_json_member[]){
				    {"differences", bc_json_u64(d->differences)},
				    {"is_whole", json_boolean(is_whole)},
				    {"same", bc_json_u64(d->same)},
				    {"reordered", bc_json_u64(d->reordered)},
				    {"changed", bc_json_u64(d->changed)},
				    {"only_a", bc_json_u64(d->only_a + d->a.filtered)},
				    {"only_b", bc_json_u64(d->only_b + d->b.filtered)},
				    {"moved", bc_json_u64(d->moved)},
				    {"a", trace_of(&d->a)},
				    {"b", trace_of(&d->b)},
				    {"fields", names_of(d->fields)},
				    {NULL, NULL},
			    }));
}
