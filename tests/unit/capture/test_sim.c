#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "capture/sim/sim.h"
#include "formats/base/bytes.h"
#include "formats/bus/bcp1.h"
#include "formats/bus/sample.h"
#include "tests/support/test.h"

#define MANY 1000000u /* samples: enough for every rare event */

struct got_sample {
	uint32_t address;
	uint8_t enables;
	uint8_t control;
	uint64_t tick;
};

/* What the board has sent, and which of it in frames with a flipped bit. */
struct sent {
	uint64_t frames;
	uint64_t samples;
	uint64_t lost;
	uint64_t corrupted_frames;
	uint64_t corrupted_samples;
	uint64_t corrupted_lost; /* in headers with the flipped bit */
};

/* A stream as a receiver reads it. */
struct got {
	struct got_sample *samples;
	size_t n;
	size_t room;
	uint64_t bytes;
	uint64_t frames;
	uint64_t damaged_frames;
	uint64_t lost;        /* from the headers, including those of damaged frames */
	uint64_t long_deltas; /* between frames, above the 16 bits within one */
	unsigned last_frames;
	uint64_t hash; /* of all bytes; not a CRC, because frames that contain their own CRC all
			  give the same CRC */
	struct sent sent;
};

static struct bc_sim_options options_of(uint64_t seed, uint64_t count, unsigned agents)
{
	return (struct bc_sim_options){.seed = seed, .count = count, .agents = agents};
}

static unsigned type_of(const struct got_sample *s)
{
	return s->control >> 4;
}

static void take_samples(struct got *got, const struct bc_bcp1_frame *frame)
{
	uint64_t tick = frame->header.tick;

	for (uint32_t i = 0; i < frame->header.samples; i++) {
		const uint8_t *p = frame->samples + (size_t)i * BC_BCP1_SAMPLE_BYTES;
		tick += bc_le16(p + 6);
		if (i == 0)
			assert_int_equal(bc_le16(p + 6), 0);
		if (got->n == got->room) {
			got->room = got->room * 2 + 4096;
			got->samples = realloc(got->samples, got->room * sizeof(*got->samples));
			assert_non_null(got->samples);
		}
		if (got->n != 0)
			assert_true(tick > got->samples[got->n - 1].tick);
		if (i == 0 && got->n != 0 && tick - got->samples[got->n - 1].tick > UINT16_MAX)
			got->long_deltas++;
		got->samples[got->n++] = (struct got_sample){bc_be32(p), p[4], p[5], tick};
	}
}

static void take_found(
	struct got *got, const struct bc_bcp1_frame *frame, bool is_damaged, unsigned agents)
{
	const struct bc_bcp1_header *h = &frame->header;

	assert_int_equal(h->proc, 0);
	assert_int_equal((h->flags & BC_BCP1_AGENT) != 0, agents > 1);
	assert_int_equal((h->flags & BC_BCP1_LOSS) != 0, h->lost != 0);
	assert_int_equal(h->flags & ~(BC_BCP1_AGENT | BC_BCP1_LOSS | BC_BCP1_LAST), 0);
	got->lost += h->lost;
	if (is_damaged) {
		got->damaged_frames++;
		return;
	}
	got->frames++;
	got->last_frames += (h->flags & BC_BCP1_LAST) != 0;
	take_samples(got, frame);
}

/* Counts a frame, of which `whole` is the same without a flipped bit. */
static void take_sent(struct sent *sent, const uint8_t *frame, const uint8_t *whole, size_t bytes)
{
	struct bc_bcp1_header header;

	assert_true(bc_bcp1_read_header(&header, whole));
	sent->frames++;
	sent->samples += header.samples;
	sent->lost += header.lost;
	if (memcmp(frame, whole, bytes) == 0)
		return;
	sent->corrupted_frames++;
	sent->corrupted_samples += header.samples;
	if (memcmp(frame, whole, BC_BCP1_HEADER_BYTES) != 0)
		sent->corrupted_lost += header.lost;
}

/* Runs a stream to its end. `cuts` is a repeating sequence of samples_max. The board is stopped
 * after `stop_at` frames, unless that is 0. */
static struct got run(
	const struct bc_sim_options *options, const uint32_t *cuts, size_t n_cuts, uint64_t stop_at)
{
	static uint8_t bytes[BC_SIM_FRAME_MAX];
	static uint8_t whole[BC_SIM_FRAME_MAX];
	struct bc_sim_options clean = *options;
	struct bc_bcp1_reader *reader = malloc(sizeof(*reader));
	struct bc_bcp1_frame frame;
	struct got got = {0};
	struct bc_sim *sim;
	struct bc_sim *clean_sim;

	assert_non_null(reader);
	bc_bcp1_reader_init(reader);
	clean.corrupt_ppm = 0;
	assert_int_equal(bc_sim_open(&sim, options), 0);
	assert_int_equal(bc_sim_open(&clean_sim, &clean), 0);
	bool is_last = false;
	for (uint64_t i = 0; !is_last; i++) {
		if (stop_at != 0 && i == stop_at)
			bc_sim_stop(sim);
		size_t n = bc_sim_next(sim, cuts[i % n_cuts], UINT64_MAX, bytes);
		assert_true(n <= BC_SIM_FRAME_MAX);
		is_last = n == 0;
		if (!is_last && options->corrupt_ppm != 0) {
			assert_int_equal(
				bc_sim_next(clean_sim, cuts[i % n_cuts], UINT64_MAX, whole), n);
			take_sent(&got.sent, bytes, whole, n);
		}
		got.bytes += n;
		if (!is_last)
			got.hash = XXH3_64bits_withSeed(bytes, n, got.hash);
		const uint8_t *data = bytes;
		enum bc_bcp1_found found;
		while ((found = bc_bcp1_next(reader, &data, &n, is_last, &frame)) != BC_BCP1_MORE)
			take_found(&got, &frame, found == BC_BCP1_DAMAGED, options->agents);
	}
	if (options->corrupt_ppm == 0 && got.n != 0)
		assert_int_equal(reader->skipped_bytes, 0);
	assert_int_equal(bc_sim_next(sim, 1, UINT64_MAX, bytes), 0);
	bc_sim_close(sim);
	bc_sim_close(clean_sim);
	free(reader);
	return got;
}

static struct got run_whole(const struct bc_sim_options *options)
{
	static const uint32_t whole[] = {BC_SIM_FRAME_SAMPLES};

	return run(options, whole, 1, 0);
}

static bool is_same(const struct got_sample *a, const struct got_sample *b)
{
	return a->address == b->address && a->enables == b->enables && a->control == b->control &&
	       a->tick == b->tick;
}

TEST(a_stop_before_the_first_frame_gives_only_the_last_frame)
{
	uint8_t bytes[BC_SIM_FRAME_MAX];
	struct bc_sim_options options = options_of(5, 0, 1);
	struct bc_bcp1_header header;
	struct bc_sim *sim;

	assert_int_equal(bc_sim_open(&sim, &options), 0);
	bc_sim_stop(sim);
	assert_int_equal(bc_sim_next(sim, 100, UINT64_MAX, bytes), BC_BCP1_HEADER_BYTES);
	assert_true(bc_bcp1_read_header(&header, bytes));
	assert_int_equal(header.flags, BC_BCP1_LAST);
	assert_int_equal(header.sequence, 0);
	assert_int_equal(bc_sim_next(sim, 100, UINT64_MAX, bytes), 0);
	bc_sim_close(sim);
}

TEST(frames_are_numbered_from_zero_and_have_the_requested_samples)
{
	uint8_t bytes[BC_SIM_FRAME_MAX];
	struct bc_sim_options options = options_of(6, 0, 3);
	struct bc_bcp1_header header;
	struct bc_sim *sim;
	uint64_t tick = 0;

	assert_int_equal(bc_sim_open(&sim, &options), 0);
	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t asked = i % 5 == 0 ? UINT32_MAX : i % 7;
		size_t n = bc_sim_next(sim, asked, UINT64_MAX, bytes);
		assert_true(bc_bcp1_read_header(&header, bytes));
		assert_int_equal(n, bc_bcp1_frame_bytes(header.samples));
		assert_int_equal(header.sequence, i);
		assert_true(header.samples <= asked && header.samples <= BC_SIM_FRAME_SAMPLES);
		assert_int_equal(header.samples == 0, asked == 0);
		assert_true(header.tick >= tick);
		tick = header.tick;
	}
	bc_sim_close(sim);
}

/* The bytes must not change: other values here would mean that every simulated recording changes.
 */
TEST(bytes_are_the_same_on_every_machine)
{
	static const uint64_t hashes[] = {0, UINT64_C(0x015E6C3386053F11),
		UINT64_C(0xFFC3D3081D024C57), UINT64_C(0xF2108F07246FF143),
		UINT64_C(0x160AF7F1F61A654F)};

	for (unsigned agents = 1; agents <= 4; agents += test_stride(3)) {
		struct bc_sim_options options = options_of(1, 200000, agents);
		options.loss_ppm = 50000;
		options.corrupt_ppm = 50000;
		struct got got = run_whole(&options);
		struct got again = run_whole(&options);
		assert_int_equal(got.hash, again.hash);
		assert_int_equal(got.hash, hashes[agents]);
		free(got.samples);
		free(again.samples);
	}
}

TEST(samples_do_not_depend_on_where_frames_end)
{
	static const uint32_t cuts[][3] = {{1, 1, 1}, {7, 7, 7}, {100, 0, 3}, {2048, 1, 500}};

	for (unsigned agents = 1; agents <= 4; agents += test_stride(3)) {
		struct bc_sim_options options = options_of(11, 100000 / test_stride(5), agents);
		struct got whole = run_whole(&options);
		for (size_t i = 0; i < COUNT_OF(cuts); i++) {
			struct got cut = run(&options, cuts[i], 3, 0);
			assert_int_equal(cut.n, whole.n);
			for (size_t j = 0; j < whole.n; j++)
				assert_true(is_same(&cut.samples[j], &whole.samples[j]));
			free(cut.samples);
		}
		free(whole.samples);
	}
}

TEST(losses_are_holes_in_the_same_stream)
{
	const unsigned count = 200000 / test_stride(4);
	struct bc_sim_options options = options_of(3, count, 2);
	struct bc_sim_options lossless = options_of(3, 3 * count, 2);
	options.loss_ppm = 300000;
	struct got got = run_whole(&options);
	struct got all = run_whole(&lossless);
	size_t at = 0;

	if (all.samples == NULL)
		abort();
	assert_true(got.lost > 0);
	assert_int_equal(got.n, count);
	assert_true(got.n + got.lost <= all.n);
	for (size_t i = 0; i < got.n; i++, at++) {
		while (all.samples[at].tick < got.samples[i].tick)
			at++;
		assert_true(is_same(&got.samples[i], &all.samples[at]));
	}
	assert_int_equal(at, got.n + got.lost);
	free(got.samples);
	free(all.samples);
}

TEST(losses_and_corruption_are_accounted_for)
{
	static const uint32_t cuts[] = {2048, 17, 0, 300};

	for (unsigned agents = 1; agents <= 4; agents += test_stride(3))
		for (uint64_t seed = 0; seed < 5; seed += test_stride(5)) {
			struct bc_sim_options options = options_of(seed, 200000, agents);
			options.loss_ppm = 100000;
			options.corrupt_ppm = 200000;
			struct got got = run(&options, cuts, 4, 0);
			const struct sent *sent = &got.sent;
			assert_int_equal(sent->samples, 200000);
			assert_true(sent->corrupted_frames > 0 && sent->lost > 0);
			assert_int_equal(got.n, sent->samples - sent->corrupted_samples);
			assert_int_equal(got.frames, sent->frames - sent->corrupted_frames);
			assert_true(got.damaged_frames <= sent->corrupted_frames);
			assert_int_equal(got.lost, sent->lost - sent->corrupted_lost);
			free(got.samples);
		}
}

/* The tests below examine the bus: a million samples for one agent and for four, at night
 * for each number. */
struct fixture {
	struct got got[5];
};

static void set_up(struct fixture *f)
{
	for (unsigned agents = 1; agents <= 4; agents += test_stride(3)) {
		struct bc_sim_options options = options_of(agents, MANY, agents);
		f->got[agents] = run_whole(&options);
	}
}

static void tear_down(struct fixture *f)
{
	for (unsigned agents = 1; agents <= 4; agents += test_stride(3))
		free(f->got[agents].samples);
}

TEST_SHARED_FIXTURE(fixture, set_up, tear_down)

TEST_F(every_cycle_type_occurs_in_its_proportion)
{
	/* Minimum and maximum per million. */
	static const struct {
		size_t least, most;
	} bounds[BC_CYCLE_TYPES] = {
		[0] = {1, 40},
		[BC_CYCLE_INT_ACK] = {40, 2000},
		[2] = {1, 40},
		[BC_CYCLE_SPECIAL] = {10, 3000},
		[4] = {1, 40},
		[BC_CYCLE_IO_READ] = {100, 30000},
		[6] = {1, 40},
		[BC_CYCLE_IO_WRITE] = {40, 3000},
		[BC_CYCLE_I_FETCH] = {350000, 650000},
		[BC_CYCLE_NC_I_FETCH] = {24, 10000},
		[10] = {1, 40},
		[11] = {1, 40},
		[BC_CYCLE_D_READ] = {150000, 350000},
		[BC_CYCLE_NC_D_READ] = {1000, 40000},
		[BC_CYCLE_WRITE_BACK] = {40000, 150000},
		[BC_CYCLE_D_WRITE] = {80000, 250000},
	};

	for (unsigned agents = 1; agents <= 4; agents += test_stride(3)) {
		size_t counts[BC_CYCLE_TYPES] = {0};
		for (size_t i = 0; i < MANY; i++)
			counts[type_of(&f->got[agents].samples[i])]++;
		for (unsigned type = 0; type < BC_CYCLE_TYPES; type++)
			assert_in_range(counts[type], bounds[type].least, bounds[type].most);
	}
}

TEST_F(interrupts_are_acknowledged_in_pairs_and_ended_at_port_20)
{
	for (unsigned agents = 1; agents <= 4; agents += test_stride(3)) {
		const struct got_sample *s = f->got[agents].samples;
		size_t pairs = 0, ends = 0;
		for (size_t i = 0; i + 1 < MANY; i++) {
			if (type_of(&s[i]) == BC_CYCLE_IO_WRITE && s[i].address == 0x20 &&
				s[i].enables == 0xFE) {
				ends++;
				assert_true(ends == pairs);
			}
			if (type_of(&s[i]) != BC_CYCLE_INT_ACK)
				continue;
			assert_int_equal(s[i].address, 0);
			assert_int_equal(s[i].enables, 0xEF); /* byte 4 */
			assert_int_equal(s[i].control & 15, 0);
			i++;
			assert_int_equal(type_of(&s[i]), BC_CYCLE_INT_ACK);
			assert_int_equal(s[i].address, 0);
			assert_int_equal(s[i].enables, 0xFE); /* byte 0 */
			assert_true(s[i].tick - s[i - 1].tick < 100);
			pairs++;
		}
		assert_in_range(ends, pairs - 1, pairs);
	}
}
