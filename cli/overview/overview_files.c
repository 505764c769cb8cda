/* What is known about the files, and the recordings that their segments make up.
 *
 * A file is read when it is new or has changed: of a sealed segment the index, of any other all
 * chunk headers. One file at a time is open, with its chunk table and its page summary as far as
 * they were needed. Its segments are then linked: each recording has its segments in order, without
 * repeated ones, and knows which are missing between them.
 *
 * Invariant: after an update, o->segments is sorted by recording and number, and only points into
 * files in o->files; a file that can't be read has no segments and an entry in o->damages. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/overview/overview_internal.h"
#include "formats/base/atomic_file.h"
#include "formats/segment/segment_header.h"
#include "formats/segment/segment_index.h"
#include "formats/segment/segment_name.h"

/* ---- damage */

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

static bool is_listed(const struct bc_overview *o, const char *name, uint64_t offset)
{
	for (uint32_t i = 0; i < o->damage_count; i++)
		if (strcmp(o->damages[i].file, name) == 0 && o->damages[i].offset == offset)
			return true;
	return false;
}

/* Returns false if it was listed before, there are too many, or out of memory. */
static bool list_damage(
	struct bc_overview *o, const char *name, uint64_t offset, uint64_t bytes, const char *what)
{
	if (o->damage_count == BC_OVERVIEW_DAMAGES || is_listed(o, name, offset))
		return false;
	struct bc_overview_damage damage = {
		.file = strdup(name), .offset = offset, .bytes = bytes, .what = strdup(what)};
	if (damage.file != NULL && damage.what != NULL) {
		o->damages[o->damage_count++] = damage;
		return true;
	}
	free(damage.file);
	free(damage.what);
	o->open.stop = -ENOMEM;
	return false;
}

static void add_damage(
	struct bc_overview *o, const char *name, uint64_t offset, uint64_t bytes, const char *what)
{
	if (!list_damage(o, name, offset, bytes, what))
		return;
	o->io.fault(o->io.context, &(struct bc_segment_fault){.kind = BC_SEGMENT_DAMAGED,
					   .file = name,
					   .offset = offset,
					   .bytes = bytes,
					   .what = what});
}

/* Lists a file that can't be opened or read. `error` is an errno. */
static void list_unreadable(struct bc_overview *o, const struct bc_overview_file *file, int error)
{
	list_damage(o, file->name, 0, 0,
		error == EBADMSG || error == EXDEV ? "not a segment" : strerror(error));
}

/* A file's fault, from formats/recording: it is listed, under the name that was given. */
static void on_fault(void *context, const struct bc_segment_fault *fault)
{
	struct bc_overview *o = context;
	struct bc_segment_fault named = *fault;

	named.file = o->file->name;
	if (fault->kind == BC_SEGMENT_DAMAGED) {
		add_damage(o, named.file, fault->offset, fault->bytes, fault->what);
		return;
	}
	list_unreadable(o, o->file, -fault->error);
	o->io.fault(o->io.context, &named);
}

static int on_open(void *context, const char *path)
{
	struct bc_overview *o = context;
	int fd = o->io.open(o->io.context, path);

	o->file->is_foreign = fd < 0 && errno == EXDEV;
	if (fd < 0 && errno != ENOENT)
		list_unreadable(o, o->file, errno);
	return fd;
}

static bool on_pace(void *context, uint64_t bytes)
{
	const struct bc_overview *o = context;

	return o->io.pace == NULL || o->io.pace(o->io.context, bytes);
}

/* ---- the open file */

static void close_file(struct bc_overview *o)
{
	if (o->has_search)
		bc_page_search_close(&o->search);
	o->has_search = false;
	bc_segment_file_close(&o->open);
	o->file = NULL;
}

bool bc_overview_open_file(struct bc_overview *o, struct bc_overview_file *file)
{
	if (o->file == file)
		return true;
	close_file(o);
	o->file = file;
	if (bc_segment_file_open(&o->open, file->path))
		return true;
	o->file = NULL;
	return false;
}

struct bc_chunk_row *bc_overview_load_rows(
	struct bc_overview *o, const struct bc_overview_segment *s)
{
	if (s->rows == 0 || !bc_overview_open_file(o, s->file) ||
		bc_segment_file_load(&o->open) != 0 || o->open.table.count < s->first_row + s->rows)
		return NULL;
	struct bc_chunk_row *rows = &o->open.table.rows[s->first_row];
	return rows->info.recording_tag == s->tag && rows->info.segment == s->number ? rows : NULL;
}

/* ---- files */

static void forget_segments(struct bc_overview_file *file)
{
	free(file->metadata);
	free(file->segments);
	file->segments = NULL;
	file->metadata = NULL;
	file->segment_count = 0;
}

/* Forgets what is known about a file. */
static void empty_file(struct bc_overview *o, struct bc_overview_file *file)
{
	drop_damages(o, file);
	forget_segments(file);
	file->is_written = false;
	file->is_repeated = false;
}

static void free_file(struct bc_overview *o, struct bc_overview_file *file)
{
	empty_file(o, file);
	free(file->name);
	free(file->path);
	free(file);
}

/* ---- reading a segment's header and ends */

/* Adds an empty segment to a file. */
static struct bc_overview_segment *add_segment(struct bc_overview_file *file)
{
	struct bc_overview_segment *grown = reallocarray(
		file->segments, file->segment_count + 1, sizeof(*grown));

	if (grown == NULL)
		return NULL;
	file->segments = grown;
	struct bc_overview_segment *s = &file->segments[file->segment_count++];
	*s = (struct bc_overview_segment){.file = file};
	return s;
}

/* `header` is NULL if it is damaged; then the file's name may have the recording's id. */
static void set_header(struct bc_overview_segment *s, const struct bc_segment_header *header)
{
	struct bc_segment_name name;
	const char *id = "";

	if (header != NULL)
		id = header->recording;
	else if (bc_segment_name_read(&name, basename(s->file->path)) &&
		 bc_recording_tag(name.recording) == s->tag)
		id = name.recording;
	s->clock_hz = header != NULL ? header->clock_hz : 0;
	snprintf(s->axis, sizeof(s->axis), "%s", header != NULL ? header->axis : "");
	snprintf(s->id, sizeof(s->id), "%s", id);
	snprintf(s->label, sizeof(s->label), "%s", header != NULL ? header->label : "");
	snprintf(s->host, sizeof(s->host), "%s", header != NULL ? header->host : "");
	s->is_simulated = header != NULL && strcmp(header->source_kind, "sim") == 0;
}

/* Keeps the metadata of the last header in a file. */
static int set_metadata(struct bc_overview_file *file, const struct bc_segment_header *header)
{
	char *metadata = strdup(header != NULL ? header->metadata : "");

	if (metadata == NULL)
		return -ENOMEM;
	free(file->metadata);
	file->metadata = metadata;
	return 0;
}

static void set_first(struct bc_overview_segment *s, const struct bc_chunk_info *info)
{
	s->tag = info->recording_tag;
	s->number = info->segment;
	s->first_record = info->first_record;
	s->first_epoch = info->epoch;
	s->first_tick = info->first_tick;
	if (info->segment != 0 || info->number != 0)
		s->before = bc_totals_loss(&info->totals);
}

static void set_end(struct bc_overview_segment *s, const struct bc_chunk *chunk)
{
	struct bc_recording_end end;

	if (!bc_recording_end_find(&end, chunk))
		return;
	s->end = bc_recording_end_is_recovered(&end) ? BC_OVERVIEW_RECOVERED : BC_OVERVIEW_SEALED;
	s->ended_ns = end.ended_ns;
}

static void add_chunk(struct bc_overview_segment *s, const struct bc_chunk_info *info)
{
	int64_t from = info->wall_ns;
	int64_t to = bc_overview_row_to(info, s->clock_hz);

	if (s->rows == 0)
		s->from_ns = s->to_ns = s->last_ns = s->chunk_ns = from;
	s->from_ns = from < s->from_ns ? from : s->from_ns;
	s->to_ns = to > s->to_ns ? to : s->to_ns;
	s->rows++;
	s->records += info->records;
	for (unsigned i = 0; i < 4; i++)
		s->procs[i] |= info->procs[i];
	if (info->records != 0) {
		s->last_epoch = info->epoch;
		s->last_tick = info->last_tick;
		s->last_ns = to > s->last_ns ? to : s->last_ns;
		s->chunk_ns = from > s->chunk_ns ? from : s->chunk_ns;
	}
	s->after = bc_totals_loss(&info->totals);
	s->has_events = s->has_events || info->events != 0;
}

/* Adds a chunk of a file to its last segment, or to a new one if the chunk is of another. Reads the
 * chunk's events unless `has_index`: then the first and the last chunk tell enough. */
static int add_row(
	struct bc_overview *o, struct bc_overview_file *file, uint32_t row, bool has_index)
{
	const struct bc_chunk_row *r = &o->open.table.rows[row];
	const struct bc_chunk_info *info = &r->info;
	uint32_t count = file->segment_count;
	struct bc_overview_segment *s = count != 0 ? &file->segments[count - 1] : NULL;
	bool is_new = s == NULL || s->tag != info->recording_tag || s->number != info->segment;
	bool is_skipped = has_index && row != 0 && row + 1 != o->open.table.count;
	int rc = 0;

	if (is_new) {
		s = add_segment(file);
		if (s == NULL)
			return -ENOMEM;
		set_first(s, info);
		s->first_row = row;
		set_header(s, bc_chunk_table_header(&o->open.table, row));
		rc = set_metadata(file, bc_chunk_table_header(&o->open.table, row));
	}
	add_chunk(s, info);
	s->bytes += bc_chunk_encoded_bytes(info);
	if (info->events == 0 || is_skipped ||
		bc_chunk_header_load(o->chunk, o->open.table.fd, r->offset, info) != 0)
		return rc;
	if (is_new) /* subtract the first chunk's own gaps */
		s->before = bc_loss_since(s->before, bc_chunk_loss(o->chunk));
	set_end(s, o->chunk);
	return rc;
}

/* Reads the segments of the open file. */
static int scan_segments(struct bc_overview *o, struct bc_overview_file *file)
{
	struct bc_index_head head;
	int rc = bc_segment_file_load(&o->open);
	bool has_index = rc == 0 && bc_segment_index_read_head(&head, o->open.table.fd) == 0 &&
			 o->open.table.count != 0 && o->open.table.count == head.rows &&
			 bc_chunk_table_header(&o->open.table, 0) != NULL;

	for (uint32_t row = 0; rc == 0 && row < o->open.table.count; row++)
		rc = add_row(o, file, row, has_index);
	for (uint32_t i = 0; rc == 0 && i < file->segment_count; i++) {
		struct bc_overview_segment *s = &file->segments[i];
		s->span = bc_segment_file_span(&o->open, s->first_row, s->first_row + s->rows - 1);
	}
	if (rc == 0 && file->segment_count == 1) {
		struct bc_overview_segment *s = &file->segments[0];
		s->bytes = (uint64_t)file->st.st_size;
		s->is_sealed = has_index;
		if (has_index && s->end == BC_OVERVIEW_OPEN &&
			o->open.table.headers[0].sequence == 0)
			s->end = BC_OVERVIEW_SEALED; /* not made by buscapd */
	}
	if (rc != 0 || file->segment_count != 0 || o->open.table.header_count == 0)
		return rc;
	/* It has only a header. */
	const struct bc_segment_header *header = &o->open.table.headers[0];
	struct bc_overview_segment *s = add_segment(file);
	if (s == NULL)
		return -ENOMEM;
	s->tag = bc_recording_tag(header->recording);
	s->number = header->segment;
	s->from_ns = s->to_ns = header->wall_ns;
	s->first_record = header->first_record;
	s->span = (struct bc_segment_span){.tag = s->tag,
		.segment = s->number,
		.is_read = true,
		.first = s->first_record,
		.next = s->first_record,
		.from_ns = s->from_ns,
		.to_ns = s->from_ns};
	s->bytes = (uint64_t)file->st.st_size;
	set_header(s, header);
	return set_metadata(file, header);
}

static int scan_file(struct bc_overview *o, struct bc_overview_file *file)
{
	int rc = 0;

	if (!bc_segment_file_pace(&o->open, 2 * BC_CHUNK_HEADER_MAX) ||
		!bc_overview_open_file(o, file))
		return o->open.stop; /* 0: it is reported */
	if (fstat(o->open.table.fd, &file->st) != 0)
		rc = -errno;
	(void)bc_segment_path_is_unsealed(
		AT_FDCWD, file->path, o->open.table.fd, &file->is_written);
	if (rc == 0)
		rc = scan_segments(o, file);
	close_file(o);
	if (rc == -ENOMEM)
		o->open.stop = rc;
	if (rc != 0) {
		forget_segments(file);
		file->st = (struct stat){.st_size = -1}; /* to be tried again */
	}
	return o->open.stop;
}

static bool is_unchanged(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Reads a file if it is new or has changed. Returns 0; -ENOMEM; or -ECANCELED: it is unknown. */
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
	if (stat(file->path, &st) == 0 && is_unchanged(&st, &file->st)) {
		/* Its writer may have been killed. */
		if (file->is_written && bc_overview_open_file(o, file))
			file->is_written = bc_is_being_written(o->open.table.fd);
		close_file(o);
		return 0;
	}
	empty_file(o, file);
	file->st = (struct stat){0};
	return scan_file(o, file);
}

/* Returns a file that nothing is known about, or NULL if out of memory. */
static struct bc_overview_file *new_file(const char *name)
{
	struct bc_overview_file *file = calloc(1, sizeof(*file));

	if (file == NULL)
		return NULL;
	file->name = strdup(name);
	file->path = strdup(name);
	if (file->name != NULL && file->path != NULL)
		return file;
	free(file->name);
	free(file->path);
	free(file);
	return NULL;
}

/* ---- the list of files */

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Makes o->files the files of these sorted names. */
static int set_files(struct bc_overview *o, char *const *names, uint32_t count)
{
	struct bc_overview_file **files = calloc((size_t)count + 1, sizeof(*files));
	uint32_t old = 0;
	uint32_t i = 0;

	if (files == NULL)
		return -ENOMEM;
	for (; i < count; i++) {
		for (; old < o->file_count && strcmp(o->files[old]->name, names[i]) < 0; old++)
			free_file(o, o->files[old]);
		bool is_known = old < o->file_count && strcmp(o->files[old]->name, names[i]) == 0;
		struct bc_overview_file *file = is_known ? o->files[old++] : new_file(names[i]);
		if (file == NULL)
			break;
		files[i] = file;
	}
	for (; old < o->file_count; old++)
		free_file(o, o->files[old]);
	free(o->files);
	o->files = files;
	o->file_count = i;
	return i == count ? 0 : -ENOMEM;
}

/* ---- segments */

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_tags(const void *x, const void *y)
{
	const struct bc_overview_segment *a = *(struct bc_overview_segment *const *)x;
	const struct bc_overview_segment *b = *(struct bc_overview_segment *const *)y;
	int order = compare_u64(a->tag, b->tag);

	if (order == 0)
		order = compare_u64(a->number, b->number);
	return order != 0 ? order : (int)b->is_sealed - (int)a->is_sealed;
}

/* By the first record of the recording. */
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
			o->io.fault(o->io.context,
				&(struct bc_segment_fault){
					.kind = BC_SEGMENT_REPEATED, .file = s->file->name});
		s->file->is_repeated = true;
	}
	o->segment_count = kept;
	return 0;
}

static void add_to_recording(
	struct bc_overview_recording *r, struct bc_overview_segment *s, bool is_first)
{
	if (is_first)
		*r = (struct bc_overview_recording){.state = BC_OVERVIEW_SEALED,
			.from_ns = s->from_ns,
			.to_ns = s->to_ns,
			.first_record = s->first_record};
	if (is_first || s->id[0] != '\0') {
		r->id = s->id;
		r->label = s->label;
		r->host = s->host;
		r->is_simulated = s->is_simulated;
		r->metadata = s->file->metadata != NULL ? s->file->metadata : "";
		r->clock_hz = strcmp(s->axis, "") == 0 || strcmp(s->axis, "seconds") == 0
				      ? s->clock_hz
				      : 0;
		r->axis = s->axis;
	}
	r->from_ns = s->from_ns < r->from_ns ? s->from_ns : r->from_ns;
	r->to_ns = s->to_ns > r->to_ns ? s->to_ns : r->to_ns;
	r->segments++;
	r->records += s->records;
	r->bytes += s->bytes;
	bc_loss_add(&r->loss, bc_overview_segment_loss(s));
}

/* ---- segments that are missing */

/* A segment that is here, read or not, and what is missing before it. */
struct place {
	struct bc_segment_span span;
	uint32_t recording;
	const struct bc_overview_file *file;
};

static int compare_places(const void *x, const void *y)
{
	const struct place *a = x;
	const struct place *b = y;
	int order = compare_u64(a->recording, b->recording);

	if (order == 0)
		order = compare_u64(a->span.segment, b->span.segment);
	return order != 0 ? order : (int)b->span.is_read - (int)a->span.is_read;
}

/* Makes a place of a file that can't be read, or was deleted after it had been listed. Returns
 * false if it is of no recording that is here. */
static bool place_unread(
	const struct bc_overview *o, const struct bc_overview_file *file, struct place *place)
{
	*place = (struct place){.file = file};
	if (file->segment_count != 0 || file->is_foreign ||
		!bc_segment_path_span(&place->span, file->path))
		return false;
	for (uint32_t i = 0; i < o->segment_count; i++) {
		place->recording = o->segments[i]->recording;
		if (o->segments[i]->tag == place->span.tag)
			return true;
	}
	return false;
}

static void add_hole(
	struct bc_overview *o, const struct place *place, const struct bc_missing_segments *missing)
{
	char what[BC_MISSING_TEXT];

	o->recordings[place->recording].missing_segments += missing->count;
	o->recordings[place->recording].missing += missing->records;
	if (o->hole_count == BC_OVERVIEW_DAMAGES)
		return;
	o->holes[o->hole_count++] = (struct bc_overview_hole){
		.recording = place->recording, .file = place->file->name, .missing = *missing};
	o->io.fault(o->io.context, &(struct bc_segment_fault){.kind = BC_SEGMENT_MISSING,
					   .file = place->file->name,
					   .what = bc_missing_write(what, missing)});
}

/* Reports the missing segments. Next to an unreadable one, their number of records is unknown. */
static int report_holes(struct bc_overview *o)
{
	size_t room = (size_t)o->segment_count + o->file_count + 1;
	struct place *places = calloc(room, sizeof(*places));
	struct bc_segment_span last = {.segment = UINT32_MAX};
	struct bc_missing_segments missing;
	size_t count = 0;

	o->hole_count = 0;
	if (places == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < o->segment_count; i++)
		places[count++] = (struct place){
			o->segments[i]->span, o->segments[i]->recording, o->segments[i]->file};
	for (uint32_t i = 0; i < o->file_count; i++)
		count += place_unread(o, o->files[i], &places[count]);
	qsort(places, count, sizeof(*places), compare_places);
	for (size_t i = 0; i < count; i++)
		if (bc_missing_before(&missing, &last, &places[i].span, &places[i].span))
			add_hole(o, &places[i], &missing);
	free(places);
	return 0;
}

/* ---- recordings */

/* Ends a recording with its last segment. If it was killed, an unknown number of records is missing
 * after the last one that is here. */
static void end_recording(struct bc_overview *o, uint32_t at)
{
	struct bc_overview_segment *s = o->segments[at];
	struct bc_overview_recording *r = &o->recordings[s->recording];
	bool has_end = s->end != BC_OVERVIEW_OPEN;
	bool is_written = s->file->is_written ||
			  (!has_end && r->state != BC_OVERVIEW_OPEN &&
				  bc_segment_path_is_in_use(AT_FDCWD, s->file->path));

	if (is_written)
		r->state = BC_OVERVIEW_RECORDING;
	else if (r->state != BC_OVERVIEW_OPEN)
		r->state = s->end;
	r->ended_ns = has_end && s->ended_ns > r->to_ns ? s->ended_ns : r->to_ns;
	if (is_written || has_end)
		return;
	s->left = (struct bc_loss){.gaps = 1, .inexact = 1};
	bc_loss_add(&r->loss, s->left);
	/* It is drawn after the last chunk. */
	for (; at != 0 && o->segments[at]->rows == 0 && o->segments[at - 1]->tag == s->tag; at--)
		o->segments[at - 1]->left = s->left;
}

/* Makes the recordings of the segments, which are sorted by tag or by recording. */
static void make_recordings(struct bc_overview *o)
{
	o->recording_count = 0;
	for (uint32_t i = 0; i < o->segment_count; i++) {
		struct bc_overview_segment *s = o->segments[i];
		const struct bc_overview_segment *before = i != 0 ? o->segments[i - 1] : NULL;
		bool is_first = before == NULL || before->tag != s->tag;
		bool follows = !is_first && before->number + 1 == s->number;
		if (is_first)
			o->recording_count++;
		s->recording = o->recording_count - 1;
		const struct bc_overview_segment *last = before != NULL ? before : s;
		s->base = follows ? last->after : s->before;
		s->left = (struct bc_loss){.gaps = 0};
		/* Drawn as one hole with the unreadable segments between them. */
		bc_missing_between(&s->hole, &last->span, &s->span);
		add_to_recording(&o->recordings[s->recording], s, is_first);
		if (bc_segment_path_is_partial(s->file->path))
			o->recordings[s->recording].state = BC_OVERVIEW_OPEN;
		if (i + 1 == o->segment_count || o->segments[i + 1]->tag != s->tag)
			end_recording(o, i);
	}
}

/* Makes a track for each processor that occurs; the last one has all that are left. */
static void make_tracks(struct bc_overview *o)
{
	memset(o->tracks, 0, sizeof(o->tracks));
	memset(o->tracks[ALL_TRACKS], 0xFF, sizeof(o->tracks[ALL_TRACKS]));
	o->track_count = 0;
	for (unsigned proc = 0; proc < 256; proc++) {
		uint64_t bit = 0;
		for (uint32_t i = 0; i < o->segment_count; i++)
			bit |= o->segments[i]->procs[proc / 64] & UINT64_C(1) << proc % 64;
		o->track_count += bit != 0 && o->track_count < BC_OVERVIEW_TRACKS;
		if (bit != 0)
			o->tracks[o->track_count - 1][proc / 64] |= bit;
	}
}

static int link_segments(struct bc_overview *o)
{
	int rc = collect_segments(o);

	free(o->recordings);
	o->recording_count = 0;
	o->from_ns = o->to_ns = 0;
	o->recordings = calloc((size_t)o->segment_count + 1, sizeof(*o->recordings));
	if (rc != 0 || o->recordings == NULL) {
		o->segment_count = 0;
		return -ENOMEM;
	}
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
	make_tracks(o);
	return report_holes(o);
}

int bc_overview_update(struct bc_overview *o, char *const *paths, int count)
{
	char **names = calloc((size_t)count + 1, sizeof(*names));
	int rc = names != NULL ? 0 : -ENOMEM;

	close_file(o);
	bc_overview_clear(o);
	o->open.stop = 0;
	if (rc == 0) {
		if (count != 0) {
			memcpy(names, paths, (size_t)count * sizeof(*names));
			qsort(names, (size_t)count, sizeof(*names), compare_text);
		}
		rc = set_files(o, names, (uint32_t)count);
	}
	for (uint32_t i = 0; rc == 0 && i < o->file_count; i++) {
		atomic_store(&o->files_read, i);
		o->open.has_later = i + 1 < o->file_count &&
				    bc_segment_path_follows(
					    o->files[i + 1]->name, o->files[i]->name);
		rc = update_file(o, o->files[i]);
	}
	if (rc == 0)
		atomic_store(&o->files_read, o->file_count);
	free(names);
	int linked = link_segments(o);
	return rc != 0 ? rc : linked;
}

/* ---- open and close */

int bc_overview_open(struct bc_overview **overview, const struct bc_segment_io *io)
{
	struct bc_overview *o = calloc(1, sizeof(*o));

	*overview = o;
	if (o == NULL)
		return -ENOMEM;
	o->io = *io;
	o->file_io = (struct bc_segment_io){.context = o,
		.open = io->open != NULL ? on_open : NULL,
		.fault = on_fault,
		.by_axis = io->by_axis,
		.pace = on_pace};
	o->open.io = &o->file_io;
	o->chunk = malloc(sizeof(*o->chunk));
	o->run = malloc(sizeof(*o->run));
	if (o->chunk != NULL && o->run != NULL)
		return 0;
	bc_overview_close(o);
	*overview = NULL;
	return -ENOMEM;
}

void bc_overview_close(struct bc_overview *o)
{
	if (o == NULL)
		return;
	close_file(o);
	bc_overview_clear(o);
	for (uint32_t i = 0; i < o->file_count; i++)
		free_file(o, o->files[i]);
	free(o->files);
	free(o->segments);
	free(o->recordings);
	free(o->absences);
	free(o->chunk);
	free(o->run);
	free(o);
}

unsigned bc_overview_files_read(const struct bc_overview *o)
{
	return atomic_load(&o->files_read);
}

struct bc_overview_contents bc_overview_contents(const struct bc_overview *o)
{
	const char *axis = o->recording_count != 0 ? o->recordings[0].axis : "";

	for (uint32_t i = 1; i < o->recording_count && axis != NULL; i++)
		axis = strcmp(axis, o->recordings[i].axis) == 0 ? axis : NULL;
	return (struct bc_overview_contents){o->recordings, o->recording_count, o->from_ns,
		o->to_ns, axis, o->damages, o->damage_count, o->holes, o->hole_count};
}
