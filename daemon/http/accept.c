#include "daemon/http/accept.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#define QUALITY_MAX 1000u

/* How exactly a range names a type. */
enum match {
	MATCH_NONE,
	MATCH_ALL,     /* any type */
	MATCH_GROUP,   /* text, and any subtype */
	MATCH_TYPE,    /* text/plain */
	MATCH_VERSION, /* text/plain;version=0.0.4 */
};

/* A part of the header. */
struct span {
	const char *text;
	size_t bytes;
};

static struct span trim(struct span s)
{
	for (; s.bytes != 0 && strchr(" \t", *s.text) != NULL; s.bytes--)
		s.text++;
	while (s.bytes != 0 && strchr(" \t", s.text[s.bytes - 1]) != NULL)
		s.bytes--;
	return s;
}

static bool is_equal(struct span s, const char *text)
{
	return s.bytes == strlen(text) && strncasecmp(s.text, text, s.bytes) == 0;
}

/* Returns what is before the next separator outside of quotes, and moves *p after that. */
static struct span take(const char **p, const char *end, char separator)
{
	struct span s = {.text = *p};
	bool is_quoted = false;

	for (; *p != end && (is_quoted || **p != separator); ++*p) {
		if (is_quoted && **p == '\\' && *p + 1 != end)
			++*p;
		else if (**p == '"')
			is_quoted = !is_quoted;
	}
	s.bytes = (size_t)(*p - s.text);
	*p += *p != end;
	return trim(s);
}

/* Reads 0, 0.5 or 1.000. Returns false if it is invalid. */
static bool read_quality(unsigned *quality, struct span s)
{
	unsigned unit = QUALITY_MAX;

	*quality = 0;
	if (s.bytes == 0 || s.bytes > 5 || (s.bytes > 1 && s.text[1] != '.'))
		return false;
	for (size_t i = 0; i < s.bytes; i++) {
		if (i == 1)
			continue;
		if (s.text[i] < '0' || s.text[i] > '9')
			return false;
		*quality += unit * (unsigned)(s.text[i] - '0');
		unit /= 10;
	}
	return *quality <= QUALITY_MAX;
}

static enum match match_type(struct span range, const char *type)
{
	size_t group = strcspn(type, "/") + 1;

	if (is_equal(range, "*/*"))
		return MATCH_ALL;
	if (range.bytes == group + 1 && range.text[group] == '*' &&
		strncasecmp(range.text, type, group) == 0)
		return MATCH_GROUP;
	return is_equal(range, type) ? MATCH_TYPE : MATCH_NONE;
}

/* How a range of the header matches, and its quality. */
static enum match match_range(
	struct span range, const char *type, const char *version, unsigned *quality)
{
	const char *p = range.text;
	const char *end = p + range.bytes;
	enum match match = match_type(take(&p, end, ';'), type);

	*quality = QUALITY_MAX;
	while (p != end && match != MATCH_NONE) {
		struct span value = take(&p, end, ';');
		struct span name = take(&value.text, value.text + value.bytes, '=');
		if (name.bytes == value.bytes) /* no value */
			continue;
		value.bytes -= (size_t)(value.text - name.text);
		value = trim(value);
		if (value.bytes > 1 && *value.text == '"')
			value = (struct span){value.text + 1, value.bytes - 2};
		if (is_equal(name, "q"))
			match = read_quality(quality, value) ? match : MATCH_NONE;
		else if (is_equal(name, "version") && match == MATCH_TYPE)
			match = is_equal(value, version) ? MATCH_VERSION : MATCH_NONE;
	}
	return match;
}

struct bc_acceptance bc_accept_find(const char *header, const char *type, const char *version)
{
	struct bc_acceptance found = {.quality = header == NULL ? QUALITY_MAX : 0};
	enum match best = MATCH_NONE;
	const char *p = header != NULL ? header : "";

	for (const char *end = p + strlen(p); p != end;) {
		unsigned quality;
		enum match match = match_range(take(&p, end, ','), type, version, &quality);
		if (match == MATCH_NONE || match < best)
			continue;
		found.quality = match == best && quality < found.quality ? found.quality : quality;
		best = match;
	}
	found.is_named = best >= MATCH_TYPE;
	return found;
}
