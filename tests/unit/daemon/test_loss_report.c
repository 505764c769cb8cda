#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/recorder/loss_report.h"
#include "tests/support/ear.h"
#include "tests/support/test.h"

#define SECOND UINT64_C(1000000000)

struct fixture {
	struct bc_loss_report losses;
	struct bc_counts counts;
	uint64_t now_ns;
	struct ear ear;
};

static void set_up(struct fixture *f)
{
	f->now_ns = bc_now_ns();
	f->losses.polled_ns = f->now_ns;
}

TEST_FIXTURE(fixture, set_up, NOTHING)

static void look(struct fixture *f, unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		f->now_ns += SECOND;
		bc_loss_report_poll(&f->losses, &f->counts, f->now_ns);
	}
}

TEST_F(a_time_of_losses_is_reported_at_both_ends_with_all_that_was_lost)
{
	listen_to(&f->ear);
	look(f, 5);
	f->counts.dropped_buffer += 7;
	look(f, 10); /* not for long enough: it is the same time still */
	f->counts.dropped_buffer += 5;
	f->counts.board_lost += 2;
	look(f, 1);
	f->counts.dropped_disk += 1;
	look(f, 30);
	bc_loss_report_finish(&f->losses);
	assert_string_equal(end_listening(&f->ear),
		"buscapd: warning: samples are being lost: 7 for want of buffer, in the last "
		"1.0 s; each gap is on record at its place, and the recording goes on\n"
		"buscapd: no more samples are lost: it was 1 while the disk took nothing, 12 "
		"for want of buffer, 2 by the board, in 12.0 s\n");
}

TEST_F(losses_that_go_on_are_reported_after_one_minute_two_and_four)
{
	const char *heard;
	unsigned lines = 0;

	listen_to(&f->ear);
	for (unsigned i = 0; i < 10 * 60; i++) {
		f->counts.dropped_buffer++;
		look(f, 1);
	}
	heard = end_listening(&f->ear);
	for (const char *at = heard; (at = strchr(at, '\n')) != NULL; at++)
		lines++;
	assert_int_equal(lines, 1 + 3);
	assert_non_null(strstr(heard, "still being lost: 61 for want of buffer, in the last 61 s"));
	assert_non_null(strstr(heard, "still being lost: 181 for want of buffer"));
	assert_non_null(strstr(heard, "still being lost: 421 for want of buffer"));
}

/* The stream turns from good to bad and back at each look. */
TEST_F(what_was_only_counted_is_reported_at_the_end)
{
	const char *heard;

	listen_to(&f->ear);
	for (unsigned i = 0; i < 12; i++) {
		f->counts.received += 1000;
		f->counts.dropped_invalid += 1000;
		look(f, 1);
		f->counts.received += 1000;
		look(f, 1);
		f->now_ns = bc_now_ns(); /* nothing is summed up meanwhile */
		f->losses.polled_ns = f->now_ns;
	}
	bc_loss_report_finish(&f->losses);
	heard = end_listening(&f->ear);
	assert_non_null(strstr(heard, "buscapd: warning: 2 more times in the last "));
	assert_non_null(strstr(heard, "the latest: 1000 of the last 1000 samples are no valid"));
	assert_non_null(strstr(heard, "buscapd: 2 more times in the last "));
	assert_non_null(strstr(heard, "the latest: what comes is valid again\n"));
}
