/* What is known about the files: read once, and again when a file has changed. Of a sealed segment
 * the index is read, of any other all chunk headers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/overview/overview_internal.h"
#include "formats/segment/recording_end.h"
#include "formats/segment/segment_index.h"
#include "formats/segment/segment_name.h"

/* ---- faults */

static void drop_damages(struct bc_overview *o, const struct bc_overview_file *file)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < o->damage_count; i++) {
		struct bc_overview_damage *damage = &o->damages[i];
		if (strcmp(damage->file, file->name) != 0) {
			o->damages[kept++] = *damage;
			continue;
		}
		free(damage->file);
		free(damage->what);
	}
	o->damage_count = kept;
}

static void add_damage(
	struct bc_overview *o, const char *name, uint64_t offset, uint64_t bytes, const char *what)
{
	for (uint32_t i = 0; i < o->damage_count; i++)
		if (strcmp(o->damages[i].file, name) == 0 && o->damages[i].offset == offset)
			return;
	o->io.fault(o->io.context, &(struct bc_search_fault){.kind = BC_SEARCH_DAMAGED,
					   .file = name,
					   .offset = offset,
					   .bytes = bytes,
					   .what = what});
	if (o->damage_count == BC_OVERVIEW_DAMAGES)
		return;
	struct bc_overview_damage damage = {
		.file = strdup(name), .offset = offset, .bytes = bytes, .what = strdup(what)};
	if (damage.file != NULL && damage.what != NULL) {
		o->damages[o->damage_count++] = damage;
	} else {
		free(damage.file);
		free(damage.what);
	}
}

static bool is_partial(const char *path)
{
	struct bc_segment_name name;

	return bc_segment_name_read(&name, basename(path)) && name.is_partial;
}

static void on_damage(void *context, const struct bc_segment_damage *damage)
{
	struct bc_overview *o = context;

	if (!damage->is_torn || !is_partial(o->open->path)) /* it is being written */
		add_damage(o, o->open->name, damage->offset, damage->bytes, damage->what);
}

static void report_error(struct bc_overview *o, const struct bc_overview_file *file, int error)
{
	o->io.fault(o->io.context,
		&(struct bc_search_fault){
			.kind = BC_SEARCH_UNREADABLE, .file = file->name, .error = error});
}

void bc_overview_report_chunk(struct bc_overview *o, const struct bc_chunk_row *row)
{
	char what[96];

	snprintf(what, sizeof(what), "chunk %u (%u record%s) is damaged", row->info.number,
		row->info.records, row->info.records == 1 ? "" : "s");
	add_damage(o, o->open->name, row->offset, bc_chunk_encoded_bytes(&row->info), what);
}

bool bc_overview_pace(struct bc_overview *o, uint64_t bytes)
{
	if (o->io.pace != NULL && !o->is_stopped)
		o->is_stopped = !o->io.pace(o->io.context, bytes);
	return !o->is_stopped;
}

/* ---- the open file */

void bc_overview_close_file(struct bc_overview *o)
{
	if (o->open == NULL)
		return;
	if (o->has_table)
		bc_chunk_table_free(&o->table);
	if (o->has_search)
		bc_page_search_close(&o->search);
	close(o->fd);
	o->has_table = o->has_search = false;
	o->open = NULL;
}

bool bc_overview_open_file(struct bc_overview *o, struct bc_overview_file *file)
{
	if (o->open == file)
		return true;
	bc_overview_close_file(o);
	if (!bc_segment_path_find(file->path))
		return false;
	o->fd = o->io.open(o->io.context, file->path);
	if (o->fd < 0)
		return false;
	o->open = file;
	return true;
}

/* Loads the table of the open file. */
static int load_table(struct bc_overview *o)
{
	if (o->has_table)
		return 0;
	int rc = bc_chunk_table_load(&o->table, o->fd, on_damage, o);
	o->has_table = rc == 0;
	if (rc != 0)
		bc_chunk_table_free(&o->table);
	if (rc != 0 && rc != -ENOMEM)
		report_error(o, o->open, rc);
	return rc;
}

struct bc_chunk_row *bc_overview_load_rows(
	struct bc_overview *o, const struct bc_overview_segment *s)
{
	if (!bc_overview_open_file(o, s->file) || load_table(o) != 0 ||
		o->table.count < s->first_row + s->rows)
		return NULL;
	struct bc_chunk_row *rows = &o->table.rows[s->first_row];
	return s->rows == 0 || (rows->info.recording_tag == s->tag &&
				       rows->info.segment == s->number)
		       ? rows
		       : NULL;
}

/* ---- reading a segment's header and ends */

static void free_segment(struct bc_overview_segment *s)
{
	free(s->id);
	free(s->label);
	free(s->metadata);
}

static void free_file(struct bc_overview_file *file)
{
	for (uint32_t i = 0; i < file->segment_count; i++)
		free_segment(&file->segments[i]);
	free(file->segments);
	free(file->name);
	free(file->path);
	free(file);
}

/* Adds an empty segment to a file. */
static struct bc_overview_segment *add_segment(struct bc_overview_file *file)
{
	struct bc_overview_segment *grown = reallocarray(
		file->segments, file->segment_count + 1, sizeof(*grown));

	if (grown == NULL)
		return NULL;
	file->segments = grown;
	grown[file->segment_count] = (struct bc_overview_segment){.file = file};
	return &grown[file->segment_count++];
}

/* `header` is NULL if it is damaged; then the name of the file may have the recording's id. */
static int set_header(struct bc_overview_segment *s, const struct bc_segment_header *header)
{
	struct bc_segment_name name;
	const char *id = "";

	if (header != NULL)
		id = header->recording;
	else if (bc_segment_name_read(&name, basename(s->file->path)) &&
		 bc_recording_tag(name.recording) == s->tag)
		id = name.recording;
	s->clock_hz = header != NULL ? header->clock_hz : 0;
	s->id = strdup(id);
	s->label = strdup(header != NULL ? header->label : "");
	s->metadata = strdup(header != NULL ? header->metadata : "");
	return s->id != NULL && s->label != NULL && s->metadata != NULL ? 0 : -ENOMEM;
}

static void set_first(struct bc_overview_segment *s, const struct bc_chunk_info *info)
{
	s->tag = info->recording_tag;
	s->number = info->segment;
	s->first_record = info->first_record;
	s->first_epoch = info->epoch;
	s->lost_before = info->segment != 0 || info->number != 0 ? bc_overview_lost(info) : 0;
}

/* Subtracts what the first chunk lost itself. */
static void set_first_gaps(struct bc_overview_segment *s, const struct bc_chunk *chunk)
{
	uint64_t gaps;
	uint64_t lost;

	bc_chunk_gaps(chunk, &gaps, &lost);
	s->lost_before -= lost < s->lost_before ? lost : s->lost_before;
}

static void set_end(struct bc_overview_segment *s, const struct bc_chunk *chunk)
{
	struct bc_recording_end end;

	if (bc_recording_end_find(&end, chunk))
		s->end = bc_recording_end_is_recovered(&end) ? BC_OVERVIEW_RECOVERED
							     : BC_OVERVIEW_SEALED;
}

static void add_chunk(struct bc_overview_segment *s, const struct bc_chunk_info *info)
{
	int64_t from = bc_overview_row_from(info);
	int64_t to = bc_overview_row_to(info, s->clock_hz);

	if (s->rows == 0)
		s->from_ns = s->to_ns = from;
	s->from_ns = from < s->from_ns ? from : s->from_ns;
	s->to_ns = to > s->to_ns ? to : s->to_ns;
	s->rows++;
	s->records += info->records;
	s->last_epoch = info->epoch;
	s->lost_after = bc_overview_lost(info);
	s->has_events = s->has_events || info->events != 0;
}

/* Reads the header of a chunk in the index. */
static bool read_chunk(struct bc_overview *o, const struct bc_segment_index *index, uint32_t row)
{
	struct bc_chunk_info info;
	uint64_t offset = bc_segment_index_row(index, row, &info);

	return bc_chunk_header_load(o->chunk, o->fd, offset, &info) == 0;
}

static int add_index(struct bc_overview *o, struct bc_overview_file *file,
	const struct bc_segment_header *header, const struct bc_segment_index *index)
{
	struct bc_overview_segment *s = add_segment(file);
	struct bc_chunk_info info;

	if (s == NULL)
		return -ENOMEM;
	bc_segment_index_row(index, 0, &info);
	set_first(s, &info);
	s->is_sealed = true;
	s->gaps = index->head.gaps;
	s->bytes = (uint64_t)file->st.st_size;
	int rc = set_header(s, header);
	for (uint32_t row = 0; row < index->head.rows; row++) {
		bc_segment_index_row(index, row, &info);
		add_chunk(s, &info);
	}
	if (read_chunk(o, index, 0))
		set_first_gaps(s, o->chunk);
	if (read_chunk(o, index, index->head.rows - 1))
		set_end(s, o->chunk);
	return rc;
}

/* Reads a sealed segment by its index. Returns 0; -EBADMSG or -ENOENT if that is not possible; or
 * another negative errno. */
static int scan_sealed(struct bc_overview *o, struct bc_overview_file *file)
{
	struct bc_segment_header header;
	struct bc_segment_index index;
	struct bc_chunk_info info;
	int rc = bc_segment_index_load(&index, o->fd);

	if (rc != 0)
		return rc;
	rc = bc_segment_header_load(&header, o->fd);
	if (rc == 0 && index.head.rows != 0)
		bc_segment_index_row(&index, 0, &info);
	if (rc == 0 && (index.head.rows == 0 || info.segment != header.segment ||
			       info.recording_tag != bc_recording_tag(header.recording)))
		rc = -EBADMSG;
	if (rc == 0)
		rc = add_index(o, file, &header, &index);
	bc_segment_index_free(&index);
	return rc;
}

/* Adds a chunk of a file to its segment, which begins with it if it is another one. */
static int add_row(struct bc_overview *o, struct bc_overview_file *file, uint32_t row)
{
	const struct bc_chunk_row *r = &o->table.rows[row];
	const struct bc_chunk_info *info = &r->info;
	struct bc_overview_segment *s = &file->segments[file->segment_count - 1];
	bool is_new = file->segment_count == 0 || s->tag != info->recording_tag ||
		      s->number != info->segment;
	uint64_t gaps;
	uint64_t lost;
	int rc = 0;

	if (is_new) {
		s = add_segment(file);
		if (s == NULL)
			return -ENOMEM;
		set_first(s, info);
		s->first_row = row;
		rc = set_header(s, bc_chunk_table_header(&o->table, row));
	}
	add_chunk(s, info);
	s->bytes += bc_chunk_encoded_bytes(info);
	if (info->events == 0 || bc_chunk_header_load(o->chunk, o->fd, r->offset, info) != 0)
		return rc;
	bc_chunk_gaps(o->chunk, &gaps, &lost);
	s->gaps += gaps;
	if (is_new)
		set_first_gaps(s, o->chunk);
	set_end(s, o->chunk);
	return rc;
}

/* Reads a file by its list of chunks. */
static int scan_rows(struct bc_overview *o, struct bc_overview_file *file)
{
	int rc = load_table(o);

	for (uint32_t row = 0; rc == 0 && row < o->table.count; row++)
		rc = add_row(o, file, row);
	if (rc == 0 && file->segment_count == 1)
		file->segments[0].bytes = (uint64_t)file->st.st_size;
	if (rc != 0 || file->segment_count != 0 || o->table.header_count == 0)
		return rc;
	/* It has a header only. */
	const struct bc_segment_header *header = &o->table.headers[0];
	struct bc_overview_segment *s = add_segment(file);
	if (s == NULL)
		return -ENOMEM;
	s->tag = bc_recording_tag(header->recording);
	s->number = header->segment;
	s->from_ns = s->to_ns = header->wall_ns;
	s->first_record = header->first_record;
	s->bytes = (uint64_t)file->st.st_size;
	return set_header(s, header);
}

static int scan_file(struct bc_overview *o, struct bc_overview_file *file)
{
	int rc = 0;

	if (!bc_overview_pace(o, 2 * BC_CHUNK_HEADER_MAX))
		return -ECANCELED;
	if (!bc_overview_open_file(o, file))
		return 0; /* reported */
	if (fstat(o->fd, &file->st) != 0)
		rc = -errno;
	if (rc == 0)
		rc = scan_sealed(o, file);
	if (rc == -EBADMSG || rc == -ENOENT)
		rc = scan_rows(o, file);
	if (rc != 0 && rc != -ENOMEM && o->has_table)
		report_error(o, file, rc);
	bc_overview_close_file(o);
	return rc == -ENOMEM ? rc : 0;
}

/* ---- the list of files */

static void empty_file(struct bc_overview *o, struct bc_overview_file *file)
{
	drop_damages(o, file);
	for (uint32_t i = 0; i < file->segment_count; i++)
		free_segment(&file->segments[i]);
	free(file->segments);
	file->segments = NULL;
	file->segment_count = 0;
	file->is_repeated = false;
}

static bool is_unchanged(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Reads a file that is new or has changed. */
static int update_file(struct bc_overview *o, struct bc_overview_file *file)
{
	struct stat st;

	/* It may have been sealed, or recorded again under its first name. */
	strcpy(file->path, file->name);
	if (!bc_segment_path_find(file->path)) {
		empty_file(o, file);
		file->st = (struct stat){0};
		return 0;
	}
	if (stat(file->path, &st) == 0 && is_unchanged(&st, &file->st))
		return 0;
	empty_file(o, file);
	file->st = (struct stat){0};
	return scan_file(o, file);
}

static struct bc_overview_file *new_file(const char *name)
{
	struct bc_overview_file *file = calloc(1, sizeof(*file));

	if (file == NULL)
		return NULL;
	file->name = strdup(name);
	file->path = strdup(name);
	if (file->name != NULL && file->path != NULL)
		return file;
	free_file(file);
	return NULL;
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Makes o->files those of the sorted names. */
static int set_files(struct bc_overview *o, char *const *names, uint32_t count)
{
	struct bc_overview_file **files = calloc((size_t)count + 1, sizeof(*files));
	uint32_t old = 0;
	uint32_t i = 0;

	if (files == NULL)
		return -ENOMEM;
	for (; i < count; i++) {
		for (; old < o->file_count && strcmp(o->files[old]->name, names[i]) < 0; old++) {
			empty_file(o, o->files[old]);
			free_file(o->files[old]);
		}
		if (old < o->file_count && strcmp(o->files[old]->name, names[i]) == 0)
			files[i] = o->files[old++];
		else
			files[i] = new_file(names[i]);
		if (files[i] == NULL)
			break;
	}
	for (; old < o->file_count; old++) {
		empty_file(o, o->files[old]);
		free_file(o->files[old]);
	}
	free(o->files);
	o->files = files;
	o->file_count = i;
	return i == count ? 0 : -ENOMEM;
}

/* ---- segments and recordings */

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_numbers(const struct bc_overview_segment *a, const struct bc_overview_segment *b)
{
	int order = compare_u64(a->number, b->number);

	return order != 0 ? order : (int)b->is_sealed - (int)a->is_sealed;
}

static int compare_tags(const void *x, const void *y)
{
	const struct bc_overview_segment *a = *(struct bc_overview_segment *const *)x;
	const struct bc_overview_segment *b = *(struct bc_overview_segment *const *)y;
	int order = compare_u64(a->tag, b->tag);

	return order != 0 ? order : compare_numbers(a, b);
}

/* By the first record of the recording, which `recording` has the tag's group of. */
static int compare_starts(const void *x, const void *y, void *context)
{
	const struct bc_overview_recording *recordings = context;
	const struct bc_overview_segment *a = *(struct bc_overview_segment *const *)x;
	const struct bc_overview_segment *b = *(struct bc_overview_segment *const *)y;
	int64_t from_a = recordings[a->recording].from_ns;
	int64_t from_b = recordings[b->recording].from_ns;

	if (from_a != from_b)
		return from_a < from_b ? -1 : 1;
	return compare_tags(x, y);
}

/* Collects the segments, each once. */
static int collect_segments(struct bc_overview *o)
{
	uint32_t count = 0;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < o->file_count; i++)
		count += o->files[i]->segment_count;
	free(o->segments);
	o->segment_count = 0;
	o->segments = calloc((size_t)count + 1, sizeof(*o->segments));
	if (o->segments == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < o->file_count; i++)
		for (uint32_t at = 0; at < o->files[i]->segment_count; at++)
			o->segments[o->segment_count++] = &o->files[i]->segments[at];
	qsort(o->segments, o->segment_count, sizeof(*o->segments), compare_tags);
	for (uint32_t i = 0; i < o->segment_count; i++) {
		struct bc_overview_segment *s = o->segments[i];
		if (kept == 0 || o->segments[kept - 1]->tag != s->tag ||
			o->segments[kept - 1]->number != s->number) {
			o->segments[kept++] = s;
			continue;
		}
		if (!s->file->is_repeated)
			o->io.fault(
				o->io.context, &(struct bc_search_fault){.kind = BC_SEARCH_REPEATED,
						       .file = s->file->name});
		s->file->is_repeated = true;
	}
	o->segment_count = kept;
	return 0;
}

static void add_to_recording(
	struct bc_overview_recording *r, struct bc_overview_segment *s, bool is_first)
{
	if (is_first)
		*r = (struct bc_overview_recording){.from_ns = s->from_ns, .to_ns = s->to_ns};
	if (is_first || s->id[0] != '\0') {
		r->id = s->id;
		r->label = s->label;
		r->metadata = s->metadata;
		r->clock_hz = s->clock_hz;
	}
	r->from_ns = s->from_ns < r->from_ns ? s->from_ns : r->from_ns;
	r->to_ns = s->to_ns > r->to_ns ? s->to_ns : r->to_ns;
	r->segments++;
	r->records += s->records;
	r->bytes += s->bytes;
	r->gaps += s->gaps;
	r->lost += s->lost_after > s->lost_base ? s->lost_after - s->lost_base : 0;
}

/* Makes the recordings of the segments, which are sorted by tag or by recording. */
static void make_recordings(struct bc_overview *o)
{
	bool is_closed = true;

	o->recording_count = 0;
	for (uint32_t i = 0; i < o->segment_count; i++) {
		struct bc_overview_segment *s = o->segments[i];
		const struct bc_overview_segment *before = i != 0 ? o->segments[i - 1] : NULL;
		bool is_first = before == NULL || before->tag != s->tag;
		bool follows = !is_first && before->number + 1 == s->number;
		if (is_first)
			o->recording_count++;
		s->recording = o->recording_count - 1;
		s->lost_base = follows ? before->lost_after : s->lost_before;
		struct bc_overview_recording *r = &o->recordings[s->recording];
		add_to_recording(r, s, is_first);
		is_closed = (is_first || is_closed) && (s->is_sealed || !is_partial(s->file->path));
		r->state = is_closed ? s->end : BC_OVERVIEW_OPEN;
	}
}

static int link_segments(struct bc_overview *o)
{
	int rc = collect_segments(o);

	free(o->recordings);
	o->recording_count = 0;
	o->recordings = calloc((size_t)o->segment_count + 1, sizeof(*o->recordings));
	if (rc != 0 || o->recordings == NULL)
		return -ENOMEM;
	make_recordings(o);
	qsort_r(o->segments, o->segment_count, sizeof(*o->segments), compare_starts, o->recordings);
	make_recordings(o);
	o->from_ns = o->recording_count != 0 ? INT64_MAX : 0;
	o->to_ns = o->recording_count != 0 ? INT64_MIN : 0;
	for (uint32_t i = 0; i < o->recording_count; i++) {
		const struct bc_overview_recording *r = &o->recordings[i];
		o->from_ns = r->from_ns < o->from_ns ? r->from_ns : o->from_ns;
		o->to_ns = r->to_ns > o->to_ns ? r->to_ns : o->to_ns;
	}
	return 0;
}

int bc_overview_update(struct bc_overview *o, char *const *paths, int count)
{
	char **names = calloc((size_t)count + 1, sizeof(*names));
	int rc = names != NULL ? 0 : -ENOMEM;

	bc_overview_close_file(o);
	bc_overview_clear(o);
	o->is_stopped = false;
	if (rc == 0) {
		memcpy(names, paths, (size_t)count * sizeof(*names));
		qsort(names, (size_t)count, sizeof(*names), compare_text);
		rc = set_files(o, names, (uint32_t)count);
	}
	for (uint32_t i = 0; rc == 0 && i < o->file_count; i++)
		rc = update_file(o, o->files[i]);
	free(names);
	int linked = link_segments(o);
	return rc != 0 ? rc : linked;
}

/* ---- */

int bc_overview_open(struct bc_overview **overview, const struct bc_search_io *io)
{
	struct bc_overview *o = calloc(1, sizeof(*o));

	*overview = o;
	if (o == NULL)
		return -ENOMEM;
	o->io = *io;
	o->chunk = malloc(sizeof(*o->chunk));
	if (o->chunk != NULL)
		return 0;
	free(o);
	*overview = NULL;
	return -ENOMEM;
}

void bc_overview_close(struct bc_overview *o)
{
	if (o == NULL)
		return;
	bc_overview_close_file(o);
	bc_overview_clear(o);
	for (uint32_t i = 0; i < o->file_count; i++) {
		empty_file(o, o->files[i]);
		free_file(o->files[i]);
	}
	free(o->files);
	free(o->segments);
	free(o->recordings);
	free(o->chunk);
	free(o);
}

const struct bc_overview_recording *bc_overview_recordings(
	const struct bc_overview *o, uint32_t *count)
{
	*count = o->recording_count;
	return o->recordings;
}

int64_t bc_overview_from(const struct bc_overview *o)
{
	return o->from_ns;
}

int64_t bc_overview_to(const struct bc_overview *o)
{
	return o->to_ns;
}

const struct bc_overview_damage *bc_overview_damages(const struct bc_overview *o, uint32_t *count)
{
	*count = o->damage_count;
	return o->damages;
}
