/* The types of settings: reading a value into its field, and writing it as it would be read. A
 * number, size or time has its limits and its unit in its row; its field may have 1, 4 or 8 bytes.
 */
#include "daemon/config/config_types.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/base/rules.h"
#include "formats/base/text.h"

/* The arguments of a reader: the key, the place of its value in the configuration, and the text. */
#define READER \
	const struct bc_config_key *key, void *field, const char *value, char *err, size_t errlen

#define WRITER const struct bc_config_key *key, const void *field, char *out, size_t size

/* Text */

static bool read_text(READER)
{
	if ((size_t)snprintf(field, key->size, "%s", value) < key->size)
		return true;
	return bc_fail(err, errlen, "too long; the limit is %zu bytes", key->size - 1);
}

/* Rejects a "~" that no shell has expanded: the user meant the home directory. */
static bool read_path(READER)
{
	if (value[0] == '~' && (value[1] == '/' || value[1] == '\0'))
		return bc_fail(err, errlen,
			"~ is not expanded; write the full path (./~ for a file of that name)");
	return read_text(key, field, value, err, errlen);
}

static void write_text(WRITER)
{
	(void)key;
	snprintf(out, size, "%s", (const char *)field);
}

const struct bc_config_type bc_type_text = {.read = read_text, .write = write_text};
const struct bc_config_type bc_type_path = {.read = read_path, .write = write_text};

/* Quantities */

#define TEXT_MAX BC_CONFIG_TIME_MAX

struct quantity {
	const char *name;
	const char *examples;
	bool (*parse)(uint64_t *value, const char *text);
	void (*write)(char out[TEXT_MAX], uint64_t value);
};

static void write_number(char out[TEXT_MAX], uint64_t value)
{
	snprintf(out, TEXT_MAX, "%" PRIu64, value);
}

static bool parse_size(uint64_t *bytes, const char *text)
{
	return bc_size_read(bytes, text, 1);
}

static void write_size(char out[TEXT_MAX], uint64_t bytes)
{
	static const char units[] = "\0KMGT";
	unsigned unit = 0;

	for (; unit < 4 && bytes != 0 && bytes % 1024 == 0; unit++)
		bytes /= 1024;
	snprintf(out, TEXT_MAX, "%" PRIu64 "%.1s", bytes, units + unit);
}

static bool parse_file_size(uint64_t *bytes, const char *text)
{
	return bc_size_read(bytes, text, BC_FILE_SIZE_UNIT);
}

static void write_file_size(char out[TEXT_MAX], uint64_t bytes)
{
	if (bytes % 1024 == 0)
		write_size(out, bytes);
	else
		write_number(out, bytes / BC_FILE_SIZE_UNIT);
}

void bc_config_time_write(char out[TEXT_MAX], uint64_t ns)
{
	static const struct {
		uint64_t ns;
		const char *suffix;
	} units[] = {{86400000000000, "d"}, {3600000000000, "h"}, {60000000000, "m"},
		{1000000000, "s"}, {1000000, "ms"}};

	for (size_t i = 0; ns != 0 && i < sizeof(units) / sizeof(units[0]); i++) {
		if (ns % units[i].ns != 0)
			continue;
		snprintf(out, TEXT_MAX, "%" PRIu64 "%s", ns / units[i].ns, units[i].suffix);
		return;
	}
	if (ns == 0)
		snprintf(out, TEXT_MAX, "0");
	else
		snprintf(out, TEXT_MAX, "%" PRIu64 ".%09" PRIu64 "s", ns / 1000000000,
			ns % 1000000000);
}

static const struct quantity quantity_number = {"number", "", bc_number_read, write_number};
static const struct quantity quantity_bytes = {"size", "; try 64M, 10G", parse_size, write_size};
static const struct quantity quantity_file_bytes = {
	"size", "; try 64M, 10G, or a number of kB", parse_file_size, write_file_size};
static const struct quantity quantity_time = {
	"time", "; try 200ms, 10s, 5m", bc_time_read, bc_config_time_write};

/* "must be a number from 1 to 64" */
static bool fail_quantity(
	const struct bc_config_key *key, const struct quantity *q, char *err, size_t errlen)
{
	char min[TEXT_MAX];
	char max[TEXT_MAX];

	q->write(min, key->min);
	q->write(max, key->max);
	if (key->min != 0 && key->max != 0)
		return bc_fail(err, errlen, "must be a %s from %s to %s", q->name, min, max);
	if (key->max != 0)
		return bc_fail(err, errlen, "must be a %s up to %s", q->name, max);
	if (key->min > 1)
		return bc_fail(err, errlen, "must be a %s of at least %s", q->name, min);
	return bc_fail(err, errlen, "must be a %s%s%s", q->name, key->min != 0 ? " above 0" : "",
		q->examples);
}

static bool read_quantity(READER, const struct quantity *q)
{
	uint64_t unit = key->unit != 0 ? key->unit : 1;
	uint64_t n;

	if (!q->parse(&n, value) || n < key->min || (key->max != 0 && n > key->max))
		return fail_quantity(key, q, err, errlen);
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

static void write_quantity(WRITER, const struct quantity *q)
{
	uint64_t n = key->size == sizeof(uint8_t)    ? *(const uint8_t *)field
		     : key->size == sizeof(uint32_t) ? *(const uint32_t *)field
						     : *(const uint64_t *)field;
	char text[TEXT_MAX];

	q->write(text, n * (key->unit != 0 ? key->unit : 1));
	snprintf(out, size, "%s", text);
}

#define QUANTITY_TYPE(name)                                                             \
	static bool read_##name(READER)                                                 \
	{                                                                               \
		return read_quantity(key, field, value, err, errlen, &quantity_##name); \
	}                                                                               \
	static void write_##name##_field(WRITER)                                        \
	{                                                                               \
		write_quantity(key, field, out, size, &quantity_##name);                \
	}                                                                               \
	const struct bc_config_type bc_type_##name = {                                  \
		.read = read_##name, .write = write_##name##_field}

QUANTITY_TYPE(number);
QUANTITY_TYPE(bytes);
QUANTITY_TYPE(file_bytes);
QUANTITY_TYPE(time);

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

static bool read_choice(READER)
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

static void write_choice(WRITER)
{
	unsigned index = key->size == sizeof(bool) ? *(const bool *)field
						   : *(const unsigned *)field - (unsigned)key->min;
	const char *words = words_of(key);

	for (; index != 0; index--)
		words += strcspn(words, "|") + 1;
	snprintf(out, size, "%.*s", (int)strcspn(words, "|"), words);
}

const struct bc_config_type bc_type_choice = {.read = read_choice, .write = write_choice};
