/* The options that select part of a trace are rows of one table; what their values mean is in
 * formats/trace/filter_parse.h. A region is looked up last: its --map or --symbols may follow. */
#include "cli/io/filter_args.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/io/file.h"
#include "cli/term/options.h"
#include "formats/base/text.h"
#include "formats/trace/filter_parse.h"
#include "formats/trace/name_map.h"

void bc_filter_args_init(struct bc_filter_args *s)
{
	memset(s, 0, sizeof(*s));
	bc_filter_init(&s->filter);
}

/* The rows of the table below. */
enum {
	RECORDS,
	EPOCH,
	FROM,
	TO,
	ADDR,
	PORT,
	REGION,
	TYPE,
	PROC,
	OPTIONS,
};

static const struct filter_option {
	int letter;
	const char *name;
	/* bc_filter_parse_...(); NULL: a range of numbers, or a name to look up later. */
	bool (*parse)(struct bc_filter *filter, const char *value, char *err, size_t errlen);
	unsigned excludes; /* a bit for each row: the others it can't be combined with, and itself
			      if it can't be repeated */
} options[OPTIONS] = {
	[RECORDS] = {BC_FILTER_OPT_RECORDS, "--records", NULL, 1u << RECORDS},
	[EPOCH] = {'e', "--epoch", NULL, 1u << EPOCH},
	[FROM] = {BC_FILTER_OPT_FROM, "--from", bc_filter_parse_from, 1u << FROM},
	[TO] = {BC_FILTER_OPT_TO, "--to", bc_filter_parse_to, 1u << TO},
	[ADDR] = {'a', "--addr", bc_filter_parse_addr, 1u << ADDR | 1u << PORT | 1u << REGION},
	[PORT] = {BC_FILTER_OPT_PORT, "--port", bc_filter_parse_port,
		1u << PORT | 1u << ADDR | 1u << REGION},
	[REGION] = {BC_FILTER_OPT_REGION, "--region", NULL, 1u << REGION | 1u << ADDR | 1u << PORT},
	[TYPE] = {BC_FILTER_OPT_TYPE, "--type", bc_filter_parse_types, 0},
	[PROC] = {BC_FILTER_OPT_PROC, "--proc", bc_filter_parse_procs, 0},
};

/* Reports an option that was given before, or another that excludes it. */
static bool check_excludes(
	const struct bc_filter_args *s, const struct bc_console *console, int row)
{
	unsigned conflict = s->given & options[row].excludes;

	if (conflict == 0)
		return true;
	if ((conflict >> row & 1) != 0)
		bc_print_error(console, NULL, "%s given twice; see buscap %s --help",
			options[row].name, console->command);
	else
		bc_print_error(console, NULL, "%s excludes %s; see buscap %s --help",
			options[row].name, options[__builtin_ctz(conflict)].name, console->command);
	return false;
}

/* Appends an option to the selection, which goes into the metadata, if there is room. Times of day
 * are written so that they mean the same later. */
static void record_filter_option(struct bc_filter_args *s, int row)
{
	size_t used = strlen(s->selection);
	size_t room = sizeof(s->selection) - used;
	const char *value = optarg;
	char wall[BC_RFC3339_BYTES];

	if ((row == FROM || row == TO) && optarg[0] != '@' && optarg[0] != '+') {
		bc_rfc3339_write(wall, row == FROM ? s->filter.from_ns : s->filter.to_ns);
		value = wall;
	}
	int n = snprintf(s->selection + used, room, "%s%s=%s", used != 0 ? " " : "",
		options[row].name + 2, value);
	if (n < 0 || (size_t)n >= room)
		s->selection[used] = '\0';
}

bool bc_filter_args_option(struct bc_filter_args *s, const struct bc_console *console, int letter)
{
	struct bc_span *span;
	char err[256];
	bool ok = true;
	int row = 0;

	while (row < OPTIONS && options[row].letter != letter)
		row++;
	const struct filter_option *option = &options[row];
	if (row == OPTIONS || !check_excludes(s, console, row))
		return false;
	if (row == RECORDS || row == EPOCH) {
		span = row == RECORDS ? &s->filter.numbers : &s->filter.epochs;
		ok = bc_option_range(console, option->name, &span->first, &span->last);
	} else if (row == REGION) {
		s->region = optarg;
	} else if (!option->parse(&s->filter, optarg, err, sizeof(err))) {
		bc_print_error(console, NULL, "%s %s: %s", option->name, optarg, err);
		ok = false;
	}
	s->given |= 1u << row;
	s->has_time = s->has_time || row == FROM || row == TO;
	s->has_tick = s->has_tick || ((row == FROM || row == TO) && optarg[0] == '@');
	if (ok)
		record_filter_option(s, row);
	return ok;
}

/* Looks up a region. `names` NULL: the names of a PC. Returns false with the reason. */
static bool find_region(struct bc_filter *filter, const struct bc_name_map *names, const char *name,
	char *err, size_t errlen)
{
	struct bc_name_map *pc = NULL;

	bc_message(err, errlen, "out of memory");
	if (names == NULL)
		names = pc = bc_name_map_open();
	bool ok = names != NULL && bc_filter_parse_region(filter, names, name, err, errlen);
	bc_name_map_close(pc);
	return ok;
}

bool bc_filter_args_operand(struct bc_filter_args *s, const struct bc_console *console,
	const struct bc_name_map *names, char *text)
{
	struct bc_filter filter = s->filter;
	char err[256];
	char other[256];

	optarg = text;
	if (bc_filter_parse_addr(&filter, text, err, sizeof(err)))
		return bc_filter_args_option(s, console, 'a');
	if (find_region(&filter, names, text, other, sizeof(other)))
		bc_print_error(console, NULL, "address %s: not an address; try --region %s", text,
			strchr(text, ' ') == NULL ? text : "NAME");
	else if (strlen(text) > 1 && access(text, F_OK) == 0)
		bc_print_error(console, NULL,
			"address %s: this is a file; the address comes first: buscap %s 3f8 %s",
			text, console->command, text);
	else
		bc_print_error(console, NULL, "address %s: %s", text, err);
	return false;
}

/* Prints all names as the lines of a map. `names` NULL: those of a PC. */
static enum bc_exit print_regions(const struct bc_console *console, const struct bc_name_map *names)
{
	struct bc_name_map *pc = names == NULL ? bc_name_map_open() : NULL;
	enum bc_exit code = BC_EXIT_FAILED;
	struct bc_output output;
	struct bc_name_range r;
	const char *name;

	if (names == NULL && pc == NULL)
		return bc_print_no_memory(console);
	if (bc_output_open(&output, console)) {
		for (size_t n = 0; (name = bc_name_map_nth(pc != NULL ? pc : names, n, &r)); n++) {
			bc_output_format(&output, "%s%" PRIx64, r.is_port ? "port " : "", r.first);
			if (r.last != r.first)
				bc_output_format(&output, "-%" PRIx64, r.last);
			bc_output_text(&output, "\t", 1);
			bc_output_safe(&output, name);
			bc_output_text(&output, "\n", 1);
		}
		code = bc_output_close(&output, console);
	}
	bc_name_map_close(pc);
	return code;
}

bool bc_filter_args_finish(struct bc_filter_args *s, const struct bc_console *console,
	const struct bc_name_map *names, enum bc_exit *exit)
{
	char err[256];

	if (s->region != NULL && strcmp(s->region, "help") == 0) {
		*exit = print_regions(console, names);
		return false;
	}
	bool ok = s->region == NULL || find_region(&s->filter, names, s->region, err, sizeof(err));
	*exit = ok ? BC_EXIT_OK : BC_EXIT_USAGE;
	if (!ok)
		bc_print_error(console, NULL, "--region %s: %s; --region help lists all names",
			s->region, err);
	else if (bc_filter_lacks_port_types(&s->filter))
		bc_print_error(console, NULL, "%s%s with this --type " BC_NO_PORT_TYPES,
			s->region != NULL ? "--region " : "--port",
			s->region != NULL ? s->region : "");
	return ok;
}

bool bc_filter_args_check(const struct bc_filter_args *s, const struct bc_console *console,
	const struct bc_trace *trace)
{
	enum bc_format format = trace->format;
	bc_traits traits = bc_trace_traits(trace);
	const char *missing = NULL;

	if (s->filter.has_wall && format != BC_FORMAT_SEGMENT)
		missing = "time of day: --from and --to need segments";
	else if (s->filter.has_wall && !trace->has_wall)
		missing = "time of day: the trace that it was made from had none; give @TICK";
	else if (s->has_tick && (traits & BC_TRAIT_TIME) == 0)
		missing = "time: can't select by tick";
	else if ((s->given >> EPOCH & 1) != 0 && format != BC_FORMAT_SEGMENT &&
		 format != BC_FORMAT_BCP1)
		missing = "epochs: can't use --epoch";
	else if (s->filter.has_procs && (traits & BC_TRAIT_PROC) == 0)
		missing = "processors: can't use --proc";
	else if ((s->filter.has_addr || s->filter.has_types) &&
		 (traits & (BC_TRAIT_REFERENCE | BC_TRAIT_INSTRUCTION | BC_TRAIT_UOP)) == 0)
		missing = "references: can't select by address or type";
	if (missing != NULL)
		bc_print_error(console, NULL, "%s has no %s", bc_trace_format_name(trace), missing);
	return missing == NULL;
}

bool bc_filter_args_chunk(struct bc_filter_args *s, const struct bc_console *console,
	const char *file, const struct bc_chunk_info *info, uint64_t clock_hz,
	struct bc_filter_bounds *bounds)
{
	if (!s->has_start) {
		s->has_start = true;
		s->start_ns = info->wall_ns;
		bc_filter_start(&s->filter, info->wall_ns);
	}
	if (s->filter.has_wall && clock_hz == 0 && !s->has_warned) {
		s->has_warned = true;
		bc_print_error(console, file, BC_NO_CLOCK_TEXT);
	}
	return bc_filter_chunk(&s->filter, info, clock_hz, bounds);
}

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
