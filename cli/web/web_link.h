/* The link to the page of `buscap web`: the token that is kept between runs, and the browser that
 * opens it. Their files are in the user's directory for state (formats/base/user_paths.h). */
#ifndef BC_CLI_WEB_WEB_LINK_H
#define BC_CLI_WEB_WEB_LINK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/term/console.h"
#include "cli/web/web_server.h"
#include "formats/base/must_check.h"

/* Replaces a new token with the one in the user's file. If the file is missing, creates it with the
 * new token. Returns false, with a message and the token unchanged, if the file can't be created or
 * read, or if other users may know its token. */
bool bc_web_token_keep(char token[BC_WEB_TOKEN_TEXT], char *err, size_t errlen) BC_MUST_CHECK;

struct bc_web_browser {
	char path[PATH_MAX]; /* of a page that redirects to the link; empty: none */
};

/* Opens the link with xdg-open, and prints an error if this fails. Starts a thread. */
void bc_web_browser_open(
	struct bc_web_browser *browser, const struct bc_console *console, const char *link);

/* Deletes the file. A zeroed browser is allowed. */
void bc_web_browser_close(struct bc_web_browser *browser);

#endif
