#include "cli/find/find_stream.h"

#include <stdlib.h>

#include "cli/find/find_print.h"
#include "cli/io/trace.h"

struct stream {
	struct bc_find *find;
	const char *path;
	struct bc_trace trace;
	uint64_t found;
	uint64_t skip;              /* matches that are not printed */
	uint64_t nth;               /* of the current entry, from 0 */
	uint64_t printed;           /* entries before this one are printed or not wanted */
	uint64_t wanted;            /* entries before this one are context of the last match */
	struct bc_search_hit *ring; /* the last `context` entries, by nth */
};

static void set_hit(struct stream *s, struct bc_search_hit *hit, const struct bc_entry *entry)
{
	hit->entry = *entry;
	hit->file = s->trace.file.name;
	hit->is_segment = false;
	hit->recording = hit->host = NULL;
	hit->has_wall = false;
	hit->is_context = true;
	bc_entry_text(hit->text, entry);
}

static void print(struct stream *s, struct bc_search_hit *hit, uint64_t nth)
{
	hit->follows = s->printed == nth;
	bc_find_print(s->find, hit);
	s->printed = nth + 1;
}

static void print_match(struct stream *s, const struct bc_entry *entry)
{
	uint64_t context = s->find->options.context;
	uint64_t first = s->nth > context ? s->nth - context : 0;
	struct bc_search_hit hit;

	for (uint64_t i = first > s->printed ? first : s->printed; i < s->nth; i++)
		print(s, &s->ring[i % context], i);
	set_hit(s, &hit, entry);
	hit.is_context = false;
	print(s, &hit, s->nth);
	s->wanted = s->nth + 1 + context;
	s->find->matches++;
}

/* Handles an entry that does not match or is not wanted. */
static void pass(struct stream *s, const struct bc_entry *entry)
{
	struct bc_search_hit *hit;

	if (s->ring == NULL)
		return;
	hit = &s->ring[s->nth % s->find->options.context];
	set_hit(s, hit, entry);
	if (s->nth < s->wanted)
		print(s, hit, s->nth);
}

static bool matches(const struct stream *s, const struct bc_entry *entry)
{
	return entry->kind != BC_ENTRY_EVENT && bc_filter_entry(&s->find->args.filter, entry);
}

/* Reads the trace. If `is_silent`, only counts the matches. */
static enum bc_exit read_trace(struct stream *s, bool is_silent)
{
	struct bc_find *f = s->find;
	struct bc_reader_options options = {.format = f->format_options, .index_fd = -1};
	struct bc_batch batch;
	struct bc_console silent;
	const struct bc_console *console = f->console;

	/* What is wrong with the trace is reported when it is searched. */
	if (is_silent && !f->options.is_count && bc_console_silence(&silent, f->console))
		console = &silent;
	enum bc_exit code = bc_trace_open(&s->trace, console, &s->path, 1, f->format, &options);

	s->found = s->nth = 0;
	if (code == BC_EXIT_OK &&
		!bc_filter_args_check(&f->args, console, s->trace.format, bc_trace_has(&s->trace)))
		code = BC_EXIT_USAGE;
	if (code == BC_EXIT_OK && f->args.filter.has_wall) {
		bc_print_error(console, s->path,
			"--from and --to need segment files that are not compressed");
		code = BC_EXIT_USAGE;
	}
	while (code == BC_EXIT_OK && bc_trace_next(&s->trace, &batch)) {
		for (size_t i = 0; i < batch.count; i++, s->nth++) {
			const struct bc_entry *entry = &batch.entries[i];
			if (bc_find_is_over(f) && (s->nth >= s->wanted || f->options.context == 0))
				goto out;
			bool is_match = matches(s, entry) && s->found++ >= s->skip;
			if (is_silent)
				continue;
			if (is_match && !bc_find_is_over(f))
				print_match(s, entry);
			else
				pass(s, entry);
		}
	}
out:
	code = bc_exit_worse(code, s->trace.exit);
	bc_trace_close(&s->trace);
	if (console == &silent)
		fclose(silent.err);
	return code;
}

void bc_find_stream(struct bc_find *find, const char *path)
{
	struct stream s = {.find = find, .path = path};

	if (find->options.last != 0 && !bc_are_regular_files(&path, 1)) {
		bc_print_error(find->console, path, "--last needs the name of a file");
		find->exit = bc_exit_worse(find->exit, BC_EXIT_USAGE);
		return;
	}
	if (find->options.context != 0)
		s.ring = calloc(find->options.context, sizeof(*s.ring));
	if (find->options.context != 0 && s.ring == NULL) {
		find->exit = bc_print_no_memory(find->console);
		return;
	}
	if (find->options.last != 0) {
		(void)read_trace(&s, true);
		s.skip = s.found > find->options.last ? s.found - find->options.last : 0;
	}
	enum bc_exit code = read_trace(&s, find->options.is_count);
	if (find->options.is_count)
		find->matches = s.found;
	find->exit = bc_exit_worse(find->exit, code);
	free(s.ring);
}
