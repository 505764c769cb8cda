#include "daemon/api/catalog.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/catalog_read.h"
#include "daemon/base/log_limit.h"

struct list_request {
	struct list_request *next;
	void *context;
	bc_catalog_cb cb;
};

struct bc_catalog {
	uv_loop_t *loop;
	uv_work_t work;
	bool is_busy;
	bool is_closing;
	atomic_bool is_cancelled;
	struct bc_catalog_scan scan;
	json_t *rows;
	uint64_t omitted;
	struct list_request *running; /* served by the running job */
	struct list_request *waiting; /* came later, so they need the next job */
	struct bc_log_limits limits;
	char dir[];
};

static void free_catalog(struct bc_catalog *c)
{
	bc_log_limits_end(&c->limits);
	json_decref(c->rows);
	free(c);
}

/* Passes a copy of `rows` to each request, and `rows` itself to the last. */
static void complete_all(struct list_request *first, json_t *rows)
{
	while (first != NULL) {
		struct list_request *next = first->next;
		json_t *own = next != NULL && rows != NULL ? json_deep_copy(rows) : rows;
		if (next == NULL)
			rows = NULL;
		first->cb(first->context, own);
		free(first);
		first = next;
	}
	json_decref(rows);
}

static void scan_directory(uv_work_t *work)
{
	struct bc_catalog *c = work->data;

	c->rows = bc_catalog_read(&c->scan);
}

static void start_scan(struct bc_catalog *c);

static void on_scanned(uv_work_t *work, int status)
{
	struct bc_catalog *c = work->data;
	struct list_request *running = c->running;
	json_t *rows = c->rows;

	(void)status; /* never cancelled */
	c->is_busy = false;
	if (c->is_closing) {
		free_catalog(c);
		return;
	}
	c->running = NULL;
	c->rows = NULL;
	if (rows == NULL)
		bc_log_limited(&c->limits, BC_LOG_ERROR, "%s: cannot list the recordings: %s",
			c->dir, strerror(-c->scan.status));
	c->omitted = c->scan.omitted;
	/* Start the next job before the callbacks, which may add requests. */
	if (c->waiting != NULL)
		start_scan(c);
	complete_all(running, rows);
}

static void start_scan(struct bc_catalog *c)
{
	c->running = c->waiting;
	c->waiting = NULL;
	c->scan = (struct bc_catalog_scan){
		.dir = c->dir,
		.is_cancelled = &c->is_cancelled,
	};
	c->work.data = c;
	c->is_busy = true;
	(void)uv_queue_work(c->loop, &c->work, scan_directory, on_scanned); /* cannot fail */
}

int bc_catalog_open(struct bc_catalog **catalog, uv_loop_t *loop, const char *dir)
{
	size_t bytes = strlen(dir) + 1;
	struct bc_catalog *c = calloc(1, sizeof(*c) + bytes);

	if (c == NULL)
		return -ENOMEM;
	c->loop = loop;
	atomic_init(&c->is_cancelled, false);
	memcpy(c->dir, dir, bytes);
	*catalog = c;
	return 0;
}

int bc_catalog_list(struct bc_catalog *c, void *context, bc_catalog_cb cb)
{
	struct list_request *request = calloc(1, sizeof(*request));
	struct list_request **last = &c->waiting;

	if (request == NULL)
		return -ENOMEM;
	request->context = context;
	request->cb = cb;
	while (*last != NULL)
		last = &(*last)->next;
	*last = request;
	if (!c->is_busy)
		start_scan(c);
	return 0;
}

void bc_catalog_poll(struct bc_catalog *c, uint64_t now_ns)
{
	bc_log_limits_poll(&c->limits, now_ns);
}

uint64_t bc_catalog_omitted(const struct bc_catalog *c)
{
	return c->omitted;
}

void bc_catalog_close(struct bc_catalog *c)
{
	if (c == NULL)
		return;
	struct list_request *running = c->running;
	struct list_request *waiting = c->waiting;
	c->running = NULL;
	c->waiting = NULL;
	c->is_closing = true;
	atomic_store(&c->is_cancelled, true);
	complete_all(running, NULL);
	complete_all(waiting, NULL);
	if (!c->is_busy)
		free_catalog(c);
}
