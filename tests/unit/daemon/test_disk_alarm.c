#include "daemon/main/disk_alarm.h"
#include "tests/support/log_capture.h"
#include "tests/support/test.h"

#define HOUR   3600u
#define SECOND UINT64_C(1000000000)

struct fixture {
	struct bc_disk_alarm alarm;
	struct bc_log_limits limits;
	struct log_capture capture;
	bool has_no_inodes;
};

static void set_up(struct fixture *f)
{
	f->alarm.limits = &f->limits;
}

TEST_FIXTURE(fixture, set_up, NOTHING)

static bool poll_disk(struct fixture *f, uint64_t left_s)
{
	return bc_disk_alarm_poll(&f->alarm, "/out", left_s, f->has_no_inodes, HOUR * SECOND);
}

TEST_F(the_disk_becomes_low_once_and_recovers_after_a_minute)
{
	log_capture_start(&f->capture);
	assert_false(poll_disk(f, UINT64_MAX));
	assert_false(poll_disk(f, HOUR));
	assert_true(poll_disk(f, HOUR - 1));
	/* The rate varies. */
	for (unsigned i = 0; i < 100; i++) {
		assert_false(poll_disk(f, 2 * HOUR - 1));
		assert_false(poll_disk(f, UINT64_MAX));
		assert_false(poll_disk(f, 60));
	}
	for (unsigned i = 0; i < 59; i++)
		assert_false(poll_disk(f, 2 * HOUR));
	assert_true(f->alarm.is_low);
	assert_true(poll_disk(f, 2 * HOUR));
	assert_false(f->alarm.is_low);
	assert_true(poll_disk(f, 0));
	assert_string_equal(log_capture_stop(&f->capture),
		"buscapd: warning: /out: full in 59 min at the current rate; free some space, or "
		"set a rule in [space], such as keep_free = 5G\n"
		"buscapd: /out: no longer nearly full\n"
		"buscapd: warning: /out: full now; free some space, or "
		"set a rule in [space], such as keep_free = 5G\n");
}

TEST_F(a_lack_of_inodes_is_named)
{
	f->has_no_inodes = true;
	log_capture_start(&f->capture);
	assert_true(poll_disk(f, 0));
	assert_string_equal(log_capture_stop(&f->capture),
		"buscapd: warning: /out: no file can be created: the file system has no free "
		"inodes; delete some files, or set keep_free in [space]\n");
}

TEST_F(a_lack_of_inodes_is_named_once_on_a_disk_that_is_low_already)
{
	assert_true(poll_disk(f, 60));
	log_capture_start(&f->capture);
	for (unsigned i = 0; i < 10; i++) {
		f->has_no_inodes = i % 2 == 0;
		assert_false(poll_disk(f, f->has_no_inodes ? 0 : 60));
	}
	assert_string_equal(log_capture_stop(&f->capture),
		"buscapd: warning: /out: no file can be created: the file system has no free "
		"inodes; delete some files, or set keep_free in [space]\n");
}

TEST_F(a_limit_of_0_turns_it_off)
{
	assert_false(bc_disk_alarm_poll(&f->alarm, "/out", 0, false, 0));
	assert_false(f->alarm.is_low);
}
