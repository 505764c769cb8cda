#include "cli/io/name_args.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/io/file.h"
#include "formats/names/name_file.h"

static enum bc_exit add_file(struct bc_name_map *map, const struct bc_console *console,
	const char *path, int letter, uint64_t offset)
{
	char err[256];
	int fd = bc_open_readable(console, path);

	if (fd < 0)
		return BC_EXIT_FAILED;
	int rc = letter == BC_NAME_OPT_MAP
			 ? bc_name_file_add_map(map, fd, err, sizeof(err))
			 : bc_name_file_add_symbols(map, fd, offset, err, sizeof(err));
	close(fd);
	if (rc == 0)
		return BC_EXIT_OK;
	bc_print_error(console, path, "%s", rc == -EINVAL ? err : strerror(-rc));
	return rc == -EINVAL ? BC_EXIT_USAGE : BC_EXIT_FAILED;
}

static enum bc_exit add_symbols(struct bc_name_map *map, const struct bc_console *console)
{
	uint64_t offset;
	char *path = strndup(optarg, bc_symbols_split(optarg, &offset));

	if (path == NULL)
		return bc_print_no_memory(console);
	const char *colon = strrchr(path, ':');
	if (colon != NULL && access(path, F_OK) != 0) {
		bc_print_error(console, path,
			"no such file, and \"%s\" is not an offset such as -c0000000", colon + 1);
		free(path);
		return BC_EXIT_USAGE;
	}
	enum bc_exit code = add_file(map, console, path, BC_NAME_OPT_SYMBOLS, offset);
	free(path);
	return code;
}

enum bc_exit bc_name_args_add(
	struct bc_name_map **map, const struct bc_console *console, int letter)
{
	if (*map == NULL)
		*map = bc_name_map_open();
	if (*map == NULL)
		return bc_print_no_memory(console);
	if (letter == BC_NAME_OPT_SYMBOLS)
		return add_symbols(*map, console);
	if (strcmp(optarg, "pc") != 0)
		return add_file(*map, console, optarg, letter, 0);
	return bc_name_map_add_pc(*map) == 0 ? BC_EXIT_OK : bc_print_no_memory(console);
}

void bc_name_print(struct bc_output *output, const struct bc_name_map *map, bool is_port,
	uint64_t addr, const char *before, const char *after)
{
	struct bc_name name;

	if (map == NULL || !bc_name_map_find(map, is_port, addr, &name))
		return;
	bc_output_text(output, before, strlen(before));
	bc_output_safe(output, name.text);
	if (name.is_symbol && name.offset != 0)
		bc_output_format(output, "+0x%" PRIx64, name.offset);
	bc_output_text(output, after, strlen(after));
}
