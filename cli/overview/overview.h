/* A picture of recordings: columns of time, rows of addresses, and how many records are in each
 * cell. docs/report.md describes it and its JSON.
 *
 *     bc_overview_open()
 *     bc_overview_update()      reads what has changed: the index of each new file
 *     bc_overview_draw()        draws a range of time and places, by the page counts in the files
 *     bc_overview_picture(), bc_overview_json(), bc_overview_events(), ...
 *     bc_overview_update(), bc_overview_draw() ...
 *     bc_overview_close()
 *
 * A column consists of whole units of time: segments, nodes of their page summaries, or chunks,
 * whichever are the finest that are not too many. If there are only a few records, they are decoded
 * and sorted into columns of equal time. Missing segments have an empty column, a hole, and so
 * has an absence: a time in which nothing was recorded, by the totals of the chunk after it. If
 * there are too many holes or recordings for this, they share columns with others.
 *
 * Rows are as fine as possible. A unit whose counts are coarser than the rows is replaced by the
 * units below it, down to its records.
 *
 * A picture by processor also has the cells of each track: of a processor, or of several. Page
 * counts have no processors, so chunks in which several tracks occur are decoded.
 *
 * Every count is exact. A record counts once, at its address, as in the page counts
 * (formats/bus/page_counts.h). Its time is the time of day of its tick, computed from its chunk, or
 * the time of its chunk if the clock rate is unknown.
 *
 * Memory is bounded: one index, BC_OVERVIEW_COLUMNS columns of at most BC_OVERVIEW_ROWS cells, as
 * many for each track, and about 500 bytes per segment. Not thread-safe: one thread at a time. */
#ifndef BC_CLI_OVERVIEW_OVERVIEW_H
#define BC_CLI_OVERVIEW_OVERVIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/io/client.h"
#include "formats/base/must_check.h"
#include "formats/bus/chunk.h"
#include "formats/bus/page_counts.h"
#include "formats/recording/segments.h"
#include "formats/trace/filter.h"
#include "formats/trace/name_map.h"

#define BC_OVERVIEW_COLUMNS 512u
#define BC_OVERVIEW_ROWS    1024u
#define BC_OVERVIEW_TRACKS  8u

#define BC_PLACES (BC_PORT_0 + BC_PORTS)

struct bc_overview;

/* `io` is copied. If its open() returns -1, it also sets errno: EBADMSG or EXDEV if the file is not
 * this segment, ENOENT if it was deleted. Damage that is listed in the contents is reported once,
 * and again if its file changes. Returns 0 or -ENOMEM. */
int bc_overview_open(struct bc_overview **overview, const struct bc_segment_io *io) BC_MUST_CHECK;
void bc_overview_close(struct bc_overview *overview);

/* Sets the files, in any order, and reads those that are new or have changed. A file that is gone
 * or unreadable has no segments. A file ending in ".partial" that was sealed since it was listed is
 * found under its new name. The picture becomes empty. Returns 0; -ENOMEM; or -ECANCELED if
 * io->pace() returned false: then only some of the files are known until it is called again. */
int bc_overview_update(struct bc_overview *overview, char *const *paths, int count) BC_MUST_CHECK;

/* ---- recordings */

enum bc_overview_state {
	BC_OVERVIEW_OPEN,      /* no end: killed, or its next segment is missing or yet to come */
	BC_OVERVIEW_RECORDING, /* its last segment is being written */
	BC_OVERVIEW_RECOVERED, /* it was killed */
	BC_OVERVIEW_SEALED,
};

struct bc_overview_recording {
	const char *id; /* may be empty if segment headers are damaged */
	const char *label;
	const char *host;     /* may be empty */
	bool is_simulated;    /* by the simulated bus, whose time may be faster */
	const char *metadata; /* of the last segment's header: a JSON object, or empty */
	enum bc_overview_state state;
	int64_t from_ns;   /* of the first record, in ns since 1970 */
	int64_t to_ns;     /* of the last record */
	int64_t ended_ns;  /* when it ended, after an idle bus; to_ns if unknown or earlier */
	uint64_t clock_hz; /* 0: unknown */
	const char *axis;  /* what its times count; "": they are times of day */
	uint32_t segments;
	uint32_t missing_segments; /* between its segments */
	uint64_t missing;          /* records in these, as far as known */
	uint64_t first_record;     /* not 0: its first segments were deleted */
	uint64_t records;
	uint64_t bytes; /* of the files */
	struct bc_loss loss;
};

/* Damage in the files, at most BC_OVERVIEW_DAMAGES. Offset and bytes 0: the file can't be read. */
#define BC_OVERVIEW_DAMAGES 100u
struct bc_overview_damage {
	char *file;
	uint64_t offset;
	uint64_t bytes;
	char *what;
};

/* Missing segments between others, at most BC_OVERVIEW_DAMAGES. Reported at each update. */
struct bc_overview_hole {
	uint32_t recording; /* index */
	const char *file;   /* that follows */
	struct bc_missing_segments missing;
};

struct bc_overview_contents {
	const struct bc_overview_recording *recordings; /* in the order of their first records */
	uint32_t recording_count;
	int64_t from_ns;  /* time of the first record of all recordings; 0 without any */
	int64_t to_ns;    /* time of the last one */
	const char *axis; /* of all recordings; NULL: they have different ones */
	const struct bc_overview_damage *damages;
	uint32_t damage_count;
	const struct bc_overview_hole *holes;
	uint32_t hole_count;
};

/* Returns how many files the update that runs or ran last has read. Any thread may call it. */
unsigned bc_overview_files_read(const struct bc_overview *overview);

/* What is known about the files, until the next update. Drawing and events may add damage. */
struct bc_overview_contents bc_overview_contents(const struct bc_overview *overview);

/* ---- pictures */

struct bc_overview_options {
	int64_t from_ns; /* times are inclusive; INT64_MIN, INT64_MAX: everything */
	int64_t to_ns;
	uint32_t place_from; /* only rows that overlap these places (formats/bus/page_counts.h) */
	uint32_t place_to;   /* inclusive */
	unsigned columns;    /* 1 .. BC_OVERVIEW_COLUMNS */
	unsigned rows;       /* 2 .. BC_OVERVIEW_ROWS */
	uint64_t work; /* records that may be decoded; a chunk counts as BC_OVERVIEW_CHUNK more */
	bool by_processor; /* if there are several, and unless this would be more work */
};

#define BC_OVERVIEW_CHUNK 4096u

/* Everything, in 256 columns and 200 rows. */
struct bc_overview_options bc_overview_options_default(void);

enum bc_overview_unit {
	BC_OVERVIEW_RECORDS, /* columns of equal time; their `to_ns` is exclusive */
	BC_OVERVIEW_CHUNKS,
	BC_OVERVIEW_SUMMARY, /* nodes of page summaries */
	BC_OVERVIEW_SEGMENTS,
};

/* A block of memory or ports that has records. */
struct bc_overview_row {
	uint32_t place; /* the first */
	uint32_t count; /* of places */
};

struct bc_overview_column {
	int64_t from_ns; /* time of the first record */
	int64_t to_ns;   /* start of the next column; before a pause, time of the last record */
	uint64_t duration_ns;  /* for rates: by the bus clock if possible; 0: too short */
	uint32_t recording;    /* index; of its first record if recordings share columns */
	uint64_t first_record; /* number in the recording */
	bool is_hole;     /* it has no records: segments are missing, or nothing was recorded */
	uint64_t missing; /* records in missing segments */
	uint64_t records;
	uint64_t uncounted;               /* records whose class and place are unknown */
	uint64_t counts[BC_PAGE_CLASSES]; /* at all places; they add up to records - uncounted */
	struct bc_loss loss;              /* before its records; its time away is not in a hole */
	const struct bc_region *cells;    /* sorted; `first` is the index of a row, not a place */
	uint32_t cell_count;
};

struct bc_overview_picture {
	int64_t from_ns; /* of the options, limited to the recordings */
	int64_t to_ns;
	uint32_t place_from;
	uint32_t place_to;
	enum bc_overview_unit unit;
	bool by_processor;   /* its JSON has the cells of each track */
	unsigned page_shift; /* rows of memory have 2^page_shift pages */
	unsigned port_shift; /* rows of I/O have 2^port_shift ports */
	uint32_t row_count;
	const struct bc_overview_row *rows; /* memory, then ports, sorted */
	uint32_t column_count;
	const struct bc_overview_column *columns; /* by recording, then time */
};

/* Draws a picture, in place of the previous one. Only touched blocks become rows. Their size is the
 * smallest of which there are not too many; memory and ports each get the rows that the other does
 * not need, but memory at least three quarters, and ports at least one. So the blocks of a part are
 * never larger than the blocks of the whole, unless finer counts would need more work than allowed.
 * Returns 0; or, with an empty picture, -ENOMEM, or -ECANCELED if io->pace() returned false. */
int bc_overview_draw(
	struct bc_overview *overview, const struct bc_overview_options *options) BC_MUST_CHECK;

/* The picture, which is valid until the next draw or update. It starts empty. */
const struct bc_overview_picture *bc_overview_picture(const struct bc_overview *overview);

/* ---- marks, triggers and gaps */

struct bc_overview_event {
	uint8_t kind; /* BC_EVENT_MARK, BC_EVENT_TRIGGER or BC_EVENT_GAP */
	uint32_t recording;
	int64_t time_ns;  /* of the next record */
	uint64_t record;  /* its number */
	const char *text; /* of a mark or trigger; not terminated */
	uint32_t text_bytes;
	uint8_t cause; /* gap: enum bc_gap_cause */
	uint64_t lost; /* gap: samples */
	bool is_exact; /* gap: `lost` is not a minimum */
	uint64_t duration_ns;
};

/* Returns false to stop. */
typedef bool (*bc_overview_event_cb)(void *context, const struct bc_overview_event *event);

/* Reports the events from a time to a time (inclusive), by recording, in the order of the records.
 * The time of an event in the middle of a chunk needs the chunk's records, which are decoded in up
 * to 512 chunks; in others, the time is estimated by position. Returns 0, -ENOMEM or -ECANCELED. */
int bc_overview_events(struct bc_overview *overview, int64_t from_ns, int64_t to_ns,
	bc_overview_event_cb on_event, void *context) BC_MUST_CHECK;

/* ---- records */

/* Receives BYU records of one chunk, in order. They are valid during the call. */
typedef void (*bc_overview_records_cb)(void *context, const uint8_t *records, size_t count);

/* Reads the records that match a filter, from one recording or, if `recording` is NULL, from all in
 * turn. Skips damaged chunks, and stops with -E2BIG before the chunks read exceed `most` records.
 * Returns 0, -E2BIG, -ESRCH (no recording has this id), -ENOMEM or -ECANCELED. */
int bc_overview_read(struct bc_overview *overview, const struct bc_filter *filter,
	const char *recording, uint64_t most, bc_overview_records_cb on_records,
	void *context) BC_MUST_CHECK;

/* ---- as JSON: docs/report.md describes the members */

/* Appends an object with the recordings and the picture that was drawn last; text without line
 * ends. `names` may be NULL. Returns 0; -ENOMEM; -EFBIG if the text is too long; or -EXDEV if the
 * recordings have different axes. */
int bc_overview_json(const struct bc_overview *overview, const struct bc_name_map *names,
	struct bc_byte_buffer *text) BC_MUST_CHECK;

/* Appends an object with the events from a time to a time, at most `max`. Same results; also
 * -ECANCELED if io->pace() returned false. */
#define BC_OVERVIEW_AXES_TEXT \
	"some of these have times of day and others do not: draw them separately"
#define BC_OVERVIEW_EVENTS 10000u /* the usual limit */
int bc_overview_events_json(struct bc_overview *overview, int64_t from_ns, int64_t to_ns,
	uint32_t max, struct bc_byte_buffer *text) BC_MUST_CHECK;

#endif
