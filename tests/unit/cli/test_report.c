/* A report in HTML is the page with the data in it, and no text in the data can end its element. */
#include <string.h>

#include "formats/base/json.h"
#include "tests/support/small_segment.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

#define ELEMENT "<script type=\"application/json\" id=\"report\">"
#define BEFORE  "<!DOCTYPE html>\n<title>buscap</title>\n" ELEMENT
#define AFTER   "</script>\n<p>page</p>\n"

/* In place of cli/web/page.c. */
extern const char bc_page_html[];
extern const size_t bc_page_html_bytes;
const char bc_page_html[] = BEFORE AFTER;
const size_t bc_page_html_bytes = sizeof(BEFORE AFTER) - 1;

struct fixture {
	struct temp_dir dir;
	char html[TEMP_PATH_BYTES];
	char map[TEMP_PATH_BYTES];
	struct small_segment segment;
};

static void set_up(struct fixture *f)
{
	static const char map[] = "0-ffffffff </script><b>\n";

	temp_dir_make(&f->dir);
	small_make(&f->segment, &f->dir, 0, 0);
	temp_path(&f->dir, "x.html", f->html);
	temp_write(&f->dir, "map", map, sizeof(map) - 1);
	temp_path(&f->dir, "map", f->map);
}

static void tear_down(struct fixture *f)
{
	free(f->segment.bytes);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

TEST_F(a_page_has_the_data_in_its_element)
{
	struct command_run run = command_runf(
		"report --map %s -o %s %s", f->map, f->html, f->dir.path);
	size_t bytes;

	assert_int_equal(run.code, 0);
	assert_string_equal(run.err, "");
	char *html = (char *)temp_read(&f->dir, "x.html", &bytes);
	size_t data = bytes - strlen(BEFORE AFTER);
	assert_memory_equal(html, BEFORE, strlen(BEFORE));
	assert_memory_equal(html + bytes - strlen(AFTER), AFTER, strlen(AFTER));
	assert_null(memchr(html + strlen(BEFORE), '<', data));
	json_t *report = bc_json_parse(html + strlen(BEFORE), data, 0, NULL);
	json_t *rows = json_object_get(json_object_get(report, "overview"), "rows");
	assert_true(json_array_size(rows) > 1);
	assert_string_equal(json_string_value(json_object_get(json_array_get(rows, 0), "name")),
		"</script><b>");
	json_decref(report);
	free(html);
	command_run_free(&run);
}

TEST_F(a_page_fits_in_its_size_with_the_data)
{
	struct command_run run = command_runf(
		"report --max-size 2000 -o %s %s", f->html, f->dir.path);

	assert_int_equal(run.code, 1);
	assert_non_null(strstr(run.err, "--max-size: too small for this report"));
	assert_false(temp_exists(&f->dir, "x.html"));
	command_run_free(&run);
}

TEST_F(any_truncated_segment_can_be_drawn)
{
	for (size_t left = 0; left < f->segment.size; left += test_stride(305)) {
		temp_write(&f->dir, f->segment.name, f->segment.bytes, left);
		char path[TEMP_PATH_BYTES];
		static const char *const kinds[] = {"x.html", "x.json"};
		for (size_t i = 0; i < COUNT_OF(kinds); i++) {
			struct command_run run = command_runf(
				"report -o %s %s", temp_path(&f->dir, kinds[i], path), f->dir.path);
			assert_true(run.code == 0 || run.code == 1 || run.code == 3);
			command_run_free(&run);
		}
	}
}
