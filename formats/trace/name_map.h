/* Names of memory regions and I/O ports; docs/names.md describes their files and rules.
 *
 * A map has layers. Names of later layers hide names of earlier ones; within a layer, the smallest
 * range with the address counts. A layer comes from the built-in map of the PC, from the symbols of
 * a program, or from a file with one name per line and hexadecimal addresses:
 *
 *     # the test fixture
 *     a0000-bffff   VGA memory
 *     port 80       POST
 *     port 3f8-3ff  COM1 */
#ifndef BC_FORMATS_TRACE_NAME_MAP_H
#define BC_FORMATS_TRACE_NAME_MAP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"

/* Ranges of addresses of memory or I/O ports, and a region: the ranges that a name selects. */

struct bc_name_range {
	bool is_port;
	uint64_t first;
	uint64_t last; /* inclusive */
};

#define BC_NAME_REGION_RANGES 16u

/* Disjoint ranges in order, memory before ports. */
struct bc_name_region {
	unsigned count;
	struct bc_name_range ranges[BC_NAME_REGION_RANGES];
};

struct bc_name_map;

/* Returns a map without names (but bc_name_map_region() knows the PC's); NULL: out of memory. */
struct bc_name_map *bc_name_map_open(void) BC_MUST_CHECK;
void bc_name_map_close(struct bc_name_map *map);

/* Adds the names of the PC. Returns 0 or -ENOMEM. */
int bc_name_map_add_pc(struct bc_name_map *map) BC_MUST_CHECK;

/* The name of an address. */
struct bc_name {
	const char *text; /* the map's */
	bool is_symbol;
	uint64_t offset; /* from its start */
};

/* Returns false if the address has no name. */
bool bc_name_map_find(
	const struct bc_name_map *map, bool is_port, uint64_t addr, struct bc_name *name);

/* Returns the name of an address as a JSON string, "COM1" or "main+0x12" (a symbol); null if it has
 * none, or if there is no map; or NULL if out of memory. */
json_t *bc_name_map_json(const struct bc_name_map *map, bool is_port, uint64_t addr) BC_MUST_CHECK;

/* Finds the ranges of a region, in the last layer that has any: those with this name, or else those
 * whose names have its words, one after the other. Case is ignored, and '_' counts as a blank. A
 * symbol must be named exactly. The PC's layer is searched last. Returns false if no region has the
 * name or it has too many ranges, with a sentence in `err` that does not contain the name. */
bool bc_name_map_region(const struct bc_name_map *map, const char *name,
	struct bc_name_region *region, char *err, size_t errlen) BC_MUST_CHECK;

/* Returns the n-th name and its range, in the order of bc_name_map_region(); NULL: there are no
 * more. A name may have several ranges. */
const char *bc_name_map_nth(const struct bc_name_map *map, size_t n, struct bc_name_range *range);

/* ---- files of names */

/* Splits "FILE" or "FILE:OFFSET"; the offset is hexadecimal and may be negative,
 * "vmlinux:-c0000000". Returns the length of the file's name. */
size_t bc_symbols_split(const char *text, uint64_t *offset);

/* Adds the names in a file as a layer. Returns 0; -EINVAL with a message such as "line 3: ..."; or
 * another negative errno, -EFBIG for a text above 64 MiB. On failure the map is unchanged. */
int bc_name_file_add_map(struct bc_name_map *map, int fd, char *err, size_t errlen) BC_MUST_CHECK;

/* Adds the symbols of a program, with `offset` (modulo 2^64) added to each address. Same results.
 *
 * Symbols come from an ELF file of 32 or 64 bits and of either byte order, or from lines such as
 * "c0100000 T startup_32" (System.map, nm, /proc/kallsyms). Functions and objects with a size have
 * that range. Others, such as labels in assembler, extend to the next symbol, at most 64 KiB and
 * not beyond their section; they hide no symbol with a size. An ELF file without a symbol table is
 * searched for dynamic symbols. */
int bc_name_file_add_symbols(
	struct bc_name_map *map, int fd, uint64_t offset, char *err, size_t errlen) BC_MUST_CHECK;

#endif
