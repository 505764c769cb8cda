#include "cli/trace/recording_info.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/term/column.h"
#include "cli/term/humanize.h"
#include "formats/base/json.h"
#include "formats/base/number.h"
#include "formats/recording/recording_summary.h"

struct printer {
	const struct bc_console *console;
	struct bc_output *output;
	const char *dir;
	bool is_json;
	int id_width;
	enum bc_exit exit;
	/* Of the recordings so far. */
	uint64_t count;
	uint64_t segments;
	uint64_t records;
	uint64_t lost;
	uint64_t bytes;
	struct bc_recording_summary summary;
};

static char *path_of(const struct printer *p, const char *file)
{
	char *path = NULL;

	return asprintf(&path, "%s/%s", p->dir, file) >= 0 ? path : NULL;
}

static void on_fault(void *context, const char *file, int error)
{
	struct printer *p = context;
	char *path = path_of(p, file);
	bool is_damaged = error == -EXDEV || error == -EBADMSG;

	bc_print_error(p->console, path, "%s%s", is_damaged ? "" : "can't open: ",
		error == -EXDEV     ? "skipped: by its header it is not this segment"
		: error == -EBADMSG ? "damaged; see buscap verify"
				    : strerror(-error));
	p->exit = bc_exit_worse(p->exit, is_damaged ? BC_EXIT_DAMAGED : BC_EXIT_FAILED);
	free(path);
}

static void on_missing(void *context, const char *file, const struct bc_missing_segments *missing)
{
	struct printer *p = context;
	char what[BC_MISSING_TEXT];
	char *path = path_of(p, file);

	bc_print_error(p->console, path, "%s", bc_missing_write(what, missing));
	p->exit = bc_exit_worse(p->exit, BC_EXIT_DAMAGED);
	free(path);
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
	bc_output_format(p->output, "%-*s  %-9s  %-*s  %10s  %8s  %17s  %12s  %8s  HOST\n",
		p->id_width, "ID", "STATE", BC_COLUMN_TIME, "STARTED (UTC)", "DURATION", "SEGMENTS",
		"RECORDS", "LOST", "ON DISK");
}

static void print_row(const struct printer *p, const json_t *row)
{
	const struct bc_recording_summary *s = &p->summary;
	char text[BC_HUMANIZE_MAX] = "-";

	bc_column_text(p->output, p->id_width, row, "id");
	bc_column_text(p->output, 9, row, "state");
	bc_column_time(p->output, row, "started");
	if (s->has_start)
		bc_humanize_time(text, (double)(s->to_ns - s->started_ns) / 1e9);
	bc_output_format(p->output, "%10s  ", text);
	bc_column_count(p->output, 8, row, "segments");
	bc_column_count(p->output, 17, row, "records");
	bc_column_count(p->output, 12, row, "lost");
	bc_output_format(p->output, "%8s  ", bc_humanize_bytes(text, (double)s->bytes));
	bc_output_safe(p->output, s->header.host[0] != '\0' ? s->header.host : "-");
	if (s->first_record != 0)
		bc_output_format(p->output, "  starts at record %" PRIu64, s->first_record);
	if (s->missing != 0)
		bc_output_format(p->output, "  %s record%s missing",
			bc_humanize_count(text, s->missing), bc_plural(s->missing));
	else if (s->missing_segments != 0)
		bc_output_format(p->output, "  %" PRIu64 " segment%s missing", s->missing_segments,
			bc_plural(s->missing_segments));
	bc_output_text(p->output, "\n", 1);
}

static void print_total(const struct printer *p)
{
	char texts[4][BC_HUMANIZE_MAX];

	bc_output_format(p->output, "%-*s  %8s  %17s  %12s  %8s\n",
		p->id_width + 2 + 9 + 2 + BC_COLUMN_TIME + 2 + 10, "total",
		bc_humanize_count(texts[0], p->segments), bc_humanize_count(texts[1], p->records),
		bc_humanize_count(texts[2], p->lost),
		bc_humanize_bytes(texts[3], (double)p->bytes));
}

/* The members that only this command prints. */
static json_t *more_json(const struct bc_recording_summary *s)
{
	return bc_json_object((struct bc_json_member[]){
		{"duration_ns",
			s->has_start ? json_integer(s->to_ns - s->started_ns) : json_null()},
		{"missing_segments", bc_json_u64(s->missing_segments)},
		{"missing", bc_json_u64(s->missing)},
		{"first_record", bc_json_u64(s->first_record)},
		{NULL, NULL},
	});
}

/* Prints the recording that has been summarized. Returns false if out of memory. */
static bool print_recording(struct printer *p, const char *id)
{
	const struct bc_recording_summary *s = &p->summary;
	char *path = path_of(p, s->path);
	json_t *row = bc_recording_summary_json(s, id, path);
	bool ok = row != NULL;

	free(path);
	p->count++;
	p->segments += s->segments;
	p->records += s->records;
	p->lost += s->lost;
	p->bytes += s->bytes;
	if (p->is_json) {
		ok = ok && json_object_update_new(row, more_json(s)) == 0;
		if (ok)
			return bc_output_json_value(p->output, row);
	} else if (ok) {
		if (p->count == 1)
			print_head(p);
		print_row(p, row);
	}
	json_decref(row);
	return ok;
}

static void print_recordings(struct printer *p, int dir_fd, const struct bc_recording_list *list,
	const struct bc_recording *at, const struct bc_recording *end)
{
	const struct bc_summary_io io = {.context = p,
		.fault = on_fault,
		.missing = on_missing,
		.goes_on = goes_on,
		.counts_unsealed = true};

	p->id_width = id_width(at, end);
	for (; at != end && goes_on(p); at++) {
		int rc = bc_recording_summarize(&p->summary, dir_fd, list, at, &io);
		bool is_known = p->summary.segments != p->summary.unread;
		if (rc == -ENOMEM || (rc == 0 && is_known && !print_recording(p, at->id))) {
			p->exit = bc_print_no_memory(p->console);
			return;
		}
		bc_output_flush(p->output);
	}
	if (!p->is_json && p->count > 1)
		print_total(p);
}

enum bc_exit bc_recording_info_print(struct bc_output *output, const struct bc_operands *operands,
	const struct bc_operand *operand, bool is_json)
{
	struct bc_recording_list list;
	const struct bc_recording *begin;
	const struct bc_recording *end;
	struct printer *p = calloc(1, sizeof(*p));
	int fd = open(operand->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (p == NULL) {
		if (fd >= 0)
			close(fd);
		return bc_print_no_memory(operands->console);
	}
	p->console = operands->console;
	p->output = output;
	p->dir = operand->path;
	p->is_json = is_json;
	p->exit = bc_operand_list(operands, operand, &list, &begin, &end);
	if (fd >= 0) {
		print_recordings(p, fd, &list, begin, end);
		close(fd);
	}
	bc_recording_list_free(&list);
	enum bc_exit code = p->exit;
	free(p);
	return code;
}
