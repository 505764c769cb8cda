/* The front: all that the daemon shows of itself while it runs. It has the server of the socket and
 * the one for metrics, the streams, the mix and the catalog, and leads what they are asked to the
 * recorder. */
#ifndef BC_DAEMON_API_SOCKET_API_H
#define BC_DAEMON_API_SOCKET_API_H

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

#include "daemon/config/config.h"
#include "daemon/recorder/recorder.h"
#include "daemon/recorder/status.h"
#include "formats/base/must_check.h"

struct bc_socket_api;

struct bc_socket_api_options {
	uv_loop_t *loop;
	const struct bc_config *config;
	int listen_fd; /* the caller's; -1: no socket */
	void *context;
	struct bc_status (*status)(void *context); /* of now, but for the front's part of it */
};

/* Opens all but the servers. Returns 0 or a negative errno. */
int bc_socket_api_open(
	struct bc_socket_api **front, const struct bc_socket_api_options *options) BC_MUST_CHECK;

/* What the recorder shows its records to: the mix and the taps; NULL where there is no socket to
 * ask for it. */
const struct bc_channel_viewer *bc_socket_api_viewer(const struct bc_socket_api *front);

/* Opens the servers, on the socket and for metrics_listen. The recorder must last until
 * bc_socket_api_close(). Returns 0, or a negative errno with what couldn't be opened in `what`. */
int bc_socket_api_serve(
	struct bc_socket_api *front, struct bc_recorder *recorder, const char **what) BC_MUST_CHECK;

/* The same rights, when the configuration has changed. */
void bc_socket_api_reload(struct bc_socket_api *front);

/* An event, as bc_recorder_options.on_event() has it; and whether anybody reads along. */
void bc_socket_api_emit(struct bc_socket_api *front, const char *name, json_t *object);
bool bc_socket_api_has_listeners(const struct bc_socket_api *front);

/* Once a second: tells the status to who reads along. */
void bc_socket_api_poll(struct bc_socket_api *front);

/* The status with the front's part of it. */
struct bc_status bc_socket_api_status(struct bc_socket_api *front);

/* Ends all connections. Memory goes when the loop has closed the handles. NULL is none. */
void bc_socket_api_close(struct bc_socket_api *front);

#endif
