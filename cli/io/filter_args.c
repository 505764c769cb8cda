#include "cli/io/filter_args.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "cli/io/time_arg.h"
#include "cli/term/options.h"
#include "formats/base/rfc3339.h"
#include "formats/trace/filter_parse.h"

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

/* Sets the first tick, or the last one, from the one after it. */
static void set_tick(struct bc_filter_args *s, bool is_from, uint64_t tick)
{
	struct bc_span *ticks = &s->filter.ticks;

	*(is_from ? &s->has_from_tick : &s->has_to_tick) = true;
	if (is_from)
		ticks->first = tick > ticks->first ? tick : ticks->first;
	else if (tick == 0)
		*ticks = (struct bc_span){1, 0}; /* none */
	else
		ticks->last = tick - 1;
}

/* Whether the bounds, if both are given and of one kind, are in order. */
static bool is_ordered(const struct bc_filter_args *s)
{
	const struct bc_filter *f = &s->filter;
	bool are_ticks = s->has_from_tick && s->has_to_tick;
	bool are_times = s->has_from && s->has_to && !s->has_from_tick && !s->has_to_tick &&
			 f->from_is_relative == f->to_is_relative;

	return (!are_ticks || f->ticks.first <= f->ticks.last ||
		       f->ticks.first - 1 == f->ticks.last) &&
	       (!are_times || f->from_ns <= f->to_ns);
}

/* Reads --from or --to. The metadata gets times that mean the same later. */
static bool read_bound(struct bc_filter_args *s, const struct bc_console *console,
	const char *option, bool is_from)
{
	struct bc_filter *f = &s->filter;
	bool *has = is_from ? &s->has_from : &s->has_to;
	struct bc_time_arg time;
	char wall[BC_RFC3339_BYTES];

	if (*has)
		return refuse_second(console, option);
	if (!bc_time_arg_read(console, option, &time))
		return false;
	*has = true;
	if (time.kind == BC_TIME_ARG_TICK) {
		set_tick(s, is_from, time.tick);
	} else {
		f->has_wall = true;
		*(is_from ? &f->from_ns : &f->to_ns) = time.ns;
		*(is_from ? &f->from_is_relative : &f->to_is_relative) = time.kind ==
									 BC_TIME_ARG_FROM_START;
	}
	if (!is_ordered(s)) {
		bc_print_error(console, NULL, "%s %s: --to is before --from", option, optarg);
		return false;
	}
	bc_rfc3339_write(wall, time.ns);
	record_value(s, option, time.kind == BC_TIME_ARG_WALL ? wall : optarg);
	return true;
}

/* Parses a value with one of the bc_filter_parse_...() functions. */
static bool parse_filter(struct bc_filter_args *s, const struct bc_console *console,
	const char *option,
	bool (*read)(struct bc_filter *filter, const char *value, char *err, size_t errlen))
{
	char err[160];

	if (!read(&s->filter, optarg, err, sizeof(err))) {
		bc_print_error(console, NULL, "%s %s: %s", option, optarg, err);
		return false;
	}
	record_option(s, option);
	return true;
}

static bool read_addr(
	struct bc_filter_args *s, const struct bc_console *console, const char *option)
{
	return s->filter.has_addr ? refuse_second(console, option)
				  : parse_filter(s, console, option, bc_filter_parse_addr);
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

bool bc_filter_args_operand(struct bc_filter_args *s, const struct bc_console *console, char *text)
{
	optarg = text;
	return read_addr(s, console, "address");
}

bool bc_filter_args_check(const struct bc_filter_args *s, const struct bc_console *console,
	enum bc_format format, uint32_t holds)
{
	const char *name = bc_format_name(format);
	const char *missing = NULL;

	if (s->filter.has_wall && format != BC_FORMAT_SEGMENT)
		missing = "time of day: --from and --to need segments";
	else if ((s->has_from_tick || s->has_to_tick) && (holds & BC_HAS_TIME) == 0)
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
