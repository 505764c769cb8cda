#include "cli/io/filter_args.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/term/options.h"
#include "formats/trace/filter_parse.h"

#define NS_PER_S INT64_C(1000000000)

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

/* Parses "12.25", in units of `unit_ns`. Returns the end of the number, or NULL. */
static const char *parse_decimal(const char *text, int64_t unit_ns, __int128 *ns)
{
	__int128 sum = 0;
	const char *p = text;

	for (; *p >= '0' && *p <= '9'; p++) {
		sum = sum * 10 + (*p - '0');
		if (sum > INT64_MAX)
			return NULL;
	}
	if (p == text)
		return NULL;
	*ns = sum * unit_ns;
	if (*p != '.')
		return p;
	int64_t part = unit_ns;
	const char *point = p++;
	for (; *p >= '0' && *p <= '9'; p++) {
		part /= 10;
		*ns += (__int128)part * (*p - '0');
	}
	return p == point + 1 ? NULL : p;
}

/* Parses "10s", "1.5ms", "2h". The default unit is the second. */
static bool parse_duration(const char *text, __int128 *ns)
{
	static const struct {
		const char *name;
		int64_t ns;
	} units[] = {{"", NS_PER_S}, {"s", NS_PER_S}, {"ms", 1000000}, {"us", 1000}, {"ns", 1},
		{"min", 60 * NS_PER_S}, {"m", 60 * NS_PER_S}, {"h", 3600 * NS_PER_S}};
	const char *unit = text + strspn(text, "0123456789.");

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(unit, units[i].name) == 0)
			return parse_decimal(text, units[i].ns, ns) == unit;
	return false;
}

/* Parses exactly `digits` digits: no sign, no space. */
static bool parse_digits(const char **text, int digits, int *value)
{
	*value = 0;
	for (; digits > 0; digits--, (*text)++) {
		if (**text < '0' || **text > '9')
			return false;
		*value = *value * 10 + (**text - '0');
	}
	return true;
}

static bool parse_char(const char **text, const char *any)
{
	if (**text == '\0' || strchr(any, **text) == NULL)
		return false;
	(*text)++;
	return true;
}

/* Parses "Z" or "+01:00", the offset of local time from UTC. */
static bool parse_zone(const char *p, int *seconds)
{
	int hours = 0;
	int minutes = 0;
	bool is_behind = *p == '-';

	*seconds = 0;
	if ((*p == 'Z' || *p == 'z') && p[1] == '\0')
		return true;
	bool ok = parse_char(&p, "+-") && parse_digits(&p, 2, &hours) && parse_char(&p, ":") &&
		  parse_digits(&p, 2, &minutes) && *p == '\0' && hours < 24 && minutes < 60;
	*seconds = (hours * 3600 + minutes * 60) * (is_behind ? -1 : 1);
	return ok;
}

/* Parses an RFC 3339 time: "2026-11-20T15:00:00.5Z". */
static bool parse_date(const char *p, __int128 *ns)
{
	struct tm tm = {0};
	__int128 fraction = 0;
	int zone;

	bool ok = parse_digits(&p, 4, &tm.tm_year) && parse_char(&p, "-") &&
		  parse_digits(&p, 2, &tm.tm_mon) && parse_char(&p, "-") &&
		  parse_digits(&p, 2, &tm.tm_mday) && parse_char(&p, "Tt ") &&
		  parse_digits(&p, 2, &tm.tm_hour) && parse_char(&p, ":") &&
		  parse_digits(&p, 2, &tm.tm_min) && parse_char(&p, ":") &&
		  parse_digits(&p, 2, &tm.tm_sec);
	if (ok && *p == '.') {
		char digits[32] = "0";
		size_t n = strspn(p + 1, "0123456789");
		ok = n > 0 && n < sizeof(digits) - 3;
		if (ok)
			memcpy(digits + 1, p, n + 1);
		ok = ok && parse_decimal(digits, NS_PER_S, &fraction) != NULL;
		p += n + 1;
	}
	if (!ok || !parse_zone(p, &zone))
		return false;
	if (tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	/* timegm() normalises an invalid date such as the 31st of February: detect that. */
	int month = tm.tm_mon;
	int day = tm.tm_mday;
	int second = tm.tm_sec;
	tm.tm_sec = 0;
	time_t seconds = timegm(&tm) + second;
	if (tm.tm_mon != month || tm.tm_mday != day)
		return false;
	*ns = ((__int128)seconds - zone) * NS_PER_S + fraction;
	return true;
}

static bool parse_time(
	const struct bc_console *console, const char *option, int64_t *ns, bool *is_relative)
{
	__int128 value = 0;
	bool ok = false;

	*is_relative = optarg[0] == '+';
	if (optarg[0] == '+') {
		ok = parse_duration(optarg + 1, &value);
	} else if (optarg[0] == '@') {
		const char *end = parse_decimal(optarg + 1, NS_PER_S, &value);
		ok = end != NULL && *end == '\0';
	} else {
		ok = parse_date(optarg, &value);
	}
	if (ok && value <= INT64_MAX && value >= INT64_MIN) {
		*ns = (int64_t)value;
		return true;
	}
	bc_print_error(console, NULL,
		"%s %s: not a time; try 2026-11-20T15:00:00Z, @1795186800 (seconds since 1970) or "
		"+10s (from the start)",
		option, optarg);
	return false;
}

static bool is_wall_ordered(const struct bc_filter_args *s)
{
	return s->from_is_relative != s->to_is_relative || s->filter.from_ns <= s->filter.to_ns;
}

static bool read_bound(struct bc_filter_args *s, const struct bc_console *console,
	const char *option, int64_t *ns, bool *is_relative)
{
	if (*ns != INT64_MIN && *ns != INT64_MAX)
		return refuse_second(console, option);
	if (!parse_time(console, option, ns, is_relative))
		return false;
	s->filter.has_wall = true;
	bool has_both = s->filter.from_ns != INT64_MIN && s->filter.to_ns != INT64_MAX;
	if (has_both && !is_wall_ordered(s)) {
		bc_print_error(console, NULL, "%s %s: --to is before --from", option, optarg);
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
		return read_bound(s, console, option, &f->from_ns, &s->from_is_relative);
	if (strcmp(option, "--to") == 0)
		return read_bound(s, console, option, &f->to_ns, &s->to_is_relative);
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
