/* buscap info: what each file has, and for directories a line or JSON object for each recording.
 * The files come in the order of their segments, so what is missing lies between two of them. */
#include "cli/term/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/io/file.h"
#include "cli/io/hosts.h"
#include "cli/io/operands.h"
#include "cli/io/trace.h"
#include "cli/term/json_path.h"
#include "cli/term/options.h"
#include "cli/term/text.h"
#include "cli/trace/survey.h"
#include "formats/base/json.h"
#include "formats/base/text.h"
#include "formats/codec/layout.h"
#include "formats/recording/recording_summary.h"
#include "formats/recording/segments.h"

static const struct bc_usage_option options[] = {
	{'j', "json", NULL, NULL, "print one JSON object per file or recording, each on a line"},
	{'I', "input-format", "FMT", "format-read", "input format and options (default: detected)"},
	BC_HOSTS_OPTIONS,
	{0},
};

const struct bc_usage bc_info_usage = {
	.name = "info",
	.operands = "[FILE|DIR|ID]...",
	.kind = "recording",
	.summary = "describe files and recordings",
	.text = "Describes each file: its format and contents; then, for each directory or id, "
		"prints a line for each recording. Without an operand, describes the daemon's "
		"directory. Of a sealed segment, only the header and the index are read; buscap "
		"verify checks the rest.",
	.options = options,
	.exits = "0 ok, 1 failed, 2 wrong usage, 3 damaged, torn or incomplete, or a loss "
		 "that no gap reports, 6 can't reach the daemon.",
	.example = "buscap info --json *.byu.lz4 | jq .records",
};

struct job {
	const struct bc_console *console;
	struct bc_output output;
	bool is_json;
	enum bc_format format;
	struct bc_format_options options; /* of the format */
	struct bc_segment_span before;    /* the last segment so far */
};

static const char *format_name(const struct job *job, const struct bc_file *file)
{
	return bc_layout_format_name(file->probe.format,
		job->options.layout != NULL ? job->options.layout : file->probe.layout);
}

/* Prints an object with the members of all formats and those of `more`, which is released. */
static void print_json(struct job *job, const struct bc_file *file, json_t *more)
{
	enum bc_packing packing = file->probe.packing;

	if (file->probe.format == BC_FORMAT_SEGMENT && packing == BC_PACKING_NONE)
		packing = file->probe.frames;
	json_t *object = BC_JSON_OBJECT({"file", bc_json_text(file->name)},
		{"format", json_string(format_name(job, file))},
		{"lz4", json_boolean(packing == BC_PACKING_LZ4)},
		{"packing", json_string(bc_packing_name(packing))});

	bc_output_json_value(&job->output, bc_json_merge(object, more));
}

/* Prints the prefix "FILE: ". */
static void print_name(struct job *job, const struct bc_file *file)
{
	bc_output_safe(&job->output, file->name);
	bc_output_text(&job->output, ": ", 2);
}

static void print_segment(
	struct job *job, const struct bc_file *file, const struct bc_segment_info *info)
{
	if (job->is_json) {
		print_json(job, file, bc_segment_info_json(info));
		return;
	}
	print_name(job, file);
	bc_output_format(&job->output, "%s%s%s\n",
		info->segments > 1 ? "several segments" : "segment",
		bc_packing_text(file->probe.packing),
		info->is_sealed ? ", sealed" : ", not sealed");
	bc_segment_info_print(&job->output, info);
}

static enum bc_exit print_hole(
	const struct bc_console *console, const char *path, const struct bc_missing_segments *hole)
{
	char what[BC_MISSING_TEXT];

	bc_print_error(console, path, "%s", bc_missing_write(what, hole));
	return BC_EXIT_DAMAGED;
}

/* Reports the segments missing between the files so far and the next, which has these segments. */
static enum bc_exit add_spans(struct job *job, const char *path,
	const struct bc_segment_span *first, const struct bc_segment_span *last)
{
	struct bc_missing_segments hole;

	return bc_missing_before(&hole, &job->before, first, last)
		       ? print_hole(job->console, path, &hole)
		       : BC_EXIT_OK;
}

/* Takes a file that can't be read for what its name says. */
static enum bc_exit add_unread(struct job *job, const char *path)
{
	struct bc_segment_span span;

	return bc_segment_path_span(&span, path) ? add_spans(job, path, &span, &span) : BC_EXIT_OK;
}

static enum bc_exit info_segment(struct job *job, struct bc_file *file)
{
	struct bc_segment_info info;
	enum bc_exit code = BC_EXIT_OK;
	int rc = bc_segment_info_gather(&info, file);

	if (rc < 0) {
		bc_segment_info_free(&info);
		return bc_print_read_error(job->console, file, rc);
	}
	print_segment(job, file, &info);
	if (info.damages != 0) {
		bc_print_damage(job->console, file->name, info.damage.offset, info.damage.bytes,
			info.damage.what);
		code = BC_EXIT_DAMAGED;
	}
	if (info.unreported != 0)
		code = BC_EXIT_DAMAGED;
	if (info.hole.count != 0)
		code = print_hole(job->console, file->name, &info.hole);
	struct bc_segment_span first;
	struct bc_segment_span last;
	bc_segment_info_spans(&info, &first, &last);
	bc_segment_info_free(&info);
	return bc_exit_worse(code, add_spans(job, file->name, &first, &last));
}

/* Adds a member. Returns 0, or -1 if out of memory. */
static int add_count(json_t *object, const char *name, uint64_t count)
{
	return json_object_set_new(object, name, bc_json_u64(count));
}

/* Adds what the parser left out or decided, if anything. */
static int add_notes(json_t *object, const struct bc_parse_notes *notes)
{
	json_t *named = json_array();
	int rc = 0;

	if (notes->skipped != 0)
		rc |= add_count(object, "skipped_lines", notes->skipped);
	if (notes->unread != 0)
		rc |= add_count(object, "partly_read_lines", notes->unread);
	if (notes->long_data != 0)
		rc |= add_count(object, "lines_with_long_data", notes->long_data);
	if (notes->unknown_addresses != 0)
		rc |= add_count(object, "unknown_addresses", notes->unknown_addresses);
	if (notes->unknown_types != 0)
		rc |= add_count(object, "unknown_types", notes->unknown_types);
	if (notes->too_many != 0)
		rc |= add_count(object, "too_many_changes", notes->too_many);
	if (notes->lacks_hex)
		rc |= json_object_set_new(object, "lacks_hexadecimal", json_true());
	if (notes->ignored != 0)
		rc |= add_count(object, "ignored_values", notes->ignored);
	if (notes->lacks_writes)
		rc |= json_object_set_new(object, "lacks_writes", json_true());
	if (notes->unnumbered != 0)
		rc |= add_count(object, "lines_without_processor", notes->unnumbered);
	for (unsigned i = 0; i < notes->names && i < BC_NOTES_NAMES; i++)
		rc |= json_array_append_new(
			named, BC_JSON_OBJECT({"number", bc_json_u64(notes->named[i].proc)},
				       {"name", bc_json_text(notes->named[i].name)}));
	if (notes->names != 0)
		rc |= json_object_set(object, "processors", named);
	json_decref(named);
	return rc;
}

static json_t *survey_json(const struct bc_file *file, const struct bc_survey *s)
{
	enum bc_format format = file->probe.format;
	json_t *object = json_object();
	char units[16];
	int rc = add_count(object, "bytes", s->bytes);

	snprintf(units, sizeof(units), "%ss", s->unit);
	if (bc_format_is_bus(format)) {
		rc |= add_count(object, units, s->units);
		rc |= add_count(object, "torn_bytes", s->damaged_bytes);
	}
	if (format == BC_FORMAT_BCP1) {
		rc |= add_count(object, "frames", s->frames);
		rc |= add_count(object, "gaps", s->gaps);
		rc |= add_count(object, "lost", s->lost);
		rc |= add_count(object, "epochs", s->epochs);
		rc |= add_count(object, "last_tick", s->last_tick);
		rc |= json_object_set_new(object, "has_last_frame", json_boolean(s->has_last));
	}
	for (unsigned kind = 0; kind < BC_ENTRY_KINDS; kind++)
		if (s->kinds[kind] != 0)
			rc |= add_count(object, bc_entry_kind_name(kind), s->kinds[kind]);
	if (!bc_format_is_bus(format))
		rc |= add_count(object, "malformed", s->damages) | add_notes(object, &s->notes);
	if (rc == 0)
		return object;
	json_decref(object);
	return NULL;
}

static void print_survey(struct job *job, const struct bc_file *file, const struct bc_survey *s)
{
	struct bc_output *output = &job->output;
	enum bc_format format = file->probe.format;
	bool is_bcp1 = format == BC_FORMAT_BCP1;
	char units[16];
	char lost[BC_LOSS_TEXT_MAX];

	print_name(job, file);
	bc_output_format(
		output, "%s%s\n", format_name(job, file), bc_packing_text(file->probe.packing));
	if (file->is_regular || bc_format_is_bus(format))
		bc_status_line(
			output, "size", "%s byte%s", BC_GROUPED(s->bytes), bc_plural(s->bytes));
	snprintf(units, sizeof(units), "%ss", s->unit);
	if (bc_format_is_bus(format))
		bc_status_line(output, units, "%s", BC_GROUPED(s->units));
	if (is_bcp1) {
		bc_status_line(output, "frames", "%s%s", BC_GROUPED(s->frames),
			s->has_last ? "" : ", without the final one");
		bc_status_line(output, "gaps", "%s%s%s", BC_GROUPED(s->gaps),
			s->gaps != 0 ? ", " : "",
			s->gaps == 0 ? ""
				     : bc_loss_text(lost,
					       (struct bc_loss){.lost = s->lost, .inexact = 1}));
		bc_status_line(output, "epochs", "%s", BC_GROUPED(s->epochs));
	}
	if (s->damaged_bytes != 0)
		bc_status_line(output, is_bcp1 ? "damaged" : "torn", "%s byte%s %s",
			BC_GROUPED(s->damaged_bytes), bc_plural(s->damaged_bytes),
			is_bcp1 ? "outside of valid frames" : "extra at the end");
	for (unsigned kind = 0; kind < BC_ENTRY_KINDS; kind++)
		if (s->kinds[kind] != 0)
			bc_status_line(
				output, bc_entry_kind_name(kind), "%s", BC_GROUPED(s->kinds[kind]));
	if (s->damages != 0 && !bc_format_is_bus(format))
		bc_status_line(output, "malformed", "%s", BC_GROUPED(s->damages));
}

static enum bc_exit info_counted(struct job *job, struct bc_file *file)
{
	struct bc_survey s;
	enum bc_exit code = bc_survey_read(&s, job->console, file, &job->options, NULL, NULL);

	if (code == BC_EXIT_FAILED)
		return code;
	if (job->is_json)
		print_json(job, file, survey_json(file, &s));
	else
		print_survey(job, file, &s);
	if (s.is_broken)
		bc_print_packing(job->console, file, "");
	if (s.damaged_bytes != 0)
		bc_print_error(job->console, file->name,
			"damaged or torn: %s byte%s not part of a whole %s",
			BC_GROUPED(s.damaged_bytes), bc_plural(s.damaged_bytes), s.unit);
	if (s.jumps != 0)
		bc_print_error(job->console, file->name,
			"frames are missing: gaps in the sequence numbers");
	return code;
}

/* Lists the signals of a capture that the user must describe. */
static enum bc_exit info_signals(struct job *job, struct bc_file *file)
{
	const struct bc_reader_options reading = {
		.format = bc_format_options_default(), .index_fd = -1};
	struct bc_parse_notes notes;
	struct bc_reader *reader;
	struct bc_batch batch;
	enum bc_exit code = BC_EXIT_OK;
	int rc = bc_reader_open(&reader, file->input, file->probe.format, &reading);

	if (rc < 0)
		return bc_print_read_error(job->console, file, rc);
	/* The list is complete at the first fault, before any entry. */
	rc = bc_reader_next(reader, &batch);
	bc_reader_notes(reader, &notes);
	if (rc < 0)
		code = bc_print_read_error(job->console, file, rc);
	else if (job->is_json)
		print_json(job, file, BC_JSON_OBJECT({"signals", bc_json_text(notes.signals)}));
	else {
		print_name(job, file);
		bc_output_format(&job->output, "%s%s: signals, no accesses\n",
			bc_format_name(file->probe.format), bc_packing_text(file->probe.packing));
		for (const char *at = notes.signals; *at != '\0'; at = strchr(at, '\n') + 1) {
			bc_output_safe_bytes(&job->output, at, strcspn(at, "\n"));
			bc_output_text(&job->output, "\n", 1);
		}
	}
	bc_reader_close(reader);
	return code;
}

static enum bc_exit info_file(struct job *job, const char *path)
{
	struct bc_file file;
	enum bc_exit code = bc_file_open_any(&file, job->console, path, job->format);

	if (code != BC_EXIT_OK)
		return bc_exit_worse(code, add_unread(job, path));
	if (file.probe.needs_layout && job->options.layout == NULL)
		code = info_signals(job, &file);
	else
		code = file.probe.format == BC_FORMAT_SEGMENT ? info_segment(job, &file)
							      : info_counted(job, &file);
	bc_file_close(&file);
	return code;
}

/* ---- directories */

/* What is printed of a directory. */
struct printer {
	const struct bc_console *console;
	struct bc_output *output;
	const char *dir;
	char path[4096];
	bool is_json;
	int node_width; /* 0: of this machine */
	int id_width;
	enum bc_exit exit;
	/* Of the recordings so far. */
	uint64_t count;
	uint64_t segments;
	uint64_t records;
	struct bc_loss loss;
	uint64_t bytes;
	struct bc_recording_summary summary;
};

/* The path of a file in the directory, until the next call. */
static const char *path_of(struct printer *p, const char *file)
{
	snprintf(p->path, sizeof(p->path), "%s/%s", p->dir, file);
	return p->path;
}

static void on_summary_fault(void *context, const char *file, int error)
{
	struct printer *p = context;
	bool is_damaged = error == -EXDEV || error == -EBADMSG;

	bc_print_error(p->console, path_of(p, file), "%s%s", is_damaged ? "" : "can't open: ",
		error == -EXDEV     ? "skipped: by its header it is not this segment"
		: error == -EBADMSG ? "damaged; see buscap verify"
				    : strerror(-error));
	p->exit = bc_exit_worse(p->exit, is_damaged ? BC_EXIT_DAMAGED : BC_EXIT_FAILED);
}

static void on_summary_missing(
	void *context, const char *file, const struct bc_missing_segments *missing)
{
	struct printer *p = context;

	p->exit = bc_exit_worse(p->exit, print_hole(p->console, path_of(p, file), missing));
}

static bool goes_on(void *context)
{
	const struct printer *p = context;

	return !bc_output_failed(p->output);
}

static int id_width(const struct bc_recording *at, const struct bc_recording *end)
{
	size_t width = strlen("ID");

	for (; at != end; at++)
		width = strlen(at->id) > width ? strlen(at->id) : width;
	return (int)width;
}

static void print_head(const struct printer *p)
{
	if (p->node_width != 0)
		bc_output_format(p->output, "%-*s  ", p->node_width, "NODE");
	bc_output_format(p->output, "%-*s  %-9s  %-*s  %10s  %8s  %17s  %12s  %8s  HOST\n",
		p->id_width, "ID", "STATE", BC_COLUMN_TIME, "STARTED (UTC)", "DURATION", "SEGMENTS",
		"RECORDS", "LOST", "ON DISK");
}

static void print_row(const struct printer *p, const json_t *row)
{
	char text[BC_HUMANIZE_MAX] = "-";

	if (p->node_width != 0)
		bc_column_text(p->output, p->node_width, row, "node");
	bc_column_text(p->output, p->id_width, row, "id");
	bc_column_text(p->output, 9, row, "state");
	bc_column_time(p->output, row, "started");
	if (json_is_integer(json_object_get(row, "duration_ns")))
		bc_humanize_time(text, bc_json_path_number(row, "duration_ns") / 1e9);
	bc_output_format(p->output, "%10s  ", text);
	bc_column_count(p->output, 8, row, "segments");
	bc_column_count(p->output, 17, row, "records");
	bc_output_format(p->output, "%*s  ", 12, bc_lost_cell(text, row));
	bc_humanize_bytes(text, (double)bc_json_path_count(row, "bytes"));
	bc_output_format(p->output, "%8s  ", text);
	bc_template_print(p->output, "{host}", row);
	if (bc_json_path_count(row, "first_record") != 0)
		bc_template_print(p->output, "  starts at record {first_record}", row);
	bc_template_print(p->output,
		bc_json_path_count(row, "missing") != 0
			? "  {missing record} missing\n"
			: "[  {missing_segments segment} missing]\n",
		row);
}

static void print_total(const struct printer *p)
{
	char texts[2][BC_HUMANIZE_MAX];

	bc_output_format(p->output, "%-*s  %8s  %17s  %12s  %8s\n",
		p->id_width + 2 + 9 + 2 + BC_COLUMN_TIME + 2 + 10, "total", BC_GROUPED(p->segments),
		BC_GROUPED(p->records), bc_loss_cell(texts[0], p->loss),
		bc_humanize_bytes(texts[1], (double)p->bytes));
}

/* Prints the recording that has been summarized. */
static void print_recording(struct printer *p, const char *id)
{
	const struct bc_recording_summary *s = &p->summary;
	json_t *duration = s->has_start ? json_integer(s->to_ns - s->started_ns) : json_null();
	json_t *row = bc_json_merge(bc_recording_summary_json(s, id, path_of(p, s->path)),
		BC_JSON_OBJECT({"duration_ns", duration}));

	p->count++;
	p->segments += s->segments;
	p->records += s->records;
	bc_loss_add(&p->loss, s->loss);
	p->bytes += s->bytes;
	if (p->is_json || row == NULL) {
		bc_output_json_value(p->output, row);
		return;
	}
	if (p->count == 1)
		print_head(p);
	print_row(p, row);
	json_decref(row);
}

static void print_recordings(struct printer *p, int dir_fd, const struct bc_recording_list *list,
	const struct bc_recording *at, const struct bc_recording *end)
{
	const struct bc_summary_io io = {.context = p,
		.fault = on_summary_fault,
		.missing = on_summary_missing,
		.goes_on = goes_on,
		.counts_unsealed = true};

	p->id_width = id_width(at, end);
	for (; at != end && goes_on(p); at++) {
		int rc = bc_recording_summarize(&p->summary, dir_fd, list, at, &io);
		if (rc == -ENOMEM) {
			p->exit = bc_print_no_memory(p->console);
			return;
		}
		if (rc == 0 && p->summary.segments != p->summary.unread)
			print_recording(p, at->id);
		bc_output_flush(p->output);
	}
	if (!p->is_json && p->count > 1)
		print_total(p);
}

/* Prints the recordings of a directory, each as soon as its files have been read; as text also the
 * sum of several. Reports files that can't be read. */
static enum bc_exit info_directory(
	struct job *job, const struct bc_operands *operands, const struct bc_operand *operand)
{
	struct bc_recording_list list;
	const struct bc_recording *begin;
	const struct bc_recording *end;
	struct printer *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return bc_print_no_memory(operands->console);
	p->console = operands->console;
	p->output = &job->output;
	p->dir = operand->path;
	p->is_json = job->is_json;
	p->exit = bc_operand_list(operands, operand, &list, &begin, &end);
	int fd = open(operand->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		print_recordings(p, fd, &list, begin, end);
		close(fd);
	}
	bc_recording_list_free(&list);
	enum bc_exit code = p->exit;
	free(p);
	return code;
}

static void print_host_recording(
	struct bc_output *output, const json_t *row, int node_width, int text_width, bool is_first)
{
	const struct printer p = {
		.output = output, .node_width = node_width, .id_width = text_width};

	if (is_first)
		print_head(&p);
	print_row(&p, row);
}

static const struct bc_hosts_answer answer = {
	&bc_info_usage, "id", "started", print_host_recording};

/* ---- the command */

enum bc_exit bc_cmd_info(const struct bc_console *console, int argc, char **argv)
{
	struct job job = {.console = console,
		.format = BC_FORMAT_UNKNOWN,
		.options = bc_format_options_default()};
	struct bc_options o;
	struct bc_operands operands;
	struct bc_files files;
	enum bc_exit code;
	int letter;

	bc_options_start(&o, console, &bc_info_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		if (letter == 'j')
			job.is_json = true;
		else if (!bc_hosts_has(letter) &&
			 (letter != 'I' ||
				 !bc_option_read_format(console, "-I", &job.format, &job.options)))
			return o.exit;
	}
	if (bc_hosts_ask(console, &answer, argc, argv, 0, NULL, NULL, &code))
		return code;
	code = bc_operands_read(&operands, &files, console, (const char *const *)argv + optind,
		argc - optind, BC_FILES_SORTED | BC_FILES_NAMED);
	if (code == BC_EXIT_OK && !bc_output_open(&job.output, console))
		code = BC_EXIT_FAILED;
	if (code == BC_EXIT_OK) {
		code = files.exit;
		for (int i = 0; i < files.count && !bc_output_failed(&job.output); i++)
			code = bc_exit_worse(code, info_file(&job, files.paths[i]));
		for (int i = 0; i < operands.count && !bc_output_failed(&job.output); i++)
			if (operands.all[i].is_dir)
				code = bc_exit_worse(
					code, info_directory(&job, &operands, &operands.all[i]));
		code = bc_exit_worse(code, bc_output_close(&job.output, console));
	}
	bc_files_free(&files);
	bc_operands_close(&operands);
	return code;
}
