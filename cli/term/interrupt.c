#include "cli/term/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

#define SIGNALS (sizeof(signals) / sizeof(signals[0]))

/* Returns whether a signal's action is this one: SIG_DFL, SIG_IGN. */
static bool has_action(int number, void (*action)(int))
{
	struct sigaction current;

	return sigaction(number, NULL, &current) == 0 && current.sa_handler == action;
}

int bc_interrupt_open(void)
{
	sigset_t set;
	sigset_t before;

	/* A blocked signal arrives at the descriptor even if it is ignored, as in background jobs
	 * and with nohup. */
	sigemptyset(&set);
	for (size_t i = 0; i < SIGNALS; i++)
		if (!has_action(signals[i], SIG_IGN))
			sigaddset(&set, signals[i]);
	if (sigprocmask(SIG_BLOCK, &set, &before) != 0)
		return -errno;
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	int rc = fd >= 0 ? fd : -errno;
	if (fd < 0)
		sigprocmask(SIG_SETMASK, &before, NULL);
	return rc;
}

bool bc_interrupt_wait(int fd, int timeout_ms)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};

	return poll(&pollfd, 1, timeout_ms) > 0;
}

struct bc_interrupt_note {
	struct bc_interrupt_note *next;
	int fd;
	char *text;
	size_t bytes;
};

/* A signal handler has no other way to find them. */
static struct bc_interrupt_note *volatile notes;

/* The default action kills the program when this returns. */
static void on_signal(int number)
{
	for (const struct bc_interrupt_note *note = notes; note != NULL; note = note->next)
		(void)!write(note->fd, note->text, note->bytes);
	raise(number);
}

static void install_handler(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < SIGNALS; i++)
		if (has_action(signals[i], SIG_DFL))
			sigaction(signals[i], &action, NULL);
}

struct bc_interrupt_note *bc_interrupt_note_add(
	const struct bc_console *console, const char *file, const char *left)
{
	struct bc_interrupt_note *note = calloc(1, sizeof(*note));
	struct bc_console memory = *console;

	if (note == NULL)
		return NULL;
	note->fd = fileno(console->err);
	memory.err = open_memstream(&note->text, &note->bytes);
	if (memory.err == NULL) {
		free(note);
		return NULL;
	}
	if (note->fd >= 0 && isatty(note->fd))
		fputs("\r\033[K", memory.err); /* erases the progress line and "^C" */
	bc_print_error(&memory, file, "interrupted; incomplete data is in %s", left);
	if (fclose(memory.err) != 0)
		note->bytes = 0;
	note->next = notes;
	notes = note;
	install_handler();
	return note;
}

void bc_interrupt_note_remove(struct bc_interrupt_note *note)
{
	struct bc_interrupt_note *before = notes;

	if (note == NULL)
		return;
	while (before != note && before->next != note)
		before = before->next;
	if (before == note)
		notes = note->next;
	else
		before->next = note->next;
	free(note->text);
	free(note);
}
