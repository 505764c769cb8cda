#include "cli/io/convert_args.h"

#include <stdlib.h>

enum bc_exit bc_convert_args_init(
	struct bc_convert_args *c, const struct bc_console *console, int argc)
{
	*c = (struct bc_convert_args){.console = console,
		.reader = {.format = bc_format_options_default(), .index_fd = -1},
		.target = {.options = bc_format_options_default()},
		.words = calloc((size_t)argc + 1, sizeof(*c->words))};
	if (c->words != NULL)
		return BC_EXIT_OK;
	return bc_print_no_memory(console);
}

void bc_convert_args_free(struct bc_convert_args *c)
{
	bc_files_free(&c->files);
	bc_operands_close(&c->operands);
	free(c->words);
	c->words = NULL;
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

enum bc_exit bc_convert_args_operands(
	struct bc_convert_args *c, int argc, char **argv, unsigned how)
{
	for (int i = optind; i < argc; i++)
		c->words[c->word_count++] = argv[i];
	return bc_operands_read(&c->operands, &c->files, c->console, c->words, c->word_count,
		how | BC_FILES_CHECKED | BC_FILES_STDIN);
}
