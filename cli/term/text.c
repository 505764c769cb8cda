#include "cli/term/text.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/utf8.h"

size_t bc_safe_piece(char out[BC_SAFE_PIECE_MAX], const char *text, size_t n, bool is_escaped)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t length = bc_utf8_bytes(p, n);
	uint32_t code = length != 0 ? bc_utf8_code(p, (uint32_t)length) : 0;
	size_t used = 0;

	if (length != 0 && !bc_utf8_is_unsafe(code) && (code != '\\' || is_escaped)) {
		memcpy(out, text, length);
		out[length] = '\0';
		return length;
	}
	length = length != 0 ? length : 1;
	for (size_t i = 0; i < length; i++)
		used += (size_t)snprintf(out + used, BC_SAFE_PIECE_MAX - used, "\\x%02x", p[i]);
	return length;
}

static const char *write_safe(char *out, size_t outlen, const char *text, bool is_escaped)
{
	size_t n = text != NULL ? strlen(text) : 0;
	size_t used = 0;
	char piece[BC_SAFE_PIECE_MAX];

	while (n != 0) {
		size_t consumed = bc_safe_piece(piece, text, n, is_escaped);
		size_t bytes = strlen(piece);
		if (bytes >= outlen - used)
			break;
		memcpy(out + used, piece, bytes);
		used += bytes;
		text += consumed;
		n -= consumed;
	}
	out[used] = '\0';
	return out;
}

const char *bc_safe_text(char *out, size_t outlen, const char *text)
{
	return write_safe(out, outlen, text, false);
}

const char *bc_safe_escaped(char *out, size_t outlen, const char *text)
{
	return write_safe(out, outlen, text, true);
}

static const char *scaled(char *out, double value, const char *const *units, unsigned count)
{
	unsigned unit = 0;

	if (!(value > 0)) /* or NaN */
		value = 0;
	while (value >= 999.5 && unit + 1 < count) {
		value /= 1000;
		unit++;
	}
	if (value > 1e15)
		value = 1e15;
	int digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
	snprintf(out, BC_HUMANIZE_MAX, "%.*f%s%s", digits, value, *units[unit] != '\0' ? " " : "",
		units[unit]);
	return out;
}

const char *bc_humanize_bytes(char out[BC_HUMANIZE_MAX], double bytes)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};

	return scaled(out, bytes, units, 6);
}

const char *bc_humanize_rate(char out[BC_HUMANIZE_MAX], double per_s)
{
	static const char *const units[] = {"", "k", "M", "G"};

	return scaled(out, per_s, units, 4);
}

const char *bc_humanize_time(char out[BC_HUMANIZE_MAX], double seconds)
{
	static const struct {
		double s;
		const char *name;
		double part_s;
		const char *part;
	} units[] = {{86400, "d", 3600, "h"}, {3600, "h", 60, "min"}, {60, "min", 1, "s"}};

	if (!(seconds > 0))
		seconds = 0;
	if (seconds > 1e12)
		seconds = 1e12;
	for (unsigned i = 0; i < 3; i++) {
		if (seconds < units[i].s)
			continue;
		uint64_t parts = (uint64_t)(seconds / units[i].part_s);
		uint64_t each = (uint64_t)(units[i].s / units[i].part_s);
		snprintf(out, BC_HUMANIZE_MAX, "%" PRIu64 " %s %" PRIu64 " %s", parts / each,
			units[i].name, parts % each, units[i].part);
		return out;
	}
	snprintf(out, BC_HUMANIZE_MAX, seconds < 10 && seconds > 0 ? "%.1f s" : "%.0f s", seconds);
	return out;
}
