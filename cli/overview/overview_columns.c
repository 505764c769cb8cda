/* The columns of a picture, the counts in them, and their rows.
 *
 * Rows are blocks of 2^shift pages or ports; one shift is for all memory, one for all ports. While
 * counts are added, `places` has a bit for every block of every size that records touch, so it
 * knows how many rows each size would need. fit_rows() takes the smallest size that fits. Adding
 * counts can only make rows larger: cells that were added before are coarsened when their column
 * is next used, or at the end.
 *
 * Invariant: the sizes only depend on which places are touched, and less is touched in a part of a
 * picture, so zooming in never makes rows larger. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/overview/overview_internal.h"

/* Counts of this many records always fit without being coarsened. */
#define FEW_RECORDS (BC_CHUNK_REGIONS / 2)

void bc_overview_clear(struct bc_overview *o)
{
	for (uint32_t i = 0; i < BC_OVERVIEW_COLUMNS; i++)
		for (unsigned track = 0; track <= ALL_TRACKS; track++)
			bc_page_counts_free(&o->cells[i].of[track]);
	free(o->rows);
	o->rows = NULL;
	o->absence_count = 0;
	memset(&o->places, 0, sizeof(o->places));
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
		.from_ns = from_ns, .to_ns = from_ns, .recording = recording};
	return count;
}

struct bc_overview_column *bc_overview_add_hole(
	struct bc_overview *o, const struct bc_overview_blank *blank)
{
	struct bc_overview_column *c =
		&o->columns[bc_overview_add_column(o, blank->segment->recording, blank->from_ns)];

	c->to_ns = blank->to_ns;
	c->first_record = blank->first_record;
	c->is_hole = true;
	c->missing = blank->missing;
	c->loss.away_ns = blank->away_ns;
	return c;
}

struct bc_page_counts bc_overview_inside(
	const struct bc_overview *o, const struct bc_page_counts *counts)
{
	const struct bc_overview_picture *picture = &o->picture;
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

/* ---- the size of rows */

/* Marks a block and all larger blocks that contain it. If one is marked, so are the larger ones. */
static void mark_block(
	uint64_t *bits, uint32_t *blocks, unsigned shifts, uint32_t place, unsigned shift)
{
	for (; shift <= shifts; shift++) {
		uint32_t at = (2u << shifts) - (2u << (shifts - shift)) + (place >> shift);
		uint64_t bit = UINT64_C(1) << at % 64;
		if ((bits[at / 64] & bit) != 0)
			return;
		bits[at / 64] |= bit;
		blocks[shift]++;
	}
}

/* A lower bound of the number of single places. */
static uint32_t most_blocks(const uint32_t *blocks, unsigned shifts)
{
	uint32_t most = 0;

	for (unsigned shift = 0; shift <= shifts; shift++)
		most = blocks[shift] > most ? blocks[shift] : most;
	return most;
}

/* The smallest block size with at most `room` blocks. */
static unsigned fitting_shift(
	const uint32_t *blocks, unsigned shifts, unsigned least, uint32_t room)
{
	unsigned shift = shifts;

	while (shift > least && blocks[shift - 1] <= room)
		shift--;
	return shift;
}

/* Memory and ports each get the rows that the other does not need, but at least their share. */
static void fit_rows(struct bc_overview *o)
{
	struct bc_overview_places *p = &o->places;
	uint32_t pages = most_blocks(p->pages, BC_PAGE_SHIFTS);
	uint32_t ports = most_blocks(p->ports, BC_PORT_SHIFTS);
	uint32_t port_share = o->row_limit < 8 ? 1 : o->row_limit / 4;
	uint32_t page_share = o->row_limit - port_share;

	p->page_shift = fitting_shift(p->pages, BC_PAGE_SHIFTS, p->page_least,
		o->row_limit - (ports < port_share ? ports : port_share));
	p->port_shift = fitting_shift(p->ports, BC_PORT_SHIFTS, p->port_least,
		o->row_limit - (pages < page_share ? pages : page_share));
}

unsigned bc_overview_excess(const struct bc_overview *o, unsigned page_shift, unsigned port_shift)
{
	const struct bc_overview_places *p = &o->places;
	unsigned pages = page_shift > p->page_shift ? page_shift - p->page_shift : 0;
	unsigned ports = port_shift > p->port_shift ? port_shift - p->port_shift : 0;

	return pages > ports ? pages : ports;
}

static unsigned mark_part(struct bc_overview *o, const struct bc_page_counts *part)
{
	struct bc_overview_places *p = &o->places;

	for (uint32_t i = 0; i < part->count; i++) {
		uint32_t place = part->regions[i].first;
		if (place < BC_PORT_0)
			mark_block(p->page_bits, p->pages, BC_PAGE_SHIFTS, place, part->page_shift);
		else
			mark_block(p->port_bits, p->ports, BC_PORT_SHIFTS, place - BC_PORT_0,
				part->port_shift);
	}
	fit_rows(o);
	return bc_overview_excess(o, part->page_shift, part->port_shift);
}

unsigned bc_overview_mark_places(struct bc_overview *o, const struct bc_page_counts *counts)
{
	struct bc_page_counts part = bc_overview_inside(o, counts);

	return mark_part(o, &part);
}

/* ---- counts */

static int add_cells(
	struct bc_overview *o, uint32_t column, unsigned track, const struct bc_page_counts *part)
{
	struct bc_page_counts *cells = &o->cells[column].of[track];

	bc_page_counts_coarsen(cells, o->places.page_shift, o->places.port_shift);
	uint64_t room = (uint64_t)cells->count + part->count;
	room = room < o->row_limit ? room : o->row_limit;
	if (room > cells->capacity) {
		room = room < 2 ? 2 : room;
		struct bc_region *regions = reallocarray(cells->regions, room, sizeof(*regions));
		if (regions == NULL)
			return -ENOMEM;
		cells->regions = regions;
		cells->capacity = (uint32_t)room;
	}
	if (part->count != 0)
		bc_page_counts_add(cells, part);
	return 0;
}

unsigned bc_overview_track_of(const struct bc_overview *o, const uint64_t procs[4])
{
	for (unsigned track = 0; o->picture.by_processor && track < o->track_count; track++) {
		uint64_t others = 0;
		for (unsigned i = 0; i < 4; i++)
			others |= procs[i] & ~o->tracks[track][i];
		if (others == 0)
			return track;
	}
	return ALL_TRACKS;
}

int bc_overview_add_counts(
	struct bc_overview *o, uint32_t column, unsigned track, const struct bc_page_counts *counts)
{
	struct bc_overview_places *places = &o->places;
	struct bc_page_counts part = bc_overview_inside(o, counts);

	if (mark_part(o, &part) != 0) {
		if (part.page_shift > places->page_shift)
			places->page_least = part.page_shift;
		if (part.port_shift > places->port_shift)
			places->port_least = part.port_shift;
		fit_rows(o);
	}
	for (uint32_t i = 0; i < counts->count; i++)
		for (unsigned class = 0; class < BC_PAGE_CLASSES; class ++)
			o->columns[column].counts[class] += counts->regions[i].counts[class];
	int rc = add_cells(o, column, ALL_TRACKS, &part);
	return rc == 0 && track != ALL_TRACKS ? add_cells(o, column, track, &part) : rc;
}

int bc_overview_join_columns(struct bc_overview *o)
{
	uint32_t last = o->picture.column_count - 1;
	const struct bc_overview_column *from = &o->columns[last];
	struct bc_overview_column *to = &o->columns[last - 1];
	int rc = 0;

	for (unsigned track = 0; track <= ALL_TRACKS; track++) {
		struct bc_page_counts *cells = &o->cells[last].of[track];
		rc = rc == 0 ? add_cells(o, last - 1, track, cells) : rc;
		bc_page_counts_free(cells);
	}
	to->missing += from->missing;
	to->records += from->records;
	to->uncounted += from->uncounted;
	for (unsigned class = 0; class < BC_PAGE_CLASSES; class ++)
		to->counts[class] += from->counts[class];
	bc_loss_add(&to->loss, from->loss);
	o->picture.column_count = last;
	return rc;
}

/* Adds those of some records that are of a track. */
static int add_records(struct bc_overview *o, uint32_t column, const struct bc_chunk *chunk,
	uint32_t first, uint32_t end, unsigned track)
{
	const uint8_t *record = chunk->records + (size_t)first * BC_RECORD_BYTES;
	struct bc_chunk *run = o->run;
	uint32_t records = 0;
	int rc = 0;

	for (uint32_t i = first; i < end; i++, record += BC_RECORD_BYTES) {
		memcpy(bc_chunk_record(run, records), record, BC_RECORD_BYTES);
		records += o->tracks[track][record[7] / 64] >> record[7] % 64 & 1;
	}
	if (records == 0)
		return 0;
	run->info.records = records;
	bc_chunk_count(&run->info, run->records, &o->pages);
	if (end - first <= FEW_RECORDS || bc_overview_mark_places(o, &o->pages.counts) == 0)
		return bc_overview_add_counts(o, column, track, &o->pages.counts);
	for (uint32_t next; rc == 0 && first < end; first = next) {
		next = end - first > FEW_RECORDS ? first + FEW_RECORDS : end;
		rc = add_records(o, column, chunk, first, next, track);
	}
	return rc;
}

int bc_overview_add_records(struct bc_overview *o, uint32_t column, const struct bc_chunk *chunk,
	uint32_t first, uint32_t end)
{
	unsigned track = o->picture.by_processor ? 0 : ALL_TRACKS;
	int rc = 0;

	do
		rc = add_records(o, column, chunk, first, end, track);
	while (rc == 0 && ++track < o->track_count);
	return rc;
}

/* ---- rows */

/* Makes cells as coarse as the rows, and replaces their places by the indices of these. */
static void index_cells(const struct bc_overview *o, struct bc_page_counts *cells)
{
	uint32_t row = 0;

	bc_page_counts_coarsen(cells, o->places.page_shift, o->places.port_shift);
	for (uint32_t c = 0; c < cells->count; c++) {
		while (o->rows[row].place != cells->regions[c].first)
			row++;
		cells->regions[c].first = row;
	}
}

int bc_overview_make_rows(struct bc_overview *o)
{
	const struct bc_overview_places *places = &o->places;
	struct bc_overview_picture *p = &o->picture;
	struct bc_page_counts all;
	int rc = bc_page_counts_init(&all, o->row_limit);

	for (uint32_t i = 0; rc == 0 && i < p->column_count; i++) {
		struct bc_page_counts *cells = &o->cells[i].of[ALL_TRACKS];
		bc_page_counts_coarsen(cells, places->page_shift, places->port_shift);
		bc_page_counts_add(&all, cells);
	}
	if (rc == 0)
		o->rows = calloc((size_t)all.count + 1, sizeof(*o->rows));
	if (rc == 0 && o->rows == NULL)
		rc = -ENOMEM;
	for (uint32_t row = 0; rc == 0 && row < all.count; row++) {
		uint32_t place = all.regions[row].first;
		o->rows[row].place = place;
		o->rows[row].count = 1u << (place < BC_PORT_0 ? places->page_shift
							      : places->port_shift);
	}
	for (uint32_t i = 0; rc == 0 && i < p->column_count; i++) {
		for (unsigned track = 0; track <= ALL_TRACKS; track++)
			index_cells(o, &o->cells[i].of[track]);
		o->columns[i].cells = o->cells[i].of[ALL_TRACKS].regions;
		o->columns[i].cell_count = o->cells[i].of[ALL_TRACKS].count;
	}
	p->page_shift = places->page_shift;
	p->port_shift = places->port_shift;
	p->row_count = rc == 0 ? all.count : 0;
	p->rows = o->rows;
	p->columns = o->columns;
	bc_page_counts_free(&all);
	return rc;
}
