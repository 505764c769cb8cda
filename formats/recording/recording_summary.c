/* Reads the files of a recording in order and sums up what they say.
 *
 * Each file is opened once. Its header and the head of its index are enough, except for the newest
 * file, whose chunks with events are read too, and for a file that is followed by a hole: how many
 * records are missing shows only where it ends. So the newest file so far stays open, and its table
 * of chunks is loaded at most once, when something needs it. A file that can't be read is counted
 * as such; it never ends the summary. */
#include "formats/recording/recording_summary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/atomic_file.h"
#include "formats/base/json.h"
#include "formats/bus/tick_time.h"
#include "formats/recording/segments.h"
#include "formats/segment/chunk_table.h"
#include "formats/segment/segment_index.h"

/* What reading the files needs. */
struct reader {
	struct bc_recording_summary *summary;
	const struct bc_recording *recording;
	const struct bc_summary_io *io;
	int dir_fd;
	struct bc_segment_io file_io;
	char paths[2][BC_RECORDING_PATH_MAX]; /* of the newest file and the next one */
	struct bc_segment_file newest;        /* so far */
	bool is_countable;                    /* the newest one is */
	bool has_index;
	bool has_last;
	struct bc_segment_span last;     /* up to the newest file */
	struct bc_segment_header header; /* of the file being read */
	struct bc_chunk chunk;           /* only its events */
};

static bool summary_goes_on(const struct reader *r)
{
	return r->io->goes_on == NULL || r->io->goes_on(r->io->context);
}

static bool on_pace(void *context, uint64_t bytes)
{
	(void)bytes;
	return summary_goes_on(context);
}

static void report_fault(const struct reader *r, const char *path, int error)
{
	if (r->io->fault != NULL)
		r->io->fault(r->io->context, path, error);
}

static int on_open(void *context, const char *path)
{
	const struct reader *r = context;

	return openat(r->dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
}

static void on_fault(void *context, const struct bc_segment_fault *fault)
{
	struct reader *r = context;

	if (fault->kind == BC_SEGMENT_DAMAGED && r->summary->is_counted)
		report_fault(r, r->summary->path, -EBADMSG);
	r->summary->is_counted = false;
}

/* Adds the notes in a chunk to the metadata of the header, which they override, and finds the
 * recording's end. A note that is invalid or does not fit is ignored. */
static void add_events(struct reader *r, uint32_t row)
{
	struct bc_recording_summary *s = r->summary;
	char note[BC_METADATA_MAX];
	char err[128];

	if (!bc_segment_file_read_header(&r->newest, row, &r->chunk)) {
		report_fault(r, s->path, -EBADMSG);
		return;
	}
	s->has_end = bc_recording_end_find(&s->end, &r->chunk) || s->has_end;
	if (!r->has_index)
		bc_loss_add(&s->loss, bc_chunk_loss(&r->chunk));
	for (uint32_t i = 0; i < r->chunk.info.events; i++) {
		const struct bc_event *event = &r->chunk.events[i];
		if (event->kind != BC_EVENT_NOTE || event->text_bytes >= sizeof(note))
			continue;
		memcpy(note, r->chunk.text + event->text, event->text_bytes);
		note[event->text_bytes] = '\0';
		(void)!bc_metadata_merge(s->header.metadata, note, err, sizeof(err));
	}
}

/* Reads the chunks of the newest segment: its events, and the totals of the recording, which the
 * gaps in the files may not account for. */
static void add_newest_rows(struct reader *r)
{
	struct bc_recording_summary *s = r->summary;
	const struct bc_chunk_table *table = &r->newest.table;

	for (uint32_t i = 0; i < table->count && summary_goes_on(r); i++)
		if (table->rows[i].info.events != 0)
			add_events(r, i);
	if (table->count == 0)
		return;
	const struct bc_chunk_info *last = &table->rows[table->count - 1].info;
	bc_loss_raise(&s->loss, bc_totals_loss(&last->totals));
	s->has_loss = true;
	(void)bc_chunk_end(&s->to_ns, last, s->header.clock_hz);
}

/* Adds what a file's header says. Returns 0, -EXDEV if the file is foreign, or why it is unread. */
static int add_header(struct reader *r, int fd, uint32_t segment)
{
	struct bc_recording_summary *s = r->summary;
	int rc = bc_segment_header_load(&r->header, fd);

	if (rc != 0)
		return rc;
	if (strcmp(r->header.recording, r->recording->id) != 0 || r->header.segment != segment)
		return -EXDEV;
	if (!s->has_start && r->header.wall_ns != 0) {
		s->has_start = true;
		s->started_ns = r->header.wall_ns;
	}
	s->header = r->header;
	return 0;
}

/* Finds what is missing between a file and the newest one so far. */
static void find_hole(struct reader *r, const char *path, const struct bc_segment_span *span)
{
	struct bc_recording_summary *s = r->summary;
	struct bc_missing_segments missing;

	if (!r->has_last) {
		s->first_record = span->first;
		r->last = *span;
	}
	r->has_last = true;
	/* How many records are missing shows only where the file before ends. */
	if (span->segment - r->last.segment > 1 && r->last.is_read && span->is_read) {
		r->last.is_read = bc_segment_file_load(&r->newest) == 0 &&
				  r->newest.table.count != 0;
		if (r->last.is_read)
			r->last = bc_segment_file_span(
				&r->newest, r->newest.table.count - 1, r->newest.table.count - 1);
	}
	if (!bc_missing_before(&missing, &r->last, span, span))
		return;
	s->missing_segments += missing.count;
	s->missing += missing.records;
	if (r->io->missing != NULL)
		r->io->missing(r->io->context, path, &missing);
}

/* Adds a file, which is open and stays so: it is the newest. */
static void add_file(struct reader *r, struct bc_segment_file *file, char *path,
	const struct bc_segment_span *named)
{
	struct bc_recording_summary *s = r->summary;
	struct bc_segment_span span = *named;
	struct bc_index_head head;
	struct stat st;
	bool is_regular = fstat(file->table.fd, &st) == 0 && S_ISREG(st.st_mode);
	int error = is_regular ? add_header(r, file->table.fd, named->segment) : -EXDEV;

	if (error == -EXDEV) {
		s->foreign++;
		report_fault(r, file->path, error);
		bc_segment_file_close(file);
		return;
	}
	span.is_read = error == 0;
	span.first = error == 0 ? r->header.first_record : 0;
	file->is_quiet = error != 0; /* it is reported below */
	if (error != 0 && bc_segment_file_load(file) == 0 && file->table.count != 0)
		span = bc_segment_file_span(file, 0, 0);
	find_hole(r, file->path, &span);
	bc_segment_file_close(&r->newest);
	r->newest.path = NULL;
	bool has_index = bc_segment_index_read_head(&head, file->table.fd) == 0;
	bool is_partial = bc_segment_path_is_unsealed(
		r->dir_fd, path, file->table.fd, &s->is_written);
	int stop = r->newest.stop;
	r->newest = *file;
	r->newest.stop = stop;
	r->has_index = has_index;
	r->is_countable = has_index || (r->io->counts_unsealed && error == 0);
	s->segments++;
	s->bytes += (uint64_t)st.st_size;
	s->changed_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	s->is_open = s->is_open || is_partial;
	s->is_counted = s->is_counted && r->is_countable;
	snprintf(s->path, sizeof(s->path), "%s", file->path);
	if (r->io->only_ends && error == 0) {
		s->records = r->header.first_record - s->first_record;
		s->loss = (struct bc_loss){.gaps = 0};
	}
	if (error != 0)
		report_fault(r, file->path, error);
	if (has_index) {
		s->records += head.records;
		bc_loss_add(&s->loss, head.loss);
		return;
	}
	s->unread += error != 0;
	if (!r->is_countable || bc_segment_file_load(&r->newest) != 0)
		return;
	for (uint32_t i = 0; i < r->newest.table.count; i++)
		s->records += r->newest.table.rows[i].info.records;
}

/* True if the recording was killed and has not been recovered: it has no end, and nobody is writing
 * it. How much was lost at its end is unknown; recovery adds a gap that says so. A recording
 * without a sequence number was not made by buscapd, and has no end. */
static bool is_left_open(const struct bc_recording_summary *s)
{
	return !s->is_written && !s->has_end &&
	       (bc_segment_path_is_partial(s->path) || s->header.sequence != 0);
}

/* Adds what the newest segment says. */
static void add_newest(struct reader *r)
{
	struct bc_recording_summary *s = r->summary;

	s->to_ns = s->header.wall_ns != 0 ? s->header.wall_ns : s->changed_ns;
	if (r->is_countable && bc_segment_file_load(&r->newest) == 0)
		add_newest_rows(r);
	if (is_left_open(s) && !s->is_open && !r->io->knows_current)
		s->is_written = bc_segment_path_is_in_use(r->dir_fd, s->path);
	if (s->has_end)
		s->to_ns = s->end.ended_ns;
	else if (is_left_open(s))
		bc_loss_add(&s->loss, (struct bc_loss){.gaps = 1, .inexact = 1});
}

static void add_listed(struct reader *r, const struct bc_recording_list *list,
	const struct bc_recording_file *listed, bool has_later)
{
	struct bc_recording_summary *s = r->summary;
	char *path = r->paths[r->newest.path == r->paths[0]];
	struct bc_segment_file file = {.io = &r->file_io, .has_later = has_later};
	struct bc_segment_span span;

	bc_recording_file_path(path, list, r->recording, listed);
	(void)!bc_segment_path_span(&span, path);
	if (bc_segment_file_open(&file, path)) {
		add_file(r, &file, path, &span);
		return;
	}
	int error = errno;
	if (error != ENOENT) {
		s->segments++;
		s->unread++;
		s->is_counted = false;
		report_fault(r, path, -error);
	}
	if (error != ENOENT || r->has_last)
		find_hole(r, path, &span);
}

/* Adds a file by its name. */
static void add_named(struct reader *r, const struct bc_recording_list *list,
	const struct bc_recording_file *listed)
{
	char path[BC_RECORDING_PATH_MAX];
	struct bc_segment_span span;

	bc_recording_file_path(path, list, r->recording, listed);
	(void)!bc_segment_path_span(&span, path);
	find_hole(r, path, &span);
	r->summary->segments++;
}

int bc_recording_summarize(struct bc_recording_summary *s, int dir_fd,
	const struct bc_recording_list *list, const struct bc_recording *recording,
	const struct bc_summary_io *io)
{
	struct reader *r = malloc(sizeof(*r));

	memset(s, 0, sizeof(*s));
	if (r == NULL)
		return -ENOMEM;
	r->summary = s;
	r->recording = recording;
	r->io = io;
	r->dir_fd = dir_fd;
	r->file_io = (struct bc_segment_io){
		.context = r, .open = on_open, .fault = on_fault, .pace = on_pace};
	r->newest = (struct bc_segment_file){.io = &r->file_io};
	r->has_last = false;
	s->is_counted = true;
	s->has_start = bc_recording_id_start(&s->started_ns, recording->id);
	uint32_t end = recording->count;
	while (end != 0 && !bc_recording_file_is_read(&list->files[recording->first + end - 1]))
		end--;
	for (uint32_t i = 0; bc_segment_file_pace(&r->newest, 0) && i < end; i++) {
		const struct bc_recording_file *file = &list->files[recording->first + i];
		if (!bc_recording_file_is_read(file))
			continue;
		if (io->only_ends && r->has_last && i + 1 != end)
			add_named(r, list, file);
		else
			add_listed(r, list, file, i + 1 != end);
	}
	if (io->only_ends && s->missing_segments != 0)
		s->is_counted = false;
	if (r->newest.stop == 0 && r->newest.path != NULL)
		add_newest(r);
	int rc = r->newest.stop;
	bc_segment_file_close(&r->newest);
	free(r);
	return rc;
}

/* "recording": it is being written; "open": a segment is not sealed, or the end is missing;
 * "recovered": it was killed, or the power failed, and its end was added; or "sealed". */
static const char *state_name(const struct bc_recording_summary *s)
{
	if (s->is_written)
		return "recording";
	if (s->is_open || is_left_open(s))
		return "open";
	return s->has_end && bc_recording_end_is_recovered(&s->end) ? "recovered" : "sealed";
}

json_t *bc_recording_summary_json(
	const struct bc_recording_summary *s, const char *id, const char *path)
{
	const char *state = state_name(s);
	bool has_ended = strcmp(state, "open") != 0 && strcmp(state, "recording") != 0;
	int64_t ended_ns = s->has_end ? s->end.ended_ns : s->changed_ns;

	return bc_json_merge(
		BC_JSON_OBJECT({"id", bc_json_text(id)},
			{"label", bc_json_text_or_null(s->header.label)},
			{"host", bc_json_text_or_null(s->header.host)},
			{"started", s->has_start ? bc_json_time(s->started_ns) : json_null()},
			{"ended", has_ended ? bc_json_time(ended_ns) : json_null()},
			{"state", json_string(state)}, {"segments", bc_json_u64(s->segments)},
			{"records", bc_json_u64_or_null(s->is_counted, s->records)},
			{"bytes", bc_json_u64(s->bytes)},
			{"metadata", bc_metadata_parse(s->header.metadata)},
			{"path", bc_json_text(path)},
			{"missing_segments", bc_json_u64(s->missing_segments)},
			{"missing", bc_json_u64(s->missing)},
			{"first_record", bc_json_u64(s->first_record)},
			{"reason", bc_json_text(has_ended && s->has_end ? s->end.reason : NULL)}),
		bc_loss_json(s->is_counted || s->has_loss ? &s->loss : NULL));
}
