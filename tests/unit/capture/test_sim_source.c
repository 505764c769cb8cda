#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "capture/source/sim_source.h"
#include "formats/base/bytes.h"
#include "formats/bus/bcp1.h"
#include "tests/support/source_run.h"
#include "tests/support/test.h"

/* About 50 frames of 2048 samples. */
static const struct bc_sim_options options = {.seed = 7, .count = 100000, .agents = 2};

/* The simulated board's stream without a source. */
struct stream {
	uint8_t *bytes;
	size_t n;
	uint32_t frames;
};

static void set_up(struct stream *stream)
{
	struct bc_sim *sim;

	stream->bytes = malloc(options.count * 16);
	assert_non_null(stream->bytes);
	assert_int_equal(bc_sim_open(&sim, &options), 0);
	for (size_t n; (n = bc_sim_next(sim, BC_SIM_FRAME_SAMPLES, UINT64_MAX,
				stream->bytes + stream->n)) != 0;) {
		stream->n += n;
		stream->frames++;
	}
	bc_sim_close(sim);
}

static void tear_down(struct stream *stream)
{
	free(stream->bytes);
}

TEST_SHARED_FIXTURE(stream, set_up, tear_down)

static void open_run(struct source_run *run, const struct bc_sim_options *with, uint64_t rate)
{
	source_run_init(run);
	assert_int_equal(bc_sim_source_open(&run->source, &run->loop, with, rate), 0);
	assert_string_equal(run->source->kind, "sim");
	assert_int_equal(run->source->is_live, rate != 0);
	assert_false(run->source->is_replay);
	assert_int_equal(run->source->clock_hz,
		rate == 0 ? BC_SIM_CLOCK_HZ : rate * BC_SIM_TICKS_PER_SAMPLE(with->agents));
}

static void assert_whole(const struct source_run *run, const struct stream *stream)
{
	assert_int_equal(run->ends, 1);
	assert_int_equal(run->status, 0);
	assert_int_equal(run->format, BC_FORMAT_BCP1);
	assert_int_equal(run->n, stream->n);
	assert_memory_equal(run->bytes, stream->bytes, stream->n);
	assert_int_equal(run->damages, 0);
}

/* Counts the frames that end the stream, and all samples. Checks that it is a prefix of the whole
 * stream. */
static uint64_t count_samples(const struct source_run *run, unsigned *lasts)
{
	uint64_t samples = 0;
	struct bc_bcp1_header header;

	*lasts = 0;
	for (size_t at = 0; at < run->n; at += bc_bcp1_frame_bytes(header.samples)) {
		assert_true(bc_bcp1_read_header(&header, run->bytes + at));
		assert_int_equal(*lasts, 0); /* nothing may follow it */
		*lasts += (header.flags & BC_BCP1_LAST) != 0;
		samples += header.samples;
	}
	return samples;
}

TEST_WITH(stream, stream, the_stream_arrives_in_order)
{
	struct source_run run;

	open_run(&run, &options, 0);
	source_run_all(&run);
	assert_whole(&run, stream);
	source_run_close(&run);
}

TEST_WITH(stream, stream, the_stream_arrives_in_order_even_if_frames_are_refused)
{
	for (unsigned refusals = 1; refusals <= 3; refusals++) {
		struct source_run run;
		open_run(&run, &options, 0);
		run.refusals = refusals;
		source_run_all(&run);
		assert_whole(&run, stream);
		source_run_close(&run);
	}
}

TEST(options_out_of_range_are_refused)
{
	static const struct bc_sim_options bad = {.agents = 9};
	struct source_run run;

	source_run_init(&run);
	assert_int_equal(bc_sim_source_open(&run.source, &run.loop, &bad, 0), -EINVAL);
	run.is_closed = true;
	source_run_close(&run);
}

TEST(a_source_can_be_closed_without_a_start)
{
	for (uint64_t rate = 0; rate <= 1000; rate += 1000) {
		struct source_run run;
		open_run(&run, &options, rate);
		source_run_close(&run);
		assert_int_equal(run.ends, 0);
		assert_int_equal(run.pieces, 0);
	}
}

/* An endless source, stopped after `frames` frames; by the sink in its call or on the next turn;
 * with and without refused frames. */
static void run_stopped(struct source_run *run, uint32_t frames, bool acts_in_call,
	unsigned refusals, uint64_t rate)
{
	static const struct bc_sim_options endless = {.seed = 7, .agents = 2};

	open_run(run, &endless, rate);
	run->act = ACT_STOP;
	run->act_at = frames;
	run->acts_in_call = acts_in_call;
	run->refusals = refusals;
	source_run_all(run);
}

TEST_WITH(stream, stream, a_stop_at_any_frame_ends_with_one_last_frame)
{
	static const struct test_edges edges = {2, {0, 20}};

	for (uint32_t frames = 0; frames <= 20; frames = (uint32_t)test_next(frames, 5, &edges)) {
		for (int within = 0; within < 2; within++) {
			for (unsigned refusals = 0; refusals <= 2; refusals++) {
				struct source_run run;
				unsigned lasts;
				run_stopped(&run, frames, within, refusals, 0);
				assert_int_equal(run.ends, 1);
				assert_int_equal(run.status, 0);
				count_samples(&run, &lasts);
				assert_int_equal(lasts, 1);
				/* Up to the stop it is the stream, without duplicate or missing
				 * frames. */
				size_t n = run.n - BC_BCP1_HEADER_BYTES;
				assert_true(n <= stream->n);
				assert_memory_equal(run.bytes, stream->bytes, n);
				assert_true(run.pieces > frames);
				source_run_close(&run);
			}
		}
	}
}

TEST(a_close_at_any_frame_ends_the_delivery)
{
	for (uint32_t frames = 0; frames <= 10; frames++) {
		for (int within = 0; within < 2; within++) {
			for (unsigned refusals = 0; refusals <= 1; refusals++) {
				struct source_run run;
				open_run(&run, &options, 0);
				run.act = ACT_CLOSE;
				run.act_at = frames;
				run.acts_in_call = within;
				run.refusals = refusals;
				source_run_all(&run); /* checks the result */
				assert_int_equal(run.ends, 0);
				source_run_close(&run);
			}
		}
	}
}

TEST_WITH(stream, stream, a_source_can_be_closed_in_its_end_callback)
{
	struct source_run run;

	open_run(&run, &options, 0);
	run.closes_in_end = true;
	source_run_all(&run);
	assert_whole(&run, stream);
	source_run_close(&run);
}

/* The host's time determines the frames, but not the samples in them. */
TEST_WITH(stream, stream, a_paced_source_sends_the_same_samples)
{
	struct bc_sim_options few = options;
	struct source_run run;
	unsigned lasts;

	few.count = 20000;
	open_run(&run, &few, 1000000);
	source_run_all(&run);
	assert_int_equal(run.ends, 1);
	assert_int_equal(count_samples(&run, &lasts), few.count);
	assert_int_equal(lasts, 1);

	/* Compare both, sample by sample. */
	struct bc_bcp1_header header = {0};
	struct bc_bcp1_header paced = {0};
	const uint8_t *at = stream->bytes;
	const uint8_t *paced_at = run.bytes;
	uint32_t left = 0;
	uint32_t paced_left = 0;
	uint64_t tick = 0;
	uint64_t paced_tick = 0;
	for (uint64_t i = 0; i < few.count; i++) {
		while (left == 0) {
			at += header.samples != 0 ? BC_BCP1_CRC_BYTES : 0;
			assert_true(bc_bcp1_read_header(&header, at));
			at += BC_BCP1_HEADER_BYTES;
			left = header.samples;
			tick = header.tick;
		}
		while (paced_left == 0) {
			paced_at += paced.samples != 0 ? BC_BCP1_CRC_BYTES : 0;
			assert_true(bc_bcp1_read_header(&paced, paced_at));
			paced_at += BC_BCP1_HEADER_BYTES;
			paced_left = paced.samples;
			paced_tick = paced.tick;
		}
		tick += bc_le16(at + 6);
		paced_tick += bc_le16(paced_at + 6);
		assert_memory_equal(at, paced_at, BC_SAMPLE_BYTES);
		assert_int_equal(tick, paced_tick);
		at += BC_BCP1_SAMPLE_BYTES;
		paced_at += BC_BCP1_SAMPLE_BYTES;
		left--;
		paced_left--;
	}
	source_run_close(&run);
}

TEST(a_paced_source_is_stopped_and_closed_at_any_frame)
{
	for (uint32_t frames = 0; frames <= 3; frames++) {
		for (int within = 0; within < 2; within++) {
			struct source_run run;
			unsigned lasts;
			run_stopped(&run, frames, within, 0, 100000);
			assert_int_equal(run.ends, 1);
			count_samples(&run, &lasts);
			assert_int_equal(lasts, 1);
			source_run_close(&run);

			open_run(&run, &options, 100000);
			run.act = ACT_CLOSE;
			run.act_at = frames;
			run.acts_in_call = within;
			source_run_all(&run);
			assert_int_equal(run.ends, 0);
			source_run_close(&run);
		}
	}
}

static void count_turn(uv_prepare_t *prepare)
{
	++*(unsigned *)prepare->data;
}

TEST(other_handles_get_their_turn_while_it_sends)
{
	struct source_run run;
	uv_prepare_t prepare;
	unsigned turns = 0;
	struct bc_sim_options many = options;

	many.count = 1000000;
	open_run(&run, &many, 0);
	uv_prepare_init(&run.loop, &prepare);
	prepare.data = &turns;
	uv_prepare_start(&prepare, count_turn);
	source_run_all(&run);
	assert_true(turns >= run.pieces / 100);
	uv_close((uv_handle_t *)&prepare, NULL);
	source_run_close(&run);
}
