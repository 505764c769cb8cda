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
	s->tick_range = s->filter.ticks;
	s->filter.from_ns = INT64_MIN;
	s->filter.to_ns = INT64_MAX;
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

/* Sets the ticks of the filter: those of --ticks, from `from_tick` on and before `to_tick`. */
static void set_ticks(struct bc_filter_args *s)
{
	struct bc_span *ticks = &s->filter.ticks;

	*ticks = s->tick_range;
	if (s->from_tick > ticks->first)
		ticks->first = s->from_tick;
	if (s->has_to_tick && s->to_tick == 0)
		*ticks = (struct bc_span){1, 0}; /* none */
	else if (s->has_to_tick && s->to_tick - 1 < ticks->last)
		ticks->last = s->to_tick - 1;
}

/* Whether the bounds, if both are given and of one kind, are in order. */
static bool is_ordered(const struct bc_filter_args *s)
{
	bool are_ticks = s->has_from_tick && s->has_to_tick;
	bool are_times = s->has_from && s->has_to && !s->has_from_tick && !s->has_to_tick &&
			 s->from_is_relative == s->to_is_relative;

	return (!are_ticks || s->from_tick <= s->to_tick) &&
	       (!are_times || s->filter.from_ns <= s->filter.to_ns);
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
		*(is_from ? &s->has_from_tick : &s->has_to_tick) = true;
		*(is_from ? &s->from_tick : &s->to_tick) = time.tick;
		set_ticks(s);
	} else {
		f->has_wall = true;
		*(is_from ? &f->from_ns : &f->to_ns) = time.ns;
		*(is_from ? &s->from_is_relative : &s->to_is_relative) = time.kind ==
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

bool bc_filter_args_option(
	struct bc_filter_args *s, const struct bc_console *console, const char *option)
{
	struct bc_filter *f = &s->filter;

	if (strcmp(option, "--records") == 0)
		return read_range(s, console, option, &s->has_numbers, &f->numbers);
	if (strcmp(option, "--ticks") == 0) {
		bool ok = read_range(s, console, option, &s->has_ticks, &s->tick_range);
		set_ticks(s);
		return ok;
	}
	if (strcmp(option, "--epoch") == 0)
		return read_range(s, console, option, &s->has_epochs, &f->epochs);
	if (strcmp(option, "--from") == 0)
		return read_bound(s, console, option, true);
	if (strcmp(option, "--to") == 0)
		return read_bound(s, console, option, false);
	if (strcmp(option, "--type") == 0)
		return parse_filter(s, console, option, bc_filter_parse_types);
	if (strcmp(option, "--proc") == 0)
		return parse_filter(s, console, option, bc_filter_parse_procs);
	assert(strcmp(option, "--addr") == 0 || strcmp(option, "address") == 0);
	return f->has_addr ? refuse_second(console, option)
			   : parse_filter(s, console, option, bc_filter_parse_addr);
}

void bc_filter_args_start(struct bc_filter_args *s, int64_t wall_ns)
{
	int64_t *const ns[] = {&s->filter.from_ns, &s->filter.to_ns};
	bool *const is_relative[] = {&s->from_is_relative, &s->to_is_relative};

	for (unsigned i = 0; i < 2; i++) {
		if (*is_relative[i] && __builtin_add_overflow(*ns[i], wall_ns, ns[i]))
			*ns[i] = INT64_MAX;
		*is_relative[i] = false;
	}
}

bool bc_filter_args_check(const struct bc_filter_args *s, const struct bc_trace *trace)
{
	const char *name = bc_format_name(trace->format);
	uint32_t holds = bc_trace_has(trace);
	const char *missing = NULL;

	if (s->filter.has_wall && trace->format != BC_FORMAT_SEGMENT)
		missing = "time of day: --from and --to need segments";
	else if ((s->has_ticks || s->has_from_tick || s->has_to_tick) && (holds & BC_HAS_TIME) == 0)
		missing = "time: can't select by tick";
	else if (s->has_epochs && trace->format != BC_FORMAT_SEGMENT &&
		 trace->format != BC_FORMAT_BCP1)
		missing = "epochs: can't use --epoch";
	else if (s->filter.has_procs && (holds & BC_HAS_PROC) == 0)
		missing = "processors: can't use --proc";
	else if ((s->filter.has_addr || s->filter.has_types) &&
		 (holds & (BC_CAN_REFERENCE | BC_CAN_INSTRUCTION | BC_CAN_UOP)) == 0)
		missing = "references: can't select by address or type";
	if (missing != NULL)
		bc_print_error(trace->console, NULL, "%s has no %s", name, missing);
	return missing == NULL;
}
