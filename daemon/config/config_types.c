/* The types of settings: reading a value into its field, and writing it as it would be read. A
 * number, size or time has its limits and its unit in its row; its field has 1, 4 or 8 bytes. */
#include "daemon/config/config_types.h"

#include <string.h>

#include "formats/base/text.h"

void bc_config_keys_default(const struct bc_config_key *keys, void *fields)
{
	char err[200];

	for (const struct bc_config_key *k = keys; k->name != NULL; k++)
		if (k->initial != NULL && k->type != NULL && k->type->read != NULL)
			(void)k->type->read(
				k, (char *)fields + k->offset, k->initial, err, sizeof(err));
}

/* Text */

static bool read_text(BC_CONFIG_READER)
{
	if ((size_t)snprintf(field, key->size, "%s", value) < key->size)
		return true;
	return bc_fail(err, errlen, "too long; the limit is %zu bytes", key->size - 1);
}

/* Rejects a "~" that no shell has expanded: the user meant the home directory. */
static bool read_path(BC_CONFIG_READER)
{
	if (value[0] == '~' && (value[1] == '/' || value[1] == '\0'))
		return bc_fail(err, errlen,
			"~ is not expanded; write the full path (./~ for a file of that name)");
	return read_text(key, field, value, err, errlen);
}

void bc_config_write_text(BC_CONFIG_WRITER)
{
	(void)key;
	snprintf(out, size, "%s", (const char *)field);
}

const struct bc_config_type bc_type_text = {.read = read_text, .write = bc_config_write_text};
const struct bc_config_type bc_type_path = {.read = read_path, .write = bc_config_write_text};

/* Quantities */

/* "must be a number from 1 to 64" */
static bool fail_limits(const struct bc_config_key *key, char *err, size_t errlen)
{
	static const char *const names[] = {"number", "size", "time"};
	const char *name = names[key->type->quantity];
	char min[BC_QUANTITY_TEXT_MAX];
	char max[BC_QUANTITY_TEXT_MAX];

	bc_quantity_write(min, key->type->quantity, key->min);
	bc_quantity_write(max, key->type->quantity, key->max);
	if (key->min != 0 && key->max != 0)
		return bc_fail(err, errlen, "must be a %s from %s to %s", name, min, max);
	if (key->max != 0)
		return bc_fail(err, errlen, "must be a %s up to %s", name, max);
	if (key->min > 1)
		return bc_fail(err, errlen, "must be a %s of at least %s", name, min);
	return bc_fail(err, errlen, "must be a %s above 0", name);
}

static bool read_quantity(BC_CONFIG_READER)
{
	uint64_t unit = key->unit != 0 ? key->unit : 1;
	uint64_t n;

	if (!bc_quantity_read(&n, key->type->quantity, value, err, errlen))
		return false;
	if (n < key->min || (key->max != 0 && n > key->max))
		return fail_limits(key, err, errlen);
	n = n / unit + (n % unit != 0);
	switch (key->size) {
	case sizeof(uint8_t):
		*(uint8_t *)field = (uint8_t)n;
		break;
	case sizeof(uint32_t):
		*(uint32_t *)field = (uint32_t)n;
		break;
	default:
		*(uint64_t *)field = n;
		break;
	}
	return true;
}

static void write_quantity(BC_CONFIG_WRITER)
{
	uint64_t n = key->size == sizeof(uint8_t)    ? *(const uint8_t *)field
		     : key->size == sizeof(uint32_t) ? *(const uint32_t *)field
						     : *(const uint64_t *)field;
	char text[BC_QUANTITY_TEXT_MAX];

	bc_quantity_write(text, key->type->quantity, n * (key->unit != 0 ? key->unit : 1));
	snprintf(out, size, "%s", text);
}

const struct bc_config_type bc_type_number = {
	.read = read_quantity, .write = write_quantity, .quantity = BC_QUANTITY_COUNT};
const struct bc_config_type bc_type_bytes = {
	.read = read_quantity, .write = write_quantity, .quantity = BC_QUANTITY_SIZE};
const struct bc_config_type bc_type_time = {
	.read = read_quantity, .write = write_quantity, .quantity = BC_QUANTITY_TIME};

/* Words */

static const char *words_of(const struct bc_config_key *key)
{
	return key->kind + strlen("choice:");
}

/* "must be always, on-demand or flight" for the words "always|on-demand|flight". */
static bool fail_choice(const char *words, char *err, size_t errlen)
{
	size_t used = (size_t)snprintf(err, errlen, "must be ");

	while (used < errlen && *words != '\0') {
		size_t n = strcspn(words, "|");
		const char *rest = words[n] == '|' ? words + n + 1 : "";
		const char *separator = *rest == '\0'               ? ""
					: strchr(rest, '|') == NULL ? " or "
								    : ", ";
		used += (size_t)snprintf(
			err + used, errlen - used, "%.*s%s", (int)n, words, separator);
		words = rest;
	}
	return false;
}

static bool read_choice(BC_CONFIG_READER)
{
	const char *words = words_of(key);
	size_t n;

	for (unsigned i = 0;; i++, words += n + 1) {
		n = strcspn(words, "|");
		if (n == strlen(value) && memcmp(words, value, n) == 0) {
			if (key->size == sizeof(bool))
				*(bool *)field = i != 0;
			else
				*(unsigned *)field = i + (unsigned)key->min;
			return true;
		}
		if (words[n] == '\0')
			break;
	}
	return fail_choice(words_of(key), err, errlen);
}

static void write_choice(BC_CONFIG_WRITER)
{
	unsigned index = key->size == sizeof(bool) ? *(const bool *)field
						   : *(const unsigned *)field - (unsigned)key->min;
	const char *words = words_of(key);

	for (; index != 0; index--)
		words += strcspn(words, "|") + 1;
	snprintf(out, size, "%.*s", (int)strcspn(words, "|"), words);
}

const struct bc_config_type bc_type_choice = {.read = read_choice, .write = write_choice};
