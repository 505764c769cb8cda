/* buscap convert, which copies a trace to another format: plain use of cli/io/trace and
 * cli/io/target. Entries and runs of records go from one to the other, which counts by kind what
 * its format can't hold. */
#include "cli/term/commands.h"

#include <stdlib.h>

#include "cli/io/target.h"
#include "cli/term/options.h"
#include "formats/base/format_id.h"
#include "formats/segment/decode_ahead.h"

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
	.kind = "recording",
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

/* ---- the text of a segment's chunks
 *
 * Printed by the threads that decode them, for formats that print each record by itself. For a
 * target that can't have text this way, they only decode. */

/* Room for the text of a chunk, of which only what is used is touched. Of longer lines, the
 * reader's thread prints the rest. */
#define TEXT_BYTES (16u << 20)
#define ENTRIES    64u

struct chunk_text {
	const struct bc_printer *printer;
	void *state;
	bool has_wall;
	uint64_t clock_hz;
	uint32_t records; /* that are printed */
	size_t used;
	char out[TEXT_BYTES];
};

static void close_text(void *result)
{
	struct chunk_text *t = result;

	free(t->state);
	free(t);
}

static void *open_text(void *context)
{
	const struct bc_target *target = context;
	const struct bc_printer *printer = target->info->printer;

	if (target->segment != NULL || target->is_strict || !printer->is_by_record)
		return NULL;
	struct chunk_text *t = malloc(sizeof(*t));
	if (t == NULL)
		return NULL;
	t->printer = printer;
	t->has_wall = target->source->has_wall;
	t->clock_hz = bc_trace_clock_hz(target->source);
	t->state = bc_printer_start(printer, &target->options);
	if (t->state != NULL)
		return t;
	free(t);
	return NULL;
}

static void print_chunk(void *result, const struct bc_chunk_info *info, const uint8_t *records)
{
	struct chunk_text *t = result;
	struct bc_moment moment = bc_chunk_moment(info, t->has_wall, t->clock_hz);
	struct bc_record_run run = {.records = records,
		.count = info->records,
		.number = info->first_record,
		.tick = bc_chunk_tick_before(info, records),
		.epoch = info->epoch};
	struct bc_entry entries[ENTRIES];
	uint64_t losses[BC_TRAIT_BITS]; /* of none: see is_by_record */
	struct bc_print print = {.moment = &moment,
		.out = t->out,
		.capacity = sizeof(t->out),
		.trait_losses = losses};

	while (info->events == 0 && run.count != 0 && print.count == 0) {
		print.entries = entries;
		print.count = bc_record_run_entries(&run, entries, ENTRIES);
		if (t->printer->print(t->state, &print) != 0)
			break;
	}
	t->records = info->records - (uint32_t)(run.count + print.count);
	t->used = print.used;
}

/* ---- the command */

static bool convert_batch(void *context, const struct bc_batch *batch)
{
	struct bc_convert_args *c = context;
	const struct chunk_text *t = batch->result;
	struct bc_record_run run = batch->run;

	if (!bc_target_add(&c->output, batch->entries, batch->count))
		return false;
	if (t != NULL) { /* of the first records */
		bc_output_text(c->output.output, t->out, t->used);
		bc_record_run_skip(&run, t->records, bc_records_ticks(run.records, t->records, 0));
	}
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
	const struct bc_chunk_work work = {.open = open_text,
		.close = close_text,
		.run = print_chunk,
		.context = &c.output,
		.is_most = true};
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
