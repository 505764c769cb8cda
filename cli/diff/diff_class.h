/* Classes of entries for --only, as bits. A fetch belongs to the instructions, because that is how
 * formats without instructions represent one. */
#ifndef BC_CLI_DIFF_DIFF_CLASS_H
#define BC_CLI_DIFF_DIFF_CLASS_H

#include <stddef.h>
#include <stdint.h>

#include "formats/trace/entry.h"

enum {
	BC_DIFF_INST = 1u << 0,
	BC_DIFF_MEM = 1u << 1,
	BC_DIFF_REG = 1u << 2,
	BC_DIFF_UOP = 1u << 3,
	BC_DIFF_KERNEL = 1u << 4,
	BC_DIFF_EVENT = 1u << 5,
	BC_DIFF_LINE = 1u << 6,
	BC_DIFF_CLASSES = (1u << 7) - 1,
};
#define BC_DIFF_CLASS_COUNT 7

/* Returns the class of an entry. */
uint32_t bc_diff_class_of(const struct bc_entry *entry);

/* Returns the classes of entries with these traits. */
uint32_t bc_diff_classes_of(uint32_t holds);

/* Convert between a class and its name: "inst", "mem", ... An unknown name gives 0. */
const char *bc_diff_class_name(uint64_t one);
uint64_t bc_diff_class_by_name(const char *name, size_t bytes);

#endif
