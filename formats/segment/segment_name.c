#include "formats/segment/segment_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool bc_word_is_valid(const char *word)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t n = strspn(word, allowed);

	return word[n] == '\0' && n >= 1 && n <= BC_WORD_MAX;
}

void bc_recording_id_write(
	char out[BC_RECORDING_ID_MAX], int64_t wall_ns, uint32_t random, const char *label)
{
	time_t seconds = (time_t)(wall_ns / 1000000000);
	struct tm tm;
	char start[32];

	gmtime_r(&seconds, &tm);
	strftime(start, sizeof(start), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(out, BC_RECORDING_ID_MAX, "%s-%06x%s%.*s", start, (unsigned)(random & 0xFFFFFF),
		label[0] != '\0' ? "-" : "", BC_LABEL_MAX, label);
}

/* Numbers of more than five digits have a letter in front, so that they sort after shorter ones. */
static char letter_of(size_t digits)
{
	return (char)('a' + digits - 6);
}

void bc_segment_name_write(char out[BC_SEGMENT_NAME_MAX], const struct bc_segment_name *name)
{
	char number[16];
	int digits = snprintf(number + 1, sizeof(number) - 1, "%05" PRIu32, name->segment);

	number[0] = letter_of((size_t)digits);
	int n = snprintf(out, BC_SEGMENT_NAME_MAX, "%s-%s%s%s", name->recording,
		number + (digits == 5), bc_frames_info[name->frames].suffix,
		name->is_partial     ? BC_PARTIAL_SUFFIX
		: name->damaged != 0 ? BC_DAMAGED_SUFFIX
				     : "");

	if (name->damaged > 1)
		snprintf(out + n, BC_SEGMENT_NAME_MAX - (size_t)n, ".%u", name->damaged);
}

/* Removes a suffix from the first *n bytes of a string. Returns false if they don't end in it. */
static bool strip_suffix(const char *text, size_t *n, const char *suffix)
{
	size_t m = strlen(suffix);

	if (*n < m || memcmp(text + *n - m, suffix, m) != 0)
		return false;
	*n -= m;
	return true;
}

/* Removes .damaged or .damaged.N from the first *n bytes. Returns its number, or 0. */
static unsigned strip_damaged(const char *text, size_t *n)
{
	size_t end = *n;
	unsigned number = 0;

	if (strip_suffix(text, n, BC_DAMAGED_SUFFIX))
		return 1;
	for (unsigned scale = 1; scale <= BC_DAMAGED_MAX && end != 0; scale *= 10) {
		char digit = text[end - 1];
		if (digit < '0' || digit > '9')
			break;
		number += (unsigned)(digit - '0') * scale;
		end--;
	}
	if (number < 2 || text[end] == '0' || !strip_suffix(text, &end, BC_DAMAGED_SUFFIX "."))
		return 0;
	*n = end;
	return number;
}

bool bc_segment_name_read(struct bc_segment_name *name, const char *file)
{
	size_t n = strlen(file);

	name->is_partial = strip_suffix(file, &n, BC_PARTIAL_SUFFIX);
	name->damaged = name->is_partial ? 0 : strip_damaged(file, &n);
	if (!bc_frames_by_name(&name->frames, file, n))
		return false;
	n -= strlen(bc_frames_info[name->frames].suffix);
	size_t digits = 0;
	while (digits < n && file[n - 1 - digits] >= '0' && file[n - 1 - digits] <= '9')
		digits++;
	const char *number = file + n - digits;
	bool is_long = digits > 5;
	size_t id_bytes = n - digits - is_long - 1; /* wraps around without an id */
	if (digits < 5 || digits > 10 || n < digits + is_long + 2 ||
		(is_long && (number[0] == '0' || number[-1] != letter_of(digits))) ||
		file[id_bytes] != '-' || id_bytes >= BC_RECORDING_ID_MAX ||
		memchr(file, '/', n) != NULL)
		return false;
	unsigned long long segment = strtoull(number, NULL, 10);
	if (segment > UINT32_MAX)
		return false;
	name->segment = (uint32_t)segment;
	memcpy(name->recording, file, id_bytes);
	name->recording[id_bytes] = '\0';
	return true;
}

static unsigned rank_of(const struct bc_segment_name *name)
{
	return name->is_partial ? 1 : name->damaged != 0 ? name->damaged + 1 : 0;
}

int bc_segment_name_compare(const void *a, const void *b)
{
	const struct bc_segment_name *x = a;
	const struct bc_segment_name *y = b;
	int order = strcmp(x->recording, y->recording);

	if (order != 0)
		return order;
	if (x->segment != y->segment)
		return x->segment < y->segment ? -1 : 1;
	order = (int)rank_of(x) - (int)rank_of(y);
	return order != 0 ? order : (int)x->frames - (int)y->frames;
}

bool bc_recording_id_start(int64_t *ns, const char *id)
{
	struct tm tm = {.tm_year = 0};
	unsigned fraction;
	int end = 0;

	if (strlen(id) < 23 ||
		sscanf(id, "%4d%2d%2dT%2d%2d%2dZ-%3x%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
			&tm.tm_hour, &tm.tm_min, &tm.tm_sec, &fraction, &end) != 7 ||
		end != 20)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	*ns = (int64_t)timegm(&tm) * 1000000000 + (int64_t)fraction * 1000000000 / 4096;
	return true;
}
