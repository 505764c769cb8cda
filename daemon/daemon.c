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

#include "capture/file_source.h"
#include "capture/sim_source.h"
#include "daemon/lock.h"
#include "daemon/log.h"
#include "daemon/pipeline.h"
#include "daemon/server.h"
#include "daemon/session.h"
#include "daemon/stale.h"
#include "daemon/status.h"

/* A stop waits this long for a disk that takes nothing; then what is in memory is given up. */
#define STOP_MS 10000

#define LOOK_MS 1000

enum { SIGNAL_TERM, SIGNAL_INT, SIGNAL_HUP, SIGNALS };

struct bc_daemon {
	const struct bc_options *options;
	struct bc_config config;
	uv_loop_t loop;
	int dir_fd;
	int dir_lock_fd;
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
	struct bc_session_outcome outcome;
	enum bc_exit exit_code;
	uv_signal_t signals[SIGNALS];
	uv_timer_t look;
	uv_timer_t stop_timer;
	uv_timer_t end_timer;
	uint64_t started_ns;
	struct bc_rates rates;
	uint64_t looked_ns;
	struct bc_counts looked; /* the counts then */
	uint64_t looked_bytes;
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
		.recording = &d->recording,
		.records = bc_pipeline_records(d->pipeline),
		.dir = d->config.dir,
		.counts = bc_pipeline_counts(d->pipeline),
		.report = bc_pipeline_report(d->pipeline),
		.buffer = bc_pipeline_buffer(d->pipeline),
		.rates = d->rates,
		.damages = outcome->damages,
		.clients = d->server != NULL ? bc_server_clients(d->server) : 0,
		.uptime_s = (double)(uv_hrtime() - d->started_ns) * 1e-9,
	};

	assert(bc_counts_add_up(status.counts));
	return bc_status_write(&status);
}

static uint64_t lost_of(const struct bc_counts *c)
{
	return c->dropped_buffer + c->dropped_disk + c->board_lost;
}

/* Once a second: rates, and a line for what was lost since. */
static void on_look(uv_timer_t *timer)
{
	struct bc_daemon *d = timer->data;
	const struct bc_counts *c = bc_pipeline_counts(d->pipeline);
	const struct bc_writer_report *report = bc_pipeline_report(d->pipeline);
	uint64_t now = uv_hrtime();
	double seconds = (double)(now - d->looked_ns) * 1e-9;

	d->rates.samples_per_s = (double)(c->received - d->looked.received) / seconds;
	d->rates.bytes_in_per_s = (double)(c->written - d->looked.written) * BC_RECORD_BYTES /
				  seconds;
	d->rates.bytes_out_per_s = (double)(report->bytes - d->looked_bytes) / seconds;
	if (lost_of(c) != lost_of(&d->looked))
		bc_log(BC_LOG_WARNING,
			"samples lost in the last %.0f s: %llu buffer, %llu disk, %llu board; the "
			"gaps "
			"are on record at their places",
			seconds, (unsigned long long)(c->dropped_buffer - d->looked.dropped_buffer),
			(unsigned long long)(c->dropped_disk - d->looked.dropped_disk),
			(unsigned long long)(c->board_lost - d->looked.board_lost));
	d->looked = *c;
	d->looked_ns = now;
	d->looked_bytes = report->bytes;
}

/* The end */

static void log_summary(const struct bc_daemon *d)
{
	const struct bc_counts *c = bc_pipeline_counts(d->pipeline);
	const struct bc_writer_report *report = bc_pipeline_report(d->pipeline);
	bool is_short = d->outcome.has_failed || lost_of(c) != 0 || d->outcome.damages != 0;

	if (c->written == 0 && report->file[0] == '\0')
		bc_log(BC_LOG_NOTICE, "nothing was recorded: the source gave no sample");
	else
		bc_log(BC_LOG_NOTICE,
			"%s: %llu records written, %llu received, %llu invalid cycles left out",
			d->recording.header.recording, (unsigned long long)c->written,
			(unsigned long long)c->received, (unsigned long long)c->dropped_invalid);
	if (is_short)
		bc_log(BC_LOG_WARNING,
			"%llu gaps: %llu samples lost for want of buffer, %llu of disk, %llu by "
			"the "
			"board; %llu damaged places, %llu bytes skipped",
			(unsigned long long)c->gaps, (unsigned long long)c->dropped_buffer,
			(unsigned long long)c->dropped_disk, (unsigned long long)c->board_lost,
			(unsigned long long)d->outcome.damages,
			(unsigned long long)c->skipped_bytes);
	if (c->durable != c->written)
		bc_log(BC_LOG_ERROR,
			"%llu of the records written are not known to be on the disk; what is left "
			"of them is in .partial files, which the next start recovers",
			(unsigned long long)(c->written - c->durable));
	if (d->outcome.has_failed)
		bc_log(BC_LOG_ERROR, "%s", d->outcome.why);
}

static enum bc_exit exit_code_of(const struct bc_daemon *d)
{
	const struct bc_counts *c = bc_pipeline_counts(d->pipeline);

	if (d->outcome.has_failed || c->durable != c->written)
		return BC_EXIT_FAILED;
	if (d->source->is_replay && d->outcome.damages != 0)
		return BC_EXIT_DAMAGED;
	if (lost_of(c) != 0 || d->outcome.damages != 0)
		return BC_EXIT_LOST;
	return BC_EXIT_OK;
}

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

static void on_end(uv_timer_t *timer)
{
	struct bc_daemon *d = timer->data;
	char *status;

	d->exit_code = exit_code_of(d);
	if (d->options->once) {
		status = write_status(d);
		if (status != NULL)
			fputs(status, stdout);
		if (fflush(stdout) != 0)
			bc_log(BC_LOG_WARNING, "the status can't be printed: %s", strerror(errno));
		free(status);
	}
	end(d);
}

static void on_done(void *context)
{
	struct bc_daemon *d = context;

	d->outcome = *bc_session_outcome(d->session);
	d->has_ended = true;
	uv_timer_stop(&d->stop_timer);
	log_summary(d);
	if (d->options->once || d->is_stopping)
		uv_timer_start(&d->end_timer, on_end, 0, 0); /* not from within the session */
}

static void on_stop_time(uv_timer_t *timer)
{
	struct bc_daemon *d = timer->data;

	bc_log(BC_LOG_ERROR, "the disk has taken nothing for %d s: what is in memory is given up",
		STOP_MS / 1000);
	bc_session_abandon(d->session);
}

/* Signals */

static void stop(struct bc_daemon *d, int number)
{
	bc_log(BC_LOG_NOTICE, "%s: stopping", number == SIGTERM ? "SIGTERM" : "SIGINT");
	d->is_stopping = true;
	if (d->has_ended) {
		uv_timer_start(&d->end_timer, on_end, 0, 0);
		return;
	}
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
		{"source.speed", old->speed < new->speed || old->speed > new->speed},
		{"output.dir", strcmp(old->dir, new->dir) != 0},
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
	} else if (!d->has_ended) {
		bc_log(BC_LOG_WARNING, "told to stop again: what is not written yet is given up");
		bc_session_abandon(d->session);
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
	if (bc_pipeline_report(d->pipeline)->is_hopeless && d->options->once &&
		!bc_session_outcome(d->session)->has_failed)
		bc_session_abandon(d->session);
	else
		bc_session_on_report(d->session);
}

/* The beginning */

static int open_source(struct bc_daemon *d)
{
	const struct bc_source_spec *spec = &d->config.source;

	if (spec->kind == BC_SOURCE_SIM)
		return bc_sim_source_open(&d->source, &d->loop, &spec->sim, spec->rate);
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
		.context = d,
		.on_room = on_room,
		.on_ended = on_ended,
		.on_report = on_report,
	};

	return bc_pipeline_open(&d->pipeline, &d->loop, &options);
}

static void start_handles(struct bc_daemon *d)
{
	static const int numbers[SIGNALS] = {
		[SIGNAL_TERM] = SIGTERM, [SIGNAL_INT] = SIGINT, [SIGNAL_HUP] = SIGHUP};

	for (int i = 0; i < SIGNALS; i++) {
		uv_signal_init(&d->loop, &d->signals[i]);
		d->signals[i].data = d;
		uv_signal_start(&d->signals[i], on_signal, numbers[i]);
	}
	uv_timer_init(&d->loop, &d->look);
	uv_timer_init(&d->loop, &d->stop_timer);
	uv_timer_init(&d->loop, &d->end_timer);
	d->look.data = d;
	d->stop_timer.data = d;
	d->end_timer.data = d;
	d->looked_ns = uv_hrtime();
	uv_timer_start(&d->look, on_look, LOOK_MS, LOOK_MS);
}

/* Claims what only one daemon may hold. Returns whether it did; else it has logged why not. */
static bool claim(struct bc_daemon *d)
{
	char why[512];

	d->dir_fd = bc_dir_claim(d->config.dir, &d->dir_lock_fd, why, sizeof(why));
	if (d->dir_fd < 0) {
		bc_log(BC_LOG_ERROR, "%s", why);
		return false;
	}
	if (d->config.socket[0] == '\0')
		return true;
	d->listen_fd = bc_socket_claim(
		d->config.socket, d->config.socket_group, &d->socket_lock_fd, why, sizeof(why));
	if (d->listen_fd >= 0)
		return true;
	bc_log(BC_LOG_ERROR, "%s", why);
	return false;
}

static void release(struct bc_daemon *d)
{
	if (d->listen_fd >= 0)
		bc_socket_release(d->config.socket, d->listen_fd, d->socket_lock_fd);
	if (d->dir_lock_fd >= 0)
		close(d->dir_lock_fd);
	if (d->dir_fd >= 0)
		close(d->dir_fd);
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

/* Starts everything on the loop. Returns a sentence that says what failed, or NULL. */
static const char *start(struct bc_daemon *d, int *error)
{
	*error = open_source(d);
	if (*error != 0)
		return d->config.source_text;
	describe_recording(d);
	*error = start_pipeline(d);
	if (*error != 0) {
		bc_source_close(d->source);
		return "the buffer and the threads";
	}
	start_handles(d);
	if (d->listen_fd >= 0) {
		struct bc_server_options server = {
			.listen_fd = d->listen_fd,
			.context = d,
			.status = write_status,
		};
		*error = bc_server_start(&d->server, &d->loop, &server);
	}
	if (*error != 0) {
		bc_source_close(d->source);
		end(d);
		return d->config.socket;
	}
	*error = start_session(d);
	if (*error != 0) {
		end(d);
		return d->config.source_text;
	}
	return NULL;
}

enum bc_exit bc_daemon_run(const struct bc_options *options, const struct bc_config *config)
{
	struct bc_daemon *d = calloc(1, sizeof(*d));
	int error;

	if (d == NULL || uv_loop_init(&d->loop) != 0) {
		bc_log(BC_LOG_ERROR, "no memory to start with");
		free(d);
		return BC_EXIT_FAILED;
	}
	d->options = options;
	d->config = *config;
	d->dir_fd = -1;
	d->dir_lock_fd = -1;
	d->listen_fd = -1;
	d->started_ns = uv_hrtime();
	d->exit_code = BC_EXIT_FAILED;
	bc_log_set_level(config->log_level);
	bc_mapping_init(&d->mapping, &config->mapping);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (claim(d)) {
		look_back(d);
		const char *what = start(d, &error);
		if (what != NULL)
			bc_log(BC_LOG_ERROR, "%s: %s", what, strerror(-error));
		uv_run(&d->loop, UV_RUN_DEFAULT);
	}
	release(d);
	if (uv_loop_close(&d->loop) != 0)
		bc_log(BC_LOG_ERROR, "handles are left on the loop; this is a mistake in buscapd");
	enum bc_exit code = d->exit_code;
	free(d);
	return code;
}
