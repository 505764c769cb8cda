/* The daemon's interface for clients: the HTTP servers on the socket and for metrics, the streams
 * of events and records, the page sampler and the pages of recordings. Calls the recorder.
 *
 *     bc_socket_api_load()
 *     bc_socket_api_open()
 *     bc_socket_api_serve()
 *     bc_socket_api_close()
 *
 * Loop thread only. */
#ifndef BC_DAEMON_API_SOCKET_API_H
#define BC_DAEMON_API_SOCKET_API_H

#include <stdbool.h>
#include <uv.h>

#include "daemon/config/config.h"
#include "daemon/recorder/recorder.h"
#include "daemon/recorder/status.h"
#include "formats/base/must_check.h"

struct bc_catalogue;
struct bc_socket_api;

struct bc_socket_api_options {
	uv_loop_t *loop;
	const struct bc_config *config;
	struct bc_catalogue *catalogue; /* owned by the caller */
	int listen_fd;                  /* likewise; -1: no socket */
	void *context;
	struct bc_status (*status)(void *context); /* without the members of this module */
};

/* Loads the HTTP library if the configuration has a socket or metrics_listen. Returns false, with a
 * message in `err`, if that fails. */
bool bc_socket_api_load(const struct bc_config *config, char *err, size_t errlen) BC_MUST_CHECK;

/* Opens everything except the servers. Returns 0 or a negative errno. */
int bc_socket_api_open(
	struct bc_socket_api **api, const struct bc_socket_api_options *options) BC_MUST_CHECK;

/* Returns the viewer that passes all records to the page sampler and the taps, for the recorder;
 * NULL without a socket, since there are no clients then. */
const struct bc_channel_viewer *bc_socket_api_viewer(const struct bc_socket_api *api);

/* Starts the servers on the socket and for metrics_listen. The recorder, which may be closed first,
 * must exist until bc_socket_api_close(). Returns 0, or a negative errno and *failed. */
int bc_socket_api_serve(
	struct bc_socket_api *api, struct bc_recorder *recorder, const char **failed) BC_MUST_CHECK;

/* Listens on another socket from now on: it gets the number of listen_fd, and `fd` is closed. */
void bc_socket_api_listen(struct bc_socket_api *api, int fd);

/* Applies a changed configuration: the reserved permissions and the names. */
void bc_socket_api_reload(struct bc_socket_api *api);

/* Returns whether clients read events. */
bool bc_socket_api_has_readers(const struct bc_socket_api *api);

/* Sends them an event. Takes its members, as bc_event_broadcast_publish() does. */
void bc_socket_api_emit(struct bc_socket_api *api, const char *name, json_t *members);

/* Call ten times a second: adds the recorder's counts to the history. */
void bc_socket_api_count(struct bc_socket_api *api, struct bc_recorder *recorder);

/* Call once a second: ages the page sampler and publishes the status. */
void bc_socket_api_poll(struct bc_socket_api *api);

/* The daemon's status, including connections and streams. */
struct bc_status bc_socket_api_status(struct bc_socket_api *api);

/* Closes all connections. Memory is freed when the loop has closed the handles. NULL is allowed. */
void bc_socket_api_close(struct bc_socket_api *api);

#endif
