#include "cli/diff_json.h"

#include <string.h>

#include "formats/compare.h"
#include "formats/json.h"

/* What the difference at hand is. */
static const char *kind(const struct bc_diff *d)
{
	return d->a.count == 0 ? "only_b" : d->b.count == 0 ? "only_a" : "changed";
}

static bool add_fields(cJSON *object, const char *name, uint64_t fields)
{
	cJSON *array = cJSON_AddArrayToObject(object, name);
	bool ok = array != NULL;

	for (; ok && fields != 0; fields &= fields - 1) {
		cJSON *item = cJSON_CreateString(bc_field_name(fields & (0 - fields)));
		ok = item != NULL && cJSON_AddItemToArray(array, item);
	}
	return ok;
}

/* Prints and frees the object; `ok`: every member could be added. */
static bool print(struct bc_diff *d, cJSON *object, bool ok)
{
	char *text = ok ? cJSON_PrintUnformatted(object) : NULL;

	cJSON_Delete(object);
	if (text == NULL)
		return false;
	bc_output_text(&d->output, text, strlen(text));
	bc_output_text(&d->output, "\n", 1);
	cJSON_free(text);
	return true;
}

static bool add_lines(cJSON *object, const struct bc_diff *d, const struct bc_diff_side *side)
{
	cJSON *array = cJSON_AddArrayToObject(object, "entries");
	bool ok = array != NULL;

	for (size_t i = 0; ok && i < d->show && i < side->count; i++) {
		const struct bc_diff_line *line = &side->lines[i];
		cJSON *item = cJSON_CreateObject();
		ok = item != NULL && cJSON_AddItemToArray(array, item) &&
		     bc_json_add_u64(item, "number", line->number) &&
		     bc_json_add_text(item, "text", line->text) &&
		     (!d->is_paired || add_fields(item, "fields", line->fields));
	}
	return ok;
}

static bool add_side(cJSON *object, const struct bc_diff *d, const struct bc_diff_side *side)
{
	cJSON *at = cJSON_AddObjectToObject(object, side == &d->a ? "a" : "b");
	bool ok = at != NULL && bc_json_add_u64(at, "count", side->count);

	if (ok && side->count != 0)
		ok = bc_json_add_u64(at, "first", side->first) &&
		     bc_json_add_u64(at, "last", side->last);
	if (ok && side->has_behind)
		ok = bc_json_add_u64(at, "behind", side->behind);
	return ok && add_lines(at, d, side);
}

bool bc_diff_json_difference(struct bc_diff *d)
{
	cJSON *object = cJSON_CreateObject();
	bool ok = object != NULL && bc_json_add_u64(object, "difference", d->differences) &&
		  bc_json_add_text(object, "kind", kind(d)) && add_side(object, d, &d->a) &&
		  add_side(object, d, &d->b) &&
		  add_fields(object, "fields", d->is_paired ? d->differ : 0) &&
		  bc_json_add_i64(object, "clock_shift", d->shifted) &&
		  cJSON_AddBoolToObject(object, "is_lost", d->is_lost) != NULL;

	return print(d, object, ok);
}

static bool add_trace(cJSON *object, const struct bc_diff *d, const struct bc_diff_side *side)
{
	char place[BC_PLACE_TEXT_MAX];
	cJSON *at = cJSON_AddObjectToObject(object, side == &d->a ? "a" : "b");
	bool ok = at != NULL;

	bc_trace_place(&side->trace, 0, place);
	place[strcspn(place, " ")] = '\0';
	ok = ok && bc_json_add_text(at, "file", side->paths[0]) &&
	     bc_json_add_u64(at, "files", (uint64_t)side->path_count) &&
	     bc_json_add_text(at, "format", bc_format_name(side->trace.format)) &&
	     bc_json_add_text(at, "numbers", place) &&
	     bc_json_add_u64(at, "entries", side->entries);
	cJSON *left_out = ok ? cJSON_AddObjectToObject(at, "left_out") : NULL;
	ok = left_out != NULL;
	for (unsigned bit = 0; ok && bit < BC_TRAIT_BITS; bit++)
		if (side->fit.left_out[bit] != 0)
			ok = bc_json_add_u64(
				left_out, bc_trait_name(1u << bit), side->fit.left_out[bit]);
	return ok;
}

bool bc_diff_json_summary(struct bc_diff *d, bool is_whole)
{
	cJSON *object = cJSON_CreateObject();
	bool ok = object != NULL && bc_json_add_u64(object, "differences", d->differences) &&
		  cJSON_AddBoolToObject(object, "is_whole", is_whole) != NULL &&
		  bc_json_add_u64(object, "same", d->same) &&
		  bc_json_add_u64(object, "reordered", d->reordered) &&
		  bc_json_add_u64(object, "changed", d->changed) &&
		  bc_json_add_u64(object, "only_a", d->only_a) &&
		  bc_json_add_u64(object, "only_b", d->only_b) && add_trace(object, d, &d->a) &&
		  add_trace(object, d, &d->b) && add_fields(object, "fields", d->fields);

	return print(d, object, ok);
}
