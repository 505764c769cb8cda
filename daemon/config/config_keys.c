#include "daemon/config/config_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/usb_settings.h"
#include "formats/segment/metadata.h"

#define CONNECTIONS_MAX 4096u
#define PERIOD_MIN_NS   UINT64_C(1000000)

/* The arguments of a reader: the key, the place of its value in the configuration, and the text. */
#define READER \
	const struct bc_config_key *key, void *field, const char *value, char *err, size_t errlen

static bool complain(char *err, size_t errlen, const char *text)
{
	snprintf(err, errlen, "%s", text);
	return false;
}

/* ---- readers of types of values */

static bool read_text(READER)
{
	return (size_t)snprintf(field, key->size, "%s", value) < key->size ||
	       complain(err, errlen, "too long");
}

/* Rejects a "~" that no shell has expanded: the user meant the home directory. */
static bool read_path(READER)
{
	if (value[0] == '~' && (value[1] == '/' || value[1] == '\0'))
		return complain(err, errlen,
			"~ is not expanded; write the full path (./~ for a file of that name)");
	return read_text(key, field, value, err, errlen);
}

static bool read_size(READER)
{
	(void)key;
	return bc_size_read(field, value, 1) || complain(err, errlen, "not a size; try 64M, 10G");
}

static bool read_time(READER)
{
	(void)key;
	return bc_time_read(field, value) ||
	       complain(err, errlen, "not a time; try 200ms, 10s, 5m");
}

static bool read_positive_time(READER)
{
	(void)key;
	return (bc_time_read(field, value) && *(uint64_t *)field != 0) ||
	       complain(err, errlen, "not a time above 0; try 10s, 5m");
}

static bool read_positive_number(READER)
{
	(void)key;
	return (bc_number_read(field, value) && *(uint64_t *)field != 0) ||
	       complain(err, errlen, "not a number above 0");
}

static bool read_file_size(READER)
{
	(void)key;
	return (bc_size_read(field, value, 1000) && *(uint64_t *)field != 0) ||
	       complain(err, errlen, "not a size above 0; try 64M, 10G, or a number of kB");
}

static bool read_period(READER)
{
	return read_time(key, field, value, err, errlen) &&
	       (*(uint64_t *)field >= PERIOD_MIN_NS ||
		       complain(err, errlen, "must be at least 1ms"));
}

/* "must be always, on-demand or flight" for the words "always|on-demand|flight". */
static bool fail_choice(const char *words, char *err, size_t errlen)
{
	size_t used = (size_t)snprintf(err, errlen, "must be ");

	while (used < errlen && *words != '\0') {
		size_t n = strcspn(words, "|");
		const char *rest = words[n] == '|' ? words + n + 1 : "";
		const char *separator = *rest == '\0'               ? ""
					: strchr(rest, '|') == NULL ? " or "
								    : ", ";
		used += (size_t)snprintf(
			err + used, errlen - used, "%.*s%s", (int)n, words, separator);
		words = rest;
	}
	return false;
}

/* One of the words in key->kind. The field is a bool or an enum: the index of the word. */
static bool read_choice(READER)
{
	const char *words = key->kind + strlen("choice:");
	size_t n;

	for (unsigned i = 0;; i++, words += n + 1) {
		n = strcspn(words, "|");
		if (n == strlen(value) && memcmp(words, value, n) == 0) {
			if (key->size == sizeof(bool))
				*(bool *)field = i != 0;
			else
				*(unsigned *)field = i;
			return true;
		}
		if (words[n] == '\0')
			break;
	}
	return fail_choice(key->kind + strlen("choice:"), err, errlen);
}

static bool read_count(unsigned *count, const char *value, unsigned max, char *err, size_t errlen)
{
	uint64_t n;

	if (!bc_number_read(&n, value) || n < 1 || n > max) {
		snprintf(err, errlen, "must be a number from 1 to %u", max);
		return false;
	}
	*count = (unsigned)n;
	return true;
}

/* ---- readers of single keys */

static bool read_source(READER)
{
	struct bc_config *config = field;

	(void)key;
	if (!bc_source_spec_read(&config->source, value, err, errlen))
		return false;
	snprintf(config->source_text, sizeof(config->source_text), "%s", value);
	return true;
}

static bool read_speed(READER)
{
	double *speed = field;
	char *end;

	(void)key;
	if (strcmp(value, "max") == 0) {
		*speed = 0;
		return true;
	}
	if (strcmp(value, "realtime") == 0) {
		*speed = 1;
		return true;
	}
	*speed = strtod(value, &end);
	if (end != value && *end == '\0' && *speed > 0 && *speed <= 1e6)
		return true;
	return complain(
		err, errlen, "must be max, realtime, or a factor above 0 and up to 1000000");
}

static bool read_dir(READER)
{
	if (value[0] == '\0')
		return complain(err, errlen, "must not be empty");
	return read_path(key, field, value, err, errlen);
}

static bool read_label(READER)
{
	if (value[0] != '\0' && !bc_word_is_valid(value))
		return complain(err, errlen, "must be up to 64 letters, digits, '.', '_' and '-'");
	return read_text(key, field, value, err, errlen);
}

static bool read_sealed_command(READER)
{
	if (value[0] != '\0' && value[0] != '/')
		return complain(err, errlen,
			"must be an absolute path; the program is run without a shell, with the "
			"file as its only argument");
	return read_text(key, field, value, err, errlen);
}

static bool read_sampling(READER)
{
	(void)key;
	return bc_sampling_parse(field, value, err, errlen);
}

static bool read_workers(READER)
{
	(void)key;
	return read_count(field, value, BC_WORKERS_MAX, err, errlen);
}

static bool read_connections(READER)
{
	(void)key;
	return read_count(field, value, CONNECTIONS_MAX, err, errlen);
}

static bool read_reserve(READER)
{
	(void)key;
	return bc_permissions_parse(field, value, err, errlen);
}

static bool read_metrics_listen(READER)
{
	(void)key;
	return bc_loopback_parse(field, value, err, errlen);
}

static bool read_log_level(READER)
{
	int level = bc_log_level_by_name(value);

	(void)key;
	if (level < 0)
		return complain(err, errlen, "must be error, warning, notice, info or debug");
	*(enum bc_log_level *)field = (enum bc_log_level)level;
	return true;
}

#define FIELD(member) offsetof(struct bc_config, member), sizeof(((struct bc_config *)0)->member)
#define CONFIG        0, sizeof(struct bc_config)
#define BY_SECTION    NULL, CONFIG

const struct bc_config_key bc_config_keys[] = {
	{"source.source", "SPEC", "choice:usb|usb:|sim|sim:|file:", NULL, "--source",
		BC_RELOAD_RESTART,
		"Where the samples come from: `usb[:SETTINGS]`, "
		"`file:PATH[,format=F][,clock_hz=N]` or `sim[:SETTINGS]`. Required.",
		read_source, CONFIG},
	{"source.speed", "SPEED", "choice:max|realtime", "max", "--speed", BC_RELOAD_RESTART,
		"Pace of a file: `max`, `realtime`, or a factor up to 1000000. A paced file does "
		"not wait: samples that don't fit into the buffer are lost and counted.",
		read_speed, FIELD(speed)},
	{"usb.id", "VID:PID", "text", "1209:0001", NULL, BC_RELOAD_RESTART,
		"VID:PID of the board, in hexadecimal.", BY_SECTION},
	{"usb.serial", "SERIAL", "text", NULL, NULL, BC_RELOAD_RESTART,
		"Serial number of the board, up to 127 characters. Empty: any board with this id.",
		BY_SECTION},
	{"usb.protocol", "PROTOCOL", "choice:bcp1|raw6", "bcp1", NULL, BC_RELOAD_RESTART,
		"What the board sends: `bcp1` or `raw6`.", BY_SECTION},
	{"usb.link", "LINK", "choice:plain|ftdi", "plain", NULL, BC_RELOAD_RESTART,
		"`plain`, or `ftdi` for a board with an FT2232H or FT232H chip. With `ftdi`, set "
		"`id` to that of the chip.",
		BY_SECTION},
	{"usb.transfers", "N", "number", "16", NULL, BC_RELOAD_RESTART,
		"Number of transfers in flight, 1 to 256. Together they may take up to 256 MiB.",
		BY_SECTION},
	{"usb.transfer_size", "SIZE", "size", "64K", NULL, BC_RELOAD_RESTART,
		"Size of each transfer, 4K to 16M. Larger transfers use less CPU time, but delay "
		"the data of a slow bus.",
		BY_SECTION},
	{"usb.transfer_timeout", "TIME", "time", "0", NULL, BC_RELOAD_RESTART,
		"Deliver a transfer that is not full after this time, at most 1h. 0: only when it "
		"is full.",
		BY_SECTION},
	{"usb.clock_hz", "N", "number", "0", NULL, BC_RELOAD_RESTART,
		"Bus clock of a board that does not report it, in ticks per second. 0: unknown.",
		BY_SECTION},
	{"usb.wait", "TIME", "time", "10s", NULL, BC_RELOAD_RESTART,
		"With `--once`, wait this long for a board. 0: forever.", BY_SECTION},
	{"usb.silence", "TIME", "time", "10s", NULL, BC_RELOAD_RESTART,
		"Warn after this long without data. 0: never.", BY_SECTION},
	{"usb.silence_action", "ACTION", "choice:warn|restart", "warn", NULL, BC_RELOAD_RESTART,
		"What to do after that silence: `warn` only logs it; `restart` also resets and "
		"reopens the board.",
		BY_SECTION},
	{"usb.back_off", "TIME", "time", "100ms", NULL, BC_RELOAD_RESTART,
		"Delay before retrying a board that failed or was unplugged soon after it "
		"appeared, at "
		"least 1ms. It doubles with each attempt.",
		BY_SECTION},
	{"usb.back_off_max", "TIME", "time", "5s", NULL, BC_RELOAD_RESTART,
		"Upper limit of that delay.", BY_SECTION},
	{"usb.ftdi_latency", "TIME", "time", "16ms", NULL, BC_RELOAD_RESTART,
		"The FTDI chip sends a packet that is not full after this time, 1ms to 255ms.",
		BY_SECTION},
	{"usb.ftdi_mode", "MODE", "choice:sync-fifo|fifo", "sync-fifo", NULL, BC_RELOAD_RESTART,
		"Mode of the FTDI chip: `sync-fifo`, or `fifo` for the one that its EEPROM "
		"selects.",
		BY_SECTION},
	{"output.dir", "DIR", "dir", "/var/lib/buscapd", "-o", BC_RELOAD_RESTART,
		"Directory for the segments. It is created if missing; its parent must exist.",
		read_dir, FIELD(dir)},
	{"output.label", "TEXT", "text", NULL, "--label", BC_RELOAD_RESTART,
		"Appended to the names of recordings: up to 64 letters, digits, `.`, `_` and `-`.",
		read_label, FIELD(label)},
	{"output.keep_raw", "YES", "choice:no|yes", "no", NULL, BC_RELOAD_RESTART,
		"`yes`: also save the bytes of a live source unchanged, in a raw capture next to "
		"each segment. Not with `record = flight`.",
		read_choice, FIELD(keep_raw)},
	{"output.sealed_command", "PROGRAM", "file", NULL, NULL, BC_RELOAD_NOW,
		"Absolute path of a program to run for each sealed segment and raw capture, with "
		"its path as the only argument. Empty: none.",
		read_sealed_command, FIELD(sealed_command)},
	{"output.sealed_timeout", "TIME", "time", "1h", NULL, BC_RELOAD_NOW,
		"End a run that takes longer, with all processes that it started: SIGTERM, then "
		"SIGKILL 2 s later. 0: no limit.",
		read_time, FIELD(sealed_timeout_ns)},
	{"recording.record", "MODE", "choice:always|on-demand|flight", "always", NULL,
		BC_RELOAD_RESTART,
		"`always`: record from the start. `on-demand`: when a request or a trigger starts "
		"it. `flight`: like `on-demand`, and until then keep the latest records in memory.",
		read_choice, FIELD(recording.mode)},
	{"recording.flight_time", "TIME", "time", "10s", NULL, BC_RELOAD_RESTART,
		"Age of the oldest records that the flight recorder keeps. 0: no limit.", read_time,
		FIELD(recording.flight_ns)},
	{"recording.flight_size", "SIZE", "size", "0", NULL, BC_RELOAD_RESTART,
		"Maximum size of the records that the flight recorder keeps; it must fit into the "
		"buffer next to what the workers need. 0: as much as fits.",
		read_size, FIELD(recording.flight_bytes)},
	{"recording.sampling", "WIDTH/PERIOD", "choice:all", "all", NULL, BC_RELOAD_NOW,
		"Record only the first WIDTH of each PERIOD of bus time, for example `10ms/1s`. "
		"`all`: everything.",
		read_sampling, FIELD(filter.sampling)},
	{"recording.metadata.KEY", "TEXT", "text", NULL, NULL, BC_RELOAD_NEXT_RECORDING,
		"Text of up to 1024 bytes, stored in each recording. KEY has up to 64 letters, "
		"digits, `.`, `_` and `-`. Empty: none.",
		BY_SECTION},
	{"filter.keep", "WORDS", "text", NULL, NULL, BC_RELOAD_NOW,
		"Record only what matches this condition or one of the `keep.NAME`. Without any, "
		"record everything. Up to 8 together.",
		BY_SECTION},
	{"filter.keep.NAME", "WORDS", "text", NULL, NULL, BC_RELOAD_NOW,
		"Another such condition. Empty: none.", BY_SECTION},
	{"filter.leave_out", "WORDS", "text", NULL, NULL, BC_RELOAD_NOW,
		"Exclude what matches this condition or one of the `leave_out.NAME`. Up to 8 "
		"together.",
		BY_SECTION},
	{"filter.leave_out.NAME", "WORDS", "text", NULL, NULL, BC_RELOAD_NOW,
		"Another such condition. Empty: none.", BY_SECTION},
	{"trigger NAME.when", "WHEN", "text", NULL, NULL, BC_RELOAD_NOW,
		"The event to wait for: a record that matches a condition; `board`, the board's "
		"trigger flag; `gap`, missing samples; or `idle TIME`, nothing for longer than "
		"this. Required.",
		BY_SECTION},
	{"trigger NAME.action", "ACTION", "choice:start|stop|toggle|snapshot|mark", NULL, NULL,
		BC_RELOAD_NOW,
		"What to do: `start`, `stop` or `toggle` a recording, take a `snapshot` of the "
		"flight recorder, or `mark`. Required.",
		BY_SECTION},
	{"trigger NAME.pre", "LENGTH", "length", "0", NULL, BC_RELOAD_NOW,
		"For start, toggle and snapshot with `record = flight`: how much from before the "
		"trigger to record. A time, a size (`16M`), or `all`.",
		BY_SECTION},
	{"trigger NAME.post", "LENGTH", "length", "0", NULL, BC_RELOAD_NOW,
		"End the recording that the trigger starts or stops this much later: a time (host "
		"time; in a replay, bus time) or a size of records. 0: a start sets no end, a stop "
		"takes effect immediately.",
		BY_SECTION},
	{"trigger NAME.text", "TEXT", "text", "NAME", NULL, BC_RELOAD_NOW,
		"Text of the mark or trigger event in the recording, up to 256 bytes.", BY_SECTION},
	{"trigger NAME.holdoff", "TIME", "time", "0", NULL, BC_RELOAD_NOW,
		"Ignore further matches for this long after acting: bus time, or host time if the "
		"bus clock is unknown.",
		BY_SECTION},
	{"rotation.filesize", "SIZE", "size", NULL, "-b filesize:", BC_RELOAD_NOW,
		"Start a new segment after the chunk that exceeds this size on disk. With "
		"`keep_raw`, a raw capture that exceeds it ends both files. A number without a "
		"unit is in kB (1000 bytes).",
		read_file_size, FIELD(rotation.file_bytes)},
	{"rotation.duration", "TIME", "time", NULL, "-b duration:", BC_RELOAD_NOW,
		"Start a new segment when the current one has lasted this long.",
		read_positive_time, FIELD(rotation.duration_ns)},
	{"rotation.interval", "TIME", "time", NULL, "-b interval:", BC_RELOAD_NOW,
		"Start a new segment whenever the clock reaches a multiple of this.",
		read_positive_time, FIELD(rotation.interval_ns)},
	{"rotation.files", "N", "number", NULL, "-b files:", BC_RELOAD_NOW,
		"Keep this many segments, including the open one, and delete older ones. Without "
		"another rule, it counts whole recordings.",
		read_positive_number, FIELD(rotation.files)},
	{"stop.duration", "TIME", "time", NULL, "-a duration:", BC_RELOAD_RESTART,
		"Stop after this time. With a board, it is counted from the first data.",
		read_positive_time, FIELD(stop.duration_ns)},
	{"stop.records", "N", "number", NULL, "-a records:", BC_RELOAD_RESTART,
		"Stop after exactly this many records.", read_positive_number, FIELD(stop.records)},
	{"stop.filesize", "SIZE", "size", NULL, "-a filesize:", BC_RELOAD_RESTART,
		"Stop after the chunk with which the recording exceeds this size. A number without "
		"a unit is in kB (1000 bytes).",
		read_file_size, FIELD(stop.file_bytes)},
	{"space.max_use", "SIZE", "size", NULL, NULL, BC_RELOAD_NOW,
		"Maximum size of all segments and raw captures in the directory. Without a "
		"`filesize` rule, each segment is limited to an eighth of it.",
		read_size, FIELD(space.max_use_bytes)},
	{"space.keep_free", "SIZE", "size", NULL, NULL, BC_RELOAD_NOW,
		"Space to keep free on the file system.", read_size, FIELD(space.keep_free_bytes)},
	{"space.max_age", "TIME", "time", NULL, NULL, BC_RELOAD_NOW,
		"Delete sealed segments that are older than this.", read_time,
		FIELD(space.max_age_ns)},
	{"pipeline.buffer", "SIZE", "size", "64M", NULL, BC_RELOAD_RESTART,
		"Memory for chunks on their way to the disk, and for raw bytes with `keep_raw`. "
		"Two workers need at least 8M, or 15M with `keep_raw`.",
		read_size, FIELD(buffer_bytes)},
	{"pipeline.workers", "N", "number", "one per core", NULL, BC_RELOAD_RESTART,
		"Number of encoder threads, 1 to 64.", read_workers, FIELD(workers)},
	{"pipeline.flush", "TIME", "time", "1s", NULL, BC_RELOAD_NOW,
		"Write a chunk this long after its first record, even if it is not full. At least "
		"1ms.",
		read_period, FIELD(flush_ns)},
	{"pipeline.sync", "TIME", "time", "200ms", NULL, BC_RELOAD_NOW,
		"Call fdatasync this often while there is new data. At least 1ms.", read_period,
		FIELD(sync_ns)},
	{"pipeline.stuck", "TIME", "time", "60s", NULL, BC_RELOAD_NOW,
		"If a worker or the writer hangs in one operation for this long, log it, and stop "
		"notifying the watchdog until it continues. 0: neither.",
		read_time, FIELD(stuck_ns)},
	{"mapping.invalid", "WHAT", "choice:drop|keep", "drop", NULL, BC_RELOAD_RESTART,
		"Invalid bus cycles: `drop` and count them, or `keep` them as type F0 + cycle.",
		read_choice, FIELD(mapping.keep_invalid)},
	{"mapping.size", "VERSION", "choice:v1.1|v1.0", "v1.1", NULL, BC_RELOAD_RESTART,
		"Version of the BYU format: `v1.1`, or `v1.0` without sizes above 8.", read_choice,
		FIELD(mapping.size_v1_0)},
	{"mapping.attr.CYCLE", "N", "number",
		"3 for I_FETCH, D_READ and WRITE_BACK, 1 for D_WRITE, 0 for all others", NULL,
		BC_RELOAD_RESTART,
		"The attr (memory type) of the records of a cycle type, 0 to 255. CYCLE is "
		"INT_ACK, SPECIAL, IO_READ, IO_WRITE, I_FETCH, NC_I_FETCH, D_READ, NC_D_READ, "
		"WRITE_BACK or D_WRITE.",
		BY_SECTION},
	{"socket.path", "PATH", "file", "/run/buscapd/buscapd.sock", "--socket, --no-socket",
		BC_RELOAD_RESTART,
		"Path of the socket. Empty: none. With `--once`, the default is none. A socket "
		"passed by systemd must have this path.",
		read_path, FIELD(socket)},
	{"socket.group", "GROUP", "text", "buscap", NULL, BC_RELOAD_RESTART,
		"Group that may connect, if it exists. It does not apply to a socket passed by "
		"systemd.",
		read_text, FIELD(socket_group)},
	{"socket.connections", "N", "number", "64", NULL, BC_RELOAD_RESTART,
		"Maximum number of clients, 1 to 4096. The owner (root and the user that buscapd "
		"runs as) can connect beyond it.",
		read_connections, FIELD(connections)},
	{"socket.reserve", "RIGHTS", "list:record|rotate|mark|note|snapshot|trigger|replay", NULL,
		NULL, BC_RELOAD_NOW,
		"Operations that only the owner may request, separated by commas: `record`, "
		"`rotate`, `mark`, `note`, `snapshot`, `trigger`, `replay`.",
		read_reserve, FIELD(reserve)},
	{"socket.metrics_listen", "ADDRESS:PORT", "choice:127.0.0.1:|[::1]:", NULL, NULL,
		BC_RELOAD_RESTART,
		"`127.0.0.1:PORT` or `[::1]:PORT`: serve `/metrics`, and nothing else, at this "
		"address. Empty: off.",
		read_metrics_listen, FIELD(metrics_listen)},
	{"log.level", "LEVEL", "choice:error|warning|notice|info|debug", "info", NULL,
		BC_RELOAD_NOW,
		"Log messages of this level and above: `error`, `warning`, `notice`, `info` or "
		"`debug`.",
		read_log_level, FIELD(log_level)},
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

/* [recording] metadata.KEY */
static bool set_metadata(
	struct bc_config *c, const char *key, const char *value, char *err, size_t errlen)
{
	char what[200];

	if (bc_metadata_set(c->recording.metadata, key, value, what, sizeof(what)))
		return true;
	snprintf(err, errlen, "metadata.%.80s = %.200s: %s", key, value, what);
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

static bool has_section(const char *section)
{
	size_t n = strlen(section);

	for (const struct bc_config_key *k = bc_config_keys; k->name != NULL; k++)
		if (strncmp(k->name, section, n) == 0 && k->name[n] == '.')
			return true;
	return false;
}

bool bc_config_set(struct bc_config *c, const char *section, const char *key, const char *value,
	char *err, size_t errlen)
{
	char what[200];

	if (strcmp(section, "filter") == 0)
		return bc_record_filter_set(&c->filter, key, value, err, errlen);
	if (strncmp(section, "trigger ", 8) == 0)
		return set_trigger(
			c, section + 8 + strspn(section + 8, " "), key, value, err, errlen);
	if (strcmp(section, "usb") == 0)
		return bc_usb_setting_read(&c->usb, key, value, err, errlen);
	if (strcmp(section, "mapping") == 0 && strncmp(key, "attr.", 5) == 0)
		return set_attr(c, key + 5, value, err, errlen);
	if (strcmp(section, "recording") == 0 && strncmp(key, "metadata.", 9) == 0)
		return set_metadata(c, key + 9, value, err, errlen);
	for (const struct bc_config_key *k = bc_config_keys; k->name != NULL; k++) {
		if (k->read == NULL || !is_named(k->name, section, key))
			continue;
		if (k->read(k, (char *)c + k->offset, value, what, sizeof(what)))
			return true;
		snprintf(err, errlen, "%s = %.200s: %s", key, value, what);
		return false;
	}
	if (section[0] == '\0')
		snprintf(err, errlen, "%s: key outside of a [section]", key);
	else if (has_section(section))
		snprintf(err, errlen, "[%s] %s: no such key", section, key);
	else
		snprintf(err, errlen, "[%s]: no such section", section);
	return false;
}
