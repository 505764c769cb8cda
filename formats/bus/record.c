#include "formats/bus/record.h"

#include <string.h>

#include "formats/base/fast_text.h"

static const char *const names[256] = {
#define NAME(name, code) [code] = #name,
	BC_REQ_LIST(NAME)
#undef NAME
};

const char *bc_reqtype_name(uint8_t reqtype)
{
	return names[reqtype];
}

size_t bc_record_print(char out[BC_RECORD_TEXT_MAX], const struct bc_record *record)
{
	const char *name = bc_reqtype_name(record->reqtype);
	char *p = bc_write_hex32(out, record->addr);

	*p++ = '\t';
	if (name != NULL) {
		size_t n = strlen(name);
		memcpy(p, name, n);
		p += n;
	} else {
		p = bc_write_hex8(p, record->reqtype);
	}
	*p++ = '\t';
	if (record->size < 10)
		*p++ = ' ';
	p = bc_write_decimal(p, record->size);
	*p++ = '\t';
	p = bc_write_hex8(p, record->attr);
	*p++ = '\t';
	p = bc_write_decimal(p, record->proc);
	*p++ = '\t';
	p = bc_write_hex32(p, record->time);
	*p++ = '\n';
	return (size_t)(p - out);
}

/* ---- dialects */

size_t bc_dialect_read(uint8_t *out, const uint8_t *in, size_t n, enum bc_format format)
{
	size_t bytes = bc_dialect_bytes(format);

	if (format == BC_FORMAT_BYU) {
		memmove(out, in, n * bytes);
		return n;
	}
	for (size_t i = 0; i < n; i++, in += bytes, out += BC_RECORD_BYTES) {
		uint64_t addr;
		uint64_t time;
		const uint8_t *meta = bc_dialect_fields(in, format, &addr, &time);
		if (addr > UINT32_MAX || time > UINT32_MAX)
			return i;
		bc_write_le32(out, (uint32_t)addr);
		memcpy(out + 4, meta, 4);
		bc_write_le32(out + 8, (uint32_t)time);
	}
	return n;
}
