#include "tests/support/server_rig.h"

#include "daemon/live/event_broadcast.h"
#include "formats/base/json.h"
#include "tests/support/test.h"

struct board {
	struct server_rig rig;
	struct bc_event_broadcast *bulletin;
	int refused; /* what bc_event_broadcast_add() said last */
};

static void on_request(struct server_rig *rig, struct bc_request *request)
{
	struct board *board = rig->context;
	json_t *first = json_pack("{s:{}}", "status");

	board->refused = bc_event_broadcast_add(board->bulletin, request, first);
	if (board->refused != 0)
		bc_request_respond(request, 503, "text/plain", strdup("no\n"), NULL);
}

/* Its readers are the owner's, or not. */
static void open_board_to(struct board *board, bool is_owner)
{
	struct bc_server_options options = {.is_local = is_owner, .connections_max = 200};

	rig_open(&board->rig, &options, on_request);
	board->rig.context = board;
	board->refused = 0;
	assert_int_equal(bc_event_broadcast_open(&board->bulletin), 0);
	assert_false(bc_event_broadcast_has_readers(board->bulletin));
}

static void open_board(struct board *board)
{
	open_board_to(board, false);
}

static void close_board(struct board *board)
{
	rig_close_server(&board->rig);
	assert_int_equal(bc_event_broadcast_readers(board->bulletin), 0);
	bc_event_broadcast_close(board->bulletin);
	rig_close(&board->rig);
}

static void post(struct board *board, uint64_t value)
{
	bc_event_broadcast_publish(
		board->bulletin, "test", json_pack("{s:o}", "value", bc_json_u64(value)));
}

static void post_long(struct board *board, uint64_t value, size_t bytes)
{
	char *text = malloc(bytes + 1);

	assert_non_null(text);
	memset(text, 'x', bytes);
	text[bytes] = '\0';
	json_t *object = json_pack("{s:o, s:s}", "value", bc_json_u64(value), "text", text);
	free(text);
	bc_event_broadcast_publish(board->bulletin, "test", object);
}

static int subscribe(struct board *board)
{
	unsigned before = bc_event_broadcast_readers(board->bulletin);
	int fd = rig_connect(&board->rig);

	rig_say(&board->rig, fd, "GET /v1/events HTTP/1.0\r\n\r\n");
	RIG_UNTIL(&board->rig, bc_event_broadcast_readers(board->bulletin) == before + 1);
	return fd;
}

/* What a reader was sent: lines of JSON, checked as they come. */
struct reading {
	char *text;
	size_t used;
	uint64_t next_seq; /* 0: none has come */
	uint64_t events;
	uint64_t missed;
	uint64_t missed_objects;
	uint64_t last_value;
};

static uint64_t number(const json_t *object, const char *name)
{
	const json_t *item = json_object_get(object, name);

	assert_true(json_is_number(item));
	return (uint64_t)json_integer_value(item);
}

static void take_line(struct reading *r, const char *line)
{
	json_t *object = json_loads(line, 0, NULL);
	char name[32];
	char time[64];

	if (object == NULL)
		fail_msg("no JSON: %.200s", line);
	assert_int_equal(strncmp(line, "{\"event\":", 9), 0);
	assert_non_null(strstr(line, ",\"seq\":"));
	bc_json_member_text(object, "event", name, sizeof(name));
	bc_json_member_text(object, "time", time, sizeof(time));
	assert_int_equal(strlen(time), 30);
	uint64_t seq = number(object, "seq");
	if (r->next_seq == 0) {
		assert_string_equal(name, "status");
		assert_non_null(json_object_get(object, "status"));
	} else {
		assert_int_equal(seq, r->next_seq);
	}
	r->next_seq = seq + 1;
	if (strcmp(name, "missed") == 0) {
		uint64_t count = number(object, "count");
		assert_true(count > 0);
		r->next_seq = seq + count;
		r->missed += count;
		r->missed_objects++;
	} else if (strcmp(name, "test") == 0) {
		uint64_t value = number(object, "value");
		assert_true(r->events == 0 || value > r->last_value);
		r->last_value = value;
		r->events++;
	}
	json_decref(object);
}

/* Takes the lines of an answer of HTTP/1.0; a last one without its end is left. */
static void take_answer(struct reading *r, char *answer)
{
	char *at = (char *)(uintptr_t)rig_body(answer);

	memset(r, 0, sizeof(*r));
	for (char *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
		*end = '\0';
		take_line(r, at);
	}
	assert_int_equal(*at, 0);
	free(answer);
}

/* Reads until nothing more comes. */
static void read_on(struct board *board, int fd, struct reading *r)
{
	char *text = malloc(8u << 20);
	size_t used = 0;

	assert_non_null(text);
	for (int quiet = 0; quiet < 50;) {
		ssize_t n = recv(fd, text + used, (8u << 20) - used - 1, 0);
		assert_true(n > 0 || (n < 0 && errno == EAGAIN));
		used += n > 0 ? (size_t)n : 0;
		quiet = n > 0 ? 0 : quiet + 1;
		rig_turn(&board->rig, 1);
	}
	text[used] = '\0';
	take_answer(r, text);
}

TEST(readers_get_the_status_first_and_then_what_is_posted)
{
	struct board board;
	struct reading r;
	int fds[3];

	open_board(&board);
	post(&board, 1); /* to nobody */
	for (int i = 0; i < 3; i++) {
		fds[i] = subscribe(&board);
		assert_true(bc_event_broadcast_has_readers(board.bulletin));
		for (int k = 0; k < 10; k++) {
			post(&board, (uint64_t)(10 * i + k + 2));
			rig_turn(&board.rig, k % 3);
		}
	}
	for (int i = 0; i < 3; i++) {
		read_on(&board, fds[i], &r);
		assert_int_equal(r.events, 30 - 10 * i);
		assert_int_equal(r.missed, 0);
		assert_int_equal(r.last_value, 31);
		assert_int_equal(r.next_seq, 32);
		close(fds[i]);
	}
	close_board(&board);
}

TEST(a_reader_too_slow_is_reported_exactly_what_it_missed)
{
	struct board board;
	struct reading slow;
	struct reading quick;
	uint64_t posted = 0;

	open_board(&board);
	int fd = subscribe(&board);
	/* Its socket is full, then the queue, then more. Others come and go meanwhile. */
	for (int round = 0; round < 4; round++) {
		int other = subscribe(&board);
		for (int i = 0; i < 3000; i++) {
			post_long(&board, ++posted, 100 + (size_t)i % 700);
			if (i % 16 == 0)
				rig_turn(&board.rig, 1);
		}
		close(other);
		RIG_UNTIL(&board.rig, bc_event_broadcast_readers(board.bulletin) == 1);
	}
	read_on(&board, fd, &slow);
	assert_int_equal(slow.events + slow.missed, posted);
	assert_true(slow.missed > 0);
	assert_int_equal(slow.last_value, posted);
	/* One gap, where it was: it read nothing meanwhile. */
	assert_int_equal(slow.missed_objects, 1);
	close(fd);
	RIG_UNTIL(&board.rig, !bc_event_broadcast_has_readers(board.bulletin));
	fd = subscribe(&board);
	post(&board, ++posted);
	read_on(&board, fd, &quick);
	assert_int_equal(quick.events, 1);
	assert_int_equal(quick.missed, 0);
	close(fd);
	close_board(&board);
}

TEST(what_memory_ran_out_for_is_missed_at_its_place)
{
	struct board board;
	struct reading r;

	open_board(&board);
	int fd = subscribe(&board);
	for (uint64_t i = 1; i <= 100; i++) {
		if (i % 10 == 3)
			bc_event_broadcast_publish(board.bulletin, "test", NULL);
		else if (i % 10 == 4)
			post_long(&board, i, BC_EVENT_BROADCAST_OBJECT_BYTES);
		else
			post(&board, i);
	}
	bc_event_broadcast_publish(board.bulletin, "test", NULL); /* nothing behind it */
	read_on(&board, fd, &r);
	assert_int_equal(r.events, 80);
	assert_int_equal(r.missed, 21);
	assert_int_equal(r.missed_objects, 11);
	close(fd);
	close_board(&board);
}

TEST(an_object_longer_than_any_piece_arrives_whole)
{
	struct board board;
	struct reading r;

	open_board(&board);
	int fd = subscribe(&board);
	/* While the first is being sent the queue goes on over it. */
	post_long(&board, 1, 250000);
	rig_turn(&board.rig, 20);
	for (uint64_t i = 2; i <= 50; i++)
		post_long(&board, i, 250000);
	read_on(&board, fd, &r);
	assert_int_equal(r.events + r.missed, 50);
	assert_true(r.missed > 0);
	assert_int_equal(r.last_value, 50);
	close(fd);
	close_board(&board);
}

static void read_by_as_many_as_may(bool is_owner)
{
	const unsigned most = is_owner ? BC_EVENT_BROADCAST_READERS : BC_EVENT_BROADCAST_OTHERS;
	struct board board;
	int fds[BC_EVENT_BROADCAST_READERS];

	open_board_to(&board, is_owner);
	for (unsigned i = 0; i < most; i++)
		fds[i] = subscribe(&board);
	char *answer = rig_ask(&board.rig, "GET /v1/events HTTP/1.0\r\n\r\n");
	assert_int_equal(rig_status(answer), 503);
	free(answer);
	assert_int_equal(board.refused, -EBUSY);
	close(fds[7]);
	RIG_UNTIL(&board.rig,
		(post(&board, 1), bc_event_broadcast_readers(board.bulletin) == most - 1));
	fds[7] = subscribe(&board);
	assert_int_equal(board.refused, 0);
	for (unsigned i = 0; i < most; i++)
		close(fds[i]);
	close_board(&board);
}

TEST(there_are_64_readers_and_no_more_and_56_of_others)
{
	read_by_as_many_as_may(true);
	read_by_as_many_as_may(false);
}

TEST(texts_of_any_bytes_stay_json)
{
	struct board board;

	open_board(&board);
	int fd = subscribe(&board);
	for (unsigned first = 1; first < 256; first++) {
		char text[6] = {(char)first, '"', (char)(first * 7 % 255 + 1), '\\', '\n', 0};
		json_t *object = json_pack(
			"{s:o, s:o}", "value", bc_json_u64(first), "text", bc_json_text(text));
		bc_event_broadcast_publish(board.bulletin, "test", object);
	}
	bool is_over;
	char *answer = rig_read(&board.rig, fd, 20000, &is_over);
	for (const char *at = answer; *at != '\0'; at++)
		assert_true((uint8_t)*at >= ' ' || *at == '\n' || *at == '\r');
	/* Bytes that are no UTF-8 have become characters. */
	assert_non_null(strstr(answer, "\"text\":\"\xC3\xBF\\\""));
	assert_null(strstr(answer, "\xFF"));
	free(answer);
	close(fd);
	close_board(&board);
}

TEST(closing_with_slow_readers_leaves_nothing)
{
	struct board board;
	int fds[5];

	open_board(&board);
	for (int i = 0; i < 5; i++) {
		fds[i] = subscribe(&board);
		for (uint64_t k = 1; k < 500; k++)
			post_long(&board, (uint64_t)i * 1000 + k, 3000);
		rig_turn(&board.rig, i);
	}
	close_board(&board);
	for (int i = 0; i < 5; i++)
		close(fds[i]);
}
