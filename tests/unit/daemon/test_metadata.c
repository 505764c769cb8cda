#include <pthread.h>
#include <stdio.h>
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
	assert_refused(f, make(text, 1, BC_METADATA_VALUE_MAX + 1),
		"metadata.k: too long; the limit is 1024 bytes");
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
		assert_string_equal(f->err, "must be UTF-8");
	}
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
