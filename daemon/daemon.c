#include "daemon/daemon.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "capture/board.h"
#include "capture/file_source.h"
#include "capture/sim_source.h"
#include "capture/usb_source.h"
#include "daemon/lock.h"
#include "daemon/log.h"
#include "daemon/pipeline.h"
#include "daemon/server.h"
#include "daemon/session.h"
#include "daemon/stale.h"
#include "daemon/status.h"
#include "daemon/usb_settings.h"

/* A stop waits this long for a disk that takes nothing; then what is in memory is given up. */
#define STOP_MS 10000

/* And then so long for the writer to hear of it: a call that hangs can't be given up, but the
 * process can. */
#define HANG_MS 3000

/* A second signal this soon is the first once more: timeout(1) and shells send it to the process
 * and to its group. */
#define AGAIN_NS UINT64_C(1000000000)

#define LOOK_MS 1000

enum { SIGNAL_TERM, SIGNAL_INT, SIGNAL_HUP, SIGNALS };

struct bc_daemon {
	const struct bc_options *options;
	struct bc_config config;
	uv_loop_t loop;
	int dir_fd;
	int listen_fd;
	int socket_lock_fd;
	char before[BC_RECORDING_ID_MAX]; /* the recording that this run goes on after; or empty */
	struct bc_mapping mapping;
	struct bc_recording recording;
	struct bc_pipeline *pipeline;
	struct bc_server *server;
	struct bc_session *session;
	struct bc_source *source; /* the session's */
	bool has_ended;           /* the session has, and its outcome stands below */
	bool is_stopping;         /* by a signal */
	uint64_t stopping_ns;     /* since then */
	bool is_given_up;         /* what the disk doesn't take is */
	struct bc_session_outcome outcome;
	enum bc_exit exit_code;
	uv_signal_t signals[SIGNALS];
	uv_timer_t look;
	uv_timer_t stop_timer;
	uv_timer_t end_timer;
	uint64_t stop_written; /* when the disk was last looked at for STOP_MS */
	uint64_t started_ns;
	struct bc_account account;
};

/* Status */

static const char *state_of(const struct bc_daemon *d)
{
	if (d->session == NULL)
		return d->outcome.has_failed ? "failed" : "idle";
	if (d->has_ended)
		return d->outcome.has_failed ? "failed" : "idle";
	if (bc_session_is_draining(d->session))
		return "draining";
	if (d->source->board != NULL && d->source->board->state != BC_BOARD_STREAMING)
		return "waiting";
	return d->source->is_replay ? "replaying" : "recording";
}

static char *write_status(void *context)
{
	struct bc_daemon *d = context;
	const struct bc_session_outcome *outcome = d->session != NULL
							   ? bc_session_outcome(d->session)
							   : &d->outcome;
	struct bc_status status = {
		.state = state_of(d),
		.source_kind = d->source->kind,
		.source_name = d->source->name,
		.clock_hz = d->source->clock_hz,
		.board = d->source->board,
		.recording = d->has_ended && !d->options->once ? NULL : &d->recording,
		.dir = d->config.dir,
		.counts = bc_pipeline_counts(d->pipeline),
		.report = bc_pipeline_report(d->pipeline),
		.buffer = bc_pipeline_buffer(d->pipeline),
		.rates = d->account.rates,
		.damages = outcome->damages,
		.clients = d->server != NULL ? bc_server_clients(d->server) : 0,
		.uptime_s = (double)(uv_hrtime() - d->started_ns) * 1e-9,
	};

	assert(bc_counts_add_up(status.counts));
	return bc_status_write(&status);
}

static void on_look(uv_timer_t *timer)
{
	struct bc_daemon *d = timer->data;

	bc_account_look(
		&d->account, bc_pipeline_counts(d->pipeline), bc_pipeline_report(d->pipeline));
}

/* The end */

/* Closes everything that the loop turns for; it then returns. */
static void end(struct bc_daemon *d)
{
	for (int i = 0; i < SIGNALS; i++)
		uv_close((uv_handle_t *)&d->signals[i], NULL);
	uv_close((uv_handle_t *)&d->look, NULL);
	uv_close((uv_handle_t *)&d->stop_timer, NULL);
	uv_close((uv_handle_t *)&d->end_timer, NULL);
	bc_server_close(d->server);
	bc_session_close(d->session);
	bc_pipeline_close(d->pipeline);
}

static bool print_status(struct bc_daemon *d)
{
	char *status = write_status(d);
	bool is_printed = status != NULL && fputs(status, stdout) >= 0 && fflush(stdout) == 0;

	if (!is_printed)
		bc_log(BC_LOG_ERROR, "the status can't be printed: %s", strerror(errno));
	free(status);
	return is_printed;
}

static void on_end(uv_timer_t *timer)
{
	struct bc_daemon *d = timer->data;

	d->exit_code = bc_account_exit(d->source->is_replay, bc_pipeline_counts(d->pipeline),
		bc_pipeline_report(d->pipeline), &d->outcome);
	if (d->options->once && !print_status(d))
		d->exit_code = BC_EXIT_FAILED;
	end(d);
}

static void on_done(void *context)
{
	struct bc_daemon *d = context;

	d->outcome = *bc_session_outcome(d->session);
	d->has_ended = true;
	uv_timer_stop(&d->stop_timer);
	bc_account_summary(d->recording.header.recording, bc_pipeline_counts(d->pipeline),
		bc_pipeline_report(d->pipeline), &d->outcome);
	if (d->options->once || d->is_stopping)
		uv_timer_start(&d->end_timer, on_end, 0, 0); /* not from within the session */
	else
		bc_log(BC_LOG_NOTICE, "idle from now on, until a signal");
}

static void release(struct bc_daemon *d)
{
	if (d->listen_fd >= 0)
		bc_socket_release(d->config.socket, d->listen_fd, d->socket_lock_fd);
	if (d->dir_fd >= 0)
		close(d->dir_fd);
}

static void on_hang(uv_timer_t *timer)
{
	struct bc_daemon *d = timer->data;

	bc_log(BC_LOG_ERROR,
		"%s: the disk doesn't answer: ending without it; the next start recovers the open "
		"segment",
		d->config.dir);
	if (d->options->once)
		print_status(d);
	release(d);
	_exit(BC_EXIT_FAILED);
}

static void abandon(struct bc_daemon *d)
{
	d->is_given_up = true;
	bc_session_abandon(d->session);
	uv_timer_start(&d->stop_timer, on_hang, HANG_MS, 0);
}

static void on_stop_time(uv_timer_t *timer)
{
	struct bc_daemon *d = timer->data;
	uint64_t written = bc_pipeline_counts(d->pipeline)->written;

	if (written != d->stop_written) {
		d->stop_written = written;
		uv_timer_start(&d->stop_timer, on_stop_time, STOP_MS, 0);
		return;
	}
	bc_log(BC_LOG_ERROR, "the disk has taken nothing for %d s: what is in memory is given up",
		STOP_MS / 1000);
	abandon(d);
}

/* Signals */

static void stop(struct bc_daemon *d, int number)
{
	bc_log(BC_LOG_NOTICE, "%s: stopping", number == SIGTERM ? "SIGTERM" : "SIGINT");
	d->is_stopping = true;
	d->stopping_ns = uv_hrtime();
	if (d->has_ended) {
		uv_timer_start(&d->end_timer, on_end, 0, 0);
		return;
	}
	d->stop_written = bc_pipeline_counts(d->pipeline)->written;
	uv_timer_start(&d->stop_timer, on_stop_time, STOP_MS, 0);
	bc_session_stop(d->session);
}

static struct bc_writer_rules writer_rules(const struct bc_config *config)
{
	return (struct bc_writer_rules){
		.rotation = config->rotation,
		.space = config->space,
		.stop_bytes = config->stop.file_bytes,
		.sync_ns = config->sync_ns,
	};
}

/* Names what of a new configuration must wait for a restart. */
static void log_unchanged(const struct bc_config *old, const struct bc_config *new)
{
	const struct {
		const char *name;
		bool differs;
	} settings[] = {
		{"source.source", strcmp(old->source_text, new->source_text) != 0},
		{"[usb]", !bc_usb_settings_equal(&old->usb, &new->usb)},
		{"source.speed", old->speed < new->speed || old->speed > new->speed},
		{"output.dir", strcmp(old->dir, new->dir) != 0},
		{"output.keep_raw", old->keep_raw != new->keep_raw},
		{"output.label", strcmp(old->label, new->label) != 0},
		{"[stop]", memcmp(&old->stop, &new->stop, sizeof(old->stop)) != 0},
		{"pipeline.buffer", old->buffer_bytes != new->buffer_bytes},
		{"pipeline.workers", old->workers != new->workers},
		{"[mapping]", memcmp(&old->mapping, &new->mapping, sizeof(old->mapping)) != 0},
		{"socket.path", strcmp(old->socket, new->socket) != 0},
		{"socket.group", strcmp(old->socket_group, new->socket_group) != 0},
	};

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (settings[i].differs)
			bc_log(BC_LOG_WARNING, "%s has changed: that wants a restart",
				settings[i].name);
}

static void reload(struct bc_daemon *d)
{
	struct bc_config new;
	char why[1024];

	if (!bc_options_config(d->options, &new, why, sizeof(why))) {
		bc_log(BC_LOG_ERROR, "SIGHUP: %s; the configuration stays as it was", why);
		return;
	}
	log_unchanged(&d->config, &new);
	d->config.rotation = new.rotation;
	d->config.space = new.space;
	d->config.flush_ns = new.flush_ns;
	d->config.sync_ns = new.sync_ns;
	d->config.log_level = new.log_level;
	struct bc_writer_rules rules = writer_rules(&d->config);
	bc_pipeline_set_rules(d->pipeline, d->config.flush_ns, &rules);
	if (!d->has_ended)
		bc_session_set_rotation(d->session, &d->config.rotation);
	bc_log(BC_LOG_NOTICE,
		"SIGHUP: rotation, space, flush, sync and log level are as configured");
	bc_log_set_level(d->config.log_level);
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct bc_daemon *d = handle->data;

	if (number == SIGHUP) {
		reload(d);
	} else if (!d->is_stopping) {
		stop(d, number);
	} else if (!d->has_ended && uv_hrtime() - d->stopping_ns >= AGAIN_NS) {
		bc_log(BC_LOG_WARNING, "told to stop again: what is not written yet is given up");
		abandon(d);
	}
}

/* The pipeline's news */

static void on_room(void *context)
{
	struct bc_daemon *d = context;

	if (!d->has_ended)
		bc_session_on_room(d->session);
}

static void on_ended(void *context)
{
	struct bc_daemon *d = context;

	bc_session_on_ended(d->session);
}

static void on_report(void *context)
{
	struct bc_daemon *d = context;

	if (d->session == NULL || d->has_ended)
		return;
	/* Nobody watches a --once recording; a directory that is gone doesn't come back by itself.
	 */
	if (bc_pipeline_report(d->pipeline)->is_hopeless && d->options->once && !d->is_given_up)
		abandon(d);
	else
		bc_session_on_report(d->session);
}

/* The beginning */

static int open_source(struct bc_daemon *d)
{
	const struct bc_source_spec *spec = &d->config.source;

	if (spec->kind == BC_SOURCE_SIM)
		return bc_sim_source_open(&d->source, &d->loop, &spec->sim, spec->rate);
	if (spec->kind == BC_SOURCE_USB) {
		struct bc_usb_options usb = bc_config_usb(&d->config);
		if (!d->options->once)
			usb.wait_ns = 0; /* a service waits for ever */
		return bc_usb_source_open(&d->source, &d->loop, &usb);
	}
	struct bc_file_options file = {
		.path = spec->path,
		.format = spec->format,
		.clock_hz = spec->clock_hz,
	};
	return bc_file_source_open(&d->source, &d->loop, &file);
}

static void describe_recording(struct bc_daemon *d)
{
	struct bc_segment_header *h = &d->recording.header;
	struct timespec now;
	uint32_t random = 0;

	clock_gettime(CLOCK_REALTIME, &now);
	if (getrandom(&random, sizeof(random), 0) < 0)
		random = (uint32_t)now.tv_nsec ^ (uint32_t)getpid();
	/* Half of it is the second's fraction: recordings that begin in one second sort, too. */
	random = (uint32_t)((uint64_t)now.tv_nsec * 4096 / 1000000000) << 12 | (random & 0xFFF);
	d->recording.started_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	bc_recording_id_write(h->recording, d->recording.started_ns, random, d->config.label);
	d->recording.tag = bc_recording_tag(h->recording);
	snprintf(h->label, sizeof(h->label), "%s", d->config.label);
	snprintf(h->continues, sizeof(h->continues), "%s", d->before);
	snprintf(h->source_kind, sizeof(h->source_kind), "%s", d->source->kind);
	snprintf(h->source_name, sizeof(h->source_name), "%s", d->source->name);
	h->clock_hz = d->source->clock_hz;
	snprintf(h->host, sizeof(h->host), "%s", d->config.host);
	snprintf(h->program, sizeof(h->program), "buscapd " BC_VERSION);
}

static int start_session(struct bc_daemon *d)
{
	struct bc_session_options options = {
		.loop = &d->loop,
		.pipeline = d->pipeline,
		.source = d->source,
		.mapping = &d->mapping,
		.recording = &d->recording,
		.rotation = d->config.rotation,
		.stop = d->config.stop,
		.speed = d->config.speed,
		.context = d,
		.on_done = on_done,
	};

	return bc_session_start(&d->session, &options);
}

static int start_pipeline(struct bc_daemon *d)
{
	struct bc_pipeline_options options = {
		.buffer_bytes = d->config.buffer_bytes,
		.workers = d->config.workers,
		.flush_ns = d->config.flush_ns,
		.dir = d->config.dir,
		.dir_fd = d->dir_fd,
		.rules = writer_rules(&d->config),
		.keeps_raw = bc_config_keeps_raw(&d->config),
		.context = d,
		.on_room = on_room,
		.on_ended = on_ended,
		.on_report = on_report,
	};

	if (d->config.keep_raw && !options.keeps_raw)
		bc_log(BC_LOG_NOTICE, "keep_raw: a file is its own capture: it isn't saved again");
	return bc_pipeline_open(&d->pipeline, &d->loop, &options);
}

static const int signal_numbers[SIGNALS] = {
	[SIGNAL_TERM] = SIGTERM, [SIGNAL_INT] = SIGINT, [SIGNAL_HUP] = SIGHUP};

static void block_signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	for (int i = 0; i < SIGNALS; i++)
		sigaddset(&set, signal_numbers[i]);
	pthread_sigmask(how, &set, NULL);
}

static void start_handles(struct bc_daemon *d)
{
	for (int i = 0; i < SIGNALS; i++) {
		uv_signal_init(&d->loop, &d->signals[i]);
		d->signals[i].data = d;
		uv_signal_start(&d->signals[i], on_signal, signal_numbers[i]);
	}
	uv_timer_init(&d->loop, &d->look);
	uv_timer_init(&d->loop, &d->stop_timer);
	uv_timer_init(&d->loop, &d->end_timer);
	d->look.data = d;
	d->stop_timer.data = d;
	d->end_timer.data = d;
	d->account.looked_ns = uv_hrtime();
	uv_timer_start(&d->look, on_look, LOOK_MS, LOOK_MS);
}

/* Claims what only one daemon may hold. Both return whether they did; else they have logged why
 * not. */
static bool claim_dir(struct bc_daemon *d)
{
	char why[512];

	d->dir_fd = bc_dir_claim(d->config.dir, why, sizeof(why));
	if (d->dir_fd < 0)
		bc_log(BC_LOG_ERROR, "%s", why);
	return d->dir_fd >= 0;
}

static bool claim_socket(struct bc_daemon *d)
{
	char why[512];

	if (d->config.socket[0] == '\0')
		return true;
	d->listen_fd = bc_socket_claim(
		d->config.socket, d->config.socket_group, &d->socket_lock_fd, why, sizeof(why));
	if (d->listen_fd < 0)
		bc_log(BC_LOG_ERROR, "%s", why);
	return d->listen_fd >= 0;
}

/* Recovers what an earlier run left, and learns which recording this one goes on after: a service's
 * goes on after the newest, a --once recording only after one that was cut off. */
static void look_back(struct bc_daemon *d)
{
	char newest[BC_RECORDING_ID_MAX];
	int recovered = bc_stale_recover(d->config.dir, d->dir_fd, newest);

	if (recovered < 0)
		bc_log(BC_LOG_ERROR,
			"%s: can't be read: %s; what an earlier run may have left open there stays "
			"as it is",
			d->config.dir, strerror(-recovered));
	if (recovered > 0 || (recovered == 0 && !d->options->once))
		memcpy(d->before, newest, sizeof(d->before));
}

/* Starts everything on the loop; what of it fails is closed again, the source with it. Returns
 * whether it runs; else it has logged why not. */
static bool start(struct bc_daemon *d)
{
	const char *what = "the buffer and the threads";
	int rc = start_pipeline(d);

	if (rc != 0) {
		bc_source_close(d->source);
		goto fail;
	}
	start_handles(d);
	if (d->listen_fd >= 0) {
		struct bc_server_options server = {
			.listen_fd = d->listen_fd,
			.context = d,
			.status = write_status,
		};
		what = d->config.socket;
		rc = bc_server_start(&d->server, &d->loop, &server);
	}
	if (rc != 0) {
		bc_source_close(d->source);
	} else {
		what = d->config.source_text;
		rc = start_session(d);
	}
	if (rc == 0)
		return true;
	end(d);
fail:
	bc_log(BC_LOG_ERROR, "%s: %s", what, strerror(-rc));
	return false;
}

/* The source is opened first: if it isn't there, nothing is made. */
static void run(struct bc_daemon *d)
{
	int rc = open_source(d);

	if (rc != 0) {
		bc_log(BC_LOG_ERROR, "%s: %s%s", d->config.source_text, strerror(-rc),
			d->config.source.kind == BC_SOURCE_USB
				? ": libusb can't start; has it a netlink socket (AF_NETLINK)?"
				: "");
		return;
	}
	if (!claim_dir(d)) {
		bc_source_close(d->source);
	} else {
		look_back(d);
		if (!claim_socket(d)) {
			bc_source_close(d->source);
		} else {
			describe_recording(d);
			start(d);
		}
	}
	/* The loop takes the signals from here on, those too that came in the meantime. The
	 * threads, all started, go on without them. */
	block_signals(SIG_UNBLOCK);
	uv_run(&d->loop, UV_RUN_DEFAULT);
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
	d->listen_fd = -1;
	d->started_ns = uv_hrtime();
	d->exit_code = BC_EXIT_FAILED;
	bc_log_set_level(config->log_level);
	bc_mapping_init(&d->mapping, &config->mapping);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	block_signals(SIG_BLOCK);
	run(d);
	release(d);
	if (uv_loop_close(&d->loop) != 0)
		bc_log(BC_LOG_ERROR, "handles are left on the loop; this is a mistake in buscapd");
	enum bc_exit code = d->exit_code;
	free(d);
	return code;
}
