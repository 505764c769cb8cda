/* buscap, the command-line tool. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/term/commands.h"

/* Opens /dev/null for each standard stream that is closed, in the wrong direction so that using it
 * fails. Otherwise a socket or file opened later would get its descriptor. */
static void fill_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
	fill_streams();
	signal(SIGPIPE, SIG_IGN); /* writes return EPIPE instead */
	signal(SIGXFSZ, SIG_IGN); /* writes return EFBIG instead */

	const struct bc_console console = {.in = STDIN_FILENO, .out = STDOUT_FILENO, .err = stderr};
	return (int)bc_commands_run(&console, argc, argv);
}
