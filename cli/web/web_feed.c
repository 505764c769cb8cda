/* One thread follows the daemon for all pages and keeps its last status, mix and events.
 *
 *   IDLE          no page has asked for ten seconds, or the first attempt to connect has not ended
 *   CONNECTED     the daemon has sent a status in this connection
 *   DISCONNECTED  the last attempt failed, for the reason in `error`; the next one follows
 *
 * Lines from the daemon are parsed to check them, and passed on unchanged; the mix, with names.
 *
 * Invariant: event n is in slot n % BC_WEB_FEED_EVENTS until it is dropped, always the oldest
 * first; `seq` is the number of the last event and never falls. A page that missed events sees a
 * jump in `seq`. Status and mix are NULL unless CONNECTED. */
#include "cli/web/web_feed.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/io/client.h"
#include "cli/term/json_path.h"
#include "formats/base/clock.h"
#include "formats/base/json.h"

/* How often the thread checks if a page is still watching. */
#define WAIT_MS 250

/* The daemon sends a status every second. After this long without one, connect again. */
#define SILENCE_NS (5 * BC_NS_PER_S)

/* The time between attempts to connect, which doubles. */
#define RETRY_MIN_NS (BC_NS_PER_S / 4)
#define RETRY_MAX_NS (4 * BC_NS_PER_S)

/* How long a page waits for the first attempt, and the feed for a response of the daemon. */
#define FIRST_NS (2 * BC_NS_PER_S)
#define CALL_MS  2000

enum feed_state {
	IDLE,
	CONNECTED,
	DISCONNECTED,
};

struct bc_web_feed {
	struct bc_web_feed_options options;
	pthread_t thread;

	/* Used by the thread only. */
	struct bc_client *client;
	bool has_new_status;
	uint64_t status_ns; /* time of the last status */

	/* Protected by the lock. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_ending;
	uint64_t asked_ns; /* the last time a page asked; 0: never */
	enum feed_state state;
	bool was_connected;
	char error[1200];
	char *status; /* the last event of this name, as JSON */
	char *mix;
	uint64_t seq;   /* number of the last event */
	uint32_t count; /* events kept: the last ones */
	size_t bytes;   /* of the events kept */
	char *events[BC_WEB_FEED_EVENTS];
};

/* Needs the lock. */
static void wait_until(struct bc_web_feed *f, uint64_t until_ns)
{
	struct timespec until = {.tv_sec = (time_t)(until_ns / BC_NS_PER_S),
		.tv_nsec = (long)(until_ns % BC_NS_PER_S)};

	pthread_cond_timedwait(&f->changed, &f->lock, &until);
}

/* ---- what the daemon sends */

/* Replaces a text. Needs the lock. */
static void set_text(char **to, char *text)
{
	free(*to);
	*to = text;
}

/* Needs the lock. */
static void set_state(struct bc_web_feed *f, enum feed_state state, const char *error)
{
	f->state = state;
	f->was_connected = f->was_connected || state == CONNECTED;
	snprintf(f->error, sizeof(f->error), "%s", error);
	if (state != CONNECTED) {
		set_text(&f->status, NULL);
		set_text(&f->mix, NULL);
	}
	pthread_cond_broadcast(&f->changed);
}

static void disconnect(struct bc_web_feed *f, const char *error)
{
	pthread_mutex_lock(&f->lock);
	set_state(f, DISCONNECTED, error);
	pthread_mutex_unlock(&f->lock);
}

static void add_status(struct bc_web_feed *f, const char *text)
{
	char *status = strdup(text);

	if (status == NULL)
		return;
	f->has_new_status = true;
	f->status_ns = bc_now_ns();
	pthread_mutex_lock(&f->lock);
	set_text(&f->status, status);
	set_state(f, CONNECTED, "");
	pthread_mutex_unlock(&f->lock);
}

/* Removes the oldest event. Needs the lock. */
static void drop_event(struct bc_web_feed *f)
{
	char **oldest = &f->events[(f->seq + 1 - f->count) % BC_WEB_FEED_EVENTS];

	f->bytes -= strlen(*oldest);
	free(*oldest);
	*oldest = NULL;
	f->count--;
}

/* An event that is too long or does not fit in memory is dropped with all events before it, so that
 * those kept have consecutive numbers. */
static void add_event(struct bc_web_feed *f, const char *text, size_t bytes)
{
	char *event = bytes <= BC_WEB_FEED_BYTES ? strdup(text) : NULL;

	pthread_mutex_lock(&f->lock);
	while (f->count != 0 && (event == NULL || f->count == BC_WEB_FEED_EVENTS ||
					bytes > BC_WEB_FEED_BYTES - f->bytes))
		drop_event(f);
	f->seq++;
	if (event != NULL) {
		f->events[f->seq % BC_WEB_FEED_EVENTS] = event;
		f->count++;
		f->bytes += bytes;
	}
	pthread_mutex_unlock(&f->lock);
}

static bool on_line(void *context, char *text, size_t bytes)
{
	struct bc_web_feed *f = context;
	json_t *object = bc_json_parse_object(text, bytes);
	const char *event = bc_json_path_text(object, "event");

	if (event != NULL && strcmp(event, "status") != 0)
		add_event(f, text, bytes);
	else if (event != NULL && json_is_object(bc_json_path(object, "status")))
		add_status(f, text);
	json_decref(object);
	return true;
}

/* Adds a name to each of the hottest pages. */
static void name_pages(const struct bc_web_feed *f, json_t *mix)
{
	size_t i;
	json_t *page;

	json_array_foreach(json_object_get(mix, "pages"), i, page)
	{
		const char *addr = bc_json_path_text(page, "addr");
		json_t *name = bc_name_map_json(addr != NULL ? f->options.names : NULL, false,
			addr != NULL ? strtoull(addr, NULL, 16) : 0);
		(void)json_object_set_new(page, "name", name);
	}
}

static void request_mix(struct bc_web_feed *f)
{
	struct bc_response response;
	char *text = NULL;

	if (bc_client_call(f->client, "GET", "/v1/mix", NULL, &response) == BC_EXIT_OK) {
		name_pages(f, response.json);
		text = bc_json_print(response.json);
	}
	bc_response_free(&response);
	pthread_mutex_lock(&f->lock);
	set_text(&f->mix, text);
	pthread_mutex_unlock(&f->lock);
}

/* ---- the thread */

/* Needs the lock. */
static bool is_watched(const struct bc_web_feed *f)
{
	return !f->is_ending && f->asked_ns != 0 &&
	       bc_now_ns() - f->asked_ns < BC_WEB_FEED_WATCH_NS;
}

static bool is_watched_now(struct bc_web_feed *f)
{
	pthread_mutex_lock(&f->lock);
	bool is = is_watched(f);
	pthread_mutex_unlock(&f->lock);
	return is;
}

static void report_disconnect(struct bc_web_feed *f, enum bc_exit code)
{
	char error[sizeof(f->error)];
	const char *text = bc_client_error(f->client);

	snprintf(error, sizeof(error), "%s%s%s",
		code == BC_EXIT_UNREACHABLE ? bc_client_path(f->client) : "",
		code == BC_EXIT_UNREACHABLE ? ": " : "",
		code == BC_EXIT_OK ? "the daemon ended the stream of events" : text);
	disconnect(f, error);
}

/* Reads events until the connection is lost or no page is watching. True: a status arrived. */
static bool read_events(struct bc_web_feed *f)
{
	enum bc_exit code = bc_client_stream(f->client, "/v1/events", on_line, f);
	bool had_status = false;

	f->status_ns = bc_now_ns();
	while (code == BC_EXIT_OK && !bc_client_is_over(f->client) && is_watched_now(f)) {
		f->has_new_status = false;
		code = bc_client_wait(f->client, NULL, 0, WAIT_MS);
		if (f->has_new_status && !bc_client_is_over(f->client))
			request_mix(f);
		had_status = had_status || f->has_new_status;
		if (bc_now_ns() - f->status_ns > SILENCE_NS) {
			disconnect(f, "no status from the daemon for 5 s");
			return had_status;
		}
	}
	if (code != BC_EXIT_OK || bc_client_is_over(f->client))
		report_disconnect(f, code);
	return had_status;
}

/* Connects, again after each failure, while a page is watching. */
static void follow_daemon(struct bc_web_feed *f)
{
	uint64_t retry_ns = RETRY_MIN_NS;

	while (is_watched_now(f)) {
		if (bc_client_open(&f->client, f->options.console, f->options.socket) ==
			BC_EXIT_OK) {
			bc_client_set_timeout(f->client, CALL_MS);
			if (read_events(f))
				retry_ns = RETRY_MIN_NS;
		} else {
			disconnect(f, "out of memory");
		}
		bc_client_close(f->client);
		pthread_mutex_lock(&f->lock);
		uint64_t until = bc_now_ns() + retry_ns;
		while (is_watched(f) && bc_now_ns() < until)
			wait_until(f, until);
		pthread_mutex_unlock(&f->lock);
		retry_ns = 2 * retry_ns < RETRY_MAX_NS ? 2 * retry_ns : RETRY_MAX_NS;
	}
}

static void *run_feed(void *context)
{
	struct bc_web_feed *f = context;

	pthread_mutex_lock(&f->lock);
	while (!f->is_ending) {
		if (!is_watched(f)) {
			pthread_cond_wait(&f->changed, &f->lock);
			continue;
		}
		pthread_mutex_unlock(&f->lock);
		follow_daemon(f);
		pthread_mutex_lock(&f->lock);
		set_state(f, IDLE, "");
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* ---- what pages ask for */

/* Notes that a page is watching, and waits for the first attempt to connect. Needs the lock. */
static void start_watching(struct bc_web_feed *f)
{
	uint64_t until = bc_now_ns() + FIRST_NS;

	f->asked_ns = bc_now_ns();
	pthread_cond_broadcast(&f->changed);
	while (f->state == IDLE && !f->is_ending && bc_now_ns() < until)
		wait_until(f, until);
}

/* Needs the lock. */
static void write_head(const struct bc_web_feed *f, FILE *out)
{
	static const char late[] = "no response from the daemon yet";
	const char *state = f->state == CONNECTED                        ? "connected"
			    : f->was_connected || f->options.is_expected ? "disconnected"
									 : "none";
	const char *error = f->state == IDLE ? late : f->error;
	json_t *value = bc_json_text(state[0] == 'd' ? error : NULL);
	char *text = bc_json_print(value);

	json_decref(value);
	fprintf(out, "{\"state\":\"%s\",\"error\":%s,\"seq\":%" PRIu64 ",\"status\":%s,\"mix\":%s",
		state, text != NULL ? text : "null", f->seq, f->status != NULL ? f->status : "null",
		f->mix != NULL ? f->mix : "null");
	free(text);
}

char *bc_web_feed_write(struct bc_web_feed *f, uint64_t since)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	const char *comma = "";

	if (out == NULL)
		return NULL;
	pthread_mutex_lock(&f->lock);
	start_watching(f);
	write_head(f, out);
	fputs(",\"events\":[", out);
	uint64_t first = f->seq - f->count;
	for (uint64_t n = since > first ? since : first; n < f->seq; n++) {
		const char *event = f->events[(n + 1) % BC_WEB_FEED_EVENTS];
		fprintf(out, "%s%s", comma, event);
		comma = ",";
	}
	pthread_mutex_unlock(&f->lock);
	fputs("]}\n", out);
	bool ok = !ferror(out);
	if (fclose(out) == 0 && ok)
		return text;
	free(text);
	return NULL;
}

/* ---- open and close */

int bc_web_feed_open(struct bc_web_feed **out, const struct bc_web_feed_options *options)
{
	struct bc_web_feed *f = calloc(1, sizeof(*f));
	pthread_condattr_t attr;

	*out = NULL;
	if (f == NULL)
		return -ENOMEM;
	f->options = *options;
	pthread_mutex_init(&f->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&f->changed, &attr);
	pthread_condattr_destroy(&attr);
	int rc = -pthread_create(&f->thread, NULL, run_feed, f);
	if (rc == 0) {
		*out = f;
		return 0;
	}
	free(f);
	return rc;
}

void bc_web_feed_close(struct bc_web_feed *f)
{
	if (f == NULL)
		return;
	pthread_mutex_lock(&f->lock);
	f->is_ending = true;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	while (f->count != 0)
		drop_event(f);
	free(f->status);
	free(f->mix);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
	free(f);
}
