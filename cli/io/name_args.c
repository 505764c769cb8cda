#include "cli/io/name_args.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/io/file.h"

#define MAP_BYTES_MAX (16u << 20)

/* Reads a whole file into a new buffer. Returns its length, or a negative errno. */
static ssize_t read_file(int fd, char **text)
{
	size_t capacity = 0;
	size_t used = 0;

	*text = NULL;
	for (;;) {
		if (used == capacity) {
			capacity = capacity == 0 ? 1 << 16 : 2 * capacity;
			char *grown = capacity <= MAP_BYTES_MAX ? realloc(*text, capacity) : NULL;
			if (grown == NULL)
				return capacity <= MAP_BYTES_MAX ? -ENOMEM : -EFBIG;
			*text = grown;
		}
		ssize_t n = read(fd, *text + used, capacity - used);
		if (n == 0)
			return (ssize_t)used;
		if (n < 0 && errno != EINTR)
			return -errno;
		used += n > 0 ? (size_t)n : 0;
	}
}

static enum bc_exit add_file(struct bc_name_map *map, const struct bc_console *console)
{
	char *text = NULL;
	char err[128];
	int fd = bc_open_readable(console, optarg);

	if (fd < 0)
		return BC_EXIT_FAILED;
	ssize_t bytes = read_file(fd, &text);
	close(fd);
	int rc = bytes < 0 ? (int)bytes
			   : bc_name_map_add_text(map, text, (size_t)bytes, err, sizeof(err));
	free(text);
	if (rc == 0)
		return BC_EXIT_OK;
	bc_print_error(console, optarg, "%s", rc == -EINVAL ? err : strerror(-rc));
	return rc == -EINVAL ? BC_EXIT_USAGE : BC_EXIT_FAILED;
}

enum bc_exit bc_name_args_add(struct bc_name_map **map, const struct bc_console *console)
{
	if (*map == NULL)
		*map = bc_name_map_open();
	if (*map == NULL)
		return bc_print_no_memory(console);
	if (strcmp(optarg, "pc") != 0)
		return add_file(*map, console);
	return bc_name_map_add_pc(*map) == 0 ? BC_EXIT_OK : bc_print_no_memory(console);
}
