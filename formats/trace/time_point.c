#include "formats/trace/time_point.h"

#include <string.h>
#include <time.h>

#include "formats/base/clock.h"
#include "formats/base/number.h"

#define NS_PER_S INT64_C(1000000000)

static const char not_a_time[] = "not a time; try " BC_TIME_POINT_HELP;
static const char not_a_duration[] = "not a duration; try 10s, 1.5ms, 2h or 3d";
static const char not_a_tick[] = "not a tick; try @4178506193";
static const char no_such_date[] = "no such date";
static const char no_such_clock[] = "no such time of day";
static const char no_such_zone[] = "not a time zone; try Z or +01:00";
static const char out_of_range[] = "out of range";

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
		{"min", 60 * NS_PER_S}, {"m", 60 * NS_PER_S}, {"h", 3600 * NS_PER_S},
		{"d", 86400 * NS_PER_S}};
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

/* Parses "15:04", "15:04:05" or "15:04:05.25". Returns what is wrong with it, or NULL. */
static const char *parse_clock(const char **p, struct tm *tm, __int128 *fraction)
{
	if (!parse_digits(p, 2, &tm->tm_hour) || !parse_char(p, ":") ||
		!parse_digits(p, 2, &tm->tm_min))
		return not_a_time;
	bool has_seconds = **p == ':';
	*p += has_seconds;
	if (has_seconds && !parse_digits(p, 2, &tm->tm_sec))
		return not_a_time;
	if (tm->tm_hour > 23 || tm->tm_min > 59 || tm->tm_sec > 60)
		return no_such_clock;
	if (!has_seconds || **p != '.')
		return NULL;
	char digits[32] = "0";
	size_t n = strspn(*p + 1, "0123456789");
	if (n == 0 || n >= sizeof(digits) - 3)
		return not_a_time;
	memcpy(digits + 1, *p, n + 1);
	*p += n + 1;
	return parse_decimal(digits, NS_PER_S, fraction) != NULL ? NULL : not_a_time;
}

static struct tm today(void)
{
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_isdst = -1;
	return tm;
}

/* Converts a local time, or one that is `zone` seconds ahead of UTC. Returns false if the date does
 * not exist; mktime() would turn 31 February into a day in March. */
static bool convert_date(const struct tm *given, bool is_local, int zone, time_t *seconds)
{
	struct tm tm = *given;

	tm.tm_sec = 0; /* a leap second is in the next minute */
	tm.tm_isdst = -1;
	*seconds = is_local ? mktime(&tm) : timegm(&tm) - zone;
	*seconds += given->tm_sec;
	return tm.tm_mon == given->tm_mon && tm.tm_mday == given->tm_mday;
}

/* Parses a date, a time of day, or both, with an optional time zone. Returns what is wrong with it,
 * or NULL. */
static const char *parse_date(const char *p, __int128 *ns)
{
	struct tm tm = {0};
	__int128 fraction = 0;
	time_t seconds;
	int zone = 0;
	const char *wrong = NULL;

	if (strlen(p) < 3)
		return not_a_time;
	if (p[2] == ':') {
		tm = today();
		wrong = parse_clock(&p, &tm, &fraction);
		if (wrong == NULL && *p != '\0')
			wrong = not_a_time;
	} else {
		if (!parse_digits(&p, 4, &tm.tm_year) || !parse_char(&p, "-") ||
			!parse_digits(&p, 2, &tm.tm_mon) || !parse_char(&p, "-") ||
			!parse_digits(&p, 2, &tm.tm_mday))
			return not_a_time;
		tm.tm_year -= 1900;
		tm.tm_mon -= 1;
		if (parse_char(&p, "Tt "))
			wrong = parse_clock(&p, &tm, &fraction);
	}
	if (wrong != NULL)
		return wrong;
	bool is_local = *p == '\0';
	if (!is_local && !parse_zone(p, &zone))
		return no_such_zone;
	if (!convert_date(&tm, is_local, zone, &seconds))
		return no_such_date;
	*ns = (__int128)seconds * NS_PER_S + fraction;
	return NULL;
}

/* Parses a duration before now. */
static bool parse_ago(const char *text, __int128 *ns)
{
	if (!parse_duration(text, ns))
		return false;
	*ns = bc_wall_ns() - *ns;
	return true;
}

static bool parse_word(const char *text, __int128 *ns)
{
	struct tm tm = today();
	time_t seconds;

	if (strcmp(text, "now") == 0)
		return parse_ago("0", ns);
	if (strcmp(text, "today") == 0 || strcmp(text, "yesterday") == 0) {
		tm.tm_mday -= text[0] == 'y';
		seconds = mktime(&tm);
		*ns = (__int128)seconds * NS_PER_S;
		return true;
	}
	return false;
}

const char *bc_time_point_read(struct bc_time_point *point, const char *text)
{
	__int128 ns = 0;
	const char *wrong = NULL;

	*point = (struct bc_time_point){.kind = BC_TIME_POINT_WALL};
	if (text[0] == '@') {
		point->kind = BC_TIME_POINT_TICK;
		wrong = bc_number_read(&point->tick, text + 1) ? NULL : not_a_tick;
	} else if (text[0] == '+') {
		point->kind = BC_TIME_POINT_FROM_START;
		wrong = parse_duration(text + 1, &ns) ? NULL : not_a_duration;
	} else if (text[0] == '-') {
		wrong = parse_ago(text + 1, &ns) ? NULL : not_a_duration;
	} else if (!parse_word(text, &ns)) {
		wrong = parse_date(text, &ns);
	}
	if (wrong == NULL && (ns > INT64_MAX || ns < INT64_MIN))
		wrong = out_of_range;
	point->ns = wrong == NULL ? (int64_t)ns : 0;
	return wrong;
}
