/* A token is kept in a file of the user, mode 0600. Invariant: a token is used again only if no
 * other user could read its file. A new file gets its name when it is complete, so that two servers
 * that start at the same time agree on one token.
 *
 * The arguments of a program are visible to other users, so xdg-open gets the name of a page, also
 * 0600, that redirects to the link. */
#include "cli/web/web_link.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/base/atomic_file.h"
#include "formats/base/host.h"
#include "formats/base/text.h"
#include "formats/base/user_paths.h"

#define TOKEN_CHARS (BC_WEB_TOKEN_TEXT - 1)

/* Writes the path of a file in the directory for state, which is created. */
static bool make_path(char path[PATH_MAX], const char *name, char *err, size_t errlen)
{
	char dir[PATH_MAX];

	if (!bc_user_state_dir(dir, sizeof(dir)) ||
		snprintf(path, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX)
		return bc_fail(err, errlen, "$HOME is not set");
	bc_make_parents(path);
	return true;
}

/* Creates a file of this user only from a template for mkstemps(), which becomes its path. */
static bool create_file(char *path, int suffix_chars, const char *text, char *err, size_t errlen)
{
	char reason[BC_PATH_ERROR_MAX];
	size_t bytes = strlen(text);
	int fd = mkstemps(path, suffix_chars);
	bool ok = fd >= 0 && write(fd, text, bytes) == (ssize_t)bytes && fsync(fd) == 0;

	if (!ok) {
		bc_fail(err, errlen, "%s: can't write: %s", path,
			bc_path_error(reason, path, errno));
		if (fd >= 0)
			unlink(path);
	}
	if (fd >= 0)
		close(fd);
	return ok;
}

/* Returns what is wrong with the file of a token, or NULL. */
static const char *check_token(int fd, char text[BC_WEB_TOKEN_TEXT + 1])
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "not a regular file";
	if (st.st_uid != geteuid())
		return "belongs to another user";
	if ((st.st_mode & 077) != 0)
		return "other users can read or change it";
	ssize_t n = read(fd, text, BC_WEB_TOKEN_TEXT + 1);
	if (n != BC_WEB_TOKEN_TEXT || text[TOKEN_CHARS] != '\n')
		return "not a token";
	text[TOKEN_CHARS] = '\0';
	return strspn(text, "0123456789abcdef") == TOKEN_CHARS ? NULL : "not a token";
}

static bool read_token(
	char token[BC_WEB_TOKEN_TEXT], const char *path, bool *is_missing, char *err, size_t errlen)
{
	char text[BC_WEB_TOKEN_TEXT + 1];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	*is_missing = fd < 0 && errno == ENOENT;
	if (fd < 0)
		return bc_fail(err, errlen, "%s: can't open: %s", path, strerror(errno));
	const char *fault = check_token(fd, text);
	close(fd);
	if (fault != NULL)
		return bc_fail(err, errlen, "%s: %s; delete it", path, fault);
	memcpy(token, text, BC_WEB_TOKEN_TEXT);
	return true;
}

bool bc_web_token_keep(char token[BC_WEB_TOKEN_TEXT], char *err, size_t errlen)
{
	char path[PATH_MAX];
	char new_path[PATH_MAX];
	char line[BC_WEB_TOKEN_TEXT + 1];
	bool is_missing;

	if (!make_path(path, "web-token", err, errlen) ||
		!make_path(new_path, "web-token-XXXXXX", err, errlen))
		return false;
	if (read_token(token, path, &is_missing, err, errlen))
		return true;
	if (!is_missing)
		return false;
	snprintf(line, sizeof(line), "%s\n", token);
	if (!create_file(new_path, 0, line, err, errlen))
		return false;
	int rc = bc_rename_new(AT_FDCWD, new_path, path);
	if (rc != 0)
		unlink(new_path);
	if (rc != 0 && rc != -EEXIST)
		return bc_fail(err, errlen, "%s: can't create: %s", path, strerror(-rc));
	return read_token(token, path, &is_missing, err, errlen);
}

/* ---- the browser */

struct opener {
	struct bc_console console;
	pid_t pid;
};

/* Some commands run until the browser ends. */
static void *wait_for_opener(void *context)
{
	struct opener *opener = context;
	int status;

	if (waitpid(opener->pid, &status, 0) > 0 && status != 0)
		bc_print_error(
			&opener->console, NULL, "--open: xdg-open failed; open the link yourself");
	free(opener);
	return NULL;
}

static void watch_opener(const struct bc_console *console, pid_t pid)
{
	struct opener *opener = malloc(sizeof(*opener));
	pthread_t thread;

	if (opener == NULL)
		return;
	*opener = (struct opener){.console = *console, .pid = pid};
	if (pthread_create(&thread, NULL, wait_for_opener, opener) == 0)
		pthread_detach(thread);
	else
		free(opener);
}

void bc_web_browser_open(
	struct bc_web_browser *browser, const struct bc_console *console, const char *link)
{
	static const char suffix[] = ".html";
	char html[512];
	char err[PATH_MAX + 600];
	pid_t pid;

	snprintf(html, sizeof(html),
		"<!DOCTYPE html>\n<title>buscap web</title>\n"
		"<meta http-equiv=\"refresh\" content=\"0; url=%s\">\n"
		"<a href=\"%s\">buscap web</a>\n",
		link, link);
	if (!make_path(browser->path, "web-XXXXXX.html", err, sizeof(err)) ||
		!create_file(browser->path, sizeof(suffix) - 1, html, err, sizeof(err))) {
		browser->path[0] = '\0';
		bc_print_error(console, NULL, "--open: %s; open the link yourself", err);
		return;
	}
	char *argv[] = {(char[]){"xdg-open"}, browser->path, NULL};
	int error = bc_spawn(&pid, argv, -1, -1);
	if (error == 0)
		watch_opener(console, pid);
	else
		bc_print_error(console, NULL,
			"--open: can't run xdg-open: %s; install the package xdg-utils, or open "
			"the link yourself",
			strerror(error));
}

void bc_web_browser_close(struct bc_web_browser *browser)
{
	if (browser->path[0] != '\0')
		unlink(browser->path);
}
