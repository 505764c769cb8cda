/* The segment files of a search, opened one at a time, and what is missing between them.
 *
 * Of each file, the first and last segment in it are remembered once it has been opened or its name
 * read. A hole is reported when both of its neighbours are known, once, and only if it may have had
 * what is looked for. A copy of a neighbouring segment is reported and skipped. A file may be
 * sealed, and so renamed, or deleted at any time: opening looks for its new name, and a deleted
 * file is no fault. */
#include "formats/recording/segment_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/text.h"
#include "formats/segment/chunk_table.h"
#include "formats/segment/segment_index.h"
#include "formats/segment/segment_name.h"

enum given { GIVEN_UNKNOWN, GIVEN_ONCE, GIVEN_BEFORE };

struct bc_segment_file {
	char *path;
	enum given given;             /* once it has been opened */
	bool is_reported;             /* damage has been reported */
	bool is_known;                /* `first` and `last` are set */
	bool has_hole;                /* between it and the one before, which has been reported */
	struct bc_segment_span first; /* two only in a concatenation */
	struct bc_segment_span last;
};

bool bc_segment_files_init(
	struct bc_segment_files *f, const struct bc_search_io *io, char *const *paths, int count)
{
	*f = (struct bc_segment_files){.io = io,
		.files = calloc((size_t)count + 1, sizeof(*f->files)),
		.count = count,
		.from_ns = INT64_MIN,
		.to_ns = INT64_MAX,
		.last_record = UINT64_MAX,
		.at = -1};
	for (int i = 0; f->files != NULL && i < count; i++)
		f->files[i].path = paths[i];
	return f->files != NULL;
}

static void close_file(struct bc_segment_files *f)
{
	if (f->at < 0)
		return;
	close(f->table.fd);
	bc_chunk_table_free(&f->table);
	f->at = -1;
}

void bc_segment_files_free(struct bc_segment_files *f)
{
	close_file(f);
	free(f->files);
	f->files = NULL;
}

bool bc_segment_files_pace(struct bc_segment_files *f, uint64_t bytes)
{
	if (f->io->pace != NULL && !f->is_stopped)
		f->is_stopped = !f->io->pace(f->io->context, bytes);
	return !f->is_stopped;
}

static bool on_pace(void *context, uint64_t bytes)
{
	return bc_segment_files_pace(context, bytes);
}

static void report_fault(
	const struct bc_search_io *io, const char *path, const struct bc_search_fault *fault)
{
	struct bc_search_fault reported = *fault;

	reported.file = path;
	io->fault(io->context, &reported);
}

static void report_error(const struct bc_search_io *io, const char *path, int error)
{
	report_fault(
		io, path, &(struct bc_search_fault){.kind = BC_SEARCH_UNREADABLE, .error = error});
}

static void report_damage(
	const struct bc_segment_files *f, uint64_t offset, uint64_t bytes, const char *what)
{
	report_fault(f->io, f->path,
		&(struct bc_search_fault){
			.kind = BC_SEARCH_DAMAGED, .offset = offset, .bytes = bytes, .what = what});
}

static void on_damage(void *context, const struct bc_segment_damage *damage)
{
	struct bc_segment_files *f = context;
	bool is_being_written = damage->is_torn && bc_segment_path_is_partial(f->path);

	if (!is_being_written && !f->files[f->at].is_reported)
		report_damage(f, damage->offset, damage->bytes, damage->what);
}

/* ---- segments that are missing */

/* True if the missing records may have had a match. */
static bool is_wanted(const struct bc_segment_files *f, const struct bc_missing_segments *missing)
{
	return missing->records == 0 ||
	       (missing->from_ns <= f->to_ns && missing->to_ns >= f->from_ns &&
		       missing->from <= f->last_record &&
		       missing->from + missing->records > f->first_record);
}

/* Reports the segments that are missing before a file, if it and the one before it are known. Only
 * these two are opened, so what a search does not reach is not reported. */
static void report_hole(struct bc_segment_files *f, int at)
{
	struct bc_missing_segments missing;
	char what[BC_MISSING_TEXT];

	if (at <= 0 || at >= f->count)
		return;
	struct bc_segment_file *file = &f->files[at];
	if (file->has_hole || !file->is_known || !file[-1].is_known ||
		!bc_missing_between(&missing, &file[-1].last, &file->first) ||
		!is_wanted(f, &missing))
		return;
	file->has_hole = true;
	report_fault(f->io, file->path,
		&(struct bc_search_fault){
			.kind = BC_SEARCH_MISSING, .what = bc_missing_write(what, &missing)});
}

static void set_known(struct bc_segment_files *f, int at)
{
	f->files[at].is_known = true;
	report_hole(f, at);
	report_hole(f, at + 1);
}

/* Takes a file that can't be read for what its name says. */
static void know_by_name(struct bc_segment_files *f, int at)
{
	struct bc_segment_file *file = &f->files[at];
	struct bc_segment_name name;

	if (file->is_known || !bc_segment_name_read(&name, basename(file->path)))
		return;
	file->first = file->last = (struct bc_segment_span){
		.tag = bc_recording_tag(name.recording), .segment = name.segment};
	set_known(f, at);
}

/* The numbers of the open file's records. */
static void know_by_table(struct bc_segment_files *f)
{
	struct bc_segment_file *file = &f->files[f->at];
	const struct bc_chunk_table *t = &f->table;

	if (t->count == 0) {
		know_by_name(f, f->at);
		return;
	}
	const struct bc_chunk_info *first = &t->rows[0].info;
	const struct bc_chunk_info *last = &t->rows[t->count - 1].info;
	const struct bc_segment_header *header = bc_chunk_table_header(t, 0);
	file->first = (struct bc_segment_span){.tag = first->recording_tag,
		.segment = first->segment,
		.is_read = true,
		.first = header != NULL ? header->first_record : first->first_record,
		.from_ns = first->wall_ns};
	file->last = (struct bc_segment_span){.tag = last->recording_tag,
		.segment = last->segment,
		.is_read = true,
		.next = last->first_record + last->records,
		.to_ns = bc_chunk_wall(
			last, last->last_tick, bc_segment_files_clock_hz(f, t->count - 1))};
	set_known(f, f->at);
}

/* How many segments a file comes after the one before it, by their names. -1: no such names. */
static int64_t named_step(const struct bc_segment_files *f, int at)
{
	struct bc_segment_name one;
	struct bc_segment_name two;

	if (at <= 0 || at >= f->count ||
		!bc_segment_name_read(&one, basename(f->files[at - 1].path)) ||
		!bc_segment_name_read(&two, basename(f->files[at].path)) ||
		strcmp(one.recording, two.recording) != 0)
		return -1;
	return (int64_t)two.segment - one.segment;
}

/* True if the open file is a copy of a neighbour. */
static bool is_given_before(struct bc_segment_files *f)
{
	struct bc_segment_file *file = &f->files[f->at];
	const struct bc_chunk_info *first = &f->table.rows[0].info;

	if (file->given != GIVEN_UNKNOWN || f->table.count == 0)
		return file->given == GIVEN_BEFORE;
	file->given = GIVEN_ONCE;
	for (int i = f->at - 1; i <= f->at + 1; i += 2) {
		if (i < 0 || i >= f->count || f->files[i].given == GIVEN_UNKNOWN ||
			f->files[i].first.tag != first->recording_tag ||
			f->files[i].first.segment != first->segment)
			continue;
		file->given = GIVEN_BEFORE;
		file->first = f->files[i].first;
		file->last = f->files[i].last;
		set_known(f, f->at);
	}
	if (file->given == GIVEN_BEFORE)
		report_fault(
			f->io, file->path, &(struct bc_search_fault){.kind = BC_SEARCH_REPEATED});
	return file->given == GIVEN_BEFORE;
}

bool bc_segment_path_is_partial(const char *path)
{
	struct bc_segment_name name;

	return bc_segment_name_read(&name, basename(path)) && name.is_partial;
}

void bc_bad_chunk_write(char what[BC_BAD_CHUNK_BYTES], const struct bc_chunk_info *info)
{
	snprintf(what, BC_BAD_CHUNK_BYTES, "chunk %" PRIu32 " (%s record%s) is damaged",
		info->number, BC_GROUPED(info->records), bc_plural(info->records));
}

bool bc_segment_path_find(char *path)
{
	size_t bytes = strlen(path);
	size_t suffix = strlen(BC_PARTIAL_SUFFIX);

	if (access(path, F_OK) == 0 || errno != ENOENT)
		return true;
	if (bytes <= suffix || strcmp(path + bytes - suffix, BC_PARTIAL_SUFFIX) != 0)
		return false;
	path[bytes - suffix] = '\0';
	return access(path, F_OK) == 0;
}

static int open_regular(const struct bc_search_io *io, const char *path)
{
	struct stat st = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	int error = fd < 0 ? errno : S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
	if (fd >= 0)
		close(fd);
	if (error != ENOENT)
		report_error(io, path, -error);
	errno = error;
	return -1;
}

static int open_file(const struct bc_search_io *io, const char *path)
{
	return io->open != NULL ? io->open(io->context, path) : open_regular(io, path);
}

int bc_segment_path_open(char *path, const struct bc_search_io *io)
{
	if (!bc_segment_path_find(path))
		return -1;
	size_t bytes = strlen(path);
	int fd = open_file(io, path);
	if (fd < 0 && bc_segment_path_find(path) && strlen(path) != bytes)
		fd = open_file(io, path);
	return fd;
}

/* True if the file may have a match, by the page counts of the whole segment. */
static bool may_have(struct bc_segment_files *f, int fd, const struct bc_page_query *query)
{
	uint64_t bytes;
	bool may_have = bc_page_search_segment(fd, query, &bytes);

	return bc_segment_files_pace(f, bytes) && may_have;
}

/* True if the file has the name of a copy of the one before it, and neither has been opened yet. */
static bool may_be_copy(const struct bc_segment_files *f, int at)
{
	return named_step(f, at) == 0 && f->files[at].given == GIVEN_UNKNOWN &&
	       f->files[at - 1].given == GIVEN_UNKNOWN;
}

bool bc_segment_files_open(struct bc_segment_files *f, int at, const struct bc_page_query *query)
{
	if (f->at == at)
		return true;
	/* Of copies with the names of segments, the first one is used, also by a search from the
	 * end. */
	if (may_be_copy(f, at))
		(void)bc_segment_files_open(f, at - 1, query);
	close_file(f);
	int fd = bc_segment_path_open(f->files[at].path, f->io);
	if (fd < 0) {
		if (errno != ENOENT && errno != EXDEV)
			know_by_name(f, at);
		return false;
	}
	bool is_ruled_out = query != NULL && !may_have(f, fd, query);
	if (is_ruled_out && named_step(f, at) <= 1 && named_step(f, at + 1) <= 1) {
		close(fd);
		return false;
	}
	f->at = at;
	f->path = f->files[at].path;
	const struct bc_chunk_table_io io = {f, on_damage, on_pace};
	int rc = bc_chunk_table_load(&f->table, fd, &io);
	f->files[at].is_reported = true;
	if (rc != 0 && rc != -ECANCELED) {
		report_error(f->io, f->path, rc);
		know_by_name(f, at);
	}
	bool is_new = rc == 0 && !is_given_before(f);
	if (is_new)
		know_by_table(f);
	if (is_new && !is_ruled_out)
		return true;
	close_file(f);
	return false;
}

bool bc_segment_files_read(struct bc_segment_files *f, uint32_t row, struct bc_chunk *chunk)
{
	struct bc_chunk_row *r = &f->table.rows[row];
	char what[BC_BAD_CHUNK_BYTES];

	if (r->is_bad || !bc_segment_files_pace(f, bc_chunk_encoded_bytes(&r->info)))
		return false;
	int rc = bc_chunk_table_read(&f->table, row, chunk);
	r->is_bad = rc != 0;
	if (rc == 0)
		return true;
	if (rc != -EBADMSG) {
		report_error(f->io, f->path, rc);
		return false;
	}
	bc_bad_chunk_write(what, &r->info);
	report_damage(f, r->offset, bc_chunk_encoded_bytes(&r->info), what);
	return false;
}

bool bc_segment_files_read_header(struct bc_segment_files *f, uint32_t row, struct bc_chunk *chunk)
{
	const struct bc_chunk_row *r = &f->table.rows[row];

	return bc_segment_files_pace(f, bc_chunk_info_header_bytes(&r->info)) &&
	       bc_chunk_header_load(chunk, f->table.fd, r->offset, &r->info) == 0;
}

uint64_t bc_segment_files_clock_hz(const struct bc_segment_files *f, uint32_t row)
{
	const struct bc_segment_header *header = bc_chunk_table_header(&f->table, row);

	return header != NULL ? header->clock_hz : 0;
}
