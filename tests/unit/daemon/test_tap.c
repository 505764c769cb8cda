#include "tests/support/server_rig.h"

#include <poll.h>

#include "daemon/api/tap.h"
#include "formats/base/json.h"
#include "formats/base/text.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define COSTLY_NS UINT64_C(100000000) /* CPU time of a request for /costly */

struct fixture {
	struct server_rig rig;
	struct bc_taps *taps;
	struct bc_chunk *chunk;
	struct bc_filter filter; /* for the next tap */
	uint64_t limit;
	int rc;
	/* All records offered so far, with the values that a client must receive. */
	struct seen {
		struct bc_record record;
		uint64_t number;
		uint64_t tick;
		uint32_t epoch;
		int64_t wall_ns; /* 0: unknown */
	} * seen;
	size_t n;
	size_t capacity;
	uint64_t tick;
	uint64_t clock_hz; /* 0: unknown */
	struct dice dice;
};

static void on_request(struct server_rig *rig, struct bc_request *request)
{
	struct fixture *f = rig->context;

	if (strcmp(bc_request_path(request), "/costly") == 0) {
		for (uint64_t start_ns = bc_thread_ns(); bc_thread_ns() - start_ns < COSTLY_NS;)
			;
		bc_request_respond(request, 200, "text/plain", strdup("done\n"), NULL);
		return;
	}
	f->rc = bc_taps_add(f->taps, request, &f->filter, f->limit);
	if (f->rc != 0)
		bc_request_respond(request, 503, "text/plain", strdup("no\n"), NULL);
}

static void set_up(struct fixture *f)
{
	rig_open(&f->rig, NULL, on_request);
	f->rig.context = f;
	f->chunk = calloc(1, sizeof(*f->chunk));
	assert_non_null(f->chunk);
	f->dice.state = 5;
	bc_filter_init(&f->filter);
	assert_int_equal(bc_taps_open(&f->taps, &f->rig.loop), 0);
	assert_true(bc_taps_count(f->taps) == 0);
}

static void tear_down(struct fixture *f)
{
	rig_close_server(&f->rig);
	assert_true(bc_taps_count(f->taps) == 0);
	bc_taps_close(f->taps);
	rig_close(&f->rig);
	free(f->chunk);
	free(f->seen);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static int open_tap(struct fixture *f)
{
	unsigned before = bc_taps_count(f->taps);
	int fd = rig_connect(&f->rig);

	rig_send_text(&f->rig, fd, "GET /v1/records HTTP/1.0\r\n\r\n");
	RIG_UNTIL(&f->rig, bc_taps_count(f->taps) == before + 1);
	return fd;
}

static void start_chunk(struct fixture *f, uint32_t epoch)
{
	bc_chunk_reset(f->chunk, f->tick, epoch);
	f->chunk->info.wall_ns = INT64_C(1795166100123456789);
}

static void add_event(struct fixture *f, struct bc_event event, const char *text)
{
	event.position = f->chunk->info.records;
	event.text_bytes = text != NULL ? (uint16_t)strlen(text) : 0;
	assert_true(bc_chunk_add_event(f->chunk, &event, text));
}

/* Adds a record to the chunk. */
static void add_record(struct fixture *f, uint32_t time)
{
	struct bc_chunk_info *info = &f->chunk->info;
	uint64_t roll = dice_roll(&f->dice);
	struct bc_record r = {
		.addr = (uint32_t)(roll >> 32) & 0xFFFF,
		.reqtype = (uint8_t)(roll & 3),
		.size = 8,
		.attr = 6,
		.proc = (uint8_t)(roll >> 8 & 3),
		.time = time,
	};

	if (f->n == f->capacity) {
		f->capacity = f->capacity * 2 + 1000;
		f->seen = realloc(f->seen, f->capacity * sizeof(*f->seen));
		assert_non_null(f->seen);
	}
	f->tick += time != BC_TIME_NONE ? time : 0;
	int64_t wall_ns;
	if (!bc_tick_time(&wall_ns, bc_chunk_clock(info, f->clock_hz), f->tick))
		wall_ns = 0;
	f->seen[f->n] = (struct seen){r, f->n, f->tick, info->epoch, wall_ns};
	f->n++;
	bc_record_store(f->chunk->records + (size_t)info->records * BC_RECORD_BYTES, &r);
	info->records++;
	info->last_tick = f->tick;
}

static void add_records(struct fixture *f, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		add_record(f, (uint32_t)(dice_roll(&f->dice) % 100));
}

/* Offers the records from index `from` on; `tick` is the tick before them. */
static void offer(struct fixture *f, uint32_t from, uint64_t tick)
{
	uint32_t n = f->chunk->info.records - from;

	bc_taps_records(f->taps, f->chunk, from, f->n - n, tick, f->clock_hz);
}

static uint64_t number(const json_t *object, const char *name)
{
	const json_t *item = json_object_get(object, name);

	if (!json_is_number(item))
		fail_msg("%s is not a number", name);
	return (uint64_t)json_integer_value(item);
}

struct reading {
	bool has_head;  /* of the response */
	uint64_t at;    /* index into f->seen */
	uint64_t slack; /* records from there on that were reported as skipped */
	uint64_t records;
	uint64_t skipped;
	uint64_t skipped_events;
	uint64_t gaps;
	uint64_t lost;
	uint64_t marks;
	char last_mark[64];
	uint64_t mark_record;
	uint64_t mark_tick;
};

static bool is_match(const struct bc_filter *filter, const struct bc_record *r)
{
	uint8_t bytes[BC_RECORD_BYTES];
	uint64_t ticks;

	bc_record_store(bytes, r);
	return bc_filter_records(filter, bytes, 1, &ticks) == 1;
}

/* Advances to record `to`. Every matching record in between must have been reported as skipped. */
static void advance_to(
	struct reading *r, const struct fixture *f, const struct bc_filter *filter, uint64_t to)
{
	uint64_t matching = 0;

	assert_true(to >= r->at + r->slack && to <= f->n);
	for (; r->at < to; r->at++)
		matching += is_match(filter, &f->seen[r->at].record);
	assert_true(matching <= r->slack);
	r->slack = 0;
}

static void check_record(struct reading *r, const struct fixture *f, const struct bc_filter *filter,
	const json_t *object)
{
	char text[32];
	char wall[BC_RFC3339_BYTES];
	uint64_t at = number(object, "number");

	assert_true(at < f->n);
	advance_to(r, f, filter, at);
	const struct seen *seen = &f->seen[r->at++];
	assert_true(is_match(filter, &seen->record));
	assert_int_equal(number(object, "number"), seen->number);
	assert_int_equal(number(object, "tick"), seen->tick);
	assert_int_equal(number(object, "epoch"), seen->epoch);
	assert_int_equal(number(object, "size"), 8);
	assert_int_equal(number(object, "attr"), 6);
	assert_int_equal(number(object, "proc"), seen->record.proc);
	if (seen->wall_ns != 0) {
		bc_rfc3339_write(wall, seen->wall_ns);
		bc_json_member_text(object, "time", text, sizeof(text));
		assert_string_equal(text, wall);
	} else {
		assert_true(json_is_null(json_object_get(object, "time")));
	}
	bc_json_member_text(object, "addr", text, sizeof(text));
	assert_int_equal(strtoul(text, NULL, 16), seen->record.addr);
	if (seen->record.time == BC_TIME_NONE)
		assert_true(json_is_null(json_object_get(object, "delta")));
	else
		assert_int_equal(number(object, "delta"), seen->record.time);
	r->records++;
}

static void parse_mark(struct reading *r, const json_t *mark)
{
	bc_json_member_text(mark, "text", r->last_mark, sizeof(r->last_mark));
	r->mark_record = json_is_null(json_object_get(mark, "record")) ? BC_TAP_NO_RECORD
								       : number(mark, "record");
	r->mark_tick = json_is_null(json_object_get(mark, "tick")) ? UINT64_MAX
								   : number(mark, "tick");
	r->marks++;
}

static void parse_line(struct reading *r, const struct fixture *f, const struct bc_filter *filter,
	const char *line)
{
	json_t *object = json_loads(line, 0, NULL);

	if (object == NULL)
		fail_msg("invalid JSON: %.300s", line);
	const char *first = json_object_iter_key(json_object_iter(object));
	const json_t *value = json_object_get(object, first);
	if (strcmp(first, "number") == 0) {
		check_record(r, f, filter, object);
	} else if (strcmp(first, "skipped") == 0) {
		r->skipped += number(value, "records");
		r->slack += number(value, "records");
		r->skipped_events += number(value, "events");
	} else if (strcmp(first, "gap") == 0) {
		r->gaps++;
		r->lost += number(value, "lost");
	} else {
		parse_mark(r, value);
	}
	json_decref(object);
}

static void parse_response(
	struct reading *r, const struct fixture *f, const struct bc_filter *filter, char *answer)
{
	char *at = answer;

	if (!r->has_head) {
		assert_int_equal(rig_status(answer), 200);
		at = (char *)(uintptr_t)rig_body(answer);
	}
	r->has_head = true;
	for (char *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
		*end = '\0';
		parse_line(r, f, filter, at);
	}
	assert_int_equal(*at, 0);
	free(answer);
}

/* Reads until nothing has arrived for 100 turns of the loop of at least 1 ms: records are sent
 * after a delay, which needs both the time and the turns. */
static void read_more(struct fixture *f, int fd, struct reading *r, const struct bc_filter *filter)
{
	size_t capacity = 16u << 20;
	char *text = malloc(capacity);
	size_t used = 0;

	assert_non_null(text);
	for (int quiet = 0; quiet < 100; quiet++) {
		ssize_t n = recv(fd, text + used, capacity - used - 1, 0);
		assert_true(n >= 0 || errno == EAGAIN);
		if (n == 0)
			break;
		if (n > 0) {
			used += (size_t)n;
			quiet = 0;
		} else {
			poll(NULL, 0, 1);
		}
		rig_run(&f->rig, 1);
	}
	text[used] = '\0';
	parse_response(r, f, filter, text);
}

static void read_lines(struct fixture *f, int fd, struct reading *r, const struct bc_filter *filter)
{
	memset(r, 0, sizeof(*r));
	read_more(f, fd, r, filter);
}

/* Removes the lines about skipped records, which a slow machine produces. */
static void remove_skipped(char *answer)
{
	for (char *line; (line = strstr(answer, "{\"skipped\":{\"records\":")) != NULL;) {
		const char *next = strchr(line, '\n');
		assert_non_null(next);
		memmove(line, next + 1, strlen(next + 1) + 1);
	}
}

static const struct bc_event mark = {.kind = BC_EVENT_MARK};

/* Offers an event that comes after the last record of its chunk. */
static void end_with_event(struct fixture *f, struct bc_event event, const char *text)
{
	start_chunk(f, 0);
	add_event(f, event, text);
	bc_taps_end(f->taps, f->chunk);
}

TEST_F(every_matching_record_is_sent_or_counted)
{
	struct bc_filter filters[4];
	struct reading r;
	int fds[4];

	for (unsigned i = 0; i < 4; i++)
		bc_filter_init(&filters[i]);
	filters[1].has_addr = true;
	filters[1].addr = (struct bc_span){0x1000, 0x1FFF};
	bc_filter_add_type(&filters[2], 2);
	bc_filter_add_procs(&filters[3], 1, 2);
	for (unsigned i = 0; i < 4; i++) {
		f->filter = filters[i];
		fds[i] = open_tap(f);
	}
	/* Batches of many lengths, so that blocks of 64 records start and end everywhere. */
	start_chunk(f, 0);
	for (uint32_t n = 0; n < 150; n++) {
		uint32_t from = f->chunk->info.records;
		uint64_t tick = f->tick;
		f->clock_hz = n % 3 * UINT64_C(33000000);
		add_records(f, n);
		offer(f, from, tick);
		rig_run(&f->rig, 1);
	}
	for (unsigned i = 0; i < 4; i++) {
		read_lines(f, fds[i], &r, &filters[i]);
		advance_to(&r, f, &filters[i], f->n);
		assert_true(r.records + r.skipped > 0);
		if (i == 0)
			assert_int_equal(r.records + r.skipped, f->n);
		close(fds[i]);
	}
}

TEST_F(anchors_set_the_tick)
{
	struct reading r;

	int fd = open_tap(f);
	for (uint32_t at = 0; at < 140; at++) {
		start_chunk(f, at);
		uint64_t tick = f->tick;
		add_records(f, at);
		f->tick = UINT64_C(1) << (at % 50);
		add_event(f,
			(struct bc_event){.kind = BC_EVENT_ANCHOR, .exact = true, .value = f->tick},
			NULL);
		add_event(f, mark, "here");
		add_record(f, BC_TIME_NONE);
		add_records(f, 70);
		offer(f, 0, tick);
		/* Everything offered is read, so the queue never fills up. */
		rig_run(&f->rig, 1);
	}
	read_lines(f, fd, &r, &f->filter);
	/* On a slow machine the budget may be used up. It recovers with time. */
	for (uint64_t end_ns = bc_now_ns() + RIG_WAIT_NS; r.records == 0;) {
		assert_true(bc_now_ns() < end_ns);
		start_chunk(f, 0);
		uint64_t tick = f->tick;
		add_records(f, 70);
		offer(f, 0, tick);
		read_more(f, fd, &r, &f->filter);
	}
	advance_to(&r, f, &f->filter, f->n);
	assert_int_equal(r.records + r.skipped, f->n);
	assert_int_equal(r.marks + r.skipped_events, 140);
	close(fd);
}

TEST_F(gaps_marks_and_triggers_keep_their_positions)
{
	struct reading r;
	struct bc_event gap = {
		.kind = BC_EVENT_GAP, .cause = BC_GAP_BOARD, .exact = true, .value = 7};

	f->filter.has_addr = true; /* matches no record */
	f->filter.addr = (struct bc_span){0xFFFFFFF0, 0xFFFFFFFF};
	int fd = open_tap(f);
	end_with_event(f, mark, "early");
	read_lines(f, fd, &r, &f->filter);
	assert_string_equal(r.last_mark, "early");
	assert_true(r.mark_record == BC_TAP_NO_RECORD && r.mark_tick == UINT64_MAX);
	close(fd);
	RIG_UNTIL(&f->rig, bc_taps_count(f->taps) == 0);

	/* Records that came before the tap count. */
	start_chunk(f, 2);
	add_records(f, 4);
	offer(f, 0, 0);
	fd = open_tap(f);
	end_with_event(f, mark, "late");
	read_lines(f, fd, &r, &f->filter);
	assert_int_equal(r.mark_record, 4);
	assert_int_equal(r.mark_tick, f->tick);
	close(fd);
	RIG_UNTIL(&f->rig, bc_taps_count(f->taps) == 0);

	/* Each batch brings the events at its own records, once; the end brings the rest. */
	fd = open_tap(f);
	start_chunk(f, 3);
	add_event(f, gap, NULL);
	add_records(f, 10);
	add_event(f, gap, NULL);
	offer(f, 0, 0);
	uint64_t tick = f->tick;
	add_event(f, mark, "a \"mark\"\n\x01\xFF\\");
	add_records(f, 5);
	offer(f, 10, tick);
	add_event(f, gap, NULL);
	bc_taps_end(f->taps, f->chunk);
	bool is_over;
	char *answer = rig_read(&f->rig, fd, 300, &is_over);
	remove_skipped(answer);
	const char *matching =
		"{\"gap\":{\"cause\":\"board\",\"lost\":7,\"exact\":true}}\n"
		"{\"gap\":{\"cause\":\"board\",\"lost\":7,\"exact\":true}}\n"
		"{\"mark\":{\"text\":\"a \\\"mark\\\"\\n\\u0001\\u00ff\\\\\",\"record\":14,"
		"\"tick\":";
	assert_int_equal(strncmp(rig_body(answer), matching, strlen(matching)), 0);
	free(answer);
	close(fd);
	RIG_UNTIL(&f->rig, bc_taps_count(f->taps) == 0);

	fd = open_tap(f);
	char text[BC_CHUNK_TEXT_BYTES + 1];
	for (size_t n = 0; n <= BC_CHUNK_TEXT_BYTES; n = n < 130 ? n + 1 : n * 3) {
		memset(text, '\x02', n);
		text[n] = '\0';
		end_with_event(f, (struct bc_event){.kind = BC_EVENT_TRIGGER}, text);
		rig_run(&f->rig, 1);
	}
	read_lines(f, fd, &r, &f->filter);
	assert_int_equal(r.marks, 134);
	assert_int_equal(r.mark_record, 19);
	assert_int_equal(r.mark_tick, f->tick);
	close(fd);
}

TEST_F(a_slow_tap_gets_the_exact_number_of_skipped_records)
{
	struct reading r;

	int fd = open_tap(f);
	uint64_t gaps = 0;
	for (int chunk = 0; chunk < 20; chunk++) {
		start_chunk(f, (uint32_t)chunk);
		uint64_t tick = f->tick;
		for (int i = 0; i < 20; i++) {
			add_records(f, 1000);
			add_event(f,
				(struct bc_event){
					.kind = BC_EVENT_GAP, .cause = BC_GAP_CRC, .value = 1},
				NULL);
			gaps++;
		}
		add_records(f, 1);
		offer(f, 0, tick);
		bc_taps_skip(f->taps, 0);
	}
	read_lines(f, fd, &r, &f->filter);
	advance_to(&r, f, &f->filter, f->n);
	assert_int_equal(r.records + r.skipped, f->n);
	assert_true(r.skipped > 0);
	assert_int_equal(r.gaps + r.skipped_events, gaps);
	close(fd);
}

TEST_F(records_beyond_the_cpu_budget_are_skipped_and_counted)
{
	uint64_t passed = 0;

	f->filter.has_addr = true; /* nothing is queued */
	f->filter.addr = (struct bc_span){0xFFFFFFF0, 0xFFFFFFFF};
	int fd = open_tap(f);
	start_chunk(f, 0);
	add_records(f, BC_CHUNK_RECORDS);
	/* The loop does nothing but examine records, which exceeds 5 %. */
	for (int i = 0; i < 500; i++) {
		offer(f, 0, 0);
		passed += BC_CHUNK_RECORDS;
	}
	bc_taps_skip(f->taps, 12345);
	bool is_over;
	char *answer = rig_read(&f->rig, fd, 120, &is_over);
	const char *at = strstr(answer, "{\"skipped\":{\"records\":");
	assert_non_null(at);
	uint64_t skipped = strtoull(at + strlen("{\"skipped\":{\"records\":"), NULL, 10);
	assert_true(skipped > 12345 && skipped <= passed + 12345);
	assert_int_equal((skipped - 12345) % BC_CHUNK_RECORDS, 0);
	free(answer);
	close(fd);
}

/* The first records are skipped only until the share of the time since the start makes up for the
 * CPU time that this test has used since. */
TEST_F(a_new_tap_does_not_pay_for_earlier_requests)
{
	struct reading r = {.records = 0};

	free(rig_request(&f->rig, "GET /costly HTTP/1.0\r\n\r\n"));
	uint64_t start_ns = bc_now_ns();
	uint64_t used_ns = bc_thread_ns();
	int fd = open_tap(f);
	while (r.records == 0) {
		uint64_t now_ns = bc_now_ns();
		start_chunk(f, 0);
		uint64_t tick = f->tick;
		add_records(f, 10);
		offer(f, 0, tick);
		read_more(f, fd, &r, &f->filter);
		assert_true(r.records != 0 || now_ns - start_ns < 20 * (bc_thread_ns() - used_ns));
	}
	close(fd);
}

TEST_F(a_limit_ends_the_stream_after_exactly_that_record)
{
	struct reading r;

	for (uint64_t limit = 1; limit < 200; limit += limit < 5 ? 1 : 62) {
		f->n = 0;
		f->limit = limit;
		int fd = open_tap(f);
		start_chunk(f, 0);
		/* Takes longer while the budget is used up. */
		uint64_t end_ns = bc_now_ns() + RIG_WAIT_NS;
		while (bc_taps_count(f->taps) != 0) {
			assert_true(bc_now_ns() < end_ns);
			uint32_t from = f->chunk->info.records;
			if (from > BC_CHUNK_RECORDS - 100) {
				start_chunk(f, 0);
				from = 0;
			}
			uint64_t tick = f->tick;
			add_records(f, 100);
			offer(f, from, tick);
			usleep(1000);
			rig_run(&f->rig, 1);
		}
		read_lines(f, fd, &r, &f->filter);
		assert_int_equal(r.records, limit);
		close(fd);
	}
}

TEST_F(a_ninth_tap_is_refused)
{
	int fds[BC_TAPS_MAX];

	for (unsigned i = 0; i < BC_TAPS_MAX; i++)
		fds[i] = open_tap(f);
	char *answer = rig_request(&f->rig, "GET /v1/records HTTP/1.0\r\n\r\n");
	assert_int_equal(rig_status(answer), 503);
	free(answer);
	assert_int_equal(f->rc, -EBUSY);
	/* A client that disconnects makes room, even on a silent bus. */
	close(fds[3]);
	RIG_UNTIL(&f->rig, bc_taps_count(f->taps) == BC_TAPS_MAX - 1);
	fds[3] = open_tap(f);
	for (unsigned i = 0; i < BC_TAPS_MAX; i++)
		close(fds[i]);
}

TEST_F(a_full_queue_has_all_that_it_took)
{
	const uint64_t offered = 7000; /* more than slots */
	struct reading r;

	for (size_t bytes = 0; bytes < 160; bytes += 50) {
		char text[160] = "";
		int fd = open_tap(f);
		for (uint64_t i = 0; i < offered; i++) {
			memset(text, 'a' + (int)(i % 26), bytes);
			end_with_event(f, mark, text);
		}
		read_lines(f, fd, &r, &f->filter);
		assert_true(r.marks > 1000 && r.marks < offered);
		assert_int_equal(r.marks + r.skipped_events, offered);
		assert_int_equal(strlen(r.last_mark), bytes < 63 ? bytes : 63);
		for (const char *at = r.last_mark; *at != '\0'; at++)
			assert_int_equal(*at, 'a' + (int)((r.marks - 1) % 26));
		close(fd);
		RIG_UNTIL(&f->rig, bc_taps_count(f->taps) == 0);
	}
}
