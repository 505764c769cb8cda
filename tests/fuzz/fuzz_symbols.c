/* Fuzz target: maps and symbols, as files. A file that is refused leaves the map as it was, with a
 * reason; one that is accepted can be searched, and every name that is found is a region or belongs
 * to one that has too many ranges. The first byte is the kind of file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/trace/name_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_addr(const struct bc_name_map *map, bool is_port, uint64_t addr)
{
	struct bc_name name;
	struct bc_name_region region;
	char err[256] = "";
	bool has_addr = false;

	if (!bc_name_map_find(map, is_port, addr, &name))
		return;
	json_decref(bc_name_map_json(map, is_port, addr));
	if (!bc_name_map_region(map, name.text, &region, err, sizeof(err))) {
		if (err[0] == '\0')
			abort();
		return;
	}
	for (unsigned i = 0; i < region.count; i++) {
		const struct bc_name_range *r = &region.ranges[i];
		has_addr |= r->is_port == is_port && addr >= r->first && addr <= r->last;
		if (r->first > r->last)
			abort();
	}
	if (!has_addr && !name.is_symbol) /* a label may have the name of a symbol */
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t addrs[] = {0, 0x10, 0x1000, 0x100010, 0x100fff, 0xB8000, 0x401000,
		0xC0100000, UINT32_MAX, UINT64_MAX};
	struct bc_name_map *map = bc_name_map_open();
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char err[256] = "";

	if (map == NULL || fd < 0)
		abort();
	if (size == 0 || write(fd, data + 1, size - 1) != (ssize_t)size - 1 ||
		lseek(fd, 0, SEEK_SET) != 0)
		goto out;
	bool is_map = data[0] % 2 == 0;
	int rc = is_map ? bc_name_file_add_map(map, fd, err, sizeof(err))
			: bc_name_file_add_symbols(
				  map, fd, (uint64_t)(data[0] & 2) << 40, err, sizeof(err));
	if (rc != 0 && (rc != -EINVAL || err[0] == '\0'))
		abort();
	for (size_t i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++)
		for (int is_port = 0; is_port < 2; is_port++) {
			struct bc_name name;
			if (rc != 0 && bc_name_map_find(map, is_port, addrs[i], &name))
				abort();
			check_addr(map, is_port, addrs[i]);
		}
out:
	close(fd);
	bc_name_map_close(map);
	return 0;
}
