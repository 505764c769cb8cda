/* An overview counts every record once, in the right column and row, from whatever the files still
 * say; and it follows a directory that changes. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/overview/overview.h"
#include "formats/segment/segment_header.h"
#include "formats/segment/segment_index.h"
#include "formats/segment/segment_writer.h"
#include "tests/support/compressor.h"
#include "tests/support/dice.h"
#include "tests/support/failing_heap.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

#define SECOND           INT64_C(1000000000)
#define START            (INT64_C(1795166100) * SECOND)
#define HZ               1000000u /* a tick is 1,000 ns */
#define RECORDS          300u     /* in a chunk */
#define FIRST            "20261120T091500Z-3f9a2c"
#define SECOND_RECORDING "20261120T101500Z-4f9a2c-boot"

static struct bc_chunk_pages chunk_pages;

/* A record that was written. */
struct written {
	unsigned recording;
	uint64_t number;
	int64_t time_ns;
	uint32_t place;
	unsigned class;
};

struct fixture {
	struct temp_dir dir;
	struct bc_chunk *chunk;
	uint8_t *encoded;
	struct dice dice;
	struct bc_segment_writer writer;
	char recording[BC_RECORDING_ID_MAX];
	uint32_t segment;
	uint64_t clock_hz;
	uint64_t number;
	uint64_t lost;
	struct bc_totals totals; /* of the recording */
	unsigned recordings;
	bool has_pages;    /* segments get a page summary */
	bool is_uncounted; /* chunks have no page counts */
	struct written *written;
	size_t count;
	char *paths[64];
	int path_count;
	struct bc_overview *overview;
	unsigned damages;
	unsigned repeats;
	unsigned opened;
	unsigned pace; /* reads until it stops; 0: never */
};

static int on_open(void *context, const char *path)
{
	struct fixture *f = context;

	f->opened++;
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void on_fault(void *context, const struct bc_segment_fault *fault)
{
	struct fixture *f = context;

	f->damages += fault->kind == BC_SEGMENT_DAMAGED;
	f->repeats += fault->kind == BC_SEGMENT_REPEATED;
}

static bool on_pace(void *context, uint64_t bytes)
{
	struct fixture *f = context;

	(void)bytes;
	return f->pace == 0 || --f->pace != 0;
}

static void set_up(struct fixture *f)
{
	struct bc_segment_io io = {
		.context = f, .open = on_open, .fault = on_fault, .pace = on_pace};

	temp_dir_make(&f->dir);
	f->chunk = test_alloc(sizeof(*f->chunk));
	f->encoded = test_alloc(BC_CHUNK_ENCODED_MAX);
	f->written = test_alloc(100000 * sizeof(*f->written));
	f->dice.state = 9;
	f->has_pages = true;
	f->clock_hz = HZ;
	assert_int_equal(bc_overview_open(&f->overview, &io), 0);
}

static void tear_down(struct fixture *f)
{
	bc_overview_close(f->overview);
	while (f->path_count > 0)
		free(f->paths[--f->path_count]);
	free(f->written);
	free(f->encoded);
	free(f->chunk);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

/* ---- writing */

static void start_segment(struct fixture *f, const char *recording, uint32_t segment)
{
	struct bc_segment_header header = {.segment = segment,
		.clock_hz = f->clock_hz,
		.wall_ns = START,
		.metadata = "{\"board\":\"A\"}"};
	char name[BC_SEGMENT_NAME_MAX];

	f->recordings += strcmp(f->recording, recording) != 0;
	if (segment == 0) {
		f->number = f->lost = 0;
		f->totals = (struct bc_totals){.gaps = 0};
	}
	snprintf(f->recording, sizeof(f->recording), "%s", recording);
	snprintf(header.recording, sizeof(header.recording), "%s", recording);
	f->segment = segment;
	snprintf(name, sizeof(name), "%s-%05" PRIu32 ".byu.lz4", recording, segment);
	assert_int_equal(bc_segment_create(&f->writer, f->dir.fd, name, ".partial", &header), 0);
	f->paths[f->path_count] = test_alloc(512);
	snprintf(f->paths[f->path_count++], 512, "%s/%s", f->dir.path, name);
}

static void reset_chunk(struct fixture *f, int64_t wall_ns, uint32_t epoch)
{
	bc_chunk_reset(f->chunk, 1000 + (uint64_t)(wall_ns - START) / 1000, epoch);
	f->chunk->info.recording_tag = bc_recording_tag(f->recording);
	f->chunk->info.first_record = f->number;
	f->chunk->info.wall_ns = wall_ns;
}

/* Adds records, `ticks` apart, in 4 pages from `page`; every hundredth is at port 0x3f8. */
static void add_records(struct fixture *f, uint32_t records, uint32_t ticks, uint32_t page)
{
	struct bc_chunk *chunk = f->chunk;

	for (uint32_t i = 0; i < records; i++) {
		uint32_t at = chunk->info.records++;
		bool is_port = dice_below(&f->dice, 100) == 0;
		struct bc_record record = {
			.addr = is_port ? 0x3F8
					: (page + dice_below(&f->dice, 4)) << 12 |
						  dice_below(&f->dice, 4000),
			.reqtype = is_port ? BC_REQ_IOWRITE : (uint8_t)dice_below(&f->dice, 4),
			.size = 8,
			.attr = (uint8_t)dice_roll(&f->dice),
			.proc = (uint8_t)dice_roll(&f->dice),
			.time = ticks};
		bc_record_store(chunk->records + (size_t)at * BC_RECORD_BYTES, &record);
		chunk->info.last_tick = chunk->info.first_tick + (uint64_t)at * ticks;
		f->written[f->count++] = (struct written){f->recordings - 1, f->number++,
			chunk->info.wall_ns + (f->clock_hz != 0 ? (int64_t)at * ticks * 1000 : 0),
			is_port ? BC_PORT_0 + 0x3F8 : record.addr >> 12,
			bc_page_class(record.reqtype)};
	}
}

static void add_gap(struct fixture *f, uint64_t lost)
{
	struct bc_event gap = {.kind = BC_EVENT_GAP,
		.position = f->chunk->info.records,
		.cause = BC_GAP_BOARD,
		.exact = true,
		.value = lost};

	assert_true(bc_chunk_add_event(f->chunk, &gap, NULL));
	f->lost += lost;
}

/* A gap: the board was away for this long before the chunk. */
static void add_absence(struct fixture *f, uint64_t away_ns)
{
	struct bc_event gap = {.kind = BC_EVENT_GAP,
		.position = f->chunk->info.records,
		.cause = BC_GAP_UNPLUGGED,
		.duration_ns = away_ns};

	assert_true(bc_chunk_add_event(f->chunk, &gap, NULL));
}

static void append_chunk(struct fixture *f)
{
	size_t header_bytes;

	bc_totals_add(&f->totals, f->chunk);
	f->totals.lost[BC_GAP_BOARD] = f->lost;
	f->chunk->info.totals = f->totals;
	const struct bc_loss loss = bc_chunk_loss(f->chunk);
	bc_chunk_encode(f->encoded, f->chunk, &test_compressor, &chunk_pages, &header_bytes);
	if (f->is_uncounted) {
		size_t before = header_bytes;
		f->chunk->info.page_bytes = 0;
		header_bytes = bc_chunk_header_write(f->encoded, f->chunk);
		memmove(f->encoded + header_bytes, f->encoded + before, f->chunk->info.frame_bytes);
	}
	assert_int_equal(bc_segment_append(&f->writer, f->encoded, header_bytes, &f->chunk->info,
				 &loss, f->has_pages ? &chunk_pages.counts : NULL),
		0);
}

/* A chunk of RECORDS records, which take 0.3 ms of the 1 ms for each chunk. */
static void add_chunk(struct fixture *f, uint32_t i)
{
	reset_chunk(f, START + i * INT64_C(1000000), 0);
	add_records(f, RECORDS, 1, 100 + 4 * (i % 50));
	append_chunk(f);
}

static void add_chunks(struct fixture *f, uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++)
		add_chunk(f, i);
}

static void end_recording_at(struct fixture *f, const char *reason, int64_t ended_ns)
{
	struct bc_recording_end end = {.ended_ns = ended_ns};

	snprintf(end.reason, sizeof(end.reason), "%s", reason);
	reset_chunk(f, START + 3600 * SECOND, 0);
	f->chunk->info.wall_ns = f->written[f->count - 1].time_ns;
	assert_true(bc_recording_end_add(f->chunk, &end));
	append_chunk(f);
	assert_int_equal(bc_segment_seal(&f->writer), 0);
}

static void end_recording(struct fixture *f, const char *reason)
{
	end_recording_at(f, reason, START);
}

static void seal(struct fixture *f)
{
	assert_int_equal(bc_segment_seal(&f->writer), 0);
}

/* ---- checking */

/* A picture of 16 chunks is drawn from their records; one of more may decode 64. */
#define DECODED UINT64_C(64)

/* So few small chunks are drawn by their page counts. */
static struct bc_overview_options options_default(void)
{
	struct bc_overview_options options = bc_overview_options_default();

	options.work = DECODED * (BC_OVERVIEW_CHUNK + RECORDS);
	return options;
}

static void update(struct fixture *f)
{
	assert_int_equal(bc_overview_update(f->overview, f->paths, f->path_count), 0);
}

static bool is_in_column(const struct bc_overview_picture *p, const struct bc_overview_column *c,
	const struct written *w)
{
	if (w->recording != c->recording)
		return false;
	if (p->unit == BC_OVERVIEW_RECORDS)
		return w->time_ns >= c->from_ns && w->time_ns < c->to_ns &&
		       w->time_ns >= p->from_ns && w->time_ns <= p->to_ns;
	return w->number >= c->first_record && w->number < c->first_record + c->records;
}

/* The row of a place; UINT32_MAX if it is not in the picture's places. */
static uint32_t row_of(const struct bc_overview_picture *p, uint32_t place)
{
	for (uint32_t row = 0; row < p->row_count; row++)
		if (place >= p->rows[row].place && place - p->rows[row].place < p->rows[row].count)
			return row;
	assert_true(place < p->place_from || place > p->place_to);
	return UINT32_MAX;
}

static void check_column(
	struct fixture *f, const struct bc_overview_picture *p, const struct bc_overview_column *c)
{
	static uint64_t cells[BC_OVERVIEW_ROWS][BC_PAGE_CLASSES];
	uint64_t counts[BC_PAGE_CLASSES] = {0};
	uint64_t records = 0;

	memset(cells, 0, sizeof(cells));
	for (size_t i = 0; i < f->count; i++) {
		const struct written *w = &f->written[i];
		if (!is_in_column(p, c, w))
			continue;
		uint32_t row = row_of(p, w->place);
		records++;
		counts[w->class]++;
		if (row != UINT32_MAX)
			cells[row][w->class]++;
	}
	assert_int_equal(c->records, records);
	assert_int_equal(c->uncounted, 0);
	assert_memory_equal(c->counts, counts, sizeof(counts));
	for (uint32_t i = 0; i < c->cell_count; i++) {
		assert_true(c->cells[i].first < p->row_count);
		assert_true(i == 0 || c->cells[i].first > c->cells[i - 1].first);
		assert_memory_equal(
			c->cells[i].counts, cells[c->cells[i].first], sizeof(c->cells[i].counts));
		memset(cells[c->cells[i].first], 0, sizeof(cells[0]));
	}
	uint64_t left = 0;
	for (size_t i = 0; i < COUNT_OF(cells); i++)
		for (unsigned class = 0; class < BC_PAGE_CLASSES; class ++)
			left |= cells[i][class];
	assert_int_equal(left, 0); /* all are in some cell */
}

/* Draws, and checks every cell. */
static const struct bc_overview_picture *draw(
	struct fixture *f, const struct bc_overview_options *options)
{
	assert_int_equal(bc_overview_draw(f->overview, options), 0);
	const struct bc_overview_picture *p = bc_overview_picture(f->overview);
	assert_true(p->column_count <= options->columns);
	assert_true(p->row_count <= options->rows);
	/* Of many columns, others for other numbers of rows. */
	uint32_t step = p->column_count < 20 ? 1 : test_stride(29);
	for (uint32_t i = options->rows % step; i < p->column_count; i += step)
		check_column(f, p, &p->columns[i]);
	return p;
}

static const struct bc_overview_picture *draw_all(
	struct fixture *f, unsigned columns, unsigned rows)
{
	struct bc_overview_options options = options_default();

	options.columns = columns;
	options.rows = rows;
	const struct bc_overview_picture *p = draw(f, &options);
	uint64_t records = 0;
	for (uint32_t i = 0; i < p->column_count; i++)
		records += p->columns[i].records;
	assert_int_equal(records, f->count);
	return p;
}

static const struct bc_overview_recording *only_recording(struct fixture *f)
{
	const struct bc_overview_contents c = bc_overview_contents(f->overview);
	const struct bc_overview_recording *r = c.recordings;

	assert_int_equal(c.recording_count, 1);
	return r;
}

/* ---- tests */

TEST_F(no_files_give_an_empty_picture)
{

	update(f);
	const struct bc_overview_picture *p = draw_all(f, 256, 200);
	assert_int_equal(p->column_count, 0);
	assert_int_equal(p->row_count, 0);
	assert_int_equal(bc_overview_contents(f->overview).from_ns, 0);
	assert_int_equal(bc_overview_contents(f->overview).to_ns, 0);
	assert_int_equal(bc_overview_contents(f->overview).recording_count, 0);
}

TEST_F(one_record_is_one_cell)
{
	start_segment(f, FIRST, 0);
	reset_chunk(f, START, 0);
	add_records(f, 1, 5, 100);
	append_chunk(f);
	seal(f);
	update(f);
	const struct bc_overview_picture *p = draw_all(f, 256, 200);
	assert_int_equal(p->unit, BC_OVERVIEW_RECORDS);
	assert_int_equal(p->column_count, 1);
	assert_int_equal(p->row_count, 1);
	assert_int_equal(p->rows[0].count, 1);
	assert_int_equal(p->from_ns, START);
	assert_int_equal(p->to_ns, START);
	assert_int_equal(p->columns[0].from_ns, START);
	assert_int_equal(p->columns[0].to_ns, START + 1);
}

TEST_F(a_segment_without_chunks_has_a_recording_and_no_columns)
{
	start_segment(f, FIRST, 0);
	bc_segment_abandon(&f->writer);
	strcat(f->paths[0], ".partial");
	update(f);
	assert_int_equal(draw_all(f, 256, 200)->column_count, 0);
	assert_int_equal(only_recording(f)->state, BC_OVERVIEW_OPEN);
	assert_int_equal(only_recording(f)->from_ns, START);
}

TEST_F(a_recording_ends_after_its_last_record_if_the_bus_was_idle)
{
	start_segment(f, FIRST, 0);
	add_chunks(f, 0, 3);
	seal(f);
	update(f);
	assert_true(only_recording(f)->ended_ns == only_recording(f)->to_ns); /* unknown */
	start_segment(f, FIRST, 1);
	add_chunks(f, 3, 3);
	end_recording_at(f, "request", START + 86400 * SECOND);
	update(f);
	assert_true(only_recording(f)->to_ns < START + 86400 * SECOND);
	assert_true(only_recording(f)->ended_ns == START + 86400 * SECOND);
}

TEST_F(a_recording_is_in_progress_while_its_writer_lives)
{
	start_segment(f, FIRST, 0);
	strcat(f->paths[0], ".partial");
	add_chunks(f, 0, 3);
	for (unsigned i = 0; i < 2; i++) {
		update(f);
		assert_int_equal(only_recording(f)->state, BC_OVERVIEW_RECORDING);
	}
	bc_segment_abandon(&f->writer); /* killed: the file does not change */
	for (unsigned i = 0; i < 2; i++) {
		update(f);
		assert_int_equal(only_recording(f)->state, BC_OVERVIEW_OPEN);
		assert_int_equal(only_recording(f)->records, 3 * RECORDS);
	}
}

static const struct level {
	const char *name;
	unsigned columns;
	enum bc_overview_unit unit;
} levels[] = {
	{"chunks", 512, BC_OVERVIEW_CHUNKS},
	{"joined chunks", 100, BC_OVERVIEW_CHUNKS},
	{"nodes of 16 chunks", 20, BC_OVERVIEW_SUMMARY},
	{"nodes of 256 chunks", 2, BC_OVERVIEW_SUMMARY},
	{"a segment", 1, BC_OVERVIEW_SUMMARY},
};

TEST_CASES(every_level_is_exact, levels)
{
	struct fixture *f = test_alloc(sizeof(*f));

	set_up(f);
	start_segment(f, FIRST, 0);
	add_chunks(f, 0, 270);
	seal(f);
	update(f);
	for (unsigned rows = 2; rows <= 1024; rows *= 8 * test_stride(8))
		assert_int_equal(draw_all(f, c->columns, rows)->unit, c->unit);
	for (int64_t ms = 0; ms < 270; ms += 37 * test_stride(5)) {
		struct bc_overview_options options = options_default();
		options.columns = c->columns;
		options.from_ns = START + ms * 1000000 + 100000; /* within a chunk */
		options.to_ns = options.from_ns + 90 * INT64_C(1000000);
		draw(f, &options);
		options.to_ns = options.from_ns + 10 * INT64_C(1000000);
		assert_int_equal(draw(f, &options)->unit, BC_OVERVIEW_RECORDS);
	}
	tear_down(f);
	free(f);
}

TEST_F(many_segments_are_units)
{
	for (uint32_t i = 0; i < 12; i++) {
		start_segment(f, FIRST, i);
		add_chunks(f, 20 * i, 20);
		seal(f);
	}
	update(f);
	assert_int_equal(draw_all(f, 3, 200)->unit, BC_OVERVIEW_SEGMENTS);
	assert_int_equal(draw_all(f, 2, 200)->unit, BC_OVERVIEW_SEGMENTS);
	assert_int_equal(only_recording(f)->segments, 12);
}

TEST_F(rows_are_limited_to_places)
{
	struct bc_overview_options options = options_default();

	start_segment(f, FIRST, 0);
	add_chunks(f, 0, 100);
	seal(f);
	update(f);
	uint32_t all = draw_all(f, 256, 1024)->row_count;
	options.place_from = 110;
	options.place_to = 119;
	options.rows = 1024;
	const struct bc_overview_picture *p = draw(f, &options);
	assert_true(p->row_count < all && p->row_count >= 10u >> p->page_shift);
	assert_true(p->rows[0].place + p->rows[0].count > 110);
	assert_true(p->rows[p->row_count - 1].place <= 119);
	options.place_from = BC_PORT_0;
	options.place_to = BC_PLACES - 1;
	p = draw(f, &options);
	assert_int_equal(p->row_count, 1);
	assert_true(p->rows[0].place >= BC_PORT_0);
	assert_int_equal(p->page_shift, 0);
}

/* ---- the size of rows */

/* The sizes of the rows of a picture that is made from all records in its columns: the smallest for
 * which memory has at most what ports leave, or three quarters, and ports what memory leaves, or
 * one. */
struct sizes {
	unsigned page_shift;
	unsigned port_shift;
};

/* Counts the blocks of each size that are touched. Changes the array. */
static void count_blocks(uint32_t *counts, uint8_t *is_touched, uint32_t places)
{
	for (;; counts++, places /= 2) {
		*counts = 0;
		for (uint32_t i = 0; i < places; i++)
			*counts += is_touched[i];
		if (places == 1)
			return;
		for (uint32_t i = 0; i < places / 2; i++)
			is_touched[i] = is_touched[2 * i] | is_touched[2 * i + 1];
	}
}

static unsigned least_shift(const uint32_t *counts, uint32_t most)
{
	unsigned shift = 0;

	while (counts[shift] > most)
		shift++;
	return shift;
}

static struct sizes sizes_of_all(
	struct fixture *f, const struct bc_overview_picture *p, uint32_t rows)
{
	static uint8_t is_touched[BC_PLACES];
	uint32_t share = rows / 4 > 1 ? rows / 4 : 1;
	uint32_t pages[BC_PAGE_SHIFTS + 1];
	uint32_t ports[BC_PORT_SHIFTS + 1];

	memset(is_touched, 0, sizeof(is_touched));
	const struct bc_overview_column *first = p->columns;
	const struct bc_overview_column *last = &p->columns[p->column_count - 1];
	for (size_t i = 0; i < f->count; i++) {
		const struct written *w = &f->written[i];
		bool is_in = p->unit == BC_OVERVIEW_RECORDS
				     ? w->time_ns >= p->from_ns && w->time_ns <= p->to_ns
				     : w->number >= first->first_record &&
					       w->number < last->first_record + last->records;
		is_touched[w->place] |= is_in;
	}
	count_blocks(pages, is_touched, BC_PORT_0);
	count_blocks(ports, is_touched + BC_PORT_0, BC_PORTS);
	return (struct sizes){least_shift(pages, rows - (ports[0] < share ? ports[0] : share)),
		least_shift(ports, rows - (pages[0] < rows - share ? pages[0] : rows - share))};
}

/* Adds a chunk of records in random pages, some of which are used again and again. */
static void add_random_chunk(struct fixture *f, int64_t *at, uint32_t records)
{
	uint32_t pages = 1 + dice_below(&f->dice, 400);
	uint32_t base = dice_below(&f->dice, BC_PORT_0 - 4000);
	uint32_t ports = dice_below(&f->dice, 4) == 0 ? 40 : 1;

	reset_chunk(f, *at, 0);
	for (uint32_t i = 0; i < records; i++) {
		add_records(f, 1, 1, base + 9 * dice_below(&f->dice, pages));
		struct written *w = &f->written[f->count - 1];
		uint8_t *out = f->chunk->records + (size_t)i * BC_RECORD_BYTES;
		struct bc_record record = bc_record_load(out);
		if (w->place >= BC_PORT_0) {
			record.addr = 0x3F8 + 5 * dice_below(&f->dice, ports);
			w->place = BC_PORT_0 + record.addr;
			bc_record_store(out, &record);
		}
	}
	append_chunk(f);
	*at += records * INT64_C(1000) + 1000;
}

/* Segments of random lengths; the last chunk of each is small, as when a recording is rotated by
 * time. */
static void make_rotated(struct fixture *f, uint32_t chunks)
{
	int64_t at = START;
	uint32_t segment = 0;

	start_segment(f, FIRST, segment);
	for (uint32_t i = 0; i < chunks; i++) {
		bool is_last = i + 1 < chunks && dice_below(&f->dice, 12) == 0;
		add_random_chunk(f, &at, 1 + dice_below(&f->dice, is_last ? 20 : 600));
		if (is_last && f->path_count < 60) {
			seal(f);
			start_segment(f, FIRST, ++segment);
		}
	}
	seal(f);
}

static const struct rotated {
	const char *name;
	uint64_t seed;
	unsigned columns;
	unsigned rows;
} rotations[] = {
	{"few columns", 1, 3, 64},
	{"some columns", 2, 20, 200},
	{"many columns", 3, 512, 30},
	{"many rows", 4, 100, 1024},
	{"as few rows as possible", 5, 7, 2},
	{"a column", 6, 1, 16},
};

TEST_CASES(rows_are_those_of_all_records_and_zooming_in_never_makes_them_larger, rotations)
{
	struct fixture *f = test_alloc(sizeof(*f));
	unsigned units = 0;

	set_up(f);
	f->dice.state = c->seed;
	make_rotated(f, 90);
	update(f);
	for (unsigned zoom = 0; zoom < 6; zoom += test_stride(6)) {
		struct bc_overview_options options = options_default();
		struct sizes outer = {BC_PAGE_SHIFTS, BC_PORT_SHIFTS};
		options.columns = c->columns;
		options.rows = c->rows;
		/* All may be decoded, but pictures of more than a quarter are not of records. */
		options.work = f->count + 90 * BC_OVERVIEW_CHUNK;
		options.from_ns = bc_overview_contents(f->overview).from_ns;
		options.to_ns = bc_overview_contents(f->overview).to_ns;
		for (int64_t span; (span = options.to_ns - options.from_ns) > 1000000;) {
			const struct bc_overview_picture *p = draw(f, &options);
			struct sizes all = sizes_of_all(f, p, c->rows);
			units |= 1u << p->unit;
			assert_int_equal(p->page_shift, all.page_shift);
			assert_int_equal(p->port_shift, all.port_shift);
			assert_true(p->page_shift <= outer.page_shift);
			assert_true(p->port_shift <= outer.port_shift);
			outer = (struct sizes){p->page_shift, p->port_shift};
			options.from_ns += dice_below(&f->dice, (uint32_t)(span / 2));
			options.to_ns -= dice_below(&f->dice, (uint32_t)(span / 3));
		}
	}
	assert_true((units & (units - 1)) != 0); /* of several kinds */
	tear_down(f);
	free(f);
}

TEST_F(rows_are_as_large_as_counts_that_are_too_much_work_to_replace)
{
	struct bc_overview_options options = options_default();

	make_rotated(f, 130);
	update(f);
	options.rows = 1024;
	unsigned before = BC_PAGE_SHIFTS + 1;
	for (options.work = 1; options.work < 8 * DECODED * BC_OVERVIEW_CHUNK; options.work *= 3) {
		assert_int_equal(bc_overview_draw(f->overview, &options), 0);
		const struct bc_overview_picture *p = bc_overview_picture(f->overview);
		assert_true(p->page_shift <= before);
		before = p->page_shift;
	}
	const struct bc_overview_picture *p = draw(f, &options);
	assert_true(p->page_shift < BC_PAGE_SHIFTS);
	assert_int_equal(p->page_shift, sizes_of_all(f, p, options.rows).page_shift);
}

TEST_F(records_at_more_places_than_are_counted_together_have_rows_as_small_as_possible)
{
	start_segment(f, FIRST, 0);
	reset_chunk(f, START, 0);
	for (uint32_t i = 0; i < 20000; i++)
		add_records(f, 1, 1, i % 6000);
	append_chunk(f);
	seal(f);
	update(f);
	const struct bc_overview_picture *p = draw_all(f, 1, 1024);
	assert_int_equal(p->page_shift, sizes_of_all(f, p, 1024).page_shift);
}

/* ---- losses, times and files */

static void add_tiny(struct fixture *f, int64_t wall_ns, uint32_t epoch)
{
	reset_chunk(f, wall_ns, epoch);
	add_records(f, 2, 1, 100);
	append_chunk(f);
}

static const struct tiny {
	const char *name;
	uint32_t at; /* of 120 chunks: a tiny one before it; with it, a new segment starts */
	uint32_t epoch;
} tiny[] = {
	{"the first chunk", 0, 0},
	{"the last chunk", 120, 0},
	{"the last chunk of a segment", 50, 0},
	{"an epoch of its own", 70, 1},
};

TEST_CASES(a_chunk_too_small_for_a_rate_is_no_spike, tiny)
{
	struct fixture *f = test_alloc(sizeof(*f));

	set_up(f);
	start_segment(f, FIRST, 0);
	for (uint32_t i = 0; i <= 120; i++) {
		bool is_rotated = i == c->at && i != 0 && i != 120;
		if (i == c->at)
			add_tiny(f, START + i * INT64_C(1000000) - 2000, c->epoch);
		if (is_rotated) {
			seal(f);
			start_segment(f, FIRST, 1);
		}
		if (i == 120)
			break;
		reset_chunk(f, START + i * INT64_C(1000000), i < c->at ? 0 : 2 * c->epoch);
		add_records(f, RECORDS, 3, 100);
		append_chunk(f);
	}
	seal(f);
	update(f);
	const unsigned columns[] = {512, 120, 50, 3};
	for (unsigned n = 0; n < COUNT_OF(columns); n++) {
		const struct bc_overview_picture *p = draw_all(f, columns[n], 200);
		for (uint32_t i = 0; i < p->column_count; i++) {
			const struct bc_overview_column *column = &p->columns[i];
			uint64_t most = column->duration_ns * RECORDS / 897000 + 1;
			assert_true(column->duration_ns == 0 || column->records <= most);
			assert_true(column->duration_ns != 0 ||
				    (column->records == 2 && c->epoch != 0));
		}
	}
	tear_down(f);
	free(f);
}

TEST_F(lost_samples_and_gaps_are_in_the_column_of_the_next_record)
{
	start_segment(f, FIRST, 0);
	reset_chunk(f, START, 0);
	add_records(f, 100, 1, 100);
	add_gap(f, 17);
	add_records(f, 100, 1, 100);
	append_chunk(f);
	reset_chunk(f, START + 1000000, 0);
	f->lost += 5; /* no gap reports them */
	add_records(f, 100, 1, 100);
	append_chunk(f);
	seal(f);
	update(f);
	const struct bc_overview_picture *p = draw_all(f, 11, 200);
	assert_int_equal(p->unit, BC_OVERVIEW_RECORDS);
	uint64_t lost = 0;
	for (uint32_t i = 0; i < p->column_count; i++) {
		const struct bc_overview_column *c = &p->columns[i];
		bool has_gap = c->from_ns <= START + 100000 && START + 100000 < c->to_ns;
		bool has_loss = c->from_ns <= START + 1000000 && START + 1000000 < c->to_ns;
		assert_int_equal(c->loss.gaps, has_gap ? 1 : 0);
		assert_int_equal(c->loss.lost, has_gap ? 17 : has_loss ? 5 : 0);
		lost += c->loss.lost;
	}
	assert_int_equal(lost, 22);
	assert_int_equal(only_recording(f)->loss.lost, 22);
	assert_int_equal(only_recording(f)->loss.gaps, 1);
}

TEST_F(losses_before_the_first_segment_that_is_left_are_not_shown)
{
	start_segment(f, FIRST, 0);
	f->lost = 1000;
	add_chunks(f, 0, 1);
	seal(f);
	f->count = 0;
	start_segment(f, FIRST, 1);
	reset_chunk(f, START + SECOND, 0);
	add_gap(f, 7);
	add_records(f, 10, 1, 100);
	append_chunk(f);
	seal(f);
	char *last = f->paths[1];
	assert_int_equal(bc_overview_update(f->overview, &last, 1), 0);
	assert_int_equal(only_recording(f)->loss.lost, 7);
	assert_int_equal(draw_all(f, 256, 200)->columns[0].loss.lost, 7);
}

TEST_F(a_new_epoch_ends_a_column_at_its_last_record)
{
	start_segment(f, FIRST, 0);
	for (uint32_t i = 0; i < 100; i++) {
		reset_chunk(f, START + i * INT64_C(1000000), i / 50);
		add_records(f, RECORDS, 1, 100);
		append_chunk(f);
	}
	seal(f);
	update(f);
	const struct bc_overview_picture *p = draw_all(f, 100, 200);
	assert_int_equal(p->unit, BC_OVERVIEW_CHUNKS);
	assert_int_equal(p->column_count, 100);
	for (uint32_t i = 0; i < 100; i++) {
		int64_t from = START + i * INT64_C(1000000);
		assert_int_equal(p->columns[i].from_ns, from);
		assert_int_equal(p->columns[i].to_ns,
			i == 49 || i == 99 ? from + (RECORDS - 1) * 1000 : from + 1000000);
	}
}

TEST_F(the_duration_of_a_column_does_not_depend_on_when_its_data_arrived)
{
	for (uint32_t i = 0; i < 128; i++) {
		if (i % 16 == 0)
			start_segment(f, FIRST, i / 16);
		reset_chunk(f, START + i * INT64_C(1000000) + i % 3 * 300000, i / 64);
		f->chunk->info.first_tick = i * UINT64_C(1000);
		add_records(f, RECORDS, 1, 100);
		append_chunk(f);
		if (i % 16 == 15)
			seal(f);
	}
	update(f);
	for (unsigned columns = 1; columns <= 128; columns += test_stride(7)) {
		const struct bc_overview_picture *p = draw_all(f, columns, 200);
		for (uint32_t i = 0; i < p->column_count; i++) {
			const struct bc_overview_column *c = &p->columns[i];
			uint64_t first = c->first_record / RECORDS;
			uint64_t end = first + c->records / RECORDS;
			uint64_t ns = first / 64 != (end - 1) / 64
					      ? (uint64_t)(c->to_ns - c->from_ns)
				      : end % 64 == 0 ? (end - first - 1) * 1000000 + 299000
						      : (end - first) * 1000000;
			assert_int_equal(c->duration_ns, ns);
		}
	}
}

TEST_F(with_an_unknown_clock_records_have_the_time_of_their_chunk)
{
	f->clock_hz = 0;
	start_segment(f, FIRST, 0);
	add_chunks(f, 0, 3);
	seal(f);
	update(f);
	const struct bc_overview_picture *p = draw_all(f, 256, 200);
	assert_int_equal(p->column_count, 3);
	assert_int_equal(p->to_ns, START + 2 * 1000000);
	assert_int_equal(only_recording(f)->clock_hz, 0);
}

TEST_F(a_short_last_column_of_an_earlier_time_joins_the_one_before_it)
{
	start_segment(f, FIRST, 0);
	add_chunks(f, 0, 100);
	reset_chunk(f, START + 50 * INT64_C(1000000), 0);
	f->chunk->info.first_tick = 101000; /* the clock was set back */
	add_records(f, 2, 1, 100);
	append_chunk(f);
	seal(f);
	update(f);
	for (unsigned columns = 1; columns <= 512; columns += 73) {
		const struct bc_overview_picture *p = draw_all(f, columns, 200);
		for (uint32_t i = 0; i < p->column_count; i++)
			assert_true(p->columns[i].to_ns >= p->columns[i].from_ns);
	}
}

static const struct delays {
	const char *name;
	unsigned columns;
	uint32_t every;
	int64_t late_ns;
} delays[] = {
	{"a chunk in ten, shorter than a column", 30, 10, 2500000},
	{"a chunk in ten, longer than a column", 150, 10, 4100000},
	{"every other chunk", 60, 2, 900000},
	{"none", 100, 1000, 0},
};

TEST_CASES(chunks_that_arrived_late_make_no_spike, delays)
{
	struct fixture *f = test_alloc(sizeof(*f));

	set_up(f);
	start_segment(f, FIRST, 0);
	for (uint32_t i = 0; i < 300; i++) {
		bool is_late = i % c->every == c->every / 2;
		reset_chunk(f, START + i * INT64_C(1000000), 0);
		f->chunk->info.wall_ns += is_late ? c->late_ns : 0;
		add_records(f, 100, 10, 100); /* 100,000 a second */
		append_chunk(f);
	}
	seal(f);
	update(f);
	struct bc_overview_options options = bc_overview_options_default();
	options.columns = c->columns;
	const struct bc_overview_picture *p = draw(f, &options);
	assert_int_equal(p->unit, BC_OVERVIEW_RECORDS);
	for (uint32_t i = 1; i + 3 < p->column_count; i++) {
		double expected = (double)p->columns[i].duration_ns / 10000;
		double got = (double)p->columns[i].records;
		if (got > 1.3 * expected + 20)
			fail_msg("column %u: %.0f records, wanted %.0f", i, got, expected);
	}
	tear_down(f);
	free(f);
}

static void make_two(struct fixture *f)
{
	start_segment(f, FIRST, 0);
	add_chunks(f, 0, 80);
	end_recording(f, "request");
	start_segment(f, SECOND_RECORDING, 0);
	for (uint32_t i = 0; i < 80; i++) {
		reset_chunk(f, START + 3600 * SECOND + i * INT64_C(1000000), 0);
		add_records(f, RECORDS, 1, 1000);
		append_chunk(f);
	}
	end_recording(f, "crash");
}

TEST_F(a_column_never_has_two_recordings)
{

	make_two(f);
	char *path = f->paths[0]; /* the order of files does not matter */
	f->paths[0] = f->paths[1];
	f->paths[1] = path;
	update(f);
	const struct bc_overview_recording *r = bc_overview_contents(f->overview).recordings;
	assert_int_equal(bc_overview_contents(f->overview).recording_count, 2);
	assert_string_equal(r[0].id, FIRST);
	assert_string_equal(r[1].id, SECOND_RECORDING);
	assert_int_equal(r[0].state, BC_OVERVIEW_SEALED);
	assert_int_equal(r[1].state, BC_OVERVIEW_RECOVERED);
	for (unsigned columns = 2; columns <= 512; columns *= 2) {
		const struct bc_overview_picture *p = draw_all(f, columns, 200);
		for (uint32_t i = 0; i < p->column_count && p->unit != BC_OVERVIEW_RECORDS; i++)
			if (i + 1 < p->column_count &&
				p->columns[i + 1].recording != p->columns[i].recording)
				assert_int_equal(p->columns[i].to_ns,
					START + 79 * 1000000 + (RECORDS - 1) * 1000);
	}
}

TEST_F(if_there_are_more_recordings_than_columns_a_column_has_several)
{
	struct bc_overview_options options = options_default();
	uint64_t records = 0;

	make_two(f);
	update(f);
	options.columns = 1;
	assert_int_equal(bc_overview_draw(f->overview, &options), 0);
	const struct bc_overview_picture *p = bc_overview_picture(f->overview);
	assert_int_equal(p->column_count, 1);
	for (unsigned class = 0; class < BC_PAGE_CLASSES; class ++)
		records += p->columns[0].counts[class];
	assert_int_equal(records, f->count);
	assert_int_equal(p->columns[0].records, f->count);
}

TEST_F(a_segment_that_is_written_grows_and_is_found_when_it_is_sealed)
{
	start_segment(f, FIRST, 0);
	strcat(f->paths[0], ".partial");
	add_chunks(f, 0, 70);
	update(f);
	assert_int_equal(draw_all(f, 512, 200)->unit, BC_OVERVIEW_CHUNKS);
	assert_int_equal(only_recording(f)->state, BC_OVERVIEW_RECORDING);
	add_chunks(f, 70, 30);
	update(f);
	draw_all(f, 512, 200);
	draw_all(f, 20, 200); /* without a summary */
	end_recording(f, "request");
	update(f);
	draw_all(f, 20, 200);
	assert_int_equal(only_recording(f)->state, BC_OVERVIEW_SEALED);
	assert_int_equal(f->damages, 0);
	/* Sealed between the update and the drawing. */
	unsigned opened = f->opened;
	update(f);
	assert_int_equal(f->opened, opened);       /* it has not changed */
	assert_int_equal(unlink(f->paths[0]), -1); /* the name with .partial */
	f->paths[0][strlen(f->paths[0]) - strlen(".partial")] = '\0';
	assert_int_equal(unlink(f->paths[0]), 0);
	update(f);
	f->count = 0;
	assert_int_equal(draw_all(f, 256, 200)->column_count, 0);
}

TEST_F(a_file_that_is_deleted_between_update_and_drawing_is_skipped)
{
	make_two(f);
	update(f);
	assert_int_equal(unlink(f->paths[0]), 0);
	struct bc_overview_options options = options_default();
	assert_int_equal(bc_overview_draw(f->overview, &options), 0);
	assert_int_equal(f->damages, 0);
}

TEST_F(a_copy_of_a_segment_is_reported_once_and_not_counted)
{
	start_segment(f, FIRST, 0);
	add_chunks(f, 0, 3);
	seal(f);
	f->paths[f->path_count++] = strdup(f->paths[0]);
	update(f);
	update(f);
	draw_all(f, 256, 200);
	assert_int_equal(f->repeats, 1);
}

TEST_F(without_a_summary_chunks_are_counted)
{
	f->has_pages = false;
	start_segment(f, FIRST, 0);
	add_chunks(f, 0, 100);
	seal(f);
	update(f);
	assert_int_equal(draw_all(f, 1, 200)->column_count, 1);
	draw_all(f, 20, 200);
}

TEST_F(chunks_without_page_counts_are_decoded_but_not_all)
{
	struct bc_overview_options options = options_default();
	uint64_t counted = 0;
	uint64_t uncounted = 0;

	start_segment(f, FIRST, 0);
	options.work = DECODED * (BC_OVERVIEW_CHUNK + 2);
	f->is_uncounted = true;
	f->has_pages = false;
	for (uint32_t i = 0; i < 100; i++) {
		reset_chunk(f, START + i * INT64_C(1000000), 0);
		add_records(f, 2, 1, 100);
		append_chunk(f);
	}
	seal(f);
	update(f);
	assert_int_equal(bc_overview_draw(f->overview, &options), 0);
	const struct bc_overview_picture *p = bc_overview_picture(f->overview);
	for (uint32_t i = 0; i < p->column_count; i++) {
		uncounted += p->columns[i].uncounted;
		for (unsigned class = 0; class < BC_PAGE_CLASSES; class ++)
			counted += p->columns[i].counts[class];
	}
	assert_int_equal(counted, DECODED * 2);
	assert_int_equal(uncounted, (100 - DECODED) * 2);
	options.to_ns = START + 50 * INT64_C(1000000);
	draw(f, &options);
}

static void flip(const char *path, uint64_t offset)
{
	uint8_t byte;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, (off_t)offset), 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
	close(fd);
}

TEST_F(a_damaged_summary_is_replaced_by_the_chunks)
{
	struct bc_index_head head;

	start_segment(f, FIRST, 0);
	add_chunks(f, 0, 100);
	seal(f);
	int fd = open(f->paths[0], O_RDONLY | O_CLOEXEC);
	assert_int_equal(bc_segment_index_read_head(&head, fd), 0);
	close(fd);
	for (uint64_t at = head.pages; at < head.offset; at += test_stride(311)) {
		flip(f->paths[0], at);
		update(f);
		draw_all(f, 20, 200);
		draw_all(f, 1, 200);
		flip(f->paths[0], at);
	}
}

TEST_F(a_damaged_chunk_is_reported_once_and_uncounted)
{
	struct bc_overview_options options = options_default();

	start_segment(f, FIRST, 0);
	add_chunks(f, 0, 1);
	uint64_t offset = f->writer.file.bytes;
	add_chunks(f, 1, 2);
	seal(f);
	flip(f->paths[0], offset + 2000);
	update(f);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t uncounted = 0;
		uint64_t records = 0;
		assert_int_equal(bc_overview_draw(f->overview, &options), 0);
		const struct bc_overview_picture *p = bc_overview_picture(f->overview);
		for (uint32_t c = 0; c < p->column_count; c++) {
			uncounted += p->columns[c].uncounted;
			records += p->columns[c].records;
		}
		assert_int_equal(uncounted, RECORDS);
		assert_int_equal(records, 3 * RECORDS);
	}
	assert_int_equal(f->damages, 1);
	const struct bc_overview_damage *damage = bc_overview_contents(f->overview).damages;
	assert_int_equal(bc_overview_contents(f->overview).damage_count, 1);
	assert_string_equal(damage->file, f->paths[0]);
	assert_string_equal(damage->what, "chunk 1 (300 records) is damaged");
	assert_int_equal(damage->offset, offset);
	f->path_count = 0;
	update(f);
	assert_int_equal(bc_overview_contents(f->overview).damage_count, 0);
	f->path_count = 1;
}

TEST_F(no_more_damage_is_reported_than_listed)
{
	struct bc_overview_options options = options_default();
	uint64_t offsets[BC_OVERVIEW_DAMAGES + 2];

	f->has_pages = false; /* so that all chunks are read */
	start_segment(f, FIRST, 0);
	for (uint32_t i = 0; i < COUNT_OF(offsets); i++) {
		offsets[i] = f->writer.file.bytes;
		add_chunks(f, i, 1);
	}
	seal(f);
	for (uint32_t i = 0; i < COUNT_OF(offsets); i++)
		flip(f->paths[0], offsets[i] + 100);
	update(f);
	for (unsigned i = 0; i < 4; i++) { /* a picture decodes only some chunks */
		options.from_ns = START + 60000000 * (i % 2);
		options.to_ns = options.from_ns + 59999999;
		assert_int_equal(bc_overview_draw(f->overview, &options), 0);
	}
	assert_int_equal(bc_overview_contents(f->overview).damage_count, BC_OVERVIEW_DAMAGES);
	assert_int_equal(f->damages, BC_OVERVIEW_DAMAGES);
}

TEST_F(a_file_that_cannot_be_read_is_listed_until_it_is_gone)
{
	const struct bc_overview_damage *damages;

	for (uint32_t segment = 0; segment < 3; segment++) {
		start_segment(f, FIRST, segment);
		add_chunks(f, 3 * segment, 3);
		seal(f);
	}
	assert_int_equal(unlink(f->paths[1]), 0);
	assert_int_equal(mkdir(f->paths[1], 0777), 0);
	assert_int_equal(unlink(f->paths[2]), 0);
	assert_int_equal(symlink(f->paths[2], f->paths[2]), 0);
	for (unsigned i = 0; i < 2; i++) {
		update(f);
		assert_int_equal(only_recording(f)->segments, 1);
		damages = bc_overview_contents(f->overview).damages;
		assert_int_equal(bc_overview_contents(f->overview).damage_count, 2);
		assert_string_equal(damages[0].file, f->paths[1]);
		assert_string_equal(damages[0].what, strerror(EISDIR));
		assert_string_equal(damages[1].file, f->paths[2]);
		assert_string_equal(damages[1].what, strerror(ELOOP));
	}
	assert_int_equal(rmdir(f->paths[1]), 0);
	assert_int_equal(unlink(f->paths[2]), 0);
	update(f);
	assert_int_equal(bc_overview_contents(f->overview).damage_count, 0);
}

static bool count_event(void *context, const struct bc_overview_event *event)
{
	unsigned *count = context;

	assert_true(event->kind == BC_EVENT_GAP || event->kind == BC_EVENT_MARK);
	++*count;
	return true;
}

TEST_F(events_are_those_between_the_times)
{
	unsigned count = 0;

	start_segment(f, FIRST, 0);
	for (uint32_t i = 0; i < 10; i++) {
		reset_chunk(f, START + i * INT64_C(1000000), 0);
		add_records(f, 10, 1, 100);
		add_gap(f, 1); /* at START + i ms + 10 us */
		add_records(f, 10, 1, 100);
		append_chunk(f);
	}
	seal(f);
	update(f);
	assert_int_equal(
		bc_overview_events(f->overview, INT64_MIN, INT64_MAX, count_event, &count), 0);
	assert_int_equal(count, 10);
	count = 0;
	assert_int_equal(bc_overview_events(f->overview, START + 1010000, START + 3010000,
				 count_event, &count),
		0);
	assert_int_equal(count, 3);
	count = 0;
	assert_int_equal(bc_overview_events(f->overview, START + 1010001, START + 3009999,
				 count_event, &count),
		0);
	assert_int_equal(count, 1);
}

TEST_F(events_of_a_chunk_with_damaged_records_are_listed)
{
	uint64_t ends[3];
	unsigned count = 0;

	start_segment(f, FIRST, 0);
	for (uint32_t i = 0; i < 3; i++) {
		reset_chunk(f, START + i * INT64_C(1000000), 0);
		add_records(f, 150, 1, 100);
		add_gap(f, 1);
		add_records(f, 150, 1, 100);
		append_chunk(f);
		ends[i] = f->writer.file.bytes;
	}
	seal(f);
	for (uint32_t i = 0; i < 3; i++)
		flip(f->paths[0], ends[i] - 10);
	update(f);
	/* The times are estimated, and the second one is at START + 1.15 ms. */
	for (unsigned round = 0; round < 2; round++, count = 0) {
		assert_int_equal(
			bc_overview_events(f->overview, INT64_MIN, INT64_MAX, count_event, &count),
			0);
		assert_int_equal(count, 3);
	}
	assert_int_equal(bc_overview_events(f->overview, START + 1100000, START + 1200000,
				 count_event, &count),
		0);
	assert_int_equal(count, 1);
}

TEST_F(a_drawing_that_is_stopped_leaves_an_empty_picture)
{
	struct bc_overview_options options = options_default();
	unsigned count = 0;

	make_two(f);
	f->pace = 1;
	assert_int_equal(bc_overview_update(f->overview, f->paths, f->path_count), -ECANCELED);
	update(f);
	for (unsigned at = 1; at < 200; at += 7) {
		f->pace = at;
		int rc = bc_overview_draw(f->overview, &options);
		if (f->pace != 0)
			break;
		assert_int_equal(rc, -ECANCELED);
		assert_int_equal(bc_overview_picture(f->overview)->column_count, 0);
	}
	f->pace = 1;
	assert_int_equal(
		bc_overview_events(f->overview, 0, INT64_MAX, count_event, &count), -ECANCELED);
	f->pace = 0;
	draw_all(f, 512, 200);
}

TEST_F(a_file_whose_list_was_not_read_to_its_end_is_read_again)
{
	unsigned stops = 0;

	start_segment(f, FIRST, 0);
	add_chunks(f, 0, 5);
	uint64_t end = f->writer.file.bytes;
	seal(f);
	assert_int_equal(truncate(f->paths[0], (off_t)end), 0);
	for (f->pace = 1;; f->pace = ++stops + 1) {
		int rc = bc_overview_update(f->overview, f->paths, f->path_count);
		if (f->pace != 0)
			break;
		assert_int_equal(rc, -ECANCELED);
	}
	assert_true(stops >= 3);
	assert_int_equal(only_recording(f)->records, 5 * RECORDS);
	assert_int_equal(f->damages, 0);
}

/* Draws a file in several ways; whatever it has, the counts add up. */
static void draw_anything(struct fixture *f)
{
	unsigned count = 0;
	struct bc_byte_buffer text = {.max = SIZE_MAX};

	update(f);
	for (unsigned columns = 1; columns <= 512; columns *= 32) {
		struct bc_overview_options options = options_default();
		options.columns = columns;
		assert_int_equal(bc_overview_draw(f->overview, &options), 0);
		const struct bc_overview_picture *p = bc_overview_picture(f->overview);
		for (uint32_t i = 0; i < p->column_count; i++) {
			const struct bc_overview_column *c = &p->columns[i];
			assert_int_equal(c->counts[0] + c->counts[1] + c->counts[2] + c->counts[3],
				c->records - c->uncounted);
		}
		assert_int_equal(bc_overview_json(f->overview, NULL, &text), 0);
	}
	assert_int_equal(
		bc_overview_events(f->overview, INT64_MIN, INT64_MAX, count_event, &count), 0);
	bc_byte_buffer_free(&text);
}

TEST_F(any_truncated_or_damaged_file_is_drawn)
{
	start_segment(f, FIRST, 0);
	add_chunks(f, 0, 2);
	reset_chunk(f, START + 2000000, 0);
	add_records(f, 10, 1, 100);
	add_gap(f, 1);
	append_chunk(f);
	end_recording(f, "request");
	int fd = open(f->paths[0], O_RDWR | O_CLOEXEC);
	off_t size = lseek(fd, 0, SEEK_END);
	for (off_t at = 0; at < size; at += test_stride(185)) {
		flip(f->paths[0], (uint64_t)at);
		draw_anything(f);
		flip(f->paths[0], (uint64_t)at);
	}
	for (off_t left = size; left >= 0; left -= test_stride(185)) {
		assert_int_equal(ftruncate(fd, left), 0);
		draw_anything(f);
	}
	close(fd);
}

/* ---- without memory
 *
 * Each allocation of a step fails in turn, including those of the libraries. The step then says so,
 * or does without; and when it is repeated with memory, all that follows is as it would have been.
 */

struct attempt {
	struct fixture *f;
	struct bc_overview *overview;
	struct bc_overview_options options;
	struct bc_byte_buffer *printed; /* pictures and events as JSON */
};

static int step_open(struct attempt *a)
{
	const struct bc_segment_io io = {.context = a->f, .open = on_open, .fault = on_fault};

	return bc_overview_open(&a->overview, &io);
}

static int step_update_some(struct attempt *a)
{
	int rc = bc_overview_update(a->overview, a->f->paths, 2);

	return rc == 0 ? bc_overview_draw(a->overview, &a->options) : rc;
}

/* What is known can be drawn after a failed update, too. */
static int step_update(struct attempt *a)
{
	int rc = bc_overview_update(a->overview, a->f->paths, a->f->path_count);

	if (rc != 0) {
		failing_heap_mend();
		assert_int_equal(bc_overview_draw(a->overview, &a->options), 0);
	}
	return rc;
}

static int step_draw(struct attempt *a)
{
	int rc = bc_overview_draw(a->overview, &a->options);

	if (rc != 0)
		assert_int_equal(bc_overview_picture(a->overview)->column_count, 0);
	return rc;
}

static int step_print(struct attempt *a)
{
	a->printed->used = 0;
	return bc_overview_json(a->overview, NULL, a->printed);
}

static int step_print_events(struct attempt *a)
{
	size_t before = a->printed->used;
	int rc = bc_overview_events_json(a->overview, INT64_MIN, INT64_MAX, 10, a->printed);

	a->printed->used = rc == 0 ? a->printed->used : before;
	return rc;
}

static int (*const steps[])(struct attempt *a) = {
	step_open, step_update_some, step_update, step_draw, step_print, step_print_events};

/* Takes all steps, of which one has memory for only n allocations, then for none or all but one. */
static bool take_steps(struct attempt *a, size_t failing, long n, bool is_lasting)
{
	int free_fd = first_free_fd();
	bool has_failed = false;

	failing_heap_start(-1, is_lasting);
	for (size_t i = 0; i < COUNT_OF(steps); i++) {
		heap.until_failure = i == failing ? n : -1;
		int rc = steps[i](a);
		failing_heap_mend();
		has_failed |= heap.has_failed;
		if (rc != 0 && (rc != -ENOMEM || !heap.has_failed))
			fail_msg("step %zu, allocation %ld failed: result %d", i, n, rc);
		if (rc != 0)
			assert_int_equal(steps[i](a), 0);
	}
	bc_overview_close(a->overview);
	failing_heap_stop();
	assert_int_equal(heap.live, 0);
	assert_int_equal(first_free_fd(), free_fd);
	return has_failed;
}

/* Segments that are sealed, without a summary, and cut off; one in progress, with short chunks of
 * which one is damaged. */
static void write_files(struct fixture *f)
{
	start_segment(f, FIRST, 0);
	add_chunks(f, 0, 34);
	seal(f);
	f->has_pages = false;
	start_segment(f, FIRST, 1);
	for (uint32_t i = 34; i < 50; i++) {
		reset_chunk(f, START + i * INT64_C(1000000), 0);
		add_records(f, 150, 1, 100 + 4 * i);
		add_gap(f, 1);
		add_records(f, 150, 1, 100 + 4 * i);
		append_chunk(f);
	}
	seal(f);
	start_segment(f, FIRST, 2);
	add_chunks(f, 50, 10);
	uint64_t end = f->writer.file.bytes;
	seal(f);
	assert_int_equal(truncate(f->paths[2], (off_t)end - 100), 0);
	start_segment(f, SECOND_RECORDING, 0);
	add_tiny(f, START + SECOND, 0);
	add_tiny(f, START + SECOND + 1000000, 0);
	end = f->writer.file.bytes;
	add_tiny(f, START + SECOND + 2000000, 0);
	bc_segment_abandon(&f->writer);
	strcat(f->paths[3], ".partial");
	flip(f->paths[3], end - 8);
}

TEST_F(each_step_works_or_reports_out_of_memory)
{
	static const struct bc_overview_options pictures[] = {
		[BC_OVERVIEW_RECORDS] = {START + 45000000, INT64_MAX, 0, BC_PLACES - 1, 5, 9,
			1 << 24, true},
		[BC_OVERVIEW_CHUNKS] = {INT64_MIN, INT64_MAX, 0, BC_PLACES - 1, 20, 9, 1 << 18,
			false},
		[BC_OVERVIEW_SUMMARY] = {INT64_MIN, INT64_MAX, 0, BC_PLACES - 1, 3, 9, 1 << 18,
			false},
		[BC_OVERVIEW_SEGMENTS] = {INT64_MIN, INT64_MAX, 0, BC_PLACES - 1, 1, 9, 1 << 18,
			false},
	};
	struct attempt a = {.f = f};
	struct bc_byte_buffer expected = {.max = SIZE_MAX};
	struct bc_byte_buffer printed = {.max = SIZE_MAX};

	/* Long enough: they are not allocated while the heap is counted. */
	expected.capacity = printed.capacity = 1 << 17;
	expected.bytes = test_alloc(expected.capacity);
	printed.bytes = test_alloc(printed.capacity);
	write_files(f);
	for (size_t unit = 0; unit < COUNT_OF(pictures); unit++) {
		a.options = pictures[unit];
		a.printed = &expected;
		take_steps(&a, 0, -1, false);
		a.printed = &printed;
		for (size_t i = unit == 0 ? 0 : 3; i < COUNT_OF(steps); i++) {
			for (long n = 0; take_steps(&a, i, n / 2, n % 2 != 0);
				n += test_stride(151)) {
				assert_int_equal(printed.used, expected.used);
				assert_memory_equal(printed.bytes, expected.bytes, expected.used);
			}
		}
	}
	bc_byte_buffer_free(&printed);
	bc_byte_buffer_free(&expected);
}

/* ---- absences */

#define ABSENCES 2u

struct absence {
	int64_t from_ns;
	int64_t to_ns;
};

/* Writes segments of chunks, each 100 ms after the one before it. Before two of them, the board was
 * away; a mark was set meanwhile. The chunk before that arrived late_ns late; its last records,
 * whose times would be in the absence, are where that begins. */
static void write_absences(struct fixture *f, uint32_t segments, uint32_t chunks, uint64_t away_ns,
	int64_t late_ns, struct absence absences[ABSENCES])
{
	uint32_t count = segments * chunks;
	int64_t at_ns = START;
	int64_t late = 0; /* the last chunk */
	unsigned absent = 0;

	for (uint32_t i = 0; i < count; i++, at_ns += SECOND / 10) {
		bool is_absent = i == count / 3 || i == count / 2;
		bool is_late = !is_absent && (i + 1 == count / 3 || i + 1 == count / 2);
		if (i % chunks == 0)
			start_segment(f, FIRST, i / chunks);
		if (is_absent) {
			struct bc_event mark = {.kind = BC_EVENT_MARK};
			int64_t last_ns = f->written[f->count - 1].time_ns - late;
			reset_chunk(f, last_ns + (int64_t)away_ns / 2, absent);
			assert_true(bc_chunk_add_event(f->chunk, &mark, NULL));
			append_chunk(f);
			at_ns = last_ns + (int64_t)away_ns;
			absences[absent++] = (struct absence){last_ns, at_ns};
			for (struct written *w = &f->written[f->count];
				late != 0 && (--w)->time_ns > last_ns;)
				w->time_ns = last_ns;
		}
		reset_chunk(f, at_ns, absent);
		late = is_late ? late_ns : 0;
		f->chunk->info.wall_ns += late;
		if (is_absent)
			add_absence(f, away_ns);
		add_records(f, RECORDS, 1, 100);
		append_chunk(f);
		if ((i + 1) % chunks == 0)
			seal(f);
	}
}

/* Checks that each absence is a hole that no other column overlaps. */
static void check_absences(
	const struct bc_overview_picture *p, const struct absence *absences, uint64_t away_ns)
{
	unsigned holes = 0;
	struct bc_loss loss = {.gaps = 0};

	for (uint32_t i = 0; i < p->column_count; i++) {
		const struct bc_overview_column *c = &p->columns[i];
		bc_loss_add(&loss, c->loss);
		for (unsigned n = 0; n < ABSENCES && !c->is_hole; n++)
			assert_true(c->to_ns <= absences[n].from_ns + 1 ||
				    c->from_ns >= absences[n].to_ns);
		if (!c->is_hole)
			continue;
		assert_true(c->from_ns >= absences[holes].from_ns);
		assert_true(c->from_ns <= absences[holes].from_ns + 1);
		assert_int_equal(c->to_ns, absences[holes].to_ns);
		assert_int_equal(c->loss.away_ns, away_ns);
		assert_int_equal(c->loss.gaps, 0);
		assert_int_equal(c->missing, 0);
		holes++;
	}
	assert_int_equal(holes, ABSENCES);
	assert_int_equal(loss.gaps, ABSENCES);
	assert_int_equal(loss.inexact, ABSENCES);
	assert_int_equal(loss.away_ns, ABSENCES * away_ns);
}

TEST_F(an_absence_is_a_hole_in_every_picture)
{
	static const struct {
		uint32_t segments;
		uint32_t chunks;
	} sizes[] = {{1, 6}, {1, 200}, {4, 60}, {20, 15}};
	static const unsigned seconds[] = {5, 17, 40};
	static const unsigned columns[] = {16, 32, 100, 512};
	unsigned units = 0;

	for (size_t i = 0; i < COUNT_OF(sizes) * COUNT_OF(seconds); i += test_stride(2)) {
		uint64_t away_ns = seconds[i % 3] * (uint64_t)SECOND;
		struct absence absences[ABSENCES];
		f->count = f->recordings = 0;
		f->recording[0] = '\0';
		write_absences(f, sizes[i / 3].segments, sizes[i / 3].chunks, away_ns,
			i / 2 % 2 * RECORDS * 500, absences);
		update(f);
		assert_int_equal(only_recording(f)->loss.away_ns, ABSENCES * away_ns);
		for (size_t n = 0; n < COUNT_OF(columns); n++) {
			const struct bc_overview_picture *p = draw_all(f, columns[n], 20);
			units |= 1u << p->unit;
			check_absences(p, absences, away_ns);
		}
		/* In the middle of one, there is nothing else. */
		struct bc_overview_options options = options_default();
		options.from_ns = absences[1].from_ns + SECOND;
		options.to_ns = absences[1].to_ns - SECOND;
		const struct bc_overview_picture *p = draw(f, &options);
		unsigned holes = 0;
		for (uint32_t n = 0; n < p->column_count; n++)
			holes += p->columns[n].is_hole;
		assert_int_equal(holes, 1);
		while (f->path_count > 0) {
			assert_int_equal(unlink(f->paths[--f->path_count]), 0);
			free(f->paths[f->path_count]);
		}
		update(f);
	}
	assert_int_equal(units, 1u << BC_OVERVIEW_RECORDS | 1u << BC_OVERVIEW_CHUNKS |
					1u << BC_OVERVIEW_SUMMARY | 1u << BC_OVERVIEW_SEGMENTS);
}
