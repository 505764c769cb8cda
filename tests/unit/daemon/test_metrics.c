#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/usb/board.h"
#include "daemon/api/metrics.h"
#include "formats/base/json.h"
#include "formats/base/utf8.h"
#include "tests/support/test.h"

/* A status with all members set, and strings that need escaping. */
struct fixture {
	struct bc_board board;
	struct bc_recording_info recording;
	struct bc_counts counts;
	struct bc_writer_stats report;
	struct bc_status status;
};

static void fill_board(struct bc_board *board)
{
	*board = (struct bc_board){
		.state = BC_BOARD_BACK_OFF,
		.identity = {.vid = 0x1209, .pid = 1, .endpoint = 0x81, .packet_bytes = 512},
		.has_info = true,
		.clock_hz = 66000000,
		.has_counters = true,
		.counters = {.samples = UINT64_MAX, .lost = 1, .fifo_high = 2},
		.bytes = 12345,
		.plugs = 3,
	};
	strcpy(board->identity.serial, "A\"1\\\n2");
	strcpy(board->identity.product, "b\xFFus");
	strcpy(board->last_error, "it\nis \"gone\"");
}

static void set_up(struct fixture *f)
{
	fill_board(&f->board);
	strcpy(f->recording.header.recording, "20261120T091500Z-3f9a2c");
	strcpy(f->recording.header.metadata, "{\"run\":\"a\\n\\\"b\\\"\",\"two words\":\"x\"}");
	f->recording.started_ns = INT64_C(1795166100500000000);
	f->counts = (struct bc_counts){.received = 100,
		.written = 90,
		.durable = 80,
		.in_flight = 5,
		.dropped_buffer = 1,
		.dropped_disk = 1,
		.dropped_invalid = 1,
		.dropped_filtered = 1,
		.dropped_idle = 1,
		.losses = {.gaps = {[BC_GAP_BOARD] = 2, [BC_GAP_SEQUENCE] = 3},
			.lost = {[BC_GAP_BOARD] = 7, [BC_GAP_CRC] = 1024},
			.inexact = {[BC_GAP_SEQUENCE] = 3},
			.away_ns = 25400000000}};
	f->report = (struct bc_writer_stats){.is_checked = true,
		.is_free_known = true,
		.free_bytes = UINT64_C(1) << 40,
		.segment = 4,
		.last_sync_ns = 250000000,
		.longest_sync_ns = 4500000000,
		.recording_records = 90};
	strcpy(f->report.file, "a.byu.lz4");
	strcpy(f->report.error, "No space left on device");
	f->status = (struct bc_status){.state = "recording",
		.busy = "",
		.mode = "flight",
		.source_kind = "usb",
		.source_name = "usb\"\n\\",
		.clock_hz = 66000000,
		.board = &f->board,
		.recording = &f->recording,
		.dir = "/var/lib/\xFE",
		.counts = &f->counts,
		.stats = &f->report,
		.has_flight = true,
		.flight = {.seconds = 1.57,
			.bytes = 12,
			.records = 1,
			.chunks = 1,
			.limit_seconds = 2.5},
		.rates = {.is_known = true, .bytes_out_per_s = 1000000, .growth_per_s = 1000000},
		.clients = 3,
		.streams_events = 2,
		.dropped_log_lines = 7,
		.uptime_s = 12.34};
}

TEST_FIXTURE(fixture, set_up, NOTHING)

static bool has_line(const char *text, const char *line)
{
	const char *at = text;

	while ((at = strstr(at, line)) != NULL) {
		if ((at == text || at[-1] == '\n') && at[strlen(line)] == '\n')
			return true;
		at++;
	}
	return false;
}

TEST_F(a_call_that_takes_long_is_a_stuck_disk)
{
	f->status.busy = "the sealer: syncing X since T";
	char *text = bc_metrics_write(&f->status);

	assert_true(has_line(text, "buscapd_disk_stuck 1"));
	assert_true(has_line(
		text, "buscapd_disk_error_info{error=\"the sealer: syncing X since T\"} 1"));
	free(text);
	/* A failed write is reported rather than the slow call. */
	f->report.is_stuck = true;
	text = bc_metrics_write(&f->status);
	assert_true(has_line(text, "buscapd_disk_error_info{error=\"No space left on device\"} 1"));
	free(text);
}

TEST_F(before_the_first_sync_its_time_is_unknown)
{
	f->report.last_sync_ns = f->report.longest_sync_ns = 0;
	char *text = bc_metrics_write(&f->status);
	assert_null(strstr(text, "\nbuscapd_disk_last_sync_seconds "));
	assert_null(strstr(text, "\nbuscapd_disk_longest_sync_seconds "));
	free(text);
}

TEST_F(texts_are_escaped)
{
	static const char *const lines[] = {
		"buscapd_source_info{kind=\"usb\",name=\"usb\\\"\\n\\\\\"} 1",
		"buscapd_board_error_info{error=\"it\\nis \\\"gone\\\"\"} 1",
		"buscapd_recording_metadata_info{key=\"run\",value=\"a\\n\\\"b\\\"\"} 1",
		"buscapd_recording_metadata_info{key=\"two words\",value=\"x\"} 1",
		"buscapd_recording_info{id=\"20261120T091500Z-3f9a2c\",label=\"\"} 1",
		"buscapd_disk_error_info{error=\"No space left on device\"} 1",
	};
	char *text = bc_metrics_write(&f->status);

	assert_non_null(text);
	assert_true(bc_utf8_is_valid(text, strlen(text)));
	for (size_t i = 0; i < COUNT_OF(lines); i++)
		if (!has_line(text, lines[i]))
			fail_msg("%s is not a line of\n%s", lines[i], text);
	assert_non_null(strstr(text, "serial=\"A\\\"1\\\\\\n2\",product=\"b\xC3\xBFus\""));
	free(text);
}

TEST_F(counts_are_exact_to_the_last_digit)
{
	static const char *const lines[] = {
		"buscapd_received_samples_total 100",
		"buscapd_dropped_samples_total{reason=\"buffer\"} 1",
		"buscapd_board_counted_samples 18446744073709551615",
		"buscapd_lost_samples_total{cause=\"board\"} 7",
		"buscapd_lost_samples_total{cause=\"crc\"} 1024",
		"buscapd_gaps_total 5",
		"buscapd_inexact_gaps_total 3",
		"buscapd_away_seconds_total 25.4",
		"buscapd_recording_start_time_seconds 1795166100",
		"buscapd_state{buscapd_state=\"recording\"} 1",
		"buscapd_state{buscapd_state=\"idle\"} 0",
		"buscapd_mode{buscapd_mode=\"flight\"} 1",
		"buscapd_board_state{buscapd_board_state=\"back-off\"} 1",
		"buscapd_flight_seconds 1.5",
		"buscapd_flight_limit_seconds 2.5",
		"buscapd_streams{stream=\"events\"} 2",
		"buscapd_dropped_log_lines_total 7",
		"buscapd_uptime_seconds 12.3",
		"# TYPE buscapd_received_samples_total counter",
		"# HELP buscapd_received_samples_total Samples received in valid frames.",
		"# TYPE buscapd_source_info gauge",
	};
	char *text = bc_metrics_write(&f->status);

	for (size_t i = 0; i < COUNT_OF(lines); i++)
		if (!has_line(text, lines[i]))
			fail_msg("%s is not a line of\n%s", lines[i], text);
	free(text);
}

TEST_F(absent_parts_have_no_metrics)
{
	static const char *const absent[] = {
		"board", "recording_info", "flight_", "disk_time_left", "disk_error", "ring_"};

	f->status.board = NULL;
	f->status.recording = NULL;
	f->status.has_flight = false;
	f->status.rates.growth_per_s = 0;
	f->report.error[0] = '\0';
	char *text = bc_metrics_write(&f->status);
	char *line = strstr(text, "buscapd_lost_samples_total{cause=\"board\"}");
	assert_non_null(line);
	for (size_t i = 0; i < COUNT_OF(absent); i++) {
		char name[64];
		snprintf(name, sizeof(name), "# TYPE buscapd_%s%s", absent[i],
			i == 0 ? "_state" : "");
		assert_null(strstr(text, name));
	}
	free(text);
}

/* A figure that is measured is null before, and no metric. */
TEST_F(nothing_has_a_value_before_it_is_measured)
{
	static const struct {
		const char *path;
		const char *metric;
	} figures[] = {
		{"source.clock_hz", "source_clock_hertz"},
		{"recording.segment", "recording_segment"},
		{"rates.samples_per_second", "samples_per_second"},
		{"rates.record_bytes_per_second", "record_bytes_per_second"},
		{"rates.written_bytes_per_second", "written_bytes_per_second"},
		{"buffer.time_left_seconds", "buffer_time_left_seconds"},
		{"disk.free_bytes", "disk_free_bytes"},
		{"disk.time_left_seconds", "disk_time_left_seconds"},
		{"disk.ring.bytes", "ring_bytes"},
		{"disk.ring.segments", "ring_segments"},
	};

	f->status.buffer = (struct bc_buffer_state){
		.chunks = 64, .free = 64, .min_free = 64, .records_left = 64};
	f->status.space.max_use_bytes = 1000000;
	f->status.rates = (struct bc_rates){.is_known = false};
	f->status.clock_hz = 0;
	memset(&f->report, 0, sizeof(f->report));
	json_t *status = bc_status_json(&f->status);
	char *text = bc_metrics_write(&f->status);
	for (size_t i = 0; i < COUNT_OF(figures); i++) {
		char name[64];
		assert_true(json_is_null(bc_json_path(status, figures[i].path)));
		snprintf(name, sizeof(name), "# TYPE buscapd_%s ", figures[i].metric);
		assert_null(strstr(text, name));
	}
	assert_int_equal(
		json_integer_value(bc_json_path(status, "disk.ring.limit_bytes")), 1000000);
	free(text);
	json_decref(status);
}

TEST_F(the_status_has_the_same_values)
{
	char *text = bc_status_write(&f->status);
	json_t *root = json_loads(text, 0, NULL);

	assert_non_null(root);
	assert_true(bc_utf8_is_valid(text, strlen(text)));
	assert_int_equal(text[strlen(text) - 1], '\n');
	assert_string_equal(json_string_value(json_object_get(root, "mode")), "flight");
	json_t *flight = json_object_get(root, "flight");
	assert_true(json_number_value(json_object_get(flight, "limit_seconds")) > 2.4);
	json_t *metadata = json_object_get(json_object_get(root, "recording"), "metadata");
	assert_string_equal(json_string_value(json_object_get(metadata, "run")), "a\n\"b\"");
	assert_non_null(strstr(text, "\"streams\":{\"events\":2,\"records\":0}"));
	assert_non_null(strstr(text, "\"samples\":\"18446744073709551615\""));
	json_decref(root);
	free(text);
}

/* The members, their order and all digits. */
TEST_F(the_status_is_written_byte_for_byte)
{
	char *text = bc_status_write(&f->status);

	assert_string_equal(text,
		"{\"version\":\"0.1.0\",\"state\":\"recording\",\"mode\":\"flight\","
		"\"source\":{\"kind\":\"usb\",\"name\":\"usb\\\"\\n\\\\\","
		"\"clock_hz\":66000000,\"board\":{\"state\":\"back-off\","
		"\"id\":\"1209:0001\",\"serial\":\"A\\\"1\\\\\\n2\","
		"\"product\":\"b\xC3\xBFus\",\"port\":\"\",\"address\":0,\"speed\":\"\","
		"\"endpoint\":129,\"packet_bytes\":512,\"transfers\":0,\"transfer_bytes\":0,"
		"\"info\":{\"firmware\":\"\",\"serial\":\"\",\"protocol_version\":0,"
		"\"clock_hz\":66000000,\"features\":0,\"fifo_samples\":0},"
		"\"counters\":{\"samples\":\"18446744073709551615\",\"lost_samples\":1,\"fifo_peak_"
		"samples\":2},"
		"\"received_bytes\":12345,\"plugs\":3,\"unplugs\":0,\"stalls\":0,\"overflows\":0,"
		"\"errors\":0,\"timeouts\":0,\"silences\":0,\"restarts\":0,"
		"\"last_error\":\"it\\nis \\\"gone\\\"\"}},"
		"\"directory\":\"/var/lib/\xC3\xBE\","
		"\"recording\":{\"id\":\"20261120T091500Z-3f9a2c\",\"label\":null,"
		"\"started\":\"2026-11-20T09:15:00Z\",\"segment\":4,"
		"\"path\":\"/var/lib/\xC3\xBE/a.byu.lz4\",\"records\":90,\"bytes\":0,"
		"\"metadata\":{\"run\":\"a\\n\\\"b\\\"\",\"two words\":\"x\"}},"
		"\"flight\":{\"seconds\":1.5,"
		"\"bytes\":12,\"records\":1,\"chunks\":1,\"limit_seconds\":2.5,"
		"\"limit_bytes\":0},\"counts\":{\"received\":100,\"written\":90,"
		"\"durable\":80,\"in_flight\":5,\"dropped\":{\"buffer\":1,\"disk\":1,"
		"\"invalid\":1,\"filtered\":1,\"idle\":1},\"lost\":{\"buffer\":0,"
		"\"disk\":0,\"board\":7,\"sequence\":0,\"crc\":1024,\"unplugged\":0,"
		"\"damaged\":0,\"transfer\":0,\"crash\":0},\"gaps\":5,\"inexact_gaps\":3,"
		"\"away_seconds\":25.4,"
		"\"skipped_bytes\":0,\"damaged_places\":0,\"unknown_special_cycles\":0,"
		"\"deleted_records\":0},\"rates\":{\"samples_per_second\":"
		"0,"
		"\"record_bytes_per_second\":0,\"written_bytes_per_second\":1000000},\"buffer\":{"
		"\"chunks\":0,"
		"\"free_chunks\":0,\"min_free_chunks\":0,\"time_left_seconds\":0},\"disk\":{\"free_"
		"bytes\":1099511627776,"
		"\"ring\":null,\"time_left_seconds\":1099511,\"stuck\":false,"
		"\"last_sync_seconds\":0.25,\"longest_sync_seconds\":4.5,"
		"\"last_error\":\"No space left on device\",\"last_error_cause\":\"No space left "
		"on "
		"device\"},\"sealed\":{\"segments\":0,"
		"\"commands_waiting\":0,\"commands_failed\":0},"
		"\"triggers\":0,\"clients\":3,\"streams\":{\"events\":2,\"records\":0},"
		"\"dropped_log_lines\":7,\"uptime_seconds\":12.3}\n");
	free(text);
}
