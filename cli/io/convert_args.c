#include "cli/io/convert_args.h"

#include <stdlib.h>

enum bc_exit bc_convert_args_init(
	struct bc_convert_args *c, const struct bc_console *console, int argc)
{
	*c = (struct bc_convert_args){.console = console,
		.reader = {.format = bc_format_options_default(), .index_fd = -1},
		.target = {.options = bc_format_options_default()},
		.paths = calloc((size_t)argc + 1, sizeof(*c->paths))};
	if (c->paths != NULL)
		return BC_EXIT_OK;
	return bc_print_no_memory(console);
}

void bc_convert_args_free(struct bc_convert_args *c)
{
	free(c->paths);
	c->paths = NULL;
}

bool bc_convert_args_option(struct bc_convert_args *c, int letter)
{
	switch (letter) {
	case 'I':
		return bc_option_read_format(c->console, "-I", &c->from, &c->reader.format);
	case 'O':
		return bc_option_write_format(
			c->console, "-O", &c->target.format, &c->target.options);
	case 'o':
		c->target.path = optarg;
		return true;
	case BC_CONVERT_ARGS_STRICT:
		c->target.is_strict = true;
		return true;
	default:
		return false;
	}
}

enum bc_exit bc_convert_args_operands(struct bc_convert_args *c, int argc, char **argv)
{
	for (int i = optind; i < argc; i++)
		c->paths[c->count++] = argv[i];
	if (c->count == 0)
		c->paths[c->count++] = "-";
	return bc_check_inputs(c->console, c->paths, c->count);
}
