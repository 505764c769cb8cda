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
#define NAME(format, codec, name) name,
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

#define E12 UINT64_C(1000000000000)

enum value_kind { WORD, COUNT, TIME, LEVEL };

/* In the order of enum bc_option_key. */
static const struct {
	const char *name;
	enum value_kind kind;
	uint16_t at; /* member of the options */
	uint16_t bytes;
	uint64_t least;
	uint64_t most;
	const char *expected; /* of a WORD: "CLEAR or SET" */
} keys[] = {
#define AT(member) \
	offsetof(struct bc_format_options, member), sizeof(((struct bc_format_options *)0)->member)
	{"endian", WORD, AT(is_big_endian), 0, 0, "little or big"},
	{"invalid", WORD, AT(keep_invalid), 0, 0, "drop or keep"},
	{"map", WORD, AT(map_pages), 0, 0, "none or pages"},
	{"seed", COUNT, AT(seed), 0, UINT64_MAX, "a decimal number"},
	{"clock_hz", COUNT, AT(clock_hz), 1, E12, "a decimal number from 1 to 10^12"},
	{"session", COUNT, AT(session), 0, UINT32_MAX, "a decimal number below 2^32"},
	{"size", COUNT, AT(size), 0, 255, "a decimal number from 0 to 255"},
	{"signals", WORD, AT(has_bit_signals), 0, 0, "vectors or bits"},
	{"interval", TIME, AT(interval_ns), 1, E12, "a time up to 1000s, such as 10ms"},
	{"compression", LEVEL, AT(compression), 0, 0,
		"lz4, fast, default, dense, zstd or zstd-2 to zstd-19"},
#undef AT
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

const char *bc_option_key_name(unsigned key)
{
	return keys[__builtin_ctz(key)].name;
}

static bool set_option(struct bc_format_options *o, size_t key, const char *value)
{
	void *member = (char *)o + keys[key].at;
	const char *expected = keys[key].expected;
	size_t word = strcspn(expected, " ");
	enum bc_quantity quantity = keys[key].kind == TIME ? BC_QUANTITY_TIME : BC_QUANTITY_COUNT;
	char err[BC_QUANTITY_ERROR_MAX];
	uint64_t number;

	switch (keys[key].kind) {
	case WORD:
		*(bool *)member = strcmp(value, expected + word + strlen(" or ")) == 0;
		return *(bool *)member ||
		       (strlen(value) == word && memcmp(value, expected, word) == 0);
	case LEVEL:
		o->has_compression = bc_level_read(&o->compression, value);
		return o->has_compression;
	default:
		break;
	}
	if (!bc_quantity_read(&number, quantity, value, err, sizeof(err)) ||
		number < keys[key].least || number > keys[key].most)
		return false;
	if (keys[key].bytes == sizeof(uint32_t))
		*(uint32_t *)member = (uint32_t)number;
	else
		*(uint64_t *)member = number;
	return true;
}

static void append_key_names(unsigned allowed, char *err, size_t errlen)
{
	size_t used = strlen(err);

	for (size_t i = 0; i < KEYS && used < errlen; i++) {
		if ((allowed >> i & 1) == 0)
			continue;
		snprintf(err + used, errlen - used, " %s", keys[i].name);
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
		while (key < KEYS && strcmp(keys[key].name, pair) != 0)
			key++;
		if (equals == NULL || key == KEYS || (allowed >> key & 1) == 0) {
			bc_message(err, errlen, "unknown option \"%s\"; this format has", pair);
			append_key_names(allowed, err, errlen);
			return false;
		}
		if (!set_option(options, key, equals + 1))
			return bc_fail(err, errlen, "%s=%s: must be %s", pair, equals + 1,
				keys[key].expected);
		has_seed |= 1u << key == BC_OPTION_SEED;
		if (text[n] == '\0')
			break;
		text += n + 1;
	}
	return !has_seed || options->map_pages ||
	       bc_fail(err, errlen, "seed has no effect without map=pages");
}
