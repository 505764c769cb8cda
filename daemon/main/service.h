/* Notifications to the service manager (sd_notify(3), docs/configuration.md). Without NOTIFY_SOCKET
 * every call does nothing.
 *
 *     bc_service_open()         reads the environment
 *     bc_service_extend() ...   while the start takes long
 *     bc_service_ready()        once; or bc_service_fail()
 *     bc_service_watch() ...    ten times a second: pings the watchdog
 *     bc_service_notify() ...   once a second: sends the status
 *     bc_service_reload(), bc_service_ready()    before and after a reload
 *     bc_service_stop(), bc_service_extend() ... while the rest is written
 *     bc_service_close()
 *
 * No call blocks. If the manager does not accept a state, bc_service_watch() sends it again; a
 * status or ping is dropped. One thread only. */
#ifndef BC_DAEMON_MAIN_SERVICE_H
#define BC_DAEMON_MAIN_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "daemon/recorder/status.h"

#define BC_SERVICE_TEXT_MAX 512

struct bc_service {
	int fd; /* -1: no service manager */
	struct sockaddr_un address;
	socklen_t address_bytes;
	uint64_t watchdog_ns;  /* its timeout; 0: none */
	uint64_t ping_at_ns;   /* the next ping, in bc_now_ns() */
	uint64_t extend_at_ns; /* the next extension at the earliest */
	bool is_stopping;
	bool has_complained;            /* a send error was logged */
	char pending[128];              /* a state to be sent again, or empty */
	char text[BC_SERVICE_TEXT_MAX]; /* the status sent last */
};

void bc_service_open(struct bc_service *service);
void bc_service_close(struct bc_service *service);

/* Start or reload is complete. Does nothing after bc_service_stop(). */
void bc_service_ready(struct bc_service *service);

/* The start has failed; `error` is a negative errno. */
void bc_service_fail(struct bc_service *service, int error, const char *err);

void bc_service_reload(struct bc_service *service);
void bc_service_stop(struct bc_service *service);

/* Extends the timeout of start or stop to one minute from now. Call on progress; sends at most once
 * a second. `text` is a new status, or NULL. */
void bc_service_extend(struct bc_service *service, const char *text);

/* Pings the watchdog, unless is_stuck (daemon/base/thread_health.h). */
void bc_service_watch(struct bc_service *service, bool is_stuck);

/* Sends the status if it has changed. */
void bc_service_notify(struct bc_service *service, const struct bc_status *status);

/* Writes the status as one short line. With has_id, it names the recording. */
void bc_service_text(
	char *out, size_t size, const struct bc_status *status, bool is_stopping, bool has_id);

static inline bool bc_service_is_connected(const struct bc_service *service)
{
	return service->fd >= 0;
}

static inline bool bc_service_is_watched(const struct bc_service *service)
{
	return service->watchdog_ns != 0;
}

#endif
