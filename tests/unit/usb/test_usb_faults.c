/* The USB source when transfers and requests fail: each fault is counted and leaves a break where
 * samples may be missing, and the stream continues. */
#include <errno.h>

#include "tests/support/test.h"
#include "tests/support/usb_run.h"

TEST_THREADS;
TEST_VALGRIND;

/* The same, if the board was wrongly reported as gone: frames that span the break are lost. */
static void end_of_frames_cut(struct usb_run *run)
{
	usb_run_stop(run);
	struct board_sent sent = usbfs_sent(run->port);
	assert_int_equal(run->status, 0);
	assert_int_equal(run->bytes, sent.bytes);
	assert_true(run->samples <= sent.samples);
	assert_true(sent.samples - run->samples <= run->breaks_count * UINT64_C(2048));
	usb_run_close(run);
}

static void check_break(const struct usb_run *run, unsigned i, enum bc_gap_cause cause, bool is_new)
{
	assert_true(i < run->breaks_count);
	assert_int_equal(run->breaks[i].cause, cause);
	assert_int_equal(run->breaks[i].is_restart, is_new);
	assert_int_equal(run->breaks[i].lost, 0);
	assert_true(run->breaks[i].duration_ns > 0);
}

/* Makes the board send nothing more, and receives everything it had. */
static void fall_silent(struct usb_run *run)
{
	usb_run_command(run, "send 0");
	usb_run_command(run, "heartbeat off");
	usb_run_until(run, run->samples == usbfs_sent(run->port).captured);
}

/* Stalls */

TEST_RUN(a_stall_is_cleared_and_the_stream_continues)
{
	usb_run_streaming(run);
	usb_run_command(run, "stall");
	usb_run_until(run, run->breaks_count == 1);
	usb_run_receive(run, 10000);
	check_break(run, 0, BC_GAP_TRANSFER, false);
	assert_int_equal(board_of(run)->stalls, 1);
	assert_int_equal(board_of(run)->restarts, 0);
	assert_int_equal(usbfs_calls_of(USBFS_CLEAR_HALT), 1);
	assert_int_equal(usbfs_calls_of(USBFS_RESET), 0);
	assert_true(usb_run_logged(run, "endpoint stalled"));
	assert_non_null(strstr(board_of(run)->last_error, "stalled"));
	assert_int_equal(run->breaks_count, 1);
	usb_run_finish(run);
}

/* The board queues at most 16 faults. */
TEST_RUN(stalls_with_data_in_between_never_reset_the_board)
{
	usb_run_streaming(run);
	for (unsigned i = 1; i <= 12; i++) {
		usb_run_command(run, "stall");
		usb_run_until(run, board_of(run)->stalls == i);
		usb_run_receive(run, 5000);
		assert_int_equal(run->breaks_count, i);
	}
	assert_int_equal(usbfs_calls_of(USBFS_RESET), 0);
	usb_run_finish(run);
}

TEST_RUN(eight_stalls_without_data_reset_the_board)
{
	usb_run_streaming(run);
	fall_silent(run);
	for (unsigned i = 0; i < 8; i++)
		usb_run_command(run, "stall");
	usb_run_until(run, board_of(run)->restarts == 1);
	usb_run_command(run, "send all");
	usb_run_receive(run, 10000);
	assert_int_equal(board_of(run)->stalls, 8);
	assert_int_equal(usbfs_calls_of(USBFS_RESET), 1);
	assert_int_equal(run->breaks_count, 8); /* data arrived in between */
	for (unsigned i = 0; i < 8; i++)
		check_break(run, i, BC_GAP_TRANSFER, i == 7);
	assert_int_equal(board_of(run)->restarts, 1);
	assert_int_equal(board_of(run)->plugs, 2);
	assert_int_equal(board_of(run)->unplugs, 0);
	assert_true(usb_run_logged(run, "resetting: "));
	usb_run_finish(run);
}

TEST_RUN(a_halt_that_is_not_cleared_resets_the_board)
{
	static const int errors[] = {EIO, EPIPE, ETIMEDOUT, ENOMEM, ENOENT};

	for (unsigned i = 0; i < COUNT_OF(errors); i++) {
		usb_run_streaming(run);
		usbfs_fail(USBFS_CLEAR_HALT, errors[i], 0, 1);
		usb_run_command(run, "stall");
		usb_run_until(run, board_of(run)->plugs == 2);
		usb_run_receive(run, 10000);
		assert_int_equal(board_of(run)->stalls, 1);
		assert_int_equal(board_of(run)->restarts, 1);
		assert_int_equal(board_of(run)->unplugs, 0);
		assert_int_equal(usbfs_calls_of(USBFS_RESET), 1);
		assert_int_equal(run->breaks_count, 1);
		check_break(run, 0, BC_GAP_TRANSFER, true);
		assert_true(usb_run_logged(run, "can't clear endpoint halt"));
		usb_run_finish(run);
		usb_run_open(run);
	}
}

TEST_RUN(a_stop_while_a_halt_is_cleared_still_drains_the_board)
{
	/* If the test was delayed, the halt is cleared before the stop; then retry. */
	for (unsigned ms = 50;; ms *= 2) {
		usb_run_streaming(run);
		usbfs_slow(USBFS_CLEAR_HALT, ms);
		usb_run_command(run, "stall");
		usb_run_until(run, usbfs_calls_of(USBFS_CLEAR_HALT) == 1);
		if (board_of(run)->state == BC_BOARD_STOPPING)
			break;
		assert_true(ms < 5000);
		usb_run_again(run);
	}
	struct board_sent sent = usb_run_finish(run);
	assert_int_equal(run->last_frames, 1);
	assert_int_equal(run->samples, sent.captured);
	assert_int_equal(run->breaks_count, 1);
	assert_false(run->breaks[0].is_restart);
}

TEST_RUN(a_stall_during_the_drain_ends_with_a_break)
{
	usb_run_streaming(run);
	usb_run_command(run, "freeze");
	usb_run_wait(run, 20);
	bc_source_stop(run->source);
	usb_run_command(run, "stall");
	usb_run_command(run, "thaw");
	usb_run_until(run, run->ends == 1);
	usb_run_frames(run, NULL, 0, true);
	assert_int_equal(board_of(run)->stalls, 1);
	assert_int_equal(run->breaks_count, 1);
	assert_int_equal(run->samples, usbfs_sent(run->port).samples);
}

/* Overflow, protocol errors */

TEST_RUN(an_overflow_or_a_protocol_error_is_a_break_and_the_stream_continues)
{
	for (unsigned i = 0; i < 2; i++) {
		usb_run_streaming(run);
		usb_run_command(run, i == 0 ? "overflow 5000" : "protocol-error");
		usb_run_until(run, board_of(run)->overflows + board_of(run)->errors == 1);
		usb_run_receive(run, 10000);
		assert_int_equal(board_of(run)->errors, i);
		assert_int_equal(run->breaks_count, 1);
		check_break(run, 0, BC_GAP_TRANSFER, false);
		assert_true(usb_run_logged(run, i == 0 ? "overflow" : "transfer failed"));
		assert_int_equal(usbfs_calls_of(USBFS_CLEAR_HALT), 0);
		usb_run_finish(run);
		usb_run_open(run);
	}
}

TEST_RUN(many_protocol_errors_reset_the_board)
{
	usb_run_streaming(run);
	fall_silent(run);
	for (unsigned i = 0; i < 8; i++)
		usb_run_command(run, "protocol-error");
	usb_run_until(run, board_of(run)->restarts == 1);
	usb_run_command(run, "send all");
	usb_run_receive(run, 10000);
	assert_int_equal(board_of(run)->errors, 8);
	assert_int_equal(run->breaks_count, 1);
	check_break(run, 0, BC_GAP_TRANSFER, true);
	usb_run_finish(run);
}

TEST_RUN(faults_are_reported_once_a_second_and_all_counted)
{
	usb_run_streaming(run);
	uint64_t since_ns = uv_hrtime();
	for (unsigned i = 1; i <= 5; i++) {
		usb_run_command(run, "protocol-error");
		usb_run_until(run, board_of(run)->errors == i);
		usb_run_receive(run, 1000);
	}
	assert_in_range(usb_run_logged(run, "transfer failed"), 1,
		1 + (uv_hrtime() - since_ns) / 1000000000);
	assert_int_equal(run->breaks_count, 5);
	usb_run_finish(run);
}

TEST_RUN(a_loss_of_power_is_an_unplug_once_the_hub_has_noticed)
{
	for (unsigned i = 0; i < 8; i++) {
		run->options.transfers = i < 4 ? 1 + i : 16;
		usbfs_set_threaded(i % 2 != 0);
		usb_run_streaming(run);
		usbfs_lose_power(run->port);
		usb_run_wait(run, 1 + i * 13);
		usb_run_unplug(run);
		usb_run_replug(run);
		assert_int_equal(run->breaks_count, 1);
		check_break(run, 0, BC_GAP_UNPLUGGED, true);
		assert_int_equal(board_of(run)->unplugs, 1);
		assert_int_equal(board_of(run)->plugs, 2);
		usb_run_finish(run);
		usb_run_open(run);
	}
}

/* Timeouts and cancelled transfers */

TEST_RUN(a_transfer_that_times_out_delivers_its_data)
{
	run->options.timeout_ms = 10;
	usb_run_board(run, 100000);
	usb_run_plug(run);
	usb_run_command(run, "timeout 1000");
	usb_run_start(run);
	usb_run_receive(run, 5000);
	usb_run_command(run, "timeout 0");
	usb_run_receive(run, 5000);
	for (unsigned i = 0; i < 5; i++) {
		usb_run_command(run, "timeout 3000");
		usb_run_receive(run, 5000);
	}
	assert_true(board_of(run)->timeouts >= 7);
	assert_int_equal(run->breaks_count, 0);
	assert_int_equal(run->damaged, 0);
	usb_run_finish(run);
}

TEST_RUN(transfers_that_always_time_out_lose_nothing)
{
	for (unsigned i = 0; i < 2; i++) {
		run->options.timeout_ms = 1 + i * 2;
		usbfs_set_threaded(i % 2 != 0);
		usb_run_stream(run, 20000);
		usb_run_receive(run, 10000);
		usbfs_discard_with(1024, 1000);
		usb_run_receive(run, 10000);
		assert_true(board_of(run)->timeouts > 10);
		assert_int_equal(board_of(run)->errors, 0);
		assert_int_equal(run->breaks_count, 0);
		assert_int_equal(run->damaged, 0);
		usb_run_finish(run);
		usb_run_open(run);
	}
}

TEST_RUN(cancelled_transfers_deliver_their_data)
{
	/* Not after a stall: once it is cleared, nothing is cancelled. This also applies at the
	 * end, with a board that does not know STOP. */
	for (unsigned count = 1; count <= 16; count += 5) {
		usb_run_board(run, 1000000);
		usb_run_plug(run);
		usb_run_command(run, "requests stall");
		usb_run_start(run);
		usb_run_receive(run, 10000);
		usbfs_discard_with(1024, count);
		usb_run_command(run, "freeze");
		usb_run_wait(run, 5);
		usb_run_command(run, "thaw");
		usb_run_stop(run);
		assert_int_equal(run->samples, usbfs_sent(run->port).samples);
		assert_int_equal(run->bytes, usbfs_sent(run->port).bytes);
		usb_run_again(run);

		usb_run_streaming(run);
		usbfs_discard_with(1024, count);
		usb_run_command(run, "stall");
		usb_run_until(run, board_of(run)->stalls == 1);
		usb_run_receive(run, 10000);
		usb_run_finish(run);
		usb_run_open(run);
	}
}

/* Silence */

TEST_RUN(silence_is_logged_once_and_when_it_ends)
{
	run->options.silence_ns = 200000000;
	usb_run_streaming(run);
	for (unsigned i = 1; i <= 2; i++) {
		usb_run_command(run, "freeze");
		usb_run_until(run, run->bytes == usbfs_sent(run->port).bytes);
		/* If the test was delayed, there may have been other silences before. */
		while (usb_run_logged(run, "no data for") == usb_run_logged(run, "data again"))
			usb_run_wait(run, 10);
		uint64_t silences = board_of(run)->silences;
		assert_true(silences >= i);
		usb_run_wait(run, 500);
		assert_int_equal(board_of(run)->silences, silences);
		assert_int_equal(usb_run_logged(run, "no data for"), silences);
		assert_int_equal(usb_run_logged(run, "data again"), silences - 1);
		usb_run_command(run, "thaw");
		usb_run_receive(run, 10000);
		assert_true(usb_run_logged(run, "data again") >= silences);
	}
	assert_int_equal(run->breaks_count, 0);
	assert_int_equal(board_of(run)->restarts, 0);
	usb_run_finish(run);
}

TEST_RUN(a_silent_board_is_reset_if_configured)
{
	run->options.silence_ns = 200000000;
	run->options.reset_on_silence = true;
	usb_run_streaming(run);
	usb_run_command(run, "freeze");
	usb_run_until(run, board_of(run)->restarts >= 1);
	usb_run_command(run, "thaw");
	usb_run_until(run, board_of(run)->plugs >= 2);
	usb_run_receive(run, 10000);
	assert_true(board_of(run)->silences >= 1);
	usb_run_until(run, board_of(run)->silences == board_of(run)->restarts &&
				   usbfs_calls_of(USBFS_RESET) == board_of(run)->restarts);
	check_break(run, 0, BC_GAP_TRANSFER, true);
	usb_run_finish(run);
}

/* Memory */

#define URB(bytes) ((uint64_t)(bytes) + USBFS_URB_BYTES)

TEST_RUN(with_little_memory_it_uses_fewer_transfers_until_there_is_more)
{
	for (unsigned fits = 1; fits <= 64; fits += 21) {
		usbfs_set_memory(URB(65536) * fits + 2 * URB(64));
		usb_run_streaming(run);
		if (fits < 64)
			assert_true(usb_run_logged(run, "out of usbfs memory"));
		else
			assert_false(usb_run_logged(run, "out of usbfs memory"));
		assert_true(board_of(run)->transfers * (uint64_t)board_of(run)->transfer_bytes <=
			    65536 * fits);
		usbfs_set_memory(0);
		usb_run_until(run,
			board_of(run)->transfers == 64 && board_of(run)->transfer_bytes == 65536);
		if (fits < 64)
			assert_true(usb_run_logged(run, "64 transfers of 65536 bytes again"));
		usb_run_receive(run, 10000);
		assert_int_equal(run->breaks_count, 0);
		assert_int_equal(run->damaged, 0);
		usb_run_finish(run);
		usb_run_open(run);
	}
}

TEST_RUN(transfers_get_shorter_if_not_even_one_fits)
{
	for (uint64_t bytes = 8192; bytes < 65536; bytes += 20000) {
		usbfs_set_memory(bytes + 2048);
		usb_run_stream(run, 100000);
		usb_run_receive(run, 10000);
		assert_true(usb_run_logged(run, "out of usbfs memory"));
		assert_true(board_of(run)->transfer_bytes < 65536);
		assert_true(board_of(run)->transfers >= 1);
		usbfs_set_memory(0);
		usb_run_until(run,
			board_of(run)->transfers == 64 && board_of(run)->transfer_bytes == 65536);
		usb_run_receive(run, 1000);
		assert_int_equal(run->breaks_count, 0);
		usb_run_finish(run);
		usb_run_open(run);
	}
}

/* Whatever memory the transfers leave for requests, the board is started and stopped. */
TEST_RUN(transfers_leave_memory_for_the_requests)
{
	for (uint64_t rest = 0; rest < 2 * URB(64); rest += 60 * test_stride(3)) {
		usbfs_set_memory(4 * URB(65536) + rest);
		usb_run_streaming(run);
		usb_run_wait(run, 60);
		fall_silent(run); /* nothing is left to read, however late STOP is sent */
		assert_int_equal(usb_run_finish(run).stops, 1);
		assert_int_equal(run->last_frames, 1);
		assert_int_equal(run->breaks_count, 0);
		usb_run_open(run);
	}
}

TEST_RUN(without_any_memory_it_logs_an_error_and_retries)
{
	usb_run_board(run, 1000000);
	usb_run_plug(run);
	usbfs_set_memory(1000);
	usb_run_start(run);
	usb_run_until(run, usb_run_logged(run, "usbfs_memory_mb"));
	usb_run_wait(run, 30);
	assert_int_equal(usb_run_logged(run, "usbfs_memory_mb"), 1);
	usbfs_set_memory(0);
	usb_run_receive(run, 10000);
	assert_int_equal(run->breaks_count, 0);
	usb_run_finish(run);
}

TEST_RUN(occasional_submit_failures_lose_nothing)
{
	static const int errors[] = {ENOMEM, EIO, ENODEV};

	for (unsigned e = 0; e < 3; e++) {
		for (unsigned transfers = 1; transfers <= 16; transfers += 5) {
			run->options.transfers = transfers;
			run->options.transfer_bytes = 4096;
			usb_run_streaming(run);
			for (unsigned i = 1; i <= 12; i++) {
				usbfs_fail(USBFS_SUBMIT, errors[e], i % 5, 1);
				usb_run_receive(run, 4000);
			}
			usbfs_fail(USBFS_SUBMIT, 0, 0, 0);
			usb_run_until(run, board_of(run)->state == BC_BOARD_STREAMING &&
						   board_of(run)->transfers == transfers);
			if (errors[e] == ENODEV)
				assert_int_equal(run->breaks_count, board_of(run)->unplugs);
			else
				assert_int_equal(run->breaks_count, 0);
			assert_true(board_of(run)->unplugs <= 12);
			assert_true((board_of(run)->unplugs != 0) == (errors[e] == ENODEV));
			end_of_frames_cut(run);
			usb_run_open(run);
		}
	}
}

TEST_RUN(persistent_submit_failures_reset_the_board)
{
	for (unsigned transfers = 1; transfers <= 16; transfers += 5) {
		run->options.transfers = transfers;
		usb_run_streaming(run);
		usbfs_fail(USBFS_SUBMIT, EIO, 0, 100000);
		usb_run_until(run, board_of(run)->restarts >= 1);
		usbfs_fail(USBFS_SUBMIT, 0, 0, 0);
		usb_run_until(run, board_of(run)->plugs == 2);
		usb_run_receive(run, 10000);
		assert_int_equal(run->breaks_count, 1);
		check_break(run, 0, BC_GAP_TRANSFER, true);
		end_of_frames_cut(run);
		usb_run_open(run);
	}
}

/* Requests */

TEST_RUN(a_board_that_stalls_every_request_streams)
{
	usb_run_board(run, 1000000);
	usb_run_plug(run);
	usb_run_command(run, "requests stall");
	usb_run_start(run);
	usb_run_receive(run, 10000);
	assert_false(board_of(run)->has_info);
	assert_false(board_of(run)->has_counters);
	assert_int_equal(run->source->clock_hz, 0);
	assert_false(usb_run_logged(run, "no answer"));
	assert_int_equal(run->breaks_count, 0);
	usb_run_stop(run);
	assert_int_equal(run->status, 0);
	assert_int_equal(run->samples, usbfs_sent(run->port).samples);
}

TEST_RUN(a_board_that_never_answers_streams)
{
	usb_run_board(run, 100000);
	usb_run_plug(run);
	usb_run_command(run, "requests hang");
	usb_run_start(run);
	usb_run_receive(run, 1000);
	usb_run_until(run, board_of(run)->state == BC_BOARD_STREAMING);
	assert_true(usb_run_logged(run, "no answer to GET_INFO"));
	assert_true(usb_run_logged(run, "no answer to START"));
	usb_run_stop(run);
	assert_int_equal(run->status, 0);
	assert_int_equal(run->samples, usbfs_sent(run->port).samples);
}

TEST_RUN(a_board_that_hangs_at_the_stop_is_given_up_after_a_second)
{
	usb_run_streaming(run);
	usb_run_command(run, "requests hang");
	usb_run_finish(run);
	assert_int_equal(run->last_frames, 0);
}

/* 0: STOP can't be submitted. 1: GET_COUNTERS can't. */
TEST_RUN(a_request_that_fails_at_the_stop_is_not_taken_for_an_unknown_one)
{
	for (unsigned submitted = 0; submitted < 2; submitted++) {
		usb_run_streaming(run);
		fall_silent(run);
		usb_run_until(run, board_of(run)->transfers == run->options.transfers);
		usbfs_fail(USBFS_SUBMIT, EIO, submitted, 100000);
		usb_run_stop(run);
		assert_int_equal(run->status, 0);
		assert_int_equal(run->breaks_count, submitted == 0);
		assert_int_equal(usb_run_logged(run, "no answer to STOP"), submitted == 0);
		assert_int_equal(usb_run_logged(run, "no answer to GET_COUNTERS"), submitted == 1);
		usb_run_again(run);
	}
}

TEST_RUN(invalid_answers_are_ignored)
{
	static const char *const lies[] = {"lie short-info", "lie wild-info"};

	for (unsigned i = 0; i < 2; i++) {
		usb_run_board(run, 1000000);
		usb_run_plug(run);
		usb_run_command(run, lies[i]);
		usb_run_start(run);
		usb_run_receive(run, 10000);
		assert_false(board_of(run)->has_info);
		assert_true(usb_run_logged(run, "GET_INFO answer ignored"));
		usb_run_finish(run);
		usb_run_open(run);
	}
}

TEST_RUN(texts_of_a_board_are_printable)
{
	usb_run_board(run, 1000000);
	usb_run_plug(run);
	usb_run_command(run, "firmware \\x1b[2J\\xff\\x07abcdefghijklmnop");
	usb_run_command(run, "serial \\x1b[2J\\xc3\\xa4%n%s\\x01");
	usbfs_unplug(run->port);
	usb_run_plug(run);
	usb_run_start(run);
	usb_run_receive(run, 1000);
	const char *texts[] = {board_of(run)->firmware, board_of(run)->own_serial,
		board_of(run)->identity.serial, run->source->name};
	for (unsigned i = 0; i < 4; i++)
		for (const char *c = texts[i]; *c != '\0'; c++)
			assert_true(*c >= ' ' && *c <= '~');
	assert_int_equal(strlen(board_of(run)->firmware), 16);
	usb_run_finish(run);
}
