#include "daemon/config/config_file.h"

#include <dirent.h>
#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/config_keys.h"

/* A file being read, and its first error. */
struct loading {
	struct bc_config *config;
	FILE *file;
	int line;     /* read last */
	int err_line; /* 0: no error yet */
	char err[512];
};

static void set_error(struct loading *loading, const char *text)
{
	if (loading->err_line != 0)
		return;
	loading->err_line = loading->line;
	snprintf(loading->err, sizeof(loading->err), "%s", text);
}

/* Reads a line for inih, and rejects two kinds that inih would misread without an error: it splits
 * a line that is too long for its buffer, and appends an indented line to the value before it. */
static char *read_line(char *text, int size, void *context)
{
	struct loading *loading = context;
	char err[64];

	if (fgets(text, size, loading->file) == NULL)
		return NULL;
	loading->line++;
	if ((text[0] == ' ' || text[0] == '\t') && text[strspn(text, " \t\r\n")] != '\0') {
		set_error(loading,
			"indented line; keys and sections start at the beginning of a line");
		return NULL;
	}
	if (strlen(text) + 1 < (size_t)size || text[size - 2] == '\n')
		return text;
	snprintf(err, sizeof(err), "line too long; the limit is %d characters", size - 2);
	set_error(loading, err);
	return NULL;
}

static int on_key(void *context, const char *section, const char *key, const char *value)
{
	struct loading *loading = context;
	char err[512];

	if (bc_config_set(loading->config, section, key, value, err, sizeof(err)))
		return 1;
	set_error(loading, err);
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
		snprintf(err, errlen, "%s: can't read it; is it a file?", path);
	else if (line != 0 && (loading.err_line == 0 || line < loading.err_line))
		snprintf(err, errlen, "%s:%d: expected [section], key = value, or a comment", path,
			line);
	else if (loading.err_line != 0)
		snprintf(err, errlen, "%s:%d: %s", path, loading.err_line, loading.err);
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
