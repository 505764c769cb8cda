/* One overview, which keeps what is known about the files, is shared by all pages. Its lock is held
 * while a picture is drawn or events are listed; data->client is the client that this is for.
 * Searches read the files themselves, without the lock, so several can run at a time.
 *
 * Reading stops when the result is not needed: the client has disconnected, its time is up, or the
 * server is ending. Pictures then fail; a search is cut off after its time, and says so. */
#include "cli/web/web_data.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli/web/locality.h"
#include "formats/base/clock.h"
#include "formats/base/json.h"

/* Bytes of a search's text that are kept for its last line. */
#define END_BYTES 256u

struct bc_web_data {
	const struct bc_operands *operands;
	const struct bc_name_map *names;
	atomic_int files;     /* listed for the latest picture or events */
	pthread_mutex_t lock; /* of the following members */
	struct bc_overview *overview;
	const struct bc_web_client *client;
};

/* A client that has closed its side of the connection counts as gone. */
static bool has_gone(const struct bc_web_client *client)
{
	struct pollfd fd = {.fd = client->fd, .events = POLLRDHUP};

	return atomic_load(client->is_ending) ||
	       (poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0);
}

static bool still_waits(const struct bc_web_client *client)
{
	return !has_gone(client) && bc_now_ns() < client->until_ns;
}

/* ---- pictures */

/* The overview lists them. */
static void on_overview_fault(void *context, const struct bc_segment_fault *fault)
{
	(void)context;
	(void)fault;
}

static bool on_overview_pace(void *context, uint64_t bytes)
{
	const struct bc_web_data *data = context;

	(void)bytes;
	return still_waits(data->client);
}

static int on_overview_open(void *context, const char *path)
{
	const struct bc_web_data *data = context;
	const struct bc_segment_io io = {.context = context, .fault = on_overview_fault};
	int fd = bc_operands_open_picture(data->operands, path);

	return fd >= 0 ? fd : bc_segment_open_regular(&io, path);
}

/* Reads what has changed in the directories. Needs the lock. */
static int update_overview(struct bc_web_data *data, const struct bc_web_client *client)
{
	struct bc_files files;
	int rc = bc_operands_list_again(data->operands, &files);

	data->client = client;
	atomic_store(&data->files, files.count);
	if (rc == 0)
		rc = bc_overview_update(data->overview, files.paths, files.count);
	bc_files_free(&files);
	return rc;
}

int bc_web_data_overview(struct bc_web_data *data, const struct bc_web_client *client,
	const struct bc_overview_options *options, enum bc_figure figure, unsigned classes,
	struct bc_byte_buffer *text)
{
	pthread_mutex_lock(&data->lock);
	int rc = update_overview(data, client);
	if (rc == 0)
		rc = bc_overview_draw(data->overview, options);
	if (rc == 0 && figure == BC_FIGURE_NONE)
		rc = bc_overview_json(data->overview, data->names, text);
	else if (rc == 0)
		rc = bc_figure_picture(text, data->overview, figure, classes);
	pthread_mutex_unlock(&data->lock);
	return rc;
}

int bc_web_data_locality(struct bc_web_data *data, const struct bc_web_client *client,
	const struct bc_filter *filter, const char *recording, enum bc_figure figure,
	struct bc_byte_buffer *text)
{
	json_t *curves = NULL;

	pthread_mutex_lock(&data->lock);
	int rc = update_overview(data, client);
	if (rc == 0)
		rc = bc_locality_read(&curves, data->overview, filter, recording);
	pthread_mutex_unlock(&data->lock);
	if (rc == 0 && figure == BC_FIGURE_NONE)
		text->bytes = bc_json_print_line(curves);
	else if (rc == 0)
		rc = bc_figure_curve(text, curves, figure);
	json_decref(curves);
	return rc;
}

int bc_web_data_events(struct bc_web_data *data, const struct bc_web_client *client,
	int64_t from_ns, int64_t to_ns, struct bc_byte_buffer *text)
{
	pthread_mutex_lock(&data->lock);
	int rc = update_overview(data, client);
	if (rc == 0)
		rc = bc_overview_events_json(
			data->overview, from_ns, to_ns, BC_OVERVIEW_EVENTS, text);
	pthread_mutex_unlock(&data->lock);
	return rc;
}

char *bc_web_data_files(const struct bc_web_data *data)
{
	json_t *paths = json_array();

	for (int i = 0; i < data->operands->count; i++)
		paths = bc_json_append(paths, bc_json_text(data->operands->all[i].path));
	json_t *object = BC_JSON_OBJECT({"paths", paths},
		{"files", json_integer(atomic_load(&data->files))},
		{"read", json_integer(bc_overview_files_read(data->overview))});
	char *text = bc_json_print(object);
	json_decref(object);
	return text;
}

/* ---- searches */

struct search {
	const struct bc_web_data *data;
	const struct bc_web_client *client;
	struct bc_byte_buffer *text;
	uint64_t damaged_places;
	const char *cut_off;
};

/* Appends a line that fits into `max` bytes of text. */
static bool add_line(struct search *s, json_t *object, size_t max)
{
	char *line = bc_json_print_line(object);
	size_t bytes = line != NULL ? strlen(line) : 0;
	bool fits = bytes <= max && s->text->used <= max - bytes;

	json_decref(object);
	if (line == NULL)
		s->text->is_out_of_memory = true;
	else if (!fits)
		s->cut_off = "too long";
	bool ok = line != NULL && fits && bc_byte_buffer_add(s->text, line, bytes);
	free(line);
	return ok;
}

static json_t *fault_json(const struct bc_segment_fault *fault)
{
	const char *what = fault->what != NULL ? fault->what : strerror(-fault->error);
	json_t *damage = BC_JSON_OBJECT({"file", bc_json_text(fault->file)},
		{"offset", bc_json_u64(fault->offset)}, {"bytes", bc_json_u64(fault->bytes)},
		{"what", bc_json_text(what)});

	return json_pack("{s:o}", "damage", damage);
}

static json_t *end_json(
	uint64_t matches, int segments, uint64_t damaged_places, const char *cut_off)
{
	json_t *end = BC_JSON_OBJECT({"matches", bc_json_u64(matches)},
		{"segments", json_integer(segments)},
		{"damaged_places", bc_json_u64(damaged_places)},
		{"cut_off", bc_json_text(cut_off)});

	return json_pack("{s:o}", "end", end);
}

static bool on_search_hit(void *context, const struct bc_search_hit *hit)
{
	struct search *s = context;
	const struct bc_entry *entry = &hit->entry;
	bool is_port = entry->kind == BC_ENTRY_REFERENCE && bc_is_port_access(entry->type);
	json_t *name = bc_name_map_json(s->data->names, is_port, entry->addr);

	return add_line(s, bc_search_hit_json(hit, name), s->text->max - END_BYTES);
}

static void on_search_fault(void *context, const struct bc_segment_fault *fault)
{
	struct search *s = context;

	if (fault->kind == BC_SEGMENT_REPEATED || fault->kind == BC_SEGMENT_NO_CLOCK)
		return; /* the results are complete */
	s->damaged_places++;
	add_line(s, fault_json(fault), s->text->max - END_BYTES);
}

static int on_search_open(void *context, const char *path)
{
	const struct search *s = context;
	const struct bc_segment_io io = {.context = context, .fault = on_search_fault};
	int fd = bc_operands_open_picture(s->data->operands, path);

	return fd >= 0 ? fd : bc_segment_open_regular(&io, path);
}

static bool on_search_pace(void *context, uint64_t bytes)
{
	struct search *s = context;

	(void)bytes;
	if (s->cut_off == NULL && !still_waits(s->client))
		s->cut_off = "time limit";
	return s->cut_off == NULL;
}

int bc_web_data_find(struct bc_web_data *data, const struct bc_web_client *client,
	const struct bc_search_options *options, struct bc_byte_buffer *text)
{
	struct search s = {.data = data, .client = client, .text = text};
	const struct bc_segment_io io = {.context = &s,
		.open = on_search_open,
		.fault = on_search_fault,
		.by_axis = true,
		.pace = on_search_pace};
	struct bc_files files;
	uint64_t matches = 0;
	const char *missing;

	int rc = bc_operands_list_again(data->operands, &files);
	if (rc == 0)
		rc = bc_search_run(
			options, files.paths, files.count, &io, on_search_hit, &matches, &missing);
	if (rc == 0)
		add_line(
			&s, end_json(matches, files.count, s.damaged_places, s.cut_off), text->max);
	bc_files_free(&files);
	if (has_gone(client))
		return -ECANCELED;
	return text->is_out_of_memory ? -ENOMEM : rc;
}

/* ---- open and close */

int bc_web_data_open(struct bc_web_data **out, const struct bc_operands *operands,
	const struct bc_name_map *names)
{
	struct bc_web_data *data = calloc(1, sizeof(*data));

	*out = NULL;
	if (data == NULL)
		return -ENOMEM;
	const struct bc_segment_io io = {.context = data,
		.open = on_overview_open,
		.fault = on_overview_fault,
		.by_axis = true,
		.pace = on_overview_pace};
	data->operands = operands;
	data->names = names;
	int rc = bc_overview_open(&data->overview, &io);
	if (rc != 0) {
		free(data);
		return rc;
	}
	pthread_mutex_init(&data->lock, NULL);
	*out = data;
	return 0;
}

void bc_web_data_close(struct bc_web_data *data)
{
	if (data == NULL)
		return;
	bc_overview_close(data->overview);
	pthread_mutex_destroy(&data->lock);
	free(data);
}
