/* The token that buscap web keeps. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/web/web_link.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

TEST_THREADS;

#define ONE   "0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210"

struct fixture {
	struct temp_dir dir;
	char token[BC_WEB_TOKEN_TEXT];
	char err[PATH_MAX + 600];
};

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	setenv("XDG_STATE_HOME", f->dir.path, 1);
	strcpy(f->token, ONE);
}

/* Fails if another file is left. */
static void tear_down(struct fixture *f)
{
	unlinkat(f->dir.fd, "buscap/web-token", 0);
	unlinkat(f->dir.fd, "buscap", AT_REMOVEDIR);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static bool keep(struct fixture *f)
{
	return bc_web_token_keep(f->token, f->err, sizeof(f->err));
}

static mode_t mode_of(const struct fixture *f, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(f->dir.fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode & 07777;
}

TEST_F(the_first_token_is_kept_for_the_user_only)
{
	assert_true(keep(f));
	assert_string_equal(f->token, ONE);
	assert_int_equal(mode_of(f, "buscap"), 0700);
	assert_int_equal(mode_of(f, "buscap/web-token"), 0600);
	strcpy(f->token, OTHER);
	assert_true(keep(f));
	assert_string_equal(f->token, ONE);
	assert_int_equal(unlinkat(f->dir.fd, "buscap/web-token", 0), 0);
	strcpy(f->token, OTHER);
	assert_true(keep(f));
	assert_string_equal(f->token, OTHER);
}

static const struct {
	const char *text; /* NULL: a directory */
	mode_t mode;
	bool is_foreign;
	const char *fault;
} bad_files[] = {
	{OTHER "\n", 0604, false, "other users can read or change it; delete it"},
	{OTHER "\n", 0620, false, "other users can read or change it; delete it"},
	{OTHER "\n", 0600, true, "belongs to another user; delete it"},
	{"", 0600, false, "not a token; delete it"},
	{OTHER, 0600, false, "not a token; delete it"},
	{"0123456789ABCDEF0123456789abcdef\n", 0600, false, "not a token; delete it"},
	{OTHER "0\n", 0600, false, "not a token; delete it"},
	{OTHER "\n\n", 0600, false, "not a token; delete it"},
	{NULL, 0700, false, "not a regular file; delete it"},
};

TEST_CASES(a_file_that_others_may_know_or_that_has_no_token_is_not_used, bad_files)
{
	struct fixture f = {0};
	char fault[200];

	if (c->is_foreign && geteuid() != 0)
		return;
	set_up(&f);
	assert_int_equal(mkdirat(f.dir.fd, "buscap", 0700), 0);
	if (c->text == NULL)
		assert_int_equal(mkdirat(f.dir.fd, "buscap/web-token", 0700), 0);
	else
		temp_write(&f.dir, "buscap/web-token", c->text, strlen(c->text));
	assert_int_equal(fchmodat(f.dir.fd, "buscap/web-token", c->mode, 0), 0);
	if (c->is_foreign)
		assert_int_equal(fchownat(f.dir.fd, "buscap/web-token", 65534, 65534, 0), 0);
	assert_false(keep(&f));
	assert_string_equal(f.token, ONE);
	snprintf(fault, sizeof(fault), "%s/buscap/web-token: %s", f.dir.path, c->fault);
	assert_string_equal(f.err, fault);
	unlinkat(f.dir.fd, "buscap/web-token", c->text == NULL ? AT_REMOVEDIR : 0);
	tear_down(&f);
}

TEST_F(a_link_is_not_followed)
{
	temp_write(&f->dir, "secret", OTHER "\n", strlen(OTHER "\n"));
	assert_int_equal(mkdirat(f->dir.fd, "buscap", 0700), 0);
	assert_int_equal(symlinkat("../secret", f->dir.fd, "buscap/web-token"), 0);
	assert_false(keep(f));
	assert_string_equal(f->token, ONE);
}

TEST_F(without_a_place_for_it_the_token_stays_new)
{
	setenv("XDG_STATE_HOME", "/dev/null", 1);
	assert_false(keep(f));
	assert_non_null(strstr(f->err, "Not a directory"));
	unsetenv("XDG_STATE_HOME");
	unsetenv("HOME");
	assert_false(keep(f));
	assert_string_equal(f->err, "$HOME is not set");
	assert_string_equal(f->token, ONE);
}

static void *keep_own(void *context)
{
	char err[200];

	return bc_web_token_keep(context, err, sizeof(err)) ? context : NULL;
}

TEST_F(servers_that_start_at_the_same_time_agree)
{
	char tokens[8][BC_WEB_TOKEN_TEXT];
	pthread_t threads[8];
	void *ok;

	for (unsigned i = 0; i < 8; i++) {
		snprintf(tokens[i], sizeof(tokens[i]), "%032x", i);
		assert_int_equal(pthread_create(&threads[i], NULL, keep_own, tokens[i]), 0);
	}
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(pthread_join(threads[i], &ok), 0);
		assert_non_null(ok);
	}
	for (unsigned i = 1; i < 8; i++)
		assert_string_equal(tokens[i], tokens[0]);
}
