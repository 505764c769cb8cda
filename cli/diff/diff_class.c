#include "cli/diff/diff_class.h"

#include <string.h>

/* The traits of each class, given that micro-ops and instructions also count as references. */
static const struct {
	const char *name;
	uint32_t traits;
} classes[] = {
	{"inst", BC_CAN_INSTRUCTION | BC_CAN_FETCH},
	{"mem", BC_CAN_REFERENCE},
	{"reg", BC_CAN_REGISTER},
	{"uop", BC_CAN_UOP},
	{"kernel", BC_CAN_KERNEL},
	{"event", BC_CAN_EVENT},
	{"line", BC_CAN_LINE},
};

#define CLASS_COUNT (sizeof(classes) / sizeof(classes[0]))

uint32_t bc_diff_class_of(const struct bc_entry *entry)
{
	switch (entry->kind) {
	case BC_ENTRY_REFERENCE:
		return entry->type == BC_REQ_FETCH ? BC_DIFF_INST : BC_DIFF_MEM;
	case BC_ENTRY_INSTRUCTION:
		return BC_DIFF_INST;
	case BC_ENTRY_UOP:
		return BC_DIFF_UOP;
	case BC_ENTRY_REGISTER:
		return BC_DIFF_REG;
	case BC_ENTRY_KERNEL:
		return BC_DIFF_KERNEL;
	case BC_ENTRY_EVENT:
		return BC_DIFF_EVENT;
	default:
		return BC_DIFF_LINE;
	}
}

uint64_t bc_diff_class_by_name(const char *name, size_t bytes)
{
	for (size_t i = 0; i < CLASS_COUNT; i++)
		if (strlen(classes[i].name) == bytes && memcmp(classes[i].name, name, bytes) == 0)
			return UINT64_C(1) << i;
	return 0;
}

uint32_t bc_diff_classes_of(uint32_t holds)
{
	uint32_t found = 0;

	for (size_t i = 0; i < CLASS_COUNT; i++)
		found |= (holds & classes[i].traits) != 0 ? 1u << i : 0;
	return found;
}

const char *bc_diff_class_name(uint64_t one)
{
	return classes[__builtin_ctzll(one)].name;
}
