#include "daemon/config.h"

#include <dirent.h>
#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/pipeline.h"
#include "daemon/usb_settings.h"

#define WORKERS_MAX 64u

/* Of all transfers of a board; the kernel gives 16 MiB unless told otherwise. */
#define TRANSFERS_BYTES_MAX (UINT64_C(256) << 20)

void bc_config_default(struct bc_config *c)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	memset(c, 0, sizeof(*c));
	snprintf(c->dir, sizeof(c->dir), "/var/lib/buscapd");
	if (gethostname(c->host, sizeof(c->host) - 1) != 0)
		snprintf(c->host, sizeof(c->host), "unknown");
	c->buffer_bytes = 64u << 20;
	c->workers = cores < 1 ? 1 : cores > (long)WORKERS_MAX ? WORKERS_MAX : (unsigned)cores;
	c->flush_ns = 1000000000;
	c->sync_ns = 200000000;
	c->mapping = bc_mapping_options_default();
	c->usb = bc_usb_options_default();
	snprintf(c->socket, sizeof(c->socket), "/run/buscapd/buscapd.sock");
	snprintf(c->socket_group, sizeof(c->socket_group), "buscap");
	c->log_level = BC_LOG_INFO;
}

/* One key: how its value is read. Each returns false with *why set. */
typedef bool (*read_value)(struct bc_config *config, const char *value, char *why, size_t why_room);

static bool complain(char *why, size_t why_room, const char *text)
{
	snprintf(why, why_room, "%s", text);
	return false;
}

static bool read_source(struct bc_config *c, const char *value, char *why, size_t room)
{
	if (!bc_source_spec_read(&c->source, value, why, room))
		return false;
	snprintf(c->source_text, sizeof(c->source_text), "%s", value);
	return true;
}

static bool read_speed(struct bc_config *c, const char *value, char *why, size_t room)
{
	char *end;

	if (strcmp(value, "max") == 0) {
		c->speed = 0;
		return true;
	}
	if (strcmp(value, "realtime") == 0) {
		c->speed = 1;
		return true;
	}
	c->speed = strtod(value, &end);
	if (end != value && *end == '\0' && c->speed > 0 && c->speed <= 1e6)
		return true;
	return complain(why, room, "speed is max, realtime, or how many times that");
}

static bool read_text(char *out, size_t out_room, const char *value, char *why, size_t room)
{
	if ((size_t)snprintf(out, out_room, "%s", value) >= out_room)
		return complain(why, room, "too long");
	return true;
}

static bool read_dir(struct bc_config *c, const char *value, char *why, size_t room)
{
	if (value[0] == '\0')
		return complain(why, room, "dir wants a directory");
	return read_text(c->dir, sizeof(c->dir), value, why, room);
}

static bool read_label(struct bc_config *c, const char *value, char *why, size_t room)
{
	if (value[0] != '\0' && !bc_label_is_valid(value))
		return complain(why, room,
			"a label has up to 64 letters, digits, points, underscores and dashes");
	return read_text(c->label, sizeof(c->label), value, why, room);
}

static bool read_keep_raw(struct bc_config *c, const char *value, char *why, size_t room)
{
	c->keep_raw = strcmp(value, "yes") == 0;
	return c->keep_raw || strcmp(value, "no") == 0 ||
	       complain(why, room, "keep_raw is yes or no");
}

static bool read_size(uint64_t *bytes, const char *value, char *why, size_t room)
{
	return bc_size_read(bytes, value, 1) ||
	       complain(why, room, "a size is a number of bytes, or with K, M, G or T");
}

static bool read_time(uint64_t *ns, const char *value, uint64_t least, char *why, size_t room)
{
	return (bc_time_read(ns, value) && *ns >= least) ||
	       complain(why, room, "a time is a number of seconds, or with ms, s, m, h or d");
}

static bool read_max_use(struct bc_config *c, const char *v, char *why, size_t room)
{
	return read_size(&c->space.max_use_bytes, v, why, room);
}

static bool read_keep_free(struct bc_config *c, const char *v, char *why, size_t room)
{
	return read_size(&c->space.keep_free_bytes, v, why, room);
}

static bool read_max_age(struct bc_config *c, const char *v, char *why, size_t room)
{
	return read_time(&c->space.max_age_ns, v, 0, why, room);
}

static bool read_buffer(struct bc_config *c, const char *v, char *why, size_t room)
{
	return read_size(&c->buffer_bytes, v, why, room);
}

static bool read_workers(struct bc_config *c, const char *value, char *why, size_t room)
{
	uint64_t workers;

	if (!bc_number_read(&workers, value) || workers < 1 || workers > WORKERS_MAX)
		return complain(why, room, "workers is a number from 1 to 64");
	c->workers = (unsigned)workers;
	return true;
}

static bool read_flush(struct bc_config *c, const char *v, char *why, size_t room)
{
	return read_time(&c->flush_ns, v, 1000000, why, room);
}

static bool read_sync(struct bc_config *c, const char *v, char *why, size_t room)
{
	return read_time(&c->sync_ns, v, 1000000, why, room);
}

static bool read_invalid(struct bc_config *c, const char *value, char *why, size_t room)
{
	c->mapping.keep_invalid = strcmp(value, "keep") == 0;
	return c->mapping.keep_invalid || strcmp(value, "drop") == 0 ||
	       complain(why, room, "invalid is drop or keep");
}

static bool read_size_version(struct bc_config *c, const char *value, char *why, size_t room)
{
	c->mapping.size_v1_0 = strcmp(value, "v1.0") == 0;
	return c->mapping.size_v1_0 || strcmp(value, "v1.1") == 0 ||
	       complain(why, room, "size is v1.1, or v1.0 for sizes of 8 at most");
}

static bool read_socket(struct bc_config *c, const char *v, char *why, size_t room)
{
	return read_text(c->socket, sizeof(c->socket), v, why, room);
}

static bool read_group(struct bc_config *c, const char *v, char *why, size_t room)
{
	return read_text(c->socket_group, sizeof(c->socket_group), v, why, room);
}

static bool read_log_level(struct bc_config *c, const char *value, char *why, size_t room)
{
	int level = bc_log_level_by_name(value);

	if (level < 0)
		return complain(why, room, "level is error, warning, notice, info or debug");
	c->log_level = (enum bc_log_level)level;
	return true;
}

static const struct {
	const char *section;
	const char *key;
	read_value read;
} keys[] = {
	{"source", "source", read_source},
	{"source", "speed", read_speed},
	{"output", "dir", read_dir},
	{"output", "label", read_label},
	{"output", "keep_raw", read_keep_raw},
	{"space", "max_use", read_max_use},
	{"space", "keep_free", read_keep_free},
	{"space", "max_age", read_max_age},
	{"pipeline", "buffer", read_buffer},
	{"pipeline", "workers", read_workers},
	{"pipeline", "flush", read_flush},
	{"pipeline", "sync", read_sync},
	{"mapping", "invalid", read_invalid},
	{"mapping", "size", read_size_version},
	{"socket", "path", read_socket},
	{"socket", "group", read_group},
	{"log", "level", read_log_level},
};

/* [mapping] attr.D_WRITE = 1: a cycle type's attr. */
static bool set_attr(
	struct bc_config *c, const char *name, const char *value, char *why, size_t room)
{
	int cycle = bc_cycle_by_name(name);
	uint64_t attr;

	if (cycle < 0) {
		snprintf(why, room,
			"attr.%s: no such cycle type; they are INT_ACK, SPECIAL, "
			"IO_READ, IO_WRITE, I_FETCH, NC_I_FETCH, D_READ, NC_D_READ, "
			"WRITE_BACK and D_WRITE",
			name);
		return false;
	}
	if (!bc_number_read(&attr, value) || attr > 255) {
		snprintf(why, room, "attr.%s = %.200s: an attr is a number from 0 to 255", name,
			value);
		return false;
	}
	c->mapping.attr[cycle] = (uint8_t)attr;
	return true;
}

/* [rotation] and [stop] hold the rules of -b and -a. */
static bool set_rule(struct bc_config *c, bool is_rotation, const char *rule, const char *value,
	char *why, size_t room)
{
	char text[256];
	const char *what = "too long";
	bool is_whole = (size_t)snprintf(text, sizeof(text), "%s:%s", rule, value) < sizeof(text);

	if (is_whole && (is_rotation ? bc_rotation_read(&c->rotation, text, &what)
				     : bc_stop_rule_read(&c->stop, text, &what)))
		return true;
	snprintf(why, room, "%s = %.200s: %s", rule, value, what);
	return false;
}

bool bc_config_set(struct bc_config *c, const char *section, const char *key, const char *value,
	char *why, size_t room)
{
	char what[160];

	if (strcmp(section, "usb") == 0)
		return bc_usb_setting_read(&c->usb, key, value, why, room);
	if (strcmp(section, "mapping") == 0 && strncmp(key, "attr.", 5) == 0)
		return set_attr(c, key + 5, value, why, room);
	bool is_rotation = strcmp(section, "rotation") == 0;
	if (is_rotation || strcmp(section, "stop") == 0)
		return set_rule(c, is_rotation, key, value, why, room);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(keys[i].section, section) != 0 || strcmp(keys[i].key, key) != 0)
			continue;
		if (keys[i].read(c, value, what, sizeof(what)))
			return true;
		snprintf(why, room, "%s = %.200s: %s", key, value, what);
		return false;
	}
	if (section[0] == '\0')
		snprintf(why, room, "%s: a key stands in a [section]", key);
	else
		snprintf(why, room, "[%s] %s: no such key", section, key);
	return false;
}

/* A file being read, and what is wrong with it first. */
struct loading {
	struct bc_config *config;
	FILE *file;
	int line;     /* read last */
	int why_line; /* 0: nothing is wrong yet */
	char why[512];
};

static void complain_of_line(struct loading *loading, const char *text)
{
	if (loading->why_line != 0)
		return;
	loading->why_line = loading->line;
	snprintf(loading->why, sizeof(loading->why), "%s", text);
}

/* inih would take a line that is too long for its buffer for two. */
static char *read_line(char *text, int room, void *context)
{
	struct loading *loading = context;
	char why[64];

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
	snprintf(why, sizeof(why), "a line has fewer than %d characters", room - 1);
	complain_of_line(loading, why);
	return NULL;
}

static int on_key(void *context, const char *section, const char *key, const char *value)
{
	struct loading *loading = context;
	char why[512];

	if (bc_config_set(loading->config, section, key, value, why, sizeof(why)))
		return 1;
	complain_of_line(loading, why);
	return 0;
}

static bool load_file(
	struct bc_config *c, const char *path, bool is_optional, char *why, size_t room)
{
	struct loading loading = {.config = c, .file = fopen(path, "re")};

	if (loading.file == NULL) {
		if (is_optional && errno == ENOENT)
			return true;
		snprintf(why, room, "%s: %s", path, strerror(errno));
		return false;
	}
	int line = ini_parse_stream(read_line, &loading, on_key, &loading);
	bool is_read = ferror(loading.file) == 0;
	fclose(loading.file);
	if (!is_read)
		snprintf(why, room, "%s: can't be read; is it a file?", path);
	else if (line != 0 && (loading.why_line == 0 || line < loading.why_line))
		snprintf(why, room, "%s:%d: not a [section], a key = value or a comment", path,
			line);
	else if (loading.why_line != 0)
		snprintf(why, room, "%s:%d: %s", path, loading.why_line, loading.why);
	else
		return true;
	return false;
}

static int is_conf(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return n > 5 && entry->d_name[0] != '.' && strcmp(entry->d_name + n - 5, ".conf") == 0;
}

bool bc_config_load(struct bc_config *c, const char *path, bool is_optional, char *why, size_t room)
{
	char dir[4096];
	char file[4096 + 256];
	const char *slash = strrchr(path, '/');
	struct dirent **entries;
	bool is_good = load_file(c, path, is_optional, why, room);

	if (!is_good)
		return false;
	snprintf(dir, sizeof(dir), "%.*sconf.d", slash != NULL ? (int)(slash + 1 - path) : 0, path);
	int count = scandir(dir, &entries, is_conf, alphasort);
	if (count < 0 && errno != ENOENT && errno != ENOTDIR) {
		snprintf(why, room, "%s: %s", dir, strerror(errno));
		return false;
	}
	for (int i = 0; i < count; i++) {
		snprintf(file, sizeof(file), "%s/%s", dir, entries[i]->d_name);
		is_good = is_good && load_file(c, file, false, why, room);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	return is_good;
}

bool bc_config_keeps_raw(const struct bc_config *c)
{
	return c->keep_raw && c->source.kind != BC_SOURCE_FILE;
}

static bool check_usb(const struct bc_config *c, char *why, size_t room)
{
	struct bc_usb_options usb = bc_config_usb(c);

	if (usb.link == BC_USB_FTDI && !usb.has_id)
		return complain(why, room,
			"link = ftdi wants the chip's id, too: id = 0403:6014, 0403:6010, or what "
			"its EEPROM says");
	if ((uint64_t)usb.transfers * usb.transfer_bytes > TRANSFERS_BYTES_MAX)
		return complain(
			why, room, "transfers of transfer_size are 256 MiB together at most");
	if (usb.back_off_ns > usb.back_off_max_ns)
		return complain(why, room, "back_off is longer than back_off_max");
	return true;
}

bool bc_config_check(const struct bc_config *c, char *why, size_t room)
{
	bool keeps_raw = bc_config_keeps_raw(c);
	uint64_t least = bc_pipeline_least_buffer(c->workers, keeps_raw);

	if (c->source.kind == BC_SOURCE_NONE)
		return complain(why, room,
			"no source: give --source usb, file:PATH or sim, or source = in [source]");
	if (c->buffer_bytes < least || c->buffer_bytes > (UINT64_C(1) << 40)) {
		snprintf(why, room,
			"buffer: %u workers%s want at least %llu MiB, and 1 TiB is the most",
			c->workers, keeps_raw ? " with keep_raw" : "",
			(unsigned long long)(least >> 20) + 1);
		return false;
	}
	if (c->speed != 0 && c->source.kind != BC_SOURCE_FILE)
		return complain(why, room,
			"speed paces a file, and nothing else; the simulated bus has rate= in its "
			"source");
	if (c->source.kind == BC_SOURCE_USB)
		return check_usb(c, why, room);
	return true;
}

struct bc_usb_options bc_config_usb(const struct bc_config *c)
{
	struct bc_usb_options usb = c->usb;
	char why[64];

	/* Read once already, when the source was set: it can't fail. */
	if (!bc_usb_settings_read(&usb, c->source.usb, why, sizeof(why)))
		return c->usb;
	return usb;
}
