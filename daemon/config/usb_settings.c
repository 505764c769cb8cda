#include "daemon/config/usb_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/rules.h"

#define MS_NS UINT64_C(1000000)

static bool read_id(struct bc_usb_options *o, const char *value)
{
	unsigned vid;
	unsigned pid;
	int end = 0;

	if (strspn(value, "0123456789abcdefABCDEF:") != strlen(value) ||
		sscanf(value, "%4x:%4x%n", &vid, &pid, &end) != 2 || value[end] != '\0')
		return false;
	o->match.vid = (uint16_t)vid;
	o->match.pid = (uint16_t)pid;
	o->has_id = true;
	return true;
}

static bool read_serial(struct bc_usb_options *o, const char *value)
{
	if (strlen(value) > BC_SERIAL_MAX)
		return false;
	memset(o->match.serial, 0, sizeof(o->match.serial));
	strcpy(o->match.serial, value);
	return true;
}

static bool read_protocol(struct bc_usb_options *o, const char *value)
{
	o->protocol = bc_format_by_name(value);
	return o->protocol == BC_FORMAT_BCP1 || o->protocol == BC_FORMAT_RAW6;
}

static bool read_link(struct bc_usb_options *o, const char *value)
{
	o->link = strcmp(value, "ftdi") == 0 ? BC_USB_FTDI : BC_USB_PLAIN;
	return o->link == BC_USB_FTDI || strcmp(value, "plain") == 0;
}

static bool read_transfers(struct bc_usb_options *o, const char *value)
{
	uint64_t transfers;

	if (!bc_number_read(&transfers, value) || transfers < 1 || transfers > BC_USB_TRANSFERS_MAX)
		return false;
	o->transfers = (unsigned)transfers;
	return true;
}

static bool read_transfer_size(struct bc_usb_options *o, const char *value)
{
	uint64_t bytes;

	if (!bc_size_read(&bytes, value, 1) || bytes < BC_USB_TRANSFER_BYTES_MIN ||
		bytes > BC_USB_TRANSFER_BYTES_MAX)
		return false;
	o->transfer_bytes = (uint32_t)bytes;
	return true;
}

static bool read_transfer_timeout(struct bc_usb_options *o, const char *value)
{
	uint64_t ns;

	if (!bc_time_read(&ns, value) || ns > 3600000 * MS_NS)
		return false;
	o->timeout_ms = (uint32_t)((ns + MS_NS - 1) / MS_NS);
	return true;
}

static bool read_clock_hz(struct bc_usb_options *o, const char *value)
{
	return bc_number_read(&o->clock_hz, value) && o->clock_hz <= UINT64_C(1000000000000);
}

static bool read_wait(struct bc_usb_options *o, const char *value)
{
	return bc_time_read(&o->wait_ns, value);
}

static bool read_silence(struct bc_usb_options *o, const char *value)
{
	return bc_time_read(&o->silence_ns, value);
}

static bool read_silence_action(struct bc_usb_options *o, const char *value)
{
	o->reset_on_silence = strcmp(value, "restart") == 0;
	return o->reset_on_silence || strcmp(value, "warn") == 0;
}

static bool read_back_off(struct bc_usb_options *o, const char *value)
{
	return bc_time_read(&o->back_off_ns, value) && o->back_off_ns >= MS_NS;
}

static bool read_back_off_max(struct bc_usb_options *o, const char *value)
{
	return bc_time_read(&o->back_off_max_ns, value) && o->back_off_max_ns >= MS_NS;
}

static bool read_ftdi_latency(struct bc_usb_options *o, const char *value)
{
	uint64_t ns;

	if (!bc_time_read(&ns, value) || ns < MS_NS || ns > 255 * MS_NS)
		return false;
	o->ftdi.latency_ms = (uint8_t)(ns / MS_NS);
	return true;
}

static bool read_ftdi_mode(struct bc_usb_options *o, const char *value)
{
	o->ftdi.mode = strcmp(value, "sync-fifo") == 0 ? 0x40 : 0;
	return o->ftdi.mode != 0 || strcmp(value, "fifo") == 0;
}

static const struct {
	const char *key;
	bool (*read)(struct bc_usb_options *options, const char *value);
	const char *expected;
} settings[] = {
	{"id", read_id, "VID:PID, four hexadecimal digits each, for example 1209:0001"},
	{"serial", read_serial, "a serial number of up to 127 characters"},
	{"protocol", read_protocol, "bcp1 or raw6"},
	{"link", read_link, "plain or ftdi"},
	{"transfers", read_transfers, "a number from 1 to 256"},
	{"transfer_size", read_transfer_size, "a size from 4K to 16M"},
	{"transfer_timeout", read_transfer_timeout, "a time up to 1h, or 0 for none"},
	{"clock_hz", read_clock_hz, "a number of ticks per second, or 0 for unknown"},
	{"wait", read_wait, "a time, or 0 for forever"},
	{"silence", read_silence, "a time, or 0 for never"},
	{"silence_action", read_silence_action, "warn or restart"},
	{"back_off", read_back_off, "a time of at least 1ms"},
	{"back_off_max", read_back_off_max, "a time of at least 1ms"},
	{"ftdi_latency", read_ftdi_latency, "a time from 1ms to 255ms"},
	{"ftdi_mode", read_ftdi_mode, "sync-fifo or fifo"},
};

bool bc_usb_setting_read(struct bc_usb_options *options, const char *key, const char *value,
	char *err, size_t errlen)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		if (strcmp(settings[i].key, key) != 0)
			continue;
		if (settings[i].read(options, value))
			return true;
		snprintf(err, errlen, "%s = %.200s: must be %s", key, value, settings[i].expected);
		return false;
	}
	int at = snprintf(err, errlen, "%.50s: unknown setting of a board; the settings are", key);
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (at > 0 && (size_t)at < errlen)
			at += snprintf(err + at, errlen - (size_t)at, " %s", settings[i].key);
	return false;
}

bool bc_usb_settings_read(
	struct bc_usb_options *options, const char *text, char *err, size_t errlen)
{
	char copy[1024];
	char *rest = copy;
	char *setting;

	if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy)) {
		snprintf(err, errlen, "usb: settings too long");
		return false;
	}
	while (copy[0] != '\0' && (setting = strsep(&rest, ",")) != NULL) {
		char *equals = strchr(setting, '=');
		if (equals == NULL) {
			snprintf(err, errlen, "usb:%s: expected KEY=VALUE, for example serial=A1",
				setting);
			return false;
		}
		*equals = '\0';
		if (!bc_usb_setting_read(options, setting, equals + 1, err, errlen))
			return false;
	}
	return true;
}

bool bc_usb_settings_equal(const struct bc_usb_options *a, const struct bc_usb_options *b)
{
	return a->match.vid == b->match.vid && a->match.pid == b->match.pid &&
	       strcmp(a->match.serial, b->match.serial) == 0 && a->protocol == b->protocol &&
	       a->link == b->link && a->ftdi.latency_ms == b->ftdi.latency_ms &&
	       a->ftdi.mode == b->ftdi.mode && a->transfers == b->transfers &&
	       a->transfer_bytes == b->transfer_bytes && a->timeout_ms == b->timeout_ms &&
	       a->clock_hz == b->clock_hz && a->wait_ns == b->wait_ns &&
	       a->silence_ns == b->silence_ns && a->reset_on_silence == b->reset_on_silence &&
	       a->back_off_ns == b->back_off_ns && a->back_off_max_ns == b->back_off_max_ns;
}
