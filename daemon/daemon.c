#include "daemon/daemon_parts.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lock.h"
#include "daemon/log.h"
#include "daemon/source_open.h"
#include "daemon/stale.h"
#include "daemon/status.h"
#include "formats/json.h"

#define LOOK_MS        100
#define LOOKS_A_SECOND 10

/* Status */

/* But for the front's part of it. */
static struct bc_status status_of(void *context)
{
	struct bc_daemon *d = context;
	struct bc_status status = bc_recorder_status(d->recorder);

	status.rates = d->account.rates;
	status.uptime_s = (double)(uv_hrtime() - d->started_ns) * 1e-9;
	status.commands_waiting = bc_hook_waiting(d->hook);
	status.commands_failed = bc_hook_failed(d->hook);
	assert(bc_counts_add_up(status.counts));
	return status;
}

/* Whether the work gets on: for the log, and for the service manager. */
static void look_at_work(struct bc_daemon *d)
{
	struct bc_stint_seen longest = bc_recorder_longest_stint(d->recorder);
	uint64_t written = bc_recorder_counts(d->recorder)->written;
	bool is_stuck = bc_hang_look(&d->hang, &longest, d->config.stuck_ns, d->config.dir,
		bc_service_is_watched(&d->service));

	if (d->is_stopping && written != d->seen_written)
		bc_service_extend(&d->service, NULL);
	d->seen_written = written;
	bc_service_watch(&d->service, is_stuck);
}

static void on_look(uv_timer_t *timer)
{
	struct bc_daemon *d = timer->data;

	if (!d->is_ready && !d->has_failed)
		bc_service_ready(&d->service);
	d->is_ready = true;
	bc_recorder_look(d->recorder);
	look_at_work(d);
	if (++d->looks < LOOKS_A_SECOND)
		return;
	d->looks = 0;
	uint64_t now = uv_hrtime();
	bc_account_look(
		&d->account, bc_recorder_counts(d->recorder), bc_recorder_report(d->recorder), now);
	bc_front_look(d->front);
	bc_hook_look(d->hook, now);
	if (!bc_service_is_heard(&d->service))
		return;
	struct bc_status status = bc_front_status(d->front);
	bc_service_tell(&d->service, &status);
}

/* The recorder's news */

static void on_event(void *context, const char *name, json_t *object)
{
	struct bc_daemon *d = context;

	bc_front_tell(d->front, name, object);
}

static bool has_listeners(void *context)
{
	struct bc_daemon *d = context;

	return bc_front_is_heard(d->front);
}

static void on_sealed(void *context, const struct bc_writer_news *news)
{
	struct bc_daemon *d = context;
	char path[sizeof(d->config.dir) + BC_SEGMENT_NAME_MAX + 1];
	struct bc_hook_file file = {.path = path, .segment = news->segment};

	snprintf(path, sizeof(path), "%s/%s", d->config.dir, news->file);
	memcpy(file.recording, news->recording->header.recording, sizeof(file.recording));
	memcpy(file.hash, news->hash, sizeof(file.hash));
	bc_hook_add(d->hook, &file);
}

/* A command for a sealed segment has failed, which the log tells already. */
static void on_command_failed(void *context, const char *path, int status, const char *error)
{
	struct bc_daemon *d = context;
	if (has_listeners(d))
		on_event(d, "command",
			json_pack("{s:o, s:i, s:o}", "path", bc_json_text(path), "status", status,
				"error", bc_json_text(error)));
}

/* The beginning */

static void start_handles(struct bc_daemon *d)
{
	bc_daemon_start_signals(d);
	uv_timer_init(&d->loop, &d->look);
	d->look.data = d;
	d->account.looked_ns = uv_hrtime();
	uv_timer_start(&d->look, on_look, 0, LOOK_MS);
}

static void say_failed(struct bc_daemon *d, int error, const char *why)
{
	bc_log(BC_LOG_ERROR, "%s", why);
	bc_service_fail(&d->service, error, why);
}

/* Claims what only one daemon may hold. Both return whether they did; else they have logged why
 * not. */
static bool claim_dir(struct bc_daemon *d)
{
	char why[512];

	d->dir_fd = bc_dir_claim(d->config.dir, why, sizeof(why));
	if (d->dir_fd < 0)
		say_failed(d, d->dir_fd, why);
	return d->dir_fd >= 0;
}

static bool claim_socket(struct bc_daemon *d)
{
	char why[512];

	if (d->config.socket[0] == '\0' || d->socket.is_passed)
		return true;
	int rc = bc_socket_claim(
		&d->socket, d->config.socket, d->config.socket_group, why, sizeof(why));
	if (rc != 0)
		say_failed(d, rc, why);
	return rc == 0;
}

/* Takes the socket that the service manager passed, if it did. What it passed wrongly, it would
 * pass again: that is for a person to mend. */
static bool take_passed(struct bc_daemon *d)
{
	char why[512];

	bc_service_open(&d->service);
	int rc = bc_socket_take_passed(&d->socket, d->config.socket, why, sizeof(why));
	if (rc == 0)
		return true;
	say_failed(d, rc, why);
	d->exit_code = BC_EXIT_USAGE;
	return false;
}

static void on_recovery_progress(void *context, const char *file)
{
	struct bc_daemon *d = context;
	char text[BC_SEGMENT_NAME_MAX + 32];

	snprintf(text, sizeof(text), "recovering %s", file);
	bc_service_extend(&d->service, text);
}

/* Recovers what an earlier run left, and learns which recording this one goes on after: a service's
 * goes on after the newest, a --once recording only after one that was cut off. */
static void look_back(struct bc_daemon *d)
{
	char newest[BC_RECORDING_ID_MAX];
	const struct bc_stale_listener listener = {
		.on_progress = on_recovery_progress, .context = d};
	int recovered = bc_stale_recover(d->config.dir, d->dir_fd, newest, &listener);

	if (recovered < 0)
		bc_log(BC_LOG_ERROR,
			"%s: can't be read: %s; what an earlier run may have left open there stays "
			"as it is",
			d->config.dir, strerror(-recovered));
	if (recovered > 0 || (recovered == 0 && !d->options->once))
		memcpy(d->before, newest, sizeof(d->before));
}

/* What doesn't need the recorder. */
static int open_services(struct bc_daemon *d)
{
	struct bc_front_options front = {
		.loop = &d->loop,
		.config = &d->config,
		.listen_fd = d->socket.fd,
		.context = d,
		.status = status_of,
	};
	struct bc_hook_options hook = {
		.loop = &d->loop,
		.command = d->config.sealed_command,
		.timeout_ns = d->config.sealed_timeout_ns,
		.context = d,
		.on_failed = on_command_failed,
	};
	int rc = bc_front_open(&d->front, &front);

	return rc == 0 ? bc_hook_open(&d->hook, &hook) : rc;
}

/* Starts everything on the loop; what of it fails is closed again, the source with it. */
static void start(struct bc_daemon *d, struct bc_source *source)
{
	struct bc_recorder_options options = {
		.loop = &d->loop,
		.config = &d->config,
		.dir_fd = d->dir_fd,
		.is_once = d->options->once,
		.before = d->before,
		.context = d,
		.on_event = on_event,
		.has_listeners = has_listeners,
		.on_sealed = on_sealed,
		.on_over = bc_daemon_on_over,
	};
	const char *what = "the socket's services";
	char why[512];

	if (!d->options->once)
		bc_log(BC_LOG_INFO, "buscapd " BC_VERSION ": source %s, recordings in %s, %s%s",
			d->config.source_text, d->config.dir,
			d->config.socket[0] != '\0' ? "socket " : "no socket", d->config.socket);
	start_handles(d);
	int rc = open_services(d);
	if (rc != 0) {
		bc_source_close(source);
	} else {
		options.mix = bc_front_mix(d->front);
		options.taps = bc_front_taps(d->front);
		rc = bc_recorder_open(&d->recorder, &options, source, &what);
	}
	if (rc == 0)
		rc = bc_front_serve(d->front, d->recorder, &what);
	if (rc == 0)
		return;
	snprintf(why, sizeof(why), "%s: can't be started: %s%s", what, strerror(-rc),
		rc == -EAFNOSUPPORT ? "; a service has no network but by its drop-in metrics.conf"
				    : "");
	say_failed(d, rc, why);
	if (d->recorder == NULL) {
		bc_daemon_end(d);
	} else {
		d->has_failed = true;
		bc_daemon_stop(d);
	}
}

/* The source is opened first: if it isn't there, nothing is made. */
static void run(struct bc_daemon *d)
{
	struct bc_source *source;
	char why[sizeof(d->config.source_text) + 128];
	int rc = bc_source_open(&source, &d->loop, &d->config, d->options->once, why, sizeof(why));

	if (rc != 0) {
		say_failed(d, rc, why);
		return;
	}
	if (!claim_dir(d)) {
		bc_source_close(source);
	} else {
		look_back(d);
		if (claim_socket(d))
			start(d, source);
		else
			bc_source_close(source);
	}
	/* The loop takes the signals from here on, those too that came in the meantime. The
	 * threads, all started, go on without them. */
	bc_daemon_block_signals(SIG_UNBLOCK);
	uv_run(&d->loop, UV_RUN_DEFAULT);
	bc_daemon_close_loop(d);
}

enum bc_exit bc_daemon_run(const struct bc_options *options, const struct bc_config *config)
{
	struct bc_daemon *d = calloc(1, sizeof(*d));

	if (d == NULL || uv_loop_init(&d->loop) != 0) {
		bc_log(BC_LOG_ERROR, "no memory to start with");
		free(d);
		return BC_EXIT_FAILED;
	}
	d->options = options;
	d->config = *config;
	d->dir_fd = -1;
	d->started_ns = uv_hrtime();
	d->exit_code = BC_EXIT_FAILED;
	bc_log_set_level(config->log_level);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	bc_daemon_block_signals(SIG_BLOCK);
	if (take_passed(d))
		run(d);
	bc_daemon_release(d);
	if (uv_loop_close(&d->loop) != 0)
		bc_log(BC_LOG_ERROR, "handles are left on the loop; this is a mistake in buscapd");
	enum bc_exit code = d->exit_code;
	free(d);
	return code;
}
