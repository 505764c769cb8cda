#include "daemon/config/source_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/rules.h"
#include "daemon/config/usb_settings.h"

#define SIM_RATE 1000000u /* a small machine's bus */

/* A setting's value, when the text is "name=value". */
static const char *value_of(const char *text, const char *name)
{
	size_t n = strlen(name);

	return strncmp(text, name, n) == 0 && text[n] == '=' ? text + n + 1 : NULL;
}

static bool read_file_setting(
	struct bc_source_spec *spec, const char *text, char *err, size_t errlen)
{
	const char *value;

	if ((value = value_of(text, "format")) != NULL) {
		spec->format = bc_format_by_name(value);
		if (bc_format_is_bus(spec->format))
			return true;
		snprintf(err, errlen,
			"%s: no such format here; there are segment, bcp1, raw6, byu, "
			"byu16, byu24 and "
			"byu-be",
			text);
		return false;
	}
	if ((value = value_of(text, "clock_hz")) != NULL) {
		if (bc_number_read(&spec->clock_hz, value) && spec->clock_hz != 0)
			return true;
		snprintf(err, errlen, "%s: clock_hz wants a number of ticks a second", text);
		return false;
	}
	snprintf(
		err, errlen, "%s: no such setting of file:; there are format= and clock_hz=", text);
	return false;
}

/* Whether the text looks like "word=...": a comma in a path is seldom followed by that. */
static bool is_setting(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz_");

	return n != 0 && text[n] == '=';
}

static bool read_file(struct bc_source_spec *spec, const char *text, char *err, size_t errlen)
{
	char *comma;

	spec->kind = BC_SOURCE_FILE;
	if ((size_t)snprintf(spec->path, sizeof(spec->path), "%s", text) >= sizeof(spec->path)) {
		snprintf(err, errlen, "file: the path is too long");
		return false;
	}
	while ((comma = strrchr(spec->path, ',')) != NULL && is_setting(comma + 1)) {
		*comma = '\0';
		if (!read_file_setting(spec, comma + 1, err, errlen))
			return false;
	}
	if (spec->path[0] == '~' && (spec->path[1] == '/' || spec->path[1] == '\0'))
		snprintf(err, errlen,
			"file: ~ stands for no directory here: write the path in full (./~ if it "
			"is named so)");
	else if (spec->path[0] == '\0')
		snprintf(err, errlen, "file: wants a path, or - for standard input");
	else
		return true;
	return false;
}

/* A number that may end in k, M or G, of thousands. */
static bool read_count(uint64_t *value, const char *text)
{
	char digits[24];
	size_t n = strlen(text);
	uint64_t scale = 1;

	if (n == 0 || n >= sizeof(digits))
		return false;
	memcpy(digits, text, n + 1);
	switch (digits[n - 1]) {
	case 'k':
		scale = 1000;
		break;
	case 'M':
		scale = 1000000;
		break;
	case 'G':
		scale = 1000000000;
		break;
	default:
		break;
	}
	if (scale != 1)
		digits[n - 1] = '\0';
	return bc_number_read(value, digits) && !__builtin_mul_overflow(*value, scale, value);
}

static bool read_chance(uint32_t *ppm, const char *text)
{
	char *end;
	double chance = strtod(text, &end);

	if (end == text || *end != '\0' || !(chance >= 0 && chance <= 1))
		return false;
	*ppm = (uint32_t)(chance * 1e6 + 0.5);
	return true;
}

static bool read_sim_setting(struct bc_source_spec *spec, const char *text)
{
	const char *value;

	if ((value = value_of(text, "rate")) != NULL) {
		if (strcmp(value, "max") == 0) {
			spec->rate = 0;
			return true;
		}
		return read_count(&spec->rate, value) && spec->rate != 0 &&
		       spec->rate <= 1000000000;
	}
	if ((value = value_of(text, "count")) != NULL)
		return read_count(&spec->sim.count, value) && spec->sim.count != 0;
	if ((value = value_of(text, "seed")) != NULL)
		return bc_number_read(&spec->sim.seed, value);
	if ((value = value_of(text, "agents")) != NULL) {
		uint64_t agents;
		if (!bc_number_read(&agents, value) || agents < 1 || agents > 4)
			return false;
		spec->sim.agents = (unsigned)agents;
		return true;
	}
	if ((value = value_of(text, "loss")) != NULL)
		return read_chance(&spec->sim.loss_ppm, value);
	if ((value = value_of(text, "corrupt")) != NULL)
		return read_chance(&spec->sim.corrupt_ppm, value);
	return false;
}

static bool read_sim(struct bc_source_spec *spec, const char *text, char *err, size_t errlen)
{
	char copy[256];
	char *rest = copy;
	char *setting;

	spec->kind = BC_SOURCE_SIM;
	spec->sim = (struct bc_sim_options){.seed = 1, .agents = 1};
	spec->rate = SIM_RATE;
	snprintf(copy, sizeof(copy), "%s", text);
	while ((setting = strsep(&rest, ",")) != NULL) {
		if (setting[0] == '\0' && rest == NULL)
			break;
		if (read_sim_setting(spec, setting))
			continue;
		snprintf(err, errlen,
			"'%s': sim takes rate=N|max (samples a second), count=N, seed=N, "
			"agents=1..4, "
			"loss=P and corrupt=P (0..1)",
			setting);
		return false;
	}
	return true;
}

static bool read_usb(struct bc_source_spec *spec, const char *text, char *err, size_t errlen)
{
	struct bc_usb_options options = bc_usb_options_default();

	spec->kind = BC_SOURCE_USB;
	if (!bc_usb_settings_read(&options, text, err, errlen))
		return false;
	snprintf(spec->usb, sizeof(spec->usb), "%s", text);
	return true;
}

bool bc_source_spec_read(struct bc_source_spec *spec, const char *text, char *err, size_t errlen)
{
	memset(spec, 0, sizeof(*spec));
	if (strncmp(text, "file:", 5) == 0)
		return read_file(spec, text + 5, err, errlen);
	if (strcmp(text, "sim") == 0)
		return read_sim(spec, "", err, errlen);
	if (strncmp(text, "sim:", 4) == 0)
		return read_sim(spec, text + 4, err, errlen);
	if (strcmp(text, "usb") == 0)
		return read_usb(spec, "", err, errlen);
	if (strncmp(text, "usb:", 4) == 0)
		return read_usb(spec, text + 4, err, errlen);
	snprintf(err, errlen, "'%s': the sources are usb[:SETTINGS], file:PATH and sim[:SETTINGS]",
		text);
	return false;
}
