#include <string.h>

#include "daemon/recorder/status.h"
#include "tests/support/test.h"

#define MB     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

/* 1 GB is free, recordings use 19 MB in two segments, and grow by 1 MB/s. */
struct fixture {
	struct bc_status status;
	struct bc_writer_stats stats;
};

static void set_up(struct fixture *f)
{
	f->status.busy = "";
	f->stats.is_checked = true;
	f->stats.is_free_known = true;
	f->stats.free_bytes = 1000 * MB;
	f->stats.used_bytes = 19 * MB;
	f->stats.segments = 2;
	f->status.stats = &f->stats;
	f->status.rates.growth_per_s = 1e6;
}

TEST_FIXTURE(fixture, set_up, NOTHING)

static struct bc_space_forecast forecast(const struct fixture *f)
{
	return bc_status_space(&f->status);
}

static bool will_fill(const struct fixture *f)
{
	return forecast(f).seconds_left != UINT64_MAX;
}

TEST_F(without_rules_the_disk_fills)
{
	struct bc_space_forecast seen = forecast(f);

	assert_false(seen.has_ring);
	assert_int_equal(seen.seconds_left, 1000);
	f->status.rates.growth_per_s = 0;
	assert_false(will_fill(f));
}

TEST_F(a_ring_that_fits_never_fills_the_disk)
{
	f->status.rotation.files = 3;
	f->status.rotation.file_bytes = 8 * MB;
	struct bc_space_forecast seen = forecast(f);
	assert_true(seen.has_ring);
	assert_int_equal(seen.limit_bytes, 24 * MB);
	assert_int_equal(seen.limit_segments, 3);
	assert_false(will_fill(f));
}

TEST_F(a_ring_larger_than_the_disk_fills_it)
{
	f->status.rotation.files = 1000;
	f->status.rotation.file_bytes = 8 * MB;
	struct bc_space_forecast seen = forecast(f);
	assert_int_equal(seen.limit_bytes, 8000 * MB);
	assert_int_equal(seen.seconds_left, 1000);
}

TEST_F(segments_limited_in_time_make_a_ring_of_segments)
{
	f->status.rotation.files = 3;
	f->status.rotation.duration_ns = 60 * SECOND;
	struct bc_space_forecast seen = forecast(f);
	assert_true(seen.has_ring);
	assert_int_equal(seen.limit_bytes, 0);
	assert_false(will_fill(f));
	f->status.rotation.files = 1000;
	assert_true(will_fill(f));
	/* Whole recordings, however long. */
	f->status.rotation = (struct bc_rotation){.files = 3};
	assert_true(will_fill(f));
}

TEST_F(the_lowest_limit_applies)
{
	f->status.space.max_use_bytes = 500 * MB;
	assert_int_equal(forecast(f).limit_bytes, 500 * MB);
	assert_false(will_fill(f));
	f->status.space.keep_free_bytes = 900 * MB;
	assert_int_equal(forecast(f).limit_bytes, 119 * MB);
	assert_false(will_fill(f));
	f->status.space.keep_free_bytes = 2000 * MB;
	assert_int_equal(forecast(f).limit_bytes, 19 * MB);
	assert_false(will_fill(f));
}

TEST_F(a_limit_of_the_free_space_is_unknown_until_the_first_check)
{
	f->status.space.max_use_bytes = 2000 * MB;
	f->status.space.keep_free_bytes = 900 * MB;
	assert_int_equal(forecast(f).limit_bytes, 119 * MB);
	memset(&f->stats, 0, sizeof(f->stats));
	assert_int_equal(forecast(f).limit_bytes, 0);
	assert_true(forecast(f).has_ring);
	assert_false(will_fill(f));
}

TEST_F(unknown_free_space_has_no_forecast)
{
	f->stats.is_free_known = false;
	f->stats.free_bytes = 0;
	assert_false(will_fill(f));
	f->status.space.keep_free_bytes = 900 * MB;
	assert_int_equal(forecast(f).limit_bytes, 0);
	assert_false(forecast(f).has_ring);
	f->status.space.max_use_bytes = 500 * MB;
	assert_int_equal(forecast(f).limit_bytes, 500 * MB);
	assert_false(will_fill(f));
}

TEST_F(without_free_inodes_the_disk_is_full_unless_keep_free_makes_room)
{
	f->stats.has_no_inodes = true;
	assert_true(will_fill(f));
	assert_int_equal(forecast(f).seconds_left, 0);
	f->status.space.keep_free_bytes = 100 * MB;
	assert_false(will_fill(f));
}

TEST_F(an_age_limit_keeps_the_disk_from_filling_if_it_is_low_enough)
{
	f->status.space.max_age_ns = 600 * SECOND;
	assert_false(forecast(f).has_ring);
	assert_false(will_fill(f));
	f->status.space.max_age_ns = 6000 * SECOND;
	assert_true(will_fill(f));
}

static json_t *buffer_left(struct fixture *f)
{
	json_t *status = bc_status_json(&f->status);
	json_t *left = json_incref(
		json_object_get(json_object_get(status, "buffer"), "time_left_seconds"));

	assert_non_null(left);
	json_decref(status);
	return left;
}

static void check_buffer_left(struct fixture *f, double seconds)
{
	json_t *left = buffer_left(f);

	assert_true(json_is_number(left));
	assert_true(json_number_value(left) == seconds);
	json_decref(left);
}

/* What counts is what enters the buffer: nothing is written while the disk is stuck. A free chunk
 * takes several packed ones. */
TEST_F(the_buffer_lasts_as_long_as_records_of_the_last_second_fit)
{
	struct bc_rate_meter meter = {.polled_ns = SECOND};
	struct bc_counts counts = {.written = 0};
	const struct bc_recording_info recording = {.tag = 1};

	f->status.counts = &counts;
	f->status.buffer = (struct bc_buffer_state){
		.chunks = 48, .free = 10, .min_free = 7, .records_left = 40 * BC_CHUNK_RECORDS};
	f->status.recording = &recording;
	json_t *left = buffer_left(f);
	assert_true(json_is_null(left));
	json_decref(left);
	counts.written = 3 * BC_CHUNK_RECORDS;
	counts.in_flight = 5 * BC_CHUNK_RECORDS;
	bc_rates_poll(&f->status.rates, &meter, &counts, &f->stats, 2 * SECOND);
	check_buffer_left(f, 5);
	counts.in_flight += 16 * BC_CHUNK_RECORDS;
	bc_rates_poll(&f->status.rates, &meter, &counts, &f->stats, 3 * SECOND);
	check_buffer_left(f, 2.5);
	counts.in_flight -= BC_CHUNK_RECORDS; /* dropped */
	f->status.buffer.records_left = 0;
	bc_rates_poll(&f->status.rates, &meter, &counts, &f->stats, 4 * SECOND);
	check_buffer_left(f, 0);
	f->status.recording = NULL;
	left = buffer_left(f);
	assert_true(json_is_null(left));
	json_decref(left);
}

/* Chunks reach the disk in bursts. */
TEST_F(the_rate_of_growth_is_that_of_the_last_minute)
{
	struct bc_rate_meter meter = {.polled_ns = SECOND};
	struct bc_counts counts = {.received = 0};
	struct bc_rates rates;
	uint64_t now = SECOND;

	for (unsigned i = 1; i <= 600; i++) {
		now += SECOND;
		f->stats.bytes += i % 10 == 0 ? 10 * MB : 0;
		bc_rates_poll(&rates, &meter, &counts, &f->stats, now);
		if (i < 60)
			continue;
		assert_true(rates.growth_per_s > 0.8e6 && rates.growth_per_s < 1.2e6);
	}
	for (unsigned i = 0; i < 61; i++) {
		now += SECOND;
		bc_rates_poll(&rates, &meter, &counts, &f->stats, now);
	}
	assert_true(rates.growth_per_s < 1);
}
