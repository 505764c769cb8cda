#include "formats/base/user_paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns a variable's value, an absolute path, or NULL: the XDG specification ignores others. */
static const char *path_of(const char *variable)
{
	const char *path = getenv(variable);

	return path != NULL && path[0] == '/' ? path : NULL;
}

/* Makes a path below `base`, which may be NULL. */
static bool make_path(char *path, size_t size, const char *base, const char *rest)
{
	int n = base != NULL ? snprintf(path, size, "%s/%s", base, rest) : -1;
	bool ok = n > 0 && (size_t)n < size;

	if (!ok)
		path[0] = '\0';
	return ok;
}

bool bc_user_is_ordinary(void)
{
	bool is_service = getenv("INVOCATION_ID") != NULL && path_of("XDG_RUNTIME_DIR") == NULL;

	return geteuid() != 0 && !is_service;
}

bool bc_user_socket(char path[BC_SOCKET_PATH_MAX])
{
	const char *base = bc_user_is_ordinary() ? path_of("XDG_RUNTIME_DIR") : NULL;

	return make_path(path, BC_SOCKET_PATH_MAX, base, "buscapd.sock");
}

bool bc_user_dir(char *path, size_t size)
{
	const char *data = path_of("XDG_DATA_HOME");

	if (!bc_user_is_ordinary())
		return make_path(path, size, NULL, "");
	return data != NULL ? make_path(path, size, data, "buscapd")
			    : make_path(path, size, path_of("HOME"), ".local/share/buscapd");
}

bool bc_user_state_dir(char *path, size_t size)
{
	const char *state = path_of("XDG_STATE_HOME");

	return state != NULL ? make_path(path, size, state, "buscap")
			     : make_path(path, size, path_of("HOME"), ".local/state/buscap");
}

void bc_make_parents(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(path, 0700);
		*slash = '/';
	}
}
