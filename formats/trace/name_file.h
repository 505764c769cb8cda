/* Reads files of names into a map. */
#ifndef BC_FORMATS_TRACE_NAME_FILE_H
#define BC_FORMATS_TRACE_NAME_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/trace/name_map.h"

/* Splits "FILE" or "FILE:OFFSET"; the offset is hexadecimal and may be negative,
 * "vmlinux:-c0000000". Returns the length of the file's name. */
size_t bc_symbols_split(const char *text, uint64_t *offset);

/* Adds the names in a file, or the symbols. Returns 0; -EINVAL with what is wrong in `err`; or
 * another negative errno, -EFBIG for a text of more than 64 MiB. */
int bc_name_file_add_map(struct bc_name_map *map, int fd, char *err, size_t errlen) BC_MUST_CHECK;
int bc_name_file_add_symbols(
	struct bc_name_map *map, int fd, uint64_t offset, char *err, size_t errlen) BC_MUST_CHECK;

/* Adds the symbols of a program, of a text, with `offset` (modulo 2^64) added to each address.
 *
 * Symbols come from an ELF file of 32 or 64 bits and of either byte order, or from lines such as
 * "c0100000 T startup_32" (System.map, nm, /proc/kallsyms). Functions and objects with a size have
 * that range. Others, such as labels in assembler, extend to the next symbol, at most 64 KiB and
 * not beyond their section; they hide no symbol with a size. An ELF file without a symbol table is
 * searched for dynamic symbols. Returns 0; -ENOMEM; or -EINVAL with what is wrong in `err` and the
 * map unchanged. */
int bc_symbols_add_text(struct bc_name_map *map, const char *text, size_t bytes, uint64_t offset,
	char *err, size_t errlen) BC_MUST_CHECK;

#endif
