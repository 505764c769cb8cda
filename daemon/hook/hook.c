#include "daemon/hook/hook.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "daemon/base/log_limit.h"
#include "daemon/hook/hook_output.h"
#include "daemon/hook/hook_process.h"

/* Between SIGTERM and SIGKILL; after that at the end, before a command that doesn't even end then
 * (it waits for a dead file server) is left behind. */
#define TERM_MS 2000
#define KILL_MS 1000

/* What a command has printed is there when it ends; but what it started may hold its output open.
 */
#define DRAIN_MS 100

/* Lines that commands print are logged, so many of them in this time. */
#define LINES_A_MINUTE 200u
#define MINUTE_NS      UINT64_C(60000000000)

struct item {
	char *path; /* in the same piece of memory */
	struct bc_hook_file file;
};

enum hook_state {
	HOOK_IDLE,     /* no command runs */
	HOOK_RUNNING,  /* one does */
	HOOK_TERMED,   /* and was sent SIGTERM */
	HOOK_KILLED,   /* and SIGKILL */
	HOOK_DRAINING, /* it has ended: what it has printed is being read */
	HOOK_CLOSING,  /* its handles are being closed */
};

enum { TIMER_RUN, TIMER_END, TIMER_DONE, TIMERS };

struct bc_hook {
	struct bc_hook_options options;
	char *command;
	char *next_command; /* when the present one has ended; NULL: the same */
	struct item *waiting[BC_HOOK_WAITING_MAX]; /* a ring */
	unsigned first;
	unsigned count;
	uint64_t failed;

	enum hook_state state;
	struct item *running;
	struct bc_hook_process process;
	struct bc_hook_output output;
	bool has_output;
	int start_error; /* besides the process's own */
	bool was_ended;  /* by us: it took too long */

	uv_timer_t timers[TIMERS];
	unsigned to_close;           /* timers, and the process */
	void (*done)(void *context); /* NULL: bc_hook_finish() was not called, or is over */
	bool is_finishing;
	bool is_over; /* no more commands are run */
	bool is_closing;

	char logged[160]; /* the failure logged last; empty after one that went well */
	uint64_t logged_ns;
	uint64_t log_after_ns;
	uint64_t unlogged; /* of the same kind since */
	struct bc_log_limits limits;
	uint64_t lines_since_ns;
	unsigned lines; /* logged since then, of what commands print */
};

static void run_next(struct bc_hook *h);
static void on_run_timer(uv_timer_t *timer);

/* Failures */

static void tell_unlogged(struct bc_hook *h)
{
	if (h->unlogged != 0)
		bc_log_limited(&h->limits, BC_LOG_WARNING,
			"%s: the same of %" PRIu64 " more file%s: %s", h->command, h->unlogged,
			h->unlogged != 1 ? "s" : "", h->logged);
	h->unlogged = 0;
}

/* The same failure over and over is only counted: bc_hook_poll() tells it again. */
static void log_failure(struct bc_hook *h, const char *path, const char *error)
{
	if (strcmp(error, h->logged) == 0) {
		h->unlogged++;
		return;
	}
	tell_unlogged(h);
	bc_log_limited(&h->limits, BC_LOG_WARNING,
		"%s %s: %s; the file stays, and the command is not run for it again", h->command,
		path, error);
	snprintf(h->logged, sizeof(h->logged), "%s", error);
	h->logged_ns = uv_hrtime();
	h->log_after_ns = BC_LOG_WINDOW_NS;
}

void bc_hook_poll(struct bc_hook *h, uint64_t now_ns)
{
	if (h->unlogged != 0 && now_ns >= h->logged_ns + h->log_after_ns) {
		tell_unlogged(h);
		h->logged_ns = now_ns;
		h->log_after_ns = bc_log_next_window(h->log_after_ns);
	}
	bc_log_limits_poll(&h->limits, now_ns);
}

static void fail(struct bc_hook *h, const char *path, int status, const char *error)
{
	h->failed++;
	log_failure(h, path, error);
	if (h->options.on_failed != NULL && !h->is_closing)
		h->options.on_failed(h->options.context, path, status, error);
}

static void forget_waiting(struct bc_hook *h)
{
	for (; h->count != 0; h->count--) {
		free(h->waiting[h->first]);
		h->first = (h->first + 1) % BC_HOOK_WAITING_MAX;
	}
}

/* A command's end */

static void on_done(uv_timer_t *timer)
{
	struct bc_hook *h = timer->data;
	void (*done)(void *context) = h->done;

	h->done = NULL;
	uv_timer_stop(&h->timers[TIMER_END]);
	if (done != NULL)
		done(h->options.context);
}

/* Nothing runs, and nothing more is to be run. */
static void conclude(struct bc_hook *h)
{
	if (h->is_finishing && h->done != NULL)
		uv_timer_start(&h->timers[TIMER_DONE], on_done, 0, 0);
}

static void tell_end(struct bc_hook *h, const struct item *item)
{
	const struct bc_hook_process *p = &h->process;
	int start_error = h->start_error != 0 ? h->start_error : p->start_error;
	char error[128] = "";
	int status = -1;

	if (start_error != 0) {
		snprintf(error, sizeof(error), "can't be run: %s", strerror(-start_error));
	} else if (h->was_ended) {
		snprintf(error, sizeof(error), "took too long, and was ended");
	} else if (WIFSIGNALED(p->status)) {
		snprintf(error, sizeof(error), "ended by signal %d", WTERMSIG(p->status));
	} else if (WEXITSTATUS(p->status) != 0) {
		status = WEXITSTATUS(p->status);
		snprintf(error, sizeof(error), "exit code %d", status);
	}
	if (error[0] != '\0') {
		fail(h, item->path, status, error);
		return;
	}
	tell_unlogged(h);
	if (h->logged[0] != '\0')
		bc_log_limited(&h->limits, BC_LOG_NOTICE, "%s %s: went well again", h->command,
			item->path);
	h->logged[0] = '\0';
}

static void free_if_closed(struct bc_hook *h)
{
	if (h->to_close != 0 || h->has_output)
		return;
	forget_waiting(h);
	free(h->running);
	free(h->command);
	free(h->next_command);
	free(h);
}

/* Nothing is left of the command: the next is run. */
static void leave_command(struct bc_hook *h)
{
	struct item *item = h->running;

	if (h->is_closing) {
		free_if_closed(h);
		return;
	}
	h->running = NULL;
	h->state = HOOK_IDLE;
	tell_end(h, item);
	free(item);
	if (h->next_command != NULL) {
		free(h->command);
		h->command = h->next_command;
		h->next_command = NULL;
	}
	run_next(h);
}

static void on_output_closed(void *context)
{
	struct bc_hook *h = context;

	h->has_output = false;
	leave_command(h);
}

static void close_command(struct bc_hook *h)
{
	if (h->state == HOOK_CLOSING)
		return;
	h->state = HOOK_CLOSING;
	uv_timer_stop(&h->timers[TIMER_RUN]);
	if (h->has_output)
		bc_hook_output_close(&h->output, on_output_closed);
	else
		uv_timer_start(&h->timers[TIMER_RUN], on_run_timer, 0, 0);
	h->lines += h->has_output ? h->output.lines : 0;
}

static void on_output_end(void *context)
{
	struct bc_hook *h = context;

	if (h->state == HOOK_DRAINING)
		close_command(h);
}

static void on_process_end(void *context)
{
	struct bc_hook *h = context;

	if (h->state == HOOK_CLOSING)
		return;
	h->state = HOOK_DRAINING;
	uv_timer_start(&h->timers[TIMER_RUN], on_run_timer, DRAIN_MS, 0);
	bc_hook_output_drain(&h->output);
	if (h->output.is_over)
		close_command(h);
}

/* Unless it has ended in its time, and the loop was held up. */
static void end_command(struct bc_hook *h)
{
	if (h->state != HOOK_RUNNING || !bc_hook_process_poll(&h->process))
		return;
	h->state = HOOK_TERMED;
	h->was_ended = true;
	bc_hook_process_signal(&h->process, SIGTERM);
	uv_timer_start(&h->timers[TIMER_RUN], on_run_timer, TERM_MS, 0);
}

static void on_run_timer(uv_timer_t *timer)
{
	struct bc_hook *h = timer->data;

	switch (h->state) {
	case HOOK_RUNNING:
		end_command(h);
		break;
	case HOOK_TERMED:
		h->state = HOOK_KILLED;
		bc_hook_process_signal(&h->process, SIGKILL);
		if (h->is_finishing)
			uv_timer_start(timer, on_run_timer, KILL_MS, 0);
		break;
	case HOOK_KILLED: /* the end doesn't wait for it */
		if (!bc_hook_process_poll(&h->process))
			break;
		fail(h, h->running->path, -1, "doesn't end when it is killed");
		conclude(h);
		break;
	case HOOK_DRAINING:
		close_command(h);
		break;
	case HOOK_CLOSING: /* there was nothing to close */
		leave_command(h);
		break;
	case HOOK_IDLE:
		break;
	}
}

/* A command's beginning */

static unsigned lines_left(struct bc_hook *h)
{
	uint64_t now = uv_hrtime();

	if (now - h->lines_since_ns >= MINUTE_NS) {
		h->lines_since_ns = now;
		h->lines = 0;
	}
	unsigned left = LINES_A_MINUTE - h->lines;
	return left < BC_HOOK_LINES_MAX ? left : BC_HOOK_LINES_MAX;
}

#define OWN_VARIABLES      3
#define OWN_VARIABLE_BYTES (BC_RECORDING_ID_MAX + 32)

/* What systemd tells us alone, and what we tell the command. */
static bool is_replaced(const char *variable)
{
	static const char *const names[] = {"NOTIFY_SOCKET=", "WATCHDOG_USEC=", "WATCHDOG_PID=",
		"LISTEN_PID=", "LISTEN_FDS=", "LISTEN_FDNAMES=", "JOURNAL_STREAM=",
		"BUSCAP_RECORDING=", "BUSCAP_SEGMENT=", "BUSCAP_HASH="};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* One piece of memory: the pointers, and behind them the texts of our own. */
static char **make_environment(const struct bc_hook_file *file)
{
	size_t count = 0;

	while (environ[count] != NULL)
		count++;
	size_t pointers = (count + OWN_VARIABLES + 1) * sizeof(char *);
	char **variables = malloc(pointers + (size_t)OWN_VARIABLES * OWN_VARIABLE_BYTES);
	if (variables == NULL)
		return NULL;
	char *own = (char *)variables + pointers;
	char **next = variables;
	for (size_t i = 0; i < count; i++)
		if (!is_replaced(environ[i]))
			*next++ = environ[i];
	for (int i = 0; i < OWN_VARIABLES; i++)
		*next++ = own + (size_t)i * OWN_VARIABLE_BYTES;
	*next = NULL;
	snprintf(own, OWN_VARIABLE_BYTES, "BUSCAP_RECORDING=%s", file->recording);
	own += OWN_VARIABLE_BYTES;
	snprintf(own, OWN_VARIABLE_BYTES, "BUSCAP_SEGMENT=%" PRIu32, file->segment);
	own += OWN_VARIABLE_BYTES;
	snprintf(own, OWN_VARIABLE_BYTES, "BUSCAP_HASH=%s", file->hash);
	return variables;
}

static void run(struct bc_hook *h, struct item *item)
{
	int output_fd = -1;

	h->running = item;
	h->was_ended = false;
	h->state = HOOK_RUNNING;
	h->start_error = bc_hook_output_open(
		&h->output, h->options.loop, &output_fd, h->command, on_output_end, h);
	h->output.lines_max = lines_left(h);
	h->output.limits = &h->limits;
	h->has_output = h->start_error == 0;
	if (h->start_error == 0)
		h->start_error = bc_hook_process_start(&h->process, h->command, item->file.path,
			make_environment(&item->file), output_fd);
	if (h->start_error != 0)
		close_command(h);
	else if (h->options.timeout_ns != 0)
		uv_timer_start(&h->timers[TIMER_RUN], on_run_timer,
			(h->options.timeout_ns + 999999) / 1000000, 0);
}

static void run_next(struct bc_hook *h)
{
	if (h->state != HOOK_IDLE || h->is_closing)
		return;
	if (h->count == 0 || h->command[0] == '\0') {
		forget_waiting(h);
		conclude(h);
		return;
	}
	struct item *item = h->waiting[h->first];
	h->first = (h->first + 1) % BC_HOOK_WAITING_MAX;
	h->count--;
	run(h, item);
}

/* Calls */

int bc_hook_open(struct bc_hook **hook, const struct bc_hook_options *options)
{
	struct bc_hook *h = calloc(1, sizeof(*h));
	char *command = strdup(options->command);

	if (h == NULL || command == NULL) {
		free(h);
		free(command);
		return -ENOMEM;
	}
	h->options = *options;
	h->options.command = NULL;
	h->command = command;
	for (int i = 0; i < TIMERS; i++) {
		uv_timer_init(options->loop, &h->timers[i]);
		h->timers[i].data = h;
	}
	bc_hook_process_init(&h->process, options->loop, on_process_end, h);
	h->to_close = TIMERS + 1;
	*hook = h;
	return 0;
}

int bc_hook_set(struct bc_hook *h, const char *command, uint64_t timeout_ns)
{
	h->options.timeout_ns = timeout_ns;
	if (strcmp(command, h->command) == 0) {
		free(h->next_command);
		h->next_command = NULL;
		return 0;
	}
	char *copy = strdup(command);
	if (copy == NULL)
		return -ENOMEM;
	/* The output of the one that runs is named by it still: it is told in full before that. */
	if (h->state != HOOK_IDLE) {
		free(h->next_command);
		h->next_command = copy;
		return 0;
	}
	free(h->command);
	h->command = copy;
	return 0;
}

static struct item *make_item(const struct bc_hook_file *file)
{
	size_t bytes = strlen(file->path) + 1;
	struct item *item = malloc(sizeof(*item) + bytes);

	if (item == NULL)
		return NULL;
	item->file = *file;
	item->path = (char *)(item + 1);
	memcpy(item->path, file->path, bytes);
	item->file.path = item->path;
	return item;
}

void bc_hook_add(struct bc_hook *h, const struct bc_hook_file *file)
{
	const char *command = h->next_command != NULL ? h->next_command : h->command;

	if (command[0] == '\0' || h->is_closing)
		return;
	if (h->is_over) {
		fail(h, file->path, -1, "is not run any more: the daemon ends");
		return;
	}
	if (h->count == BC_HOOK_WAITING_MAX) {
		fail(h, file->path, -1, "is not run: too many files wait for it");
		return;
	}
	struct item *item = make_item(file);
	if (item == NULL) {
		fail(h, file->path, -1, "is not run: not enough memory");
		return;
	}
	h->waiting[(h->first + h->count++) % BC_HOOK_WAITING_MAX] = item;
	run_next(h);
}

uint64_t bc_hook_waiting(const struct bc_hook *h)
{
	return h->count + (h->running != NULL);
}

uint64_t bc_hook_failed(const struct bc_hook *h)
{
	return h->failed;
}

/* The time for what waits is over. */
static void on_end_timer(uv_timer_t *timer)
{
	struct bc_hook *h = timer->data;

	h->is_over = true;
	if (h->count != 0)
		bc_log(BC_LOG_WARNING, "%s: is not run for %u files any more: the daemon ends",
			h->command, h->count);
	h->failed += h->count;
	forget_waiting(h);
	end_command(h);
	if (h->state == HOOK_KILLED)
		uv_timer_start(&h->timers[TIMER_RUN], on_run_timer, KILL_MS, 0);
}

void bc_hook_finish(struct bc_hook *h, uint64_t timeout_ns, void (*done)(void *context))
{
	assert(!h->is_finishing);
	h->is_finishing = true;
	h->done = done;
	uv_timer_start(&h->timers[TIMER_END], on_end_timer, timeout_ns / 1000000, 0);
	run_next(h);
}

static void on_part_closed(struct bc_hook *h)
{
	h->to_close--;
	free_if_closed(h);
}

static void on_timer_closed(uv_handle_t *handle)
{
	on_part_closed(handle->data);
}

static void on_process_closed(void *context)
{
	on_part_closed(context);
}

void bc_hook_close(struct bc_hook *h)
{
	if (h == NULL)
		return;
	tell_unlogged(h);
	bc_log_limits_end(&h->limits);
	h->is_closing = true;
	h->done = NULL;
	if (h->state == HOOK_RUNNING)
		bc_hook_process_signal(&h->process, SIGTERM);
	if (h->has_output && h->state != HOOK_CLOSING)
		bc_hook_output_close(&h->output, on_output_closed);
	h->state = HOOK_CLOSING;
	bc_hook_process_close(&h->process, on_process_closed);
	for (int i = 0; i < TIMERS; i++)
		uv_close((uv_handle_t *)&h->timers[i], on_timer_closed);
}
