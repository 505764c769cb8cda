/* What a command says to its user: errors, the progress line and, if a signal kills it, what it
 * leaves behind. Everything goes to standard error, each message with one write, so that lines of
 * several commands in a pipe do not mix. */
#include "cli/term/console.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/term/text.h"
#include "formats/base/clock.h"

/* Room for two file names of 4096 bytes. Longer messages are truncated. */
#define MESSAGE_MAX 10000u

enum bc_exit bc_print_error(
	const struct bc_console *console, const char *file, const char *format, ...)
{
	char text[MESSAGE_MAX];
	char safe[4 * MESSAGE_MAX];
	va_list args;

	if (console->err == NULL)
		return BC_EXIT_FAILED;
	bc_progress_clear(console);
	int used = snprintf(text, sizeof(text), "buscap%s%s: %s%s",
		console->command != NULL ? " " : "",
		console->command != NULL ? console->command : "", file != NULL ? file : "",
		file != NULL ? ": " : "");
	if (used >= 0 && (size_t)used < sizeof(text)) {
		va_start(args, format);
		vsnprintf(text + used, sizeof(text) - (size_t)used, format, args);
		va_end(args);
	}
	fprintf(console->err, "%s\n", bc_safe_escaped(safe, sizeof(safe), text));
	return BC_EXIT_FAILED;
}

enum bc_exit bc_print_no_memory(const struct bc_console *console)
{
	return bc_print_error(console, NULL, "out of memory");
}

void bc_print_damage(const struct bc_console *console, const char *file, uint64_t offset,
	uint64_t bytes, const char *what)
{
	if (bytes == 0)
		bc_print_error(console, file, "offset %" PRIu64 ": %s", offset, what);
	else
		bc_print_error(console, file, "offset %" PRIu64 ", %" PRIu64 " byte%s: %s", offset,
			bytes, bc_plural(bytes), what);
}

enum bc_exit bc_exit_worse(enum bc_exit a, enum bc_exit b)
{
	static const int severities[] = {
		[BC_EXIT_DAMAGED] = 1,
		[BC_EXIT_FAILED] = 2,
		[BC_EXIT_UNREACHABLE] = 3,
		[BC_EXIT_USAGE] = 4,
	};

	return severities[a] >= severities[b] ? a : b;
}

#define SECOND_NS UINT64_C(1000000000)
#define STEP_NS   (SECOND_NS / 4)

void bc_progress_extend(const struct bc_console *console, uint64_t total_bytes)
{
	struct bc_progress *progress = console->progress;

	if (progress == NULL)
		return;
	bool is_first = progress->start_ns == 0;
	bool is_known = total_bytes != 0 && (is_first || progress->total_bytes != 0);
	progress->total_bytes = is_known ? progress->total_bytes + total_bytes : 0;
	if (!is_first)
		return;
	progress->err = isatty(fileno(console->err)) ? console->err : NULL;
	progress->start_ns = bc_now_ns();
	progress->next_ns = progress->start_ns + SECOND_NS;
}

void bc_progress_print(char out[BC_PROGRESS_TEXT_MAX], uint64_t done_bytes, uint64_t total_bytes,
	uint64_t elapsed_ns)
{
	double seconds = (double)elapsed_ns / (double)SECOND_NS;
	double rate = seconds > 0 ? (double)done_bytes / seconds : 0;
	char done[BC_HUMANIZE_MAX];
	char total[BC_HUMANIZE_MAX];
	char per_second[BC_HUMANIZE_MAX];

	bc_humanize_bytes(done, (double)done_bytes);
	bc_humanize_bytes(per_second, rate);
	if (total_bytes == 0 || done_bytes > total_bytes) {
		snprintf(out, BC_PROGRESS_TEXT_MAX, "%s, %s/s", done, per_second);
		return;
	}
	bc_humanize_bytes(total, (double)total_bytes);
	double seconds_left = rate > 0 ? (double)(total_bytes - done_bytes) / rate + 1 : 0;
	uint64_t left = seconds_left < UINT32_MAX ? (uint64_t)seconds_left : UINT32_MAX;
	snprintf(out, BC_PROGRESS_TEXT_MAX, "%s of %s (%.0f %%), %s/s, %" PRIu64 ":%02u left", done,
		total, 100.0 * (double)done_bytes / (double)total_bytes, per_second, left / 60,
		(unsigned)(left % 60));
}

void bc_progress_show(const struct bc_console *console)
{
	struct bc_progress *progress = console->progress;
	char text[BC_PROGRESS_TEXT_MAX];
	uint64_t now = bc_now_ns();

	if (now < progress->next_ns)
		return;
	progress->next_ns = now + STEP_NS;
	bc_progress_print(
		text, progress->done_bytes, progress->total_bytes, now - progress->start_ns);
	/* Carriage return, text, erase to the end of the line. */
	fprintf(progress->err, "\r%s\033[K", text);
	fflush(progress->err);
	progress->is_shown = true;
}

void bc_progress_clear(const struct bc_console *console)
{
	struct bc_progress *progress = console->progress;

	if (progress == NULL || !progress->is_shown)
		return;
	fputs("\r\033[K", progress->err);
	fflush(progress->err);
	progress->is_shown = false;
}

int bc_spawn(pid_t *pid, char *const *argv, int out, int err)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t set;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&files, out >= 0 ? out : STDIN_FILENO, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, err >= 0 ? err : STDIN_FILENO, STDERR_FILENO);
	posix_spawnattr_init(&attributes);
	sigemptyset(&set);
	posix_spawnattr_setsigmask(&attributes, &set);
	sigfillset(&set);
	posix_spawnattr_setsigdefault(&attributes, &set);
	posix_spawnattr_setflags(
		&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
	int error = posix_spawnp(pid, argv[0], &files, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return error;
}

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

	/* A blocked signal arrives at the descriptor even if ignored, as with nohup. */
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

/* Of the file being written: a command writes one at a time. Signal handlers find it here. */
static char *volatile note_text; /* NULL: none */
static size_t note_bytes;
static int note_fd;

/* The default action kills the program when this returns. */
static void on_signal(int number)
{
	if (note_text != NULL)
		(void)!write(note_fd, note_text, note_bytes);
	raise(number);
}

void bc_interrupt_note(const struct bc_console *console, const char *file, const char *left)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
	struct bc_console memory = *console;
	char *text;

	bc_interrupt_note_clear();
	note_fd = fileno(console->err);
	memory.err = open_memstream(&text, &note_bytes);
	if (memory.err == NULL)
		return;
	if (note_fd >= 0 && isatty(note_fd))
		fputs("\r\033[K", memory.err); /* erases the progress line and "^C" */
	bc_print_error(&memory, file, "interrupted; incomplete data is in %s", left);
	if (fclose(memory.err) != 0)
		note_bytes = 0;
	note_text = text;
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < SIGNALS; i++)
		if (has_action(signals[i], SIG_DFL))
			sigaction(signals[i], &action, NULL);
}

void bc_interrupt_note_clear(void)
{
	char *text = note_text;

	note_text = NULL;
	free(text);
}
