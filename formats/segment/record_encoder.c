/* Compresses BYU records to an LZ4 block. docs/encoder.md has the reasons and figures.
 *
 * For each record, the encoder has a few candidates: earlier records that had the same eight bytes
 * in the same place, found in a table per place ("context"), and the record at the distance of the
 * last match. Each is compared with the record in one step: a window of 16 bytes, from the time of
 * the record before to the record's end, gives a set of equal bytes. Sets are compared as numbers.
 * The candidate with more equal bytes at the end of the record wins, because its match usually
 * continues into the next one.
 *
 * After most matches the next search is at the next record, wherever the match began. The code has
 * a branch for this case, so that the processor guesses it and starts the next search before it has
 * finished this one. Without that branch the encoder takes a quarter to a third longer. */

#include "formats/segment/record_encoder.h"

/* These steps of GCC's -O2, which remove redundant computations, make the loop a fifth slower. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-pre,no-gcse")
#endif

#include <lz4.h>
#include <stdbool.h>
#include <string.h>

#if defined(__SSE2__) && !defined(BC_NO_SIMD)
#include <emmintrin.h>
#endif

#include "formats/base/bytes.h"
#include "formats/bus/record.h"

/* ---- an LZ4 block, written sequence by sequence: literals, then a match. lz4_Block_format.md in
 * the LZ4 project has the format. */

#define LZ4_MATCH_MIN 4u

/* The last bytes of a block are literals. (The last match must also start 12 bytes before the end:
 * the encoder ends with a literal record.) */
#define LZ4_LAST_LITERALS 5u

#define LZ4_OFFSET_MAX 65535u

/* Short literals are copied in one step of this length, however short they are: as many bytes must
 * be readable from their start on, and there must be as much room in the output. */
#define LZ4_COPY 16u

struct lz4_block {
	uint8_t *out;            /* the next byte */
	const uint8_t *out_end;  /* of the room */
	const uint8_t *safe_end; /* literals that end here leave room for everything else */
	const uint8_t *literals; /* the next byte of input to be written */
};

/* Starts a block of the input in .. in + bytes. */
static inline void lz4_start(
	struct lz4_block *b, uint8_t *out, size_t room, const uint8_t *in, size_t bytes)
{
	/* The lengths of all literals and matches, a token and an offset, and a copy's excess. */
	size_t reserve = bytes / 255 + 8 + LZ4_COPY;

	b->out = out;
	b->out_end = out + room;
	b->safe_end = room > reserve ? b->out_end - reserve : out;
	b->literals = in;
}

/* Writes what does not fit into a length's four bits in the token. */
static inline uint8_t *lz4_write_length(uint8_t *out, size_t rest)
{
	for (; rest >= 255; rest -= 255)
		*out++ = 255;
	*out++ = (uint8_t)rest;
	return out;
}

/* Writes the input up to `match` as literals, then a match of `length` bytes at `offset`. Returns
 * false, and writes nothing, if there may not be enough room. */
static inline __attribute__((always_inline)) bool lz4_write_sequence(
	struct lz4_block *b, const uint8_t *match, size_t length, size_t offset)
{
	size_t literals = (size_t)(match - b->literals);
	size_t rest = length - LZ4_MATCH_MIN;
	uint8_t *out = b->out;

	if (__builtin_expect((ptrdiff_t)literals > b->safe_end - out, 0))
		return false;
	uint8_t *token = out++;
	if (__builtin_expect(literals < 15, 1)) {
		*token = (uint8_t)(literals << 4);
		memcpy(out, b->literals, LZ4_COPY);
	} else {
		*token = 15 << 4;
		out = lz4_write_length(out, literals - 15);
		memcpy(out, b->literals, literals);
	}
	out += literals;
	bc_write_le16(out, (uint16_t)offset);
	out += 2;
	if (__builtin_expect(rest < 15, 1)) {
		*token |= (uint8_t)rest;
	} else {
		*token |= 15;
		out = lz4_write_length(out, rest - 15);
	}
	b->out = out;
	b->literals = match + length;
	return true;
}

/* Ends the block: writes the input up to `end` as literals. Returns false if there is no room. */
static inline bool lz4_write_last(struct lz4_block *b, const uint8_t *end)
{
	size_t literals = (size_t)(end - b->literals);
	size_t length_bytes = literals < 15 ? 0 : (literals - 15) / 255 + 1;

	if ((size_t)(b->out_end - b->out) < 1 + length_bytes + literals)
		return false;
	uint8_t *token = b->out++;
	*token = (uint8_t)((literals < 15 ? literals : 15) << 4);
	if (literals >= 15)
		b->out = lz4_write_length(b->out, literals - 15);
	memcpy(b->out, b->literals, literals);
	b->out += literals;
	b->literals = end;
	return true;
}

/* ---- the search for matches */

#define R BC_RECORD_BYTES

/* Records before the current one that an LZ4 offset can reach. */
#define REACH (LZ4_OFFSET_MAX / R)

/* The window. */
#define BEFORE 4u
#define WINDOW 16u
#define ALL    0xFFFFu
#define TIME   0xF000u /* the record's time: the end of the window */

/* The first records of a block have no candidates whose window is inside the block. */
#define FIRST 2u

/* Fewer records are left to LZ4. */
#define RECORDS_MIN 16u

/* About how many records the encoder looks at beforehand, and after how many it checks that they
 * suit it. Others are left to LZ4. */
#define SAMPLE 512u
#define TRIAL  1024u

/* After this many records without a match, it skips one more each time. */
#define PATIENCE 16u

#define TABLE_BITS 13

/* Where the eight bytes of a context start, relative to the record. This order is fast. */
#define CONTEXTS 6
static const int contexts[CONTEXTS] = {0, 2, 4, 1, 3, -4};

/* The contexts of a level, as a set. */
enum {
	FAST_CONTEXTS = 1 << 0 | 1 << 2,
	DEFAULT_CONTEXTS = 1 << 0 | 1 << 1 | 1 << 2,
	DENSE_CONTEXTS = (1 << CONTEXTS) - 1,
};

struct encoder {
	struct lz4_block block;
	const uint8_t *in;
	const uint8_t *match_end; /* no match may go beyond */
	uint32_t n;               /* the next record to look for */
	uint32_t distance;        /* of the last match, in records */
	uint32_t partial;         /* matches that do not reach the end of a record */
	/* By context and hash: a record's number modulo 2^16. */
	uint16_t tables[CONTEXTS][1 << TABLE_BITS];
};

/* The set of bytes of two windows that are equal: bit i for byte i. */
static inline unsigned equal_bytes(const uint8_t *a, const uint8_t *b)
{
#if defined(__SSE2__) && !defined(BC_NO_SIMD)
	__m128i equal = _mm_cmpeq_epi8(
		_mm_loadu_si128((const __m128i *)a), _mm_loadu_si128((const __m128i *)b));
	return (unsigned)_mm_movemask_epi8(equal);
#else
	const uint64_t low_bits = UINT64_C(0x7F7F7F7F7F7F7F7F);
	unsigned set = 0;

	for (unsigned i = 0; i < WINDOW; i += 8) {
		uint64_t differ = bc_le64(a + i) ^ bc_le64(b + i);
		/* The high bit of each byte that is zero; then all eight in one byte. */
		uint64_t zero = ~(((differ & low_bits) + low_bits) | differ | low_bits);
		set |= (unsigned)((zero >> 7) * UINT64_C(0x0102040810204080) >> 56) << i;
	}
	return set;
#endif
}

/* Where runs of at least four equal bytes start, as a set. */
static inline unsigned runs_of_four(unsigned equal)
{
	unsigned pairs = equal & equal >> 1;
	return pairs & pairs >> 2;
}

/* Returns where the run of equal bytes starts that reaches the end of the window. */
static inline unsigned last_run(unsigned equal)
{
	return 31 - (unsigned)__builtin_clz((~equal & ALL) << 1 | 1);
}

/* Returns where the run of equal bytes ends that starts at `start`. */
static inline unsigned run_end(unsigned equal, unsigned start)
{
	return start + (unsigned)__builtin_ctz(~(equal >> start));
}

/* Returns where the bytes from `at` on cease to equal those at `offset` before them. */
static inline const uint8_t *match_end(const uint8_t *at, size_t offset, const uint8_t *end)
{
	for (; end - at >= (ptrdiff_t)WINDOW; at += WINDOW) {
		unsigned differ = ~equal_bytes(at, at - offset) & ALL;
		if (differ != 0)
			return at + __builtin_ctz(differ);
	}
	while (at < end && *at == *(at - offset))
		at++;
	return at;
}

/* Returns how far back the bytes before `match` equal those at `offset` before them: at most to
 * `start`, and not before the block's first byte. */
static inline const uint8_t *match_start(
	const uint8_t *match, size_t offset, const uint8_t *start, const uint8_t *in)
{
	while (match > start && match - offset > in && match[-1] == *(match - 1 - offset))
		match--;
	return match;
}

/* The entry of the eight bytes at `key`. */
static inline uint16_t *entry_of(uint16_t *table, const uint8_t *key)
{
	return &table[bc_le64(key) * UINT64_C(0x9E3779B97F4A7C15) >> (64 - TABLE_BITS)];
}

/* A search for record n. */
struct search {
	const uint8_t *record;
	const uint8_t *window;
	uint32_t n;
	uint32_t reach;    /* the largest distance */
	unsigned left;     /* the bytes of the window that are not encoded yet */
	uint32_t distance; /* of the best candidate so far, in records */
	unsigned equal;    /* its bytes that are equal, of those left */
};

static inline void consider(struct search *s, uint32_t distance)
{
	unsigned equal = equal_bytes(s->window, s->window - (size_t)distance * R) & s->left;

	s->distance = equal > s->equal ? distance : s->distance;
	s->equal = equal > s->equal ? equal : s->equal;
}

/* Looks at the last record entered for each context. */
static inline __attribute__((always_inline)) void search_last(
	struct encoder *e, struct search *s, const unsigned used)
{
	uint32_t found[CONTEXTS];

#pragma GCC unroll 8
	for (unsigned i = 0; i < CONTEXTS; i++)
		if ((used & 1u << i) != 0) {
			uint16_t *entry = entry_of(e->tables[i], s->record + contexts[i]);
			uint32_t distance = (uint16_t)(s->n - *entry);
			*entry = (uint16_t)s->n;
			/* Without one, the record before is as good as any. */
			found[i] = distance - 1 < s->reach ? distance : 1;
		}
	consider(s, s->distance);
#pragma GCC unroll 8
	for (unsigned i = 0; i < CONTEXTS; i++)
		if ((used & 1u << i) != 0)
			consider(s, found[i]);
}

/* Encodes records until number `last`. Returns false if the block has no room for them. */
static inline __attribute__((always_inline)) bool encode_records(
	struct encoder *e, uint32_t last, const unsigned used)
{
	struct lz4_block block = e->block;
	uint32_t n = e->n;
	const uint8_t *record = e->in + (size_t)n * R;
	uint32_t distance = e->distance;
	uint32_t misses = 0;
	uint32_t partial = 0;
	bool has_room = true;

	while (n < last) {
		const uint8_t *window = record - BEFORE;
		ptrdiff_t done = block.literals - window;
		struct search search = {
			.record = record,
			.window = window,
			.n = n,
			.reach = n - FIRST < REACH ? n - FIRST : REACH,
			.left = ALL << (done > 0 ? done : 0) & ALL,
			.distance = distance,
		};
		search_last(e, &search, used);
		distance = search.distance;
		unsigned equal = search.equal;

		size_t offset = (size_t)distance * R;
		const uint8_t *match;
		const uint8_t *end;
		if (__builtin_expect(equal >= TIME, 1)) {
			match = window + last_run(equal);
			if (__builtin_expect(record[R] != *(record + R - offset), 1) &&
				__builtin_expect(match != window, 1)) {
				record += R;
				n++;
				misses = 0;
				has_room = lz4_write_sequence(
					&block, match, (size_t)(record - match), offset);
				if (!has_room)
					break;
				continue;
			}
			end = match_end(record + R, offset, e->match_end);
		} else {
			unsigned runs = runs_of_four(equal);
			if (runs == 0) {
				uint32_t step = 1 + misses++ / PATIENCE;
				step = step < last - n ? step : last - n;
				n += step;
				record += (size_t)step * R;
				continue;
			}
			unsigned start = (unsigned)__builtin_ctz(runs);
			match = window + start;
			end = window + run_end(equal, start);
			partial++;
		}
		misses = 0;
		if (match == window)
			match = match_start(match, offset, block.literals, e->in);
		has_room = lz4_write_sequence(&block, match, (size_t)(end - match), offset);
		if (!has_room)
			break;
		n = (uint32_t)((size_t)(end - e->in) + BEFORE) / R;
		record = e->in + (size_t)n * R;
	}
	e->block = block;
	e->n = n;
	e->distance = distance;
	e->partial += partial;
	return has_room;
}

/* A function for each level, in which the contexts are a constant. */

static bool encode_fast(struct encoder *e, uint32_t last)
{
	return encode_records(e, last, FAST_CONTEXTS);
}

static bool encode_default(struct encoder *e, uint32_t last)
{
	return encode_records(e, last, DEFAULT_CONTEXTS);
}

static bool encode_dense(struct encoder *e, uint32_t last)
{
	return encode_records(e, last, DENSE_CONTEXTS);
}

static bool (*const encoders[BC_LEVELS])(struct encoder *e, uint32_t last) = {
	[BC_LEVEL_FAST] = encode_fast,
	[BC_LEVEL_DEFAULT] = encode_default,
	[BC_LEVEL_DENSE] = encode_dense,
};

static size_t compress_by_lz4(uint8_t *out, size_t room, const uint8_t *in, size_t bytes)
{
	int n = LZ4_compress_default((const char *)in, (char *)out, (int)bytes, (int)room);
	return n > 0 ? (size_t)n : 0;
}

/* True if the times in a sample of records differ. Without bus timing, LZ4 is as good and faster.
 * The first record of a recording has no time. */
static bool has_times(const uint8_t *in, uint32_t count)
{
	for (uint32_t i = 2; i < count; i += count / SAMPLE + 1)
		if (bc_le32(in + (size_t)i * R + 8) != bc_le32(in + R + 8))
			return true;
	return false;
}

/* True if matches were found so far, and fewer than half of the records have one that ends within
 * the record. Otherwise all data is random, or the times are. */
static bool has_whole_matches(const struct encoder *e)
{
	return e->block.literals != e->in && e->partial < e->n / 2;
}

/* True if the records encoded so far are not much larger than with LZ4. */
static bool is_worthwhile(const struct encoder *e, const uint8_t *out)
{
	uint8_t by_lz4[LZ4_COMPRESSBOUND(2 * TRIAL * R)];
	size_t covered = (size_t)(e->block.literals - e->in);

	if (!has_whole_matches(e))
		return false;
	if (covered > 2 * (size_t)TRIAL * R)
		return true; /* the last match is that long */
	return (size_t)(e->block.out - out) <=
	       compress_by_lz4(by_lz4, sizeof(by_lz4), e->in, covered) * 8 / 7;
}

size_t bc_record_compress(
	uint8_t *out, size_t room, const uint8_t *records, size_t bytes, enum bc_level level)
{
	uint32_t count = (uint32_t)(bytes / R);
	struct encoder e;

	if (level == BC_LEVEL_LZ4 || count < RECORDS_MIN || !has_times(records, count))
		return compress_by_lz4(out, room, records, bytes);
	lz4_start(&e.block, out, room, records, bytes);
	e.in = records;
	e.match_end = records + bytes - LZ4_LAST_LITERALS;
	e.n = FIRST;
	e.distance = 1;
	e.partial = 0;
	memset(e.tables, 0, (level == BC_LEVEL_DENSE ? CONTEXTS : 3) * sizeof(e.tables[0]));

	/* The last record stays literal: it contains the bytes that no match may reach, and those
	 * that a copy of literals before it may read. */
	uint32_t last = count - 1;
	uint32_t trial = last < TRIAL ? last : TRIAL;
	if (!encoders[level](&e, trial) || !is_worthwhile(&e, out) || !encoders[level](&e, last) ||
		!lz4_write_last(&e.block, records + bytes))
		return compress_by_lz4(out, room, records, bytes);
	return (size_t)(e.block.out - out);
}
