/* Searching recordings: GET /v1/find and GET /v1/recordings/ID/records. */
#ifndef BC_DAEMON_API_API_FIND_H
#define BC_DAEMON_API_API_FIND_H

#include "daemon/api/api_call.h"

/* The query parameters, ending with NULL. */
extern const char *const bc_find_query[];

/* Responds with the records that match the query: of all recordings, or of one. */
void bc_api_find(struct bc_call *call);
void bc_api_get_records(struct bc_call *call);

#endif
