/* getopt_long() from a table, and one reader for each kind of value. Every reader takes the value
 * from `optarg` and reports it together with the option's name, so that commands only say which
 * option it is and what its limits are. */
#include "cli/term/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/term/output.h"
#include "formats/base/quantity.h"
#include "formats/base/text.h"
#include "formats/codec/layout.h"

void bc_options_start(struct bc_options *o, const struct bc_console *console,
	const struct bc_usage *usage, int argc, char **argv)
{
	*o = (struct bc_options){.console = console,
		.usage = usage,
		.argc = argc,
		.argv = argv,
		.exit = BC_EXIT_USAGE};
	bc_usage_getopt(&o->getopt, usage);
	optind = 0; /* glibc: reset getopt */
	opterr = 0;
}

int bc_options_next(struct bc_options *o)
{
	int before = optind != 0 ? optind : 1;
	int letter = getopt_long(o->argc, o->argv, o->getopt.brief, o->getopt.all, NULL);
	if (letter == 'h') {
		o->exit = bc_print_help(o->console, o->usage);
		return '?';
	}
	if (letter != '?' && letter != ':')
		return letter;
	char err[BC_USAGE_ERROR_MAX];
	bc_usage_format_error(err, "buscap", o->usage, letter, o->argv, before);
	bc_print_error(o->console, NULL, "%s", err);
	return '?';
}

static bool read_quantity(const struct bc_console *console, const char *option,
	enum bc_quantity quantity, uint64_t first, uint64_t last, uint64_t *value)
{
	char err[BC_QUANTITY_ERROR_MAX];
	char low[BC_QUANTITY_TEXT_MAX];
	char high[BC_QUANTITY_TEXT_MAX];

	if (!bc_quantity_read(value, quantity, optarg, err, sizeof(err))) {
		bc_print_error(console, NULL, "%s %s: %s", option, optarg, err);
		return false;
	}
	if (*value >= first && *value <= last)
		return true;
	bc_quantity_write(low, quantity, first);
	bc_quantity_write(high, quantity, last);
	if (last == UINT64_MAX)
		bc_print_error(console, NULL, "%s %s: must be at least %s", option, optarg, low);
	else
		bc_print_error(console, NULL, "%s %s: must be %s to %s", option, optarg, low, high);
	return false;
}

bool bc_option_count(const struct bc_console *console, const char *option, uint64_t first,
	uint64_t last, uint64_t *value)
{
	return read_quantity(console, option, BC_QUANTITY_COUNT, first, last, value);
}

bool bc_option_size(
	const struct bc_console *console, const char *option, uint64_t first, uint64_t *bytes)
{
	return read_quantity(console, option, BC_QUANTITY_SIZE, first, UINT64_MAX, bytes);
}

bool bc_option_time(const struct bc_console *console, const char *option, uint64_t first_ns,
	uint64_t last_ns, uint64_t *ns)
{
	return read_quantity(console, option, BC_QUANTITY_TIME, first_ns, last_ns, ns);
}

/* Reads numbers with units: 1M-2M, 1e6-, -64K, 5K. */
static bool read_counts(uint64_t *first, uint64_t *last, const char *text)
{
	char err[BC_QUANTITY_ERROR_MAX];
	char number[BC_QUANTITY_TEXT_MAX];
	size_t n = strcspn(text, "-");
	bool has_last = text[n] == '-' && text[n + 1] != '\0';

	if (n >= sizeof(number) || (n == 0 && !has_last))
		return false;
	memcpy(number, text, n);
	number[n] = '\0';
	*first = 0;
	if (n != 0 && !bc_quantity_read(first, BC_QUANTITY_COUNT, number, err, sizeof(err)))
		return false;
	*last = text[n] == '\0' ? *first : UINT64_MAX;
	return !has_last ||
	       bc_quantity_read(last, BC_QUANTITY_COUNT, text + n + 1, err, sizeof(err));
}

bool bc_option_range(
	const struct bc_console *console, const char *option, uint64_t *first, uint64_t *last)
{
	bool ok = read_counts(first, last, optarg);

	if (!ok)
		bc_print_error(console, NULL, "%s %s: not a range; try 100-199, 100- or -99",
			option, optarg);
	else if (*first > *last)
		bc_print_error(
			console, NULL, "%s %s: the range ends before it starts", option, optarg);
	return ok && *first <= *last;
}

bool bc_option_choice(const struct bc_console *console, const struct bc_usage_option *options,
	int letter, unsigned *choice)
{
	char list[200] = "";
	size_t used = 0;

	while (options->letter != letter)
		options++;
	const char *word = options->kind + strlen("choice:");
	for (*choice = 0;; ++*choice) {
		size_t n = strcspn(word, "|");
		if (strlen(optarg) == n && memcmp(optarg, word, n) == 0)
			return true;
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%.*s",
			used == 0         ? ""
			: word[n] == '\0' ? " or "
					  : ", ",
			(int)n, word);
		if (word[n] == '\0')
			break;
		word += n + 1;
	}
	bc_print_error(console, NULL, "--%s %s: must be %s", options->name, optarg, list);
	return false;
}

bool bc_option_ppm(const struct bc_console *console, const char *option, uint32_t *ppm)
{
	char *end;
	double value = strtod(optarg, &end);
	if (end == optarg || *end != '\0' || !(value >= 0 && value <= 1)) {
		bc_print_error(console, NULL, "%s %s: not a probability from 0 to 1; try 0.001",
			option, optarg);
		return false;
	}
	if (value > 0 && value < 0.5e-6) {
		bc_print_error(
			console, NULL, "%s %s: must be 0 or at least 0.000001", option, optarg);
		return false;
	}
	*ppm = (uint32_t)(value * 1e6 + 0.5);
	return true;
}

/* Parses the name of "name:options". Returns the options, or NULL if none are given. */
static const char *read_format_name(enum bc_format *format, const struct bc_named_layout **layout)
{
	size_t n = strcspn(optarg, ":");
	char name[32];

	*format = BC_FORMAT_UNKNOWN;
	*layout = NULL;
	if (n < sizeof(name)) {
		memcpy(name, optarg, n);
		name[n] = '\0';
		*format = bc_format_by_name(name);
		*layout = bc_layout_by_name(name);
	}
	return optarg[n] == ':' ? optarg + n + 1 : NULL;
}

static bool read_format(const struct bc_console *console, const char *option,
	enum bc_format *format, struct bc_format_options *options, bool is_output)
{
	const struct bc_named_layout *layout;
	const char *more = read_format_name(format, &layout);
	bool is_named = *format == BC_FORMAT_UNKNOWN && layout != NULL;
	char err[300];

	if (is_named) {
		*format = BC_FORMAT_LINES;
		options->layout = layout->layout;
	}
	const struct bc_format_info *info = bc_format_info(*format);
	if (*format == BC_FORMAT_UNKNOWN) {
		if (*optarg == '{')
			bc_message(err, sizeof(err), "a layout begins with \"lines:\"");
		else
			bc_format_unknown(err, sizeof(err), optarg);
		bc_print_error(console, NULL, "%s %s: %s", option, optarg, err);
		return false;
	}
	if (is_output ? !info->can_write : !info->can_read) {
		bc_print_error(console, NULL,
			"%s %s: this format can only be %s; see buscap formats", option, optarg,
			is_output ? "read" : "written");
		return false;
	}
	if (is_named ? more == NULL ||
				bc_fail(err, sizeof(err), "a layout with a name has no options")
		     : bc_format_read_options(*format, is_output, options, more, err, sizeof(err)))
		return true;
	/* A layout may be long, and its error says where. */
	size_t shown = strlen(optarg) < 80 ? 80 : strcspn(optarg, ":");
	bc_print_error(console, NULL, "%s %.*s: %s", option, (int)shown, optarg, err);
	return false;
}

bool bc_option_read_format(const struct bc_console *console, const char *option,
	enum bc_format *format, struct bc_format_options *options)
{
	return read_format(console, option, format, options, false);
}

bool bc_option_write_format(const struct bc_console *console, const char *option,
	enum bc_format *format, struct bc_format_options *options)
{
	return read_format(console, option, format, options, true);
}

enum bc_exit bc_check_inputs(const struct bc_console *console, const char *const *paths, int count)
{
	int found = 0;

	for (int i = 0; i < count; i++)
		found += strcmp(paths[i], "-") == 0;
	if (found < 2)
		return BC_EXIT_OK;
	return bc_print_usage_error(console, "standard input (\"-\") can be read only once");
}

enum bc_exit bc_print_text(const struct bc_console *console,
	void (*print)(FILE *out, const void *context), const void *context)
{
	struct bc_output output;
	char *text = NULL;
	size_t bytes;
	enum bc_exit code = BC_EXIT_FAILED;
	FILE *memory = open_memstream(&text, &bytes);

	if (memory == NULL)
		return bc_print_no_memory(console);
	print(memory, context);
	bool ok = fclose(memory) == 0;
	if (ok && bc_output_open(&output, console)) {
		bc_output_text(&output, text, bytes);
		code = bc_output_close(&output, console);
	} else if (!ok) {
		bc_print_no_memory(console);
	}
	free(text);
	return code;
}

static void print_usage(FILE *out, const void *usage)
{
	bc_usage_help(out, "buscap", usage);
}

enum bc_exit bc_print_help(const struct bc_console *console, const struct bc_usage *usage)
{
	return bc_print_text(console, print_usage, usage);
}

enum bc_exit bc_print_usage_error(const struct bc_console *console, const char *err)
{
	bc_print_error(console, NULL, "%s; see buscap %s --help", err, console->command);
	return BC_EXIT_USAGE;
}
