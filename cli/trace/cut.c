/* buscap cut: passes the batches of a trace to a selection (cli/io/selection.h), and what that
 * keeps to a target (cli/io/target.h). Then it says if nothing was kept, or what did not fit. */
#include "cli/term/commands.h"

#include <stdlib.h>

#include "cli/io/no_match.h"
#include "cli/io/selection.h"
#include "cli/io/target.h"
#include "cli/term/options.h"

static const struct bc_usage_option options[] = {
	BC_FILTER_OPTIONS,
	BC_NAME_OPTIONS,
	{'I', "input-format", "FMT", "format-read", "input format and options (default: detected)"},
	{'O', "output-format", "FMT", "format-write",
		"output format and options (default: what the name of the output ends in, such as "
		".csv, else the input format)"},
	BC_CONVERT_ARGS_OPTIONS,
	{'n', "limit", "N", "number", "only the first N of these records, or lines of text"},
	{0},
};

const struct bc_usage bc_cut_usage = {
	.name = "cut",
	.operands = "[FILE|DIR|ID]...",
	.kind = "recording",
	.summary = "write part of a trace",
	.text = "Writes the records that match all of the options. Without a file, or with \"-\", "
		"reads standard input. Of a sealed segment, only chunks that may contain a match "
		"are read.",
	.options = options,
	.more = "A range is A-B, A-, -B or A. Times stay correct: the ticks of dropped records are "
		"added to the next record. An output segment is a new recording; its metadata says "
		"what it was cut from, and it has the gaps of the source.",
	.exits = "0 ok, even if nothing matches, 1 failed, 2 wrong usage, 3 damaged or malformed "
		 "input: the intact parts were written.",
	.example = "buscap cut --addr b8000-bffff --type write -o screen.byu.lz4 *.byu.lz4",
};

struct cut {
	const struct bc_console *console;
	struct bc_selection selection;
	struct bc_name_map *names; /* for --region; NULL: the names of a PC */
	struct bc_convert_args args;
	uint64_t left; /* entries to write at most, without events */
};

static bool add_entries(void *context, const struct bc_entry *entries, size_t count)
{
	struct cut *c = context;

	size_t n = 0;

	/* The entries of a line belong together; the last may go on after a full batch. */
	for (; n < count && (c->left != 0 || entries[n].is_continued); n++)
		c->left -= entries[n].kind != BC_ENTRY_EVENT && !entries[n].is_continued;
	return bc_target_add(&c->args.output, entries, n) &&
	       (c->left != 0 || (n == count && n == BC_SELECTION_ENTRIES));
}

static bool add_run(void *context, struct bc_record_run run)
{
	struct cut *c = context;

	run.count = run.count < c->left ? run.count : (size_t)c->left;
	c->left -= run.count;
	return bc_target_add_run(&c->args.output, run) && c->left != 0;
}

static void print_summary(const struct cut *c)
{
	const struct bc_selection *selection = &c->selection;
	const struct bc_target *output = &c->args.output;
	const struct bc_files *files = &c->args.files;
	bool has_events = selection->events != 0 && (output->info->traits & BC_TRAIT_EVENT) != 0;
	char text[BC_NO_MATCH_MAX];

	if (selection->kept == 0 && output->exit == BC_EXIT_OK)
		bc_print_error(c->console, NULL, "no record matches, %s%s",
			has_events ? "only gaps, marks and triggers were written"
				   : "the output is empty",
			bc_no_match_text(text, c->console, &selection->args,
				(const char *const *)files->paths, files->count, c->args.from,
				&c->args.reader.format));
	if (selection->long_deltas != 0)
		bc_print_error(c->console, NULL,
			"%s delta%s across dropped records written as 0xffffffff: too long for %s",
			BC_GROUPED(selection->long_deltas), bc_plural(selection->long_deltas),
			bc_format_name(output->format));
}

static bool on_cut_batch(void *context, const struct bc_batch *batch)
{
	struct cut *c = context;

	c->selection.to = c->args.output.format;
	return bc_selection_add(&c->selection, batch);
}

static void prepare_args(struct cut *c)
{
	struct bc_selection *selection = &c->selection;

	selection->console = c->console;
	selection->trace = &c->args.source;
	selection->add = add_entries;
	selection->add_run = add_run;
	selection->context = c;
	bc_filter_args_init(&selection->args);
	c->args.filter = &selection->args;
	c->args.target.origin = (struct bc_origin){
		.key = "cut_from", .how = selection->args.selection};
}

static enum bc_exit read_and_cut(struct cut *c, int argc, char **argv)
{
	struct bc_options o;
	enum bc_exit code = BC_EXIT_OK;
	int letter;

	bc_options_start(&o, c->console, &bc_cut_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		bool ok = true;
		if (bc_name_args_has(letter))
			code = bc_name_args_add(&c->names, c->console, letter);
		else if (letter == 'n')
			ok = bc_option_count(c->console, "--limit", 1, UINT64_MAX, &c->left);
		else
			ok = bc_convert_args_option(&c->args, letter) ||
			     bc_filter_args_option(&c->selection.args, c->console, letter);
		if (!ok || code != BC_EXIT_OK)
			return ok ? code : o.exit;
	}
	if (!bc_filter_args_finish(&c->selection.args, c->console, c->names, &code))
		return code;
	bc_selection_read(&c->selection, &c->args.reader);
	code = bc_convert_args_operands(&c->args, argc, argv, BC_FILES_SORTED);
	if (code != BC_EXIT_OK)
		return code;
	code = bc_convert_args_run(&c->args, on_cut_batch, c);
	if (c->args.has_run)
		print_summary(c);
	return code;
}

enum bc_exit bc_cmd_cut(const struct bc_console *console, int argc, char **argv)
{
	struct cut *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return bc_print_no_memory(console);
	c->console = console;
	c->left = UINT64_MAX;
	enum bc_exit code = bc_convert_args_init(&c->args, console, argc);
	if (code == BC_EXIT_OK) {
		prepare_args(c);
		code = read_and_cut(c, argc, argv);
	}
	bc_convert_args_free(&c->args);
	bc_name_map_close(c->names);
	free(c);
	return code;
}
