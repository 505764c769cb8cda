/* Runs of records go to the printer as they are, if it takes them. Everything else becomes entries,
 * which pass through two stages. The converter (formats/codec/format.h) drops or adapts what the
 * format can't hold. The format's printer then writes text into the output's buffer, or a segment
 * target takes the entries. Both count what they lose, by trait; --strict makes the first loss an
 * error. The last part has the options and the main loop of the commands that convert. */
#include "cli/io/target.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/io/client.h"
#include "cli/term/options.h"

enum bc_exit bc_target_check(
	const struct bc_console *console, const struct bc_trace *trace, enum bc_format to)
{
	enum bc_format from = trace->format;
	uint32_t lost;

	if (from == to ||
		bc_traits_conversion(bc_trace_traits(trace), to, &lost) != BC_CONVERSION_REFUSED)
		return BC_EXIT_OK;
	bc_print_error(console, NULL, "can't convert %s to %s: %s", bc_format_name(from),
		bc_format_name(to), bc_format_refusal(from, to));
	return BC_EXIT_USAGE;
}

static struct bc_print start_print(struct bc_target *t)
{
	char *out = bc_output_reserve(t->output, BC_PRINT_MAX);

	return (struct bc_print){.moment = t->moment,
		.out = out,
		.capacity = BC_OUTPUT_BYTES - t->output->used,
		.trait_losses = t->converter.trait_losses};
}

static void finish_print(struct bc_target *t, const struct bc_print *print)
{
	t->output->used += print->used;
	if (print->same_bytes != 0)
		bc_output_text(t->output, print->same, print->same_bytes);
	t->splits += print->splits;
}

static enum bc_exit open_segment(struct bc_target *t, const struct bc_target_options *options)
{
	struct bc_format_options format_options = options->options;
	struct bc_origin origin = options->origin;
	enum bc_frame_format frames = BC_FRAMES_LZ4;
	bool is_named = t->path != NULL && bc_frames_by_name(&frames, t->path, strlen(t->path));
	enum bc_level level = format_options.has_compression ? format_options.compression
							     : bc_frames_info[frames].level;

	if (t->path == NULL && origin.fd == NULL)
		return bc_print_usage_error(
			t->console, "a segment can't be written to standard output; use -o");
	if (is_named && bc_level_frames(level) != frames) {
		bc_print_error(t->console, t->path, "the name must end in %s for this compression",
			bc_frames_info[bc_level_frames(level)].suffix);
		return BC_EXIT_USAGE;
	}
	if (origin.key == NULL)
		origin.key = "converted_from";
	t->is_picture = origin.fd != NULL;
	bc_entry_converter_init(&t->converter, t->format, &format_options);
	return bc_segment_target_open(
		&t->segment, t->console, t->path, format_options.clock_hz, level, &origin);
}

static enum bc_exit open_own(struct bc_target *t)
{
	if (bc_output_file_open(&t->file, t->console, t->path, t->source->paths,
		    t->source->count) != BC_EXIT_OK)
		return BC_EXIT_FAILED;
	if (!bc_output_open_fd(&t->own, t->file.fd)) {
		bc_print_no_memory(t->console);
		bc_output_file_close(&t->file, t->console, NULL, false);
		return BC_EXIT_FAILED;
	}
	return BC_EXIT_OK;
}

enum bc_exit bc_target_open(struct bc_target *t, const struct bc_console *console,
	const struct bc_target_options *options, const struct bc_trace *source)
{
	const struct bc_format_info *info = bc_format_info(options->format);
	bool is_console = options->path == NULL || strcmp(options->path, "-") == 0;
	struct bc_format_options format_options = options->options;

	*t = (struct bc_target){.console = console,
		.path = is_console ? NULL : options->path,
		.format = options->format,
		.info = info,
		.is_strict = options->is_strict,
		.source = source,
		.moment = &source->moment,
		.own = {.fd = -1},
		.output = options->shared != NULL ? options->shared->output : &t->own};
	if (options->format == BC_FORMAT_SEGMENT)
		return open_segment(t, options);
	if (!info->can_write) {
		bc_print_error(console, NULL, "%s can only be read; choose another format with -O",
			bc_format_name(options->format));
		return BC_EXIT_USAGE;
	}
	if (is_console && !info->is_text && isatty(console->out))
		return bc_print_usage_error(
			console, "won't write binary data to a terminal; use -o");
	format_options.is_part = options->origin.key != NULL;
	format_options.source_traits = bc_trace_traits(source) | options->source_traits;
	format_options.source_is_segment = source->format == BC_FORMAT_SEGMENT;
	format_options.source_has_wall |= source->has_wall;
	if (format_options.clock_hz == 0)
		format_options.clock_hz = bc_trace_clock_hz(source);
	bc_entry_converter_init(&t->converter, t->format, &format_options);
	t->options = format_options;
	t->state = bc_printer_start(info->printer, &format_options);
	if (t->state == NULL)
		bc_print_no_memory(console);
	if (t->state == NULL || (t->output == &t->own && open_own(t) != BC_EXIT_OK)) {
		free(t->state);
		return BC_EXIT_FAILED;
	}
	if (info->printer->head != NULL) {
		struct bc_print print = start_print(t);
		info->printer->head(t->state, &print);
		finish_print(t, &print);
	}
	return BC_EXIT_OK;
}

/* Prints why the output ends before an entry, unless `why` is empty. Returns false. */
static bool stop_before(struct bc_target *t, uint64_t number, const char *why)
{
	char place[BC_PLACE_TEXT_MAX];

	if (why[0] != '\0')
		bc_print_error(t->console, NULL, "%s: %s; the output ends before this entry",
			bc_trace_place(t->source, number, place), why);
	t->exit = bc_exit_worse(t->exit, BC_EXIT_FAILED);
	return false;
}

/* Returns false after an error if --strict forbids losing these traits of an entry. */
static bool may_lose(struct bc_target *t, const struct bc_entry *entry, bc_traits traits)
{
	char why[160];

	if (!t->is_strict || traits == 0)
		return true;
	snprintf(why, sizeof(why), "%s would lose the %s, which --strict forbids",
		bc_format_name(t->format), bc_trait_name(traits & (0 - traits)));
	return stop_before(t, entry->number, why);
}

static bool write_entries(struct bc_target *t, const struct bc_entry *run, size_t count)
{
	char err[160];

	if (t->segment != NULL) {
		size_t n = bc_segment_target_add(t->segment, run, count, t->source, t->moment, err);
		return n == count || stop_before(t, run[n].number, err);
	}
	for (size_t i = 0; i < count; i++)
		t->kept_lines += run[i].kind == BC_ENTRY_LINE;
	while (count != 0 && !bc_output_failed(t->output)) {
		struct bc_print print = start_print(t);
		print.entries = run;
		print.count = count;
		int rc = t->info->printer->print(t->state, &print);
		finish_print(t, &print);
		if (!may_lose(t, print.loser, print.lost))
			return false;
		if (rc != 0)
			return stop_before(t, print.entries->number, print.err);
		run = print.entries;
		count = print.count;
	}
	return !bc_output_failed(t->output);
}

bool bc_target_add(struct bc_target *t, const struct bc_entry *entries, size_t count)
{
	const struct bc_entry *run;
	size_t n;

	bc_entry_convert_batch(&t->converter, entries, count);
	while ((n = bc_entry_converter_next(&t->converter, &run)) != 0) {
		if (t->converter.lost != NULL &&
			!may_lose(t, t->converter.lost, t->converter.lost_traits))
			return false;
		if (!write_entries(t, run, n))
			return false;
	}
	if (t->converter.lost != NULL && !may_lose(t, t->converter.lost, t->converter.lost_traits))
		return false;
	t->converter.lost = NULL;
	return true;
}

/* A record that the printer doesn't take as part of a run is converted to an entry; more than one
 * at a time while it takes none. With --strict all are, because the first loss must be known. */
#define RUN_ENTRIES 64u

bool bc_target_add_run(struct bc_target *t, struct bc_record_run run)
{
	bool has_runs = t->segment == NULL && t->info->printer->print_run != NULL && !t->is_strict;
	struct bc_entry entries[RUN_ENTRIES];
	size_t max = RUN_ENTRIES;

	while (run.count != 0) {
		size_t before = run.count;
		if (has_runs) {
			struct bc_print print = start_print(t);
			t->info->printer->print_run(t->state, &print, &run);
			finish_print(t, &print);
			max = run.count != before     ? 1
			      : max < RUN_ENTRIES / 2 ? 2 * max
						      : RUN_ENTRIES;
		}
		size_t n = bc_record_run_entries(&run, entries, max);
		if (!bc_target_add(t, entries, n))
			return false;
	}
	return !bc_output_failed(t->output);
}

/* Reports the losses of one trait. */
static void report_trait(
	const struct bc_target *t, uint32_t trait, uint64_t reduced, uint64_t left_out)
{
	const char *entries = reduced == 1 ? "entry" : "entries";
	char how[96] = "";

	if ((trait & BC_TYPES & ~(uint32_t)t->info->traits) != 0)
		return; /* report_types() has them */
	if (trait == BC_TRAIT_LETTER)
		left_out = 0; /* likewise */
	/* The format has this trait, but some values don't fit. */
	if (reduced != 0 && trait == BC_TRAIT_TIME && bc_dialect_bytes(t->format) != 0) {
		bc_print_error(t->console, NULL,
			"%s has only the times between records: lost the absolute time of %s %s",
			bc_format_name(t->format), BC_GROUPED(reduced), entries);
		reduced = 0;
	} else if (reduced != 0 && (trait & t->info->traits) != 0) {
		bc_print_error(t->console, NULL, "%s can't hold every %s: lost in %s %s",
			bc_format_name(t->format), bc_trait_name(trait), BC_GROUPED(reduced),
			entries);
		reduced = 0;
	}
	if (reduced != 0)
		snprintf(how, sizeof(how), "%s %s %s",
			(trait & BC_FIELDS) != 0 ? "omitted in" : "written differently in",
			BC_GROUPED(reduced), entries);
	size_t used = strlen(how);
	if (left_out != 0)
		snprintf(how + used, sizeof(how) - used, "%s%s dropped", used != 0 ? ", " : "",
			BC_GROUPED(left_out));
	if (how[0] != '\0')
		bc_print_error(t->console, NULL, "%s has no %s: %s", bc_format_name(t->format),
			bc_trait_name(trait), how);
}

/* Reports types that became others, or were left out. */
static void report_types(const struct bc_target *t)
{
	struct bc_byte_buffer text = {.max = 4096};
	char item[96];
	char number[8];

	for (unsigned type = 0; type < BC_REF_TYPES; type++) {
		const char *name = bc_ref_type_name(type);
		uint64_t changed = t->converter.changed_types[type];
		uint64_t left_out = t->converter.left_out_types[type];
		if (changed == 0 && left_out == 0)
			continue;
		snprintf(number, sizeof(number), "0x%02x", type);
		int n = snprintf(item, sizeof(item), "%s%s %s%s%s (%s)", text.used != 0 ? ", " : "",
			name != NULL ? name : number, changed != 0 ? "written as " : "left out",
			changed != 0 ? bc_ref_type_name((unsigned)bc_ref_type_plain(type)) : "",
			type == BC_REF_MODIFY ? " and MEMWRITE" : "",
			BC_GROUPED(changed + left_out));
		bc_byte_buffer_add(&text, item, (size_t)n);
	}
	if (text.used != 0)
		bc_print_error(t->console, NULL, "%s", text.bytes);
	bc_byte_buffer_free(&text);
}

static void report_losses(const struct bc_target *t)
{
	report_types(t);
	for (unsigned i = 0; i < BC_TRAIT_BITS && !t->is_picture; i++)
		report_trait(t, 1u << i, t->converter.trait_losses[i], t->converter.left_out[i]);
	if (t->splits != 0)
		bc_print_error(t->console, NULL,
			"%s reference%s split into samples of at most 8 aligned bytes",
			BC_GROUPED(t->splits), t->splits == 1 ? " was" : "s were");
	if (t->kept_lines != 0)
		bc_print_error(t->console, NULL, "%s uninterpreted line%s written unchanged",
			BC_GROUPED(t->kept_lines), bc_plural(t->kept_lines));
}

void bc_target_end_source(struct bc_target *t, enum bc_exit exit)
{
	if (exit != BC_EXIT_FAILED)
		return;
	bc_print_error(t->console, t->path, "incomplete: part of the input could not be read");
	t->exit = bc_exit_worse(t->exit, exit);
}

enum bc_exit bc_target_close(struct bc_target *t)
{
	const struct bc_printer *printer = t->info->printer;
	bool is_over = false;

	if (t->segment != NULL) {
		if (t->exit == BC_EXIT_OK)
			t->exit = bc_segment_target_seal(t->segment, t->source);
		else
			bc_segment_target_abandon(t->segment);
		t->segment = NULL;
		report_losses(t);
		return t->exit;
	}
	while (printer->tail != NULL && !is_over && !bc_output_failed(t->output)) {
		struct bc_print print = start_print(t);
		is_over = printer->tail(t->state, &print);
		finish_print(t, &print);
	}
	if (t->output == &t->own)
		t->exit = bc_exit_worse(t->exit,
			bc_output_file_close(&t->file, t->console, &t->own, t->exit == BC_EXIT_OK));
	if (printer->free != NULL)
		printer->free(t->state);
	free(t->state);
	report_losses(t);
	return t->exit;
}

enum bc_exit bc_convert_args_init(
	struct bc_convert_args *c, const struct bc_console *console, int argc)
{
	*c = (struct bc_convert_args){.console = console,
		.reader = {.format = bc_format_options_default(), .index_fd = -1},
		.target = {.options = bc_format_options_default()},
		.words = calloc((size_t)argc + 1, sizeof(*c->words))};
	if (c->words != NULL)
		return BC_EXIT_OK;
	return bc_print_no_memory(console);
}

void bc_convert_args_free(struct bc_convert_args *c)
{
	bc_files_free(&c->files);
	bc_operands_close(&c->operands);
	free(c->words);
	c->words = NULL;
}

bool bc_convert_args_option(struct bc_convert_args *c, int letter)
{
	switch (letter) {
	case 'I':
		return bc_option_read_format(c->console, "-I", &c->from, &c->reader.format);
	case 'O':
		return bc_option_write_format(
			c->console, "-O", &c->target.format, &c->target.options);
	case 'o':
		c->target.path = optarg;
		return true;
	case BC_CONVERT_ARGS_STRICT:
		return c->target.is_strict = true;
	default:
		return false;
	}
}

enum bc_exit bc_convert_args_operands(
	struct bc_convert_args *c, int argc, char **argv, unsigned how)
{
	if (c->target.format == BC_FORMAT_UNKNOWN && c->target.path != NULL)
		c->target.format = bc_format_by_path(c->target.path);
	for (int i = optind; i < argc; i++)
		c->words[c->word_count++] = argv[i];
	return bc_operands_read(&c->operands, &c->files, c->console, c->words, c->word_count,
		how | BC_FILES_CHECKED | BC_FILES_STDIN);
}

enum bc_exit bc_convert_args_run(struct bc_convert_args *c,
	bool (*on_batch)(void *context, const struct bc_batch *batch), void *context)
{
	struct bc_trace *source = &c->source;
	struct bc_batch batch;
	bool is_more = true;
	enum bc_exit code = bc_trace_open(source, c->console, (const char **)c->files.paths,
		c->files.count, c->from, &c->reader);

	if (code == BC_EXIT_OK && c->filter != NULL &&
		!bc_filter_args_check(c->filter, c->console, source))
		code = BC_EXIT_USAGE;
	if (c->target.format == BC_FORMAT_UNKNOWN)
		c->target.format = source->format;
	if (code == BC_EXIT_OK)
		code = bc_target_check(c->console, source, c->target.format);
	if (code == BC_EXIT_OK)
		code = bc_target_open(&c->output, c->console, &c->target, source);
	if (code == BC_EXIT_OK) {
		bc_trace_show_progress(source);
		while (is_more && bc_trace_next(source, &batch)) {
			is_more = on_batch(context, &batch);
			if (c->output.segment == NULL && source->is_open &&
				bc_file_would_wait(&source->file))
				bc_output_flush(c->output.output);
		}
		source->exit = bc_exit_worse(source->exit, c->files.exit);
		bc_target_end_source(&c->output, source->exit);
		code = bc_exit_worse(bc_target_close(&c->output), source->exit);
		c->has_run = true;
	}
	bc_trace_close(source);
	return code;
}
