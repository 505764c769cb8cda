/* The options of buscap diff. */
#ifndef BC_CLI_DIFF_DIFF_OPTIONS_H
#define BC_CLI_DIFF_DIFF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/diff/diff_state.h"
#include "formats/trace/entry.h"

/* ---- Classes of entries for --only, as bits. A fetch belongs to the instructions, because that is
 * how formats without instructions represent one. */

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

/* The name of a class: "inst", "mem", ... */
const char *bc_diff_class_name(uint64_t one);

/* Options that are not stored in struct bc_diff, because they are first checked against the
 * traces. */
struct bc_diff_wanted {
	struct bc_diff *diff;
	enum bc_format format_a; /* BC_FORMAT_UNKNOWN: detect by content */
	enum bc_format format_b;
	struct bc_reader_options reader_a;
	struct bc_reader_options reader_b;
	uint64_t only; /* classes; 0: all */
	uint64_t fields;
	uint64_t ignored;
	uint64_t window;
	bool is_relative;
	bool is_same_clock;
};

/* Reads the arguments into *wanted and `diff`, whose console must be set. Returns false if the
 * command must exit with *code: after an error or after printing help. */
bool bc_diff_read_options(struct bc_diff_wanted *wanted, struct bc_diff *diff, int argc,
	char **argv, enum bc_exit *code);

#endif
