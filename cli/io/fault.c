#include "cli/io/fault.h"

#include <inttypes.h>

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
	else if (fault->bytes != 0)
		bc_print_damage(console, file, fault->offset, fault->bytes, fault->what);
	else
		bc_print_error(console, file, "offset %" PRIu64 ": %s", fault->offset, fault->what);
}

void bc_print_faults_left(const struct bc_console *console, const char *file, uint64_t faults)
{
	if (faults > FAULTS_MAX)
		bc_print_error(
			console, file, "%" PRIu64 " more errors not shown", faults - FAULTS_MAX);
}
