/* Lines of a table as entries: csv and ndjson split a line into cells, one for each column, and
 * make its entry from these.
 *
 *     bc_cells.columns = ...            what the trace has
 *     bc_cells.has = 0                  for each line
 *     bc_cells_add() ...
 *     bc_cells_entry() */
#ifndef BC_FORMATS_CODEC_CELLS_H
#define BC_FORMATS_CODEC_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/codec/columns.h"
#include "formats/trace/parser.h"

struct bc_cells {
	uint64_t columns; /* of the trace; others are ignored */
	uint64_t ignored;
	uint64_t number; /* of the previous entry */
	bool has_number;
	uint64_t has; /* columns that have a cell in this line */
	struct bc_text cell[BC_COLUMNS];
	const char *in_line[BC_COLUMNS]; /* where they are in the line */
	char form[BC_COLUMNS]; /* x, d, or a unit: an index of bc_time_forms plus 1; 0: as buscap
				  writes it */
	const char *row_end;   /* the newline of a row of csv */
	char what[160];
	size_t used; /* of `text`, for the entries of this block */
	char text[2 * BC_LINE_MAX + BC_COLUMNS];
};

/* Adds a cell of the line: a value of one of the columns, or of one that is ignored and counted.
 * `in_line` is where it is, for errors. The text must stay until the entry is not used any more. */
void bc_cells_add(
	struct bc_cells *cells, unsigned column, struct bc_text cell, const char *in_line);

/* Makes the next entry of `parse` from the cells of the line at parse->at. Returns false if that
 * can't be, with parse->bad and parse->expected. */
bool bc_cells_entry(struct bc_cells *cells, struct bc_parse *parse);

/* Copies a byte to the text of the block. It ends in a newline, so that a number ends there. */
void bc_cells_copy(struct bc_cells *cells, char byte);
struct bc_text bc_cells_end_copy(struct bc_cells *cells, size_t from);

/* Without blanks around it. */
struct bc_text bc_cells_trim(struct bc_text text);

/* True if they are the same in any case. */
bool bc_cells_is(struct bc_text text, const char *other);

#endif
