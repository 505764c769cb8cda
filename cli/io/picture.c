/* Converts traces among the operands of web and report to a segment in a file without a name. The
 * traces are read twice: a survey first tells which axis they have. */
#include "cli/io/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io/target.h"
#include "formats/codec/format.h"

/* A clock that goes back more often than this is that of several sources, not a restart. */
#define FALLS_MAX 1000u

/* What is known about the traces before they are converted. */
struct survey {
	uint64_t records;
	bool has_tick;
	uint64_t tick; /* of the last record that has one */
	uint64_t falls;
	bool has_ticks; /* different ones */
};

/* Prints why a file is neither a trace nor a segment if it is the only one. Of several, the others
 * may be recordings, which are drawn without it. */
static bool is_trace(const struct bc_console *console, const char *path, enum bc_format from,
	bool is_only, enum bc_exit *code)
{
	const struct bc_console silent = bc_console_silent(console);
	struct bc_file file;
	bool is = false;

	if (!bc_are_regular_files(&path, 1))
		return false;
	if (bc_file_open(&file, is_only ? console : &silent, path, from) == BC_EXIT_OK) {
		is = file.probe.format != BC_FORMAT_SEGMENT;
		bc_file_close(&file);
	} else if (is_only) {
		*code = BC_EXIT_USAGE;
	}
	return is;
}

static void add_entry(struct survey *s, const struct bc_entry *entry)
{
	const bc_traits drawn = BC_TRAIT_REFERENCE | BC_TRAIT_INSTRUCTION | BC_TRAIT_UOP;
	bc_traits traits = bc_entry_traits(entry);

	if ((traits & drawn) == 0)
		return;
	s->records++;
	if ((traits & BC_TRAIT_TIME) == 0)
		return;
	s->has_ticks = s->has_ticks || (s->has_tick && entry->tick != s->tick);
	s->falls += s->has_tick && entry->tick < s->tick;
	s->has_tick = true;
	s->tick = entry->tick;
}

/* Reads the traces without messages: converting them prints these. */
static void survey_traces(struct survey *s, const struct bc_convert_args *c)
{
	const struct bc_console silent = bc_console_silent(c->console);
	struct bc_trace trace;
	struct bc_batch batch;
	enum bc_exit code = bc_trace_open(&trace, &silent, (const char **)c->files.paths,
		c->files.count, c->from, &c->reader);

	while (code == BC_EXIT_OK && s->records <= BC_PICTURE_RECORDS &&
		bc_trace_next(&trace, &batch))
		for (size_t i = 0; i < batch.count; i++)
			add_entry(s, &batch.entries[i]);
	bc_trace_close(&trace);
}

static bool add_batch(void *context, const struct bc_batch *batch)
{
	struct bc_convert_args *c = context;

	return bc_target_add(&c->output, batch->entries, batch->count);
}

/* Converts the traces that `c` names. */
static enum bc_exit convert_traces(struct bc_convert_args *c)
{
	struct survey s = {.records = 0};
	const char *first = c->files.paths[0];
	char from[256];

	survey_traces(&s, c);
	if (s.records > BC_PICTURE_RECORDS) {
		const char *name = c->from == BC_FORMAT_UNKNOWN      ? ""
				   : c->reader.format.layout != NULL ? "LAYOUT"
								     : bc_format_name(c->from);
		return bc_print_error(c->console, first,
			"more than %s records; make a segment and draw this: buscap convert %s%s%s"
			"-O segment -o FILE.byu.lz4 %s",
			BC_GROUPED(BC_PICTURE_RECORDS), *name != '\0' ? "-I " : "", name,
			*name != '\0' ? " " : "", first);
	}
	c->target.origin.is_numbered = !s.has_ticks || s.falls > FALLS_MAX;
	if (s.falls > FALLS_MAX)
		bc_print_error(c->console, first,
			"times go back %s times: the axis is record numbers", BC_GROUPED(s.falls));
	snprintf(from, sizeof(from), c->files.count > 1 ? "%s and %d more" : "%s", first,
		c->files.count - 1);
	c->target.origin.from = from;
	return bc_convert_args_run(c, add_batch, c);
}

enum bc_exit bc_picture_open(
	struct bc_operands *o, enum bc_format from, const struct bc_format_options *format)
{
	struct bc_convert_args c;
	enum bc_exit code = bc_convert_args_init(&c, o->console, o->count);
	int fd = -1;
	int traces = 0;

	for (int i = 0; code == BC_EXIT_OK && i < o->count; i++) {
		const struct bc_operand *operand = &o->all[i];
		if (!operand->is_dir &&
			is_trace(o->console, operand->path, from, o->count == 1, &code))
			c.words[traces++] = operand->path;
	}
	if (traces != 0 && traces != o->count)
		code = bc_print_error(o->console, c.words[0],
			"a trace has another axis than recordings; draw it without them");
	if (code == BC_EXIT_OK && traces != 0) {
		c.from = from;
		c.reader.format = *format;
		c.target.format = BC_FORMAT_SEGMENT;
		c.target.origin.fd = &fd;
		c.target.origin.key = "converted_from";
		c.files = (struct bc_files){.paths = (char **)c.words, .count = traces};
		code = convert_traces(&c);
		c.files = (struct bc_files){.paths = NULL};
	}
	bc_convert_args_free(&c);
	if (fd < 0)
		return code;
	o->all[0].fd = fd;
	while (o->count > 1) {
		free(o->all[--o->count].path);
		free(o->all[o->count].id);
	}
	return code;
}
