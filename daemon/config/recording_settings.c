#include "daemon/config/recording_settings.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/rules.h"
#include "formats/segment/metadata.h"

static const char *const modes[] = {
	[BC_RECORD_ALWAYS] = "always",
	[BC_RECORD_ON_DEMAND] = "on-demand",
	[BC_RECORD_FLIGHT] = "flight",
};

#define MODES (sizeof(modes) / sizeof(modes[0]))

const char *bc_record_mode_name(enum bc_record_mode mode)
{
	return mode < MODES ? modes[mode] : "unknown";
}

struct bc_recording_settings bc_recording_settings_default(void)
{
	return (struct bc_recording_settings){.flight_ns = UINT64_C(10000000000)};
}

static bool complain(char *err, size_t errlen, const char *text)
{
	snprintf(err, errlen, "%s", text);
	return false;
}

static bool read_mode(struct bc_recording_settings *s, const char *value, char *err, size_t errlen)
{
	for (size_t i = 0; i < MODES; i++) {
		if (strcmp(value, modes[i]) != 0)
			continue;
		s->mode = (enum bc_record_mode)i;
		return true;
	}
	return complain(err, errlen, "must be always, on-demand or flight");
}

static bool read_flight_time(
	struct bc_recording_settings *s, const char *value, char *err, size_t errlen)
{
	return bc_time_read(&s->flight_ns, value) ||
	       complain(err, errlen, "not a time; try 200ms, 10s, 5m");
}

static bool read_flight_size(
	struct bc_recording_settings *s, const char *value, char *err, size_t errlen)
{
	uint64_t bytes;

	if (!bc_size_read(&bytes, value, 1))
		return complain(err, errlen, "not a size; try 64M, 10G");
	s->flight_bytes = bytes;
	return true;
}

bool bc_recording_setting_read(struct bc_recording_settings *settings, struct bc_sampling *sampling,
	const char *key, const char *value, char *err, size_t errlen)
{
	char what[200];
	bool is_good;

	if (strcmp(key, "record") == 0) {
		is_good = read_mode(settings, value, what, sizeof(what));
	} else if (strcmp(key, "flight_time") == 0) {
		is_good = read_flight_time(settings, value, what, sizeof(what));
	} else if (strcmp(key, "flight_size") == 0) {
		is_good = read_flight_size(settings, value, what, sizeof(what));
	} else if (strcmp(key, "sampling") == 0) {
		is_good = bc_sampling_parse(sampling, value, what, sizeof(what));
	} else if (strncmp(key, "metadata.", 9) == 0) {
		is_good = bc_metadata_set(settings->metadata, key + 9, value, what, sizeof(what));
	} else {
		snprintf(err, errlen, "[recording] %.80s: no such key", key);
		return false;
	}
	if (!is_good)
		snprintf(err, errlen, "%.80s = %.200s: %s", key, value, what);
	return is_good;
}
