/* Parses filters: first the points in time that users write, then the conditions.
 *
 * A condition is parsed into a copy of the filter, which replaces it on success, so a filter is
 * unchanged after an error. Times are computed in 128 bits of ns and checked once, at the end. */
#include "formats/trace/filter_parse.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "formats/base/clock.h"
#include "formats/base/quantity.h"
#include "formats/base/suggest.h"
#include "formats/base/text.h"

#define NS_PER_S INT64_C(1000000000)

#define TIME_POINT_MAX 80 /* longest time, with its zero */

enum time_point_kind {
	TIME_POINT_WALL,
	TIME_POINT_FROM_START,
	TIME_POINT_TICK,
};

struct time_point {
	enum time_point_kind kind;
	int64_t ns; /* since 1970, or since the start of the trace */
	uint64_t tick;
};

static const char not_a_time[] = "not a time; try " BC_TIME_POINT_HELP;
static const char not_a_tick[] = "not a tick; try @4178506193";
static const char no_such_date[] = "no such date";
static const char no_such_clock[] = "no such time of day";
static const char no_such_zone[] = "not a time zone; try Z or +01:00";
static const char out_of_range[] = "out of range";

/* Sets `why` on failure. */
static bool parse_duration(const char *text, __int128 *ns, char why[BC_QUANTITY_ERROR_MAX])
{
	uint64_t value;
	bool ok = bc_quantity_read(&value, BC_QUANTITY_TIME, text, why, BC_QUANTITY_ERROR_MAX);

	*ns = ok ? (__int128)value : 0;
	return ok;
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

/* Parses "Z", " UTC", "+01:00" or "+0100", the offset of local time from UTC. */
static bool parse_zone(const char *p, int *seconds)
{
	p += *p == ' ';
	int hours = 0;
	int minutes = 0;
	bool is_behind = *p == '-';

	*seconds = 0;
	if (strcasecmp(p, "Z") == 0 || strcmp(p, "UTC") == 0)
		return true;
	bool ok = parse_char(&p, "+-") && parse_digits(&p, 2, &hours);
	p += ok && *p == ':';
	ok = ok && parse_digits(&p, 2, &minutes) && *p == '\0' && hours < 24 && minutes < 60;
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
	char why[BC_QUANTITY_ERROR_MAX];
	char digits[32] = "0";
	size_t n = strspn(*p + 1, "0123456789");
	if (n == 0 || n >= sizeof(digits) - 3)
		return not_a_time;
	memcpy(digits + 1, *p, n + 1);
	*p += n + 1;
	return parse_duration(digits, fraction, why) ? NULL : not_a_time;
}

static struct tm today(void)
{
	time_t now = time(NULL);
	struct tm tm;

	gmtime_r(&now, &tm);
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	return tm;
}

/* Converts a time that is `zone` seconds ahead of UTC. Returns false if the date does not exist;
 * timegm() would turn 31 February into a day in March. */
static bool convert_date(const struct tm *given, int zone, time_t *seconds)
{
	struct tm tm = *given;

	tm.tm_sec = 0; /* a leap second is in the next minute */
	*seconds = timegm(&tm) - zone + given->tm_sec;
	return tm.tm_mon == given->tm_mon && tm.tm_mday == given->tm_mday;
}

/* Parses a date, a time of day, or both, with an optional zone. Returns what is wrong, or NULL. */
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
	} else {
		if (!parse_digits(&p, 4, &tm.tm_year) || !parse_char(&p, "-") ||
			!parse_digits(&p, 2, &tm.tm_mon) || !parse_char(&p, "-") ||
			!parse_digits(&p, 2, &tm.tm_mday))
			return not_a_time;
		tm.tm_year -= 1900;
		tm.tm_mon -= 1;
		if (strcmp(p, " UTC") != 0 && parse_char(&p, "Tt "))
			wrong = parse_clock(&p, &tm, &fraction);
	}
	if (wrong != NULL)
		return wrong;
	if (*p != '\0' && !parse_zone(p, &zone))
		return no_such_zone;
	if (!convert_date(&tm, zone, &seconds))
		return no_such_date;
	*ns = (__int128)seconds * NS_PER_S + fraction;
	return NULL;
}

/* Parses a duration before now. */
static bool parse_ago(const char *text, __int128 *ns, char why[BC_QUANTITY_ERROR_MAX])
{
	if (!parse_duration(text, ns, why))
		return false;
	*ns = bc_wall_ns() - *ns;
	return true;
}

static bool parse_word(const char *text, __int128 *ns)
{
	struct tm tm = today();
	time_t seconds;

	if (strcmp(text, "now") == 0) {
		*ns = bc_wall_ns();
		return true;
	}
	if (strcmp(text, "today") == 0 || strcmp(text, "yesterday") == 0) {
		tm.tm_mday -= text[0] == 'y';
		seconds = timegm(&tm);
		*ns = (__int128)seconds * NS_PER_S;
		return true;
	}
	return false;
}

/* True if there is a space between groups of digits. */
static bool is_group_space(const char *at)
{
	return at[0] == ' ' && strspn(at + 1, "0123456789") == 3;
}

/* Copies a time as the page and the tools print it: without the thin spaces that group digits, or
 * plain ones after a copy, and the spaces around it. False if it is too long for a time. */
static bool copy_plain(char out[TIME_POINT_MAX], const char *text)
{
	static const char *const thin[] = {"\u2009", "\u202f"};
	size_t n = 0;

	text += strspn(text, " ");
	while (*text != '\0') {
		if (strncmp(text, thin[0], 3) == 0 || strncmp(text, thin[1], 3) == 0) {
			text += 3;
			continue;
		}
		if (is_group_space(text) && memchr(out, ':', n) != NULL &&
			memchr(out, '.', n) != NULL) {
			text++;
			continue;
		}
		if (n == TIME_POINT_MAX - 1)
			return false;
		out[n++] = *text++;
	}
	while (n != 0 && out[n - 1] == ' ')
		n--;
	out[n] = '\0';
	return true;
}

/* Returns NULL, or what is wrong with the text, which may be in `why`. */
static const char *time_point_read(
	struct time_point *point, const char *given, char why[BC_QUANTITY_ERROR_MAX])
{
	__int128 ns = 0;
	const char *wrong = NULL;
	char text[TIME_POINT_MAX] = "";

	*point = (struct time_point){.kind = TIME_POINT_WALL};
	if (!copy_plain(text, given))
		return not_a_time;
	if (text[0] == '@') {
		point->kind = TIME_POINT_TICK;
		wrong = bc_number_read(&point->tick, text + 1) ? NULL : not_a_tick;
	} else if (text[0] == '+') {
		point->kind = TIME_POINT_FROM_START;
		wrong = parse_duration(text + 1, &ns, why) ? NULL : why;
	} else if (strspn(text, "0123456789") >= 10 && text[strspn(text, "0123456789.")] == '\0') {
		wrong = parse_duration(text, &ns, why) ? NULL : why;
	} else if (text[0] == '-') {
		wrong = parse_ago(text + 1, &ns, why) ? NULL : why;
	} else if (!parse_word(text, &ns)) {
		wrong = parse_date(text, &ns);
	}
	if (wrong == NULL && (ns > INT64_MAX || ns < INT64_MIN))
		wrong = out_of_range;
	point->ns = wrong == NULL ? (int64_t)ns : 0;
	return wrong;
}

/* ---- filter parse */

#define PORT_MAX 0xFFFFu

/* Reads hexadecimal digits with an optional "0x". Returns the position after them, or NULL. */
static const char *parse_hex(const char *text, uint64_t *value)
{
	return bc_hex_read(text, text + strlen(text), value);
}

bool bc_filter_parse_addr(struct bc_filter *filter, const char *value, char *err, size_t errlen)
{
	struct bc_span span = {0, UINT64_MAX};
	const char *p = value;

	if (*p != '-')
		p = parse_hex(p, &span.first);
	if (p != NULL && *p == '\0')
		span.last = span.first;
	else if (p != NULL && *p == '-' && p[1] != '\0')
		p = parse_hex(p + 1, &span.last);
	else if (p != NULL && *p == '-' && p != value)
		p++;
	if (p != NULL && (*p == 'h' || *p == 'H'))
		return bc_fail(
			err, errlen, "not a hexadecimal address range; leave out the h: fee00000");
	if (p == NULL || *p != '\0')
		return bc_fail(err, errlen,
			"not a hexadecimal address range; try 1000-1fff, 1000- or 0-fff");
	if (span.first > span.last)
		return bc_fail(err, errlen, "the range ends before it starts");
	filter->has_addr = true;
	filter->addr = span;
	filter->ranges_count = filter->memory_count = 0;
	return true;
}

/* Adds all types that reduce to `plain` (read, write or fetch). A modify is read and write. */
static void add_plain(struct bc_filter *filter, int plain)
{
	for (unsigned type = 0; type < BC_REF_TYPES; type++)
		if (bc_ref_type_plain(type) == plain ||
			(type == BC_REF_MODIFY && plain == BC_REQ_MEMWRITE))
			bc_filter_add_type(filter, type);
}

/* The type with this name; underscores in the name are ignored. */
static int type_by_name(const char *name)
{
	char plain[32];
	size_t n = 0;

	for (; *name != '\0' && n < sizeof(plain) - 1; name++)
		if (*name != '_')
			plain[n++] = *name;
	plain[n] = '\0';
	return bc_ref_type_by_name(plain);
}

static bool add_type(struct bc_filter *filter, const char *name)
{
	uint64_t number;
	const char *end = NULL;
	int type = type_by_name(name);

	if (strcasecmp(name, "read") == 0)
		add_plain(filter, BC_REQ_MEMREAD);
	else if (strcasecmp(name, "write") == 0)
		add_plain(filter, BC_REQ_MEMWRITE);
	else if (type >= 0)
		bc_filter_add_type(filter, (unsigned)type);
	else if (name[0] == '0' && (end = parse_hex(name, &number)) != NULL && *end == '\0' &&
		 number < 0x100)
		bc_filter_add_type(filter, (unsigned)number);
	else
		return false;
	return true;
}

/* Says that no type has this name, and which one may be meant. */
static bool fail_type(const char *name, size_t bytes, char *err, size_t errlen)
{
	char upper[BC_SUGGESTION_BYTES + 1] = "";

	for (size_t i = 0; i < bytes && bytes < sizeof(upper); i++)
		upper[i] = (char)toupper((unsigned char)name[i]);
	struct bc_suggestion s = bc_suggestion_start(upper);
	bc_suggestion_add(&s, "READ", "read");
	bc_suggestion_add(&s, "WRITE", "write");
	bc_suggestion_add(&s, "FETCH", "fetch");
	for (unsigned type = 0; type < BC_REF_TYPES; type++) {
		const char *known = bc_ref_type_name(type);
		if (known != NULL)
			bc_suggestion_add(&s, known, known);
	}
	return bc_fail(err, errlen, "unknown type \"%.*s\"; %s%s%s " BC_TYPE_WORDS,
		(int)(bytes < 40 ? bytes : 40), name, s.nearest != NULL ? "did you mean " : "use",
		s.nearest != NULL ? s.nearest : "", s.nearest != NULL ? "? Use" : "");
}

bool bc_filter_parse_types(struct bc_filter *filter, const char *value, char *err, size_t errlen)
{
	struct bc_filter updated = *filter;
	char name[32];

	for (const char *p = value;; p++) {
		size_t n = strcspn(p, ",");
		snprintf(name, sizeof(name), "%.*s", (int)(n < sizeof(name) ? n : 0), p);
		if (!add_type(&updated, name))
			return fail_type(p, n, err, errlen);
		p += n;
		if (*p == '\0')
			break;
	}
	*filter = updated;
	return true;
}

bool bc_filter_parse_procs(struct bc_filter *filter, const char *value, char *err, size_t errlen)
{
	struct bc_filter updated = *filter;

	for (const char *p = value;; p++) {
		uint64_t first;
		bool ok = bc_number_read_start(&first, p, &p);
		uint64_t last = first;
		if (ok && *p == '-')
			ok = bc_number_read_start(&last, p + 1, &p);
		if (!ok || first > last || last > UINT16_MAX || (*p != ',' && *p != '\0'))
			return bc_fail(err, errlen, "not a list of processors; try 0 or 0,2-3");
		bc_filter_add_procs(&updated, (uint16_t)first, (uint16_t)last);
		if (*p == '\0')
			break;
	}
	*filter = updated;
	return true;
}

bool bc_filter_parse_port(struct bc_filter *filter, const char *value, char *err, size_t errlen)
{
	struct bc_filter ports = *filter;

	if (!bc_filter_parse_addr(&ports, value, err, errlen) || ports.addr.first > PORT_MAX ||
		(ports.addr.last > PORT_MAX && ports.addr.last != UINT64_MAX))
		return bc_fail(err, errlen, "not a hexadecimal I/O port range; try e0 or 3f8-3ff");
	ports.ranges_count = 1; /* a region of ports */
	ports.ranges[0] = ports.addr;
	*filter = ports;
	return true;
}

bool bc_filter_lacks_port_types(const struct bc_filter *f)
{
	return bc_filter_is_at_ports(f) && f->has_types && (f->types[0] & BC_PORT_TYPES) == 0;
}

_Static_assert(BC_NAME_REGION_RANGES <= BC_FILTER_RANGES, "a region fits in a filter");

bool bc_filter_parse_region(struct bc_filter *filter, const struct bc_name_map *names,
	const char *value, char *err, size_t errlen)
{
	struct bc_name_region region = {.count = 0};

	if (names != NULL && !bc_name_map_region(names, value, &region, err, errlen)) {
		/* The search box takes what is not an address for a name. */
		size_t digits = strspn(value, "0123456789abcdefABCDEF");
		return digits > 8 && value[digits] == '\0'
			       ? bc_fail(err, errlen,
					 "address too large, and no region has this name")
			       : false;
	}
	filter->has_addr = true;
	filter->addr = (struct bc_span){UINT64_MAX, 0};
	filter->ranges_count = region.count;
	filter->memory_count = 0;
	for (unsigned i = 0; i < region.count; i++) {
		const struct bc_name_range *range = &region.ranges[i];
		filter->ranges[i] = (struct bc_span){range->first, range->last};
		filter->memory_count += !range->is_port;
		if (range->first < filter->addr.first)
			filter->addr.first = range->first;
		if (range->last > filter->addr.last)
			filter->addr.last = range->last;
	}
	return true;
}

/* Sets the first tick, or the last one, from the one after it. */
static void set_tick(struct bc_span *ticks, uint64_t tick, bool is_from)
{
	if (is_from)
		ticks->first = tick > ticks->first ? tick : ticks->first;
	else if (tick == 0)
		*ticks = (struct bc_span){1, 0}; /* none */
	else
		ticks->last = tick - 1;
}

/* True if the bounds of each kind are in order. Unset bounds are far apart. */
static bool is_ordered(const struct bc_filter *f)
{
	bool are_ticks_ordered = f->ticks.first <= f->ticks.last ||
				 f->ticks.first - 1 == f->ticks.last;

	return are_ticks_ordered &&
	       (f->from_is_relative != f->to_is_relative || f->from_ns <= f->to_ns);
}

static bool parse_bound(
	struct bc_filter *filter, const char *value, char *err, size_t errlen, bool is_from)
{
	struct bc_filter bounded = *filter;
	struct time_point point;

	char why[BC_QUANTITY_ERROR_MAX];
	const char *wrong = time_point_read(&point, value, why);

	if (wrong != NULL)
		return bc_fail(err, errlen, "%s", wrong);
	if (point.kind == TIME_POINT_TICK) {
		set_tick(&bounded.ticks, point.tick, is_from);
	} else {
		bool is_relative = point.kind == TIME_POINT_FROM_START;
		bounded.has_wall = true;
		*(is_from ? &bounded.from_ns : &bounded.to_ns) = point.ns;
		*(is_from ? &bounded.from_is_relative : &bounded.to_is_relative) = is_relative;
	}
	if (!is_ordered(&bounded))
		return bc_fail(err, errlen, "the end is before the start");
	*filter = bounded;
	return true;
}

bool bc_filter_parse_from(struct bc_filter *filter, const char *value, char *err, size_t errlen)
{
	return parse_bound(filter, value, err, errlen, true);
}

bool bc_filter_parse_to(struct bc_filter *filter, const char *value, char *err, size_t errlen)
{
	return parse_bound(filter, value, err, errlen, false);
}

static const struct {
	const char *name;
	bool (*parse)(struct bc_filter *filter, const char *value, char *err, size_t errlen);
	bool sets_addr;
	bool sets_type;
	bool sets_proc;
} terms[] = {
	{"addr", bc_filter_parse_addr, true, false, false},
	{"type", bc_filter_parse_types, false, true, false},
	{"proc", bc_filter_parse_procs, false, false, true},
	{"port", bc_filter_parse_port, true, false, false},
	{"region", NULL, true, false, false}, /* bc_filter_parse_region() */
};

bool bc_filter_parse_condition(struct bc_filter *filter, const struct bc_name_map *names,
	const char *name, const char *value, char *err, size_t errlen)
{
	char reason[160];
	bool ok;

	for (size_t i = 0; i < sizeof(terms) / sizeof(terms[0]); i++) {
		if (strcmp(name, terms[i].name) != 0)
			continue;
		if ((terms[i].sets_addr && filter->has_addr) ||
			(terms[i].sets_type && filter->has_types) ||
			(terms[i].sets_proc && filter->has_procs))
			return bc_fail(err, errlen,
				"%s=%.60s: given twice (port and region set addr)", name, value);
		ok = terms[i].parse != NULL
			     ? terms[i].parse(filter, value, reason, sizeof(reason))
			     : bc_filter_parse_region(filter, names, value, reason, sizeof(reason));
		if (ok && bc_filter_lacks_port_types(filter))
			ok = bc_fail(reason, sizeof(reason), BC_NO_PORT_TYPES);
		return ok || bc_fail(err, errlen, "%s=%.60s: %s", name, value, reason);
	}
	return bc_fail(err, errlen,
		"%.40s: unknown condition; use addr=, type=, proc=, port= or region=", name);
}

bool bc_filter_parse(struct bc_filter *filter, const struct bc_name_map *names, const char *text,
	char *err, size_t errlen)
{
	char copy[1024];
	char *rest = copy;
	char *word;
	bool has_term = false;

	bc_filter_init(filter);
	if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy))
		return bc_fail(err, errlen, "longer than 1023 bytes");
	while ((word = strsep(&rest, " \t")) != NULL) {
		char *equals = strchr(word, '=');
		if (word[0] == '\0')
			continue;
		has_term = true;
		if (equals == NULL)
			return bc_fail(err, errlen,
				"%.40s: not a condition; try addr=1000-1fff, type=read,write, "
				"proc=0, port=e0 or region=vga",
				word);
		*equals = '\0';
		if (!bc_filter_parse_condition(filter, names, word, equals + 1, err, errlen))
			return false;
	}
	return has_term || bc_fail(err, errlen,
				   "empty filter; try addr=1000-1fff, "
				   "type=read,write, proc=0, port=e0 or region=vga");
}
