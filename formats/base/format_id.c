/* Has the names of the formats, and the options that may follow a name, as in
 * "bcp1:map=pages,seed=1". What a format can hold and its options are in formats/codec/format.c.
 *
 * Invariant: a bit of enum bc_option_key is the index of the option's name. */
#include "formats/base/format_id.h"

#include <stdio.h>
#include <string.h>

#include "formats/base/quantity.h"
#include "formats/base/suggest.h"
#include "formats/base/text.h"

static const char *const names[] = {"unknown",
#define NAME(format, name) name,
	BC_FORMAT_LIST(NAME)
#undef NAME
};

const char *bc_format_name(enum bc_format format)
{
	return names[format];
}

enum bc_format bc_format_by_name(const char *name)
{
	for (unsigned format = 1; format < BC_FORMATS; format++)
		if (strcmp(names[format], name) == 0)
			return (enum bc_format)format;
	return BC_FORMAT_UNKNOWN;
}

enum bc_format bc_format_by_path(const char *path)
{
	const char *end = strrchr(path, '.');
	enum bc_frame_format frames;

	if (bc_frames_by_name(&frames, path, strlen(path)))
		return BC_FORMAT_SEGMENT;
	return end == NULL                   ? BC_FORMAT_UNKNOWN
	       : strcmp(end, ".tr") == 0     ? BC_FORMAT_BYU
	       : strcmp(end, ".arrows") == 0 ? BC_FORMAT_ARROW
					     : bc_format_by_name(end + 1);
}

/* Words for formats that have another name. */
static const struct {
	const char *word;
	enum bc_format format;
} synonyms[] = {
	{"dinero", BC_FORMAT_DIN},
	{"json", BC_FORMAT_NDJSON},
	{"jsonl", BC_FORMAT_NDJSON},
	{"lz4", BC_FORMAT_SEGMENT},
	{"zstd", BC_FORMAT_SEGMENT},
	{"clickhouse", BC_FORMAT_ROWBINARY},
	{"valgrind", BC_FORMAT_LACKEY},
	{"gtkwave", BC_FORMAT_VCD},
};

#define SYNONYMS (sizeof(synonyms) / sizeof(synonyms[0]))

void bc_format_unknown(char *err, size_t errlen, const char *name)
{
	char word[BC_SUGGESTION_BYTES + 2];

	snprintf(word, sizeof(word), "%.*s", (int)strcspn(name, ":"), name);
	struct bc_suggestion s = bc_suggestion_start(word);
	for (unsigned format = 1; format < BC_FORMATS; format++)
		bc_suggestion_add(&s, names[format], names[format]);
	for (size_t i = 0; i < SYNONYMS; i++)
		bc_suggestion_add(&s, synonyms[i].word, names[synonyms[i].format]);
	if (s.nearest != NULL)
		bc_message(err, errlen, "no such format; did you mean %s? See buscap formats",
			s.nearest);
	else
		bc_message(err, errlen, "no such format; see buscap formats");
}

/* ---- options of formats */

struct bc_format_options bc_format_options_default(void)
{
	return (struct bc_format_options){.seed = 1, .interval_ns = 1000000};
}

static const char *const option_names[] = {"endian", "invalid", "map", "seed", "clock_hz",
	"session", "size", "signals", "interval", "compression"};

#define KEYS (sizeof(option_names) / sizeof(option_names[0]))

const char *bc_option_key_name(unsigned key)
{
	return option_names[__builtin_ctz(key)];
}

static bool parse_word(bool *is_second, const char *value, const char *first, const char *second)
{
	*is_second = strcmp(value, second) == 0;
	return *is_second || strcmp(value, first) == 0;
}

static bool parse_quantity(
	uint64_t *number, enum bc_quantity quantity, const char *value, uint64_t max)
{
	char err[BC_QUANTITY_ERROR_MAX];

	return bc_quantity_read(number, quantity, value, err, sizeof(err)) && *number <= max;
}

static bool parse_number(uint64_t *number, const char *value, uint64_t max)
{
	return parse_quantity(number, BC_QUANTITY_COUNT, value, max);
}

/* Sets one option. Returns NULL, or the expected kind of value. */
static const char *set_option(struct bc_format_options *o, unsigned key, const char *value)
{
	uint64_t number = 0;

	switch ((enum bc_option_key)key) {
	case BC_OPTION_ENDIAN:
		return parse_word(&o->is_big_endian, value, "little", "big") ? NULL
									     : "little or big";
	case BC_OPTION_INVALID:
		return parse_word(&o->keep_invalid, value, "drop", "keep") ? NULL : "drop or keep";
	case BC_OPTION_MAP:
		return parse_word(&o->map_pages, value, "none", "pages") ? NULL : "none or pages";
	case BC_OPTION_SEED:
		return parse_number(&o->seed, value, UINT64_MAX) ? NULL : "a decimal number";
	case BC_OPTION_CLOCK_HZ:
		return parse_number(&o->clock_hz, value, UINT64_C(1000000000000)) &&
				       o->clock_hz != 0
			       ? NULL
			       : "a decimal number from 1 to 10^12";
	case BC_OPTION_SESSION:
		if (!parse_number(&number, value, UINT32_MAX))
			return "a decimal number below 2^32";
		o->session = (uint32_t)number;
		return NULL;
	case BC_OPTION_SIGNALS:
		return parse_word(&o->has_bit_signals, value, "vectors", "bits")
			       ? NULL
			       : "vectors or bits";
	case BC_OPTION_INTERVAL:
		return parse_quantity(
			       &o->interval_ns, BC_QUANTITY_TIME, value, UINT64_C(1000000000000)) &&
				       o->interval_ns != 0
			       ? NULL
			       : "a time up to 1000s, such as 10ms";
	case BC_OPTION_COMPRESSION:
		o->has_compression = bc_level_read(&o->compression, value);
		return o->has_compression ? NULL
					  : "lz4, fast, default, dense, zstd or zstd-2 to zstd-19";
	case BC_OPTION_SIZE:
		if (!parse_number(&number, value, 255))
			return "a decimal number from 0 to 255";
		o->size = (uint32_t)number;
		return NULL;
	}
	return "nothing";
}

static void append_key_names(unsigned allowed, char *err, size_t errlen)
{
	size_t used = strlen(err);

	for (size_t i = 0; i < KEYS && used < errlen; i++) {
		if ((allowed >> i & 1) == 0)
			continue;
		snprintf(err + used, errlen - used, " %s", option_names[i]);
		used = strlen(err);
	}
}

bool bc_format_options_read(struct bc_format_options *options, const char *text, unsigned allowed,
	char *err, size_t errlen)
{
	char pair[64];
	bool has_seed = false;

	if (allowed == 0)
		return bc_fail(err, errlen, "this format takes no options");
	for (;;) {
		size_t n = strcspn(text, ",");
		snprintf(pair, sizeof(pair), "%.*s", n < sizeof(pair) ? (int)n : 63, text);
		char *equals = strchr(pair, '=');
		if (equals != NULL)
			*equals = '\0';
		size_t key = 0;
		while (key < KEYS && strcmp(option_names[key], pair) != 0)
			key++;
		if (equals == NULL || key == KEYS || (allowed >> key & 1) == 0) {
			bc_message(err, errlen, "unknown option \"%s\"; this format has", pair);
			append_key_names(allowed, err, errlen);
			return false;
		}
		const char *expected = set_option(options, 1u << key, equals + 1);
		if (expected != NULL)
			return bc_fail(
				err, errlen, "%s=%s: must be %s", pair, equals + 1, expected);
		has_seed |= 1u << key == BC_OPTION_SEED;
		if (text[n] == '\0')
			break;
		text += n + 1;
	}
	return !has_seed || options->map_pages ||
	       bc_fail(err, errlen, "seed has no effect without map=pages");
}
