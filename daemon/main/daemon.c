#include "daemon/main/daemon.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/api/socket_api.h"
#include "daemon/base/lock.h"
#include "daemon/base/log.h"
#include "daemon/base/stall_detector.h"
#include "daemon/hook/hook.h"
#include "daemon/main/reload.h"
#include "daemon/main/service.h"
#include "daemon/main/socket.h"
#include "daemon/main/source_open.h"
#include "daemon/main/startup_recovery.h"
#include "daemon/recorder/loss_report.h"
#include "daemon/recorder/recorder.h"
#include "daemon/recorder/status.h"
#include "formats/base/json.h"

#define LOOK_MS        100
#define LOOKS_A_SECOND 10

/* A stop waits this long for a disk that takes nothing; then what is in memory is given up. Each
 * second is looked at: the time that the process was held up, and the writer with it, is none. */
#define STOP_SECONDS 10

/* And then so long for the writer to hear of it: a call that hangs can't be given up, but the
 * process can. */
#define HANG_SECONDS 3

/* At the end the threads are looked at so often, whether they have come to rest. */
#define REST_MS    20
#define REST_LOOKS (STOP_SECONDS * 1000 / REST_MS)

/* At the end the commands for sealed segments get so long. */
#define COMMANDS_NS UINT64_C(10000000000)

/* A second signal this soon is the first once more: timeout(1) and shells send it to the process
 * and to its group. */
#define AGAIN_NS UINT64_C(1000000000)

enum { SIGNAL_TERM, SIGNAL_INT, SIGNAL_HUP, SIGNALS };

struct bc_daemon {
	const struct bc_options *options;
	struct bc_config config;
	uv_loop_t loop;
	int dir_fd;
	struct bc_socket socket;
	struct bc_service service;
	char before[BC_RECORDING_ID_MAX]; /* the recording that this run goes on after; or
					     empty */
	struct bc_recorder *recorder;
	struct bc_socket_api *front;
	struct bc_hook *hook;
	bool is_stopping;     /* by a signal */
	uint64_t stopping_ns; /* since then */
	bool is_over;
	bool is_ready;   /* the loop turns */
	bool has_failed; /* to start; what was begun is being stopped */
	bool has_handles;
	enum bc_exit exit_code;
	uv_signal_t signals[SIGNALS];
	uv_timer_t look;
	uv_timer_t stop_timer; /* of one step of the end after the other */
	uv_timer_t reload;
	unsigned stop_seconds; /* of those that the disk gets */
	unsigned rest_looks;   /* at the threads, at the end */
	uint64_t stop_written; /* when the disk was last looked at, while it stops */
	uint64_t seen_written; /* when the service manager was last told how things stand */
	uint64_t started_ns;
	struct bc_rates rates;
	struct bc_rate_meter meter;
	struct bc_loss_report losses;
	struct bc_stall_detector hang;
	unsigned looks; /* since the rates were polled */
};

/* Status */

/* But for the front's part of it. */
static struct bc_status status_of(void *context)
{
	struct bc_daemon *d = context;
	struct bc_status status = bc_recorder_status(d->recorder);

	status.rates = d->rates;
	status.uptime_s = (double)(uv_hrtime() - d->started_ns) * 1e-9;
	status.commands_waiting = bc_hook_waiting(d->hook);
	status.commands_failed = bc_hook_failed(d->hook);
	assert(bc_counts_add_up(status.counts));
	return status;
}

/* Whether the work gets on: for the log, and for the service manager. */
static void look_at_work(struct bc_daemon *d)
{
	struct bc_thread_health_seen longest = bc_recorder_longest_activity(d->recorder);
	uint64_t written = bc_recorder_counts(d->recorder)->written;
	bool is_stuck = bc_stall_detector_poll(&d->hang, &longest, d->config.stuck_ns,
		d->config.dir, bc_service_is_watched(&d->service));

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
	bc_recorder_poll(d->recorder);
	look_at_work(d);
	if (++d->looks < LOOKS_A_SECOND)
		return;
	d->looks = 0;
	uint64_t now = uv_hrtime();
	bc_rates_poll(&d->rates, &d->meter, bc_recorder_counts(d->recorder),
		bc_recorder_stats(d->recorder), now);
	bc_loss_report_poll(&d->losses, bc_recorder_counts(d->recorder), now);
	bc_socket_api_poll(d->front);
	bc_hook_poll(d->hook, now);
	if (!bc_service_is_connected(&d->service))
		return;
	struct bc_status status = bc_socket_api_status(d->front);
	bc_service_notify(&d->service, &status);
}

/* The recorder's news */

static void on_event(void *context, const char *name, json_t *object)
{
	struct bc_daemon *d = context;

	bc_socket_api_emit(d->front, name, object);
}

static bool has_listeners(void *context)
{
	struct bc_daemon *d = context;

	return bc_socket_api_has_listeners(d->front);
}

static void on_sealed(void *context, const struct bc_writer_notice *news)
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
		on_event(d, "command-failed",
			json_pack("{s:o, s:o, s:o}", "path", bc_json_text(path), "exit_code",
				status >= 0 ? json_integer(status) : json_null(), "error",
				bc_json_text(error)));
}

/* The end */

static const int signal_numbers[SIGNALS] = {
	[SIGNAL_TERM] = SIGTERM, [SIGNAL_INT] = SIGINT, [SIGNAL_HUP] = SIGHUP};

/* Signals reach nobody, or the loop again: SIG_BLOCK, SIG_UNBLOCK. */
static void block_signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	for (int i = 0; i < SIGNALS; i++)
		sigaddset(&set, signal_numbers[i]);
	pthread_sigmask(how, &set, NULL);
}

/* Gives directory and socket back. */
static void release_claims(struct bc_daemon *d)
{
	bc_socket_release(&d->socket, d->config.socket);
	bc_service_close(&d->service);
	if (d->dir_fd >= 0)
		close(d->dir_fd);
}

/* A call that hangs is not waited for. The directory is its thread's still, and stays open. */
static void exit_without_disk(struct bc_daemon *d)
{
	bc_log(BC_LOG_ERROR,
		"%s: the disk doesn't answer: ending without it; the next start recovers what "
		"is "
		"open",
		d->config.dir);
	bc_socket_release(&d->socket, d->config.socket);
	bc_service_close(&d->service);
	_exit(BC_EXIT_FAILED);
}

static void on_end_second(uv_timer_t *timer)
{
	struct bc_daemon *d = timer->data;

	if (++d->stop_seconds == STOP_SECONDS)
		exit_without_disk(d);
}

/* Closes everything that the loop turns for; it then returns. */
static void close_handles(struct bc_daemon *d)
{
	/* Without a handle it is the default again: the next one would end what ends already. */
	block_signals(SIG_BLOCK);
	for (int i = 0; i < SIGNALS; i++) {
		uv_close((uv_handle_t *)&d->signals[i], NULL);
		signal(signal_numbers[i], SIG_IGN);
	}
	uv_close((uv_handle_t *)&d->look, NULL);
	uv_close((uv_handle_t *)&d->reload, NULL);
	/* A job on libuv's pool, or a file's reading, that hangs keeps the loop turning, and isn't
	 * waited for either. */
	d->stop_seconds = 0;
	uv_timer_start(&d->stop_timer, on_end_second, 1000, 1000);
	uv_unref((uv_handle_t *)&d->stop_timer);
	bc_recorder_close(d->recorder);
	bc_socket_api_close(d->front);
	bc_hook_close(d->hook);
}

/* Behind the loop: closes what was left to watch over the end. */
static void finish_loop(struct bc_daemon *d)
{
	if (!d->has_handles)
		return;
	uv_close((uv_handle_t *)&d->stop_timer, NULL);
	uv_run(&d->loop, UV_RUN_DEFAULT);
}

static void end_at_rest(struct bc_daemon *d);

static void on_rest_time(uv_timer_t *timer)
{
	end_at_rest(timer->data);
}

/* The end waits for the threads: for one that hangs it would wait for ever. */
static void end_at_rest(struct bc_daemon *d)
{
	if (bc_recorder_longest_activity(d->recorder).since_ns == 0)
		close_handles(d);
	else if (d->rest_looks++ < REST_LOOKS)
		uv_timer_start(&d->stop_timer, on_rest_time, REST_MS, 0);
	else
		exit_without_disk(d);
}

static bool print_status(struct bc_daemon *d)
{
	struct bc_status now = bc_socket_api_status(d->front);
	char *status = bc_status_write(&now);
	bool is_printed = status != NULL && fputs(status, stdout) >= 0 && fflush(stdout) == 0;

	if (!is_printed)
		bc_log(BC_LOG_ERROR, "the status can't be printed on standard output: %s",
			strerror(errno));
	free(status);
	return is_printed;
}

static void on_hook_done(void *context)
{
	struct bc_daemon *d = context;

	bc_loss_report_finish(&d->losses);
	d->exit_code = bc_recorder_exit(d->recorder);
	if (d->has_failed || (d->options->once && !print_status(d)))
		d->exit_code = BC_EXIT_FAILED;
	end_at_rest(d);
}

/* What was sealed last is to be dealt with, too. */
static void on_recorder_over(void *context)
{
	struct bc_daemon *d = context;

	d->is_over = true;
	bc_service_stop(&d->service);
	bc_service_extend(&d->service, NULL);
	uv_timer_stop(&d->stop_timer);
	bc_hook_finish(d->hook, COMMANDS_NS, on_hook_done);
}

static void on_hang(uv_timer_t *timer)
{
	struct bc_daemon *d = timer->data;

	if (++d->stop_seconds < HANG_SECONDS)
		return;
	if (d->options->once)
		print_status(d);
	exit_without_disk(d);
}

static void abandon(struct bc_daemon *d)
{
	bc_recorder_abandon(d->recorder);
	d->stop_seconds = 0;
	uv_timer_start(&d->stop_timer, on_hang, 1000, 1000);
}

static void on_stop_second(uv_timer_t *timer)
{
	struct bc_daemon *d = timer->data;
	uint64_t written = bc_recorder_counts(d->recorder)->written;

	if (written != d->stop_written)
		d->stop_seconds = 0;
	else
		d->stop_seconds++;
	d->stop_written = written;
	if (d->stop_seconds < STOP_SECONDS)
		return;
	bc_log(BC_LOG_ERROR, "the disk has taken nothing for %d s: what is in memory is given up",
		STOP_SECONDS);
	abandon(d);
}

/* Ends what is recorded; the rest follows. */
static void stop_recording(struct bc_daemon *d)
{
	d->is_stopping = true;
	d->stopping_ns = uv_hrtime();
	d->stop_written = bc_recorder_counts(d->recorder)->written;
	bc_service_stop(&d->service);
	d->stop_seconds = 0;
	/* When all is sealed, it is commands that are waited for, and no disk. */
	if (!d->is_over)
		uv_timer_start(&d->stop_timer, on_stop_second, 1000, 1000);
	bc_recorder_end(d->recorder);
}

/* Signals */

/* At the end of the loop's turn, once for all the signals of it: a flood holds nothing up. */
static void on_reload(uv_timer_t *timer)
{
	struct bc_daemon *d = timer->data;

	bc_service_reload(&d->service);
	if (bc_reload(&d->config, d->options)) {
		if (bc_hook_set(d->hook, d->config.sealed_command, d->config.sealed_timeout_ns) !=
			0)
			bc_log(BC_LOG_ERROR,
				"SIGHUP: not enough memory for sealed_command: it stays");
		bc_recorder_reload(d->recorder);
		bc_socket_api_reload(d->front);
		bc_socket_api_emit(d->front, "reload", json_object());
		bc_reload_done(&d->config);
	}
	bc_service_ready(&d->service);
}

static void tell_stopping(struct bc_daemon *d, const char *signal)
{
	if (bc_socket_api_has_listeners(d->front))
		bc_socket_api_emit(d->front, "stopping", json_pack("{s:s}", "signal", signal));
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct bc_daemon *d = handle->data;

	if (number == SIGHUP) {
		uv_timer_start(&d->reload, on_reload, 0, 0);
	} else if (!d->is_stopping) {
		bc_log(BC_LOG_NOTICE, "%s: stopping", number == SIGTERM ? "SIGTERM" : "SIGINT");
		tell_stopping(d, number == SIGTERM ? "SIGTERM" : "SIGINT");
		stop_recording(d);
	} else if (!d->is_over && uv_hrtime() - d->stopping_ns >= AGAIN_NS) {
		bc_log(BC_LOG_WARNING, "told to stop again: what is not written yet is given up");
		abandon(d);
	}
}

/* Makes the handles that the end needs, and takes the signals. */
static void start_signals(struct bc_daemon *d)
{
	for (int i = 0; i < SIGNALS; i++) {
		uv_signal_init(&d->loop, &d->signals[i]);
		d->signals[i].data = d;
		uv_signal_start(&d->signals[i], on_signal, signal_numbers[i]);
	}
	uv_timer_init(&d->loop, &d->stop_timer);
	uv_timer_init(&d->loop, &d->reload);
	d->stop_timer.data = d;
	d->reload.data = d;
	d->has_handles = true;
}

/* The beginning */

static void start_handles(struct bc_daemon *d)
{
	start_signals(d);
	uv_timer_init(&d->loop, &d->look);
	d->look.data = d;
	d->meter.polled_ns = uv_hrtime();
	d->losses.polled_ns = d->meter.polled_ns;
	uv_timer_start(&d->look, on_look, 0, LOOK_MS);
}

static void say_failed(struct bc_daemon *d, int error, const char *err)
{
	bc_log(BC_LOG_ERROR, "%s", err);
	bc_service_fail(&d->service, error, err);
}

/* Claims what only one daemon may hold. Both return whether they did; else they have logged why
 * not. */
static bool claim_dir(struct bc_daemon *d)
{
	char err[512];

	d->dir_fd = bc_dir_claim(d->config.dir, err, sizeof(err));
	if (d->dir_fd < 0)
		say_failed(d, d->dir_fd, err);
	return d->dir_fd >= 0;
}

static bool claim_socket(struct bc_daemon *d)
{
	char err[512];

	if (d->config.socket[0] == '\0' || d->socket.is_passed)
		return true;
	int rc = bc_socket_claim(
		&d->socket, d->config.socket, d->config.socket_group, err, sizeof(err));
	if (rc != 0)
		say_failed(d, rc, err);
	return rc == 0;
}

/* Takes the socket that the service manager passed, if it did. What it passed wrongly, it would
 * pass again: that is for a person to mend. */
static bool take_passed(struct bc_daemon *d)
{
	char err[512];

	bc_service_open(&d->service);
	int rc = bc_socket_take_inherited(&d->socket, d->config.socket, err, sizeof(err));
	if (rc == 0)
		return true;
	say_failed(d, rc, err);
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

/* Recovers what an earlier run left, and learns which recording this one goes on after: a
 * service's goes on after the newest, a --once recording only after one that was cut off. */
static void look_back(struct bc_daemon *d)
{
	char newest[BC_RECORDING_ID_MAX];
	const struct bc_startup_recovery_listener listener = {
		.on_progress = on_recovery_progress, .context = d};
	int recovered = bc_startup_recover(d->config.dir, d->dir_fd, newest, &listener);

	if (recovered < 0)
		bc_log(BC_LOG_ERROR,
			"%s: can't be read: %s; what an earlier run may have left open "
			"there stays "
			"as it is",
			d->config.dir, strerror(-recovered));
	if (recovered > 0 || (recovered == 0 && !d->options->once))
		memcpy(d->before, newest, sizeof(d->before));
}

/* What doesn't need the recorder. */
static int open_services(struct bc_daemon *d)
{
	struct bc_socket_api_options front = {
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
	int rc = bc_socket_api_open(&d->front, &front);

	return rc == 0 ? bc_hook_open(&d->hook, &hook) : rc;
}

/* Starts everything on the loop; what of it fails is closed again, the source with it. */
static void start_all(struct bc_daemon *d, struct bc_source *source)
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
		.on_over = on_recorder_over,
	};
	const char *what = "the socket's services";
	char err[512];

	if (!d->options->once)
		bc_log(BC_LOG_INFO, "buscapd " BC_VERSION ": source %s, recordings in %s, %s%s",
			d->config.source_text, d->config.dir,
			d->config.socket[0] != '\0' ? "socket " : "no socket", d->config.socket);
	start_handles(d);
	int rc = open_services(d);
	if (rc != 0) {
		bc_source_close(source);
	} else {
		options.viewer = bc_socket_api_viewer(d->front);
		rc = bc_recorder_open(&d->recorder, &options, source, &what);
	}
	if (rc == 0)
		rc = bc_socket_api_serve(d->front, d->recorder, &what);
	if (rc == 0)
		return;
	snprintf(err, sizeof(err), "%s: can't be started: %s%s", what, strerror(-rc),
		rc == -EAFNOSUPPORT ? "; a service has no network but by its drop-in metrics.conf"
				    : "");
	say_failed(d, rc, err);
	if (d->recorder == NULL) {
		close_handles(d);
	} else {
		d->has_failed = true;
		stop_recording(d);
	}
}

/* The source is opened first: if it isn't there, nothing is made. */
static void run_daemon(struct bc_daemon *d)
{
	struct bc_source *source;
	char err[sizeof(d->config.source_text) + 128];
	int rc = bc_source_open(&source, &d->loop, &d->config, d->options->once, err, sizeof(err));

	if (rc != 0) {
		say_failed(d, rc, err);
		return;
	}
	if (!claim_dir(d)) {
		bc_source_close(source);
	} else {
		look_back(d);
		if (claim_socket(d))
			start_all(d, source);
		else
			bc_source_close(source);
	}
	/* The loop takes the signals from here on, those too that came in the meantime. The
	 * threads, all started, go on without them. */
	block_signals(SIG_UNBLOCK);
	uv_run(&d->loop, UV_RUN_DEFAULT);
	finish_loop(d);
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
	block_signals(SIG_BLOCK);
	if (take_passed(d))
		run_daemon(d);
	release_claims(d);
	if (uv_loop_close(&d->loop) != 0)
		bc_log(BC_LOG_ERROR, "handles are left on the loop; this is a mistake in buscapd");
	enum bc_exit code = d->exit_code;
	free(d);
	return code;
}
