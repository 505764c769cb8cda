#include "daemon/api/catalog_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/store/segment_list.h"
#include "formats/base/json.h"
#include "formats/segment/metadata.h"
#include "formats/segment/recording_end.h"
#include "formats/segment/segment_index.h"

struct reader {
	struct bc_catalog_scan *scan;
	int dir_fd;
	struct bc_chunk *chunk; /* buffer for a chunk's events */
};

/* A recording according to its files. */
struct row {
	const char *id;
	/* Of the newest segment. `recording` is empty if the header is unreadable. */
	struct bc_segment_header header;
	uint64_t segments;
	uint64_t bytes;
	uint64_t records;
	uint64_t lost;   /* in the gaps, or by the count in the last chunk if that is more */
	bool is_counted; /* all segments have an index */
	bool is_open;    /* a segment is not sealed */
	bool has_end;    /* the newest segment has the recording's end */
	struct bc_recording_end end;
	int64_t changed_ns; /* of the newest segment */
	char file[BC_SEGMENT_NAME_MAX];
};

static bool is_cancelled(const struct reader *s)
{
	return atomic_load(s->scan->is_cancelled);
}

/* Adds the notes in a chunk to the metadata of the segment's header, which they override, and finds
 * the recording's end. */
static void add_events(struct reader *s, struct row *row, int fd, uint64_t offset,
	const struct bc_chunk_info *info)
{
	char note[BC_METADATA_MAX];
	char err[128];

	if (bc_chunk_header_load(s->chunk, fd, offset, info) != 0)
		return;
	row->has_end = bc_recording_end_find(&row->end, s->chunk) || row->has_end;
	for (uint32_t i = 0; i < s->chunk->info.events; i++) {
		const struct bc_event *event = &s->chunk->events[i];
		if (event->kind != BC_EVENT_NOTE || event->text_bytes >= sizeof(note))
			continue;
		memcpy(note, s->chunk->text + event->text, event->text_bytes);
		note[event->text_bytes] = '\0';
		/* A note that is invalid or does not fit is ignored. */
		if (!bc_metadata_merge(row->header.metadata, note, err, sizeof(err)))
			continue;
	}
}

/* Reads the rows of the newest segment's index: its events, and the samples lost in the recording,
 * which the gaps in the files may not account for. */
static void read_rows(struct reader *s, struct row *row, int fd)
{
	struct bc_segment_index index;
	struct bc_chunk_info info = {.records = 0};

	if (bc_segment_index_load(&index, fd) != 0)
		return;
	for (uint32_t i = 0; i < index.head.rows && !is_cancelled(s); i++) {
		uint64_t offset = bc_segment_index_row(&index, i, &info);
		if (info.events != 0)
			add_events(s, row, fd, offset, &info);
	}
	uint64_t lost = 0;
	for (unsigned cause = 0; index.head.rows != 0 && cause < BC_GAP_CAUSES; cause++)
		lost += info.lost[cause];
	row->lost = lost > row->lost ? lost : row->lost;
	bc_segment_index_free(&index);
}

/* Adds a segment to its recording. The file may be deleted, sealed or renamed at any time. */
static void add_segment(
	struct reader *s, struct row *row, const struct bc_segment_entry *entry, bool is_newest)
{
	struct bc_index_head head;

	bc_segment_name_write(row->file, &entry->name);
	row->segments++;
	row->bytes += entry->bytes;
	row->changed_ns = entry->changed_ns;
	row->is_open = row->is_open || entry->name.is_partial;
	int fd = openat(s->dir_fd, row->file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0 && bc_segment_index_read_head(&head, fd) == 0) {
		row->records += head.records;
		row->lost += head.lost;
	} else {
		row->is_counted = false;
	}
	if (fd >= 0 && is_newest && bc_segment_header_load(&row->header, fd) == 0)
		read_rows(s, row, fd);
	if (fd >= 0)
		close(fd);
}

/* Gets the start of a recording from its ID: the second, and its fraction in units of 1/4096 s. */
static bool parse_start(int64_t *ns, const char *id)
{
	struct tm tm = {.tm_year = 0};
	unsigned fraction;
	int end = 0;

	if (strlen(id) < 23 ||
		sscanf(id, "%4d%2d%2dT%2d%2d%2dZ-%3x%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
			&tm.tm_hour, &tm.tm_min, &tm.tm_sec, &fraction, &end) != 7 ||
		end != 20)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	*ns = (int64_t)timegm(&tm) * 1000000000 + (int64_t)fraction * 1000000000 / 4096;
	return true;
}

/* A recording without a sequence number was not made by buscapd, and has no end. */
static const char *state_of(const struct row *row)
{
	if (row->is_open || (!row->has_end && row->header.sequence != 0))
		return "open";
	return row->has_end && bc_recording_end_is_recovered(&row->end) ? "recovered" : "sealed";
}

static json_t *row_json(const struct reader *s, const struct row *row)
{
	char path[4096 + BC_SEGMENT_NAME_MAX + 1];
	int64_t started_ns = 0;
	bool has_start = parse_start(&started_ns, row->id);
	const char *state = state_of(row);
	bool has_ended = strcmp(state, "open") != 0;

	snprintf(path, sizeof(path), "%s/%s", s->scan->dir, row->file);
	return bc_json_object((struct bc_json_member[]){
		{"id", bc_json_text(row->id)},
		{"label", bc_json_text_or_null(row->header.label)},
		{"started", has_start ? bc_json_time(started_ns) : json_null()},
		{"ended", has_ended
				  ? bc_json_time(row->has_end ? row->end.ended_ns : row->changed_ns)
				  : json_null()},
		{"state", bc_json_text(state)},
		{"segments", bc_json_u64(row->segments)},
		{"records", row->is_counted ? bc_json_u64(row->records) : json_null()},
		{"bytes", bc_json_u64(row->bytes)},
		{"lost", row->is_counted ? bc_json_u64(row->lost) : json_null()},
		{"metadata", bc_metadata_parse(row->header.metadata)},
		{"path", bc_json_text(path)},
		{"reason", bc_json_text(has_ended && row->has_end ? row->end.reason : NULL)},
		{NULL, NULL},
	});
}

/* Adds the recording with the files from `begin` up to `end`. Returns false if out of memory. */
static bool add_row(struct reader *s, json_t *rows, const struct bc_segment_entry *begin,
	const struct bc_segment_entry *end)
{
	const struct bc_segment_entry *newest = NULL;
	struct row *row = calloc(1, sizeof(*row));

	if (row == NULL)
		return false;
	row->id = begin->name.recording;
	row->is_counted = true;
	for (const struct bc_segment_entry *entry = begin; entry < end; entry++)
		if (bc_is_segment_entry(entry))
			newest = entry;
	for (const struct bc_segment_entry *entry = begin; entry < end && !is_cancelled(s); entry++)
		if (bc_is_segment_entry(entry))
			add_segment(s, row, entry, entry == newest);
	/* A recording with only damaged files left is not listed. */
	bool is_ok = newest == NULL || json_array_append_new(rows, row_json(s, row)) == 0;
	free(row);
	return is_ok;
}

static size_t end_of_recording(const struct bc_segment_list *list, size_t begin)
{
	size_t end = begin + 1;

	while (end < list->count &&
		strcmp(list->entries[end].name.recording, list->entries[begin].name.recording) == 0)
		end++;
	return end;
}

static uint64_t count_recordings(const struct bc_segment_list *list)
{
	uint64_t count = 0;

	for (size_t i = 0; i < list->count; i = end_of_recording(list, i))
		count++;
	return count;
}

static bool add_rows(struct reader *s, json_t *rows, const struct bc_segment_list *list)
{
	struct bc_catalog_scan *r = s->scan;
	uint64_t count = count_recordings(list);
	uint64_t skipped = 0;
	size_t end;

	r->omitted = count > BC_CATALOG_ROWS_MAX ? count - BC_CATALOG_ROWS_MAX : 0;
	for (size_t i = 0; i < list->count && !is_cancelled(s); i = end) {
		end = end_of_recording(list, i);
		if (skipped++ < r->omitted)
			continue;
		if (!add_row(s, rows, &list->entries[i], &list->entries[end]))
			return false;
	}
	return true;
}

json_t *bc_catalog_read(struct bc_catalog_scan *r)
{
	struct bc_segment_list list = {.entries = NULL};
	json_t *rows = json_array();
	struct reader s = {
		.scan = r,
		.dir_fd = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.chunk = malloc(sizeof(*s.chunk)),
	};

	r->omitted = 0;
	r->status = s.dir_fd < 0 ? -errno : 0;
	if (rows == NULL || s.chunk == NULL)
		r->status = -ENOMEM;
	if (r->status == 0)
		r->status = bc_segments_list(&list, s.dir_fd, NULL);
	bc_segment_list_adopt(&list, bc_is_readable_entry);
	if (r->status == 0 && !add_rows(&s, rows, &list))
		r->status = -ENOMEM;
	if (r->status == 0 && is_cancelled(&s))
		r->status = -ECANCELED;
	if (r->status != 0) {
		json_decref(rows);
		rows = NULL;
	}
	if (s.dir_fd >= 0)
		close(s.dir_fd);
	free(list.entries);
	free(s.chunk);
	return rows;
}
