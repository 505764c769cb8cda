#include "formats/diff/match_row.h"

int bc_match_row_init(struct bc_match_row *row, const struct bc_match_source *source,
	const struct bc_match_options *options)
{
	*row = (struct bc_match_row){.source = *source, .fields = options->fields};
	return bc_backlog_init(&row->held, options->lookahead);
}

void bc_match_row_free(struct bc_match_row *row)
{
	bc_backlog_free(&row->held);
}

/* Gets more entries when the last ones are used up. Returns 0 or a negative errno. */
static int refill(struct bc_match_row *row)
{
	int rc = row->source.next(row->source.context, &row->run, &row->left);

	row->is_over = rc <= 0;
	row->left = rc > 0 ? row->left : 0;
	return rc < 0 ? rc : 0;
}

int64_t bc_match_row_span(struct bc_match_row *row, const struct bc_entry **span)
{
	size_t held = bc_backlog_count(&row->held);

	*span = row->held.entries + row->held.begin;
	if (held != 0)
		return (int64_t)held;
	if (row->left == 0 && !row->is_over) {
		int rc = refill(row);
		if (rc < 0)
			return rc;
	}
	*span = row->run;
	return (int64_t)row->left;
}

int bc_match_row_hold(struct bc_match_row *row, size_t need)
{
	while (bc_backlog_count(&row->held) < need) {
		if (row->left == 0) {
			if (row->is_over)
				return 0;
			int rc = refill(row);
			if (rc < 0)
				return rc;
			continue;
		}
		if (!bc_backlog_add(&row->held, row->run, row->fields))
			return 0;
		row->run++;
		row->left--;
	}
	return 0;
}

void bc_match_row_pass(struct bc_match_row *row, const struct bc_entry *span, size_t n)
{
	if (n == 0)
		return;
	row->epoch = span[n - 1].epoch;
	row->has_epoch = true;
	row->position += n;
	if (bc_backlog_count(&row->held) != 0) {
		bc_backlog_pop(&row->held, n);
	} else {
		row->run += n;
		row->left -= n;
	}
}

struct bc_align_row bc_match_row_align(const struct bc_match_row *row, size_t most)
{
	const struct bc_backlog *held = &row->held;
	size_t count = bc_backlog_count(held);

	return (struct bc_align_row){.hashes = held->hashes + held->begin,
		.ticks = held->ticks + held->begin,
		.count = count < most ? count : most,
		.is_whole = count <= most && row->left == 0 && row->is_over};
}
