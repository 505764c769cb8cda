#include "cli/io/fault.h"

#include <inttypes.h>

#include "formats/base/number.h"

/* Faults of a file that are printed individually. */
#define FAULTS_MAX 10

void bc_print_fault(const struct bc_console *console, const char *file,
	const struct bc_fault *fault, uint64_t reported)
{
	if (reported >= FAULTS_MAX)
		return;
	if (fault->line != 0)
		bc_print_error(console, file, "line %" PRIu64 ", column %" PRIu32 ": %s",
			fault->line, fault->column, fault->what);
	else if (fault->is_before)
		bc_print_error(console, file, "%s", fault->what);
	else if (fault->bytes != 0)
		bc_print_damage(console, file, fault->offset, fault->bytes, fault->what);
	else
		bc_print_error(console, file, "offset %" PRIu64 ": %s", fault->offset, fault->what);
}

void bc_print_notes(
	const struct bc_console *console, const char *file, const struct bc_parse_notes *notes)
{
	if (notes->skipped != 0)
		bc_print_error(console, file,
			"%" PRIu64 " line%s of messages and superblocks skipped", notes->skipped,
			bc_plural(notes->skipped));
	if (notes->unread != 0)
		bc_print_error(console, file, "%" PRIu64 " line%s with more than was read",
			notes->unread, bc_plural(notes->unread));
	for (unsigned i = 0; i < notes->names && i < BC_NOTES_NAMES; i++)
		bc_print_error(console, file, "processor %u is %s", notes->named[i].proc,
			notes->named[i].name);
	if (notes->names > BC_NOTES_NAMES)
		bc_print_error(console, file, "%u more processors are numbered by order",
			notes->names - BC_NOTES_NAMES);
	if (notes->unnumbered != 0)
		bc_print_error(console, file,
			"%" PRIu64 " line%s without processor: more than 256 names",
			notes->unnumbered, bc_plural(notes->unnumbered));
}

void bc_print_faults_left(const struct bc_console *console, const char *file, uint64_t faults)
{
	if (faults > FAULTS_MAX)
		bc_print_error(
			console, file, "%" PRIu64 " more errors not shown", faults - FAULTS_MAX);
}
