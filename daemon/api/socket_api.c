/* What the daemon shows to clients: it owns the HTTP servers, for the socket and for
 * metrics_listen, and everything that only clients need: events, live records, the page sampler,
 * the history and the pages of recordings. The recorder is the caller's.
 *
 * The servers know no loop: each has one descriptor, which is watched here. They start last, with
 * bc_socket_api_serve(), so no request arrives before there is a recorder to answer it, and are
 * closed before the events and records that their streams read. */
#include "daemon/api/socket_api.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/api/api.h"
#include "daemon/base/descriptors.h"
#include "daemon/base/log.h"
#include "formats/base/clock.h"
#include "formats/base/tcp_address.h"
#include "formats/http/server.h"

/* For metrics_listen: enough for a few scrapers. */
#define METRICS_CONNECTIONS 8u

/* Descriptors kept for segments, lists of files, commands and boards. */
#define DESCRIPTORS_KEPT 64u

/* The minimum for clients. Half of them are for the owner. */
#define CONNECTIONS_MIN 16u

/* A server on the loop, freed when its handle is closed. */
struct loop_server {
	uv_poll_t poll;
	struct bc_server *server;
};

struct bc_socket_api {
	struct bc_socket_api_options options;
	struct bc_api api;
	struct bc_channel_viewer viewer;
	struct loop_server *server;  /* NULL: no socket */
	struct loop_server *metrics; /* NULL: no metrics_listen */
	int metrics_fd;
};

static unsigned count_connections(const struct loop_server *s)
{
	return s != NULL ? bc_server_connections(s->server) : 0;
}

struct bc_status bc_socket_api_status(struct bc_socket_api *a)
{
	struct bc_status status = a->options.status(a->options.context);

	status.clients = count_connections(a->server) + count_connections(a->metrics);
	status.streams_events = bc_event_broadcast_readers(a->api.broadcast);
	status.streams_records = bc_taps_count(a->api.taps);
	return status;
}

static struct bc_status api_status(void *context)
{
	return bc_socket_api_status(context);
}

static void view_records(void *context, const struct bc_chunk *chunk, uint32_t from,
	uint64_t first_record, uint64_t tick_before, uint64_t clock_hz)
{
	struct bc_socket_api *a = context;

	bc_page_sampler_records(a->api.sampler, chunk, from);
	bc_taps_records(a->api.taps, chunk, from, first_record, tick_before, clock_hz);
}

static void view_end(void *context, const struct bc_chunk *chunk)
{
	struct bc_socket_api *a = context;

	bc_taps_end(a->api.taps, chunk);
}

static void view_skipped(void *context, uint64_t records)
{
	struct bc_socket_api *a = context;

	bc_taps_skip(a->api.taps, records);
}

const struct bc_channel_viewer *bc_socket_api_viewer(const struct bc_socket_api *a)
{
	return a->options.listen_fd >= 0 ? &a->viewer : NULL;
}

bool bc_socket_api_has_readers(const struct bc_socket_api *a)
{
	return bc_event_broadcast_readers(a->api.broadcast) != 0;
}

void bc_socket_api_emit(struct bc_socket_api *a, const char *name, json_t *members)
{
	if (bc_socket_api_has_readers(a))
		bc_event_broadcast_publish(a->api.broadcast, name, members);
	else
		json_decref(members);
}

void bc_socket_api_count(struct bc_socket_api *a, struct bc_recorder *recorder)
{
	const struct bc_counts *counts = bc_recorder_counts(recorder);
	const struct bc_buffer_state buffer = bc_recorder_buffer(recorder);
	const uint64_t figures[BC_HISTORY_FIGURES] = {
		[BC_HISTORY_RECEIVED_SAMPLES] = counts->received,
		[BC_HISTORY_LOST_SAMPLES] = bc_losses_sum(&counts->losses).lost,
		[BC_HISTORY_RECORD_BYTES] = counts->written * BC_RECORD_BYTES,
		[BC_HISTORY_WRITTEN_BYTES] = bc_recorder_stats(recorder)->bytes,
		[BC_HISTORY_USED_CHUNKS] = buffer.chunks - buffer.free,
	};

	bc_history_poll(a->api.history, figures, bc_boot_ns());
}

void bc_socket_api_poll(struct bc_socket_api *a)
{
	uint64_t now = uv_hrtime();

	bc_page_sampler_age(a->api.sampler, now);
	if (!bc_socket_api_has_readers(a))
		return;
	struct bc_status status = bc_socket_api_status(a);
	bc_socket_api_emit(a, "status", json_pack("{s:o}", "status", bc_status_json(&status)));
}

/* Divides the descriptors that may still be opened. Returns 0, or -EMFILE if they are too few. */
static int limit_connections(const struct bc_config *config, unsigned *others, unsigned *owner)
{
	unsigned kept = DESCRIPTORS_KEPT + BC_SERVER_EXTRA_DESCRIPTORS;

	if (config->metrics_listen[0] != '\0')
		kept += METRICS_CONNECTIONS + BC_SERVER_EXTRA_DESCRIPTORS;
	*others = config->connections;
	*owner = BC_SERVER_OWNER_CONNECTIONS;
	unsigned left = bc_descriptors_left(kept + *others + *owner);
	if (left == kept + *others + *owner)
		return 0;
	if (left < kept + CONNECTIONS_MIN)
		return -EMFILE;
	left -= kept;
	if (*owner > left / 2)
		*owner = left / 2;
	if (*others > left - *owner)
		*others = left - *owner;
	bc_log(BC_LOG_WARNING,
		"%s: at most %u connections, and %u of the owner, because of the limit of open "
		"files; raise it with LimitNOFILE= or ulimit -n",
		config->socket, *others, *owner);
	return 0;
}

static void on_server_ready(uv_poll_t *poll, int status, int events)
{
	const struct loop_server *s = poll->data;

	(void)status;
	(void)events;
	bc_server_run(s->server);
}

static void on_poll_closed(uv_handle_t *poll)
{
	free(poll->data);
}

/* NULL is allowed. */
static void close_server(struct loop_server *s)
{
	if (s == NULL)
		return;
	uv_close((uv_handle_t *)&s->poll, on_poll_closed); /* before its descriptor is closed */
	bc_server_close(s->server);
}

static int start_server(
	struct loop_server **result, uv_loop_t *loop, const struct bc_server_options *options)
{
	struct loop_server *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	int rc = bc_server_start(&s->server, options);
	if (rc == 0)
		rc = uv_poll_init(loop, &s->poll, bc_server_fd(s->server));
	if (rc != 0) {
		bc_server_close(s->server);
		free(s);
		return rc;
	}
	s->poll.data = s;
	uv_poll_start(&s->poll, UV_READABLE, on_server_ready);
	*result = s;
	return 0;
}

static int serve_socket(struct bc_socket_api *a)
{
	struct bc_server_options options = {
		.listen_fd = a->options.listen_fd,
		.is_local = true,
		.context = &a->api,
		.request = bc_api_request,
	};

	if (options.listen_fd < 0)
		return 0;
	int rc = limit_connections(a->options.config, &options.connections_max, &options.owner_max);
	if (rc != 0)
		return rc;
	return start_server(&a->server, a->options.loop, &options);
}

static int serve_metrics(struct bc_socket_api *a)
{
	union bc_tcp_address address;
	struct bc_server_options options = {
		.connections_max = METRICS_CONNECTIONS,
		.context = &a->api,
		.request = bc_api_metrics_only,
	};

	if (!bc_tcp_address_parse(&address, a->options.config->metrics_listen))
		return 0;
	a->metrics_fd = bc_tcp_address_listen(&address);
	if (a->metrics_fd < 0)
		return a->metrics_fd;
	options.listen_fd = a->metrics_fd;
	return start_server(&a->metrics, a->options.loop, &options);
}

int bc_socket_api_serve(struct bc_socket_api *a, struct bc_recorder *recorder, const char **failed)
{
	a->api.recorder = recorder;
	*failed = a->options.config->socket;
	int rc = serve_socket(a);
	if (rc != 0)
		return rc;
	*failed = a->options.config->metrics_listen;
	return serve_metrics(a);
}

void bc_socket_api_listen(struct bc_socket_api *a, int fd)
{
	bc_server_listen(a->server->server, fd);
}

void bc_socket_api_reload(struct bc_socket_api *a)
{
	a->api.reserved = a->options.config->reserve;
	a->api.names = a->options.config->names;
}

bool bc_socket_api_load(const struct bc_config *config, char *err, size_t errlen)
{
	return (config->socket[0] == '\0' && config->metrics_listen[0] == '\0') ||
	       bc_server_load(err, errlen);
}

int bc_socket_api_open(struct bc_socket_api **api, const struct bc_socket_api_options *options)
{
	struct bc_socket_api *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return -ENOMEM;
	a->options = *options;
	a->api = (struct bc_api){
		.context = a,
		.status = api_status,
		.reserved = options->config->reserve,
		.names = options->config->names,
	};
	a->viewer = (struct bc_channel_viewer){
		.context = a,
		.records = view_records,
		.end = view_end,
		.skipped = view_skipped,
	};
	a->metrics_fd = -1;
	int rc = bc_event_broadcast_open(&a->api.broadcast);
	if (rc == 0)
		rc = bc_taps_open(&a->api.taps, options->loop);
	if (rc == 0)
		rc = bc_page_sampler_open(&a->api.sampler);
	if (rc == 0)
		rc = bc_history_open(&a->api.history, bc_boot_ns());
	if (rc == 0)
		rc = bc_listing_open(
			&a->api.listing, options->loop, options->config->dir, options->catalogue);
	if (rc != 0) {
		bc_socket_api_close(a);
		return rc;
	}
	*api = a;
	return 0;
}

void bc_socket_api_close(struct bc_socket_api *a)
{
	if (a == NULL)
		return;
	bc_listing_close(a->api.listing);
	close_server(a->server);
	close_server(a->metrics);
	if (a->metrics_fd >= 0)
		close(a->metrics_fd);
	bc_event_broadcast_close(a->api.broadcast);
	bc_taps_close(a->api.taps);
	bc_page_sampler_close(a->api.sampler);
	bc_history_close(a->api.history);
	free(a);
}
