#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/live/top_grid.h"
#include "cli/live/top_page.h"
#include "cli/live/top_state.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define SECOND_NS UINT64_C(1000000000)
#define WIDTHS    250u
#define HEIGHTS   80u

struct fixture {
	struct bc_top_state *state;
	struct bc_top_now now;
	struct bc_top_view view;
};

static void set_up(struct fixture *f)
{
	setlocale(LC_CTYPE, "C.UTF-8");
	f->state = test_alloc(sizeof(*f->state));
	f->now = (struct bc_top_now){.ns = 5000 * SECOND_NS, .wall = 1795000000};
	f->view = (struct bc_top_view){
		.width = 80, .height = 24, .is_utf8 = true, .is_screen = true};
}

static void tear_down(struct fixture *f)
{
	bc_top_state_free(f->state);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static json_t *parse(const char *text)
{
	json_t *object = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

	assert_non_null(object);
	return object;
}

static json_t *parse_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

static json_t *parse_format(const char *format, ...)
{
	char *text;
	va_list args;

	va_start(args, format);
	assert_true(vasprintf(&text, format, args) >= 0);
	va_end(args);
	json_t *object = parse(text);
	free(text);
	return object;
}

/* A status with something in every line of the page. */
static json_t *full_status(unsigned second, unsigned rate, unsigned lost)
{
	return parse_format(
		"{\"version\":\"0.1.0\",\"state\":\"recording\",\"mode\":\"flight\",\"uptime_"
		"seconds\":%"
		"u,"
		"\"clients\":12,\"triggers\":3,"
		"\"sealed\":{\"segments\":17,\"commands_waiting\":19,\"commands_failed\":23},"
		"\"source\":{\"kind\":\"usb\",\"name\":\"usb:serial=42\",\"clock_hz\":66666666,"
		"\"board\":{\"state\":\"streaming\",\"id\":\"1209:0001\",\"serial\":\"BC-00427\","
		"\"product\":\"Capture board 3000\",\"speed\":\"high\",\"info\":{\"firmware\":"
		"\"1.4.2\"},"
		"\"plugs\":3,\"unplugs\":2,\"stalls\":4,\"overflows\":5,\"last_error\":"
		"\"transfer of 65536 bytes failed\"}},"
		"\"recording\":{\"id\":\"20261120T194302Z-ab12cd\",\"label\":\"night 77\","
		"\"started\":\"2026-11-18T10:00:00Z\",\"segment\":31,\"path\":"
		"\"/var/lib/buscapd/20261120T194302Z-ab12cd-00031.byu.lz4.partial\","
		"\"records\":1234567890,\"bytes\":9876543210},"
		"\"flight\":{\"seconds\":12.5,\"limit_seconds\":30,\"bytes\":456000000,"
		"\"limit_bytes\":789000000},"
		"\"counts\":{\"received\":%u,\"written\":1,\"durable\":1,\"in_flight\":0,"
		"\"lost\":{\"buffer\":%u,\"disk\":345678,\"board\":777888},"
		"\"dropped\":{\"invalid\":111222,\"filtered\":"
		"333444,\"idle\":555666},\"skipped_bytes\":999111,"
		"\"gaps\":2468},"
		"\"rates\":{\"samples_per_second\":%u,\"record_bytes_per_second\":%u,\"written_"
		"bytes_per_second\":%u},"
		"\"buffer\":{\"chunks\":64,\"free_chunks\":%u,\"min_free_chunks\":11,\"time_left_"
		"seconds\":4.1},"
		"\"disk\":{\"free_bytes\":812345678901,\"time_left_seconds\":38160,"
		"\"last_error\":\"write: error 28\"}}",
		1000 + second, 1000000 * second, 123456 + lost, rate, rate * 12, rate * 4,
		63 - second % 10);
}

static json_t *full_mix(unsigned second)
{
	char pages[4096];
	size_t used = 0;

	for (unsigned i = 0; i < 32; i++)
		used += (size_t)snprintf(pages + used, sizeof(pages) - used,
			"%s{\"addr\":\"0x%08x\",\"requests\":%u,\"max_error\":%u}",
			i != 0 ? "," : "", (i * 2654435761u) & ~0xFFFu, 100000 / (i + 2),
			i < 20 ? 0 : 1000);
	unsigned n = second * 1000;
	return parse_format(
		"{\"sampled_records\":%u,\"records\":%u,\"types\":{\"FETCH\":%u,\"MEMREAD\":%u,"
		"\"CNTRLAGNTRES\":%u,\"0xf2\":1,\"IOWRITE\":%u,\"INTA\":%u,\"HALT\":%u},"
		"\"procs\":{\"0\":%u,\"1\":%u,\"10\":%u,\"255\":%u,\"2\":%u},"
		"\"memory_requests\":400000,\"pages\":[%s]}",
		n, 16 * n, n / 2, n / 4, n / 8, n / 16, n / 32, n / 64, n / 2, n / 4, n / 8, n / 16,
		n / 32, pages);
}

static void add_status(struct fixture *f, json_t *status, json_t *mix)
{
	assert_true(bc_top_state_add_status(f->state, status, &f->now));
	bc_top_state_add_mix(f->state, mix, &f->now);
	json_decref(status);
	json_decref(mix);
}

static void run_15_minutes(struct fixture *f)
{
	static struct bc_top_state *after;
	static struct bc_top_now after_now;

	for (unsigned second = 1; after == NULL && second <= 900; second++) {
		f->now.ns += SECOND_NS;
		f->now.wall++;
		add_status(f, full_status(second, 4000000 + second % 50 * 20000, second / 400 * 10),
			full_mix(second));
	}
	/* The first test that needs it makes it for all. */
	if (after == NULL) {
		after = bc_top_state_copy(f->state);
		after_now = f->now;
	}
	bc_top_state_free(f->state);
	f->state = bc_top_state_copy(after);
	f->now = after_now;
}

static char *page_text(struct fixture *f)
{
	struct bc_top_grid grid;
	char line[BC_TOP_LINE_BYTES];
	char *text = malloc((size_t)f->view.height * (4 * f->view.width + 1) + 1);
	size_t used = 0;

	assert_non_null(text);
	assert_int_equal(bc_top_page_draw(&grid, f->state, &f->view, &f->now), 0);
	assert_int_equal(grid.width, f->view.width);
	assert_int_equal(grid.height, f->view.height);
	for (unsigned y = 0; y < grid.height; y++) {
		size_t bytes = bc_top_grid_line(&grid, y, line);
		memcpy(text + used, line, bytes);
		text[used + bytes] = '\n';
		used += bytes + 1;
	}
	text[used] = '\0';
	bc_top_grid_close(&grid);
	return text;
}

static void check_has(struct fixture *f, const char *wanted)
{
	char *text = page_text(f);

	if (strstr(text, wanted) == NULL)
		fail_msg("\"%s\" is missing from\n%s", wanted, text);
	free(text);
}

static void check_lacks(struct fixture *f, const char *unwanted)
{
	char *text = page_text(f);

	if (strstr(text, unwanted) != NULL)
		fail_msg("\"%s\" must not be in\n%s", unwanted, text);
	free(text);
}

/* ---- the layout */

/* Draws pages of each width and each height, and of one in `step` pairs of them. */
static void check_each_size(struct fixture *f, unsigned step)
{
	char line[BC_TOP_LINE_BYTES];
	unsigned seen = 0;

	step = test_stride(step);
	for (f->view.width = 1; f->view.width <= WIDTHS; f->view.width++) {
		for (f->view.height = 1 + f->view.width % step; f->view.height <= HEIGHTS;
			f->view.height += step) {
			struct bc_top_grid grid;
			assert_int_equal(bc_top_page_draw(&grid, f->state, &f->view, &f->now), 0);
			assert_int_equal(grid.width, f->view.width);
			assert_int_equal(grid.height, f->view.height);
			for (unsigned y = 0; y < grid.height; y++) {
				size_t bytes = bc_top_grid_line(&grid, y, line);
				assert_int_equal(bytes, strlen(line));
				assert_true(bc_top_columns(&grid, line) <= f->view.width);
				assert_null(strpbrk(line, "\n\r\t\033"));
				seen += bytes != 0;
			}
			bc_top_grid_close(&grid);
		}
	}
	assert_true(seen > WIDTHS * HEIGHTS / step);
}

TEST_F(pages_never_exceed_their_size)
{
	check_each_size(f, 77); /* no status */
	run_15_minutes(f);
	check_each_size(f, 55);
	f->view.is_utf8 = false;
	check_each_size(f, 77);
	f->view.is_help = true;
	check_each_size(f, 77);
	f->view.is_help = false;
	f->view.is_utf8 = true;
	f->view.is_screen = false;
	check_each_size(f, 77);
	bc_top_state_set_unreachable(f->state, "no such socket");
	f->view.is_screen = true;
	f->view.is_paused = true;
	f->now.ns += 100 * SECOND_NS;
	check_each_size(f, 77);
}

TEST_F(the_most_important_lines_are_shown_first)
{
	run_15_minutes(f);
	f->view.height = 1;
	check_has(f, "recording");
	f->view.height = 2;
	check_has(f, "samples/s      4.00 M");
	f->view.height = 3;
	check_has(f, "lost       1,247,042 samples");
	f->view.height = 4;
	check_has(f, "10.6 hours left");
	check_lacks(f, "buffer  ");
	f->view.height = 6;
	check_has(f, "buffer     2 % in use, max 83 %, room for 4.1 s");
	check_has(f, "q quit");
}

/* ---- contents */

TEST_F(a_screen_of_80_by_28_shows_everything)
{
	static const char *const wanted[] = {"buscap top  recording", "usb, clock 66.7 MHz",
		"streaming, 1209:0001 BC-00427", "20261120T194302Z-ab12cd", "1.23 G records",
		"9.88 GB", "segment 31", "write: error 28", "10.6 hours left", "samples/s",
		"records/s", "to disk/s", "buffered", "lost/s", "FETCH", "0x00000000",
		"and 26 more"};

	run_15_minutes(f);
	f->view.height = 28;
	for (size_t i = 0; i < COUNT_OF(wanted); i++)
		check_has(f, wanted[i]);
}

TEST_F(a_full_disk_is_stated_first_with_its_reason_in_80_columns)
{
	f->view.width = 80;
	f->view.height = 24;
	add_status(f,
		parse("{\"state\":\"recording\",\"disk\":{\"free_bytes\":0,\"stuck\":true,"
		      "\"time_left_seconds\":0,\"last_error\":\"/var/lib/buscapd/"
		      "20261120T194302Z-ab12cd-00031.byu.lz4: can't write: No space left on "
		      "device\",\"last_error_cause\":\"can't write: No space left on device\"}}"),
		NULL);
	check_has(f, "buscap top  recording, disk stuck");
	check_has(f, "disk       stuck: can't write: No space left on device, 0 B free");
}

TEST_F(tables_cover_the_last_ten_seconds)
{
	run_15_minutes(f);
	f->view.height = 60;
	f->view.width = 120;
	check_has(f, "on the bus, last 10 s, from one record in 16");
	check_has(f, "FETCH          8.00 k  50.0 %");
	check_has(f, "CNTRLAGNTRES   2.00 k  12.5 %");
	check_lacks(f, "0xf2"); /* earlier */
	check_has(f, "255         1.00 k   6.2 %");
}

TEST_F(tables_are_sorted_by_share_or_by_name)
{
	run_15_minutes(f);
	f->view.height = 60;
	char *text = page_text(f);
	assert_true(strstr(text, "\nFETCH") < strstr(text, "\nCNTRL"));
	assert_true(strstr(text, "  10  ") < strstr(text, "  255  "));
	assert_true(strstr(text, "  10  ") < strstr(text, "   2     "));
	free(text);
	f->view.is_by_name = true;
	text = page_text(f);
	assert_true(strstr(text, "\nFETCH") > strstr(text, "\nCNTRL"));
	assert_true(strstr(text, "   2     ") < strstr(text, "  10  "));
	const char *before = NULL;
	for (const char *p = text; (p = strstr(p, "0x")) != NULL; p++) {
		assert_true(before == NULL || memcmp(before, p, 10) < 0);
		before = p;
	}
	free(text);
}

TEST_F(an_idle_bus_shows_earlier_records)
{
	run_15_minutes(f);
	for (unsigned i = 0; i < 12; i++) {
		f->now.ns += SECOND_NS;
		add_status(f, full_status(901 + i, 0, 20), full_mix(900));
	}
	f->view.height = 60;
	check_has(f, "on the bus since the daemon started, from one record in 16");
	check_has(f, "0xf2");
	check_has(f, "<0.1 %");
}

static const struct bc_top_second *second_ago(const struct fixture *f, unsigned age)
{
	return bc_top_state_second(f->state, f->now.ns / SECOND_NS - age);
}

TEST_F(the_history_fills_the_seconds_that_are_not_known)
{
	json_t *history = parse(
		"{\"seconds\":{\"received_samples\":[70,null,80,90],\"lost_samples\":[5,null,6,0],"
		"\"record_bytes\":[120,null,240,360],\"written_bytes\":[7,null,8,9],"
		"\"used_chunks\":[16,null,32,64]}}");

	add_status(f, full_status(1, 4000000, 0), NULL);
	f->now.ns += SECOND_NS;
	add_status(f, full_status(2, 4000000, 0), NULL);
	bc_top_state_add_history(f->state, history, &f->now);
	assert_true(second_ago(f, 0)->values[BC_TOP_SAMPLES] == 4000000);
	assert_true(second_ago(f, 1)->values[BC_TOP_SAMPLES] == 4000000);
	assert_true(second_ago(f, 2)->values[BC_TOP_SAMPLES] == 80);
	assert_true(second_ago(f, 2)->values[BC_TOP_RECORDS] == 20);
	assert_true(second_ago(f, 2)->values[BC_TOP_BYTES_OUT] == 8);
	assert_true(second_ago(f, 2)->values[BC_TOP_BUFFER] == 0.5);
	assert_null(second_ago(f, 3));
	assert_true(second_ago(f, 4)->values[BC_TOP_SAMPLES] == 70);
	assert_true(second_ago(f, 4)->values[BC_TOP_LOST] == 5);
	assert_null(second_ago(f, 5));
	check_has(f, "last 2 s ago");
	json_decref(history);
}

/* Of a new machine, of another version of the daemon, of a longer time than is kept. */
TEST_F(a_history_of_any_length_is_safe)
{
	json_t *list = json_array();
	json_t *history = json_pack("{s:{s:O}}", "seconds", "received_samples", list);

	add_status(f, full_status(1, 4000000, 0), NULL);
	for (unsigned n = 0; n < 3600; n++)
		json_array_append_new(list, json_integer(7));
	bc_top_state_add_history(f->state, history, &f->now);
	assert_null(second_ago(f, 1)); /* the other lists are missing */
	assert_non_null(second_ago(f, 0));
	for (unsigned i = 0; i < 4; i++)
		json_object_set(json_object_get(history, "seconds"),
			((const char *[]){
				"lost_samples", "record_bytes", "written_bytes", "used_chunks"})[i],
			list);
	bc_top_state_add_history(f->state, history, &f->now);
	for (unsigned age = 1; age < BC_TOP_SECONDS; age++)
		assert_true(second_ago(f, age)->values[BC_TOP_LOST] == 7);
	assert_true(second_ago(f, 0)->values[BC_TOP_SAMPLES] == 4000000);
	bc_top_state_add_history(f->state, NULL, &f->now);
	f->now.ns = SECOND_NS / 2;
	bc_top_state_add_history(f->state, history, &f->now);
	json_decref(list);
	json_decref(history);
}

TEST_F(losses_are_shown_as_they_occur)
{
	f->view.height = 40;
	add_status(f,
		parse("{\"state\":\"recording\",\"counts\":{\"received\":1},\"uptime_seconds\":1}"),
		NULL);
	check_has(f, "lost       none\n");
	f->now.ns += SECOND_NS;
	add_status(f,
		parse("{\"state\":\"recording\",\"counts\":{\"received\":1,\"gaps\":1,\"inexact_"
		      "gaps\":1},"
		      "\"uptime_seconds\":2}"),
		NULL);
	check_has(f, "lost       unknown number of samples, 1 gap\n");
	f->now.ns += SECOND_NS;
	add_status(f,
		parse("{\"state\":\"recording\",\"counts\":{\"received\":1,\"gaps\":2,"
		      "\"lost\":{\"buffer\":1}},\"uptime_seconds\":3}"),
		NULL);
	check_has(f, "lost       1 sample, last 0 s ago, 2 gaps, buffer 1\n");
	check_has(f, "lost/s              1");
	f->now.ns += 65 * SECOND_NS;
	check_has(f, "last 1 min 5 s ago");
	/* The daemon restarts: its losses are not those of this second. */
	add_status(f,
		parse("{\"state\":\"idle\",\"counts\":{\"received\":0,\"lost\":{\"disk\":5}},"
		      "\"uptime_seconds\":1}"),
		NULL);
	check_has(f, "lost       5 samples, disk 5\n");
	check_has(f, "lost/s              0");
}

TEST_F(an_unreachable_daemon_is_shown_with_the_time)
{
	run_15_minutes(f);
	bc_top_state_set_unreachable(f->state, "connection refused");
	f->now.ns += 23 * SECOND_NS;
	check_has(f, "no daemon");
	check_has(f, "(23 s), reconnecting\nconnection refused\n");
	check_has(f, "4.00 M"); /* as it was */
	f->view.height = 10;
	check_has(f, "(23 s), reconnecting, connection refused\n");
	add_status(f, full_status(1000, 7000000, 10), full_mix(1000));
	check_lacks(f, "no daemon");
	check_has(f, "7.00 M");
}

TEST_F(texts_from_the_daemon_cannot_break_the_layout)
{
	add_status(f,
		parse("{\"state\":\"recording\\u001b[2J\",\"counts\":{},\"source\":{\"kind\":"
		      "\"a\\nb\","
		      "\"name\":\"\\u4e2d\\u6587\\u202e\\u0301\",\"clock_hz\":1e300},"
		      "\"uptime_seconds\":1e308,"
		      "\"recording\":{\"id\":\"\\t\\u0000x\",\"bytes\":-5}}"),
		parse("{\"sampled_records\":2,\"records\":1e308,\"memory_requests\":1,\"types\":{"
		      "\"\\u001b]0;x\":1e300,"
		      "\"y\":-1},\"procs\":[],\"pages\":[{},{\"addr\":5},{\"addr\":\"zz\"}]}"));
	check_each_size(f, 77);
	f->view.height = 40;
	check_has(f, "recording\\x1b[2J");
	check_has(f, "a\\x0ab");
	check_has(f, "\u4e2d\u6587");
	f->view.is_utf8 = false;
	check_has(f, ", ??\\xe2\\x80\\xae?");
	check_each_size(f, 77);
}

/* All members but the state may be missing or of another type. */
TEST_F(a_status_with_any_member_missing_is_shown)
{
	json_t *whole = full_status(5, 10, 0);
	const char *key;
	json_t *item;
	static const char *const others[] = {"null", "5", "\"x\"", "[]", "{}", "true", "-1e308"};

	json_object_foreach(whole, key, item)
	{
		for (unsigned i = 0; i < COUNT_OF(others) + 1; i++) {
			json_t *part = json_copy(whole);
			json_object_del(part, key);
			if (i != 0)
				assert_int_equal(
					json_object_set_new(part, key, parse(others[i - 1])), 0);
			bool is_status = bc_top_state_add_status(f->state, part, &f->now);
			bool is_needed = strcmp(key, "state") == 0 || strcmp(key, "counts") == 0;
			assert_true(is_status || is_needed);
			free(page_text(f));
			json_decref(part);
		}
	}
	json_decref(whole);
	assert_false(bc_top_state_add_status(f->state, NULL, &f->now));
	json_t *none = parse("[1]");
	assert_false(bc_top_state_add_status(f->state, none, &f->now));
	json_decref(none);
}

/* ---- the graphs */

static void graph_line(struct fixture *f, enum bc_top_series line, unsigned width, double *highest,
	char out[BC_TOP_LINE_BYTES])
{
	struct bc_top_grid grid;

	assert_int_equal(bc_top_grid_open(&grid, width, 1, f->view.is_utf8), 0);
	*highest = bc_top_graph_draw(
		&grid, 0, 0, width, 1, BC_TOP_GRAPH, f->state, line, f->now.ns / SECOND_NS);
	bc_top_grid_line(&grid, 0, out);
	bc_top_grid_close(&grid);
}

static void add_rate(struct fixture *f, double rate, unsigned lost)
{
	f->now.ns += SECOND_NS;
	add_status(f,
		parse_format("{\"state\":\"recording\",\"uptime_seconds\":%u,\"counts\":{\"lost\":"
			     "{\"buffer\":%u}},\"rates\":{\"samples_per_second\":%f}}",
			(unsigned)(f->now.ns / SECOND_NS), lost, rate),
		NULL);
}

TEST_F(rates_that_are_not_measured_yet_are_unknown)
{
	f->now.ns += SECOND_NS;
	add_status(f,
		parse_format("{\"state\":\"recording\",\"uptime_seconds\":0.1,\"counts\":{},"
			     "\"rates\":{\"samples_per_second\":null},"
			     "\"disk\":{\"free_bytes\":null}}"),
		NULL);
	assert_null(second_ago(f, 0));
	f->view.width = 100;
	f->view.height = 40;
	check_has(f, "samples/s     unknown");
	check_has(f, "disk       free space unknown");
}

TEST_F(each_second_is_a_column_of_the_graph)
{
	char line[BC_TOP_LINE_BYTES];
	char wanted[BC_TOP_LINE_BYTES] = "";
	double highest;

	for (unsigned i = 0; i <= 8; i++)
		add_rate(f, i, 0);
	for (unsigned i = 0; i < 240 - 9; i++)
		strcat(wanted, " ");
	strcat(wanted, "▁▂▂▃▄▅▆▇█");
	graph_line(f, BC_TOP_SAMPLES, 240, &highest, line);
	assert_string_equal(line, wanted);
	assert_true(highest == 8);
	f->view.is_utf8 = false;
	graph_line(f, BC_TOP_SAMPLES, 240, &highest, line);
	assert_string_equal(line + 231, "_..,-=+*#");
}

TEST_F(one_lost_sample_is_visible_in_the_graph)
{
	char line[BC_TOP_LINE_BYTES];
	double highest;

	add_rate(f, 1, 0);
	add_rate(f, 1, 1);
	for (unsigned i = 0; i < 100; i++)
		add_rate(f, 1, 1);
	add_rate(f, 1, 1000001);
	for (unsigned i = 0; i < 100; i++)
		add_rate(f, 1, 1000001);
	f->view.is_utf8 = false;
	graph_line(f, BC_TOP_LOST, 60, &highest, line);
	assert_true(highest == 1000000);
	assert_non_null(strchr(line, '.'));
	assert_non_null(strchr(line, '#'));
}

/* A status can be late, missing, or the second one in a second. */
TEST_F(seconds_without_a_status_are_blank_despite_jitter)
{
	char line[BC_TOP_LINE_BYTES];
	double highest;

	f->now.ns = 5000 * SECOND_NS + 999000000;
	f->view.is_utf8 = false;
	for (unsigned i = 0; i < 10; i++)
		add_rate(f, 1, 0);
	f->now.ns += 1002000000; /* skips a second */
	add_rate(f, 1, 0);
	f->now.ns -= SECOND_NS; /* the second one in a second */
	add_rate(f, 1, 3);
	graph_line(f, BC_TOP_SAMPLES, 240, &highest, line);
	assert_non_null(strstr(line, " #############"));
	graph_line(f, BC_TOP_LOST, 240, &highest, line);
	assert_true(highest == 3);
	f->now.ns += 20 * SECOND_NS;
	add_rate(f, 1, 3);
	graph_line(f, BC_TOP_SAMPLES, 240, &highest, line);
	assert_non_null(strstr(line, "#                    #"));
	/* Hours later the same array elements are used, but their values have expired. */
	f->now.ns += 4 * BC_TOP_SECONDS * SECOND_NS;
	graph_line(f, BC_TOP_SAMPLES, 240, &highest, line);
	assert_string_equal(line, "");
}

/* ---- the grid */

TEST_F(a_grid_accepts_any_position_and_width)
{
	struct dice dice = {.state = 7};
	static const char *const texts[] = {"", "x", "12345", "\u2588\u2588", "\u4e2d\u6587\u5b57",
		"a\xff\xc3", "\xe4\xb8", "\xf0\x9f\x98\x80", "tab\there"};

	for (unsigned i = 0; i < 200000; i++) {
		struct bc_top_grid grid;
		char line[BC_TOP_LINE_BYTES];
		const char *text = texts[dice_below(&dice, 9)];
		unsigned room = dice_below(&dice, 12);
		assert_int_equal(bc_top_grid_open(&grid, dice_below(&dice, 8), dice_below(&dice, 3),
					 dice_below(&dice, 2)),
			0);
		unsigned x = dice_below(&dice, 10);
		unsigned y = dice_below(&dice, 4);
		unsigned taken = bc_top_write(&grid, x, y, room, BC_TOP_BOLD, text);
		assert_true(taken <= room && (taken == 0 || x + taken <= grid.width));
		bc_top_write_right(&grid, x, y, room, BC_TOP_BOLD, text);
		for (y = 0; y < grid.height; y++) {
			bc_top_grid_line(&grid, y, line);
			assert_true(bc_top_columns(&grid, line) <= grid.width);
		}
		bc_top_grid_close(&grid);
	}
}

TEST_F(truncated_text_ends_with_an_ellipsis)
{
	struct bc_top_grid grid;
	char line[BC_TOP_LINE_BYTES];

	assert_int_equal(bc_top_grid_open(&grid, 20, 3, true), 0);
	assert_int_equal(bc_top_write(&grid, 0, 0, 5, BC_TOP_PLAIN, "12345"), 5);
	assert_int_equal(bc_top_write(&grid, 0, 1, 4, BC_TOP_PLAIN, "12345"), 4);
	assert_int_equal(bc_top_write(&grid, 0, 2, 4, BC_TOP_PLAIN, "\u4e2d\u6587\u5b57"), 3);
	bc_top_grid_line(&grid, 0, line);
	assert_string_equal(line, "12345");
	bc_top_grid_line(&grid, 1, line);
	assert_string_equal(line, "123\u2026");
	bc_top_grid_line(&grid, 2, line);
	assert_string_equal(line, "\u4e2d\u2026");
	bc_top_grid_close(&grid);
	assert_int_equal(bc_top_grid_open(&grid, 1000000, 1000000, true), 0);
	assert_int_equal(grid.width, BC_TOP_WIDTH_MAX);
	assert_int_equal(grid.height, BC_TOP_HEIGHT_MAX);
	bc_top_grid_close(&grid);
}
