#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/recorder/loss_report.h"
#include "formats/base/clock.h"
#include "tests/support/log_capture.h"
#include "tests/support/test.h"

#define SECOND UINT64_C(1000000000)

struct fixture {
	struct bc_loss_report losses;
	struct bc_log_limits limits;
	struct bc_counts counts;
	const char *activity;
	uint64_t now_ns;
	struct log_capture capture;
};

static void set_up(struct fixture *f)
{
	f->now_ns = bc_now_ns();
	f->losses.polled_ns = f->now_ns;
	f->losses.limits = &f->limits;
	f->activity = "";
}

TEST_FIXTURE(fixture, set_up, NOTHING)

static void poll_seconds(struct fixture *f, unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		f->now_ns += SECOND;
		bc_loss_report_poll(&f->losses, &f->counts, f->activity, f->now_ns);
		bc_log_limits_poll(&f->limits, f->now_ns);
	}
}

TEST_F(losses_are_reported_at_start_and_end_with_totals)
{
	log_capture_start(&f->capture);
	poll_seconds(f, 5);
	f->counts.losses.lost[BC_GAP_BUFFER] += 7;
	poll_seconds(f, 10); /* shorter than the quiet time: the same period of losses */
	f->counts.losses.lost[BC_GAP_BUFFER] += 5;
	f->counts.losses.lost[BC_GAP_BOARD] += 2;
	f->counts.losses.lost[BC_GAP_CRC] += 3;
	poll_seconds(f, 1);
	f->counts.losses.lost[BC_GAP_DISK] += 1;
	poll_seconds(f, 30);
	bc_log_limits_end(&f->limits);
	assert_string_equal(log_capture_stop(&f->capture),
		"buscapd: warning: samples lost: 7 (buffer full) in the last 1.0 s; the recording "
		"continues, with a gap at each place\n"
		"buscapd: no samples lost for 10 s; lost before: 12 (buffer full), 1 (disk stuck), "
		"2 "
		"(board overflow), 3 (damaged frames) in 12.0 s\n");
}

TEST_F(a_loss_names_what_a_thread_was_doing)
{
	log_capture_start(&f->capture);
	poll_seconds(f, 1);
	f->activity = "the sealer: syncing X since T";
	f->counts.losses.lost[BC_GAP_BOARD] += 1;
	poll_seconds(f, 1);
	f->counts.losses.lost[BC_GAP_BUFFER] += 7;
	poll_seconds(f, 60);
	const char *text = log_capture_stop(&f->capture);
	assert_non_null(strstr(text, "1 (board overflow) in the last 1.0 s; the recording"));
	f->losses.is_losing = false;
	log_capture_start(&f->capture);
	f->counts.losses.lost[BC_GAP_BUFFER] += 7;
	poll_seconds(f, 1);
	text = log_capture_stop(&f->capture);
	assert_non_null(strstr(text,
		"7 (buffer full) in the last 1.0 s; the sealer: syncing X since T; the recording"));
}

TEST_F(continuing_losses_are_reported_after_one_two_and_four_minutes)
{
	const char *text;
	unsigned lines = 0;

	log_capture_start(&f->capture);
	for (unsigned i = 0; i < 10 * 60; i++) {
		f->counts.losses.lost[BC_GAP_BUFFER]++;
		poll_seconds(f, 1);
	}
	text = log_capture_stop(&f->capture);
	for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
		lines++;
	assert_int_equal(lines, 1 + 3);
	assert_non_null(
		strstr(text, "still being lost: 61 (buffer full) in the last 61 s; disk or "));
	assert_non_null(strstr(text, "still being lost: 181 (buffer full)"));
	assert_non_null(strstr(text, "still being lost: 421 (buffer full)"));
}

TEST_F(losses_on_the_way_from_the_board_do_not_blame_the_disk)
{
	log_capture_start(&f->capture);
	for (unsigned i = 0; i < 90; i++) {
		f->counts.losses.lost[BC_GAP_CRC]++;
		poll_seconds(f, 1);
	}
	const char *text = log_capture_stop(&f->capture);
	assert_non_null(strstr(text, "still being lost: 61 (damaged frames) in the last 61 s\n"));
}

/* The stream alternates between valid and invalid at each poll. */
TEST_F(suppressed_messages_are_summed_up_at_the_end)
{
	const char *text;

	log_capture_start(&f->capture);
	for (unsigned i = 0; i < 12; i++) {
		f->counts.received += 1000;
		f->counts.dropped_invalid += 1000;
		poll_seconds(f, 1);
		f->counts.received += 1000;
		poll_seconds(f, 1);
		f->now_ns = bc_now_ns(); /* no summary is due */
		f->losses.polled_ns = f->now_ns;
	}
	bc_log_limits_end(&f->limits);
	text = log_capture_stop(&f->capture);
	assert_non_null(strstr(text, "buscapd: warning: 2 more times in the last "));
	assert_non_null(
		strstr(text, "the latest: source: 1,000 of the last 1,000 samples are invalid"));
	assert_non_null(strstr(text, "buscapd: 2 more times in the last "));
	assert_non_null(strstr(text, "the latest: source: data is valid again\n"));
}
