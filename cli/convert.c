#include "cli/convert.h"

#include <stdlib.h>
#include <string.h>

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
	"  -O, --output-format FMT  the format to write, with its options: bcp1:map=pages,seed=1\n"
	"  -o, --output FILE        the file to write, instead of standard output; a segment wants "
	"one that\n"
	"                           isn't there yet, any other is replaced\n"
	"      --strict             refuse what the target can't hold, instead of counting it\n"
	"  -h, --help               this text\n"
	"\n"
	"What the target can't hold is counted, by kind, on standard error.\n"
	"\n"
	"Exit code: 0 ok, 1 failed (with --strict: something would be lost), 2 wrong usage or no "
	"such\n"
	"conversion, 3 damaged or malformed: what is good was written.\n"
	"\n"
	"Example: valgrind --tool=lackey --trace-mem=yes --log-fd=9 9>&1 >/dev/null ls |\n"
	"             buscap convert -I lackey -O bcp1:map=pages,seed=1 -o ls.bcp1\n";

enum { OPTION_STRICT = 1000 };

static const struct option options[] = {
	{"input-format", required_argument, NULL, 'I'},
	{"input", required_argument, NULL, 'i'},
	{"output-format", required_argument, NULL, 'O'},
	{"output", required_argument, NULL, 'o'},
	{"strict", no_argument, NULL, OPTION_STRICT},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

struct wanted {
	enum bc_format from;
	struct bc_reader_options reader;
	struct bc_target_options target;
	const char **paths;
	int count;
};

static bool read_option(const struct bc_console *console, int letter, struct wanted *w)
{
	switch (letter) {
	case 'I':
		return bc_option_read_format(console, "-I", &w->from, &w->reader.format);
	case 'i':
		w->paths[w->count++] = optarg;
		return true;
	case 'O':
		return bc_option_write_format(console, "-O", &w->target.format, &w->target.options);
	case 'o':
		w->target.path = optarg;
		return true;
	case OPTION_STRICT:
		w->target.is_strict = true;
		return true;
	default:
		return false;
	}
}

static enum bc_exit run(const struct bc_console *console, struct wanted *w)
{
	struct bc_trace trace;
	struct bc_target target;
	struct bc_batch batch;
	enum bc_exit code = bc_trace_open(&trace, console, w->paths, w->count, w->from, &w->reader);

	if (code == BC_EXIT_OK)
		code = bc_target_check(console, &trace, w->target.format);
	if (code == BC_EXIT_OK)
		code = bc_target_open(&target, console, &w->target, &trace);
	if (code != BC_EXIT_OK)
		goto out;
	bc_trace_show_progress(&trace, NULL);
	while (bc_trace_next(&trace, &batch))
		if (!bc_target_put(&target, batch.entries, batch.count))
			break;
	bc_trace_hide_progress(&trace);
	code = bc_target_close(&target);
	code = bc_exit_worse(code, trace.exit);
out:
	bc_trace_close(&trace);
	return code;
}

int bc_cmd_convert(const struct bc_console *console, int argc, char **argv)
{
	struct wanted w = {
		.reader = {.format = bc_format_options_default()},
		.target = {.options = bc_format_options_default()},
		.paths = calloc((size_t)argc + 1, sizeof(*w.paths)),
	};
	struct bc_options o = {.console = console,
		.argc = argc,
		.argv = argv,
		.brief = "I:i:O:o:h",
		.all = options};
	enum bc_exit code = BC_EXIT_USAGE;
	int letter;

	if (w.paths == NULL) {
		bc_complain(console, NULL, "not enough memory");
		return BC_EXIT_FAILED;
	}
	while ((letter = bc_options_next(&o)) != -1) {
		if (letter == 'h')
			code = bc_print_help(console, help);
		if (letter == 'h' || !read_option(console, letter, &w))
			goto out;
	}
	for (int i = optind; i < argc; i++)
		w.paths[w.count++] = argv[i];
	if (w.count == 0)
		w.paths[w.count++] = "-";
	if (w.target.format == BC_FORMAT_UNKNOWN)
		bc_complain_usage(console, "-O is missing: the format to write");
	else
		code = run(console, &w);
out:
	free(w.paths);
	return code;
}
