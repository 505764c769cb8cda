#include "cli/io/filter_args.h"

#include <assert.h>
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

/* Appends an option to the selection, which goes into the metadata, if there is room. */
static void record_value(struct bc_filter_args *s, const char *option, const char *value)
{
	size_t used = strlen(s->selection);
	size_t room = sizeof(s->selection) - used;
	const char *name = option[0] == '-' ? option + 2 : option;

	int n = snprintf(s->selection + used, room, "%s%s=%s", used != 0 ? " " : "", name, value);
	if (n < 0 || (size_t)n >= room)
		s->selection[used] = '\0';
}

static void record_option(struct bc_filter_args *s, const char *option)
{
	record_value(s, option, optarg);
}

static bool refuse_second(const struct bc_console *console, const char *option)
{
	bc_print_error(
		console, NULL, "%s given twice; see buscap %s --help", option, console->command);
	return false;
}

static bool read_range(struct bc_filter_args *s, const struct bc_console *console,
	const char *option, bool *has, struct bc_span *span)
{
	struct bc_range range;

	if (*has)
		return refuse_second(console, option);
	if (!bc_option_range(console, option, &range))
		return false;
	*has = true;
	*span = (struct bc_span){range.first, range.last};
	record_option(s, option);
	return true;
}

/* Parses a value with one of the bc_filter_parse_...() functions. */
typedef bool (*parse_fn)(struct bc_filter *filter, const char *value, char *err, size_t errlen);

static bool parse_value(struct bc_filter_args *s, const struct bc_console *console,
	const char *option, parse_fn parse)
{
	char err[256];

	if (parse(&s->filter, optarg, err, sizeof(err)))
		return true;
	bc_print_error(console, NULL, "%s %s: %s", option, optarg, err);
	return false;
}

static bool parse_filter(struct bc_filter_args *s, const struct bc_console *console,
	const char *option, parse_fn parse)
{
	if (!parse_value(s, console, option, parse))
		return false;
	record_option(s, option);
	return true;
}

/* Reads --from or --to. The metadata gets times that mean the same later. */
static bool read_bound(struct bc_filter_args *s, const struct bc_console *console,
	const char *option, bool is_from)
{
	bool *has = is_from ? &s->has_from : &s->has_to;
	bool is_wall = optarg[0] != '@' && optarg[0] != '+';
	char wall[BC_RFC3339_BYTES];

	if (*has)
		return refuse_second(console, option);
	*has = true;
	s->has_tick = s->has_tick || optarg[0] == '@';
	if (!parse_value(s, console, option, is_from ? bc_filter_parse_from : bc_filter_parse_to))
		return false;
	bc_rfc3339_write(wall, is_from ? s->filter.from_ns : s->filter.to_ns);
	record_value(s, option, is_wall ? wall : optarg);
	return true;
}

static bool refuse_region(const struct bc_console *console)
{
	bc_print_error(console, NULL, "--region excludes --addr and --port; see buscap %s --help",
		console->command);
	return false;
}

static bool read_addr(
	struct bc_filter_args *s, const struct bc_console *console, const char *option)
{
	if (s->region != NULL)
		return refuse_region(console);
	return s->filter.has_addr ? refuse_second(console, option)
				  : parse_filter(s, console, option, bc_filter_parse_addr);
}

static bool read_region(struct bc_filter_args *s, const struct bc_console *console)
{
	if (s->region != NULL)
		return refuse_second(console, "--region");
	if (s->filter.has_addr)
		return refuse_region(console);
	s->region = optarg;
	record_option(s, "--region");
	return true;
}

/* --port is short for --addr and --type. */
static bool refuse_port(const struct bc_console *console)
{
	bc_print_error(console, NULL, "--port excludes --addr and --type; see buscap %s --help",
		console->command);
	return false;
}

static bool read_port(struct bc_filter_args *s, const struct bc_console *console)
{
	if (s->has_port)
		return refuse_second(console, "--port");
	if (s->region != NULL)
		return refuse_region(console);
	if (s->filter.has_addr || s->filter.has_types)
		return refuse_port(console);
	s->has_port = true;
	return parse_filter(s, console, "--port", bc_filter_parse_port);
}

bool bc_filter_args_option(struct bc_filter_args *s, const struct bc_console *console, int letter)
{
	struct bc_filter *f = &s->filter;

	switch (letter) {
	case 'n':
		return read_range(s, console, "--records", &s->has_numbers, &f->numbers);
	case 'e':
		return read_range(s, console, "--epoch", &s->has_epochs, &f->epochs);
	case 'a':
		return s->has_port ? refuse_port(console) : read_addr(s, console, "--addr");
	case BC_FILTER_OPT_REGION:
		return read_region(s, console);
	case BC_FILTER_OPT_PORT:
		return read_port(s, console);
	case BC_FILTER_OPT_FROM:
		return read_bound(s, console, "--from", true);
	case BC_FILTER_OPT_TO:
		return read_bound(s, console, "--to", false);
	case BC_FILTER_OPT_TYPE:
		return s->has_port ? refuse_port(console)
				   : parse_filter(s, console, "--type", bc_filter_parse_types);
	case BC_FILTER_OPT_PROC:
		return parse_filter(s, console, "--proc", bc_filter_parse_procs);
	default:
		assert(false);
		return false;
	}
}

/* Looks up a region. `names` may be NULL: those of the PC. Returns false with the reason. */
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

	if (!bc_filter_parse_addr(&filter, text, err, sizeof(err)) &&
		find_region(&filter, names, text, err, sizeof(err))) {
		bc_print_error(console, NULL, "address %s: not an address; try --region %s", text,
			strchr(text, ' ') == NULL ? text : "NAME");
		return false;
	}
	optarg = text;
	return read_addr(s, console, "address");
}

static bool has_type(const struct bc_filter *f, unsigned type)
{
	return (f->types[type / 64] >> type % 64 & 1) != 0;
}

/* A plain read or write is one of memory. */
static void check_ports(const struct bc_filter_args *s, const struct bc_console *console)
{
	const struct bc_filter *f = &s->filter;

	if (f->has_types && f->memory_count == 0 && !has_type(f, BC_REQ_IOREAD) &&
		!has_type(f, BC_REQ_IOWRITE))
		bc_print_error(console, NULL,
			"--region %s: has only ports; select them with --type ioread,iowrite",
			s->region);
}

bool bc_filter_args_finish(
	struct bc_filter_args *s, const struct bc_console *console, const struct bc_name_map *names)
{
	char err[256];

	if (s->region == NULL)
		return true;
	bool ok = find_region(&s->filter, names, s->region, err, sizeof(err));
	if (!ok)
		bc_print_error(console, NULL, "--region %s: %s", s->region, err);
	else
		check_ports(s, console);
	return ok;
}

bool bc_filter_args_check(const struct bc_filter_args *s, const struct bc_console *console,
	enum bc_format format, uint32_t holds)
{
	const char *name = bc_format_name(format);
	const char *missing = NULL;

	if (s->filter.has_wall && format != BC_FORMAT_SEGMENT)
		missing = "time of day: --from and --to need segments";
	else if (s->has_tick && (holds & BC_HAS_TIME) == 0)
		missing = "time: can't select by tick";
	else if (s->has_epochs && format != BC_FORMAT_SEGMENT && format != BC_FORMAT_BCP1)
		missing = "epochs: can't use --epoch";
	else if (s->filter.has_procs && (holds & BC_HAS_PROC) == 0)
		missing = "processors: can't use --proc";
	else if ((s->filter.has_addr || s->filter.has_types) &&
		 (holds & (BC_CAN_REFERENCE | BC_CAN_INSTRUCTION | BC_CAN_UOP)) == 0)
		missing = "references: can't select by address or type";
	if (missing != NULL)
		bc_print_error(console, NULL, "%s has no %s", name, missing);
	return missing == NULL;
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
