#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/json.h"
#include "tests/support/test.h"

static void assert_printed(json_t *value, const char *expected)
{
	char *text = bc_json_print(value);
	char *line = bc_json_print_line(value);

	assert_non_null(text);
	assert_string_equal(text, expected);
	assert_non_null(line);
	assert_memory_equal(line, text, strlen(text));
	assert_string_equal(line + strlen(text), "\n");
	free(line);
	free(text);
	json_decref(value);
}

TEST(text_of_any_bytes_becomes_utf8)
{
	assert_printed(bc_json_text("\xC3\xA9\""), "\"\xC3\xA9\\\"\"");
	assert_printed(bc_json_text("/x\xFF\n"), "\"/x\xC3\xBF\\n\"");
	assert_printed(bc_json_text(""), "\"\"");
	assert_printed(bc_json_text(NULL), "null");
}

TEST(control_escapes_are_lower_case_and_backslashes_stay)
{
	assert_printed(bc_json_text("\x1F\x0B\\\\u001F\\\x1A"),
		"\"\\u001f\\u000b\\\\\\\\u001F\\\\\\u001a\"");
}

TEST(numbers_above_int64_are_strings_of_digits)
{
	assert_printed(bc_json_u64(0), "0");
	assert_printed(bc_json_u64(INT64_MAX), "9223372036854775807");
	assert_printed(bc_json_u64(UINT64_C(1) << 63), "\"9223372036854775808\"");
	assert_printed(bc_json_u64(UINT64_MAX), "\"18446744073709551615\"");
}

TEST(whole_doubles_have_no_fraction)
{
	assert_printed(bc_json_double(0), "0");
	assert_printed(bc_json_double(-2), "-2");
	assert_printed(bc_json_double(0.1), "0.1");
	assert_printed(bc_json_double(305.4), "305.4");
	assert_printed(bc_json_double(0x1p53), "9007199254740992");
	assert_printed(bc_json_double(INFINITY), "null");
	assert_printed(bc_json_double(NAN), "null");
}

TEST(an_exact_text_has_as_many_digits_as_its_numbers_need)
{
	static const char *const texts[] = {
		"[0.1,3.3]", "[0.30000000000000004]", "1e-320", "9007199254740993", "\"\\u001b\""};

	assert_printed(bc_json_double(0.1 + 0.2), "0.3");
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		json_t *json = bc_json_parse(texts[i], strlen(texts[i]), JSON_DECODE_ANY, NULL);
		char *text = bc_json_print_exact(json);
		json_t *read = bc_json_parse(text, strlen(text), JSON_DECODE_ANY, NULL);
		assert_int_equal(json_equal(json, read), 1);
		if (strstr(texts[i], "e-") == NULL)
			assert_string_equal(text, texts[i]);
		json_decref(read);
		json_decref(json);
		free(text);
	}
	assert_null(bc_json_print_exact(NULL));
}

TEST(members_are_printed_in_insertion_order)
{
	json_t *object = json_pack("{s:o, s:b, s:[i]}", "z", bc_json_text("1"), "a", 1, "m", 5);

	json_object_set_new(object, "b", json_null());
	json_object_set_new(object, "z", json_integer(2));
	assert_printed(object, "{\"z\":2,\"a\":true,\"m\":[5],\"b\":null}");
	assert_null(bc_json_print(NULL));
}

TEST(an_object_is_made_completely_or_not_at_all)
{
	assert_printed(
		BC_JSON_OBJECT({"b", bc_json_text_or_null("")}, {"a", bc_json_text_or_null("x")}),
		"{\"b\":null,\"a\":\"x\"}");
	assert_printed(bc_json_object((struct bc_json_member[]){{NULL, NULL}}), "{}");
	assert_null(BC_JSON_OBJECT({"a", bc_json_u64(1)}, {"b", NULL}, {"c", bc_json_u64(2)}));
}

TEST(an_array_is_complete_or_null)
{
	json_t *array = bc_json_append(json_array(), bc_json_u64_or_null(true, UINT64_MAX));

	array = bc_json_append(array, bc_json_u64_or_null(false, 1));
	array = bc_json_append(array, bc_json_u64_or_null(true, 1));
	assert_printed(array, "[\"18446744073709551615\",null,1]");
	array = bc_json_append(json_array(), NULL);
	assert_null(array);
	assert_null(bc_json_append(array, bc_json_u64(1)));
}

TEST(members_of_other_types_are_empty)
{
	json_t *object = json_loads(
		"{\"text\":\"abc\",\"number\":9223372036854775807,\"real\":2.75,\"much\":1e300,"
		"\"minus\":-1,\"none\":null}",
		0, NULL);
	char out[3];

	bc_json_member_text(object, "text", out, sizeof(out));
	assert_string_equal(out, "ab");
	bc_json_member_text(object, "number", out, sizeof(out));
	assert_string_equal(out, "");
	bc_json_member_text(NULL, "text", out, sizeof(out));
	assert_string_equal(out, "");
	assert_true(bc_json_member_u64(object, "number") == INT64_MAX);
	assert_true(bc_json_member_u64(object, "real") == 2);
	assert_true(bc_json_member_u64(object, "much") == UINT64_C(1) << 53);
	assert_true(bc_json_member_u64(object, "minus") == 0);
	assert_true(bc_json_member_u64(object, "text") == 0);
	assert_true(bc_json_member_u64(object, "none") == 0);
	assert_true(bc_json_member_u64(NULL, "number") == 0);
	json_decref(object);
}
