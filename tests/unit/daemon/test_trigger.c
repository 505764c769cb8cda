#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/ingest/trigger.h"
#include "formats/base/json.h"
#include "tests/support/test.h"

static char err[300];

TEST(a_length_is_a_time_a_size_or_all)
{
	static const struct {
		const char *text;
		struct bc_time_or_size length;
		const char *printed;
	} good[] = {
		{"5s", {BC_TIME_OR_SIZE_TIME, 5000000000}, "5s"},
		{"5", {BC_TIME_OR_SIZE_TIME, 5000000000}, "5s"},
		{"10ms", {BC_TIME_OR_SIZE_TIME, 10000000}, "10ms"},
		{"2m", {BC_TIME_OR_SIZE_TIME, 120000000000}, "2min"},
		{"0.5", {BC_TIME_OR_SIZE_TIME, 500000000}, "500ms"},
		{"0.000001500", {BC_TIME_OR_SIZE_TIME, 1500}, "1500ns"},
		{"16M", {BC_TIME_OR_SIZE_BYTES, 16000000}, "16MB"},
		{"1G", {BC_TIME_OR_SIZE_BYTES, 1000000000}, "1GB"},
		{"3KiB", {BC_TIME_OR_SIZE_BYTES, 3072}, "3KiB"},
		{"1025B", {BC_TIME_OR_SIZE_BYTES, 1025}, "1025B"},
		{"16MB", {BC_TIME_OR_SIZE_BYTES, 16000000}, "16MB"},
		{"all", {BC_TIME_OR_SIZE_ALL, 0}, "all"},
		{"0", {BC_TIME_OR_SIZE_NONE, 0}, "0"},
		{"0M", {BC_TIME_OR_SIZE_NONE, 0}, "0"},
		{"0ms", {BC_TIME_OR_SIZE_NONE, 0}, "0"},
	};
	static const char *const bad[] = {
		"", "x", "M", "5  s", "-5", "5S", "1e10", "99999999999999999999", "all ", "16Mb"};
	struct bc_time_or_size length;
	char text[BC_QUANTITY_TEXT_MAX];

	for (size_t i = 0; i < COUNT_OF(good); i++) {
		if (!bc_time_or_size_read(&length, good[i].text, err, sizeof(err)))
			fail_msg("%s: %s", good[i].text, err);
		assert_int_equal(length.unit, good[i].length.unit);
		assert_true(length.value == good[i].length.value);
		bc_time_or_size_print(text, length);
		assert_string_equal(text, good[i].printed);
	}
	length = good[0].length;
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		if (bc_time_or_size_read(&length, bad[i], err, sizeof(err)))
			fail_msg("'%s' was accepted", bad[i]);
		assert_true(length.value == good[0].length.value);
	}
}

TEST(a_trigger_prints_its_settings)
{
	static const char *const keys[][2] = {{"when", "port=e0-e3"}, {"action", "snapshot"},
		{"pre", "5s"}, {"post", "16M"}, {"text", "\xc3\xa4 \"quoted\""},
		{"holdoff", "1.5"}};
	struct bc_trigger t;

	assert_true(bc_trigger_init(&t, "roi", err, sizeof(err)));
	for (size_t i = 0; i < COUNT_OF(keys); i++)
		assert_true(bc_trigger_set(&t, keys[i][0], keys[i][1], err, sizeof(err)));
	assert_true(bc_trigger_check(&t, err, sizeof(err)));
	t.fired = UINT64_MAX;
	t.missed = 3;
	t.is_requested = true;
	json_t *object = bc_trigger_json(&t);
	char *text = bc_json_print(object);
	assert_string_equal(text,
		"{\"name\":\"roi\",\"when\":\"port=e0-e3\",\"action\":\"snapshot\",\"pre\":\"5s\","
		"\"post\":\"16MB\",\"text\":\"\xc3\xa4 \\\"quoted\\\"\",\"holdoff\":\"1500ms\","
		"\"fired\":\"18446744073709551615\",\"missed\":3,\"from\":\"request\"}");
	free(text);
	json_decref(object);
	assert_true(bc_trigger_init(&t, "plain", err, sizeof(err)));
	assert_true(bc_trigger_set(&t, "when", "board", err, sizeof(err)));
	assert_true(bc_trigger_set(&t, "action", "mark", err, sizeof(err)));
	object = bc_trigger_json(&t);
	text = bc_json_print(object);
	assert_string_equal(text,
		"{\"name\":\"plain\",\"when\":\"board\",\"action\":\"mark\",\"pre\":null,"
		"\"post\":null,\"text\":\"plain\",\"holdoff\":null,\"fired\":0,\"missed\":0,"
		"\"from\":\"configuration\"}");
	free(text);
	json_decref(object);
}

TEST(names_are_plain_words)
{
	static const char *const bad[] = {
		"", "a b", "a/b", "a.b", "\xc3\xa4", "123456789012345678901234567890123"};
	struct bc_trigger t;

	for (size_t i = 0; i < COUNT_OF(bad); i++)
		assert_false(bc_trigger_init(&t, bad[i], err, sizeof(err)));
	assert_true(bc_trigger_init(&t, "12345678901234567890123456789_-2", err, sizeof(err)));
}

TEST(an_invalid_value_leaves_a_trigger_unchanged)
{
	struct bc_trigger t;
	char text[300];

	assert_true(bc_trigger_init(&t, "x", err, sizeof(err)));
	assert_true(bc_trigger_set(&t, "when", "idle 1.5", err, sizeof(err)));
	assert_string_equal(t.when, "idle 1500ms");
	assert_true(bc_trigger_set(&t, "when", "addr=1000-1fff proc=1", err, sizeof(err)));
	struct bc_trigger before = t;
	memset(text, '1', sizeof(text));
	text[257] = '\0';
	assert_false(bc_trigger_set(&t, "when", "addr=2 type=none", err, sizeof(err)));
	assert_false(bc_trigger_set(&t, "when", "idle soon", err, sizeof(err)));
	assert_false(bc_trigger_set(&t, "when", "idleness", err, sizeof(err)));
	assert_false(bc_trigger_set(&t, "when", "board gap", err, sizeof(err)));
	assert_false(bc_trigger_set(&t, "when", text, err, sizeof(err)));
	assert_false(bc_trigger_set(&t, "text", text, err, sizeof(err)));
	assert_false(bc_trigger_set(&t, "text", "\xff", err, sizeof(err)));
	assert_false(bc_trigger_set(&t, "action", "marks", err, sizeof(err)));
	assert_false(bc_trigger_set(&t, "name", "y", err, sizeof(err)));
	assert_memory_equal(&t, &before, sizeof(t));
	text[256] = '\0';
	assert_true(bc_trigger_set(&t, "text", text, err, sizeof(err)));
	assert_int_equal(strlen(bc_trigger_text(&t)), 256);
}
