#include "cli/io/filter_args.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "cli/io/time_arg.h"
#include "cli/term/options.h"
#include "formats/trace/filter_parse.h"

void bc_filter_args_init(struct bc_filter_args *s)
{
	memset(s, 0, sizeof(*s));
	bc_filter_init(&s->filter);
	s->filter.from_ns = INT64_MIN;
	s->filter.to_ns = INT64_MAX;
}

/* Appends the option to the selection, which goes into the metadata. */
static void record_option(struct bc_filter_args *s, const char *option)
{
	size_t used = strlen(s->selection);

	snprintf(s->selection + used, sizeof(s->selection) - used, "%s%s=%s", used != 0 ? " " : "",
		option + 2, optarg);
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

/* Narrows the ticks to those from @tick on, or before it. */
static void set_tick_bound(struct bc_filter_args *s, uint64_t tick, bool is_from)
{
	struct bc_span *ticks = &s->filter.ticks;

	s->has_ticks = true;
	if (is_from && tick > ticks->first)
		ticks->first = tick;
	if (!is_from && tick == 0)
		*ticks = (struct bc_span){1, 0};
	else if (!is_from && tick - 1 < ticks->last)
		ticks->last = tick - 1;
}

/* Whether the bounds, if both are given, are in order. */
static bool is_ordered(const struct bc_filter_args *s)
{
	const struct bc_filter *f = &s->filter;

	return f->ticks.first <= f->ticks.last + (f->ticks.last != UINT64_MAX) &&
	       (!s->has_from || !s->has_to || s->from_is_relative != s->to_is_relative ||
		       f->from_ns <= f->to_ns);
}

static bool read_bound(struct bc_filter_args *s, const struct bc_console *console,
	const char *option, bool is_from)
{
	struct bc_filter *f = &s->filter;
	bool *has = is_from ? &s->has_from : &s->has_to;
	struct bc_time_arg time;

	if (*has)
		return refuse_second(console, option);
	if (!bc_time_arg_read(console, option, &time))
		return false;
	*has = true;
	if (time.kind == BC_TIME_ARG_TICK) {
		set_tick_bound(s, time.tick, is_from);
	} else {
		f->has_wall = true;
		*(is_from ? &f->from_ns : &f->to_ns) = time.ns;
		*(is_from ? &s->from_is_relative : &s->to_is_relative) = time.kind ==
									 BC_TIME_ARG_FROM_START;
	}
	if (!is_ordered(s)) {
		bc_print_error(console, NULL, "%s %s: --to is not after --from", option, optarg);
		return false;
	}
	record_option(s, option);
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
	if (strcmp(option, "--ticks") == 0)
		return read_range(s, console, option, &s->has_ticks, &f->ticks);
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
	assert(strcmp(option, "--addr") == 0);
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
	else if (s->has_ticks && (holds & BC_HAS_TIME) == 0)
		missing = "time: can't use --ticks";
	else if (s->has_epochs && trace->format != BC_FORMAT_SEGMENT &&
		 trace->format != BC_FORMAT_BCP1)
		missing = "epochs: can't use --epoch";
	else if (s->filter.has_procs && (holds & BC_HAS_PROC) == 0)
		missing = "processors: can't use --proc";
	else if ((s->filter.has_addr || s->filter.has_types) &&
		 (holds & (BC_CAN_REFERENCE | BC_CAN_INSTRUCTION | BC_CAN_UOP)) == 0)
		missing = "references: can't use --addr or --type";
	if (missing != NULL)
		bc_print_error(trace->console, NULL, "%s has no %s", name, missing);
	return missing == NULL;
}
