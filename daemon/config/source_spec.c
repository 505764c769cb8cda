/* Parses --source. The settings of `sim` are a table, from which --list-settings and the documents
 * are made; `usb` has the keys of [usb], which config_keys reads; the settings of a file follow
 * its path, from the right, while they look like settings, because a path may contain commas. */
#include "daemon/config/source_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/text.h"

/* The value, if the text is "name=value"; else NULL. */
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

/* A probability, 0 to 1; the field is in ppm. */
static bool read_probability(BC_CONFIG_READER)
{
	char *end;
	double probability = strtod(value, &end);

	(void)key;
	if (end == value || *end != '\0' || !(probability >= 0 && probability <= 1))
		return bc_fail(err, errlen, "must be a probability from 0 to 1");
	*(uint32_t *)field = (uint32_t)(probability * 1e6 + 0.5);
	return true;
}

static bool read_rate(BC_CONFIG_READER)
{
	uint64_t *rate = field;

	(void)key;
	*rate = 0;
	return strcmp(value, "max") == 0 ||
	       (bc_quantity_read(rate, BC_QUANTITY_COUNT, value, err, errlen) &&
		       ((*rate != 0 && *rate <= 1000000000) ||
			       bc_fail(err, errlen, "must be max, or a number from 1 to 1G")));
}

static const struct bc_config_type type_probability = {.read = read_probability};
static const struct bc_config_type type_rate = {.read = read_rate};

#define FIELD(member)                                      \
	.offset = offsetof(struct bc_source_spec, member), \
	.size = sizeof(((struct bc_source_spec *)0)->member)

const struct bc_config_key bc_sim_settings[] = {
	{"rate", "N", "choice:max", "1M", NULL, BC_RELOAD_RESTART,
		"Samples per second, up to 1G. A slow machine may not reach the rate. `max`: as "
		"fast as they are consumed.",
		&type_rate, FIELD(rate)},
	{"count", "N", "number", "unlimited", NULL, BC_RELOAD_RESTART, "Total number of samples.",
		&bc_type_number, FIELD(sim.count), .min = 1},
	{"seed", "N", "number", "1", NULL, BC_RELOAD_RESTART,
		"Another seed gives another trace. The same seed gives the same trace on every "
		"machine.",
		&bc_type_number, FIELD(sim.seed)},
	{"agents", "N", "number", "1", NULL, BC_RELOAD_RESTART, "Number of processors, 1 to 4.",
		&bc_type_number, FIELD(sim.agents), .min = 1, .max = 4},
	{"loss", "P", "number", "0", NULL, BC_RELOAD_RESTART,
		"Probability (0 to 1) before each frame that the board drops some samples and "
		"reports it.",
		&type_probability, FIELD(sim.loss_ppm)},
	{"corrupt", "P", "number", "0", NULL, BC_RELOAD_RESTART,
		"Probability (0 to 1) that a bit of a frame is flipped in transit.",
		&type_probability, FIELD(sim.corrupt_ppm)},
	{0},
};

static bool read_sim_setting(
	struct bc_source_spec *spec, const char *text, char *err, size_t errlen)
{
	char why[256];

	for (const struct bc_config_key *k = bc_sim_settings; k->name != NULL; k++) {
		const char *value = value_of(text, k->name);
		if (value != NULL)
			return k->type->read(
				       k, (char *)spec + k->offset, value, why, sizeof(why)) ||
			       bc_fail(err, errlen, "%s: %s", k->name, why);
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
	bc_config_keys_default(bc_sim_settings, spec);
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
