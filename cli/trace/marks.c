/* buscap marks: the marks, triggers and gaps of recordings, in the order of time
 * (formats/recording/lanes.h). Only chunks that have events are read; the index says which. Where a
 * chunk's records are damaged, its header still has the events: those at the first and last record
 * keep their time, the others lose it. */
#include "cli/term/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io/filter_args.h"
#include "cli/io/hosts.h"
#include "cli/io/segment_input.h"
#include "cli/io/trace.h"
#include "cli/term/options.h"
#include "cli/term/output.h"
#include "formats/base/json.h"
#include "formats/base/text.h"
#include "formats/bus/tick_time.h"
#include "formats/recording/lanes.h"
#include "formats/recording/segments.h"

enum { OPTION_KIND = 1000 };

static const struct bc_usage_option options[] = {
	{OPTION_KIND, "kind", "KIND", "choice:gap|mark|missing|trigger",
		"only gaps, marks, missing segments or triggers"},
	BC_FILTER_OPTIONS_TIME,
	{'j', "json", NULL, NULL, "print one JSON object per line"},
	BC_HOSTS_OPTIONS,
	{0},
};

const struct bc_usage bc_marks_usage = {
	.name = "marks",
	.operands = "[FILE|DIR|ID]...",
	.kind = "recording",
	.summary = "list the marks, triggers and gaps of recordings",
	.text = "Prints the marks, triggers, gaps and missing segments of recordings: number of "
		"the next record, time of day, kind, and its text or what was lost. Without an "
		"operand, lists the daemon's directory. Only chunks that have any are read.",
	.options = options,
	.exits = "0 ok, 1 failed, 2 wrong usage, 3 damaged input: the intact parts were read, "
		 "6 can't reach the daemon.",
	.example = "buscap marks --kind gap *.byu.lz4",
};

/* What is in memory of a recording's open file. */
struct view {
	uint32_t row;        /* the next chunk */
	uint32_t event;      /* the next one of the chunk before it */
	struct bc_span span; /* ticks of that chunk that are selected */
	struct bc_chunk chunk;
	bool has_records; /* of the chunk; otherwise only its header is intact */
	uint64_t ticks[BC_CHUNK_RECORDS];
};

struct marks {
	struct bc_segment_input input; /* first: the context of its functions */
	void (*on_fault)(void *context, const struct bc_segment_fault *fault);
	const struct bc_console *console;
	struct bc_segments files;
	struct bc_output output;
	bool is_json;
	const char *kind; /* NULL: any */
	uint64_t printed;
	struct bc_filter_args args;
	struct bc_lanes lanes;
	struct view *view;
};

/* A mark, trigger or gap, and where it is. */
struct moment {
	const struct bc_event *event;
	uint64_t number; /* of the next record */
	bool has_tick;
	uint64_t tick; /* of that record, or of the last one */
	bool has_wall;
	int64_t wall_ns;
};

static const char missing_kind[] = "missing";

static void print_moment_json(struct marks *m, const struct moment *at, uint32_t row)
{
	const struct bc_event *event = at->event;
	const struct bc_segment_header *header = bc_chunk_table_header(&m->files.file.table, row);
	bool is_gap = event->kind == BC_EVENT_GAP;
	char gap[BC_GAP_TEXT_MAX];
	char text[BC_CHUNK_TEXT_BYTES + 1];

	memcpy(text, m->view->chunk.text + event->text, event->text_bytes);
	text[event->text_bytes] = '\0';
	bc_output_json_value(&m->output,
		BC_JSON_OBJECT({"kind", json_string(bc_event_kind_name(event->kind))},
			{"number", bc_json_u64(at->number)},
			{"tick", bc_json_u64_or_null(at->has_tick, at->tick)},
			{"epoch", json_integer(m->view->chunk.info.epoch)},
			{"time", at->has_wall ? bc_json_time(at->wall_ns) : json_null()},
			{"file", bc_json_text(m->files.file.path)},
			{"recording",
				header != NULL ? bc_json_text(header->recording) : json_null()},
			{"host", bc_json_text_or_null(header != NULL ? header->host : "")},
			{"segment", json_integer(m->view->chunk.info.segment)},
			{"text", bc_json_text(is_gap ? bc_gap_text(gap, event) : text)},
			{"cause", is_gap ? json_string(bc_gap_cause_name(event->cause))
					 : json_null()},
			{"lost", bc_json_u64_or_null(is_gap, event->value)},
			{"exact", is_gap ? json_boolean(event->exact) : json_null()},
			{"duration_ns", bc_json_u64_or_null(is_gap, event->duration_ns)}));
}

static void print_text(struct marks *m, const struct moment *at)
{
	char wall[BC_RFC3339_BYTES] = "-";
	char text[BC_GAP_TEXT_MAX];

	if (at->has_wall)
		bc_rfc3339_write(wall, at->wall_ns);
	bc_output_format(&m->output, "%10" PRIu64 "  %s  ", at->number, wall);
	bc_output_safe(&m->output, m->files.file.path);
	bc_output_format(&m->output, "  %-7s  ", bc_event_kind_name(at->event->kind));
	if (at->event->kind == BC_EVENT_GAP)
		bc_output_format(&m->output, "%s", bc_gap_text(text, at->event));
	else
		bc_output_safe_bytes(
			&m->output, m->view->chunk.text + at->event->text, at->event->text_bytes);
	bc_output_text(&m->output, "\n", 1);
}

static struct moment moment_of(const struct marks *m, uint32_t row, const struct bc_event *event)
{
	const struct view *v = m->view;
	const struct bc_chunk_info *info = &v->chunk.info;
	uint64_t hz = bc_segment_file_clock_hz(&m->files.file, row);
	uint32_t last = info->records != 0 ? info->records - 1 : 0;
	uint32_t next = event->position < last ? event->position : last;
	/* The header has the ticks of the first and last record. */
	struct moment at = {.event = event,
		.number = info->first_record + event->position,
		.has_tick = v->has_records || next == 0 || next == last,
		.tick = next == 0        ? info->first_tick
			: v->has_records ? v->ticks[next]
					 : info->last_tick};

	at.has_wall = bc_tick_time(&at.wall_ns, bc_chunk_clock(info, hz), at.tick) && at.has_tick;
	return at;
}

static void print_event(struct marks *m, uint32_t row, const struct bc_event *event)
{
	const struct moment at = moment_of(m, row, event);

	if ((event->kind != BC_EVENT_GAP && event->kind != BC_EVENT_MARK &&
		    event->kind != BC_EVENT_TRIGGER) ||
		(m->kind != NULL && strcmp(m->kind, bc_event_kind_name(event->kind)) != 0) ||
		(at.has_tick && !bc_span_has(m->view->span, at.tick)))
		return;
	m->printed++;
	if (m->is_json)
		print_moment_json(m, &at, row);
	else
		print_text(m, &at);
}

static void print_missing_json(struct marks *m, const struct bc_segment_fault *fault)
{
	const struct bc_missing_segments *missing = fault->missing;
	bool is_known = missing->records != 0;
	struct bc_segment_name name;
	bool has_name = bc_segment_name_read(&name, basename(fault->file));

	bc_output_json_value(&m->output,
		BC_JSON_OBJECT({"kind", json_string(missing_kind)},
			{"number", bc_json_u64_or_null(is_known, missing->from)},
			{"time", is_known ? bc_json_time(missing->from_ns) : json_null()},
			{"file", bc_json_text(fault->file)},
			{"recording", bc_json_text(has_name ? name.recording : NULL)},
			{"segment", json_integer(missing->first)},
			{"segments", json_integer(missing->count)},
			{"records", bc_json_u64_or_null(is_known, missing->records)},
			{"text", bc_json_text(fault->what)}));
}

/* Lists segments that are missing before a file. */
static void print_missing(struct marks *m, const struct bc_segment_fault *fault)
{
	const struct bc_missing_segments *missing = fault->missing;
	char number[24] = "-";
	char wall[BC_RFC3339_BYTES] = "-";

	if (m->kind != NULL && strcmp(m->kind, missing_kind) != 0)
		return;
	m->printed++;
	if (m->is_json) {
		print_missing_json(m, fault);
		return;
	}
	if (missing->records != 0) {
		snprintf(number, sizeof(number), "%" PRIu64, missing->from);
		bc_rfc3339_write(wall, missing->from_ns);
	}
	bc_output_format(&m->output, "%10s  %s  ", number, wall);
	bc_output_safe(&m->output, fault->file);
	bc_output_format(&m->output, "  %-7s  %s\n", missing_kind, fault->what);
}

static void on_marks_fault(void *context, const struct bc_segment_fault *fault)
{
	struct marks *m = context;

	if (fault->kind == BC_SEGMENT_MISSING)
		print_missing(m, fault);
	m->on_fault(&m->input, fault);
}

/* True if events of a chunk can be in the time that is selected; then sets m->view->span. */
static bool is_in_time(struct marks *m, const struct bc_chunk_info *info, uint32_t row)
{
	struct bc_filter_bounds bounds;

	if (!bc_filter_args_chunk(&m->args, m->console, m->files.file.path, info,
		    bc_segment_file_clock_hz(&m->files.file, row), &bounds))
		return false;
	m->view->span = bounds.ticks;
	return true;
}

/* Reads a chunk, or at least its header, which has the events. Returns false if that is damaged. */
static bool read_chunk(struct marks *m, uint32_t row)
{
	m->view->has_records = bc_segment_file_read(&m->files.file, row, &m->view->chunk);
	if (m->view->has_records)
		bc_chunk_ticks(&m->view->chunk, m->view->ticks);
	return m->view->has_records ||
	       bc_segment_file_read_header(&m->files.file, row, &m->view->chunk);
}

/* Reads a chunk, if it has events in the time that is selected. Without a chunk, the file is only a
 * header. Returns false if there is nothing to list. */
static bool load_chunk(struct marks *m, uint32_t row, bool is_killed)
{
	const struct bc_chunk_table *t = &m->files.file.table;
	const struct bc_segment_header *header = t->count == 0 ? bc_chunk_table_header(t, 0) : NULL;
	struct bc_chunk_info *info = &m->view->chunk.info;

	if (t->count != 0)
		return (t->rows[row].info.events != 0 || is_killed) &&
		       is_in_time(m, &t->rows[row].info, row) && read_chunk(m, row);
	m->view->has_records = false;
	if (header != NULL)
		*info = bc_segment_header_chunk(header);
	return is_killed && header != NULL && is_in_time(m, info, 0);
}

/* Reads the next chunk of the open file, if it has events. Adds the gap of a killed recording. */
static void next_chunk(struct marks *m)
{
	const struct bc_segment_file *file = &m->files.file;
	struct view *v = m->view;
	struct bc_chunk_info *info = &v->chunk.info;
	struct bc_recording_end end;
	uint32_t row = v->row++;
	bool is_killed = v->row >= file->table.count &&
			 bc_segment_path_is_killed(file->path, file->table.fd);

	v->event = 0;
	if (!load_chunk(m, row, is_killed))
		info->events = 0;
	else if (is_killed && !bc_recording_end_find(&end, &v->chunk) &&
		 info->events < BC_CHUNK_EVENTS)
		v->chunk.events[info->events++] = (struct bc_event){
			.kind = BC_EVENT_GAP, .cause = BC_GAP_CRASH, .position = info->records};
}

/* Prints the next event of the current lane, reads its next chunk, or opens its next file. */
static void step(struct marks *m, struct bc_lane *lane)
{
	const struct bc_chunk_table *t = &m->files.file.table;
	struct view *v = m->view;
	struct moment at;

	if (v->event < v->chunk.info.events) {
		print_event(m, v->row - 1, &v->chunk.events[v->event++]);
	} else if (m->files.at >= 0 && v->row < (t->count != 0 ? t->count : 1)) {
		next_chunk(m);
	} else if (lane->begin != lane->end) {
		/* Relative times are known after the first chunk. */
		m->files.from_ns = m->args.filter.from_ns;
		m->files.to_ns = m->args.filter.to_ns;
		v->row = 0;
		(void)bc_segments_open(&m->files, lane->begin++, NULL);
	} else {
		lane->is_over = true;
	}
	if (m->files.at < 0 || t->count == 0)
		return; /* its time is unchanged, so the lane stays the current one */
	if (v->event < v->chunk.info.events)
		at = moment_of(m, v->row - 1, &v->chunk.events[v->event]);
	else if (v->row < t->count)
		at.wall_ns = t->rows[v->row].info.wall_ns;
	else /* Missing segments are listed when the next file is opened. */
		(void)bc_chunk_end(&at.wall_ns, &t->rows[v->row - 1].info,
			bc_segment_file_clock_hz(&m->files.file, v->row - 1));
	bc_lane_raise(lane, at.wall_ns);
}

static int list_files(struct marks *m)
{
	struct bc_lane *lane;
	int64_t until_ns;

	bc_lanes_start(&m->lanes);
	bc_lanes_sort(&m->lanes);
	while ((lane = bc_lanes_next(&m->lanes, &until_ns)) != NULL) {
		if (lane->state == NULL)
			lane->state = calloc(1, sizeof(*m->view));
		m->view = lane->state;
		if (m->view == NULL)
			return -ENOMEM;
		while (!lane->is_over && lane->ns <= until_ns) {
			step(m, lane);
			if (bc_output_failed(&m->output) || m->files.file.stop != 0)
				return m->files.file.stop;
		}
	}
	return 0;
}

static enum bc_exit run_marks(struct marks *m, int argc, char **argv)
{
	struct bc_segment_io io = bc_segment_input_io(&m->input);
	struct bc_files files;
	static const struct bc_hosts_answer answer = {&bc_marks_usage, "kind", "time", NULL};
	enum bc_exit code;

	if (bc_hosts_ask(m->console, &answer, argc, argv, 0, &m->args, NULL, &code))
		return code;
	code = bc_operands_read(&m->input.operands, &files, m->console,
		(const char *const *)argv + optind, argc - optind, BC_FILES_SORTED);

	if (code == BC_EXIT_OK && bc_operands_have_file(&m->input.operands, "-"))
		code = bc_print_usage_error(m->console, "give files, not a pipe");
	if (code != BC_EXIT_OK)
		goto out;
	m->input.exit = files.exit;
	m->on_fault = io.fault;
	io.fault = on_marks_fault;
	if (!bc_segments_init(&m->files, &io, files.paths, files.count) ||
		bc_lanes_init(&m->lanes, &m->files) != 0) {
		bc_segments_free(&m->files);
		code = bc_print_no_memory(m->console);
		goto out;
	}
	if (bc_output_open(&m->output, m->console)) {
		if (list_files(m) == -ENOMEM)
			m->input.exit = bc_print_no_memory(m->console);
		code = bc_exit_worse(m->input.exit, bc_output_close(&m->output, m->console));
		if (m->printed == 0 && code == BC_EXIT_OK)
			bc_print_error(m->console, NULL, "no %s%s",
				m->kind != NULL ? m->kind : "mark, trigger or gap",
				m->args.given != 0 ? " matches" : "");
	} else {
		code = BC_EXIT_FAILED;
	}
	bc_lanes_free(&m->lanes);
	bc_segments_free(&m->files);
out:
	bc_files_free(&files);
	bc_operands_close(&m->input.operands);
	return code;
}

static bool read_marks_option(struct marks *m, int letter)
{
	unsigned kind;

	switch (letter) {
	case OPTION_KIND:
		m->kind = optarg;
		return bc_option_choice(m->console, options, letter, &kind);
	case 'j':
		return m->is_json = true;
	default:
		if (bc_hosts_has(letter))
			return true;
		return bc_filter_args_option(&m->args, m->console, letter);
	}
}

enum bc_exit bc_cmd_marks(const struct bc_console *console, int argc, char **argv)
{
	struct marks *m = calloc(1, sizeof(*m));
	struct bc_options o;
	int letter;

	if (m == NULL)
		return bc_print_no_memory(console);
	m->console = console;
	bc_options_start(&o, console, &bc_marks_usage, argc, argv);
	bc_filter_args_init(&m->args);
	while ((letter = bc_options_next(&o)) != -1 && read_marks_option(m, letter))
		;
	enum bc_exit code = letter == -1 ? run_marks(m, argc, argv) : o.exit;
	free(m);
	return code;
}
