/* The columns of a picture, the counts in them, and their rows. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "formats/overview/overview_internal.h"

void bc_overview_clear(struct bc_overview *o)
{
	for (uint32_t i = 0; i < BC_OVERVIEW_COLUMNS; i++)
		bc_page_counts_free(&o->cells[i]);
	free(o->rows);
	o->rows = NULL;
	o->picture = (struct bc_overview_picture){.from_ns = o->from_ns,
		.to_ns = o->to_ns,
		.place_to = BC_PLACES - 1,
		.unit = BC_OVERVIEW_RECORDS};
}

const struct bc_overview_picture *bc_overview_picture(const struct bc_overview *o)
{
	return &o->picture;
}

uint32_t bc_overview_add_column(struct bc_overview *o, uint32_t recording, int64_t from_ns)
{
	uint32_t count = o->picture.column_count++;

	assert(count < BC_OVERVIEW_COLUMNS);
	o->columns[count] = (struct bc_overview_column){
		.from_ns = from_ns, .to_ns = from_ns, .recording = recording, .has_gaps = true};
	return count;
}

/* The part of some counts that is in the picture's places. */
static struct bc_page_counts inside(
	const struct bc_overview_picture *picture, const struct bc_page_counts *counts)
{
	struct bc_page_counts part = *counts;
	uint32_t end = counts->count;
	uint32_t first = 0;

	for (; first < end; first++) {
		uint32_t place = counts->regions[first].first;
		unsigned shift = place < BC_PORT_0 ? counts->page_shift : counts->port_shift;
		if (place + (1u << shift) > picture->place_from)
			break;
	}
	while (end > first && counts->regions[end - 1].first > picture->place_to)
		end--;
	part.regions = counts->regions + first;
	part.count = end - first;
	if (part.count == 0 || part.regions[0].first >= BC_PORT_0)
		part.page_shift = 0;
	if (part.count == 0 || part.regions[part.count - 1].first < BC_PORT_0)
		part.port_shift = 0;
	return part;
}

int bc_overview_add_counts(
	struct bc_overview *o, uint32_t column, const struct bc_page_counts *counts)
{
	struct bc_page_counts part = inside(&o->picture, counts);
	struct bc_page_counts *cells = &o->cells[column];
	uint64_t room = (uint64_t)cells->count + part.count;

	for (uint32_t i = 0; i < counts->count; i++)
		for (unsigned class = 0; class < BC_PAGE_CLASSES; class ++)
			o->columns[column].counts[class] += counts->regions[i].counts[class];
	room = room < o->row_limit ? room : o->row_limit;
	if (room > cells->capacity) {
		room = room < 2 ? 2 : room;
		struct bc_region *regions = reallocarray(cells->regions, room, sizeof(*regions));
		if (regions == NULL)
			return -ENOMEM;
		cells->regions = regions;
		cells->capacity = (uint32_t)room;
	}
	if (part.count != 0)
		bc_page_counts_add(cells, &part);
	return 0;
}

int bc_overview_make_rows(struct bc_overview *o)
{
	struct bc_overview_picture *p = &o->picture;
	struct bc_page_counts all;
	int rc = bc_page_counts_init(&all, o->row_limit);

	for (uint32_t i = 0; rc == 0 && i < p->column_count; i++)
		bc_page_counts_add(&all, &o->cells[i]);
	if (rc == 0)
		o->rows = calloc((size_t)all.count + 1, sizeof(*o->rows));
	if (rc == 0 && o->rows == NULL)
		rc = -ENOMEM;
	for (uint32_t row = 0; rc == 0 && row < all.count; row++) {
		uint32_t place = all.regions[row].first;
		o->rows[row].place = place;
		o->rows[row].count = 1u << (place < BC_PORT_0 ? all.page_shift : all.port_shift);
	}
	for (uint32_t i = 0; rc == 0 && i < p->column_count; i++) {
		struct bc_page_counts *cells = &o->cells[i];
		bc_page_counts_coarsen(cells, all.page_shift, all.port_shift);
		uint32_t row = 0;
		for (uint32_t c = 0; c < cells->count; c++) {
			while (o->rows[row].place != cells->regions[c].first)
				row++;
			cells->regions[c].first = row;
		}
		o->columns[i].cells = cells->regions;
		o->columns[i].cell_count = cells->count;
	}
	p->page_shift = all.page_shift;
	p->port_shift = all.port_shift;
	p->row_count = rc == 0 ? all.count : 0;
	p->rows = o->rows;
	p->columns = o->columns;
	bc_page_counts_free(&all);
	return rc;
}
