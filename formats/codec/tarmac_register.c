#include "formats/codec/tarmac_register.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/fast_parse.h"

/* Known registers, numbered and single. */
static const struct family {
	const char *prefix;
	const char *name;
	unsigned count; /* 0: a single register without a number */
	unsigned bytes; /* 0: as many as are written */
} families[] = {
	{"r", "r", 16, 4},
	{"x", "x", 31, 8},
	{"e", "x", 31, 8},
	{"s", "s", 32, 4},
	{"d", "d", 32, 8},
	{"q", "q", 32, 16},
	{"v", "v", 32, 16},
	{"z", "z", 32, 0},
	{"p", "p", 32, 0},
	{"psr", "psr", 0, 4},
	{"cpsr", "psr", 0, 4},
	{"fpcr", "fpcr", 0, 4},
	{"fpscr", "fpscr", 0, 4},
	{"lr", "r14", 0, 4},
	{"msp", "r13", 0, 4},
	{"sp", "sp", 0, 0},
};

/* Digits of a value: hex digits, x read as 0, and '-' for unchanged ones. */
struct digits {
	char at[2 * BC_REGISTER_BYTES];
	unsigned count;
};

static int parse_digits(struct digits *digits, struct bc_text value)
{
	digits->count = 0;
	for (uint32_t i = 0; i < value.bytes; i++) {
		char c = value.at[i];
		if (c == '_' || c == ':' || bc_is_space(c))
			continue;
		if ((c | 0x20) == 'x')
			c = '0';
		if ((bc_hex_value[(uint8_t)c] > 15 && c != '-') ||
			digits->count == sizeof(digits->at))
			return -EINVAL;
		digits->at[digits->count++] = c;
	}
	return digits->count != 0 ? 0 : -EINVAL;
}

static bool is_all(const struct digits *digits, char c)
{
	for (unsigned i = 0; i < digits->count; i++)
		if (digits->at[i] != c)
			return false;
	return true;
}

/* Extends the digits to `count` with leading `c`. */
static void widen(struct digits *digits, unsigned count, char c)
{
	if (digits->count >= count)
		return;
	memmove(digits->at + (count - digits->count), digits->at, digits->count);
	memset(digits->at, c, count - digits->count);
	digits->count = count;
}

/* Parses "<127:64>" at the end of a name: the bits that are written. */
static bool parse_range(const char *range, unsigned *low, unsigned *bytes)
{
	char *end;
	unsigned long high = strtoul(range + 1, &end, 10);

	if (*end != ':')
		return false;
	unsigned long from = strtoul(end + 1, &end, 10);
	if (*end != '>' || from % 8 != 0 || high % 8 != 7 || high < from ||
		high >= BC_REGISTER_BYTES * 8)
		return false;
	*low = (unsigned)from / 8;
	*bytes = (unsigned)(high + 1 - from) / 8;
	return true;
}

/* Finds the family of a name that starts with `letters` letters, and sets its number. */
static const struct family *family_of(const char *name, size_t letters, unsigned long *number)
{
	const char *digits = name + letters;
	bool has_number = (uint8_t)(*digits - '0') <= 9;

	*number = strtoul(digits, NULL, 10);
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		const struct family *f = &families[i];
		if (strlen(f->prefix) != letters || memcmp(f->prefix, name, letters) != 0)
			continue;
		if (f->count != 0 ? has_number && *number < f->count : !has_number)
			return f;
	}
	return NULL;
}

/* Truncates or extends the digits to the size of the register. */
static void fit_digits(struct digits *digits, unsigned bytes, bool is_status)
{
	if (is_status && digits->count > 8) {
		memmove(digits->at, digits->at + (digits->count - 8), 8);
		digits->count = 8;
	}
	if (is_status || is_all(digits, '0'))
		widen(digits, bytes * 2, '0');
	else if (is_all(digits, '-'))
		widen(digits, bytes * 2, '-');
	if (digits->count % 2 != 0 && digits->at[0] != '-')
		widen(digits, digits->count + 1, '0');
}

/* Stores the digits. Those that are not '-' must be one contiguous run of bytes. */
static int store_bytes(struct bc_register_write *out, const struct digits *digits, unsigned low)
{
	unsigned end = digits->count;
	unsigned begin;

	while (end != 0 && digits->at[end - 1] == '-')
		end--;
	for (begin = end; begin != 0 && digits->at[begin - 1] != '-';)
		begin--;
	for (unsigned i = 0; i < begin; i++)
		if (digits->at[i] != '-')
			return -EINVAL;
	if (digits->count % 2 != 0 || begin % 2 != 0 || end % 2 != 0)
		return -EINVAL;
	out->offset = end == 0 ? low : low + (digits->count - end) / 2;
	out->bytes = (end - begin) / 2;
	for (unsigned i = 0; i < out->bytes; i++)
		out->value[i] = (uint8_t)(bc_hex_value[(uint8_t)digits->at[begin + 2 * i]] << 4 |
					  bc_hex_value[(uint8_t)digits->at[begin + 2 * i + 1]]);
	return 0;
}

/* Copies the name in lower case, without its range. Returns the range, or NULL. */
static char *copy_lower_case(char *out, struct bc_text name)
{
	for (uint32_t i = 0; i < name.bytes; i++) {
		out[i] = name.at[i];
		if (out[i] >= 'A' && out[i] <= 'Z')
			out[i] = (char)(out[i] + ('a' - 'A'));
	}
	out[name.bytes] = '\0';
	char *range = strchr(out, '<');
	if (range != NULL)
		*range = '\0';
	return range;
}

static void store_name(struct bc_register_write *out, const char *name, const struct family *f,
	unsigned long number, unsigned digits)
{
	bool is_stack = f != NULL && strcmp(f->prefix, "sp") == 0;

	if (is_stack && (digits == 8 || digits == 16))
		snprintf(out->name, sizeof(out->name), "%s", digits == 8 ? "r13" : "xsp");
	else if (f == NULL || is_stack)
		snprintf(out->name, sizeof(out->name), "%s", name);
	else if (f->count != 0)
		snprintf(out->name, sizeof(out->name), "%s%lu", f->name, number);
	else
		snprintf(out->name, sizeof(out->name), "%s", f->name);
}

int bc_tarmac_register(struct bc_register_write *out, const struct bc_register *reg)
{
	char name[sizeof(out->name)];
	struct digits digits;
	unsigned low = 0;
	unsigned bytes = 0;
	unsigned long number;

	if (reg->name.bytes == 0 || reg->name.bytes >= sizeof(name) ||
		parse_digits(&digits, reg->value) != 0)
		return -EINVAL;
	const char *range = copy_lower_case(name, reg->name);
	if (range != NULL && !parse_range(range, &low, &bytes))
		return -EINVAL;
	const struct family *f = family_of(name, strcspn(name, "0123456789_"), &number);
	store_name(out, name, f, number, digits.count);
	if (f != NULL && range == NULL)
		bytes = f->bytes;
	bool is_status = f != NULL && (strcmp(f->name, "psr") == 0 || strcmp(f->name, "fpcr") == 0);
	fit_digits(&digits, bytes, is_status);
	return store_bytes(out, &digits, low);
}
