/* Searches end in time, with their results or the reason why not. */
#include "daemon/http/request.h"
#include "daemon/search/searcher.h"
#include "tests/support/server_rig.h"
#include "tests/support/small_segment.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

TEST_THREADS;

#define HOUR_NS UINT64_C(3600000000000)

struct fixture {
	struct temp_dir dir;
	struct server_rig rig;
	struct bc_searcher *searcher;
	struct small_segment segment;
	bool wants_records; /* else their number */
	int rc;             /* of the last request */
};

/* Lets the socket hold little of a response, on every connection of the server. */
static void shrink_buffers(const struct server_rig *rig)
{
	for (int fd = 0; fd < 256; fd++) {
		struct sockaddr_un address;
		socklen_t length = sizeof(address);
		if (getsockname(fd, (struct sockaddr *)&address, &length) == 0 &&
			length > sizeof(address.sun_family) &&
			memcmp(&address, &rig->address, length) == 0)
			assert_int_equal(
				setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){1}, sizeof(int)), 0);
	}
}

/* The path is the id of the recording; "/" searches all. */
static void on_request(struct server_rig *rig, struct bc_request *request)
{
	struct fixture *f = rig->context;
	struct bc_searcher_request search = {
		.options = {.is_count = !f->wants_records, .first = UINT32_MAX}};

	shrink_buffers(rig);
	bc_filter_init(&search.options.filter);
	snprintf(search.recording, sizeof(search.recording), "%s", bc_request_path(request) + 1);
	f->rc = bc_searcher_add(f->searcher, request, &search);
	if (f->rc != 0)
		bc_request_respond(request, 503, "text/plain", strdup("no\n"), NULL);
}

/* A search may read this many bytes per second (0: no limit) and take this long. */
static void set_up(struct fixture *f, uint64_t bytes_per_s, uint64_t limit_ns)
{
	memset(f, 0, sizeof(*f));
	temp_dir_make(&f->dir);
	small_make(&f->segment, f->dir.fd, 0, 0);
	rig_open(&f->rig, NULL, on_request);
	f->rig.context = f;
	assert_int_equal(
		bc_searcher_open(&f->searcher, &f->rig.loop, f->dir.path, bytes_per_s, limit_ns, 1),
		0);
}

static void tear_down(struct fixture *f)
{
	rig_close_server(&f->rig);
	bc_searcher_close(f->searcher);
	uv_run(&f->rig.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&f->rig.loop), 0);
	close(f->rig.listen_fd);
	free(f->segment.bytes);
	temp_dir_remove(&f->dir);
}

static char *get(struct fixture *f, const char *path)
{
	char request[256];

	snprintf(request, sizeof(request),
		"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
	return rig_request(&f->rig, request);
}

/* Sends a request and returns its connection when the server has it. */
static int start(struct fixture *f, const char *path)
{
	int fd = rig_connect(&f->rig);
	unsigned before = f->rig.requests;

	rig_send_text(&f->rig, fd, "GET ");
	rig_send_text(&f->rig, fd, path);
	rig_send_text(&f->rig, fd, " HTTP/1.1\r\nHost: x\r\n\r\n");
	RIG_UNTIL(&f->rig, f->rig.requests > before);
	return fd;
}

TEST(an_unknown_recording_is_a_404)
{
	struct fixture f;

	set_up(&f, 0, HOUR_NS);
	for (int i = 0; i < 20; i++) { /* more than there are places */
		char *response = get(&f, "/20261120T091500Z-3f9a2d");
		assert_int_equal(rig_status(response), 404);
		assert_non_null(strstr(rig_body(response), "\"no such recording\""));
		free(response);
	}
	char *response = get(&f, "/" SMALL_RECORDING);
	assert_int_equal(rig_status(response), 200);
	assert_non_null(strstr(rig_body(response), "\"matches\":46,\"segments\":1,"));
	free(response);
	tear_down(&f);
}

TEST(a_search_is_cut_off_at_its_time_limit)
{
	struct fixture f;

	set_up(&f, 1, 20000000); /* one byte per second does not get far */
	char *response = get(&f, "/");
	assert_int_equal(rig_status(response), 200);
	assert_non_null(strstr(rig_body(response), "\"cut_off\":\"time limit\""));
	free(response);
	tear_down(&f);
}

TEST(searches_of_any_state_end_with_the_searcher)
{
	struct fixture f;

	set_up(&f, 1, HOUR_NS);
	int fds[] = {start(&f, "/"), start(&f, "/" SMALL_RECORDING), start(&f, "/unknown"),
		start(&f, "/gone")};
	close(fds[3]);
	tear_down(&f);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

TEST(a_disconnected_client_frees_its_place_while_it_waits)
{
	struct fixture f;
	int fds[BC_SEARCHES_MAX];

	set_up(&f, 1, HOUR_NS);
	fds[0] = start(&f, "/");
	for (unsigned i = 1; i < BC_SEARCHES_MAX; i++) {
		fds[i] = start(&f, "/unknown");
		assert_int_equal(f.rc, 0);
	}
	char *response = get(&f, "/unknown");
	assert_int_equal(rig_status(response), 503);
	free(response);
	for (unsigned i = 1; i < BC_SEARCHES_MAX; i++)
		close(fds[i]);
	RIG_UNTIL(&f.rig, bc_server_connections(f.rig.server) == 1);
	fds[1] = start(&f, "/unknown");
	assert_int_equal(f.rc, 0);
	tear_down(&f);
	close(fds[0]);
	close(fds[1]);
}

static bool is_accepted(struct fixture *f)
{
	char *response = get(f, "/");
	int status = rig_status(response);

	free(response);
	return status == 200;
}

TEST(clients_that_do_not_read_to_the_end_lose_their_places)
{
	struct fixture f;
	int fds[BC_SEARCHES_MAX];

	set_up(&f, 0, HOUR_NS);
	for (uint32_t segment = 1; segment < 4; segment++) {
		free(f.segment.bytes);
		small_make(&f.segment, f.dir.fd, segment, SMALL_RECORDS * segment);
	}
	f.wants_records = true;
	for (unsigned i = 0; i < BC_SEARCHES_MAX; i++) {
		fds[i] = start(&f, "/");
		assert_int_equal(f.rc, 0);
	}
	f.wants_records = false;
	RIG_UNTIL(&f.rig, is_accepted(&f));
	tear_down(&f);
	for (unsigned i = 0; i < BC_SEARCHES_MAX; i++)
		close(fds[i]);
}
