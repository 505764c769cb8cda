#include "daemon/api/catalog.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/catalog_read.h"
#include "daemon/base/log_limit.h"

struct waiter {
	struct waiter *next;
	void *context;
	bc_catalog_cb answer;
};

struct bc_catalog {
	uv_loop_t *loop;
	uv_work_t work;
	bool is_busy;
	bool is_closing;
	atomic_bool is_cancelled;
	struct bc_catalog_scan reading;
	json_t *rows;
	uint64_t left_out;
	struct waiter *served;  /* by the job that runs */
	struct waiter *waiting; /* for the next: what they want to see may have come since */
	struct bc_log_limits limits;
	char dir[];
};

static void forget(struct bc_catalog *c)
{
	bc_log_limits_end(&c->limits);
	json_decref(c->rows);
	free(c);
}

/* Each gets rows of its own, the last these. */
static void answer_all(struct waiter *first, json_t *rows)
{
	while (first != NULL) {
		struct waiter *next = first->next;
		json_t *own = next != NULL && rows != NULL ? json_deep_copy(rows) : rows;
		if (next == NULL)
			rows = NULL;
		first->answer(first->context, own);
		free(first);
		first = next;
	}
	json_decref(rows);
}

static void read_rows(uv_work_t *work)
{
	struct bc_catalog *c = work->data;

	c->rows = bc_catalog_read(&c->reading);
}

static int start(struct bc_catalog *c);

static void on_read(uv_work_t *work, int status)
{
	struct bc_catalog *c = work->data;
	struct waiter *served = c->served;
	json_t *rows = c->rows;

	c->is_busy = false;
	if (c->is_closing) {
		forget(c);
		return;
	}
	c->served = NULL;
	c->rows = NULL;
	if (rows == NULL)
		bc_log_limited(&c->limits, BC_LOG_ERROR,
			"%s: its recordings can't be listed: %s; the client is told so", c->dir,
			strerror(status != 0 ? -status : -c->reading.status));
	c->left_out = c->reading.left_out;
	/* The next job is under way before anybody is answered, who may ask again. */
	if (c->waiting != NULL && start(c) != 0) {
		struct waiter *refused = c->served;
		c->served = NULL;
		answer_all(refused, NULL);
	}
	answer_all(served, rows);
}

static int start(struct bc_catalog *c)
{
	c->served = c->waiting;
	c->waiting = NULL;
	c->reading = (struct bc_catalog_scan){
		.dir = c->dir,
		.is_cancelled = &c->is_cancelled,
	};
	c->work.data = c;
	int rc = uv_queue_work(c->loop, &c->work, read_rows, on_read);
	c->is_busy = rc == 0;
	return rc;
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

int bc_catalog_list(struct bc_catalog *c, void *context, bc_catalog_cb answer)
{
	struct waiter *waiter = calloc(1, sizeof(*waiter));
	struct waiter **last = &c->waiting;

	if (waiter == NULL)
		return -ENOMEM;
	waiter->context = context;
	waiter->answer = answer;
	while (*last != NULL)
		last = &(*last)->next;
	*last = waiter;
	if (c->is_busy || start(c) == 0)
		return 0;
	free(waiter);
	c->served = NULL;
	return -ENOMEM;
}

void bc_catalog_poll(struct bc_catalog *c, uint64_t now_ns)
{
	bc_log_limits_poll(&c->limits, now_ns);
}

uint64_t bc_catalog_omitted(const struct bc_catalog *c)
{
	return c->left_out;
}

void bc_catalog_close(struct bc_catalog *c)
{
	if (c == NULL)
		return;
	struct waiter *served = c->served;
	struct waiter *waiting = c->waiting;
	c->served = NULL;
	c->waiting = NULL;
	c->is_closing = true;
	atomic_store(&c->is_cancelled, true);
	answer_all(served, NULL);
	answer_all(waiting, NULL);
	if (!c->is_busy)
		forget(c);
}
