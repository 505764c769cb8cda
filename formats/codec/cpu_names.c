#include "formats/codec/cpu_names.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "formats/base/fast_parse.h"
#include "formats/base/hash.h"

static bool is_set(const uint64_t *bits, uint16_t number)
{
	return (bits[number / 64] >> number % 64 & 1) != 0;
}

static void set(uint64_t *bits, uint16_t number)
{
	bits[number / 64] |= UINT64_C(1) << number % 64;
}

static bool is_digit(char c)
{
	return (uint8_t)(c - '0') <= 9;
}

/* Reads the number at `at`, of up to 16 bits. */
static bool read_number(const char *at, const char *end, uint16_t *number)
{
	uint32_t sum = 0;

	if (at == end || !is_digit(*at))
		return false;
	for (; at < end && is_digit(*at); at++) {
		sum = sum * 10 + (uint32_t)(*at - '0');
		if (sum > UINT16_MAX)
			return false;
	}
	*number = (uint16_t)sum;
	return true;
}

/* Finds the number in a name: that after the last "cpu" or "core", or else the last one. */
static bool find_number(const char *name, size_t bytes, uint16_t *number)
{
	const char *end = name + bytes;
	bool has_word = false;
	bool is_found = false;

	for (const char *at = name; at < end; at++) {
		size_t word = strncasecmp(at, "cpu", 3) == 0    ? 3
			      : strncasecmp(at, "core", 4) == 0 ? 4
								: 0;
		if (word != 0 && (size_t)(end - at) > word) {
			const char *digits = at + word;
			digits += *digits == '_' || *digits == '[' || *digits == '-';
			if (read_number(digits, end, number))
				has_word = is_found = true;
		} else if (!has_word && is_digit(*at) && (at == name || !is_digit(at[-1]))) {
			is_found |= read_number(at, end, number);
		}
	}
	return is_found;
}

static struct bc_cpu_name *find_name(struct bc_cpu_names *names, uint64_t hash)
{
	if (names->count != 0 && names->names[names->last].hash == hash)
		return &names->names[names->last];
	for (unsigned i = 0; i < names->count; i++)
		if (names->names[i].hash == hash) {
			names->last = i;
			return &names->names[i];
		}
	return NULL;
}

bool bc_cpu_is_known(const struct bc_cpu_names *names, const char *name, size_t bytes)
{
	uint64_t hash = bc_hash(name, bytes);

	for (unsigned i = 0; i < names->count; i++)
		if (names->names[i].hash == hash)
			return true;
	return false;
}

bool bc_cpu_number(struct bc_cpu_names *names, const char *name, size_t bytes, uint16_t *proc)
{
	uint64_t hash = bc_hash(name, bytes);
	const struct bc_cpu_name *known = find_name(names, hash);
	uint16_t number = 0;

	if (known != NULL) {
		*proc = known->proc;
		return true;
	}
	if (names->count == BC_CPU_NAMES) {
		names->unnumbered++;
		return false;
	}
	bool is_odd = !find_number(name, bytes, &number) || is_set(names->used, number);
	if (is_odd)
		for (number = 0; number < UINT16_MAX && is_set(names->used, number);)
			number++;
	set(names->used, number);
	set(names->named, number);
	struct bc_cpu_name *added = &names->names[names->last = names->count++];
	*added = (struct bc_cpu_name){.hash = hash, .proc = number, .is_odd = is_odd};
	names->odd += is_odd;
	size_t cut = bytes < sizeof(added->end) ? 0 : bytes - (sizeof(added->end) - 1);
	memcpy(added->end, name + cut, bytes - cut);
	*proc = number;
	return true;
}

bool bc_cpu_plain(struct bc_cpu_names *names, uint16_t number, uint16_t *proc)
{
	char name[16];

	if (is_set(names->named, number)) {
		snprintf(name, sizeof(name), "cpu%u", (unsigned)number);
		return bc_cpu_number(names, name, strlen(name), proc);
	}
	set(names->used, number);
	*proc = number;
	return true;
}

void bc_cpu_notes(const struct bc_cpu_names *names, struct bc_parse_notes *notes)
{
	unsigned n = 0;

	notes->unnumbered = names->unnumbered;
	notes->names = names->odd;
	for (unsigned i = 0; i < names->count && n < BC_NOTES_NAMES; i++) {
		if (!names->names[i].is_odd)
			continue;
		notes->named[n].proc = names->names[i].proc;
		memcpy(notes->named[n++].name, names->names[i].end, BC_NOTES_NAME_BYTES);
	}
}
