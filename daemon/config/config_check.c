#include "daemon/config/config_check.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/config/config_keys.h"
#include "daemon/ingest/pool.h"
#include "formats/segment/segment.h"

/* All transfers of a board together. The kernel allows 16 MiB unless configured otherwise. */
#define TRANSFERS_BYTES_MAX (UINT64_C(256) << 20)

static void check_usb(const struct bc_config *c, struct bc_config_errors *errors)
{
	struct bc_usb_options usb = bc_config_usb(c);

	if (usb.link == BC_USB_FTDI && !usb.has_id)
		bc_config_error(errors,
			"link = ftdi: the id of the chip is missing; set id = 0403:6014, "
			"0403:6010, or the one in its EEPROM");
	if ((uint64_t)usb.transfers * usb.transfer_bytes > TRANSFERS_BYTES_MAX)
		bc_config_error(
			errors, "transfers: transfers times transfer_size must not exceed 256 MiB");
	if (usb.back_off_ns > usb.back_off_max_ns)
		bc_config_error(errors, "back_off: must not exceed back_off_max");
	if (usb.reset_on_silence && usb.silence_ns == 0)
		bc_config_error(errors, "silence_action = restart: never happens with silence = 0");
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
	uint64_t least = bc_pool_min_bytes(c->workers);

	return c->buffer_bytes > least ? c->buffer_bytes - least : 0;
}

static void check_recording(const struct bc_config *c, struct bc_config_errors *errors)
{
	enum bc_record_mode mode = c->recording.mode;

	if (mode != BC_RECORD_ALWAYS && !is_live(c))
		bc_config_error(errors,
			"record = %s: needs a live source: a board, or the simulated bus with a "
			"rate",
			bc_record_mode_name(mode));
	if (mode != BC_RECORD_FLIGHT)
		return;
	if (c->recording.flight_bytes > flight_bytes_max(c))
		bc_config_error(errors,
			"flight_size: too large; a buffer of %" PRIu64 " MiB leaves %" PRIu64
			" MiB for it",
			c->buffer_bytes >> 20, flight_bytes_max(c) >> 20);
}

/* Whether something in the configuration ends a recording. */
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
			"trigger %s: start never acts with record = always, which records from "
			"the start, and nothing that ends a recording; use record = on-demand",
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
			"speed: only for files; the simulated bus has a rate (source = "
			"sim:rate=1M)");
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
	if (c->rotation.file_bytes != 0)
		bc_config_error(errors,
			"max_use: too small; with rotation.filesize, the open segment takes up to "
			"%" PRIu64 " MiB",
			(least >> 20) + 1);
	else
		bc_config_error(errors, "max_use: too small; must be at least 2 MiB");
}

bool bc_config_check(const struct bc_config *c, struct bc_config_errors *errors)
{
	uint64_t least = bc_pool_min_bytes(c->workers);

	check_source(c, errors);
	if (c->buffer_bytes < least || c->buffer_bytes > (UINT64_C(1) << 40))
		bc_config_error(errors, "buffer: must be %" PRIu64 " MiB (for %u workers) to 1 TiB",
			(least >> 20) + 1, c->workers);
	check_space(c, errors);
	return errors->count == 0;
}
