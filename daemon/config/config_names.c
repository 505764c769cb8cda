#include "daemon/config/config_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/text.h"
#include "formats/trace/name_map.h"

static int add_file(struct bc_name_map *map, const char *path, uint64_t offset, bool is_symbols,
	char *err, size_t errlen)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int rc = -EINVAL;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		bc_message(err, errlen, "not a regular file");
	else if (is_symbols)
		rc = bc_name_file_add_symbols(map, fd, offset, err, errlen);
	else
		rc = bc_name_file_add_map(map, fd, err, errlen);
	close(fd);
	return rc;
}

static void read_file(const struct bc_config *c, const char *key, const char *value,
	struct bc_config_errors *errors)
{
	char path[sizeof(c->names_map)];
	char err[256];
	bool is_symbols = value == c->names_symbols;
	uint64_t offset = 0;
	size_t bytes = is_symbols ? bc_symbols_split(value, &offset) : strlen(value);

	if (bytes == 0)
		return;
	snprintf(path, sizeof(path), "%.*s", (int)bytes, value);
	int rc = add_file(c->names, path, offset, is_symbols, err, sizeof(err));
	if (rc != 0)
		bc_config_error(
			errors, "names.%s: %s: %s", key, path, rc == -EINVAL ? err : strerror(-rc));
}

bool bc_config_open_names(struct bc_config *c, struct bc_config_errors *errors)
{
	unsigned before = errors->count;
	char err[512];

	c->names = bc_name_map_open();
	if (c->names == NULL)
		return bc_config_error(errors, "names: out of memory");
	read_file(c, "map", c->names_map, errors);
	read_file(c, "symbols", c->names_symbols, errors);
	if (errors->count != before) /* regions can't be found */
		return false;
	if (!bc_record_filter_find_regions(&c->filter, c->names, err, sizeof(err)))
		bc_config_error(errors, "[filter] %s", err);
	for (unsigned i = 0; i < c->triggers_count; i++)
		if (!bc_trigger_find_region(&c->triggers[i], c->names, err, sizeof(err)))
			bc_config_error(errors, "trigger %s: when = %s: %s", c->triggers[i].name,
				c->triggers[i].when, err);
	return errors->count == before;
}
