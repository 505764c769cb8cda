/* buscap verify: reads files to their end and prints a line or object for each damage and file.
 *
 * Segments are checked in their order, one sequence check for all files: what is missing between
 * two files is found like what is missing in one. A segment already seen is a copy and gets a
 * separate check. Damage makes the next chunk's place unknown (is_hurt): what is missing
 * there is not reported a second time. */
#include "cli/term/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "cli/io/file.h"
#include "cli/io/operands.h"
#include "cli/term/options.h"
#include "cli/term/output.h"
#include "cli/trace/survey.h"
#include "formats/base/json.h"
#include "formats/base/text.h"
#include "formats/bus/describe.h"
#include "formats/codec/layout.h"
#include "formats/recording/segments.h"
#include "formats/segment/page_summary.h"
#include "formats/segment/segment_reader.h"
#include "formats/segment/sequence_check.h"

static const struct bc_usage_option options[] = {
	{'j', "json", NULL, NULL,
		"print one JSON object per damage and per file, each on a line, and the totals"},
	{'I', "input-format", "FMT", "format-read", "input format and options (default: detected)"},
	{0},
};

const struct bc_usage bc_verify_usage = {
	.name = "verify",
	.operands = "[FILE|DIR|ID]...",
	.kind = "recording",
	.summary = "check the integrity of files",
	.text = "Checks segments (all checksums; the index against the chunks; the ticks in the "
		"chunks' headers; that no chunk or record is missing, even between files; that a "
		"gap reports each loss) and bcp1 streams (all checksums, the sequence numbers). "
		"BYU and raw6 have no checksums: only a torn end is found. In text formats, "
		"malformed lines are found.\n"
		"Prints a line for each damage and one for each file. The order of the files does "
		"not matter. docs/verify.md lists the members of the JSON objects.",
	.options = options,
	.exits = "0 all files are whole, 1 failed, 2 wrong usage, 3 damaged, torn or not sealed, "
		 "6 can't reach the daemon.",
	.example = "buscap verify *.byu.lz4",
};

struct job {
	const struct bc_console *console;
	struct bc_output output;
	bool is_json;
	enum bc_format format;
	struct bc_format_options options; /* of the format */
	struct bc_sequence_check all;     /* the segments of all files */
	enum bc_exit exit;
	/* For the totals: */
	uint64_t files;
	uint64_t ok_files;
	uint64_t damages;
};

/* The check of one file. */
struct check {
	struct job *job;
	struct bc_file *file;
	uint64_t damages;
	/* Segments only: */
	struct bc_sequence_check own;       /* of a copy of a segment */
	struct bc_sequence_check *sequence; /* either; NULL: not known yet */
	bool is_after_loss; /* something is missing before the file; the file itself is whole */
	struct bc_page_check *pages;
	const struct bc_segment_reader *reader;
	struct counted *counted; /* of a chunk that no thread has decoded ahead */
	uint64_t segments;
	uint64_t unsealed;
	uint64_t chunks;
	uint64_t records;
	uint64_t gaps;
	/* The current segment: */
	bool has_identity; /* tag and segment are known */
	bool is_started;
	bool is_sealed;
	bool is_hurt;
	uint64_t tag;
	uint32_t segment;
	uint32_t next_number;
};

/* Prints the prefix "FILE: ". */
static void print_name(struct job *job, const char *name)
{
	bc_output_safe(&job->output, name);
	bc_output_text(&job->output, ": ", 2);
}

/* Prints a damage; `offset` NULL: its place is before the file or unknown. */
static void print_place(
	struct job *job, const char *name, const uint64_t *offset, uint64_t bytes, const char *what)
{
	job->damages++;
	if (job->is_json) {
		json_t *damage = BC_JSON_OBJECT({"file", bc_json_text(name)},
			{"offset", offset != NULL ? bc_json_u64(*offset) : json_null()},
			{"bytes", bc_json_u64(bytes)}, {"what", bc_json_text(what)});
		bc_output_json_value(&job->output, BC_JSON_OBJECT({"damage", damage}));
		return;
	}
	print_name(job, name);
	if (offset != NULL)
		bc_output_format(&job->output, "offset %" PRIu64, *offset);
	if (bytes != 0)
		bc_output_format(&job->output, ", %" PRIu64 " byte%s", bytes, bc_plural(bytes));
	bc_output_format(&job->output, "%s%s\n", offset != NULL ? ": " : "", what);
}

static void print_damage(void *context, uint64_t offset, uint64_t bytes, const char *what)
{
	struct check *c = context;

	print_place(c->job, c->file->name, &offset, bytes, what);
	c->damages++;
	c->is_hurt = true;
}

static const char *format_name(const struct check *c)
{
	const char *layout = c->job->options.layout;

	return bc_layout_format_name(
		c->file->probe.format, layout != NULL ? layout : c->file->probe.layout);
}

/* Prints the result of a file as JSON: members of all formats, and those of `more`, released. */
static void print_result(const struct check *c, bool is_ok, json_t *more)
{
	json_t *object = BC_JSON_OBJECT({"file", bc_json_text(c->file->name)},
		{"format", json_string(format_name(c))}, {"ok", json_boolean(is_ok)},
		{"damaged_places", bc_json_u64(c->damages)});

	c->job->ok_files += is_ok;
	bc_output_json_value(&c->job->output, bc_json_merge(object, more));
}

/* The same for a file that can't be read, which was reported. */
static void print_unread(struct job *job, const char *name)
{
	if (job->is_json)
		bc_output_json_value(
			&job->output, BC_JSON_OBJECT({"file", bc_json_text(name)},
					      {"format", json_null()}, {"ok", json_false()}));
}

static void finish_segment(struct check *c)
{
	if (c->is_started && !c->is_sealed)
		c->unsealed++;
	c->segments += c->is_started;
	c->is_started = false;
	c->is_sealed = false;
	c->is_hurt = false;
	c->has_identity = false;
	c->next_number = 0;
}

/* Segments are checked in their order, each once. */
static void choose_sequence(struct check *c, uint64_t tag, uint32_t segment)
{
	struct bc_sequence_check *all = &c->job->all;
	bool is_copy = all->has_segment && all->tag == tag &&
		       segment + all->is_unread <= all->latest_segment;

	if (c->sequence == NULL)
		c->sequence = is_copy ? &c->own : all;
}

static void start_segment(struct check *c, const struct bc_segment_header *header)
{
	/* Damage directly before the header belongs to this segment. */
	bool is_hurt = c->is_hurt && !c->is_started;

	finish_segment(c);
	c->is_hurt = is_hurt;
	c->is_started = true;
	c->has_identity = true;
	c->tag = bc_recording_tag(header->recording);
	c->segment = header->segment;
	choose_sequence(c, c->tag, c->segment);
	bc_sequence_check_expect(c->sequence, header);
	bc_page_check_start(c->pages);
}

/* Reports a chunk that is wrong in the way described by `words`. */
static void print_chunk_damage(
	struct check *c, const struct bc_chunk_info *info, uint64_t offset, const char *words)
{
	char what[160];

	snprintf(what, sizeof(what), "chunk %" PRIu32 " (%s record%s) %s", info->number,
		BC_GROUPED(info->records), bc_plural(info->records), words);
	print_damage(c, offset, bc_chunk_encoded_bytes(info), what);
}

/* Checks that a chunk belongs to this segment and has the next number. */
static void check_numbers(
	struct check *c, const struct bc_chunk_info *info, uint64_t missing, uint64_t offset)
{
	if (!c->has_identity) {
		c->has_identity = true;
		c->tag = info->recording_tag;
		c->segment = info->segment;
	}
	if (info->recording_tag != c->tag)
		print_chunk_damage(c, info, offset, "belongs to another recording");
	else if (info->segment != c->segment)
		print_chunk_damage(c, info, offset, "belongs to another segment");
	else if (info->number > c->next_number && missing == 0 && !c->is_hurt)
		print_chunk_damage(c, info, offset, "follows missing chunks");
	if (info->number >= c->next_number)
		c->next_number = info->number + 1;
	c->is_hurt = false; /* the next chunk must follow this one */
}

/* Reports what is missing before a chunk: records, or a gap for a loss that only the chunk's counts
 * show. What is missing before a segment's first chunk is not damage of the segment; that gap may
 * be in a segment that is missing. */
static void print_missing(struct check *c, const struct bc_chunk_info *info,
	const struct bc_missing *missing, uint64_t offset)
{
	char words[BC_MISSING_TEXT];
	bool is_before = missing->place.count != 0 || info->number == 0;

	if (bc_is_missing(&missing->place))
		bc_missing_write(words, &missing->place);
	else if (missing->samples != 0)
		snprintf(words, sizeof(words), "a loss of %" PRIu64 " sample%s that no gap reports",
			missing->samples, bc_plural(missing->samples));
	else
		return;
	print_place(c->job, c->file->name, is_before ? NULL : &offset, 0, words);
	c->is_after_loss = c->is_after_loss || is_before;
	c->damages += !is_before;
	c->is_hurt = c->is_hurt || !is_before;
}

/* What takes long to find in the records of a chunk: the threads that decode them do it. */
struct counted {
	struct bc_chunk_pages pages;
	uint64_t ticks; /* from the first record to the last, if no anchor is between them */
};

static void *open_counted(void *context)
{
	(void)context;
	return malloc(sizeof(struct counted));
}

static uint64_t add_deltas(const uint8_t *records, uint64_t tick, uint32_t from, uint32_t to)
{
	return bc_records_ticks(records + (size_t)from * BC_RECORD_BYTES, to - from, tick);
}

static void count_records(void *result, const struct bc_chunk_info *info, const uint8_t *records)
{
	struct counted *counted = result;
	struct bc_chunk_info found = *info;

	bc_chunk_count(&found, records, &counted->pages);
	counted->ticks = info->records != 0 ? add_deltas(records, 0, 1, info->records) : 0;
}

/* True if the ticks of a chunk never decrease and end with the last tick of its header. Readers
 * find the chunk of a time by the ticks in its header. */
static bool has_right_ticks(
	const struct bc_chunk *chunk, const uint8_t *records, const struct counted *counted)
{
	uint64_t tick = chunk->info.first_tick;
	uint32_t next = 1;

	for (uint32_t i = 0; i < chunk->info.events; i++) {
		const struct bc_event *event = &chunk->events[i];
		if (event->kind != BC_EVENT_ANCHOR || event->position < next ||
			event->position >= chunk->info.records)
			continue;
		tick = add_deltas(records, tick, next, event->position);
		if (event->value < tick)
			return false;
		tick = event->value;
		next = event->position + 1;
	}
	tick = next == 1 ? tick + counted->ticks
			 : add_deltas(records, tick, next, chunk->info.records);
	return tick == chunk->info.last_tick;
}

static int check_chunk(struct check *c, const struct bc_chunk *chunk, uint64_t offset)
{
	const struct bc_chunk_info *info = &chunk->info;
	struct bc_missing missing;
	void *result;
	const uint8_t *records = bc_segment_reader_records(c->reader, &result);
	struct counted *counted = result != NULL ? result : c->counted;

	choose_sequence(c, info->recording_tag, info->segment);
	int place = bc_sequence_check_chunk(c->sequence, chunk, &missing);
	if (place < 0)
		return place;
	c->is_started = true;
	print_missing(c, info, &missing, offset);
	check_numbers(c, info, missing.records, offset);
	if (place == BC_SEQUENCE_DUPLICATE) {
		print_chunk_damage(c, info, offset, "is a duplicate");
		return 0;
	}
	if (place == BC_SEQUENCE_LATE)
		print_chunk_damage(c, info, offset, "is out of order");
	if (result == NULL)
		count_records(counted, info, records);
	if (!bc_page_check_chunk(c->pages, chunk, &counted->pages.counts))
		print_chunk_damage(c, info, offset, "has wrong page counts");
	if (!has_right_ticks(chunk, records, counted))
		print_chunk_damage(c, info, offset, "has wrong ticks");
	c->is_hurt = false;
	c->chunks++;
	c->records += info->records;
	for (uint32_t i = 0; i < info->events; i++)
		c->gaps += chunk->events[i].kind == BC_EVENT_GAP;
	return 0;
}

static void on_node(void *context, uint32_t number, const uint8_t *node, size_t bytes)
{
	struct check *c = context;

	if (!bc_page_check_node(c->pages, number, node, bytes))
		print_damage(c, bc_segment_reader_offset(c->reader), bytes,
			"the page summary doesn't match the records");
}

static int read_segments(struct check *c, struct bc_segment_reader *reader, struct bc_chunk *chunk)
{
	const struct bc_segment_damage *damage = bc_segment_reader_damage(reader);

	for (;;) {
		int found = bc_segment_read(reader, chunk);
		if (found < 0)
			return found;
		switch ((enum bc_segment_found)found) {
		case BC_FOUND_SEGMENT:
			start_segment(c, bc_segment_reader_header(reader));
			break;
		case BC_FOUND_CHUNK:
			found = check_chunk(c, chunk, bc_segment_reader_offset(reader));
			break;
		case BC_FOUND_INDEX:
			c->is_started = true;
			c->is_sealed = true;
			break;
		case BC_FOUND_DAMAGE:
			if (c->file->is_written && damage->is_torn)
				break; /* not written to its end yet */
			print_damage(c, damage->offset, damage->bytes, damage->what);
			bc_page_check_damage(c->pages);
			break;
		case BC_FOUND_END:
			if (!c->is_started && c->segments == 0)
				c->is_started = true; /* nothing intact: counts as a segment */
			finish_segment(c);
			return 0;
		}
		if (found < 0)
			return found;
	}
}

static void print_segments_text(const struct check *c, bool is_whole)
{
	struct bc_output *output = &c->job->output;
	const char *state = c->damages != 0 ? "damaged: " : is_whole ? "ok: " : "";
	const char *sealed = c->unsealed == 0      ? "sealed"
			     : c->file->is_written ? "being recorded"
			     : c->segments == 1    ? "not sealed (no index)"
						   : "not all sealed (an index is missing)";

	print_name(c->job, c->file->name);
	bc_output_format(output, "%s%s", state, sealed);
	if (c->segments > 1)
		bc_output_format(output, ", %" PRIu64 " segments", c->segments);
	bc_output_format(output, ", %s%s chunk%s, %s record%s, %s gap%s\n", BC_GROUPED(c->chunks),
		is_whole ? "" : " good", bc_plural(c->chunks), BC_GROUPED(c->records),
		bc_plural(c->records), BC_GROUPED(c->gaps), bc_plural(c->gaps));
}

static enum bc_exit end_segments(struct check *c)
{
	bool is_whole = c->damages == 0 && (c->unsealed == 0 || c->file->is_written);

	if (c->job->is_json)
		print_result(c, is_whole,
			BC_JSON_OBJECT({"sealed", json_boolean(c->unsealed == 0)},
				{"segments", bc_json_u64(c->segments)},
				{"chunks", bc_json_u64(c->chunks)},
				{"records", bc_json_u64(c->records)},
				{"gaps", bc_json_u64(c->gaps)}));
	else
		print_segments_text(c, is_whole);
	return is_whole && !c->is_after_loss ? BC_EXIT_OK : BC_EXIT_DAMAGED;
}

static enum bc_exit end_unread(const struct check *c, int error)
{
	enum bc_exit code = bc_print_read_error(c->job->console, c->file, error);

	print_unread(c->job, c->file->name);
	return code;
}

static enum bc_exit verify_segments(struct check *c)
{
	const struct bc_chunk_work work = {
		.open = open_counted, .close = free, .run = count_records, .is_most = true};
	struct bc_segment_reader *reader = NULL;
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	int rc = chunk != NULL ? bc_input_segments(c->file->input, &reader) : -ENOMEM;

	c->pages = bc_page_check_open();
	c->counted = open_counted(NULL);
	c->reader = reader;
	if (rc == 0 && (c->pages == NULL || c->counted == NULL))
		rc = -ENOMEM;
	if (rc == 0) {
		bc_segment_reader_on_node(reader, on_node, c);
		if (c->file->is_regular)
			bc_segment_reader_decode_ahead(reader, c->file->fd, NULL, NULL, &work);
		rc = read_segments(c, reader, chunk);
	}
	enum bc_exit code = rc < 0 ? end_unread(c, rc) : end_segments(c);
	bc_sequence_check_reset(&c->own);
	bc_page_check_close(c->pages);
	free(c->counted);
	bc_segment_reader_close(reader);
	free(chunk);
	return code;
}

static void print_counted_text(
	struct check *c, const struct bc_survey *s, bool is_whole, bool is_strange)
{
	struct bc_output *output = &c->job->output;
	enum bc_format format = c->file->probe.format;
	uint64_t lines = s->kinds[BC_ENTRY_LINE];

	print_name(c->job, c->file->name);
	bc_output_format(output, "%s: %s, ",
		!is_whole    ? "damaged"
		: is_strange ? "nothing recognised"
			     : "ok",
		format_name(c));
	if (format == BC_FORMAT_BCP1) {
		bc_output_format(output, "%s%s frame%s, %s sample%s, %s gap%s%s\n",
			BC_GROUPED(s->frames), is_whole ? "" : " good", bc_plural(s->frames),
			BC_GROUPED(s->units), bc_plural(s->units), BC_GROUPED(s->gaps),
			bc_plural(s->gaps), s->has_last ? "" : ", without the final frame");
	} else if (bc_format_is_bus(format)) {
		bc_output_format(output, "%s %s%s%s, no checksums\n", BC_GROUPED(s->units),
			is_whole ? "" : "whole ", s->unit, bc_plural(s->units));
	} else {
		bc_output_format(output, "%s %s%s", BC_GROUPED(s->units), is_whole ? "" : "good ",
			s->units == 1 ? "entry" : "entries");
		if (lines != 0)
			bc_output_format(output, ", %s uninterpreted line%s among them",
				BC_GROUPED(lines), bc_plural(lines));
		bc_output_text(output, "\n", 1);
	}
}

static json_t *counted_json(enum bc_format format, const struct bc_survey *s)
{
	if (format == BC_FORMAT_BCP1)
		return BC_JSON_OBJECT({"samples", bc_json_u64(s->units)},
			{"frames", bc_json_u64(s->frames)}, {"gaps", bc_json_u64(s->gaps)},
			{"has_last_frame", json_boolean(s->has_last)});
	if (bc_format_is_bus(format))
		return BC_JSON_OBJECT(
			{format == BC_FORMAT_RAW6 ? "samples" : "records", bc_json_u64(s->units)});
	return BC_JSON_OBJECT({"entries", bc_json_u64(s->units)},
		{"lines_kept", bc_json_u64(s->kinds[BC_ENTRY_LINE])});
}

/* Any file but a segment. Only bcp1 has checksums; of the others, their form is checked. */
static enum bc_exit verify_counted(struct check *c)
{
	struct job *job = c->job;
	struct bc_survey s;
	char what[64];
	enum bc_exit code = bc_survey_read(
		&s, job->console, c->file, &job->options, print_damage, c);
	bool is_whole = code == BC_EXIT_OK;
	/* Lines of unknown kinds are kept as text. With nothing else, it is another format. */
	bool is_strange = s.units != 0 && s.kinds[BC_ENTRY_LINE] == s.units;

	if (code == BC_EXIT_FAILED) {
		print_unread(job, c->file->name);
		return code;
	}
	if (s.is_broken) {
		snprintf(what, sizeof(what), "damaged or torn %s data",
			bc_packing_name(c->file->probe.packing));
		print_place(job, c->file->name, NULL, 0, what);
		c->damages++;
	}
	if (!bc_format_is_bus(c->file->probe.format)) { /* printed as errors */
		c->damages += s.damages;
		job->damages += s.damages;
	}
	if (job->is_json)
		print_result(c, is_whole && !is_strange, counted_json(c->file->probe.format, &s));
	else
		print_counted_text(c, &s, is_whole, is_strange);
	return is_strange ? bc_exit_worse(code, BC_EXIT_DAMAGED) : code;
}

/* Prints which segments are missing before a file of which nothing was read. */
static enum bc_exit find_missing(struct job *job, const char *path)
{
	struct bc_missing_segments missing;
	char what[BC_MISSING_TEXT];

	if (!bc_sequence_check_named(&job->all, path, &missing))
		return BC_EXIT_OK;
	print_place(job, path, NULL, 0, bc_missing_write(what, &missing));
	return BC_EXIT_DAMAGED;
}

static enum bc_exit verify_file(struct job *job, const char *path)
{
	struct bc_file file;

	job->files++;
	enum bc_exit code = bc_file_open(&file, job->console, path, job->format);

	if (code != BC_EXIT_OK) {
		code = file.is_regular && file.bytes == 0 ? BC_EXIT_DAMAGED : code;
		print_unread(job, file.name);
		return bc_exit_worse(code, find_missing(job, path));
	}
	struct check check = {.job = job, .file = &file};
	code = file.probe.format == BC_FORMAT_SEGMENT ? verify_segments(&check)
						      : verify_counted(&check);
	if (check.sequence == NULL)
		code = bc_exit_worse(code, find_missing(job, path));
	bc_file_close(&file);
	return code;
}

static void verify_files(struct job *job, const struct bc_files *files)
{
	job->exit = files->exit;
	for (int i = 0; i < files->count && !bc_output_failed(&job->output); i++) {
		if (i + 1 != files->count && bc_file_is_gone(files->paths[i]))
			continue;
		enum bc_exit code = verify_file(job, files->paths[i]);
		job->exit = bc_exit_worse(job->exit, code);
		bc_output_flush(&job->output); /* the next file may take long */
	}
	bc_sequence_check_reset(&job->all);
	if (job->is_json)
		bc_output_json_value(&job->output,
			BC_JSON_OBJECT(
				{"end", BC_JSON_OBJECT({"files", bc_json_u64(job->files)},
						{"ok", bc_json_u64(job->ok_files)},
						{"damaged_places", bc_json_u64(job->damages)})}));
	job->exit = bc_exit_worse(job->exit, bc_output_close(&job->output, job->console));
}

enum bc_exit bc_cmd_verify(const struct bc_console *console, int argc, char **argv)
{
	struct job job = {.console = console,
		.format = BC_FORMAT_UNKNOWN,
		.options = bc_format_options_default()};
	struct bc_options o;
	struct bc_operands operands;
	struct bc_files files;
	int letter;

	bc_options_start(&o, console, &bc_verify_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		if (letter == 'j')
			job.is_json = true;
		else if (letter != 'I' ||
			 !bc_option_read_format(console, "-I", &job.format, &job.options))
			return o.exit;
	}
	job.exit = bc_operands_read(&operands, &files, console, (const char *const *)argv + optind,
		argc - optind, BC_FILES_SORTED | BC_FILES_CHECKED);
	if (job.exit == BC_EXIT_OK && !bc_output_open(&job.output, console))
		job.exit = BC_EXIT_FAILED;
	if (job.exit == BC_EXIT_OK)
		verify_files(&job, &files);
	bc_files_free(&files);
	bc_operands_close(&operands);
	return job.exit;
}
