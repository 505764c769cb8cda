/* Reads the files of a recording in order and sums up what they say.
 *
 * Each file is opened once. Its header and the head of its index are enough, except for the newest
 * file, whose chunks with events are read too, and for a file that is followed by a hole: how many
 * records are missing shows only where it ends. So the newest file so far stays open, and its table
 * of chunks is loaded at most once, when something needs it. A file that can't be read is counted
 * as such; it never ends the summary. */
#include "formats/recording/recording_summary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "formats/base/atomic_file.h"
#include "formats/base/json.h"
#include "formats/segment/chunk_table.h"
#include "formats/segment/segment_index.h"

/* What reading the files needs. */
struct reader {
	struct bc_recording_summary *summary;
	const struct bc_recording *recording;
	const struct bc_summary_io *io;
	bool has_before;
	struct bc_segment_span before;   /* the file before */
	struct bc_segment_header header; /* of the file being read */
	/* The newest file so far. */
	int fd; /* -1: none */
	bool is_partial;
	bool is_countable;
	int loaded;                  /* 1: not yet; 0 or a negative errno: whether `table` is */
	struct bc_chunk_table table; /* its chunks */
	struct bc_chunk chunk;       /* only its events */
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

static void on_damage(void *context, const struct bc_segment_damage *damage)
{
	struct reader *r = context;

	if (damage->is_torn && r->is_partial) /* it is being written, or will be recovered */
		return;
	if (r->summary->is_counted)
		report_fault(r, r->summary->path, -EBADMSG);
	r->summary->is_counted = false;
}

/* Adds the notes in a chunk to the metadata of the header, which they override, and finds the
 * recording's end. A note that is invalid or does not fit is ignored. */
static void add_events(struct reader *r, const struct bc_chunk_row *row)
{
	struct bc_recording_summary *s = r->summary;
	char note[BC_METADATA_MAX];
	char err[128];

	if (bc_chunk_header_load(&r->chunk, r->fd, row->offset, &row->info) != 0)
		return;
	s->has_end = bc_recording_end_find(&s->end, &r->chunk) || s->has_end;
	for (uint32_t i = 0; i < r->chunk.info.events; i++) {
		const struct bc_event *event = &r->chunk.events[i];
		if (event->kind != BC_EVENT_NOTE || event->text_bytes >= sizeof(note))
			continue;
		memcpy(note, r->chunk.text + event->text, event->text_bytes);
		note[event->text_bytes] = '\0';
		(void)!bc_metadata_merge(s->header.metadata, note, err, sizeof(err));
	}
}

/* Reads the chunks of the newest segment: its events, and the samples lost in the recording, which
 * the gaps in the files may not account for. */
static void add_newest_rows(struct reader *r)
{
	struct bc_recording_summary *s = r->summary;
	const struct bc_chunk_table *table = &r->table;
	uint64_t lost = 0;

	for (uint32_t i = 0; i < table->count && summary_goes_on(r); i++)
		if (table->rows[i].info.events != 0)
			add_events(r, &table->rows[i]);
	if (table->count == 0)
		return;
	const struct bc_chunk_info *last = &table->rows[table->count - 1].info;
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		lost += last->lost[cause];
	s->lost = lost > s->lost ? lost : s->lost;
	s->to_ns = bc_chunk_wall(last, last->last_tick, s->header.clock_hz);
}

/* Lists the chunks of the newest file, once. Returns 0 or a negative errno. */
static int load_table(struct reader *r)
{
	const struct bc_chunk_table_io io = {r, on_damage, on_pace};

	if (r->loaded > 0)
		r->loaded = bc_chunk_table_load(&r->table, r->fd, &io);
	r->summary->is_counted = r->summary->is_counted && r->loaded == 0;
	return r->loaded;
}

static void close_newest(struct reader *r)
{
	if (r->loaded <= 0)
		bc_chunk_table_free(&r->table);
	if (r->fd >= 0)
		close(r->fd);
	r->loaded = 1;
	r->fd = -1;
}

/* Returns the error if it ends the summary, otherwise 0. */
static int fatal_error(int error)
{
	return error == -ENOMEM || error == -ECANCELED ? error : 0;
}

/* Adds what a file's header says. Returns 0; -EXDEV: the file is foreign; or why the header can't
 * be read. */
static int add_header(struct reader *r, int fd, const struct bc_recording_file *file)
{
	struct bc_recording_summary *s = r->summary;
	int rc = bc_segment_header_load(&r->header, fd);

	if (rc != 0)
		return rc;
	if (strcmp(r->header.recording, r->recording->id) != 0 || r->header.segment != file->number)
		return -EXDEV;
	if (!s->has_start && r->header.wall_ns != 0) {
		s->has_start = true;
		s->started_ns = r->header.wall_ns;
	}
	s->header = r->header;
	return 0;
}

/* Finds what is missing between a file and the previous one, which is still open unless it can't be
 * read. `header` is the file's, or NULL. Returns 0, -ENOMEM, or -ECANCELED. */
static int find_hole(struct reader *r, const struct bc_recording_file *file, const char *path,
	const struct bc_segment_header *header)
{
	struct bc_recording_summary *s = r->summary;
	struct bc_missing_segments missing;
	struct bc_segment_span after = {.segment = file->number, .is_read = header != NULL};
	int rc = 0;

	if (header != NULL)
		after.first = header->first_record;
	if (!r->has_before && header != NULL)
		s->first_record = header->first_record;
	if (r->has_before && bc_missing_between(&missing, &r->before, &after)) {
		r->before.is_read = r->before.is_read && r->fd >= 0;
		if (r->before.is_read && after.is_read) {
			rc = load_table(r);
			r->before.is_read = rc == 0 && r->table.count != 0;
		}
		if (r->before.is_read && after.is_read) {
			const struct bc_chunk_info *last = &r->table.rows[r->table.count - 1].info;
			r->before.next = last->first_record + last->records;
		}
		bc_missing_between(&missing, &r->before, &after);
		s->missing_segments += missing.count;
		s->missing += missing.records;
		if (r->io->missing != NULL)
			r->io->missing(r->io->context, path, &missing);
	}
	r->has_before = true;
	r->before = after;
	return fatal_error(rc);
}

/* Adds a file, which is open and stays so if it becomes the newest. Returns 0, -ENOMEM, or
 * -ECANCELED. */
static int add_file(
	struct reader *r, int fd, const struct bc_recording_file *file, const char *path)
{
	struct bc_recording_summary *s = r->summary;
	struct bc_index_head head;
	struct stat st;
	bool is_regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	int error = is_regular ? add_header(r, fd, file) : -EXDEV;

	if (error == -EXDEV) {
		s->foreign++;
		report_fault(r, path, error);
		close(fd);
		return 0;
	}
	int rc = find_hole(r, file, path, error == 0 ? &r->header : NULL);
	close_newest(r);
	bool has_index = bc_segment_index_read_head(&head, fd) == 0;
	r->fd = fd;
	r->is_partial = file->is_partial;
	r->is_countable = has_index || (r->io->counts_unsealed && error == 0);
	s->segments++;
	s->bytes += (uint64_t)st.st_size;
	s->changed_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	s->is_open = s->is_open || file->is_partial;
	s->is_counted = s->is_counted && r->is_countable;
	snprintf(s->path, sizeof(s->path), "%s", path);
	if (has_index) {
		s->records += head.records;
		s->lost += head.lost;
		return rc;
	}
	if (error != 0) {
		s->unread++;
		report_fault(r, path, error);
	}
	if (rc != 0 || !r->is_countable)
		return rc;
	rc = load_table(r);
	for (uint32_t i = 0; rc == 0 && i < r->table.count; i++)
		s->records += r->table.rows[i].info.records;
	return fatal_error(rc);
}

/* Adds what the newest segment says. */
static int add_newest(struct reader *r)
{
	struct bc_recording_summary *s = r->summary;
	int rc = 0;

	s->to_ns = s->changed_ns;
	if (r->is_partial)
		s->is_written = bc_is_being_written(r->fd);
	if (r->is_countable && (rc = load_table(r)) == 0)
		add_newest_rows(r);
	if (s->has_end)
		s->to_ns = s->end.ended_ns;
	return fatal_error(rc);
}

/* Gets the start of a recording from its id: the second, and its fraction in units of 1/4096 s. */
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

static int add_files(struct reader *r, int dir_fd, const struct bc_recording_list *list)
{
	const struct bc_recording *recording = r->recording;
	char path[BC_RECORDING_PATH_MAX];
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < recording->count; i++) {
		struct bc_recording_file file = list->files[recording->first + i];
		if (!bc_recording_file_is_read(&file))
			continue;
		int fd = bc_recording_file_open(path, dir_fd, list, recording, &file);
		if (fd >= 0) {
			rc = add_file(r, fd, &file, path);
		} else if (fd != -ENOENT) {
			r->summary->segments++;
			r->summary->unread++;
			r->summary->is_counted = false;
			report_fault(r, path, fd);
			rc = find_hole(r, &file, path, NULL);
		} else if (r->has_before) {
			r->before = (struct bc_segment_span){.segment = file.number};
		}
		if (rc == 0 && !summary_goes_on(r))
			rc = -ECANCELED;
	}
	if (rc == 0 && r->fd >= 0)
		rc = add_newest(r);
	close_newest(r);
	return rc;
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
	r->has_before = false;
	r->fd = -1;
	r->loaded = 1;
	r->io = io;
	s->is_counted = true;
	s->has_start = parse_start(&s->started_ns, recording->id);
	int rc = add_files(r, dir_fd, list);
	free(r);
	return rc;
}

/* "recording": it is being written; "open": a segment is not sealed, or the end is missing;
 * "recovered": it was killed, or the power failed, and its end was added; or "sealed".
 * A recording without a sequence number was not made by buscapd, and has no end. */
static const char *state_name(const struct bc_recording_summary *s)
{
	if (s->is_written)
		return "recording";
	if (s->is_open || (!s->has_end && s->header.sequence != 0))
		return "open";
	return s->has_end && bc_recording_end_is_recovered(&s->end) ? "recovered" : "sealed";
}

json_t *bc_recording_summary_json(
	const struct bc_recording_summary *s, const char *id, const char *path)
{
	const char *state = state_name(s);
	bool has_ended = strcmp(state, "open") != 0 && strcmp(state, "recording") != 0;
	int64_t ended_ns = s->has_end ? s->end.ended_ns : s->changed_ns;

	return bc_json_object((struct bc_json_member[]){
		{"id", bc_json_text(id)},
		{"label", bc_json_text_or_null(s->header.label)},
		{"host", bc_json_text_or_null(s->header.host)},
		{"started", s->has_start ? bc_json_time(s->started_ns) : json_null()},
		{"ended", has_ended ? bc_json_time(ended_ns) : json_null()},
		{"state", json_string(state)},
		{"segments", bc_json_u64(s->segments)},
		{"records", s->is_counted ? bc_json_u64(s->records) : json_null()},
		{"bytes", bc_json_u64(s->bytes)},
		{"lost", s->is_counted ? bc_json_u64(s->lost) : json_null()},
		{"metadata", bc_metadata_parse(s->header.metadata)},
		{"path", bc_json_text(path)},
		{"missing_segments", bc_json_u64(s->missing_segments)},
		{"missing", bc_json_u64(s->missing)},
		{"first_record", bc_json_u64(s->first_record)},
		{"reason", bc_json_text(has_ended && s->has_end ? s->end.reason : NULL)},
		{NULL, NULL},
	});
}
