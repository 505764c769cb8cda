#include "formats/search/hit_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/json.h"
#include "formats/base/rfc3339.h"

static json_t *hex(uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	return json_string(text);
}

static json_t *type_of(const struct bc_entry *entry)
{
	const char *name = bc_ref_type_name(entry->type);

	return name != NULL ? json_string(name) : hex(entry->type);
}

json_t *bc_search_hit_json(const struct bc_search_hit *hit, json_t *name)
{
	const struct bc_entry *entry = &hit->entry;
	bool is_reference = entry->kind == BC_ENTRY_REFERENCE;
	char wall[BC_RFC3339_BYTES];

	bc_rfc3339_write(wall, hit->wall_ns);
	return bc_json_object((struct bc_json_member[]){
		{"number", bc_json_u64(entry->number)},
		{"tick", (entry->has & BC_HAS_TIME) != 0 ? bc_json_u64(entry->tick) : json_null()},
		{"epoch", json_integer(entry->epoch)},
		{"time", hit->has_wall ? json_string(wall) : json_null()},
		{"file", bc_json_text(hit->file)},
		{"recording", bc_json_text_or_null(hit->recording != NULL ? hit->recording : "")},
		{"host", bc_json_text_or_null(hit->host != NULL ? hit->host : "")},
		{"segment", hit->is_segment ? json_integer(hit->segment) : json_null()},
		{"addr", hex(entry->addr)},
		{"type", is_reference ? type_of(entry) : json_null()},
		{"size", (entry->has & BC_HAS_SIZE) != 0 ? json_integer(entry->size) : json_null()},
		{"attr", (entry->has & BC_HAS_ATTR) != 0 ? json_integer(entry->attr) : json_null()},
		{"proc", (entry->has & BC_HAS_PROC) != 0 ? json_integer(entry->proc) : json_null()},
		{"name", name},
		{"text", bc_json_text(hit->text)},
		{"is_context", json_boolean(hit->is_context)},
		{NULL, NULL},
	});
}
