#include "cli/dump.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/fault.h"
#include "formats/printer.h"
#include "formats/reader.h"

/* The printer of a format's own text. */
static const struct bc_printer *text_printer(enum bc_format format)
{
	if (format == BC_FORMAT_LAPLACE)
		format = BC_FORMAT_LAPLACE_TEXT;
	return bc_format_info(format)->printer;
}

static void print_entries(struct bc_dump *dump, const struct bc_printer *printer, void *state,
	const struct bc_entry *entries, size_t count)
{
	while (count != 0 && !bc_output_is_over(&dump->output)) {
		uint64_t reduced[BC_TRAIT_BITS];
		struct bc_print print = {.entries = entries,
			.count = count,
			.out = bc_output_room(&dump->output, BC_PRINT_MAX),
			.room = BC_PRINT_MAX,
			.reduced = reduced};
		/* What came of a format fits its own text. */
		if (printer->print(state, &print) != 0)
			return;
		dump->output.used += print.used;
		entries = print.entries;
		count = print.count;
	}
}

/* Prints the entries of a batch that are wanted, run by run. */
static void print_batch(struct bc_dump *dump, const struct bc_printer *printer, void *state,
	const struct bc_batch *batch)
{
	size_t i = 0;

	while (i < batch->count) {
		size_t from = i;
		while (i < batch->count && bc_dump_wants(dump, batch->entries[i].number,
						   batch->entries[i].tick, batch->entries[i].epoch))
			i++;
		print_entries(dump, printer, state, batch->entries + from, i - from);
		if (i == from)
			i++;
	}
}

void bc_dump_entries(struct bc_dump *dump, struct bc_file *file)
{
	const struct bc_reader_options options = {
		.format = bc_format_options_default(), .index_fd = -1};
	const struct bc_printer *printer = text_printer(file->probe.format);
	struct bc_reader *reader = NULL;
	struct bc_batch batch;
	uint64_t faults = 0;
	void *state = malloc(printer->state_bytes + 1);
	int rc = state != NULL ? printer->begin(state, &options.format) : -ENOMEM;

	if (rc == 0)
		rc = bc_reader_open(&reader, file->input, file->probe.format, &options);
	while (rc == 0 && !bc_output_is_over(&dump->output)) {
		int got = bc_reader_next(reader, &batch);
		if (got <= 0) {
			rc = got;
			break;
		}
		print_batch(dump, printer, state, &batch);
		if (batch.fault != NULL)
			bc_complain_fault(dump->console, file->name, batch.fault, faults++);
	}
	bc_complain_faults_left(dump->console, file->name, faults);
	if (faults != 0)
		dump->exit = bc_exit_worse(dump->exit, BC_EXIT_DAMAGED);
	if (rc < 0)
		dump->exit = bc_exit_worse(dump->exit, bc_complain_read(dump->console, file, rc));
	bc_reader_close(reader);
	free(state);
}
