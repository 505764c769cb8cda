#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/config/config_keys.h"
#include "daemon/config/options.h"
#include "daemon/main/boards.h"
#include "daemon/main/daemon.h"

/* If a standard descriptor were closed, the next open file would get its number, and log lines
 * would be written into that file. */
static bool open_standard_fds(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	return fd >= 0 && close(fd) == 0;
}

/* Returns the exit code after --help and the like. */
static enum bc_exit flush_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return BC_EXIT_OK;
	fprintf(stderr, "buscapd: can't write to standard output: %s\n", strerror(errno));
	return BC_EXIT_FAILED;
}

static void on_config_error(void *context, const char *text)
{
	(void)context;
	bc_log(BC_LOG_ERROR, "%s", text);
}

static enum bc_exit run(const struct bc_daemon_options *options, struct bc_config *config)
{
	if (options->check_config) {
		puts("configuration is valid");
		return BC_EXIT_OK;
	}
	if (options->print_config) {
		bc_config_print(stdout, config);
		return flush_output();
	}
	if (options->list_boards)
		return bc_boards_print(config);
	return bc_daemon_run(options, config);
}

static enum bc_exit start(int argc, char **argv)
{
	struct bc_daemon_options options;
	struct bc_config config;
	struct bc_config_errors errors = {.on_error = on_config_error};

	switch (bc_daemon_options_read(&options, argc, argv)) {
	case BC_OPTIONS_EXIT:
		return flush_output();
	case BC_OPTIONS_WRONG:
		return BC_EXIT_USAGE;
	case BC_OPTIONS_RUN:
		break;
	}
	if (!bc_daemon_options_config(&options, &config, &errors))
		return BC_EXIT_USAGE;
	enum bc_exit code = run(&options, &config);
	bc_name_map_close(config.names);
	return code;
}

int main(int argc, char **argv)
{
	if (!open_standard_fds()) {
		bc_log(BC_LOG_ERROR, "can't open /dev/null: %s", strerror(errno));
		return BC_EXIT_FAILED;
	}
	bc_log_start();
	enum bc_exit code = start(argc, argv);
	bc_log_stop();
	return (int)code;
}
