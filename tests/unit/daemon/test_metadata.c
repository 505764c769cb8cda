#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/recording_info.h"
#include "formats/base/json.h"
#include "formats/segment/segment_header.h"
#include "tests/support/test.h"

TEST_THREADS;

struct fixture {
	char out[BC_METADATA_MAX];
	char err[256];
};

TEST_FIXTURE(fixture, NOTHING, NOTHING)

static bool read_it(struct fixture *f, const char *text)
{
	f->err[0] = '\0';
	return bc_metadata_read(f->out, text, f->err, sizeof(f->err));
}

static void assert_refused(struct fixture *f, const char *text, const char *words)
{
	strcpy(f->out, "as it was");
	assert_false(read_it(f, text));
	assert_string_equal(f->out, "as it was");
	if (strstr(f->err, words) == NULL)
		fail_msg("%s: %s", text, f->err);
}

TEST_F(an_object_of_strings_is_stored_without_blanks)
{
	assert_true(read_it(f, " { \"who\" : \"me\" , \"run.2_a-B\" : \"\\u00e9\\n\" } "));
	assert_string_equal(f->out, "{\"who\":\"me\",\"run.2_a-B\":\"\xc3\xa9\\n\"}");
	assert_true(read_it(f, "{}"));
	assert_string_equal(f->out, "");
	assert_true(read_it(f, "{\"a\":\"1\",\"b\":\"2\",\"a\":\"3\"}"));
	assert_string_equal(f->out, "{\"a\":\"3\",\"b\":\"2\"}");
	strcpy(f->out, "{\"a\": \"1\"}");
	assert_true(bc_metadata_read(f->out, f->out, f->err, sizeof(f->err)));
	assert_string_equal(f->out, "{\"a\":\"1\"}");
}

TEST_F(anything_but_an_object_of_strings_is_refused)
{
	static const char *const bad[] = {"", "x", "null", "[]", "[\"a\"]", "\"a\"", "1", "{",
		"{}x", "{\"a\":\"b\"", "{\"a\"}", "{a:\"b\"}", "{\"a\":\"x\\u0000y\"}"};
	static const char *const not_strings[] = {"1", "null", "true", "[]", "{}", "[\"b\"]"};
	char text[64];

	for (size_t i = 0; i < COUNT_OF(bad); i++)
		assert_refused(f, bad[i], "a JSON object of strings");
	for (size_t i = 0; i < COUNT_OF(not_strings); i++) {
		snprintf(text, sizeof(text), "{\"a\":%s}", not_strings[i]);
		assert_refused(f, text, "metadata a: the value is not a string");
	}
	assert_true(read_it(f, "{\"a\":\"x\\\\u0000y\"}")); /* a backslash, then letters */
}

TEST_F(every_other_character_in_a_key_is_refused)
{
	static const char good[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	for (unsigned c = 1; c < 256; c++) {
		const char key[] = {'k', (char)c, '\0'};
		assert_int_equal(bc_word_is_valid(key), strchr(good, (int)c) != NULL);
	}
	assert_refused(f, "{\"\":\"b\"}", "a metadata key");
	assert_refused(f, "{\"a b\":\"b\"}", "a metadata key");
	assert_refused(f, "{\"a\\u00e9\":\"b\"}", "a metadata key");
}

/* Makes {"KKK":"VVV"} with the given lengths. */
static char *make(char *out, size_t key, size_t value)
{
	char *p = out;

	p = stpcpy(p, "{\"");
	p = (char *)memset(p, 'k', key) + key;
	p = stpcpy(p, "\":\"");
	p = (char *)memset(p, 'v', value) + value;
	strcpy(p, "\"}");
	return out;
}

TEST_F(keys_values_and_the_whole_have_limits)
{
	char text[8192];

	assert_true(read_it(f, make(text, BC_WORD_MAX, BC_METADATA_VALUE_MAX)));
	assert_string_equal(f->out, text);
	assert_refused(f, make(text, BC_WORD_MAX + 1, 1), "1 to 64");
	assert_refused(f, make(text, 1, BC_METADATA_VALUE_MAX + 1), "the value has 1025");
	for (size_t last = 900; last <= 1024; last++) {
		char *p = text;
		for (char key = 'a'; key < 'd'; key++) {
			p += sprintf(p, "%s\"%c\":\"", p == text ? "{" : ",", key);
			p = (char *)memset(p, 'v', 1000) + 1000;
			p = stpcpy(p, "\"");
		}
		p = stpcpy(p, ",\"d\":\"");
		p = (char *)memset(p, 'v', last) + last;
		strcpy(p, "\"}");
		if (strlen(text) < BC_METADATA_MAX) {
			assert_true(read_it(f, text));
			assert_string_equal(f->out, text);
		} else {
			assert_refused(f, text, "longer than 4095 bytes");
		}
	}
}

TEST_F(a_value_that_is_not_utf8_is_refused)
{
	static const char *const bad[] = {"\x80", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80",
		"\xc3", "\xe2\x82", "a\xffz"};
	char text[64];

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		snprintf(text, sizeof(text), "{\"a\":\"%s\"}", bad[i]);
		assert_refused(f, text, "a JSON object of strings");
		strcpy(f->out, "");
		assert_false(bc_metadata_set(f->out, "a", bad[i], f->err, sizeof(f->err)));
		assert_string_equal(f->err, "metadata a: the value is not UTF-8");
	}
}

static void assert_merged(struct fixture *f, const char *all, const char *more, const char *wanted)
{
	strcpy(f->out, all);
	assert_true(bc_metadata_merge(f->out, more, f->err, sizeof(f->err)));
	assert_string_equal(f->out, wanted);
}

TEST_F(merging_replaces_members_in_place_and_keeps_the_others)
{
	assert_merged(f, "", "", "");
	assert_merged(f, "", "{\"a\":\"1\"}", "{\"a\":\"1\"}");
	assert_merged(f, "{\"a\":\"1\"}", "", "{\"a\":\"1\"}");
	assert_merged(f, "{\"a\":\"1\",\"b\":\"2\"}", "{\"a\":\"3\",\"c\":\"4\"}",
		"{\"a\":\"3\",\"b\":\"2\",\"c\":\"4\"}");
	assert_merged(f, "{\"a\":\"1\"}", "{\"A\":\"2\"}", "{\"a\":\"1\",\"A\":\"2\"}");
	/* Members of other types are unchanged. */
	assert_merged(f, "{\"n\":[1,2],\"cut from\":null}", "{\"a\":\"1\"}",
		"{\"n\":[1,2],\"cut from\":null,\"a\":\"1\"}");
}

TEST_F(merging_beyond_the_limit_changes_nothing)
{
	char before[BC_METADATA_MAX];
	char text[2048];

	f->out[0] = '\0';
	for (char key = 'a'; key < 'd'; key++) {
		make(text, 1, 1000);
		text[2] = key;
		assert_true(bc_metadata_merge(f->out, text, f->err, sizeof(f->err)));
	}
	memcpy(before, f->out, sizeof(before));
	make(text, 2, 1100);
	assert_false(bc_metadata_merge(f->out, text, f->err, sizeof(f->err)));
	assert_string_equal(f->out, before);
	assert_non_null(strstr(f->err, "longer than 4095"));
	assert_false(bc_metadata_merge(f->out, "[]", f->err, sizeof(f->err)));
	assert_string_equal(f->out, before);
}

/* Recordings */

TEST_F(a_note_is_in_later_headers)
{
	struct bc_recording_info recording;
	struct bc_segment_header header;

	bc_recording_info_init(&recording);
	strcpy(recording.header.recording, "r");
	strcpy(recording.header.metadata, "{\"who\":\"me\"}");
	assert_true(bc_recording_info_note(
		&recording, "{ \"run\": \"7\" }", f->out, f->err, sizeof(f->err)));
	assert_string_equal(f->out, "{\"run\":\"7\"}");
	bc_recording_info_header(&recording, &header);
	assert_string_equal(header.recording, "r");
	assert_string_equal(header.metadata, "{\"who\":\"me\",\"run\":\"7\"}");
	assert_false(
		bc_recording_info_note(&recording, "{\"run\":7}", f->out, f->err, sizeof(f->err)));
	bc_recording_info_header(&recording, &header);
	assert_string_equal(header.metadata, "{\"who\":\"me\",\"run\":\"7\"}");
	bc_recording_info_destroy(&recording);
}

static char torn[] = "half a note";
static char mixed[] = "of two notes";

static void *read_headers(void *context)
{
	const struct bc_recording_info *recording = context;
	struct bc_segment_header header;
	char key[2];

	for (int i = 0; i < 20000; i++) {
		bc_recording_info_header(recording, &header);
		json_t *object = json_loads(header.metadata, 0, NULL);
		/* Valid, and both members come from the same note. */
		if (!json_is_object(object))
			return torn;
		bc_json_member_text(object, "a", key, sizeof(key));
		const char *b = json_string_value(json_object_get(object, "b"));
		if (b == NULL || b[0] != key[0])
			return mixed;
		json_decref(object);
	}
	return NULL;
}

TEST_F(the_writer_never_sees_a_partial_note)
{
	struct bc_recording_info recording;
	pthread_t thread;
	void *wrong;

	bc_recording_info_init(&recording);
	strcpy(recording.header.metadata, "{\"a\":\"x\",\"b\":\"x\"}");
	assert_int_equal(pthread_create(&thread, NULL, read_headers, &recording), 0);
	for (int i = 0; i < 5000; i++) {
		char text[512];
		int n = i % 300 + 1;
		char c = (char)('a' + i % 26);
		sprintf(text, "{\"a\":\"%c\",\"b\":\"", c);
		size_t at = strlen(text);
		memset(text + at, c, (size_t)n);
		strcpy(text + at + n, "\"}");
		assert_true(
			bc_recording_info_note(&recording, text, f->out, f->err, sizeof(f->err)));
	}
	pthread_join(thread, &wrong);
	if (wrong != NULL)
		fail_msg("%s", (const char *)wrong);
	bc_recording_info_destroy(&recording);
}
