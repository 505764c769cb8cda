#include "formats/base/options.h"

#include <stdio.h>
#include <string.h>

struct bc_format_options bc_format_options_default(void)
{
	return (struct bc_format_options){.seed = 1};
}

static const char *const names[] = {
	"endian", "invalid", "map", "seed", "clock_hz", "session", "size"};

#define KEYS (sizeof(names) / sizeof(names[0]))

const char *bc_option_key_name(unsigned key)
{
	return names[__builtin_ctz(key)];
}

/* One of two words. */
static bool read_word(bool *is_second, const char *value, const char *first, const char *second)
{
	*is_second = strcmp(value, second) == 0;
	return *is_second || strcmp(value, first) == 0;
}

static bool read_number(uint64_t *number, const char *value, uint64_t most)
{
	uint64_t sum = 0;

	if (*value == '\0')
		return false;
	for (; *value != '\0'; value++) {
		unsigned digit = (unsigned)(*value - '0');
		if (digit > 9 || __builtin_mul_overflow(sum, UINT64_C(10), &sum) ||
			__builtin_add_overflow(sum, (uint64_t)digit, &sum))
			return false;
	}
	*number = sum;
	return sum <= most;
}

/* Sets one key. Returns NULL, or what its value may be. */
static const char *set(struct bc_format_options *o, unsigned key, const char *value)
{
	uint64_t number = 0;

	switch ((enum bc_option_key)key) {
	case BC_OPTION_ENDIAN:
		return read_word(&o->is_big_endian, value, "little", "big") ? NULL
									    : "little or big";
	case BC_OPTION_INVALID:
		return read_word(&o->keep_invalid, value, "drop", "keep") ? NULL : "drop or keep";
	case BC_OPTION_MAP:
		return read_word(&o->map_pages, value, "none", "pages") ? NULL : "none or pages";
	case BC_OPTION_SEED:
		return read_number(&o->seed, value, UINT64_MAX) ? NULL : "a decimal number";
	case BC_OPTION_CLOCK_HZ:
		return read_number(&o->clock_hz, value, UINT64_C(1000000000000)) && o->clock_hz != 0
			       ? NULL
			       : "a decimal number from 1 to 10^12";
	case BC_OPTION_SESSION:
		if (!read_number(&number, value, UINT32_MAX))
			return "a decimal number of 32 bits";
		o->session = (uint32_t)number;
		return NULL;
	case BC_OPTION_SIZE:
		if (!read_number(&number, value, 255))
			return "a decimal number from 0 to 255";
		o->size = (uint32_t)number;
		return NULL;
	}
	return "nothing";
}

/* Says which keys there are. */
static void tell_keys(unsigned allowed, char *err, size_t errlen)
{
	size_t used = strlen(err);

	for (size_t i = 0; i < KEYS && used < errlen; i++) {
		if ((allowed >> i & 1) == 0)
			continue;
		snprintf(err + used, errlen - used, " %s", names[i]);
		used = strlen(err);
	}
}

bool bc_format_options_read(struct bc_format_options *options, const char *text, unsigned allowed,
	char *err, size_t errlen)
{
	char pair[64];
	bool has_seed = false;

	if (allowed == 0) {
		snprintf(err, errlen, "the format takes no options here");
		return false;
	}
	for (;;) {
		size_t n = strcspn(text, ",");
		snprintf(pair, sizeof(pair), "%.*s", n < sizeof(pair) ? (int)n : 63, text);
		char *equals = strchr(pair, '=');
		if (equals != NULL)
			*equals = '\0';
		size_t key = 0;
		while (key < KEYS && strcmp(names[key], pair) != 0)
			key++;
		if (equals == NULL || key == KEYS || (allowed >> key & 1) == 0) {
			snprintf(err, errlen, "\"%s\" is no option of it: there is", pair);
			tell_keys(allowed, err, errlen);
			return false;
		}
		const char *wanted = set(options, 1u << key, equals + 1);
		if (wanted != NULL) {
			snprintf(err, errlen, "%s is %s, not \"%s\"", pair, wanted, equals + 1);
			return false;
		}
		has_seed |= 1u << key == BC_OPTION_SEED;
		if (text[n] == '\0')
			break;
		text += n + 1;
	}
	if (has_seed && !options->map_pages) {
		snprintf(err, errlen, "seed is of map=pages, which isn't there");
		return false;
	}
	return true;
}
