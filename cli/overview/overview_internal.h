/* The overview's structs, and the functions that its files share. */
#ifndef BC_CLI_OVERVIEW_OVERVIEW_INTERNAL_H
#define BC_CLI_OVERVIEW_OVERVIEW_INTERNAL_H

#include <stdatomic.h>
#include <sys/stat.h>

#include "cli/overview/overview.h"
#include "formats/bus/describe.h"
#include "formats/bus/tick_time.h"
#include "formats/recording/segments.h"
#include "formats/segment/chunk_table.h"
#include "formats/segment/segment_name.h"

/* A segment in a file. A file has several only if it is a concatenation. */
struct bc_overview_segment {
	struct bc_overview_file *file;
	uint64_t tag; /* of the recording */
	uint32_t number;
	uint32_t recording;          /* index, after an update */
	uint32_t first_row;          /* of the file's chunk table */
	uint32_t rows;               /* chunks */
	struct bc_segment_span span; /* of all its chunks that are here */
	bool is_sealed;              /* the file has an index, and only this segment */
	enum bc_overview_state end;  /* BC_OVERVIEW_OPEN: the recording does not end here */
	int64_t ended_ns;            /* when it did, if it ends here */
	int64_t from_ns;
	int64_t to_ns;
	uint64_t first_record;
	uint64_t records;
	uint64_t bytes;
	uint32_t first_epoch;
	uint32_t last_epoch;
	uint64_t first_tick;
	uint64_t last_tick;
	int64_t last_ns;       /* of its last record */
	int64_t chunk_ns;      /* of the first record of the last chunk that has records */
	struct bc_loss before; /* the totals before its first chunk, by that chunk */
	struct bc_loss after;
	struct bc_loss base; /* `after` of the segment before it, or `before` */
	struct bc_loss left; /* after its last chunk: the end of a killed recording */
	uint64_t procs[4];   /* that occur */
	bool has_events;
	struct bc_missing_segments hole; /* after an update: what is missing before it */
	/* From its header; empty if that is damaged. */
	uint64_t clock_hz;
	char axis[12];
	char id[BC_RECORDING_ID_MAX];
	char label[BC_LABEL_MAX + 1];
	char host[65];
	bool is_simulated;
	/* While drawing: the chunks in the picture. */
	bool is_in;
	uint32_t low;
	uint32_t high; /* inclusive */
	uint64_t part; /* their records */
};

struct bc_overview_file {
	char *path; /* where it is now */
	char *name; /* as given */
	struct stat st;
	char *metadata;   /* of its last header; NULL: none */
	bool is_written;  /* it is locked by its writer */
	bool is_foreign;  /* its header and its name are of different segments */
	bool is_repeated; /* another file has the same segment, which was reported */
	struct bc_overview_segment *segments;
	uint32_t segment_count;
};

/* A time without records that gets its own column: missing segments, or an absence of the board. */
struct bc_overview_blank {
	const struct bc_overview_segment *segment;
	uint32_t row; /* the chunk after it */
	int64_t from_ns;
	int64_t to_ns;
	uint64_t first_record; /* after an absence: the next one */
	uint64_t missing;      /* records */
	uint64_t away_ns;      /* 0: segments are missing */
};

/* The blocks of each size that records of the picture touch, as far as known. */
struct bc_overview_places {
	uint64_t page_bits[(2u << BC_PAGE_SHIFTS) /
			   64]; /* all blocks of one page, then of two ... */
	uint64_t port_bits[(2u << BC_PORT_SHIFTS) / 64];
	uint32_t pages[BC_PAGE_SHIFTS + 1]; /* blocks, by size */
	uint32_t ports[BC_PORT_SHIFTS + 1];
	unsigned page_shift; /* of the rows; only grows */
	unsigned port_shift;
	unsigned page_least; /* lower bound: some counts are not finer */
	unsigned port_least;
};

#define ALL_TRACKS BC_OVERVIEW_TRACKS

/* The cells of a column, by track, and of ALL_TRACKS. */
struct bc_overview_cells {
	struct bc_page_counts of[BC_OVERVIEW_TRACKS + 1];
};

struct bc_overview {
	struct bc_segment_io io;
	struct bc_overview_file **files; /* by name */
	uint32_t file_count;
	atomic_uint files_read;                /* by the update that runs or ran last */
	struct bc_overview_segment **segments; /* by recording and number */
	uint32_t segment_count;
	struct bc_overview_recording *recordings;
	uint32_t recording_count;
	int64_t from_ns;
	int64_t to_ns;
	uint64_t tracks[BC_OVERVIEW_TRACKS + 1][4]; /* bitmaps of processors; ALL_TRACKS: any */
	uint32_t track_count;
	struct bc_overview_damage damages[BC_OVERVIEW_DAMAGES];
	uint32_t damage_count;
	struct bc_overview_hole holes[BC_OVERVIEW_DAMAGES];
	uint32_t hole_count;
	struct bc_overview_file *file; /* the one that is open; NULL: none */
	struct bc_segment_file open;
	struct bc_segment_io file_io; /* of it: lists the faults */
	bool has_search;              /* it was tried to open `search` */
	bool is_searchable;
	struct bc_page_search search;
	struct bc_chunk *chunk;
	struct bc_chunk *run; /* scratch */
	struct bc_chunk_pages pages;
	/* The picture. */
	struct bc_overview_places places;
	struct bc_overview_picture picture;
	struct bc_overview_row *rows;
	struct bc_overview_column columns[BC_OVERVIEW_COLUMNS];
	struct bc_overview_cells cells[BC_OVERVIEW_COLUMNS];
	unsigned row_limit;
	/* The absences in the picture that are drawn, by segment and row. */
	struct bc_overview_blank *absences;
	size_t absence_count;
	size_t absence_capacity;
};

/* ---- files: overview_files.c */

/* Opens a file and closes the previous one. Returns false if the file is gone; if it can't be read,
 * which has been reported; or if the overview is stopped. */
bool bc_overview_open_file(struct bc_overview *overview, struct bc_overview_file *file);

/* Lists the chunks of a segment's file. Returns its first row; or NULL if it can't be read, has
 * changed, or the overview is stopped. */
struct bc_chunk_row *bc_overview_load_rows(
	struct bc_overview *overview, const struct bc_overview_segment *segment);

/* Reads a chunk of the open file. Returns false if it is damaged (reported once) or stopped. */
static inline bool bc_overview_read_chunk(
	struct bc_overview *overview, const struct bc_chunk_row *row, struct bc_chunk *chunk)
{
	struct bc_segment_file *file = &overview->open;

	return bc_segment_file_read(file, (uint32_t)(row - file->table.rows), chunk);
}

/* ---- columns: overview_columns.c */

/* The track that has all of these processors; ALL_TRACKS if none has, or in a picture without. */
unsigned bc_overview_track_of(const struct bc_overview *overview, const uint64_t procs[4]);

/* Empties the picture. */
void bc_overview_clear(struct bc_overview *overview);

/* Adds an empty column. Returns its index. */
uint32_t bc_overview_add_column(struct bc_overview *overview, uint32_t recording, int64_t from_ns);

/* Adds a column for a hole. Returns it. */
struct bc_overview_column *bc_overview_add_hole(
	struct bc_overview *overview, const struct bc_overview_blank *blank);

/* Returns the part of some counts that is in the picture's places. It shares their regions. */
struct bc_page_counts bc_overview_inside(
	const struct bc_overview *overview, const struct bc_page_counts *counts);

/* Returns how many times the picture's rows must be doubled to be as coarse as such counts. */
unsigned bc_overview_excess(
	const struct bc_overview *overview, unsigned page_shift, unsigned port_shift);

/* Marks the picture's places that some counts touch, which may make its rows larger. Returns by how
 * many doublings these counts are still coarser. */
unsigned bc_overview_mark_places(struct bc_overview *overview, const struct bc_page_counts *counts);

/* Adds counts of a track, or of ALL_TRACKS, to a column, and those in the picture's places to its
 * cells. If they are coarser than the rows, the rows become as coarse. Returns 0 or -ENOMEM. */
int bc_overview_add_counts(struct bc_overview *overview, uint32_t column, unsigned track,
	const struct bc_page_counts *counts) BC_MUST_CHECK;

/* Adds the last column to the one before it. Returns 0 or -ENOMEM. */
int bc_overview_join_columns(struct bc_overview *overview) BC_MUST_CHECK;

/* Adds some records of a decoded chunk in the same way, by track if the picture is by processor. */
int bc_overview_add_records(struct bc_overview *overview, uint32_t column,
	const struct bc_chunk *chunk, uint32_t first, uint32_t end) BC_MUST_CHECK;

/* Makes the rows, and makes all cells as coarse. Returns 0 or -ENOMEM. */
int bc_overview_make_rows(struct bc_overview *overview) BC_MUST_CHECK;

/* ---- records: overview_records.c */

/* Draws the records of the chunks that are in the picture, in at most `columns` columns. With
 * `is_mixed`, recordings share columns; with `has_holes`, holes have their own. Returns 0, -ENOMEM
 * or -ECANCELED. */
int bc_overview_draw_records(struct bc_overview *overview, unsigned columns, bool is_mixed,
	bool has_holes) BC_MUST_CHECK;

/* ---- times and losses */

/* True if segments are missing before this one, at a time in the picture. */
static inline bool bc_overview_is_hole_in(
	const struct bc_overview *overview, const struct bc_overview_segment *segment)
{
	const struct bc_overview_picture *p = &overview->picture;

	return segment->hole.count != 0 && segment->hole.from_ns <= p->to_ns &&
	       segment->hole.to_ns >= p->from_ns;
}

static inline struct bc_overview_blank bc_overview_hole_of(
	const struct bc_overview_segment *segment)
{
	const struct bc_missing_segments *hole = &segment->hole;

	return (struct bc_overview_blank){.segment = segment,
		.from_ns = hole->from_ns,
		.to_ns = hole->to_ns,
		.first_record = hole->from,
		.missing = hole->records};
}

/* The time of the last record of a chunk. The time of the first one is info->wall_ns. */
static inline int64_t bc_overview_row_to(const struct bc_chunk_info *info, uint64_t clock_hz)
{
	int64_t ns;

	(void)bc_chunk_end(&ns, info, clock_hz);
	return ns;
}

/* What was lost in some chunks of a segment, whose list begins at `rows`. */
static inline struct bc_loss bc_overview_loss(const struct bc_overview_segment *segment,
	const struct bc_chunk_row *rows, uint32_t first, uint32_t end)
{
	const struct bc_loss before = first != 0 ? bc_totals_loss(&rows[first - 1].info.totals)
						 : segment->base;
	struct bc_loss loss = bc_loss_since(bc_totals_loss(&rows[end - 1].info.totals), before);

	if (end == segment->rows)
		bc_loss_add(&loss, segment->left);
	return loss;
}

static inline struct bc_loss bc_overview_segment_loss(const struct bc_overview_segment *segment)
{
	struct bc_loss loss = bc_loss_since(segment->after, segment->base);

	bc_loss_add(&loss, segment->left);
	return loss;
}

#endif
