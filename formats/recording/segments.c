/* Segment files in the order of their recordings, one of which is open at a time.
 *
 * Of each file, the first and last segment in it are remembered once it has been opened or its name
 * had to do. A hole is reported when both of its neighbours are known, once, and only if it may
 * have had what is looked for. A copy of a neighbouring segment is reported and skipped. A file may
 * be sealed, and so renamed, or deleted at any time: opening looks for its new name, and a deleted
 * file is no fault. */
#include "formats/recording/segments.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/atomic_file.h"
#include "formats/base/text.h"
#include "formats/bus/tick_time.h"
#include "formats/segment/segment_index.h"
#include "formats/segment/segment_name.h"

/* ---- names */

bool bc_segment_path_is_partial(const char *path)
{
	struct bc_segment_name name;

	return bc_segment_name_read(&name, basename(path)) && name.is_partial;
}

/* Removes ".partial" from a path. Returns false if it does not end with it. */
static bool seal_path(char *path)
{
	size_t bytes = strlen(path);
	size_t suffix = strlen(BC_PARTIAL_SUFFIX);

	if (bytes <= suffix || strcmp(path + bytes - suffix, BC_PARTIAL_SUFFIX) != 0)
		return false;
	path[bytes - suffix] = '\0';
	return true;
}

bool bc_segment_path_is_unsealed(int dir_fd, char *path, int fd, bool *is_written)
{
	*is_written = bc_segment_path_is_partial(path) && bc_is_being_written(fd);
	if (!bc_segment_path_is_partial(path) || *is_written)
		return *is_written;
	return faccessat(dir_fd, path, F_OK, 0) == 0 || !seal_path(path);
}

bool bc_segment_path_find(char *path)
{
	if (access(path, F_OK) == 0 || errno != ENOENT)
		return true;
	return seal_path(path) && access(path, F_OK) == 0;
}

static bool has_header(int dir_fd, const char *file, const struct bc_segment_name *name)
{
	struct bc_segment_header header = {.segment = 0};
	int fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int rc = fd >= 0 ? bc_segment_header_load(&header, fd) : -errno;

	if (fd >= 0)
		close(fd);
	return rc != 0 ||
	       (strcmp(header.recording, name->recording) == 0 && header.segment == name->segment);
}

/* True if the directory of a file has no later segment of its recording; with `in_use`, if it has
 * no newer recording, and a daemon has locked it. Files of another segment don't count. */
static bool is_newest(int dir_fd, const char *path, bool in_use)
{
	size_t bytes = (size_t)(basename(path) - path);
	const struct dirent *entry;
	struct bc_segment_name own;
	struct bc_segment_name name;
	char dir[PATH_MAX] = ".";

	if (bytes >= sizeof(dir) || !bc_segment_name_read(&own, path + bytes))
		return false;
	if (bytes != 0)
		snprintf(dir, sizeof(dir), "%.*s", (int)bytes, path);
	int fd = openat(dir_fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	bool is_newest = d != NULL && (!in_use || bc_is_being_written(fd));
	while (is_newest && (entry = readdir(d)) != NULL) {
		if (!bc_segment_name_read(&name, entry->d_name))
			continue;
		int order = strcmp(name.recording, own.recording);
		bool is_later = in_use ? order > 0 : order == 0 && name.segment > own.segment;
		is_newest = !is_later || !has_header(fd, entry->d_name, &name);
	}
	if (d != NULL)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	return is_newest;
}

bool bc_segment_path_is_in_use(int dir_fd, const char *path)
{
	return is_newest(dir_fd, path, true);
}

bool bc_segment_path_is_killed(const char *path, int fd)
{
	char now[PATH_MAX];
	bool is_written;

	return bc_segment_path_is_partial(path) && strlen(path) < sizeof(now) &&
	       bc_segment_path_is_unsealed(AT_FDCWD, strcpy(now, path), fd, &is_written) &&
	       !is_written && is_newest(AT_FDCWD, path, false);
}

bool bc_segment_path_span(struct bc_segment_span *span, const char *path)
{
	struct bc_segment_name name;

	if (!bc_segment_name_read(&name, basename(path)))
		return false;
	*span = (struct bc_segment_span){
		.tag = bc_recording_tag(name.recording), .segment = name.segment};
	return true;
}

/* ---- a file */

static void report(
	const struct bc_segment_io *io, const char *path, const struct bc_segment_fault *fault)
{
	struct bc_segment_fault reported = *fault;

	reported.file = path;
	io->fault(io->context, &reported);
}

/* Out of memory and a stop are not errors of the file. */
static int report_error(struct bc_segment_file *f, int error)
{
	if (error == -ENOMEM || error == -ECANCELED)
		f->stop = f->stop != 0 ? f->stop : error;
	else
		report(f->io, f->path,
			&(struct bc_segment_fault){.kind = BC_SEGMENT_UNREADABLE, .error = error});
	return error;
}

static void report_damage(
	const struct bc_segment_file *f, uint64_t offset, uint64_t bytes, const char *what)
{
	report(f->io, f->path,
		&(struct bc_segment_fault){.kind = BC_SEGMENT_DAMAGED,
			.offset = offset,
			.bytes = bytes,
			.what = what});
}

bool bc_segment_file_pace(struct bc_segment_file *f, uint64_t bytes)
{
	if (f->io->pace != NULL && f->stop == 0 && !f->io->pace(f->io->context, bytes))
		f->stop = -ECANCELED;
	return f->stop == 0;
}

int bc_segment_open_regular(const struct bc_segment_io *io, const char *path)
{
	struct stat st = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	int error = fd < 0 ? errno : S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
	if (fd >= 0)
		close(fd);
	if (error != ENOENT)
		report(io, path,
			&(struct bc_segment_fault){.kind = BC_SEGMENT_UNREADABLE, .error = -error});
	errno = error;
	return -1;
}

static int open_path(const struct bc_segment_io *io, const char *path)
{
	return io->open != NULL ? io->open(io->context, path) : bc_segment_open_regular(io, path);
}

bool bc_segment_file_open(struct bc_segment_file *f, char *path)
{
	int fd = open_path(f->io, path);

	if (fd < 0 && errno == ENOENT && seal_path(path))
		fd = open_path(f->io, path);
	if (fd < 0)
		return false;
	f->path = path;
	f->is_quiet = false;
	f->table = (struct bc_chunk_table){.fd = fd};
	return true;
}

void bc_segment_file_close(struct bc_segment_file *f)
{
	if (f->path == NULL)
		return;
	close(f->table.fd);
	if (f->has_table)
		bc_chunk_table_free(&f->table);
	f->has_table = false;
	f->path = NULL;
}

static void on_damage(void *context, const struct bc_segment_damage *damage)
{
	struct bc_segment_file *f = context;
	bool is_end = damage->is_torn && bc_segment_path_is_partial(f->path) &&
		      (!f->has_later || bc_is_being_written(f->table.fd));

	if (!is_end && !f->is_quiet)
		report_damage(f, damage->offset, damage->bytes, damage->what);
}

static bool on_pace(void *context, uint64_t bytes)
{
	return bc_segment_file_pace(context, bytes);
}

int bc_segment_file_load(struct bc_segment_file *f)
{
	const struct bc_chunk_table_io io = {f, on_damage, on_pace};
	int fd = f->table.fd;
	struct stat st;

	if (f->has_table)
		return 0;
	int rc = bc_chunk_table_load(&f->table, fd, &io);
	f->has_table = rc == 0;
	for (uint32_t i = 0; rc == 0 && f->io->by_axis && i < f->table.header_count; i++)
		f->table.headers[i].clock_hz = bc_segment_header_axis_hz(&f->table.headers[i]);
	if (rc == 0 && fstat(fd, &st) == 0 && st.st_size == 0)
		on_damage(f, &(struct bc_segment_damage){.is_torn = true, .what = "empty file"});
	if (rc == 0)
		return 0;
	bc_chunk_table_free(&f->table);
	f->table = (struct bc_chunk_table){.fd = fd};
	return report_error(f, rc);
}

bool bc_segment_file_read(struct bc_segment_file *f, uint32_t row, struct bc_chunk *chunk)
{
	struct bc_chunk_row *r = &f->table.rows[row];
	uint64_t bytes = bc_chunk_encoded_bytes(&r->info);
	char what[96];

	if (r->is_bad || !bc_segment_file_pace(f, bytes))
		return false;
	int rc = bc_chunk_table_read(&f->table, row, chunk);
	r->is_bad = rc != 0;
	if (rc == 0)
		return true;
	if (rc != -EBADMSG) {
		report_error(f, rc);
		return false;
	}
	snprintf(what, sizeof(what), "chunk %" PRIu32 " (%s record%s) is damaged", r->info.number,
		BC_GROUPED(r->info.records), bc_plural(r->info.records));
	report_damage(f, r->offset, bytes, what);
	return false;
}

bool bc_segment_file_read_header(struct bc_segment_file *f, uint32_t row, struct bc_chunk *chunk)
{
	const struct bc_chunk_row *r = &f->table.rows[row];

	return bc_segment_file_pace(f, bc_chunk_info_header_bytes(&r->info)) &&
	       bc_chunk_header_load(chunk, f->table.fd, r->offset, &r->info) == 0;
}

uint64_t bc_segment_file_clock_hz(const struct bc_segment_file *f, uint32_t row)
{
	const struct bc_segment_header *header = bc_chunk_table_header(&f->table, row);

	return header != NULL ? header->clock_hz : 0;
}

struct bc_segment_span bc_segment_file_span(
	const struct bc_segment_file *f, uint32_t first, uint32_t last)
{
	const struct bc_chunk_info *from = &f->table.rows[first].info;
	const struct bc_chunk_info *to = &f->table.rows[last].info;
	const struct bc_segment_header *header = bc_chunk_table_header(&f->table, first);
	int64_t to_ns;

	(void)bc_chunk_end(&to_ns, to, bc_segment_file_clock_hz(f, last));
	return (struct bc_segment_span){.tag = from->recording_tag,
		.segment = from->segment,
		.is_read = true,
		.first = header != NULL ? header->first_record : from->first_record,
		.next = to->first_record + to->records,
		.from_ns = from->wall_ns,
		.to_ns = to_ns};
}

/* ---- a list of files */

enum given { GIVEN_UNKNOWN, GIVEN_ONCE, GIVEN_BEFORE };

struct bc_segments_item {
	char *path;
	enum given given;             /* once it has been opened */
	bool is_reported;             /* damage has been reported */
	bool is_known;                /* `first` and `last` are set */
	bool is_foreign;              /* not here: it has the header of another segment */
	bool has_hole;                /* between it and the one before, which has been reported */
	struct bc_segment_span first; /* two only in a concatenation */
	struct bc_segment_span last;
};

bool bc_segments_init(
	struct bc_segments *r, const struct bc_segment_io *io, char *const *paths, int count)
{
	*r = (struct bc_segments){.file = {.io = io},
		.items = calloc((size_t)count + 1, sizeof(*r->items)),
		.count = count,
		.at = -1,
		.from_ns = INT64_MIN,
		.to_ns = INT64_MAX,
		.last_record = UINT64_MAX};
	for (int i = 0; r->items != NULL && i < count; i++)
		r->items[i].path = paths[i];
	return r->items != NULL;
}

static void close_item(struct bc_segments *r)
{
	bc_segment_file_close(&r->file);
	r->at = -1;
}

void bc_segments_free(struct bc_segments *r)
{
	close_item(r);
	free(r->items);
	r->items = NULL;
}

/* True if the missing records may have had a match. */
static bool is_wanted(const struct bc_segments *r, const struct bc_missing_segments *missing)
{
	return missing->records == 0 ||
	       (missing->from_ns <= r->to_ns && missing->to_ns >= r->from_ns &&
		       missing->from <= r->last_record &&
		       missing->from + missing->records > r->first_record);
}

/* The next file in a direction that is here; -1: none. */
static int neighbour(const struct bc_segments *r, int at, int step)
{
	for (at += step; at >= 0 && at < r->count; at += step)
		if (!r->items[at].is_foreign)
			return at;
	return -1;
}

/* Reports the segments that are missing before a file, if it and the one before it are known. Only
 * these two are opened, so what a search does not reach is not reported. */
static void report_hole(struct bc_segments *r, int at)
{
	struct bc_missing_segments missing;
	char what[BC_MISSING_TEXT];
	int before = at >= 0 ? neighbour(r, at, -1) : -1;

	if (before < 0)
		return;
	struct bc_segments_item *item = &r->items[at];
	if (item->has_hole || !item->is_known || !r->items[before].is_known ||
		!bc_missing_between(&missing, &r->items[before].last, &item->first) ||
		!is_wanted(r, &missing))
		return;
	item->has_hole = true;
	report(r->file.io, item->path,
		&(struct bc_segment_fault){.kind = BC_SEGMENT_MISSING,
			.what = bc_missing_write(what, &missing),
			.missing = &missing});
}

static void set_known(struct bc_segments *r, int at)
{
	r->items[at].is_known = true;
	report_hole(r, at);
	report_hole(r, neighbour(r, at, 1));
}

/* Takes a file that can't be read for what its name says. */
static void know_by_name(struct bc_segments *r, int at)
{
	struct bc_segments_item *item = &r->items[at];

	if (item->is_known || !bc_segment_path_span(&item->first, item->path))
		return;
	item->last = item->first;
	set_known(r, at);
}

/* How many segments a file comes after another one, by their names. -1: no such names. */
static int64_t step_from(const char *path, const char *before)
{
	struct bc_segment_span one;
	struct bc_segment_span two;

	return bc_segment_path_span(&one, before) && bc_segment_path_span(&two, path) &&
			       one.tag == two.tag
		       ? (int64_t)two.segment - one.segment
		       : -1;
}

bool bc_segment_path_follows(const char *path, const char *before)
{
	return step_from(path, before) > 0;
}

static int64_t named_step(const struct bc_segments *r, int at)
{
	return at > 0 && at < r->count ? step_from(r->items[at].path, r->items[at - 1].path) : -1;
}

/* True if the open file is a copy of a neighbour. */
static bool is_copy(struct bc_segments *r)
{
	struct bc_segments_item *item = &r->items[r->at];

	if (item->given != GIVEN_UNKNOWN || r->file.table.count == 0)
		return item->given == GIVEN_BEFORE;
	const struct bc_chunk_info *first = &r->file.table.rows[0].info;
	item->given = GIVEN_ONCE;
	for (int i = r->at - 1; i <= r->at + 1; i += 2) {
		if (i < 0 || i >= r->count || r->items[i].given == GIVEN_UNKNOWN ||
			r->items[i].first.tag != first->recording_tag ||
			r->items[i].first.segment != first->segment)
			continue;
		item->given = GIVEN_BEFORE;
		item->first = r->items[i].first;
		item->last = r->items[i].last;
		set_known(r, r->at);
	}
	if (item->given == GIVEN_BEFORE)
		report(r->file.io, item->path,
			&(struct bc_segment_fault){.kind = BC_SEGMENT_REPEATED});
	return item->given == GIVEN_BEFORE;
}

/* Adds where the open file belongs. */
static void know_by_table(struct bc_segments *r)
{
	struct bc_segments_item *item = &r->items[r->at];
	uint32_t count = r->file.table.count;

	if (count == 0) {
		know_by_name(r, r->at);
		return;
	}
	item->first = bc_segment_file_span(&r->file, 0, 0);
	item->last = bc_segment_file_span(&r->file, count - 1, count - 1);
	set_known(r, r->at);
}

/* True if the file may have a match, by the page counts of the whole segment. */
static bool may_have(struct bc_segments *r, const struct bc_page_query *query)
{
	uint64_t bytes;
	bool may_have = bc_page_search_segment(r->file.table.fd, query, &bytes);

	return bc_segment_file_pace(&r->file, bytes) && may_have;
}

/* True if the file has the name of a copy of the one before it, and neither has been opened yet. */
static bool may_be_copy(const struct bc_segments *r, int at)
{
	return named_step(r, at) == 0 && r->items[at].given == GIVEN_UNKNOWN &&
	       r->items[at - 1].given == GIVEN_UNKNOWN;
}

bool bc_segments_open(struct bc_segments *r, int at, const struct bc_page_query *query)
{
	struct bc_segments_item *item = &r->items[at];

	if (r->at == at)
		return true;
	/* Of copies with names of segments, the first is used, also by a search from the end. */
	if (may_be_copy(r, at))
		(void)bc_segments_open(r, at - 1, query);
	close_item(r);
	r->file.has_later = named_step(r, at + 1) > 0;
	if (!bc_segment_file_open(&r->file, item->path)) {
		item->is_foreign = errno == EXDEV;
		if (item->is_foreign)
			report_hole(r, neighbour(r, at, 1));
		else
			know_by_name(r, at);
		return false;
	}
	r->at = at;
	r->file.is_quiet = item->is_reported;
	bool is_ruled_out = query != NULL && !may_have(r, query);
	bool is_alone = named_step(r, at) <= 1 && named_step(r, at + 1) <= 1;
	int rc = is_ruled_out && is_alone ? -ENOENT : bc_segment_file_load(&r->file);
	item->is_reported = item->is_reported || rc != -ENOENT;
	if (rc != 0 && rc != -ENOENT && r->file.stop == 0)
		know_by_name(r, at);
	bool is_new = rc == 0 && !is_copy(r);
	if (is_new)
		know_by_table(r);
	if (is_new && !is_ruled_out)
		return true;
	close_item(r);
	return false;
}

void bc_segments_exchange(struct bc_segments *r, struct bc_segments_place *place)
{
	const struct bc_segments_place open = {r->file, r->at};

	r->file = place->file;
	r->file.io = open.file.io;
	r->file.stop = open.file.stop;
	r->at = place->at;
	*place = open;
}

bool bc_segments_follows(const struct bc_segments *r, int at)
{
	return named_step(r, at) >= 0;
}

int bc_segments_stat(const struct bc_segments *r, int at, struct stat *st)
{
	return bc_segment_path_find(r->items[at].path) ? stat(r->items[at].path, st) : -1;
}

bool bc_segments_start(const struct bc_segments *r, int at, int64_t *ns)
{
	struct bc_segment_name name;

	return bc_segment_name_read(&name, basename(r->items[at].path)) &&
	       bc_recording_id_start(ns, name.recording);
}
