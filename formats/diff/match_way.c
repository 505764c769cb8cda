#include "formats/diff/match_way.h"

#include <errno.h>

int bc_match_way_init(struct bc_match_way *way, size_t lookahead)
{
	way->lookahead = lookahead;
	way->spent = 0;
	if (bc_align_init(&way->align, lookahead) != 0)
		return -ENOMEM;
	if (bc_jump_init(&way->jumps, lookahead) == 0)
		return 0;
	bc_align_free(&way->align);
	return -ENOMEM;
}

void bc_match_way_free(struct bc_match_way *way)
{
	bc_jump_free(&way->jumps);
	bc_align_free(&way->align);
}

/* The search area. */
struct field {
	struct bc_align_row a;
	struct bc_align_row b;
	uint64_t a_position;
	uint64_t b_position;
	const struct bc_align_time *time;
};

/* The look-ahead permitted here. */
static size_t reach_of(
	struct bc_match_way *way, const struct bc_match_row *a, const struct bc_match_row *b)
{
	uint64_t cost = 2 * (uint64_t)way->lookahead;

	if (way->lookahead <= BC_WAY_ALWAYS)
		return way->lookahead;
	if (way->spent + cost > BC_WAY_SEARCHES * (a->position + b->position + cost))
		return BC_WAY_ALWAYS;
	way->spent += cost;
	return way->lookahead;
}

static struct field field_of(struct bc_match_way *way, const struct bc_match_row *a,
	const struct bc_match_row *b, const struct bc_align_time *time)
{
	size_t reach = reach_of(way, a, b);

	return (struct field){.a = bc_match_row_align(a, reach),
		.b = bc_match_row_align(b, reach),
		.a_position = a->position,
		.b_position = b->position,
		.time = time};
}

/* Tries a few edits within the nearest entries. Times distinguish equal entries, unless the clocks
 * diverge here, too. Near the ends of the rows there is too little to decide that. */
static bool find_near(struct bc_match_way *way, const struct bc_match_row *a,
	const struct bc_match_row *b, const struct bc_align_time *time)
{
	struct bc_align_row near_a = bc_match_row_align(a, BC_WAY_NEAR_ENTRIES);
	struct bc_align_row near_b = bc_match_row_align(b, BC_WAY_NEAR_ENTRIES);
	struct bc_align_row open_a = near_a;
	struct bc_align_row open_b = near_b;

	open_a.is_whole = open_b.is_whole = false;
	return (time != NULL &&
		       bc_align_near(&way->align, &open_a, &open_b, BC_WAY_TIME_EDITS, time)) ||
	       bc_align_near(&way->align, &near_a, &near_b, BC_WAY_NEAR_EDITS, NULL);
}

/* Evaluates the current hunks as one candidate. */
static struct bc_jump weigh_hunks(const struct bc_match_way *way, const struct field *field)
{
	const struct bc_align *align = &way->align;
	const struct bc_hunk *last = &align->hunks[align->count - 1];
	struct bc_jump sum = {
		.a = last->a + last->a_count, .b = last->b + last->b_count, .hunks = align->count};

	for (size_t i = 0; i < align->count; i++)
		sum.edits += align->hunks[i].a_count + align->hunks[i].b_count;
	bc_jump_weigh(&sum, &field->a, &field->b, field->time);
	return sum;
}

/* Searches for a single jump that is better than *best. */
static bool find_jump(struct bc_match_way *way, const struct field *field, struct bc_jump *best)
{
	if (best->run == BC_JUMP_LONG && best->is_clock_kept)
		return false;
	return bc_jump_find(&way->jumps, &field->a, field->a_position, &field->b, field->b_position,
		field->time, best);
}

static bool find_any_jump(
	const struct bc_match_way *way, const struct field *field, struct bc_jump *best)
{
	return best->run != BC_JUMP_LONG &&
	       bc_jump_find_any(
		       &way->jumps, &field->a, field->a_position, &field->b, field->time, best);
}

static void use_jump(struct bc_match_way *way, const struct bc_jump *jump)
{
	way->align.hunks[0] = (struct bc_hunk){.a_count = jump->a, .b_count = jump->b};
	way->align.count = 1;
}

bool bc_match_way_find(struct bc_match_way *way, const struct bc_match_row *a,
	const struct bc_match_row *b, const struct bc_align_time *time)
{
	struct field field = field_of(way, a, b, time);
	struct bc_jump best = {.is_clock_kept = true};
	bool is_near = find_near(way, a, b, time);

	if (is_near && way->align.count == 0)
		return true;
	if (is_near)
		best = weigh_hunks(way, &field);
	bool has_jump = find_jump(way, &field, &best);
	bool is_found = is_near || has_jump;
	if (!is_near && best.run < BC_JUMP_LONG &&
		bc_align_near(&way->align, &field.a, &field.b, BC_ALIGN_EDITS, NULL)) {
		struct bc_jump edits = way->align.count != 0 ? weigh_hunks(way, &field) : best;
		has_jump = has_jump && bc_jump_is_better(&best, &edits);
		best = has_jump ? best : edits;
		is_found = true;
	}
	if ((!is_near || best.edits >= BC_WAY_TIME_EDITS) && find_any_jump(way, &field, &best))
		has_jump = is_found = true;
	if (has_jump)
		use_jump(way, &best);
	if (is_found)
		return true;
	field.a = bc_match_row_align(a, way->lookahead);
	field.b = bc_match_row_align(b, way->lookahead);
	return bc_align_far(&way->align, &field.a, &field.b);
}

bool bc_match_way_jump(struct bc_match_way *way, const struct bc_match_row *a,
	const struct bc_match_row *b, const struct bc_align_time *time)
{
	struct field field = field_of(way, a, b, time);
	struct bc_jump best = {.a = 1, .b = 1, .edits = 1, .hunks = 1};

	bc_jump_weigh(&best, &field.a, &field.b, time);
	if (!find_jump(way, &field, &best))
		return false;
	use_jump(way, &best);
	return true;
}
