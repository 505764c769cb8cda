#include "cli/convert.h"

#include "cli/in_out.h"
#include "cli/options.h"
#include "cli/target.h"
#include "cli/trace.h"

static const char help[] =
	"usage: buscap convert [OPTION]... -O FMT [FILE]...\n"
	"\n"
	"Reads traces of one format and writes them as another. Without files, and for \"-\", it "
	"reads standard\n"
	"input. `buscap formats` lists the formats and their options; docs/formats.md says what of "
	"each can\n"
	"stand in which.\n"
	"\n"
	"  -I, --input-format FMT   the files' format, with its options: laplace:endian=big; it is "
	"told by\n"
	"                           content where that is certain\n"
	"  -i, --input FILE         one more file to read\n"
	"  -O, --output-format FMT  the format to write, with its options: "
	"bcp1:map=pages,seed=1\n" BC_IN_OUT_HELP "\n"
	"What the target can't hold is counted, by kind, on standard error.\n"
	"\n"
	"Exit code: 0 ok, 1 failed (with --strict: something would be lost), 2 wrong usage or no "
	"such\n"
	"conversion, 3 damaged or malformed: what is good was written.\n"
	"\n"
	"Example: valgrind --tool=lackey --trace-mem=yes --log-fd=9 9>&1 >/dev/null ls |\n"
	"             buscap convert -I lackey -O bcp1:map=pages,seed=1 -o ls.bcp1\n";

static const struct option options[] = {
	{"input", required_argument, NULL, 'i'},
	BC_IN_OUT_OPTIONS,
	{NULL, 0, NULL, 0},
};

static enum bc_exit run(struct bc_in_out *c)
{
	struct bc_trace trace;
	struct bc_target target;
	struct bc_batch batch;
	enum bc_exit code = bc_trace_open(
		&trace, c->console, c->paths, c->count, c->from, &c->reader);

	if (code == BC_EXIT_OK)
		code = bc_target_check(c->console, &trace, c->target.format);
	if (code == BC_EXIT_OK)
		code = bc_target_open(&target, c->console, &c->target, &trace);
	if (code != BC_EXIT_OK)
		goto out;
	bc_trace_show_progress(&trace, NULL);
	while (bc_trace_next(&trace, &batch)) {
		if (!bc_target_put(&target, batch.entries, batch.count))
			break;
		bc_target_flush_if_idle(&target);
	}
	bc_trace_hide_progress(&trace);
	bc_target_end_source(&target, trace.exit);
	code = bc_target_close(&target);
	code = bc_exit_worse(code, trace.exit);
out:
	bc_trace_close(&trace);
	return code;
}

int bc_cmd_convert(const struct bc_console *console, int argc, char **argv)
{
	struct bc_in_out c;
	struct bc_options o = {.console = console,
		.argc = argc,
		.argv = argv,
		.brief = "i:" BC_IN_OUT_BRIEF,
		.all = options};
	enum bc_exit code = bc_in_out_init(&c, console, argc);
	int letter;

	if (code != BC_EXIT_OK)
		return code;
	code = BC_EXIT_USAGE;
	while ((letter = bc_options_next(&o)) != -1) {
		if (letter == 'h')
			code = bc_print_help(console, help);
		else if (letter == 'i')
			c.paths[c.count++] = optarg;
		if (letter == 'h' || (letter != 'i' && !bc_in_out_option(&c, letter)))
			goto out;
	}
	code = bc_in_out_operands(&c, argc, argv);
	if (code == BC_EXIT_OK && c.target.format == BC_FORMAT_UNKNOWN)
		code = bc_complain_usage(console, "-O is missing: the format to write");
	if (code == BC_EXIT_OK)
		code = run(&c);
out:
	bc_in_out_free(&c);
	return code;
}
