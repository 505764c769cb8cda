/* buscap convert, which copies a trace to another format: plain use of cli/io/trace and
 * cli/io/target. Entries and runs of records go from one to the other, which counts by kind what
 * its format can't hold. */
#include "cli/term/commands.h"

#include "cli/io/chunk_text.h"
#include "cli/io/target.h"
#include "cli/term/options.h"
#include "formats/base/format_id.h"

static const struct bc_usage_option convert_options[] = {
	{'I', "input-format", "FMT", "format-read",
		"input format and options, such as laplace:endian=big (default: detected)"},
	{'i', "input", "FILE", "file", "read this file before the operands; can be repeated"},
	{'O', "output-format", "FMT", "format-write",
		"output format and options, such as bcp1:map=pages,seed=1 (default: what the "
		"name of the output ends in, such as .csv)"},
	BC_CONVERT_ARGS_OPTIONS,
	{0},
};

const struct bc_usage bc_convert_usage = {
	.name = "convert",
	.required = "-O FMT",
	.operands = "[FILE|DIR|ID]...",
	.kind = "file",
	.summary = "convert a trace to another format",
	.text = "Converts traces from one format to another. Without a file, or with \"-\", reads "
		"standard input. `buscap formats` lists the formats and their options; "
		"docs/formats.md describes the conversions.",
	.options = convert_options,
	.more = "Whatever the output format can't hold is counted by kind and reported on standard "
		"error.",
	.exits = "0 ok, 1 failed (with --strict: something would be lost), 2 wrong usage or no "
		 "such conversion, 3 damaged or malformed input: the intact parts were written.",
	.example = "valgrind --tool=lackey --trace-mem=yes --log-fd=9 9>&1 >/dev/null ls |\n       "
		   "      buscap convert -I lackey -O bcp1:map=pages,seed=1 -o ls.bcp1",
};

static bool convert_batch(void *context, const struct bc_batch *batch)
{
	struct bc_convert_args *c = context;

	struct bc_record_run run = batch->run;

	if (!bc_target_add(&c->output, batch->entries, batch->count))
		return false;
	if (batch->result != NULL)
		bc_chunk_text_write(batch->result, &c->output, &run);
	return bc_target_add_run(&c->output, run);
}

enum bc_exit bc_cmd_convert(const struct bc_console *console, int argc, char **argv)
{
	struct bc_convert_args c;
	struct bc_options o;
	enum bc_exit code = bc_convert_args_init(&c, console, argc);
	int letter;

	if (code != BC_EXIT_OK)
		return code;
	bc_options_start(&o, console, &bc_convert_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		if (letter == 'i') {
			c.words[c.word_count++] = optarg;
		} else if (!bc_convert_args_option(&c, letter)) {
			code = o.exit;
			goto out;
		}
	}
	const struct bc_chunk_work work = bc_chunk_text_work(&c.output);
	c.reader.work = &work;
	c.reader.as_runs = !c.target.is_strict; /* see bc_target_add_run() */
	code = bc_convert_args_operands(&c, argc, argv, BC_FILES_SORTED);
	if (code == BC_EXIT_OK && c.target.format == BC_FORMAT_UNKNOWN)
		code = bc_print_usage_error(
			console, "no output format given; use -O, or -o with a name such as x.csv");
	if (code == BC_EXIT_OK)
		code = bc_convert_args_run(&c, convert_batch, &c);
out:
	bc_convert_args_free(&c);
	return code;
}
