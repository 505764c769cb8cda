/* One entry of each kind with all fields, for tests of printers. */
#ifndef BC_TESTS_SUPPORT_SAMPLE_ENTRIES_H
#define BC_TESTS_SUPPORT_SAMPLE_ENTRIES_H

#include "formats/trace/entry.h"
#include "tests/support/printed.h"

#define ALL_TRAITS (BC_FIELDS | BC_TYPES | BC_KINDS)

static inline struct bc_entry whole_reference(void)
{
	struct bc_entry entry;

	bc_entry_reference(&entry, BC_REQ_MEMREAD, 0x1e5, 7);
	entry.traits = BC_FIELDS;
	entry.size = 4;
	entry.attr = 3;
	entry.proc = 2;
	entry.letter = 'x';
	entry.unit = BC_UNIT_CLK;
	entry.tick = 99;
	entry.delta = 12;
	entry.has_delta = true;
	entry.data = 0xbeef;
	entry.phys = 0x8000001e5;
	entry.space = 0x9f8e7;
	entry.epoch = 1;
	memcpy(entry.sample, "\x00\x00\x01\xe0\xf0\xd5", BC_SAMPLE_BYTES);
	entry.access.attrib = text_of("X");
	entry.access.security = text_of("NS");
	entry.line = text_of("the line");
	return entry;
}

static inline struct bc_entry whole_instruction(void)
{
	struct bc_entry entry;

	bc_entry_reference(&entry, 0, 0xffffffc000080000, 3);
	entry.kind = BC_ENTRY_INSTRUCTION;
	entry.traits = BC_TRAIT_SIZE | BC_TRAIT_PROC | BC_TRAIT_TIME | BC_TRAIT_PHYS;
	entry.size = 4;
	entry.proc = 1;
	entry.tick = 271;
	entry.unit = BC_UNIT_NS;
	entry.phys = 0x80000;
	entry.line = text_of("271 ns IT ...");
	entry.instruction = (struct bc_instruction){.effect = BC_EFFECT_SKIPPED,
		.digits = 8,
		.has_id = true,
		.id = 12,
		.opcode = 0x1f,
		.set = text_of("O"),
		.mode = text_of("EL3h_s"),
		.disassembly = text_of("add  x0, x1, \"#1\"")};
	return entry;
}

static inline struct bc_entry whole_uop(void)
{
	struct bc_entry entry;

	bc_entry_reference(&entry, 0, 0x440d7e, 5);
	entry.kind = BC_ENTRY_UOP;
	entry.uop = (struct bc_uop){.step = 1,
		.src1 = 4,
		.src2 = -1,
		.dest = 49,
		.flags = 'W',
		.branch = '-',
		.access = 'L',
		.immediate = -24,
		.mem_addr = 0x7fffffffe588,
		.fallthrough = 0x440d82,
		.target = 0,
		.macro = text_of("MOVS_L,X"),
		.micro = text_of("LOAD")};
	return entry;
}

static inline struct bc_entry whole_register(void)
{
	struct bc_entry entry;

	bc_entry_reference(&entry, 0, 0, 4);
	entry.kind = BC_ENTRY_REGISTER;
	entry.traits = BC_TRAIT_TIME | BC_TRAIT_PROC;
	entry.tick = 271;
	entry.unit = BC_UNIT_NS;
	entry.is_continued = true;
	entry.line = text_of("not to be seen again");
	entry.reg.name = text_of("cpsr");
	entry.reg.value = text_of("0000_00d3");
	return entry;
}

static inline struct bc_entry whole_kernel_event(void)
{
	struct bc_entry entry;

	bc_entry_reference(&entry, 0, 0, 2);
	entry.kind = BC_ENTRY_KERNEL;
	entry.traits = BC_TRAIT_TIME | BC_TRAIT_LETTER;
	entry.letter = 'M';
	entry.tick = 0x123456789abcdefe;
	entry.kernel.tag = text_of("M");
	entry.kernel.rest = text_of("100 1a2b3c4d foobar.so");
	return entry;
}

static inline struct bc_entry whole_event(unsigned kind, const char *text)
{
	struct bc_entry entry;

	bc_entry_reference(&entry, 0, 0, 40);
	entry.kind = BC_ENTRY_EVENT;
	entry.tick = 1000;
	entry.epoch = 2;
	entry.note.event = (struct bc_event){.kind = (uint8_t)kind};
	if (kind == BC_EVENT_GAP) {
		entry.note.event.cause = BC_GAP_DISK;
		entry.note.event.exact = true;
		entry.note.event.value = 250;
		entry.note.event.duration_ns = 17;
	}
	entry.note.text = text_of(text);
	return entry;
}

static inline struct bc_entry whole_line(const char *line)
{
	struct bc_entry entry;

	bc_entry_reference(&entry, 0, 0, 6);
	entry.kind = BC_ENTRY_LINE;
	entry.line = text_of(line);
	return entry;
}

#endif
