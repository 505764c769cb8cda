#include "formats/bus/record.h"

#include <string.h>

#include "formats/base/fast_format.h"

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
