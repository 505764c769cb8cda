#include "formats/bus/bcp1.h"

#include <libdeflate.h>
#include <string.h>

#include "formats/base/bytes.h"

static const uint8_t magic[4] = {'B', 'C', 'P', '1'};

/* The part of a header that its CRC covers. */
#define CRC_AT 28

void bc_bcp1_write_header(uint8_t out[BC_BCP1_HEADER_BYTES], const struct bc_bcp1_header *header)
{
	memcpy(out, magic, sizeof(magic));
	bc_write_le16(out + 4, header->flags);
	out[6] = header->proc;
	out[7] = 0;
	bc_write_le32(out + 8, header->sequence);
	bc_write_le32(out + 12, header->samples);
	bc_write_le64(out + 16, header->tick);
	bc_write_le32(out + 24, header->lost);
	bc_write_le32(out + CRC_AT, libdeflate_crc32(0, out, CRC_AT));
}

size_t bc_bcp1_write_frame(uint8_t *frame, const struct bc_bcp1_header *header)
{
	size_t payload = (size_t)header->samples * BC_BCP1_SAMPLE_BYTES;
	uint8_t *samples = frame + BC_BCP1_HEADER_BYTES;

	bc_bcp1_write_header(frame, header);
	if (payload != 0)
		bc_write_le32(samples + payload, libdeflate_crc32(0, samples, payload));
	return bc_bcp1_frame_bytes(header->samples);
}

bool bc_bcp1_read_header(struct bc_bcp1_header *header, const uint8_t in[BC_BCP1_HEADER_BYTES])
{
	if (memcmp(in, magic, sizeof(magic)) != 0 ||
		bc_le32(in + CRC_AT) != libdeflate_crc32(0, in, CRC_AT))
		return false;
	header->flags = bc_le16(in + 4);
	header->proc = in[6];
	header->sequence = bc_le32(in + 8);
	header->samples = bc_le32(in + 12);
	header->tick = bc_le64(in + 16);
	header->lost = bc_le32(in + 24);
	return header->samples <= BC_BCP1_SAMPLES_MAX && header->tick < BC_TICK_END;
}

void bc_bcp1_reader_init(struct bc_bcp1_reader *reader)
{
	reader->skipped_bytes = 0;
	reader->offset = 0;
	reader->start = 0;
	reader->end = 0;
}

/* Where, in n bytes, a magic may begin: whole, or cut off by the end. n if nowhere. */
static size_t find_magic(const uint8_t *p, size_t n)
{
	for (size_t at = 0; at < n;) {
		const uint8_t *hit = memchr(p + at, magic[0], n - at);
		if (hit == NULL)
			return n;
		at = (size_t)(hit - p);
		size_t rest = n - at < sizeof(magic) ? n - at : sizeof(magic);
		if (memcmp(hit, magic, rest) == 0)
			return at;
		at++;
	}
	return n;
}

/* The bytes being judged: those held when there are any, else the caller's. */
struct window {
	struct bc_bcp1_reader *reader;
	const uint8_t **data;
	size_t *bytes;
};

static bool is_held(const struct window *w)
{
	return w->reader->start != w->reader->end;
}

static const uint8_t *window_at(const struct window *w)
{
	return is_held(w) ? w->reader->hold + w->reader->start : *w->data;
}

static size_t window_bytes(const struct window *w)
{
	return is_held(w) ? w->reader->end - w->reader->start : *w->bytes;
}

static void take(struct window *w, size_t n)
{
	w->reader->offset += n;
	if (is_held(w)) {
		w->reader->start += n;
	} else {
		*w->data += n;
		*w->bytes -= n;
	}
}

static void skip(struct window *w, size_t n)
{
	take(w, n);
	w->reader->skipped_bytes += n;
}

/* Moves the caller's bytes behind the held ones until `need` are held or none is left. Returns
 * whether `need` are held. */
static bool hold(struct window *w, size_t need)
{
	struct bc_bcp1_reader *r = w->reader;
	size_t held = r->end - r->start;
	size_t more = need - held < *w->bytes ? need - held : *w->bytes;

	if (r->end + more > sizeof(r->hold)) {
		memmove(r->hold, r->hold + r->start, held);
		r->start = 0;
		r->end = held;
	}
	memcpy(r->hold + r->end, *w->data, more);
	r->end += more;
	*w->data += more;
	*w->bytes -= more;
	return r->end - r->start == need;
}

enum bc_bcp1_found bc_bcp1_next(struct bc_bcp1_reader *reader, const uint8_t **data, size_t *bytes,
	bool last, struct bc_bcp1_frame *frame)
{
	struct window w = {.reader = reader, .data = data, .bytes = bytes};

	for (;;) {
		skip(&w, find_magic(window_at(&w), window_bytes(&w)));
		if (window_bytes(&w) == 0) /* of the held bytes, or of the caller's */
			return BC_BCP1_MORE;

		size_t need = BC_BCP1_HEADER_BYTES;
		bool is_header = false;
		if (window_bytes(&w) >= need) {
			is_header = bc_bcp1_read_header(&frame->header, window_at(&w));
			if (!is_header) {
				skip(&w, 1);
				continue;
			}
			need = bc_bcp1_frame_bytes(frame->header.samples);
		}
		if (window_bytes(&w) < need) {
			if (*bytes != 0) {
				hold(&w, need);
				continue;
			}
			if (!last)
				return BC_BCP1_MORE;
			if (!is_header) {
				skip(&w, 1);
				continue;
			}
		}

		const uint8_t *samples = window_at(&w) + BC_BCP1_HEADER_BYTES;
		size_t payload = (size_t)frame->header.samples * BC_BCP1_SAMPLE_BYTES;
		frame->offset = reader->offset;
		if (window_bytes(&w) < need ||
			(payload != 0 && bc_le32(samples + payload) !=
						 libdeflate_crc32(0, samples, payload))) {
			frame->samples = NULL;
			skip(&w, 1);
			return BC_BCP1_DAMAGED;
		}
		frame->samples = samples;
		take(&w, need);
		return BC_BCP1_FRAME;
	}
}
