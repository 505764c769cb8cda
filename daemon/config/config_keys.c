#include "daemon/config/config_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/usb_settings.h"

#define CONNECTIONS_MAX 4096u
#define PERIOD_MIN_NS   UINT64_C(1000000)
#define NO_SIZE         "not a size; try 64M, 10G"
#define NO_TIME         "not a time; try 200ms, 10s, 5m"

static bool complain(char *err, size_t errlen, const char *text)
{
	snprintf(err, errlen, "%s", text);
	return false;
}

static bool read_source(struct bc_config *c, const char *value, char *err, size_t errlen)
{
	if (!bc_source_spec_read(&c->source, value, err, errlen))
		return false;
	snprintf(c->source_text, sizeof(c->source_text), "%s", value);
	return true;
}

static bool read_speed(struct bc_config *c, const char *value, char *err, size_t errlen)
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
	return complain(
		err, errlen, "must be max, realtime, or a factor above 0 and up to 1000000");
}

static bool read_text(char *out, size_t out_room, const char *value, char *err, size_t errlen)
{
	if ((size_t)snprintf(out, out_room, "%s", value) >= out_room)
		return complain(err, errlen, "too long");
	return true;
}

/* Rejects a "~" that no shell has expanded: the user meant the home directory. */
static bool read_path(char *out, size_t out_room, const char *value, char *err, size_t errlen)
{
	if (value[0] == '~' && (value[1] == '/' || value[1] == '\0'))
		return complain(err, errlen,
			"~ is not expanded; write the full path (./~ for a file of that name)");
	return read_text(out, out_room, value, err, errlen);
}

static bool read_dir(struct bc_config *c, const char *value, char *err, size_t errlen)
{
	if (value[0] == '\0')
		return complain(err, errlen, "must not be empty");
	return read_path(c->dir, sizeof(c->dir), value, err, errlen);
}

static bool read_label(struct bc_config *c, const char *value, char *err, size_t errlen)
{
	if (value[0] != '\0' && !bc_word_is_valid(value))
		return complain(err, errlen, "must be up to 64 letters, digits, '.', '_' and '-'");
	return read_text(c->label, sizeof(c->label), value, err, errlen);
}

static bool read_keep_raw(struct bc_config *c, const char *value, char *err, size_t errlen)
{
	c->keep_raw = strcmp(value, "yes") == 0;
	return c->keep_raw || strcmp(value, "no") == 0 ||
	       complain(err, errlen, "must be yes or no");
}

static bool read_size(uint64_t *bytes, const char *value, char *err, size_t errlen)
{
	return bc_size_read(bytes, value, 1) || complain(err, errlen, NO_SIZE);
}

static bool read_time(uint64_t *ns, const char *value, char *err, size_t errlen)
{
	return bc_time_read(ns, value) || complain(err, errlen, NO_TIME);
}

static bool read_period(uint64_t *ns, const char *value, char *err, size_t errlen)
{
	return read_time(ns, value, err, errlen) &&
	       (*ns >= PERIOD_MIN_NS || complain(err, errlen, "must be at least 1ms"));
}

static bool read_sealed_command(struct bc_config *c, const char *value, char *err, size_t errlen)
{
	if (value[0] != '\0' && value[0] != '/')
		return complain(err, errlen,
			"must be an absolute path; the program is run without a shell, with the "
			"file as its only argument");
	return read_text(c->sealed_command, sizeof(c->sealed_command), value, err, errlen);
}

static bool read_sealed_timeout(struct bc_config *c, const char *v, char *err, size_t errlen)
{
	return read_time(&c->sealed_timeout_ns, v, err, errlen);
}

static bool read_max_use(struct bc_config *c, const char *v, char *err, size_t errlen)
{
	return read_size(&c->space.max_use_bytes, v, err, errlen);
}

static bool read_keep_free(struct bc_config *c, const char *v, char *err, size_t errlen)
{
	return read_size(&c->space.keep_free_bytes, v, err, errlen);
}

static bool read_max_age(struct bc_config *c, const char *v, char *err, size_t errlen)
{
	return read_time(&c->space.max_age_ns, v, err, errlen);
}

static bool read_buffer(struct bc_config *c, const char *v, char *err, size_t errlen)
{
	return read_size(&c->buffer_bytes, v, err, errlen);
}

static bool read_workers(struct bc_config *c, const char *value, char *err, size_t errlen)
{
	uint64_t workers;

	if (!bc_number_read(&workers, value) || workers < 1 || workers > BC_WORKERS_MAX)
		return complain(err, errlen, "must be a number from 1 to 64");
	c->workers = (unsigned)workers;
	return true;
}

static bool read_flush(struct bc_config *c, const char *v, char *err, size_t errlen)
{
	return read_period(&c->flush_ns, v, err, errlen);
}

static bool read_sync(struct bc_config *c, const char *v, char *err, size_t errlen)
{
	return read_period(&c->sync_ns, v, err, errlen);
}

static bool read_stuck(struct bc_config *c, const char *v, char *err, size_t errlen)
{
	return read_time(&c->stuck_ns, v, err, errlen);
}

static bool read_invalid(struct bc_config *c, const char *value, char *err, size_t errlen)
{
	c->mapping.keep_invalid = strcmp(value, "keep") == 0;
	return c->mapping.keep_invalid || strcmp(value, "drop") == 0 ||
	       complain(err, errlen, "must be drop or keep");
}

static bool read_size_version(struct bc_config *c, const char *value, char *err, size_t errlen)
{
	c->mapping.size_v1_0 = strcmp(value, "v1.0") == 0;
	return c->mapping.size_v1_0 || strcmp(value, "v1.1") == 0 ||
	       complain(err, errlen, "must be v1.1, or v1.0 (without sizes above 8)");
}

static bool read_socket(struct bc_config *c, const char *v, char *err, size_t errlen)
{
	return read_path(c->socket, sizeof(c->socket), v, err, errlen);
}

static bool read_group(struct bc_config *c, const char *v, char *err, size_t errlen)
{
	return read_text(c->socket_group, sizeof(c->socket_group), v, err, errlen);
}

static bool read_connections(struct bc_config *c, const char *value, char *err, size_t errlen)
{
	uint64_t connections;

	if (!bc_number_read(&connections, value) || connections < 1 ||
		connections > CONNECTIONS_MAX)
		return complain(err, errlen, "must be a number from 1 to 4096");
	c->connections = (unsigned)connections;
	return true;
}

static bool read_reserve(struct bc_config *c, const char *v, char *err, size_t errlen)
{
	return bc_permissions_parse(&c->reserve, v, err, errlen);
}

static bool read_metrics_listen(struct bc_config *c, const char *v, char *err, size_t errlen)
{
	return bc_loopback_parse(&c->metrics_listen, v, err, errlen);
}

static bool read_log_level(struct bc_config *c, const char *value, char *err, size_t errlen)
{
	int level = bc_log_level_by_name(value);

	if (level < 0)
		return complain(err, errlen, "must be error, warning, notice, info or debug");
	c->log_level = (enum bc_log_level)level;
	return true;
}

const struct bc_config_key bc_config_keys[] = {
	{"source.source", "SPEC", "choice:usb|usb:|sim|sim:|file:", NULL, "--source",
		BC_RELOAD_RESTART,
		"Where the samples come from: `usb[:SETTINGS]`, "
		"`file:PATH[,format=F][,clock_hz=N]` or `sim[:SETTINGS]`. Required.",
		read_source},
	{"source.speed", "SPEED", "choice:max|realtime", "max", "--speed", BC_RELOAD_RESTART,
		"Pace of a file: `max`, `realtime`, or a factor up to 1000000. A paced file does "
		"not wait: samples that don't fit into the buffer are lost and counted.",
		read_speed},
	{"usb.id", "VID:PID", "text", "1209:0001", NULL, BC_RELOAD_RESTART,
		"VID:PID of the board, in hexadecimal.", NULL},
	{"usb.serial", "SERIAL", "text", NULL, NULL, BC_RELOAD_RESTART,
		"Serial number of the board, up to 127 characters. Empty: any board with this id.",
		NULL},
	{"usb.protocol", "PROTOCOL", "choice:bcp1|raw6", "bcp1", NULL, BC_RELOAD_RESTART,
		"What the board sends: `bcp1` or `raw6`.", NULL},
	{"usb.link", "LINK", "choice:plain|ftdi", "plain", NULL, BC_RELOAD_RESTART,
		"`plain`, or `ftdi` for a board with an FT2232H or FT232H chip. With `ftdi`, set "
		"`id` to that of the chip.",
		NULL},
	{"usb.transfers", "N", "number", "16", NULL, BC_RELOAD_RESTART,
		"Number of transfers in flight, 1 to 256. Together they may take up to 256 MiB.",
		NULL},
	{"usb.transfer_size", "SIZE", "size", "64K", NULL, BC_RELOAD_RESTART,
		"Size of each transfer, 4K to 16M. Larger transfers use less CPU time, but delay "
		"the data of a slow bus.",
		NULL},
	{"usb.transfer_timeout", "TIME", "time", "0", NULL, BC_RELOAD_RESTART,
		"Deliver a transfer that is not full after this time, at most 1h. 0: only when it "
		"is full.",
		NULL},
	{"usb.clock_hz", "N", "number", "0", NULL, BC_RELOAD_RESTART,
		"Bus clock of a board that does not report it, in ticks per second. 0: unknown.",
		NULL},
	{"usb.wait", "TIME", "time", "10s", NULL, BC_RELOAD_RESTART,
		"With `--once`, wait this long for a board. 0: forever.", NULL},
	{"usb.silence", "TIME", "time", "10s", NULL, BC_RELOAD_RESTART,
		"Warn after this long without data. 0: never.", NULL},
	{"usb.silence_action", "ACTION", "choice:say|restart", "say", NULL, BC_RELOAD_RESTART,
		"What to do after that silence: `say` only warns; `restart` also resets and "
		"reopens the board.",
		NULL},
	{"usb.back_off", "TIME", "time", "100ms", NULL, BC_RELOAD_RESTART,
		"Delay before retrying a board that failed or was unplugged soon after it came, at "
		"least 1ms. It doubles with each attempt.",
		NULL},
	{"usb.back_off_max", "TIME", "time", "5s", NULL, BC_RELOAD_RESTART,
		"Upper limit of that delay.", NULL},
	{"usb.ftdi_latency", "TIME", "time", "16ms", NULL, BC_RELOAD_RESTART,
		"The FTDI chip sends a packet that is not full after this time, 1ms to 255ms.",
		NULL},
	{"usb.ftdi_mode", "MODE", "choice:sync-fifo|fifo", "sync-fifo", NULL, BC_RELOAD_RESTART,
		"Mode of the FTDI chip: `sync-fifo`, or `fifo` for the one that its EEPROM "
		"selects.",
		NULL},
	{"output.dir", "DIR", "dir", "/var/lib/buscapd", "-o", BC_RELOAD_RESTART,
		"Directory for the segments. It is created if missing; its parent must exist.",
		read_dir},
	{"output.label", "TEXT", "text", NULL, "--label", BC_RELOAD_RESTART,
		"Appended to the names of recordings: up to 64 letters, digits, `.`, `_` and `-`.",
		read_label},
	{"output.keep_raw", "YES", "choice:yes|no", "no", NULL, BC_RELOAD_RESTART,
		"`yes`: also save the bytes of a live source unchanged, in a raw capture next to "
		"each segment. Not with `record = flight`.",
		read_keep_raw},
	{"output.sealed_command", "PROGRAM", "file", NULL, NULL, BC_RELOAD_NOW,
		"Absolute path of a program to run for each sealed segment and raw capture, with "
		"its path as the only argument. Empty: none.",
		read_sealed_command},
	{"output.sealed_timeout", "TIME", "time", "1h", NULL, BC_RELOAD_NOW,
		"End a run that takes longer, with all processes that it started: SIGTERM, then "
		"SIGKILL 2 s later. 0: no limit.",
		read_sealed_timeout},
	{"recording.record", "MODE", "choice:always|on-demand|flight", "always", NULL,
		BC_RELOAD_RESTART,
		"`always`: record from the start. `on-demand`: when a request or a trigger starts "
		"it. `flight`: like `on-demand`, and until then keep the latest records in memory.",
		NULL},
	{"recording.flight_time", "TIME", "time", "10s", NULL, BC_RELOAD_RESTART,
		"Age of the oldest records that the flight recorder keeps. 0: no limit.", NULL},
	{"recording.flight_size", "SIZE", "size", "0", NULL, BC_RELOAD_RESTART,
		"Maximum size of the records that the flight recorder keeps; it must fit into the "
		"buffer next to what the workers need. 0: as much as fits.",
		NULL},
	{"recording.sampling", "WIDTH/PERIOD", "choice:all", "all", NULL, BC_RELOAD_NOW,
		"Record only the first WIDTH of each PERIOD of bus time, for example `10ms/1s`. "
		"`all`: everything.",
		NULL},
	{"recording.metadata.KEY", "TEXT", "text", NULL, NULL, BC_RELOAD_NEXT_RECORDING,
		"A text of up to 1024 bytes, stored in each recording. KEY has up to 64 letters, "
		"digits, `.`, `_` and `-`. Empty: none.",
		NULL},
	{"filter.keep", "WORDS", "text", NULL, NULL, BC_RELOAD_NOW,
		"Record only what matches this condition or one of the `keep.NAME`. Without any, "
		"record everything. Up to 8 together.",
		NULL},
	{"filter.keep.NAME", "WORDS", "text", NULL, NULL, BC_RELOAD_NOW,
		"Another such condition. Empty: none.", NULL},
	{"filter.leave_out", "WORDS", "text", NULL, NULL, BC_RELOAD_NOW,
		"Exclude what matches this condition or one of the `leave_out.NAME`. Up to 8 "
		"together.",
		NULL},
	{"filter.leave_out.NAME", "WORDS", "text", NULL, NULL, BC_RELOAD_NOW,
		"Another such condition. Empty: none.", NULL},
	{"trigger NAME.when", "WHEN", "text", NULL, NULL, BC_RELOAD_NOW,
		"The event to wait for: a record that matches a condition; `board`, the board's "
		"trigger flag; `gap`, missing samples; or `idle TIME`, nothing for longer than "
		"this. Required.",
		NULL},
	{"trigger NAME.action", "ACTION", "choice:start|stop|toggle|snapshot|mark", NULL, NULL,
		BC_RELOAD_NOW,
		"What to do: `start`, `stop` or `toggle` a recording, take a `snapshot` of the "
		"flight recorder, or `mark`. Required.",
		NULL},
	{"trigger NAME.pre", "LENGTH", "length", "0", NULL, BC_RELOAD_NOW,
		"For start, toggle and snapshot with `record = flight`: how much from before the "
		"trigger to record. A time, a size (`16M`), or `all`.",
		NULL},
	{"trigger NAME.post", "LENGTH", "length", "0", NULL, BC_RELOAD_NOW,
		"End the recording that the trigger starts or stops this much later: a time (host "
		"time; in a replay, bus time) or a size of records. 0: a start sets no end, a stop "
		"takes effect at once.",
		NULL},
	{"trigger NAME.text", "TEXT", "text", "NAME", NULL, BC_RELOAD_NOW,
		"Text of the mark or trigger event in the recording, up to 256 bytes.", NULL},
	{"trigger NAME.holdoff", "TIME", "time", "0", NULL, BC_RELOAD_NOW,
		"Ignore further matches for this long after acting: bus time, or host time if the "
		"bus clock is unknown.",
		NULL},
	{"rotation.filesize", "SIZE", "size", NULL, "-b filesize:", BC_RELOAD_NOW,
		"Start a new segment after the chunk that exceeds this size on disk. With "
		"`keep_raw`, a raw capture that exceeds it ends both files. A number without a "
		"unit is in kB (1000 bytes).",
		NULL},
	{"rotation.duration", "TIME", "time", NULL, "-b duration:", BC_RELOAD_NOW,
		"Start a new segment when the current one has lasted this long.", NULL},
	{"rotation.interval", "TIME", "time", NULL, "-b interval:", BC_RELOAD_NOW,
		"Start a new segment whenever the clock reaches a multiple of this.", NULL},
	{"rotation.files", "N", "number", NULL, "-b files:", BC_RELOAD_NOW,
		"Keep this many segments, including the open one, and delete older ones. Without "
		"another rule, it counts whole recordings.",
		NULL},
	{"stop.duration", "TIME", "time", NULL, "-a duration:", BC_RELOAD_RESTART,
		"Stop after this time. With a board, it is counted from the first data.", NULL},
	{"stop.records", "N", "number", NULL, "-a records:", BC_RELOAD_RESTART,
		"Stop after exactly this many records.", NULL},
	{"stop.filesize", "SIZE", "size", NULL, "-a filesize:", BC_RELOAD_RESTART,
		"Stop after the chunk with which the recording exceeds this size. A number without "
		"a unit is in kB (1000 bytes).",
		NULL},
	{"space.max_use", "SIZE", "size", NULL, NULL, BC_RELOAD_NOW,
		"Maximum size of all segments and raw captures in the directory. Without a "
		"`filesize` rule, each segment is limited to an eighth of it.",
		read_max_use},
	{"space.keep_free", "SIZE", "size", NULL, NULL, BC_RELOAD_NOW,
		"Space to keep free on the file system.", read_keep_free},
	{"space.max_age", "TIME", "time", NULL, NULL, BC_RELOAD_NOW,
		"Delete sealed segments that are older than this.", read_max_age},
	{"pipeline.buffer", "SIZE", "size", "64M", NULL, BC_RELOAD_RESTART,
		"Memory for chunks on their way to the disk, and for raw bytes with `keep_raw`. "
		"Two workers need at least 8M, or 15M with `keep_raw`.",
		read_buffer},
	{"pipeline.workers", "N", "number", "one per core", NULL, BC_RELOAD_RESTART,
		"Number of encoder threads, 1 to 64.", read_workers},
	{"pipeline.flush", "TIME", "time", "1s", NULL, BC_RELOAD_NOW,
		"Write a chunk this long after its first record, even if it is not full. At least "
		"1ms.",
		read_flush},
	{"pipeline.sync", "TIME", "time", "200ms", NULL, BC_RELOAD_NOW,
		"Call fdatasync this often while there is new data. At least 1ms.", read_sync},
	{"pipeline.stuck", "TIME", "time", "60s", NULL, BC_RELOAD_NOW,
		"If a worker or the writer hangs in one operation for this long, log it, and stop "
		"notifying the watchdog until it continues. 0: neither.",
		read_stuck},
	{"mapping.invalid", "WHAT", "choice:drop|keep", "drop", NULL, BC_RELOAD_RESTART,
		"Invalid bus cycles: `drop` and count them, or `keep` them as type F0 + cycle.",
		read_invalid},
	{"mapping.size", "VERSION", "choice:v1.1|v1.0", "v1.1", NULL, BC_RELOAD_RESTART,
		"Version of the BYU format: `v1.1`, or `v1.0` without sizes above 8.",
		read_size_version},
	{"mapping.attr.CYCLE", "N", "number",
		"3 for I_FETCH, D_READ and WRITE_BACK, 1 for D_WRITE, 0 for all others", NULL,
		BC_RELOAD_RESTART,
		"The attr (memory type) of the records of a cycle type, 0 to 255. CYCLE is "
		"INT_ACK, SPECIAL, IO_READ, IO_WRITE, I_FETCH, NC_I_FETCH, D_READ, NC_D_READ, "
		"WRITE_BACK or D_WRITE.",
		NULL},
	{"socket.path", "PATH", "file", "/run/buscapd/buscapd.sock", "--socket, --no-socket",
		BC_RELOAD_RESTART,
		"Path of the socket. Empty: none. With `--once`, the default is none. A socket "
		"passed by systemd must have this path.",
		read_socket},
	{"socket.group", "GROUP", "text", "buscap", NULL, BC_RELOAD_RESTART,
		"Group that may connect, if it exists. It does not apply to a socket passed by "
		"systemd.",
		read_group},
	{"socket.connections", "N", "number", "64", NULL, BC_RELOAD_RESTART,
		"Maximum number of clients, 1 to 4096. The owner (root and the user that buscapd "
		"runs as) can connect beyond it.",
		read_connections},
	{"socket.reserve", "RIGHTS", "list:record|rotate|mark|note|snapshot|trigger|replay", NULL,
		NULL, BC_RELOAD_NOW,
		"Operations that only the owner may request, separated by commas: `record`, "
		"`rotate`, `mark`, `note`, `snapshot`, `trigger`, `replay`.",
		read_reserve},
	{"socket.metrics_listen", "ADDRESS:PORT", "choice:127.0.0.1:|[::1]:", NULL, NULL,
		BC_RELOAD_RESTART,
		"`127.0.0.1:PORT` or `[::1]:PORT`: serve `/metrics`, and nothing else, at this "
		"address. Empty: off.",
		read_metrics_listen},
	{"log.level", "LEVEL", "choice:error|warning|notice|info|debug", "info", NULL,
		BC_RELOAD_NOW,
		"Log messages of this level and above: `error`, `warning`, `notice`, `info` or "
		"`debug`.",
		read_log_level},
	{0},
};

/* [mapping] attr.CYCLE */
static bool set_attr(
	struct bc_config *c, const char *name, const char *value, char *err, size_t errlen)
{
	int cycle = bc_cycle_by_name(name);
	uint64_t attr;

	if (cycle < 0) {
		snprintf(err, errlen,
			"attr.%s: unknown cycle type; use INT_ACK, SPECIAL, "
			"IO_READ, IO_WRITE, I_FETCH, NC_I_FETCH, D_READ, NC_D_READ, "
			"WRITE_BACK or D_WRITE",
			name);
		return false;
	}
	if (!bc_number_read(&attr, value) || attr > 255) {
		snprintf(err, errlen, "attr.%s = %.200s: must be a number from 0 to 255", name,
			value);
		return false;
	}
	c->mapping.attr[cycle] = (uint8_t)attr;
	return true;
}

/* [rotation] and [stop] have the rules of -b and -a. */
static bool set_rule(struct bc_config *c, bool is_rotation, const char *rule, const char *value,
	char *err, size_t errlen)
{
	char text[256];
	const char *what = "too long";
	bool is_whole = (size_t)snprintf(text, sizeof(text), "%s:%s", rule, value) < sizeof(text);

	if (is_whole && (is_rotation ? bc_rotation_read(&c->rotation, text, &what)
				     : bc_stop_rule_read(&c->stop, text, &what)))
		return true;
	snprintf(err, errlen, "%s = %.200s: %s", rule, value, what);
	return false;
}

/* [trigger NAME]: its first key adds the trigger. */
static bool set_trigger(struct bc_config *c, const char *name, const char *key, const char *value,
	char *err, size_t errlen)
{
	char what[200];
	unsigned i = 0;

	while (i < c->triggers_count && strcmp(c->triggers[i].name, name) != 0)
		i++;
	if (i == BC_TRIGGERS_CONFIGURED) {
		snprintf(err, errlen, "[trigger %.40s]: too many triggers (limit 16)", name);
		return false;
	}
	if (i == c->triggers_count && !bc_trigger_init(&c->triggers[i], name, what, sizeof(what))) {
		snprintf(err, errlen, "[trigger %.40s]: %s", name, what);
		return false;
	}
	if (!bc_trigger_set(&c->triggers[i], key, value, what, sizeof(what))) {
		snprintf(err, errlen, "%.40s = %.200s: %s", key, value, what);
		return false;
	}
	c->triggers_count += i == c->triggers_count;
	return true;
}

/* Whether a name is "SECTION.KEY". */
static bool is_named(const char *name, const char *section, const char *key)
{
	size_t n = strlen(section);

	return strncmp(name, section, n) == 0 && name[n] == '.' && strcmp(name + n + 1, key) == 0;
}

bool bc_config_set(struct bc_config *c, const char *section, const char *key, const char *value,
	char *err, size_t errlen)
{
	char what[160];

	if (strcmp(section, "recording") == 0)
		return bc_recording_setting_read(
			&c->recording, &c->filter.sampling, key, value, err, errlen);
	if (strcmp(section, "filter") == 0)
		return bc_record_filter_set(&c->filter, key, value, err, errlen);
	if (strncmp(section, "trigger ", 8) == 0)
		return set_trigger(
			c, section + 8 + strspn(section + 8, " "), key, value, err, errlen);
	if (strcmp(section, "usb") == 0)
		return bc_usb_setting_read(&c->usb, key, value, err, errlen);
	if (strcmp(section, "mapping") == 0 && strncmp(key, "attr.", 5) == 0)
		return set_attr(c, key + 5, value, err, errlen);
	bool is_rotation = strcmp(section, "rotation") == 0;
	if (is_rotation || strcmp(section, "stop") == 0)
		return set_rule(c, is_rotation, key, value, err, errlen);
	for (const struct bc_config_key *k = bc_config_keys; k->name != NULL; k++) {
		if (k->read == NULL || !is_named(k->name, section, key))
			continue;
		if (k->read(c, value, what, sizeof(what)))
			return true;
		snprintf(err, errlen, "%s = %.200s: %s", key, value, what);
		return false;
	}
	if (section[0] == '\0')
		snprintf(err, errlen, "%s: key outside of a [section]", key);
	else
		snprintf(err, errlen, "[%s] %s: no such key", section, key);
	return false;
}
