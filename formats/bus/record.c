#include "formats/bus/record.h"

#include <string.h>

#include "formats/base/fast_format.h"

const char *bc_reqtype_name(uint8_t reqtype)
{
	switch (reqtype) {
	case BC_REQ_FETCH:
		return "FETCH";
	case BC_REQ_MEMREAD:
		return "MEMREAD";
	case BC_REQ_MEMREADINV:
		return "MEMREADINV";
	case BC_REQ_MEMWRITE:
		return "MEMWRITE";
	case BC_REQ_IOREAD:
		return "IOREAD";
	case BC_REQ_IOWRITE:
		return "IOWRITE";
	case BC_REQ_DEFERREPLY:
		return "DEFERREPLY";
	case BC_REQ_INTA:
		return "INTA";
	case BC_REQ_CNTRLAGNTRES:
		return "CNTRLAGNTRES";
	case BC_REQ_BRTRACEREC:
		return "BRTRACEREC";
	case BC_REQ_SHUTDOWN:
		return "SHUTDOWN";
	case BC_REQ_FLUSH:
		return "FLUSH";
	case BC_REQ_HALT:
		return "HALT";
	case BC_REQ_SYNC:
		return "SYNC";
	case BC_REQ_FLUSHACK:
		return "FLUSHACK";
	case BC_REQ_STOPCLKACK:
		return "STOPCLKACK";
	case BC_REQ_SMIACK:
		return "SMIACK";
	default:
		return NULL;
	}
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
