#include "cli/trace/dump_entries.h"

#include <errno.h>
#include <stdlib.h>

#include "formats/trace/printer.h"

/* Returns the printer for the text form of a format. */
static const struct bc_printer *text_printer(enum bc_format format)
{
	if (format == BC_FORMAT_LAPLACE)
		format = BC_FORMAT_LAPLACE_TEXT;
	return bc_format_info(format)->printer;
}

/* A file being printed. */
struct printing {
	struct bc_dump *dump;
	const struct bc_file *file;
	const struct bc_printer *printer;
	void *state; /* the printer's */
};

/* Returns false if printing failed, after an error message or silently for a closed pipe. */
static bool print_entries(const struct printing *p, const struct bc_entry *entries, size_t count)
{
	struct bc_dump *dump = p->dump;
	uint64_t reduced[BC_TRAIT_BITS] = {0};

	while (count != 0 && !bc_output_failed(&dump->output)) {
		struct bc_print print = {.entries = entries,
			.count = count,
			.out = bc_output_reserve(&dump->output, BC_PRINT_MAX),
			.capacity = BC_PRINT_MAX,
			.reduced = reduced};
		int rc = p->printer->print(p->state, &print);
		dump->output.used += print.used;
		if (rc != 0) {
			bc_print_error(dump->console, p->file->name, "%s", print.err);
			dump->exit = bc_exit_worse(dump->exit, BC_EXIT_FAILED);
			return false;
		}
		entries = print.entries;
		count = print.count;
	}
	return !bc_output_failed(&dump->output);
}

/* Prints the selected lines of a batch, run by run. All entries of a line are printed if one of
 * them is selected: the first one has the text of the line. Returns false if printing failed. */
static bool print_batch(const struct printing *p, const struct bc_batch *batch)
{
	size_t from = 0; /* where the run of selected lines starts */
	size_t end = 0;

	for (size_t i = 0; i < batch->count; i = end) {
		bool is_selected = false;
		do
			is_selected |= bc_filter_entry(
				&p->dump->args.filter, &batch->entries[end++]);
		while (end < batch->count && batch->entries[end].is_continued);
		if (is_selected)
			continue;
		if (!print_entries(p, batch->entries + from, i - from))
			return false;
		from = end;
	}
	return print_entries(p, batch->entries + from, end - from);
}

/* Prints a batch. Returns false if printing failed, or if no later entry can be selected, because
 * numbers increase. */
static bool print_selected(void *context, const struct bc_batch *batch)
{
	const struct printing *p = context;
	struct bc_dump *dump = p->dump;

	if (batch->count == 0)
		return true;
	uint64_t last = batch->entries[batch->count - 1].number;
	dump->end = last + 1 > dump->end ? last + 1 : dump->end;
	return print_batch(p, batch) && last <= dump->args.filter.numbers.last;
}

void bc_dump_entries(struct bc_dump *dump, struct bc_file *file)
{
	const struct bc_reader_options options = {.format = dump->format, .index_fd = -1};
	const struct bc_printer *printer = text_printer(file->probe.format);
	struct printing p = {.dump = dump,
		.file = file,
		.printer = printer,
		.state = bc_printer_start(printer, &options.format)};

	if (p.state != NULL)
		bc_dump_read(dump, file, &options, print_selected, &p);
	else
		dump->exit = bc_exit_worse(
			dump->exit, bc_print_read_error(dump->console, file, -ENOMEM));
	free(p.state);
}
