#include "cli/find/find_segments.h"

#include <errno.h>
#include <string.h>

#include "cli/find/find_print.h"
#include "cli/io/segment_input.h"

static int on_open(void *context, const char *path)
{
	struct bc_find *f = context;

	return bc_segment_input_open(&f->operands, path, &f->exit);
}

static void on_fault(void *context, const struct bc_search_fault *fault)
{
	struct bc_find *f = context;

	f->exit = bc_exit_worse(f->exit, bc_segment_input_print_fault(f->console, fault));
}

static bool on_hit(void *context, const struct bc_search_hit *hit)
{
	struct bc_find *f = context;

	bc_find_print(f, hit);
	return !bc_output_failed(&f->output);
}

void bc_find_segments(struct bc_find *f, char *const *paths, int count)
{
	const struct bc_search_io io = {.context = f, .open = on_open, .fault = on_fault};
	const char *missing;

	f->options.filter = f->args.filter;
	int rc = bc_search_run(&f->options, paths, count, &io, on_hit, &f->matches, &missing);

	if (rc == -ENOENT) {
		bc_print_error(f->console, NULL, "%s: no mark or trigger \"%s\"",
			missing == f->options.after_mark ? "--after-mark" : "--before-mark",
			missing);
		f->exit = bc_exit_worse(f->exit, BC_EXIT_FAILED);
	} else if (rc != 0) {
		f->exit = bc_print_no_memory(f->console);
	}
}
