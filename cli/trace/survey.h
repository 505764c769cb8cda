/* What a file contains, for `buscap info` and `buscap verify`. Segments have statistics, which come
 * from the header and the index, or from the chunk headers if there is no index: records are
 * neither read nor checked. Files of all other formats are counted. */
#ifndef BC_CLI_TRACE_SURVEY_H
#define BC_CLI_TRACE_SURVEY_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/io/file.h"
#include "cli/term/console.h"
#include "cli/term/output.h"
#include "formats/base/json.h"
#include "formats/bus/loss.h"
#include "formats/segment/segment_header.h"
#include "formats/segment/segment_reader.h"
#include "formats/segment/sequence_check.h"
#include "formats/trace/entry.h"
#include "formats/trace/parser.h"

/* A mark, trigger or note, and its position. */
struct bc_segment_annotation {
	struct bc_segment_annotation *next;
	uint8_t kind;    /* enum bc_event_kind */
	uint64_t record; /* number of the following record of the recording */
	size_t bytes;
	char text[]; /* zero-terminated */
};

/* Only the first annotations of a segment are kept; the others are counted. */
#define BC_INFO_ANNOTATIONS_MAX 1000u

struct bc_segment_info {
	uint64_t bytes;    /* of the file */
	uint64_t segments; /* in the file; `header` is of the first */
	bool has_header;
	struct bc_segment_header header; /* with the metadata updated by notes */
	bool has_end;                    /* the recording's */
	struct bc_recording_end end;
	bool is_sealed;                  /* all segments are */
	uint64_t damages;                /* damaged places found */
	struct bc_segment_damage damage; /* the first of them */
	uint64_t chunks;                 /* these and all figures below: without duplicates */
	uint64_t records;
	uint64_t first_record; /* the lowest and highest number of a record, if records != 0 */
	uint64_t last_record;
	uint64_t first_tick;     /* the lowest one of the first epoch */
	uint64_t last_tick;      /* the highest one of the last epoch */
	uint64_t epochs;         /* of all recordings */
	uint64_t duration_ticks; /* sum over all epochs */
	bool has_wall;
	int64_t wall_ns; /* time of day of the first record */
	struct bc_losses losses;
	struct bc_missing_segments hole; /* the first in the file */
	uint64_t unreported; /* samples lost according to the chunks' counts, but not in a gap */
	uint64_t marks;
	uint64_t triggers;
	struct bc_segment_annotation *annotations; /* in order */
	struct bc_segment_annotation *last_annotation;
	size_t annotation_count;
	uint64_t annotations_left; /* beyond BC_INFO_ANNOTATIONS_MAX */
	uint64_t types[4];
	uint64_t procs[4];
	/* While gathering. */
	uint64_t epoch_tag; /* recording and number of the current epoch, and its lowest tick */
	uint32_t epoch;
	uint64_t epoch_tick;
	struct bc_sequence_check sequence;
};

/* Gathers the statistics. Returns 0 or a negative errno. Free them in either case. */
int bc_segment_info_gather(struct bc_segment_info *info, struct bc_file *file);

/* Where the file's segments belong: the first and the last one, of which it may have several. */
void bc_segment_info_spans(const struct bc_segment_info *info, struct bc_segment_span *first,
	struct bc_segment_span *last);
void bc_segment_info_free(struct bc_segment_info *info);

void bc_segment_info_print(struct bc_output *output, const struct bc_segment_info *info);

/* Returns a new object, or NULL if out of memory. */
json_t *bc_segment_info_json(const struct bc_segment_info *info);

/* ---- Files of the other formats. */

struct bc_survey {
	uint64_t bytes;         /* of the file; of a pipe: as read */
	const char *unit;       /* what bus formats consist of: "sample", "record"; else "entry" */
	uint64_t units;         /* whole ones */
	uint64_t damages;       /* places, without `jumps`; in text: malformed lines */
	uint64_t damaged_bytes; /* of bus formats: outside of whole frames, samples and records */
	bool is_broken;         /* the compressed data is damaged or torn */
	/* bcp1: */
	uint64_t frames;
	uint64_t jumps; /* of the sequence numbers: frames are missing */
	uint64_t gaps;
	uint64_t lost; /* at least */
	uint64_t epochs;
	uint64_t last_tick;
	bool has_last; /* the final frame */
	/* Formats that are not a bus's: */
	uint64_t kinds[BC_ENTRY_KINDS]; /* entries by kind */
	struct bc_parse_notes notes;    /* each was printed */
};

/* Reads an open file to its end. damage() gets each damaged place of a bus format; `bytes` is 0 if
 * something is missing there. If it is NULL, a file whose size tells everything is not read. What
 * is malformed in a text format is printed. Returns BC_EXIT_OK; BC_EXIT_DAMAGED if something is
 * damaged, torn or missing; or prints an error and returns BC_EXIT_FAILED. */
enum bc_exit bc_survey_read(struct bc_survey *survey, const struct bc_console *console,
	struct bc_file *file, const struct bc_format_options *format,
	void (*damage)(void *context, uint64_t offset, uint64_t bytes, const char *what),
	void *context);

#endif
