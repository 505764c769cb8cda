#include "cli/trace/dump_entries.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/io/fault.h"
#include "formats/reader/reader.h"
#include "formats/trace/printer.h"

/* Returns the printer for the text form of a format. */
static const struct bc_printer *text_printer(enum bc_format format)
{
	if (format == BC_FORMAT_LAPLACE)
		format = BC_FORMAT_LAPLACE_TEXT;
	return bc_format_info(format)->printer;
}

static void print_failure(
	struct bc_dump *dump, const struct bc_file *file, enum bc_exit code, const char *what)
{
	bc_print_error(dump->console, file->name, "%s", what);
	dump->exit = bc_exit_worse(dump->exit, code);
}

/* Returns false if printing failed, after an error message or silently for a closed pipe. */
static bool print_entries(struct bc_dump *dump, const struct bc_file *file,
	const struct bc_printer *printer, void *state, const struct bc_entry *entries, size_t count)
{
	uint64_t reduced[BC_TRAIT_BITS] = {0};

	while (count != 0 && !bc_output_failed(&dump->output)) {
		struct bc_print print = {.entries = entries,
			.count = count,
			.out = bc_output_reserve(&dump->output, BC_PRINT_MAX),
			.capacity = BC_PRINT_MAX,
			.reduced = reduced};
		int rc = printer->print(state, &print);
		dump->output.used += print.used;
		if (rc != 0) {
			print_failure(dump, file, BC_EXIT_FAILED, print.err);
			return false;
		}
		entries = print.entries;
		count = print.count;
	}
	return !bc_output_failed(&dump->output);
}

/* Prints the selected lines of a batch, run by run. All entries of a line are printed if one of
 * them is selected: the first one has the text of the line. Returns false if printing failed. */
static bool print_batch(struct bc_dump *dump, const struct bc_file *file,
	const struct bc_printer *printer, void *state, const struct bc_batch *batch)
{
	size_t from = 0; /* where the run of selected lines starts */
	size_t end = 0;

	for (size_t i = 0; i < batch->count; i = end) {
		bool is_selected = false;
		do
			is_selected |= bc_filter_entry(&dump->args.filter, &batch->entries[end++]);
		while (end < batch->count && batch->entries[end].is_continued);
		if (is_selected)
			continue;
		if (!print_entries(dump, file, printer, state, batch->entries + from, i - from))
			return false;
		from = end;
	}
	return print_entries(dump, file, printer, state, batch->entries + from, end - from);
}

/* Returns true if no later entry can be selected, because numbers increase. */
static bool is_past_end(const struct bc_dump *dump, const struct bc_batch *batch)
{
	return batch->count != 0 &&
	       batch->entries[batch->count - 1].number > dump->args.filter.numbers.last;
}

void bc_dump_entries(struct bc_dump *dump, struct bc_file *file)
{
	const struct bc_reader_options options = {.format = dump->format, .index_fd = -1};
	const struct bc_printer *printer = text_printer(file->probe.format);
	struct bc_reader *reader = NULL;
	struct bc_batch batch;
	uint64_t faults = 0;
	bool is_more = true;

	void *state = bc_printer_start(printer, &options.format);
	int rc = state != NULL ? 0 : -ENOMEM;

	if (rc == 0)
		rc = bc_reader_open(&reader, file->input, file->probe.format, &options);
	while (rc == 0 && is_more) {
		int got = bc_reader_next(reader, &batch);
		if (got <= 0) {
			rc = got;
			break;
		}
		uint64_t end = batch.count != 0 ? batch.entries[batch.count - 1].number + 1 : 0;
		dump->end = end > dump->end ? end : dump->end;
		is_more = print_batch(dump, file, printer, state, &batch) &&
			  !is_past_end(dump, &batch);
		if (bc_file_would_wait(file))
			bc_output_flush(&dump->output);
		if (batch.fault != NULL)
			bc_print_fault(dump->console, file->name, batch.fault, faults++);
	}
	bc_print_faults_left(dump->console, file->name, faults);
	if (faults != 0)
		dump->exit = bc_exit_worse(dump->exit, BC_EXIT_DAMAGED);
	if (rc < 0)
		dump->exit = bc_exit_worse(
			dump->exit, bc_print_read_error(dump->console, file, rc));
	bc_reader_close(reader);
	free(state);
}
