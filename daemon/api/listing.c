/* Reads pages of recordings, one at a time, in a job on libuv's pool; requests wait in a queue.
 *
 * A page is a list of ids from the catalogue; the job summarizes each recording from its files and
 * makes the JSON. Invariant: at most one job runs, with one request; beside that it uses the
 * catalogue, which has a lock. If it runs at the close, it is cancelled, and frees the listing. */
#include "daemon/api/listing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/store/catalogue_listing.h"
#include "formats/recording/recording_summary.h"

/* While the directory is listed for the first time. */
#define PATIENCE_NS UINT64_C(250000000)

/* A recording of more segments is summed up from its first and its last. */
#define LONG_SEGMENTS 1000u

#define DIR_BYTES 4096

struct request {
	struct request *next;
	void *context;
	bc_page_cb cb;
	struct bc_page page;
};

struct bc_listing {
	uv_loop_t *loop;
	uv_work_t work;
	struct bc_catalogue *catalogue;
	bool is_closing;
	atomic_bool is_cancelled;
	struct request *running; /* the job's */
	struct request *waiting;
	json_t *rows; /* of the job */
	uint64_t omitted;
	int error;
	char dir[];
};

/* On the pool */

static bool is_wanted(void *context)
{
	struct bc_listing *l = context;

	return !atomic_load(&l->is_cancelled);
}

/* Adds a recording to the page. Returns 0, or a negative errno that ends the page. */
static int add_row(struct bc_listing *l, int dir_fd, const struct bc_recording_list *list,
	const struct bc_recording *recording, struct bc_recording_summary *summary)
{
	const struct bc_summary_io io = {.context = l,
		.goes_on = is_wanted,
		.knows_current = true,
		.only_ends = recording->count > LONG_SEGMENTS};
	char path[DIR_BYTES + BC_RECORDING_PATH_MAX];
	int rc = bc_recording_summarize(summary, dir_fd, list, recording, &io);

	if (rc != 0 || summary->segments == summary->unread)
		return rc;
	if (io.only_ends)
		summary->bytes = bc_catalogue_bytes(l->catalogue, recording->id);
	snprintf(path, sizeof(path), "%s/%s", l->dir, summary->path);
	json_t *row = bc_recording_summary_json(summary, recording->id, path);
	return json_array_append_new(l->rows, row) == 0 ? 0 : -ENOMEM;
}

/* Adds the recordings from `first` on, without `end`. */
static int add_rows(struct bc_listing *l, int dir_fd, const struct bc_recording_list *list,
	uint32_t first, uint32_t end)
{
	struct bc_recording_summary *summary = malloc(sizeof(*summary));
	int rc = summary == NULL ? -ENOMEM : 0;

	for (uint32_t i = first; rc == 0 && i < end; i++)
		rc = add_row(l, dir_fd, list, &list->recordings[i], summary);
	free(summary);
	return rc;
}

static int read_from_catalogue(
	struct bc_listing *l, int dir_fd, const char *before, const struct bc_page *page)
{
	struct bc_recording_list list;

	bc_catalogue_refresh_small(l->catalogue);
	int rc = bc_catalogue_page(l->catalogue, before, page->limit, &list, &l->omitted);
	if (rc != 0)
		return rc;
	rc = add_rows(l, dir_fd, &list, 0, list.count);
	bc_recording_list_free(&list);
	return rc;
}

/* The catalogue of a large directory takes a while. Until then, names are listed by id. */
static int read_by_name(
	struct bc_listing *l, int dir_fd, const char *before, const struct bc_page *page)
{
	struct bc_recording_list list;
	int rc = bc_recording_list_read(&list, dir_fd, false);

	if (rc != 0)
		return rc;
	uint32_t end = list.count;
	while (before != NULL && end != 0 && strcmp(list.recordings[end - 1].id, before) >= 0)
		end--;
	uint32_t first = end > page->limit ? end - page->limit : 0;
	l->omitted = first;
	rc = add_rows(l, dir_fd, &list, first, end);
	bc_recording_list_free(&list);
	return rc;
}

static void read_page(uv_work_t *work)
{
	struct bc_listing *l = work->data;
	const struct bc_page *page = &l->running->page;
	const char *before = page->before[0] != '\0' ? page->before : NULL;
	int dir_fd = open(l->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = dir_fd < 0 ? -errno : 0;

	l->rows = json_array();
	if (rc == 0)
		rc = bc_catalogue_wait(l->catalogue, PATIENCE_NS)
			     ? read_from_catalogue(l, dir_fd, before, page)
			     : read_by_name(l, dir_fd, before, page);
	if (dir_fd >= 0)
		close(dir_fd);
	if (rc != 0) {
		json_decref(l->rows);
		l->rows = NULL;
	}
	l->error = rc;
}

/* On the loop */

static void start_job(struct bc_listing *l);

static void answer(struct request *request, json_t *rows, uint64_t omitted)
{
	request->cb(request->context, rows, omitted);
	free(request);
}

static void on_page_read(uv_work_t *work, int status)
{
	struct bc_listing *l = work->data;
	struct request *request = l->running;
	json_t *rows = l->rows;
	uint64_t omitted = l->omitted;
	int error = l->error;

	(void)status; /* never cancelled */
	l->running = NULL;
	l->rows = NULL;
	if (l->is_closing) {
		json_decref(rows);
		free(request);
		free(l);
		return;
	}
	if (rows == NULL)
		bc_log(BC_LOG_ERROR, "%s: can't list the recordings: %s", l->dir, strerror(-error));
	/* Start the next job before the callback, which may add requests. */
	start_job(l);
	answer(request, rows, omitted);
}

static void start_job(struct bc_listing *l)
{
	if (l->running != NULL || l->waiting == NULL)
		return;
	l->running = l->waiting;
	l->waiting = l->running->next;
	l->work.data = l;
	(void)uv_queue_work(l->loop, &l->work, read_page, on_page_read); /* cannot fail */
}

int bc_listing_open(struct bc_listing **listing, uv_loop_t *loop, const char *dir,
	struct bc_catalogue *catalogue)
{
	size_t bytes = strlen(dir) + 1;
	struct bc_listing *l = calloc(1, sizeof(*l) + bytes);

	if (l == NULL)
		return -ENOMEM;
	l->loop = loop;
	l->catalogue = catalogue;
	atomic_init(&l->is_cancelled, false);
	memcpy(l->dir, dir, bytes);
	*listing = l;
	return 0;
}

int bc_listing_page(struct bc_listing *l, const struct bc_page *page, void *context, bc_page_cb cb)
{
	struct request *request = malloc(sizeof(*request));
	struct request **last = &l->waiting;

	if (request == NULL)
		return -ENOMEM;
	*request = (struct request){.context = context, .cb = cb, .page = *page};
	while (*last != NULL)
		last = &(*last)->next;
	*last = request;
	start_job(l);
	return 0;
}

void bc_listing_close(struct bc_listing *l)
{
	if (l == NULL)
		return;
	l->is_closing = true;
	atomic_store(&l->is_cancelled, true);
	while (l->waiting != NULL) {
		struct request *request = l->waiting;
		l->waiting = request->next;
		answer(request, NULL, 0);
	}
	if (l->running == NULL)
		free(l);
	else
		l->running->cb(l->running->context, NULL, 0);
}
