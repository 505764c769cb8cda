#include "daemon/daemon_parts.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/reload.h"
#include "formats/json.h"

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

/* Signals, and who takes them */

static const int signal_numbers[SIGNALS] = {
	[SIGNAL_TERM] = SIGTERM, [SIGNAL_INT] = SIGINT, [SIGNAL_HUP] = SIGHUP};

void bc_daemon_block_signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	for (int i = 0; i < SIGNALS; i++)
		sigaddset(&set, signal_numbers[i]);
	pthread_sigmask(how, &set, NULL);
}

/* The end */

void bc_daemon_release(struct bc_daemon *d)
{
	bc_socket_release(&d->socket, d->config.socket);
	bc_service_close(&d->service);
	if (d->dir_fd >= 0)
		close(d->dir_fd);
}

/* A call that hangs is not waited for. The directory is its thread's still, and stays open. */
static void leave(struct bc_daemon *d)
{
	bc_log(BC_LOG_ERROR,
		"%s: the disk doesn't answer: ending without it; the next start recovers what is "
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
		leave(d);
}

void bc_daemon_end(struct bc_daemon *d)
{
	/* Without a handle it is the default again: the next one would end what ends already. */
	bc_daemon_block_signals(SIG_BLOCK);
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
	bc_front_close(d->front);
	bc_hook_close(d->hook);
}

void bc_daemon_close_loop(struct bc_daemon *d)
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
	if (bc_recorder_longest_stint(d->recorder).since_ns == 0)
		bc_daemon_end(d);
	else if (d->rest_looks++ < REST_LOOKS)
		uv_timer_start(&d->stop_timer, on_rest_time, REST_MS, 0);
	else
		leave(d);
}

static bool print_status(struct bc_daemon *d)
{
	struct bc_status now = bc_front_status(d->front);
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

	bc_account_end(&d->account);
	d->exit_code = bc_recorder_exit(d->recorder);
	if (d->has_failed || (d->options->once && !print_status(d)))
		d->exit_code = BC_EXIT_FAILED;
	end_at_rest(d);
}

/* What was sealed last is to be dealt with, too. */
void bc_daemon_on_over(void *context)
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
	leave(d);
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

/* What signals ask for */

void bc_daemon_stop(struct bc_daemon *d)
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
		bc_front_reload(d->front);
		bc_front_tell(d->front, "reload", json_object());
		bc_reload_done(&d->config);
	}
	bc_service_ready(&d->service);
}

static void tell_stopping(struct bc_daemon *d, const char *signal)
{
	if (bc_front_is_heard(d->front))
		bc_front_tell(d->front, "stopping", json_pack("{s:s}", "signal", signal));
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct bc_daemon *d = handle->data;

	if (number == SIGHUP) {
		uv_timer_start(&d->reload, on_reload, 0, 0);
	} else if (!d->is_stopping) {
		bc_log(BC_LOG_NOTICE, "%s: stopping", number == SIGTERM ? "SIGTERM" : "SIGINT");
		tell_stopping(d, number == SIGTERM ? "SIGTERM" : "SIGINT");
		bc_daemon_stop(d);
	} else if (!d->is_over && uv_hrtime() - d->stopping_ns >= AGAIN_NS) {
		bc_log(BC_LOG_WARNING, "told to stop again: what is not written yet is given up");
		abandon(d);
	}
}

void bc_daemon_start_signals(struct bc_daemon *d)
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
