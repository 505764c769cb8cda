/* Runs "buscap ..." in this process and captures what it prints.
 *
 *     command_run() -> command_run_free()
 *
 * Used by a fuzz target too, so nothing here asserts; it aborts if the system refuses something. */
#ifndef BC_TESTS_SUPPORT_COMMAND_RUN_H
#define BC_TESTS_SUPPORT_COMMAND_RUN_H

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/term/commands.h"
#include "cli/term/console.h"

#define COMMAND_WORDS 40

struct command_run {
	enum bc_exit code;
	char *out; /* null-terminated */
	size_t out_bytes;
	char *err;
	size_t err_bytes;
};

typedef enum bc_exit command_fn(const struct bc_console *console, int argc, char **argv);

/* Splits a line at blanks; a word in single quotes may have some or be empty. The words point into
 * the line. Returns their number. */
static inline int command_split(char *line, char *words[COMMAND_WORDS])
{
	int count = 0;

	while (*(line += strspn(line, " ")) != '\0') {
		bool is_quoted = *line == '\'';
		words[count++] = line += is_quoted;
		line += strcspn(line, is_quoted ? "'" : " ");
		if (*line != '\0')
			*line++ = '\0';
		if (count == COMMAND_WORDS)
			abort();
	}
	words[count] = NULL;
	return count;
}

/* The length of the command at the start of a line, with its verb. */
static inline int command_name_bytes(const char *line)
{
	static const char *const verbs[] = {
		"start", "stop", "list", "show", "note", "delete", "add", "remove"};
	size_t n = strcspn(line, " ");
	const char *verb = line + n + (line[n] == ' ');

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if ((line[0] == 'r' || line[0] == 't') && strcspn(verb, " ") == strlen(verbs[i]) &&
			strncmp(verb, verbs[i], strlen(verbs[i])) == 0)
			return (int)(n + 1 + strlen(verbs[i]));
	return (int)n;
}

/* Returns what the file contains, null-terminated and allocated. */
static inline char *command_read(int fd, size_t *bytes)
{
	off_t end = lseek(fd, 0, SEEK_END);
	char *text = end >= 0 ? malloc((size_t)end + 1) : NULL;

	if (text == NULL || pread(fd, text, (size_t)end, 0) != end)
		abort();
	text[end] = '\0';
	*bytes = (size_t)end;
	return text;
}

/* Returns a pipe that contains a file of at most 64 KiB. */
static inline int command_pipe(const char *path)
{
	char bytes[65536];
	int fds[2];
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(file, bytes, sizeof(bytes));

	if (pipe2(fds, O_CLOEXEC) != 0 || write(fds[1], bytes, (size_t)n) != n)
		abort();
	close(file);
	close(fds[1]);
	return fds[0];
}

/* Runs "buscap LINE" by a function, usually bc_commands_run(). The line may end with "<FILE" or
 * ">FILE"; otherwise the input is /dev/null, and the output is captured. */
static inline void command_run_by(struct command_run *r, command_fn *run, const char *line)
{
	char *words[COMMAND_WORDS + 1];
	char *copy;
	sigset_t signals;

	if (asprintf(&copy, "buscap %s", line) < 0)
		abort();
	int argc = command_split(copy, words);
	const char *file = words[argc - 1] + 1;
	char arrow = file[-1] == '<' || file[-1] == '>' ? file[-1] : '\0';
	if (arrow != '\0')
		words[--argc] = NULL;
	struct bc_console console = {
		.in = arrow == '<' ? command_pipe(file) : open("/dev/null", O_RDONLY | O_CLOEXEC),
		.out = arrow == '>' ? open(file, O_RDWR | O_CLOEXEC)
				    : memfd_create("out", MFD_CLOEXEC),
		.err = open_memstream(&r->err, &r->err_bytes)};
	if (console.in < 0 || console.out < 0 || console.err == NULL)
		abort();
	pthread_sigmask(SIG_BLOCK, NULL, &signals);
	r->code = run(&console, argc, words);
	pthread_sigmask(SIG_SETMASK, &signals, NULL);
	fclose(console.err);
	r->out = command_read(console.out, &r->out_bytes);
	close(console.out);
	close(console.in);
	free(copy);
}

static inline void command_run(struct command_run *r, const char *line)
{
	command_run_by(r, bc_commands_run, line);
}

/* The same for a formatted line. */
__attribute__((format(printf, 1, 2))) static inline struct command_run command_runf(
	const char *format, ...)
{
	struct command_run r;
	char *line;
	va_list args;

	va_start(args, format);
	if (vasprintf(&line, format, args) < 0)
		abort();
	va_end(args);
	command_run(&r, line);
	free(line);
	return r;
}

static inline void command_run_free(struct command_run *r)
{
	free(r->out);
	free(r->err);
}

#endif
