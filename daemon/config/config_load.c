/* Makes a configuration from files: reads them, opens files with names, checks that settings agree.
 *
 * inih parses the lines, but reports only the first wrong one and misreads some, so each line is
 * looked at before it gets it (check_line()), and an empty one is passed on instead of a wrong one.
 * All errors are reported, each with its file and line. */
#include "daemon/config/config_load.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config/config_keys.h"
#include "daemon/ingest/pipeline.h"
#include "formats/base/text.h"
#include "formats/segment/segment.h"
#include "formats/trace/name_map.h"

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

/* Returns the first of these characters before a comment, as inih does, or NULL. */
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
		bc_config_error(loading->errors, "%s:%d: [%s]: %s", loading->path, loading->line,
			section, err);
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

/* Reads a line for inih; an empty one instead of one with an error. inih would split a line that is
 * too long for its buffer. */
static char *read_line(char *text, int size, void *context)
{
	struct loading *loading = context;
	int byte = 0;
	bool has_bom;
	char err[64];

	if (fgets(text, size, loading->file) == NULL)
		return NULL;
	has_bom = loading->line++ == 0 && strncmp(text, "\xef\xbb\xbf", 3) == 0;
	if (strlen(text) + 1 == (size_t)size && text[size - 2] != '\n') {
		snprintf(err, sizeof(err), "line too long; the limit is %d characters", size - 2);
		report(loading, err);
		while (byte != EOF && byte != '\n')
			byte = getc(loading->file);
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
		bc_config_error(loading->errors, "%s:%d: %s = %.200s: %s", loading->path,
			loading->line, key, value, bc_config_reason(err, value));
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
			bc_config_error(errors, "%s: can't open: %s", path, strerror(errno));
		return;
	}
	int line = ini_parse_stream(read_line, &loading, on_key, &loading);
	if (ferror(loading.file) != 0)
		bc_config_error(errors, "%s: not a file", path);
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
		bc_config_error(errors, "%s: can't open: %s", dir, strerror(errno));
	for (int i = 0; i < count; i++) {
		snprintf(file, sizeof(file), "%s/%s", dir, entries[i]->d_name);
		load_file(c, file, false, errors);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

/* All transfers of a board together. The kernel allows 16 MiB unless configured otherwise. */
#define TRANSFERS_BYTES_MAX (UINT64_C(256) << 20)

static void check_usb(const struct bc_config *c, struct bc_config_errors *errors)
{
	struct bc_usb_options usb = bc_config_usb(c);

	if (usb.link == BC_USB_FTDI && !usb.has_id)
		bc_config_error(errors,
			"usb.link = ftdi: needs the id of the chip; set usb.id = 0403:6014, "
			"0403:6010, or the one in its EEPROM");
	if ((uint64_t)usb.transfers * usb.transfer_bytes > TRANSFERS_BYTES_MAX)
		bc_config_error(errors,
			"usb.transfers: transfers times transfer_size must not exceed 256 MiB");
	if (usb.back_off_ns > usb.back_off_max_ns)
		bc_config_error(errors, "usb.back_off: must not exceed back_off_max");
	if (usb.reset_on_silence && usb.silence_ns == 0)
		bc_config_error(
			errors, "usb.silence_action = restart: never happens with silence = 0");
}

/* True if the source is live, a board or a simulated bus with a rate: it can't wait. */
static bool is_live(const struct bc_config *c)
{
	return c->source.kind == BC_SOURCE_USB ||
	       (c->source.kind == BC_SOURCE_SIM && c->source.rate != 0);
}

/* The part of the buffer that the workers don't need. */
static uint64_t flight_bytes_max(const struct bc_config *c)
{
	uint64_t least = bc_pipeline_min_bytes(c->workers);

	return c->buffer_bytes > least ? c->buffer_bytes - least : 0;
}

static void check_recording(const struct bc_config *c, struct bc_config_errors *errors)
{
	enum bc_record_mode mode = c->recording.mode;

	if (mode != BC_RECORD_ALWAYS && !is_live(c))
		bc_config_error(errors,
			"recording.record = %s: needs a live source: a board, or the simulated bus "
			"with a rate",
			bc_record_mode_name(mode));
	if (mode != BC_RECORD_FLIGHT)
		return;
	if (c->recording.flight_bytes > flight_bytes_max(c))
		bc_config_error(errors,
			"recording.flight_size: too large; a buffer of %" PRIu64
			" MiB leaves %" PRIu64 " MiB for it",
			c->buffer_bytes >> 20, flight_bytes_max(c) >> 20);
}

/* True if something in the configuration ends a recording. */
static bool can_end(const struct bc_config *c)
{
	for (unsigned i = 0; i < c->triggers_count; i++)
		if (c->triggers[i].action == BC_ACTION_STOP ||
			c->triggers[i].action == BC_ACTION_TOGGLE)
			return true;
	return c->stop.duration_ns != 0 || c->stop.records != 0 || c->stop.file_bytes != 0;
}

static bool check_trigger(
	const struct bc_config *c, const struct bc_trigger *t, struct bc_config_errors *errors)
{
	bool starts = t->action == BC_ACTION_START || t->action == BC_ACTION_TOGGLE ||
		      t->action == BC_ACTION_SNAPSHOT;
	bool needs_flight = t->action == BC_ACTION_SNAPSHOT || t->pre.unit != BC_TIME_OR_SIZE_NONE;
	char err[256];

	if (!bc_trigger_check(t, err, sizeof(err)))
		return bc_config_error(errors, "%s", err);
	if (starts && !is_live(c))
		return bc_config_error(errors,
			"trigger %s: %s needs a board, or the simulated bus with a rate; a replay "
			"is always one recording",
			t->name, bc_trigger_action_name(t->action));
	if (needs_flight && c->recording.mode != BC_RECORD_FLIGHT)
		return bc_config_error(errors, "trigger %s: %s needs record = flight", t->name,
			t->action == BC_ACTION_SNAPSHOT ? "snapshot" : "pre");
	if (t->action == BC_ACTION_START && c->recording.mode == BC_RECORD_ALWAYS && !can_end(c))
		return bc_config_error(errors,
			"trigger %s: start has no effect with record = always, and nothing that "
			"ends a recording; use record = on-demand",
			t->name);
	return true;
}

static void check_source(const struct bc_config *c, struct bc_config_errors *errors)
{
	bool is_complete = errors->count == 0;

	if (c->source.kind == BC_SOURCE_NONE) {
		if (is_complete)
			bc_config_error(errors,
				"no source: use --source usb, file:PATH or sim, or set source in "
				"[source]");
		return;
	}
	if (c->speed != 0 && c->source.kind != BC_SOURCE_FILE)
		bc_config_error(errors,
			"source.speed: only for files; the simulated bus has a rate (sim:rate=1M)");
	check_recording(c, errors);
	for (unsigned i = 0; is_complete && i < c->triggers_count; i++)
		check_trigger(c, &c->triggers[i], errors);
	if (c->source.kind == BC_SOURCE_USB)
		check_usb(c, errors);
}

/* Without space for the open files, nothing can be written: only sealed files are deleted. */
static void check_space(const struct bc_config *c, struct bc_config_errors *errors)
{
	uint64_t max_use = c->space.max_use_bytes;
	uint64_t file = c->rotation.file_bytes != 0 ? c->rotation.file_bytes
						    : max_use / BC_MAX_USE_SEGMENTS;
	uint64_t least = file + BC_CHUNK_ENCODED_MAX;

	if (max_use == 0 || max_use >= least)
		return;
	bool has_rule = c->rotation.file_bytes != 0;
	bc_config_error(errors, "space.max_use: must be at least %" PRIu64 " MiB%s",
		has_rule ? (least >> 20) + 1 : 2, has_rule ? " with this rotation.filesize" : "");
}

bool bc_config_check(const struct bc_config *c, struct bc_config_errors *errors)
{
	uint64_t least = bc_pipeline_min_bytes(c->workers);

	check_source(c, errors);
	if (c->buffer_bytes < least || c->buffer_bytes > (UINT64_C(1) << 40))
		bc_config_error(errors,
			"pipeline.buffer: must be %" PRIu64 " MiB (for %u workers) to 1 TiB",
			(least >> 20) + 1, c->workers);
	check_space(c, errors);
	return errors->count == 0;
}

static int add_file(struct bc_name_map *map, const char *path, uint64_t offset, bool is_symbols,
	char *err, size_t errlen)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int rc = -EINVAL;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		bc_message(err, errlen, "not a regular file");
	else if (is_symbols)
		rc = bc_name_file_add_symbols(map, fd, offset, err, errlen);
	else
		rc = bc_name_file_add_map(map, fd, err, errlen);
	close(fd);
	return rc;
}

static void read_file(const struct bc_config *c, const char *key, const char *value,
	struct bc_config_errors *errors)
{
	char path[sizeof(c->names_map)];
	char err[256];
	bool is_symbols = value == c->names_symbols;
	uint64_t offset = 0;
	size_t bytes = is_symbols ? bc_symbols_split(value, &offset) : strlen(value);

	if (bytes == 0)
		return;
	snprintf(path, sizeof(path), "%.*s", (int)bytes, value);
	int rc = add_file(c->names, path, offset, is_symbols, err, sizeof(err));
	if (rc != 0)
		bc_config_error(errors, "names.%s: %s: %s%s", key, path,
			rc == -EINVAL ? "" : "can't open: ", rc == -EINVAL ? err : strerror(-rc));
}

bool bc_config_open_names(struct bc_config *c, struct bc_config_errors *errors)
{
	unsigned before = errors->count;
	char err[512];

	c->names = bc_name_map_open();
	if (c->names == NULL)
		return bc_config_error(errors, "names: out of memory");
	read_file(c, "map", c->names_map, errors);
	read_file(c, "symbols", c->names_symbols, errors);
	if (errors->count != before) /* regions can't be found */
		return false;
	if (!bc_record_filter_find_regions(&c->filter, c->names, err, sizeof(err)))
		bc_config_error(errors, "filter.%s", err);
	for (unsigned i = 0; i < c->triggers_count; i++)
		if (!bc_trigger_find_region(&c->triggers[i], c->names, err, sizeof(err)))
			bc_config_error(errors, "trigger %s: when: %s", c->triggers[i].name, err);
	return errors->count == before;
}
