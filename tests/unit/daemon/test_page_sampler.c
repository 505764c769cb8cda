#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/page_sampler.h"
#include "formats/base/json.h"
#include "formats/bus/record.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define SECOND_NS UINT64_C(1000000000)

struct fixture {
	struct bc_page_sampler *sampler;
	struct bc_chunk *chunk;
	struct dice dice;
};

static void set_up(struct fixture *f)
{
	f->chunk = test_alloc(sizeof(*f->chunk));
	f->dice.state = 1;
	assert_int_equal(bc_page_sampler_open(&f->sampler), 0);
}

static void tear_down(struct fixture *f)
{
	bc_page_sampler_close(f->sampler);
	free(f->chunk);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static void add_record(struct fixture *f, uint32_t page, uint8_t type, uint8_t proc)
{
	struct bc_chunk *chunk = f->chunk;
	struct bc_record record = {.addr = page << BC_PAGE_SAMPLER_PAGE_LOG | 0x123,
		.reqtype = type,
		.size = 8,
		.proc = proc};

	bc_record_store(chunk->records + (size_t)chunk->info.records++ * BC_RECORD_BYTES, &record);
	if (chunk->info.records == BC_CHUNK_RECORDS) {
		bc_page_sampler_records(f->sampler, chunk, 0);
		chunk->info.records = 0;
	}
}

static void flush(struct fixture *f)
{
	bc_page_sampler_records(f->sampler, f->chunk, 0);
	f->chunk->info.records = 0;
}

/* The JSON as a client gets it: printed and parsed again. */
static json_t *reported(const struct bc_page_sampler *sampler)
{
	json_t *object = bc_page_sampler_json(sampler);
	char *text = bc_json_print(object);
	json_t *read = json_loads(text, 0, NULL);

	assert_non_null(read);
	free(text);
	json_decref(object);
	return read;
}

static uint64_t member(const json_t *mix, const char *of, const char *name)
{
	return bc_json_member_u64(json_object_get(mix, of), name);
}

static uint64_t sum_of(const json_t *mix, const char *name)
{
	const char *key;
	json_t *item;
	uint64_t sum = 0;

	json_object_foreach(json_object_get(mix, name), key, item)
	{
		sum += (uint64_t)json_integer_value(item);
	}
	return sum;
}

static uint32_t page_of(const json_t *page)
{
	const char *addr = json_string_value(json_object_get(page, "addr"));

	assert_non_null(addr);
	assert_int_equal(strlen(addr), 10);
	return (uint32_t)(strtoull(addr, NULL, 16) >> BC_PAGE_SAMPLER_PAGE_LOG);
}

static json_t *pages_of(const json_t *mix)
{
	return json_object_get(mix, "pages");
}

TEST_F(without_records_all_figures_are_zero)
{
	json_t *object = bc_page_sampler_json(f->sampler);
	char *text = bc_json_print(object);

	assert_string_equal(text, "{\"records\":0,\"sampled_records\":0,\"types\":{},\"procs\":{},"
				  "\"memory_requests\":0,"
				  "\"pages\":[]}");
	free(text);
	json_decref(object);
}

/* After any number of records. */
TEST_F(one_sixteenth_of_the_records_is_counted)
{
	uint64_t seen = 0;

	for (unsigned i = 0; i < BC_CHUNK_RECORDS; i++)
		add_record(f, i & 3, BC_REQ_FETCH, 0);
	f->chunk->info.records = 0;
	for (uint32_t i = 1; i <= 20 * BC_PAGE_SAMPLER_BLOCK; i++) {
		f->chunk->info.records = i;
		bc_page_sampler_records(f->sampler, f->chunk, i - 1);
		seen++;
		if (i % 61 != 0 && i % BC_PAGE_SAMPLER_BLOCK != 0)
			continue;
		json_t *mix = reported(f->sampler);
		uint64_t sampled = bc_json_member_u64(mix, "sampled_records");
		assert_int_equal(bc_json_member_u64(mix, "records"), seen + BC_CHUNK_RECORDS);
		assert_int_equal(sum_of(mix, "types"), sampled);
		assert_int_equal(sum_of(mix, "procs"), sampled);
		assert_int_equal(bc_json_member_u64(mix, "memory_requests"), sampled);
		uint64_t blocks = (seen + BC_CHUNK_RECORDS) / BC_PAGE_SAMPLER_BLOCK;
		assert_in_range(sampled, blocks * BC_PAGE_SAMPLER_SAMPLES,
			blocks * BC_PAGE_SAMPLER_SAMPLES +
				((seen + BC_CHUNK_RECORDS) % BC_PAGE_SAMPLER_BLOCK != 0
						? BC_PAGE_SAMPLER_SAMPLES
						: 0));
		json_decref(mix);
	}
}

/* All at once, one by one, and cut anywhere. */
TEST_F(the_sizes_of_batches_make_no_difference)
{
	const uint32_t records = 5000;
	const uint32_t step = test_stride(11); /* from 1200 to 1 */
	json_t *whole = NULL;

	while (f->chunk->info.records < records)
		add_record(f, dice_below(&f->dice, 50), (uint8_t)dice_below(&f->dice, 4),
			(uint8_t)dice_below(&f->dice, 3));
	for (uint32_t piece = records; piece != 0;
		piece = piece > 1200 ? 1200 : piece - (piece > step ? step : piece)) {
		struct bc_page_sampler *sampler;
		assert_int_equal(bc_page_sampler_open(&sampler), 0);
		for (uint32_t from = 0; from < records; from += piece) {
			f->chunk->info.records = from + piece < records ? from + piece : records;
			bc_page_sampler_records(sampler, f->chunk, from);
		}
		json_t *got = reported(sampler);
		if (whole == NULL)
			whole = json_incref(got);
		assert_true(json_equal(got, whole));
		json_decref(got);
		bc_page_sampler_close(sampler);
	}
	json_decref(whole);
}

/* The processor number encodes the position in the block: four positions per number. */
TEST_F(every_position_of_a_block_has_the_same_chance)
{
	const unsigned blocks = 20000;
	const double expected = 4.0 * blocks * BC_PAGE_SAMPLER_SAMPLES / BC_PAGE_SAMPLER_BLOCK;

	for (unsigned i = 0; i < blocks * BC_PAGE_SAMPLER_BLOCK; i++)
		add_record(f, 0, BC_REQ_FETCH, (uint8_t)(i % BC_PAGE_SAMPLER_BLOCK / 4));
	flush(f);
	json_t *mix = reported(f->sampler);
	for (unsigned proc = 0; proc < 256; proc++) {
		char name[8];
		snprintf(name, sizeof(name), "%u", proc);
		/* The four positions are usually sampled together; the limit is six standard
		 * deviations of their common count. */
		assert_true(fabs((double)member(mix, "procs", name) - expected) <
			    6 * 4 * sqrt(expected / 4));
	}
	json_decref(mix);
}

/* Each block has one page only, so the true counts are known exactly. There are far more pages than
 * the sampler holds, so most are replaced and come back. */
TEST_F(the_true_count_of_a_page_is_within_its_bounds)
{
	enum { PAGES = 1 << 15 };
	const unsigned blocks = 100000 / test_stride(5);
	uint64_t *truth = calloc(PAGES, sizeof(*truth));
	unsigned inexact = 0;

	assert_non_null(truth);
	for (unsigned block = 0; block < blocks; block++) {
		/* Usually one of the pages that are hot at this time. */
		uint32_t hot = block / (blocks / 5) * 99 + dice_below(&f->dice, 60);
		uint32_t page = block % 3 != 0 ? hot : dice_below(&f->dice, PAGES);
		truth[page] += BC_PAGE_SAMPLER_SAMPLES;
		for (unsigned i = 0; i < BC_PAGE_SAMPLER_BLOCK; i++)
			add_record(f, page, BC_REQ_MEMREAD, 0);
		if ((block + 1) % (blocks / 20) != 0)
			continue;
		flush(f);
		json_t *mix = reported(f->sampler);
		json_t *reported_page;
		size_t place;
		uint64_t before = UINT64_MAX;
		assert_int_equal(bc_json_member_u64(mix, "memory_requests"),
			(block + 1) * BC_PAGE_SAMPLER_SAMPLES);
		json_array_foreach(pages_of(mix), place, reported_page)
		{
			uint64_t least = bc_json_member_u64(reported_page, "requests");
			uint64_t more = bc_json_member_u64(reported_page, "max_error");
			uint64_t n = truth[page_of(reported_page)];
			assert_true(least <= n && n <= least + more);
			assert_true(least <= before && least != 0);
			before = least;
			inexact += more != 0;
		}
		json_decref(mix);
	}
	assert_int_not_equal(inexact, 0); /* some pages needed their bounds */
	free(truth);
}

TEST_F(only_memory_requests_have_pages)
{
	for (unsigned i = 0; i < 256 * BC_PAGE_SAMPLER_BLOCK; i++)
		add_record(f, i / BC_PAGE_SAMPLER_BLOCK, (uint8_t)(i / BC_PAGE_SAMPLER_BLOCK), 7);
	flush(f);
	json_t *mix = reported(f->sampler);
	assert_int_equal(json_array_size(pages_of(mix)), 4);
	for (int i = 0; i < 4; i++) {
		const json_t *page = json_array_get(pages_of(mix), (size_t)i);
		assert_int_equal(page_of(page), i);
		assert_int_equal(bc_json_member_u64(page, "requests"), BC_PAGE_SAMPLER_SAMPLES);
		assert_int_equal(bc_json_member_u64(page, "max_error"), 0);
	}
	assert_int_equal(bc_json_member_u64(mix, "memory_requests"), 4 * BC_PAGE_SAMPLER_SAMPLES);
	assert_int_equal(json_object_size(json_object_get(mix, "types")), 256);
	assert_int_equal(member(mix, "types", "IOWRITE"), BC_PAGE_SAMPLER_SAMPLES);
	assert_int_equal(member(mix, "types", "0xf2"), BC_PAGE_SAMPLER_SAMPLES);
	assert_int_equal(member(mix, "procs", "7"), 256 * BC_PAGE_SAMPLER_SAMPLES);
	json_decref(mix);
}

static void add_blocks(struct fixture *f, uint32_t page, unsigned blocks)
{
	for (unsigned i = 0; i < blocks * BC_PAGE_SAMPLER_BLOCK; i++)
		add_record(f, page, BC_REQ_FETCH, 0);
	flush(f);
}

static void check_page(struct fixture *f, int place, uint32_t page, uint64_t samples)
{
	json_t *mix = reported(f->sampler);
	const json_t *item = json_array_get(pages_of(mix), (size_t)place);

	assert_non_null(item);
	assert_int_equal(page_of(item), page);
	assert_int_equal(bc_json_member_u64(item, "requests"), samples);
	json_decref(mix);
}

TEST_F(page_counts_halve_every_ten_seconds_and_others_do_not)
{
	uint64_t now = 77 * SECOND_NS;

	bc_page_sampler_age(f->sampler, now);
	add_blocks(f, 0xFFFFF, 1024);
	for (uint64_t samples = 1024 * BC_PAGE_SAMPLER_SAMPLES; samples != 0; samples /= 2) {
		check_page(f, 0, 0xFFFFF, samples);
		for (unsigned tenth = 0; tenth < 10; tenth++)
			bc_page_sampler_age(f->sampler, now += SECOND_NS);
	}
	json_t *mix = reported(f->sampler);
	assert_int_equal(json_array_size(pages_of(mix)), 0);
	assert_int_equal(
		bc_json_member_u64(mix, "sampled_records"), 1024 * BC_PAGE_SAMPLER_SAMPLES);
	assert_int_equal(member(mix, "types", "FETCH"), 1024 * BC_PAGE_SAMPLER_SAMPLES);
	assert_int_equal(bc_json_member_u64(mix, "memory_requests"), 1); /* rounded up */
	json_decref(mix);
}

TEST_F(a_page_that_is_hot_now_overtakes_an_earlier_one)
{
	bc_page_sampler_age(f->sampler, SECOND_NS);
	add_blocks(f, 1, 100);
	add_blocks(f, 2, 40);
	check_page(f, 0, 1, 6400);
	bc_page_sampler_age(f->sampler, 21 * SECOND_NS);
	add_blocks(f, 2, 40);
	check_page(f, 0, 2, 40 * 64 + 10 * 64);
	check_page(f, 1, 1, 25 * 64);
}

/* Months in steps of any length. A clock that stops or goes backwards changes nothing. */
TEST_F(weights_never_overflow_and_old_counts_end)
{
	static const uint64_t steps_s[] = {1, 0, 10, 59, 600, 639, 641, 86400, 1000000};
	uint64_t now = SECOND_NS;

	bc_page_sampler_age(f->sampler, now);
	for (unsigned i = 0; i < 20000; i += test_stride(7)) {
		add_blocks(f, i & 0xFFFFF, 1);
		add_blocks(f, i & 0xFFFFF, 1);
		json_t *mix = reported(f->sampler);
		uint64_t samples = 0;
		json_t *page;
		size_t place;
		json_array_foreach(pages_of(mix), place, page)
			samples += bc_json_member_u64(page, "requests");
		assert_in_range(samples, 0, bc_json_member_u64(mix, "memory_requests"));
		assert_in_range(bc_json_member_u64(mix, "memory_requests"),
			2 * BC_PAGE_SAMPLER_SAMPLES, 200 * BC_PAGE_SAMPLER_SAMPLES);
		json_decref(mix);
		bc_page_sampler_age(f->sampler, now += (1 + steps_s[i % 9]) * SECOND_NS);
		bc_page_sampler_age(f->sampler, now - 1);
		bc_page_sampler_age(f->sampler, now);
	}
	bc_page_sampler_age(f->sampler, UINT64_MAX);
	json_t *mix = reported(f->sampler);
	assert_int_equal(json_array_size(pages_of(mix)), 0);
	assert_int_equal(bc_json_member_u64(mix, "memory_requests"), 0);
	json_decref(mix);
}
