/* Symbols of a program as a layer of names.
 *
 * Symbols come from an ELF file of 32 or 64 bits and of either byte order, or from lines such as
 * "c0100000 T startup_32" (System.map, nm, /proc/kallsyms). Functions and objects with a size have
 * that range. Others, such as labels in assembler, extend to the next symbol, at most 64 KiB and
 * not beyond their section; they hide no symbol with a size. An ELF file without a symbol table is
 * searched for dynamic symbols. */
#ifndef BC_FORMATS_NAMES_SYMBOLS_H
#define BC_FORMATS_NAMES_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/names/name_map.h"

/* Adds the symbols of an ELF file, of the regular file `fd`, or of the lines of a text, with
 * `offset` (modulo 2^64) added to each address. Returns 0; -ENOMEM; or -EINVAL with what is wrong
 * in `err` and the map unchanged. */
int bc_symbols_add_elf(
	struct bc_name_map *map, int fd, uint64_t offset, char *err, size_t errlen) BC_MUST_CHECK;
int bc_symbols_add_text(struct bc_name_map *map, const char *text, size_t bytes, uint64_t offset,
	char *err, size_t errlen) BC_MUST_CHECK;

#endif
