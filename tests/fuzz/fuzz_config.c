/* Fuzz target: configuration files, including sizes, times, rules and source specifications. An
 * error must have a message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/config/config_keys.h"
#include "daemon/config/config_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_error(void *context, const char *text)
{
	(void)context;
	if (text[0] == '\0')
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bc_config config = {.names = NULL};
	char path[64];
	struct bc_config_errors errors = {.on_error = on_error};
	int fd = memfd_create("fuzz", 0);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	bc_config_default(&config);
	bc_config_load(&config, path, false, &errors);
	if (bc_config_check(&config, &errors) != (errors.count == 0))
		abort();
	if (errors.count == 0) {
		bc_config_make_once(&config);
		if (!bc_config_check(&config, &errors))
			abort();
	}
	close(fd);
	return 0;
}
