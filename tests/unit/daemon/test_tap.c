#include "tests/support/server_rig.h"

#include <poll.h>

#include "daemon/live/tap.h"
#include "formats/base/json.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

struct bench {
	struct server_rig rig;
	struct bc_taps *taps;
	struct bc_chunk *chunk;
	struct bc_filter filter; /* of the next tap */
	uint64_t limit;
	int refused;
	/* All that passed, as a reader must find it: `n` records with their ticks. */
	struct seen {
		struct bc_record record;
		uint64_t number;
		uint64_t tick;
		uint32_t epoch;
	} * seen;
	size_t n;
	size_t room;
	uint64_t tick;
	struct dice dice;
};

static void on_request(struct server_rig *rig, struct bc_request *request)
{
	struct bench *bench = rig->context;

	bench->refused = bc_taps_add(bench->taps, request, &bench->filter, bench->limit);
	if (bench->refused != 0)
		bc_request_answer(request, 503, "text/plain", strdup("no\n"), NULL);
}

static void open_bench(struct bench *bench)
{
	memset(bench, 0, sizeof(*bench));
	rig_open(&bench->rig, NULL, on_request);
	bench->rig.context = bench;
	bench->chunk = calloc(1, sizeof(*bench->chunk));
	assert_non_null(bench->chunk);
	bench->dice.state = 5;
	bc_filter_init(&bench->filter);
	assert_int_equal(bc_taps_open(&bench->taps, &bench->rig.loop), 0);
	assert_true(bc_taps_count(bench->taps) == 0);
}

static void close_bench(struct bench *bench)
{
	rig_close_server(&bench->rig);
	assert_true(bc_taps_count(bench->taps) == 0);
	bc_taps_close(bench->taps);
	rig_close(&bench->rig);
	free(bench->chunk);
	free(bench->seen);
}

static int listen_in(struct bench *bench)
{
	unsigned before = bc_taps_count(bench->taps);
	int fd = rig_connect(&bench->rig);

	rig_say(&bench->rig, fd, "GET /v1/records HTTP/1.0\r\n\r\n");
	RIG_UNTIL(&bench->rig, bc_taps_count(bench->taps) == before + 1);
	return fd;
}

static void begin_chunk(struct bench *bench, uint32_t epoch)
{
	bc_chunk_reset(bench->chunk, bench->tick, epoch);
}

static void add_event(struct bench *bench, struct bc_event event, const char *text)
{
	event.position = bench->chunk->info.records;
	event.text_bytes = text != NULL ? (uint16_t)strlen(text) : 0;
	assert_true(bc_chunk_add_event(bench->chunk, &event, text));
}

/* Puts a record at the end of the chunk. */
static void add_record(struct bench *bench, uint32_t time)
{
	struct bc_chunk_info *info = &bench->chunk->info;
	uint64_t roll = dice_roll(&bench->dice);
	struct bc_record r = {
		.addr = (uint32_t)(roll >> 32) & 0xFFFF,
		.reqtype = (uint8_t)(roll & 3),
		.size = 8,
		.attr = 6,
		.proc = (uint8_t)(roll >> 8 & 3),
		.time = time,
	};

	if (bench->n == bench->room) {
		bench->room = bench->room * 2 + 1000;
		bench->seen = realloc(bench->seen, bench->room * sizeof(*bench->seen));
		assert_non_null(bench->seen);
	}
	bench->tick += time != BC_TIME_NONE ? time : 0;
	bench->seen[bench->n] = (struct seen){r, bench->n, bench->tick, info->epoch};
	bench->n++;
	bc_record_store(bench->chunk->records + (size_t)info->records * BC_RECORD_BYTES, &r);
	info->records++;
	info->last_tick = bench->tick;
}

static void add_records(struct bench *bench, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		add_record(bench, (uint32_t)(dice_roll(&bench->dice) % 100));
}

/* Shows what was added since the chunk had `from` records, when the bus was at `tick`. */
static void show(struct bench *bench, uint32_t from, uint64_t tick)
{
	uint32_t n = bench->chunk->info.records - from;

	bc_taps_records(bench->taps, bench->chunk, from, bench->n - n, tick);
}

static uint64_t number(const json_t *object, const char *name)
{
	const json_t *item = json_object_get(object, name);

	if (!json_is_number(item))
		fail_msg("%s is no number", name);
	return (uint64_t)json_integer_value(item);
}

struct reading {
	bool has_begun; /* the head of the answer has come */
	uint64_t at;    /* of bench->seen */
	uint64_t slack; /* so many of those that follow are counted as missed */
	uint64_t records;
	uint64_t missed;
	uint64_t missed_events;
	uint64_t gaps;
	uint64_t lost;
	uint64_t marks;
	char last_mark[64];
	uint64_t mark_record;
	uint64_t mark_tick;
};

static bool is_wanted(const struct bc_filter *filter, const struct bc_record *r)
{
	uint8_t bytes[BC_RECORD_BYTES];
	uint64_t ticks;

	bc_record_store(bytes, r);
	return bc_filter_records(filter, bytes, 1, &ticks) == 1;
}

/* Passes over the records before number `to`: those that were missed are among them, and so are all
 * that are wanted. */
static void pass(
	struct reading *r, const struct bench *bench, const struct bc_filter *filter, uint64_t to)
{
	uint64_t wanted = 0;

	assert_true(to >= r->at + r->slack && to <= bench->n);
	for (; r->at < to; r->at++)
		wanted += is_wanted(filter, &bench->seen[r->at].record);
	assert_true(wanted <= r->slack);
	r->slack = 0;
}

static void take_record(struct reading *r, const struct bench *bench,
	const struct bc_filter *filter, const json_t *object)
{
	char text[32];
	uint64_t at = number(object, "record");

	assert_true(at < bench->n);
	pass(r, bench, filter, at);
	const struct seen *seen = &bench->seen[r->at++];
	assert_true(is_wanted(filter, &seen->record));
	assert_int_equal(number(object, "record"), seen->number);
	assert_int_equal(number(object, "tick"), seen->tick);
	assert_int_equal(number(object, "epoch"), seen->epoch);
	assert_int_equal(number(object, "size"), 8);
	assert_int_equal(number(object, "attr"), 6);
	assert_int_equal(number(object, "proc"), seen->record.proc);
	bc_json_member_text(object, "addr", text, sizeof(text));
	assert_int_equal(strtoul(text, NULL, 16), seen->record.addr);
	if (seen->record.time == BC_TIME_NONE)
		assert_true(json_is_null(json_object_get(object, "time")));
	else
		assert_int_equal(number(object, "time"), seen->record.time);
	r->records++;
}

static void take_mark(struct reading *r, const json_t *mark)
{
	bc_json_member_text(mark, "text", r->last_mark, sizeof(r->last_mark));
	r->mark_record = json_is_null(json_object_get(mark, "record")) ? BC_TAP_NO_RECORD
								       : number(mark, "record");
	r->mark_tick = json_is_null(json_object_get(mark, "tick")) ? UINT64_MAX
								   : number(mark, "tick");
	r->marks++;
}

static void take_line(struct reading *r, const struct bench *bench, const struct bc_filter *filter,
	const char *line)
{
	json_t *object = json_loads(line, 0, NULL);

	if (object == NULL)
		fail_msg("no JSON: %.300s", line);
	const char *first = json_object_iter_key(json_object_iter(object));
	const json_t *value = json_object_get(object, first);
	if (strcmp(first, "record") == 0) {
		take_record(r, bench, filter, object);
	} else if (strcmp(first, "missed") == 0) {
		r->missed += number(object, "missed");
		r->slack += number(object, "missed");
		if (json_object_get(object, "events") != NULL)
			r->missed_events += number(object, "events");
	} else if (strcmp(first, "gap") == 0) {
		r->gaps++;
		r->lost += number(value, "lost");
	} else {
		take_mark(r, value);
	}
	json_decref(object);
}

static void take_answer(
	struct reading *r, const struct bench *bench, const struct bc_filter *filter, char *answer)
{
	char *at = answer;

	if (!r->has_begun) {
		assert_int_equal(rig_status(answer), 200);
		at = (char *)(uintptr_t)rig_body(answer);
	}
	r->has_begun = true;
	for (char *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
		*end = '\0';
		take_line(r, bench, filter, at);
	}
	assert_int_equal(*at, 0);
	free(answer);
}

/* Reads until nothing has come for a hundred turns, a millisecond each at least: the clock must go
 * on for what is told later, and turns be made while it does. */
static void read_more(
	struct bench *bench, int fd, struct reading *r, const struct bc_filter *filter)
{
	size_t room = 16u << 20;
	char *text = malloc(room);
	size_t used = 0;

	assert_non_null(text);
	for (int quiet = 0; quiet < 100; quiet++) {
		ssize_t n = recv(fd, text + used, room - used - 1, 0);
		assert_true(n >= 0 || errno == EAGAIN);
		if (n == 0)
			break;
		if (n > 0) {
			used += (size_t)n;
			quiet = 0;
		} else {
			poll(NULL, 0, 1);
		}
		rig_turn(&bench->rig, 1);
	}
	text[used] = '\0';
	take_answer(r, bench, filter, text);
}

static void read_on(struct bench *bench, int fd, struct reading *r, const struct bc_filter *filter)
{
	memset(r, 0, sizeof(*r));
	read_more(bench, fd, r, filter);
}

/* Takes the lines out that tell of records nobody looked at: a slow machine has them. */
static void drop_missed(char *answer)
{
	for (char *line; (line = strstr(answer, "{\"missed\":")) != NULL;) {
		const char *next = strchr(line, '\n');
		assert_non_null(next);
		memmove(line, next + 1, strlen(next + 1) + 1);
	}
}

static const struct bc_event mark = {.kind = BC_EVENT_MARK};

TEST(every_wanted_record_comes_or_is_counted)
{
	struct bench bench;
	struct bc_filter filters[4];
	struct reading r;
	int fds[4];

	open_bench(&bench);
	for (unsigned i = 0; i < 4; i++)
		bc_filter_init(&filters[i]);
	filters[1].has_addr = true;
	filters[1].addr = (struct bc_span){0x1000, 0x1FFF};
	bc_filter_add_type(&filters[2], 2);
	bc_filter_add_procs(&filters[3], 1, 2);
	for (unsigned i = 0; i < 4; i++) {
		bench.filter = filters[i];
		fds[i] = listen_in(&bench);
	}
	/* Batches of many lengths, so that those of 64 begin and end everywhere. */
	begin_chunk(&bench, 0);
	for (uint32_t n = 0; n < 150; n++) {
		uint32_t from = bench.chunk->info.records;
		uint64_t tick = bench.tick;
		add_records(&bench, n);
		show(&bench, from, tick);
		rig_turn(&bench.rig, 1);
	}
	for (unsigned i = 0; i < 4; i++) {
		read_on(&bench, fds[i], &r, &filters[i]);
		pass(&r, &bench, &filters[i], bench.n);
		assert_true(r.records + r.missed > 0);
		if (i == 0)
			assert_int_equal(r.records + r.missed, bench.n);
		close(fds[i]);
	}
	close_bench(&bench);
}

TEST(ticks_go_on_by_the_anchors)
{
	struct bench bench;
	struct reading r;

	open_bench(&bench);
	int fd = listen_in(&bench);
	for (uint32_t at = 0; at < 140; at++) {
		begin_chunk(&bench, at);
		uint64_t tick = bench.tick;
		add_records(&bench, at);
		bench.tick = UINT64_C(1) << (at % 50);
		add_event(&bench,
			(struct bc_event){
				.kind = BC_EVENT_ANCHOR, .exact = true, .value = bench.tick},
			NULL);
		add_event(&bench, mark, "here");
		add_record(&bench, BC_TIME_NONE);
		add_records(&bench, 70);
		show(&bench, 0, tick);
		/* As much as is shown is read: nothing is missed for want of room. */
		rig_turn(&bench.rig, 1);
	}
	read_on(&bench, fd, &r, &bench.filter);
	/* A slow machine has used up the budget, which comes back with time. */
	for (uint64_t end_ns = bc_now_ns() + RIG_WAIT_NS; r.records == 0;) {
		assert_true(bc_now_ns() < end_ns);
		begin_chunk(&bench, 0);
		uint64_t tick = bench.tick;
		add_records(&bench, 70);
		show(&bench, 0, tick);
		read_more(&bench, fd, &r, &bench.filter);
	}
	pass(&r, &bench, &bench.filter, bench.n);
	assert_int_equal(r.records + r.missed, bench.n);
	assert_int_equal(r.marks + r.missed_events, 140);
	close(fd);
	close_bench(&bench);
}

TEST(gaps_marks_and_triggers_stand_where_they_were)
{
	struct bench bench;
	struct reading r;
	struct bc_event gap = {
		.kind = BC_EVENT_GAP, .cause = BC_GAP_BOARD, .exact = true, .value = 7};

	open_bench(&bench);
	bench.filter.has_addr = true; /* nobody's */
	bench.filter.addr = (struct bc_span){0xFFFFFFF0, 0xFFFFFFFF};
	int fd = listen_in(&bench);
	bc_taps_event(
		bench.taps, &(struct bc_event){.kind = BC_EVENT_MARK, .text_bytes = 5}, "early");
	read_on(&bench, fd, &r, &bench.filter);
	assert_string_equal(r.last_mark, "early");
	assert_true(r.mark_record == BC_TAP_NO_RECORD && r.mark_tick == UINT64_MAX);
	close(fd);
	RIG_UNTIL(&bench.rig, bc_taps_count(bench.taps) == 0);

	/* Each new batch has what stands at its own records, once; the end has the rest. */
	fd = listen_in(&bench);
	begin_chunk(&bench, 3);
	add_event(&bench, gap, NULL);
	add_records(&bench, 10);
	add_event(&bench, gap, NULL);
	show(&bench, 0, 0);
	uint64_t tick = bench.tick;
	add_event(&bench, mark, "a \"mark\"\n\x01\xFF\\");
	add_records(&bench, 5);
	show(&bench, 10, tick);
	add_event(&bench, gap, NULL);
	bc_taps_end(bench.taps, bench.chunk);
	bool is_over;
	char *answer = rig_read(&bench.rig, fd, 300, &is_over);
	drop_missed(answer);
	const char *wanted =
		"{\"gap\":{\"cause\":\"board\",\"lost\":7,\"exact\":true}}\n"
		"{\"gap\":{\"cause\":\"board\",\"lost\":7,\"exact\":true}}\n"
		"{\"mark\":{\"text\":\"a \\\"mark\\\"\\n\\u0001\\u00ff\\\\\",\"record\":10,"
		"\"tick\":";
	assert_int_equal(strncmp(rig_body(answer), wanted, strlen(wanted)), 0);
	free(answer);
	close(fd);
	RIG_UNTIL(&bench.rig, bc_taps_count(bench.taps) == 0);

	fd = listen_in(&bench);
	char text[BC_CHUNK_TEXT_BYTES + 1];
	for (size_t n = 0; n <= BC_CHUNK_TEXT_BYTES; n = n < 130 ? n + 1 : n * 3) {
		memset(text, '\x02', n);
		bc_taps_event(bench.taps,
			&(struct bc_event){.kind = BC_EVENT_TRIGGER, .text_bytes = (uint16_t)n},
			text);
		rig_turn(&bench.rig, 1);
	}
	read_on(&bench, fd, &r, &bench.filter);
	assert_int_equal(r.marks, 134);
	assert_int_equal(r.mark_record, 15);
	assert_int_equal(r.mark_tick, bench.tick);
	close(fd);
	close_bench(&bench);
}

TEST(a_tap_too_slow_is_reported_exactly_what_it_missed)
{
	struct bench bench;
	struct reading r;

	open_bench(&bench);
	int fd = listen_in(&bench);
	uint64_t gaps = 0;
	for (int chunk = 0; chunk < 20; chunk++) {
		begin_chunk(&bench, (uint32_t)chunk);
		uint64_t tick = bench.tick;
		for (int i = 0; i < 20; i++) {
			add_records(&bench, 1000);
			add_event(&bench,
				(struct bc_event){
					.kind = BC_EVENT_GAP, .cause = BC_GAP_CRC, .value = 1},
				NULL);
			gaps++;
		}
		add_records(&bench, 1);
		show(&bench, 0, tick);
		bc_taps_passed(bench.taps, 0);
	}
	read_on(&bench, fd, &r, &bench.filter);
	pass(&r, &bench, &bench.filter, bench.n);
	assert_int_equal(r.records + r.missed, bench.n);
	assert_true(r.missed > 0);
	assert_int_equal(r.gaps + r.missed_events, gaps);
	close(fd);
	close_bench(&bench);
}

TEST(what_takes_too_much_of_the_loop_is_passed_over_and_counted)
{
	struct bench bench;
	uint64_t passed = 0;

	open_bench(&bench);
	bench.filter.has_addr = true; /* nothing fills the queue */
	bench.filter.addr = (struct bc_span){0xFFFFFFF0, 0xFFFFFFFF};
	int fd = listen_in(&bench);
	begin_chunk(&bench, 0);
	add_records(&bench, BC_CHUNK_RECORDS);
	/* All that the loop does is looking, which is more than a twentieth. */
	for (int i = 0; i < 500; i++) {
		show(&bench, 0, 0);
		passed += BC_CHUNK_RECORDS;
	}
	bc_taps_passed(bench.taps, 12345);
	bool is_over;
	char *answer = rig_read(&bench.rig, fd, 120, &is_over);
	const char *at = strstr(answer, "{\"missed\":");
	assert_non_null(at);
	uint64_t missed = strtoull(at + 10, NULL, 10);
	assert_true(missed > 12345 && missed <= passed + 12345);
	assert_int_equal((missed - 12345) % BC_CHUNK_RECORDS, 0);
	free(answer);
	close(fd);
	close_bench(&bench);
}

TEST(a_limit_ends_the_stream_behind_that_record)
{
	struct bench bench;
	struct reading r;

	open_bench(&bench);
	for (uint64_t limit = 1; limit < 200; limit += limit < 5 ? 1 : 62) {
		bench.n = 0;
		bench.limit = limit;
		int fd = listen_in(&bench);
		begin_chunk(&bench, 0);
		/* While the budget is used up it takes longer. */
		uint64_t end_ns = bc_now_ns() + RIG_WAIT_NS;
		while (bc_taps_count(bench.taps) != 0) {
			assert_true(bc_now_ns() < end_ns);
			uint32_t from = bench.chunk->info.records;
			if (from > BC_CHUNK_RECORDS - 100) {
				begin_chunk(&bench, 0);
				from = 0;
			}
			uint64_t tick = bench.tick;
			add_records(&bench, 100);
			show(&bench, from, tick);
			usleep(1000);
			rig_turn(&bench.rig, 1);
		}
		read_on(&bench, fd, &r, &bench.filter);
		assert_int_equal(r.records, limit);
		close(fd);
	}
	close_bench(&bench);
}

TEST(there_are_8_taps_and_no_more)
{
	struct bench bench;
	int fds[BC_TAPS_MAX];

	open_bench(&bench);
	for (unsigned i = 0; i < BC_TAPS_MAX; i++)
		fds[i] = listen_in(&bench);
	char *answer = rig_ask(&bench.rig, "GET /v1/records HTTP/1.0\r\n\r\n");
	assert_int_equal(rig_status(answer), 503);
	free(answer);
	assert_int_equal(bench.refused, -EBUSY);
	/* On a silent bus, too, one that has gone makes room. */
	close(fds[3]);
	RIG_UNTIL(&bench.rig, bc_taps_count(bench.taps) == BC_TAPS_MAX - 1);
	fds[3] = listen_in(&bench);
	for (unsigned i = 0; i < BC_TAPS_MAX; i++)
		close(fds[i]);
	close_bench(&bench);
}
