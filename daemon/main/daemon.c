/* Owns the process: the loop, its timers and signals, the claimed directory and socket, and the
 * order in which everything starts and ends.
 *
 * Start: open the source, claim the directory, recover what an earlier run left open, list the
 * directory, claim the socket, open the recorder. Nothing is created before the source is open, and
 * a failed start leaves nothing behind.
 *
 * End (a signal, or with --once the end of the source): the recorder writes and seals what it has
 * (is_finishing) -> on_recorder_over(): wait for the commands for sealed segments ->
 * on_hook_done(): print the status, if requested -> finish_when_idle(): wait for the threads ->
 * close_handles() -> the loop returns. stop_timer limits the step that is under way: a disk that
 * accepts nothing for ten seconds costs the buffer (is_abandoned), and a system call that then does
 * not return costs a clean end (exit_without_disk()).
 *
 * Invariant: the loop never waits for a disk, a terminal or a thread that may hang. */
#include "daemon/main/daemon.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "capture/source/file_source.h"
#include "capture/source/sim_source.h"
#include "capture/usb/usb_source.h"
#include "daemon/api/socket_api.h"
#include "daemon/base/descriptors.h"
#include "daemon/base/lock.h"
#include "daemon/base/log.h"
#include "daemon/base/log_limit.h"
#include "daemon/base/thread_health.h"
#include "daemon/base/write_out.h"
#include "daemon/config/config_keys.h"
#include "daemon/main/disk_alarm.h"
#include "daemon/main/foreground.h"
#include "daemon/main/hook.h"
#include "daemon/main/service.h"
#include "daemon/main/signals.h"
#include "daemon/main/socket.h"
#include "daemon/main/startup_recovery.h"
#include "daemon/recorder/loss_report.h"
#include "daemon/recorder/recorder.h"
#include "daemon/recorder/status.h"
#include "daemon/store/catalogue_listing.h"
#include "formats/base/host.h"
#include "formats/base/json.h"
#include "formats/base/text.h"
#include "formats/segment/segment_header.h"

/* Often enough for what people see. While no samples come, little changes; the history needs a
 * value for each second. */
#define TICK_MS       100
#define QUIET_TICK_MS 500

/* When stopping, the buffer is given up if the disk accepts nothing for this long, unless it waits
 * for a sync that does not hang. The log says after WARN_SECONDS that it waits. Counted in timer
 * ticks, not clock time: while the process is suspended, the writer is too. */
#define STOP_SECONDS 10
#define WARN_SECONDS 2

/* After that, each call of the writer gets this long. One that hangs can't be cancelled, so the
 * process exits without it. */
#define ABANDON_SECONDS 3

/* At the end, poll until the threads are idle. */
#define IDLE_CHECK_MS 20
#define IDLE_CHECKS   (STOP_SECONDS * 1000 / IDLE_CHECK_MS)

/* At the end, time for the commands for sealed segments. */
#define COMMANDS_NS UINT64_C(10000000000)

/* After a stop signal, time for the reader of standard output. */
#define PRINT_MS 1000

/* A second signal within this time is ignored: timeout(1) and shells signal process and group. */
#define REPEAT_NS UINT64_C(1000000000)

/* Without clients. */
#define DESCRIPTORS_MIN 32u

struct bc_daemon {
	const struct bc_daemon_options *options;
	struct bc_config *config; /* the caller's */
	uv_loop_t loop;
	int dir_fd;
	bool is_dir_new; /* created by this run */
	struct bc_socket socket;
	struct bc_service service;
	char before[BC_RECORDING_ID_MAX]; /* the recording that this run continues, or empty */
	char boot_id[BC_BOOT_ID_BYTES];
	uint64_t sequence; /* the highest of the recordings of earlier runs */
	struct bc_catalogue *catalogue;
	struct bc_recorder *recorder;
	struct bc_socket_api *api;
	struct bc_hook *hook;
	bool is_stopping;
	bool is_abandoned;    /* the buffer has been given up */
	uint64_t stopping_ns; /* start of the stop */
	bool is_finishing;    /* the last data is being written, at the end or when stopping */
	bool is_over;         /* the recorder has finished */
	bool is_hanging;      /* exiting without the disk */
	bool prints_status;   /* at the end */
	bool is_printing;     /* the status, on the pool */
	bool is_ready;        /* the loop runs */
	bool has_failed;      /* start failed, stopping */
	bool has_handles;
	enum bc_exit exit_code;
	struct bc_signals signals;
	uv_timer_t tick;
	uv_timer_t stop_timer; /* for the current step of the stop */
	uv_timer_t reload;
	uv_work_t first_job; /* starts the thread pool */
	uv_work_t print_work;
	char *status_text;
	int print_error;       /* errno, or 0 */
	unsigned stop_seconds; /* without progress */
	unsigned idle_checks;
	uint64_t stop_written; /* written_of() at the last check of the disk */
	uint64_t stop_call_ns; /* since when the writer was in a call at the last check */
	uint64_t seen_written; /* written_of() at the last extension of the stop timeout */
	uint64_t started_ns;
	struct bc_log_limits limits; /* of this thread */
	struct bc_rates rates;
	struct bc_rate_meter meter;
	struct bc_loss_report losses;
	struct bc_stall_detector stall;
	struct bc_disk_alarm disk_alarm;
	uint64_t second_at_ms; /* the last full second, on the loop's clock */
	uint64_t received;     /* samples, at the last tick */
	bool has_received;     /* any since the last full second, or they are not written yet */
};

/* Status */

/* Without the socket's part. */
static struct bc_status status_of(void *context)
{
	struct bc_daemon *d = context;
	struct bc_status status = bc_recorder_status(d->recorder);

	status.rates = d->rates;
	status.uptime_s = (double)(uv_hrtime() - d->started_ns) * 1e-9;
	status.dropped_log_lines = bc_log_dropped();
	status.commands_waiting = bc_hook_waiting(d->hook);
	status.commands_failed = bc_hook_failed(d->hook);
	assert(bc_counts_add_up(status.counts));
	return status;
}

static void emit(void *context, const char *name, json_t *members)
{
	struct bc_daemon *d = context;

	bc_socket_api_emit(d->api, name, members);
}

static bool has_readers(void *context)
{
	struct bc_daemon *d = context;

	return bc_socket_api_has_readers(d->api);
}

/* Checks */

/* Grows as long as the disk takes something, makes it durable or has a file sealed. */
static uint64_t written_of(const struct bc_daemon *d)
{
	const struct bc_counts *counts = bc_recorder_counts(d->recorder);

	return counts->written + counts->durable + bc_recorder_stats(d->recorder)->sealed;
}

/* True if only syncing and sealing is left to do, or holds up the rest, and no call for it hangs.
 */
static bool is_sealing(const struct bc_daemon *d)
{
	const struct bc_writer_stats *stats = bc_recorder_stats(d->recorder);
	uint64_t since_ns = bc_recorder_longest_activity(d->recorder).since_ns;
	bool waits = stats->is_stuck ? stats->is_behind
				     : bc_recorder_counts(d->recorder)->in_flight == 0;

	return waits && since_ns != 0 && uv_hrtime() - since_ns < d->config->stuck_ns;
}

/* Reports a thread that hangs; pings the watchdog if none does. */
static void check_threads(struct bc_daemon *d)
{
	struct bc_thread_health_seen longest = bc_recorder_longest_activity(d->recorder);
	uint64_t written = written_of(d);
	uint64_t reported_ns = d->stall.reported.since_ns;
	char hang[512];
	bool is_stuck = bc_stall_detector_poll(&d->stall, &longest, d->config->stuck_ns,
		d->config->dir, bc_service_is_watched(&d->service));

	if (d->stall.reported.since_ns != reported_ns) {
		snprintf(hang, sizeof(hang), "%s hangs: %s%s%s", longest.who, longest.what,
			longest.file[0] != '\0' ? " " : "", longest.file);
		emit(d, "hang", json_pack("{s:o}", "error", bc_json_text(is_stuck ? hang : NULL)));
	}
	if (d->is_stopping && written != d->seen_written)
		bc_service_extend(&d->service, NULL);
	d->seen_written = written;
	bc_service_watch(&d->service, is_stuck);
}

static void limit_wait(struct bc_daemon *d);

static void check_disk(struct bc_daemon *d, const struct bc_status *status)
{
	uint64_t left = bc_status_space(status).seconds_left;

	if (bc_disk_alarm_poll(&d->disk_alarm, d->config->dir, left, status->stats->has_no_inodes,
		    d->config->disk_low_ns))
		emit(d, "disk-low",
			json_pack("{s:b, s:o}", "low", d->disk_alarm.is_low, "time_left_seconds",
				bc_json_u64_or_null(left != UINT64_MAX, left)));
}

/* On a terminal, while this process is in its foreground: a background job leaves it alone. */
static void show_status(const struct bc_daemon *d, const struct bc_status *status)
{
	char words[BC_SERVICE_TEXT_MAX] = "";

	if (tcgetpgrp(STDERR_FILENO) == getpgrp())
		bc_service_text(words, sizeof(words), status, d->is_stopping, false);
	bc_foreground_show(words);
}

static void set_tick(uv_timer_t *timer, uint64_t ms)
{
	if (uv_timer_get_repeat(timer) == ms)
		return;
	uv_timer_set_repeat(timer, ms);
	uv_timer_again(timer);
}

static void on_tick(uv_timer_t *timer)
{
	struct bc_daemon *d = timer->data;

	if (!d->is_ready && !d->has_failed)
		bc_service_ready(&d->service);
	d->is_ready = true;
	bc_recorder_poll(d->recorder);
	bc_socket_api_count(d->api, d->recorder);
	check_threads(d);
	const struct bc_counts *counts = bc_recorder_counts(d->recorder);
	d->has_received |= counts->received != d->received || counts->in_flight != 0;
	d->received = counts->received;
	if (d->has_received)
		set_tick(timer, TICK_MS);
	if (uv_now(timer->loop) - d->second_at_ms < 1000)
		return;
	if (!d->has_received)
		set_tick(timer, QUIET_TICK_MS);
	d->has_received = false;
	d->second_at_ms = uv_now(timer->loop);
	uint64_t now = uv_hrtime();
	bc_rates_poll(&d->rates, &d->meter, counts, bc_recorder_stats(d->recorder), now);
	if (d->options->once && !d->is_finishing && bc_recorder_is_finishing(d->recorder))
		limit_wait(d);
	/* At the end, the summary reports the losses. */
	if (!d->is_finishing)
		bc_loss_report_poll(
			&d->losses, counts, bc_recorder_loss_activity(d->recorder), now);
	bc_socket_api_poll(d->api);
	/* Something may have deleted the socket's node, or its directory. */
	int fd = d->has_failed ? -1 : bc_socket_check(&d->socket, d->config->socket);
	if (fd >= 0)
		bc_socket_api_listen(d->api, fd);
	bc_log_limits_poll(&d->limits, now);
	bc_hook_reap_orphans(d->hook);
	struct bc_status status = bc_socket_api_status(d->api);
	check_disk(d, &status);
	show_status(d, &status);
	if (bc_service_is_connected(&d->service))
		bc_service_notify(&d->service, &status);
}

/* Commands */

static void on_sealed(void *context, const struct bc_writer_notice *notice)
{
	struct bc_daemon *d = context;

	bc_hook_add(d->hook, d->config->dir, notice);
}

static void on_command_failed(void *context, const char *path, int status, const char *error)
{
	emit(context, "command-failed",
		json_pack("{s:o, s:o, s:o}", "path", bc_json_text(path), "exit_code",
			status >= 0 ? json_integer(status) : json_null(), "error",
			bc_json_text(error)));
}

/* The end */

static void release_claims(struct bc_daemon *d)
{
	bc_catalogue_stop(d->catalogue);
	bc_socket_release(&d->socket, d->config->socket);
	bc_service_close(&d->service);
	if (d->dir_fd >= 0 && (d->exit_code == BC_EXIT_FAILED || d->exit_code == BC_EXIT_NO_DEVICE))
		bc_dir_abandon(d->dir_fd, d->config->dir, d->is_dir_new);
	if (d->dir_fd >= 0)
		close(d->dir_fd);
}

/* Exits without waiting for the threads. */
static void exit_now(struct bc_daemon *d)
{
	bc_socket_release(&d->socket, d->config->socket);
	bc_service_close(&d->service);
	bc_log_stop();
	_exit(BC_EXIT_FAILED);
}

/* Exits without waiting for a system call that hangs. The directory stays open for its thread. */
static void exit_without_disk(struct bc_daemon *d)
{
	bc_log(BC_LOG_ERROR | BC_LOG_DISK_FAILED,
		"%s: the disk does not respond; exiting; the next start recovers the open files",
		d->config->dir);
	exit_now(d);
}

static void on_close_second(uv_timer_t *timer)
{
	struct bc_daemon *d = timer->data;

	if (++d->stop_seconds == STOP_SECONDS)
		exit_without_disk(d);
}

/* Closes all handles, so that the loop returns. */
static void close_handles(struct bc_daemon *d)
{
	bc_signals_close(&d->signals);
	uv_close((uv_handle_t *)&d->tick, NULL);
	uv_close((uv_handle_t *)&d->reload, NULL);
	/* A job on libuv's pool or a reading thread that hangs would keep the loop running. */
	d->stop_seconds = 0;
	uv_timer_start(&d->stop_timer, on_close_second, 1000, 1000);
	uv_unref((uv_handle_t *)&d->stop_timer);
	bc_recorder_close(d->recorder);
	bc_socket_api_close(d->api);
	bc_hook_close(d->hook);
	bc_log_limits_end(&d->limits);
}

static void finish_when_idle(struct bc_daemon *d);

static void on_idle_timer(uv_timer_t *timer)
{
	finish_when_idle(timer->data);
}

/* Closes the handles when no thread is busy. Joining a thread that hangs would block forever. */
static void finish_when_idle(struct bc_daemon *d)
{
	bc_recorder_finish(d->recorder);
	if (bc_recorder_longest_activity(d->recorder).since_ns == 0)
		close_handles(d);
	else if (d->idle_checks++ < IDLE_CHECKS)
		uv_timer_start(&d->stop_timer, on_idle_timer, IDLE_CHECK_MS, 0);
	else
		exit_without_disk(d);
}

/* The status, at the end */

static void log_print_error(const char *why)
{
	bc_log(BC_LOG_ERROR, "can't write the status to standard output: %s", why);
}

/* Ends without the pool's thread, which still waits for the reader of standard output. */
static void on_print_timeout(uv_timer_t *timer)
{
	struct bc_daemon *d = timer->data;

	if (d->is_hanging)
		exit_without_disk(d);
	log_print_error("nothing reads it");
	exit_now(d);
}

static void limit_print(struct bc_daemon *d)
{
	uv_timer_start(&d->stop_timer, on_print_timeout, PRINT_MS, 0);
}

/* Runs on the pool. */
static void print_job(uv_work_t *work)
{
	struct bc_daemon *d = work->data;

	/* A reader of standard output may write to the same terminal. */
	bc_foreground_end();
	d->print_error = -bc_write_out(STDOUT_FILENO, d->status_text, strlen(d->status_text));
}

static void on_printed(uv_work_t *work, int status)
{
	struct bc_daemon *d = work->data;

	(void)status;
	d->is_printing = false;
	uv_timer_stop(&d->stop_timer);
	free(d->status_text);
	if (d->print_error != 0) {
		d->exit_code = BC_EXIT_FAILED;
		log_print_error(strerror(d->print_error));
	}
	if (d->is_hanging)
		exit_without_disk(d);
	finish_when_idle(d);
}

/* Standard output may be a pipe that is not read, or a terminal that is stopped. So the loop does
 * not wait for it; after a stop signal, it does for a second. on_printed() continues. */
static void print_status(struct bc_daemon *d)
{
	struct bc_status now = bc_socket_api_status(d->api);

	if (d->is_printing)
		return;
	d->is_printing = true;
	d->print_work.data = d;
	d->status_text = bc_status_write(&now);
	if (d->is_stopping || d->is_hanging)
		limit_print(d);
	if (d->status_text == NULL ||
		uv_queue_work(&d->loop, &d->print_work, print_job, on_printed) != 0) {
		d->print_error = ENOMEM;
		on_printed(&d->print_work, 0);
	}
}

/* The source never delivered anything: all of the status is zero. */
static bool has_recorded_nothing(const struct bc_daemon *d)
{
	return bc_recorder_counts(d->recorder)->received == 0 &&
	       (d->exit_code == BC_EXIT_FAILED || d->exit_code == BC_EXIT_NO_DEVICE);
}

static void on_hook_done(void *context)
{
	struct bc_daemon *d = context;

	bc_log_limits_end(&d->limits);
	d->exit_code = bc_recorder_exit(d->recorder);
	if (d->has_failed)
		d->exit_code = BC_EXIT_FAILED;
	if (d->prints_status && !d->has_failed && !has_recorded_nothing(d))
		print_status(d);
	else
		finish_when_idle(d);
}

/* Everything is sealed; wait for the commands of the last files. */
static void on_recorder_over(void *context)
{
	struct bc_daemon *d = context;

	d->is_over = true;
	bc_service_stop(&d->service);
	uv_timer_stop(&d->stop_timer);
	bc_hook_finish(d->hook, COMMANDS_NS, on_hook_done);
}

static void on_abandon_second(uv_timer_t *timer)
{
	struct bc_daemon *d = timer->data;
	uint64_t since_ns = bc_recorder_longest_activity(d->recorder).since_ns;

	if (since_ns != d->stop_call_ns)
		d->stop_seconds = 0;
	d->stop_call_ns = since_ns;
	if (++d->stop_seconds < ABANDON_SECONDS)
		return;
	if (!d->prints_status)
		exit_without_disk(d);
	d->is_hanging = true;
	print_status(d);
}

static void abandon(struct bc_daemon *d)
{
	bc_recorder_abandon(d->recorder);
	d->is_abandoned = true;
	d->stop_seconds = 0;
	uv_timer_start(&d->stop_timer, on_abandon_second, 1000, 1000);
}

static void on_stop_second(uv_timer_t *timer)
{
	struct bc_daemon *d = timer->data;
	const struct bc_counts *counts = bc_recorder_counts(d->recorder);
	uint64_t written = written_of(d);

	d->stop_seconds = written != d->stop_written || is_sealing(d) ? 0 : d->stop_seconds + 1;
	d->stop_written = written;
	if (d->stop_seconds == WARN_SECONDS && counts->in_flight != 0)
		bc_log(BC_LOG_WARNING,
			"the disk accepts nothing: waiting up to %d s to write %s samples; a "
			"second signal gives them up",
			STOP_SECONDS - WARN_SECONDS, BC_GROUPED(counts->in_flight));
	if (d->stop_seconds < STOP_SECONDS)
		return;
	abandon(d);
	bc_log(BC_LOG_ERROR | BC_LOG_DISK_FAILED,
		counts->in_flight != 0
			? "the disk has accepted nothing for %d s; giving up the buffer"
			: "the disk has sealed nothing for %d s; leaving the last files open",
		STOP_SECONDS);
}

/* Starts the clock that gives up the buffer when the disk stops accepting data. */
static void limit_wait(struct bc_daemon *d)
{
	d->is_finishing = true;
	d->stop_written = written_of(d);
	d->stop_seconds = 0;
	uv_timer_start(&d->stop_timer, on_stop_second, 1000, 1000);
}

/* Ends the recording; on_recorder_over() continues. */
static void stop_recording(struct bc_daemon *d)
{
	d->is_stopping = true;
	d->stopping_ns = uv_hrtime();
	bc_service_stop(&d->service);
	/* Once all is sealed, the disk is not waited for. With --once, the wait may have begun. */
	if (!d->is_over && !d->is_finishing)
		limit_wait(d);
	bc_recorder_end(d->recorder);
}

/* Signals */

/* The settings that a reload has changed. */
struct changes {
	char names[600]; /* "rotation.files, log.level" */
};

static void on_change(void *context, const char *name, bool is_applied)
{
	struct changes *changes = context;
	size_t used = strlen(changes->names);

	if (is_applied)
		snprintf(changes->names + used, sizeof(changes->names) - used, "%s%s",
			used != 0 ? ", " : "", name);
	else
		bc_log(BC_LOG_WARNING,
			"SIGHUP: %s has changed, but needs a restart; keeping the old value", name);
}

static void on_reload_error(void *context, const char *text)
{
	(void)context;
	bc_log(BC_LOG_ERROR, "SIGHUP: %s; keeping the old configuration", text);
}

/* Applies the settings that may change while the daemon runs. Returns false, with an error logged
 * and nothing changed, if the new configuration is invalid. */
static bool read_config_again(struct bc_daemon *d, struct changes *changes)
{
	struct bc_config_errors errors = {.on_error = on_reload_error};
	struct bc_config *new = calloc(1, sizeof(*new));

	if (new == NULL) {
		on_reload_error(NULL, "out of memory");
		return false;
	}
	bool is_good = bc_daemon_options_config(d->options, new, &errors);
	if (is_good) {
		bc_config_reload(d->config, new, changes, on_change);
		bc_name_map_close(d->config->names);
		d->config->names = new->names;
	}
	free(new);
	return is_good;
}

/* Runs from a timer, once for all SIGHUPs of a loop iteration: a flood of signals costs little. */
static void on_reload(uv_timer_t *timer)
{
	struct bc_daemon *d = timer->data;
	struct changes changes = {.names = ""};

	bc_service_reload(&d->service);
	if (read_config_again(d, &changes)) {
		if (bc_hook_set(d->hook, d->config->sealed_command, d->config->sealed_timeout_ns) !=
			0)
			bc_log(BC_LOG_ERROR, "SIGHUP: out of memory; keeping the old command");
		bc_recorder_reload(d->recorder);
		bc_socket_api_reload(d->api);
		emit(d, "reload", json_object());
		bc_log(BC_LOG_NOTICE, "SIGHUP: %s%s",
			changes.names[0] != '\0' ? "applied " : "nothing to apply", changes.names);
		bc_log_set_level(d->config->log_level);
	}
	bc_service_ready(&d->service);
}

static void on_reload_signal(void *context)
{
	struct bc_daemon *d = context;

	uv_timer_start(&d->reload, on_reload, 0, 0);
}

/* What only the flight recorder holds is lost. */
static void log_stopping(const struct bc_daemon *d, const char *signal)
{
	const struct bc_status status = bc_recorder_status(d->recorder);

	if (status.has_flight && status.flight.records != 0)
		bc_log(BC_LOG_NOTICE,
			"%s: stopping; the flight recorder's %.1f s (%s records) are discarded",
			signal, status.flight.seconds, BC_GROUPED(status.flight.records));
	else
		bc_log(BC_LOG_NOTICE, "%s: stopping", signal);
}

static void on_stop_signal(void *context, const char *name)
{
	struct bc_daemon *d = context;

	if (!d->is_stopping) {
		log_stopping(d, name);
		emit(d, "stopping", json_pack("{s:s}", "signal", name));
		stop_recording(d);
		if (d->is_printing)
			limit_print(d);
	} else if (!d->is_over && !d->is_abandoned && uv_hrtime() - d->stopping_ns >= REPEAT_NS) {
		abandon(d);
		bc_log(BC_LOG_WARNING, "second stop signal; giving up the buffer");
	}
}

static void start_signals(struct bc_daemon *d)
{
	d->signals.context = d;
	d->signals.on_stop = on_stop_signal;
	d->signals.on_reload = on_reload_signal;
	bc_signals_start(&d->signals, &d->loop, d->options->once);
	uv_timer_init(&d->loop, &d->stop_timer);
	uv_timer_init(&d->loop, &d->reload);
	d->stop_timer.data = d;
	d->reload.data = d;
	d->has_handles = true;
}

/* The start */

/* libuv creates the threads of its pool at the first job, and calls abort() if it cannot. */
static void on_no_threads(int number)
{
	(void)number;
	/* NOLINTBEGIN(bugprone-signal-handler): it is called within abort() */
	bc_log(BC_LOG_ERROR, "can't create threads; raise the limit (TasksMax=, ulimit -u)");
	bc_log_stop();
	/* NOLINTEND(bugprone-signal-handler) */
	_exit(BC_EXIT_FAILED);
}

static void do_nothing(uv_work_t *work)
{
	(void)work;
}

/* Creates them now, while nothing is recorded. */
static void start_thread_pool(struct bc_daemon *d)
{
	signal(SIGABRT, on_no_threads);
	if (uv_queue_work(&d->loop, &d->first_job, do_nothing, NULL) != 0)
		abort();
	signal(SIGABRT, SIG_DFL);
}

static void start_handles(struct bc_daemon *d)
{
	start_signals(d);
	uv_timer_init(&d->loop, &d->tick);
	d->tick.data = d;
	d->meter.polled_ns = uv_hrtime();
	d->losses.polled_ns = d->meter.polled_ns;
	d->losses.limits = &d->limits;
	d->disk_alarm.limits = &d->limits;
	uv_timer_start(&d->tick, on_tick, 0, TICK_MS);
}

static void report_failure(struct bc_daemon *d, int error, const char *err)
{
	d->has_failed = true;
	bc_log(BC_LOG_ERROR, "%s", err);
	bc_service_fail(&d->service, error, err);
}

/* Reports that a part can't start, and which limit to raise. */
static void report_not_started(struct bc_daemon *d, int error, const char *what)
{
	char err[512];

	snprintf(err, sizeof(err), "%s: can't start: %s%s", what, strerror(-error),
		error == -EAFNOSUPPORT
			? "; a service needs the drop-in metrics.conf to use the network"
		: error == -EMFILE ? "; raise the limit with LimitNOFILE= or ulimit -n"
		: error == -EAGAIN ? "; raise the limit of threads with TasksMax= or ulimit -u"
				   : "");
	report_failure(d, error, err);
}

static void log_start(const struct bc_config *config)
{
	char socket[BC_SOCKET_PATH_MAX];
	const char *text = "no socket";

	if (config->socket[0] != '\0')
		text = "socket ";
	else if (bc_user_is_ordinary() && !bc_user_socket(socket))
		text = "no socket without $XDG_RUNTIME_DIR or --socket PATH";
	bc_log(BC_LOG_INFO, "version " BC_VERSION ": source %s, recordings in %s, %s%s",
		config->source_text, config->dir, text, config->socket);
}

/* Creates the parents of a user's default directory: ~/.local/share may not exist yet. Those of any
 * other must exist: they may be on a disk that is not mounted. */
static void make_parents(const struct bc_config *config)
{
	char path[sizeof(config->dir)];

	if (bc_user_dir(path, sizeof(path)) && strcmp(path, config->dir) == 0)
		bc_make_parents(path);
}

/* Both log an error and return false on failure. */
static bool claim_dir(struct bc_daemon *d)
{
	char err[512];

	make_parents(d->config);
	d->dir_fd = bc_dir_claim(d->config->dir, &d->is_dir_new, err, sizeof(err));
	if (d->dir_fd < 0)
		report_failure(d, d->dir_fd, err);
	return d->dir_fd >= 0;
}

static bool claim_socket(struct bc_daemon *d)
{
	char err[512];

	if (d->config->socket[0] == '\0' || d->socket.is_passed)
		return true;
	int rc = bc_socket_claim(
		&d->socket, d->config->socket, d->config->socket_group, err, sizeof(err));
	if (rc != 0)
		report_failure(d, rc, err);
	return rc == 0;
}

/* Uses the socket passed by the service manager, if any. A wrong socket causes exit code 2, because
 * a restart would get the same one. */
static bool inherit_socket(struct bc_daemon *d)
{
	char err[512];

	bc_service_open(&d->service);
	int rc = bc_socket_inherit(&d->socket, d->config->socket, err, sizeof(err));
	if (rc == 0)
		return true;
	report_failure(d, rc, err);
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

/* An earlier run may just have deleted what is short, and the file system may not show it yet, but
 * does so once everything is on the disk. Without a need for space, that is not worth the time. */
static void settle_free_space(struct bc_daemon *d)
{
	struct bc_free_space space = bc_free_space(d->dir_fd);

	if (!space.is_known || space.bytes >= d->config->space.keep_free_bytes)
		return;
	bc_service_extend(&d->service, "syncing the disk, to see how much is free");
	(void)!syncfs(d->dir_fd);
}

/* Recovers the files of an earlier run and finds the recording that this one continues: the newest
 * one; with --once none, unless a file had to be recovered. */
static void recover_dir(struct bc_daemon *d)
{
	struct bc_startup_found found;
	int rc = bc_startup_recover(
		&found, d->config->dir, d->dir_fd, d->boot_id, on_recovery_progress, d);

	if (rc < 0)
		bc_log(BC_LOG_ERROR,
			"%s: can't read the directory: %s; open files of an earlier run are not "
			"recovered",
			d->config->dir, strerror(-rc));
	settle_free_space(d);
	d->sequence = found.sequence;
	if (found.recovered != 0 || !d->options->once)
		memcpy(d->before, found.newest, sizeof(d->before));
}

/* Opens what does not need the recorder. */
static int open_services(struct bc_daemon *d)
{
	struct bc_socket_api_options api = {
		.loop = &d->loop,
		.config = d->config,
		.catalogue = d->catalogue,
		.listen_fd = d->socket.fd,
		.context = d,
		.status = status_of,
	};
	struct bc_hook_options hook = {
		.loop = &d->loop,
		.command = d->config->sealed_command,
		.timeout_ns = d->config->sealed_timeout_ns,
		.limits = &d->limits,
		.context = d,
		.on_failed = on_command_failed,
	};
	int rc = bc_socket_api_open(&d->api, &api);

	return rc == 0 ? bc_hook_open(&d->hook, &hook) : rc;
}

/* Logs an error and returns false on failure. */
static bool start_catalogue(struct bc_daemon *d)
{
	int rc = bc_catalogue_open(&d->catalogue, d->dir_fd);

	if (rc == 0)
		rc = bc_catalogue_start(d->catalogue, d->config->dir);
	if (rc != 0)
		report_not_started(d, rc, "the thread that lists the directory");
	return rc == 0;
}

/* Starts everything on the loop. Takes over the source. On failure, closes what was opened. */
static void start_all(struct bc_daemon *d, struct bc_source *source)
{
	struct bc_recorder_options options = {
		.loop = &d->loop,
		.config = d->config,
		.dir_fd = d->dir_fd,
		.catalogue = d->catalogue,
		.limits = &d->limits,
		.is_once = d->options->once,
		.before = d->before,
		.sequence = d->sequence,
		.boot_id = d->boot_id,
		.context = d,
		.on_event = emit,
		.has_readers = has_readers,
		.on_sealed = on_sealed,
		.on_over = on_recorder_over,
	};
	const char *what = "the socket";

	if (!d->options->once)
		log_start(d->config);
	start_handles(d);
	int rc = open_services(d);
	if (rc != 0) {
		bc_source_close(source);
	} else {
		options.viewer = bc_socket_api_viewer(d->api);
		rc = bc_recorder_open(&d->recorder, &options, source, &what);
	}
	if (rc == 0)
		rc = bc_socket_api_serve(d->api, d->recorder, &what);
	if (rc == 0)
		return;
	report_not_started(d, rc, what);
	if (d->recorder == NULL)
		close_handles(d);
	else
		stop_recording(d);
}

/* With --once, a board must appear within usb.wait. Returns 0, or a negative errno and `err`. */
static int open_source(struct bc_daemon *d, struct bc_source **source, char *err, size_t errlen)
{
	const struct bc_source_spec *spec = &d->config->source;
	struct bc_usb_options usb = bc_config_usb(d->config);
	const char *hint = "";
	int rc;

	if (spec->kind == BC_SOURCE_SIM) {
		rc = bc_sim_source_open(source, &d->loop, &spec->sim, spec->rate);
	} else if (spec->kind == BC_SOURCE_USB) {
		if (!d->options->once)
			usb.wait_ns = 0;
		rc = bc_usb_source_open(source, &d->loop, &usb);
		if (rc == -ENOTSUP)
			hint = ": can't initialize libusb; is AF_NETLINK allowed?";
	} else {
		rc = bc_file_source_open(
			source, &d->loop, spec->path, spec->format, spec->clock_hz);
	}
	if (rc != 0)
		bc_message(err, errlen, "%s: can't open: %s%s", d->config->source_text,
			strerror(-rc), hint);
	return rc;
}

/* Loads the HTTP library and opens the source first: if that fails, nothing is created. */
static void run_daemon(struct bc_daemon *d)
{
	struct bc_source *source;
	char err[sizeof(d->config->source_text) + 128];

	if (!bc_socket_api_load(d->config, err, sizeof(err))) {
		report_failure(d, -ELIBACC, err);
		return;
	}
	int rc = open_source(d, &source, err, sizeof(err));

	if (rc != 0) {
		report_failure(d, rc, err);
		return;
	}
	if (!claim_dir(d)) {
		bc_source_close(source);
	} else {
		bc_log_start();
		recover_dir(d);
		if (start_catalogue(d) && claim_socket(d))
			start_all(d, source);
		else
			bc_source_close(source);
	}
	/* The loop now handles signals, also pending ones. The threads keep them blocked. */
	bc_signals_unblock();
	uv_run(&d->loop, UV_RUN_DEFAULT);
	/* close_handles() still needed stop_timer. */
	if (d->has_handles) {
		uv_close((uv_handle_t *)&d->stop_timer, NULL);
		uv_run(&d->loop, UV_RUN_DEFAULT);
	}
}

/* libuv calls abort() if it can't set up its signal handling. */
static void on_no_loop(int number)
{
	(void)number;
	/* NOLINTBEGIN(bugprone-signal-handler): it is called within abort() */
	bc_log(BC_LOG_ERROR, "out of memory");
	bc_log_stop();
	/* NOLINTEND(bugprone-signal-handler) */
	_exit(BC_EXIT_FAILED);
}

static int init_loop(uv_loop_t *loop)
{
	signal(SIGABRT, on_no_loop);
	int rc = uv_loop_init(loop);

	signal(SIGABRT, SIG_DFL);
	return rc;
}

enum bc_exit bc_daemon_run(const struct bc_daemon_options *options, struct bc_config *config)
{
	struct bc_daemon *d;

	/* Without descriptors for its signal handling, libuv aborts. */
	if (bc_descriptors_left(DESCRIPTORS_MIN) < DESCRIPTORS_MIN) {
		bc_log(BC_LOG_ERROR,
			"too few descriptors: raise the limit of open files with LimitNOFILE= or "
			"ulimit -n");
		return BC_EXIT_FAILED;
	}
	d = calloc(1, sizeof(*d));
	if (d == NULL || init_loop(&d->loop) != 0) {
		bc_log(BC_LOG_ERROR, "out of memory");
		free(d);
		return BC_EXIT_FAILED;
	}
	d->options = options;
	d->config = config;
	d->dir_fd = -1;
	d->started_ns = uv_hrtime();
	/* People read the summary in the log. */
	d->prints_status = options->json || (options->once && !isatty(STDOUT_FILENO));
	d->exit_code = BC_EXIT_FAILED;
	bc_boot_id_read(d->boot_id);
	bc_log_set_level(config->log_level);
	bc_signals_block();
	start_thread_pool(d);
	if (inherit_socket(d))
		run_daemon(d);
	uv_run(&d->loop, UV_RUN_DEFAULT);
	release_claims(d);
	if (uv_loop_close(&d->loop) != 0)
		bc_log(BC_LOG_ERROR, "bug: handles left open at exit");
	enum bc_exit code = d->exit_code;
	free(d);
	return code;
}
