#include "cli/find/segment_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/segment/page_search.h"
#include "formats/segment/segment_name.h"

enum given { GIVEN_UNKNOWN, GIVEN_ONCE, GIVEN_BEFORE };

struct bc_segment_file {
	char *path;
	enum given given; /* once it has been opened */
	bool is_reported; /* damage has been printed */
	uint64_t tag;
	uint32_t segment;
};

bool bc_segment_files_init(
	struct bc_segment_files *f, const struct bc_console *console, char *const *paths, int count)
{
	*f = (struct bc_segment_files){.console = console,
		.files = calloc((size_t)count, sizeof(*f->files)),
		.count = count,
		.at = -1};
	for (int i = 0; f->files != NULL && i < count; i++)
		f->files[i].path = paths[i];
	return f->files != NULL;
}

void bc_segment_files_free(struct bc_segment_files *f)
{
	bc_segment_files_close(f);
	free(f->files);
	f->files = NULL;
}

void bc_segment_files_close(struct bc_segment_files *f)
{
	if (f->at < 0)
		return;
	bc_chunk_table_free(&f->table);
	bc_file_close(&f->file);
	f->at = -1;
}

static void on_damage(void *context, const struct bc_segment_damage *damage)
{
	struct bc_segment_files *f = context;

	if ((damage->is_torn && f->file.is_partial) || f->files[f->at].is_reported)
		return; /* it is being written, or was opened before */
	bc_print_damage(f->console, f->file.name, damage->offset, damage->bytes, damage->what);
	f->exit = bc_exit_worse(f->exit, BC_EXIT_DAMAGED);
}

/* Whether the open file is a copy of its neighbour. */
static bool is_given_before(struct bc_segment_files *f)
{
	struct bc_segment_file *file = &f->files[f->at];

	if (file->given != GIVEN_UNKNOWN || f->table.count == 0)
		return file->given == GIVEN_BEFORE;
	file->given = GIVEN_ONCE;
	file->tag = f->table.rows[0].info.recording_tag;
	file->segment = f->table.rows[0].info.segment;
	for (int i = f->at - 1; i <= f->at + 1; i += 2)
		if (i >= 0 && i < f->count && f->files[i].given != GIVEN_UNKNOWN &&
			f->files[i].tag == file->tag && f->files[i].segment == file->segment)
			file->given = GIVEN_BEFORE;
	if (file->given == GIVEN_BEFORE)
		bc_print_error(f->console, file->path, "the same segment again; skipped");
	return file->given == GIVEN_BEFORE;
}

static enum bc_exit load(struct bc_segment_files *f)
{
	f->table = (struct bc_chunk_table){.fd = -1};
	if (f->file.probe.format != BC_FORMAT_SEGMENT || !f->file.is_regular) {
		bc_print_error(f->console, f->file.name,
			"not a segment, or a compressed one; decompress it first");
		return BC_EXIT_USAGE;
	}
	int rc = bc_chunk_table_load(&f->table, f->file.fd, on_damage, f);
	f->files[f->at].is_reported = true;
	return rc != 0 ? bc_print_read_error(f->console, &f->file, rc) : BC_EXIT_OK;
}

/* Finds a file that was sealed, and so renamed, or deleted since it was listed. Returns false if it
 * is gone. */
static bool find_renamed(struct bc_segment_file *file)
{
	size_t bytes = strlen(file->path);
	size_t suffix = strlen(BC_PARTIAL_SUFFIX);

	if (access(file->path, F_OK) == 0 || errno != ENOENT)
		return true;
	if (bytes <= suffix || strcmp(file->path + bytes - suffix, BC_PARTIAL_SUFFIX) != 0)
		return false;
	file->path[bytes - suffix] = '\0';
	return access(file->path, F_OK) == 0;
}

bool bc_segment_file_open(struct bc_file *file, const char *path)
{
	struct bc_segment_header header;
	struct bc_segment_name name;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return false;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
		bc_segment_header_load(&header, fd) != 0) {
		close(fd);
		return false;
	}
	*file = (struct bc_file){.name = path,
		.fd = fd,
		.is_ours = true,
		.is_regular = true,
		.is_partial = bc_segment_name_read(&name, basename(path)) && name.is_partial,
		.bytes = (uint64_t)st.st_size,
		.probe = {.format = BC_FORMAT_SEGMENT}};
	return true;
}

bool bc_segment_files_may_have(
	struct bc_segment_files *f, int at, const struct bc_page_query *query)
{
	if (f->at == at || !find_renamed(&f->files[at]))
		return true;
	int fd = open(f->files[at].path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool may_have = fd < 0 || bc_page_search_segment(fd, query);
	if (fd >= 0)
		close(fd);
	return may_have;
}

bool bc_segment_files_open(struct bc_segment_files *f, int at)
{
	if (f->at == at)
		return true;
	bc_segment_files_close(f);
	if (!find_renamed(&f->files[at]))
		return false;
	enum bc_exit code = BC_EXIT_OK;
	if (!bc_segment_file_open(&f->file, f->files[at].path))
		code = bc_file_open(&f->file, f->console, f->files[at].path, BC_FORMAT_UNKNOWN);
	if (code == BC_EXIT_OK) {
		f->at = at;
		code = load(f);
		if (code == BC_EXIT_OK && !is_given_before(f))
			return true;
		bc_segment_files_close(f);
	}
	f->exit = bc_exit_worse(f->exit, code);
	return false;
}

bool bc_segment_files_read(struct bc_segment_files *f, uint32_t row, struct bc_chunk *chunk)
{
	struct bc_chunk_row *r = &f->table.rows[row];
	char what[96];

	if (r->is_bad)
		return false;
	int rc = bc_chunk_table_read(&f->table, row, chunk);
	r->is_bad = rc != 0;
	if (rc == 0)
		return true;
	if (rc != -EBADMSG) {
		f->exit = bc_exit_worse(f->exit, bc_print_read_error(f->console, &f->file, rc));
		return false;
	}
	snprintf(what, sizeof(what), "chunk %" PRIu32 " (%" PRIu32 " record%s) is damaged",
		r->info.number, r->info.records, bc_plural(r->info.records));
	bc_print_damage(
		f->console, f->file.name, r->offset, bc_chunk_encoded_bytes(&r->info), what);
	f->exit = bc_exit_worse(f->exit, BC_EXIT_DAMAGED);
	return false;
}

uint64_t bc_segment_files_clock_hz(const struct bc_segment_files *f, uint32_t row)
{
	const struct bc_segment_header *header = bc_chunk_table_header(&f->table, row);

	return header != NULL ? header->clock_hz : 0;
}
