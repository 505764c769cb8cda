/* PUT /v1/replays: the body of the request is the file to replay. It goes through a pipe to a file
 * source, which reads it as it reads any file. While the pipe is full, the client has to wait. The
 * body is ignored if the request names a saved recording. */
#ifndef BC_DAEMON_API_REPLAY_UPLOAD_H
#define BC_DAEMON_API_REPLAY_UPLOAD_H

#include "daemon/api/api_call.h"

/* Responds when the recording of the replay is sealed, or when the replay was refused. A client
 * that disconnects earlier cancels the replay. */
void bc_api_upload_replay(struct bc_call *call);

#endif
