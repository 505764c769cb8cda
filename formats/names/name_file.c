#include "formats/names/name_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "formats/base/number.h"
#include "formats/names/symbols.h"

#define TEXT_BYTES_MAX (64u << 20)

static const char elf_magic[4] = "\177ELF";

size_t bc_symbols_split(const char *text, uint64_t *offset)
{
	const char *colon = strrchr(text, ':');
	const char *end = text + strlen(text);
	uint64_t value;

	*offset = 0;
	if (colon == NULL)
		return (size_t)(end - text);
	const char *digits = colon + 1 + (colon[1] == '-' || colon[1] == '+');
	if (bc_hex_read(digits, end, &value) != end)
		return (size_t)(end - text);
	*offset = colon[1] == '-' ? 0 - value : value;
	return (size_t)(colon - text);
}

/* Reads a text into a new buffer, which is not terminated; of an ELF file, only the start. Returns
 * its length, or a negative errno. */
static ssize_t read_text(int fd, char **text)
{
	size_t capacity = 0;
	size_t used = 0;

	*text = NULL;
	for (;;) {
		if (used == capacity) {
			capacity = capacity == 0 ? 1 << 16 : 2 * capacity;
			char *grown = capacity <= TEXT_BYTES_MAX ? realloc(*text, capacity) : NULL;
			if (grown == NULL)
				return capacity <= TEXT_BYTES_MAX ? -ENOMEM : -EFBIG;
			*text = grown;
		}
		ssize_t n = read(fd, *text + used, capacity - used);
		if (n < 0 && errno != EINTR)
			return -errno;
		used += n > 0 ? (size_t)n : 0;
		if (n == 0 || (used >= sizeof(elf_magic) &&
				      memcmp(*text, elf_magic, sizeof(elf_magic)) == 0))
			return (ssize_t)used;
	}
}

int bc_name_file_add_map(struct bc_name_map *map, int fd, char *err, size_t errlen)
{
	char *text;
	ssize_t bytes = read_text(fd, &text);
	int rc = bytes < 0 ? (int)bytes
			   : bc_name_map_add_text(map, text, (size_t)bytes, err, errlen);

	free(text);
	return rc;
}

int bc_name_file_add_symbols(
	struct bc_name_map *map, int fd, uint64_t offset, char *err, size_t errlen)
{
	char *text;
	ssize_t bytes = read_text(fd, &text);
	bool is_elf = bytes >= (ssize_t)sizeof(elf_magic) &&
		      memcmp(text, elf_magic, sizeof(elf_magic)) == 0;
	int rc = (int)bytes;

	if (is_elf)
		rc = bc_symbols_add_elf(map, fd, offset, err, errlen);
	else if (bytes >= 0)
		rc = bc_symbols_add_text(map, text, (size_t)bytes, offset, err, errlen);
	free(text);
	return rc;
}
