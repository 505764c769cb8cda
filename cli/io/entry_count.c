#include "cli/io/entry_count.h"

#include <string.h>

#include "cli/io/fault.h"
#include "formats/reader/reader.h"

enum bc_exit bc_count_entries(struct bc_kind_counts *counts, const struct bc_console *console,
	struct bc_file *file, const struct bc_format_options *format)
{
	const struct bc_reader_options options = {.format = *format, .index_fd = -1};
	struct bc_reader *reader;
	struct bc_batch batch;
	int rc = bc_reader_open(&reader, file->input, file->probe.format, &options);

	memset(counts, 0, sizeof(*counts));
	if (rc != 0)
		return bc_print_read_error(console, file, rc);
	while ((rc = bc_reader_next(reader, &batch)) > 0) {
		for (size_t i = 0; i < batch.count; i++)
			counts->kinds[batch.entries[i].kind]++;
		if (batch.fault != NULL)
			bc_print_fault(console, file->name, batch.fault, counts->faults++);
	}
	bc_print_faults_left(console, file->name, counts->faults);
	bc_reader_notes(reader, &counts->notes);
	bc_print_notes(console, file->name, &counts->notes);
	bc_reader_close(reader);
	if (rc < 0)
		return bc_print_read_error(console, file, rc);
	return counts->faults == 0 ? BC_EXIT_OK : BC_EXIT_DAMAGED;
}
