/* Reading stops when the client has gone, the server ends, or the time is up. The file in the
 * directory would take hours to read. */
#include <errno.h>
#include <sys/socket.h>

#include "cli/web/web_data.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

struct fixture {
	struct temp_dir dir;
	struct bc_operand operand;
	struct bc_operands operands;
	struct bc_web_data *data;
	struct bc_byte_buffer text;
	int fds[2]; /* the server's side of the connection, the client's */
	atomic_bool is_ending;
	struct bc_web_client client;
};

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	int fd = openat(f->dir.fd, "20261120T091500Z-3f9a2c-00000.byu.lz4",
		O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)1 << 43), 0);
	close(fd);
	f->operand = (struct bc_operand){.path = f->dir.path, .is_dir = true};
	f->operands = (struct bc_operands){.all = &f->operand, .count = 1};
	assert_int_equal(bc_web_data_open(&f->data, &f->operands, NULL), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, f->fds), 0);
	f->text.max = 1 << 20;
	f->client = (struct bc_web_client){
		.fd = f->fds[0], .until_ns = UINT64_MAX, .is_ending = &f->is_ending};
}

static void tear_down(struct fixture *f)
{
	for (unsigned i = 0; i < 2; i++)
		if (f->fds[i] >= 0)
			close(f->fds[i]);
	bc_byte_buffer_free(&f->text);
	bc_web_data_close(f->data);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static int find(struct fixture *f)
{
	static struct bc_search_options options;

	options = (struct bc_search_options){.first = 1};
	bc_filter_init(&options.filter);
	return bc_web_data_find(f->data, &f->client, &options, &f->text);
}

static void check_it_ends(struct fixture *f)
{
	struct bc_overview_options options = bc_overview_options_default();

	assert_int_equal(
		bc_web_data_overview(f->data, &f->client, &options, BC_FIGURE_NONE, 0, &f->text),
		-ECANCELED);
	assert_int_equal(
		bc_web_data_events(f->data, &f->client, 0, INT64_MAX, &f->text), -ECANCELED);
}

TEST_F(it_ends_when_the_client_disconnects)
{
	close(f->fds[1]);
	f->fds[1] = -1;
	check_it_ends(f);
	assert_int_equal(find(f), -ECANCELED);
}

TEST_F(it_ends_with_the_server)
{
	atomic_store(&f->is_ending, true);
	check_it_ends(f);
	assert_int_equal(find(f), -ECANCELED);
}

TEST_F(it_ends_when_it_takes_too_long)
{
	f->client.until_ns = 0;
	check_it_ends(f);
	assert_int_equal(find(f), 0);
	assert_non_null(strstr(f->text.bytes, "\"cut_off\":\"time limit\""));
}
