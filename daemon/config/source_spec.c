/* Parses --source. The settings of `sim` are a table, from which --list-settings and the documents
 * are made; `usb` has the keys of [usb], which config_keys reads; the settings of a file follow
 * its path, from the right, while they look like settings, because a path may contain commas. */
#include "daemon/config/source_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/quantity.h"
#include "formats/base/text.h"

#define SIM_RATE 1000000u

/* The value, if the text is "name=value"; else NULL. */
static const char *value_of(const char *text, const char *name)
{
	size_t n = strlen(name);

	return strncmp(text, name, n) == 0 && text[n] == '=' ? text + n + 1 : NULL;
}

#define SETTING struct bc_source_spec *spec, const char *value, char *err, size_t errlen

static bool read_file_setting(
	struct bc_source_spec *spec, const char *text, char *err, size_t errlen)
{
	const char *value;

	if ((value = value_of(text, "format")) != NULL) {
		spec->format = bc_format_by_name(value);
		return bc_format_is_bus(spec->format) ||
		       bc_fail(err, errlen,
			       "format: must be segment, bcp1, raw6, byu, byu16, byu24 or byu-be");
	}
	if ((value = value_of(text, "clock_hz")) != NULL) {
		char why[BC_QUANTITY_ERROR_MAX] = "must be above 0";
		return (bc_quantity_read(
				&spec->clock_hz, BC_QUANTITY_COUNT, value, why, sizeof(why)) &&
			       spec->clock_hz != 0) ||
		       bc_fail(err, errlen, "clock_hz: %s", why);
	}
	return bc_fail(
		err, errlen, "%s: unknown setting of a file; use format= or clock_hz=", text);
}

/* True if the text looks like "word=...", which rarely follows a comma in a path. */
static bool is_setting(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz_");

	return n != 0 && text[n] == '=';
}

static bool read_file(struct bc_source_spec *spec, const char *text, char *err, size_t errlen)
{
	char *comma;

	spec->kind = BC_SOURCE_FILE;
	if ((size_t)snprintf(spec->path, sizeof(spec->path), "%s", text) >= sizeof(spec->path))
		return bc_fail(err, errlen, "path too long");
	while ((comma = strrchr(spec->path, ',')) != NULL && is_setting(comma + 1)) {
		*comma = '\0';
		if (!read_file_setting(spec, comma + 1, err, errlen))
			return false;
	}
	if (spec->path[0] == '~' && (spec->path[1] == '/' || spec->path[1] == '\0'))
		return bc_fail(err, errlen,
			"~ is not expanded; write the full path (./~ for a file of that name)");
	return spec->path[0] != '\0' || bc_fail(err, errlen, "path missing; - is standard input");
}

/* Parses a probability, 0 to 1. */
static bool read_probability(uint32_t *ppm, const char *text, char *err, size_t errlen)
{
	char *end;
	double probability = strtod(text, &end);

	if (end == text || *end != '\0' || !(probability >= 0 && probability <= 1))
		return bc_fail(err, errlen, "must be a probability from 0 to 1");
	*ppm = (uint32_t)(probability * 1e6 + 0.5);
	return true;
}

static bool read_rate(SETTING)
{
	if (strcmp(value, "max") == 0) {
		spec->rate = 0;
		return true;
	}
	return bc_quantity_read(&spec->rate, BC_QUANTITY_COUNT, value, err, errlen) &&
	       ((spec->rate != 0 && spec->rate <= 1000000000) ||
		       bc_fail(err, errlen, "must be max, or a number from 1 to 1G"));
}

static bool read_sim_count(SETTING)
{
	return bc_quantity_read(&spec->sim.count, BC_QUANTITY_COUNT, value, err, errlen) &&
	       (spec->sim.count != 0 || bc_fail(err, errlen, "must be a number above 0"));
}

static bool read_seed(SETTING)
{
	return bc_quantity_read(&spec->sim.seed, BC_QUANTITY_COUNT, value, err, errlen);
}

static bool read_agents(SETTING)
{
	uint64_t agents;

	if (!bc_quantity_read(&agents, BC_QUANTITY_COUNT, value, err, errlen))
		return false;
	if (agents < 1 || agents > 4)
		return bc_fail(err, errlen, "must be a number from 1 to 4");
	spec->sim.agents = (unsigned)agents;
	return true;
}

static bool read_loss(SETTING)
{
	return read_probability(&spec->sim.loss_ppm, value, err, errlen);
}

static bool read_corrupt(SETTING)
{
	return read_probability(&spec->sim.corrupt_ppm, value, err, errlen);
}

const struct bc_sim_setting bc_sim_settings[] = {
	{"rate", "N", "1M",
		"Samples per second, up to 1G. A slow machine may not "
		"reach the rate. `max`: as fast as they are consumed.",
		read_rate},
	{"count", "N", "unlimited", "Total number of samples.", read_sim_count},
	{"seed", "N", "1",
		"Another seed gives another trace. The same seed gives the same trace on every "
		"machine.",
		read_seed},
	{"agents", "N", "1", "Number of processors, 1 to 4.", read_agents},
	{"loss", "P", "0",
		"Probability (0 to 1) before each frame that the board drops some samples and "
		"reports it.",
		read_loss},
	{"corrupt", "P", "0", "Probability (0 to 1) that a bit of a frame is flipped in transit.",
		read_corrupt},
	{0},
};

static bool read_sim_setting(
	struct bc_source_spec *spec, const char *text, char *err, size_t errlen)
{
	char why[256];

	for (const struct bc_sim_setting *s = bc_sim_settings; s->name != NULL; s++) {
		const char *value = value_of(text, s->name);
		if (value == NULL)
			continue;
		return s->read(spec, value, why, sizeof(why)) ||
		       bc_fail(err, errlen, "%s: %s", s->name, why);
	}
	return bc_fail(err, errlen,
		"%s: unknown setting; use rate=, count=, seed=, agents=, loss= or corrupt=", text);
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
		if (!read_sim_setting(spec, setting, err, errlen))
			return false;
	}
	return true;
}

static bool read_usb(struct bc_source_spec *spec, const char *text, char *err, size_t errlen)
{
	spec->kind = BC_SOURCE_USB;
	return (size_t)snprintf(spec->usb, sizeof(spec->usb), "%s", text) < sizeof(spec->usb) ||
	       bc_fail(err, errlen, "settings too long");
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
	if (strcmp(text, "-") == 0 || access(text, F_OK) == 0)
		return bc_fail(err, errlen, "unknown source; try file:%.200s", text);
	return bc_fail(
		err, errlen, "unknown source; use usb[:SETTINGS], file:PATH or sim[:SETTINGS]");
}
