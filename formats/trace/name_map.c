/* A search starts at the last range that begins at or below the address and goes back. From one
 * that ends before the address, `up` leads past all that do not end later; from one that has it,
 * only those that start within its size can be smaller. So it visits only ranges that overlap. */
#include "formats/trace/name_map.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/grow.h"
#include "formats/base/json.h"
#include "formats/base/text.h"

int bc_name_layer_add(
	struct bc_name_layer *l, const struct bc_name_range *range, const char *name, size_t bytes)
{
	struct bc_name_row *rows = bc_grow(l->rows, &l->capacity, l->count, sizeof(*rows));

	if (rows == NULL)
		return -ENOMEM;
	l->rows = rows;
	char *text = bc_grow(l->text, &l->text_capacity, l->text_used + bytes, 1);
	if (text == NULL)
		return -ENOMEM;
	l->text = text;
	l->rows[l->count++] = (struct bc_name_row){.first = range->first,
		.last = range->last,
		.name = l->text_used,
		.is_port = range->is_port};
	memcpy(l->text + l->text_used, name, bytes);
	l->text[l->text_used + bytes] = '\0';
	l->text_used += bytes + 1;
	return 0;
}

void bc_name_layer_free(struct bc_name_layer *l)
{
	free(l->rows);
	free(l->text);
}

/* Wide ranges come before narrow ones, and equal ones in the order in which they were added. */
static int compare(const void *x, const void *y)
{
	const struct bc_name_row *a = x;
	const struct bc_name_row *b = y;

	if (a->is_port != b->is_port)
		return a->is_port ? 1 : -1;
	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	if (a->last != b->last)
		return a->last > b->last ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

void bc_name_layer_sort(struct bc_name_layer *l)
{
	if (l->count != 0)
		qsort(l->rows, l->count, sizeof(*l->rows), compare);
	l->ports = l->count;
	for (size_t i = 0; i < l->count; i++) {
		struct bc_name_row *row = &l->rows[i];
		if (row->is_port && l->ports == l->count)
			l->ports = i;
		size_t begin = row->is_port ? l->ports : 0;
		size_t up = i;
		while (up > begin && l->rows[up - 1].last <= row->last)
			up = l->rows[up - 1].up;
		row->up = up;
	}
}

/* Returns the smallest range that has an address, or NULL. */
static const struct bc_name_row *name_layer_find(
	const struct bc_name_layer *l, bool is_port, uint64_t addr)
{
	size_t begin = is_port ? l->ports : 0;
	size_t low = begin;
	size_t high = is_port ? l->count : l->ports;
	const struct bc_name_row *best = NULL;

	while (low < high) { /* the first range that starts above the address */
		size_t middle = low + (high - low) / 2;
		if (l->rows[middle].first <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	while (low > begin &&
		(best == NULL || addr - l->rows[low - 1].first < best->last - best->first)) {
		const struct bc_name_row *row = &l->rows[low - 1];
		bool has_addr = row->last >= addr;
		if (has_addr && (best == NULL || row->last - row->first < best->last - best->first))
			best = row;
		low = has_addr ? low - 1 : row->up;
	}
	return best;
}

/* ---- regions */

/* In a filter, which has blanks between its conditions, '_' stands for a blank. */
static int fold(char c)
{
	return c == '_' ? ' ' : tolower((unsigned char)c);
}

static size_t common_bytes(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] != '\0' && fold(a[n]) == fold(b[n]))
		n++;
	return n;
}

static bool is_word_start(const char *text, size_t at)
{
	return at == 0 || !isalnum((unsigned char)text[at - 1]);
}

/* Whether the words of `name` follow each other in `text`. */
static bool has_words(const char *text, const char *name)
{
	size_t bytes = strlen(name);

	for (size_t at = 0; text[at] != '\0'; at++)
		if (is_word_start(text, at) && common_bytes(text + at, name) == bytes &&
			!isalnum((unsigned char)text[at + bytes]))
			return true;
	return false;
}

static bool is_name(const char *text, const char *name)
{
	size_t bytes = common_bytes(text, name);

	return text[bytes] == '\0' && name[bytes] == '\0';
}

/* How many characters at the start of a word in `text` are those of `name`. Case is ignored. */
static size_t name_likeness(const char *text, const char *name)
{
	size_t most = 0;

	for (size_t at = 0; text[at] != '\0'; at++) {
		size_t bytes = is_word_start(text, at) ? common_bytes(text + at, name) : 0;
		most = bytes > most ? bytes : most;
	}
	return most;
}

/* Rows come in order: only the last range can be continued. */
static int add_row(struct bc_name_region *region, const struct bc_name_row *row)
{
	struct bc_name_range *last = region->count != 0 ? &region->ranges[region->count - 1] : NULL;

	if (last != NULL && last->is_port == row->is_port &&
		(row->first <= last->last || row->first - last->last == 1)) {
		last->last = row->last > last->last ? row->last : last->last;
		return 0;
	}
	if (region->count == BC_NAME_REGION_RANGES)
		return -E2BIG;
	region->ranges[region->count++] = (struct bc_name_range){
		.is_port = row->is_port, .first = row->first, .last = row->last};
	return 0;
}

static int add_rows(const struct bc_name_layer *l, const char *name, struct bc_name_region *region,
	bool (*selects)(const char *text, const char *name))
{
	int rc = 0;

	for (size_t i = 0; i < l->count && rc == 0; i++)
		if (selects(bc_name_layer_text(l, &l->rows[i]), name))
			rc = add_row(region, &l->rows[i]);
	return rc;
}

static bool is_symbol(const char *text, const char *name)
{
	return strcmp(text, name) == 0;
}

/* Adds the ranges that a name selects to `region`; see bc_name_map_region(). Returns 0, also if
 * there are none; or -E2BIG. */
static int name_layer_region(
	const struct bc_name_layer *l, const char *name, struct bc_name_region *region)
{
	if (l->is_symbols)
		return add_rows(l, name, region, is_symbol);
	int rc = add_rows(l, name, region, is_name);
	return rc != 0 || region->count != 0 ? rc : add_rows(l, name, region, has_words);
}

/* ---- the map */

/* Well-known addresses of a PC with a Pentium: memory below 1 MiB, the APICs, the ISA ports, as the
 * text of a layer. Sources: IBM PC/AT Technical Reference (memory and ports), Intel 82371 (PCI,
 * PIIX: configuration, IDE, reset), Intel MultiProcessor Specification 1.4 (APICs), VESA and IBM
 * VGA (display). */
static const char pc_map[] = "0-3ff          interrupt vectors\n"
			     "400-4ff        BIOS data area\n"
			     "500-9fbff      conventional memory\n"
			     "9fc00-9ffff    extended BIOS data area\n"
			     "a0000-affff    VGA graphics\n"
			     "b0000-b7fff    VGA monochrome text\n"
			     "b8000-bffff    VGA colour text\n"
			     "c0000-c7fff    video BIOS\n"
			     "c8000-dffff    option ROMs\n"
			     "e0000-effff    extended BIOS\n"
			     "f0000-fffff    BIOS\n"
			     "fec00000-fec00fff  I/O APIC\n"
			     "fee00000-fee00fff  local APIC\n"
			     "fffe0000-ffffffff  BIOS ROM\n"
			     "port 0-1f      DMA controller 1\n"
			     "port 20-21     interrupt controller 1\n"
			     "port 40-43     timer\n"
			     "port 60        keyboard data\n"
			     "port 61        speaker, NMI status\n"
			     "port 64        keyboard command\n"
			     "port 70        CMOS index, NMI mask\n"
			     "port 71        CMOS data\n"
			     "port 80        POST code\n"
			     "port 81-8f     DMA pages\n"
			     "port 92        A20 gate, fast reset\n"
			     "port a0-a1     interrupt controller 2\n"
			     "port c0-df     DMA controller 2\n"
			     "port f0-ff     coprocessor\n"
			     "port 170-177   IDE 2\n"
			     "port 1f0-1f7   IDE 1\n"
			     "port 200-207   game port\n"
			     "port 278-27f   LPT2\n"
			     "port 2e8-2ef   COM4\n"
			     "port 2f8-2ff   COM2\n"
			     "port 376       IDE 2 control\n"
			     "port 378-37f   LPT1\n"
			     "port 3b0-3bb   VGA monochrome registers\n"
			     "port 3bc-3bf   LPT3\n"
			     "port 3c0-3cf   VGA registers\n"
			     "port 3d0-3df   VGA colour registers\n"
			     "port 3e8-3ef   COM3\n"
			     "port 3f0-3f5   floppy disk\n"
			     "port 3f6       IDE 1 control\n"
			     "port 3f7       floppy disk\n"
			     "port 3f8-3ff   COM1\n"
			     "port 4d0-4d1   interrupt trigger modes\n"
			     "port cf8-cff   PCI configuration\n"
			     "port cf9       reset\n";

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

	return bc_name_map_add_text(map, pc_map, strlen(pc_map), err, sizeof(err));
}

bool bc_name_map_find(
	const struct bc_name_map *map, bool is_port, uint64_t addr, struct bc_name *name)
{
	for (size_t i = map->count - 1; i != 0; i--) {
		const struct bc_name_layer *layer = &map->layers[i];
		const struct bc_name_row *row = name_layer_find(layer, is_port, addr);
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
				size_t likeness = name_likeness(text, name);
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
		if (name_layer_region(&map->layers[i], name, region) != 0) {
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
