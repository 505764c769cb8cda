/* Recordings, marks and live events as JSON (docs/api.md). They return NULL if out of memory. */
#ifndef BC_DAEMON_API_API_JSON_H
#define BC_DAEMON_API_API_JSON_H

#include <jansson.h>

#include "daemon/recorder/recorder.h"

json_t *bc_recording_json(const struct bc_recording *recording, const struct bc_recording_now *now);
json_t *bc_mark_json(const struct bc_mark *mark);

/* The members of an event after event, seq and time. Sets *name to the event's. */
json_t *bc_live_event_json(const struct bc_live_event *event, const char **name);

#endif
