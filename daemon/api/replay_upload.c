#include "daemon/api/replay_upload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/api/api_params.h"
#include "daemon/base/log.h"

struct upload {
	struct bc_api *api;
	struct bc_request *request;
	int fd;        /* writes to the pipe; -1: the body is complete, or not read */
	bool has_room; /* `room` is open */
	bool is_over;  /* freed when `room` is closed */
	uv_poll_t room;
};

static void on_closed(uv_handle_t *handle)
{
	struct upload *u = handle->data;

	u->has_room = false;
	if (u->is_over)
		free(u);
}

/* The handle first: it removes its descriptor from the loop, which must not be another one then. */
static void close_pipe(struct upload *u)
{
	if (u->fd < 0)
		return;
	uv_close((uv_handle_t *)&u->room, on_closed);
	close(u->fd);
	u->fd = -1;
}

static void close_upload(struct upload *u)
{
	close_pipe(u);
	u->is_over = true;
	if (!u->has_room)
		free(u);
}

/* There is room in the pipe, or its reader has ended. */
static void on_room(uv_poll_t *poll, int status, int events)
{
	struct upload *u = poll->data;

	(void)status;
	(void)events;
	uv_poll_stop(poll);
	bc_request_resume_upload(u->request);
}

static size_t on_data(void *context, const char *bytes, size_t n)
{
	struct upload *u = context;
	ssize_t done = u->fd >= 0 ? write(u->fd, bytes, n) : (ssize_t)n;

	if (done < 0 && errno != EAGAIN) {
		close_pipe(u); /* the replay has ended: ignore the rest */
		return n;
	}
	if (done < (ssize_t)n)
		uv_poll_start(&u->room, UV_WRITABLE, on_room);
	return done > 0 ? (size_t)done : 0;
}

static void on_end(void *context)
{
	close_pipe(context);
}

/* The rest of the file will not come. */
static void on_abandoned(void *context)
{
	struct upload *u = context;
	char err[256];

	if (bc_recorder_cancel(u->api->recorder, "current", err, sizeof(err), NULL, NULL) ==
		BC_GRANTED)
		bc_log(BC_LOG_NOTICE, "replay cancelled: its client has disconnected");
	close_pipe(u);
}

static const struct bc_deferred_ops upload_ops = {
	.data = on_data, .end = on_end, .abandoned = on_abandoned};

static void on_sealed(void *context, const struct bc_recording *ended)
{
	struct upload *u = context;

	bc_call_respond(
		u->request, 201, "replay", bc_recorder_ended_replay_json(u->api->recorder, ended));
	close_upload(u);
}

/* Returns 0 or a negative errno. */
static int open_pipe(struct upload *u, int *read_fd)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0)
		return -errno;
	int rc = uv_poll_init(u->api->loop, &u->room, fds[1]);
	if (rc != 0) {
		close(fds[0]);
		close(fds[1]);
		return rc;
	}
	u->room.data = u;
	u->has_room = true;
	u->fd = fds[1];
	*read_fd = fds[0];
	return 0;
}

static enum bc_refusal start_replay(struct bc_call *call, struct bc_replay_request *replay)
{
	struct upload *u = malloc(sizeof(*u));
	int rc = u != NULL ? 0 : -ENOMEM;

	if (u != NULL)
		*u = (struct upload){.api = call->api, .request = call->request, .fd = -1};
	if (u != NULL && replay->recording == NULL)
		rc = open_pipe(u, &replay->fd);
	if (rc != 0) {
		snprintf(
			call->err, sizeof(call->err), "the replay cannot start: %s", strerror(-rc));
		free(u);
		return BC_UNAVAILABLE;
	}
	enum bc_refusal refusal = bc_recorder_replay(
		call->api->recorder, replay, call->err, sizeof(call->err), u, on_sealed);
	if (refusal == BC_GRANTED)
		bc_request_defer(call->request, &upload_ops, u);
	else
		close_upload(u);
	return refusal;
}

void bc_api_upload_replay(struct bc_call *call)
{
	struct bc_api_params *params = calloc(1, sizeof(*params));
	enum bc_refusal refusal = BC_FAILED;
	bool is_allowed = true;

	snprintf(call->err, sizeof(call->err), "out of memory");
	if (params != NULL)
		params->names = call->api->names;
	if (params != NULL &&
		!bc_api_params_parse_replay(params, call->request, call->err, sizeof(call->err)))
		refusal = BC_BAD_VALUE;
	else if (params != NULL &&
		 (is_allowed = bc_call_may_arm(call, params->start.triggers_count)))
		refusal = start_replay(call, &params->replay);
	free(params);
	if (is_allowed && refusal != BC_GRANTED)
		bc_call_refuse(call, refusal);
}
