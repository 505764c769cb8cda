#include "daemon/config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config/usb_settings.h"
#include "daemon/ingest/pool.h"

#define CONNECTIONS 64u

/* All transfers of a board together. The kernel allows 16 MiB unless configured otherwise. */
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
	c->recording.flight_ns = UINT64_C(10000000000);
	c->mapping = bc_mapping_options_default();
	c->usb = bc_usb_options_default();
	snprintf(c->socket, sizeof(c->socket), "/run/buscapd/buscapd.sock");
	snprintf(c->socket_group, sizeof(c->socket_group), "buscap");
	c->connections = CONNECTIONS;
	c->event_interval_ns = UINT64_C(60000000000);
	c->event_timeout_ns = UINT64_C(60000000000);
	c->disk_low_ns = UINT64_C(3600000000000);
	c->log_level = BC_LOG_INFO;
}

const char *bc_record_mode_name(enum bc_record_mode mode)
{
	static const char *const names[] = {
		[BC_RECORD_ALWAYS] = "always",
		[BC_RECORD_ON_DEMAND] = "on-demand",
		[BC_RECORD_FLIGHT] = "flight",
	};

	return mode < sizeof(names) / sizeof(names[0]) ? names[mode] : "unknown";
}

static bool complain(char *err, size_t errlen, const char *text)
{
	snprintf(err, errlen, "%s", text);
	return false;
}

bool bc_config_keeps_raw(const struct bc_config *c)
{
	return c->keep_raw && c->source.kind != BC_SOURCE_FILE;
}

static bool check_usb(const struct bc_config *c, char *err, size_t errlen)
{
	struct bc_usb_options usb = bc_config_usb(c);

	if (usb.link == BC_USB_FTDI && !usb.has_id)
		return complain(err, errlen,
			"link = ftdi: the id of the chip is missing; set id = 0403:6014, "
			"0403:6010, "
			"or the one in its EEPROM");
	if ((uint64_t)usb.transfers * usb.transfer_bytes > TRANSFERS_BYTES_MAX)
		return complain(err, errlen,
			"transfers: transfers times transfer_size must not exceed 256 MiB");
	if (usb.back_off_ns > usb.back_off_max_ns)
		return complain(err, errlen, "back_off: must not exceed back_off_max");
	return true;
}

/* Whether the source is live: it can't wait, because it is a board or a simulated bus with a rate.
 */
static bool is_live(const struct bc_config *c)
{
	return c->source.kind == BC_SOURCE_USB ||
	       (c->source.kind == BC_SOURCE_SIM && c->source.rate != 0);
}

/* The part of the buffer that the workers don't need. */
static uint64_t flight_bytes_max(const struct bc_config *c)
{
	uint64_t least = bc_pool_min_bytes(c->workers, bc_config_keeps_raw(c));

	return c->buffer_bytes > least ? c->buffer_bytes - least : 0;
}

void bc_config_make_once(struct bc_config *c)
{
	unsigned kept = 0;

	c->recording.mode = BC_RECORD_ALWAYS;
	for (unsigned i = 0; i < c->triggers_count; i++) {
		c->triggers[i].pre = (struct bc_time_or_size){BC_TIME_OR_SIZE_NONE, 0};
		if (c->triggers[i].action != BC_ACTION_SNAPSHOT)
			c->triggers[kept++] = c->triggers[i];
	}
	c->triggers_count = kept;
}

static bool check_recording(const struct bc_config *c, char *err, size_t errlen)
{
	enum bc_record_mode mode = c->recording.mode;

	if (mode != BC_RECORD_ALWAYS && !is_live(c)) {
		snprintf(err, errlen,
			"record = %s: needs a live source: a board, or the simulated bus with a "
			"rate",
			bc_record_mode_name(mode));
		return false;
	}
	if (mode != BC_RECORD_FLIGHT)
		return true;
	if (c->keep_raw)
		return complain(err, errlen,
			"keep_raw: not with record = flight, which keeps only records");
	if (c->recording.flight_bytes <= flight_bytes_max(c))
		return true;
	snprintf(err, errlen, "flight_size: too large; a buffer of %llu MiB leaves %llu MiB for it",
		(unsigned long long)(c->buffer_bytes >> 20),
		(unsigned long long)(flight_bytes_max(c) >> 20));
	return false;
}

static bool check_trigger(
	const struct bc_config *c, const struct bc_trigger *t, char *err, size_t errlen)
{
	bool starts = t->action == BC_ACTION_START || t->action == BC_ACTION_TOGGLE ||
		      t->action == BC_ACTION_SNAPSHOT;
	bool needs_flight = t->action == BC_ACTION_SNAPSHOT || t->pre.unit != BC_TIME_OR_SIZE_NONE;

	if (!bc_trigger_check(t, err, errlen))
		return false;
	if (starts && !is_live(c)) {
		snprintf(err, errlen,
			"trigger %s: %s needs a board, or the simulated bus with a rate; a replay "
			"is always one recording",
			t->name, bc_trigger_action_name(t->action));
		return false;
	}
	if (needs_flight && c->recording.mode != BC_RECORD_FLIGHT) {
		snprintf(err, errlen, "trigger %s: %s needs record = flight", t->name,
			t->action == BC_ACTION_SNAPSHOT ? "snapshot" : "pre");
		return false;
	}
	return true;
}

bool bc_config_check(const struct bc_config *c, char *err, size_t errlen)
{
	bool keeps_raw = bc_config_keeps_raw(c);
	uint64_t least = bc_pool_min_bytes(c->workers, keeps_raw);

	if (c->source.kind == BC_SOURCE_NONE)
		return complain(err, errlen,
			"no source: use --source usb, file:PATH or sim, or set source in [source]");
	if (c->buffer_bytes < least || c->buffer_bytes > (UINT64_C(1) << 40)) {
		snprintf(err, errlen, "buffer: must be %llu MiB (for %u workers%s) to 1 TiB",
			(unsigned long long)(least >> 20) + 1, c->workers,
			keeps_raw ? " with keep_raw" : "");
		return false;
	}
	if (c->speed != 0 && c->source.kind != BC_SOURCE_FILE)
		return complain(err, errlen,
			"speed: only for files; the simulated bus has a rate (source = "
			"sim:rate=1M)");
	if (!check_recording(c, err, errlen))
		return false;
	for (unsigned i = 0; i < c->triggers_count; i++)
		if (!check_trigger(c, &c->triggers[i], err, errlen))
			return false;
	if (c->source.kind == BC_SOURCE_USB)
		return check_usb(c, err, errlen);
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
