#include "daemon/api_json.h"

#include <ctype.h>
#include <string.h>

#include "formats/utf8.h"

struct scan {
	const char *text;
	size_t bytes;
	size_t at;
	const char *why;
};

/* The byte so far ahead, or 0 at the end; there is no 0 before it. */
static char ahead(const struct scan *s, size_t n)
{
	if (s->at + n >= s->bytes)
		return '\0';
	return s->text[s->at + n];
}

static bool fail(struct scan *s, const char *why)
{
	s->why = why;
	return false;
}

static size_t digits(struct scan *s)
{
	size_t n = 0;

	for (; isdigit((unsigned char)ahead(s, 0)); s->at++)
		n++;
	return n;
}

static bool scan_number(struct scan *s)
{
	if (ahead(s, 0) == '-')
		s->at++;
	if (ahead(s, 0) == '0' && isdigit((unsigned char)ahead(s, 1)))
		return fail(s, "a number doesn't begin with 0 and another digit");
	if (digits(s) == 0)
		return fail(s, "a number has digits");
	if (ahead(s, 0) == '.') {
		s->at++;
		if (digits(s) == 0)
			return fail(s, "a number has digits behind its point");
	}
	if (ahead(s, 0) == 'e' || ahead(s, 0) == 'E') {
		s->at++;
		if (ahead(s, 0) == '+' || ahead(s, 0) == '-')
			s->at++;
		if (digits(s) == 0)
			return fail(s, "a number has digits behind its e");
	}
	/* cJSON goes on with these. */
	if (strchr("+-.eE", ahead(s, 0)) != NULL && ahead(s, 0) != '\0')
		return fail(s, "that is no number");
	return true;
}

static bool scan_text(struct scan *s)
{
	s->at++;
	while (s->at < s->bytes && ahead(s, 0) != '"') {
		if ((unsigned char)ahead(s, 0) < ' ')
			return fail(s, "a control character in a text is written \\u00XX");
		if (s->bytes - s->at >= 6 && memcmp(s->text + s->at, "\\u0000", 6) == 0)
			return fail(s, "\\u0000 has no place in a text");
		s->at += ahead(s, 0) == '\\' ? 2 : 1;
	}
	s->at++;
	return s->at <= s->bytes || fail(s, "a text has no end");
}

bool bc_api_json_is_strict(const char *text, size_t bytes, const char **why, size_t *at)
{
	struct scan s = {.text = text, .bytes = bytes};
	bool is_good = true;

	if (memchr(text, '\0', bytes) != NULL || !bc_utf8_is_valid(text, bytes))
		is_good = fail(&s, "it isn't UTF-8 without zeros");
	while (is_good && s.at < bytes) {
		char c = ahead(&s, 0);
		if (c == '"')
			is_good = scan_text(&s);
		else if (c == '-' || isdigit((unsigned char)c))
			is_good = scan_number(&s);
		else if ((unsigned char)c < ' ' && strchr("\t\n\r", c) == NULL)
			is_good = fail(&s, "a control character has no place between values");
		else if ((unsigned char)c >= 0x80)
			is_good = fail(&s, "what isn't ASCII has its place in texts alone");
		else
			s.at++;
	}
	*why = s.why;
	*at = s.at < bytes ? s.at : bytes;
	return is_good;
}
