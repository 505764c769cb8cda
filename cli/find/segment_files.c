#include "cli/find/segment_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum given { GIVEN_UNKNOWN, GIVEN_ONCE, GIVEN_BEFORE };

struct bc_segment_file {
	const char *path;
	enum given given; /* once it has been opened */
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

	if (damage->is_torn && f->file.is_partial)
		return; /* it is being written */
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
		if (i >= 0 && i < f->count && f->files[i].given == GIVEN_ONCE &&
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
			"not a segment, or a compressed one; several files must all be segments");
		return BC_EXIT_USAGE;
	}
	int rc = bc_chunk_table_load(&f->table, f->file.fd, on_damage, f);
	return rc != 0 ? bc_print_read_error(f->console, &f->file, rc) : BC_EXIT_OK;
}

bool bc_segment_files_open(struct bc_segment_files *f, int at)
{
	if (f->at == at)
		return true;
	bc_segment_files_close(f);
	enum bc_exit code = bc_file_open(
		&f->file, f->console, f->files[at].path, BC_FORMAT_UNKNOWN);
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
	const struct bc_chunk_row *r = &f->table.rows[row];
	char what[96];
	int rc = bc_chunk_table_read(&f->table, row, chunk);

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
