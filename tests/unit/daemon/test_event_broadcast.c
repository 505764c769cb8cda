#include "tests/support/server_rig.h"

#include "daemon/api/event_broadcast.h"
#include "formats/base/json.h"
#include "tests/support/test.h"

struct fixture {
	struct server_rig rig;
	struct bc_event_broadcast *broadcast;
	int rc; /* the last result of bc_event_broadcast_add() */
};

static void on_request(struct server_rig *rig, struct bc_request *request)
{
	struct fixture *f = rig->context;
	json_t *first = json_pack("{s:{}}", "status");

	f->rc = bc_event_broadcast_add(f->broadcast, request, first);
	if (f->rc != 0)
		bc_request_respond(request, 503, "text/plain", strdup("no\n"), NULL);
}

/* All readers are the owner, or none is. */
static void set_up_for(struct fixture *f, bool is_owner)
{
	struct bc_server_options options = {.is_local = is_owner, .connections_max = 200};

	rig_open(&f->rig, &options, on_request);
	f->rig.context = f;
	f->rc = 0;
	assert_int_equal(bc_event_broadcast_open(&f->broadcast), 0);
	assert_int_equal(bc_event_broadcast_readers(f->broadcast), 0);
}

static void set_up(struct fixture *f)
{
	set_up_for(f, false);
}

static void tear_down(struct fixture *f)
{
	rig_close_server(&f->rig);
	assert_int_equal(bc_event_broadcast_readers(f->broadcast), 0);
	bc_event_broadcast_close(f->broadcast);
	rig_close(&f->rig);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static void publish(struct fixture *f, uint64_t value)
{
	bc_event_broadcast_publish(
		f->broadcast, "test", json_pack("{s:o}", "value", bc_json_u64(value)));
}

static void publish_long(struct fixture *f, uint64_t value, size_t bytes)
{
	char *text = malloc(bytes + 1);

	assert_non_null(text);
	memset(text, 'x', bytes);
	text[bytes] = '\0';
	json_t *object = json_pack("{s:o, s:s}", "value", bc_json_u64(value), "text", text);
	free(text);
	bc_event_broadcast_publish(f->broadcast, "test", object);
}

static int subscribe(struct fixture *f)
{
	unsigned before = bc_event_broadcast_readers(f->broadcast);
	int fd = rig_connect(&f->rig);

	rig_send_text(&f->rig, fd, "GET /v1/events HTTP/1.0\r\n\r\n");
	RIG_UNTIL(&f->rig, bc_event_broadcast_readers(f->broadcast) == before + 1);
	return fd;
}

/* The events that a reader received, checked one by one. */
struct reading {
	uint64_t next_seq; /* 0: no event yet */
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

static void check_line(struct reading *r, const char *line)
{
	json_t *object = json_loads(line, 0, NULL);
	char name[32];
	char time[64];

	if (object == NULL)
		fail_msg("invalid JSON: %.200s", line);
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

/* Checks the response to an HTTP/1.0 request. It must end with a complete line. */
static void check_response(struct reading *r, char *response)
{
	char *at = (char *)(uintptr_t)rig_body(response);

	memset(r, 0, sizeof(*r));
	for (char *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
		*end = '\0';
		check_line(r, at);
	}
	assert_int_equal(*at, 0);
	free(response);
}

/* Reads until no more data arrives. */
static void read_events(struct fixture *f, int fd, struct reading *r)
{
	char *text = malloc(8u << 20);
	size_t used = 0;

	assert_non_null(text);
	for (int quiet = 0; quiet < 50;) {
		ssize_t n = recv(fd, text + used, (8u << 20) - used - 1, 0);
		assert_true(n > 0 || (n < 0 && errno == EAGAIN));
		used += n > 0 ? (size_t)n : 0;
		quiet = n > 0 ? 0 : quiet + 1;
		rig_run(&f->rig, 1);
	}
	text[used] = '\0';
	check_response(r, text);
}

TEST_F(readers_get_the_status_first_and_then_published_events)
{
	struct reading r;
	int fds[3];

	for (int i = 0; i < 3; i++) {
		fds[i] = subscribe(f);
		assert_true(bc_event_broadcast_readers(f->broadcast) != 0);
		for (int k = 0; k < 10; k++) {
			publish(f, (uint64_t)(10 * i + k + 1));
			rig_run(&f->rig, k % 3);
		}
	}
	for (int i = 0; i < 3; i++) {
		read_events(f, fds[i], &r);
		assert_int_equal(r.events, 30 - 10 * i);
		assert_int_equal(r.missed, 0);
		assert_int_equal(r.last_value, 30);
		assert_int_equal(r.next_seq, 31);
		close(fds[i]);
	}
}

TEST_F(a_slow_reader_gets_the_exact_number_of_missed_events)
{
	struct reading slow;
	struct reading quick;
	uint64_t published = 0;

	int fd = subscribe(f);
	/* Fills its socket, then the queue, then more, while other readers come and go. */
	for (int round = 0; round < 4; round++) {
		int other = subscribe(f);
		for (int i = 0; i < 3000; i++) {
			publish_long(f, ++published, 100 + (size_t)i % 700);
			if (i % 16 == 0)
				rig_run(&f->rig, 1);
		}
		close(other);
		RIG_UNTIL(&f->rig, bc_event_broadcast_readers(f->broadcast) == 1);
	}
	read_events(f, fd, &slow);
	assert_int_equal(slow.events + slow.missed, published);
	assert_true(slow.missed > 0);
	assert_int_equal(slow.last_value, published);
	/* Reported once, since it read nothing in between. */
	assert_int_equal(slow.missed_objects, 1);
	close(fd);
	RIG_UNTIL(&f->rig, bc_event_broadcast_readers(f->broadcast) == 0);
	fd = subscribe(f);
	publish(f, ++published);
	read_events(f, fd, &quick);
	assert_int_equal(quick.events, 1);
	assert_int_equal(quick.missed, 0);
	close(fd);
}

TEST_F(events_lost_to_memory_or_length_are_missed_at_their_position)
{
	struct reading r;

	int fd = subscribe(f);
	for (uint64_t i = 1; i <= 100; i++) {
		if (i % 10 == 3)
			bc_event_broadcast_publish(f->broadcast, "test", NULL);
		else if (i % 10 == 4)
			publish_long(f, i, BC_EVENT_BROADCAST_OBJECT_BYTES);
		else
			publish(f, i);
	}
	bc_event_broadcast_publish(f->broadcast, "test", NULL); /* the last one */
	read_events(f, fd, &r);
	assert_int_equal(r.events, 80);
	assert_int_equal(r.missed, 21);
	assert_int_equal(r.missed_objects, 11);
	close(fd);
}

TEST_F(an_object_longer_than_any_read_arrives_whole)
{
	struct reading r;

	int fd = subscribe(f);
	/* While the first is being sent, later ones push it out of the queue. */
	publish_long(f, 1, 250000);
	rig_run(&f->rig, 20);
	for (uint64_t i = 2; i <= 50; i++)
		publish_long(f, i, 250000);
	read_events(f, fd, &r);
	assert_int_equal(r.events + r.missed, 50);
	assert_true(r.missed > 0);
	assert_int_equal(r.last_value, 50);
	close(fd);
}

static void fill_with_readers(bool is_owner)
{
	const unsigned most = is_owner ? BC_EVENT_BROADCAST_READERS : BC_EVENT_BROADCAST_OTHERS;
	struct fixture fixture;
	int fds[BC_EVENT_BROADCAST_READERS];

	set_up_for(&fixture, is_owner);
	for (unsigned i = 0; i < most; i++)
		fds[i] = subscribe(&fixture);
	char *response = rig_request(&fixture.rig, "GET /v1/events HTTP/1.0\r\n\r\n");
	assert_int_equal(rig_status(response), 503);
	free(response);
	assert_int_equal(fixture.rc, -EBUSY);
	close(fds[7]);
	RIG_UNTIL(&fixture.rig,
		(publish(&fixture, 1), bc_event_broadcast_readers(fixture.broadcast) == most - 1));
	fds[7] = subscribe(&fixture);
	assert_int_equal(fixture.rc, 0);
	for (unsigned i = 0; i < most; i++)
		close(fds[i]);
	tear_down(&fixture);
}

TEST(the_65th_reader_and_the_57th_of_others_are_refused)
{
	fill_with_readers(true);
	fill_with_readers(false);
}

TEST_F(any_bytes_in_a_text_become_valid_json)
{
	int fd = subscribe(f);
	for (unsigned first = 1; first < 256; first++) {
		char text[6] = {(char)first, '"', (char)(first * 7 % 255 + 1), '\\', '\n', 0};
		json_t *object = json_pack(
			"{s:o, s:o}", "value", bc_json_u64(first), "text", bc_json_text(text));
		bc_event_broadcast_publish(f->broadcast, "test", object);
	}
	bool is_over;
	char *response = rig_read(&f->rig, fd, 20000, &is_over);
	for (const char *at = response; *at != '\0'; at++)
		assert_true((uint8_t)*at >= ' ' || *at == '\n' || *at == '\r');
	/* Bytes that are not UTF-8 became characters. */
	assert_non_null(strstr(response, "\"text\":\"\xC3\xBF\\\""));
	assert_null(strstr(response, "\xFF"));
	free(response);
	close(fd);
}

TEST_F(closing_with_slow_readers_frees_everything)
{
	int fds[5];

	for (int i = 0; i < 5; i++) {
		fds[i] = subscribe(f);
		for (uint64_t k = 1; k < 500; k++)
			publish_long(f, (uint64_t)i * 1000 + k, 3000);
		rig_run(&f->rig, i);
	}
	for (int i = 0; i < 5; i++)
		close(fds[i]);
}
