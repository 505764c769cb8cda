#include "formats/names/name_map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/fail.h"
#include "formats/base/json.h"
#include "formats/base/number.h"
#include "formats/names/name_layer.h"
#include "formats/names/pc_map.h"

struct bc_name_map {
	struct bc_name_layer *layers; /* the first one, of the PC, is only for regions */
	size_t count;
};

struct bc_name_map *bc_name_map_open(void)
{
	struct bc_name_map *map = calloc(1, sizeof(*map));

	if (map != NULL && bc_name_map_add_pc(map) == 0)
		return map;
	free(map);
	return NULL;
}

void bc_name_map_close(struct bc_name_map *map)
{
	if (map == NULL)
		return;
	for (size_t i = 0; i < map->count; i++)
		bc_name_layer_free(&map->layers[i]);
	free(map->layers);
	free(map);
}

int bc_name_map_add_layer(struct bc_name_map *map, struct bc_name_layer *layer)
{
	struct bc_name_layer *layers = reallocarray(map->layers, map->count + 1, sizeof(*layers));

	if (layers == NULL) {
		bc_name_layer_free(layer);
		return -ENOMEM;
	}
	bc_name_layer_sort(layer);
	layers[map->count++] = *layer;
	map->layers = layers;
	return 0;
}

const char *bc_name_skip_blanks(const char *at, const char *end)
{
	while (at != end && (*at == ' ' || *at == '\t' || *at == '\r'))
		at++;
	return at;
}

/* Parses a line that is not blank: its range, and where its name starts and ends. Returns NULL, or
 * what is wrong. */
static const char *parse_line(struct bc_name_range *r, const char **name, const char **name_end)
{
	const char *at = *name;
	const char *end = *name_end;

	*r = (struct bc_name_range){.is_port = end - at > 5 && memcmp(at, "port", 4) == 0 &&
					       (at[4] == ' ' || at[4] == '\t')};
	at = bc_name_skip_blanks(at + (r->is_port ? 4 : 0), end);
	at = bc_hex_read(at, end, &r->first);
	if (at == NULL)
		return "expected a hexadecimal address";
	r->last = r->first;
	if (at != end && *at == '-')
		at = bc_hex_read(at + 1, end, &r->last);
	if (at == NULL || (at != end && *at != ' ' && *at != '\t'))
		return "expected a range such as a0000-bffff";
	if (r->last < r->first)
		return "the range ends before it starts";
	if (r->is_port && r->last > 0xFFFF)
		return "a port has at most 16 bits";
	at = bc_name_skip_blanks(at, end);
	while (end != at && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
		end--;
	if (at == end)
		return "expected a name after the address";
	if (memchr(at, '\0', (size_t)(end - at)) != NULL)
		return "a name can't contain a zero byte";
	*name = at;
	*name_end = end;
	return NULL;
}

static int parse_text(
	struct bc_name_layer *layer, const char *text, size_t bytes, char *err, size_t errlen)
{
	const char *end = text + bytes;
	uint64_t number = 1;
	int rc = 0;

	for (const char *at = text; at < end && rc == 0; number++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline != NULL ? newline : end;
		const char *first = bc_name_skip_blanks(at, stop);
		struct bc_name_range range;
		at = newline != NULL ? newline + 1 : end;
		if (first == stop || *first == '#')
			continue;
		const char *wrong = parse_line(&range, &first, &stop);
		if (wrong != NULL) {
			bc_message(err, errlen, "line %" PRIu64 ": %s", number, wrong);
			return -EINVAL;
		}
		rc = bc_name_layer_add(layer, &range, first, (size_t)(stop - first));
	}
	return rc;
}

int bc_name_map_add_text(
	struct bc_name_map *map, const char *text, size_t bytes, char *err, size_t errlen)
{
	struct bc_name_layer layer = {.rows = NULL};
	int rc = parse_text(&layer, text, bytes, err, errlen);

	if (rc == 0)
		return bc_name_map_add_layer(map, &layer);
	bc_name_layer_free(&layer);
	return rc;
}

int bc_name_map_add_pc(struct bc_name_map *map)
{
	char err[128];

	return bc_name_map_add_text(map, bc_pc_map, strlen(bc_pc_map), err, sizeof(err));
}

bool bc_name_map_find(
	const struct bc_name_map *map, bool is_port, uint64_t addr, struct bc_name *name)
{
	for (size_t i = map->count - 1; i != 0; i--) {
		const struct bc_name_layer *layer = &map->layers[i];
		const struct bc_name_row *row = bc_name_layer_find(layer, is_port, addr);
		if (row == NULL)
			continue;
		*name = (struct bc_name){.text = bc_name_layer_text(layer, row),
			.is_symbol = layer->is_symbols,
			.offset = addr - row->first};
		return true;
	}
	return false;
}

json_t *bc_name_map_json(const struct bc_name_map *map, bool is_port, uint64_t addr)
{
	struct bc_name name;
	char *text = NULL;

	if (map == NULL || !bc_name_map_find(map, is_port, addr, &name))
		return json_null();
	if (!name.is_symbol || name.offset == 0)
		return bc_json_text(name.text);
	if (asprintf(&text, "%s+0x%" PRIx64, name.text, name.offset) < 0)
		return NULL;
	json_t *json = bc_json_text(text);
	free(text);
	return json;
}

/* Appends up to six of the names that are most like `name`, if any is. */
static void append_similar(
	const struct bc_name_map *map, const char *name, char *err, size_t errlen)
{
	const size_t least = 2; /* characters in common */
	size_t used = strlen(err);
	size_t most = least;
	unsigned count = 0;

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < map->count; i++) {
			const struct bc_name_layer *layer = &map->layers[i];
			for (size_t row = 0; row < layer->count && count < 6; row++) {
				const char *text = bc_name_layer_text(layer, &layer->rows[row]);
				size_t likeness = bc_name_likeness(text, name);
				if (pass == 0) {
					most = likeness > most ? likeness : most;
				} else if (likeness == most && used + strlen(text) + 20 < errlen &&
					   strstr(err, text) == NULL) {
					used += (size_t)snprintf(err + used, errlen - used, "%s%s",
						count == 0 ? "; similar names: " : ", ", text);
					count++;
				}
			}
		}
}

bool bc_name_map_region(const struct bc_name_map *map, const char *name,
	struct bc_name_region *region, char *err, size_t errlen)
{
	*region = (struct bc_name_region){.count = 0};
	for (size_t i = map->count; i-- != 0 && name[0] != '\0';) {
		if (bc_name_layer_region(&map->layers[i], name, region) != 0) {
			bc_message(err, errlen,
				"more than %u ranges have this name; use a longer one",
				BC_NAME_REGION_RANGES);
			return false;
		}
		if (region->count != 0)
			return true;
	}
	bc_message(err, errlen, "no region has this name");
	append_similar(map, name, err, errlen);
	return false;
}
