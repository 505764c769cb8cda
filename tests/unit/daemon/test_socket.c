/* The socket's node: only our own is removed, and one that is gone is made again. */
#include "daemon/main/socket.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "tests/support/log_capture.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

#define DIR_NAME  "run"
#define NODE_NAME DIR_NAME "/s"

struct fixture {
	struct temp_dir dir;
	char run[TEMP_PATH_BYTES];
	char path[TEMP_PATH_BYTES];
	struct log_capture log;
	struct bc_socket socket;
	struct bc_socket other;
};

static int chown_error;

int chown(const char *path, uid_t user, gid_t group)
{
	(void)path;
	(void)user;
	(void)group;
	errno = chown_error;
	return chown_error != 0 ? -1 : 0;
}

static void claim(struct fixture *f, struct bc_socket *s, const char *group)
{
	char err[256];

	assert_int_equal(bc_socket_claim(s, f->path, group, err, sizeof(err)), 0);
}

static void set_up(struct fixture *f)
{
	*f = (struct fixture){.other.fd = -1};
	temp_dir_make(&f->dir);
	temp_path(&f->dir, DIR_NAME, f->run);
	temp_path(&f->dir, NODE_NAME, f->path);
	assert_int_equal(mkdir(f->run, 0700), 0);
	bc_log_set_level(BC_LOG_INFO);
	claim(f, &f->socket, "");
}

static void empty_run(struct fixture *f)
{
	char lock[TEMP_PATH_BYTES + 8];

	unlink(f->path);
	snprintf(lock, sizeof(lock), "%s.lock", f->path);
	unlink(lock);
	assert_int_equal(rmdir(f->run), 0);
}

static void tear_down(struct fixture *f)
{
	bc_socket_release(&f->socket, f->path);
	bc_socket_release(&f->other, f->path);
	empty_run(f);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

/* Returns whether the socket `s` is the one that a client reaches. Accepts the connection. */
static bool is_reached(struct fixture *f, int listening)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(strlen(f->path) < sizeof(address.sun_path));
	memcpy(address.sun_path, f->path, strlen(f->path));
	bool is_connected = connect(client, (const struct sockaddr *)&address, sizeof(address)) ==
			    0;
	int accepted = is_connected ? accept(listening, NULL, NULL) : -1;
	if (accepted >= 0)
		close(accepted);
	close(client);
	return accepted >= 0;
}

/* Checks as the daemon does each second. Returns the log. */
static const char *check(struct fixture *f)
{
	log_capture_start(&f->log);
	int fd = bc_socket_check(&f->socket, f->path);
	const char *log = log_capture_stop(&f->log);

	if (fd >= 0) {
		assert_int_equal(dup2(fd, f->socket.fd), f->socket.fd);
		close(fd);
	}
	return log;
}

TEST_F(a_node_that_is_gone_is_made_again)
{
	assert_string_equal(check(f), "");
	assert_int_equal(unlink(f->path), 0);
	assert_non_null(strstr(check(f), "made it again"));
	assert_true(is_reached(f, f->socket.fd));
	assert_string_equal(check(f), "");
}

TEST_F(a_directory_that_is_gone_is_waited_for)
{
	empty_run(f);
	assert_non_null(strstr(check(f), "does not exist"));
	assert_string_equal(check(f), "");
	assert_int_equal(mkdir(f->run, 0700), 0);
	assert_non_null(strstr(check(f), "made it again"));
	assert_true(is_reached(f, f->socket.fd));
	/* The lock was made again, too. */
	char err[256];
	assert_int_equal(bc_socket_claim(&f->other, f->path, "", err, sizeof(err)), -EBUSY);
}

/* The directory was made again, and another daemon has started there. */
TEST_F(the_node_of_another_daemon_is_kept)
{
	empty_run(f);
	assert_int_equal(mkdir(f->run, 0700), 0);
	claim(f, &f->other, "");
	assert_non_null(strstr(check(f), "listens on this socket"));
	assert_string_equal(check(f), "");
	assert_true(is_reached(f, f->other.fd));
	bc_socket_release(&f->other, f->path);
	assert_non_null(strstr(check(f), "made it again"));

	empty_run(f);
	assert_int_equal(mkdir(f->run, 0700), 0);
	claim(f, &f->other, "");
	bc_socket_release(&f->socket, f->path);
	assert_true(is_reached(f, f->other.fd));
}

/* The file system may give a new file the inode number of one that was just deleted. */
TEST_F(a_file_at_the_place_of_the_node_is_kept)
{
	for (int i = 0; i < 20; i++) {
		assert_int_equal(unlink(f->path), 0);
		temp_write(&f->dir, NODE_NAME, "mine", 4);
		check(f);
		assert_true(temp_exists(&f->dir, NODE_NAME));
		bc_socket_release(&f->socket, f->path);
		assert_true(temp_exists(&f->dir, NODE_NAME));
		assert_int_equal(unlink(f->path), 0);
		claim(f, &f->socket, "");
	}
}

TEST_F(a_group_that_cannot_be_set_is_a_warning)
{
	static const int errors[] = {EPERM, EINVAL, EOPNOTSUPP, EROFS, ENOSYS, EIO};
	const struct group *group = getgrgid(0);

	assert_non_null(group);
	for (unsigned i = 0; i < 6; i++) {
		bc_socket_release(&f->socket, f->path);
		chown_error = errors[i];
		log_capture_start(&f->log);
		claim(f, &f->socket, group->gr_name);
		assert_non_null(strstr(log_capture_stop(&f->log), "can't let the group "));
		assert_true(is_reached(f, f->socket.fd));
	}
	chown_error = 0;
}
