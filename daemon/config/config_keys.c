/* The table of settings, and what is done with all of them: default, set, print, reload.
 *
 * Each row says everything about a key: its name, default, meaning, type, field, and when a change
 * takes effect. Keys that are made by the user ([trigger NAME], metadata.KEY, attr.CYCLE,
 * keep.NAME) share a field with an earlier row (SAME_FIELD) and are read by their own functions.
 *
 * Invariant: a key changes at SIGHUP if and only if its row says so (enum bc_reload_time): the
 * documents and the reload both read that column. */
#include "daemon/config/config_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config/config_types.h"
#include "formats/base/clock.h"
#include "formats/base/host.h"
#include "formats/base/suggest.h"
#include "formats/base/text.h"
#include "formats/segment/segment_header.h"

#define CONNECTIONS_MAX 4096u
#define MS_NS           UINT64_C(1000000)

/* Types of single keys */

/* The field is source_text. */
static bool read_source(BC_CONFIG_READER)
{
	struct bc_config *config = (struct bc_config *)((char *)field - key->offset);
	struct bc_usb_options usb = config->usb;
	struct bc_source_spec source;

	if (!bc_source_spec_read(&source, value, err, errlen) ||
		(source.kind == BC_SOURCE_USB &&
			!bc_usb_settings_read(&usb, source.usb, err, errlen)) ||
		!bc_type_text.read(key, field, value, err, errlen))
		return false;
	config->source = source;
	return true;
}

static bool read_speed(BC_CONFIG_READER)
{
	char *end;
	double speed = strtod(value, &end);

	(void)key;
	if (strcmp(value, "max") == 0)
		speed = 0;
	else if (strcmp(value, "realtime") == 0)
		speed = 1;
	else if (end == value || *end != '\0' || !(speed > 0 && speed <= 1e6))
		return bc_fail(err, errlen,
			"must be max, realtime, or a factor above 0 and up to 1000000");
	*(double *)field = speed;
	return true;
}

static void write_speed(BC_CONFIG_WRITER)
{
	const double *speed = field;

	(void)key;
	if (*speed > 0)
		snprintf(out, size, "%.17g", *speed);
	else
		snprintf(out, size, "max");
}

/* The field is the whole of [usb]. */
static bool read_usb_id(BC_CONFIG_READER)
{
	struct bc_usb_options *usb = field;
	unsigned vid;
	unsigned pid;
	int end = 0;

	(void)key;
	if (strspn(value, "0123456789abcdefABCDEF:") != strlen(value) ||
		sscanf(value, "%4x:%4x%n", &vid, &pid, &end) != 2 || value[end] != '\0')
		return bc_fail(err, errlen,
			"must be VID:PID, four hexadecimal digits each, for example 1209:0001");
	usb->match.vid = (uint16_t)vid;
	usb->match.pid = (uint16_t)pid;
	usb->has_id = true;
	return true;
}

static bool read_usb_port(BC_CONFIG_READER)
{
	if (value[0] != '\0' && !bc_usb_is_port(value))
		return bc_fail(err, errlen,
			"must be a port, such as 1-2 or 1-2.3; buscapd --list-boards shows them");
	return bc_type_text.read(key, field, value, err, errlen);
}

static void write_usb_id(BC_CONFIG_WRITER)
{
	const struct bc_usb_options *usb = field;

	(void)key;
	snprintf(out, size, "%04x:%04x", usb->match.vid, usb->match.pid);
}

static bool read_dir(BC_CONFIG_READER)
{
	if (value[0] == '\0')
		return bc_fail(err, errlen, "must not be empty");
	return bc_type_path.read(key, field, value, err, errlen);
}

static bool read_label(BC_CONFIG_READER)
{
	if (value[0] != '\0' && !bc_word_is_valid(value))
		return bc_fail(err, errlen, "must have up to 64 letters, digits, '.', '_' and '-'");
	return bc_type_text.read(key, field, value, err, errlen);
}

static bool read_command(BC_CONFIG_READER)
{
	if (value[0] != '\0' && value[0] != '/')
		return bc_fail(err, errlen,
			"must be an absolute path; the program is run without a shell, with one "
			"argument");
	return bc_type_text.read(key, field, value, err, errlen);
}

static bool read_sampling(BC_CONFIG_READER)
{
	(void)key;
	return bc_sampling_parse(field, value, err, errlen);
}

static void write_sampling(BC_CONFIG_WRITER)
{
	const struct bc_sampling *sampling = field;
	char width[BC_QUANTITY_TEXT_MAX];
	char period[BC_QUANTITY_TEXT_MAX];

	(void)key;
	bc_quantity_write(width, BC_QUANTITY_TIME, sampling->width_ns);
	bc_quantity_write(period, BC_QUANTITY_TIME, sampling->period_ns);
	if (sampling->period_ns == 0)
		snprintf(out, size, "all");
	else
		snprintf(out, size, "%s/%s", width, period);
}

static bool read_reserve(BC_CONFIG_READER)
{
	(void)key;
	return bc_permissions_parse(field, value, err, errlen);
}

static void write_reserve(BC_CONFIG_WRITER)
{
	uint32_t set = *(const uint32_t *)field;
	size_t used = 0;

	(void)key;
	out[0] = '\0';
	for (enum bc_permission p = 0; p < BC_PERMISSIONS && used < size; p++)
		if ((set & bc_permission_bit(p)) != 0)
			used += (size_t)snprintf(out + used, size - used, "%s%s",
				used != 0 ? ", " : "", bc_permission_name(p));
}

static bool read_metrics_listen(BC_CONFIG_READER)
{
	union bc_tcp_address address;

	if (value[0] != '\0' &&
		(!bc_tcp_address_parse(&address, value) || bc_tcp_address_port(&address) == 0 ||
			!bc_tcp_address_is_loopback(&address)))
		return bc_fail(err, errlen,
			"must be a loopback address and a port: 127.0.0.1:PORT or [::1]:PORT");
	return bc_type_text.read(key, field, value, err, errlen);
}

#define TYPE(name, reader, writer) \
	static const struct bc_config_type name = {.read = (reader), .write = (writer)}

TYPE(type_source, read_source, bc_config_write_text);
TYPE(type_speed, read_speed, write_speed);
TYPE(type_usb_id, read_usb_id, write_usb_id);
TYPE(type_usb_port, read_usb_port, bc_config_write_text);
TYPE(type_dir, read_dir, bc_config_write_text);
TYPE(type_label, read_label, bc_config_write_text);
TYPE(type_command, read_command, bc_config_write_text);
TYPE(type_sampling, read_sampling, write_sampling);
TYPE(type_reserve, read_reserve, write_reserve);
TYPE(type_metrics_listen, read_metrics_listen, bc_config_write_text);

/* Types of several keys, whose sections are read by bc_config_set() */

static void print_metadata(const struct bc_config *c, FILE *out)
{
	json_t *metadata = bc_metadata_parse(c->recording.metadata);

	for (void *at = json_object_iter(metadata); at != NULL;
		at = json_object_iter_next(metadata, at))
		fprintf(out, "metadata.%s = %s\n", json_object_iter_key(at),
			json_string_value(json_object_iter_value(at)));
	json_decref(metadata);
}

static void print_rules(const struct bc_record_filter_rules *rules, const char *key, FILE *out)
{
	for (unsigned i = 0; i < rules->count; i++)
		fprintf(out, "%s%s%s = %s\n", key, rules->rules[i].name[0] != '\0' ? "." : "",
			rules->rules[i].name, rules->rules[i].where);
}

static void print_keep(const struct bc_config *c, FILE *out)
{
	print_rules(&c->filter.keep, "keep", out);
}

static void print_leave_out(const struct bc_config *c, FILE *out)
{
	print_rules(&c->filter.leave_out, "leave_out", out);
}

static void print_attrs(const struct bc_config *c, FILE *out)
{
	for (unsigned cycle = 0; cycle < BC_CYCLE_TYPES; cycle++)
		if (bc_cycle_by_name(bc_cycle_name(cycle)) == (int)cycle)
			fprintf(out, "attr.%s = %u\n", bc_cycle_name(cycle),
				c->mapping.attr[cycle]);
}

static const struct bc_config_type type_metadata = {.print_lines = print_metadata};
static const struct bc_config_type type_keep = {.print_lines = print_keep};
static const struct bc_config_type type_leave_out = {.print_lines = print_leave_out};
static const struct bc_config_type type_attrs = {.print_lines = print_attrs};

/* [trigger NAME] */
static void print_triggers(const struct bc_config *c, FILE *out)
{
	for (unsigned i = 0; i < c->triggers_count; i++) {
		const struct bc_trigger *t = &c->triggers[i];
		char pre[BC_QUANTITY_TEXT_MAX];
		char post[BC_QUANTITY_TEXT_MAX];
		char holdoff[BC_QUANTITY_TEXT_MAX];

		bc_time_or_size_print(pre, t->pre);
		bc_time_or_size_print(post, t->post);
		bc_quantity_write(holdoff, BC_QUANTITY_TIME, t->holdoff_ns);
		fprintf(out,
			"\n[trigger %s]\nwhen = %s\naction = %s\npre = %s\npost = %s\ntext = %s\n"
			"holdoff = %s\n",
			t->name, t->when, bc_trigger_action_name(t->action), pre, post,
			bc_trigger_text(t), holdoff);
	}
}

#define FIELD(member)                                 \
	.offset = offsetof(struct bc_config, member), \
	.size = sizeof(((struct bc_config *)0)->member)
#define TRIGGERS                                        \
	.offset = offsetof(struct bc_config, triggers), \
	.size = offsetof(struct bc_config, rotation) - offsetof(struct bc_config, triggers)
#define SAME_FIELD .type = NULL /* belongs to the field of an earlier row */

_Static_assert(BC_FORMAT_RAW6 == BC_FORMAT_BCP1 + 1, "usb.protocol is a choice");

const struct bc_config_key bc_config_keys[] = {
	{"source.source", "SPEC", "choice:usb|usb:|sim|sim:|file:", NULL, "--source",
		BC_RELOAD_RESTART,
		"Where the samples come from: `usb[:SETTINGS]`, "
		"`file:PATH[,format=F][,clock_hz=N]` or `sim[:SETTINGS]`. Required.",
		&type_source, FIELD(source_text)},
	{"source.speed", "SPEED", "choice:max|realtime", "max", "--speed", BC_RELOAD_RESTART,
		"Pace of a file: `max`, `realtime`, or a factor up to 1000000. A paced file does "
		"not wait: samples that don't fit into the buffer are lost and counted.",
		&type_speed, FIELD(speed)},
	{"usb.id", "VID:PID", "text", "1209:0001", NULL, BC_RELOAD_RESTART,
		"VID:PID of the board, in hexadecimal.", &type_usb_id, FIELD(usb)},
	{"usb.serial", "SERIAL", "text", NULL, NULL, BC_RELOAD_RESTART,
		"Serial number of the board, up to 127 characters. Empty: any board with this id.",
		&bc_type_text, FIELD(usb.match.serial)},
	{"usb.port", "PORT", "text", NULL, NULL, BC_RELOAD_RESTART,
		"Port of the board, as `--list-boards` shows it: `1-2`, `1-2.3`. Empty: any port.",
		&type_usb_port, FIELD(usb.match.port)},
	{"usb.protocol", "PROTOCOL", "choice:bcp1|raw6", "bcp1", NULL, BC_RELOAD_RESTART,
		"What the board sends: `bcp1` or `raw6`.", &bc_type_choice, FIELD(usb.protocol),
		.min = BC_FORMAT_BCP1},
	{"usb.link", "LINK", "choice:plain|ftdi", "plain", NULL, BC_RELOAD_RESTART,
		"`plain`, or `ftdi` for a board with an FT2232H or FT232H chip. With `ftdi`, set "
		"`id` to the chip's.",
		&bc_type_choice, FIELD(usb.link)},
	{"usb.transfers", "N", "number", "64", NULL, BC_RELOAD_RESTART,
		"Number of USB transfers that wait for data, 1 to 256. Together they may take up "
		"to 256 MiB.",
		&bc_type_number, FIELD(usb.transfers), .min = 1, .max = BC_USB_TRANSFERS_MAX},
	{"usb.transfer_size", "SIZE", "size", "64KiB", NULL, BC_RELOAD_RESTART,
		"Size of each transfer, 4K to 16M. Larger transfers use less CPU time, but delay "
		"the data of a slow bus.",
		&bc_type_bytes, FIELD(usb.transfer_bytes), .min = BC_USB_TRANSFER_BYTES_MIN,
		.max = BC_USB_TRANSFER_BYTES_MAX},
	{"usb.transfer_timeout", "TIME", "time", "0", NULL, BC_RELOAD_RESTART,
		"Deliver a transfer that is not full after this time, at most 1h. 0: only when it "
		"is full.",
		&bc_type_time, FIELD(usb.timeout_ms), .max = 3600 * BC_NS_PER_S, .unit = MS_NS},
	{"usb.clock_hz", "N", "number", "0", NULL, BC_RELOAD_RESTART,
		"Bus clock of a board that does not report it, in ticks per second. 0: unknown.",
		&bc_type_number, FIELD(usb.clock_hz), .max = UINT64_C(1000000000000)},
	{"usb.wait", "TIME", "time", "10s", NULL, BC_RELOAD_RESTART,
		"With `--once`, wait this long for a board. 0: forever.", &bc_type_time,
		FIELD(usb.wait_ns)},
	{"usb.silence", "TIME", "time", "10s", NULL, BC_RELOAD_RESTART,
		"Warn after this long without data. 0: never.", &bc_type_time,
		FIELD(usb.silence_ns)},
	{"usb.silence_action", "ACTION", "choice:warn|restart", "warn", NULL, BC_RELOAD_RESTART,
		"What to do after that silence: `warn` only logs it; `restart` also resets and "
		"reopens the board.",
		&bc_type_choice, FIELD(usb.reset_on_silence)},
	{"usb.back_off", "TIME", "time", "100ms", NULL, BC_RELOAD_RESTART,
		"Delay before retrying a board that failed or was unplugged soon after it "
		"appeared, at least 1ms. It doubles with each attempt.",
		&bc_type_time, FIELD(usb.back_off_ns), .min = MS_NS},
	{"usb.back_off_max", "TIME", "time", "5s", NULL, BC_RELOAD_RESTART,
		"Upper limit of that delay. While there is no board, the bus is searched this "
		"often, even without an event from udev.",
		&bc_type_time, FIELD(usb.back_off_max_ns), .min = MS_NS},
	{"usb.ftdi_latency", "TIME", "time", "16ms", NULL, BC_RELOAD_RESTART,
		"The FTDI chip sends a packet that is not full after this time, 1ms to 255ms.",
		&bc_type_time, FIELD(usb.ftdi.latency_ms), .min = MS_NS, .max = 255 * MS_NS,
		.unit = MS_NS},
	{"usb.ftdi_mode", "MODE", "choice:sync-fifo|fifo", "sync-fifo", NULL, BC_RELOAD_RESTART,
		"Mode of the FTDI chip: `sync-fifo`, or `fifo` for the one that its EEPROM "
		"selects.",
		&bc_type_choice, FIELD(usb.ftdi.keeps_mode)},
	{"output.dir", "DIR", "dir", BC_SYSTEM_DIR, "-o", BC_RELOAD_RESTART,
		"Directory for the segments. It is created if missing; its parent must exist. "
		"Default of an ordinary user: `$XDG_DATA_HOME/buscapd`, created with its parents.",
		&type_dir, FIELD(dir)},
	{"output.label", "TEXT", "text", NULL, "--label", BC_RELOAD_RESTART,
		"Appended to the names of recordings: up to 64 letters, digits, `.`, `_` and `-`.",
		&type_label, FIELD(label)},
	{"output.compression", "LEVEL", "choice:lz4|fast|default|dense|zstd", "default", NULL,
		BC_RELOAD_RESTART,
		"How to compress the records: `lz4` with LZ4's own encoder; `fast`, `default` and "
		"`dense` with one for records, each smaller and slower than the one before. `fast` "
		"and `default` are also faster than `lz4`; `dense` is about as fast. `zstd` names "
		"the segments `.byu.zst`: for `zstd -dc`, not `lz4 -dc`. They are 0.4 to 0.7 "
		"times as long as with `default`; recording takes 1.2 to 1.9 times the CPU, and "
		"decoding 2 to 4 times.",
		&bc_type_choice, FIELD(compression)},
	{"output.sealed_command", "PROGRAM", "file", NULL, NULL, BC_RELOAD_NOW,
		"Absolute path of a program to run for each sealed segment, with its path as the "
		"only argument. Empty: none.",
		&type_command, FIELD(sealed_command)},
	{"output.sealed_timeout", "TIME", "time", "1h", NULL, BC_RELOAD_NOW,
		"End a run that takes longer, with all processes that it started: SIGTERM, then "
		"SIGKILL 2 s later. 0: no limit.",
		&bc_type_time, FIELD(sealed_timeout_ns)},
	{"recording.record", "MODE", "choice:always|on-demand|flight", "always", NULL,
		BC_RELOAD_RESTART,
		"`always`: record from the start. `on-demand`: when a request or a trigger starts "
		"it. `flight`: like `on-demand`, and until then keep the latest records in memory.",
		&bc_type_choice, FIELD(recording.mode)},
	{"recording.flight_time", "TIME", "time", "10s", NULL, BC_RELOAD_RESTART,
		"Age of the oldest records that the flight recorder keeps. 0: no limit.",
		&bc_type_time, FIELD(recording.flight_ns)},
	{"recording.flight_size", "SIZE", "size", "0", NULL, BC_RELOAD_RESTART,
		"Maximum size of the records that the flight recorder keeps; it must fit into the "
		"buffer next to what the workers need. 0: as much as fits.",
		&bc_type_bytes, FIELD(recording.flight_bytes)},
	{"recording.sampling", "WIDTH/PERIOD", "choice:all", "all", NULL, BC_RELOAD_NOW,
		"Record only the first WIDTH of each PERIOD of bus time, for example `10ms/1s`. "
		"`all`: everything.",
		&type_sampling, FIELD(filter.sampling)},
	{"recording.metadata.KEY", "TEXT", "text", NULL, NULL, BC_RELOAD_NEXT_RECORDING,
		"Text of up to 1024 bytes, stored in each recording. KEY has up to 64 letters, "
		"digits, `.`, `_` and `-`. Empty: none.",
		&type_metadata, FIELD(recording.metadata)},
	{"filter.keep", "WORDS", "text", NULL, NULL, BC_RELOAD_NOW,
		"Record only what matches this condition or one of the `keep.NAME`. Without any, "
		"record everything. Up to 8 together.",
		&type_keep, FIELD(filter.keep)},
	{"filter.keep.NAME", "WORDS", "text", NULL, NULL, BC_RELOAD_NOW,
		"Another such condition. Empty: none.", SAME_FIELD},
	{"filter.leave_out", "WORDS", "text", NULL, NULL, BC_RELOAD_NOW,
		"Exclude what matches this condition or one of the `leave_out.NAME`. Up to 8 "
		"together.",
		&type_leave_out, FIELD(filter.leave_out)},
	{"filter.leave_out.NAME", "WORDS", "text", NULL, NULL, BC_RELOAD_NOW,
		"Another such condition. Empty: none.", SAME_FIELD},
	{"trigger NAME.when", "WHEN", "text", NULL, NULL, BC_RELOAD_NOW,
		"The event to wait for: a record that matches a condition; `board`, the board's "
		"trigger flag; `gap`, missing samples; or `idle TIME`, nothing for longer than "
		"this. Required.",
		NULL, TRIGGERS},
	{"trigger NAME.action", "ACTION", "choice:start|stop|toggle|snapshot|mark", NULL, NULL,
		BC_RELOAD_NOW,
		"What to do: `start`, `stop` or `toggle` a recording, take a `snapshot` of the "
		"flight recorder, or `mark`. Required.",
		SAME_FIELD},
	{"trigger NAME.pre", "LENGTH", "length", "0", NULL, BC_RELOAD_NOW,
		"For start, toggle and snapshot with `record = flight`: how much from before the "
		"trigger to record. A time, a size (`16M`), or `all`. 0: nothing; for a snapshot, "
		"all.",
		SAME_FIELD},
	{"trigger NAME.post", "LENGTH", "length", "0", NULL, BC_RELOAD_NOW,
		"End the recording that the trigger starts or stops this much later: a time (host "
		"time; in a replay, bus time) or a size of records. 0: a start sets no end, a stop "
		"takes effect immediately.",
		SAME_FIELD},
	{"trigger NAME.text", "TEXT", "text", "NAME", NULL, BC_RELOAD_NOW,
		"Text of the mark or trigger event in the recording, up to 256 bytes.", SAME_FIELD},
	{"trigger NAME.holdoff", "TIME", "time", "0", NULL, BC_RELOAD_NOW,
		"Ignore further matches for this long after acting: bus time, or host time if the "
		"bus clock is unknown.",
		SAME_FIELD},
	{"rotation.filesize", "SIZE", "size", NULL, "-b filesize:", BC_RELOAD_NOW,
		"Start a new segment after the chunk that exceeds this size on disk.",
		&bc_type_bytes, FIELD(rotation.file_bytes), .min = 1},
	{"rotation.duration", "TIME", "time", NULL, "-b duration:", BC_RELOAD_NOW,
		"Start a new segment when the current one has lasted this long.", &bc_type_time,
		FIELD(rotation.duration_ns), .min = 1},
	{"rotation.interval", "TIME", "time", NULL, "-b interval:", BC_RELOAD_NOW,
		"Start a new segment whenever the clock reaches a multiple of this.", &bc_type_time,
		FIELD(rotation.interval_ns), .min = 1},
	{"rotation.files", "N", "number", NULL, "-b files:", BC_RELOAD_NOW,
		"Keep this many segments, including the open one, and delete older ones.",
		&bc_type_number, FIELD(rotation.files), .min = 1},
	{"stop.duration", "TIME", "time", NULL, "-a duration:", BC_RELOAD_RESTART,
		"Stop after this time. With a board, it is counted from the first data.",
		&bc_type_time, FIELD(stop.duration_ns), .min = 1},
	{"stop.records", "N", "number", NULL, "-a records:", BC_RELOAD_RESTART,
		"Stop after exactly this many records.", &bc_type_number, FIELD(stop.records),
		.min = 1},
	{"stop.filesize", "SIZE", "size", NULL, "-a filesize:", BC_RELOAD_RESTART,
		"Stop after the chunk with which the recording exceeds this size.", &bc_type_bytes,
		FIELD(stop.file_bytes), .min = 1},
	{"space.max_use", "SIZE", "size", NULL, NULL, BC_RELOAD_NOW,
		"Maximum size of all segments in the directory. Without a `filesize` rule, each "
		"segment is limited to an eighth of this.",
		&bc_type_bytes, FIELD(space.max_use_bytes)},
	{"space.keep_free", "SIZE", "size", NULL, NULL, BC_RELOAD_NOW,
		"Space to keep free on the file system.", &bc_type_bytes,
		FIELD(space.keep_free_bytes)},
	{"space.max_age", "TIME", "time", NULL, NULL, BC_RELOAD_NOW,
		"Delete sealed segments that are older than this.", &bc_type_time,
		FIELD(space.max_age_ns)},
	{"space.disk_low", "TIME", "time", "1h", NULL, BC_RELOAD_NOW,
		"Warn, and send the event `disk-low`, when the disk will be full in less than this "
		"at the current rate. 0: never.",
		&bc_type_time, FIELD(disk_low_ns)},
	{"pipeline.buffer", "SIZE", "size", "64MiB", NULL, BC_RELOAD_RESTART,
		"Memory for chunks on their way to the disk. Two workers need at least 8M.",
		&bc_type_bytes, FIELD(buffer_bytes)},
	{"pipeline.workers", "N", "number", "one per core", NULL, BC_RELOAD_RESTART,
		"Number of encoder threads, 1 to 64.", &bc_type_number, FIELD(workers), .min = 1,
		.max = BC_WORKERS_MAX},
	{"pipeline.flush", "TIME", "time", "1s", NULL, BC_RELOAD_NOW,
		"Write a chunk this long after its first record or event, even if it is not full. "
		"At least 1ms.",
		&bc_type_time, FIELD(flush_ns), .min = MS_NS},
	{"pipeline.sync", "TIME", "time", "200ms", NULL, BC_RELOAD_NOW,
		"Call fdatasync this often while there is new data. At least 1ms.", &bc_type_time,
		FIELD(sync_ns), .min = MS_NS},
	{"pipeline.stuck", "TIME", "time", "1min", NULL, BC_RELOAD_NOW,
		"If a worker, writer or sealer hangs in one call for this long, log it, "
		"and stop notifying the watchdog until it continues. 0: neither.",
		&bc_type_time, FIELD(stuck_ns)},
	{"mapping.invalid", "WHAT", "choice:drop|keep", "drop", NULL, BC_RELOAD_RESTART,
		"Invalid bus cycles: `drop` and count them, or `keep` them as type F0 + cycle.",
		&bc_type_choice, FIELD(mapping.keep_invalid)},
	{"mapping.size", "VERSION", "choice:v1.1|v1.0", "v1.1", NULL, BC_RELOAD_RESTART,
		"Version of the BYU format: `v1.1`, or `v1.0` without sizes above 8.",
		&bc_type_choice, FIELD(mapping.size_v1_0)},
	{"mapping.attr.CYCLE", "N", "number",
		"3 for I_FETCH, D_READ and WRITE_BACK, 1 for D_WRITE, 0 for all others", NULL,
		BC_RELOAD_RESTART,
		"The attr (memory type) of the records of a cycle type, 0 to 255. CYCLE is "
		"INT_ACK, SPECIAL, IO_READ, IO_WRITE, I_FETCH, NC_I_FETCH, D_READ, NC_D_READ, "
		"WRITE_BACK or D_WRITE.",
		&type_attrs, FIELD(mapping.attr)},
	{"socket.path", "PATH", "file", BC_SYSTEM_SOCKET, "--socket, --no-socket",
		BC_RELOAD_RESTART,
		"Path of the socket. Default of an ordinary user: `$XDG_RUNTIME_DIR/buscapd.sock`, "
		"or none without that variable. Empty: none. With `--once`, none unless the "
		"command line sets it. A socket passed by systemd must have this path.",
		&bc_type_path, FIELD(socket)},
	{"socket.group", "GROUP", "text", "buscap", NULL, BC_RELOAD_RESTART,
		"Group that may connect, if it exists. It does not apply to a socket passed by "
		"systemd.",
		&bc_type_text, FIELD(socket_group)},
	{"socket.connections", "N", "number", "64", NULL, BC_RELOAD_RESTART,
		"Maximum number of clients, 1 to 4096. The owner (root and the user that buscapd "
		"runs as) can connect beyond it.",
		&bc_type_number, FIELD(connections), .min = 1, .max = CONNECTIONS_MAX},
	{"socket.reserve", "RIGHTS", "list:record|rotate|mark|note|snapshot|trigger", NULL, NULL,
		BC_RELOAD_NOW,
		"Operations that only the owner may request, separated by commas: `record`, "
		"`rotate`, `mark`, `note`, `snapshot`, `trigger`.",
		&type_reserve, FIELD(reserve)},
	{"socket.metrics_listen", "ADDRESS:PORT", "choice:127.0.0.1:|[::1]:", NULL, NULL,
		BC_RELOAD_RESTART,
		"Serve `/metrics`, and nothing else, at this loopback address: `127.0.0.1:PORT`, "
		"`[::1]:PORT` or `localhost:PORT`. Empty: off.",
		&type_metrics_listen, FIELD(metrics_listen)},
	{"names.map", "FILE", "file", NULL, NULL, BC_RELOAD_NOW,
		"File with names of memory regions and I/O ports, for `region=NAME` in filters and "
		"triggers. Those of a PC are always known. It is read at the start and on SIGHUP.",
		&bc_type_path, FIELD(names_map)},
	{"names.symbols", "FILE[:OFFSET]", "file", NULL, NULL, BC_RELOAD_NOW,
		"ELF file or System.map whose symbols are names too, with a hexadecimal offset "
		"that is added to their addresses.",
		&bc_type_path, FIELD(names_symbols)},
	{"log.level", "LEVEL", "choice:error|warning|notice|info|debug", "info", NULL,
		BC_RELOAD_NOW,
		"Log messages of this level and above: `error`, `warning`, `notice`, `info` or "
		"`debug`.",
		&bc_type_choice, FIELD(log_level), .min = BC_LOG_ERROR},
	{0},
};

void bc_config_default(struct bc_config *c)
{
	c->mapping = bc_mapping_options_default();
	bc_config_keys_default(bc_config_keys, c);
	c->usb.has_id = false;
	if (!bc_user_dir(c->dir, sizeof(c->dir)))
		snprintf(c->dir, sizeof(c->dir), BC_SYSTEM_DIR);
	if (bc_user_is_ordinary())
		(void)bc_user_socket(c->socket);
	if (gethostname(c->host, sizeof(c->host) - 1) != 0)
		snprintf(c->host, sizeof(c->host), "unknown");
	c->workers = bc_cores() < BC_WORKERS_MAX ? bc_cores() : BC_WORKERS_MAX;
}

/* [mapping] attr.CYCLE */
static bool set_attr(
	struct bc_config *c, const char *name, const char *value, char *err, size_t errlen)
{
	int cycle = bc_cycle_by_name(name);
	uint64_t attr;

	if (cycle < 0)
		return bc_fail(err, errlen,
			"unknown cycle type; use INT_ACK, SPECIAL, IO_READ, IO_WRITE, I_FETCH, "
			"NC_I_FETCH, D_READ, NC_D_READ, WRITE_BACK or D_WRITE");
	if (!bc_number_read(&attr, value) || attr > 255)
		return bc_fail(err, errlen, "must be a number from 0 to 255");
	c->mapping.attr[cycle] = (uint8_t)attr;
	return true;
}

/* [trigger NAME]: its first key adds the trigger. */
static bool set_trigger(struct bc_config *c, const char *name, const char *key, const char *value,
	char *err, size_t errlen)
{
	unsigned i = 0;

	while (i < c->triggers_count && strcmp(c->triggers[i].name, name) != 0)
		i++;
	if (i == BC_TRIGGERS_CONFIGURED)
		return bc_fail(
			err, errlen, "too many triggers; the limit is %u", BC_TRIGGERS_CONFIGURED);
	if (i == c->triggers_count && !bc_trigger_init(&c->triggers[i], name, err, errlen))
		return false;
	if (!bc_trigger_set(&c->triggers[i], key, value, err, errlen))
		return false;
	c->triggers_count += i == c->triggers_count;
	return true;
}

/* True if a name is "SECTION.KEY". */
static bool is_named(const char *name, const char *section, const char *key)
{
	size_t n = strlen(section);

	return strncmp(name, section, n) == 0 && name[n] == '.' && strcmp(name + n + 1, key) == 0;
}

bool bc_config_check_section(const char *section, char *err, size_t errlen)
{
	struct bc_suggestion s = bc_suggestion_start(section);
	char known[BC_SUGGESTION_BYTES + 1];
	size_t n = strlen(section);

	if (strncmp(section, "trigger ", 8) == 0)
		return bc_setting_name_is_valid(section + 8 + strspn(section + 8, " ")) ||
		       bc_fail(err, errlen,
			       "the name must have up to 32 letters, digits, '_' and '-'");
	for (const struct bc_config_key *k = bc_config_keys; k->name != NULL; k++) {
		if (strncmp(k->name, section, n) == 0 && k->name[n] == '.')
			return true;
		snprintf(known, sizeof(known), "%.*s", (int)strcspn(k->name, "."), k->name);
		bc_suggestion_add(&s, known, k->name);
	}
	if (s.nearest != NULL)
		return bc_fail(err, errlen, "no such section; did you mean [%.*s]?",
			(int)strcspn(s.nearest, "."), s.nearest);
	return bc_fail(err, errlen, "no such section; see buscapd --list-settings");
}

/* Reports a key that the section doesn't have: another may have it, or this one a similar key. */
static bool fail_key(const char *section, const char *key, char *err, size_t errlen)
{
	struct bc_suggestion s = bc_suggestion_start(key);
	const char *other = NULL;
	size_t n = strlen(section);

	for (const struct bc_config_key *k = bc_config_keys; k->name != NULL; k++) {
		const char *name = strchr(k->name, '.') + 1;
		if (strncmp(k->name, section, n) == 0 && k->name[n] == '.')
			bc_suggestion_add(&s, name, name);
		else if (strcmp(name, key) == 0)
			other = k->name;
	}
	if (other != NULL)
		return bc_fail(err, errlen, "no such key in [%s]; did you mean [%.*s]?", section,
			(int)strcspn(other, "."), other);
	if (s.nearest != NULL)
		return bc_fail(
			err, errlen, "no such key in [%s]; did you mean %s?", section, s.nearest);
	return bc_fail(err, errlen, "no such key in [%s]; see buscapd --list-settings", section);
}

bool bc_config_set(struct bc_config *c, const char *section, const char *key, const char *value,
	char *err, size_t errlen)
{
	if (strcmp(section, "filter") == 0)
		return bc_record_filter_set(&c->filter, key, value, err, errlen);
	if (strncmp(section, "trigger ", 8) == 0)
		return set_trigger(
			c, section + 8 + strspn(section + 8, " "), key, value, err, errlen);
	if (strcmp(section, "mapping") == 0 && strncmp(key, "attr.", 5) == 0)
		return set_attr(c, key + 5, value, err, errlen);
	if (strcmp(section, "recording") == 0 && strncmp(key, "metadata.", 9) == 0)
		return bc_metadata_set(c->recording.metadata, key + 9, value, err, errlen);
	for (const struct bc_config_key *k = bc_config_keys; k->name != NULL; k++)
		if (k->type != NULL && k->type->read != NULL && is_named(k->name, section, key))
			return k->type->read(k, (char *)c + k->offset, value, err, errlen);
	if (section[0] == '\0')
		return bc_fail(err, errlen, "key outside of a [section]");
	return bc_config_check_section(section, err, errlen) && fail_key(section, key, err, errlen);
}

const char *bc_config_reason(const char *err, const char *value)
{
	size_t n = strlen(value);

	return n != 0 && strncmp(err, value, n) == 0 && strncmp(err + n, ": ", 2) == 0 ? err + n + 2
										       : err;
}

/* Settings of a board in a source, "key=value,key=value" */

static bool set_usb_key(struct bc_usb_options *options, const char *name, const char *value,
	char *err, size_t errlen)
{
	for (const struct bc_config_key *k = bc_config_keys; k->name != NULL; k++)
		if (is_named(k->name, "usb", name))
			return k->type->read(k,
				(char *)options + k->offset - offsetof(struct bc_config, usb),
				value, err, errlen);
	return fail_key("usb", name, err, errlen);
}

bool bc_usb_settings_read(
	struct bc_usb_options *options, const char *text, char *err, size_t errlen)
{
	char copy[1024];
	char what[200];
	char *rest = copy;
	char *setting;

	if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy))
		return bc_fail(err, errlen, "settings too long");
	while (copy[0] != '\0' && (setting = strsep(&rest, ",")) != NULL) {
		char *equals = strchr(setting, '=');
		if (equals == NULL)
			return bc_fail(err, errlen, "%s: not KEY=VALUE; try serial=A1", setting);
		*equals = '\0';
		if (!set_usb_key(options, setting, equals + 1, what, sizeof(what)))
			return bc_fail(err, errlen, "%s: %s", setting, what);
	}
	return true;
}

struct bc_usb_options bc_config_usb(const struct bc_config *c)
{
	struct bc_usb_options usb = c->usb;
	char err[64];

	/* Can't fail: it was checked when the source was set. */
	if (!bc_usb_settings_read(&usb, c->source.usb, err, sizeof(err)))
		return c->usb;
	return usb;
}

/* Printing and reloading */

static void write_value(
	const struct bc_config_key *k, const struct bc_config *c, char out[BC_CONFIG_VALUE_MAX])
{
	k->type->write(k, (const char *)c + k->offset, out, BC_CONFIG_VALUE_MAX);
}

/* A rule that is not set is 0, which it can't be set to: it becomes a comment. */
void bc_config_print(FILE *out, const struct bc_config *config)
{
	struct bc_config c = *config;
	char value[BC_CONFIG_VALUE_MAX];
	const char *last = "";

	c.usb = bc_config_usb(config);
	for (const struct bc_config_key *k = bc_config_keys; k->name != NULL; k++) {
		size_t n = strcspn(k->name, ".");
		if (k->size != 0 && k->type == NULL) {
			print_triggers(&c, out);
			continue;
		}
		if (k->type == NULL)
			continue;
		if (strncmp(k->name, last, n + 1) != 0)
			fprintf(out, "%s[%.*s]\n", last[0] != '\0' ? "\n" : "", (int)n, k->name);
		last = k->name;
		if (k->type->print_lines != NULL) {
			k->type->print_lines(&c, out);
			continue;
		}
		write_value(k, &c, value);
		bool is_unset = k->min != 0 && strcmp(value, "0") == 0;
		fprintf(out, "%s%s =%s%s\n", is_unset ? "#" : "", k->name + n + 1,
			value[0] != '\0' && !is_unset ? " " : "", is_unset ? "" : value);
	}
}

/* A field without write() has no padding. */
static bool differs(
	const struct bc_config_key *k, const struct bc_config *a, const struct bc_config *b)
{
	char x[BC_CONFIG_VALUE_MAX];
	char y[BC_CONFIG_VALUE_MAX];

	if (k->type == NULL || k->type->write == NULL)
		return memcmp((const char *)a + k->offset, (const char *)b + k->offset, k->size) !=
		       0;
	write_value(k, a, x);
	write_value(k, b, y);
	return strcmp(x, y) != 0;
}

void bc_config_reload(struct bc_config *config, const struct bc_config *new, void *context,
	void (*on_change)(void *context, const char *name, bool is_applied))
{
	for (const struct bc_config_key *k = bc_config_keys; k->name != NULL; k++) {
		bool is_applied = k->reload != BC_RELOAD_RESTART;
		if (differs(k, config, new))
			on_change(context, k->type != NULL ? k->name : "triggers", is_applied);
		if (is_applied)
			memcpy((char *)config + k->offset, (const char *)new + k->offset, k->size);
	}
}
