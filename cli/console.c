#include "cli/console.h"

#include <inttypes.h>
#include <stdarg.h>

void bc_complain(const struct bc_console *console, const char *file, const char *format, ...)
{
	va_list args;

	fprintf(console->err, "buscap %s: ", console->command);
	if (file != NULL)
		fprintf(console->err, "%s: ", file);
	va_start(args, format);
	vfprintf(console->err, format, args);
	va_end(args);
	fputc('\n', console->err);
}

void bc_complain_damage(const struct bc_console *console, const char *file, uint64_t offset,
	uint64_t bytes, const char *what)
{
	bc_complain(console, file, "offset %" PRIu64 ", %" PRIu64 " byte%s: %s", offset, bytes,
		bc_plural(bytes), what);
}

static int badness(enum bc_exit code)
{
	switch (code) {
	case BC_EXIT_OK:
		return 0;
	case BC_EXIT_DAMAGED:
		return 1;
	case BC_EXIT_FAILED:
		return 2;
	case BC_EXIT_UNREACHABLE:
		return 3;
	case BC_EXIT_USAGE:
		return 4;
	}
	return 4;
}

enum bc_exit bc_exit_worse(enum bc_exit a, enum bc_exit b)
{
	return badness(a) >= badness(b) ? a : b;
}
