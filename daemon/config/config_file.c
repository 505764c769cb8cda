#include "daemon/config/config_file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config/config_keys.h"

/* A file being read. */
struct loading {
	struct bc_config *config;
	struct bc_config_errors *errors;
	const char *path;
	FILE *file;
	int line;        /* read last */
	bool is_unknown; /* the section, which has been reported; its keys are not */
};

static void report(struct loading *loading, const char *text)
{
	bc_config_error(loading->errors, "%s:%d: %s", loading->path, loading->line, text);
}

/* Returns the first of these characters before a comment, as inih does; NULL: there is none. */
static const char *find_before_comment(const char *text, const char *characters)
{
	bool is_after_blank = false;

	for (; *text != '\0' && !(is_after_blank && *text == ';'); text++) {
		if (strchr(characters, *text) != NULL)
			return text;
		is_after_blank = isspace((unsigned char)*text) != 0;
	}
	return NULL;
}

/* The start of a section. */
static void check_section(struct loading *loading, const char *name, size_t bytes)
{
	char section[64];
	char err[512];

	snprintf(section, sizeof(section), "%.*s", (int)bytes, name);
	loading->is_unknown = !bc_config_check_section(section, err, sizeof(err));
	if (loading->is_unknown)
		report(loading, err);
}

/* Reports a line that inih would reject, because it returns only the first of those, or misread:
 * it appends an indented line to the value before it. */
static bool check_line(struct loading *loading, const char *line)
{
	const char *text = line + strspn(line, " \t\r\n");
	const char *end;

	if (*text == '\0' || ((*text == ';' || *text == '#') && text == line))
		return true;
	if (text != line) {
		report(loading,
			"indented line; keys and sections start at the beginning of a line");
		return false;
	}
	end = *text == '[' ? find_before_comment(text + 1, "]") : find_before_comment(text, "=:");
	if (end == NULL) {
		report(loading, "expected [section], key = value, or a comment");
		loading->is_unknown |= *text == '[';
	} else if (*text == '[') {
		check_section(loading, text + 1, (size_t)(end - text - 1));
	}
	return end != NULL;
}

static void skip_rest_of_line(FILE *file)
{
	int byte;

	do
		byte = getc(file);
	while (byte != EOF && byte != '\n');
}

/* Reads a line for inih; an empty one instead of one with an error. inih would split a line that is
 * too long for its buffer. */
static char *read_line(char *text, int size, void *context)
{
	struct loading *loading = context;
	bool has_bom;
	char err[64];

	if (fgets(text, size, loading->file) == NULL)
		return NULL;
	has_bom = loading->line++ == 0 && strncmp(text, "\xef\xbb\xbf", 3) == 0;
	if (strlen(text) + 1 == (size_t)size && text[size - 2] != '\n') {
		snprintf(err, sizeof(err), "line too long; the limit is %d characters", size - 2);
		report(loading, err);
		skip_rest_of_line(loading->file);
		text[0] = '\0';
	} else if (!check_line(loading, text + (has_bom ? 3 : 0))) {
		text[0] = '\0';
	}
	return text;
}

static int on_key(void *context, const char *section, const char *key, const char *value)
{
	struct loading *loading = context;
	char err[512];

	if (!loading->is_unknown &&
		!bc_config_set(loading->config, section, key, value, err, sizeof(err)))
		report(loading, err);
	return 1;
}

/* A reload opens the file again, on the loop, which must not wait for a writer. Returns NULL with
 * errno; ESPIPE for a pipe. */
static FILE *open_file(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return NULL;
	bool is_pipe = fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
	FILE *file = is_pipe ? NULL : fdopen(fd, "r");
	if (file == NULL) {
		close(fd);
		errno = is_pipe ? ESPIPE : ENOMEM;
	}
	return file;
}

static void load_file(
	struct bc_config *c, const char *path, bool is_optional, struct bc_config_errors *errors)
{
	struct loading loading = {
		.config = c, .errors = errors, .path = path, .file = open_file(path)};
	unsigned before = errors->count;

	if (loading.file == NULL && errno == ESPIPE) {
		bc_config_error(
			errors, "%s: is a pipe, which can't be read again; use a file", path);
		return;
	}
	if (loading.file == NULL) {
		if (!is_optional || errno != ENOENT)
			bc_config_error(errors, "%s: %s", path, strerror(errno));
		return;
	}
	int line = ini_parse_stream(read_line, &loading, on_key, &loading);
	if (ferror(loading.file) != 0)
		bc_config_error(errors, "%s: can't read it; is it a file?", path);
	else if (line != 0 && errors->count == before)
		bc_config_error(
			errors, "%s:%d: expected [section], key = value, or a comment", path, line);
	fclose(loading.file);
}

static int is_conf(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return n > 5 && entry->d_name[0] != '.' && strcmp(entry->d_name + n - 5, ".conf") == 0;
}

void bc_config_load(
	struct bc_config *c, const char *path, bool is_optional, struct bc_config_errors *errors)
{
	char dir[4096];
	char file[4096 + 256];
	const char *slash = strrchr(path, '/');
	struct dirent **entries;

	load_file(c, path, is_optional, errors);
	snprintf(dir, sizeof(dir), "%.*sconf.d", slash != NULL ? (int)(slash + 1 - path) : 0, path);
	int count = scandir(dir, &entries, is_conf, alphasort);
	if (count < 0 && errno != ENOENT && errno != ENOTDIR)
		bc_config_error(errors, "%s: %s", dir, strerror(errno));
	for (int i = 0; i < count; i++) {
		snprintf(file, sizeof(file), "%s/%s", dir, entries[i]->d_name);
		load_file(c, file, false, errors);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}
