/* The API for recordings, snapshots, marks, metadata and triggers. Each function responds to its
 * request, immediately or later. */
#ifndef BC_DAEMON_API_API_RECORD_H
#define BC_DAEMON_API_API_RECORD_H

#include "daemon/api/api_call.h"

/* The parameters of the next. */
extern const char *const bc_api_page_query[];

void bc_api_list_recordings(struct bc_call *call);
void bc_api_start_recording(struct bc_call *call);
void bc_api_snapshot(struct bc_call *call);
void bc_api_get_recording(struct bc_call *call);
void bc_api_add_note(struct bc_call *call);
void bc_api_stop_recording(struct bc_call *call);
void bc_api_rotate(struct bc_call *call);
void bc_api_set_mark(struct bc_call *call);
void bc_api_list_triggers(struct bc_call *call);
void bc_api_get_trigger(struct bc_call *call);
void bc_api_arm_trigger(struct bc_call *call);
void bc_api_disarm_trigger(struct bc_call *call);

#endif
