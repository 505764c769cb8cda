/* The files of an input, one after another. Of a fault, the first messages of a file are printed
 * and the rest is counted; every fault makes `exit` worse. Files that were deleted since they were
 * listed are skipped, but the segments of all files are one sequence (bc_sequence_check), which
 * also finds what is missing between files, and before one of which nothing could be read. */
#include "cli/io/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/text.h"
#include "formats/bus/tick_time.h"
#include "formats/codec/layout.h"
#include "formats/codec/reader.h"

/* Faults of a file that are printed individually. */
#define FAULTS_MAX 10

void bc_print_fault(const struct bc_console *console, const char *file,
	const struct bc_fault *fault, uint64_t reported)
{
	if (reported >= FAULTS_MAX)
		return;
	if (fault->line != 0)
		bc_print_error(console, file, "line %" PRIu64 ", column %" PRIu32 ": %s",
			fault->line, fault->column, fault->what);
	else if (fault->is_before)
		bc_print_error(console, file, "%s", fault->what);
	else
		bc_print_damage(console, file, fault->offset, fault->bytes, fault->what);
}

void bc_print_notes(
	const struct bc_console *console, const char *file, const struct bc_parse_notes *notes)
{
	if (notes->skipped != 0)
		bc_print_error(console, file, "%s line%s without an access skipped",
			BC_GROUPED(notes->skipped), bc_plural(notes->skipped));
	if (notes->unread != 0)
		bc_print_error(console, file, "%s line%s with more than was read",
			BC_GROUPED(notes->unread), bc_plural(notes->unread));
	if (notes->lacks_hex)
		bc_print_error(console, file,
			"no address has a digit above 9: if they are decimal, write {addr:d}");
	if (notes->lacks_writes)
		bc_print_error(console, file,
			"no label 1 (write), but label 3, which is read as miscellaneous: "
			"if 3 is a write, replace it by 1");
	if (notes->ignored != 0)
		bc_print_error(console, file, "%s value%s of other columns ignored",
			BC_GROUPED(notes->ignored), bc_plural(notes->ignored));
	for (unsigned i = 0; i < notes->names && i < BC_NOTES_NAMES; i++)
		bc_print_error(console, file, "processor %u is %s", notes->named[i].proc,
			notes->named[i].name);
	if (notes->names > BC_NOTES_NAMES)
		bc_print_error(console, file, "%u more processors are numbered by order",
			notes->names - BC_NOTES_NAMES);
	const struct {
		uint64_t count;
		const char *what;
	} captured[] = {{notes->unknown_addresses, "with an unknown address (x or z) left out"},
		{notes->unknown_types, "of unknown type left out"},
		{notes->long_data, "with more than 8 bytes of data, which are left out"},
		{notes->too_many, "with changes that are too many within setup: values are wrong"}};
	for (size_t i = 0; i < sizeof(captured) / sizeof(captured[0]); i++)
		if (captured[i].count != 0)
			bc_print_error(console, file, "%s access%s %s",
				BC_GROUPED(captured[i].count), captured[i].count == 1 ? "" : "es",
				captured[i].what);
	if (notes->unnumbered != 0)
		bc_print_error(console, file, "%s line%s without processor: more than 256 names",
			BC_GROUPED(notes->unnumbered), bc_plural(notes->unnumbered));
}

const char *bc_loss_cell(char out[BC_HUMANIZE_MAX], struct bc_loss loss)
{
	if (loss.lost == 0 && loss.inexact != 0)
		return "unknown";
	snprintf(out, BC_HUMANIZE_MAX, "%s%s", loss.inexact != 0 ? ">= " : "",
		BC_GROUPED(loss.lost));
	return out;
}

const char *bc_lost_cell(char out[BC_HUMANIZE_MAX], const json_t *r)
{
	if (!json_is_number(bc_json_path(r, "lost")))
		return "-";
	return bc_loss_cell(out, (struct bc_loss){.lost = bc_json_path_count(r, "lost"),
					 .inexact = bc_json_path_count(r, "inexact_gaps")});
}

const char *bc_gap_text(char out[BC_GAP_TEXT_MAX], const struct bc_event *gap)
{
	const char *name = bc_gap_cause_name(gap->cause);
	char lasted[32] = "";
	char lost[BC_LOSS_TEXT_MAX];

	if (gap->duration_ns != 0)
		snprintf(lasted, sizeof(lasted), ", %.6f s", (double)gap->duration_ns * 1e-9);
	snprintf(out, BC_GAP_TEXT_MAX, "%s (%s%s)",
		bc_loss_text(lost, (struct bc_loss){.lost = gap->value, .inexact = !gap->exact}),
		name, lasted);
	return out;
}

void bc_print_faults_left(const struct bc_console *console, const char *file, uint64_t faults)
{
	if (faults > FAULTS_MAX)
		bc_print_error(
			console, file, "%s more errors not shown", BC_GROUPED(faults - FAULTS_MAX));
}

/* Starts to read the open file. */
static enum bc_exit start_file(struct bc_trace *t)
{
	enum bc_format format = t->file.probe.format;
	const char *layout = t->options.format.layout != NULL ? t->options.format.layout
							      : t->file.probe.layout;
	bool is_same = t->format == format && t->layout == layout;

	if (t->format != BC_FORMAT_UNKNOWN && !is_same && t->accept == NULL)
		return bc_print_error(t->console, t->file.name,
			"mixed formats: %s after %s; process each format separately",
			bc_layout_format_name(format, layout),
			bc_layout_format_name(t->format, t->layout));
	t->format = format;
	t->layout = layout;
	t->moment.is_known = false;
	t->options.is_partial = t->file.is_partial;
	t->options.is_killed = t->file.is_killed;
	t->options.index_fd = t->file.is_regular ? t->file.fd : -1;
	int error = bc_reader_open(&t->reader, t->file.input, format, &t->options);
	if (error == -ENOTSUP) {
		bc_print_error(
			t->console, t->file.name, "%s can only be written", bc_format_name(format));
		return BC_EXIT_USAGE;
	}
	if (error != 0) {
		bc_print_read_error(t->console, &t->file, error);
		return BC_EXIT_FAILED;
	}
	t->is_open = true;
	bc_traits before = t->traits;
	t->traits = bc_reader_traits(t->reader, &t->has_wall);
	if (before != 0 && (t->traits & ~before) != 0 && t->accept == NULL)
		return bc_print_error(t->console, t->file.name,
			"has columns that the file before it lacks; process each separately");
	/* A segment with an axis has positions on it, and no times of day. */
	struct bc_segment_header header;
	t->has_wall = t->has_wall && !(bc_trace_header(t, &header) && header.axis[0] != '\0');
	t->faults = 0;
	return t->accept != NULL ? t->accept(t->context) : BC_EXIT_OK;
}

/* Opens the next file. Files that were deleted since they were listed are skipped. */
static enum bc_exit open_next(struct bc_trace *t)
{
	while (t->next + 1 < t->count && bc_file_is_gone(t->paths[t->next]))
		t->next++;
	enum bc_exit code = bc_file_open(&t->file, t->console, t->paths[t->next++], t->wanted);

	if (code != BC_EXIT_OK)
		return code;
	code = start_file(t);
	if (code == BC_EXIT_OK)
		return code;
	if (t->is_open)
		bc_reader_close(t->reader);
	bc_file_close(&t->file);
	t->is_open = false;
	return code;
}

void bc_trace_init(struct bc_trace *trace, const struct bc_console *console, const char **paths,
	int count, enum bc_format wanted, const struct bc_reader_options *options)
{
	*trace = (struct bc_trace){.console = console,
		.paths = paths,
		.count = count,
		.wanted = wanted,
		.options = *options};
	trace->options.sequence = &trace->sequence;
}

enum bc_exit bc_trace_open(struct bc_trace *trace, const struct bc_console *console,
	const char **paths, int count, enum bc_format wanted,
	const struct bc_reader_options *options)
{
	bc_trace_init(trace, console, paths, count, wanted, options);
	trace->exit = open_next(trace);
	return trace->exit;
}

void bc_trace_skip_file(struct bc_trace *t)
{
	struct bc_parse_notes notes;

	if (!t->is_open)
		return;
	bc_progress_clear(t->console);
	bc_print_faults_left(t->console, t->file.name, t->faults);
	bc_reader_notes(t->reader, &notes);
	bc_print_notes(t->console, t->file.name, &notes);
	t->done_bytes += t->file.is_regular ? t->file.bytes : bc_input_position(t->file.input);
	bc_reader_close(t->reader);
	bc_file_close(&t->file);
	t->is_open = false;
}

void bc_trace_close(struct bc_trace *trace)
{
	bc_trace_skip_file(trace);
	bc_sequence_check_reset(&trace->sequence);
}

bool bc_are_regular_files(const char *const *paths, int count)
{
	struct stat st;

	for (int i = 0; i < count; i++)
		if (strcmp(paths[i], "-") == 0 || stat(paths[i], &st) != 0 || !S_ISREG(st.st_mode))
			return false;
	return true;
}

/* Returns the size of all files together, or 0 if one is not a regular file. */
static uint64_t sum_sizes(const struct bc_trace *t)
{
	uint64_t total = 0;
	struct stat st;

	if (!bc_are_regular_files(t->paths, t->count))
		return 0;
	for (int i = 0; i < t->count; i++)
		total += stat(t->paths[i], &st) == 0 ? (uint64_t)st.st_size : 0;
	return total;
}

void bc_trace_show_progress(const struct bc_trace *t)
{
	bc_progress_extend(t->console, sum_sizes(t));
}

static void update_progress(struct bc_trace *t)
{
	struct bc_progress *progress = t->console->progress;

	if (progress == NULL || progress->err == NULL)
		return;
	off_t at = t->file.is_regular ? lseek(t->file.fd, 0, SEEK_CUR) : -1;
	uint64_t done = t->done_bytes + (at >= 0 ? (uint64_t)at : bc_input_position(t->file.input));
	progress->done_bytes += done - t->shown_bytes;
	t->shown_bytes = done;
	bc_progress_show(t->console);
}

static void update_moment(struct bc_trace *t, const struct bc_batch *batch)
{
	const struct bc_segment_header *header = bc_reader_header(t->reader);
	const struct bc_chunk_info *info = batch->chunk_info;

	if (!t->has_header && header != NULL) {
		t->has_header = true;
		t->header = *header;
	}
	if (info != NULL)
		t->moment = bc_chunk_moment(
			info, t->has_wall, header != NULL ? header->clock_hz : 0);
}

/* After a file of which nothing was read: prints which segments before it are not here. */
static void end_unread(struct bc_trace *t, const char *path)
{
	struct bc_missing_segments missing;
	char what[BC_MISSING_TEXT];

	if (!bc_sequence_check_named(&t->sequence, path, &missing))
		return;
	bc_print_error(t->console, path, "%s", bc_missing_write(what, &missing));
	t->exit = bc_exit_worse(t->exit, BC_EXIT_DAMAGED);
}

bool bc_trace_next(struct bc_trace *t, struct bc_batch *batch)
{
	for (;;) {
		int rc = t->is_open ? bc_reader_next(t->reader, batch) : 0;
		if (rc < 0) {
			t->exit = bc_exit_worse(
				t->exit, bc_print_read_error(t->console, &t->file, rc));
			rc = 0;
		}
		if (rc > 0) {
			update_moment(t, batch);
			update_progress(t);
			if (batch->fault != NULL) {
				bc_print_fault(t->console, t->file.name, batch->fault, t->faults++);
				t->exit = bc_exit_worse(t->exit, BC_EXIT_DAMAGED);
			}
			return true;
		}
		if (rc == 0 && t->is_open)
			update_moment(t, batch);
		if (t->is_open && bc_reader_header(t->reader) == NULL)
			end_unread(t, t->file.name);
		bc_trace_skip_file(t);
		if (t->next >= t->count)
			return false;
		enum bc_exit opened = open_next(t);
		t->exit = bc_exit_worse(t->exit, opened);
		if (opened != BC_EXIT_OK)
			end_unread(t, t->paths[t->next - 1]);
	}
}

const char *bc_trace_place(
	const struct bc_trace *trace, uint64_t number, char out[BC_PLACE_TEXT_MAX])
{
	enum bc_format format = trace->format;
	const char *word = format == BC_FORMAT_CSV || format == BC_FORMAT_NDJSON  ? "entry"
			   : bc_format_info(format)->is_text                      ? "line"
			   : format == BC_FORMAT_RAW6 || format == BC_FORMAT_BCP1 ? "sample"
										  : "record";

	snprintf(out, BC_PLACE_TEXT_MAX, "%s %" PRIu64, word, number);
	return out;
}

const char *bc_trace_format_name(const struct bc_trace *trace)
{
	return bc_layout_format_name(trace->format, trace->layout);
}

bc_traits bc_trace_traits(const struct bc_trace *trace)
{
	return trace->traits | (trace->options.format.size != 0 ? BC_TRAIT_SIZE : 0);
}

bool bc_trace_header(const struct bc_trace *t, struct bc_segment_header *header)
{
	return t->is_open && t->format == BC_FORMAT_SEGMENT &&
	       bc_input_segment_header(t->file.input, header);
}

uint64_t bc_trace_clock_hz(const struct bc_trace *t)
{
	struct bc_segment_header header;

	return bc_trace_header(t, &header) ? header.clock_hz : 0;
}

/* How many bytes of a trace are looked at: at most PEEK_MAX if it begins with neither an access nor
 * an instruction. */
#define PEEK_MIN (64u << 10)
#define PEEK_MAX (64u << 20)

struct bc_peek bc_peek(const struct bc_console *console, const char *path, enum bc_format format,
	const struct bc_reader_options *options)
{
	const struct bc_console silent = bc_console_silent(console);
	struct bc_peek found = {.unit = BC_UNIT_TICK};
	struct bc_trace trace;
	struct bc_batch batch = {.count = 0};
	const bc_traits both = BC_TRAIT_REFERENCE | BC_TRAIT_INSTRUCTION;
	size_t bytes = 0;

	if (!bc_are_regular_files(&path, 1))
		return found;
	bool is_tarmac = bc_trace_open(&trace, &silent, &path, 1, format, options) == BC_EXIT_OK &&
			 trace.format == BC_FORMAT_TARMAC;
	while (is_tarmac &&
		(bytes < PEEK_MIN || (bytes < PEEK_MAX && (~found.traits & both) != 0)) &&
		bc_trace_next(&trace, &batch)) {
		found.is_known = true;
		for (size_t i = 0; i < batch.count; i++) {
			const struct bc_entry *entry = &batch.entries[i];
			found.traits |= bc_entry_traits(entry);
			bytes += entry->is_continued ? 0 : entry->line.bytes + 1;
			if (found.unit == BC_UNIT_TICK && (entry->traits & BC_TRAIT_TIME) != 0)
				found.unit = entry->unit;
		}
	}
	bc_trace_close(&trace);
	return found;
}

enum bc_peek_units bc_peek_compare_units(struct bc_peek a, struct bc_peek b)
{
	if (a.unit == b.unit || a.unit == BC_UNIT_TICK || b.unit == BC_UNIT_TICK)
		return BC_PEEK_SAME;
	return bc_unit_picoseconds(a.unit) != 0 && bc_unit_picoseconds(b.unit) != 0
		       ? BC_PEEK_CONVERTIBLE
		       : BC_PEEK_UNRELATED;
}
