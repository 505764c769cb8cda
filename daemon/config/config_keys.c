#include "daemon/config/config_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/usb_settings.h"

#define CONNECTIONS_MAX 4096u

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
	return complain(err, errlen, "speed is max, realtime, or how many times that");
}

static bool read_text(char *out, size_t out_room, const char *value, char *err, size_t errlen)
{
	if ((size_t)snprintf(out, out_room, "%s", value) >= out_room)
		return complain(err, errlen, "too long");
	return true;
}

/* A path as it is. A shell would have put the home directory there, and a directory named "~" is
 * hardly meant. */
static bool read_path(char *out, size_t out_room, const char *value, char *err, size_t errlen)
{
	if (value[0] == '~' && (value[1] == '/' || value[1] == '\0'))
		return complain(err, errlen,
			"~ stands for no directory here: write the path in full (./~ if it is "
			"named so)");
	return read_text(out, out_room, value, err, errlen);
}

static bool read_dir(struct bc_config *c, const char *value, char *err, size_t errlen)
{
	if (value[0] == '\0')
		return complain(err, errlen, "dir wants a directory");
	return read_path(c->dir, sizeof(c->dir), value, err, errlen);
}

static bool read_label(struct bc_config *c, const char *value, char *err, size_t errlen)
{
	if (value[0] != '\0' && !bc_word_is_valid(value))
		return complain(err, errlen,
			"a label has up to 64 letters, digits, points, underscores and dashes");
	return read_text(c->label, sizeof(c->label), value, err, errlen);
}

static bool read_keep_raw(struct bc_config *c, const char *value, char *err, size_t errlen)
{
	c->keep_raw = strcmp(value, "yes") == 0;
	return c->keep_raw || strcmp(value, "no") == 0 ||
	       complain(err, errlen, "keep_raw is yes or no");
}

static bool read_size(uint64_t *bytes, const char *value, char *err, size_t errlen)
{
	return bc_size_read(bytes, value, 1) ||
	       complain(err, errlen, "a size is a number of bytes, or with K, M, G or T");
}

static bool read_time(uint64_t *ns, const char *value, uint64_t least, char *err, size_t errlen)
{
	return (bc_time_read(ns, value) && *ns >= least) ||
	       complain(err, errlen, "a time is a number of seconds, or with ms, s, m, h or d");
}

static bool read_sealed_command(struct bc_config *c, const char *value, char *err, size_t errlen)
{
	if (value[0] != '\0' && value[0] != '/')
		return complain(err, errlen,
			"sealed_command is the absolute path of a program; it is run without a "
			"shell and given one argument, the file");
	return read_text(c->sealed_command, sizeof(c->sealed_command), value, err, errlen);
}

static bool read_sealed_timeout(struct bc_config *c, const char *v, char *err, size_t errlen)
{
	return read_time(&c->sealed_timeout_ns, v, 0, err, errlen);
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
	return read_time(&c->space.max_age_ns, v, 0, err, errlen);
}

static bool read_buffer(struct bc_config *c, const char *v, char *err, size_t errlen)
{
	return read_size(&c->buffer_bytes, v, err, errlen);
}

static bool read_workers(struct bc_config *c, const char *value, char *err, size_t errlen)
{
	uint64_t workers;

	if (!bc_number_read(&workers, value) || workers < 1 || workers > BC_WORKERS_MAX)
		return complain(err, errlen, "workers is a number from 1 to 64");
	c->workers = (unsigned)workers;
	return true;
}

static bool read_flush(struct bc_config *c, const char *v, char *err, size_t errlen)
{
	return read_time(&c->flush_ns, v, 1000000, err, errlen);
}

static bool read_sync(struct bc_config *c, const char *v, char *err, size_t errlen)
{
	return read_time(&c->sync_ns, v, 1000000, err, errlen);
}

static bool read_stuck(struct bc_config *c, const char *v, char *err, size_t errlen)
{
	return read_time(&c->stuck_ns, v, 0, err, errlen);
}

static bool read_invalid(struct bc_config *c, const char *value, char *err, size_t errlen)
{
	c->mapping.keep_invalid = strcmp(value, "keep") == 0;
	return c->mapping.keep_invalid || strcmp(value, "drop") == 0 ||
	       complain(err, errlen, "invalid is drop or keep");
}

static bool read_size_version(struct bc_config *c, const char *value, char *err, size_t errlen)
{
	c->mapping.size_v1_0 = strcmp(value, "v1.0") == 0;
	return c->mapping.size_v1_0 || strcmp(value, "v1.1") == 0 ||
	       complain(err, errlen, "size is v1.1, or v1.0 for sizes of 8 at most");
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
		return complain(err, errlen, "connections is a number from 1 to 4096");
	c->connections = (unsigned)connections;
	return true;
}

static bool read_reserve(struct bc_config *c, const char *v, char *err, size_t errlen)
{
	return bc_permissions_parse(&c->reserve, v, err, errlen);
}

static bool read_metrics_listen(struct bc_config *c, const char *v, char *err, size_t errlen)
{
	return bc_loopback_read(&c->metrics_listen, v, err, errlen);
}

static bool read_log_level(struct bc_config *c, const char *value, char *err, size_t errlen)
{
	int level = bc_log_level_by_name(value);

	if (level < 0)
		return complain(err, errlen, "level is error, warning, notice, info or debug");
	c->log_level = (enum bc_log_level)level;
	return true;
}

const struct bc_config_key bc_config_keys[] = {
	{{0, "source.source", "SPEC", "choice:usb|usb:|sim|sim:|file:",
		 "where the samples come from: usb[:SETTINGS], file:PATH[,format=F][,clock_hz=N] "
		 "or "
		 "sim[:SETTINGS]"},
		read_source},
	{{0, "source.speed", "SPEED", "choice:max|realtime",
		 "pace of a file: max, realtime, or a factor (max)"},
		read_speed},
	{{0, "usb.id", "VID:PID", "text", "the board's, in hexadecimal (1209:0001)"}, NULL},
	{{0, "usb.serial", "SERIAL", "text", "the board's serial number; empty: any"}, NULL},
	{{0, "usb.protocol", "PROTOCOL", "choice:bcp1|raw6", "what the board sends (bcp1)"}, NULL},
	{{0, "usb.link", "LINK", "choice:plain|ftdi",
		 "ftdi: through an FT2232H or FT232H, whose id must be given (plain)"},
		NULL},
	{{0, "usb.transfers", "N", "number", "so many are in flight, 1 to 256 (16)"}, NULL},
	{{0, "usb.transfer_size", "SIZE", "size", "of each transfer, 4K to 16M (64K)"}, NULL},
	{{0, "usb.transfer_timeout", "TIME", "time",
		 "a transfer that isn't full hands over what it has after this time; 0: none (0)"},
		NULL},
	{{0, "usb.clock_hz", "N", "number",
		 "the bus clock of a board that doesn't tell its own; 0: not known (0)"},
		NULL},
	{{0, "usb.wait", "TIME", "time",
		 "with --once a board must come within this time; 0: wait for ever (10s)"},
		NULL},
	{{0, "usb.silence", "TIME", "time", "no data for so long is said; 0: never (10s)"}, NULL},
	{{0, "usb.silence_action", "ACTION", "choice:say|restart",
		 "restart: the board is reset and opened anew, too (say)"},
		NULL},
	{{0, "usb.back_off", "TIME", "time",
		 "before a board that failed, or left soon after it came, is tried again; twice as "
		 "long each time (100ms)"},
		NULL},
	{{0, "usb.back_off_max", "TIME", "time", "the longest back_off (5s)"}, NULL},
	{{0, "usb.ftdi_latency", "TIME", "time",
		 "the chip sends a packet that isn't full after this time, 1 to 255 ms (16ms)"},
		NULL},
	{{0, "usb.ftdi_mode", "MODE", "choice:sync-fifo|fifo",
		 "fifo: as the chip's EEPROM chose (sync-fifo)"},
		NULL},
	{{0, "output.dir", "DIR", "dir", "where segments go (/var/lib/buscapd)"}, read_dir},
	{{0, "output.label", "TEXT", "text",
		 "added to the name of the recording: letters, digits, '.', '_', '-', up to 64"},
		read_label},
	{{0, "output.keep_raw", "YES", "choice:yes|no",
		 "what a live source sends is saved as well, as it came, beside each segment (no)"},
		read_keep_raw},
	{{0, "output.sealed_command", "PROGRAM", "file",
		 "the absolute path of a program that is run for each sealed file; empty: none"},
		read_sealed_command},
	{{0, "output.sealed_timeout", "TIME", "time",
		 "a run of it that takes longer is ended; 0: none is (1h)"},
		read_sealed_timeout},
	{{0, "recording.record", "MODE", "choice:always|on-demand|flight",
		 "always: from the start; on-demand: when a request or a trigger says so; flight: "
		 "the same, and what came last is kept in memory until then (always)"},
		NULL},
	{{0, "recording.flight_time", "TIME", "time",
		 "the flight recorder holds the last so much time; 0: no such limit (10s)"},
		NULL},
	{{0, "recording.flight_size", "SIZE", "size",
		 "and no more than so many bytes of records; 0: no such limit (0)"},
		NULL},
	{{0, "recording.sampling", "WIDTH/PERIOD", "choice:all",
		 "the first so much of each so much of the bus's time, as 10ms/1s (all)"},
		NULL},
	{{0, "recording.metadata.KEY", "TEXT", "text", "noted on each recording; empty: none"},
		NULL},
	{{0, "filter.keep", "WORDS", "text",
		 "what is recorded: what one of these asks for; without any, everything"},
		NULL},
	{{0, "filter.keep.NAME", "WORDS", "text", "one more of these"}, NULL},
	{{0, "filter.leave_out", "WORDS", "text", "but for what one of these asks for"}, NULL},
	{{0, "filter.leave_out.NAME", "WORDS", "text", "one more of these"}, NULL},
	{{0, "trigger NAME.when", "WHEN", "text",
		 "what it waits for: words as of filters, board, gap or idle TIME"},
		NULL},
	{{0, "trigger NAME.action", "ACTION", "choice:start|stop|toggle|snapshot|mark",
		 "what it does then"},
		NULL},
	{{0, "trigger NAME.pre", "LENGTH", "length",
		 "with record = flight: so much from before goes into the recording: a time, a "
		 "size "
		 "or all (0)"},
		NULL},
	{{0, "trigger NAME.post", "LENGTH", "length",
		 "the recording that it starts, or stops, ends so much later: a time or a size "
		 "(0)"},
		NULL},
	{{0, "trigger NAME.text", "TEXT", "text",
		 "of the mark or trigger that stands in the recording (NAME)"},
		NULL},
	{{0, "trigger NAME.holdoff", "TIME", "time",
		 "after it acted it doesn't act for so long (0)"},
		NULL},
	{{0, "rotation.filesize", "SIZE", "size",
		 "new segment after the chunk that passes this size on disk"},
		NULL},
	{{0, "rotation.duration", "TIME", "time", "new segment this long after the last began"},
		NULL},
	{{0, "rotation.interval", "TIME", "time", "new segment at multiples of this of the clock"},
		NULL},
	{{0, "rotation.files", "N", "number", "keep so many segments, the open one among them"},
		NULL},
	{{0, "stop.duration", "TIME", "time", "stop after this time"}, NULL},
	{{0, "stop.records", "N", "number", "stop after exactly so many records"}, NULL},
	{{0, "stop.filesize", "SIZE", "size",
		 "stop after the chunk with which the recording passes this size"},
		NULL},
	{{0, "space.max_use", "SIZE", "size", "most space for all files in the directory"},
		read_max_use},
	{{0, "space.keep_free", "SIZE", "size", "space that must stay free on the file system"},
		read_keep_free},
	{{0, "space.max_age", "TIME", "time", "sealed segments older than this are deleted"},
		read_max_age},
	{{0, "pipeline.buffer", "SIZE", "size", "memory for chunks on their way to the disk (64M)"},
		read_buffer},
	{{0, "pipeline.workers", "N", "number", "encoder threads, 1 to 64 (one a core)"},
		read_workers},
	{{0, "pipeline.flush", "TIME", "time",
		 "a chunk is written this long after its first record, full or not (1s)"},
		read_flush},
	{{0, "pipeline.sync", "TIME", "time",
		 "fdatasync this often while there is something new (200ms)"},
		read_sync},
	{{0, "pipeline.stuck", "TIME", "time",
		 "a worker or the writer that is at one thing longer is told in the log, and the "
		 "watchdog not fed; 0: neither (60s)"},
		read_stuck},
	{{0, "mapping.invalid", "WHAT", "choice:drop|keep",
		 "invalid bus cycles: drop and count them, or keep them as type F0 + cycle (drop)"},
		read_invalid},
	{{0, "mapping.size", "VERSION", "choice:v1.1|v1.0", "v1.0: no size above 8 (v1.1)"},
		read_size_version},
	{{0, "mapping.attr.CYCLE", "N", "number", "the attr of a cycle type's records, 0 to 255"},
		NULL},
	{{0, "socket.path", "PATH", "file", "the socket; empty: none (/run/buscapd/buscapd.sock)"},
		read_socket},
	{{0, "socket.group", "GROUP", "text",
		 "the group that may connect, if there is one of that name (buscap)"},
		read_group},
	{{0, "socket.connections", "N", "number", "so many clients at one time, 1 to 4096 (64)"},
		read_connections},
	{{0, "socket.reserve", "RIGHTS", "list:record|rotate|mark|note|snapshot|trigger|replay",
		 "what only the owner may ask for"},
		read_reserve},
	{{0, "socket.metrics_listen", "ADDRESS:PORT", "choice:127.0.0.1:|[::1]:",
		 "metrics are served there, to this machine alone; empty: not"},
		read_metrics_listen},
	{{0, "log.level", "LEVEL", "choice:error|warning|notice|info|debug",
		 "what goes to the log: this, and all that is worse (info)"},
		read_log_level},
	{{0}, NULL},
};

/* [mapping] attr.D_WRITE = 1: a cycle type's attr. */
static bool set_attr(
	struct bc_config *c, const char *name, const char *value, char *err, size_t errlen)
{
	int cycle = bc_cycle_by_name(name);
	uint64_t attr;

	if (cycle < 0) {
		snprintf(err, errlen,
			"attr.%s: no such cycle type; they are INT_ACK, SPECIAL, "
			"IO_READ, IO_WRITE, I_FETCH, NC_I_FETCH, D_READ, NC_D_READ, "
			"WRITE_BACK and D_WRITE",
			name);
		return false;
	}
	if (!bc_number_read(&attr, value) || attr > 255) {
		snprintf(err, errlen, "attr.%s = %.200s: an attr is a number from 0 to 255", name,
			value);
		return false;
	}
	c->mapping.attr[cycle] = (uint8_t)attr;
	return true;
}

/* [rotation] and [stop] hold the rules of -b and -a. */
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

/* [trigger NAME]: each is made by its first key. */
static bool set_trigger(struct bc_config *c, const char *name, const char *key, const char *value,
	char *err, size_t errlen)
{
	char what[200];
	unsigned i = 0;

	while (i < c->triggers_count && strcmp(c->triggers[i].name, name) != 0)
		i++;
	if (i == BC_TRIGGERS_CONFIGURED) {
		snprintf(err, errlen, "[trigger %.40s]: there are 16 triggers at most", name);
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
			&c->recording, &c->sift.sampling, key, value, err, errlen);
	if (strcmp(section, "filter") == 0)
		return bc_record_filter_set(&c->sift, key, value, err, errlen);
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
	for (const struct bc_config_key *k = bc_config_keys; k->usage.help != NULL; k++) {
		if (k->read == NULL || !is_named(k->usage.name, section, key))
			continue;
		if (k->read(c, value, what, sizeof(what)))
			return true;
		snprintf(err, errlen, "%s = %.200s: %s", key, value, what);
		return false;
	}
	if (section[0] == '\0')
		snprintf(err, errlen, "%s: a key stands in a [section]", key);
	else
		snprintf(err, errlen, "[%s] %s: no such key", section, key);
	return false;
}
