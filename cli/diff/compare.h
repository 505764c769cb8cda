/* Compares two entries field by field.
 *
 * The time has a field bit, but is not compared here: the permitted difference depends on the
 * clocks of both traces (cli/diff/match.h). */
#ifndef BC_CLI_DIFF_COMPARE_H
#define BC_CLI_DIFF_COMPARE_H

#include <stddef.h>
#include <stdint.h>

#include "formats/trace/entry.h"

/* Sets of fields, as bits. Which fields an entry has depends on its kind. */
#define BC_FIELD_KIND    (UINT64_C(1) << 0) /* always compared; excludes others */
#define BC_FIELD_ADDR    (UINT64_C(1) << 1)
#define BC_FIELD_TYPE    (UINT64_C(1) << 2)
#define BC_FIELD_SIZE    (UINT64_C(1) << 3)
#define BC_FIELD_ATTR    (UINT64_C(1) << 4)
#define BC_FIELD_PROC    (UINT64_C(1) << 5)
#define BC_FIELD_TIME    (UINT64_C(1) << 6)
#define BC_FIELD_SPACE   (UINT64_C(1) << 7)
#define BC_FIELD_DATA    (UINT64_C(1) << 8)
#define BC_FIELD_PHYS    (UINT64_C(1) << 9)
#define BC_FIELD_ENABLES (UINT64_C(1) << 10) /* the bus sample: byte enables and control */
#define BC_FIELD_LETTER  (UINT64_C(1) << 11) /* Laplace's type letter or event tag */
/* Instructions. */
#define BC_FIELD_EFFECT      (UINT64_C(1) << 12)
#define BC_FIELD_ID          (UINT64_C(1) << 13) /* not included in bc_compare_fields() */
#define BC_FIELD_OPCODE      (UINT64_C(1) << 14)
#define BC_FIELD_SET         (UINT64_C(1) << 15)
#define BC_FIELD_MODE        (UINT64_C(1) << 16)
#define BC_FIELD_DISASSEMBLY (UINT64_C(1) << 17) /* differences in white space are ignored */
/* Register writes. */
#define BC_FIELD_NAME  (UINT64_C(1) << 18) /* case is ignored */
#define BC_FIELD_VALUE (UINT64_C(1) << 19) /* separators and leading zeros are ignored */
/* Micro-ops. */
#define BC_FIELD_STEP        (UINT64_C(1) << 20)
#define BC_FIELD_REGISTERS   (UINT64_C(1) << 21)
#define BC_FIELD_FLAGS       (UINT64_C(1) << 22)
#define BC_FIELD_BRANCH      (UINT64_C(1) << 23)
#define BC_FIELD_ACCESS      (UINT64_C(1) << 24)
#define BC_FIELD_IMMEDIATE   (UINT64_C(1) << 25)
#define BC_FIELD_MEMORY      (UINT64_C(1) << 26) /* address of the load or store */
#define BC_FIELD_FALLTHROUGH (UINT64_C(1) << 27)
#define BC_FIELD_TARGET      (UINT64_C(1) << 28)
#define BC_FIELD_MACRO       (UINT64_C(1) << 29)
#define BC_FIELD_MICRO       (UINT64_C(1) << 30)
/* Kernel events, marks, triggers and verbatim lines. */
#define BC_FIELD_TEXT (UINT64_C(1) << 31)
/* Events of a capture: kind, cause and number of lost samples. */
#define BC_FIELD_EVENT (UINT64_C(1) << 32)
/* Of a memory access in Tarmac. */
#define BC_FIELD_ATTRIB   (UINT64_C(1) << 33)
#define BC_FIELD_SECURITY (UINT64_C(1) << 34)
#define BC_FIELD_COUNT    35

/* The fields to compare for two traces that hold these traits: all fields that both can hold. The
 * index of an instruction is excluded, as one extra instruction changes all that follow. */
uint64_t bc_compare_fields(uint32_t holds_a, uint32_t holds_b);

/* Returns the subset of `fields` that differ, or 0. */
uint64_t bc_compare_entries(const struct bc_entry *a, const struct bc_entry *b, uint64_t fields);

/* A hash of the selected fields. Entries that do not differ in them have the same hash. */
uint64_t bc_compare_hash(const struct bc_entry *entry, uint64_t fields);

/* The name of a field: "addr", "type", ... `field` must be one bit. */
const char *bc_field_name(uint64_t field);

#endif
