#include "daemon/config/config_file.h"

#include <dirent.h>
#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/config_keys.h"

/* A file being read, and what is wrong with it first. */
struct loading {
	struct bc_config *config;
	FILE *file;
	int line;     /* read last */
	int why_line; /* 0: nothing is wrong yet */
	char err[512];
};

static void complain_of_line(struct loading *loading, const char *text)
{
	if (loading->why_line != 0)
		return;
	loading->why_line = loading->line;
	snprintf(loading->err, sizeof(loading->err), "%s", text);
}

/* inih would take a line that is too long for its buffer for two. */
static char *read_line(char *text, int room, void *context)
{
	struct loading *loading = context;
	char err[64];

	if (fgets(text, room, loading->file) == NULL)
		return NULL;
	loading->line++;
	/* inih takes an indented line for more of the one before; a key that vanishes so is worse.
	 */
	if ((text[0] == ' ' || text[0] == '\t') && text[strspn(text, " \t\r\n")] != '\0') {
		complain_of_line(loading, "a line doesn't begin with a space");
		return NULL;
	}
	if (strlen(text) + 1 < (size_t)room || text[room - 2] == '\n')
		return text;
	snprintf(err, sizeof(err), "a line has fewer than %d characters", room - 1);
	complain_of_line(loading, err);
	return NULL;
}

static int on_key(void *context, const char *section, const char *key, const char *value)
{
	struct loading *loading = context;
	char err[512];

	if (bc_config_set(loading->config, section, key, value, err, sizeof(err)))
		return 1;
	complain_of_line(loading, err);
	return 0;
}

static bool load_file(
	struct bc_config *c, const char *path, bool is_optional, char *err, size_t errlen)
{
	struct loading loading = {.config = c, .file = fopen(path, "re")};

	if (loading.file == NULL) {
		if (is_optional && errno == ENOENT)
			return true;
		snprintf(err, errlen, "%s: %s", path, strerror(errno));
		return false;
	}
	int line = ini_parse_stream(read_line, &loading, on_key, &loading);
	bool is_read = ferror(loading.file) == 0;
	fclose(loading.file);
	if (!is_read)
		snprintf(err, errlen, "%s: can't be read; is it a file?", path);
	else if (line != 0 && (loading.why_line == 0 || line < loading.why_line))
		snprintf(err, errlen, "%s:%d: not a [section], a key = value or a comment", path,
			line);
	else if (loading.why_line != 0)
		snprintf(err, errlen, "%s:%d: %s", path, loading.why_line, loading.err);
	else
		return true;
	return false;
}

static int is_conf(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return n > 5 && entry->d_name[0] != '.' && strcmp(entry->d_name + n - 5, ".conf") == 0;
}

bool bc_config_load(
	struct bc_config *c, const char *path, bool is_optional, char *err, size_t errlen)
{
	char dir[4096];
	char file[4096 + 256];
	const char *slash = strrchr(path, '/');
	struct dirent **entries;
	bool is_good = load_file(c, path, is_optional, err, errlen);

	if (!is_good)
		return false;
	snprintf(dir, sizeof(dir), "%.*sconf.d", slash != NULL ? (int)(slash + 1 - path) : 0, path);
	int count = scandir(dir, &entries, is_conf, alphasort);
	if (count < 0 && errno != ENOENT && errno != ENOTDIR) {
		snprintf(err, errlen, "%s: %s", dir, strerror(errno));
		return false;
	}
	for (int i = 0; i < count; i++) {
		snprintf(file, sizeof(file), "%s/%s", dir, entries[i]->d_name);
		is_good = is_good && load_file(c, file, false, err, errlen);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	return is_good;
}
