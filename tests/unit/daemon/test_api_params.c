#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/api_params.h"
#include "daemon/base/permissions.h"
#include "formats/base/utf8.h"
#include "tests/support/test.h"

#define TRIGGER "\"when\":\"gap\",\"action\":\"mark\""

struct fixture {
	struct bc_api_params *params;
	char err[256];
};

static void set_up(struct fixture *f)
{
	f->params = test_alloc(sizeof(*f->params));
}

static void tear_down(struct fixture *f)
{
	free(f->params);
}

TEST_FIXTURE(fixture, set_up, tear_down)

/* Uses a buffer of exactly the text's size, so that sanitizers find reads past its end. */
static bool parse_bytes(
	struct fixture *f, enum bc_api_params_kind kind, const char *text, size_t bytes)
{
	char *exact = malloc(bytes + (bytes == 0));

	memcpy(exact, text, bytes);
	memset(f->params, 0, sizeof(*f->params));
	bool is_ok = bc_api_params_parse(f->params, kind, exact, bytes, f->err, sizeof(f->err));
	free(exact);
	return is_ok;
}

static bool parse(struct fixture *f, const char *text)
{
	return parse_bytes(f, BC_PARAMS_START, text, strlen(text));
}

TEST_F(every_kind_of_member_is_parsed)
{
	const struct bc_start *start = &f->params->start;

	assert_true(parse(f,
		" {\"label\":\"a\\u0062\",\"metadata\":{\"k\":\"v\\n\",\"l.m\":\"\"},\"pre\":1.5,"
		"\"limits\":{\"records\":9007199254740991,\"duration\":0.25,\"filesize\":\"2K\"},"
		"\"triggers\":[{\"name\":\"a\"," TRIGGER "},{" TRIGGER
		",\"text\":\"\xC3\xA9\",\"name\":\"b\",\"holdoff\":2e0}]} \r\n"));
	assert_string_equal(start->label, "ab");
	assert_string_equal(start->metadata, "{\"k\":\"v\\n\",\"l.m\":\"\"}");
	assert_true(start->pre.unit == BC_TIME_OR_SIZE_TIME && start->pre.value == 1500000000);
	assert_true(start->limits.records == 9007199254740991);
	assert_true(start->limits.duration_ns == 250000000);
	assert_true(start->limits.file_bytes == 2000);
	assert_int_equal(start->triggers_count, 2);
	assert_string_equal(start->triggers[0].name, "a");
	assert_string_equal(start->triggers[1].text, "\xC3\xA9");
	assert_true(start->triggers[1].holdoff_ns == 2000000000 && start->triggers[1].is_requested);
	assert_true(
		parse(f, "{\"limits\":{\"duration\":\"10ms\",\"filesize\":7},\"pre\":\"16M\"}"));
	assert_true(start->limits.duration_ns == 10000000 && start->limits.file_bytes == 7);
	assert_true(start->pre.unit == BC_TIME_OR_SIZE_BYTES && start->pre.value == 16000000);
}

TEST_F(an_empty_body_is_an_empty_object)
{
	assert_true(parse(f, ""));
	assert_true(parse(f, "{}"));
	assert_true(f->params->start.triggers_count == 0 && f->params->metadata[0] == '\0');
}

TEST_F(errors_name_the_member)
{
	static const struct {
		const char *text;
		const char *message;
	} wrong[] = {
		{"{\"frob\":1}", "frob: unknown member; use label, metadata, "},
		{"{\"Label\":\"a\"}", "Label: unknown member"},
		{"{\"label\":\"a\",\"label\":\"a\"}",
			"invalid JSON at byte 20: duplicate object key near '\"label\"'"},
		{"{\"label\":1}", "label: must be a string"},
		{"{\"label\":null}", "label: must be a string"},
		{"{\"label\":\"\"}", "label: must have 1 to 64 bytes"},
		{"{\"label\":\"1234567890123456789012345678901234567890123456789012345678901234"
		 "5\"}",
			"label: must have 1 to 64 bytes"},
		{"{\"label\":\"a b\"}", "label: must have up to 64 letters"},
		{"{\"limits\":{\"records\":0}}",
			"limits.records: must be an integer from 1 to 9007199254740991"},
		{"{\"limits\":{\"records\":3.5}}", "limits.records: must be an integer"},
		{"{\"limits\":{\"records\":9007199254740992}}",
			"limits.records: must be an integer"},
		{"{\"limits\":{\"records\":1e999}}",
			"invalid JSON at byte 26: real number overflow"},
		{"{\"limits\":{\"records\":-3}}", "limits.records: must be an integer"},
		{"{\"limits\":{\"records\":\"3\"}}", "limits.records: must be an integer"},
		{"{\"limits\":{\"duration\":0}}", "limits.duration: must be a time above 0"},
		{"{\"limits\":{\"duration\":-1}}",
			"limits.duration: must be a number of seconds from 0"},
		{"{\"limits\":{\"duration\":1e300}}",
			"limits.duration: must be a number of seconds from 0"},
		{"{\"limits\":{\"duration\":\"soon\"}}", "limits.duration: not a time"},
		{"{\"limits\":{\"duration\":[]}}",
			"limits.duration: must be a number of seconds or a string"},
		{"{\"limits\":{\"filesize\":0}}", "limits.filesize: must be an integer from 1"},
		{"{\"limits\":{\"filesize\":\"0\"}}", "limits.filesize: must be a size above 0"},
		{"{\"limits\":{\"filesize\":\"big\"}}", "limits.filesize: not a size"},
		{"{\"limits\":{\"filesize\":{}}}", "limits.filesize: must be an integer"},
		{"{\"limits\":1}", "limits: must be an object"},
		{"{\"limits\":{\"frob\":1}}",
			"limits.frob: unknown member; use duration, records or filesize"},
		{"{\"pre\":false}", "pre: must be a number of seconds or a string"},
		{"{\"pre\":0}", "pre: must be a time or size above 0"},
		{"{\"metadata\":[]}", "metadata: must be an object of strings"},
		{"{\"metadata\":{\"k\":1}}", "metadata.k: must be a string"},
		{"{\"metadata\":{\"\":\"v\"}}", "metadata"},
		{"{\"metadata\":{\"a=b\":\"v\"}}", "metadata"},
		{"{\"metadata\":{\"k\":\"v\",\"k\":\"w\"}}", "duplicate object key near '\"k\"'"},
		{"{\"triggers\":{}}", "triggers: must be an array"},
		{"{\"triggers\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}",
			"triggers: must have at most 16 elements"},
		{"{\"triggers\":[{\"name\":\"a\"," TRIGGER "},1]}",
			"triggers[1]: must be an object"},
		{"{\"triggers\":[{" TRIGGER "}]}", "triggers[0].name: required"},
		{"{\"triggers\":[{\"name\":7}]}", "triggers[0].name: must be a string"},
		{"{\"triggers\":[{\"name\":\"a\",\"when\":\"gap\",\"action\":\"start\"}]}",
			"triggers[0].action: must be mark or stop"},
		{"{\"triggers\":[{\"name\":\"a\"," TRIGGER "},{\"name\":\"a\"," TRIGGER "}]}",
			"triggers[1].name: already used by another trigger"},
		{"[]", "the body must be a JSON object"},
		{"1", "invalid JSON at byte 1: '[' or '{' expected near '1'"},
		{"nothing", "invalid JSON at byte "},
		{"{\"label\":\"a\"", "invalid JSON at byte "},
		{"{\"label\":\"a}", "invalid JSON at byte "},
		{"{\"label\":\"a\\", "invalid JSON at byte "},
		{"{\"label\":\"a\\u00", "invalid JSON at byte "},
		{"{} {}", "invalid JSON at byte "},
		{"{\"pre\":03}", "invalid JSON at byte "},
		{"{\"pre\":+3}", "invalid JSON at byte "},
		{"{\"pre\":3.}", "invalid JSON at byte "},
		{"{\"pre\":3e}", "invalid JSON at byte "},
		{"{\"pre\":3-4}", "invalid JSON at byte "},
		{"{\"pre\":-}", "invalid JSON at byte "},
		{"{\"label\":\"a\tb\"}", "invalid JSON at byte "},
		{"{\"label\":\"a\\u0000b\"}", "invalid JSON at byte "},
		{"\xEF\xBB\xBF{}", "invalid JSON at byte "},
		{"{\f}", "invalid JSON at byte "},
		{"{\"label\":\"\\ud800\"}", "invalid JSON at byte "},
		{"{\"label\":\"\xFF\"}", "invalid JSON at byte "},
		{"{\"\xC3\":1}", "invalid JSON at byte "},
	};

	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		bool is_parsed = parse(f, wrong[i].text);
		if (is_parsed || strstr(f->err, wrong[i].message) == NULL)
			fail_msg("%s: %s", wrong[i].text, is_parsed ? "accepted" : f->err);
	}
}

TEST_F(other_bodies_have_their_own_members)
{
	static const struct {
		enum bc_api_params_kind kind;
		const char *text;
		const char *message; /* NULL: accepted */
	} bodies[] = {
		{BC_PARAMS_SNAPSHOT, "{\"until_stopped\":true}", NULL},
		{BC_PARAMS_SNAPSHOT, "{\"until_stopped\":1}",
			"until_stopped: must be true or false"},
		{BC_PARAMS_SNAPSHOT, "{\"until_stopped\":true,\"post\":\"2s\"}",
			"post: can't be combined with until_stopped"},
		{BC_PARAMS_SNAPSHOT, "{\"post\":\"all\"}", "post: must be a time or a size"},
		{BC_PARAMS_TRIGGER, "{\"name\":\"a\"," TRIGGER "}", NULL},
		{BC_PARAMS_TRIGGER, "{\"name\":\"a\",\"action\":\"mark\"}", "when: required"},
		{BC_PARAMS_TRIGGER, "{\"frob\":1}", "frob: unknown member; use name, when"},
		{BC_PARAMS_MARK, "{\"text\":\"x\"}", NULL},
		{BC_PARAMS_MARK, "{}", "text: required"},
		{BC_PARAMS_NOTE, "{}", "metadata: required"},
		{BC_PARAMS_ROTATE, "{}", NULL},
		{BC_PARAMS_ROTATE, "{\"a\":1}", "a: unknown member; none are allowed"},
	};

	for (size_t i = 0; i < COUNT_OF(bodies); i++) {
		bool is_parsed = parse_bytes(
			f, bodies[i].kind, bodies[i].text, strlen(bodies[i].text));
		if (is_parsed != (bodies[i].message == NULL) ||
			(!is_parsed && strstr(f->err, bodies[i].message) == NULL))
			fail_msg("%s: %s", bodies[i].text, is_parsed ? "accepted" : f->err);
	}
}

TEST_F(a_zero_byte_is_refused)
{
	static const char text[] = "{\"label\":\"a\0b\"}";

	assert_false(parse_bytes(f, BC_PARAMS_START, text, sizeof(text) - 1));
	assert_non_null(strstr(f->err, "invalid JSON at byte "));
	assert_false(parse_bytes(f, BC_PARAMS_START, "{}", 3));
}

TEST_F(every_prefix_of_a_body_is_refused)
{
	static const char whole[] = "{\"name\":\"a\",\"text\":\"\\u00e9\xE2\x82\xAC\","
				    "\"holdoff\":1.5e+3," TRIGGER "}";

	assert_true(parse_bytes(f, BC_PARAMS_TRIGGER, whole, sizeof(whole) - 1));
	for (size_t n = 0; n < sizeof(whole) - 1; n++) {
		f->err[0] = '\0';
		assert_false(parse_bytes(f, BC_PARAMS_TRIGGER, whole, n));
		assert_true(f->err[0] != '\0');
	}
}

TEST_F(a_long_name_is_cut_between_characters)
{
	char text[256];

	for (unsigned lead = 0; lead < 4; lead++) {
		char *end = text + sprintf(text, "{\"%.*s", (int)lead, "xyz");
		for (unsigned i = 0; i < 30; i++)
			end = stpcpy(end, "\xE2\x82\xAC");
		strcpy(end, "\":1}");
		assert_false(parse(f, text));
		assert_true(bc_utf8_is_valid(f->err, strlen(f->err)));
		assert_non_null(strstr(f->err, "\xE2\x82\xAC: unknown member"));
	}
}

TEST_F(too_many_members_are_refused)
{
	char *text = malloc(65536);
	char *end = stpcpy(text, "{\"metadata\":{");

	for (unsigned i = 0; i < 5000; i++)
		end += sprintf(end, "%s\"%u\":\"\"", i == 0 ? "" : ",", i);
	strcpy(end, "}}");
	assert_false(parse(f, text));
	assert_non_null(strstr(f->err, "the metadata is longer than 4095 bytes"));
	free(text);
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
