#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/api_body.h"
#include "daemon/base/permissions.h"
#include "formats/base/utf8.h"
#include "tests/support/test.h"

static const char *const names[] = {
	"text", "flag", "number", "time", "size", "either", "metadata", "inner", "list", NULL};
static const char *const inner_names[] = {"number", "list", NULL};
static const char *const no_names[] = {NULL};

/* One member of every kind. */
struct all {
	char err[256];
	char text[9];
	bool flag;
	uint64_t number;
	uint64_t time_ns;
	uint64_t size_bytes;
	char either[32];
	char metadata[BC_METADATA_MAX];
	uint64_t inner_number;
	uint64_t list_number;
	unsigned count;
};

static bool parse_inner(struct all *a, const struct bc_body *body)
{
	struct bc_body inner;

	if (!bc_body_object(body, "inner", inner_names, &inner) ||
		!bc_body_integer(&inner, "number", 1, 10, &a->inner_number) ||
		!bc_body_list_size(body, "list", 3, &a->count))
		return false;
	for (unsigned i = 0; i < a->count; i++)
		if (!bc_body_element(body, "list", i, inner_names, &inner) ||
			!bc_body_integer(&inner, "number", 1, 10, &a->list_number))
			return false;
	return true;
}

static bool parse_bytes(struct all *a, const char *text, size_t bytes)
{
	struct bc_body body;

	memset(a, 0, sizeof(*a));
	if (!bc_body_parse(&body, text, bytes, names, a->err, sizeof(a->err)))
		return false;
	bool is_ok = bc_body_text(&body, "text", a->text, sizeof(a->text)) &&
		     bc_body_flag(&body, "flag", &a->flag) &&
		     bc_body_integer(&body, "number", 3, BC_BODY_INTEGER_MAX, &a->number) &&
		     bc_body_time(&body, "time", &a->time_ns) &&
		     bc_body_file_size(&body, "size", &a->size_bytes) &&
		     bc_body_seconds_or_text(&body, "either", a->either, sizeof(a->either)) &&
		     bc_body_metadata(&body, "metadata", a->metadata) && parse_inner(a, &body);
	bc_body_free(&body);
	return is_ok;
}

/* Uses a buffer of exactly the text's size, so that sanitizers find reads past its end. */
static bool parse_all(struct all *a, const char *text)
{
	size_t bytes = strlen(text);
	char *exact = malloc(bytes + (bytes == 0));

	memcpy(exact, text, bytes);
	bool is_ok = parse_bytes(a, exact, bytes);
	free(exact);
	return is_ok;
}

TEST(every_kind_of_member_is_parsed)
{
	struct all a;

	assert_true(parse_all(&a,
		" {\"text\":\"a\\u00e9b\",\"flag\":true,\"number\":9007199254740991,\"time\":0.25,"
		"\"size\":\"2K\",\"either\":1.5,\"metadata\":{\"k\":\"v\\n\",\"l.m\":\"\"},"
		"\"inner\":{\"number\":10},\"list\":[{\"number\":1},{\"number\":2e0}]} \r\n"));
	assert_string_equal(a.text, "a\xC3\xA9"
				    "b");
	assert_true(a.flag);
	assert_true(a.number == BC_BODY_INTEGER_MAX);
	assert_true(a.time_ns == 250000000);
	assert_true(a.size_bytes == 2048);
	assert_string_equal(a.either, "1.500000000s");
	assert_string_equal(a.metadata, "{\"k\":\"v\\n\",\"l.m\":\"\"}");
	assert_true(a.inner_number == 10 && a.count == 2 && a.list_number == 2);
	assert_true(parse_all(&a, "{\"time\":\"10ms\",\"size\":7,\"either\":\"16M\"}"));
	assert_true(a.time_ns == 10000000 && a.size_bytes == 7000);
	assert_string_equal(a.either, "16M");
}

TEST(an_empty_body_is_an_empty_object)
{
	struct all a;

	assert_true(parse_all(&a, ""));
	assert_true(parse_all(&a, "{}"));
	assert_true(a.count == 0 && a.metadata[0] == '\0');
}

TEST(errors_name_the_member)
{
	static const struct {
		const char *text;
		const char *message;
	} wrong[] = {
		{"{\"frob\":1}", "frob: unknown member; expected text, flag, "},
		{"{\"Text\":\"a\"}", "Text: unknown member"},
		{"{\"text\":\"a\",\"text\":\"a\"}",
			"invalid JSON at byte 18: duplicate object key near '\"text\"'"},
		{"{\"text\":1}", "text: must be a string"},
		{"{\"text\":null}", "text: must be a string"},
		{"{\"text\":\"\"}", "text: must have 1 to 8 bytes"},
		{"{\"text\":\"123456789\"}", "text: must have 1 to 8 bytes"},
		{"{\"flag\":1}", "flag: must be true or false"},
		{"{\"number\":2}", "number: must be an integer from 3 to 9007199254740991"},
		{"{\"number\":3.5}", "number: must be an integer"},
		{"{\"number\":9007199254740992}", "number: must be an integer"},
		{"{\"number\":1e999}", "invalid JSON at byte 15: real number overflow"},
		{"{\"number\":-3}", "number: must be an integer"},
		{"{\"number\":\"3\"}", "number: must be an integer"},
		{"{\"time\":0}", "time: must be a duration above 0"},
		{"{\"time\":-1}", "time: not a valid number of seconds"},
		{"{\"time\":1e300}", "time: not a valid number of seconds"},
		{"{\"time\":\"soon\"}", "time: must be a duration above 0"},
		{"{\"time\":[]}", "time: must be a number of seconds or a string"},
		{"{\"size\":0}", "size: must be an integer from 1"},
		{"{\"size\":\"0\"}", "size: must be a size above 0"},
		{"{\"size\":\"big\"}", "size: must be a size above 0"},
		{"{\"size\":{}}", "size: must be a size above 0"},
		{"{\"either\":false}", "either: must be a number of seconds or a string"},
		{"{\"metadata\":[]}", "metadata: must be an object of strings"},
		{"{\"metadata\":{\"k\":1}}", "metadata k: the value is not a string"},
		{"{\"metadata\":{\"\":\"v\"}}", "metadata"},
		{"{\"metadata\":{\"a=b\":\"v\"}}", "metadata"},
		{"{\"metadata\":{\"k\":\"v\",\"k\":\"w\"}}", "duplicate object key near '\"k\"'"},
		{"{\"inner\":1}", "inner: must be an object"},
		{"{\"inner\":{\"frob\":1}}", "inner.frob: unknown member; expected number or list"},
		{"{\"inner\":{\"number\":11}}", "inner.number: must be an integer from 1 to 10"},
		{"{\"list\":{}}", "list: must be an array"},
		{"{\"list\":[{},{},{},{}]}", "list: must have at most 3 elements"},
		{"{\"list\":[{},1]}", "list[1]: must be an object"},
		{"{\"list\":[{},{\"number\":0}]}", "list[1].number: must be an integer"},
		{"[]", "the body must be a JSON object"},
		{"1", "invalid JSON at byte 1: '[' or '{' expected near '1'"},
		{"nothing", "invalid JSON at byte "},
		{"{\"text\":\"a\"", "invalid JSON at byte "},
		{"{\"text\":\"a}", "invalid JSON at byte "},
		{"{\"text\":\"a\\", "invalid JSON at byte "},
		{"{\"text\":\"a\\u00", "invalid JSON at byte "},
		{"{} {}", "invalid JSON at byte "},
		{"{\"number\":03}", "invalid JSON at byte "},
		{"{\"number\":+3}", "invalid JSON at byte "},
		{"{\"number\":3.}", "invalid JSON at byte "},
		{"{\"number\":3e}", "invalid JSON at byte "},
		{"{\"number\":3-4}", "invalid JSON at byte "},
		{"{\"number\":-}", "invalid JSON at byte "},
		{"{\"text\":\"a\tb\"}", "invalid JSON at byte "},
		{"{\"text\":\"a\\u0000b\"}", "invalid JSON at byte "},
		{"\xEF\xBB\xBF{}", "invalid JSON at byte "},
		{"{\f}", "invalid JSON at byte "},
		{"{\"text\":\"\\ud800\"}", "invalid JSON at byte "},
		{"{\"text\":\"\xFF\"}", "invalid JSON at byte "},
		{"{\"\xC3\":1}", "invalid JSON at byte "},
	};
	struct all a;

	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		bool is_parsed = parse_all(&a, wrong[i].text);
		if (is_parsed || strstr(a.err, wrong[i].message) == NULL)
			fail_msg("%s: %s", wrong[i].text, is_parsed ? "accepted" : a.err);
	}
}

TEST(a_zero_byte_is_refused)
{
	static const char text[] = "{\"text\":\"a\0b\"}";
	struct all a;

	assert_false(parse_bytes(&a, text, sizeof(text) - 1));
	assert_non_null(strstr(a.err, "invalid JSON at byte "));
	assert_false(parse_bytes(&a, "{}", 3));
}

TEST(every_prefix_of_a_body_is_refused)
{
	static const char whole[] = "{\"text\":\"\\u00e9\xE2\x82\xAC\",\"number\":-1.5e+3,\"list\":"
				    "[{\"number\":1}],\"flag\":true}";
	struct all a;
	char cut[sizeof(whole)];

	for (size_t n = 1; n < sizeof(whole) - 1; n++) {
		memcpy(cut, whole, n);
		cut[n] = '\0';
		assert_false(parse_all(&a, cut));
		assert_true(a.err[0] != '\0');
	}
}

TEST(a_long_name_is_cut_between_characters)
{
	struct all a;
	char text[256];

	for (unsigned lead = 0; lead < 4; lead++) {
		char *end = text + sprintf(text, "{\"%.*s", (int)lead, "xyz");
		for (unsigned i = 0; i < 30; i++)
			end = stpcpy(end, "\xE2\x82\xAC");
		strcpy(end, "\":1}");
		assert_false(parse_all(&a, text));
		assert_true(bc_utf8_is_valid(a.err, strlen(a.err)));
		assert_non_null(strstr(a.err, "\xE2\x82\xAC: unknown member"));
	}
}

TEST(too_many_members_are_refused)
{
	struct all a;
	char *text = malloc(65536);
	char *end = stpcpy(text, "{\"metadata\":{");

	for (unsigned i = 0; i < 5000; i++)
		end += sprintf(end, "%s\"%u\":\"\"", i == 0 ? "" : ",", i);
	strcpy(end, "}}");
	assert_false(parse_all(&a, text));
	assert_non_null(strstr(a.err, "the metadata is longer than 4095 bytes"));
	free(text);
}

TEST(a_body_without_allowed_members_must_be_empty)
{
	struct bc_body body;
	char err[128];

	assert_true(bc_body_parse(&body, "{}", 2, no_names, err, sizeof(err)));
	assert_false(bc_body_require(&body, "text"));
	assert_string_equal(err, "text: required");
	bc_body_free(&body);
	assert_false(bc_body_parse(&body, "{\"a\":1}", 7, no_names, err, sizeof(err)));
	assert_string_equal(err, "a: unknown member; none are allowed");
}

TEST(permissions_are_parsed_by_name)
{
	char err[128];
	uint32_t permissions = 99;

	assert_true(bc_permissions_parse(&permissions, "", err, sizeof(err)));
	assert_int_equal(permissions, 0);
	assert_true(
		bc_permissions_parse(&permissions, " record,mark ,, trigger", err, sizeof(err)));
	assert_int_equal(permissions, bc_permission_bit(BC_PERMISSION_RECORD) |
					      bc_permission_bit(BC_PERMISSION_MARK) |
					      bc_permission_bit(BC_PERMISSION_TRIGGER));
	for (enum bc_permission p = 0; p < BC_PERMISSIONS; p++) {
		assert_true(bc_permissions_parse(
			&permissions, bc_permission_name(p), err, sizeof(err)));
		assert_int_equal(permissions, bc_permission_bit(p));
	}
	permissions = 5;
	assert_false(bc_permissions_parse(&permissions, "record, rec", err, sizeof(err)));
	assert_false(bc_permissions_parse(&permissions, "marks", err, sizeof(err)));
	assert_int_equal(permissions, 5);
}
