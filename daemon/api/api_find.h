/* Searching recordings: GET /v1/find and GET /v1/recordings/ID/records. */
#ifndef BC_DAEMON_API_API_FIND_H
#define BC_DAEMON_API_API_FIND_H

#include "daemon/api/api_call.h"

/* Responds with the records that match the query (formats/search/search_query.h): of all
 * recordings, or of one. */
void bc_api_find(struct bc_call *call);
void bc_api_get_records(struct bc_call *call);

#endif
