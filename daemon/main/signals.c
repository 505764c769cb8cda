#include "daemon/main/signals.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

static const struct handled {
	int number;
	const char *name;
	bool stays_ignored; /* if it is at the start */
	bool is_repeated;   /* by the system, whatever we do */
} handled[BC_SIGNALS_MAX] = {
	{SIGTERM, "SIGTERM", false, false},
	{SIGINT, "SIGINT", false, false},
	{SIGQUIT, "SIGQUIT", true, false},
	{SIGPWR, "SIGPWR", false, true},
	{SIGXCPU, "SIGXCPU", false, true}, /* each second */
	{SIGHUP, "SIGHUP", false, true},
};

/* So are real-time signals. SIGPIPE and SIGXFSZ make failed writes errors. */
static const int ignored[] = {
	SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGSTKFLT};

static bool is_ignored(int number)
{
	struct sigaction now;

	return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

/* Leaves a handler alone that a preloaded library has installed, such as a profiler. */
static void ignore(int number)
{
	struct sigaction now;

	if (sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
		signal(number, SIG_IGN);
}

static void mask_handled(int how)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < BC_SIGNALS_MAX; i++)
		sigaddset(&set, handled[i].number);
	pthread_sigmask(how, &set, NULL);
}

void bc_signals_block(void)
{
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		ignore(ignored[i]);
	for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
		ignore(number);
	mask_handled(SIG_BLOCK);
}

void bc_signals_unblock(void)
{
	mask_handled(SIG_UNBLOCK);
}

bool bc_signals_is_stop_pending(void)
{
	sigset_t pending;

	if (sigpending(&pending) != 0)
		return false;
	for (size_t i = 0; i < BC_SIGNALS_MAX; i++)
		if (handled[i].number != SIGHUP && sigismember(&pending, handled[i].number) == 1)
			return true;
	return false;
}

static void on_stop(uv_signal_t *handle, int number)
{
	struct bc_signals *s = handle->data;

	for (size_t i = 0; i < BC_SIGNALS_MAX; i++) {
		if (handled[i].number != number || (s->is_stopping && handled[i].is_repeated))
			continue;
		s->is_stopping = true;
		s->on_stop(s->context, handled[i].name);
	}
}

static void on_reload(uv_signal_t *handle, int number)
{
	const struct bc_signals *s = handle->data;

	(void)number;
	s->on_reload(s->context);
}

void bc_signals_start(struct bc_signals *s, uv_loop_t *loop, bool is_once)
{
	for (size_t i = 0; i < BC_SIGNALS_MAX; i++) {
		int number = handled[i].number;
		bool is_reload = number == SIGHUP && !is_once;
		if ((handled[i].stays_ignored || (number == SIGHUP && is_once)) &&
			is_ignored(number))
			continue;
		uv_signal_t *handle = &s->handles[s->count++];
		uv_signal_init(loop, handle);
		handle->data = s;
		uv_signal_start(handle, is_reload ? on_reload : on_stop, number);
	}
}

void bc_signals_close(struct bc_signals *s)
{
	/* Closing a handle restores the default action: another signal would kill us now. */
	mask_handled(SIG_BLOCK);
	for (size_t i = 0; i < s->count; i++)
		uv_close((uv_handle_t *)&s->handles[i], NULL);
	for (size_t i = 0; i < BC_SIGNALS_MAX; i++)
		signal(handled[i].number, SIG_IGN);
}
