/* The daemon as a service: what the service manager is told of it, as sd_notify(3) and
 * docs/configuration.md have it. Where nobody listens (no NOTIFY_SOCKET) each call does nothing.
 *
 *     bc_service_open()         takes the socket to notify and the watchdog's time
 *     bc_service_extend() ...   while it starts and is at long work
 *     bc_service_ready()        once; or bc_service_fail()
 *     bc_service_watch() ...    often: feeds the watchdog
 *     bc_service_notify() ...     once a second: how things stand
 *     bc_service_reload(), bc_service_ready()    around it
 *     bc_service_stop(), bc_service_extend() ... while what is left gets written
 *     bc_service_close()
 *
 * Nothing waits for the manager: what it doesn't take at once is sent again at the next look, the
 * states, or is out of date by then. Of one thread. */
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
	int fd; /* -1: nobody listens */
	struct sockaddr_un address;
	socklen_t address_bytes;
	uint64_t watchdog_ns; /* 0: there is none */
	uint64_t fed_ns;
	uint64_t extended_ns;
	bool is_stopping;
	bool has_complained;            /* that nothing can be sent */
	char owed[128];                 /* the state that could not be sent yet; or empty */
	char text[BC_SERVICE_TEXT_MAX]; /* as told last */
};

/* Takes over what the environment says. */
void bc_service_open(struct bc_service *service);
void bc_service_close(struct bc_service *service);

/* The start, or a reload, is done; not any more once it stops. */
void bc_service_ready(struct bc_service *service);

/* It can't start; `error` is a negative errno. */
void bc_service_fail(struct bc_service *service, int error, const char *err);

void bc_service_reload(struct bc_service *service);
void bc_service_stop(struct bc_service *service);

/* Work has got on: the start, or the stop, may take a minute more from now. At most once a second
 * anything is sent. `text` says what it is at; NULL: nothing new. */
void bc_service_extend(struct bc_service *service, const char *text);

/* To be called ten times a second or so: feeds the watchdog, unless the work is stuck
 * (daemon/base/stall_detector.h). */
void bc_service_watch(struct bc_service *service, bool is_stuck);

/* Says how things stand, if that is something new; to be called once a second. */
void bc_service_notify(struct bc_service *service, const struct bc_status *status);

/* A short sentence that says how things stand, in UTF-8 and without control characters. */
void bc_service_text(char *out, size_t room, const struct bc_status *status, bool is_stopping);

static inline bool bc_service_is_connected(const struct bc_service *service)
{
	return service->fd >= 0;
}

static inline bool bc_service_is_watched(const struct bc_service *service)
{
	return service->watchdog_ns != 0;
}

#endif
