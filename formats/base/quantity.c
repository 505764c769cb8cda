/* Has the units of counts, sizes and times, a table for each. Error messages list them.
 *
 * Invariant: nothing is lost to floating point. A number is its digits and a power of ten until it
 * is multiplied by its unit. A count or size must then be whole; a time is rounded. */
#include "formats/base/quantity.h"
#include "formats/base/clock.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/text.h"

struct unit {
	const char *name;
	uint64_t value;
};

#define KILO UINT64_C(1000)
#define KIBI UINT64_C(1024)

/* The first unit is that of a bare number; of equal units, the first is written. */
static const struct unit counts[] = {{"", 1}, {"K", KILO}, {"k", KILO}, {"M", KILO *KILO},
	{"G", KILO *KILO *KILO}, {"T", KILO *KILO *KILO *KILO}, {"Hz", 1}, {"kHz", KILO},
	{"MHz", KILO *KILO}, {"GHz", KILO *KILO *KILO}, {0}};

static const struct unit sizes[] = {{"", 1}, {"B", 1}, {"KB", KILO}, {"K", KILO}, {"k", KILO},
	{"kB", KILO}, {"MB", KILO *KILO}, {"M", KILO *KILO}, {"GB", KILO *KILO *KILO},
	{"G", KILO *KILO *KILO}, {"TB", KILO *KILO *KILO *KILO}, {"T", KILO *KILO *KILO *KILO},
	{"KiB", KIBI}, {"kiB", KIBI}, {"MiB", KIBI *KIBI}, {"GiB", KIBI *KIBI *KIBI},
	{"TiB", KIBI *KIBI *KIBI *KIBI}, {"Ki", KIBI}, {"Mi", KIBI *KIBI}, {"Gi", KIBI *KIBI *KIBI},
	{"Ti", KIBI *KIBI *KIBI *KIBI}, {0}};

static const struct unit times[] = {{"", BC_NS_PER_S}, {"ns", 1}, {"us", 1000}, {"ms", 1000000},
	{"s", BC_NS_PER_S}, {"min", 60 * BC_NS_PER_S}, {"m", 60 * BC_NS_PER_S},
	{"h", 3600 * BC_NS_PER_S}, {"d", 86400 * BC_NS_PER_S}, {0}};

static const struct {
	const struct unit *units;
	uint64_t max;
	const char *not_one;
	const char *names; /* of units */
} kinds[] = {
	[BC_QUANTITY_COUNT] = {counts, UINT64_MAX, "not a decimal number; try 1000000, 1M or 1e6",
		"K, M, G or T"},
	[BC_QUANTITY_SIZE] = {sizes, UINT64_MAX, "not a size; try 64M or 1.5GiB",
		"KB, MB, GB, TB (or K, M, G, T) or KiB, MiB, GiB, TiB (or Ki, Mi, Gi, Ti)"},
	[BC_QUANTITY_TIME] = {times, INT64_MAX, "not a time; try 200ms, 10s, 5min or 1m30s",
		"ns, us, ms, s, min (or m), h or d"},
};

/* A number: digits * 10^exponent. */
struct decimal {
	uint64_t digits;
	int exponent;
};

/* Adds a digit to the number. Returns false if it has too many. */
static bool add_digit(struct decimal *d, char digit)
{
	return !__builtin_mul_overflow(d->digits, UINT64_C(10), &d->digits) &&
	       !__builtin_add_overflow(d->digits, (uint64_t)(digit - '0'), &d->digits);
}

/* Reads "12", "1.5" or "1.5e6". Returns what follows; NULL if it is too long or not a number. */
static const char *read_decimal(struct decimal *d, const char *text)
{
	const char *p = text;
	uint64_t exponent;

	*d = (struct decimal){0, 0};
	for (; isdigit((unsigned char)*p); p++)
		if (!add_digit(d, *p))
			return NULL;
	if (p == text)
		return NULL;
	if (*p == '.') {
		if (!isdigit((unsigned char)p[1]))
			return NULL;
		for (p++; isdigit((unsigned char)*p); p++, d->exponent--)
			if (!add_digit(d, *p))
				return NULL;
	}
	if ((*p == 'e' || *p == 'E') && isdigit((unsigned char)p[1 + (p[1] == '+')])) {
		if (!bc_number_read_start(&exponent, p + 1 + (p[1] == '+'), &p) || exponent > 99)
			return NULL;
		d->exponent += (int)exponent;
	}
	return p;
}

/* Multiplies a number by a unit. A rest is rounded if `is_rounded`, else refused. Returns NULL, or
 * the reason of a failure. */
static const char *scale(
	uint64_t *value, const struct decimal *d, uint64_t unit, uint64_t max, bool is_rounded)
{
	unsigned __int128 product = (unsigned __int128)d->digits * unit;
	unsigned __int128 divisor = 1;

	for (int i = 0; i < d->exponent && product != 0; i++) {
		product *= 10;
		if (product > max)
			return "too large";
	}
	for (int i = 0; i > d->exponent && divisor <= product * 2; i--)
		divisor *= 10;
	if (!is_rounded && product % divisor != 0)
		return "not a whole number";
	product = (product + divisor / 2) / divisor;
	*value = (uint64_t)product;
	return product <= max ? NULL : "too large";
}

/* Of times, several parts may follow one another. A bare number is the only part. */
bool bc_quantity_read(
	uint64_t *value, enum bc_quantity quantity, const char *text, char *err, size_t errlen)
{
	bool is_time = quantity == BC_QUANTITY_TIME;
	uint64_t larger = UINT64_MAX; /* the unit before */
	uint64_t total = 0;
	uint64_t part = 0;

	do {
		struct decimal number;
		const struct unit *unit = kinds[quantity].units;
		const char *rest = read_decimal(&number, text);
		if (rest == NULL)
			return bc_fail(err, errlen, "%s", kinds[quantity].not_one);
		rest += rest[0] == ' ' && rest[1] != '\0';
		size_t n = is_time ? strcspn(rest, " 0123456789") : strlen(rest);
		while (unit->name != NULL &&
			(strlen(unit->name) != n || memcmp(unit->name, rest, n) != 0))
			unit++;
		if (unit->name == NULL && isalpha((unsigned char)*rest))
			return bc_fail(err, errlen, "unknown unit %.*s; use %s",
				(int)(n < 20 ? n : 20), rest, kinds[quantity].names);
		text = rest + n;
		bool is_only = larger == UINT64_MAX && *text == '\0';
		if (unit->name == NULL || unit->value >= larger || (n == 0 && !is_only))
			return bc_fail(err, errlen, "%s", kinds[quantity].not_one);
		const char *fault = scale(
			&part, &number, unit->value, kinds[quantity].max, is_time);
		if (fault != NULL || part > kinds[quantity].max - total)
			return bc_fail(err, errlen, "%s", fault != NULL ? fault : "too large");
		total += part;
		larger = unit->value;
		text += text[0] == ' ' && text[1] != '\0';
	} while (*text != '\0');
	*value = total;
	return true;
}

void bc_quantity_write(char out[BC_QUANTITY_TEXT_MAX], enum bc_quantity quantity, uint64_t value)
{
	const struct unit *best = kinds[quantity].units;

	if (value == 0 || quantity == BC_QUANTITY_COUNT) {
		snprintf(out, BC_QUANTITY_TEXT_MAX, "%" PRIu64, value);
		return;
	}
	best++; /* never without a unit: it may be one of several quantities */
	for (const struct unit *unit = best; unit->name != NULL; unit++)
		if (value % unit->value == 0 && unit->value > best->value)
			best = unit;
	snprintf(out, BC_QUANTITY_TEXT_MAX, "%" PRIu64 "%s", value / best->value, best->name);
}
