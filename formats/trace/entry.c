#include "formats/trace/entry.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

/* Names of the types from BC_REF_MODIFY on. */
static const char *const own_names[] = {
	[BC_REF_MODIFY - 0x100] = "MODIFY",
	[BC_REF_MISC - 0x100] = "MISC",
	[BC_REF_FLUSH - 0x100] = "CACHEFLUSH",
	[BC_REF_COPYBACK - 0x100] = "COPYBACK",
	[BC_REF_INVALIDATE - 0x100] = "INVALIDATE",
	[BC_REF_LETTER - 0x100] = "OTHER",
};

const char *bc_ref_type_name(unsigned type)
{
	if (type < 0x100)
		return bc_reqtype_name((uint8_t)type);
	return type < BC_REF_TYPES ? own_names[type - 0x100] : NULL;
}

int bc_ref_type_by_name(const char *name)
{
	for (unsigned type = 0; type < BC_REF_TYPES; type++) {
		const char *known = bc_ref_type_name(type);
		if (known != NULL && strcasecmp(known, name) == 0)
			return (int)type;
	}
	return -1;
}

int bc_ref_type_plain(unsigned type)
{
	switch (type) {
	case BC_REQ_FETCH:
		return BC_REQ_FETCH;
	case BC_REQ_MEMREAD:
	case BC_REQ_MEMREADINV:
	case BC_REF_MODIFY:
		return BC_REQ_MEMREAD;
	case BC_REQ_MEMWRITE:
	case BC_REF_COPYBACK:
		return BC_REQ_MEMWRITE;
	default:
		return -1;
	}
}

static uint32_t type_trait(unsigned type)
{
	switch (type) {
	case BC_REQ_MEMREAD:
	case BC_REQ_MEMWRITE:
	case BC_REF_LETTER: /* represented by BC_HAS_LETTER */
		return 0;
	case BC_REQ_FETCH:
		return BC_CAN_FETCH;
	case BC_REF_MODIFY:
		return BC_CAN_MODIFY;
	case BC_REF_MISC:
		return BC_CAN_MISC;
	case BC_REF_FLUSH:
		return BC_CAN_FLUSH;
	case BC_REF_COPYBACK:
	case BC_REF_INVALIDATE:
		return BC_CAN_CACHE;
	case BC_REQ_IOREAD:
	case BC_REQ_IOWRITE:
	case BC_REQ_INTA:
	case BC_REQ_CNTRLAGNTRES: /* result of a special cycle with unknown byte enables */
	case BC_REQ_BRTRACEREC:
	case BC_REQ_SHUTDOWN:
	case BC_REQ_FLUSH:
	case BC_REQ_HALT:
	case BC_REQ_SYNC:
	case BC_REQ_FLUSHACK:
	case BC_REQ_STOPCLKACK:
		return BC_CAN_CYCLE;
	case BC_REQ_INVALID + 0x0:
	case BC_REQ_INVALID + 0x2:
	case BC_REQ_INVALID + 0x4:
	case BC_REQ_INVALID + 0x6:
	case BC_REQ_INVALID + 0xA:
	case BC_REQ_INVALID + 0xB:
		return BC_CAN_INVALID;
	default:
		return BC_CAN_P6;
	}
}

uint32_t bc_entry_traits(const struct bc_entry *entry)
{
	static const uint32_t kinds[BC_ENTRY_KINDS] = {
		[BC_ENTRY_REFERENCE] = BC_CAN_REFERENCE,
		[BC_ENTRY_INSTRUCTION] = BC_CAN_INSTRUCTION,
		[BC_ENTRY_UOP] = BC_CAN_UOP,
		[BC_ENTRY_REGISTER] = BC_CAN_REGISTER,
		[BC_ENTRY_KERNEL] = BC_CAN_KERNEL,
		[BC_ENTRY_EVENT] = BC_CAN_EVENT,
		[BC_ENTRY_LINE] = BC_CAN_LINE,
	};
	uint32_t type = entry->kind == BC_ENTRY_REFERENCE ? type_trait(entry->type) : 0;

	return entry->has | type | kinds[entry->kind];
}

const char *bc_entry_kind_name(unsigned kind)
{
	static const char *const names[BC_ENTRY_KINDS] = {
		[BC_ENTRY_REFERENCE] = "references",
		[BC_ENTRY_INSTRUCTION] = "instructions",
		[BC_ENTRY_UOP] = "micro-ops",
		[BC_ENTRY_REGISTER] = "register writes",
		[BC_ENTRY_KERNEL] = "kernel events",
		[BC_ENTRY_EVENT] = "gaps, marks, epochs",
		[BC_ENTRY_LINE] = "other lines",
	};

	return kind < BC_ENTRY_KINDS ? names[kind] : "";
}

const char *bc_trait_name(uint32_t trait)
{
	static const char *const names[BC_TRAIT_BITS] = {
		"size",
		"memory type",
		"processor",
		"time",
		"address space",
		"data",
		"physical address",
		"byte enables",
		"type letter",
		"access attribute",
		"security",
		"fetch",
		"modify",
		"miscellaneous reference",
		"cache flush",
		"copy-back or invalidation",
		"bus cycle other than a memory access",
		"request of the P6 bus only",
		"invalid bus cycle",
		"reference",
		"instruction",
		"micro-op",
		"register write",
		"kernel event",
		"gap, mark or epoch",
		"verbatim line",
	};

	assert(trait != 0 && (trait & (trait - 1)) == 0);
	return names[__builtin_ctz(trait)];
}

const char *bc_unit_name(unsigned unit)
{
	static const char *const names[BC_UNITS] = {
		"", "clk", "ns", "cs", "cyc", "tic", "ps", "us"};

	return unit < BC_UNITS ? names[unit] : "";
}

/* Makes a reference with the time and processor of `entry`. */
static void make_reference(struct bc_entry *out, const struct bc_entry *entry, unsigned type,
	uint64_t addr, uint64_t size)
{
	bc_entry_reference(out, type, addr, entry->number);
	out->has = entry->has & (BC_HAS_PROC | BC_HAS_TIME);
	out->proc = entry->proc;
	out->unit = entry->unit;
	out->tick = entry->tick;
	out->epoch = entry->epoch;
	if (size != 0) {
		out->has |= BC_HAS_SIZE;
		out->size = (uint32_t)size;
	}
}

/* Maximum length of an x86 instruction. A larger distance to the next instruction is not a
 * length. */
#define X86_LENGTH_MAX 15

static size_t references_of_uop(struct bc_entry *out, const struct bc_entry *entry)
{
	const struct bc_uop *uop = &entry->uop;
	size_t n = 0;

	if (uop->step == 1) {
		uint64_t length = uop->fallthrough - entry->addr;
		make_reference(&out[n++], entry, BC_REQ_FETCH, entry->addr,
			length <= X86_LENGTH_MAX ? length : 0);
	}
	if (uop->access == 'L' || uop->access == 'S')
		make_reference(&out[n++], entry,
			uop->access == 'L' ? BC_REQ_MEMREAD : BC_REQ_MEMWRITE, uop->mem_addr,
			entry->size);
	return n;
}

size_t bc_entry_references(struct bc_entry out[BC_REFERENCES_MAX], const struct bc_entry *entry)
{
	switch (entry->kind) {
	case BC_ENTRY_REFERENCE:
		out[0] = *entry;
		return 1;
	case BC_ENTRY_INSTRUCTION:
		make_reference(&out[0], entry, BC_REQ_FETCH, entry->addr, entry->size);
		out[0].has |= entry->has & BC_HAS_PHYS;
		out[0].phys = entry->phys;
		return 1;
	case BC_ENTRY_UOP:
		return references_of_uop(out, entry);
	default:
		return 0;
	}
}

void bc_entry_of_record(
	struct bc_entry *entry, const uint8_t *record, uint64_t number, uint64_t tick)
{
	bc_entry_reference(entry, record[4], bc_le32(record), number);
	entry->has = BC_HAS_SIZE | BC_HAS_ATTR | BC_HAS_PROC | BC_HAS_TIME;
	entry->size = record[5];
	entry->attr = record[6];
	entry->proc = record[7];
	entry->delta = bc_le32(record + 8);
	entry->has_delta = true;
	entry->tick = tick;
}

void bc_entry_of_sample(struct bc_entry *entry, const uint8_t sample[BC_SAMPLE_BYTES],
	const struct bc_mapping *mapping, uint8_t proc, uint64_t number, uint64_t tick)
{
	uint8_t record[BC_RECORD_BYTES] = {0};

	bc_map_sample(record, bc_map_entry(mapping, sample), sample, proc);
	bc_entry_of_record(entry, record, number, tick);
	entry->has |= BC_HAS_SAMPLE;
	entry->has_delta = false; /* the record has no time */
	memcpy(entry->sample, sample, BC_SAMPLE_BYTES);
}
