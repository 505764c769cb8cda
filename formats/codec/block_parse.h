/* Branch-free parsing: like formats/base/fast_text.h, but several bytes at once. It needs
 * BC_PARSE_PADDING readable bytes after the line, which the block given to a parser has.
 *
 * A loop over the bytes of a word ends at a point that the processor cannot predict. Parsers
 * therefore handle typical lines without such loops: a bit mask of the blanks gives the position of
 * each word, and up to sixteen digits are converted at once. Unusual lines take the slower path. */
#ifndef BC_FORMATS_CODEC_BLOCK_PARSE_H
#define BC_FORMATS_CODEC_BLOCK_PARSE_H

#include "formats/base/fast_text.h"
#include "formats/trace/parser.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Portable versions. Tests compare them with the SSE2 versions. */

/* Reads up to eight hex digits and returns their number. Adding constants carries digits and
 * letters, and only these, into the top bit of their byte. The digits are then shifted to end with
 * the last byte and combined in pairs. */
static inline unsigned bc_hex8_plain(const char *at, uint32_t *value)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t x = bc_le64((const uint8_t *)at);
	uint64_t low = x & 0x7F * ones;
	uint64_t small = low | 0x20 * ones;
	uint64_t is_digit = (low + 0x50 * ones) & ~(low + 0x46 * ones);
	uint64_t is_letter = (small + 0x1F * ones) & ~(small + 0x19 * ones);
	uint64_t is_other = ~((is_digit | is_letter) & ~x) & 0x80 * ones;
	unsigned n = is_other != 0 ? (unsigned)__builtin_ctzll(is_other) / 8 : 8;

	x = (x & 0x0F * ones) + (x >> 6 & ones) * 9;
	x = n != 0 ? x << (8 - n) * 8 : 0;
	x = (x << 4 | x >> 8) & UINT64_C(0x00FF00FF00FF00FF);
	x = (x << 8 | x >> 16) & UINT64_C(0x0000FFFF0000FFFF);
	*value = (uint32_t)(x << 16 | x >> 32);
	return n;
}

static inline unsigned bc_hex16_plain(const char *at, uint64_t *value)
{
	uint32_t high;
	uint32_t low;
	unsigned n = bc_hex8_plain(at, &high);

	*value = high;
	if (n < 8)
		return n;
	n = bc_hex8_plain(at + 8, &low);
	*value = (uint64_t)high << n * 4 | low;
	return 8 + n;
}

/* Bit i is set if adding `least` to byte i of sixteen does not carry into its top bit. */
static inline uint32_t bc_below16_plain(const char *at, uint64_t least)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint32_t mask = 0;

	for (unsigned i = 0; i < 2; i++) {
		uint64_t x = bc_le64((const uint8_t *)at + 8 * (size_t)i);
		uint64_t is_below = ~(((x & 0x7F * ones) + least * ones) | x) >> 7 & ones;
		mask |= (uint32_t)(is_below * UINT64_C(0x0102040810204080) >> 56) << 8 * i;
	}
	return mask;
}

/* Bit i is set if byte i of sixteen is a space or a control character. */
static inline uint32_t bc_blanks16_plain(const char *at)
{
	return bc_below16_plain(at, 0x7F - ' ');
}

static inline uint32_t bc_controls16_plain(const char *at)
{
	return bc_below16_plain(at, 0x80 - ' ');
}

/* Reads up to sixteen hex digits and returns their number. */
static inline unsigned bc_hex16(const char *at, uint64_t *value)
{
#ifdef __SSE2__
	__m128i x = _mm_loadu_si128((const __m128i *)(const void *)at);
	__m128i digit = _mm_sub_epi8(x, _mm_set1_epi8('0'));
	__m128i letter = _mm_sub_epi8(_mm_or_si128(x, _mm_set1_epi8(0x20)), _mm_set1_epi8('a'));
	__m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(digit, _mm_set1_epi8(9)), digit);
	__m128i is_letter = _mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(5)), letter);
	unsigned is_hex = (unsigned)_mm_movemask_epi8(_mm_or_si128(is_digit, is_letter));
	unsigned n = (unsigned)__builtin_ctz(~is_hex);
	__m128i nibbles = _mm_or_si128(_mm_and_si128(is_digit, digit),
		_mm_and_si128(is_letter, _mm_add_epi8(letter, _mm_set1_epi8(10))));
	__m128i pairs = _mm_and_si128(
		_mm_or_si128(_mm_slli_epi16(nibbles, 4), _mm_srli_epi16(nibbles, 8)),
		_mm_set1_epi16(0xFF));
	uint64_t all = __builtin_bswap64(
		(uint64_t)_mm_cvtsi128_si64(_mm_packus_epi16(pairs, pairs)));
	*value = n != 0 ? all >> (64 - 4 * n) : 0;
	return n;
#else
	return bc_hex16_plain(at, value);
#endif
}

static inline uint32_t bc_blanks16(const char *at)
{
#ifdef __SSE2__
	__m128i x = _mm_loadu_si128((const __m128i *)(const void *)at);
	return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(x, _mm_set1_epi8(' ')), x));
#else
	return bc_blanks16_plain(at);
#endif
}

/* The same for control characters only. */
static inline uint32_t bc_controls16(const char *at)
{
#ifdef __SSE2__
	__m128i x = _mm_loadu_si128((const __m128i *)(const void *)at);
	return (uint32_t)_mm_movemask_epi8(
		_mm_cmpeq_epi8(_mm_min_epu8(x, _mm_set1_epi8(' ' - 1)), x));
#else
	return bc_controls16_plain(at);
#endif
}

static inline uint32_t bc_blanks32(const char *at)
{
	return bc_blanks16(at) | bc_blanks16(at + 16) << 16;
}

static inline uint64_t bc_blanks64(const char *at)
{
	return bc_blanks32(at) | (uint64_t)bc_blanks32(at + 32) << 32;
}

static inline uint64_t bc_controls64(const char *at)
{
	uint64_t low = bc_controls16(at) | bc_controls16(at + 16) << 16;
	uint64_t high = bc_controls16(at + 32) | bc_controls16(at + 48) << 16;

	return low | high << 32;
}

/* Reads the decimal number with `digits` digits (1 to 8) that ends just before `end`. The rest of
 * the 8 bytes before `end` is ignored. Returns false if one of the bytes is not a digit. */
static inline bool bc_decimal8_before(const char *end, unsigned digits, uint32_t *value)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	unsigned others = (8 - digits) * 8;
	uint64_t x = bc_le64((const uint8_t *)end - 8) ^ '0' * ones;

	x = x >> others << others;
	bool ok = (((x + 0x76 * ones) | x) & 0x80 * ones) == 0;
	x = (x * 10 + (x >> 8)) & UINT64_C(0x00FF00FF00FF00FF);
	x = (x * 100 + (x >> 16)) & UINT64_C(0x0000FFFF0000FFFF);
	*value = (uint32_t)(x * 10000 + (x >> 32));
	return ok;
}

/* Same as bc_parse_hex(). */
static inline bool bc_parse_hex_block(const char **at, uint64_t *value)
{
	const char *p = *at;
	unsigned n = bc_hex16(p, value);

	if (n == 16 && bc_hex_value[(uint8_t)p[16]] <= 15)
		return bc_parse_hex(at, value); /* leading zeros, or too many digits */
	*at = p + n;
	return n != 0;
}

/* A reference parsed from a line; size 0: unknown. */
struct bc_reference_line {
	unsigned type;
	uint64_t addr;
	uint64_t size;
};

/* Adds the reference, and moves on to the next line. */
static inline void bc_add_reference_line(
	struct bc_parse *p, const struct bc_reference_line *line, const char *next)
{
	struct bc_entry *entry = &p->entries[p->count++];

	bc_entry_reference(entry, line->type, line->addr, p->number);
	entry->traits = line->size != 0 ? BC_TRAIT_SIZE : 0;
	entry->size = (uint32_t)line->size;
	p->at = next;
}

/* Ends a line with the size in [digits, at). Returns the next; NULL sets p->bad and p->expected. */
static inline const char *bc_end_reference_line(struct bc_parse *p, const char *digits,
	const char *at, bool has_size, uint64_t size, const char *expected)
{
	p->bad = has_size ? digits : at;
	p->expected = expected;
	if (!has_size || size > UINT32_MAX)
		return NULL;
	at = bc_skip_spaces(at);
	p->bad = at;
	p->expected = "expected nothing after the size";
	return *at == '\n' ? at + 1 : NULL;
}

#endif
