#include "daemon/api/socket_api.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/api/api.h"
#include "daemon/http/server.h"

/* Of metrics_listen: a scraper or two. */
#define METRICS_CONNECTIONS 8u

struct bc_socket_api {
	struct bc_socket_api_options options;
	struct bc_api api;
	struct bc_event_broadcast *bulletin;
	struct bc_taps *taps;
	struct bc_page_sampler *mix;
	struct bc_channel_viewer viewer;
	struct bc_catalog *catalog;
	struct bc_server *server;  /* NULL: no socket */
	struct bc_server *metrics; /* NULL: no metrics_listen */
	int metrics_fd;
};

struct bc_status bc_socket_api_status(struct bc_socket_api *f)
{
	struct bc_status status = f->options.status(f->options.context);

	status.clients = f->server != NULL ? bc_server_connections(f->server) : 0;
	status.clients += f->metrics != NULL ? bc_server_connections(f->metrics) : 0;
	status.streams_events = bc_event_broadcast_readers(f->bulletin);
	status.streams_records = bc_taps_count(f->taps);
	return status;
}

static struct bc_status api_status(void *context)
{
	return bc_socket_api_status(context);
}

static void view_records(void *context, const struct bc_chunk *chunk, uint32_t from,
	uint64_t first_record, uint64_t tick_before)
{
	struct bc_socket_api *f = context;

	bc_page_sampler_records(f->mix, chunk, from);
	bc_taps_records(f->taps, chunk, from, first_record, tick_before);
}

static void view_end(void *context, const struct bc_chunk *chunk)
{
	struct bc_socket_api *f = context;

	bc_taps_end(f->taps, chunk);
}

static void view_passed(void *context, uint64_t records)
{
	struct bc_socket_api *f = context;

	bc_taps_skip(f->taps, records);
}

const struct bc_channel_viewer *bc_socket_api_viewer(const struct bc_socket_api *f)
{
	/* Without a socket there are no clients, so nothing is counted. */
	return f->options.listen_fd >= 0 ? &f->viewer : NULL;
}

void bc_socket_api_emit(struct bc_socket_api *f, const char *name, json_t *object)
{
	bc_event_broadcast_publish(f->bulletin, name, object);
}

bool bc_socket_api_has_listeners(const struct bc_socket_api *f)
{
	return bc_event_broadcast_has_readers(f->bulletin);
}

void bc_socket_api_poll(struct bc_socket_api *f)
{
	uint64_t now = uv_hrtime();

	bc_page_sampler_age(f->mix, now);
	bc_catalog_poll(f->catalog, now);
	if (!bc_socket_api_has_listeners(f))
		return;
	struct bc_status status = bc_socket_api_status(f);
	bc_socket_api_emit(f, "status", json_pack("{s:o}", "status", bc_status_json(&status)));
}

static int serve_socket(struct bc_socket_api *f)
{
	struct bc_server_options options = {
		.listen_fd = f->options.listen_fd,
		.is_local = true,
		.connections_max = f->options.config->connections,
		.context = &f->api,
		.request = bc_api_request,
	};

	if (options.listen_fd < 0)
		return 0;
	return bc_server_start(&f->server, f->options.loop, &options);
}

static int serve_metrics(struct bc_socket_api *f)
{
	const struct bc_loopback *address = &f->options.config->metrics_listen;
	struct bc_server_options options = {
		.connections_max = METRICS_CONNECTIONS,
		.context = &f->api,
		.request = bc_api_metrics_only,
	};

	if (address->bytes == 0)
		return 0;
	f->metrics_fd = bc_loopback_listen(address);
	if (f->metrics_fd < 0)
		return f->metrics_fd;
	options.listen_fd = f->metrics_fd;
	return bc_server_start(&f->metrics, f->options.loop, &options);
}

int bc_socket_api_serve(struct bc_socket_api *f, struct bc_recorder *recorder, const char **what)
{
	f->api = (struct bc_api){
		.context = f,
		.status = api_status,
		.recorder = recorder,
		.bulletin = f->bulletin,
		.taps = f->taps,
		.mix = f->mix,
		.catalog = f->catalog,
		.reserved = f->options.config->reserve,
	};
	*what = f->options.config->socket;
	int rc = serve_socket(f);
	if (rc != 0)
		return rc;
	*what = f->options.config->metrics_listen.text;
	return serve_metrics(f);
}

void bc_socket_api_reload(struct bc_socket_api *f)
{
	f->api.reserved = f->options.config->reserve;
}

int bc_socket_api_open(struct bc_socket_api **front, const struct bc_socket_api_options *options)
{
	struct bc_socket_api *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	f->options = *options;
	f->viewer = (struct bc_channel_viewer){
		.context = f,
		.records = view_records,
		.end = view_end,
		.passed = view_passed,
	};
	f->metrics_fd = -1;
	int rc = bc_event_broadcast_open(&f->bulletin);
	if (rc == 0)
		rc = bc_taps_open(&f->taps, options->loop);
	if (rc == 0)
		rc = bc_page_sampler_open(&f->mix);
	if (rc == 0)
		rc = bc_catalog_open(&f->catalog, options->loop, options->config->dir);
	if (rc != 0) {
		bc_socket_api_close(f);
		return rc;
	}
	*front = f;
	return 0;
}

void bc_socket_api_close(struct bc_socket_api *f)
{
	if (f == NULL)
		return;
	bc_catalog_close(f->catalog);
	bc_server_close(f->server);
	bc_server_close(f->metrics);
	if (f->metrics_fd >= 0)
		close(f->metrics_fd);
	bc_event_broadcast_close(f->bulletin);
	bc_taps_close(f->taps);
	bc_page_sampler_close(f->mix);
	free(f);
}
