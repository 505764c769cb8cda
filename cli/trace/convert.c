#include "cli/term/commands.h"

#include "cli/io/target.h"
#include "cli/io/trace.h"
#include "cli/term/options.h"

static const struct bc_usage_option options[] = {
	{'I', "input-format", "FMT", "format-read",
		"input format and options, such as laplace:endian=big (default: detected)"},
	{'i', "input", "FILE", "file", "read this file too"},
	{'O', "output-format", "FMT", "format-write",
		"output format and options, such as bcp1:map=pages,seed=1"},
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
	.options = options,
	.more = "Whatever the output format can't hold is counted by kind and reported on standard "
		"error.",
	.exits = "0 ok, 1 failed (with --strict: something would be lost), 2 wrong usage or no "
		 "such conversion, 3 damaged or malformed input: the intact parts were written.",
	.example = "valgrind --tool=lackey --trace-mem=yes --log-fd=9 9>&1 >/dev/null ls |\n       "
		   "      buscap convert -I lackey -O bcp1:map=pages,seed=1 -o ls.bcp1",
};

static enum bc_exit run_convert(struct bc_convert_args *c)
{
	struct bc_trace trace;
	struct bc_target target;
	struct bc_batch batch;
	enum bc_exit code = bc_trace_open(&trace, c->console, (const char **)c->files.paths,
		c->files.count, c->from, &c->reader);

	if (code == BC_EXIT_OK)
		code = bc_target_check(c->console, &trace, c->target.format);
	if (code == BC_EXIT_OK)
		code = bc_target_open(&target, c->console, &c->target, &trace);
	if (code != BC_EXIT_OK)
		goto out;
	bc_trace_show_progress(&trace, NULL);
	while (bc_trace_next(&trace, &batch)) {
		if (!bc_target_add(&target, batch.entries, batch.count))
			break;
		bc_target_flush_if_idle(&target);
	}
	bc_trace_hide_progress(&trace);
	trace.exit = bc_exit_worse(trace.exit, c->files.exit);
	bc_target_end_source(&target, trace.exit);
	code = bc_target_close(&target);
	code = bc_exit_worse(code, trace.exit);
out:
	bc_trace_close(&trace);
	return code;
}

int bc_cmd_convert(const struct bc_console *console, int argc, char **argv)
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
	code = bc_convert_args_operands(&c, argc, argv, BC_FILES_SORTED);
	if (code == BC_EXIT_OK && c.target.format == BC_FORMAT_UNKNOWN)
		code = bc_print_usage_error(console, "-O is required: the output format");
	if (code == BC_EXIT_OK)
		code = run_convert(&c);
out:
	bc_convert_args_free(&c);
	return code;
}
