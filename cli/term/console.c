#include "cli/term/console.h"

#include <inttypes.h>
#include <stdarg.h>

#include "cli/term/text.h"

/* Room for two file names of 4096 bytes. Longer messages are truncated. */
#define MESSAGE_MAX 10000u

bool bc_console_silence(struct bc_console *silent, const struct bc_console *console)
{
	*silent = *console;
	silent->err = fopen("/dev/null", "w");
	return silent->err != NULL;
}

void bc_print_error(const struct bc_console *console, const char *file, const char *format, ...)
{
	char text[MESSAGE_MAX];
	va_list args;

	int used = snprintf(text, sizeof(text), "buscap%s%s: %s%s",
		console->command != NULL ? " " : "",
		console->command != NULL ? console->command : "", file != NULL ? file : "",
		file != NULL ? ": " : "");
	if (used >= 0 && (size_t)used < sizeof(text)) {
		va_start(args, format);
		vsnprintf(text + used, sizeof(text) - (size_t)used, format, args);
		va_end(args);
	}
	bc_safe_print_escaped(console->err, text);
	fputc('\n', console->err);
}

enum bc_exit bc_print_no_memory(const struct bc_console *console)
{
	bc_print_error(console, NULL, "out of memory");
	return BC_EXIT_FAILED;
}

void bc_print_damage(const struct bc_console *console, const char *file, uint64_t offset,
	uint64_t bytes, const char *what)
{
	bc_print_error(console, file, "offset %" PRIu64 ", %" PRIu64 " byte%s: %s", offset, bytes,
		bc_plural(bytes), what);
}

static int severity(enum bc_exit code)
{
	static const int severities[] = {
		[BC_EXIT_DAMAGED] = 1,
		[BC_EXIT_FAILED] = 2,
		[BC_EXIT_UNREACHABLE] = 3,
		[BC_EXIT_USAGE] = 4,
	};

	return severities[code];
}

enum bc_exit bc_exit_worse(enum bc_exit a, enum bc_exit b)
{
	return severity(a) >= severity(b) ? a : b;
}
