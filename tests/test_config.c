#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/config.h"
#include "daemon/pipeline.h"

struct fixture {
	char dir[64];
	char file[128];
	char why[1024];
	struct bc_config config;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->dir, sizeof(f->dir), "/tmp/buscap-config-XXXXXX");
	if (mkdtemp(f->dir) == NULL)
		return -1;
	snprintf(f->file, sizeof(f->file), "%s/buscapd.conf", f->dir);
	bc_config_default(&f->config);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	static const char *const files[] = {
		"buscapd.conf", "conf.d/10.conf", "conf.d/20.conf", "conf.d/30.off", "conf.d", ""};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char path[160];
		snprintf(path, sizeof(path), "%s/%s", f->dir, files[i]);
		if (remove(path) != 0)
			continue;
	}
	free(f);
	return 0;
}

static void put(const struct fixture *f, const char *name, const char *text)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static bool load(struct fixture *f)
{
	f->why[0] = '\0';
	return bc_config_load(&f->config, f->file, false, f->why, sizeof(f->why));
}

static void test_every_key_of_the_document_can_be_set(void **state)
{
	struct fixture *f = *state;
	const struct bc_config *c = &f->config;

	put(f, "buscapd.conf",
		"; a comment\n# another\n[source]\nsource = file:trace,format=byu\nspeed = "
		"realtime\n"
		"[usb]\nserial = A1\ntransfers = 4\n"
		"[output]\ndir = /tmp/x ; behind a value\nlabel = boot-1\n"
		"[rotation]\nfilesize = 5M\nduration = 60\ninterval = 1h\nfiles = 7\n"
		"[stop]\nduration = 2\nrecords = 3\nfilesize = 4\n"
		"[space]\nmax_use = 10G\nkeep_free = 1G\nmax_age = 30d\n"
		"[pipeline]\nbuffer = 32M\nworkers = 3\nflush = 100ms\nsync = 1\n"
		"[mapping]\ninvalid = keep\nsize = v1.0\nattr.D_WRITE = 7\nattr.INT_ACK = 255\n"
		"[socket]\npath = /tmp/s\ngroup = users\n[log]\nlevel = debug\n");
	assert_true(load(f));
	assert_int_equal(c->source.kind, BC_SOURCE_FILE);
	assert_string_equal(c->source.path, "trace");
	assert_true(c->speed > 0.99 && c->speed < 1.01);
	assert_string_equal(c->usb.wish.serial, "A1");
	assert_int_equal(c->usb.transfers, 4);
	assert_string_equal(c->dir, "/tmp/x");
	assert_string_equal(c->label, "boot-1");
	assert_int_equal(c->rotation.file_bytes, 5 << 20);
	assert_int_equal(c->rotation.files, 7);
	assert_int_equal(c->stop.records, 3);
	assert_int_equal(c->stop.file_bytes, 4000);
	assert_true(c->space.max_use_bytes == UINT64_C(10) << 30);
	assert_true(c->space.keep_free_bytes == UINT64_C(1) << 30);
	assert_true(c->space.max_age_ns == UINT64_C(2592000000000000));
	assert_int_equal(c->buffer_bytes, 32 << 20);
	assert_int_equal(c->workers, 3);
	assert_int_equal(c->flush_ns, 100000000);
	assert_int_equal(c->sync_ns, 1000000000);
	assert_true(c->mapping.keep_invalid && c->mapping.size_v1_0);
	assert_int_equal(c->mapping.attr[BC_CYCLE_D_WRITE], 7);
	assert_int_equal(c->mapping.attr[BC_CYCLE_INT_ACK], 255);
	assert_int_equal(c->mapping.attr[BC_CYCLE_I_FETCH], 3);
	assert_string_equal(c->socket, "/tmp/s");
	assert_string_equal(c->socket_group, "users");
	assert_int_equal(c->log_level, BC_LOG_DEBUG);
	assert_true(bc_config_check(c, f->why, sizeof(f->why)));
}

static void test_a_source_s_own_settings_are_before_those_of_its_section(void **state)
{
	struct fixture *f = *state;

	put(f, "buscapd.conf",
		"[source]\nsource = usb:serial=B2,wait=1\n[usb]\nserial = A1\ntransfers = 4\n");
	assert_true(load(f));
	struct bc_usb_options usb = bc_config_usb(&f->config);
	assert_string_equal(usb.wish.serial, "B2");
	assert_int_equal(usb.transfers, 4);
	assert_int_equal(usb.wait_ns, 1000000000);
	/* A source that replaces it replaces what it says. */
	assert_true(bc_config_set(
		&f->config, "source", "source", "usb:id=1234:5678", f->why, sizeof(f->why)));
	usb = bc_config_usb(&f->config);
	assert_string_equal(usb.wish.serial, "A1");
	assert_int_equal(usb.wish.vid, 0x1234);
}

static void test_conf_d_is_read_in_order_and_later_wins(void **state)
{
	struct fixture *f = *state;
	char path[160];

	snprintf(path, sizeof(path), "%s/conf.d", f->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	put(f, "buscapd.conf", "[pipeline]\nworkers = 1\nflush = 5\n");
	put(f, "conf.d/20.conf", "[pipeline]\nworkers = 20\n");
	put(f, "conf.d/10.conf", "[pipeline]\nworkers = 10\nsync = 9\n");
	put(f, "conf.d/30.off", "[pipeline]\nworkers = 30\n");
	assert_true(load(f));
	assert_int_equal(f->config.workers, 20);
	assert_int_equal(f->config.sync_ns, UINT64_C(9000000000));
	assert_int_equal(f->config.flush_ns, UINT64_C(5000000000));
	put(f, "conf.d/20.conf", "[pipeline]\n\nworkers = 0\n");
	assert_false(load(f));
	assert_non_null(strstr(f->why, "conf.d/20.conf:3:"));
}

static void test_a_mistake_names_file_and_line(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *text;
		const char *part;
	} bad[] = {
		{"[pipeline]\nbufer = 1M\n", ":2: [pipeline] bufer: no such key"},
		{"[pipe]\nbuffer = 1M\n", ":2: [pipe] buffer: no such key"},
		{"buffer = 1M\n", ":1: buffer: a key stands in a [section]"},
		{"[log]\n\nlevel = loud\n", ":3: level = loud"},
		{"[space]\nmax_use = lots\n", ":2: max_use = lots"},
		{"[rotation]\nfiles = 0\n", ":2: files = 0"},
		{"[rotation]\nfilesize = 1X\n", ":2: filesize = 1X"},
		{"[output]\nlabel = a/b\n", ":2: label = a/b"},
		{"[output]\ndir =\n", ":2: dir = "},
		{"[source]\nsource = disk\n", ":2: source = disk"},
		{"[source]\nspeed = -1\n", ":2: speed = -1"},
		{"[mapping]\nattr.NOPE = 1\n", ":2: attr.NOPE: no such cycle"},
		{"[mapping]\nattr.D_READ = 256\n", ":2: attr.D_READ = 256: an attr is"},
		{"[mapping]\ninvalid = maybe\n", ":2: invalid = maybe"},
		{"[mapping]\nsize = v2\n", ":2: size = v2"},
		{"[pipeline]\nflush = 0\n", ":2: flush = 0"},
		{"[pipeline]\nworkers = 65\n", ":2: workers = 65"},
		{"[pipeline\n", ":1:"},
		{"[pipeline]\nnonsense\n", ":2:"},
		{"[pipeline]\nworkers = 1\nworkers = x\nworkers = y\n", ":3: workers = x"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put(f, "buscapd.conf", bad[i].text);
		if (load(f))
			fail_msg("'%s' was taken", bad[i].text);
		if (strstr(f->why, bad[i].part) == NULL || strstr(f->why, f->file) != f->why)
			fail_msg("'%s': '%s'", bad[i].text, f->why);
	}
}

static void test_a_missing_file_is_good_only_where_it_may_be(void **state)
{
	struct fixture *f = *state;

	assert_false(load(f));
	assert_non_null(strstr(f->why, "No such file"));
	assert_true(bc_config_load(&f->config, f->file, true, f->why, sizeof(f->why)));
	assert_false(bc_config_load(&f->config, f->dir, true, f->why, sizeof(f->why)));
}

static void test_settings_that_do_not_go_together_are_refused(void **state)
{
	struct fixture *f = *state;
	struct bc_config *c = &f->config;

	assert_false(bc_config_check(c, f->why, sizeof(f->why)));
	assert_non_null(strstr(f->why, "no source"));
	assert_true(bc_config_set(c, "source", "source", "sim", f->why, sizeof(f->why)));
	assert_true(bc_config_check(c, f->why, sizeof(f->why)));
	assert_true(bc_config_set(c, "source", "speed", "2", f->why, sizeof(f->why)));
	assert_false(bc_config_check(c, f->why, sizeof(f->why)));
	assert_non_null(strstr(f->why, "speed"));
	assert_true(bc_config_set(c, "source", "speed", "max", f->why, sizeof(f->why)));
	c->workers = 2;
	c->buffer_bytes = bc_pipeline_least_buffer(2, false);
	assert_true(bc_config_check(c, f->why, sizeof(f->why)));
	c->buffer_bytes--;
	assert_false(bc_config_check(c, f->why, sizeof(f->why)));
	assert_non_null(strstr(f->why, "buffer"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_every_key_of_the_document_can_be_set, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_source_s_own_settings_are_before_those_of_its_section, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_conf_d_is_read_in_order_and_later_wins, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_mistake_names_file_and_line, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_missing_file_is_good_only_where_it_may_be, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_settings_that_do_not_go_together_are_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
