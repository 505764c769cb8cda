/* A layer is sorted by the first address, wide ranges before narrow ones. A search starts at the
 * last range that begins at or below the address and goes back until one has it; `reach`, the
 * highest end so far, says when none can. */
#include "formats/names/name_map.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/names/pc_map.h"

struct range {
	uint64_t first;
	uint64_t last;
	uint64_t reach; /* highest `last` of this and all earlier ranges */
	bool is_port;
	char name[BC_NAME_MAX];
};

struct layer {
	struct range *ranges; /* ports after memory */
	size_t count;
	size_t ports; /* index of the first port */
};

struct bc_name_map {
	struct layer *layers;
	size_t count;
};

struct bc_name_map *bc_name_map_open(void)
{
	return calloc(1, sizeof(struct bc_name_map));
}

void bc_name_map_close(struct bc_name_map *map)
{
	if (map == NULL)
		return;
	for (size_t i = 0; i < map->count; i++)
		free(map->layers[i].ranges);
	free(map->layers);
	free(map);
}

static int compare(const void *x, const void *y)
{
	const struct range *a = x;
	const struct range *b = y;

	if (a->is_port != b->is_port)
		return a->is_port ? 1 : -1;
	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	return a->last > b->last ? -1 : a->last < b->last;
}

static void sort(struct layer *layer)
{
	uint64_t reach = 0;

	if (layer->count != 0)
		qsort(layer->ranges, layer->count, sizeof(*layer->ranges), compare);
	layer->ports = layer->count;
	for (size_t i = 0; i < layer->count; i++) {
		struct range *r = &layer->ranges[i];
		if (r->is_port && layer->ports == layer->count) {
			layer->ports = i;
			reach = 0;
		}
		reach = r->last > reach ? r->last : reach;
		r->reach = reach;
	}
}

static const char *skip(const char *at, const char *end)
{
	while (at != end && (*at == ' ' || *at == '\t' || *at == '\r'))
		at++;
	return at;
}

/* Parses hexadecimal digits, with an optional "0x". Returns the position after them, or NULL. */
static const char *parse_hex(const char *at, const char *end, uint64_t *value)
{
	if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
		at += 2;
	const char *first = at;
	*value = 0;
	for (; at != end && isxdigit((unsigned char)*at); at++) {
		unsigned digit = (unsigned)(isdigit((unsigned char)*at) ? *at - '0'
									: (*at | 0x20) - 'a' + 10);
		if (*value >> 60 != 0)
			return NULL;
		*value = *value << 4 | digit;
	}
	return at != first ? at : NULL;
}

/* Parses a line that is not blank. Returns NULL, or what is wrong. */
static const char *parse_line(struct range *r, const char *at, const char *end)
{
	*r = (struct range){.is_port = end - at > 5 && memcmp(at, "port", 4) == 0 &&
				       (at[4] == ' ' || at[4] == '\t')};
	at = skip(at + (r->is_port ? 4 : 0), end);
	at = parse_hex(at, end, &r->first);
	if (at == NULL)
		return "expected a hexadecimal address";
	r->last = r->first;
	if (at != end && *at == '-')
		at = parse_hex(at + 1, end, &r->last);
	if (at == NULL || (at != end && *at != ' ' && *at != '\t'))
		return "expected a range such as a0000-bffff";
	if (r->last < r->first)
		return "the range ends before it starts";
	if (r->is_port && r->last > 0xFFFF)
		return "a port has at most 16 bits";
	at = skip(at, end);
	while (end != at && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
		end--;
	if (at == end)
		return "expected a name after the address";
	if ((size_t)(end - at) >= sizeof(r->name))
		return "the name has more than 63 bytes";
	memcpy(r->name, at, (size_t)(end - at));
	return NULL;
}

/* Appends a range to a layer under construction. Returns false if out of memory. */
static bool append(struct layer *layer, size_t *capacity, const struct range *r)
{
	if (layer->count == *capacity) {
		size_t more = *capacity == 0 ? 64 : *capacity * 2;
		struct range *grown = reallocarray(layer->ranges, more, sizeof(*grown));
		if (grown == NULL)
			return false;
		layer->ranges = grown;
		*capacity = more;
	}
	layer->ranges[layer->count++] = *r;
	return true;
}

static int parse_text(struct layer *layer, const char *text, size_t bytes, char *err, size_t errlen)
{
	const char *end = text + bytes;
	size_t capacity = 0;
	uint64_t number = 1;

	for (const char *at = text; at < end; number++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline != NULL ? newline : end;
		const char *first = skip(at, stop);
		struct range r;
		at = newline != NULL ? newline + 1 : end;
		if (first == stop || *first == '#')
			continue;
		const char *wrong = parse_line(&r, first, stop);
		if (wrong != NULL) {
			snprintf(err, errlen, "line %" PRIu64 ": %s", number, wrong);
			return -EINVAL;
		}
		if (!append(layer, &capacity, &r))
			return -ENOMEM;
	}
	return 0;
}

int bc_name_map_add_text(
	struct bc_name_map *map, const char *text, size_t bytes, char *err, size_t errlen)
{
	struct layer layer = {.ranges = NULL};
	int rc = parse_text(&layer, text, bytes, err, errlen);

	if (rc == 0) {
		struct layer *layers = reallocarray(map->layers, map->count + 1, sizeof(*layers));
		if (layers != NULL) {
			sort(&layer);
			layers[map->count++] = layer;
			map->layers = layers;
			return 0;
		}
		rc = -ENOMEM;
	}
	free(layer.ranges);
	return rc;
}

int bc_name_map_add_pc(struct bc_name_map *map)
{
	char err[128];

	return bc_name_map_add_text(map, bc_pc_map, strlen(bc_pc_map), err, sizeof(err));
}

static const char *find_in(const struct layer *layer, bool is_port, uint64_t addr)
{
	size_t begin = is_port ? layer->ports : 0;
	size_t low = begin;
	size_t high = is_port ? layer->count : layer->ports;

	while (low < high) { /* the first range that starts above the address */
		size_t middle = low + (high - low) / 2;
		if (layer->ranges[middle].first <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	const struct range *best = NULL;
	while (low-- > begin && layer->ranges[low].reach >= addr) {
		const struct range *r = &layer->ranges[low];
		if (r->last >= addr &&
			(best == NULL || r->last - r->first < best->last - best->first))
			best = r;
	}
	return best != NULL ? best->name : NULL;
}

const char *bc_name_map_find(const struct bc_name_map *map, bool is_port, uint64_t addr)
{
	for (size_t i = map->count; i-- != 0;) {
		const char *name = find_in(&map->layers[i], is_port, addr);
		if (name != NULL)
			return name;
	}
	return NULL;
}
