#include "daemon/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config_keys.h"
#include "daemon/pipeline.h"
#include "daemon/usb_settings.h"

#define CONNECTIONS 64u

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
	c->workers = cores < 1                      ? 1
		     : cores > (long)BC_WORKERS_MAX ? BC_WORKERS_MAX
						    : (unsigned)cores;
	c->flush_ns = 1000000000;
	c->sync_ns = 200000000;
	c->stuck_ns = 60000000000;
	c->sealed_timeout_ns = UINT64_C(3600000000000);
	c->recording = bc_recording_settings_default();
	c->mapping = bc_mapping_options_default();
	c->usb = bc_usb_options_default();
	snprintf(c->socket, sizeof(c->socket), "/run/buscapd/buscapd.sock");
	snprintf(c->socket_group, sizeof(c->socket_group), "buscap");
	c->connections = CONNECTIONS;
	c->log_level = BC_LOG_INFO;
}

static bool complain(char *why, size_t why_room, const char *text)
{
	snprintf(why, why_room, "%s", text);
	return false;
}

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

/* [trigger NAME]: each is made by its first key. */
static bool set_trigger(struct bc_config *c, const char *name, const char *key, const char *value,
	char *why, size_t room)
{
	char what[200];
	unsigned i = 0;

	while (i < c->triggers_count && strcmp(c->triggers[i].name, name) != 0)
		i++;
	if (i == BC_TRIGGERS_CONFIGURED) {
		snprintf(why, room, "[trigger %.40s]: there are 16 triggers at most", name);
		return false;
	}
	if (i == c->triggers_count && !bc_trigger_init(&c->triggers[i], name, what, sizeof(what))) {
		snprintf(why, room, "[trigger %.40s]: %s", name, what);
		return false;
	}
	if (!bc_trigger_set(&c->triggers[i], key, value, what, sizeof(what))) {
		snprintf(why, room, "%.40s = %.200s: %s", key, value, what);
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
	char *why, size_t room)
{
	char what[160];

	if (strcmp(section, "recording") == 0)
		return bc_recording_setting_read(
			&c->recording, &c->sift.sampling, key, value, why, room);
	if (strcmp(section, "filter") == 0)
		return bc_sift_set(&c->sift, key, value, why, room);
	if (strncmp(section, "trigger ", 8) == 0)
		return set_trigger(
			c, section + 8 + strspn(section + 8, " "), key, value, why, room);
	if (strcmp(section, "usb") == 0)
		return bc_usb_setting_read(&c->usb, key, value, why, room);
	if (strcmp(section, "mapping") == 0 && strncmp(key, "attr.", 5) == 0)
		return set_attr(c, key + 5, value, why, room);
	bool is_rotation = strcmp(section, "rotation") == 0;
	if (is_rotation || strcmp(section, "stop") == 0)
		return set_rule(c, is_rotation, key, value, why, room);
	for (const struct bc_config_key *k = bc_config_keys; k->usage.help != NULL; k++) {
		if (k->read == NULL || !is_named(k->usage.name, section, key))
			continue;
		if (k->read(c, value, what, sizeof(what)))
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

bool bc_config_is_live(const struct bc_config *c)
{
	return c->source.kind == BC_SOURCE_USB ||
	       (c->source.kind == BC_SOURCE_SIM && c->source.rate != 0);
}

/* What of the buffer the workers don't need. */
static uint64_t flight_most(const struct bc_config *c)
{
	uint64_t least = bc_pipeline_least_buffer(c->workers, bc_config_keeps_raw(c));

	return c->buffer_bytes > least ? c->buffer_bytes - least : 0;
}

void bc_config_make_once(struct bc_config *c)
{
	unsigned kept = 0;

	c->recording.mode = BC_RECORD_ALWAYS;
	for (unsigned i = 0; i < c->triggers_count; i++) {
		c->triggers[i].pre = (struct bc_length){BC_LENGTH_NONE, 0};
		if (c->triggers[i].action != BC_ACTION_SNAPSHOT)
			c->triggers[kept++] = c->triggers[i];
	}
	c->triggers_count = kept;
}

static bool check_recording(const struct bc_config *c, char *why, size_t room)
{
	enum bc_record_mode mode = c->recording.mode;

	if (mode != BC_RECORD_ALWAYS && !bc_config_is_live(c)) {
		snprintf(why, room,
			"record = %s wants a source that doesn't wait: a board, or the simulated "
			"bus with a rate",
			bc_record_mode_name(mode));
		return false;
	}
	if (mode != BC_RECORD_FLIGHT)
		return true;
	if (c->keep_raw)
		return complain(why, room,
			"keep_raw doesn't go with record = flight, which holds records only");
	if (c->recording.flight_bytes <= flight_most(c))
		return true;
	snprintf(why, room,
		"flight_size: a buffer of %llu MiB has room for %llu MiB of it beside what the "
		"workers need",
		(unsigned long long)(c->buffer_bytes >> 20),
		(unsigned long long)(flight_most(c) >> 20));
	return false;
}

static bool check_trigger(
	const struct bc_config *c, const struct bc_trigger *t, char *why, size_t room)
{
	bool begins = t->action == BC_ACTION_START || t->action == BC_ACTION_TOGGLE ||
		      t->action == BC_ACTION_SNAPSHOT;
	bool wants_flight = t->action == BC_ACTION_SNAPSHOT || t->pre.unit != BC_LENGTH_NONE;

	if (!bc_trigger_check(t, why, room))
		return false;
	if (begins && !bc_config_is_live(c)) {
		snprintf(why, room,
			"trigger %s: %s wants a board, or the simulated bus with a rate; a replay "
			"is one recording",
			t->name, bc_trigger_action_name(t->action));
		return false;
	}
	if (wants_flight && c->recording.mode != BC_RECORD_FLIGHT) {
		snprintf(why, room, "trigger %s: %s wants record = flight", t->name,
			t->action == BC_ACTION_SNAPSHOT ? "snapshot" : "pre");
		return false;
	}
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
	if (!check_recording(c, why, room))
		return false;
	for (unsigned i = 0; i < c->triggers_count; i++)
		if (!check_trigger(c, &c->triggers[i], why, room))
			return false;
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
