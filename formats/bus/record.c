#include "formats/bus/record.h"

#include <string.h>

#include "formats/base/fast_text.h"

static const char *const names[256] = {
	[BC_REQ_FETCH] = "FETCH",
	[BC_REQ_MEMREAD] = "MEMREAD",
	[BC_REQ_MEMREADINV] = "MEMREADINV",
	[BC_REQ_MEMWRITE] = "MEMWRITE",
	[BC_REQ_IOREAD] = "IOREAD",
	[BC_REQ_IOWRITE] = "IOWRITE",
	[BC_REQ_DEFERREPLY] = "DEFERREPLY",
	[BC_REQ_INTA] = "INTA",
	[BC_REQ_CNTRLAGNTRES] = "CNTRLAGNTRES",
	[BC_REQ_BRTRACEREC] = "BRTRACEREC",
	[BC_REQ_SHUTDOWN] = "SHUTDOWN",
	[BC_REQ_FLUSH] = "FLUSH",
	[BC_REQ_HALT] = "HALT",
	[BC_REQ_SYNC] = "SYNC",
	[BC_REQ_FLUSHACK] = "FLUSHACK",
	[BC_REQ_STOPCLKACK] = "STOPCLKACK",
	[BC_REQ_SMIACK] = "SMIACK",
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

size_t bc_dialect_bytes(enum bc_format format)
{
	switch (format) {
	case BC_FORMAT_BYU:
	case BC_FORMAT_BYU_BE:
		return BC_RECORD_BYTES;
	case BC_FORMAT_BYU16:
		return 16;
	case BC_FORMAT_BYU24:
		return 24;
	default:
		return 0;
	}
}

void bc_dialect_fields(const uint8_t *in, enum bc_format format, uint64_t *addr, uint64_t *time)
{
	switch (format) {
	case BC_FORMAT_BYU16:
		*addr = bc_le64(in);
		*time = bc_le32(in + 12);
		return;
	case BC_FORMAT_BYU24:
		*addr = bc_le64(in);
		*time = bc_le64(in + 16);
		return;
	case BC_FORMAT_BYU_BE:
		*addr = bc_be32(in);
		*time = bc_be32(in + 8);
		return;
	default:
		*addr = bc_le32(in);
		*time = bc_le32(in + 8);
	}
}

size_t bc_dialect_read(uint8_t *out, const uint8_t *in, size_t n, enum bc_format format)
{
	size_t bytes = bc_dialect_bytes(format);
	size_t meta = format == BC_FORMAT_BYU16 || format == BC_FORMAT_BYU24 ? 8 : 4;

	if (format == BC_FORMAT_BYU) {
		memmove(out, in, n * bytes);
		return n;
	}
	for (size_t i = 0; i < n; i++, in += bytes, out += BC_RECORD_BYTES) {
		uint64_t addr;
		uint64_t time;
		bc_dialect_fields(in, format, &addr, &time);
		if (addr > UINT32_MAX || time > UINT32_MAX)
			return i;
		bc_write_le32(out, (uint32_t)addr);
		memcpy(out + 4, in + meta, 4);
		bc_write_le32(out + 8, (uint32_t)time);
	}
	return n;
}

void bc_dialect_write(
	uint8_t *out, enum bc_format format, uint64_t addr, const uint8_t meta[4], uint64_t time)
{
	switch (format) {
	case BC_FORMAT_BYU16:
		bc_write_le64(out, addr);
		memcpy(out + 8, meta, 4);
		bc_write_le32(out + 12, (uint32_t)time);
		return;
	case BC_FORMAT_BYU24:
		bc_write_le64(out, addr);
		memcpy(out + 8, meta, 4);
		bc_write_le32(out + 12, 0);
		bc_write_le64(out + 16, time);
		return;
	case BC_FORMAT_BYU_BE:
		bc_write_be32(out, (uint32_t)addr);
		memcpy(out + 4, meta, 4);
		bc_write_be32(out + 8, (uint32_t)time);
		return;
	default:
		bc_write_le32(out, (uint32_t)addr);
		memcpy(out + 4, meta, 4);
		bc_write_le32(out + 8, (uint32_t)time);
	}
}
